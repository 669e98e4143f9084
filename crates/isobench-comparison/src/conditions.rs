//! The user's own conditions: SQL that must be true after every round (`--invariant`).
//!
//! Each is asked in a read-only transaction, so that asking can't change what is measured. Not here:
//! the invariants of workloads that come with isobench (`invariants.rs`).

use isobench_database::{Connector, Error, query};
use isobench_isolation::{Guarantee, Model};
use isobench_pgwire::{Connection, visible};
use isobench_probe::interleaving::TriedCondition;
use isobench_result::Invariant;
use isobench_script::{CommandKind, Sql, Store, Symbols, parse};

use crate::failure::{Failure, Outcome};

/// The option, and what the text is called in messages of the parser.
const OPTION: &str = "--invariant";

/// The most characters of a value that is shown, and of a query that serves as a name.
const LONGEST_VALUE: usize = 200;
const LONGEST_NAME: usize = 60;

/// A condition of the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its name: the user's, or the query itself.
    name: String,
    /// One statement.
    sql: String,
}

/// The answer to a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    held: bool,
    /// The second column, for people.
    value: Option<String>,
}

/// Conditions, and those among them that were violated before the measurement already.
#[derive(Debug, Clone, Default)]
pub struct Conditions<'a> {
    asked: &'a [Condition],
    violated_before: Vec<&'a str>,
}

impl Condition {
    /// Reads conditions as given: a query, or `NAME: query`.
    ///
    /// # Errors
    /// A text isn't a single statement, or two have the same name.
    pub fn list(texts: &[String]) -> Outcome<Vec<Condition>> {
        let mut conditions: Vec<Condition> = Vec::new();
        for text in texts {
            let condition = Condition::read(text)?;
            if conditions.iter().any(|known| known.name == condition.name) {
                return Err(Failure::setup(format!(
                    "{OPTION}: \"{}\" is there twice; give each condition a name of its own: {OPTION} 'NAME: SELECT …'",
                    condition.name
                )));
            }
            conditions.push(condition);
        }
        Ok(conditions)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its query, which returns true or false.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    fn read(text: &str) -> Outcome<Condition> {
        let (name, query) = named(text);
        let wrong = |problem: &str| {
            Failure::setup(format!(
                "{OPTION}: {problem}; give one query that returns true or false, such as 'total: SELECT sum(balance) = \
                 1000, sum(balance) FROM account'\n  {}",
                text.trim()
            ))
        };
        if query.trim().is_empty() {
            return Err(wrong("there is no query"));
        }
        let script = parse(OPTION, query, &mut Symbols::new())
            .map_err(|error| Failure::setup(format!("{OPTION}: {error}")))?;
        let [command] = script.commands.as_slice() else {
            let statements = script.commands.len();
            return Err(wrong(&format!("there are {statements} statements, not one")));
        };
        let CommandKind::Sql(sql) = &command.kind else {
            return Err(wrong(&format!("\\{} is not SQL", command.kind.name())));
        };
        if !is_single(sql) {
            return Err(wrong("there is more than one statement, or one that stores its result"));
        }
        let sql = sql.as_written();
        let name = name.map_or_else(|| shortened(&sql, LONGEST_NAME), str::to_owned);
        Ok(Condition { name, sql })
    }

    /// Returns the condition with its name, as an option takes it.
    pub fn written(&self) -> String {
        let sql = self.sql.trim();
        if named(sql).0.is_none() && shortened(sql, LONGEST_NAME) == self.name {
            return sql.to_owned();
        }
        format!("{}: {sql}", self.name)
    }

    /// The same for trying scripts against each other.
    pub fn tried(&self) -> TriedCondition {
        TriedCondition { name: self.name.clone(), sql: self.sql.trim().trim_end_matches(';').to_owned() }
    }

    /// Asks the server, in a read-only transaction. Returns the reason why there is no answer.
    fn ask(&self, connection: &mut Connection) -> Result<Found, String> {
        query(connection, "BEGIN TRANSACTION READ ONLY").map_err(|error| error.to_string())?;
        let answer = query(connection, &self.sql);
        // If this fails, the next statement says so.
        let _ = query(connection, "ROLLBACK");
        match answer {
            Ok(rows) => read(&rows.rows),
            Err(Error::Query { source, .. }) => Err(source.report(Some(&self.sql))),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl<'a> Conditions<'a> {
    /// Conditions that held when the tables were made.
    pub fn holding(asked: &'a [Condition]) -> Conditions<'a> {
        Conditions { asked, violated_before: Vec::new() }
    }

    /// Checks that every condition can be answered and holds, before anything is measured.
    ///
    /// # Errors
    /// One doesn't hold, or its query fails, or returns something other than true or false.
    pub fn require(asked: &[Condition], connector: &Connector) -> Outcome {
        for (condition, found) in asked.iter().zip(ask_all(asked, connector)?) {
            if !found.held {
                let value = found.value.map_or_else(String::new, |value| format!(" (found {value})"));
                return Err(refusal(
                    condition,
                    &format!(
                        "doesn't hold before anything is measured{value}, so it could accuse no level; mend the query, \
                         or the tables it is asked of"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Asks before a measurement on tables that an earlier one wrote to. A condition that is violated
    /// already says nothing about it.
    ///
    /// # Errors
    /// As [`Conditions::require`], but for violations.
    pub fn before(asked: &'a [Condition], connector: &Connector) -> Outcome<Conditions<'a>> {
        let found = ask_all(asked, connector)?;
        let violated = asked.iter().zip(found).filter(|(_, found)| !found.held);
        let violated_before = violated.map(|(condition, _)| condition.name.as_str()).collect();
        Ok(Conditions { asked, violated_before })
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// Asks after a measurement. `connect` opens the session; `promised` is the level's guarantee.
    pub fn after(
        &self,
        connect: impl FnOnce() -> Result<Connection, Error>,
        promised: Option<Guarantee>,
    ) -> Vec<Invariant> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut connection = match connect() {
            Ok(connection) => connection,
            Err(error) => {
                let why = format!("could not be checked: {error}");
                return self.asked.iter().map(|one| unchecked(one, &why)).collect();
            }
        };
        let mut invariants = Vec::new();
        for condition in self.asked {
            if self.violated_before.contains(&condition.name.as_str()) {
                invariants.push(unchecked(condition, "was violated before this measurement already"));
                continue;
            }
            invariants.push(match condition.ask(&mut connection) {
                Ok(found) => judged(condition, found, promised),
                Err(why) => unchecked(condition, &format!("could not be checked: {why}")),
            });
        }
        invariants
    }
}

/// Asks all conditions in one session.
fn ask_all(asked: &[Condition], connector: &Connector) -> Outcome<Vec<Found>> {
    if asked.is_empty() {
        return Ok(Vec::new());
    }
    let mut connection = connector.open().map_err(Failure::setup)?;
    let ask = |condition: &Condition| condition.ask(&mut connection).map_err(|why| refusal(condition, &why));
    let found = asked.iter().map(ask).collect();
    connection.close();
    found
}

fn refusal(condition: &Condition, why: &str) -> Failure {
    let name = &condition.name;
    Failure::setup(format!("{OPTION} \"{name}\": {why}\n  in {}", condition.sql.trim()))
}

fn unchecked(condition: &Condition, why: &str) -> Invariant {
    Invariant { own: true, ..Invariant::unchecked(&condition.name, why) }
}

/// A condition holds after transactions run one by one if each of them keeps it, so as with a
/// workload's invariants only a serializable guarantee promises it.
fn judged(condition: &Condition, found: Found, promised: Option<Guarantee>) -> Invariant {
    let detail = match (found.value, found.held) {
        (Some(value), _) => format!("found {value}"),
        (None, true) => "found true".to_owned(),
        (None, false) => "found false".to_owned(),
    };
    Invariant {
        violations: Some(u64::from(!found.held)),
        unit: Some("rounds".to_owned()),
        promised: promised.is_some_and(|promised| promised.model.implies(Model::Serializable)),
        own: true,
        ..Invariant::checked(&condition.name, found.held, detail)
    }
}

/// Splits `NAME: query`. A name is a word; `SELECT a::int` has none.
fn named(text: &str) -> (Option<&str>, &str) {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    // Any text before a query is a name.
    let begins = |text: &str| {
        let first = text.trim_start().split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
        ["select", "with", "values", "table"].iter().any(|word| first.eq_ignore_ascii_case(word))
            || text.trim_start().starts_with('(')
    };
    match text.split_once(':') {
        Some((name, query)) if !name.trim().is_empty() && !begins(name) && begins(query) => {
            (Some(name.trim()), query)
        }
        Some((name, query)) if is_name(name.trim()) && !query.starts_with(':') => (Some(name.trim()), query),
        _ => (None, text),
    }
}

fn is_single(sql: &Sql) -> bool {
    sql.statements.len() == 1 && matches!(sql.store, Store::None)
}

/// The answer in the rows of the query.
fn read(rows: &[Vec<Option<String>>]) -> Result<Found, String> {
    let [row] = rows else {
        return Err(format!(
            "the query returned {} rows, not one with true or false",
            if rows.is_empty() { "no".to_owned() } else { rows.len().to_string() }
        ));
    };
    let (first, value) = match row.as_slice() {
        [first] => (first, None),
        [first, value] => (first, Some(value)),
        columns => {
            return Err(format!(
                "the query returned {} columns; the first says whether the condition holds, a second one may show \
                 the value",
                columns.len()
            ));
        }
    };
    let held = match first.as_deref() {
        Some("t" | "true" | "TRUE") => true,
        Some("f" | "false" | "FALSE") => false,
        Some(other) => {
            let other = shortened(other, LONGEST_VALUE);
            return Err(format!(
                "the query returned \"{other}\", which is neither true nor false; compare it: SELECT … = …"
            ));
        }
        None => {
            return Err(
                "the query returned NULL, which is neither true nor false; say which it is: coalesce(…, false)"
                    .to_owned(),
            );
        }
    };
    let shown = |value: &Option<String>| {
        value.as_ref().map_or_else(|| "NULL".to_owned(), |value| shortened(value, LONGEST_VALUE))
    };
    Ok(Found { held, value: value.map(shown) })
}

/// A text in one line, without control characters, and not too long.
fn shortened(text: &str, longest: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = visible(text.trim_end_matches(';').trim_end()).into_owned();
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Outcome<Condition> {
        Condition::list(&[text.to_owned()]).map(|mut list| list.remove(0))
    }

    #[test]
    fn a_condition_has_a_name_or_is_one() {
        for (text, name, sql) in [
            ("total: SELECT sum(b) = 3 FROM t", "total", "SELECT sum(b) = 3 FROM t"),
            ("no-debt:SELECT true;", "no-debt", "SELECT true"),
            ("no batch is stuck: SELECT true", "no batch is stuck", "SELECT true"),
            (
                "stock, by shop:\n with a AS (SELECT 1) SELECT true",
                "stock, by shop",
                "with a AS (SELECT 1) SELECT true",
            ),
            (
                "(SELECT true) = ':'::text: SELECT",
                "(SELECT true) = ':'::text: SELECT",
                "(SELECT true) = ':'::text: SELECT",
            ),
            ("SELECT  sum(b)\n = 3 FROM t;", "SELECT sum(b) = 3 FROM t", "SELECT  sum(b)\n = 3 FROM t"),
            ("SELECT::text = '' FROM t", "SELECT::text = '' FROM t", "SELECT::text = '' FROM t"),
            (
                "SELECT a::int = 1, ':b;' FROM t",
                "SELECT a::int = 1, ':b;' FROM t",
                "SELECT a::int = 1, ':b;' FROM t",
            ),
        ] {
            let condition = one(text).unwrap();
            assert_eq!((condition.name.as_str(), condition.sql.trim().trim_end_matches(';')), (name, sql));
        }
        assert_eq!(one("total:SELECT true").unwrap().written(), "total: SELECT true");
        assert_eq!(one(" SELECT true").unwrap().written(), "SELECT true");
        let long = one(&format!("SELECT {} = 1", "x".repeat(100))).unwrap();
        assert_eq!(long.name.chars().count(), LONGEST_NAME + 1);
    }

    #[test]
    fn anything_but_one_query_is_refused() {
        for (text, part) in [
            ("SELECT true; DELETE FROM t", "2 statements"),
            ("SELECT true \\; DELETE FROM t", "more than one statement"),
            ("SELECT true \\gset", "stores its result"),
            ("\\set x 1", "\\set is not SQL"),
            ("total:", "there is no query"),
            ("-- nothing", "empty"),
        ] {
            let message = one(text).map(|found| found.sql).unwrap_err().to_string();
            assert!(message.starts_with(OPTION) && message.contains(part), "{text}: {message}");
        }
        let twice = ["a: SELECT true".to_owned(), "a: SELECT false".to_owned()];
        assert!(Condition::list(&twice).unwrap_err().to_string().contains("\"a\" is there twice"));
    }

    #[test]
    fn an_answer_is_true_or_false_and_may_have_a_value() {
        let row = |texts: &[Option<&str>]| {
            let row = texts.iter().map(|text| text.map(str::to_owned)).collect::<Vec<_>>();
            read(&[row])
        };
        let found = |held, value: Option<&str>| Ok(Found { held, value: value.map(str::to_owned) });
        assert_eq!(row(&[Some("t")]), found(true, None));
        assert_eq!(row(&[Some("f"), Some("10\n\u{1b}[31m1")]), found(false, Some("10 \\u001b[31m1")));
        assert_eq!(row(&[Some("false"), None]), found(false, Some("NULL")));
        let long = row(&[Some("f"), Some(&"9".repeat(300))]).unwrap().value.unwrap();
        assert_eq!(long.chars().count(), LONGEST_VALUE + 1);
        for (texts, part) in [
            (&[None][..], "returned NULL"),
            (&[Some("12")][..], "\"12\", which is neither true nor false"),
            (&[Some("t"), None, None][..], "3 columns"),
            (&[][..], "0 columns"),
        ] {
            let message = row(texts).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
        assert!(read(&[]).unwrap_err().contains("no rows"));
        assert!(read(&[vec![], vec![]]).unwrap_err().contains("2 rows"));
    }

    #[test]
    fn only_serializable_promises_a_condition() {
        let condition = one("total: SELECT true").unwrap();
        let violated = || Found { held: false, value: Some("7".to_owned()) };
        for (level, promises) in [("serializable", true), ("repeatable read", false)] {
            let effective = isobench_isolation::EffectiveLevel::from_setting(level);
            let promised =
                isobench_database::Database::from_version_text("PostgreSQL 18.3 on x, compiled by gcc")
                    .product
                    .promises_effective(&effective);
            let invariant = judged(&condition, violated(), promised);
            assert_eq!((invariant.promised, invariant.own, invariant.violations), (promises, true, Some(1)));
            assert_eq!((invariant.detail.as_str(), invariant.held), ("found 7", Some(false)));
        }
    }
}
