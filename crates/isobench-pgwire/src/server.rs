//! The server's side of the protocol, for test servers: appends backend messages to a buffer, and
//! decodes frontend messages, without I/O. isobench itself is only a client.
//!
//! Source of all formats: PostgreSQL: Protocol, Message Formats.

mod frontend_message;

pub use self::frontend_message::{
    Describable, FrontendMessage, Parameters, parse, parse_initial, sasl_initial_response,
};
use crate::TransactionStatus;
use crate::backend::tag;
use crate::frontend::{begin, c_string, end, null_param, param};

/// Appends a message without a body.
fn empty(out: &mut Vec<u8>, tag: u8) {
    out.push(tag);
    out.extend_from_slice(&4_i32.to_be_bytes());
}

/// Appends a message whose body `write` appends.
fn message(out: &mut Vec<u8>, tag: u8, write: impl FnOnce(&mut Vec<u8>)) {
    let mark = begin(out, tag);
    write(out);
    end(out, mark);
}

/// Appends the number of the following items, as far as it fits in 16 bits.
fn count(out: &mut Vec<u8>, things: usize) {
    out.extend_from_slice(&u16::try_from(things).unwrap_or(u16::MAX).to_be_bytes());
}

/// Appends an authentication request with this code.
pub fn authentication(out: &mut Vec<u8>, code: i32, data: &[u8]) {
    message(out, tag::AUTHENTICATION, |out| {
        out.extend_from_slice(&code.to_be_bytes());
        out.extend_from_slice(data);
    });
}

/// Appends AuthenticationOk.
pub fn authentication_ok(out: &mut Vec<u8>) {
    authentication(out, 0, &[]);
}

/// Appends AuthenticationCleartextPassword.
pub fn authentication_cleartext_password(out: &mut Vec<u8>) {
    authentication(out, 3, &[]);
}

/// Appends AuthenticationMD5Password.
pub fn authentication_md5_password(out: &mut Vec<u8>, salt: [u8; 4]) {
    authentication(out, 5, &salt);
}

/// Appends AuthenticationSASL with the names of mechanisms.
pub fn authentication_sasl(out: &mut Vec<u8>, mechanisms: &[&str]) {
    message(out, tag::AUTHENTICATION, |out| {
        out.extend_from_slice(&10_i32.to_be_bytes());
        for mechanism in mechanisms {
            c_string(out, mechanism.as_bytes());
        }
        out.push(0);
    });
}

/// Appends AuthenticationSASLContinue.
pub fn authentication_sasl_continue(out: &mut Vec<u8>, data: &[u8]) {
    authentication(out, 11, data);
}

/// Appends AuthenticationSASLFinal.
pub fn authentication_sasl_final(out: &mut Vec<u8>, data: &[u8]) {
    authentication(out, 12, data);
}

/// Appends ParameterStatus.
pub fn parameter_status(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, tag::PARAMETER_STATUS, |out| {
        c_string(out, name.as_bytes());
        c_string(out, value.as_bytes());
    });
}

/// Appends BackendKeyData.
pub fn backend_key_data(out: &mut Vec<u8>, pid: i32, key: &[u8]) {
    message(out, tag::BACKEND_KEY_DATA, |out| {
        out.extend_from_slice(&pid.to_be_bytes());
        out.extend_from_slice(key);
    });
}

/// Appends ReadyForQuery.
pub fn ready_for_query(out: &mut Vec<u8>, status: TransactionStatus) {
    message(out, tag::READY_FOR_QUERY, |out| out.push(status.to_byte()));
}

/// Appends RowDescription of columns with a name and the object id of a type, all in text format.
pub fn row_description(out: &mut Vec<u8>, columns: &[(&str, u32)]) {
    message(out, tag::ROW_DESCRIPTION, |out| {
        count(out, columns.len());
        for (name, oid) in columns {
            c_string(out, name.as_bytes());
            // No table and no column number.
            out.extend_from_slice(&[0; 6]);
            out.extend_from_slice(&oid.to_be_bytes());
            // Variable size, no modifier, text format.
            out.extend_from_slice(&(-1_i16).to_be_bytes());
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            out.extend_from_slice(&0_i16.to_be_bytes());
        }
    });
}

/// Appends DataRow; `None` is NULL.
pub fn data_row(out: &mut Vec<u8>, values: &[Option<&[u8]>]) {
    message(out, tag::DATA_ROW, |out| {
        count(out, values.len());
        for value in values {
            match value {
                Some(value) => param(out, |out| out.extend_from_slice(value)),
                None => null_param(out),
            }
        }
    });
}

/// Appends CommandComplete with a tag such as `SELECT 1`.
pub fn command_complete(out: &mut Vec<u8>, tag: &str) {
    message(out, tag::COMMAND_COMPLETE, |out| c_string(out, tag.as_bytes()));
}

/// Appends EmptyQueryResponse.
pub fn empty_query_response(out: &mut Vec<u8>) {
    empty(out, tag::EMPTY_QUERY_RESPONSE);
}

/// Appends ErrorResponse with fields: an identifying letter and a text for each.
pub fn error_response(out: &mut Vec<u8>, fields: &[(u8, &str)]) {
    message(out, tag::ERROR_RESPONSE, |out| put_fields(out, fields));
}

/// Appends NoticeResponse with fields: an identifying letter and a text for each.
pub fn notice_response(out: &mut Vec<u8>, fields: &[(u8, &str)]) {
    message(out, tag::NOTICE_RESPONSE, |out| put_fields(out, fields));
}

fn put_fields(out: &mut Vec<u8>, fields: &[(u8, &str)]) {
    for (letter, text) in fields.iter().filter(|(letter, _)| *letter != 0) {
        out.push(*letter);
        c_string(out, text.as_bytes());
    }
    out.push(0);
}

/// Appends ParseComplete.
pub fn parse_complete(out: &mut Vec<u8>) {
    empty(out, tag::PARSE_COMPLETE);
}

/// Appends BindComplete.
pub fn bind_complete(out: &mut Vec<u8>) {
    empty(out, tag::BIND_COMPLETE);
}

/// Appends CloseComplete.
pub fn close_complete(out: &mut Vec<u8>) {
    empty(out, tag::CLOSE_COMPLETE);
}

/// Appends NoData.
pub fn no_data(out: &mut Vec<u8>) {
    empty(out, tag::NO_DATA);
}

/// Appends PortalSuspended.
pub fn portal_suspended(out: &mut Vec<u8>) {
    empty(out, tag::PORTAL_SUSPENDED);
}

/// Appends ParameterDescription with the object ids of types.
pub fn parameter_description(out: &mut Vec<u8>, types: &[u32]) {
    message(out, tag::PARAMETER_DESCRIPTION, |out| {
        count(out, types.len());
        for oid in types {
            out.extend_from_slice(&oid.to_be_bytes());
        }
    });
}

/// Appends CopyInResponse for `columns` columns in text format.
pub fn copy_in_response(out: &mut Vec<u8>, columns: u16) {
    copy_response(out, tag::COPY_IN_RESPONSE, columns);
}

/// Appends CopyOutResponse for `columns` columns in text format.
pub fn copy_out_response(out: &mut Vec<u8>, columns: u16) {
    copy_response(out, tag::COPY_OUT_RESPONSE, columns);
}

/// Appends CopyBothResponse for `columns` columns in text format.
pub fn copy_both_response(out: &mut Vec<u8>, columns: u16) {
    copy_response(out, tag::COPY_BOTH_RESPONSE, columns);
}

fn copy_response(out: &mut Vec<u8>, tag: u8, columns: u16) {
    message(out, tag, |out| {
        out.push(0);
        out.extend_from_slice(&columns.to_be_bytes());
        out.resize(out.len() + 2 * usize::from(columns), 0);
    });
}

/// Appends CopyData.
pub fn copy_data(out: &mut Vec<u8>, data: &[u8]) {
    message(out, tag::COPY_DATA, |out| out.extend_from_slice(data));
}

/// Appends CopyDone.
pub fn copy_done(out: &mut Vec<u8>) {
    empty(out, tag::COPY_DONE);
}

/// Appends NotificationResponse.
pub fn notification_response(out: &mut Vec<u8>, pid: i32, channel: &str, payload: &str) {
    message(out, tag::NOTIFICATION_RESPONSE, |out| {
        out.extend_from_slice(&pid.to_be_bytes());
        c_string(out, channel.as_bytes());
        c_string(out, payload.as_bytes());
    });
}

/// Appends NegotiateProtocolVersion.
pub fn negotiate_protocol_version(out: &mut Vec<u8>, minor: i32, unknown_options: &[&str]) {
    message(out, tag::NEGOTIATE_PROTOCOL_VERSION, |out| {
        out.extend_from_slice(&minor.to_be_bytes());
        let options = i32::try_from(unknown_options.len()).unwrap_or(i32::MAX);
        out.extend_from_slice(&options.to_be_bytes());
        for option in unknown_options {
            c_string(out, option.as_bytes());
        }
    });
}
