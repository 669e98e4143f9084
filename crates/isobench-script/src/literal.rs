//! Values as string constants of SQL.

/// A value as a string constant, whatever `standard_conforming_strings` is (PostgreSQL manual, "String
/// Constants").
pub fn literal(value: &str) -> String {
    let quoted = value.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// The same in place of a variable, which a letter may stand before: that would be a part of the `E`.
pub fn literal_of_variable(value: &str) -> String {
    let literal = literal(value);
    if literal.starts_with('E') { format!(" {literal}") } else { literal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_backslashes_stay_what_they_are() {
        let of = [literal("it's"), literal("a\\b"), literal_of_variable("a\\'b"), literal_of_variable("x")];
        assert_eq!(of, ["'it''s'", "E'a\\\\b'", " E'a\\\\''b'", "'x'"]);
    }
}
