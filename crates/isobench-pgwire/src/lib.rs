//! The PostgreSQL frontend protocol (version 3.0) without I/O, connection strings, and sockets.
//!
//! The layers are:
//!
//! - the codec: [`FrameBuffer`] splits a stream into messages, [`frontend`] appends a client's
//!   messages, [`backend`] parses a server's messages; [`server`] is the inverse of both, for test
//!   servers. It has no I/O, and on a benchmark's hot path it doesn't allocate for each message;
//! - [`Startup`]: start-up and authentication as a state machine without I/O;
//! - [`config`]: connection options from the command line, connection strings, the environment and
//!   libpq's files;
//! - sockets: [`connect()`] opens a session over a [`Socket`], encrypted by [`tls`](TlsStream) as
//!   in libpq, [`CancelToken`] cancels, and [`Connection`] is a blocking connection for
//!   administrative work.
//!
//! The crate doesn't depend on what is measured, or on the server's product.
//!
//! ```no_run
//! use isobench_pgwire::{ConnectOptions, Connection, Given, process_environment};
//!
//! let given = Given { dbname: Some("host=/tmp dbname=bench".to_owned()), ..Given::default() };
//! let options = ConnectOptions::resolve(&given, &process_environment)?;
//! let mut connection = Connection::open(&options)?;
//! let level = connection.value("SHOW transaction_isolation")?;
//! println!("{}: {level:?}", options.describe());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod backend;
mod cancel;
pub mod config;
mod connect;
mod connection;
mod endpoint;
mod error;
mod error_text;
mod established;
pub mod frame;
pub mod frontend;
mod patience;
mod protocol_error;
mod scram;
pub mod server;
mod server_error;
mod socket;
mod sqlstate;
mod startup;
mod tls;
mod visible;

pub use backend::TransactionStatus;
pub use cancel::{CancelRoute, CancelToken};
pub use config::{
    Address, ChannelBinding, Concealed, ConfigError, ConnectOptions, Env, Given, Host, Keepalives, Secret,
    SslCertMode, SslMode, SslNegotiation, TargetSessionAttrs, TlsOptions, TlsRoots, TlsVersion, account_name,
    fit, holds_secret, is_connection_string, parse_connection_string, process_environment, shown,
};
pub use connect::{ConnectError, ConnectProblem, FailedAttempt, Link, Links, connect};
pub use connection::{Completed, Connection, Replies, Rows};
pub use error::Error;
pub use established::Established;
pub use frame::{Frame, FrameBuffer, Frames};
pub use patience::Patience;
pub use protocol_error::ProtocolError;
pub use server_error::ServerError;
pub use socket::Socket;
pub use sqlstate::SqlState;
pub use startup::{ReadySession, Startup, StartupError, StartupProgress};
pub use tls::{Protection, TlsAcceptor, TlsStream};
pub use visible::{controls, cut, visible};
