//! The keys of tables, as the SQL that makes them says.

use std::collections::HashMap;

use isobench_script::lexer::{Kind, Token, statements, words};

/// A column, by the names of its table and its own.
type Named = (String, String);

/// Primary keys, and what columns refer to.
#[derive(Debug, Default)]
pub struct Constraints {
    primary: HashMap<String, Vec<String>>,
    references: HashMap<Named, Named>,
}

impl Constraints {
    /// Reads the keys of all tables that a text makes.
    pub fn of(setup: &str) -> Constraints {
        let mut found = Constraints::default();
        let mut without_column = Vec::new();
        for statement in statements(setup) {
            let all = words(statement);
            let is = |place: usize, word: &str| all.get(place).is_some_and(|token| token.is(word));
            let Some(at) = (0..4).find(|at| is(*at, "TABLE")) else { continue };
            if is(0, "CREATE") || is(0, "ALTER") {
                found.take(&all, at + 1, &mut without_column);
            }
        }
        for (column, table) in without_column {
            if let Some([key]) = found.primary.get(&table).map(Vec::as_slice) {
                found.references.insert(column, (table, key.clone()));
            }
        }
        found
    }

    /// The columns of a table's primary key.
    pub fn primary(&self, table: &str) -> Option<&[String]> {
        self.primary.get(table).map(Vec::as_slice)
    }

    /// The table and column that a column refers to.
    pub fn refers(&self, table: &str, column: &str) -> Option<&(String, String)> {
        self.references.get(&(table.to_owned(), column.to_owned()))
    }

    /// Takes the constraints of a statement, in which the table's name begins at a token.
    fn take(&mut self, all: &[Token<'_>], mut at: usize, without_column: &mut Vec<(Named, String)>) {
        while all.get(at).is_some_and(|token| token.is_any(&["IF", "NOT", "EXISTS", "ONLY"])) {
            at += 1;
        }
        let Some((table, mut at)) = name(all, at) else { return };
        let (mut depth, mut column, mut begins) = (0_usize, String::new(), false);
        let mut foreign: Option<String> = None;
        while let Some(token) = all.get(at) {
            let next = |place: usize, word: &str| all.get(at + place).is_some_and(|token| token.is(word));
            if begins {
                column = token.name().unwrap_or_default();
            }
            begins = false;
            match token.text {
                "(" => {
                    depth += 1;
                    begins = depth == 1;
                }
                ")" => depth = depth.saturating_sub(1),
                "," => begins = depth == 1,
                _ if token.is("PRIMARY") && next(1, "KEY") => {
                    let listed = list(all, at + 2);
                    let key = if listed.is_empty() { vec![column.clone()] } else { listed };
                    self.primary.insert(table.clone(), key);
                }
                _ if token.is("FOREIGN") && next(1, "KEY") => {
                    foreign = match list(all, at + 2).as_slice() {
                        [one] => Some(one.clone()),
                        _ => Some(String::new()),
                    };
                }
                _ if token.is("REFERENCES") => {
                    let from = foreign.take().unwrap_or_else(|| column.clone());
                    if let Some((to, after)) = name(all, at + 1).filter(|_| !from.is_empty()) {
                        let from = (table.clone(), from);
                        match list(all, after).as_slice() {
                            [one] => drop(self.references.insert(from, (to, one.clone()))),
                            _ => without_column.push((from, to)),
                        }
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }
}

/// The last part of a name that begins at a token, and the place after it.
fn name(all: &[Token<'_>], mut at: usize) -> Option<(String, usize)> {
    while all.get(at + 1).is_some_and(|token| token.is(".")) {
        at += 2;
    }
    Some((all.get(at)?.name()?, at + 1))
}

/// The names in the parentheses that begin at a token.
fn list(all: &[Token<'_>], at: usize) -> Vec<String> {
    if !all.get(at).is_some_and(|token| token.is("(")) {
        return Vec::new();
    }
    let inner = all[at + 1..].iter().take_while(|token| !token.is(")"));
    inner.filter(|token| matches!(token.kind, Kind::Word | Kind::Name)).filter_map(Token::name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_tables_are_made_and_where_they_are_altered() {
        let found = Constraints::of(
            "CREATE TABLE a (id bigint DEFAULT f(1, 2) PRIMARY KEY, v numeric(12, 2));\nCREATE TABLE IF NOT EXISTS s.b (\"Id\" \
             int, a_id bigint REFERENCES a, x int, y int, PRIMARY KEY (x, y), FOREIGN KEY (x, y) REFERENCES c (x, y));\n\
             ALTER TABLE ONLY s.d ADD CONSTRAINT d_pkey PRIMARY KEY (id);\nALTER TABLE ONLY d ADD CONSTRAINT f FOREIGN KEY \
             (b_id) REFERENCES s.b(\"Id\") DEFERRABLE INITIALLY DEFERRED;\nINSERT INTO a VALUES (1, 2);",
        );
        assert_eq!(found.primary("a"), Some(&["id".to_owned()][..]));
        assert_eq!(found.primary("b"), Some(&["x".to_owned(), "y".to_owned()][..]));
        assert_eq!(found.primary("d"), Some(&["id".to_owned()][..]));
        assert_eq!(found.refers("b", "a_id"), Some(&("a".to_owned(), "id".to_owned())));
        assert_eq!(found.refers("d", "b_id"), Some(&("b".to_owned(), "Id".to_owned())));
        assert_eq!(found.refers("b", "x"), None);
    }
}
