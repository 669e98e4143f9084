//! The null server and the raw loop, without other programs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use isobench_bench::null_server::NullServer;
use isobench_bench::raw_loop::requests::{Mode, Workload, start_up};
use isobench_bench::raw_loop::{RawError, RawPlan, run};

fn plan(host: &str, port: u16) -> RawPlan {
    RawPlan {
        ring: false,
        host: host.to_string(),
        port,
        user: "x".into(),
        database: "y".into(),
        clients: 3,
        time: Duration::from_millis(20),
        scale: 1,
        mode: Mode::Simple,
        workload: Workload::SelectOnly,
    }
}

fn query(sql: &str) -> Vec<u8> {
    let length = u32::try_from(sql.len() + 5).unwrap().to_be_bytes();
    [&b"Q"[..], &length, sql.as_bytes(), &[0]].concat()
}

/// Reads until `ReadyForQuery` has arrived this many times and ends the bytes.
fn replies(stream: &mut impl Read, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while bytes.windows(5).filter(|part| part == b"Z\0\0\0\x05").count() < count
        || bytes.get(bytes.len() - 6) != Some(&b'Z')
    {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "closed after {bytes:?}");
        bytes.extend_from_slice(&buffer[..read]);
    }
    bytes
}

fn connect(folder: &Path, port: u16) -> UnixStream {
    let mut stream = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream.write_all(&start_up("x", "y")).unwrap();
    replies(&mut stream, 1);
    stream
}

#[test]
fn a_small_client_over_both_sockets() {
    let folder = tempfile::tempdir().unwrap();
    let server = NullServer::start(folder.path(), 0).unwrap();
    let mut unix = connect(folder.path(), server.port());
    unix.write_all(&query("select version()")).unwrap();
    let reply = replies(&mut unix, 1);
    assert!(reply.windows(11).any(|part| part == b"PostgreSQL "), "{reply:?}");

    let mut tcp = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    tcp.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    tcp.write_all(&start_up("x", "y")).unwrap();
    replies(&mut tcp, 1);
    tcp.write_all(&query("BEGIN")).unwrap();
    assert_eq!(replies(&mut tcp, 1), b"C\0\0\0\x0aBEGIN\0Z\0\0\0\x05T");
}

#[test]
fn a_client_that_reads_late_gets_everything() {
    let folder = tempfile::tempdir().unwrap();
    let server = NullServer::start(folder.path(), 0).unwrap();
    let mut stream = connect(folder.path(), server.port());
    let count = 20_000;
    // More than the sockets hold in both directions, so that the server must stop reading.
    let queries: Vec<u8> = (0..count).flat_map(|_| query("select version()")).collect();
    let (sent, one) = send_until_the_server_stops_reading(&server, folder.path(), &mut stream, &queries);
    assert!(sent < queries.len(), "the server must have stopped reading");
    let mut writer = stream.try_clone().unwrap();
    let sender = std::thread::spawn(move || writer.write_all(&queries[sent..]).unwrap());
    let mut bytes = vec![0; one * count];
    stream.read_exact(&mut bytes).unwrap();
    assert!(bytes.ends_with(b"Z\0\0\0\x05I"));
    sender.join().unwrap();
}

/// Sends until the socket stays full although the server has had time to read from it: it has replied
/// on another connection. Returns the number of bytes sent, and the length of a reply.
fn send_until_the_server_stops_reading(
    server: &NullServer,
    folder: &Path,
    stream: &mut UnixStream,
    bytes: &[u8],
) -> (usize, usize) {
    stream.set_nonblocking(true).unwrap();
    let (mut sent, mut refused) = (0, false);
    let mut reply = replies(&mut connect_and_ask(folder, server.port()), 1).len();
    while sent < bytes.len() {
        match stream.write(&bytes[sent..]) {
            Ok(count) => (sent, refused) = (sent + count, false),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && !refused => {
                reply = replies(&mut connect_and_ask(folder, server.port()), 1).len();
                refused = true;
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    stream.set_nonblocking(false).unwrap();
    (sent, reply)
}

fn connect_and_ask(folder: &Path, port: u16) -> UnixStream {
    let mut stream = connect(folder, port);
    stream.write_all(&query("select version()")).unwrap();
    stream
}

#[test]
fn stopping_closes_connections_and_removes_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    let server = NullServer::start(folder.path(), 0).unwrap();
    let mut stream = connect(folder.path(), server.port());
    server.stop().unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let error = NullServer::start(Path::new("/dev/null/none"), 0).unwrap_err().to_string();
    assert!(error.contains("/dev/null/none/.s.PGSQL."), "{error}");
}

#[test]
fn the_raw_loop_runs_every_combination() {
    let folder = tempfile::tempdir().unwrap();
    let server = NullServer::start(folder.path(), 0).unwrap();
    for host in [folder.path().to_str().unwrap(), "127.0.0.1"] {
        for mode in [Mode::Simple, Mode::Prepared] {
            for workload in [Workload::SelectOnly, Workload::TpcbLike] {
                let plan = RawPlan { mode, workload, ..plan(host, server.port()) };
                let outcome = run(&plan).unwrap();
                assert!(outcome.transactions >= 3, "{plan:?}: {outcome:?}");
                assert!(outcome.elapsed >= plan.time, "{plan:?}: {outcome:?}");
            }
        }
    }
}

#[test]
fn the_raw_loop_says_when_nobody_listens() {
    let folder = tempfile::tempdir().unwrap();
    let error = run(&plan(folder.path().to_str().unwrap(), 5432)).unwrap_err();
    assert!(matches!(error, RawError::Connection { .. }), "{error}");
}

#[test]
fn ten_thousand_connections() {
    let folder = tempfile::tempdir().unwrap();
    let server = NullServer::start(folder.path(), 0).unwrap();
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    if limit.is_some_and(|limit| limit < 10_100) {
        println!("skipped: ten_thousand_connections: at most {limit:?} files may be open");
        return;
    }
    // In a different process, because both ends of ten thousand connections would need twice as
    // many files in one.
    let output = Command::new(env!("CARGO_BIN_EXE_isobench-bench"))
        .args(["raw-loop", "-S", "-M", "prepared", "-c", "10000", "-T", "0", "-h"])
        .arg(folder.path())
        .args(["-p", &server.port().to_string()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("actually processed: 10000\n"), "{text}");
}
