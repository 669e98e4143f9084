//! `isobench record`: relays an application's sessions to its server, and records them.
//!
//! Not here: the relay (`isobench_record`), what a capture holds as text (`record/show.rs`).

mod application;
mod show;

use std::fs::{File, OpenOptions};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use isobench_comparison::{Failure, Outcome};
use isobench_pgwire::{ConnectOptions, TargetSessionAttrs};
use isobench_record::{Listener, Recorder, Settings, Summary, from_logs, lends_identity};
use isobench_trust::{open_to_show, refuse_foreign_links, untrusted_folder};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use rustix::fs::Mode;
use rustix::process::umask;
use signal_hook::iterator::Signals;

pub(super) use self::application::FOREIGN;
use crate::interrupt;
use crate::options::RecordOptions;
use crate::output::{say, shown};
use crate::servers::named_server;

/// The exit status if recording, or the application, was interrupted or incomplete.
const INCOMPLETE: u8 = 2;

/// Records, shows a capture, or makes one from logs. Returns the exit status.
///
/// # Errors
/// Wrong options, no server, a capture that exists or can't be read, an application that can't be
/// started.
pub fn record(options: &RecordOptions) -> Outcome<u8> {
    if let Some(path) = &options.show {
        return show::show(path).map(|()| 0);
    }
    if !options.from_log.is_empty() {
        return convert(options).map(|()| 0);
    }
    let Some(server) = named_server(&options.connection, None)? else {
        return Err(Failure::setup(
            "record needs the server of your application: name it (-h, PGHOST, a connection string)",
        ));
    };
    if server.target_session_attrs != TargetSessionAttrs::Any {
        return Err(Failure::setup(
            "target_session_attrs: the recorder has no session of its own to find that out; name the one server",
        ));
    }
    if options.command.is_empty() && options.listen.is_none() {
        return Err(Failure::setup(
            "what is to be recorded? Name a command (isobench record -- COMMAND), or where to listen (--listen)",
        ));
    }
    application::find(&options.command)?;
    let place = listen(options.listen.as_deref(), &server)?;
    let file = create(&options.output)?;
    let settings = Settings {
        server: server.clone(),
        redact: options.redact,
        inject: options.inject.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let Place { listener, address, _socket } = place;
    let note = Arc::new(|text: &str| say(&format!("isobench: {text}")));
    let watched = if options.command.is_empty() { Some(signals()?) } else { None };
    let recorder = Recorder::start(file, settings, listener, note).map_err(Failure::setup)?;
    say(&format!("isobench: recording at {address} for {}", server.describe()));
    let status = match watched {
        Some(mut signals) => {
            signals.forever().next();
            Ok(0)
        }
        None => application::run(&options.command, &address, &server),
    };
    let summary = recorder.finish();
    say(&sentence(&summary, &options.output));
    // The application's own failure comes first.
    status.map(|status| if status == 0 && summary.why.is_some() { INCOMPLETE } else { status })
}

/// The signals that end recording.
fn signals() -> Outcome<Signals> {
    Signals::new(interrupt::watchable())
        .map_err(|error| Failure::setup(format!("could not watch for signals: {error}")))
}

fn sentence(summary: &Summary, path: &Path) -> String {
    let unseen = match summary.unseen {
        0 => String::new(),
        unseen => format!("; {unseen} not recorded (isobench record --show {})", path.display()),
    };
    let Summary { statements, sessions, .. } = summary;
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    let path = shown(path);
    let next = match statements {
        0 => String::new(),
        _ => format!("\nisobench: next: isobench advise {path} --copy-from CONNINFO, or --setup FILE.sql"),
    };
    format!(
        "isobench: {statements} statement{} of {sessions} session{} in {path}{unseen}{next}",
        plural(*statements),
        plural(*sessions),
    )
}

/// Makes a capture from logs.
fn convert(options: &RecordOptions) -> Outcome {
    let mut inputs = Vec::new();
    for path in &options.from_log {
        let file = open_to_show(path).map_err(|error| {
            Failure::setup(format!("--from-log: could not read {}: {error}", shown(path)))
        })?;
        inputs.push((shown(path), file));
    }
    let file = create(&options.output)?;
    let summary = from_logs(inputs, file, options.redact, env!("CARGO_PKG_VERSION"))
        .map_err(|error| Failure::setup(format!("--from-log: {error}")))?;
    say(&sentence(&summary, &options.output));
    Ok(())
}

/// Makes the capture: a new file that only its owner can read.
fn create(path: &Path) -> Outcome<File> {
    let failure = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::setup(format!(
            "--output: {} exists; a capture isn't overwritten: remove it, or name another",
            shown(path)
        )),
        _ => Failure::setup(format!("--output: could not write {}: {error}", shown(path))),
    };
    refuse_foreign_links(path).map_err(failure)?;
    // It must be new, so no link of another user's is followed.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(failure)
}

/// A listener, and its address for clients.
struct Place {
    listener: Listener,
    address: Address,
    _socket: Option<SocketFile>,
}

/// Where clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    Tcp(SocketAddr),
    Unix { folder: PathBuf, port: u16 },
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix { folder, port } => write!(f, "{}", socket_path(folder, *port).display()),
        }
    }
}

/// The port in the name of the Unix socket.
const PORT: u16 = 5432;

fn socket_path(folder: &Path, port: u16) -> PathBuf {
    folder.join(format!(".s.PGSQL.{port}"))
}

/// A socket's file, which is removed at the end.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Whatever removed it has done the work.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Opens the listener.
fn listen(place: Option<&str>, server: &ConnectOptions) -> Outcome<Place> {
    let wrong = |why: String| Failure::setup(format!("--listen: {why}"));
    let place = place.unwrap_or("127.0.0.1:0");
    if place.contains('/') {
        return listen_in(Path::new(place)).map_err(wrong);
    }
    let address: SocketAddr = match (place.parse(), place.strip_prefix("localhost:").map(str::parse)) {
        (Ok(address), _) => address,
        (_, Some(Ok(port))) => SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port),
        _ => {
            return Err(wrong(format!(
                "\"{place}\" is neither an address and a port, such as 127.0.0.1:6432, nor a folder, such as ./sockets"
            )));
        }
    };
    if !address.ip().is_loopback() && lends_identity(server) {
        return Err(wrong(format!(
            "other machines can't be let in at {place}: the server may take whoever comes through the recorder for you; \
             name the server by TCP, without a client certificate"
        )));
    }
    let listener = TcpListener::bind(address).map_err(|error| wrong(format!("{place}: {error}")))?;
    let address = listener.local_addr().map_err(|error| wrong(error.to_string()))?;
    if !address.ip().is_loopback() {
        say(&format!(
            "warning: --listen {place}: other machines can reach your server through the recorder, without encryption, \
             and what they send is recorded"
        ));
    }
    Ok(Place { listener: Listener::Tcp(listener), address: Address::Tcp(address), _socket: None })
}

fn listen_in(folder: &Path) -> Result<Place, String> {
    let failure = |error: io::Error| format!("could not listen in \"{}\": {error}", folder.display());
    if let Some(why) = untrusted_folder(folder) {
        return Err(format!("could not listen in \"{}\": {why}", folder.display()));
    }
    let folder = std::path::absolute(folder).map_err(failure)?;
    let path = socket_path(&folder, PORT);
    // Only its owner can connect. No other thread runs yet.
    let before = umask(Mode::from_bits_truncate(0o177));
    let listener = UnixListener::bind(&path);
    umask(before);
    let listener = listener.map_err(failure)?;
    Ok(Place {
        listener: Listener::Unix(listener),
        address: Address::Unix { folder, port: PORT },
        _socket: Some(SocketFile(path)),
    })
}

/// The variables by which an application finds the recorder.
pub(super) fn variables(address: &Address, server: &ConnectOptions) -> Vec<(&'static str, String)> {
    let (user, database) = (encoded(&server.user), encoded(&server.dbname));
    let (host, port, url) = match address {
        Address::Tcp(address) => {
            let ip = match address.ip() {
                ip if ip.is_unspecified() => if ip.is_ipv4() { "127.0.0.1" } else { "::1" }.to_owned(),
                ip => ip.to_string(),
            };
            let bracketed = if ip.contains(':') { format!("[{ip}]") } else { ip.clone() };
            let url =
                format!("postgresql://{user}@{bracketed}:{}/{database}?sslmode=disable", address.port());
            (ip, address.port(), url)
        }
        Address::Unix { folder, port } => {
            let host = folder.display().to_string();
            let url = format!("postgresql://{user}@/{database}?host={}&port={port}", encoded(&host));
            (host, *port, url)
        }
    };
    let mut variables = vec![
        ("PGHOST", host),
        ("PGPORT", port.to_string()),
        ("PGUSER", server.user.clone()),
        ("PGDATABASE", server.dbname.clone()),
        ("DATABASE_URL", url),
        ("PGSSLMODE", "disable".to_owned()),
    ];
    // The application logs in as isobench would. The recorder itself makes no use of it.
    let password = server.password.as_ref().or(server.hosts.first().and_then(|host| host.password.as_ref()));
    variables.extend(password.map(|password| ("PGPASSWORD", password.expose().to_owned())));
    variables
}

/// What stays as it is in a part of a URL: letters, digits and `-._~` (RFC 3986).
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A part of a URL.
fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, PART)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_pgwire::Host;

    fn of(address: &Address, name: &str) -> String {
        let mut server = ConnectOptions::new(Host::tcp("db.example", 5432), "ada", "my shop");
        server.password = Some("geheim".into());
        let found = variables(address, &server).into_iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value).unwrap_or_default()
    }

    #[test]
    fn an_application_finds_the_recorder() {
        let tcp = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 6000)));
        let everywhere = Address::Tcp("[::]:6000".parse().expect("an address"));
        let unix = Address::Unix { folder: "/run/my app".into(), port: 5432 };
        for (address, host, url) in [
            (&tcp, "127.0.0.1", "postgresql://ada@127.0.0.1:6000/my%20shop?sslmode=disable"),
            (&everywhere, "::1", "postgresql://ada@[::1]:6000/my%20shop?sslmode=disable"),
            (&unix, "/run/my app", "postgresql://ada@/my%20shop?host=%2Frun%2Fmy%20app&port=5432"),
        ] {
            assert_eq!((of(address, "PGHOST").as_str(), of(address, "DATABASE_URL").as_str()), (host, url));
        }
        assert_eq!((of(&tcp, "PGPORT"), of(&tcp, "PGDATABASE")), ("6000".to_owned(), "my shop".to_owned()));
        assert_eq!(of(&tcp, "PGPASSWORD"), "geheim");
        assert!(!of(&tcp, "DATABASE_URL").contains("geheim"), "URLs are shown in logs");
    }

    #[test]
    fn places_are_checked() {
        let server = ConnectOptions::new(Host::tcp("db.example", 5432), "ada", "shop");
        let by_socket = ConnectOptions::new(Host::unix("/run/postgresql", 5432), "ada", "shop");
        let listen = |place| listen(place, &server);
        assert!(
            listen(Some("127.0.0.1:0")).is_ok()
                && listen(Some("localhost:0")).is_ok()
                && listen(None).is_ok()
        );
        assert!(listen(Some("0.0.0.0:0")).is_ok() && super::listen(Some("0.0.0.0:0"), &by_socket).is_err());
        assert!(super::listen(None, &by_socket).is_ok());
        for wrong in ["6432", "nowhere", "127.0.0.1", "/no/such/folder"] {
            assert!(listen(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
