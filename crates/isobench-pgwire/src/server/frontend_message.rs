//! Decodes a client's messages, borrowing from the receive buffer.

use crate::backend::Body;
use crate::frontend::{CANCEL_REQUEST_CODE, GSSENC_REQUEST_CODE, PROTOCOL_VERSION, SSL_REQUEST_CODE};
use crate::{Frame, ProtocolError};

/// The maximum size of a start-up packet in a PostgreSQL server, in bytes.
const STARTUP_LIMIT: usize = 10_000;

/// A message from a client.
#[derive(Clone, Debug, PartialEq)]
pub enum FrontendMessage<'a> {
    /// The start-up packet of protocol 3 (no type byte).
    Startup {
        /// Run-time parameters, in order.
        parameters: Vec<(&'a [u8], &'a [u8])>,
    },
    /// A cancel request (no type byte).
    CancelRequest {
        /// Process id.
        pid: i32,
        /// The secret.
        key: &'a [u8],
    },
    /// A request for TLS (no type byte), to be answered by the byte `S` or `N`.
    SslRequest,
    /// A request for GSSAPI encryption (no type byte), to be answered by the byte `G` or `N`.
    GssEncRequest,
    /// A query text in the simple protocol.
    Query(&'a [u8]),
    /// Prepares a statement.
    Parse {
        /// The name of the statement; empty for the unnamed one.
        statement: &'a [u8],
        /// The query text.
        sql: &'a [u8],
        /// The object ids of parameter types specified by the client.
        types: Vec<u32>,
    },
    /// Binds values to a prepared statement.
    Bind {
        /// The name of the portal; empty for the unnamed one.
        portal: &'a [u8],
        /// The name of the statement; empty for the unnamed one.
        statement: &'a [u8],
        /// The format codes of the parameters; empty if all are text.
        formats: Vec<i16>,
        /// The values.
        parameters: Parameters<'a>,
        /// The format codes of the results; empty if all are text.
        result_formats: Vec<i16>,
    },
    /// Requests a description.
    Describe(Describable<'a>),
    /// Closes a statement or portal.
    Close(Describable<'a>),
    /// Executes a portal.
    Execute {
        /// The name of the portal; empty for the unnamed one.
        portal: &'a [u8],
        /// The maximum number of rows; 0 for all.
        limit: i32,
    },
    /// End of a sequence of messages.
    Sync,
    /// Requests the replies so far.
    Flush,
    /// End of the session.
    Terminate,
    /// A password or an MD5 response (both ending with a NUL), or a SASL message; it depends on the
    /// server's request which.
    Password(&'a [u8]),
    /// COPY data.
    CopyData(&'a [u8]),
    /// End of COPY data.
    CopyDone,
    /// COPY must fail, for this reason.
    CopyFail(&'a [u8]),
}

/// The object of a Describe or Close.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Describable<'a> {
    /// A prepared statement.
    Statement(&'a [u8]),
    /// A portal.
    Portal(&'a [u8]),
}

/// The values of a Bind; `None` is NULL.
pub type Parameters<'a> = Vec<Option<&'a [u8]>>;

/// Decodes the first message of a connection, which has no type byte. Returns `None` while it is
/// incomplete, otherwise the message and its size in bytes.
///
/// # Errors
///
/// An invalid length, another protocol version, or a malformed body.
pub fn parse_initial(bytes: &[u8]) -> Result<Option<(FrontendMessage<'_>, usize)>, ProtocolError> {
    let Some(&length) = bytes.first_chunk::<4>() else {
        return Ok(None);
    };
    let length = i32::from_be_bytes(length);
    let size = match usize::try_from(length) {
        Ok(size) if size >= 8 => size,
        _ => return Err(ProtocolError::InvalidLength { tag: 0, length }),
    };
    if size > STARTUP_LIMIT {
        return Err(ProtocolError::TooLong { tag: 0, length: size, limit: STARTUP_LIMIT });
    }
    let Some(packet) = bytes.get(4..size) else {
        return Ok(None);
    };
    let mut body = Body::new(Frame { tag: 0, body: packet });
    let message = match body.i32()? {
        PROTOCOL_VERSION => {
            let mut parameters = Vec::new();
            loop {
                let name = body.c_string()?;
                if name.is_empty() {
                    break;
                }
                parameters.push((name, body.c_string()?));
            }
            FrontendMessage::Startup { parameters }
        }
        CANCEL_REQUEST_CODE => FrontendMessage::CancelRequest { pid: body.i32()?, key: body.rest() },
        SSL_REQUEST_CODE => FrontendMessage::SslRequest,
        GSSENC_REQUEST_CODE => FrontendMessage::GssEncRequest,
        _ => return Err(body.malformed("not protocol 3.0")),
    };
    body.end()?;
    Ok(Some((message, size)))
}

/// Decodes a message of an established session.
///
/// # Errors
///
/// An unknown type byte or a malformed body.
pub fn parse(frame: Frame<'_>) -> Result<FrontendMessage<'_>, ProtocolError> {
    let mut body = Body::new(frame);
    let message = match frame.tag {
        b'Q' => FrontendMessage::Query(body.c_string()?),
        b'P' => FrontendMessage::Parse {
            statement: body.c_string()?,
            sql: body.c_string()?,
            types: list(&mut body, Body::u32)?,
        },
        b'B' => FrontendMessage::Bind {
            portal: body.c_string()?,
            statement: body.c_string()?,
            formats: list(&mut body, Body::i16)?,
            parameters: list(&mut body, Body::value)?,
            result_formats: list(&mut body, Body::i16)?,
        },
        b'D' => FrontendMessage::Describe(describable(&mut body)?),
        b'C' => FrontendMessage::Close(describable(&mut body)?),
        b'E' => FrontendMessage::Execute { portal: body.c_string()?, limit: body.i32()? },
        b'S' => FrontendMessage::Sync,
        b'H' => FrontendMessage::Flush,
        b'X' => FrontendMessage::Terminate,
        b'p' => FrontendMessage::Password(body.rest()),
        b'd' => FrontendMessage::CopyData(body.rest()),
        b'c' => FrontendMessage::CopyDone,
        b'f' => FrontendMessage::CopyFail(body.c_string()?),
        tag => return Err(ProtocolError::UnknownMessage { tag }),
    };
    body.end()?;
    Ok(message)
}

/// Decodes the body of [`FrontendMessage::Password`] as SASLInitialResponse: mechanism and the
/// client's first message.
///
/// # Errors
///
/// A malformed body.
pub fn sasl_initial_response(body: &[u8]) -> Result<(&[u8], Option<&[u8]>), ProtocolError> {
    let mut body = Body::new(Frame { tag: b'p', body });
    let answer = (body.c_string()?, body.value()?);
    body.end()?;
    Ok(answer)
}

fn describable<'a>(body: &mut Body<'a>) -> Result<Describable<'a>, ProtocolError> {
    match body.u8()? {
        b'S' => body.c_string().map(Describable::Statement),
        b'P' => body.c_string().map(Describable::Portal),
        _ => Err(body.malformed("neither statement nor portal")),
    }
}

/// A list preceded by its number of elements; memory grows with the elements read, not with the
/// specified number.
fn list<'a, T>(
    body: &mut Body<'a>,
    element: impl Fn(&mut Body<'a>) -> Result<T, ProtocolError>,
) -> Result<Vec<T>, ProtocolError> {
    let count = body.u16()?;
    let mut list = Vec::new();
    for _ in 0..count {
        list.push(element(body)?);
    }
    Ok(list)
}
