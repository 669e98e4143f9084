//! A benchmark over TLS: many clients, every protocol, results larger than any buffer, and a server
//! that must be trusted. A race over TLS.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

use isobench_pgserver::{Server, ServerOptions};
use isobench_pgwire::{ConnectOptions, Connection, Host};

use crate::support::program::{Finished, Running};
use crate::support::scene::Scene;
use crate::support::{has_postgresql, skip, wait_for};

/// Fails, and with it the client, unless the session is encrypted.
const IS_ENCRYPTED: &str = "SELECT ssl::int AS yes FROM pg_stat_ssl WHERE pid = pg_backend_pid() \\gset
SELECT 1 / :yes;
";

/// Answers and requests larger than any buffer on the way.
const LARGE: &str = "SELECT repeat('x', 500000), i FROM generate_series(1, 3) i;
SELECT length(:long);
";

/// Loses an update, and prints whether the way to the server is encrypted, which is the first statement.
const ORDER: &str = "psql -qAt -v ON_ERROR_STOP=1 <<'END'
SELECT ssl AS encrypted FROM pg_stat_ssl WHERE pid = pg_backend_pid() \\gset
SELECT stock FROM item WHERE id = 1 \\gset
UPDATE item SET stock = :stock - 1 WHERE id = 1;
\\echo encrypted :encrypted
END
";

/// The certificates that are made once for the tests of connections.
const AUTHORITY: &str = include_str!("../../../isobench-pgwire/tests/pgwire/tls/pem/authority.crt");
const STRANGER: &str = include_str!("../../../isobench-pgwire/tests/pgwire/tls/pem/stranger.crt");
const CERTIFICATE: &str = include_str!("../../../isobench-pgwire/tests/pgwire/tls/pem/server.crt");
const KEY: &str = include_str!("../../../isobench-pgwire/tests/pgwire/tls/pem/server.key");

/// A server with TLS at 127.0.0.1.
pub fn start() -> Server {
    let settings = [("listen_addresses", "127.0.0.1"), ("fsync", "off")];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let options = ServerOptions { settings, ..ServerOptions::default() };
    let server = Server::start(&options, &mut |_| {}).expect("a server");
    let data = server.data_dir();
    let owner = fs::metadata(data).expect("a folder");
    for (name, text) in [("server.crt", CERTIFICATE), ("server.key", KEY)] {
        let path = data.join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("permissions");
        chown(&path, Some(owner.uid()), Some(owner.gid())).expect("an owner");
    }
    let host = Host::unix(server.socket_dir(), server.port());
    let mut admin =
        Connection::open(&ConnectOptions::new(host, server.user(), server.database())).expect("a connection");
    admin.execute("ALTER SYSTEM SET ssl = on").expect("a setting");
    admin.execute("SELECT pg_reload_conf()").expect("taken");
    wait_for("TLS", || (admin.value("SHOW ssl").ok()??.as_str() == "on").then_some(()));
    server
}

#[test]
fn a_benchmark_over_tls() {
    if !has_postgresql("a_benchmark_over_tls") {
        return;
    }
    let scene = Scene::new();
    let server = start();
    scene.write("encrypted.sql", IS_ENCRYPTED);
    scene.write("large.sql", &LARGE.replace(":long", &format!("'{}'", "y".repeat(400_000))));
    scene.write("authority.crt", AUTHORITY);
    scene.write("stranger.crt", STRANGER);
    let run = |arguments: &str, extra: &str| -> Finished {
        let address = format!(
            "host=localhost hostaddr=127.0.0.1 port={} user={} password={} dbname={} {extra}",
            server.port(),
            server.user(),
            server.password().expect("a password"),
            server.database()
        );
        let mut words: Vec<&str> = arguments.split(' ').collect();
        words.extend(["-d", &address]);
        Running::start(&mut scene.isobench(&words)).finish()
    };
    run("init -q -s 1", "sslmode=require").expect(0);
    let verified = format!("sslmode=verify-full sslrootcert={}", scene.file("authority.crt").display());
    for (mode, clients) in [("simple", 64), ("extended", 8), ("prepared", 8)] {
        let arguments = format!("run -n -c {clients} -j 2 -t 4 -S -f encrypted.sql@1 -M {mode}");
        let processed = format!("number of transactions actually processed: {0}/{0}", clients * 4);
        run(&arguments, &verified).expect(0).prints(&[&processed]);
    }
    // PostgreSQL supports encryption, so no option is needed.
    run("run -n -c 4 -t 5 -f encrypted.sql", "").expect(0);
    let older = format!("{verified} channel_binding=require ssl_max_protocol_version=TLSv1.2");
    for extra in [&verified, &older] {
        run("run -n -c 8 -j 2 -t 2 -f large.sql", extra)
            .expect(0)
            .prints(&["number of transactions actually processed: 16/16"]);
    }
    let stranger = format!("sslmode=verify-full sslrootcert={}", scene.file("stranger.crt").display());
    run("run -n -t 1 -S", &stranger).expect(1).says(&["SSL error: certificate verify failed"]);
}

/// A client of SCRAM binds it to the encryption that it sees, which ends at isobench: the server would refuse that.
#[test]
fn a_race_over_tls_by_scram() {
    let test = "a_race_over_tls_by_scram";
    if !has_postgresql(test) {
        return;
    }
    if std::process::Command::new("psql").arg("--version").output().is_err() {
        return skip(test, "psql isn't installed");
    }
    let scene = Scene::new();
    let server = start();
    let host = Host::unix(server.socket_dir(), server.port());
    let mut admin =
        Connection::open(&ConnectOptions::new(host, server.user(), server.database())).expect("a connection");
    admin
        .execute("CREATE TABLE item (id int PRIMARY KEY, stock int NOT NULL); INSERT INTO item VALUES (1, 5)")
        .expect("a table");
    scene.write("order.sh", ORDER);
    let (name, password) = (server.database(), server.password().expect("a password"));
    // Nobody else may be connected.
    drop(admin);
    for (way, client, encrypted) in [
        ("prefer", "require", "f"),
        ("require", "disable", "t"),
        ("require", "prefer", "t"),
        ("require", "verify-full", "t"),
    ] {
        let (port, user) = (server.port(), server.user());
        let address = format!(
            "host=localhost hostaddr=127.0.0.1 port={port} user={user} password={password} dbname={name} sslmode={way}"
        );
        let order = format!("PGSSLMODE={client} PGPASSWORD={password} sh order.sh");
        let options =
            ["race", "-d", &address, "--on-this-database", name, "--levels", "rc", "--schedule", "A2,B"];
        let mut race = scene.isobench(&options);
        race.args(["--", &order]);
        let raced = Running::start(&mut race).finish().expect(3);
        raced.prints(&["RACES at read committed", &format!("A answers exit 0 encrypted {encrypted}")]);
    }
}
