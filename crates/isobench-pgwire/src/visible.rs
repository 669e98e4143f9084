//! Makes texts of others safe to display: without characters that control a terminal or the direction of
//! writing, and not too long.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The maximum number of characters displayed of a text.
const LONGEST: usize = 8_000;

/// A text without characters that control a terminal or the direction of writing, with which a text can
/// look like another one. They are escaped as in JSON (`\\u001b`), except for line feeds, tabs, and
/// carriage returns before a line feed.
///
/// In a JSON document this only changes the spelling, because all of these are inside strings.
pub fn visible(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut seen = String::new();
    while let Some((at, control)) = rest.char_indices().find(|(at, c)| is_obeyed(*c, &rest[*at..])) {
        seen.push_str(&rest[..at]);
        // Writing to a String can't fail.
        let _ = write!(seen, "\\u{:04x}", u32::from(control));
        rest = &rest[at + control.len_utf8()..];
    }
    if seen.is_empty() { Cow::Borrowed(text) } else { Cow::Owned(seen + rest) }
}

/// True if a character must be escaped; `from_it` is the text that starts with it.
fn is_obeyed(c: char, from_it: &str) -> bool {
    controls(c) && !matches!(c, '\n' | '\t') && !from_it.starts_with("\r\n")
}

/// True for a character that isn't shown but changes how others are: it controls a terminal, the
/// direction of writing, or where a line ends. Source: Unicode Standard Annex 9, "Bidirectional Algorithm".
pub fn controls(c: char) -> bool {
    let direction =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || direction || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The start of a long text, with the number of characters omitted; other texts unchanged.
pub fn cut(text: &str) -> Cow<'_, str> {
    // A text can't have more characters than bytes.
    if text.len() <= LONGEST {
        return Cow::Borrowed(text);
    }
    match text.char_indices().nth(LONGEST) {
        None => Cow::Borrowed(text),
        Some((end, _)) => {
            let missing = text[end..].chars().count();
            Cow::Owned(format!("{}… ({missing} more characters)", &text[..end]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        for (text, expected) in [
            ("", ""),
            ("ordinary\n\ttext, änd ünicode 日本\r\n", "ordinary\n\ttext, änd ünicode 日本\r\n"),
            ("\u{1b}]0;title\u{7}", "\\u001b]0;title\\u0007"),
            ("hidden\rshown", "hidden\\u000dshown"),
            ("\u{9b}31m \u{7f} \0", "\\u009b31m \\u007f \\u0000"),
            ("\r\r\n", "\\u000d\r\n"),
            ("a\u{202e}b\u{2066}c\u{2069}", "a\\u202eb\\u2066c\\u2069"),
            ("\u{61c}\u{200e}\u{200f}\u{202a}\u{2028}", "\\u061c\\u200e\\u200f\\u202a\\u2028"),
            ("שלום مرحبا \u{200d}", "שלום مرحبا \u{200d}"),
        ] {
            assert_eq!(visible(text), expected);
        }
    }

    #[test]
    fn long_texts_are_cut_and_say_so() {
        let long = "ü".repeat(LONGEST);
        assert_eq!(cut(&long), long);
        assert_eq!(cut(&format!("{long}abc")), format!("{long}… (3 more characters)"));
    }
}
