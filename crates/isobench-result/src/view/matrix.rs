//! What each strategy commits and lets through at each level: a row per strategy, a column per
//! level.
//!
//! Typed, so that a terminal shows it as a table and a page as a picture. Not here: intervals and
//! ratios, which the table of results has.

use super::{Entry, Heading, Line, Row, Table, is_incomplete};
use crate::document::{Cell, Document};
use crate::factor::{FactorId, strategies_vary, varying};
use crate::numbers::{counted, percent, short};
use crate::rounds::{choices, kept_share};
use crate::words::distinct;

/// Strategies by levels.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// The levels, in the document's order.
    pub levels: Vec<String>,
    /// The rows, those together that have the other factors in common.
    pub groups: Vec<MatrixGroup>,
}

/// The strategies of one combination of the other factors.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixGroup {
    /// What the rows have in common ("8 clients"); empty if no other factor varies.
    pub name: String,
    /// A row for each strategy, in the document's order.
    pub rows: Vec<MatrixRow>,
}

/// A strategy at every level.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixRow {
    /// The name of the strategy.
    pub strategy: String,
    /// For each level what was measured; `None` where the plan has no such cell.
    pub entries: Vec<Option<MatrixEntry>>,
}

/// A strategy at a level.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixEntry {
    /// Committed transactions per second; `None` if nothing was measured.
    pub tps: Option<f64>,
    /// Anomalies per million committed attempts; `None` without a verdict.
    pub anomalies_per_million: Option<f64>,
    /// The gravest that is known of its safety.
    pub safety: Safety,
}

/// What an entry of the matrix says of the safety of its cell: the gravest that is known, the gravest
/// first. What the answer rests on is finer (`answer::evidence`).
#[derive(Debug, Clone, PartialEq)]
pub enum Safety {
    /// A history contradicts what the level promises.
    PromiseBroken,
    /// An invariant was broken that the level promises.
    Violated,
    /// This share of the acknowledged transactions isn't in the database.
    LostWork(f64),
    /// The server runs this level instead.
    Mislabelled(String),
    /// Rounds are missing.
    Incomplete,
    /// Histories were recorded, and a doubt withholds the verdict.
    Withheld,
    /// The histories show anomalies that the level doesn't promise to prevent, this many per
    /// million committed attempts.
    Anomalies {
        /// The number.
        per_million: f64,
        /// True if there may be more.
        at_least: bool,
    },
    /// This many violations of invariants that the level doesn't promise.
    Violations(u64),
    /// Trying the scripts against each other showed an outcome that no serial order gives.
    Shown,
    /// Values are carried from one transaction to another, which no level protects.
    Unprotected,
    /// No history was recorded, or nothing could show in it.
    Unproved,
    /// Histories were recorded and show nothing wrong, but statements that could matter weren't seen.
    AsFarAsSeen,
    /// Histories were recorded, and show nothing wrong.
    Safe,
}

/// The legend of the matrix.
pub const LEGEND: &str = "In each field: committed transactions per second, and anomalies per million committed \
     attempts (per M); safe: none in the recorded histories, which is no proof; as far as seen: none, but statements \
     that could matter weren't tracked; unprotected: values are carried from \
     one transaction to another; unproved: no history was recorded, or no transaction met another one in it.";

/// The matrix of a summarised document; `None` unless both strategies and levels vary.
pub fn matrix(document: &Document) -> Option<Matrix> {
    let cells = || document.cells.iter().filter(|cell| !cell.calibration);
    let levels = distinct(cells().map(|cell| cell.level.name()));
    if !strategies_vary(document) || levels.len() < 2 {
        return None;
    }
    let groups = choices(document).iter().map(|group| group_of(document, group, &levels)).collect();
    Some(Matrix { levels, groups })
}

fn group_of(document: &Document, cells: &[&Cell], levels: &[String]) -> MatrixGroup {
    let cells: Vec<&Cell> = cells.iter().copied().filter(|cell| !cell.calibration).collect();
    let factors = varying(document);
    let others = factors.iter().filter(|factor| factor.id() != FactorId::Strategy);
    let name = others.filter_map(|factor| cells.first().map(|cell| factor.said(cell)));
    let row = |strategy: &str| {
        let at = |level: &String| {
            let mut found = cells.iter().filter(|cell| cell.strategy() == strategy);
            found.find(|cell| cell.level.name() == *level).map(|cell| MatrixEntry::of(document, cell))
        };
        MatrixRow { strategy: strategy.to_owned(), entries: levels.iter().map(at).collect() }
    };
    let strategies = distinct(cells.iter().map(|cell| cell.strategy()));
    MatrixGroup { name: name.collect::<Vec<_>>().join(", "), rows: strategies.into_iter().map(row).collect() }
}

impl MatrixEntry {
    fn of(document: &Document, cell: &Cell) -> MatrixEntry {
        let verdict = cell.summary.verdict.as_ref();
        MatrixEntry {
            tps: cell.summary.tps.mean,
            anomalies_per_million: verdict.and_then(|verdict| verdict.anomalies_per_million),
            safety: Safety::of(document, cell),
        }
    }

    fn entry(&self) -> Entry {
        Entry::Stack(vec![Entry::Number(self.tps), Entry::Text(self.safety.line())])
    }
}

impl Safety {
    /// What is known of a cell.
    pub fn of(document: &Document, cell: &Cell) -> Safety {
        let summary = &cell.summary;
        let verdict = summary.verdict.as_ref();
        if verdict.is_some_and(|verdict| verdict.kept == Some(false)) {
            return Safety::PromiseBroken;
        }
        if summary.invariants_held == Some(false) {
            return Safety::Violated;
        }
        if let Some(kept) = kept_share(cell).filter(|kept| *kept < 1.0) {
            return Safety::LostWork(1.0 - kept);
        }
        if cell.level.differs() {
            return Safety::Mislabelled(cell.level.effective.to_string());
        }
        if is_incomplete(document, cell) {
            return Safety::Incomplete;
        }
        let shown = !cell.wrong_outcomes().is_empty();
        let Some(verdict) = verdict else {
            return match summary.violations {
                0 if shown => Safety::Shown,
                0 => Safety::Unproved,
                violations => Safety::Violations(violations),
            };
        };
        match verdict.anomalies_per_million {
            _ if !verdict.withheld.is_empty() => Safety::Withheld,
            Some(per_million) if per_million > 0.0 => {
                Safety::Anomalies { per_million, at_least: verdict.at_least }
            }
            _ if summary.violations > 0 => Safety::Violations(summary.violations),
            _ if shown => Safety::Shown,
            _ if !verdict.carried.is_empty() => Safety::Unprotected,
            Some(_) if verdict.nothing_shared => Safety::Unproved,
            Some(_) if !verdict.unseen.is_empty() => Safety::AsFarAsSeen,
            Some(_) => Safety::Safe,
            // Nothing committed that could have been wrong.
            None => Safety::Unproved,
        }
    }

    /// The same in few words.
    pub fn line(&self) -> Line {
        match self {
            Safety::PromiseBroken => Line::grave("PROMISE BROKEN"),
            Safety::Violated => Line::grave("VIOLATED"),
            Safety::LostWork(share) => Line::grave(format!("LOST {}", percent(*share))),
            Safety::Mislabelled(level) => Line::grave(format!("→ {level}")),
            Safety::Incomplete => Line::grave("INCOMPLETE"),
            Safety::Withheld => Line::caution("withheld"),
            Safety::Anomalies { per_million, at_least } => {
                Line::plain(format!("{}{} per M", if *at_least { "≥" } else { "" }, short(*per_million)))
            }
            Safety::Violations(violations) => Line::plain(counted(*violations, "violation")),
            Safety::Shown => Line::caution("unsafe (shown)"),
            Safety::Unprotected => Line::caution("unprotected"),
            Safety::Unproved => Line::plain("unproved"),
            Safety::AsFarAsSeen => Line::plain("as far as seen"),
            Safety::Safe => Line::plain("safe"),
        }
    }
}

impl Matrix {
    /// The matrix as a table.
    pub fn table(&self) -> Table {
        let levels = self.levels.iter().map(|level| {
            // A long name has two lines.
            let (first, second) = level.split_once(' ').unwrap_or((level, ""));
            Heading::new(first, second, true)
        });
        let mut rows = Vec::new();
        for group in &self.groups {
            if !group.name.is_empty() {
                rows.push(Row::Heading(group.name.clone()));
            }
            rows.extend(group.rows.iter().map(|row| {
                let entry =
                    |entry: &Option<MatrixEntry>| entry.as_ref().map_or("".into(), MatrixEntry::entry);
                let strategy = std::iter::once(Entry::from(row.strategy.as_str()));
                Row::Entries(strategy.chain(row.entries.iter().map(entry)).collect())
            }));
        }
        Table { columns: std::iter::once(Heading::new("strategy", "", false)).chain(levels).collect(), rows }
    }
}

#[cfg(test)]
mod tests {
    use isobench_isolation::{EffectiveLevel, Level};

    use super::*;
    use crate::document::{CellLevel, Client, Plan, Server, VerdictSummary};
    use crate::view::Medium;

    fn cell(strategy: &str, level: Level, anomalies: Option<f64>) -> Cell {
        let level = CellLevel::new(Some(level), EffectiveLevel::Standard(level));
        let mut cell = Cell { strategy: Some(strategy.to_owned()), ..Cell::new("w", level) };
        cell.summary.tps.mean = Some(1234.0);
        cell.summary.rounds = 1;
        cell.summary.verdict = anomalies.map(|found| VerdictSummary {
            anomalies_per_million: Some(found),
            kept: Some(true),
            ..VerdictSummary::default()
        });
        cell
    }

    fn document(cells: Vec<Cell>) -> Document {
        let plan = Plan { rounds: Some(1), ..Plan::default() };
        Document { cells, ..Document::new(Server::default(), Client::default(), plan) }
    }

    #[test]
    fn both_must_vary() {
        let (rc, ser) = (Level::ReadCommitted, Level::Serializable);
        let of = |cells: &[(&str, Level)]| {
            matrix(&document(cells.iter().map(|(name, level)| cell(name, *level, None)).collect()))
        };
        assert_eq!(of(&[("a", rc), ("b", rc)]), None);
        assert_eq!(of(&[("a", rc), ("a", ser)]), None);
        let found = of(&[("a", rc), ("b", rc), ("a", ser)]).expect("a matrix");
        assert_eq!(found.levels, ["read committed", "serializable"]);
        let rows = &found.groups[0].rows;
        assert_eq!(rows.iter().map(|row| row.strategy.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(rows[1].entries[1].is_none(), "there is no such cell");
    }

    #[test]
    fn the_gravest_is_said() {
        let mut cells = vec![cell("a", Level::ReadCommitted, Some(115_714.2)); 12];
        cells[1].summary.verdict = Some(VerdictSummary { kept: Some(false), ..VerdictSummary::default() });
        cells[2].summary.invariants_held = Some(false);
        cells[3].level.effective = EffectiveLevel::Unknown;
        cells[4].summary.rounds = 0;
        cells[5].summary.verdict.as_mut().expect("a verdict").withheld = vec!["a doubt".to_owned()];
        cells[6] = cell("a", Level::ReadCommitted, Some(0.0));
        cells[6].summary.violations = 3;
        cells[7] = cell("a", Level::ReadCommitted, Some(0.0));
        cells[8].summary.verdict = None;
        for cell in &mut cells[9..] {
            cell.summary.verdict.as_mut().expect("a verdict").anomalies_per_million = Some(0.0);
        }
        let verdicts = cells[9..].iter_mut().filter_map(|cell| cell.summary.verdict.as_mut());
        let [unseen, nothing_shared, carried] = verdicts.collect::<Vec<_>>().try_into().expect("three");
        unseen.unseen = vec!["a:4 decides an INSERT".to_owned()];
        nothing_shared.nothing_shared = true;
        carried.carried = vec!["a:4 writes what a:3 read in another transaction".to_owned()];
        let document = document(cells);
        let said: Vec<String> =
            document.cells.iter().map(|cell| Safety::of(&document, cell).line().text).collect();
        assert_eq!(
            said,
            [
                "115,714 per M",
                "PROMISE BROKEN",
                "VIOLATED",
                "→ unknown",
                "INCOMPLETE",
                "withheld",
                "3 violations",
                "safe",
                "unproved",
                "as far as seen",
                "unproved",
                "unprotected"
            ]
        );
    }

    #[test]
    fn each_combination_has_rows_of_its_own() {
        let mut cells = Vec::new();
        for clients in [1, 8] {
            for level in [Level::ReadCommitted, Level::Serializable] {
                for strategy in ["a", "b"] {
                    cells.push(Cell { clients, ..cell(strategy, level, Some(0.0)) });
                }
            }
        }
        let table = matrix(&document(cells)).expect("a matrix").table();
        let lines: Vec<String> = table
            .rows
            .iter()
            .map(|row| match row {
                Row::Heading(text) => text.clone(),
                Row::Entries(entries) => {
                    let words = entries.iter().flat_map(|entry| entry.lines(Medium::Text));
                    words.map(|line| line.text).collect::<Vec<_>>().join("|")
                }
            })
            .collect();
        let row = |name: &str| format!("{name}|1,234|safe|1,234|safe");
        assert_eq!(lines, ["1 client", &row("a"), &row("b"), "8 clients", &row("a"), &row("b")]);
    }
}
