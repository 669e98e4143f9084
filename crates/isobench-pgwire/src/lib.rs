//! The PostgreSQL frontend protocol (version 3.0) without I/O, connection strings, and sockets at
//! the edge.
//!
//! From the inside out:
//!
//! - the codec: [`FrameBuffer`] splits a stream into messages, [`frontend`] appends what a client
//!   sends, [`backend`] parses what a server sends; [`server`] is the other side of both, for test
//!   servers. No I/O, and on the way of a benchmark no allocation per message;
//! - [`Startup`]: start-up and authentication as a state machine without I/O;
//! - [`config`]: how to reach a server, from command line, connection string, environment and
//!   libpq's files;
//! - the edge: [`connect`] opens a session over a [`Socket`], encrypted by [`tls`](TlsStream) as
//!   libpq would, [`CancelToken`] cancels, and [`Connection`] is a blocking connection for
//!   administrative work.
//!
//! It must not know what is measured, nor which product the server is.
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
mod established;
pub mod frame;
pub mod frontend;
mod patience;
mod protocol_error;
pub mod server;
mod server_error;
mod socket;
mod sqlstate;
mod startup;
mod tls;
mod visible;

pub use backend::TransactionStatus;
pub use cancel::CancelToken;
pub use config::{
    Address, ChannelBinding, Concealed, ConfigError, ConnectOptions, Env, Given, Host, Keepalives, Secret,
    SslCertMode, SslMode, SslNegotiation, TargetSessionAttrs, TlsOptions, TlsRoots, TlsVersion, account_name,
    is_connection_string, parse_connection_string, process_environment, shown,
};
pub use connect::{ConnectError, ConnectProblem, FailedAttempt, connect};
pub use connection::{Completed, Connection, Rows};
pub use error::Error;
pub use established::Established;
pub use frame::{Frame, FrameBuffer, Frames};
pub use patience::Patience;
pub use protocol_error::ProtocolError;
pub use server_error::ServerError;
pub use socket::Socket;
pub use sqlstate::SqlState;
pub use startup::{ReadySession, Startup, StartupError, StartupProgress};
pub use tls::{Protection, TlsStream};
pub use visible::{cut, visible};
