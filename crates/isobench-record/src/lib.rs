//! Relays the sessions of an application to its PostgreSQL server, unchanged, and records them.
//!
//! The relay comes first: bytes are passed on before they are looked at, and whatever goes wrong
//! with the recording (a message that isn't understood, a disk that is full, a recording that falls
//! behind), the application's bytes flow on. Each session of the application is one of the server.
//!
//! | file | holds |
//! |---|---|
//! | `startup` | the beginning of a connection: encryption, cancel requests, authentication |
//! | `identity` | who may connect |
//! | `door` | beginnings for sessions that another crate relays |
//! | `relay` | bytes, passed on by one thread |
//! | `inject` | COMMITs that fail on purpose |
//! | `queue` | copies of bytes on their way to the recording |
//! | `recording` | the thread that writes the capture |
//! | `decode` | bytes of one session, turned into records |
//! | `policy` | what of texts and values is kept |
//! | `secret` | which of them may hold a password |
//! | `reading` | how a server reads texts |
//! | `log` | captures from the server's log |
//! | `value`, `sql` | values as text; comments and literals |
//!
//! Not here: the file's format (`isobench-capture`), what is made of it, and the command line.
//!
//! ```no_run
//! use std::sync::Arc;
//! use isobench_record::{Listener, Recorder, Settings};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let host = isobench_pgwire::Host::unix("/run/postgresql", 5432);
//! let server = isobench_pgwire::ConnectOptions::new(host, "ada", "shop");
//! let listener = Listener::Tcp(std::net::TcpListener::bind(("127.0.0.1", 6432))?);
//! let file = std::fs::File::create_new("shop.capture")?;
//! let settings = Settings { server, redact: false, inject: None, version: "1".to_owned() };
//! let recorder = Recorder::start(file, settings, listener, Arc::new(|text| eprintln!("{text}")))?;
//! // Here the application runs.
//! println!("{} statements", recorder.finish().statements);
//! # Ok(())
//! # }
//! ```

mod decode;
mod door;
mod identity;
mod inject;
mod log;
mod policy;
mod queue;
mod reading;
mod recording;
mod relay;
mod secret;
mod sql;
mod startup;
mod value;

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Instant, SystemTime};

use isobench_capture::{FORMAT, Header, Source};
use isobench_pgwire::ConnectOptions;

pub use door::{Door, OpenSession};
pub use identity::lends_identity;
pub use inject::Injection;
pub use log::{LogError, from_logs};
pub use recording::Summary;
pub use relay::{Listener, Note};

use crate::policy::Policy;
use crate::queue::Queue;
use crate::relay::{Common, Relay, Stopper};
use crate::startup::Keys;

/// What is recorded, and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The server. User, password and database come from the clients.
    pub server: ConnectOptions,
    /// Text-like values become hashes.
    pub redact: bool,
    /// COMMITs that fail.
    pub inject: Option<Injection>,
    /// The version of isobench, for the header.
    pub version: String,
}

/// A recorder that runs, in threads of its own.
#[derive(Debug)]
pub struct Recorder {
    stopper: Arc<Stopper>,
    queue: Arc<Queue>,
    relay: JoinHandle<()>,
    recording: JoinHandle<Summary>,
}

impl Recorder {
    /// Starts to relay what comes to `listener`, and to record it in `file`. `note` says things to the
    /// user.
    ///
    /// # Errors
    /// The system has no threads, descriptors or random numbers.
    pub fn start(file: File, settings: Settings, listener: Listener, note: Note) -> io::Result<Self> {
        let policy = Policy::new(settings.redact)
            .ok_or_else(|| io::Error::other("the system has no random numbers"))?;
        let header = Header {
            isobench_capture: FORMAT,
            isobench: settings.version,
            began: humantime::format_rfc3339_micros(SystemTime::now()).to_string(),
            source: Source::Protocol,
            redacted: settings.redact,
        };
        let (queue, stopper) = (Arc::new(Queue::default()), Arc::new(Stopper::new()?));
        let common = Common {
            options: settings.server,
            inject: settings.inject,
            queue: Arc::clone(&queue),
            stopper: Arc::clone(&stopper),
            note: Arc::clone(&note),
            began: Instant::now(),
            keys: Keys::default(),
        };
        let relay = Relay::new(Arc::new(common), listener)?;
        let (recorded, says) = (Arc::clone(&queue), Arc::clone(&note));
        let recording = thread::Builder::new()
            .name("recording".to_owned())
            .spawn(move || recording::record(file, &header, policy, &recorded, &says))?;
        let relay = thread::Builder::new().name("relay".to_owned()).spawn(move || {
            if let Err(error) = relay.run() {
                note(&format!("the connections can't be watched any more: {error}"));
            }
        })?;
        Ok(Self { stopper, queue, relay, recording })
    }

    /// Relays and records what has arrived, closes all connections, and ends the capture.
    pub fn finish(self) -> Summary {
        self.stopper.stop();
        let relayed = self.relay.join();
        self.queue.close();
        let mut summary = self.recording.join().unwrap_or_else(|_| Summary {
            why: Some("a defect of isobench".to_owned()),
            ..Summary::default()
        });
        if relayed.is_err() {
            summary.why = Some("a defect of isobench".to_owned());
        }
        summary
    }
}
