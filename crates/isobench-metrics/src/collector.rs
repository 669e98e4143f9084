//! A collector of OpenTelemetry: its address, and a thread that pushes metrics to it.
//!
//! A collector that doesn't answer changes nothing: each push has a time limit, in a thread of its
//! own, and failures are told once. Not here: what is pushed (`otlp`).

use std::fmt;
use std::str::FromStr;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use isobench_http::{NoCertificates, plain_agent, secure_agent};
use isobench_limits::LIMITS;
use ureq::Agent;

use crate::meter::Meter;
use crate::otlp::request;

/// Time between two pushes.
const PUSH_EVERY: Duration = Duration::from_secs(5);

/// The path of metrics, as the protocol has it.
const PATH: &str = "/v1/metrics";

/// The address of a collector that takes OTLP over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collector {
    url: String,
}

/// An address that is none of a collector, or one that nothing can be pushed to.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// It isn't a URL of HTTP.
    #[error("\"{0}\" is no http:// or https:// address of a collector, such as http://127.0.0.1:4318")]
    NoUrl(String),
    /// It has a password, which messages and other users would see.
    #[error(
        "an address with a user or a password would show it to others; run a collector that has it instead"
    )]
    Credentials,
    /// Its certificate couldn't be verified.
    #[error("{0}: {1}")]
    Certificates(Collector, NoCertificates),
    /// There is no thread to push from.
    #[error("could not start a thread to push to {0}: {1}")]
    Thread(Collector, #[source] std::io::Error),
}

impl FromStr for Collector {
    type Err = CollectorError;

    /// A URL; without a path it gets that of the protocol.
    fn from_str(text: &str) -> Result<Collector, CollectorError> {
        let no_url = || CollectorError::NoUrl(text.to_owned());
        let plain = |letter: char| letter.is_ascii_graphic() && !"\"<>\\^`{|}?#".contains(letter);
        let (scheme, rest) = text.split_once("://").filter(|_| text.chars().all(plain)).ok_or_else(no_url)?;
        let (authority, path) = rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash));
        if authority.contains('@') {
            return Err(CollectorError::Credentials);
        }
        let port = authority.rsplit_once(':').filter(|_| !authority.ends_with(']'));
        let has_port = port.is_none_or(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if !matches!(scheme, "http" | "https") || authority.is_empty() || !has_port {
            return Err(no_url());
        }
        let path = if path.trim_matches('/').is_empty() { PATH } else { path };
        Ok(Collector { url: format!("{scheme}://{authority}{path}") })
    }
}

impl fmt::Display for Collector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

/// Pushes what a meter holds every five seconds, and for the last time when it ends.
#[derive(Debug)]
pub struct Pusher {
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pusher {
    /// Starts to push. `warn` is called from another thread, at most once, when a push has failed.
    ///
    /// # Errors
    /// There are no certificates to verify the collector by, or there is no thread.
    pub fn start(
        collector: &Collector,
        meter: &Meter,
        warn: impl Fn(&str) + Send + 'static,
    ) -> Result<Pusher, CollectorError> {
        let agent = if collector.url.starts_with("https") {
            let certificates = |error| CollectorError::Certificates(collector.clone(), error);
            secure_agent(LIMITS.metrics, None).map_err(certificates)?
        } else {
            plain_agent(LIMITS.metrics)
        };
        let (over, ends) = channel::<()>();
        let (url, meter, instance) = (collector.url.clone(), meter.clone(), instance());
        let work = move || {
            let mut warned = false;
            loop {
                let last = ends.recv_timeout(PUSH_EVERY) != Err(RecvTimeoutError::Timeout);
                let pushed = push(&agent, &url, &request(&meter, &instance).to_string());
                if let (Err(error), false) = (pushed, warned) {
                    warned = true;
                    let goes_on =
                        if last { "" } else { "; the run continues, and so do the attempts to push" };
                    warn(&format!("--otlp: {url}: {error}{goes_on}"));
                }
                if last {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("otlp".to_owned()).spawn(work);
        let thread = thread.map_err(|error| CollectorError::Thread(collector.clone(), error))?;
        Ok(Pusher { over: Some(over), thread: Some(thread) })
    }
}

impl Drop for Pusher {
    /// Pushes for the last time. Takes at most twice the limit of a push, if one is under way.
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            // A thread that has panicked has nothing to say.
            let _ = thread.join();
        }
    }
}

/// Pushes once.
///
/// # Errors
/// There is no answer in time, or another one than success. A push isn't sent again elsewhere.
fn push(agent: &Agent, url: &str, body: &str) -> Result<(), String> {
    let request = agent.post(url).content_type("application/json");
    let answer = request.config().max_redirects(0).build().send(body).map_err(|error| error.to_string())?;
    if answer.status().is_success() { Ok(()) } else { Err(format!("it answers {}", answer.status())) }
}

/// What tells this process from others that push to the same collector.
fn instance() -> String {
    let host = rustix::system::uname();
    format!("{}:{}", host.nodename().to_string_lossy(), std::process::id())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc::Receiver;

    use super::*;
    use crate::family::tests::seen;

    #[test]
    fn addresses() {
        let read = |text: &str| text.parse::<Collector>().map(|collector| collector.to_string());
        for (given, url) in [
            ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"),
            ("http://[::1]:4318/", "http://[::1]:4318/v1/metrics"),
            ("https://collector.example.org", "https://collector.example.org/v1/metrics"),
            ("http://c:4318/otlp/v1/metrics", "http://c:4318/otlp/v1/metrics"),
        ] {
            assert_eq!(read(given).expect(given), url);
        }
        for wrong in [
            "",
            "127.0.0.1:4318",
            "grpc://c:4317",
            "http://",
            "http://:1",
            "http://c:x",
            "http://c/?a=b",
            "http://c d",
        ] {
            let error = read(wrong).expect_err(wrong).to_string();
            assert!(error.contains("no http:// or https:// address"), "{error}");
        }
        let error = read("http://me:secret@c").expect_err("a password").to_string();
        assert!(!error.contains("secret"), "{error}");
    }

    /// A collector that takes requests and answers with this status; returns their paths and bodies.
    fn collector(status: &'static str) -> (Collector, Receiver<(String, String)>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (sender, received) = channel();
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let mut reader = BufReader::new(&socket);
                let lines: Vec<String> = reader
                    .by_ref()
                    .lines()
                    .map_while(Result::ok)
                    .take_while(|line| !line.is_empty())
                    .collect();
                let length = lines
                    .iter()
                    .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
                let mut body = vec![0; length.expect("a length")];
                reader.read_exact(&mut body).expect("a body");
                sender.send((lines[0].clone(), String::from_utf8(body).expect("text"))).ok();
                write!(&socket, "HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}")
                    .ok();
            }
        });
        (url.parse().expect("a collector"), received)
    }

    #[test]
    fn the_last_push_is_at_the_end() {
        let (collector, received) = collector("200 OK");
        let meter = Meter::default();
        let pusher = Pusher::start(&collector, &meter, |why| panic!("{why}")).expect("a pusher");
        // What comes after the start is in the last push.
        for (attributes, counted) in seen().copy() {
            meter.see(&attributes, counted.working.expect("works"), &counted.total());
        }
        drop(pusher);
        let (line, body) = received.try_iter().last().expect("a push");
        assert_eq!(line, "POST /v1/metrics HTTP/1.1");
        assert!(body.contains("\"isobench.attempts\"") && body.contains("\"asInt\":\"51\""), "{body}");
    }

    #[test]
    fn a_collector_that_refuses_or_is_not_there_is_told_once() {
        let (refusing, received) = collector("503 Busy");
        let gone = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
        let (moved, _) = collector("302 Found\r\nLocation: http://127.0.0.1:9/");
        for (collector, why) in [
            (refusing, "503"),
            (format!("http://{gone}").parse().expect("a collector"), "refused"),
            (moved, "302"),
        ] {
            let (sender, told) = channel();
            drop(
                Pusher::start(&collector, &seen(), move |why| sender.send(why.to_owned()).expect("told"))
                    .expect("a pusher"),
            );
            let told: Vec<String> = told.into_iter().collect();
            let [only] = &told[..] else { panic!("{told:?}") };
            assert!(only.starts_with(&format!("--otlp: {collector}: ")) && only.contains(why), "{only}");
        }
        assert_eq!(received.try_iter().count(), 1);
    }

    #[test]
    fn a_silent_collector_keeps_nobody() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", silent.local_addr().expect("an address"));
        let (sender, told) = channel();
        let pusher = Pusher::start(&url.parse().expect("a collector"), &seen(), move |why| {
            sender.send(why.to_owned()).expect("told");
        });
        drop(pusher.expect("a pusher"));
        assert!(told.recv().expect("a warning").contains("timeout"));
    }
}
