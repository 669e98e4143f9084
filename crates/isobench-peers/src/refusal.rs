//! What a machine that can't take part says to those that wait for it, so that they end at once and know
//! why.
//!
//! To a machine that it hasn't met it says so in its hello, in place of the task; to one that it has met,
//! on their connection. Not here: the first exchange (`hello`).

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use isobench_limits::LIMITS;
use rustix::net::{RecvFlags, recv};

use crate::Place;
use crate::hello::{Credentials, PAUSE, connect, introduce, listen, welcome};

/// The start of a hello's task if there is none, before the reason.
const INSTEAD: &str = "refuses: ";

/// The first bytes of a refusal on a connection. The engine's messages begin with small numbers.
const MAGIC: &[u8; 17] = b"isobench refuses\n";

/// The longest reason, in bytes.
const LONGEST: usize = 2048;

/// Says to all machines that wait for this one, or come within a second, why it can't take part.
pub fn refuse(place: &Place, credentials: &Credentials, why: &str) {
    let end = Instant::now() + LIMITS.refusal;
    let listener = listen(place, end).ok();
    let unmet: Vec<usize> = (0..place.number()).filter(|rank| *rank != place.rank).collect();
    say_to(place, credentials, why, &unmet, listener.as_ref(), end);
}

/// Says it to machines that weren't met, until then.
pub(crate) fn say_to(
    place: &Place,
    credentials: &Credentials,
    why: &str,
    unmet: &[usize],
    listener: Option<&TcpListener>,
    end: Instant,
) {
    let said = Credentials { task: format!("{INSTEAD}{}", cut(why)), ..credentials.clone() };
    let (below, above): (Vec<usize>, Vec<usize>) = unmet.iter().partition(|rank| **rank < place.rank);
    thread::scope(|scope| {
        for rank in below {
            let (said, address) = (&said, &place.addresses[rank]);
            scope.spawn(move || {
                while let Some(left) = left(end) {
                    let heard = connect(address, left).is_some_and(|it| introduce(&it, place, said).is_ok());
                    if heard {
                        break;
                    }
                    thread::sleep(PAUSE.min(left));
                }
            });
        }
        let Some(listener) = listener else { return };
        let mut waiting = above.len();
        while let (Some(left), 1..) = (left(end), waiting) {
            match listener.accept() {
                Ok((stream, _)) if welcome(&stream, place, &said).is_ok() => waiting -= 1,
                Ok(_) => {}
                Err(_) => thread::sleep(PAUSE.min(left)),
            }
        }
    });
}

/// The reason in the task of a hello, if it is a refusal.
pub(crate) fn instead_of_task(task: &str) -> Option<&str> {
    task.strip_prefix(INSTEAD)
}

/// Says it on a connection to a machine that was met.
pub(crate) fn say_on(mut stream: &TcpStream, why: &str) {
    let why = cut(why);
    let length = u16::try_from(why.len()).unwrap_or_default();
    let bytes = [&MAGIC[..], &length.to_le_bytes(), why.as_bytes()].concat();
    // Whoever doesn't hear it notices that this machine is gone.
    let _ = stream.write_all(&bytes);
}

/// The reason that a machine which was met has given since, if it has.
pub(crate) fn said_on(stream: &TcpStream) -> Option<String> {
    let mut begun = [0; MAGIC.len()];
    let (read, _) = recv(stream, &mut begun[..], RecvFlags::PEEK | RecvFlags::DONTWAIT).ok()?;
    if read < MAGIC.len() || begun != *MAGIC {
        return None;
    }
    rest(stream).ok()
}

fn rest(mut stream: &TcpStream) -> io::Result<String> {
    let mut head = [0; MAGIC.len() + 2];
    stream.read_exact(&mut head)?;
    let length = u16::from_le_bytes([head[MAGIC.len()], head[MAGIC.len() + 1]]);
    let mut why = vec![0; usize::from(length).min(LONGEST)];
    stream.read_exact(&mut why)?;
    Ok(String::from_utf8_lossy(&why).into_owned())
}

/// The time until then, if any is left.
fn left(end: Instant) -> Option<Duration> {
    Some(end.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}

/// A reason that isn't too long.
fn cut(why: &str) -> &str {
    &why[..why.floor_char_boundary(LONGEST)]
}
