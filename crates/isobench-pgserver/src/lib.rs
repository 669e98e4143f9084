//! An embedded PostgreSQL: finds or fetches the binaries, starts, stops, cleans up.
//!
//! One [`Server`] is one throw-away PostgreSQL in a folder of its own under the temporary folder.
//! It is reached over a Unix socket in there (in a folder of mode 0700), it has PostgreSQL's
//! default settings, and dropping the value stops it and removes the folder, also while a panic
//! unwinds.
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
//! This crate doesn't speak SQL, knows nothing of benchmarks, prints nothing and handles no
//! signals: the command line turns Ctrl-C into a normal end of the program, which drops the server.
//! What a killed program leaves behind is removed by the next [`Server::start`]
//! ([`sweep_leftovers`]).
//!
//! What is looked up where:
//!
//! | what | where |
//! |---|---|
//! | binaries | the folder given; else the newest server of version 14 or later in `PATH`, of `pg_config`, in the folders of well-known packages; else fetched |
//! | fetched binaries, prepared data folders | `ISOBENCH_CACHE`; else `XDG_CACHE_HOME` or `~/.cache` (root: `/var/cache`) `/isobench`; else, for what was fetched, the temporary folder |
//! | data, socket, log | as far as nobody else can change what is there: `TMPDIR`; else `/tmp` or `/var/tmp`, whichever is on a disk |
//! | for root: the user who runs the server | `postgres`, else `nobody`, in `/etc/passwd` |
//!
//! Limits: the processes of killed runs are found through `/proc`, so on Linux only. PostgreSQL
//! keeps its default `dynamic_shared_memory_type`, so a container with a tiny `/dev/shm` may refuse
//! parallel queries; `initdb` needs an entry in `/etc/passwd` for the user who runs it.

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
mod names;
mod options;
mod pidfile;
mod postmaster;
mod process;
mod server;
mod settings;
mod sweep;
mod template;
mod trust;
mod unpack;
mod version;

pub use error::ServerError;
pub use options::{MajorVersion, MajorVersionError, ServerOptions};
pub use server::Server;
pub use sweep::sweep_leftovers;
