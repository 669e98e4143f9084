//! The client's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS, without I/O. The cryptography is ring's,
//! the preparation of passwords `stringprep`'s.
//!
//! Source: RFC 5802, RFC 7677; PostgreSQL: Protocol, SASL Authentication. The texts of errors are
//! libpq's.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac, pbkdf2};

/// The name of the mechanism without channel binding.
pub(crate) const SCRAM_SHA_256: &str = "SCRAM-SHA-256";

/// The name of the mechanism with channel binding.
pub(crate) const SCRAM_SHA_256_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// The number of random bytes in a nonce, as in libpq.
const NONCE: usize = 18;

/// The maximum number of hash iterations that a server can request, about ten seconds. PostgreSQL
/// requests 4,096.
const ITERATIONS: u32 = 10_000_000;

/// What the client states about channel binding.
pub(crate) enum Binding {
    /// The client doesn't support it.
    Unsupported,
    /// The client supports it, and the server didn't offer it. The server detects by this if its
    /// offer was removed by a man in the middle.
    NotOffered,
    /// It is used, with this data for `tls-server-end-point`.
    EndPoint(Vec<u8>),
}

impl Binding {
    fn header(&self) -> &'static str {
        match self {
            Self::Unsupported => "n,,",
            Self::NotOffered => "y,,",
            Self::EndPoint(_) => "p=tls-server-end-point,,",
        }
    }

    /// The header and the data in base64, as the client's final message repeats them.
    fn encoded(&self) -> String {
        let mut input = self.header().as_bytes().to_vec();
        if let Self::EndPoint(data) = self {
            input.extend(data);
        }
        BASE64.encode(input)
    }
}

/// An exchange whose first message is sent; the server's first message follows.
pub(crate) struct ClientFirst {
    password: String,
    binding: Binding,
    nonce: String,
}

impl ClientFirst {
    /// Starts an exchange with a random nonce.
    ///
    /// A password that isn't valid by `SASLprep` is used as it is, since PostgreSQL accepts any.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub(crate) fn new(password: &str, binding: Binding) -> Result<Self, String> {
        let mut nonce = [0; NONCE];
        SystemRandom::new().fill(&mut nonce).map_err(|_| "could not generate nonce".to_owned())?;
        Ok(Self::with_nonce(password, binding, BASE64.encode(nonce)))
    }

    fn with_nonce(password: &str, binding: Binding, nonce: String) -> Self {
        let prepared = stringprep::saslprep(password);
        let password = prepared.map_or_else(|_| password.to_owned(), std::borrow::Cow::into_owned);
        Self { password, binding, nonce }
    }

    /// The client's first message. The user is that of the start-up packet, so its name is empty.
    pub(crate) fn message(&self) -> String {
        format!("{}{}", self.binding.header(), self.bare())
    }

    fn bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    /// Answers the server's first message with the client's proof.
    ///
    /// # Errors
    ///
    /// The message is malformed, belongs to another exchange, or requests too many iterations.
    pub(crate) fn answer(&self, server_first: &[u8]) -> Result<ClientFinal, String> {
        let text = text(server_first)?;
        let (nonce, rest) = attribute(text, 'r')?;
        let (salt, rest) = attribute(rest.unwrap_or_default(), 's')?;
        let (iterations, rest) = attribute(rest.unwrap_or_default(), 'i')?;
        if !nonce.starts_with(&self.nonce) {
            return Err("invalid SCRAM response (nonce mismatch)".to_owned());
        }
        let salt = BASE64.decode(salt).map_err(|_| malformed("invalid salt"))?;
        let iterations = iterations_of(iterations)?;
        if rest.is_some() {
            return Err(malformed("garbage at end of server-first-message"));
        }

        let mut salted_password = [0; digest::SHA256_OUTPUT_LEN];
        let password = self.password.as_bytes();
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, &salt, password, &mut salted_password);
        let salted_password = key(&salted_password);
        let client_key = hmac::sign(&salted_password, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, client_key.as_ref());

        let without_proof = format!("c={},r={nonce}", self.binding.encoded());
        let transcript = format!("{},{text},{without_proof}", self.bare());
        let signature = hmac::sign(&key(stored_key.as_ref()), transcript.as_bytes());
        let proof: Vec<u8> = client_key
            .as_ref()
            .iter()
            .zip(signature.as_ref())
            .map(|(key, signature)| key ^ signature)
            .collect();
        Ok(ClientFinal {
            message: format!("{without_proof},p={}", BASE64.encode(proof)),
            server_key: key(hmac::sign(&salted_password, b"Server Key").as_ref()),
            transcript,
        })
    }
}

/// An exchange whose final message is sent; the server's proof follows.
pub(crate) struct ClientFinal {
    message: String,
    server_key: hmac::Key,
    transcript: String,
}

impl ClientFinal {
    /// The client's final message.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Checks the server's final message, which proves that the server knows the password.
    ///
    /// # Errors
    ///
    /// The server refused, or its proof is wrong or malformed.
    pub(crate) fn check(&self, server_final: &[u8]) -> Result<(), String> {
        let text = text(server_final)?;
        if let Ok((why, _)) = attribute(text, 'e') {
            return Err(format!("error received from server in SCRAM exchange: {why}"));
        }
        let (signature, rest) = attribute(text, 'v')?;
        if rest.is_some() {
            return Err(malformed("garbage at end of server-final-message"));
        }
        let signature = BASE64.decode(signature).map_err(|_| malformed("invalid server signature"))?;
        hmac::verify(&self.server_key, self.transcript.as_bytes(), &signature)
            .map_err(|_| "incorrect server signature".to_owned())
    }
}

fn key(bytes: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, bytes)
}

fn malformed(what: &str) -> String {
    format!("malformed SCRAM message ({what})")
}

fn text(message: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(message).map_err(|_| malformed("not UTF-8"))
}

/// Splits a message into the value of its first attribute, which must have this name, and what
/// follows the comma after it, if there is one.
fn attribute(message: &str, name: char) -> Result<(&str, Option<&str>), String> {
    let value = message.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
    let value = value.ok_or_else(|| malformed(&format!("attribute \"{name}\" expected")))?;
    Ok(value.split_once(',').map_or((value, None), |(value, rest)| (value, Some(rest))))
}

/// Refuses a number of iterations that would take hours, and zero, which would reveal too much about
/// the password to an eavesdropper. RFC 5802, §5.1: a positive number.
fn iterations_of(text: &str) -> Result<NonZeroU32, String> {
    let asked = text.parse::<u64>().map_err(|_| malformed("invalid iteration count"))?;
    match u32::try_from(asked) {
        Ok(asked) if asked <= ITERATIONS => {
            NonZeroU32::new(asked).ok_or_else(|| malformed("invalid iteration count"))
        }
        _ => Err(format!("the server asks for {asked} iterations")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7677, section 3, without the user's name, which PostgreSQL has in the start-up packet.
    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const SERVER_FIRST: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    fn exchange(binding: Binding) -> ClientFirst {
        ClientFirst::with_nonce("pencil", binding, NONCE.to_owned())
    }

    /// The messages were made by Python's `hmac` and `hashlib` from RFC 5802's definitions.
    #[test]
    fn the_client_proves_and_checks() {
        let first = exchange(Binding::Unsupported);
        assert_eq!(first.message(), "n,,n=,r=rOprNGfwEbeRWgbNEkqO");
        let last = first.answer(SERVER_FIRST.as_bytes()).expect("well-formed");
        assert_eq!(
            last.message(),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=qvT2SWdEH5Q06albL+hjSYuUhCG7VndFyzIb7CK4n9k="
        );
        assert_eq!(last.check(b"v=3HO6Qt1M4MKJrmlKaoOqLAI0/0TV0HZe7J9H3MBtSOg="), Ok(()));
        let check = |message: &str| last.check(message.as_bytes()).expect_err("not the proof");
        assert_eq!(check("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="), "incorrect server signature");
        assert_eq!(check("v=6rri"), "incorrect server signature");
        assert_eq!(check("v="), "incorrect server signature");
        assert_eq!(check("v=%"), "malformed SCRAM message (invalid server signature)");
        assert_eq!(check("e=other-error"), "error received from server in SCRAM exchange: other-error");
        assert_eq!(check("x=1"), "malformed SCRAM message (attribute \"v\" expected)");
        assert_eq!(
            check("v=3HO6Qt1M4MKJrmlKaoOqLAI0/0TV0HZe7J9H3MBtSOg=,x=1"),
            "malformed SCRAM message (garbage at end of server-final-message)"
        );
    }

    #[test]
    fn the_proof_covers_the_channel_binding() {
        let proof = |binding| exchange(binding).answer(SERVER_FIRST.as_bytes()).expect("well-formed").message;
        assert_eq!(
            proof(Binding::NotOffered),
            "c=eSws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=VpuC5DGQa5ro9tXE9MnKs69NH1nxnuregZZcclqIGfM="
        );
        assert_eq!(
            proof(Binding::EndPoint(b"hash".to_vec())),
            "c=cD10bHMtc2VydmVyLWVuZC1wb2ludCwsaGFzaA==,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=PQ32zsbW0V2kQaTumoyGg220NMxJBYBQ+gBt0L+C6jI="
        );
    }

    #[test]
    fn malformed_first_messages_are_refused() {
        let why = |message: &str| {
            exchange(Binding::Unsupported).answer(message.as_bytes()).err().expect("malformed")
        };
        let expected = |name| format!("malformed SCRAM message (attribute \"{name}\" expected)");
        assert_eq!(why(""), expected('r'));
        assert_eq!(why("m=x,r=rOprNGfwEbeRWgbNEkqO1,s=W22Z,i=1"), expected('r'));
        assert_eq!(why("r=rOprNGfwEbeRWgbNEkqO1"), expected('s'));
        assert_eq!(why("r=rOprNGfwEbeRWgbNEkqO1,s=W22Z"), expected('i'));
        assert_eq!(why("r=rOprNGfwEbeRWgbNEk,s=W22Z,i=1"), "invalid SCRAM response (nonce mismatch)");
        assert_eq!(why("r=rOprNGfwEbeRWgbNEkqO1,s=W,i=1"), "malformed SCRAM message (invalid salt)");
        for count in ["", "x", "-1", "0", "99999999999999999999"] {
            let message = format!("r=rOprNGfwEbeRWgbNEkqO1,s=W22Z,i={count}");
            assert_eq!(why(&message), "malformed SCRAM message (invalid iteration count)", "{count:?}");
        }
        assert_eq!(
            why("r=rOprNGfwEbeRWgbNEkqO1,s=W22Z,i=10000001"),
            "the server asks for 10000001 iterations"
        );
        assert_eq!(
            why("r=rOprNGfwEbeRWgbNEkqO1,s=W22Z,i=1,x=y"),
            "malformed SCRAM message (garbage at end of server-first-message)"
        );
    }

    /// RFC 4013, section 3; a password with a control character is used as it is.
    #[test]
    fn passwords_are_prepared() {
        let prepared =
            |password| ClientFirst::with_nonce(password, Binding::Unsupported, String::new()).password;
        assert_eq!(prepared("I\u{ad}X"), "IX");
        assert_eq!(prepared("\u{2168}"), "IX");
        assert_eq!(prepared("\u{7}"), "\u{7}");
    }

    #[test]
    fn every_exchange_has_a_nonce_of_its_own() {
        let nonce = || ClientFirst::new("", Binding::Unsupported).map(|first| first.nonce);
        assert_ne!(nonce(), nonce());
        assert_eq!(nonce().map(|nonce| nonce.len()), Ok(24));
    }
}
