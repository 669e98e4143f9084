//! Splits a command line into options and operands exactly as glibc's `getopt_long` does, with its
//! messages.
//!
//! Not here: the options (`table`) and their effects (`collected`).

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

/// The spelling of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelling {
    /// The long name, without `--`.
    pub long: &'static str,
    /// The short form, without `-`.
    pub short: Option<char>,
    /// It has an argument.
    pub argument: bool,
}

/// The words of a command line that remain to be read.
#[derive(Debug)]
pub(super) struct Getopt<T> {
    options: Vec<(Spelling, T)>,
    rest: VecDeque<Vec<u8>>,
    /// The rest of a word of short options, in bytes, as in C.
    bundle: VecDeque<u8>,
    operands: Vec<String>,
    /// The first operand ends the options (`POSIXLY_CORRECT`).
    posix: bool,
}

impl<T: Copy> Getopt<T> {
    /// The words of a command line, without the program's name.
    pub fn new(options: Vec<(Spelling, T)>, words: impl IntoIterator<Item = OsString>, posix: bool) -> Self {
        let rest = words.into_iter().map(OsString::into_vec).collect();
        Getopt { options, rest, bundle: VecDeque::new(), operands: Vec::new(), posix }
    }

    /// Returns the next option and its argument (empty if it has none), or `None` if only operands
    /// are left. Arguments that aren't UTF-8 are converted as far as possible.
    ///
    /// # Errors
    /// The message without the program's name, in bytes: of a bad short option only the first byte
    /// is named.
    pub fn next(&mut self) -> Result<Option<(T, String)>, Vec<u8>> {
        loop {
            if let Some(letter) = self.bundle.pop_front() {
                return self.short(letter).map(Some);
            }
            let Some(word) = self.rest.pop_front() else { return Ok(None) };
            match word.as_slice() {
                b"--" => self.operands.extend(self.rest.drain(..).map(text)),
                [b'-', b'-', long @ ..] => return self.long(long).map(Some),
                [b'-', bundle @ ..] if !bundle.is_empty() => self.bundle.extend(bundle),
                _ => {
                    self.operands.push(text(word));
                    if self.posix {
                        self.operands.extend(self.rest.drain(..).map(text));
                    }
                }
            }
        }
    }

    /// The words that aren't options, in their order.
    pub fn operands(self) -> Vec<String> {
        self.operands
    }

    fn short(&mut self, letter: u8) -> Result<(T, String), Vec<u8>> {
        let wrong = |what: &str| [what.as_bytes(), b" -- '", &[letter], b"'"].concat();
        let found = self.options.iter().find(|(spelling, _)| spelling.short == Some(char::from(letter)));
        let (spelling, option) = *found.ok_or_else(|| wrong("invalid option"))?;
        if !spelling.argument {
            return Ok((option, String::new()));
        }
        if !self.bundle.is_empty() {
            return Ok((option, text(self.bundle.drain(..).collect())));
        }
        match self.rest.pop_front() {
            Some(argument) => Ok((option, text(argument))),
            None => Err(wrong("option requires an argument")),
        }
    }

    fn long(&mut self, word: &[u8]) -> Result<(T, String), Vec<u8>> {
        let (name, given) = match word.iter().position(|byte| *byte == b'=') {
            Some(end) => (&word[..end], Some(&word[end + 1..])),
            None => (word, None),
        };
        let (spelling, option) = self.find(name, word)?;
        let long = spelling.long;
        match (spelling.argument, given) {
            (true, Some(argument)) => Ok((option, text(argument.to_vec()))),
            (true, None) => match self.rest.pop_front() {
                Some(argument) => Ok((option, text(argument))),
                None => Err(format!("option '--{long}' requires an argument").into_bytes()),
            },
            (false, Some(_)) => Err(format!("option '--{long}' doesn't allow an argument").into_bytes()),
            (false, None) => Ok((option, String::new())),
        }
    }

    /// Finds the option of this name, or the only one whose name starts with it.
    fn find(&self, name: &[u8], word: &[u8]) -> Result<(Spelling, T), Vec<u8>> {
        if let Some(found) = self.options.iter().find(|(spelling, _)| spelling.long.as_bytes() == name) {
            return Ok(*found);
        }
        let starts = |long: &str| long.as_bytes().starts_with(name);
        let mut candidates = self.options.iter().filter(|(spelling, _)| starts(spelling.long));
        match (candidates.next(), candidates.next()) {
            (Some(found), None) => Ok(*found),
            (None, _) => Err([b"unrecognized option '--", word, b"'"].concat()),
            (Some(_), Some(_)) => {
                let names = self.options.iter().map(|(spelling, _)| spelling.long);
                let possible: Vec<&str> = names.filter(|long| starts(long)).collect();
                let list = possible.join("' '--");
                let possible = format!("' is ambiguous; possibilities: '--{list}'");
                Err([b"option '--", word, possible.as_bytes()].concat())
            }
        }
    }
}

/// A word as text.
fn text(word: Vec<u8>) -> String {
    String::from_utf8(word).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options and operands in one line.
    fn split(words: &str, posix: bool) -> String {
        let spelling = |long, short, argument| Spelling { long, short, argument };
        let options = vec![
            (spelling("client", Some('c'), true), "c"),
            (spelling("connect", Some('C'), false), "C"),
            (spelling("log", Some('l'), false), "l"),
            (spelling("log-prefix", None, true), "p"),
        ];
        let mut getopt = Getopt::new(options, words.split_whitespace().map(OsString::from), posix);
        let mut out: Vec<String> = Vec::new();
        let last = loop {
            match getopt.next() {
                Ok(Some((name, argument))) => out.push(format!("{name}({argument}) ")),
                Ok(None) => break getopt.operands().join(","),
                Err(error) => break text(error),
            }
        };
        out.concat() + &last
    }

    #[test]
    fn words_are_split_as_by_getopt_long() {
        for (words, expected) in [
            ("", ""),
            ("a -c5 b -lCc 6 - -- -l", "c(5) l() C() c(6) a,b,-,-l"),
            ("--client=5 --cl 6 --log --client=", "c(5) c(6) l() c() "),
            ("-c -l", "c(-l) "),
            ("--c=5", "option '--c=5' is ambiguous; possibilities: '--client' '--connect'"),
            ("-Clx", "C() l() invalid option -- 'x'"),
            ("-Cc", "C() option requires an argument -- 'c'"),
            ("--log-p", "option '--log-prefix' requires an argument"),
            ("--con=1", "option '--connect' doesn't allow an argument"),
            ("--foo=1", "unrecognized option '--foo=1'"),
            ("---", "unrecognized option '---'"),
        ] {
            assert_eq!(split(words, false), expected, "{words}");
        }
        assert_eq!(split("-l a -C", true), "l() a,-C");
    }

    /// In C an option is a byte.
    #[test]
    fn of_a_bad_option_the_first_byte_is_named() {
        let error = |word: &[u8]| {
            let words = [OsString::from_vec(word.to_vec())];
            Getopt::<()>::new(Vec::new(), words, false).next().expect_err("there are no options")
        };
        assert_eq!(error("-ä".as_bytes()), b"invalid option -- '\xc3'");
        assert_eq!(error(b"-\xff"), b"invalid option -- '\xff'");
        assert_eq!(error(b"--caf\xe9"), b"unrecognized option '--caf\xe9'");
    }
}
