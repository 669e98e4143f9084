//! Scripts of which one transaction writes what an earlier one read, as one transaction: no level protects what is
//! read before it begins.

use std::collections::{BTreeMap, BTreeSet};

use isobench_program::{Carried, Templates};
use isobench_robustness::StatementId;

use crate::change_set::{Changed, Edit};
use crate::decision::Decision;
use crate::patch::ScriptText;

/// Scripts whose transactions became one, with where their lines were before.
pub(crate) struct Joined {
    pub(crate) scripts: Vec<ScriptText>,
    pub(crate) changes: Vec<Changed>,
    /// By script, the number that each line had before; 0 for a new one.
    lines: BTreeMap<String, Vec<u32>>,
}

impl Joined {
    /// Takes the statements of the joined scripts for theirs.
    pub(crate) fn note_statements(&mut self, templates: &Templates) {
        for (number, script) in self.scripts.iter_mut().enumerate() {
            if !self.lines.contains_key(&script.name) {
                continue;
            }
            script.commands.clear();
            for statement in templates.statements.iter().filter(|one| one.script == number) {
                let (command, place) = statement.place;
                script.commands.resize(script.commands.len().max(command + 1), String::new());
                // A command of several statements has no text of its own for each.
                script.commands[command] = if place == 0 { statement.written.clone() } else { String::new() };
            }
        }
    }

    /// A statement with the line that it had before.
    pub(crate) fn before(&self, at: &StatementId) -> StatementId {
        let line = || {
            let lines = self.lines.get(&at.script)?;
            // Before a new line stands what follows it.
            let rest = lines.get(usize::try_from(at.line).ok()?.checked_sub(1)?..)?;
            rest.iter().find(|line| **line > 0).copied()
        };
        StatementId { line: line().unwrap_or(at.line), ..at.clone() }
    }
}

/// The scripts that carry values as one transaction each, from the first read to the last write; and those that go
/// wrong although all their transactions are serializable, as a whole. `None` if there are none, or a script's
/// transactions can't be joined.
pub(crate) fn joined(templates: &Templates, decision: &Decision, before: &[ScriptText]) -> Option<Joined> {
    let mut joined = Joined { scripts: before.to_vec(), changes: Vec::new(), lines: BTreeMap::new() };
    let wrong: BTreeSet<&String> = decision
        .at_any_level
        .iter()
        .flat_map(|tried| &tried.found)
        .flat_map(|wrong| &wrong.scripts)
        .collect();
    for (number, script) in joined.scripts.iter_mut().enumerate() {
        let own = |one: &&Carried| one.written.file == script.name;
        let carried: Vec<&Carried> = templates.carried.iter().filter(own).collect();
        // The value may be of the run before, or of another script.
        if carried.iter().any(|one| one.read.file != script.name || one.read.line >= one.written.line) {
            return None;
        }
        let statements = templates.statements.iter().filter(|one| one.script == number);
        let whole = statements.map(|one| one.line).filter(|_| wrong.contains(&script.name));
        let ends = carried.iter().flat_map(|one| [one.read.line, one.written.line]).chain(whole);
        let (Some(first), Some(last)) = (ends.clone().min(), ends.max()) else { continue };
        let (text, lines) = as_one(&script.text, usize::try_from(first).ok()?, usize::try_from(last).ok()?)?;
        if text == script.text {
            continue;
        }
        script.text = text;
        joined.lines.insert(script.name.clone(), lines);
        let at = StatementId::new(&script.name, first);
        joined.changes.push(Changed { at, table: String::new(), to: Edit::OneTransaction });
    }
    (!joined.changes.is_empty()).then_some(joined)
}

/// What a line of a script has to do with transactions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Begin,
    Commit,
    /// It begins or ends transactions in another way.
    Other,
    Plain,
}

fn line(text: &str) -> Line {
    let lower = text.trim().to_ascii_lowercase();
    let words: Vec<&str> = lower.trim_end_matches(';').split_whitespace().collect();
    match words.as_slice() {
        ["begin" | "begin;"] | ["begin", "transaction" | "work"] | ["start", "transaction"] => Line::Begin,
        ["commit" | "end"] | ["commit" | "end", "transaction" | "work"] => Line::Commit,
        [
            "begin" | "start" | "commit" | "end" | "rollback" | "abort" | "savepoint" | "release" | "prepare"
            | "\\startpipeline",
            ..,
        ] => Line::Other,
        _ => Line::Plain,
    }
}

/// A text with one transaction from a line to another one, both from 1, and the number that each line had.
fn as_one(text: &str, first: usize, last: usize) -> Option<(String, Vec<u32>)> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut depth, mut depths) = (0_usize, Vec::new());
    for one in &lines {
        let word = one.split_whitespace().next().unwrap_or_default();
        depth = if word == "\\endif" { depth.saturating_sub(1) } else { depth };
        depths.push(depth);
        depth += usize::from(word == "\\if");
    }
    let is_outer = |at: &usize| depths[*at] == 0;
    let start = (0..first).rev().find(is_outer)?;
    let is_in_block = |at: usize| {
        lines[..at].iter().rev().map(|one| line(one)).find(|kind| *kind != Line::Plain) == Some(Line::Begin)
    };
    let opens = is_in_block(start);
    let ends = |at: &usize| {
        let code = lines[*at].trim_end();
        is_outer(at) && (code.ends_with(';') || code.contains("\\gset") || code.starts_with("\\endif"))
    };
    let statement = (last - 1..lines.len()).find(ends)?;
    let end = if is_in_block(statement) {
        (statement..lines.len()).find(|at| line(lines[*at]) == Line::Commit)?
    } else {
        statement
    };
    let (mut out, mut numbers) = (Vec::new(), Vec::new());
    for (at, one) in lines.iter().enumerate() {
        let number = u32::try_from(at + 1).ok()?;
        let within = (start..=end).contains(&at);
        if at == start && !opens {
            out.push("BEGIN;");
            numbers.push(0);
        }
        match line(one) {
            Line::Other if within => return None,
            Line::Begin | Line::Commit if within => {}
            _ => {
                out.push(one);
                numbers.push(number);
            }
        }
        if at == end {
            out.push("COMMIT;");
            numbers.push(0);
        }
    }
    Some((out.join("\n") + "\n", numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_between_a_read_and_a_write_is_one_transaction() {
        let one = |text: &str, first, last| as_one(text, first, last).map(|(text, _)| text);
        let read = "\\set i 1\nSELECT n FROM t WHERE id = :i \\gset\n";
        let write = "UPDATE t SET n = :n + 1 WHERE id = :i;\n";
        assert_eq!(
            as_one(&format!("{read}{write}SELECT 1;\n"), 2, 3),
            Some((
                "\\set i 1\nBEGIN;\nSELECT n FROM t WHERE id = :i \\gset\nUPDATE t SET n = :n + 1 WHERE id = :i;\n\
                 COMMIT;\nSELECT 1;\n"
                    .to_owned(),
                vec![1, 0, 2, 3, 0, 4]
            ))
        );
        assert_eq!(
            one(&format!("{read}\\if :n > 0\n{write}\\endif\n"), 2, 4).as_deref(),
            Some(
                "\\set i 1\nBEGIN;\nSELECT n FROM t WHERE id = :i \\gset\n\\if :n > 0\nUPDATE t SET n = :n + 1 WHERE id \
                 = :i;\n\\endif\nCOMMIT;\n"
            )
        );
        assert_eq!(
            one(&format!("{read}\\if :n > 0\nBEGIN;\n{write}SELECT 2;\nCOMMIT;\n\\endif\n"), 2, 5).as_deref(),
            Some(
                "\\set i 1\nBEGIN;\nSELECT n FROM t WHERE id = :i \\gset\n\\if :n > 0\nUPDATE t SET n = :n + 1 WHERE id \
                 = :i;\nSELECT 2;\n\\endif\nCOMMIT;\n"
            )
        );
        let two = format!("BEGIN;\n{read}COMMIT;\n\nBEGIN;\n{write}COMMIT;\n");
        assert_eq!(
            one(&two, 3, 7).as_deref(),
            Some(
                "BEGIN;\n\\set i 1\nSELECT n FROM t WHERE id = :i \\gset\n\nUPDATE t SET n = :n + 1 WHERE id = :i;\n\
                 COMMIT;\n"
            )
        );
        assert_eq!(one(&two.replace("COMMIT;\n\n", "ROLLBACK;\n"), 3, 6), None);
    }
}
