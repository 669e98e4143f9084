//! Every mode, certificate and binding with a real PostgreSQL with TLS, compared with psql using
//! the same options; skipped if there is none.
//!
//! The certificates are made as described in PostgreSQL's manual: version 1, with only a common
//! name.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use isobench_pgwire::{ConnectOptions, Connection, Given, SqlState};
use isobench_testkit::installed::skip;

use crate::support::postgres::{Server, account};

/// The authentication rules for TCP.
const RULES: &str = "local all all trust
hostssl all sslonly all trust
hostnossl all sslonly all reject
hostnossl all plainonly all trust
hostssl all plainonly all reject
host all scrammed all scram-sha-256
host all hashed all md5
host all clear all password
hostssl all client all cert
host all all all trust
";

/// The files of the test, readable by the server.
const FILES: [(&str, &str); 6] = [
    ("authority.crt", include_str!("pem/authority.crt")),
    ("stranger.crt", include_str!("pem/stranger.crt")),
    ("server.crt", include_str!("pem/server.crt")),
    ("server.key", include_str!("pem/server.key")),
    ("client.crt", include_str!("pem/client.crt")),
    ("client.key", include_str!("pem/client.key")),
];

/// A server with TLS, and the folder with the client's files.
struct Fixture {
    server: Server,
    files: tempfile::TempDir,
    port: u16,
}

fn start() -> Result<Fixture, String> {
    let failed = |error: std::io::Error| error.to_string();
    let (files, servers) = (tempfile::tempdir().map_err(failed)?, tempfile::tempdir().map_err(failed)?);
    let account = account()?;
    for folder in [files.path(), servers.path()] {
        for (name, text) in FILES {
            let path = folder.join(name);
            fs::write(&path, text).map_err(failed)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        }
    }
    if let Some((user, group)) = account {
        for path in FILES.iter().map(|(name, _)| servers.path().join(name)).chain([servers.path().to_owned()])
        {
            chown(path, Some(user), Some(group)).map_err(failed)?;
        }
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    drop(listener);
    let file = |setting: &str, name: &str| format!("{setting}={}", servers.path().join(name).display());
    let settings = [
        "ssl=on".to_owned(),
        "listen_addresses=127.0.0.1".to_owned(),
        file("ssl_cert_file", "server.crt"),
        file("ssl_key_file", "server.key"),
        file("ssl_ca_file", "authority.crt"),
    ];
    let server = Server::start(RULES, &settings, port)?;
    let roles = "CREATE ROLE sslonly LOGIN; CREATE ROLE plainonly LOGIN; CREATE ROLE client LOGIN;
         CREATE ROLE scrammed LOGIN PASSWORD 'x'; CREATE ROLE clear LOGIN PASSWORD 'x';
         SET password_encryption = 'md5'; CREATE ROLE hashed LOGIN PASSWORD 'x'";
    server.connection().execute(roles).map_err(|error| error.to_string())?;
    // The server has read its files.
    drop(servers);
    Ok(Fixture { server, files, port })
}

/// A query for the session's encryption and its parameters.
const QUERY: &str =
    "SELECT ssl || coalesce(' ' || version, '') FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

impl Fixture {
    /// A connection string in which `FILES/` refers to the folder of the client's files.
    fn options(&self, extra: &str) -> Result<ConnectOptions, String> {
        let given = Given { dbname: Some(self.string(extra)), ..Given::default() };
        let env = |name: &str| (name == "HOME").then(|| "/nonexistent".to_owned());
        ConnectOptions::resolve(&given, &env).map_err(|error| error.to_string())
    }

    fn string(&self, extra: &str) -> String {
        let files = format!("{}/", self.files.path().display());
        let extra = extra.replace("FILES/", &files);
        format!("host=localhost hostaddr=127.0.0.1 port={} dbname=postgres user=postgres {extra}", self.port)
    }

    fn ours(&self, extra: &str) -> String {
        let session = self
            .options(extra)
            .and_then(|options| Connection::open(&options).map_err(|error| error.to_string()));
        match session {
            Ok(mut session) => session.value(QUERY).expect("a value").unwrap_or_else(|| "false".to_owned()),
            // psql before version 16 doesn't support the system's roots.
            Err(text) => text.replace(", use the system's trusted roots with sslrootcert=system,", ""),
        }
    }

    fn psql(&self, program: &Path, extra: &str) -> String {
        let output = Command::new(program)
            .args([
                "-X",
                "-w",
                "-A",
                "-t",
                "-c",
                &QUERY.replace("SELECT ", "SELECT coalesce(").replace(" FROM", ", 'false') FROM"),
                &self.string(extra),
            ])
            .env_clear()
            .env("HOME", "/nonexistent")
            .env("LC_ALL", "C")
            .output()
            .expect("psql starts");
        let text = String::from_utf8_lossy(&output.stderr);
        let error = text.trim().trim_start_matches("psql: error: ").to_owned();
        let error = error.replace(", use the system's trusted roots with sslrootcert=system,", "");
        if error.is_empty() { String::from_utf8_lossy(&output.stdout).trim().to_owned() } else { error }
    }
}

/// Options to connect with.
const CASES: &[&str] = &[
    "sslmode=disable",
    "sslmode=allow",
    "sslmode=prefer",
    "",
    "sslmode=require",
    "sslmode=verify-ca",
    "sslmode=verify-full",
    // Server rules that depend on encryption.
    "user=sslonly sslmode=disable",
    "user=sslonly sslmode=allow",
    "user=sslonly sslmode=prefer",
    "user=plainonly sslmode=allow",
    "user=plainonly sslmode=prefer",
    "user=plainonly sslmode=require",
    "dbname=nosuch sslmode=prefer",
    "dbname=nosuch sslmode=allow",
    "user=scrammed password=wrong sslmode=prefer",
    "user=scrammed password=wrong sslmode=allow",
    "user=scrammed password=wrong sslmode=require",
    "user=scrammed sslmode=prefer",
    // Trusted authorities.
    "sslmode=prefer sslrootcert=FILES/authority.crt",
    "sslmode=prefer sslrootcert=FILES/stranger.crt",
    "sslmode=require sslrootcert=FILES/authority.crt",
    "sslmode=require sslrootcert=FILES/stranger.crt",
    "sslmode=require sslrootcert=FILES/nosuch",
    "sslmode=require sslrootcert=FILES/server.key",
    "sslmode=prefer sslrootcert=FILES/server.key",
    "sslmode=require sslrootcert=FILES/server.crt",
    "sslmode=verify-ca sslrootcert=FILES/authority.crt",
    "sslmode=verify-ca sslrootcert=FILES/stranger.crt",
    "sslmode=verify-full sslrootcert=FILES/authority.crt",
    "sslmode=verify-full sslrootcert=FILES/stranger.crt",
    "sslmode=verify-full sslrootcert=FILES/nosuch",
    "sslmode=verify-full sslrootcert=FILES/authority.crt host=127.0.0.1",
    "sslmode=verify-ca sslrootcert=FILES/authority.crt host=127.0.0.1",
    "sslmode=verify-full sslrootcert=FILES/authority.crt host=elsewhere",
    "sslmode=require sslcrl=FILES/nosuch sslrootcert=FILES/authority.crt",
    // The client's certificate.
    "user=client sslmode=require",
    "user=client sslmode=prefer",
    "user=client sslmode=require sslcert=FILES/client.crt sslkey=FILES/client.key",
    "user=client sslmode=require sslcert=FILES/client.crt sslkey=FILES/nosuch",
    "user=client sslmode=require sslcert=FILES/nosuch sslkey=FILES/client.key",
    "user=client sslmode=require sslcert=FILES/client.crt sslkey=FILES/server.key",
    "user=client sslmode=require sslcert=FILES/client.key sslkey=FILES/client.key",
    "user=client sslmode=require sslcert=FILES/client.crt sslkey=FILES/open.key",
    "user=postgres sslmode=require sslcert=FILES/client.crt sslkey=FILES/client.key",
    // Versions.
    "sslmode=require ssl_max_protocol_version=TLSv1.2",
    "sslmode=require ssl_min_protocol_version=tlsv1.3",
    "sslmode=require ssl_min_protocol_version=TLSv1.4",
    "sslmode=require ssl_min_protocol_version=TLSv1.3 ssl_max_protocol_version=TLSv1.2",
    "sslmode=require ssl_max_protocol_version=TLSv1.1",
    "sslmode=require ssl_min_protocol_version=TLSv1",
    "sslmode=require sslsni=0",
    // Channel binding.
    "channel_binding=require sslmode=disable user=clear password=x",
    "channel_binding=require sslmode=disable user=hashed password=x",
    "channel_binding=require sslmode=disable user=scrammed password=x",
    "channel_binding=require sslmode=disable",
    "channel_binding=require sslmode=require user=clear password=x",
    "channel_binding=require sslmode=require user=hashed password=x",
    "channel_binding=require sslmode=require user=scrammed password=x",
    "channel_binding=require sslmode=require user=scrammed password=wrong",
    "channel_binding=require sslmode=require",
    "channel_binding=prefer sslmode=require user=scrammed password=x",
    "channel_binding=disable sslmode=require user=scrammed password=x",
    "channel_binding=require sslmode=require user=scrammed password=x ssl_max_protocol_version=TLSv1.2",
];

#[test]
fn postgresql_with_tls() {
    match start() {
        Err(reason) => skip("postgresql_with_tls", &reason),
        Ok(fixture) => {
            assert_eq!(fixture.ours("sslmode=verify-full sslrootcert=FILES/authority.crt"), "true TLSv1.3");
            assert_eq!(fixture.ours("sslmode=disable"), "false");
            as_psql(&fixture);
            large_results_and_copies(&fixture);
            cancelling(&fixture);
            ended_by_the_server(&fixture);
        }
    }
}

fn as_psql(fixture: &Fixture) {
    let psql = fixture.server.bin().join("psql");
    if !psql.exists() {
        skip("as_psql", "no psql");
        return;
    }
    let open = fixture.files.path().join("open.key");
    fs::write(&open, include_str!("pem/client.key")).expect("a file");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).expect("permissions");
    for case in CASES {
        assert_eq!(fixture.ours(case), fixture.psql(&psql, case), "{case}");
    }
}

fn large_results_and_copies(fixture: &Fixture) {
    for version in ["TLSv1.2", "TLSv1.3"] {
        let extra = format!("sslmode=require ssl_max_protocol_version={version}");
        let mut session = Connection::open(&fixture.options(&extra).expect("valid")).expect("a session");
        let long = session.value("SELECT repeat('x', 3000000)").expect("a value").expect("not NULL");
        assert_eq!(long.len(), 3_000_000);
        let rows = session.query("SELECT i, repeat('ü', i % 100) FROM generate_series(1, 20000) i");
        assert_eq!(rows.expect("rows").rows.len(), 20_000);
        let query = format!("SELECT length('{}')", "y".repeat(3_000_000));
        assert_eq!(session.value(&query).expect("a value").as_deref(), Some("3000000"));
        session.execute("CREATE TEMP TABLE c (a int PRIMARY KEY, b text)").expect("a table");
        let mut next = 0;
        let rows = session.copy_in("COPY c FROM STDIN", &mut |out| {
            next += 1;
            out.extend_from_slice(format!("{next}\tfiller\n").as_bytes());
            next < 100_000
        });
        assert_eq!(rows.expect("copied"), 100_000);
        let mut count = 0;
        let error = session.copy_in("COPY c FROM STDIN", &mut |out| {
            out.extend_from_slice(b"1\tagain\n");
            count += 1;
            true
        });
        assert_eq!(error.expect_err("a duplicate").code(), Some(SqlState::UNIQUE_VIOLATION));
        assert_eq!(session.value("SELECT count(*) FROM c").expect("a value").as_deref(), Some("100000"));
        session.close();
    }
}

/// Cancel requests are encrypted too.
fn cancelling(fixture: &Fixture) {
    let options = fixture.options("sslmode=require").expect("valid");
    let mut session = Connection::open(&options).expect("a session");
    let token = session.cancel_token();
    let mut watcher = fixture.server.connection();
    let active = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE pid = {} AND wait_event = 'PgSleep'",
        token.pid()
    );
    let canceller = std::thread::spawn(move || {
        while watcher.value(&active).expect("a value").as_deref() != Some("1") {
            std::thread::sleep(Duration::from_millis(5));
        }
        token.cancel()
    });
    let error = session.execute("SELECT pg_sleep(100)").expect_err("cancelled");
    assert_eq!(error.code(), Some(SqlState::QUERY_CANCELED));
    canceller.join().expect("no panic").expect("the request was taken");
    session.execute("SELECT 1").expect("the session goes on");
}

fn ended_by_the_server(fixture: &Fixture) {
    let mut victim =
        Connection::open(&fixture.options("sslmode=require").expect("valid")).expect("a session");
    let pid = victim.cancel_token().pid();
    let end = format!("SELECT pg_terminate_backend({pid}, 5000)");
    fixture.server.connection().execute(&end).expect("terminated");
    let error = victim.execute("SELECT 1").expect_err("the session is gone");
    assert_eq!(error.code(), Some(SqlState::ADMIN_SHUTDOWN));
    let error = victim.execute("SELECT 1").expect_err("the session is gone");
    assert!(error.is_connection_lost(), "{error}");
}
