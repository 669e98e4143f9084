//! The options of a connection, and their sources (command line, connection string, environment,
//! service file, password file). Opening sockets is left to `connect`.
//!
//! Source: PostgreSQL: libpq, Database Connection Control Functions, Environment Variables.

mod account;
mod conninfo;
mod error;
mod keywords;
mod options;
mod passfile;
mod resolve;
mod secret;
mod service;
mod shown;
mod tls;
mod uri;
mod values;

pub use self::account::name as account_name;
pub use self::error::ConfigError;
pub use self::options::{Address, ConnectOptions, Host, Keepalives, SslMode, TargetSessionAttrs};
pub use self::resolve::{Env, Given, is_connection_string, parse_connection_string, process_environment};
pub use self::secret::Secret;
pub use self::shown::{Concealed, shown};
pub use self::tls::{ChannelBinding, SslCertMode, SslNegotiation, TlsOptions, TlsRoots, TlsVersion};
