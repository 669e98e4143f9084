//! TLS as libpq does it: an encrypted stream, whom it trusts, and what it says when it doesn't.
//!
//! | file | what it holds |
//! |---|---|
//! | `settings.rs` | from options and files to rustls' configuration |
//! | `handshake.rs` | agreeing on keys, and checking who the server is |
//! | `verify.rs` | which certificates are trusted |
//! | `certificate.rs` | what a certificate says |
//! | `client_certificate.rs` | the certificate that the client shows |
//! | `accepted.rs` | the server's end, for clients that demand encryption |
//! | `stream.rs` | the stream afterwards |
//! | `words.rs` | errors in libpq's words |
//!
//! The stream is rustls' `ClientConnection`. rustls' interface without buffers, used before, took
//! 230 lines more. It keeps 5.4 KiB for an idle session where `ClientConnection` keeps 8.4 KiB
//! (resident memory of the client, 500 sessions to PostgreSQL 15 by TLS 1.3); after a reply of 1 MB
//! both keep 14 to 15 KiB. A short query costs the same system calls and 5 % more instructions.
//! rustls' `StreamOwned` doesn't fit an event loop: it reports bytes as written that it holds back,
//! and doesn't tell whether the socket has more to read. Certificates that libpq trusts and rustls'
//! verifier doesn't are why `verify.rs` exists.
//!
//! Not here: when a connection is encrypted (`connect/encryption.rs`), and how SCRAM is bound to it
//! (`startup.rs`).

mod accepted;
mod certificate;
mod client_certificate;
mod handshake;
mod settings;
mod stream;
mod verify;
mod words;

pub use self::accepted::TlsAcceptor;
pub(crate) use self::handshake::{TlsClient, TlsError};
pub use self::stream::TlsStream;

/// The protection of a session's stream, as far as authentication can be tied to it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Protection {
    /// Unencrypted.
    #[default]
    None,
    /// By TLS.
    Tls {
        /// The data of the channel binding `tls-server-end-point`; `None` if the server's
        /// certificate has none.
        end_point: Option<Vec<u8>>,
    },
}
