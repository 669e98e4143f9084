//! What faults cost, and what became of the commits that clients saw acknowledged.
//!
//! Not here: the counts themselves (`document/fault`), the course of the rates
//! (`html/chart/over_time`).

use crate::document::{Cell, Document, Durability, FaultEvent, FaultRound};
use crate::factor::{Factor, varying};
use crate::numbers::{count, short};
use crate::view::{Entry, Heading, Line, Table};
use crate::words::capital;

/// The legend of the table's columns, a sentence each.
pub const LEGEND: [&str; 4] = [
    "Downtime: the longest time without an acknowledged commit after a fault; recovery: from the fault to the commit \
     that ended it; each the mean of the rounds' longest.",
    "Lost: attempts whose commit was acknowledged, and whose row isn't there afterwards. Every transaction leaves a \
     row with its attempt's number, which costs one statement more.",
    "Found: unacknowledged attempts (their session was lost while COMMIT was under way) whose row is there.",
    "Promised: whether the settings promise that acknowledged commits survive the fault (PostgreSQL manual, \
     \"Asynchronous Commit\" and synchronous_commit). Killed processes leave what the operating system has in its \
     cache, which a power failure doesn't.",
];

/// True if something happened to the server of a cell, and its attempts were settled by the data.
pub fn is_settled(document: &Document) -> bool {
    document.cells.iter().any(|cell| cell.durability().is_some())
}

/// The most rows that a sentence names, but for those that break a promise.
const MOST_NAMED: usize = 4;

/// The table: a row for each cell to whose server something happened; `None` if there is none.
pub fn table(document: &Document) -> Option<Table> {
    let cells: Vec<&Cell> = document.cells.iter().filter(|cell| cell.durability().is_some()).collect();
    let first = cells.first()?;
    let factors = varying(document);
    let several = cells.iter().any(|cell| cell.level != first.level);
    let away = cells.iter().any(|cell| cell.settled(|round| round.away.into()) > Some(0));
    let mut columns: Vec<Heading> = factors.iter().map(Factor::heading).collect();
    if several {
        columns.push(Heading::new("level", "", false));
    }
    columns.extend(
        [
            ("downtime", "s"),
            ("recovery", "s"),
            ("acknowledged", "commits"),
            ("lost", "of these"),
            ("unacknowledged", "attempts"),
            ("found", "of these"),
        ]
        .map(|(title, unit)| Heading::new(title, unit, true)),
    );
    if away {
        columns.push(Heading::new("clients", "away", true));
    }
    columns.push(Heading::new("durability", "promised", false));
    columns.push(Heading::new("durability", "", false));
    let row = |cell: &&Cell| {
        let mut entries: Vec<Entry> = factors.iter().map(|factor| factor.value(cell).into()).collect();
        if several {
            entries.push(cell.level.name().into());
        }
        entries.push(Entry::Number(silence(cell)));
        entries.push(Entry::Number(mean_longest(cell, |event| event.first_commit_s)));
        entries.extend(
            [
                |round: &FaultRound| round.settlement.acknowledged,
                |round: &FaultRound| round.settlement.lost,
                |round: &FaultRound| round.settlement.unacknowledged,
                |round: &FaultRound| round.settlement.kept,
            ]
            .map(|of| Entry::Count(cell.settled(of))),
        );
        if away {
            entries.push(Entry::Count(cell.settled(|round| round.away.into())));
        }
        entries.push(promised(cell).into());
        entries.push(Entry::Text(word(cell)));
        entries
    };
    Some(Table::new(columns, cells.iter().map(row)))
}

/// What the data say about durability, in a sentence for each kind of outcome that there is.
pub fn headline(document: &Document) -> Vec<String> {
    let settled = || document.cells.iter().filter(|cell| cell.durability().is_some());
    let sentence = |(wanted, said): (Durability, &str)| {
        let cells: Vec<&Cell> = settled().filter(|cell| cell.durability() == Some(wanted)).collect();
        let all = settled().count();
        Some(match cells.len() {
            0 => return None,
            some if some > MOST_NAMED && wanted != Durability::Broken => {
                format!("{said} in {some} of {all} rows.")
            }
            _ => {
                let names: Vec<String> = cells.iter().map(|cell| name(document, cell)).collect();
                format!("{said}: {}.", names.join("; "))
            }
        })
    };
    [
        (Durability::Broken, "Acknowledged commits were LOST that the settings promise to keep"),
        (Durability::Kept, "No acknowledged commit was lost"),
        (Durability::Lost, "Acknowledged commits were lost, which the settings permit"),
        (Durability::Withheld, "Durability is unknown"),
    ]
    .into_iter()
    .filter_map(sentence)
    .collect()
}

/// What must be known of the faults of all cells: a sentence for each kind of outcome.
pub fn sentences(document: &Document) -> Vec<Line> {
    document.cells.iter().filter_map(|cell| sentence(document, cell)).collect()
}

/// What became of the acknowledged commits of a cell; `None` if they are all there, or nothing
/// happened.
fn sentence(document: &Document, cell: &Cell) -> Option<Line> {
    let rounds = || cell.fault_rounds();
    let name = name(document, cell);
    let sum = |of: fn(&FaultRound) -> u64| count(cell.settled(of).unwrap_or(0));
    let (lost, acknowledged) = (sum(|it| it.settlement.lost), sum(|it| it.settlement.acknowledged));
    let settings = rounds().map(|round| round.settlement.settings.as_str()).next().unwrap_or_default();
    Some(match cell.durability()? {
        Durability::Kept => return None,
        Durability::Withheld => {
            let why = rounds().find_map(|round| round.settlement.withheld.as_deref());
            let why = why.unwrap_or("what the settings promise isn't known");
            Line::caution(format!("Durability, {name}: unknown, because {why}."))
        }
        Durability::Lost => {
            let before = rounds().filter_map(|round| round.settlement.lost_before_s).fold(0.0, f64::max);
            let when = if before > 0.0 {
                format!(", all from the last {} s before the fault", short(before))
            } else {
                // Their answers were on their way when it happened.
                String::new()
            };
            Line::plain(format!(
                "Durability, {name}: {lost} of {acknowledged} acknowledged commits lost{when}."
            ))
        }
        Durability::Broken => {
            let impossible =
                cell.settled(|it| it.settlement.failed_kept + it.settlement.repeated).unwrap_or(0);
            let more = if impossible > 0 {
                format!(", and {} that had failed, or more than once, found", count(impossible))
            } else {
                String::new()
            };
            Line::grave(format!(
                "{}: DURABILITY BROKEN: {lost} of {acknowledged} acknowledged commits lost{more}, although {settings} \
                 promises to keep them.",
                capital(&name)
            ))
        }
    })
}

/// A cell by what varies; by its level if nothing else does.
pub fn name(document: &Document, cell: &Cell) -> String {
    let varying = varying(document);
    let several = document.cells.iter().any(|other| other.level != cell.level) || varying.is_empty();
    let level = several.then(|| cell.level.name());
    level.into_iter().chain(varying.iter().map(|factor| factor.said(cell))).collect::<Vec<_>>().join(", ")
}

/// Seconds without a commit, the mean of the rounds' longest; `None` if nothing happened.
pub fn silence(cell: &Cell) -> Option<f64> {
    mean_longest(cell, |event| event.silent_s)
}

/// The mean over the rounds of the longest time of each; `None` if there is none.
fn mean_longest(cell: &Cell, of: fn(&FaultEvent) -> Option<f64>) -> Option<f64> {
    let all: Vec<f64> = cell.fault_rounds().filter_map(|round| round.longest(of)).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

fn promised(cell: &Cell) -> &'static str {
    match cell.fault_rounds().next().and_then(|round| round.settlement.promised) {
        Some(true) => "yes",
        Some(false) => "no",
        None => "unknown",
    }
}

fn word(cell: &Cell) -> Line {
    match cell.durability() {
        Some(Durability::Kept) => Line::plain("kept"),
        Some(Durability::Lost) => Line::plain("lost"),
        Some(Durability::Broken) => Line::grave("BROKEN"),
        Some(Durability::Withheld) | None => Line::caution("withheld"),
    }
}
