//! The line of a query to which an error refers, with a caret below the position, as displayed by
//! libpq.
//!
//! The rules were determined by running psql, with which `tests/real_server.rs` compares.

use unicode_width::UnicodeWidthChar;

/// The maximum number of columns shown of a query's line.
const COLUMNS: usize = 60;
/// The number of columns from the caret on that are kept if both ends of a line must be cut.
const RIGHT_OF_CARET: usize = 10;

/// `LINE n: …` and the line with the caret; `None` if the position (in characters, from 1) is
/// outside the text.
pub(super) fn excerpt(sql: &str, position: u32) -> Option<String> {
    let chars: Vec<char> = sql.chars().collect();
    let caret = usize::try_from(position).ok()?.checked_sub(1)?;
    let before = chars.get(..caret)?;
    let ends_line = |c: &char| matches!(c, '\n' | '\r');
    let line_number = before
        .iter()
        .enumerate()
        // A carriage return and a line feed are one line break.
        .filter(|(index, c)| **c == '\n' && (*index == 0 || before[index - 1] != '\r') || **c == '\r')
        .count()
        + 1;
    let mut begin = before.iter().rposition(ends_line).map_or(0, |index| index + 1);
    let mut end = chars[caret..].iter().position(ends_line).map_or(chars.len(), |length| caret + length);
    let (mut left, mut right) = ("", "");
    if columns(&chars[begin..end]) > COLUMNS {
        if columns(&chars[begin..caret]) + RIGHT_OF_CARET < COLUMNS {
            while columns(&chars[begin..end]) > COLUMNS {
                end -= 1;
            }
            right = "...";
        } else {
            while columns(&chars[caret..end]) > RIGHT_OF_CARET {
                end -= 1;
                right = "...";
            }
            while columns(&chars[begin..end]) > COLUMNS {
                begin += 1;
                left = "...";
            }
        }
    }
    let shown: String = chars[begin..end].iter().map(|&c| if c == '\t' { ' ' } else { c }).collect();
    let head = format!("LINE {line_number}: {left}");
    let indent = head.len() + columns(&chars[begin..caret]);
    Some(format!("{head}{shown}{right}\n{:indent$}^", ""))
}

/// The width on a terminal; a tab is displayed as one blank.
fn columns(chars: &[char]) -> usize {
    chars.iter().map(|c| if *c == '\t' { 1 } else { c.width().unwrap_or(0) }).sum()
}

#[cfg(test)]
mod tests {
    use super::excerpt;

    #[test]
    fn short_lines_are_shown_whole() {
        let cases = [
            ("select foo", 8, "LINE 1: select foo\n               ^"),
            ("select 1,\n  foo\nfrom x", 22, "LINE 3: from x\n             ^"),
            ("select 1,\r\n  foo", 14, "LINE 2:   foo\n          ^"),
            ("select '日本', foo", 14, "LINE 1: select '日本', foo\n                       ^"),
            ("select\t'a',\tfoo", 13, "LINE 1: select 'a', foo\n                    ^"),
            ("selec", 6, "LINE 1: selec\n             ^"),
        ];
        for (sql, position, expected) in cases {
            assert_eq!(excerpt(sql, position).as_deref(), Some(expected), "{sql:?}");
        }
    }

    #[test]
    fn long_lines_are_cut() {
        let right = format!("select foo, '{}'", "b".repeat(80));
        let expected = format!("LINE 1: select foo, '{}...\n               ^", "b".repeat(47));
        assert_eq!(excerpt(&right, 8), Some(expected));
        let both = format!("select '{}', foo, '{}'", "a".repeat(80), "b".repeat(80));
        let expected = format!("LINE 1: ...{}', foo, 'bbbb...\n{:61}^", "a".repeat(47), "");
        assert_eq!(excerpt(&both, 92), Some(expected));
    }

    #[test]
    fn positions_outside_are_none() {
        assert_eq!(excerpt("select", 0), None);
        assert_eq!(excerpt("select", 8), None);
        assert_eq!(excerpt("", 1).as_deref(), Some("LINE 1: \n        ^"));
    }
}
