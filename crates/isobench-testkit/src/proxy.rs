//! A proxy between clients and a real server, which changes requests and answers of the simple
//! protocol: for servers that go wrong in a certain way.
//!
//! Everything that isn't a query in the simple protocol, and every query without a [`Plan`], goes
//! through unchanged.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use isobench_pgwire::{FrameBuffer, backend::tag};

/// The tags of messages of clients (PostgreSQL: Protocol, Message Formats).
const QUERY: u8 = b'Q';
const SYNC: u8 = b'S';

/// The answer to a request for TLS or GSSAPI encryption: no.
const REFUSED: &[u8] = b"N";

/// The codes of requests for TLS and GSSAPI encryption, in place of a version.
const ENCRYPTION: [u32; 2] = [80_877_103, 80_877_104];

/// A message of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The type byte.
    pub tag: u8,
    /// The body.
    pub body: Vec<u8>,
}

/// What the proxy makes of a query.
pub struct Plan {
    /// The query that is sent in place of the client's, if it is another one.
    pub send: Option<String>,
    /// Changes the messages of the answer, up to and without `ReadyForQuery`. It isn't called if there
    /// is an error among them, which is passed on.
    pub answer: Box<dyn FnOnce(Vec<Reply>) -> Vec<Reply> + Send>,
}

/// Decides about a query: the number of the connection, and the query.
pub type Planner = dyn Fn(usize, &str) -> Option<Plan> + Send + Sync;

impl Reply {
    /// The values of a `DataRow`; none of another message.
    pub fn values(&self) -> Vec<Option<Vec<u8>>> {
        let mut values = Vec::new();
        if self.tag != tag::DATA_ROW {
            return values;
        }
        let mut rest = self.body.get(2..).unwrap_or_default();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = usize::try_from(i32::from_be_bytes(*length)).ok();
            let value = length.and_then(|length| after.get(..length));
            values.push(value.map(<[u8]>::to_vec));
            rest = after.get(length.unwrap_or(0)..).unwrap_or_default();
        }
        values
    }

    /// A `DataRow` with these values.
    pub fn row(values: &[Option<Vec<u8>>]) -> Reply {
        let mut message = Vec::new();
        let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
        isobench_pgwire::server::data_row(&mut message, &values);
        Reply { tag: tag::DATA_ROW, body: message.split_off(5) }
    }

    /// A `CommandComplete` with this tag.
    pub fn complete(command: &str) -> Reply {
        let mut message = Vec::new();
        isobench_pgwire::server::command_complete(&mut message, command);
        Reply { tag: tag::COMMAND_COMPLETE, body: message.split_off(5) }
    }

    /// True if it is the tag of this command.
    pub fn completes(&self, command: &str) -> bool {
        self.tag == tag::COMMAND_COMPLETE && self.body.starts_with(command.as_bytes())
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.tag);
        let length = u32::try_from(self.body.len() + 4).expect("a message of ordinary size");
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.body);
    }
}

/// Listens on a socket, and connects each client to the server's socket, until the process ends.
///
/// # Errors
/// If the socket can't be created.
pub fn serve(socket: &Path, server: &Path, planner: Arc<Planner>) -> io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    let server = server.to_path_buf();
    thread::spawn(move || {
        for (number, client) in listener.incoming().flatten().enumerate() {
            let (server, planner) = (server.clone(), Arc::clone(&planner));
            // A connection that breaks is no failure of the proxy.
            thread::spawn(move || drop(connect(client, &server, number, &*planner)));
        }
    });
    Ok(())
}

/// What is to be done with the answers that are still to come, one for each `ReadyForQuery`.
type Queue = Arc<Mutex<VecDeque<Option<Plan>>>>;

fn locked(queue: &Queue) -> MutexGuard<'_, VecDeque<Option<Plan>>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect(mut client: UnixStream, server: &Path, number: usize, planner: &Planner) -> io::Result<()> {
    let first = loop {
        let packet = first_packet(&mut client)?;
        let code = packet.get(4..8).and_then(|code| code.try_into().ok()).map(u32::from_be_bytes);
        if !code.is_some_and(|code| ENCRYPTION.contains(&code)) {
            break packet;
        }
        client.write_all(REFUSED)?;
    };
    let mut server = UnixStream::connect(server)?;
    server.write_all(&first)?;
    // The start of the session ends with ReadyForQuery, too.
    let queue: Queue = Arc::new(Mutex::new(VecDeque::from([None])));
    let (back, from, theirs) = (client.try_clone()?, server.try_clone()?, Arc::clone(&queue));
    thread::spawn(move || drop(answers(from, back, &theirs)));
    let ended = requests(&mut client, &mut server, number, &queue, planner);
    let _ = server.shutdown(std::net::Shutdown::Write);
    ended
}

/// The packet at the start of a connection, with its length.
fn first_packet(client: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut packet = vec![0; 4];
    client.read_exact(&mut packet)?;
    let length = u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]]);
    packet.resize(length as usize, 0);
    client.read_exact(&mut packet[4..])?;
    Ok(packet)
}

/// Passes on what the client sends.
fn requests(
    client: &mut UnixStream,
    server: &mut UnixStream,
    number: usize,
    queue: &Queue,
    planner: &Planner,
) -> io::Result<()> {
    let (mut frames, mut buffer) = (FrameBuffer::new(), [0; 16384]);
    loop {
        let count = client.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        let mut out = Vec::new();
        let mut frames = frames.feed(&buffer[..count]);
        while let Some(frame) = frames.next().map_err(io::Error::other)? {
            let mut body = frame.body.to_vec();
            if frame.tag == QUERY {
                let sql = String::from_utf8_lossy(body.strip_suffix(&[0]).unwrap_or(&body)).into_owned();
                let plan = planner(number, &sql);
                if let Some(other) = plan.as_ref().and_then(|plan| plan.send.as_deref()) {
                    body = [other.as_bytes(), &[0]].concat();
                }
                locked(queue).push_back(plan);
            } else if frame.tag == SYNC {
                locked(queue).push_back(None);
            }
            Reply { tag: frame.tag, body }.write(&mut out);
        }
        server.write_all(&out)?;
    }
}

/// Passes on what the server sends. The messages of a planned answer are kept until it is complete.
fn answers(mut server: UnixStream, mut client: UnixStream, queue: &Queue) -> io::Result<()> {
    let (mut frames, mut buffer) = (FrameBuffer::new(), [0; 16384]);
    let mut kept: Vec<Reply> = Vec::new();
    loop {
        let count = server.read(&mut buffer)?;
        if count == 0 {
            return client.shutdown(std::net::Shutdown::Both);
        }
        let mut out = Vec::new();
        let mut frames = frames.feed(&buffer[..count]);
        while let Some(frame) = frames.next().map_err(io::Error::other)? {
            let reply = Reply { tag: frame.tag, body: frame.body.to_vec() };
            let planned = locked(queue).front().is_some_and(Option::is_some);
            if frame.tag == tag::READY_FOR_QUERY {
                let plan = locked(queue).pop_front().flatten();
                let failed = kept.iter().any(|reply| reply.tag == tag::ERROR_RESPONSE);
                let answer = std::mem::take(&mut kept);
                let answer = match plan {
                    Some(plan) if !failed => (plan.answer)(answer),
                    _ => answer,
                };
                for reply in &answer {
                    reply.write(&mut out);
                }
                reply.write(&mut out);
            } else if planned {
                kept.push(reply);
            } else {
                reply.write(&mut out);
            }
        }
        client.write_all(&out)?;
    }
}

#[cfg(test)]
mod tests {
    use isobench_pgwire::{ConnectOptions, Connection, Host};

    use super::*;
    use crate::simulated::{ListeningServer, SimulationSettings};

    #[test]
    fn values_of_rows_are_read_and_written() {
        let values = [Some(b"12".to_vec()), None, Some(Vec::new())];
        let row = Reply::row(&values);
        assert_eq!(row.values(), values);
        assert_eq!(Reply::complete("UPDATE 1").values(), []);
        assert!(Reply::complete("UPDATE 1").completes("UPDATE"));
    }

    #[test]
    fn planned_queries_are_changed_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let settings = SimulationSettings::default();
        ListeningServer::start(folder.path(), settings, |_| None).expect("a socket");
        let socket = folder.path().join(".s.PGSQL.5432");
        let planner = |_, sql: &str| {
            sql.contains("secret").then(|| Plan {
                send: Some("SELECT 1".to_owned()),
                answer: Box::new(|mut answer| {
                    let rows = answer.iter_mut().filter(|reply| reply.tag == tag::DATA_ROW);
                    rows.for_each(|row| *row = Reply::row(&[Some(b"changed".to_vec())]));
                    answer
                }),
            })
        };
        let proxied = folder.path().join("proxy");
        std::fs::create_dir(&proxied).expect("a folder");
        serve(&proxied.join(".s.PGSQL.5432"), &socket, Arc::new(planner)).expect("a socket");
        let options = ConnectOptions::new(Host::unix(&proxied, 5432), "postgres", "postgres");
        let mut connection = Connection::open(&options).expect("a connection");
        for (sql, value) in [("SELECT 2", "1"), ("SELECT secret", "changed"), ("SELECT 3", "1")] {
            assert_eq!(connection.value(sql).expect("an answer").as_deref(), Some(value), "{sql}");
        }
    }
}
