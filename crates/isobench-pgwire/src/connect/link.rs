//! Connections to a server before any start-up packet, for a program that relays the sessions of
//! others: it has no password, and the packet comes from its client.

use std::collections::VecDeque;
use std::fmt;

use super::encryption::{self, EncryptionChoice, Secured};
use super::{ConnectProblem, FailedAttempt, limit, not_in_time};
use crate::ConnectOptions;
use crate::cancel::CancelRoute;
use crate::config::Host;
use crate::endpoint::Endpoint;
use crate::socket::{Deadline, Socket};
use crate::tls::Protection;

/// A connection to a server, encrypted as the options say, on which nothing was sent yet.
#[derive(Debug)]
pub struct Link {
    /// The socket, in blocking mode.
    pub socket: Socket,
    /// True if it is encrypted.
    pub encrypted: bool,
    /// True if another use of encryption remains to be tried at the same place, should the server refuse
    /// the session before it asks for authentication. Source: libpq: sslmode.
    pub other_choice: bool,
    /// Where cancel requests for the session go.
    pub cancel: CancelRoute,
}

/// The ways to a server, in libpq's order: hosts, their addresses, and the uses of encryption that
/// the mode permits. Each is opened when it is asked for.
pub struct Links<'a> {
    options: &'a ConnectOptions,
    hosts: VecDeque<&'a Host>,
    host: Option<&'a Host>,
    endpoints: VecDeque<Endpoint>,
    choices: VecDeque<EncryptionChoice>,
}

impl fmt::Debug for Links<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("hosts", &self.hosts.len()).finish_non_exhaustive()
    }
}

impl<'a> Links<'a> {
    /// The ways that the options name. `target_session_attrs` needs a session, so it has no effect.
    pub fn new(options: &'a ConnectOptions) -> Self {
        Self {
            options,
            hosts: options.hosts.iter().collect(),
            host: None,
            endpoints: VecDeque::new(),
            choices: VecDeque::new(),
        }
    }

    /// Skips the uses of encryption that remain at the current place.
    pub fn leave_place(&mut self) {
        self.choices.clear();
    }

    /// The next connection that can be made; `None` if no way is left.
    ///
    /// # Errors
    ///
    /// The problem with one way. The next call tries the next one.
    pub fn next_link(&mut self) -> Option<Result<Link, FailedAttempt>> {
        while self.choices.is_empty() {
            if self.endpoints.pop_front().is_none() || self.endpoints.is_empty() {
                let host = self.hosts.pop_front()?;
                self.host = Some(host);
                match Endpoint::lookup(host) {
                    Ok(found) => self.endpoints = found.into(),
                    Err(text) => {
                        let problem = ConnectProblem::Address(text);
                        return Some(Err(FailedAttempt { place: None, problem }));
                    }
                }
            }
            if let Some(endpoint) = self.endpoints.front() {
                self.choices = encryption::choices(self.options.ssl_mode, endpoint).iter().copied().collect();
            }
        }
        let (host, choice) = (self.host?, self.choices.pop_front()?);
        let endpoint = self.endpoints.front()?.clone();
        Some(self.open(host, &endpoint, choice))
    }

    fn open(
        &mut self,
        host: &Host,
        endpoint: &Endpoint,
        choice: EncryptionChoice,
    ) -> Result<Link, FailedAttempt> {
        let deadline = Deadline::after(limit(self.options), &self.options.patience);
        let socket = endpoint.open(&deadline, Some(self.options)).map_err(|error| {
            // The system reports its own timeout by the same error.
            let over = deadline.left().err().map(|over| not_in_time(over, self.options));
            self.choices.clear();
            FailedAttempt::new(endpoint, over.unwrap_or(ConnectProblem::Unreachable(error)))
        })?;
        let secured = encryption::secure(socket, choice, self.options, host, &deadline);
        let Secured { socket, protection, client } = secured.map_err(|failure| {
            if !failure.other_choice_may_help {
                self.choices.clear();
                if failure.problem.is_final() {
                    self.hosts.clear();
                    self.endpoints.clear();
                }
            }
            FailedAttempt::new(endpoint, failure.problem)
        })?;
        let encrypted = protection != Protection::None;
        let differs = choice == EncryptionChoice::Plain || encrypted;
        let cancel = CancelRoute::new(endpoint.clone(), self.options.connect_timeout, client);
        Ok(Link { socket, encrypted, other_choice: differs && !self.choices.is_empty(), cancel })
    }
}
