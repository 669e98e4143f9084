//! Texts inserted into a command, in both forms in which it is sent.

use crate::script::{Piece, Sql};

impl Sql {
    /// Inserts texts at places (byte offsets, ascending) in [`Sql::parameterized`], and at the same
    /// places in the form for the simple protocol. Places inside a parameter (`$1`) move behind it.
    /// Texts at the same place keep their order.
    pub fn insert(&mut self, insertions: &[(usize, String)]) {
        let mut pieces: Vec<Piece> = Vec::with_capacity(self.pieces.len() + insertions.len());
        let mut parameterized = String::with_capacity(self.parameterized.len());
        let mut rest = insertions.iter().peekable();
        let (mut at, mut number) = (0, 0_usize);
        for piece in &self.pieces {
            let length = match piece {
                Piece::Text(text) => text.len(),
                Piece::Variable { .. } => {
                    number += 1;
                    1 + number.to_string().len()
                }
            };
            match piece {
                Piece::Text(text) => {
                    let mut done = 0;
                    while let Some((place, more)) = rest.next_if(|(place, _)| *place < at + length) {
                        let upto = place.saturating_sub(at).max(done);
                        push_text(&mut pieces, &text[done..upto]);
                        push_text(&mut pieces, more);
                        done = upto;
                    }
                    push_text(&mut pieces, &text[done..]);
                }
                Piece::Variable { .. } => {
                    // Whatever is to come directly before it.
                    while let Some((_, more)) = rest.next_if(|(place, _)| *place <= at) {
                        push_text(&mut pieces, more);
                    }
                    pieces.push(piece.clone());
                }
            }
            at += length;
        }
        for (_, more) in rest {
            push_text(&mut pieces, more);
        }
        let mut number = 0_usize;
        for piece in &pieces {
            match piece {
                Piece::Text(text) => parameterized.push_str(text),
                Piece::Variable { .. } => {
                    number += 1;
                    parameterized.push('$');
                    parameterized.push_str(&number.to_string());
                }
            }
        }
        (self.pieces, self.parameterized) = (pieces, parameterized);
    }
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    if text.is_empty() {
        return;
    }
    if let Some(Piece::Text(last)) = pieces.last_mut() {
        last.push_str(text);
    } else {
        pieces.push(Piece::Text(text.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;
    use crate::script::{CommandKind, Sql};
    use crate::symbols::Symbols;

    fn sql(text: &str) -> Sql {
        let mut script = parse("test.sql", text, &mut Symbols::new()).expect("a script");
        match script.commands.remove(0).kind {
            CommandKind::Sql(sql) => sql,
            _ => panic!("an SQL command"),
        }
    }

    #[test]
    fn both_forms_get_the_same_texts_at_the_same_places() {
        let written = "SELECT a, :b FROM t WHERE c = :c AND d = :b;";
        for (marker, expected) in [
            ("SELECT a", "SELECT a<>, :b FROM t WHERE c = :c AND d = :b;"),
            ("SELECT a, $1", "SELECT a, :b<> FROM t WHERE c = :c AND d = :b;"),
            ("SELECT a, ", "SELECT a, <>:b FROM t WHERE c = :c AND d = :b;"),
            ("SELECT a, $1 FROM t WHERE c = $2", "SELECT a, :b FROM t WHERE c = :c<> AND d = :b;"),
            ("SELECT a, $1 FROM t WHERE c = $2 AND d = $3", "SELECT a, :b FROM t WHERE c = :c AND d = :b<>;"),
        ] {
            let mut sql = sql(written);
            assert!(sql.parameterized.starts_with(marker), "{}", sql.parameterized);
            let mut expected_parameterized = sql.parameterized.clone();
            expected_parameterized.insert_str(marker.len(), "<>");
            sql.insert(&[(marker.len(), "<>".to_owned())]);
            assert_eq!(sql.as_written(), expected);
            assert_eq!(sql.parameterized, expected_parameterized);
            assert_eq!(sql.params.len(), 3);
        }
    }

    #[test]
    fn several_texts_keep_their_order() {
        let mut sql = sql("SELECT :a;");
        let end = sql.parameterized.len();
        sql.insert(&[(7, "1, ".to_owned()), (7, "2, ".to_owned()), (end, " -- end".to_owned())]);
        assert_eq!(sql.parameterized, "SELECT 1, 2, $1; -- end");
        assert_eq!(sql.as_written(), "SELECT 1, 2, :a; -- end");
    }
}
