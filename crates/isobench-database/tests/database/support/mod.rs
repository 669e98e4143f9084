//! Shared by the integration tests: golden files, and servers that may be missing.

use std::path::{Path, PathBuf};

use isobench_testkit::golden::expect;
use isobench_testkit::installed::{postgresql_programs, skip};

/// Compares a text with `tests/golden/NAME`.
pub fn golden(name: &str, text: &str) {
    expect(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name), text);
}

/// A server of the installed PostgreSQL, or `None` after reporting why the test is skipped.
pub fn postgresql(test: &str) -> Option<(isobench_pgserver::Server, PathBuf)> {
    let Some(bin) = postgresql_programs().filter(|folder| folder.join("postgres").exists()) else {
        skip(test, "no installed PostgreSQL (pg_config)");
        return None;
    };
    let options = isobench_pgserver::ServerOptions { bin: Some(bin.clone()), ..Default::default() };
    let server =
        isobench_pgserver::Server::start(&options, &mut |_| {}).expect("the installed server starts");
    Some((server, bin))
}

/// The connection options for a database of that server.
pub fn options(server: &isobench_pgserver::Server, dbname: &str) -> isobench_pgwire::ConnectOptions {
    let host = isobench_pgwire::Host::unix(server.socket_dir(), server.port());
    isobench_pgwire::ConnectOptions::new(host, server.user(), dbname)
}

/// Servers with these settings: one of the installed PostgreSQL, and one of version 18, which is
/// fetched unless it is in the cache; those that are missing are reported as skipped.
pub fn servers(test: &str, settings: &[(&str, &str)]) -> Vec<isobench_pgserver::Server> {
    use isobench_pgserver::{MajorVersion, Server, ServerError, ServerOptions};
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let settings: Vec<_> = settings.iter().map(own).collect();
    let options = ServerOptions { settings, ..Default::default() };
    let installed = postgresql_programs().filter(|folder| folder.join("postgres").exists());
    if installed.is_none() {
        skip(test, "no installed PostgreSQL (pg_config)");
    }
    let mut servers = Vec::new();
    if installed.is_some() {
        let options = ServerOptions { bin: installed, ..options.clone() };
        servers.push(Server::start(&options, &mut |_| {}).expect("the installed server starts"));
    }
    match Server::start(&ServerOptions { version: Some(MajorVersion::FETCHED), ..options }, &mut |_| {}) {
        Ok(server) => servers.push(server),
        Err(error @ (ServerError::Fetch { .. } | ServerError::WontRun { .. })) => {
            skip(test, &format!("no PostgreSQL {} can be fetched here: {error}", MajorVersion::FETCHED));
        }
        Err(error) => panic!("{error}"),
    }
    servers
}
