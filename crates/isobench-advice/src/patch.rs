//! Scripts with some statements changed, and the difference for people.

use std::collections::BTreeSet;

use isobench_program::{FirstLock, TemplateStatement, Templates};
use isobench_robustness::{Change, Promotion};
use similar::TextDiff;

/// The text of a script, with the texts of its statements as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptText {
    /// Its name.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// By command, the SQL as it stands in the text; empty for other commands.
    pub commands: Vec<String>,
}

/// The lines before and after a change that the difference shows.
const CONTEXT: usize = 2;

/// The scripts with these reads changed. `None` if one of the statements isn't found in its text, or
/// can't be changed so.
pub fn patched(
    templates: &Templates,
    scripts: &[ScriptText],
    promotions: &[Promotion],
) -> Option<Vec<ScriptText>> {
    let mut scripts = scripts.to_vec();
    for promotion in promotions {
        let statement = templates.statements.iter().find(|statement| statement.at == promotion.at)?;
        // The last one first, so that places before it stay.
        for other in repeated(templates, statement).into_iter().rev() {
            change(&mut scripts[other.script], other, |trimmed| {
                let fix = other.fixes.get(&promotion.table)?;
                match promotion.change {
                    Change::Lock(strength) => {
                        let weaker = fix.weaker.as_deref().unwrap_or_default();
                        let trimmed = trimmed.strip_suffix(weaker)?.trim_end();
                        let apart = if trimmed.contains("--") || trimmed.contains('\n') { "\n" } else { " " };
                        Some(format!("{trimmed}{apart}{}{}", strength.clause(), fix.lock.as_ref()?))
                    }
                    Change::Write => fix.write.clone(),
                }
            })?;
        }
    }
    Some(scripts)
}

/// The scripts with new texts for these statements. `None` if one of them isn't found in its text.
pub(crate) fn rewritten(
    templates: &Templates,
    scripts: &[ScriptText],
    statements: &[&TemplateStatement],
    new: impl Fn(&TemplateStatement) -> Option<String>,
) -> Option<Vec<ScriptText>> {
    let mut scripts = scripts.to_vec();
    for statement in statements {
        for other in repeated(templates, statement).into_iter().rev() {
            let text = new(other)?;
            change(&mut scripts[other.script], other, |trimmed| {
                Some(trimmed.replacen(&other.written, &text, 1))
            })?;
        }
    }
    Some(scripts)
}

/// The scripts with these statements before others. `None` if one of the lines isn't there.
pub(crate) fn preceded(scripts: &[ScriptText], locks: &[&FirstLock]) -> Option<Vec<ScriptText>> {
    let mut scripts = scripts.to_vec();
    let mut locks = locks.to_vec();
    // The last line first, so that those before it stay.
    locks.sort_by_key(|lock| std::cmp::Reverse(lock.line));
    let mut wrapped = BTreeSet::new();
    for lock in locks {
        let script = scripts.get_mut(lock.script)?;
        let at = start_of_line(&script.text, lock.line)?;
        let own = format!("{};\n", lock.text);
        match lock.alone {
            None => script.text.insert_str(at, &own),
            Some(command) if wrapped.insert((lock.script, command)) => {
                let written = script.commands.get(command)?.trim().trim_end_matches(';').trim_end();
                let end = at + script.text[at..].find(written)? + written.len();
                let rest = script.text[end..].lines().next().unwrap_or_default();
                let line_end = end + rest.len();
                // It ends with its line, perhaps by a meta-command.
                let semicolon = match rest.trim_start().chars().next() {
                    None => ";",
                    Some(';') if rest.trim_start()[1..].trim().is_empty() => "",
                    Some('\\') => "",
                    Some(_) => return None,
                };
                script.text.insert_str(line_end, &format!("{semicolon}\nCOMMIT;"));
                script.text.insert_str(at, &format!("BEGIN;\n{own}"));
            }
            // BEGIN stands there already.
            Some(_) => {
                let begin = script.text[at..].find('\n')? + 1;
                script.text.insert_str(at + begin, &own);
            }
        }
    }
    Some(scripts)
}

/// A statement, and the same ones: a repeated statement stands in the script repeatedly.
fn repeated<'t>(templates: &'t Templates, statement: &TemplateStatement) -> Vec<&'t TemplateStatement> {
    let same = |other: &&TemplateStatement| {
        other.script == statement.script && other.text == statement.text && other.place.1 == statement.place.1
    };
    templates.statements.iter().filter(same).collect()
}

/// Changes one statement, whose text is given without a semicolon.
fn change(
    script: &mut ScriptText,
    statement: &TemplateStatement,
    new: impl FnOnce(&str) -> Option<String>,
) -> Option<()> {
    let written = script.commands.get(statement.place.0)?.clone();
    // A command of several statements has no text of its own for each.
    let trimmed = written.trim().trim_end_matches(';').trim_end();
    if trimmed.is_empty() || trimmed.contains(';') {
        return None;
    }
    let line_start = start_of_line(&script.text, statement.line)?;
    let found = script.text[line_start..].find(trimmed)? + line_start;
    let new = new(trimmed)?;
    script.text.replace_range(found..found + trimmed.len(), &new);
    script.commands[statement.place.0] = new;
    Some(())
}

fn start_of_line(text: &str, line: u32) -> Option<usize> {
    let before = usize::try_from(line).ok()?.checked_sub(1)?;
    if before == 0 {
        return Some(0);
    }
    text.match_indices('\n').nth(before - 1).map(|(at, _)| at + 1)
}

/// The difference of scripts before and after, as a unified diff.
pub fn difference(before: &[ScriptText], after: &[ScriptText]) -> String {
    let changed = before.iter().zip(after).filter(|(old, new)| old.text != new.text);
    let diff = |(old, new): (&ScriptText, &ScriptText)| {
        TextDiff::from_lines(&old.text, &new.text)
            .unified_diff()
            .context_radius(CONTEXT)
            .header(&format!("a/{}", old.name), &format!("b/{}", new.name))
            .to_string()
    };
    changed.map(diff).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use isobench_program::{FirstLockKind, Fix};
    use isobench_robustness::Strength;

    use super::*;

    fn script() -> (Templates, Vec<ScriptText>) {
        let text = "\\set id random(1, 9)\nBEGIN;\nSELECT a FROM t -- its value\n    WHERE id = :id \\gset\nCOMMIT;\n";
        let sql = "SELECT a FROM t -- its value\n    WHERE id = :id";
        let fix = Fix {
            lock: Some(String::new()),
            weaker: None,
            write: Some("UPDATE t SET a = a WHERE id = :id RETURNING a".to_owned()),
        };
        let statement = TemplateStatement {
            place: (2, 0),
            line: 3,
            at: "s.sql:3".into(),
            text: "SELECT a FROM t WHERE id = :id".to_owned(),
            fixes: BTreeMap::from([("t".to_owned(), fix)]),
            ..TemplateStatement::default()
        };
        let commands = ["", "BEGIN", sql, "COMMIT"].map(str::to_owned).to_vec();
        let texts = vec![ScriptText { name: "s.sql".to_owned(), text: text.to_owned(), commands }];
        (Templates { statements: vec![statement], ..Templates::default() }, texts)
    }

    fn promotion(change: Change) -> Promotion {
        Promotion { program: 0, at: "s.sql:3".into(), table: "t".to_owned(), change }
    }

    #[test]
    fn a_lock_stands_after_the_statement_and_before_what_stores_its_result() {
        let (templates, before) = script();
        let after = patched(&templates, &before, &[promotion(Change::Lock(Strength::NoKeyUpdate))]).unwrap();
        assert_eq!(
            after[0].text,
            "\\set id random(1, 9)\nBEGIN;\nSELECT a FROM t -- its value\n    WHERE id = :id\nFOR NO KEY UPDATE \\gset\n\
             COMMIT;\n"
        );
        assert_eq!(
            difference(&before, &after),
            "--- a/s.sql\n+++ b/s.sql\n@@ -2,4 +2,5 @@\n BEGIN;\n SELECT a FROM t -- its value\n-    WHERE id = :id \
             \\gset\n+    WHERE id = :id\n+FOR NO KEY UPDATE \\gset\n COMMIT;\n"
        );
    }

    #[test]
    fn a_lock_takes_the_place_of_a_weaker_one() {
        let (mut templates, mut before) = script();
        let sql = "SELECT a FROM t WHERE id = :id for share";
        templates.statements[0].fixes.get_mut("t").unwrap().weaker = Some("for share".to_owned());
        before[0].text = format!("BEGIN;\n\n{sql} \\gset\n");
        before[0].commands[2] = sql.to_owned();
        let promotions = [promotion(Change::Lock(Strength::NoKeyUpdate))];
        let after = patched(&templates, &before, &promotions).unwrap();
        assert_eq!(after[0].text, "BEGIN;\n\nSELECT a FROM t WHERE id = :id FOR NO KEY UPDATE \\gset\n");
        // Not where it isn't found as it was read.
        templates.statements[0].fixes.get_mut("t").unwrap().weaker = Some("for key share".to_owned());
        assert_eq!(patched(&templates, &before, &promotions), None);
    }

    #[test]
    fn a_lock_stands_before_a_line() {
        let (_, before) = script();
        let lock = |line, text: &str| FirstLock {
            script: 0,
            line,
            alone: None,
            table: "t".to_owned(),
            text: format!("{text} FOR SHARE"),
            kind: FirstLockKind::Lock,
        };
        let (one, other) =
            (lock(1, "SELECT 1 FROM t WHERE id = 1"), lock(3, "SELECT 1 FROM t WHERE id = :id"));
        let after = preceded(&before, &[&one, &other]).unwrap();
        assert_eq!(
            difference(&before, &after),
            "--- a/s.sql\n+++ b/s.sql\n@@ -1,4 +1,6 @@\n+SELECT 1 FROM t WHERE id = 1 FOR SHARE;\n \\set id random(1, \
             9)\n BEGIN;\n+SELECT 1 FROM t WHERE id = :id FOR SHARE;\n SELECT a FROM t -- its value\n     WHERE id = \
             :id \\gset\n"
        );
        assert_eq!(preceded(&before, &[&lock(9, "SELECT 1")]), None);
    }

    #[test]
    fn a_query_becomes_an_update() {
        let (templates, before) = script();
        let after = patched(&templates, &before, &[promotion(Change::Write)]).unwrap();
        assert!(after[0].text.contains("\nUPDATE t SET a = a WHERE id = :id RETURNING a \\gset\n"));
    }

    #[test]
    fn what_is_not_found_is_not_changed() {
        let (templates, mut scripts) = script();
        scripts[0].commands[2] = "SELECT b".to_owned();
        assert_eq!(patched(&templates, &scripts, &[promotion(Change::Write)]), None);
    }
}
