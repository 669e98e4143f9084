//! `INSERT … ON CONFLICT DO NOTHING` in place of an insert that follows a search, with the unique index that it needs.

use isobench_program::{TemplateStatement, Templates};

use super::unique_index::UniqueIndex;
use super::{Ground, Made, ReadAgain};
use crate::change_set::{ChangeSet, Changed, Edit};
use crate::patch::{difference, rewritten};

/// Where a unique index makes the second of two inserts fail: the same without a failure. To theory nothing is known of
/// the index, so that it is tried.
pub(super) fn make(ground: &Ground<'_>, _: &mut ReadAgain<'_>) -> Vec<Made> {
    let templates = ground.templates();
    let mut all: Vec<Made> = Vec::new();
    for reason in &ground.decision.reasons {
        let (read, overwrites) = (reason.objection.read, reason.objection.overwrites);
        let index = UniqueIndex::of(&templates.programs, read, overwrites);
        let Some(set) = index.and_then(|index| with(ground, &index)) else { continue };
        if !all.iter().any(|known| known.set.setup == set.setup) {
            all.push(Made::to_try(set));
        }
    }
    all
}

/// The scripts with the clause, and the index.
fn with(ground: &Ground<'_>, index: &UniqueIndex<'_>) -> Option<ChangeSet> {
    let templates = ground.templates();
    let statement = templates.statements.iter().find(|statement| statement.at == *index.insert)?;
    let clause = format!("ON CONFLICT ({}) DO NOTHING", index.columns_in_sql());
    let scripts = rewritten(templates, ground.before, &[statement], |other| with_clause(other, &clause))?;
    let change =
        Changed { at: index.insert.clone(), table: index.table.to_owned(), to: Edit::Sets(clause.clone()) };
    let sql = index.sql()?;
    let name = format!("{} and {clause} in {}", index.name(), index.insert);
    let set = ChangeSet::index(templates, ground.before, name, change, &ground.lowest());
    let diff = format!("{}{sql};\n", difference(ground.before, &scripts));
    Some(ChangeSet { diff, setup: Some(sql), scripts, ..set })
}

/// A plain INSERT with the clause at its end; `None` of any other.
fn with_clause(statement: &TemplateStatement, clause: &str) -> Option<String> {
    let words: Vec<String> = statement
        .written
        .split(|letter: char| !letter.is_alphanumeric())
        .map(str::to_ascii_lowercase)
        .collect();
    let has = |word: &str| words.iter().any(|own| own == word);
    let plain = words.first().is_some_and(|first| first == "insert") && !has("conflict") && !has("returning");
    let apart = if statement.written.contains("--") { "\n" } else { " " };
    plain.then(|| format!("{}{apart}{clause}", statement.written.trim_end()))
}

/// A sentence for each MERGE that may insert a row which another transaction inserts, too.
pub(crate) fn hints(templates: &Templates) -> Vec<String> {
    let inserts = |statement: &&TemplateStatement| {
        let text = statement.text.to_ascii_lowercase();
        text.starts_with("merge ") && text.contains(" not matched") && text.contains(" insert")
    };
    let sentence = |statement: &TemplateStatement| {
        format!(
            "{} inserts a row that another transaction may insert, too: with a unique index the second one fails \
             (SQLSTATE 23505), and INSERT … ON CONFLICT … DO UPDATE changes the row of the first",
            statement.at
        )
    };
    templates.statements.iter().filter(inserts).map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(text: &str) -> TemplateStatement {
        TemplateStatement {
            at: "s.sql:3".into(),
            text: text.to_owned(),
            written: text.to_owned(),
            ..TemplateStatement::default()
        }
    }

    #[test]
    fn a_plain_insert_gets_the_clause_and_a_merge_a_hint() {
        let with = |text: &str| with_clause(&statement(text), "ON CONFLICT (a) DO NOTHING");
        assert_eq!(
            with("INSERT INTO t (a) VALUES (:a)").as_deref(),
            Some("INSERT INTO t (a) VALUES (:a) ON CONFLICT (a) DO NOTHING")
        );
        assert_eq!(with("insert into t values (1) RETURNING a"), None);
        assert_eq!(with("INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING"), None);
        let merge =
            "MERGE INTO t USING (VALUES (1)) s (a) ON t.a = s.a WHEN NOT MATCHED THEN INSERT VALUES (s.a)";
        let update = "MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = 1";
        let statements = [merge, update].map(statement).to_vec();
        let hints = hints(&Templates { statements, ..Templates::default() });
        assert!(hints.len() == 1 && hints[0].starts_with("s.sql:3 inserts a row"), "{hints:?}");
    }
}
