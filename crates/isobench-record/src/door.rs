//! Sessions whose bytes another crate relays by itself: their beginnings, as the recorder's.

use std::collections::BTreeMap;

use isobench_pgwire::{ConnectOptions, Socket, TlsAcceptor};

use crate::startup::{self, Beginning, Keys, Started, Way};

/// The way to a server, for clients whose sessions are relayed by the caller.
#[derive(Debug)]
pub struct Door {
    options: ConnectOptions,
    keys: Keys,
    program: &'static str,
    acceptor: Option<TlsAcceptor>,
}

/// A session whose server is ready for its first statement.
#[derive(Debug)]
pub struct OpenSession {
    /// The client's end.
    pub client: Socket,
    /// The server's end.
    pub server: Socket,
    /// Bytes of the client that were read and not sent on.
    pub from_client: Vec<u8>,
    /// The parameters of its start-up packet.
    pub parameters: BTreeMap<String, String>,
    /// Its key for cancel requests: the number of the server's process first, in four bytes.
    pub key: Vec<u8>,
    /// True if its messages can be told apart.
    pub understood: bool,
}

impl Door {
    /// A way to this server. `program` is the command, for messages to clients.
    pub fn new(options: ConnectOptions, program: &'static str) -> Self {
        Self { options, keys: Keys::default(), program, acceptor: None }
    }

    /// Encrypts the connections of clients that ask for it. Without it they are refused encryption.
    #[must_use]
    pub fn encrypting(self, acceptor: Option<TlsAcceptor>) -> Self {
        Self { acceptor, ..self }
    }

    /// Relays the beginning of a connection. Authentication passes through.
    /// `defaults` are settings that the session begins with, as in PGOPTIONS; the client's own win.
    /// `None` for a cancel request, which is sent on, or a client that went away.
    ///
    /// # Errors
    /// The client sent what isn't the protocol, or was refused; the text is for the user.
    pub fn open(&self, client: Socket, defaults: &str) -> Result<Option<OpenSession>, String> {
        let way = Way {
            options: &self.options,
            keys: &self.keys,
            program: self.program,
            defaults,
            acceptor: self.acceptor.as_ref(),
        };
        match startup::begin(client, &way)? {
            Beginning::Other => Ok(None),
            Beginning::Refused(_, why) => Err(format!("a connection of the application failed: {why}")),
            Beginning::Started(started) => {
                let Started { client, server, from_client, opened, unseen, key, .. } = *started;
                let parameters = opened.parameters;
                let understood = unseen.is_none();
                Ok(Some(OpenSession { client, server, from_client, parameters, key, understood }))
            }
        }
    }

    /// Forgets the key of a session that has ended.
    pub fn close(&self, key: &[u8]) {
        self.keys.remove(key);
    }
}
