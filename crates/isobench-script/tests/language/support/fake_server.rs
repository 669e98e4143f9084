//! A server that accepts everything and notes the SQL it gets: all that pgbench needs to execute scripts.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    /// What arrived since the last call: texts of Query and Parse messages.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no panic while locked"))
    }
}

/// Listens on the socket that `-h folder` leads to. The thread ends with the process.
pub fn start(folder: &Path) -> std::io::Result<Log> {
    let listener = UnixListener::bind(folder.join(".s.PGSQL.5432"))?;
    let log = Log::default();
    let shared = log.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let log = shared.clone();
            // A client that hangs up is no failure of the test.
            std::thread::spawn(move || serve(stream, &log).ok());
        }
    });
    Ok(log)
}

fn serve(mut stream: UnixStream, log: &Log) -> std::io::Result<()> {
    read_body(&mut stream)?;
    let mut reply = Vec::new();
    message(&mut reply, b'R', &0_u32.to_be_bytes());
    for parameter in
        ["server_version\x0015.0\0", "client_encoding\0UTF8\0", "standard_conforming_strings\0on\0"]
    {
        message(&mut reply, b'S', parameter.as_bytes());
    }
    message(&mut reply, b'Z', b"I");
    stream.write_all(&reply)?;
    reply.clear();
    loop {
        let mut tag = [0];
        stream.read_exact(&mut tag)?;
        let body = read_body(&mut stream)?;
        match tag[0] {
            b'Q' => {
                note(log, &body);
                message(&mut reply, b'C', b"SELECT 0\0");
                message(&mut reply, b'Z', b"I");
            }
            b'P' => {
                let name = body.iter().position(|byte| *byte == 0).unwrap_or(0);
                note(log, &body[name + 1..]);
                message(&mut reply, b'1', b"");
            }
            b'B' => message(&mut reply, b'2', b""),
            b'D' => message(&mut reply, b'n', b""),
            b'E' => message(&mut reply, b'C', b"SELECT 0\0"),
            b'S' => message(&mut reply, b'Z', b"I"),
            _ => return Ok(()),
        }
        if matches!(tag[0], b'Q' | b'S') {
            stream.write_all(&reply)?;
            reply.clear();
        }
    }
}

fn note(log: &Log, body: &[u8]) {
    let text = body.split(|byte| *byte == 0).next().unwrap_or_default();
    log.0.lock().expect("no panic while locked").push(String::from_utf8_lossy(text).into_owned());
}

fn read_body(stream: &mut UnixStream) -> std::io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut body = vec![0; (u32::from_be_bytes(length) as usize).saturating_sub(4)];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn message(reply: &mut Vec<u8>, tag: u8, body: &[u8]) {
    reply.push(tag);
    let length = u32::try_from(body.len() + 4).expect("small");
    reply.extend_from_slice(&length.to_be_bytes());
    reply.extend_from_slice(body);
}
