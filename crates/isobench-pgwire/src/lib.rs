//! The PostgreSQL frontend protocol without I/O, connection strings, and sockets at the edge.

pub mod backend;
pub mod config;
pub mod frame;
pub mod frontend;
mod protocol_error;
mod server_error;
mod sqlstate;

pub use backend::TransactionStatus;
pub use config::{Address, ConnectOptions, Host, Keepalives, Secret, SslMode, TargetSessionAttrs};
pub use frame::{Frame, FrameBuffer, Frames};
pub use protocol_error::ProtocolError;
pub use server_error::ServerError;
pub use sqlstate::SqlState;
