//! A hint at statements of a user's scripts whose `--@` line may be missing or wrong, for a history
//! that doesn't account for a value read.

use isobench_script::{Annotated, CommandKind, Mix, Script, Sql};

use crate::workload::Sources;

/// Maximum number of statements named.
const MOST: usize = 4;

/// Returns the statements to look at, as part of a sentence: those that write without a `--@` line
/// for the write; failing that, those with such a line. `None` if there are neither.
pub fn hint(sources: &Sources) -> Option<String> {
    let mix = sources.mix();
    let silent = places(mix, |sql| writes(&sql.parameterized) && !is_annotated_write(sql));
    if !silent.is_empty() {
        return Some(format!("a statement that writes has no line --@ write, insert or append: {silent}"));
    }
    let annotated = places(mix, is_annotated_write);
    let ask = "check whether these statements raise the version with every write, and whether their values are unique";
    (!annotated.is_empty()).then(|| format!("{ask}: {annotated}"))
}

/// The places of statements of a kind in the scripts, with their texts.
fn places(mix: &Mix, is: impl Fn(&Sql) -> bool) -> String {
    let scripts = mix.scripts().iter().map(|weighted| &weighted.script);
    let all: Vec<String> = scripts.flat_map(|script| places_in(script, &is)).collect();
    let shown = all.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > MOST { format!("{shown} and {} more", all.len() - MOST) } else { shown }
}

fn places_in(script: &Script, is: impl Fn(&Sql) -> bool) -> Vec<String> {
    let place = |command: &isobench_script::Command| match &command.kind {
        CommandKind::Sql(sql) if is(sql) => {
            Some(format!("{}:{} ({})", script.name, command.line, command.text.trim_end()))
        }
        _ => None,
    };
    script.commands.iter().filter_map(place).collect()
}

fn is_annotated_write(sql: &Sql) -> bool {
    sql.annotations.iter().any(|line| {
        matches!(line.what, Annotated::Write { .. } | Annotated::Insert { .. } | Annotated::Append { .. })
    })
}

/// Returns whether a statement has a word that writes; `FOR UPDATE` isn't one.
fn writes(statement: &str) -> bool {
    let letter = |letter: char| !(letter.is_alphanumeric() || letter == '_');
    let words: Vec<String> =
        statement.split(letter).filter(|word| !word.is_empty()).map(str::to_uppercase).collect();
    words.iter().enumerate().any(|(place, word)| match word.as_str() {
        "INSERT" | "DELETE" | "MERGE" => true,
        "UPDATE" => place == 0 || !matches!(words[place - 1].as_str(), "FOR" | "KEY"),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::writes;

    #[test]
    fn words_that_write() {
        for (statement, expected) in [
            ("UPDATE accounts SET a = 1", true),
            ("with x as (delete from t returning *) select 1", true),
            ("INSERT INTO t VALUES (1)", true),
            ("SELECT a FROM t FOR UPDATE", false),
            ("SELECT a FROM t FOR NO KEY UPDATE", false),
            ("SELECT updated FROM t", false),
            ("", false),
        ] {
            assert_eq!(writes(statement), expected, "{statement}");
        }
    }
}
