//! What trying scripts against each other showed, as lines to be laid out.

use crate::document::{Document, Tried, TriedStep, WrongOutcome};
use crate::numbers::counted;
use crate::words::{distinct, enumerated};

/// A wrong outcome step by step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Witness {
    /// What it shows, in a sentence.
    pub heading: String,
    /// The steps, the outcome, and what serial orders give; indented.
    pub lines: Vec<String>,
}

/// The most lines of an outcome, and of an answer, that are shown.
const MOST: usize = 8;

/// The most steps that are all shown. Of more, a transaction's steps in a row are shown at both ends.
const MOST_STEPS: usize = 24;

/// The number of steps in a row that are shown at each end.
const ENDS: usize = 4;

/// The most characters of a line.
const WIDEST: usize = 200;

/// What was found at a level.
pub type AtLevel<'a> = (String, &'a Tried);

/// What was found at the level of each cell whose scripts were tried.
pub fn tried(document: &Document) -> Vec<AtLevel<'_>> {
    let cells = document.cells.iter();
    cells.filter_map(|cell| Some((cell.level.said(), cell.tried.as_ref()?))).collect()
}

/// What a level was shown to be, in a few words.
pub fn summary(tried: &Tried) -> String {
    match tried.found.first() {
        Some(wrong) if wrong.no_level_prevents => {
            "unsafe (shown): data damaged between two transactions of a script, which no level prevents"
                .to_owned()
        }
        Some(wrong) if wrong.damage => "unsafe (shown): data damaged".to_owned(),
        Some(_) => "unsafe (shown): wrong answer".to_owned(),
        None if tried.interleavings == 0 => "nothing could be tried".to_owned(),
        None => format!("nothing found in {}", counted(tried.interleavings, "interleaving")),
    }
}

/// The wrong outcomes, each once with its levels, damage before wrong answers, the shortest first.
pub fn wrong_outcomes<'a>(levels: &[AtLevel<'a>]) -> Vec<(&'a WrongOutcome, Vec<String>)> {
    let mut found: Vec<(&WrongOutcome, Vec<String>)> = Vec::new();
    for (level, tried) in levels {
        for wrong in &tried.found {
            match found.iter_mut().find(|(other, _)| same_steps(other, wrong)) {
                Some((_, levels)) if !levels.contains(level) => levels.push(level.clone()),
                Some(_) => {}
                None => found.push((wrong, vec![level.clone()])),
            }
        }
    }
    found.sort_by_key(|(wrong, _)| (!wrong.damage, wrong.steps.len()));
    found
}

/// The columns (table.column) whose values mean nothing.
pub fn masked(levels: &[AtLevel<'_>]) -> Vec<String> {
    distinct(levels.iter().flat_map(|(_, tried)| &tried.masked).cloned())
}

/// The wrong outcomes in full, in the same order.
pub fn witnesses(levels: &[AtLevel<'_>]) -> Vec<Witness> {
    wrong_outcomes(levels).iter().map(|(wrong, levels)| witness(wrong, levels)).collect()
}

fn same_steps(one: &WrongOutcome, other: &WrongOutcome) -> bool {
    let sent = |wrong: &WrongOutcome| {
        wrong.steps.iter().map(|step| (step.transaction, step.sql.clone())).collect::<Vec<_>>()
    };
    one.damage == other.damage && sent(one) == sent(other)
}

fn witness(wrong: &WrongOutcome, levels: &[String]) -> Witness {
    let before = if wrong.before.is_empty() { String::new() } else { format!(", {}", wrong.before) };
    let heading = format!("{}{before}, at {}: {}.", wrong.scripts(), enumerated(levels), wrong.what());
    let mut lines = steps(&wrong.steps);
    let outcomes: Vec<&[String]> = std::iter::once(&wrong.outcome)
        .chain(&wrong.serial_orders)
        .map(|order| if wrong.damage { order.changes.as_slice() } else { order.answers.as_slice() })
        .collect();
    let shown = different(&outcomes);
    lines.push("It ends with:".to_owned());
    lines.extend(of_order(&shown[0]));
    let outcomes: Vec<Vec<String>> = shown[1..].iter().map(|lines| of_order(lines)).collect();
    let alike = outcomes.windows(2).all(|pair| pair[0] == pair[1]);
    for (order, outcome) in wrong.serial_orders.iter().zip(outcomes) {
        let names: Vec<String> = order.order.iter().map(|number| format!("T{number}")).collect();
        let name = if alike { "Every serial order".to_owned() } else { names.join(", then ") };
        lines.push(format!("{name} ends with:"));
        lines.extend(outcome);
        if alike {
            break;
        }
    }
    Witness { heading, lines: lines.iter().map(|line| cut(line)).collect() }
}

/// The steps with their answers. Of many only those at the ends of each transaction's turns, since what
/// matters is where one stops and another one runs.
fn steps(steps: &[TriedStep]) -> Vec<String> {
    let all = |steps: &[TriedStep]| steps.iter().flat_map(step).collect::<Vec<_>>();
    if steps.len() <= MOST_STEPS {
        return all(steps);
    }
    let mut lines = Vec::new();
    for turn in steps.chunk_by(|one, next| one.transaction == next.transaction) {
        let left_out = turn.len().saturating_sub(2 * ENDS);
        if left_out < 2 {
            lines.extend(all(turn));
            continue;
        }
        lines.extend(all(&turn[..ENDS]));
        lines.push(format!("T{}: … {left_out} more statements (--json has them)", turn[0].transaction));
        lines.extend(all(&turn[turn.len() - ENDS..]));
    }
    lines
}

fn step(step: &TriedStep) -> Vec<String> {
    let mut lines = vec![format!("T{}: {}", step.transaction, step.sql)];
    lines.extend(step.answer.iter().take(MOST).map(|line| format!("      {line}")));
    if step.answer.len() > MOST {
        let left_out = (step.answer.len() - MOST) as u64;
        lines.push(format!("      … and {}", counted(left_out, "more line")));
    }
    lines
}

/// A line of at most [`WIDEST`] characters.
fn cut(line: &str) -> String {
    match line.char_indices().nth(WIDEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Outcomes without the lines that all of them have, if one is long.
fn different<'a>(outcomes: &[&'a [String]]) -> Vec<Vec<&'a String>> {
    let long = outcomes.iter().any(|lines| lines.len() > MOST);
    let in_all = |line: &String| outcomes.iter().all(|lines| lines.contains(line));
    outcomes.iter().map(|lines| lines.iter().filter(|line| !long || !in_all(line)).collect()).collect()
}

fn of_order(rows: &[&String]) -> Vec<String> {
    let mut lines: Vec<String> = rows.iter().take(MOST).map(|line| format!("  {line}")).collect();
    if rows.len() > MOST {
        lines.push(format!("  … and {}", counted((rows.len() - MOST) as u64, "more row")));
    }
    if rows.is_empty() {
        lines.push("  nothing".to_owned());
    }
    lines
}

/// Which scripts weren't tried, a sentence each.
pub fn notes_of_untried(levels: &[AtLevel<'_>]) -> Vec<String> {
    let not_tried = levels.iter().flat_map(|(_, tried)| &tried.not_tried);
    distinct(not_tried.map(|refused| match refused.script.as_str() {
        "" => format!("Interleavings were not tried: {}.", refused.reason),
        script => format!("Interleavings of {script} were not tried: {}.", refused.reason),
    }))
}

/// What wasn't tried, and what wasn't judged, a sentence each.
pub fn notes(levels: &[AtLevel<'_>]) -> Vec<String> {
    let tried = || levels.iter().map(|(_, tried)| *tried);
    let all = |texts: Vec<&str>| enumerated(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
    let mut notes = notes_of_untried(levels);
    let by_design = distinct(tried().flat_map(|tried| tried.by_design.iter().map(String::as_str)));
    if !by_design.is_empty() {
        notes.push(format!(
            "No serial order gives what {} leads to; that is asked for, and isn't held against a level.",
            all(by_design)
        ));
    }
    let masked = distinct(tried().flat_map(|tried| tried.masked.iter().map(String::as_str)));
    if !masked.is_empty() {
        notes.push(format!(
            "Interleavings aren't judged by the values of {}, which come from sequences, the clock or random numbers.",
            all(masked)
        ));
    }
    let undetermined = tried().map(|tried| tried.undetermined).max().unwrap_or(0);
    if undetermined > 0 {
        notes.push(format!(
            "{} of scripts took different ways when the same order was run twice, and weren't judged.",
            counted(undetermined, "combination")
        ));
    }
    let clean = || tried().filter(|tried| tried.found.is_empty() && tried.interleavings > 0);
    if let Some(tried) = clean().find(|tried| !tried.complete) {
        let untried = match tried.untried.as_slice() {
            [] => "all combinations of scripts, but not with all numbers and states of the tables".to_owned(),
            [only] => format!("all combinations of scripts but {only}"),
            [first, rest @ ..] => {
                format!("not {first} and {}", counted(rest.len() as u64, "further combination"))
            }
        };
        notes.push(format!("The time for interleavings sufficed for {untried} (--try 30s takes longer)."));
    }
    notes
}

#[cfg(test)]
mod tests {
    use isobench_isolation::{EffectiveLevel, Level};

    use super::tried as tried_at;
    use super::*;
    use crate::document::{Cell, CellLevel, Client, NotTried, OrderOutcome, Plan, Server};

    fn cell(level: Level, tried: Tried) -> Cell {
        let mut cell = Cell::new("w", CellLevel::new(Some(level), EffectiveLevel::Standard(level)));
        cell.tried = Some(tried);
        cell
    }

    #[test]
    fn the_same_steps_at_several_levels_are_shown_once() {
        let wrong = WrongOutcome {
            damage: true,
            scripts: vec!["a.sql".to_owned(), "b.sql".to_owned()],
            steps: vec![TriedStep {
                transaction: 1,
                sql: "COMMIT".to_owned(),
                line: None,
                answer: vec!["COMMIT".to_owned()],
            }],
            outcome: OrderOutcome {
                order: vec![1, 2],
                changes: vec!["+ t (1)".to_owned()],
                ..OrderOutcome::default()
            },
            serial_orders: vec![OrderOutcome { order: vec![2, 1], ..OrderOutcome::default() }],
            ..WrongOutcome::default()
        };
        let tried = Tried { found: vec![wrong], ..Tried::default() };
        let mut document = Document::new(Server::default(), Client::default(), Plan::default());
        document.cells = vec![cell(Level::ReadCommitted, tried.clone()), cell(Level::RepeatableRead, tried)];
        let shown = witnesses(&tried_at(&document));
        assert_eq!(shown.len(), 1);
        assert_eq!(
            shown[0].heading,
            "b.sql within a.sql, at read committed and repeatable read: the data end as no serial order leaves them."
        );
        let expected = [
            "T1: COMMIT",
            "      COMMIT",
            "It ends with:",
            "  + t (1)",
            "Every serial order ends with:",
            "  nothing",
        ];
        assert_eq!(shown[0].lines, expected);
    }

    #[test]
    fn of_long_outcomes_only_what_differs_is_shown() {
        let rows = |last: &str| -> Vec<String> {
            (1..=MOST).map(|number| format!("T1: ({number})")).chain([last.to_owned()]).collect()
        };
        let (wrong, right) = (rows("T2: (wrong)"), rows("T2: (right)"));
        let shown = different(&[&wrong, &right]);
        assert_eq!(shown, [["T2: (wrong)"], ["T2: (right)"]]);
        let short = ["T1: (1)".to_owned()];
        assert_eq!(different(&[&short, &short]), [["T1: (1)"], ["T1: (1)"]]);
    }

    #[test]
    fn of_many_steps_the_ends_of_turns_are_shown() {
        let turn = |transaction: usize, count: usize| {
            let step = move |number: usize| TriedStep {
                transaction,
                sql: format!("SELECT {number}"),
                line: None,
                answer: Vec::new(),
            };
            (1..=count).map(step)
        };
        assert_eq!(steps(&turn(1, MOST_STEPS).collect::<Vec<_>>()).len(), MOST_STEPS);
        let many: Vec<TriedStep> = turn(1, 3).chain(turn(2, 40)).chain(turn(1, 9)).collect();
        let lines = steps(&many);
        assert_eq!(lines.len(), 3 + 9 + 9);
        assert_eq!(lines[7], "T2: … 32 more statements (--json has them)");
        assert_eq!((lines[6].as_str(), lines[8].as_str()), ("T2: SELECT 4", "T2: SELECT 37"));
    }

    #[test]
    fn long_lines_and_answers_are_cut() {
        let answer = (0..=MOST).map(|row| format!("({row})")).collect();
        let long = TriedStep { transaction: 1, sql: "SELECT 1".to_owned(), line: None, answer };
        let lines = step(&long);
        assert_eq!((lines.len(), lines[MOST + 1].as_str()), (MOST + 2, "      … and 1 more line"));
        assert_eq!(cut(&"é".repeat(WIDEST + 1)), "é".repeat(WIDEST) + "…");
        assert_eq!(cut("short"), "short");
    }

    #[test]
    fn what_was_not_tried_is_said_once() {
        let refused = NotTried { script: "a.sql".to_owned(), reason: "line 2: COPY".to_owned() };
        let tried = Tried { not_tried: vec![refused], ..Tried::default() };
        let mut document = Document::new(Server::default(), Client::default(), Plan::default());
        document.cells = vec![cell(Level::ReadCommitted, tried.clone()), cell(Level::Serializable, tried)];
        assert_eq!(notes(&tried_at(&document)), ["Interleavings of a.sql were not tried: line 2: COPY."]);
    }
}
