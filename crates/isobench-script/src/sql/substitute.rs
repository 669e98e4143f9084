//! The variables of an SQL command. References are substituted in quotes and comments too, as in
//! pgbench.

use crate::script::Piece;
use crate::symbols::{Slot, Symbols, is_name_byte};

/// An SQL text in the forms of both protocols.
pub(crate) struct Substituted {
    pub pieces: Vec<Piece>,
    pub parameterized: String,
    pub params: Vec<Slot>,
}

/// Finds the references `:name`. A name doesn't start with a digit (`12:30` is a time), and two or
/// more colons don't start a reference (`::int` is a cast).
pub(crate) fn substitute(text: &str, symbols: &mut Symbols) -> Substituted {
    let bytes = text.as_bytes();
    let mut result = Substituted {
        pieces: Vec::new(),
        parameterized: String::with_capacity(text.len()),
        params: Vec::new(),
    };
    let mut done = 0;
    let mut at = 0;
    while let Some(colon) = bytes[at..].iter().position(|byte| *byte == b':').map(|offset| at + offset) {
        let name = colon + 1;
        let starts = bytes.get(name).is_some_and(|byte| is_name_byte(*byte) && !byte.is_ascii_digit());
        if !starts {
            at = name + bytes[name..].iter().take_while(|byte| **byte == b':').count();
            continue;
        }
        let end = name + bytes[name..].iter().take_while(|byte| is_name_byte(**byte)).count();
        result.text(&text[done..colon]);
        result.variable(symbols.intern(&text[name..end]), &text[colon..end]);
        done = end;
        at = end;
    }
    result.text(&text[done..]);
    result
}

impl Substituted {
    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.parameterized.push_str(text);
            self.pieces.push(Piece::Text(text.to_owned()));
        }
    }

    fn variable(&mut self, slot: Slot, written: &str) {
        self.params.push(slot);
        self.parameterized.push('$');
        self.parameterized.push_str(&self.params.len().to_string());
        self.pieces.push(Piece::Variable { slot, written: written.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_use_gets_a_number_of_its_own() {
        let mut symbols = Symbols::new();
        let result = substitute(
            "select 1/:aid/:x, :aid::text, ::aid, :aid:aid, 12:30, ':aid' :::a : b :",
            &mut symbols,
        );
        // Taken from the log of a server to which pgbench 15 sent it.
        assert_eq!(result.parameterized, "select 1/$1/$2, $3::text, ::aid, $4$5, 12:30, '$6' :::a : b :");
        let names: Vec<&str> = result.params.iter().map(|slot| symbols.name(*slot)).collect();
        assert_eq!(names, ["aid", "x", "aid", "aid", "aid", "aid"]);
    }

    #[test]
    fn a_text_without_references_is_one_piece() {
        let result = substitute("select 1;", &mut Symbols::new());
        assert_eq!(result.pieces, [Piece::Text("select 1;".to_owned())]);
    }
}
