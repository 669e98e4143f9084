//! A proxy that repeats transactions which fail with a serialization failure, and doesn't tell its clients.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;

use isobench_pgwire::FrameBuffer;
use isobench_pgwire::backend::tag;

const QUERY: u8 = b'Q';

/// Listens on a socket, and connects each client to the server's socket, until the process ends.
pub fn serve(socket: &Path, server: &Path) {
    let listener = UnixListener::bind(socket).expect("a socket");
    let server = server.to_path_buf();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = server.clone();
            // A connection that breaks is no failure of the proxy.
            thread::spawn(move || drop(connect(client, &server)));
        }
    });
}

/// An answer up to `ReadyForQuery`.
struct Answer {
    bytes: Vec<u8>,
    /// It is a serialization failure.
    failed: bool,
    /// No transaction is open any more.
    idle: bool,
}

fn connect(mut client: UnixStream, server: &Path) -> io::Result<()> {
    let mut length = [0; 4];
    client.read_exact(&mut length)?;
    let mut first = vec![0; u32::from_be_bytes(length) as usize - 4];
    client.read_exact(&mut first)?;
    let mut server = UnixStream::connect(server)?;
    server.write_all(&[&length[..], &first].concat())?;
    let (mut answers, mut requests) = (FrameBuffer::new(), FrameBuffer::new());
    client.write_all(&answer(&mut server, &mut answers)?.bytes)?;
    let mut block: Vec<Vec<u8>> = Vec::new();
    let mut buffer = [0; 16384];
    loop {
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let mut asked = Vec::new();
        let mut frames = requests.feed(&buffer[..count]);
        while let Some(frame) = frames.next().map_err(io::Error::other)? {
            if frame.tag != QUERY {
                return Ok(());
            }
            asked.push(frame.body.to_vec());
        }
        for query in asked {
            block.push(query.clone());
            let mut last = ask(&mut server, &mut answers, &query)?;
            while last.failed {
                ask(&mut server, &mut answers, b"ROLLBACK\0")?;
                for query in &block {
                    last = ask(&mut server, &mut answers, query)?;
                    if last.failed {
                        break;
                    }
                }
            }
            if last.idle {
                block.clear();
            }
            client.write_all(&last.bytes)?;
        }
    }
}

fn ask(server: &mut UnixStream, answers: &mut FrameBuffer, query: &[u8]) -> io::Result<Answer> {
    server.write_all(&message(QUERY, query))?;
    answer(server, answers)
}

fn answer(server: &mut UnixStream, answers: &mut FrameBuffer) -> io::Result<Answer> {
    let mut answer = Answer { bytes: Vec::new(), failed: false, idle: false };
    let mut buffer = [0; 16384];
    loop {
        let count = server.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut ready = false;
        let mut frames = answers.feed(&buffer[..count]);
        while let Some(frame) = frames.next().map_err(io::Error::other)? {
            let has_code = || frame.body.windows(7).any(|part| part == b"C40001\0");
            answer.failed |= frame.tag == tag::ERROR_RESPONSE && has_code();
            ready |= frame.tag == tag::READY_FOR_QUERY;
            answer.idle = frame.tag == tag::READY_FOR_QUERY && frame.body == b"I";
            answer.bytes.extend(message(frame.tag, frame.body));
        }
        if ready {
            return Ok(answer);
        }
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a message of ordinary size");
    [&[tag], &length.to_be_bytes()[..], body].concat()
}
