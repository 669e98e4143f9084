//! The logical line of a meta-command: up to the end of the line, or of the last line that a
//! backslash continues.

/// A meta-command's text, from its backslash to the end of the line.
#[derive(Copy, Clone)]
pub(super) struct Line<'a> {
    /// The text without the line break.
    pub text: &'a str,
    /// True if the line ends with a line break, false if it ends with the script.
    pub terminated: bool,
    /// The offset at which the script continues.
    pub after: usize,
}

impl<'a> Line<'a> {
    /// The line whose backslash is at `start`.
    pub(super) fn at(source: &'a str, start: usize) -> Self {
        let bytes = source.as_bytes();
        let mut from = start + 1;
        while let Some(end) = bytes[from..].iter().position(|byte| *byte == b'\n').map(|offset| from + offset)
        {
            // The backslash that starts the command isn't a continuation.
            let continued = matches!(&bytes[start + 1..end], [.., b'\\'] | [.., b'\\', b'\r']);
            if !continued {
                return Self { text: &source[start..end], terminated: true, after: end + 1 };
            }
            from = end + 1;
        }
        Self { text: &source[start..], terminated: false, after: source.len() }
    }

    /// The text as messages and reports show it.
    pub(super) fn shown(&self) -> &'a str {
        self.text.trim_end_matches(['\r', '\n'])
    }

    /// The words from the one after the backslash on.
    pub(super) fn words(self) -> Words<'a> {
        Words { text: self.text, at: 1 }
    }
}

/// A word and its position.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(super) struct Word<'a> {
    pub text: &'a str,
    pub offset: usize,
    /// The position of pgbench's caret below a word that is wrong: its start, plus the length of a
    /// continuation that directly follows the word.
    pub caret: usize,
}

/// The words of a line, separated by blanks and continuations; quotes have no meaning here.
pub(super) struct Words<'a> {
    text: &'a str,
    /// The offset just after the last word returned.
    pub at: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Word<'a>> {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        while let blank @ 1.. = blank_length(&bytes[at..]) {
            at += blank;
        }
        let offset = at;
        while at < bytes.len() && blank_length(&bytes[at..]) == 0 {
            at += 1;
        }
        self.at = at;
        let behind = &bytes[at..];
        let caret = offset + if behind.starts_with(b"\\") { blank_length(behind) } else { 0 };
        (at > offset).then(|| Word { text: &self.text[offset..at], offset, caret })
    }
}

/// The length of the blank or continuation that the text starts with.
fn blank_length(bytes: &[u8]) -> usize {
    match bytes {
        [b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c, ..] => 1,
        [b'\\', b'\n', ..] => 2,
        [b'\\', b'\r', b'\n', ..] => 3,
        _ => 0,
    }
}
