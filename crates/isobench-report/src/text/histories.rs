//! What recorded histories show, on one screen: the anomalies of each row, and one witness.
//!
//! Not here: all witnesses (`isobench_isolation::check`), and interleavings (`witness`).

use isobench_isolation::Order;
use isobench_result::document::{AnomalyCount, AnomalyFound, Cell, Document, VerdictSummary, WitnessArrow};
use isobench_result::durability;
use isobench_result::numbers::{count, counted};
use isobench_result::seen::cut;
use isobench_result::view::Line;

use super::layout::wrap;
use super::witness::pad;

/// The narrowest column of a transaction; where there is no room, each step is a sentence.
const NARROWEST: usize = 30;

/// The most transactions that have a column.
const MOST_COLUMNS: usize = 3;

/// The most steps of a witness; of more, the first ones.
const MOST_STEPS: usize = 4;

/// The width of the numbers before the steps.
const GUTTER: usize = 5;

/// The most names of rows that have the same anomalies.
const MOST_NAMES: usize = 3;

/// The most kinds of anomalies of a row.
const MOST_KINDS: usize = 4;

/// The anomalies of the rows whose histories were judged, a sentence for rows with the same ones.
pub fn anomalies(document: &Document) -> Vec<Line> {
    let mut found: Vec<(Line, Vec<String>)> = Vec::new();
    for cell in &document.cells {
        let Some(line) = cell.summary.verdict.as_ref().map(of_verdict) else { continue };
        let name = durability::name(document, cell);
        match found.iter_mut().find(|(known, _)| *known == line) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => found.push((line, vec![name])),
        }
    }
    let sentence = |(line, names): (Line, Vec<String>)| {
        let names = match names.len() {
            few if few <= MOST_NAMES => names.join("; "),
            many => format!("{} and {}", names[0], counted((many - 1) as u64, "more row")),
        };
        Line { text: format!("{names}: {}", line.text), ..line }
    };
    found.into_iter().map(sentence).collect()
}

/// The kinds that a row shows, and whether its level permits them.
fn of_verdict(verdict: &VerdictSummary) -> Line {
    if !verdict.withheld.is_empty() {
        return Line::caution("no verdict");
    }
    if verdict.kinds.is_empty() {
        return Line::plain("none");
    }
    let least = if verdict.at_least { "at least " } else { "" };
    let mut kinds: Vec<String> = verdict.kinds.iter().take(MOST_KINDS).map(kind).collect();
    if verdict.kinds.len() > MOST_KINDS {
        kinds.push(counted((verdict.kinds.len() - MOST_KINDS) as u64, "more kind"));
    }
    let text = format!("{least}{}", kinds.join(", "));
    match verdict.kept {
        Some(true) => Line::plain(format!("{text} (permitted)")),
        Some(false) => Line::grave(text),
        None => Line::plain(text),
    }
}

/// "lost update 1,965".
fn kind(kind: &AnomalyCount) -> String {
    let by = match kind.order.as_str() {
        order if order == Order::Session.name() => " by each client's order",
        order if order == Order::RealTime.name() => " by real time",
        _ => "",
    };
    format!("{} {}{by}", kind.known_as, count(kind.count))
}

/// The example with the fewest steps of the first row with anomalies: a heading, a column for each
/// transaction, and a last line that says why no serial order gives it.
pub fn witness(document: &Document, width: usize) -> Vec<String> {
    let Some((cell, found)) = document.cells.iter().find_map(|cell| Some((cell, shortest(cell)?))) else {
        return Vec::new();
    };
    let heading = format!(
        "What goes wrong at {}: {} ({}), for example",
        durability::name(document, cell),
        found.known_as,
        found.name
    );
    let mut lines = wrap(&heading, width, 2);
    lines.extend(steps(found, width));
    let end = end(found);
    let end = end.iter().flat_map(|text| wrap(text, width.saturating_sub(GUTTER), 0));
    lines.extend(end.map(|line| format!("{}{line}", " ".repeat(GUTTER))));
    lines
}

/// The example with the fewest steps among the kinds that the data show; of equal ones the gravest.
fn shortest(cell: &Cell) -> Option<&AnomalyFound> {
    let verdict = cell.summary.verdict.as_ref().filter(|verdict| verdict.withheld.is_empty())?;
    let kinds = verdict.kinds.iter().filter(|kind| kind.order == Order::Data.name());
    let examples = kinds.filter_map(|kind| {
        let all = cell.rounds.iter().filter_map(|round| round.verdict.as_ref());
        let mut all = all.flat_map(|verdict| &verdict.anomalies);
        all.find(|found| {
            (&found.name, &found.known_as, &found.order) == (&kind.name, &kind.known_as, &kind.order)
                && !found.witness.is_empty()
        })
    });
    examples.min_by_key(|found| found.witness.len())
}

/// The numbered steps, each with its statements.
fn steps(found: &AnomalyFound, width: usize) -> Vec<String> {
    let named: Vec<String> =
        found.transactions.iter().map(|one| format!("{} ({})", one.name, one.client)).collect();
    let column = width.saturating_sub(GUTTER) / named.len().max(1);
    let sides: Option<Vec<[String; 2]>> =
        (0..found.witness.len()).map(|place| sides(found, &named, place)).collect();
    let columns = (2..=MOST_COLUMNS).contains(&named.len()) && column >= NARROWEST;
    let mut lines = Vec::new();
    if let Some(sides) = sides.filter(|_| columns) {
        let titles: String = named.iter().map(|name| pad(name, column)).collect();
        lines.push(format!("{}{}", " ".repeat(GUTTER), titles.trim_end()));
        for (place, sides) in sides.iter().enumerate().take(MOST_STEPS) {
            lines.extend(in_columns(found, place, sides, column));
        }
    } else {
        let room = width.saturating_sub(GUTTER);
        for (place, sentence) in found.witness.iter().enumerate().take(MOST_STEPS) {
            lines.extend(numbered(place, &wrap(sentence, room, 0)));
            for statement in found.statements.get(place).into_iter().flatten() {
                lines.push(format!("{}  {}", " ".repeat(GUTTER), cut(statement, room.saturating_sub(3))));
            }
        }
    }
    if found.witness.len() > MOST_STEPS {
        let more = counted((found.witness.len() - MOST_STEPS) as u64, "more step");
        lines.push(format!("{}… {more}", " ".repeat(GUTTER)));
    }
    lines
}

/// What both transactions of a step did: "T1 (client 0) read …, and T2 (client 6) wrote …" in two.
fn sides(found: &AnomalyFound, named: &[String], place: usize) -> Option<[String; 2]> {
    let (sentence, arrow) = (found.witness.get(place)?, found.arrows.get(place)?);
    let (from, to) = (named.get(arrow.from)?, named.get(arrow.to)?);
    if arrow.from == arrow.to {
        return None;
    }
    let (one, other) = sentence.split_once(&format!(", and {to} "))?;
    let one = one.strip_prefix(from.as_str())?.trim_start();
    (!one.is_empty() && !other.is_empty()).then(|| [one.to_owned(), other.to_owned()])
}

/// A step whose transactions stand in their columns.
fn in_columns(found: &AnomalyFound, place: usize, sides: &[String; 2], column: usize) -> Vec<String> {
    let Some(arrow) = found.arrows.get(place) else { return Vec::new() };
    let room = column.saturating_sub(2);
    let mut cells: Vec<Vec<String>> = vec![Vec::new(); found.transactions.len()];
    for ((transaction, side), number) in [arrow.from, arrow.to].into_iter().zip(sides).zip(0..) {
        let cell = &mut cells[transaction];
        cell.extend(wrap(side, room, 0));
        let statement: Option<&String> = found.statements.get(place).and_then(|both| both.get(number));
        cell.extend(statement.map(|text| format!("  {}", cut(text, room.saturating_sub(3)))));
    }
    let rows = cells.iter().map(Vec::len).max().unwrap_or(0);
    let line = |row: usize| {
        let texts = cells.iter().map(|cell| pad(cell.get(row).map_or("", String::as_str), column));
        texts.collect::<String>().trim_end().to_owned()
    };
    numbered(place, &(0..rows).map(line).collect::<Vec<_>>())
}

fn numbered(place: usize, lines: &[String]) -> Vec<String> {
    let head = |row: usize| match row {
        0 => format!("{:>3}  ", place + 1),
        _ => " ".repeat(GUTTER),
    };
    lines.iter().enumerate().map(|(row, line)| format!("{}{line}", head(row))).collect()
}

/// "So T1 comes before T2, and T2 before T1: no serial order gives this.", if the steps are such a circle.
fn end(found: &AnomalyFound) -> Option<String> {
    let arrows = &found.arrows;
    let follows = |(number, arrow): (usize, &WitnessArrow)| {
        let next = &arrows[(number + 1) % arrows.len()];
        !arrow.label.is_empty() && arrow.from != arrow.to && arrow.to == next.from
    };
    if arrows.len() < 2 || arrows.len() > MOST_STEPS || !arrows.iter().enumerate().all(follows) {
        return None;
    }
    let name = |number: usize| found.transactions.get(number).map(|one| one.name.as_str());
    let mut text = format!("So {} comes before {}", name(arrows[0].from)?, name(arrows[0].to)?);
    for (number, arrow) in arrows.iter().enumerate().skip(1) {
        let and = if number + 1 == arrows.len() { ", and" } else { "," };
        text = format!("{text}{and} {} before {}", name(arrow.from)?, name(arrow.to)?);
    }
    Some(format!("{text}: no serial order gives this."))
}

#[cfg(test)]
mod tests {
    use isobench_result::document::WitnessTransaction;

    use super::*;

    /// A lost update by T1 and T2.
    fn lost() -> AnomalyFound {
        let transaction = |name: &str, client: &str| WitnessTransaction {
            name: name.to_owned(),
            client: client.to_owned(),
        };
        let arrow = |from, to, label: &str| WitnessArrow { from, to, label: label.to_owned() };
        AnomalyFound {
            name: "P4".to_owned(),
            known_as: "lost update".to_owned(),
            order: Order::Data.name().to_owned(),
            count: 3,
            witness: vec![
                "T1 (client 0) read version 3 of stock 7, and T2 (client 6) wrote version 4".to_owned(),
                "T2 (client 6) wrote version 4 of stock 7, and T1 (client 0) wrote version 5 after it"
                    .to_owned(),
            ],
            statements: vec![
                vec!["a.sql:2: SELECT 1".to_owned(), "a.sql:3: UPDATE t".to_owned()],
                Vec::new(),
            ],
            transactions: vec![transaction("T1", "client 0"), transaction("T2", "client 6")],
            arrows: vec![arrow(0, 1, "rw"), arrow(1, 0, "ww")],
            ..AnomalyFound::default()
        }
    }

    #[test]
    fn each_transaction_has_a_column() {
        let lines = steps(&lost(), 80);
        let expected = [
            "     T1 (client 0)                        T2 (client 6)",
            "  1  read version 3 of stock 7            wrote version 4",
            "       a.sql:2: SELECT 1                    a.sql:3: UPDATE t",
            "  2  wrote version 5 after it             wrote version 4 of stock 7",
        ];
        assert_eq!(lines, expected);
        let end = end(&lost()).unwrap();
        assert_eq!(end, "So T1 comes before T2, and T2 before T1: no serial order gives this.");
    }

    #[test]
    fn a_narrow_terminal_gets_sentences() {
        let lines = steps(&lost(), 50);
        assert_eq!(lines[0], "  1  T1 (client 0) read version 3 of stock 7, and");
        assert_eq!(lines[2], "       a.sql:2: SELECT 1");
        assert!(lines.iter().all(|line| line.chars().count() <= 50), "{lines:#?}");
    }

    #[test]
    fn steps_that_are_no_circle_have_no_conclusion() {
        let mut found = lost();
        found.arrows[1].label.clear();
        assert_eq!(end(&found), None);
    }
}
