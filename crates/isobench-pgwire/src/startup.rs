//! Start-up and authentication as a state machine without I/O: frames in, bytes to send out.
//!
//! Sockets and the choice of a host are in `connect.rs`.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding as ScramBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};

use crate::backend::{self, Authentication, Message, SaslMechanisms};
use crate::config::ChannelBinding;
use crate::tls::Protection;
use crate::{ConnectOptions, Frame, Host, ProtocolError, Secret, ServerError, frontend};

/// The most notices and parameters that are remembered; a sane server sends under 20.
const REMEMBERED: usize = 1000;

/// The most bytes of notices, and of parameters, that are remembered.
const REMEMBERED_BYTES: usize = 1 << 20;

/// The most rounds of hashing that a server can make us compute: about ten seconds. PostgreSQL asks
/// for 4,096.
const SCRAM_ITERATIONS: u32 = 10_000_000;

/// One start-up of a session, from the start-up packet to the first ReadyForQuery.
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
    /// Whether the server has proved to be the end of the encrypted stream.
    bound: bool,
}

/// What the state machine waits for.
enum Phase {
    /// A request for authentication. Goes to `Scram` (SASL), `Authenticated` (Ok), or stays
    /// (passwords).
    Authentication,
    /// The server's first SCRAM message (it answers ours). Goes to `ScramFinal`.
    Scram {
        scram: Box<ScramSha256>,
        /// The exchange is tied to the encrypted stream.
        binds: bool,
    },
    /// The server's proof. Goes to `ScramDone`.
    ScramFinal {
        scram: Box<ScramSha256>,
        /// As with `Scram`.
        binds: bool,
    },
    /// Authentication's end after SCRAM. Goes to `Authenticated`.
    ScramDone,
    /// Parameters, the cancel key and ReadyForQuery, which is the end.
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

/// What the server has told about a new session.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ReadySession {
    /// Process id of the session's server process; 0 if the server didn't say.
    pub pid: i32,
    /// The secret that a cancel request must show; empty if the server didn't send one.
    pub key: Vec<u8>,
    /// The run-time parameters it reported, such as `server_version`.
    pub parameters: Vec<(String, String)>,
    /// Notices during start-up, the first 1,000 or the first MiB of them.
    pub notices: Vec<ServerError>,
}

impl ReadySession {
    /// Remembers a run-time parameter's new value, unless that is too much.
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

/// The first notices of a session, or since they were taken; what is too much is left out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Notices {
    kept: Vec<ServerError>,
    bytes: usize,
}

impl Notices {
    /// Remembers a notice whose message is this long, unless there is too much already.
    pub(crate) fn add(&mut self, notice: backend::ServerMessage<'_>, bytes: usize) {
        if self.kept.len() < REMEMBERED && self.bytes + bytes <= REMEMBERED_BYTES {
            self.bytes += bytes;
            self.kept.push(notice.to_error());
        }
    }

    /// Hands them out.
    pub(crate) fn take(&mut self) -> Vec<ServerError> {
        std::mem::take(self).kept
    }
}

impl From<Vec<ServerError>> for Notices {
    fn from(kept: Vec<ServerError>) -> Self {
        Self { kept, bytes: 0 }
    }
}

/// What came of one frame.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StartupProgress {
    /// Send what was appended to the output, if anything, and go on.
    Continue,
    /// The session waits for queries.
    Ready(ReadySession),
}

/// Why a session could not be started although the server could be reached.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum StartupError {
    /// The server refused, for instance because of a wrong password.
    #[error("{}", .0.report(None))]
    Server(Box<ServerError>),
    /// The server asks for a password and none was given.
    #[error("fe_sendauth: no password supplied")]
    NoPassword,
    /// The server asks for a method isobench doesn't have.
    #[error("{0} authentication not supported")]
    Unsupported(&'static str),
    /// The server asks for a method unknown to isobench.
    #[error("authentication method {0} not supported")]
    UnknownMethod(i32),
    /// Of the SASL mechanisms offered isobench has none.
    #[error("none of the server's SASL authentication mechanisms are supported")]
    NoMechanism,
    /// SCRAM failed on the client's side, for instance because the server doesn't know the password
    /// itself.
    #[error("SCRAM authentication failed: {0}")]
    Scram(String),
    /// Authentication can't be, or wasn't, tied to the encrypted stream as `channel_binding`
    /// demands; a sentence.
    #[error("{0}")]
    ChannelBinding(&'static str),
    /// Before authentication came a message of this type, which no PostgreSQL server sends then.
    #[error("expected authentication request from server, but received {}", char::from(*.0).escape_default())]
    NotAuthentication(u8),
    /// It sent more than this many bytes, and the session still isn't there.
    #[error("the server sent more than {} MiB during start-up", .0 >> 20)]
    TooMuch(usize),
    /// The peer violates the protocol.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
}

impl Startup {
    /// Begins a session: appends the start-up packet to `out`.
    ///
    /// The password is that of the options, else that of their first host.
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

    /// Says how the stream is protected; it isn't unless this is called.
    #[must_use]
    pub fn over(mut self, protection: Protection) -> Self {
        self.protection = protection;
        self
    }

    /// Whether the server has accepted who we are.
    pub fn is_authenticated(&self) -> bool {
        matches!(self.phase, Phase::Authenticated)
    }

    /// Whether the server has asked for a password.
    pub fn password_asked(&self) -> bool {
        self.password_asked
    }

    /// Takes the server's next message; appends the answer to `out`, if one is due.
    ///
    /// # Errors
    ///
    /// The server's refusal, a missing password, or a method that is not supported. The session is
    /// lost then.
    pub fn on_frame(&mut self, frame: Frame<'_>, out: &mut Vec<u8>) -> Result<StartupProgress, StartupError> {
        self.check_turn(frame.tag)?;
        let unexpected = ProtocolError::Unexpected { tag: frame.tag, during: "during start-up" };
        match backend::parse(frame)? {
            Message::ErrorResponse(error) => return Err(StartupError::Server(Box::new(error.to_error()))),
            Message::NoticeResponse(notice) => self.notices.add(notice, frame.body.len()),
            Message::Authentication(request) => self.authenticate(&request, unexpected, out)?,
            // An older minor version is as good: nothing of a newer one is used.
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

    /// Checks whether a message of this type, complete or not, can come now.
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
                let hash = md5_hash(user.as_bytes(), self.password()?.as_bytes(), *salt);
                frontend::password(out, hash.as_bytes());
                Phase::Authentication
            }
            (Phase::Authentication, Authentication::Sasl(offered)) => self.begin_scram(*offered, out)?,
            (Phase::Scram { mut scram, binds }, Authentication::SaslContinue(message)) => {
                check_iterations(message)?;
                scram.update(message).map_err(|error| StartupError::Scram(error.to_string()))?;
                frontend::sasl_response(out, scram.message());
                Phase::ScramFinal { scram, binds }
            }
            (Phase::ScramFinal { mut scram, binds }, Authentication::SaslFinal(message)) => {
                scram.finish(message).map_err(|error| StartupError::Scram(error.to_string()))?;
                self.bound = binds;
                Phase::ScramDone
            }
            (Phase::Authentication, Authentication::Other(code)) => return Err(unsupported(*code)),
            _ => return Err(unexpected.into()),
        };
        Ok(())
    }

    /// Refuses what `channel_binding=require` forbids. Texts: libpq.
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
                (SCRAM_SHA_256_PLUS, ScramBinding::tls_server_end_point(data.clone()))
            }
            Protection::Tls { .. } if is_required => {
                return Err(StartupError::ChannelBinding(
                    "channel binding is required, but server did not offer an authentication method that supports \
                     channel binding",
                ));
            }
            // Says that binding was possible, so that the server notices if its offer was taken
            // away on the way.
            Protection::Tls { end_point: Some(_) } if self.binding == ChannelBinding::Prefer => {
                (SCRAM_SHA_256, ScramBinding::unrequested())
            }
            Protection::Tls { .. } | Protection::None => (SCRAM_SHA_256, ScramBinding::unsupported()),
        };
        if !offers(mechanism) {
            return Err(StartupError::NoMechanism);
        }
        let scram = ScramSha256::new(self.password()?.as_bytes(), binding);
        frontend::sasl_initial(out, mechanism, scram.message());
        Ok(Phase::Scram { scram: Box::new(scram), binds: mechanism == SCRAM_SHA_256_PLUS })
    }

    fn password(&mut self) -> Result<&str, StartupError> {
        self.password_asked = true;
        match &self.password {
            Some(password) if !password.expose().is_empty() => Ok(password.expose()),
            _ => Err(StartupError::NoPassword),
        }
    }
}

/// Refuses a number of iterations that would keep us busy for hours, and one that hashes nothing
/// (in libpq's words): whoever listens would learn too much of the password. RFC 5802, §5.1: a
/// positive number.
fn check_iterations(server_first: &[u8]) -> Result<(), StartupError> {
    let asked = server_first.split(|&byte| byte == b',').find_map(|part| part.strip_prefix(b"i="));
    let asked =
        asked.and_then(|text| std::str::from_utf8(text).ok()).and_then(|text| text.parse::<u64>().ok());
    match asked {
        Some(asked) if asked > SCRAM_ITERATIONS.into() => {
            Err(StartupError::Scram(format!("the server asks for {asked} iterations")))
        }
        Some(0) => Err(StartupError::Scram("malformed SCRAM message (invalid iteration count)".to_owned())),
        _ => Ok(()),
    }
}

/// Names the methods that the protocol knows and isobench doesn't.
fn unsupported(code: i32) -> StartupError {
    match code {
        2 => StartupError::Unsupported("Kerberos 5"),
        4 => StartupError::Unsupported("Crypt"),
        7 | 8 => StartupError::Unsupported("GSSAPI"),
        9 => StartupError::Unsupported("SSPI"),
        code => StartupError::UnknownMethod(code),
    }
}
