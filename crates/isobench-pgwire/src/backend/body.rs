//! Reads the parts of a message body: integers, C strings, values. Every read is checked against
//! the end.

use std::borrow::Cow;
use std::ffi::CStr;

use crate::{Frame, ProtocolError};

/// The bytes before the first NUL and those after it; `None` if there is none.
#[inline]
pub(crate) fn split_at_nul(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = CStr::from_bytes_until_nul(bytes).ok()?.to_bytes();
    Some((text, &bytes[text.len() + 1..]))
}

/// The unread rest of a message body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a> {
    tag: u8,
    rest: &'a [u8],
}

impl<'a> Body<'a> {
    pub(crate) fn new(frame: Frame<'a>) -> Self {
        Self { tag: frame.tag, rest: frame.body }
    }

    /// The error for this message.
    pub(crate) fn malformed(&self, problem: &'static str) -> ProtocolError {
        ProtocolError::Malformed { tag: self.tag, problem }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The rest, without consuming it.
    pub(crate) fn peek(&self) -> &'a [u8] {
        self.rest
    }

    /// Consumes the rest.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Checks that everything was consumed.
    pub(crate) fn end(&self) -> Result<(), ProtocolError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.malformed("bytes after its end")) }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        match self.rest.split_first_chunk::<N>() {
            Some((&bytes, rest)) => {
                self.rest = rest;
                Ok(bytes)
            }
            None => Err(self.malformed("it ends too early")),
        }
    }

    pub(crate) fn u8(&mut self) -> Result<u8, ProtocolError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, ProtocolError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn i16(&mut self) -> Result<i16, ProtocolError> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ProtocolError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, ProtocolError> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], ProtocolError> {
        match self.rest.split_at_checked(count) {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(bytes)
            }
            None => Err(self.malformed("it ends too early")),
        }
    }

    /// A value preceded by its length; `None` for NULL.
    pub(crate) fn value(&mut self) -> Result<Option<&'a [u8]>, ProtocolError> {
        match self.i32()? {
            -1 => Ok(None),
            length => match usize::try_from(length) {
                Ok(length) => self.bytes(length).map(Some),
                Err(_) => Err(self.malformed("a negative length")),
            },
        }
    }

    /// A C string, without its NUL.
    pub(crate) fn c_string(&mut self) -> Result<&'a [u8], ProtocolError> {
        let Some((text, rest)) = split_at_nul(self.rest) else {
            return Err(self.malformed("a text without end"));
        };
        self.rest = rest;
        Ok(text)
    }

    /// A C string that is UTF-8 regardless of the client encoding.
    pub(crate) fn text(&mut self) -> Result<&'a str, ProtocolError> {
        std::str::from_utf8(self.c_string()?).map_err(|_| self.malformed("a text that is not UTF-8"))
    }

    /// A C string in the client encoding, which may not be UTF-8; invalid bytes are replaced by
    /// U+FFFD.
    pub(crate) fn lossy(&mut self) -> Result<Cow<'a, str>, ProtocolError> {
        self.c_string().map(String::from_utf8_lossy)
    }
}
