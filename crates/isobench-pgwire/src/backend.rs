//! Parses the messages sent by a server, borrowing from the receive buffer, without I/O or
//! allocation.
//!
//! `backend/` has the bodies of rows and of messages with lists; `server` encodes the same messages
//! for test servers. Source of all formats: PostgreSQL: Protocol, Message Formats.

mod body;
mod rows;
mod server_message;
pub mod tag;

use std::borrow::Cow;

pub(crate) use self::body::Body;
pub use self::rows::{Columns, DataRow, Field, Fields, ParameterDescription, RowDescription};
pub use self::server_message::{ServerMessage, sqlstate};
use crate::{Frame, ProtocolError};

/// The state of a session's transaction, as reported by ReadyForQuery.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum TransactionStatus {
    /// Not in a transaction block (`I`).
    Idle,
    /// In a transaction block (`T`).
    InTransaction,
    /// In a transaction block that an error has aborted (`E`).
    Failed,
}

impl TransactionStatus {
    /// The status in the body of ReadyForQuery, if valid.
    #[inline]
    pub fn from_body(body: &[u8]) -> Option<Self> {
        match body {
            b"I" => Some(Self::Idle),
            b"T" => Some(Self::InTransaction),
            b"E" => Some(Self::Failed),
            _ => None,
        }
    }

    /// The byte in the protocol.
    pub fn to_byte(self) -> u8 {
        match self {
            Self::Idle => b'I',
            Self::InTransaction => b'T',
            Self::Failed => b'E',
        }
    }
}

/// A message from a server.
#[derive(Clone, Debug, PartialEq)]
pub enum Message<'a> {
    /// A request for authentication, or its end.
    Authentication(Authentication<'a>),
    /// The data needed for a cancel request.
    BackendKeyData {
        /// The process id of the session's server process.
        pid: i32,
        /// The secret, 4 bytes in protocol 3.0.
        key: &'a [u8],
    },
    /// A run-time parameter's value, sent at start-up and after changes.
    ParameterStatus {
        /// Name of the parameter.
        name: Cow<'a, str>,
        /// Its value.
        value: Cow<'a, str>,
    },
    /// A warning or other notice.
    NoticeResponse(ServerMessage<'a>),
    /// An error.
    ErrorResponse(ServerMessage<'a>),
    /// The server is ready for the next query.
    ReadyForQuery(TransactionStatus),
    /// The columns of the rows that follow.
    RowDescription(RowDescription<'a>),
    /// A row.
    DataRow(DataRow<'a>),
    /// A statement has ended.
    CommandComplete {
        /// Such as `SELECT 3` or `INSERT 0 1`.
        tag: &'a str,
    },
    /// The query text was empty; sent instead of CommandComplete.
    EmptyQueryResponse,
    /// Parse has succeeded.
    ParseComplete,
    /// Bind has succeeded.
    BindComplete,
    /// Close has succeeded.
    CloseComplete,
    /// The described statement returns no rows.
    NoData,
    /// Execute stopped at its row limit.
    PortalSuspended,
    /// The parameters of a described statement.
    ParameterDescription(ParameterDescription<'a>),
    /// The server waits for COPY data.
    CopyInResponse(CopyFormat),
    /// COPY data follows.
    CopyOutResponse(CopyFormat),
    /// Streaming in both directions starts (replication only).
    CopyBothResponse(CopyFormat),
    /// COPY data.
    CopyData(&'a [u8]),
    /// The end of COPY data.
    CopyDone,
    /// A NOTIFY on a channel that this session listens to.
    NotificationResponse {
        /// Process id of the notifying session.
        pid: i32,
        /// Name of the channel.
        channel: Cow<'a, str>,
        /// The payload, possibly empty.
        payload: Cow<'a, str>,
    },
    /// The reply to a fastpath function call, which isobench doesn't make.
    FunctionCallResponse {
        /// The value, `None` for NULL.
        value: Option<&'a [u8]>,
    },
    /// The server doesn't support the requested minor version or protocol options.
    NegotiateProtocolVersion {
        /// The newest minor version that it supports (of the requested major version).
        minor: i32,
        /// The number of protocol options that it doesn't support.
        unknown_options: i32,
    },
}

/// The server's request during start-up.
#[derive(Clone, Debug, PartialEq)]
pub enum Authentication<'a> {
    /// The client is authenticated.
    Ok,
    /// The password itself.
    CleartextPassword,
    /// An MD5 hash of password, user and salt.
    Md5Password {
        /// The salt.
        salt: [u8; 4],
    },
    /// SASL; the body lists the mechanisms.
    Sasl(SaslMechanisms<'a>),
    /// A message of the chosen SASL mechanism.
    SaslContinue(&'a [u8]),
    /// The last message of the chosen SASL mechanism.
    SaslFinal(&'a [u8]),
    /// A method that isobench doesn't support: its code in the protocol (2 Kerberos V5, 7 and 8
    /// GSSAPI, 9 SSPI, …).
    Other(i32),
}

/// The names of the SASL mechanisms offered by a server, in its order of preference.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SaslMechanisms<'a>(&'a [u8]);

impl<'a> SaslMechanisms<'a> {
    /// The names.
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(|&byte| byte == 0).take_while(|name| !name.is_empty())
    }
}

/// The format of COPY data.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CopyFormat {
    /// True if the rows are in binary format.
    pub binary: bool,
    /// The number of columns.
    pub columns: u16,
}

/// Parses one message.
///
/// # Errors
///
/// An unknown type byte, or a body with another format, including trailing bytes.
pub fn parse(frame: Frame<'_>) -> Result<Message<'_>, ProtocolError> {
    let mut body = Body::new(frame);
    let message = match frame.tag {
        tag::DATA_ROW => Message::DataRow(DataRow::parse(&mut body)?),
        tag::COMMAND_COMPLETE => Message::CommandComplete { tag: body.text()? },
        tag::READY_FOR_QUERY => Message::ReadyForQuery(
            TransactionStatus::from_body(body.rest())
                .ok_or_else(|| body.malformed("no transaction status"))?,
        ),
        tag::ROW_DESCRIPTION => Message::RowDescription(RowDescription::parse(&mut body)?),
        tag::ERROR_RESPONSE => Message::ErrorResponse(ServerMessage::parse(&mut body)?),
        tag::NOTICE_RESPONSE => Message::NoticeResponse(ServerMessage::parse(&mut body)?),
        tag::PARSE_COMPLETE => Message::ParseComplete,
        tag::BIND_COMPLETE => Message::BindComplete,
        tag::CLOSE_COMPLETE => Message::CloseComplete,
        tag::NO_DATA => Message::NoData,
        tag::PORTAL_SUSPENDED => Message::PortalSuspended,
        tag::EMPTY_QUERY_RESPONSE => Message::EmptyQueryResponse,
        tag::PARAMETER_DESCRIPTION => Message::ParameterDescription(ParameterDescription::parse(&mut body)?),
        tag::COPY_DATA => Message::CopyData(body.rest()),
        tag::COPY_DONE => Message::CopyDone,
        tag::COPY_IN_RESPONSE => Message::CopyInResponse(copy_format(&mut body)?),
        tag::COPY_OUT_RESPONSE => Message::CopyOutResponse(copy_format(&mut body)?),
        tag::COPY_BOTH_RESPONSE => Message::CopyBothResponse(copy_format(&mut body)?),
        _ => rare(frame.tag, &mut body)?,
    };
    body.end()?;
    Ok(message)
}

/// Parses messages that don't occur in the reply to a query.
#[cold]
fn rare<'a>(tag: u8, body: &mut Body<'a>) -> Result<Message<'a>, ProtocolError> {
    Ok(match tag {
        tag::AUTHENTICATION => Message::Authentication(authentication(body)?),
        tag::BACKEND_KEY_DATA => Message::BackendKeyData { pid: body.i32()?, key: body.rest() },
        tag::PARAMETER_STATUS => Message::ParameterStatus { name: body.lossy()?, value: body.lossy()? },
        tag::NOTIFICATION_RESPONSE => {
            Message::NotificationResponse { pid: body.i32()?, channel: body.lossy()?, payload: body.lossy()? }
        }
        tag::FUNCTION_CALL_RESPONSE => Message::FunctionCallResponse { value: body.value()? },
        tag::NEGOTIATE_PROTOCOL_VERSION => {
            let message =
                Message::NegotiateProtocolVersion { minor: body.i32()?, unknown_options: body.i32()? };
            while !body.is_empty() {
                body.c_string()?;
            }
            message
        }
        _ => return Err(ProtocolError::UnknownMessage { tag }),
    })
}

fn authentication<'a>(body: &mut Body<'a>) -> Result<Authentication<'a>, ProtocolError> {
    Ok(match body.i32()? {
        0 => Authentication::Ok,
        3 => Authentication::CleartextPassword,
        5 => Authentication::Md5Password { salt: body.array()? },
        10 => {
            let list = body.rest();
            if list.last() != Some(&0) {
                return Err(body.malformed("the list of SASL mechanisms has no end"));
            }
            Authentication::Sasl(SaslMechanisms(list))
        }
        11 => Authentication::SaslContinue(body.rest()),
        12 => Authentication::SaslFinal(body.rest()),
        code => {
            body.rest();
            Authentication::Other(code)
        }
    })
}

fn copy_format(body: &mut Body<'_>) -> Result<CopyFormat, ProtocolError> {
    let binary = match body.u8()? {
        0 => false,
        1 => true,
        _ => return Err(body.malformed("neither text nor binary")),
    };
    let columns = body.u16()?;
    for _ in 0..columns {
        body.i16()?;
    }
    Ok(CopyFormat { binary, columns })
}

/// The number of rows in a command tag: `INSERT 0 5` → 5, `SELECT 3` → 3, `BEGIN` → `None`.
///
/// Source: PostgreSQL: Protocol, Message Formats, CommandComplete.
pub fn rows_of_tag(tag: &str) -> Option<u64> {
    tag.rsplit_once(' ').and_then(|(_, count)| count.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(tag: u8, body: &[u8]) -> Result<Message<'_>, ProtocolError> {
        parse(Frame { tag, body })
    }

    #[test]
    fn rows_are_counted_by_the_last_word() {
        let cases = [
            ("INSERT 0 5", Some(5)),
            ("SELECT 3", Some(3)),
            ("COPY 10", Some(10)),
            ("BEGIN", None),
            ("", None),
        ];
        for (tag, rows) in cases {
            assert_eq!(rows_of_tag(tag), rows, "{tag}");
        }
    }

    #[test]
    fn surplus_and_missing_bytes_are_malformed() {
        for (tag, body) in
            [(b'1', &b"x"[..]), (b'Z', b"X"), (b'Z', b"II"), (b'C', b"BEGIN"), (b'K', b"\0\0\0")]
        {
            assert!(matches!(parsed(tag, body), Err(ProtocolError::Malformed { .. })), "{tag} {body:?}");
        }
        assert_eq!(parsed(b'?', b""), Err(ProtocolError::UnknownMessage { tag: b'?' }));
    }

    #[test]
    fn authentication_requests() {
        let sasl = parsed(b'R', b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
        let Ok(Message::Authentication(Authentication::Sasl(list))) = sasl else {
            panic!("{sasl:?}");
        };
        assert_eq!(list.iter().collect::<Vec<_>>(), [&b"SCRAM-SHA-256-PLUS"[..], b"SCRAM-SHA-256"]);
        let gss = parsed(b'R', b"\0\0\0\x08anything");
        assert_eq!(gss, Ok(Message::Authentication(Authentication::Other(8))));
    }
}
