//! How to reach a server: the options of a connection and where they come from (command line, connection string,
//! environment, service file, password file). No sockets here.
//!
//! Source: PostgreSQL: libpq, Database Connection Control Functions, Environment Variables.

mod error;
mod options;
mod resolve;
mod secret;

pub use self::error::ConfigError;
pub use self::options::{Address, ConnectOptions, Host, Keepalives, SslMode, TargetSessionAttrs};
pub use self::resolve::{Env, Given, process_environment};
pub use self::secret::Secret;
