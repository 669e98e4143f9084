//! An embedded PostgreSQL: finds or fetches the binaries, starts and stops the server, and cleans
//! up.
//!
//! A [`Server`] is a temporary PostgreSQL in its own folder in the temporary folder. Connections
//! are made over a Unix socket in it (in a folder of mode 0700), it has PostgreSQL's default
//! settings, and dropping the value stops it and removes the folder, even during a panic.
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
//! It may have standbys ([`ServerOptions::standbys`]), and it can be made to fail in the ways in which
//! servers fail: [`Server::kill`], [`Server::shut_down`], [`Server::freeze`], [`Server::kill_backend`].
//!
//! This crate doesn't use SQL, print messages or handle signals: the command line turns Ctrl-C into
//! a normal end of the program, which drops the server. The next [`Server::start`] removes the
//! leftovers of killed programs ([`sweep_leftovers`]).
//!
//! Locations:
//!
//! - Binaries: the given folder; else the newest server of version 14 or later in `PATH`, of
//!   `pg_config`, or in the folders of well-known packages; else fetched.
//! - Fetched binaries and prepared data folders: `ISOBENCH_CACHE`; else `isobench` in
//!   `XDG_CACHE_HOME` or `~/.cache` (for root, `/var/cache`); else, for fetched binaries, the
//!   temporary folder.
//! - Data, socket and log: `TMPDIR`; else `/tmp` or `/var/tmp`, preferably the one on a disk.
//!   Places that other users can modify are skipped.
//! - The user who runs the server for root: `postgres`, else `nobody`, in `/etc/passwd`.
//!
//! Limits: the processes of killed runs are found through `/proc`, so only on Linux. PostgreSQL
//! keeps its default `dynamic_shared_memory_type`, so in a container with a tiny `/dev/shm` it may
//! refuse parallel queries. `initdb` needs an entry in `/etc/passwd` for the user who runs it.

mod access;
mod account;
mod binaries;
mod builds;
mod cache;
mod download;
mod error;
mod fetch;
mod folder;
mod log;
mod modes;
mod options;
mod pidfile;
mod postmaster;
mod process;
mod relay;
mod server;
mod settings;
mod sweep;
mod template;
mod unpack;
mod version;

pub use error::ServerError;

pub use options::{MajorVersion, MajorVersionError, ServerOptions};
pub use server::{Server, Shutdown};
pub use sweep::sweep_leftovers;
