//! Start-up and authentication as a state machine without I/O: it receives frames and produces
//! bytes to send.
//!
//! `connect.rs` has the sockets and the choice of a host.

use md5::{Digest as _, Md5};

use crate::backend::{self, Authentication, Message, SaslMechanisms};
use crate::config::ChannelBinding;
use crate::scram::{Binding, ClientFinal, ClientFirst, SCRAM_SHA_256, SCRAM_SHA_256_PLUS};
use crate::tls::Protection;
use crate::{ConnectOptions, Frame, Host, ProtocolError, Secret, ServerError, frontend};

/// The maximum number of notices and of parameters that are stored; servers usually send under 20.
const REMEMBERED: usize = 1000;

/// The maximum number of bytes of notices, and of parameters, that are stored.
const REMEMBERED_BYTES: usize = 1 << 20;

/// The start-up of a session, from the start-up packet to the first ReadyForQuery.
///
/// Source: PostgreSQL: Protocol, Message Flow, Start-up.
#[derive(Debug)]
pub struct Startup {
    user: String,
    password: Option<Secret>,
    phase: Phase,
    session: ReadySession,
    notices: Notices,
    password_asked: bool,
    binding: ChannelBinding,
    protection: Protection,
    /// True if the server has proved to be the end of the encrypted stream.
    bound: bool,
}

/// The message that the state machine waits for.
enum Phase {
    /// A request for authentication. Followed by `Scram` (SASL), `Authenticated` (Ok), or the same
    /// state (passwords).
    Authentication,
    /// The server's first SCRAM message. Followed by `ScramFinal`.
    Scram {
        scram: ClientFirst,
        /// True if the exchange uses channel binding.
        binds: bool,
    },
    /// The server's proof. Followed by `ScramDone`.
    ScramFinal {
        scram: ClientFinal,
        /// As in `Scram`.
        binds: bool,
    },
    /// The end of authentication after SCRAM. Followed by `Authenticated`.
    ScramDone,
    /// Parameters, the cancel key and ReadyForQuery, which ends start-up.
    Authenticated,
}

impl std::fmt::Debug for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Authentication => "Authentication",
            Self::Scram { .. } => "Scram",
            Self::ScramFinal { .. } => "ScramFinal",
            Self::ScramDone => "ScramDone",
            Self::Authenticated => "Authenticated",
        })
    }
}

/// The server's information about a new session.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReadySession {
    /// The process id of the session's server process; 0 if unknown.
    pub pid: i32,
    /// The secret for cancel requests; empty if the server didn't send one.
    pub key: Vec<u8>,
    /// The run-time parameters it reported, such as `server_version`.
    pub parameters: Vec<(String, String)>,
    /// The notices during start-up, up to the first 1,000 or the first MiB.
    pub notices: Vec<ServerError>,
}

impl ReadySession {
    /// Stores a run-time parameter's new value, unless there are too many.
    pub(crate) fn set_parameter(parameters: &mut Vec<(String, String)>, name: &str, value: &str) {
        let others = parameters.iter().filter(|(known, _)| known != name);
        let used: usize = others.map(|(name, value)| name.len() + value.len()).sum();
        if used + name.len() + value.len() > REMEMBERED_BYTES {
            return;
        }
        if let Some((_, old)) = parameters.iter_mut().find(|(known, _)| known == name) {
            value.clone_into(old);
        } else if parameters.len() < REMEMBERED {
            parameters.push((name.to_owned(), value.to_owned()));
        }
    }
}

/// The first notices of a session, or since they were taken; excess ones are dropped.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Notices {
    kept: Vec<ServerError>,
    bytes: usize,
}

impl Notices {
    /// Stores a notice whose message has this many bytes, unless there are too many.
    pub(crate) fn add(&mut self, notice: backend::ServerMessage<'_>, bytes: usize) {
        if self.kept.len() < REMEMBERED && self.bytes + bytes <= REMEMBERED_BYTES {
            self.bytes += bytes;
            self.kept.push(notice.to_error());
        }
    }

    /// Takes the notices.
    pub(crate) fn take(&mut self) -> Vec<ServerError> {
        std::mem::take(self).kept
    }
}

impl From<Vec<ServerError>> for Notices {
    fn from(kept: Vec<ServerError>) -> Self {
        Self { kept, bytes: 0 }
    }
}

/// The result of processing a frame.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StartupProgress {
    /// Send the bytes appended to the output, if any, and continue.
    Continue,
    /// The session is ready for queries.
    Ready(ReadySession),
}

/// The reason that a session could not be started although the server could be reached.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StartupError {
    /// The server refused, for example because of a wrong password.
    #[error("{}", .0.report(None))]
    Server(Box<ServerError>),
    /// The server requests a password and none was given.
    #[error("fe_sendauth: no password supplied")]
    NoPassword,
    /// The server requests a method that isobench doesn't support.
    #[error("{0} authentication not supported")]
    Unsupported(&'static str),
    /// The server requests an unknown method.
    #[error("authentication method {0} not supported")]
    UnknownMethod(i32),
    /// isobench supports none of the SASL mechanisms offered.
    #[error("none of the server's SASL authentication mechanisms are supported")]
    NoMechanism,
    /// SCRAM failed on the client's side, for example because the server doesn't know the password.
    #[error("SCRAM authentication failed: {0}")]
    Scram(String),
    /// Authentication can't use, or didn't use, the channel binding that `channel_binding`
    /// requires; a sentence.
    #[error("{0}")]
    ChannelBinding(&'static str),
    /// A message of this type arrived before authentication, which no PostgreSQL server sends then.
    #[error("expected authentication request from server, but received {}", char::from(*.0).escape_default())]
    NotAuthentication(u8),
    /// The server sent more than this many bytes before the session was ready.
    #[error("the server sent more than {} MiB during start-up", .0 >> 20)]
    TooMuch(usize),
    /// The peer violates the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

impl Startup {
    /// Starts a session: appends the start-up packet to `out`.
    ///
    /// The password is that of the options, or that of their first host.
    pub fn new(options: &ConnectOptions, out: &mut Vec<u8>) -> Self {
        Self::begin(options, options.hosts.first().and_then(|host| host.password.clone()), out)
    }

    /// Like [`Startup::new`] for a given host of the options.
    pub fn for_host(options: &ConnectOptions, host: &Host, out: &mut Vec<u8>) -> Self {
        Self::begin(options, host.password.clone(), out)
    }

    fn begin(options: &ConnectOptions, host_password: Option<Secret>, out: &mut Vec<u8>) -> Self {
        frontend::startup(out, options.startup_parameters());
        Self {
            user: options.user.clone(),
            password: options.password.clone().or(host_password),
            phase: Phase::Authentication,
            session: ReadySession::default(),
            notices: Notices::default(),
            password_asked: false,
            binding: options.tls.channel_binding,
            protection: Protection::None,
            bound: false,
        }
    }

    /// Sets the protection of the stream; by default it is unprotected.
    #[must_use]
    pub fn over(mut self, protection: Protection) -> Self {
        self.protection = protection;
        self
    }

    /// True if the server has authenticated the client.
    pub fn is_authenticated(&self) -> bool {
        matches!(self.phase, Phase::Authenticated)
    }

    /// True if the server has requested a password.
    pub fn password_asked(&self) -> bool {
        self.password_asked
    }

    /// Processes the server's next message; appends the response to `out`, if there is one.
    ///
    /// # Errors
    ///
    /// The server's refusal, a missing password, or an unsupported method. The session can't be
    /// used then.
    pub fn on_frame(&mut self, frame: Frame<'_>, out: &mut Vec<u8>) -> Result<StartupProgress, StartupError> {
        self.check_turn(frame.tag)?;
        let unexpected = ProtocolError::Unexpected { tag: frame.tag, during: "during start-up" };
        match backend::parse(frame)? {
            Message::ErrorResponse(error) => return Err(StartupError::Server(Box::new(error.to_error()))),
            Message::NoticeResponse(notice) => self.notices.add(notice, frame.body.len()),
            Message::Authentication(request) => self.authenticate(&request, unexpected, out)?,
            // An older minor version suffices, because no newer features are used.
            Message::NegotiateProtocolVersion { .. } => {}
            Message::ParameterStatus { name, value } => {
                ReadySession::set_parameter(&mut self.session.parameters, &name, &value);
            }
            Message::BackendKeyData { pid, key } => {
                self.session.pid = pid;
                key.clone_into(&mut self.session.key);
            }
            Message::ReadyForQuery(_) => {
                self.session.notices = self.notices.take();
                return Ok(StartupProgress::Ready(std::mem::take(&mut self.session)));
            }
            _ => return Err(unexpected.into()),
        }
        Ok(StartupProgress::Continue)
    }

    /// Checks that a message of this type, complete or not, is permitted at this point.
    pub(crate) fn check_turn(&self, tag: u8) -> Result<(), StartupError> {
        let is_early = [
            backend::tag::AUTHENTICATION,
            backend::tag::ERROR_RESPONSE,
            backend::tag::NOTICE_RESPONSE,
            backend::tag::NEGOTIATE_PROTOCOL_VERSION,
        ]
        .contains(&tag);
        if is_early || matches!(self.phase, Phase::Authenticated) {
            Ok(())
        } else {
            Err(StartupError::NotAuthentication(tag))
        }
    }

    fn authenticate(
        &mut self,
        request: &Authentication<'_>,
        unexpected: ProtocolError,
        out: &mut Vec<u8>,
    ) -> Result<(), StartupError> {
        self.check_binding(request)?;
        self.phase = match (std::mem::replace(&mut self.phase, Phase::Authentication), request) {
            (Phase::Authentication | Phase::ScramDone, Authentication::Ok) => Phase::Authenticated,
            (Phase::Authentication, Authentication::CleartextPassword) => {
                frontend::password(out, self.password()?.as_bytes());
                Phase::Authentication
            }
            (Phase::Authentication, Authentication::Md5Password { salt }) => {
                let user = self.user.clone();
                let hash = md5_hash(&user, self.password()?, *salt);
                frontend::password(out, hash.as_bytes());
                Phase::Authentication
            }
            (Phase::Authentication, Authentication::Sasl(offered)) => self.begin_scram(*offered, out)?,
            (Phase::Scram { scram, binds }, Authentication::SaslContinue(message)) => {
                let scram = scram.answer(message).map_err(StartupError::Scram)?;
                frontend::sasl_response(out, scram.message().as_bytes());
                Phase::ScramFinal { scram, binds }
            }
            (Phase::ScramFinal { scram, binds }, Authentication::SaslFinal(message)) => {
                scram.check(message).map_err(StartupError::Scram)?;
                self.bound = binds;
                Phase::ScramDone
            }
            (Phase::Authentication, Authentication::Other(code)) => return Err(unsupported(*code)),
            _ => return Err(unexpected.into()),
        };
        Ok(())
    }

    /// Refuses messages that `channel_binding=require` forbids. The texts are libpq's.
    fn check_binding(&self, request: &Authentication<'_>) -> Result<(), StartupError> {
        if self.binding != ChannelBinding::Require || self.bound {
            return Ok(());
        }
        match request {
            Authentication::Ok => Err(StartupError::ChannelBinding(
                "channel binding required, but server authenticated client without channel binding",
            )),
            Authentication::Sasl(_) | Authentication::SaslContinue(_) | Authentication::SaslFinal(_) => {
                Ok(())
            }
            _ => Err(StartupError::ChannelBinding(
                "channel binding required but not supported by server's authentication request",
            )),
        }
    }

    fn begin_scram(&mut self, offered: SaslMechanisms<'_>, out: &mut Vec<u8>) -> Result<Phase, StartupError> {
        let offers = |mechanism: &str| offered.iter().any(|name| name == mechanism.as_bytes());
        let (offers_plus, is_required) =
            (offers(SCRAM_SHA_256_PLUS), self.binding == ChannelBinding::Require);
        let (mechanism, binding) = match &self.protection {
            Protection::None if is_required => {
                return Err(StartupError::ChannelBinding("channel binding required, but SSL not in use"));
            }
            Protection::None if offers_plus => {
                return Err(StartupError::ChannelBinding(
                    "server offered SCRAM-SHA-256-PLUS authentication over a non-SSL connection",
                ));
            }
            Protection::Tls { end_point: Some(data) }
                if offers_plus && self.binding != ChannelBinding::Disable =>
            {
                (SCRAM_SHA_256_PLUS, Binding::EndPoint(data.clone()))
            }
            Protection::Tls { .. } if is_required => {
                return Err(StartupError::ChannelBinding(
                    "channel binding is required, but server did not offer an authentication method that supports \
                     channel binding",
                ));
            }
            Protection::Tls { end_point: Some(_) } if self.binding == ChannelBinding::Prefer => {
                (SCRAM_SHA_256, Binding::NotOffered)
            }
            Protection::Tls { .. } | Protection::None => (SCRAM_SHA_256, Binding::Unsupported),
        };
        if !offers(mechanism) {
            return Err(StartupError::NoMechanism);
        }
        let scram = ClientFirst::new(self.password()?, binding).map_err(StartupError::Scram)?;
        frontend::sasl_initial(out, mechanism, scram.message().as_bytes());
        Ok(Phase::Scram { scram, binds: mechanism == SCRAM_SHA_256_PLUS })
    }

    fn password(&mut self) -> Result<&str, StartupError> {
        self.password_asked = true;
        match &self.password {
            Some(password) if !password.expose().is_empty() => Ok(password.expose()),
            _ => Err(StartupError::NoPassword),
        }
    }
}

/// The answer to a request for a password hashed by MD5.
///
/// Source: PostgreSQL: Protocol, Message Flow, `AuthenticationMD5Password`.
fn md5_hash(user: &str, password: &str, salt: [u8; 4]) -> String {
    let stored = hex(&Md5::digest([password, user].concat()));
    format!("md5{}", hex(&Md5::digest([stored.as_bytes(), &salt].concat())))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The names of methods in the protocol that isobench doesn't support.
fn unsupported(code: i32) -> StartupError {
    match code {
        2 => StartupError::Unsupported("Kerberos 5"),
        4 => StartupError::Unsupported("Crypt"),
        7 | 8 => StartupError::Unsupported("GSSAPI"),
        9 => StartupError::Unsupported("SSPI"),
        code => StartupError::UnknownMethod(code),
    }
}
