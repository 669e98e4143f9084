//! Names as SQL has them.

/// PostgreSQL's keywords that name no column or table without quotes (manual of PostgreSQL 18, appendix C:
/// "reserved", alone or with exceptions).
const RESERVED: &str = "\
    all analyse analyze and any array as asc asymmetric authorization binary both case cast check \
    collate collation column concurrently constraint create cross current_catalog current_date \
    current_role current_schema current_time current_timestamp current_user default deferrable \
    desc distinct do else end except false fetch for foreign freeze from full grant group having \
    ilike in initially inner intersect into is isnull join lateral leading left like limit \
    localtime localtimestamp natural not notnull null offset on only or order outer overlaps \
    placing primary references returning right select session_user similar some symmetric \
    system_user table tablesample then to trailing true union unique user using variadic verbose \
    when where window with";

/// True if a name has only lower-case letters, digits and underscores, so that it needs no quotes unless it
/// is a keyword (PostgreSQL manual, "Identifiers and Key Words").
pub fn is_plain(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_')
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_')
}

/// True for a keyword that is no name without quotes, in lower case.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.split_ascii_whitespace().any(|word| word == name)
}

/// A name of a table or a column as SQL needs it: in quotes only if it can't be without.
pub fn name_in_sql(name: &str) -> String {
    if is_plain(name) && !is_reserved(name) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_have_to_be() {
        let all = ["balance", "_1", "user", "order", "Name", "a b", "1a", "a\"b", ""];
        let expected =
            ["balance", "_1", "\"user\"", "\"order\"", "\"Name\"", "\"a b\"", "\"1a\"", "\"a\"\"b\"", "\"\""];
        assert_eq!(all.map(name_in_sql), expected);
    }
}
