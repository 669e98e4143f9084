//! Texts and names in SQL statements.

/// A text as a constant, with `standard_conforming_strings` on.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name as an identifier.
pub(crate) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted() {
        assert_eq!(
            (literal("it's"), identifier("a \"b\"")),
            ("'it''s'".to_owned(), "\"a \"\"b\"\"\"".to_owned())
        );
    }
}
