//! As much of SQL's lexical structure as recording needs: comments and string literals.
//!
//! Source: PostgreSQL: SQL Syntax, Lexical Structure.

use std::ops::Range;

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A comment, with its delimiters, of `--` without the end of the line.
    Comment,
    /// A string literal between its delimiters: quotes (with `E`, `B`, `X` or `U&` in front) or dollars.
    Literal,
}

/// The comments and string literals of a text, in order.
pub(crate) fn parts(sql: &str) -> Vec<(Kind, Range<usize>)> {
    let bytes = sql.as_bytes();
    let mut parts = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        at += match rest[0] {
            b'-' if rest.get(1) == Some(&b'-') => {
                let length = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
                parts.push((Kind::Comment, at..at + length));
                length
            }
            b'/' if rest.get(1) == Some(&b'*') => {
                let length = block_comment(rest);
                parts.push((Kind::Comment, at..at + length));
                length
            }
            b'"' => quoted(rest, b'"', false),
            b'\'' => {
                let length = quoted(rest, b'\'', escapes(&bytes[..at]));
                let closed = length > 1 && rest[length - 1] == b'\'';
                parts.push((Kind::Literal, at + 1..at + length - usize::from(closed)));
                length
            }
            b'$' if !at.checked_sub(1).is_some_and(|before| is_word(bytes[before])) => {
                match dollar_quoted(rest) {
                    Some((tag, length)) => {
                        parts.push((Kind::Literal, at + tag..at + length - tag));
                        length
                    }
                    None => 1,
                }
            }
            _ => 1,
        };
    }
    parts
}

/// The text without the comments before its first and after its last word, and these comments. A
/// semicolon may stand before or after the last comment.
pub(crate) fn split_comment(sql: &str) -> (String, Option<String>) {
    if !sql.contains("/*") && !sql.contains("--") {
        return (sql.to_owned(), None);
    }
    let mut comments = Vec::new();
    let parts = parts(sql);
    let mut start = 0;
    let mut leading = 0;
    for (kind, range) in &parts {
        if *kind != Kind::Comment || !sql[start..range.start].trim().is_empty() {
            break;
        }
        comments.push(sql[range.clone()].to_owned());
        start = range.end;
        leading += 1;
    }
    let mut end = sql.len();
    let mut semicolon = false;
    let mut trailing = Vec::new();
    for (kind, range) in parts[leading..].iter().rev() {
        let after = sql[range.end..end].trim();
        if *kind != Kind::Comment || !(after.is_empty() || after == ";") {
            break;
        }
        semicolon |= after == ";";
        trailing.push(sql[range.clone()].to_owned());
        end = range.start;
    }
    comments.extend(trailing.into_iter().rev());
    if comments.is_empty() {
        return (sql.to_owned(), None);
    }
    let text = sql[start..end].trim();
    let text = if semicolon { format!("{text};") } else { text.to_owned() };
    (text, Some(comments.join(" ")))
}

/// The text with each string literal replaced, and without comments if `drop_comments`.
pub(crate) fn with_literals(
    sql: &str,
    drop_comments: bool,
    mut replace: impl FnMut(&str) -> String,
) -> String {
    let mut out = String::new();
    let mut done = 0;
    for (kind, range) in parts(sql) {
        out += &sql[done..range.start];
        done = range.end;
        match kind {
            Kind::Literal => out += &replace(&sql[range]),
            Kind::Comment if drop_comments => out.push(' '),
            Kind::Comment => out += &sql[range],
        }
    }
    out + &sql[done..]
}

/// The text with `?` in place of string literals and numbers, in one line and without comments: what
/// statements with other values have in common.
pub fn pattern(sql: &str) -> String {
    let text = with_literals(sql, true, |_| "?".to_owned());
    let mut out = String::new();
    let mut before = ' ';
    let mut last = '=';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let begins_number = letter.is_ascii_digit() && !is_word(u8::try_from(before).unwrap_or(b'a'));
        // A sign belongs to the number, unless it follows a value.
        let begins_signed = letter == '-'
            && matches!(last, '=' | '<' | '>' | '+' | '-' | '*' | '/' | '(' | ',')
            && letters.peek().is_some_and(char::is_ascii_digit);
        if begins_number || begins_signed {
            while letters.next_if(|next| next.is_ascii_alphanumeric() || *next == '.').is_some() {}
            out.push('?');
            (before, last) = ('0', '0');
        } else if letter.is_whitespace() {
            if !before.is_whitespace() {
                out.push(' ');
            }
            before = ' ';
        } else {
            out.push(letter);
            (before, last) = (letter, letter);
        }
    }
    out.trim_end().replace("'?'", "?")
}

/// True if a text may hold a password as a literal: somewhere in it, also after other statements or in the
/// body of one, a role, a user mapping, a server or a subscription is created or altered.
pub(crate) fn may_hold_password(sql: &str) -> bool {
    let words = sql.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let is = |word: &str, known: &[&str]| known.iter().any(|known| word.eq_ignore_ascii_case(known));
    let mut makes = false;
    for word in words {
        if makes && is(word, &["role", "user", "group", "subscription", "server"]) {
            return true;
        }
        makes = is(word, &["create", "alter"]);
    }
    false
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

/// True if a string literal after this text has escapes by backslash: `E'…'`.
fn escapes(before: &[u8]) -> bool {
    match before {
        [.., other, b'e' | b'E'] => !is_word(*other),
        [b'e' | b'E'] => true,
        _ => false,
    }
}

/// The length of what is quoted at the start, with its quotes.
fn quoted(bytes: &[u8], quote: u8, escapes: bool) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        if escapes && bytes[at] == b'\\' {
            at += 2;
        } else if bytes[at] != quote {
            at += 1;
        } else if bytes.get(at + 1) == Some(&quote) {
            at += 2;
        } else {
            return at + 1;
        }
    }
    bytes.len()
}

/// The length of the comment at the start; comments nest.
fn block_comment(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        match &bytes[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The length of the tag and of the whole literal that a dollar begins, if it does.
fn dollar_quoted(bytes: &[u8]) -> Option<(usize, usize)> {
    let tag = 2 + bytes[1..].iter().position(|byte| *byte == b'$')?;
    let name = &bytes[1..tag - 1];
    if name.first().is_some_and(u8::is_ascii_digit) || !name.iter().all(|byte| is_word(*byte)) {
        return None;
    }
    let delimiter = &bytes[..tag];
    let end = bytes[tag..].windows(tag).position(|window| window == delimiter)?;
    Some((tag, tag + end + tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_at_either_end_are_split_off() {
        for (sql, text, comment) in [
            ("SELECT 1", "SELECT 1", None),
            ("SELECT 1 /*traceparent='00-a-b-01'*/", "SELECT 1", Some("/*traceparent='00-a-b-01'*/")),
            ("/* a */ SELECT 1 /* b */;", "SELECT 1;", Some("/* a */ /* b */")),
            ("SELECT 1; -- c", "SELECT 1;", Some("-- c")),
            ("-- a\nSELECT 1\n", "SELECT 1", Some("-- a")),
            ("SELECT /* inside */ 1", "SELECT /* inside */ 1", None),
            ("SELECT '/* no */'", "SELECT '/* no */'", None),
            ("SELECT '-- no'", "SELECT '-- no'", None),
            ("SELECT 1 /* a /* nested */ b */", "SELECT 1", Some("/* a /* nested */ b */")),
            ("SELECT E'\\'/* no */'", "SELECT E'\\'/* no */'", None),
            ("SELECT $a$ -- no $a$", "SELECT $a$ -- no $a$", None),
            ("/* only */", "", Some("/* only */")),
            ("SELECT 1 /* open", "SELECT 1", Some("/* open")),
        ] {
            assert_eq!(split_comment(sql), (text.to_owned(), comment.map(str::to_owned)), "{sql}");
        }
    }

    #[test]
    fn literals_are_found() {
        let marked = |sql: &str| with_literals(sql, false, |literal| format!("<{literal}>"));
        for (sql, expected) in [
            ("SELECT 'a''b', \"c'd\"", "SELECT '<a''b>', \"c'd\""),
            ("SELECT e'\\'x', 'y'", "SELECT e'<\\'x>', '<y>'"),
            ("SELECT '\\', 'z'", "SELECT '<\\>', '<z>'"),
            ("SELECT $$a'b$$, $1, $x$c$x$", "SELECT $$<a'b>$$, $1, $x$<c>$x$"),
            ("SELECT a$b$c", "SELECT a$b$c"),
            ("SELECT '' -- 'no'", "SELECT '<>' -- 'no'"),
            ("SELECT 'open", "SELECT '<open>"),
        ] {
            assert_eq!(marked(sql), expected);
        }
        assert_eq!(with_literals("SELECT /* x */ 1", true, str::to_owned), "SELECT   1");
    }

    #[test]
    fn patterns_have_no_values() {
        for (sql, expected) in [
            (
                "SELECT a1,  'x' FROM t2\nWHERE a = 1.5e3 AND b = -7",
                "SELECT a1, ? FROM t2 WHERE a = ? AND b = ?",
            ),
            ("SELECT $1 /* x */", "SELECT $1"),
            ("SELECT a + -5, a - 5, a -5, 3", "SELECT a + ?, a - ?, a -?, ?"),
            ("", ""),
        ] {
            assert_eq!(pattern(sql), expected);
        }
    }

    #[test]
    fn statements_with_passwords_are_found() {
        assert!(may_hold_password("create user a password 'x'"));
        assert!(may_hold_password("ALTER ROLE a WITH ENCRYPTED PASSWORD 'x'"));
        assert!(may_hold_password("CREATE SUBSCRIPTION s CONNECTION 'password=x' PUBLICATION p"));
        assert!(may_hold_password("create user mapping for a server b options (password 'x')"));
        assert!(may_hold_password("BEGIN; ALTER ROLE a PASSWORD 'x'; COMMIT"));
        assert!(may_hold_password("DO $$BEGIN ALTER ROLE a PASSWORD 'x'; END$$"));
        assert!(!may_hold_password("UPDATE users SET password = 'x'"));
        assert!(!may_hold_password(""));
    }
}
