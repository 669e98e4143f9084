//! A server with TLS in a thread, which handles one connection after the other.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use isobench_pgwire::server::{self, FrontendMessage};
use isobench_pgwire::{ConnectOptions, Host, SslMode, TransactionStatus};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::authority::Identity;

/// The server's end of an encrypted connection.
pub type Encrypted = StreamOwned<ServerConnection, TcpStream>;

/// The handler of a connection.
pub type Play = Box<dyn FnOnce(TcpStream) + Send>;

/// A listening server.
pub struct Server {
    port: u16,
    thread: JoinHandle<()>,
}

impl Server {
    /// A server that calls each handler for one connection, in order.
    pub fn start(plays: Vec<Play>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let port = listener.local_addr().expect("bound").port();
        let thread = std::thread::spawn(move || {
            for play in plays {
                play(listener.accept().expect("a connection").0);
            }
        });
        Self { port, thread }
    }

    /// The options for connecting to it.
    pub fn options(&self, mode: SslMode) -> ConnectOptions {
        let mut options = ConnectOptions::new(Host::tcp("localhost", self.port), "me", "db");
        options.hosts[0].hostaddr = Some("127.0.0.1".to_owned());
        options.ssl_mode = mode;
        options
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits until all handlers have ended.
    pub fn end(self) {
        self.thread.join().expect("no panic");
    }
}

pub fn config(identity: &Identity) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(identity.chain.clone(), identity.key.clone_key())
        .expect("an identity");
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Arc::new(config)
}

/// Encrypts without being asked.
pub fn encrypt(stream: TcpStream, config: &Arc<ServerConfig>) -> Encrypted {
    let session = ServerConnection::new(Arc::clone(config)).expect("a session");
    StreamOwned::new(session, stream)
}

/// Answers a request for TLS with `reply`.
pub fn answer(stream: &mut TcpStream, reply: &[u8]) {
    let mut request = [0; 8];
    stream.read_exact(&mut request).expect("a request");
    let (message, _) = server::parse_initial(&request).expect("well-formed").expect("whole");
    assert_eq!(message, FrontendMessage::SslRequest);
    stream.write_all(reply).expect("the client listens");
}

/// Reads a start-up packet, or another first packet of a connection; `None` if the client has
/// disconnected.
pub fn beginning(stream: &mut impl Read) -> Option<String> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    loop {
        if let Ok(Some((message, _))) = server::parse_initial(&bytes) {
            return Some(format!("{message:?}"));
        }
        match stream.read(&mut byte) {
            Ok(1) => bytes.push(byte[0]),
            _ => return None,
        }
    }
}

/// Accepts the client.
pub fn welcome(stream: &mut (impl Read + Write)) {
    assert!(welcome_if_it_stays(stream), "no start-up packet");
}

/// Accepts the client, unless it has disconnected.
pub fn welcome_if_it_stays(stream: &mut (impl Read + Write)) -> bool {
    if beginning(stream).is_none_or(|message| !message.starts_with("Startup")) {
        return false;
    }
    let mut out = Vec::new();
    server::authentication_ok(&mut out);
    server::backend_key_data(&mut out, 7, &[1, 2, 3, 4]);
    server::ready_for_query(&mut out, TransactionStatus::Idle);
    stream.write_all(&out).expect("the client listens");
    true
}

/// Sends a fatal error.
pub fn refuse(stream: &mut impl Write, message: &str) {
    let mut out = Vec::new();
    let fields = [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', "28000"), (b'M', message)];
    server::error_response(&mut out, &fields);
    let _ = stream.write_all(&out);
}
