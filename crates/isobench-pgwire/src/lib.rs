//! The PostgreSQL frontend protocol without I/O, connection strings, and sockets at the edge.

pub mod backend;
mod cancel;
pub mod config;
mod connect;
mod connection;
mod endpoint;
mod error;
pub mod frame;
pub mod frontend;
mod protocol_error;
pub mod server;
mod server_error;
mod socket;
mod sqlstate;
mod startup;

pub use backend::TransactionStatus;
pub use cancel::CancelToken;
pub use config::{
    Address, ConfigError, ConnectOptions, Env, Given, Host, Keepalives, Secret, SslMode, TargetSessionAttrs,
    is_connection_string, parse_connection_string, process_environment,
};
pub use connect::{ConnectError, ConnectProblem, Established, FailedAttempt, connect};
pub use connection::{Completed, Connection, Rows};
pub use error::Error;
pub use frame::{Frame, FrameBuffer, Frames};
pub use protocol_error::ProtocolError;
pub use server_error::ServerError;
pub use socket::Socket;
pub use sqlstate::SqlState;
pub use startup::{Session, Startup, StartupError, StartupProgress};
