//! Violations of the PostgreSQL protocol. Errors *reported* by the server are in `server_error.rs`.

use std::fmt;

/// A violation of the message format: the peer doesn't use the PostgreSQL protocol, or not
/// correctly.
///
/// The stream can't be resynchronised afterwards, so the connection can't be used any more.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ProtocolError {
    /// The length word of a message is below 4, its own size.
    #[error("message {} claims an impossible length of {length} bytes", Tag(*.tag))]
    InvalidLength {
        /// Type byte of the message (0 for a start-up packet, which has none).
        tag: u8,
        /// The length as received.
        length: i32,
    },
    /// The length word of a message is above the limit of the receiving buffer.
    #[error("message {} claims a length of {length} bytes, more than the limit of {limit}", Tag(*.tag))]
    TooLong {
        /// Type byte of the message (0 for a start-up packet, which has none).
        tag: u8,
        /// The length as received.
        length: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The type byte isn't that of any message in this direction.
    #[error("unknown message type {}", Tag(*.tag))]
    UnknownMessage {
        /// The type byte.
        tag: u8,
    },
    /// The body doesn't have the format required by the type byte.
    #[error("malformed message {}: {problem}", Tag(*.tag))]
    Malformed {
        /// Type byte of the message (0 for a start-up packet, which has none).
        tag: u8,
        /// The problem.
        problem: &'static str,
    },
    /// A well-formed message that the protocol doesn't permit at this point.
    #[error("message {} is not expected {during}", Tag(*.tag))]
    Unexpected {
        /// Type byte of the message.
        tag: u8,
        /// The phase, as a phrase such as "during start-up".
        during: &'static str,
    },
}

impl ProtocolError {
    /// The type byte of the message concerned (0 for a start-up packet, which has none).
    pub fn tag(&self) -> u8 {
        match *self {
            Self::InvalidLength { tag, .. }
            | Self::TooLong { tag, .. }
            | Self::UnknownMessage { tag }
            | Self::Malformed { tag, .. }
            | Self::Unexpected { tag, .. } => tag,
        }
    }
}

/// Formats a type byte as `"R"`, or as `0x03` if it isn't a printable character.
struct Tag(u8);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_ascii_graphic() {
            write!(f, "\"{}\"", char::from(self.0))
        } else {
            write!(f, "0x{:02x}", self.0)
        }
    }
}
