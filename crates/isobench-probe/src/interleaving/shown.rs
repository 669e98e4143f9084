//! What was found, as text.

use std::fmt::Write as _;

use super::found::{Found, LevelFound, Order, Witness};
use super::stage::{Step, StepResult};

/// The longest row of a result that is shown whole, in characters.
const WIDEST: usize = 60;

/// The most rows of a result that are shown.
const MOST_ROWS: usize = 4;

/// The result as text: a line for each level, the first wrong outcome of each, and what wasn't tried.
pub fn render(found: &Found) -> String {
    let mut text = String::new();
    let width = found.levels.iter().map(|level| level.level.to_string().len()).max().unwrap_or(0);
    for level in &found.levels {
        let _ = writeln!(text, "{:width$}  {}", level.level.to_string(), summary(level));
    }
    let mut shown: Vec<&Witness> = Vec::new();
    for level in &found.levels {
        let Some(witness) = level.gravest() else { continue };
        if shown.iter().any(|other| other.steps == witness.steps) {
            continue;
        }
        shown.push(witness);
        let _ = write!(text, "\nAt {}:\n{}", level.level, steps(witness));
    }
    notes(found, &mut text);
    text
}

/// What a level was shown to be, in a few words.
fn summary(level: &LevelFound) -> String {
    let tried = match level.trials {
        1 => "1 interleaving".to_owned(),
        many => format!("{many} interleavings"),
    };
    match (&level.damage, &level.wrong_answer) {
        (Some(witness), _) if witness.no_level_prevents => {
            "unsafe (shown): data damaged between two transactions of a script, which no level prevents"
                .to_owned()
        }
        (Some(_), _) => "unsafe (shown): data damaged".to_owned(),
        (None, Some(_)) => "unsafe (shown): wrong answer".to_owned(),
        (None, None) => format!("nothing found in {tried}"),
    }
}

/// An interleaving step by step, what came of it, and what each order would have given.
pub fn steps(witness: &Witness) -> String {
    let mut text = String::new();
    let scripts: Vec<String> = witness
        .scripts
        .iter()
        .enumerate()
        .map(|(number, script)| format!("T{} {script}", number + 1))
        .collect();
    let _ = write!(text, "{}", scripts.join(", "));
    if !witness.before.is_empty() {
        let _ = write!(text, "; {}", witness.before);
    }
    text.push('\n');
    for step in &witness.steps {
        let sql = step.sql.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "  T{}: {sql}", step.transaction + 1);
        for line in answer(step) {
            let _ = writeln!(text, "        {line}");
        }
    }
    let _ = writeln!(text, "It ends with:");
    order(&witness.outcome, witness.damage, &mut text);
    for other in &witness.orders {
        let names: Vec<String> = other.transactions.iter().map(|number| format!("T{}", number + 1)).collect();
        let _ = writeln!(text, "{} ends with:", names.join(", then "));
        order(other, witness.damage, &mut text);
    }
    text
}

/// The answer to a step, a line each.
pub fn answer(step: &Step) -> Vec<String> {
    match &step.result {
        StepResult::Waits => vec!["waits".to_owned()],
        StepResult::Tag(tag) => vec![tag.clone()],
        StepResult::Failed(why) => vec![why.clone()],
        StepResult::Rows(table) => {
            let mut lines = vec![cut(&table.columns.join(" | "))];
            for row in table.rows.iter().take(MOST_ROWS) {
                let values: Vec<&str> = row.iter().map(|value| value.as_deref().unwrap_or("")).collect();
                lines.push(cut(&values.join(" | ")));
            }
            lines.push(match table.rows.len() {
                1 => "(1 row)".to_owned(),
                many => format!("({many} rows)"),
            });
            lines
        }
    }
}

fn order(order: &Order, damage: bool, text: &mut String) {
    if damage {
        for change in order.changes.iter().take(2 * MOST_ROWS) {
            let _ = writeln!(text, "  {}", cut(change));
        }
        if order.changes.is_empty() {
            let _ = writeln!(text, "  no change");
        }
        return;
    }
    for (number, told) in &order.told {
        let _ = writeln!(text, "  T{} is told {}", number + 1, cut(told));
    }
}

fn cut(text: &str) -> String {
    if text.chars().count() <= WIDEST {
        return text.to_owned();
    }
    text.chars().take(WIDEST - 1).chain(['…']).collect()
}

fn notes(found: &Found, text: &mut String) {
    let mut notes = Vec::new();
    for (script, why) in &found.refused {
        notes.push(format!("{script} was not tried: {why}"));
    }
    for by_design in &found.by_design {
        notes.push(format!(
            "{} at {}: an outcome that no order gives, as {} asks for",
            by_design.scripts, by_design.level, by_design.how
        ));
    }
    if !found.masked.is_empty() {
        let columns: Vec<&str> = found.masked.iter().map(String::as_str).collect();
        notes.push(format!("not judged by their values (sequences, clock, random): {}", columns.join(", ")));
    }
    if found.undetermined > 0 {
        notes.push(format!(
            "{} combinations take different ways in the same order: not judged",
            found.undetermined
        ));
    }
    if !found.complete && found.levels.iter().any(|level| level.damage.is_none()) {
        let untried = match found.untried.as_slice() {
            [] => "all combinations of scripts were tried, but not all numbers and states of the tables"
                .to_owned(),
            [only] => format!("not tried: {only}"),
            [first, rest @ ..] => format!("not tried: {first} and {} more", rest.len()),
        };
        notes.push(format!("the time ran out after {:.1} s; {untried}", found.elapsed.as_secs_f64()));
    }
    if !notes.is_empty() {
        text.push('\n');
    }
    for note in notes {
        let _ = writeln!(text, "{note}");
    }
}
