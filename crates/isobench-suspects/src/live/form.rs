//! Statements of the simplest forms, whose texts alone say which rows and columns they are about.
//!
//! Any other statement has no form here: where it matters, nothing is claimed.

/// A query of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    /// Columns of the result by name, each with the table's column; `None`: all, under their own names.
    columns: Option<Vec<(String, String)>>,
    /// The columns of its conditions, if all are equalities with values, joined by AND.
    pub(super) equal: Option<Vec<String>>,
    /// The same, if truths of columns are among them (`AND active`, `AND NOT done`), with these.
    pub(super) tested: Option<Tested>,
    /// True if its result is how many rows it found.
    pub(super) counts: bool,
    /// True if its result has every row that it found.
    pub(super) is_whole: bool,
}

/// The columns that are equal to values, and those that are true or false.
pub(super) type Tested = (Vec<String>, Vec<(String, bool)>);

/// An UPDATE of one table whose conditions are equalities with values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Update {
    /// The columns of its conditions.
    pub(super) equal: Vec<String>,
    /// The columns that are set to values.
    pub(super) set: Vec<String>,
}

impl Query {
    /// The form of a normalised statement.
    pub(super) fn of(key: &str) -> Option<Query> {
        let (list, tail) = after(key, "SELECT ")?.split_once(" FROM ")?;
        let (tables, conditions) = tail.split_once(" WHERE ").unwrap_or((tail, ""));
        let nested = ["SELECT", " UNION", " EXCEPT", " INTERSECT", " GROUP BY", " JOIN "];
        if nested.iter().any(|word| list.contains(word) || tail.contains(word)) {
            return None;
        }
        let tables = before(tables, &ENDS);
        is_table(tables).then_some(())?;
        let conditions = before(conditions, &ENDS);
        let tested = if conditions.is_empty() { Some((Vec::new(), Vec::new())) } else { tested(conditions) };
        let equal = tested.as_ref().filter(|(_, flags)| flags.is_empty()).map(|(equal, _)| equal.clone());
        let items = split(list, ", ");
        let words = list.to_ascii_lowercase();
        let counts = items.len() == 1 && words.starts_with("count(*)");
        let some = [" LIMIT ", " OFFSET ", " FETCH ", " SKIP "].iter().any(|word| tail.contains(word));
        let is_whole = !some && !words.contains('(') && !words.starts_with("distinct");
        let all = items.iter().all(|item| *item == "*" || item.ends_with(".*"));
        let columns = (!all).then(|| items.iter().filter_map(|item| result_column(item)).collect());
        Some(Query { columns, equal, tested, counts, is_whole })
    }

    /// The table's column that a column of the result shows.
    pub(super) fn column<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let Some(columns) = &self.columns else { return Some(name) };
        let mut same = columns.iter().filter(|(own, _)| own == name);
        let found = same.next().map(|(_, column)| column.as_str());
        found.filter(|_| same.next().is_none())
    }
}

impl Update {
    /// The form of a normalised statement.
    pub(super) fn of(key: &str) -> Option<Update> {
        let (table, tail) = after(key, "UPDATE ")?.split_once(" SET ")?;
        let (items, conditions) = tail.split_once(" WHERE ")?;
        if tail.contains("SELECT") || tail.contains(" FROM ") || !is_table(table) {
            return None;
        }
        let conditions = before(conditions, &[" RETURNING "]);
        let value = |item: &&str| equality(item);
        Some(Update {
            equal: equalities(conditions)?,
            set: split(items, ", ").iter().filter_map(value).collect(),
        })
    }
}

/// What ends conditions and tables of a query.
const ENDS: [&str; 5] = [" ORDER BY ", " LIMIT ", " OFFSET ", " FETCH ", " FOR "];

/// What follows the first word, in any case.
fn after<'a>(key: &'a str, word: &str) -> Option<&'a str> {
    let (first, rest) = key.split_at_checked(word.len())?;
    first.eq_ignore_ascii_case(word).then_some(rest)
}

fn before<'a>(text: &'a str, ends: &[&str]) -> &'a str {
    let first = ends.iter().filter_map(|end| text.find(end)).min();
    first.map_or(text, |first| &text[..first])
}

/// True for the name of a table with an alias or none.
fn is_table(text: &str) -> bool {
    let words: Vec<&str> = text.split(' ').collect();
    let names = match words.as_slice() {
        [table] => vec![*table],
        [table, alias] => vec![*table, *alias],
        [table, as_word, alias] if as_word.eq_ignore_ascii_case("as") => vec![*table, *alias],
        _ => return false,
    };
    names.into_iter().all(|name| name_of(name).is_some())
}

/// Splits a text where this stands outside of parentheses and quotation marks.
fn split<'a>(text: &'a str, by: &str) -> Vec<&'a str> {
    let (mut depth, mut quoted, mut from, mut found) = (0_usize, false, 0, Vec::new());
    for (at, letter) in text.char_indices() {
        match letter {
            '"' => quoted = !quoted,
            '(' | '[' if !quoted => depth += 1,
            ')' | ']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && !quoted && at >= from && text[at..].starts_with(by) {
            found.push(&text[from..at]);
            from = at + by.len();
        }
    }
    found.push(&text[from..]);
    found
}

/// The columns of equalities that are joined by AND.
fn equalities(text: &str) -> Option<Vec<String>> {
    let text = without_parentheses(text);
    split(text, " AND ").into_iter().map(|one| equality(without_parentheses(one))).collect()
}

/// The columns of equalities and truths that are joined by AND.
fn tested(text: &str) -> Option<Tested> {
    let (mut equal, mut flags) = (Vec::new(), Vec::new());
    for one in split(without_parentheses(text), " AND ") {
        let one = without_parentheses(one);
        match (equality(one), truth(one)) {
            (Some(column), _) => equal.push(column),
            (None, Some(flag)) => flags.push(flag),
            (None, None) => return None,
        }
    }
    Some((equal, flags))
}

/// The column of `column`, `NOT column`, `column = true` and `column IS FALSE`.
fn truth(text: &str) -> Option<(String, bool)> {
    let constant = |word: &str| match word.to_ascii_lowercase().as_str() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    };
    let words: Vec<&str> = text.split(' ').collect();
    match words.as_slice() {
        [column] if constant(column).is_none() && *column != "?" => Some((name_of(column)?, true)),
        [not, column] if not.eq_ignore_ascii_case("not") => Some((name_of(column)?, false)),
        [column, is, value] if *is == "=" || is.eq_ignore_ascii_case("is") => {
            Some((name_of(column)?, constant(value)?))
        }
        _ => None,
    }
}

/// The column of `column = value`.
fn equality(text: &str) -> Option<String> {
    let (column, value) = text.split_once(" = ")?;
    let value = match value.split_once("::") {
        Some((value, name))
            if name.chars().all(|letter| letter.is_alphanumeric() || "_ (),\"".contains(letter)) =>
        {
            value
        }
        Some(_) => return None,
        None => value,
    };
    (value == "?").then(|| name_of(column)).flatten()
}

fn without_parentheses(text: &str) -> &str {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    // `(a) AND (b)` isn't in parentheses as a whole.
    let whole = |inner: &&str| {
        let mut depth = 0_i64;
        inner.chars().all(|letter| {
            depth += i64::from(letter == '(') - i64::from(letter == ')');
            depth >= 0
        })
    };
    inner.filter(whole).unwrap_or(text)
}

/// The last part of a name such as `s."t".column`.
fn name_of(text: &str) -> Option<String> {
    let mut last = None;
    for part in split(text, ".") {
        let plain = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
        last = Some(match part.strip_prefix('"').and_then(|part| part.strip_suffix('"')) {
            Some(quoted) if !quoted.is_empty() && !quoted.contains('"') => quoted.to_owned(),
            None if !part.is_empty() && part.chars().all(plain) => part.to_lowercase(),
            Some(_) | None => return None,
        });
    }
    last
}

/// The name in the result, and the column, of `t.column`, `t.column AS name` or `t.column name`.
fn result_column(item: &str) -> Option<(String, String)> {
    let words: Vec<&str> = item.split(' ').collect();
    match words.as_slice() {
        [column] => name_of(column).map(|name| (name.clone(), name)),
        [column, word, name] if word.eq_ignore_ascii_case("as") => Some((name_of(name)?, name_of(column)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_sql::normal::Normal;

    fn query(sql: &str) -> Option<Query> {
        Query::of(&Normal::of(sql, &[]).key)
    }

    fn update(sql: &str) -> Option<Update> {
        Update::of(&Normal::of(sql, &[]).key)
    }

    #[test]
    fn columns_of_a_query_have_their_own_names() {
        let all = query("select * from stock where id = 3 for update").unwrap();
        assert_eq!((all.column("n"), &all.equal), (Some("n"), &Some(vec!["id".to_owned()])));
        let some = query(
            "SELECT \"s\".\"id\", s.n AS \"left\", s.a + 1 AS b FROM \"app\".\"stock\" \"s\" WHERE (\"s\".\"id\" = 3) LIMIT 21",
        );
        let some = some.unwrap();
        assert_eq!((some.column("left"), some.column("b"), some.column("n")), (Some("n"), None, None));
        assert_eq!(some.equal, Some(vec!["id".to_owned()]));
        assert_eq!(query("SELECT n FROM stock WHERE id > 3 AND a = 4").unwrap().equal, None);
        for other in [
            "SELECT a.n FROM a JOIN b ON a.id = b.id WHERE a.id = 1",
            "SELECT n FROM a, b WHERE a.id = 1",
            "SELECT n FROM (SELECT 1 AS n) t",
            "SELECT max(n) FROM t WHERE id = 1 GROUP BY n",
            "SELECT 1",
        ] {
            assert_eq!(query(other), None, "{other}");
        }
    }

    #[test]
    fn truths_are_conditions_too() {
        let tested = |sql: &str| query(sql).unwrap().tested;
        let flags = |sql: &str| tested(sql).unwrap().1;
        let on = |value| vec![("on_call".to_owned(), value)];
        for (condition, value) in [
            ("on_call", true),
            ("NOT on_call", false),
            ("d.on_call = true", true),
            ("(on_call is false)", false),
        ] {
            let sql = format!("SELECT id FROM doctor d WHERE ward = 3 AND {condition}");
            assert_eq!((flags(&sql), query(&sql).unwrap().equal), (on(value), None), "{sql}");
        }
        for other in ["on_call OR x", "on_call IS NULL", "f(on_call)", "on_call <> true", "NOT a AND b > 3"] {
            assert_eq!(tested(&format!("SELECT id FROM doctor WHERE ward = 3 AND {other}")), None, "{other}");
        }
        let whole = |sql: &str| (query(sql).unwrap().counts, query(sql).unwrap().is_whole);
        assert_eq!(whole("SELECT count(*) AS n FROM t WHERE a = 1"), (true, false));
        assert_eq!(whole("SELECT id, b FROM t WHERE a = 1 FOR UPDATE"), (false, true));
        for other in
            ["SELECT id FROM t WHERE a = 1 LIMIT 5", "SELECT DISTINCT b FROM t", "SELECT max(b) FROM t"]
        {
            assert_eq!(whole(other), (false, false), "{other}");
        }
    }

    #[test]
    fn an_update_sets_values_or_is_something_else() {
        let one = update(
            "UPDATE stock SET n = 5, a = a + 1, b = '3'::numeric(12, 2) WHERE id = 3 AND v = 4 RETURNING n",
        );
        let expected = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let one = one.unwrap();
        assert_eq!((one.set, one.equal), (expected(&["n", "b"]), expected(&["id", "v"])));
        for other in [
            "UPDATE stock SET n = 5 WHERE id >= 3",
            "UPDATE stock SET n = 5 WHERE id = 3 OR id = 4",
            "UPDATE stock SET n = 5 WHERE id IN (3)",
            "UPDATE stock SET n = 5",
            "UPDATE stock s SET n = t.n FROM t WHERE s.id = 3",
            "UPDATE stock SET n = 5 WHERE id = (SELECT 3)",
            "UPDATE stock SET n = 5 WHERE id = 3 + 1",
        ] {
            assert_eq!(update(other), None, "{other}");
        }
    }
}
