//! Encoders of the backend messages that the null server sends, and a reader for the fields of
//! those that it receives.
//!
//! Deliberately small and hand-written: the null server must not share a bug, or a cost, with the
//! protocol crate that it is used to measure. Source: PostgreSQL: Protocol, Message Formats.

/// The type identifiers of the columns in replies (`pg_type.oid`).
pub mod oid {
    /// `bigint`.
    pub const INT8: u32 = 20;
    /// `integer`.
    pub const INT4: u32 = 23;
    /// `text`.
    pub const TEXT: u32 = 25;
}

/// A column of a result: its name, its type and the text of its only value (`None` for NULL).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// The name in `RowDescription`.
    pub name: &'a str,
    /// The type, see [`oid`].
    pub type_oid: u32,
    /// The value in the result's single row, in text format.
    pub value: Option<&'a str>,
}

/// A protocol or SQL error, as sent to the client; PostgreSQL: Error Codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// The five-character code.
    pub sqlstate: &'static str,
    /// The primary message.
    pub message: &'static str,
}

/// Appends one message: kind, length, and what `body` writes.
fn message(out: &mut Vec<u8>, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = u32::try_from(out.len() - at).unwrap_or(u32::MAX);
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn text(out: &mut Vec<u8>, value: &str) {
    out.extend_from_slice(value.as_bytes());
    out.push(0);
}

/// A count that is known to be below 2^16.
fn count16(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
}

/// `AuthenticationOk`.
pub fn authentication_ok(out: &mut Vec<u8>) {
    message(out, b'R', |out| out.extend_from_slice(&[0; 4]));
}

/// `ParameterStatus`.
pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, b'S', |out| {
        text(out, name);
        text(out, value);
    });
}

/// `BackendKeyData`; the null server ignores cancel requests, so the secret needn't be one.
pub fn backend_key_data(out: &mut Vec<u8>, process: u32) {
    message(out, b'K', |out| {
        out.extend_from_slice(&process.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
    });
}

/// `ReadyForQuery` with the transaction status `I`, `T` or `E`.
pub fn ready_for_query(out: &mut Vec<u8>, status: u8) {
    out.extend_from_slice(&[b'Z', 0, 0, 0, 5, status]);
}

/// A message without a body, such as `ParseComplete` (`1`), `BindComplete` (`2`), `CloseComplete`
/// (`3`), `EmptyQueryResponse` (`I`) and `NoData` (`n`).
pub fn bare(out: &mut Vec<u8>, kind: u8) {
    out.extend_from_slice(&[kind, 0, 0, 0, 4]);
}

/// `CommandComplete`.
pub fn command_complete(out: &mut Vec<u8>, tag: &str) {
    message(out, b'C', |out| text(out, tag));
}

/// `RowDescription`, every column in text format.
pub fn row_description(out: &mut Vec<u8>, columns: &[Column<'_>]) {
    message(out, b'T', |out| {
        count16(out, columns.len());
        for column in columns {
            text(out, column.name);
            out.extend_from_slice(&[0; 6]); // no table, no column number
            out.extend_from_slice(&column.type_oid.to_be_bytes());
            let size: i16 = match column.type_oid {
                oid::INT8 => 8,
                oid::INT4 => 4,
                _ => -1,
            };
            out.extend_from_slice(&size.to_be_bytes());
            out.extend_from_slice(&(-1_i32).to_be_bytes()); // no type modifier
            out.extend_from_slice(&[0; 2]); // text format
        }
    });
}

/// `DataRow`.
pub fn data_row(out: &mut Vec<u8>, columns: &[Column<'_>]) {
    message(out, b'D', |out| {
        count16(out, columns.len());
        for column in columns {
            match column.value {
                None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
                Some(value) => {
                    let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
                    out.extend_from_slice(&length.to_be_bytes());
                    out.extend_from_slice(value.as_bytes());
                }
            }
        }
    });
}

/// `ParameterDescription` of `count` parameters of type text.
pub fn parameter_description(out: &mut Vec<u8>, count: u16) {
    message(out, b't', |out| {
        out.extend_from_slice(&count.to_be_bytes());
        for _ in 0..count {
            out.extend_from_slice(&oid::TEXT.to_be_bytes());
        }
    });
}

/// `ErrorResponse` of the given severity (`ERROR` or `FATAL`).
pub fn error_response(out: &mut Vec<u8>, severity: &str, error: SqlError) {
    message(out, b'E', |out| {
        for (field, value) in
            [(b'S', severity), (b'V', severity), (b'C', error.sqlstate), (b'M', error.message)]
        {
            out.push(field);
            text(out, value);
        }
        out.push(0);
    });
}

/// A frontend message that lacks the fields of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads the fields of a received message body, in order.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `count` bytes.
    ///
    /// # Errors
    /// If the message ends earlier.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (head, tail) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = tail;
        Ok(head)
    }

    /// The next byte.
    ///
    /// # Errors
    /// If the message ends earlier.
    pub fn byte(&mut self) -> Result<u8, Malformed> {
        self.bytes(1).map(|bytes| bytes[0])
    }

    /// The next 16-bit count.
    ///
    /// # Errors
    /// If the message ends earlier.
    pub fn count16(&mut self) -> Result<u16, Malformed> {
        self.bytes(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// Skips the next value of a `Bind` message.
    ///
    /// # Errors
    /// If the message ends earlier, or the length is neither -1 (NULL) nor positive.
    pub fn skip_value(&mut self) -> Result<(), Malformed> {
        let bytes = self.bytes(4)?;
        match i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) {
            -1 => Ok(()),
            length => self.bytes(usize::try_from(length).map_err(|_| Malformed)?).map(|_| ()),
        }
    }

    /// The next zero-terminated string, without its zero.
    ///
    /// # Errors
    /// If there is no zero.
    pub fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let end = self.0.iter().position(|&byte| byte == 0).ok_or(Malformed)?;
        let value = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_themselves_but_not_the_kind() {
        let mut out = Vec::new();
        command_complete(&mut out, "END");
        assert_eq!(out, b"C\0\0\0\x08END\0");
    }

    #[test]
    fn fields_end_where_the_message_ends() {
        let mut fields = Fields(b"ab\0\0\x01x");
        assert_eq!(fields.string(), Ok(&b"ab"[..]));
        assert_eq!(fields.count16(), Ok(1));
        assert_eq!(fields.byte(), Ok(b'x'));
        assert_eq!(fields.byte(), Err(Malformed));
        assert_eq!(Fields(b"no end").string(), Err(Malformed));
        assert_eq!(Fields(&[0xff, 0xff, 0xff, 0xfe]).skip_value(), Err(Malformed));
    }
}
