//! A blocking connection to a server that doesn't reply, or doesn't stop sending: every wait ends,
//! and memory is limited.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use isobench_pgwire::server;
use isobench_pgwire::{ConnectOptions, Connection, Error, Host, Patience, SslMode, TransactionStatus};

/// A server that sends `greeting`, waits for data, and then sends `answer` repeatedly until the
/// client stops reading.
struct Server {
    options: ConnectOptions,
    thread: JoinHandle<u64>,
}

impl Server {
    fn start(greeting: Vec<u8>, answer: Vec<u8>) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            read(&mut stream);
            if greeting.is_empty() {
                return send_for_ever(&mut stream, &answer);
            }
            stream.write_all(&greeting).expect("the client listens");
            // On a slow machine its time may be over before it asks anything.
            if stream.read(&mut [0; 4096]).is_ok_and(|count| count == 0) {
                return 0;
            }
            send_for_ever(&mut stream, &answer)
        });
        let mut options = ConnectOptions::new(Host::tcp("127.0.0.1", port), "test", "test");
        options.ssl_mode = SslMode::Disable;
        Server { options, thread }
    }

    /// The approximate number of bytes of the answer that the client has read.
    fn end(self) -> u64 {
        self.thread.join().expect("the server doesn't panic")
    }
}

fn read(stream: &mut TcpStream) {
    let count = stream.read(&mut [0; 4096]).expect("the client speaks");
    assert!(count > 0, "the client has gone");
}

/// Without an answer, waits until the client disconnects.
fn send_for_ever(stream: &mut TcpStream, answer: &[u8]) -> u64 {
    let mut sent = 0;
    if answer.is_empty() {
        while !matches!(stream.read(&mut [0; 64]), Ok(0)) {}
        return sent;
    }
    loop {
        match stream.write(answer) {
            // A message that was started is completed, so that the client doesn't see garbage.
            Ok(count) => {
                if stream.write_all(&answer[count..]).is_err() {
                    return sent;
                }
                sent += answer.len() as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return sent,
        }
    }
}

fn welcome() -> Vec<u8> {
    let mut out = Vec::new();
    server::authentication_ok(&mut out);
    server::ready_for_query(&mut out, TransactionStatus::Idle);
    out
}

fn rows() -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..1000 {
        server::data_row(&mut out, &[Some(&[b'x'; 1000])]);
    }
    out
}

fn notices() -> Vec<u8> {
    let (mut out, text) = (Vec::new(), "x".repeat(100_000));
    server::notice_response(&mut out, &[(b'S', "NOTICE"), (b'C', "00000"), (b'M', &text)]);
    out
}

/// Runs a query in a thread, requests it to hurry this many times, and returns the error.
fn hurried(server: &Server, times: usize) -> Error {
    let patience = Patience::default();
    let mut options = server.options.clone();
    options.patience = patience.clone();
    let (waits, waiting) = mpsc::channel();
    std::thread::scope(|scope| {
        let asked = scope.spawn(move || {
            let mut connection = Connection::open(&options)?;
            waits.send(()).expect("somebody listens");
            connection.query("SELECT pg_sleep(1000)").map(drop)
        });
        waiting.recv().expect("a session");
        for _ in 0..times {
            patience.hurry();
        }
        asked.join().expect("no panic").expect_err("no answer")
    })
}

#[test]
fn a_second_request_ends_a_wait_at_once() {
    let server = Server::start(welcome(), Vec::new());
    let error = hurried(&server, 2);
    assert!(matches!(error, Error::Interrupted), "{error:?}");
    assert_eq!(error.to_string(), "interrupted while waiting for the server");
    assert!(error.is_connection_lost());
    server.end();
}

#[test]
fn a_reply_that_never_ends_is_no_reason_to_go_on() {
    for answer in [notices(), rows()] {
        let server = Server::start(welcome(), answer);
        let error = hurried(&server, 2);
        assert!(matches!(error, Error::Interrupted | Error::TooLarge(_)), "{error:?}");
        server.end();
    }
}

#[test]
fn a_call_that_begins_after_two_requests_has_its_time() {
    let server = Server::start(welcome(), Vec::new());
    let mut options = server.options.clone();
    options.patience = Patience::default();
    options.patience.hurry();
    options.patience.hurry();
    let mut connection = Connection::open(&options).expect("a server that is well lets us tidy up");
    let error = connection.execute("DROP SCHEMA x").expect_err("no answer");
    assert!(matches!(error, Error::Interrupted), "{error:?}");
    drop(connection);
    server.end();
}

#[test]
fn connecting_is_bounded_by_an_instant() {
    let server = Server::start(Vec::new(), Vec::new());
    let mut options = server.options.clone();
    options.patience = Patience::default().until(Some(Instant::now() + Duration::from_millis(50)));
    let error = Connection::open(&options).expect_err("no session");
    assert!(error.to_string().ends_with("timeout expired"), "{error}");
    server.end();
}

#[test]
fn rows_of_an_answer_are_bounded() {
    let server = Server::start(welcome(), rows());
    let mut connection = Connection::open(&server.options).expect("a session");
    let error = connection.query("SELECT * FROM everything").expect_err("too much");
    assert_eq!(error.to_string(), "the server's answer is larger than 64 MiB, which is the limit");
    assert!(connection.is_broken() && error.is_connection_lost());
    drop(connection);
    assert!(server.end() < 200 << 20, "it stops soon");
}

#[test]
fn rows_that_nobody_keeps_are_no_matter() {
    let mut answer = rows().repeat(80);
    server::command_complete(&mut answer, "SELECT 80000");
    server::ready_for_query(&mut answer, TransactionStatus::Idle);
    let server = Server::start(welcome(), answer);
    let mut connection = Connection::open(&server.options).expect("a session");
    assert_eq!(connection.execute("SELECT * FROM everything").expect("an answer").len(), 1);
    drop(connection);
    server.end();
}

#[test]
fn notices_are_bounded() {
    let mut answer = notices().repeat(50);
    server::command_complete(&mut answer, "DO");
    server::ready_for_query(&mut answer, TransactionStatus::Idle);
    let server = Server::start(welcome(), answer);
    let mut connection = Connection::open(&server.options).expect("a session");
    connection.execute("DO $$ … $$").expect("an answer");
    assert_eq!(connection.take_notices().len(), 10, "one MiB");
    assert!(connection.take_notices().is_empty());
    drop(connection);
    server.end();
}

#[test]
fn start_up_is_bounded() {
    let mut greeting = Vec::new();
    server::authentication_ok(&mut greeting);
    let mut endless = notices();
    server::parameter_status(&mut endless, "x", &"y".repeat(100_000));
    greeting.extend(endless.repeat(100));
    let server = Server::start(Vec::new(), greeting);
    let error = Connection::open(&server.options).expect_err("no session");
    assert!(error.to_string().ends_with("the server sent more than 16 MiB during start-up"), "{error}");
    server.end();
}
