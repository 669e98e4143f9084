//! TLS as libpq does it: an encrypted stream, whom it trusts, and what it says when it doesn't.
//!
//! | file | what it holds |
//! |---|---|
//! | `settings.rs` | from options and files to rustls' configuration |
//! | `handshake.rs` | agreeing on keys, and checking who the server is |
//! | `verify.rs` | which certificates are trusted |
//! | `certificate.rs` | what a certificate says |
//! | `client_certificate.rs` | the certificate that the client shows |
//! | `stream.rs` | the stream afterwards |
//! | `words.rs` | errors in libpq's words |
//!
//! The stream is rustls' `ClientConnection`. Its interface without buffers was used before and took
//! 240 lines more: an idle session costs 5.4 KiB with it and 8.4 KiB with buffers (resident memory of
//! the client, 500 sessions to PostgreSQL 15, TLS 1.3), and 250 instructions less of some 5,400 for
//! a short query; after replies of 1 MB both keep 14 to 15 KiB. rustls' `StreamOwned` doesn't fit an
//! event loop: it reports bytes as written that it still holds, and reads one record at a time.
//! libpq also trusts certificates that rustls' verifier can't read, which is why `verify.rs` is
//! there.
//!
//! Not here: when a connection is encrypted (`connect/encryption.rs`), and how SCRAM is bound to it
//! (`startup.rs`).

mod certificate;
mod client_certificate;
mod handshake;
mod settings;
mod stream;
mod verify;
mod words;

pub(crate) use self::handshake::{TlsClient, TlsError};
pub use self::stream::TlsStream;

/// How the stream of a session is protected, as far as authentication can be tied to it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum Protection {
    /// It isn't.
    #[default]
    None,
    /// By TLS.
    Tls {
        /// The data of the channel binding `tls-server-end-point`; `None`: the server's certificate
        /// has none.
        end_point: Option<Vec<u8>>,
    },
}
