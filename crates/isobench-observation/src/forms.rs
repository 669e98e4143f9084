//! The two forms of a statement that would be sent differently: as written, and with the columns
//! that show its rows.

use std::fmt::Write;

use isobench_script::{Piece, Slot, Sql};

/// A statement that would be sent differently, in both forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forms {
    /// The script, by its place among those that were observed.
    pub script: usize,
    /// The command, by its place in the script.
    pub command: usize,
    /// The text as it stands in [`crate::SeenStatement`].
    pub text: String,
    /// As written, split at the variables.
    pub written: Vec<Piece>,
    /// With the columns that show its rows.
    pub sent: Vec<Piece>,
    /// The number of parameters that the script's author wrote as `$1`, `$2`, …
    pub parameters: u16,
}

impl Forms {
    /// Both forms with the values of variables in their places; `None` if one of them is unset.
    pub(crate) fn with_values(&self, value: &dyn Fn(Slot) -> Option<String>) -> Option<[String; 2]> {
        Some([with_values(&self.written, value)?, with_values(&self.sent, value)?])
    }

    /// Both forms with `$1`, `$2`, … in place of the variables.
    pub(crate) fn parameterized(&self) -> [String; 2] {
        [parameterized(&self.written), parameterized(&self.sent)]
    }

    /// The variables, in the order of `$1`, `$2`, …
    pub(crate) fn variables(&self) -> Vec<Slot> {
        let slot = |piece: &Piece| match piece {
            Piece::Variable { slot, .. } => Some(*slot),
            Piece::Text(_) => None,
        };
        self.written.iter().filter_map(slot).collect()
    }
}

fn with_values(pieces: &[Piece], value: &dyn Fn(Slot) -> Option<String>) -> Option<String> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(own) => text.push_str(own),
            Piece::Variable { slot, .. } => text.push_str(&value(*slot)?),
        }
    }
    Some(text)
}

fn parameterized(pieces: &[Piece]) -> String {
    let (mut text, mut number) = (String::new(), 0);
    for piece in pieces {
        match piece {
            Piece::Text(own) => text.push_str(own),
            Piece::Variable { .. } => {
                number += 1;
                let _ = write!(text, "${number}");
            }
        }
    }
    text
}

/// The pieces of a command between two places in its parameterized text. Variables lie inside or
/// outside, never across.
pub(crate) fn between(sql: &Sql, from: usize, upto: usize) -> Vec<Piece> {
    let (mut found, mut at, mut number) = (Vec::new(), 0, 0_usize);
    for piece in &sql.pieces {
        let length = match piece {
            Piece::Text(text) => text.len(),
            Piece::Variable { .. } => {
                number += 1;
                1 + number.to_string().len()
            }
        };
        let (start, end) = (at.max(from), (at + length).min(upto));
        if start < end {
            found.push(match piece {
                Piece::Text(text) => Piece::Text(text[start - at..end - at].to_owned()),
                variable @ Piece::Variable { .. } => variable.clone(),
            });
        }
        at += length;
    }
    found
}

#[cfg(test)]
mod tests {
    use isobench_script::{CommandKind, Symbols, parse};

    use super::*;

    #[test]
    fn a_part_of_a_command_keeps_its_variables() {
        let mut symbols = Symbols::new();
        let text = "SELECT :a\\; UPDATE t SET v = :b WHERE id = :a;";
        let mut script = parse("test.sql", text, &mut symbols).unwrap();
        let CommandKind::Sql(sql) = script.commands.remove(0).kind else { panic!("an SQL command") };
        let at = sql.parameterized.find("UPDATE").unwrap();
        let pieces = between(&sql, at, sql.parameterized.len() - 1);
        let forms = Forms {
            script: 0,
            command: 0,
            text: String::new(),
            written: pieces.clone(),
            sent: pieces,
            parameters: 0,
        };
        assert_eq!(forms.parameterized()[0], "UPDATE t SET v = $1 WHERE id = $2");
        let name = |slot: Slot| Some(format!("<{}>", symbols.name(slot)));
        let [written, sent] = forms.with_values(&name).unwrap();
        assert_eq!(written, "UPDATE t SET v = <b> WHERE id = <a>");
        assert_eq!(sent, written);
        assert_eq!(forms.with_values(&|_| None), None);
        assert_eq!(forms.variables().len(), 2);
    }
}
