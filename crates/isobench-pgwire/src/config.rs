//! The options of a connection, and their sources (command line, connection string, environment,
//! service file, password file). Opening sockets is left to `connect`.
//!
//! Source: PostgreSQL: libpq, Database Connection Control Functions, Environment Variables.

mod account;
mod connection_string;
mod conninfo;
mod environment;
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
pub use self::connection_string::{is_connection_string, parse_connection_string};
pub use self::environment::{Env, process_environment};
pub use self::error::ConfigError;
pub use self::options::{Address, ConnectOptions, Host, Keepalives, TargetSessionAttrs};
pub use self::resolve::Given;
pub use self::secret::Secret;
pub use self::shown::{Concealed, fit, holds_secret, shown};
pub use self::tls::{ChannelBinding, SslCertMode, SslMode, SslNegotiation, TlsOptions, TlsRoots, TlsVersion};
