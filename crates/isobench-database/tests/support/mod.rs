//! What the integration tests share: golden files, and servers that may be missing.

#![allow(dead_code, reason = "each test binary uses another part of this module")]

use std::path::{Path, PathBuf};

use isobench_testkit::installed::{postgresql_programs, skip};

/// Compares a text with `tests/golden/NAME`; with `ISOBENCH_BLESS=1` writes it there instead.
pub fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("ISOBENCH_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    for (number, (expected, got)) in expected.lines().zip(text.lines()).enumerate() {
        assert_eq!(got, expected, "{name}, line {}; ISOBENCH_BLESS=1 accepts it", number + 1);
    }
    assert_eq!(text.len(), expected.len(), "{name} has more or fewer lines; ISOBENCH_BLESS=1 accepts it");
}

/// A server of the installed PostgreSQL, or `None` after saying why the test is skipped.
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

/// How to connect to a database of that server.
pub fn options(server: &isobench_pgserver::Server, dbname: &str) -> isobench_pgwire::ConnectOptions {
    let host = isobench_pgwire::Host::unix(server.socket_dir(), server.port());
    isobench_pgwire::ConnectOptions::new(host, server.user(), dbname)
}
