//! Splits a command line into options and operands exactly as glibc's `getopt_long` does, in its words.
//!
//! Not here: which options there are (`table`) and what they mean (`collected`).

use std::collections::VecDeque;

/// An option as far as splitting needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Spelling {
    /// The long name, without `--`.
    pub long: &'static str,
    /// The short form, without `-`.
    pub short: Option<char>,
    /// It has an argument.
    pub argument: bool,
}

/// The words of a command line that are still to be read.
#[derive(Debug)]
pub(super) struct Getopt<T> {
    options: Vec<(Spelling, T)>,
    rest: VecDeque<String>,
    /// What is left of a word of short options.
    bundle: VecDeque<char>,
    operands: Vec<String>,
    /// The first operand ends the options (`POSIXLY_CORRECT`).
    posix: bool,
}

impl<T: Copy> Getopt<T> {
    /// The words of a command line, without the program's name.
    pub fn new(options: Vec<(Spelling, T)>, words: impl IntoIterator<Item = String>, posix: bool) -> Self {
        let rest = words.into_iter().collect();
        Getopt { options, rest, bundle: VecDeque::new(), operands: Vec::new(), posix }
    }

    /// The next option and its argument (empty if it has none), or none if only operands are left.
    ///
    /// # Errors
    /// What is wrong with it, without the program's name.
    pub fn next(&mut self) -> Result<Option<(T, String)>, String> {
        loop {
            if let Some(letter) = self.bundle.pop_front() {
                return self.short(letter).map(Some);
            }
            let Some(word) = self.rest.pop_front() else { return Ok(None) };
            if word == "--" {
                self.operands.extend(self.rest.drain(..));
            } else if let Some(long) = word.strip_prefix("--") {
                return self.long(long).map(Some);
            } else if word.len() > 1 && word.starts_with('-') {
                self.bundle.extend(word.chars().skip(1));
            } else {
                self.operands.push(word);
                if self.posix {
                    self.operands.extend(self.rest.drain(..));
                }
            }
        }
    }

    /// What isn't an option, in the order given.
    pub fn operands(self) -> Vec<String> {
        self.operands
    }

    fn short(&mut self, letter: char) -> Result<(T, String), String> {
        let found = self.options.iter().find(|(spelling, _)| spelling.short == Some(letter));
        let (spelling, option) = *found.ok_or_else(|| format!("invalid option -- '{letter}'"))?;
        if !spelling.argument {
            return Ok((option, String::new()));
        }
        if !self.bundle.is_empty() {
            return Ok((option, self.bundle.drain(..).collect()));
        }
        match self.rest.pop_front() {
            Some(argument) => Ok((option, argument)),
            None => Err(format!("option requires an argument -- '{letter}'")),
        }
    }

    fn long(&mut self, word: &str) -> Result<(T, String), String> {
        let (name, given) = match word.split_once('=') {
            Some((name, argument)) => (name, Some(argument)),
            None => (word, None),
        };
        let (spelling, option) = self.find(name, word)?;
        let long = spelling.long;
        match (spelling.argument, given) {
            (true, Some(argument)) => Ok((option, argument.to_owned())),
            (true, None) => match self.rest.pop_front() {
                Some(argument) => Ok((option, argument)),
                None => Err(format!("option '--{long}' requires an argument")),
            },
            (false, Some(_)) => Err(format!("option '--{long}' doesn't allow an argument")),
            (false, None) => Ok((option, String::new())),
        }
    }

    /// The option of this name, or the only one whose name starts so.
    fn find(&self, name: &str, word: &str) -> Result<(Spelling, T), String> {
        if let Some(found) = self.options.iter().find(|(spelling, _)| spelling.long == name) {
            return Ok(*found);
        }
        let mut candidates = self.options.iter().filter(|(spelling, _)| spelling.long.starts_with(name));
        match (candidates.next(), candidates.next()) {
            (Some(found), None) => Ok(*found),
            (None, _) => Err(format!("unrecognized option '--{word}'")),
            (Some(_), Some(_)) => {
                let names = self.options.iter().map(|(spelling, _)| spelling.long);
                let possible: Vec<&str> = names.filter(|long| long.starts_with(name)).collect();
                let list = possible.join("' '--");
                Err(format!("option '--{word}' is ambiguous; possibilities: '--{list}'"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Options and operands as one line.
    fn split(words: &str, posix: bool) -> String {
        let spelling = |long, short, argument| Spelling { long, short, argument };
        let options = vec![
            (spelling("client", Some('c'), true), "c"),
            (spelling("connect", Some('C'), false), "C"),
            (spelling("log", Some('l'), false), "l"),
            (spelling("log-prefix", None, true), "p"),
        ];
        let mut getopt = Getopt::new(options, words.split_whitespace().map(str::to_owned), posix);
        let mut out: Vec<String> = Vec::new();
        let last = loop {
            match getopt.next() {
                Ok(Some((name, argument))) => out.push(format!("{name}({argument}) ")),
                Ok(None) => break getopt.operands().join(","),
                Err(error) => break error,
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
}
