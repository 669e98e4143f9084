//! How a server reads the texts of a session: by settings that it reports.
//!
//! It reads a text before it executes anything of it. What an earlier statement changed is reported at
//! once or, since PostgreSQL 14, before it is ready for the next one; so within a pipeline nothing is
//! certain once a statement was executed.

use isobench_script::lexer::Backslashes;

/// How a server reads a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// What backslashes do, if that is certain.
    pub(crate) backslashes: Option<Backslashes>,
    /// True if a byte below 128 may be a part of another character.
    pub(crate) mixes_bytes: bool,
}

impl Reading {
    /// Nothing is certain.
    pub(crate) const UNKNOWN: Reading = Reading { backslashes: None, mixes_bytes: true };

    /// That of a server's log, which is in an encoding of servers.
    pub(crate) const LOGGED: Reading = Reading { backslashes: None, mixes_bytes: false };

    /// True if the marks in a text are where they seem to be.
    pub(crate) fn sees_marks(self, text: &[u8]) -> bool {
        !self.mixes_bytes || text.is_ascii()
    }
}

/// How the server reads the texts of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SessionReading {
    reported: Reading,
    /// What was reported when the server was last ready.
    settled: Reading,
    /// Something was executed since then.
    executed: bool,
}

impl Default for SessionReading {
    fn default() -> Self {
        Self { reported: Reading::UNKNOWN, settled: Reading::UNKNOWN, executed: false }
    }
}

impl SessionReading {
    /// Takes the body of a ParameterStatus.
    pub(crate) fn report(&mut self, body: &[u8]) {
        let mut texts = body.split(|byte| *byte == 0);
        let (Some(name), Some(value)) = (texts.next(), texts.next()) else { return };
        match name {
            b"standard_conforming_strings" => {
                self.reported.backslashes = match value {
                    b"on" => Some(Backslashes::Plain),
                    b"off" => Some(Backslashes::Escape),
                    _ => None,
                };
            }
            b"client_encoding" => self.reported.mixes_bytes = mixes_bytes(value),
            _ => {}
        }
    }

    /// The server is ready. Returns whether it reads the next text otherwise than the last one.
    pub(crate) fn ready(&mut self) -> bool {
        let changed = self.settled != self.reported;
        (self.settled, self.executed) = (self.reported, false);
        changed
    }

    /// A statement was executed.
    pub(crate) fn executed(&mut self) {
        self.executed = true;
    }

    /// How it reads the text that it reads next.
    pub(crate) fn next(self) -> Reading {
        if self.executed { Reading::UNKNOWN } else { self.settled }
    }
}

/// True if in an encoding of the client a byte below 128 may be a part of another character. Source:
/// PostgreSQL manual, "Supported Character Sets": those that no server has.
fn mixes_bytes(encoding: &[u8]) -> bool {
    let mixing = ["BIG5", "GB18030", "GBK", "JOHAB", "SHIFT_JIS_2004", "SHIFT_JIS", "SJIS", "UHC"];
    mixing.iter().any(|mixing| encoding.eq_ignore_ascii_case(mixing.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_counts_from_when_the_server_is_ready() {
        let mut session = SessionReading::default();
        assert_eq!(session.next(), Reading::UNKNOWN);
        session.report(b"standard_conforming_strings\0on\0");
        session.report(b"client_encoding\0UTF8\0");
        assert!(session.ready());
        let plain = Reading { backslashes: Some(Backslashes::Plain), mixes_bytes: false };
        assert_eq!(session.next(), plain);
        session.report(b"standard_conforming_strings\0off\0");
        session.report(b"client_encoding\0SJIS\0");
        assert_eq!(session.next(), plain);
        session.executed();
        assert_eq!(session.next(), Reading::UNKNOWN);
        assert!(session.ready() && !session.ready());
        assert_eq!(session.next(), Reading { backslashes: Some(Backslashes::Escape), mixes_bytes: true });
    }
}
