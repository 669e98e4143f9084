//! Error messages of TLS, in libpq's (that is, OpenSSL's) words.

use std::io;

use rustls::{AlertDescription, Error};

use crate::config::TlsVersion;
use crate::error_text::errno_text;

/// OpenSSL's names of the alerts that servers send.
const ALERTS: [(AlertDescription, &str); 14] = [
    (AlertDescription::HandshakeFailure, "sslv3 alert handshake failure"),
    (AlertDescription::BadCertificate, "sslv3 alert bad certificate"),
    (AlertDescription::UnsupportedCertificate, "sslv3 alert unsupported certificate"),
    (AlertDescription::CertificateRevoked, "sslv3 alert certificate revoked"),
    (AlertDescription::CertificateExpired, "sslv3 alert certificate expired"),
    (AlertDescription::CertificateUnknown, "sslv3 alert certificate unknown"),
    (AlertDescription::UnknownCA, "tlsv1 alert unknown ca"),
    (AlertDescription::AccessDenied, "tlsv1 alert access denied"),
    (AlertDescription::DecryptError, "tlsv1 alert decrypt error"),
    (AlertDescription::ProtocolVersion, "tlsv1 alert protocol version"),
    (AlertDescription::InsufficientSecurity, "tlsv1 alert insufficient security"),
    (AlertDescription::InternalError, "tlsv1 alert internal error"),
    (AlertDescription::CertificateRequired, "tlsv13 alert certificate required"),
    (AlertDescription::NoApplicationProtocol, "tlsv1 alert no application protocol"),
];

/// Returns the message for a TLS error in an open session.
pub(super) fn error(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(_) | Error::InvalidCertRevocationList(_) => {
            "SSL error: certificate verify failed".to_owned()
        }
        Error::AlertReceived(alert) => {
            let known = ALERTS.iter().find(|(known, _)| known == alert).map(|(_, words)| *words);
            known.map_or_else(|| format!("SSL error: alert {alert:?}"), |words| format!("SSL error: {words}"))
        }
        Error::InvalidMessage(_) => "SSL error: wrong version number".to_owned(),
        other => format!("SSL error: {other}"),
    }
}

/// Returns the message for an error during the handshake, with a hint if the versions may be the
/// cause.
pub(super) fn handshake_error(cause: &Error, (min, max): (TlsVersion, TlsVersion)) -> String {
    let text = error(cause);
    let is_about_versions = matches!(
        cause,
        Error::InvalidMessage(_)
            | Error::PeerIncompatible(_)
            | Error::AlertReceived(AlertDescription::ProtocolVersion)
    );
    if !is_about_versions {
        return text;
    }
    format!(
        "{text}\nThis may indicate that the server does not support any SSL protocol version between {min} and {max}."
    )
}

/// Returns the message for the end of the stream, or an error of the socket, under TLS.
pub(super) fn lost(error: Option<&io::Error>) -> String {
    error.map_or_else(
        || "SSL SYSCALL error: EOF detected".to_owned(),
        |error| format!("SSL SYSCALL error: {}", errno_text(error)),
    )
}
