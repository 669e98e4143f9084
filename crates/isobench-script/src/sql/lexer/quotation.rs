//! The ends of quotations and comments. A length is that of the whole, with its delimiters; the truth
//! value next to it is false if the text ends before.

use super::{is_blank, is_letter};

/// The place of the quotation mark, if a string literal or a quoted name begins here.
pub(super) fn prefix(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'\'' | b'"', ..] => Some(0),
        [b'e' | b'E' | b'b' | b'B' | b'x' | b'X' | b'n' | b'N', b'\'', ..] => Some(1),
        [b'u' | b'U', b'&', b'\'' | b'"', ..] => Some(2),
        _ => None,
    }
}

/// A string whose first mark is at this place, with the lines on which it continues: after blanks with
/// the end of a line among them, and comments of one line, another mark begins more of the same.
pub(crate) fn string(bytes: &[u8], mark: usize, escapes: bool) -> (usize, bool) {
    let mut at = mark + 1;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' if escapes => at += 1,
            b'\'' if bytes.get(at) == Some(&b'\'') => at += 1,
            b'\'' => match continuation(&bytes[at..]) {
                Some(length) => at += length,
                None => return (at, true),
            },
            _ => {}
        }
    }
    (bytes.len(), false)
}

/// The length of what is between a closing mark and the text after the mark that goes on.
fn continuation(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut line) = (0, false);
    loop {
        match bytes.get(at..)? {
            [b'\'', ..] if line => return Some(at + 1),
            [byte, ..] if is_blank(*byte) => {
                line |= matches!(byte, b'\n' | b'\r');
                at += 1;
            }
            [b'-', b'-', ..] => at += line_comment(&bytes[at..]),
            _ => return None,
        }
    }
}

/// The value of what is between the marks of a string; `None` for escapes of characters by number.
pub(super) fn value(inner: &str, escapes: bool) -> Option<String> {
    let mut value = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        if letter == '\\' && escapes {
            let escaped = rest.chars().next()?;
            rest = &rest[escaped.len_utf8()..];
            value.push(match escaped {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' | 'f' | 'x' | 'u' | 'U' | '0'..='7' => return None,
                other => other,
            });
        } else if letter != '\'' {
            value.push(letter);
        } else if let Some(after) = rest.strip_prefix('\'') {
            value.push('\'');
            rest = after;
        } else {
            rest = &rest[continuation(rest.as_bytes())?..];
        }
    }
    Some(value)
}

/// A quoted name whose first mark is at this place.
pub(super) fn name(bytes: &[u8], mark: usize) -> (usize, bool) {
    let mut at = mark + 1;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        if *byte == b'"' {
            if bytes.get(at) != Some(&b'"') {
                return (at, true);
            }
            at += 1;
        }
    }
    (bytes.len(), false)
}

/// The length of a comment that begins with `--`, without the end of the line.
pub(super) fn line_comment(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| !matches!(byte, b'\n' | b'\r')).count()
}

/// A comment that begins with `/*`, in which others may be nested.
pub(crate) fn block_comment(bytes: &[u8]) -> (usize, bool) {
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return (at + 2, true),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    (bytes.len(), false)
}

/// A string between dollars, if one begins here.
pub(crate) fn dollar_quoted(text: &str) -> Option<(usize, bool)> {
    let bytes = text.as_bytes();
    let in_tag = |byte: &&u8| is_letter(**byte) || byte.is_ascii_digit();
    let tag = 2 + bytes[1..].iter().take_while(in_tag).count();
    if bytes.get(tag - 1) != Some(&b'$') || bytes[1].is_ascii_digit() {
        return None;
    }
    let delimiter = &text[..tag];
    match text[tag..].find(delimiter) {
        Some(end) => Some((tag + end + tag, true)),
        None => Some((text.len(), false)),
    }
}
