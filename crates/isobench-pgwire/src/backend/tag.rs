//! Type bytes of the messages a server sends.
//!
//! Source: PostgreSQL: Protocol, Message Formats.

/// Declares the type bytes.
macro_rules! tags {
    ($($name:ident $byte:literal $message:literal)*) => {
        $(#[doc = concat!("Type byte of ", $message, ".")] pub const $name: u8 = $byte;)*
    };
}

tags! {
    AUTHENTICATION b'R' "every request for authentication"
    BACKEND_KEY_DATA b'K' "BackendKeyData"
    BIND_COMPLETE b'2' "BindComplete"
    CLOSE_COMPLETE b'3' "CloseComplete"
    COMMAND_COMPLETE b'C' "CommandComplete"
    COPY_BOTH_RESPONSE b'W' "CopyBothResponse"
    COPY_DATA b'd' "CopyData"
    COPY_DONE b'c' "CopyDone"
    COPY_IN_RESPONSE b'G' "CopyInResponse"
    COPY_OUT_RESPONSE b'H' "CopyOutResponse"
    DATA_ROW b'D' "DataRow"
    EMPTY_QUERY_RESPONSE b'I' "EmptyQueryResponse"
    ERROR_RESPONSE b'E' "ErrorResponse"
    FUNCTION_CALL_RESPONSE b'V' "FunctionCallResponse"
    NEGOTIATE_PROTOCOL_VERSION b'v' "NegotiateProtocolVersion"
    NO_DATA b'n' "NoData"
    NOTICE_RESPONSE b'N' "NoticeResponse"
    NOTIFICATION_RESPONSE b'A' "NotificationResponse"
    PARAMETER_DESCRIPTION b't' "ParameterDescription"
    PARAMETER_STATUS b'S' "ParameterStatus"
    PARSE_COMPLETE b'1' "ParseComplete"
    PORTAL_SUSPENDED b's' "PortalSuspended"
    READY_FOR_QUERY b'Z' "ReadyForQuery"
    ROW_DESCRIPTION b'T' "RowDescription"
}
