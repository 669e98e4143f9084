//! The common body of ErrorResponse and NoticeResponse, borrowed. Its owned form is `ServerError`.

use super::body::{Body, split_at_nul};
use crate::{ProtocolError, ServerError, SqlState};

/// The fields of an ErrorResponse or NoticeResponse.
///
/// Source: PostgreSQL: Protocol, Error and Notice Message Fields.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ServerMessage<'a> {
    fields: &'a [u8],
}

impl<'a> ServerMessage<'a> {
    pub(super) fn parse(body: &mut Body<'a>) -> Result<Self, ProtocolError> {
        let fields = body.peek();
        while body.u8()? != 0 {
            body.c_string()?;
        }
        Ok(Self { fields })
    }

    /// The fields in the server's order: the letter that identifies each, and the text in the
    /// client encoding.
    pub fn fields(self) -> impl Iterator<Item = (u8, &'a [u8])> {
        Fields { rest: self.fields }
    }

    /// The text of the field with this letter.
    pub fn field(self, letter: u8) -> Option<&'a [u8]> {
        self.fields().find_map(|(found, text)| (found == letter).then_some(text))
    }

    /// The error code.
    pub fn code(self) -> SqlState {
        self.field(b'C').map_or(SqlState::MISSING, SqlState::from_bytes)
    }

    /// A copy that owns its fields.
    pub fn to_error(self) -> ServerError {
        ServerError::from_fields(self.fields())
    }
}

/// The error code in the body of an ErrorResponse, without checking or copying the rest of it.
///
/// [`SqlState::MISSING`] if there is none.
#[inline]
pub fn sqlstate(error_body: &[u8]) -> SqlState {
    Fields { rest: error_body }
        .find_map(|(letter, text)| (letter == b'C').then(|| SqlState::from_bytes(text)))
        .unwrap_or(SqlState::MISSING)
}

/// Iterator over the fields; ends at the final NUL, or where the format is invalid.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u8, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&letter, rest) = self.rest.split_first()?;
        if letter == 0 {
            return None;
        }
        let (text, rest) = split_at_nul(rest)?;
        self.rest = rest;
        Some((letter, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFLICT: &[u8] = b"SERROR\0VERROR\0C40001\0Mcould not serialize access\0\0";

    #[test]
    fn the_code_is_found_anywhere() {
        assert_eq!(sqlstate(CONFLICT), SqlState::SERIALIZATION_FAILURE);
        assert_eq!(sqlstate(b"C40P01\0\0"), SqlState::DEADLOCK_DETECTED);
    }

    #[test]
    fn broken_bodies_have_no_code() {
        for body in [&b""[..], b"\0", b"SERROR\0\0", b"SERROR\0C40001", b"C4000\0\0", b"\0C40001\0\0"] {
            assert_eq!(sqlstate(body), SqlState::MISSING, "{body:?}");
        }
    }
}
