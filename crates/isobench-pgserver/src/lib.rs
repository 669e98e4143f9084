//! An embedded PostgreSQL: finds or fetches the binaries, starts, stops, cleans up.
//!
//! One [`Server`] is one throw-away PostgreSQL in a folder of its own under the temporary folder.
//! It is reached over a Unix socket in that folder (mode 0700), it has PostgreSQL's default settings,
//! and dropping the value stops it and removes the folder, also while a panic unwinds.
//!
//! ```no_run
//! use isobench_pgserver::{Server, ServerOptions};
//!
//! let server = Server::start(&ServerOptions::default(), &mut |line| eprintln!("{line}"))?;
//! println!("PostgreSQL {} is up: {}", server.version(), server.psql_line());
//! server.stop()?;
//! # Ok::<(), isobench_pgserver::ServerError>(())
//! ```
//!
//! This crate doesn't speak SQL, knows nothing of benchmarks, prints nothing and handles no signals:
//! the command line turns Ctrl-C into a normal end of the program, which drops the server. What a
//! killed program leaves behind is removed by the next [`Server::start`] ([`sweep_leftovers`]).

mod access;
mod account;
mod binaries;
mod cache;
mod copy;
mod error;
mod fetch;
mod folder;
mod log;
mod options;
mod pidfile;
mod postmaster;
mod process;
mod server;
mod settings;
mod sweep;
mod template;
mod version;

pub use error::ServerError;
pub use options::{MajorVersion, MajorVersionError, ServerOptions};
pub use server::Server;
pub use sweep::sweep_leftovers;
