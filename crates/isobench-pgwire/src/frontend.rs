//! Appends a client's messages to a byte buffer, without I/O and, except for the growth of the
//! buffer, without allocation.
//!
//! It supports only text formats and the unnamed portal, which suffice for a benchmark. `server`
//! decodes these messages.
//!
//! Texts are C strings in the protocol. A complete text ends at a NUL byte, as in C, so a text
//! can't change the structure of a message. Source of all formats: PostgreSQL: Protocol, Message
//! Formats.

use std::ffi::CStr;

/// Version 3.0 of the protocol, as used in the start-up packet.
pub const PROTOCOL_VERSION: i32 = 3 << 16;
/// The code used instead of the version in a cancel request.
pub const CANCEL_REQUEST_CODE: i32 = 1234 * 0x1_0000 + 5678;
/// The code used instead of the version in a request for TLS.
pub const SSL_REQUEST_CODE: i32 = 1234 * 0x1_0000 + 5679;
/// The code used instead of the version in a request for GSSAPI encryption.
pub const GSSENC_REQUEST_CODE: i32 = 1234 * 0x1_0000 + 5680;

/// The position of a length word that is filled in at the end of its message.
#[derive(Debug)]
#[must_use = "a message without its length corrupts the stream: pass this to the matching finish function"]
pub struct Mark(usize);

/// Appends a type byte and space for the length word.
#[inline]
pub(crate) fn begin(out: &mut Vec<u8>, tag: u8) -> Mark {
    out.push(tag);
    begin_untagged(out)
}

/// Appends space for a length word (of a start-up packet, or of a value in Bind or DataRow).
#[inline]
pub(crate) fn begin_untagged(out: &mut Vec<u8>) -> Mark {
    let mark = Mark(out.len());
    out.extend_from_slice(&[0; 4]);
    mark
}

/// Fills in a length word that includes itself.
#[inline]
#[expect(clippy::needless_pass_by_value, reason = "a mark is used once")]
pub(crate) fn end(out: &mut [u8], mark: Mark) {
    let length = out.len() - mark.0;
    put_length(out, mark.0, length);
}

/// Fills in a length word that doesn't include itself.
#[inline]
#[expect(clippy::needless_pass_by_value, reason = "a mark is used once")]
pub(crate) fn end_value(out: &mut [u8], mark: Mark) {
    let length = out.len() - mark.0 - 4;
    put_length(out, mark.0, length);
}

#[inline]
fn put_length(out: &mut [u8], at: usize, length: usize) {
    // No length is valid above 2 GiB; the largest one makes the server refuse the message.
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends a C string.
#[inline]
pub(crate) fn c_string(out: &mut Vec<u8>, text: &[u8]) {
    let text = CStr::from_bytes_until_nul(text).map_or(text, CStr::to_bytes);
    out.extend_from_slice(text);
    out.push(0);
}

/// Appends Query: a complete text in the simple protocol, with any number of statements.
#[inline]
pub fn query(out: &mut Vec<u8>, sql: &[u8]) {
    let mark = begin(out, b'Q');
    c_string(out, sql);
    end(out, mark);
}

/// Starts Query; the text is then appended in parts, without NUL bytes, and [`finish`] ends it.
#[inline]
pub fn begin_query(out: &mut Vec<u8>) -> Mark {
    begin(out, b'Q')
}

/// Ends the message started by [`begin_query`].
#[inline]
pub fn finish(out: &mut Vec<u8>, mark: Mark) {
    out.push(0);
    end(out, mark);
}

/// Appends Parse: prepares `sql` under the name `statement` (`""` for the unnamed one); the server
/// infers the parameters' types.
pub fn parse(out: &mut Vec<u8>, statement: &str, sql: &str) {
    let mark = begin(out, b'P');
    c_string(out, statement.as_bytes());
    c_string(out, sql.as_bytes());
    out.extend_from_slice(&0_i16.to_be_bytes());
    end(out, mark);
}

/// Appends Describe of a prepared statement (`""` for the unnamed one), answered by ParameterDescription,
/// and by RowDescription or NoData.
pub fn describe_statement(out: &mut Vec<u8>, statement: &str) {
    let mark = begin(out, b'D');
    out.push(b'S');
    c_string(out, statement.as_bytes());
    end(out, mark);
}

/// Appends Describe of a portal (`""` for the one made by Bind), answered by RowDescription or
/// NoData.
pub fn describe_portal(out: &mut Vec<u8>, portal: &str) {
    let mark = begin(out, b'D');
    out.push(b'P');
    c_string(out, portal.as_bytes());
    end(out, mark);
}

/// Starts Bind of a prepared statement to the unnamed portal, with all values in text format.
///
/// Exactly `params` calls of [`param`] or [`null_param`] must follow, then [`finish_bind`].
#[inline]
pub fn begin_bind(out: &mut Vec<u8>, statement: &str, params: u16) -> Mark {
    let mark = begin(out, b'B');
    out.push(0);
    c_string(out, statement.as_bytes());
    // No format codes: text for all parameters.
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&params.to_be_bytes());
    mark
}

/// Appends NULL as the next parameter of a Bind.
#[inline]
pub fn null_param(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1_i32).to_be_bytes());
}

/// Appends the next parameter of a Bind: the text that `write` appends.
#[inline]
pub fn param(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mark = begin_untagged(out);
    write(out);
    end_value(out, mark);
}

/// Ends the message started by [`begin_bind`]; results are in text format.
#[inline]
pub fn finish_bind(out: &mut Vec<u8>, mark: Mark) {
    out.extend_from_slice(&[0, 0]);
    end(out, mark);
}

/// Appends Execute of the unnamed portal, without a row limit.
#[inline]
pub fn execute(out: &mut Vec<u8>) {
    out.extend_from_slice(b"E\0\0\0\x09\0\0\0\0\0");
}

/// Appends Sync: ends an implicit transaction and requests ReadyForQuery.
#[inline]
pub fn sync(out: &mut Vec<u8>) {
    out.extend_from_slice(b"S\0\0\0\x04");
}

/// Appends Flush: requests the replies so far, without ending anything.
#[inline]
pub fn flush(out: &mut Vec<u8>) {
    out.extend_from_slice(b"H\0\0\0\x04");
}

/// Appends Terminate, which ends a session properly.
pub fn terminate(out: &mut Vec<u8>) {
    out.extend_from_slice(b"X\0\0\0\x04");
}

/// Appends CopyData with the data that `write` appends; rows may be split between messages in any
/// way.
#[inline]
pub fn copy_data(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mark = begin(out, b'd');
    write(out);
    end(out, mark);
}

/// Appends CopyDone: all data of a COPY FROM STDIN has been sent.
pub fn copy_done(out: &mut Vec<u8>) {
    out.extend_from_slice(b"c\0\0\0\x04");
}

/// Appends CopyFail: makes a COPY FROM STDIN fail; the server repeats `reason` in its error
/// message.
pub fn copy_fail(out: &mut Vec<u8>, reason: &str) {
    let mark = begin(out, b'f');
    c_string(out, reason.as_bytes());
    end(out, mark);
}

/// Appends the start-up packet of protocol 3.0 with run-time parameters, among them `user` and
/// `database`.
pub fn startup<'a>(out: &mut Vec<u8>, params: impl IntoIterator<Item = (&'a str, &'a str)>) {
    let mark = begin_untagged(out);
    out.extend_from_slice(&PROTOCOL_VERSION.to_be_bytes());
    for (name, value) in params {
        c_string(out, name.as_bytes());
        c_string(out, value.as_bytes());
    }
    out.push(0);
    end(out, mark);
}

/// Appends PasswordMessage: the password itself or the MD5 response, as requested by the server.
pub fn password(out: &mut Vec<u8>, password: &[u8]) {
    let mark = begin(out, b'p');
    c_string(out, password);
    end(out, mark);
}

/// Appends SASLInitialResponse: the chosen mechanism and the client's first message.
pub fn sasl_initial(out: &mut Vec<u8>, mechanism: &str, response: &[u8]) {
    let mark = begin(out, b'p');
    c_string(out, mechanism.as_bytes());
    param(out, |out| out.extend_from_slice(response));
    end(out, mark);
}

/// Appends SASLResponse: a further message of the client.
pub fn sasl_response(out: &mut Vec<u8>, response: &[u8]) {
    let mark = begin(out, b'p');
    out.extend_from_slice(response);
    end(out, mark);
}

/// Appends CancelRequest, which is sent over its own connection; `pid` and `key` come from
/// BackendKeyData.
pub fn cancel_request(out: &mut Vec<u8>, pid: i32, key: &[u8]) {
    let mark = begin_untagged(out);
    out.extend_from_slice(&CANCEL_REQUEST_CODE.to_be_bytes());
    out.extend_from_slice(&pid.to_be_bytes());
    out.extend_from_slice(key);
    end(out, mark);
}

/// Appends SSLRequest, answered by the single byte `S` or `N`.
pub fn ssl_request(out: &mut Vec<u8>) {
    let mark = begin_untagged(out);
    out.extend_from_slice(&SSL_REQUEST_CODE.to_be_bytes());
    end(out, mark);
}
