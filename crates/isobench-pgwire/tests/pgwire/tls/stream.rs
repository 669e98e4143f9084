//! The encrypted stream as used by an event loop: reads that drain it, writes that don't wait, and
//! its end.

use std::io::{ErrorKind, Read, Write};
use std::sync::mpsc;

use isobench_pgwire::{Socket, SslMode, connect};
use rustix::event::{PollFd, PollFlags, poll};

use super::authority::{Authority, Wanted};
use super::server::{Encrypted, Server, answer, beginning, config, encrypt, welcome};

/// A client's socket, and a server that calls the handler after the start-up and one byte from the
/// client.
fn session(play: impl FnOnce(Encrypted) + Send + 'static) -> (Server, Socket) {
    let identity = Authority::new("a").sign(&Wanted { names: &["localhost"], common: "x", expired: false });
    let config = config(&identity);
    let server = Server::start(vec![Box::new(move |mut stream| {
        answer(&mut stream, b"S");
        let mut stream = encrypt(stream, &config);
        welcome(&mut stream);
        stream.read_exact(&mut [0]).expect("a byte to begin with");
        play(stream);
    })]);
    let session = connect(&server.options(SslMode::Require)).expect("a session");
    assert!(session.pending.is_empty());
    (server, session.socket)
}

fn begin(socket: &mut Socket) {
    assert_eq!(socket.send_now(b"!").expect("one byte goes"), 1);
}

fn wait(socket: &Socket, flags: PollFlags) {
    poll(&mut [PollFd::new(socket, flags)], None).expect("the system waits");
}

/// A guarantee needed by the edge-triggered loop: a short read, or `WouldBlock`, means that
/// everything has been read, so that no byte is left without a future event.
#[test]
fn a_short_read_leaves_nothing() {
    const SIZE: usize = 3_000_000;
    let (server, mut socket) = session(move |mut stream| {
        // Records of all sizes, many of them in one packet.
        let mut sent = 0;
        let mut size = 1;
        while sent < SIZE {
            let piece = size.min(SIZE - sent);
            stream.write_all(&vec![b'x'; piece]).expect("the client listens");
            sent += piece;
            size = size * 7 % 20_011;
        }
        let mut end = [0];
        assert_eq!(stream.read(&mut end).expect("the client answers"), 1);
    });
    assert_eq!(socket.receive_now(&mut [0; 100]).map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
    begin(&mut socket);
    let mut received = 0;
    for length in [1, 10, 5000, 70_000].into_iter().cycle() {
        if received == SIZE {
            break;
        }
        let mut buffer = vec![0; length];
        loop {
            match socket.receive_now(&mut buffer) {
                Ok(0) => panic!("closed after {received} bytes"),
                Ok(count) => {
                    assert!(buffer[..count].iter().all(|&byte| byte == b'x'));
                    received += count;
                    if count < buffer.len() {
                        break;
                    }
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    break;
                }
            }
        }
        if received < SIZE {
            // If a byte were buffered above the system's socket, this would wait for ever at the
            // end.
            wait(&socket, PollFlags::IN);
        }
    }
    socket.send_now(b".").expect("one byte goes");
    server.end();
}

/// A server that doesn't read stops the writer without blocking it; then all bytes arrive once and
/// in order.
#[test]
fn writes_do_not_wait_and_lose_nothing() {
    const SIZE: usize = 8_000_000;
    let byte = |index: usize| u8::try_from(index % 251).unwrap_or(0);
    let (full, is_full) = mpsc::channel();
    let (server, mut socket) = session(move |mut stream| {
        is_full.recv().expect("the client tells");
        let mut buffer = vec![0; 100_000];
        let mut received = 0;
        while received < SIZE {
            let count = stream.read(&mut buffer).expect("the client sends");
            assert!(count > 0, "closed after {received} bytes");
            for (offset, found) in buffer[..count].iter().enumerate() {
                assert_eq!(*found, byte(received + offset), "byte {}", received + offset);
            }
            received += count;
        }
        stream.write_all(b".").expect("the client listens");
    });
    begin(&mut socket);
    let bytes: Vec<u8> = (0..SIZE).map(byte).collect();
    let mut sent = 0;
    let mut stops = 0;
    while sent < SIZE {
        // Pieces of all sizes; refused data is passed again, with more or less after it.
        let end = SIZE.min(sent + 1 + sent % 50_000);
        match socket.send_now(&bytes[sent..end]) {
            Ok(count) => sent += count,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                if stops == 0 {
                    full.send(()).expect("the server waits");
                }
                stops += 1;
                wait(&socket, PollFlags::OUT);
            }
        }
    }
    assert!(stops > 0, "8 MB fit nowhere");
    let mut end = [0; 2];
    assert_eq!(socket.read(&mut end).expect("an answer"), 1);
    server.end();
}

/// The last data arrives before the end, and the end is permanent, with and without a close
/// message.
#[test]
fn endings() {
    for polite in [true, false] {
        let (server, mut socket) = session(move |mut stream| {
            stream.write_all(b"the last words").expect("the client listens");
            if polite {
                stream.conn.send_close_notify();
                stream.flush().expect("the client listens");
            }
        });
        begin(&mut socket);
        server.end();
        // The end follows the last data.
        wait(&socket, PollFlags::RDHUP);
        let mut buffer = [0; 100];
        let count = socket.receive_now(&mut buffer).expect("the last words");
        assert_eq!(&buffer[..count], b"the last words", "polite: {polite}");
        for _ in 0..3 {
            assert_eq!(socket.receive_now(&mut buffer).expect("the end"), 0, "polite: {polite}");
        }
    }
}

/// Bytes that the server didn't send end the session, and are never taken for its data.
#[test]
fn forged_bytes_are_refused() {
    let (server, mut socket) = session(|mut stream| {
        stream.write_all(b"true").expect("the client listens");
        stream.sock.write_all(b"\x17\x03\x03\x00\x20forged record, 32 bytes of it...").expect("sent");
        // Until the client disconnects.
        let _ = stream.sock.read(&mut [0; 100]);
    });
    begin(&mut socket);
    let mut buffer = [0; 100];
    let mut read = Vec::new();
    let error = loop {
        match socket.read(&mut buffer) {
            Ok(0) => panic!("an end is no error"),
            Ok(count) => read.extend_from_slice(&buffer[..count]),
            Err(error) => break error,
        }
    };
    assert_eq!(read, b"true");
    assert!(error.to_string().starts_with("SSL error: "), "{error}");
    let again = socket.read(&mut buffer).expect_err("it stays so");
    assert_eq!(again.to_string(), error.to_string());
    assert!(socket.write(b"x").is_err());
    drop(socket);
    server.end();
}

/// The client sends a close message, so that the server can distinguish an end from a truncation.
#[test]
fn the_client_says_goodbye() {
    let (server, mut socket) = session(|mut stream| {
        assert_eq!(stream.read(&mut [0; 10]).expect("a goodbye, no cut"), 0);
    });
    begin(&mut socket);
    drop(socket);
    server.end();
}

/// A cancel request is encrypted like its session.
#[test]
fn cancel_requests_are_encrypted() {
    let identity = Authority::new("a").sign(&Wanted { names: &["localhost"], common: "x", expired: false });
    let config = config(&identity);
    let (first, second) = (config.clone(), config);
    let server = Server::start(vec![
        Box::new(move |mut stream| {
            answer(&mut stream, b"S");
            welcome(&mut encrypt(stream, &first));
        }),
        Box::new(move |mut stream| {
            answer(&mut stream, b"S");
            let request = beginning(&mut encrypt(stream, &second));
            assert_eq!(request.as_deref(), Some("CancelRequest { pid: 7, key: [1, 2, 3, 4] }"));
        }),
    ]);
    let session = connect(&server.options(SslMode::Prefer)).expect("a session");
    session.cancel.cancel().expect("taken");
    server.end();
}
