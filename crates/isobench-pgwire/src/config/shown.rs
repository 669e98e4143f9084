//! The display of connection options without passwords.
//!
//! The displayed text is generated from the parsed options, so that no spelling of a password can
//! be missed. A text that can't be parsed and may contain a password isn't displayed at all.

use std::borrow::Cow;
use std::sync::LazyLock;

use super::connection_string::{is_connection_string, parse};
use super::keywords::is_secret;
use super::uri;
use super::values::Values;
use crate::visible::visible;

/// The text displayed instead of a secret value.
const HIDDEN: &str = "***";

/// Parts of the names of such options, which are recognised even if misspelt.
const HINTS: [&str; 4] = ["pass", "pwd", "secret", "_key"];

/// The maximum length of a word before a connection string (`--dbname=`).
const LONGEST_PREFIX: usize = 64;

impl Values {
    /// True if the options contain a password, including one inside another value.
    pub(super) fn have_secret(&self) -> bool {
        self.iter().any(|(name, value)| (is_secret(name) && !value.is_empty()) || holds_secret(value))
    }
}

/// True if a text is a connection string with a password, or another value that is never displayed.
pub fn holds_secret(text: &str) -> bool {
    is_connection_string(text) && parse(text).is_ok_and(|values| values.have_secret())
}

/// True if a text may be intended as a connection string with a password, but isn't one: a text
/// that can't be parsed, or a URI with an unencoded `@` or `/` in the password.
fn may_hold_secret(text: &str) -> bool {
    if !is_connection_string(text) {
        return false;
    }
    let mentions_one = || {
        let text = text.to_ascii_lowercase();
        // In a URI a password is before an @; an address in brackets has none before it.
        let before_host =
            text.split_once("://").is_some_and(|(_, rest)| rest.contains('@') || !rest.starts_with('['));
        before_host || HINTS.iter().any(|hint| text.contains(hint))
    };
    uri::misplaced(text).is_some() || parse(text).is_err() && mentions_one()
}

/// A word in displayable form: a connection string with a password is generated again without it,
/// from its parsed options.
///
/// Other texts are unchanged, except that those that may be intended as such a string are hidden
/// completely.
pub fn shown(text: &str) -> Cow<'_, str> {
    if may_hold_secret(text) {
        return Cow::Borrowed(HIDDEN);
    }
    match parse(text) {
        Ok(values) if holds_secret(text) => Cow::Owned(written(&values)),
        _ => Cow::Borrowed(text),
    }
}

/// The options as keywords and values, with passwords hidden.
fn written(values: &Values) -> String {
    let options = values.iter().map(|(name, value)| {
        let value = if is_secret(name) { Cow::Borrowed(HIDDEN) } else { shown(value) };
        let plain = !value.is_empty() && !value.contains([' ', '\'', '\\', '\t', '\n']);
        if plain {
            format!("{name}={value}")
        } else {
            format!("{name}='{}'", value.replace('\\', r"\\").replace('\'', r"\'"))
        }
    });
    options.collect::<Vec<_>>().join(" ")
}

/// The words of a command line that must be changed in messages that quote them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Concealed(Vec<(String, String)>);

impl Concealed {
    /// Finds connection strings with passwords among words, including those after an option's name
    /// (`-dURI`, `--dbname=URI`).
    pub fn among<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let mut found = Vec::new();
        for word in words {
            let starts = || word.char_indices().take(LONGEST_PREFIX).map(|(start, _)| &word[start..]);
            let string = starts().find(|text| holds_secret(text));
            if let Some(string) = string.or_else(|| starts().find(|text| may_hold_secret(text))) {
                found.push((string.to_owned(), shown(string).into_owned()));
            }
            // The text after the sign may be quoted alone.
            if let Some((_, value)) = word.split_once('=').filter(|_| string.is_none()) {
                found.extend(may_hold_secret(value).then(|| (value.to_owned(), HIDDEN.to_owned())));
            }
        }
        Self(found)
    }

    /// A message with these words in displayable form.
    pub fn hide<'a>(&self, message: &'a str) -> Cow<'a, str> {
        self.0.iter().fold(Cow::Borrowed(message), |message, (word, shown)| {
            if message.contains(word.as_str()) { Cow::Owned(message.replace(word, shown)) } else { message }
        })
    }
}

/// A text that is safe to print: without a server's control characters ([`visible`]), and without the
/// passwords of this program's command line, which messages may quote.
pub fn fit(text: &str) -> String {
    static CONCEALED: LazyLock<Concealed> = LazyLock::new(|| {
        let words: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        Concealed::among(words.iter().skip(1).map(String::as_str))
    });
    CONCEALED.hide(&visible(text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_however_they_are_spelled() {
        for (text, expected) in [
            ("host=db password=hunter2 user=me", "host=db password=*** user=me"),
            ("host=db password = hunter2", "host=db password=***"),
            ("password=a password=hunter2", "password=***"),
            (
                "sslpassword=a\tpassword='it\\'s hunter2' dbname='a b'",
                "dbname='a b' password=*** sslpassword=***",
            ),
            (
                "postgresql://me:hunter2@[::1]:5433,b/db",
                "dbname=db host=::1,b password=*** port=5433, user=me",
            ),
            ("postgres://me@db/x?%70assword=hunter%32", "dbname=x host=db password=*** user=me"),
            ("dbname='host=x password=hunter2'", "dbname='host=x password=***'"),
            ("host= password=hunter2", "host=password=***"),
            ("oauth_client_secret=hunter2", "oauth_client_secret=***"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn what_may_hold_a_password_and_cannot_be_parsed_is_not_shown() {
        for text in [
            "host=db password=my hunter2",
            "password='hunter2",
            "passwd=hunter2",
            "postgresql://me:hun%zzter2@db",
            "postgresql://me:hun/ter2@db/x",
            "postgresql://me:12/ter2@db/x",
            "postgresql://me:hun@ter2@db/x",
            "postgresql://me:[::1%zzhunter2",
            "postgresql://me:/hunter2@db",
            "postgresql://me:p@x/hunter2@db",
        ] {
            assert_eq!(shown(text), HIDDEN, "{text}");
        }
    }

    #[test]
    fn what_holds_no_password_is_shown_as_it_is() {
        for text in [
            "",
            "compare",
            "--clients=1,8",
            "rounds=x",
            "host=db user=password",
            "postgresql://me@db.example.org:5433/app?application_name=x",
            "postgresql://@/db",
            "postgresql://db:5433/a%40b",
            "postgresql://me@@socket/db",
            "host=db password=",
        ] {
            assert_eq!(shown(text), text);
        }
    }

    #[test]
    fn messages_that_quote_a_word_do_not_show_its_password() {
        let words =
            ["run", "-dpassword=hunter2", "--dbnam=postgres://a:hunter2@b", "-Cc", "--x=password=my hunter2"];
        let concealed = Concealed::among(words);
        for word in words {
            for quoted in
                [word, word.strip_prefix("-d").unwrap_or(word), word.split_once('=').map_or(word, |(_, v)| v)]
            {
                if quoted != "hunter2" {
                    let message = format!("unexpected argument '{quoted}' found");
                    assert!(!concealed.hide(&message).contains("hunter2"), "{message}");
                }
            }
        }
        assert_eq!(concealed.hide("clients: x"), "clients: x");
    }
}
