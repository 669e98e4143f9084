//! The application that isobench starts and stops: its output goes to a temporary file, of which the end is
//! shown if it fails.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::RaceError;
use crate::process::{self, Environment};

/// The time that an application has to become ready.
const PATIENCE: Duration = Duration::from_mins(2);

/// The time of one try.
const TRY: Duration = Duration::from_secs(5);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(50);

/// The time that it has to end by itself.
const FAREWELL: Duration = Duration::from_secs(2);

/// The number of applications that were started.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// The part of its output that is shown.
const SHOWN: u64 = 1500;

/// The sign that an application is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// This port of 127.0.0.1 accepts connections.
    Port(u16),
    /// This URL is answered, with a status below 500.
    Url(String),
}

impl FromStr for Readiness {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(port @ 1..) = text.parse() {
            return Ok(Self::Port(port));
        }
        if text.starts_with("http://") {
            return Ok(Self::Url(text.to_owned()));
        }
        Err("give a port, such as 8000, or a URL, such as http://127.0.0.1:8000/".to_owned())
    }
}

impl Readiness {
    fn is_met(&self) -> bool {
        match self {
            Self::Port(port) => TcpStream::connect(("127.0.0.1", *port)).is_ok(),
            Self::Url(url) => match isobench_http::plain_agent(TRY).get(url).call() {
                Ok(_) => true,
                Err(ureq::Error::StatusCode(status)) => status < 500,
                Err(_) => false,
            },
        }
    }
}

/// How an application is started.
#[derive(Debug, Clone)]
pub struct Application {
    /// A line of shell.
    pub command: String,
    /// The sign that it is ready.
    pub ready: Readiness,
}

/// An application that runs. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Serving {
    child: Child,
    /// The value of its variable.
    mark: String,
    output: File,
}

impl Serving {
    /// Starts an application, and waits until it is ready.
    ///
    /// # Errors
    /// It ends, isn't ready in time, or something else answers in its place.
    pub(crate) fn start(
        application: &Application,
        environment: &Environment,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self, RaceError> {
        let Application { command, ready } = application;
        let wrong = |why: String| RaceError::Application(why);
        let began = Instant::now();
        while ready.is_met() && began.elapsed() < FAREWELL {
            // The system may still be closing what has just been ended.
            thread::sleep(PAUSE);
        }
        if ready.is_met() {
            return Err(wrong(format!(
                "something answers at {} already; stop it, since only the application that isobench starts uses the \
                 relay",
                ready.shown()
            )));
        }
        let file = || -> std::io::Result<(File, Stdio, Stdio)> {
            let output = tempfile::tempfile()?;
            let (one, other) = (output.try_clone()?, output.try_clone()?);
            Ok((output, one.into(), other.into()))
        };
        let (output, one, other) = file().map_err(|error| wrong(error.to_string()))?;
        let mark = format!("{}.{}", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let mut shell = process::shell(command, environment);
        let child = shell.env(process::SERVED, &mark).stdout(one).stderr(other).spawn();
        let child =
            child.map_err(|error| RaceError::Start { command: command.clone(), why: error.to_string() })?;
        let mut serving = Self { child, mark, output };
        let began = Instant::now();
        while !ready.is_met() {
            if stopped() {
                return Err(RaceError::Interrupted);
            }
            if let Ok(Some(status)) = serving.child.try_wait() {
                let (code, said) = (process::code(status), serving.said());
                return Err(wrong(format!(
                    "\"{command}\" ended with status {code} before it was ready{said}"
                )));
            }
            if began.elapsed() > PATIENCE {
                let (seconds, said) = (PATIENCE.as_secs(), serving.said());
                return Err(wrong(format!(
                    "\"{command}\" isn't ready at {} after {seconds} s{said}",
                    ready.shown()
                )));
            }
            thread::sleep(PAUSE);
        }
        Ok(serving)
    }

    /// The end of its output.
    fn said(&mut self) -> String {
        let mut bytes = Vec::new();
        let read = self.output.seek(SeekFrom::End(0)).and_then(|end| {
            self.output.seek(SeekFrom::Start(end.saturating_sub(SHOWN)))?;
            self.output.read_to_end(&mut bytes)
        });
        let text = String::from_utf8_lossy(&bytes);
        match read {
            Ok(1..) => format!("; its output ends with:\n{}", text.trim_end()),
            _ => String::new(),
        }
    }
}

impl Readiness {
    fn shown(&self) -> String {
        match self {
            Self::Port(port) => format!("port {port}"),
            Self::Url(url) => url.clone(),
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        process::end(&mut self.child, (process::SERVED, &self.mark), FAREWELL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn start(command: &str, ready: Readiness) -> Result<Serving, RaceError> {
        let application = Application { command: command.to_owned(), ready };
        Serving::start(&application, &Environment::default(), &|| false)
    }

    fn free_port() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address").port()
    }

    #[test]
    fn signs_are_ports_and_urls() {
        assert_eq!("8000".parse(), Ok(Readiness::Port(8000)));
        assert_eq!("http://x/".parse(), Ok(Readiness::Url("http://x/".to_owned())));
        for wrong in ["0", "", "localhost:8000", "70000"] {
            assert!(wrong.parse::<Readiness>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_application_that_ends_is_reported_with_its_output() {
        let error = start("echo no such module; exit 3", Readiness::Port(free_port())).expect_err("ended");
        let error = error.to_string();
        assert!(error.contains("status 3") && error.contains("no such module"), "{error}");
    }

    #[test]
    fn a_server_below_a_shell_is_gone_before_the_next_one_starts() {
        let port = free_port();
        let serve = format!("exec 3>&1; python3 -m http.server --bind 127.0.0.1 {port}; true");
        if std::process::Command::new("python3").arg("--version").output().is_err() {
            return;
        }
        for _ in 0..3 {
            drop(start(&serve, Readiness::Port(port)).expect("started again at the same port"));
        }
    }

    #[test]
    fn another_program_at_its_place_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let error = start("sleep 30", Readiness::Port(port)).expect_err("taken").to_string();
        assert!(error.contains(&format!("answers at port {port} already")), "{error}");
    }
}
