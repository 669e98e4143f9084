//! What follows from the runs: what each level permits, next to what was promised, and which model
//! that leaves.

use std::fmt::Write as _;

use isobench_database::Product;
use isobench_isolation::{EffectiveLevel, Guarantee, Level, Model};
use isobench_pgwire::{ServerError, SqlState};
use serde::Serialize;

use crate::anomalies::{Evidence, Probe};
use crate::limitations::{self, Known};
use crate::record::{Record, StepRecord};

/// The version of [`Matrix`] as a document.
pub const VERSION: u32 = 2;

/// What was probed, and what came out.
#[derive(Debug, Clone, Serialize)]
pub struct Matrix {
    /// The version of this document; it rises when a field changes its meaning.
    pub probe_version: u32,
    /// The server's product.
    pub product: String,
    /// Its version.
    pub version: String,
    /// The levels.
    pub levels: Vec<LevelRow>,
    /// False if it ended before all was probed.
    pub complete: bool,
    /// Why it ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete_reason: Option<String>,
}

/// One level.
#[derive(Debug, Clone, Serialize)]
pub struct LevelRow {
    /// The level that was asked for.
    pub requested: String,
    /// The level that the server says it runs.
    pub effective: String,
    /// What the product's manual promises at the level that runs; `None` if the server doesn't say
    /// which one that is.
    pub promised: Option<String>,
    /// The anomalies.
    pub cells: Vec<Cell>,
    /// The strongest models that no permitted anomaly contradicts, none of which implies another;
    /// those that show only after many transactions are left out.
    pub not_contradicted: Vec<String>,
    /// The line for people.
    pub sentence: String,
}

/// One anomaly at one level.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// The anomaly's name in the literature.
    pub name: String,
    /// What people call it.
    pub known_as: String,
    /// As what the SQL standard would count it.
    pub phenomenon: String,
    /// Whether the standard excludes it at this level.
    pub standard_excludes: bool,
    /// Whether what the manual promises excludes it; `None` if it isn't known what is promised.
    pub manual_excludes: Option<bool>,
    /// What happened.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Next to the promise.
    pub standing: Standing,
    /// How many transactions committed in between, if the anomaly needs that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_transactions: Option<u64>,
    /// What is known of it, if it is permitted against the promise and known of the product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_limitation: Option<Known>,
}

/// What happened, and how that shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "how", rename_all = "snake_case")]
pub enum Outcome {
    /// The anomaly shows: by which values.
    Permitted(String),
    /// It doesn't: a step waited, failed by a conflict, or read something else.
    Prevented(String),
    /// The interleaving can't be run on this product: why.
    NotApplicable(String),
    /// Neither shows, or a step was ended for another reason than a conflict: why.
    Undecided(String),
}

/// What happened next to what the manual promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Permitted, although it is promised that it isn't.
    Weaker,
    /// The same, but known of this product.
    KnownLimitation,
    /// As promised.
    AsPromised,
    /// Prevented, although nothing promises that.
    Stronger,
    /// There is nothing to compare.
    Open,
}

/// The level that is probed.
#[derive(Debug)]
pub struct Asked {
    /// The product.
    pub product: &'static Product,
    /// The level that was asked for.
    pub level: Level,
    /// The level that the server says it runs.
    pub effective: EffectiveLevel,
}

impl Asked {
    /// What everything is judged by.
    fn promised(&self) -> Option<Guarantee> {
        self.product.promises_effective(&self.effective)
    }
}

/// What one run says.
pub fn outcome(product: &Product, probe: &Probe, record: &Record) -> Outcome {
    if let Some(evidence) = probe.permitted.iter().find(|evidence| shows(evidence, record)) {
        return Outcome::Permitted(evidence.says.to_owned());
    }
    // Failures that only follow from others are no reasons.
    let errors = || {
        let failed = record.steps.iter().filter_map(|step| Some((step, step.error.as_ref()?)));
        failed.filter(|(_, error)| error.code != SqlState::IN_FAILED_SQL_TRANSACTION)
    };
    if let Some((step, error)) = errors().find(|(_, error)| is_missing(error.code)) {
        return Outcome::NotApplicable(format!(
            "{} at step {}: {}",
            error.code,
            step.name,
            first_line(&error.message)
        ));
    }
    if let Some((step, error)) = errors().next() {
        return failed(product, step, error);
    }
    if let Some(step) = record.steps.iter().find(|step| step.waited) {
        return Outcome::Prevented(format!("blocked at step {}", step.name));
    }
    if let Some(step) = record.steps.iter().find(|step| named(probe, &step.name) && rolled_back(step)) {
        return Outcome::Prevented(format!("step {} answered ROLLBACK", step.name));
    }
    match probe.permitted.iter().find_map(|evidence| differs(evidence, record)) {
        Some(text) => Outcome::Prevented(text),
        None => Outcome::Undecided("the steps neither show it nor say why not".to_owned()),
    }
}

/// What a failed step says: only a conflict prevents anything. A time limit, ours or the server's,
/// says nothing of the level.
fn failed(product: &Product, step: &StepRecord, error: &ServerError) -> Outcome {
    let at = format!("{} at step {}", error.code, step.name);
    if product.conflict(error).is_some() {
        let waited = if step.waited { ", after it had waited" } else { "" };
        return Outcome::Prevented(format!("{at}{waited}"));
    }
    let why = if step.cancelled { "cancelled because it took too long" } else { first_line(&error.message) };
    Outcome::Undecided(format!("{at}: {why}"))
}

fn shows(evidence: &Evidence, record: &Record) -> bool {
    let step = |name: &str| record.step(name);
    record.steps.iter().all(|step| step.error.is_none())
        && evidence.committed.iter().all(|name| step(name).is_some_and(StepRecord::committed))
        && evidence
            .read
            .iter()
            .all(|(name, rows)| step(name).and_then(StepRecord::rows).as_deref() == Some(rows))
        && evidence.tags.iter().all(|(name, tag)| {
            step(name).is_some_and(|step| step.succeeded() && step.tags.iter().any(|t| t == tag))
        })
}

/// What a step read instead.
fn differs(evidence: &Evidence, record: &Record) -> Option<String> {
    let read = evidence.read.iter().find_map(|(name, rows)| {
        let found = record.step(name)?.rows()?;
        let shown = if found.is_empty() { "nothing" } else { &found };
        (found != *rows).then(|| format!("step {name} read {shown}"))
    });
    let tag = || {
        evidence.tags.iter().find_map(|(name, tag)| {
            let found = record.step(name)?.tags.first()?;
            (found != tag).then(|| format!("step {name} answered {found}"))
        })
    };
    read.or_else(tag)
}

fn named(probe: &Probe, step: &str) -> bool {
    probe.permitted.iter().any(|evidence| evidence.committed.contains(&step))
}

/// A COMMIT that didn't: some products answer so instead of with an error.
fn rolled_back(step: &StepRecord) -> bool {
    step.tags.last().is_some_and(|tag| tag.eq_ignore_ascii_case("rollback"))
}

/// Syntax, unknown names, missing features: the product lacks something.
fn is_missing(code: SqlState) -> bool {
    matches!(code.class(), "42" | "0A")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("")
}

/// A cell from what happened.
pub fn cell(probe: &Probe, asked: &Asked, outcome: Outcome, after: Option<u64>) -> Cell {
    let manual_excludes = asked.promised().map(|promised| probe.anomaly.contradicts(promised.model));
    let known = || limitations::known(asked.product.name, probe.name, after.unwrap_or_default());
    let (standing, known_limitation) = match (&outcome, manual_excludes) {
        (Outcome::Permitted(_), Some(true)) => match known() {
            Some(known) => (Standing::KnownLimitation, Some(known)),
            None => (Standing::Weaker, None),
        },
        (Outcome::Prevented(_), Some(false)) => (Standing::Stronger, None),
        (Outcome::Permitted(_), Some(false)) | (Outcome::Prevented(_), Some(true)) => {
            (Standing::AsPromised, None)
        }
        (Outcome::NotApplicable(_) | Outcome::Undecided(_), _) | (_, None) => (Standing::Open, None),
    };
    Cell {
        name: probe.name.to_owned(),
        known_as: probe.known_as.to_owned(),
        phenomenon: probe.phenomenon.name().to_owned(),
        standard_excludes: probe.phenomenon.excluded_at(asked.level),
        manual_excludes,
        outcome,
        standing,
        after_transactions: after,
        known_limitation,
    }
}

/// The row of a level that the server refuses.
pub fn refused(level: Level, why: &str) -> LevelRow {
    LevelRow {
        requested: level.name().to_owned(),
        effective: EffectiveLevel::Unknown.to_string(),
        promised: None,
        cells: Vec::new(),
        not_contradicted: Vec::new(),
        sentence: format!("{level} asked: the server refuses it: {}", first_line(why)),
    }
}

/// The row of a level from its cells, fewer than `planned` if the probe ended early.
pub fn row(asked: &Asked, planned: usize, cells: Vec<(&'static Probe, Cell)>) -> LevelRow {
    let left: Vec<Model> = Model::ALL
        .into_iter()
        .filter(|model| !permitted(&cells, false).any(|(probe, _)| probe.anomaly.contradicts(*model)))
        .collect();
    let strongest = Model::strongest(&left);
    LevelRow {
        requested: asked.level.name().to_owned(),
        effective: asked.effective.to_string(),
        promised: asked.promised().map(|promised| promised.to_string()),
        not_contradicted: strongest.iter().map(|model| model.name().to_owned()).collect(),
        sentence: sentence(asked.level, planned, &cells, &strongest),
        cells: cells.into_iter().map(|(_, cell)| cell).collect(),
    }
}

/// What is permitted, of the anomalies that do or don't show only after many transactions.
fn permitted<'a>(
    cells: &'a [(&'static Probe, Cell)],
    repeats: bool,
) -> impl Iterator<Item = &'a (&'static Probe, Cell)> {
    let of_kind = cells.iter().filter(move |(probe, _)| probe.repeats == repeats);
    of_kind.filter(|(_, cell)| matches!(cell.outcome, Outcome::Permitted(_)))
}

/// The line for people.
fn sentence(level: Level, planned: usize, cells: &[(&'static Probe, Cell)], strongest: &[Model]) -> String {
    let decided = cells
        .iter()
        .filter(|(_, cell)| matches!(cell.outcome, Outcome::Permitted(_) | Outcome::Prevented(_)))
        .count();
    let names = permitted(cells, false).map(|(probe, _)| probe.known_as).collect::<Vec<_>>().join(", ");
    let late = permitted(cells, true).next().map(|(probe, cell)| {
        let count = cell.after_transactions.unwrap_or_default();
        format!("{} permitted, once {count} others have committed beside an open one", probe.known_as)
    });
    let models = joined(strongest);
    let mut sentence = match (decided, names.as_str(), late) {
        (0, ..) => format!("{level} asked: nothing could be probed"),
        (_, "", None) => format!("{level} asked: none of {decided} anomalies permitted"),
        (_, "", Some(late)) => format!("{level} asked, runs {models} only for a while: {late}"),
        (_, names, late) => {
            let models = if strongest.is_empty() { "no level at all" } else { &models };
            let late = late.map_or_else(String::new, |late| format!("; {late}"));
            format!("{level} asked, runs {models}: {names} permitted{late}")
        }
    };
    // Writing to a String can't fail.
    let _ = match (cells.len() < planned, decided < cells.len()) {
        (true, _) => write!(sentence, " (ended early: {decided} of {planned} anomalies were probed)"),
        (false, true) => write!(sentence, " ({decided} of {planned} anomalies could be probed)"),
        (false, false) => Ok(()),
    };
    sentence
}

fn joined(models: &[Model]) -> String {
    models.iter().map(|model| model.name()).collect::<Vec<_>>().join(" and ")
}

impl Matrix {
    /// The document as indented JSON, with an end of line.
    pub fn to_json(&self) -> String {
        // Texts, numbers and lists of them can't fail to be written.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The cells in which the server is weaker than its manual promises, without those of which
    /// that is known.
    pub fn broken(&self) -> impl Iterator<Item = (&LevelRow, &Cell)> {
        self.cells().filter(|(_, cell)| cell.standing == Standing::Weaker)
    }

    /// The cells in which the server shows a limitation that is known of its product.
    pub fn limited(&self) -> impl Iterator<Item = (&LevelRow, &Cell, &Known)> {
        self.cells().filter_map(|(row, cell)| Some((row, cell, cell.known_limitation.as_ref()?)))
    }

    fn cells(&self) -> impl Iterator<Item = (&LevelRow, &Cell)> {
        self.levels.iter().flat_map(|row| row.cells.iter().map(move |cell| (row, cell)))
    }
}

#[cfg(test)]
mod tests {
    use isobench_database::products::{COCKROACHDB, POSTGRESQL};

    use super::*;
    use crate::anomalies::PROBES;
    use crate::event::{Event, Table};

    fn probe(name: &str) -> &'static Probe {
        PROBES.iter().find(|probe| probe.name == name).unwrap()
    }

    /// Steps with what they answer: `wait` lets them wait, `!` and a code fail, capitals are a tag,
    /// all else a value.
    fn record(steps: &[(&str, &str)]) -> Record {
        let mut record = Record::default();
        for (name, answers) in steps {
            let name = (*name).to_owned();
            for answer in answers.split(' ') {
                if answer == "wait" {
                    record.take(&Event::Waiting { name: name.clone(), sql: String::new() });
                }
            }
            record.take(&Event::Completed { name });
            for answer in answers.split(' ').filter(|answer| *answer != "wait") {
                record.take(&match answer.strip_prefix('!') {
                    Some(code) => {
                        let code = SqlState::from_bytes(code.as_bytes());
                        Event::Error(ServerError::new(code, "wrong\nindeed"))
                    }
                    None if answer.starts_with(|c: char| c.is_ascii_uppercase()) => {
                        Event::Command(answer.to_owned())
                    }
                    None => Event::Rows(Table {
                        columns: vec!["v".to_owned()],
                        rows: vec![vec![Some(answer.to_owned())]],
                    }),
                });
            }
        }
        record
    }

    fn judged(name: &str, steps: &[(&str, &str)]) -> String {
        match outcome(&POSTGRESQL, probe(name), &record(steps)) {
            Outcome::Permitted(how) => format!("permitted: {how}"),
            Outcome::Prevented(how) => format!("prevented: {how}"),
            Outcome::NotApplicable(how) => format!("not applicable: {how}"),
            Outcome::Undecided(how) => format!("undecided: {how}"),
        }
    }

    #[test]
    fn values_errors_and_waiting_decide() {
        let reads = [("r1", "10"), ("r2", "10")];
        let with = |more: &[(&'static str, &'static str)]| judged("P4", &[&reads, more].concat());
        let both = with(&[("w1", "UPDATE"), ("w2", "wait UPDATE"), ("c1", "COMMIT"), ("c2", "COMMIT")]);
        assert_eq!(both, "permitted: T1 and T2 both read 10, and both wrote");
        let failed = with(&[("w1", "UPDATE"), ("w2", "wait !40001"), ("c1", "COMMIT"), ("c2", "ROLLBACK")]);
        assert_eq!(failed, "prevented: 40001 at step w2, after it had waited");
        let refused = with(&[("w1", "UPDATE"), ("w2", "UPDATE"), ("c1", "COMMIT"), ("c2", "ROLLBACK")]);
        assert_eq!(refused, "prevented: step c2 answered ROLLBACK");
        let unknown = with(&[("w1", "!42601"), ("w2", "!25P02"), ("c1", "COMMIT"), ("c2", "COMMIT")]);
        assert_eq!(unknown, "not applicable: 42601 at step w1: wrong");
        let lacking = with(&[("w1", "UPDATE"), ("w2", "UPDATE"), ("c1", "COMMIT")]);
        assert!(lacking.starts_with("undecided"), "{lacking}");
        assert_eq!(judged("G1a", &[("r2", "10"), ("c2", "COMMIT")]), "prevented: step r2 read 10");
        assert_eq!(judged("G1a", &[("r2", "wait 10"), ("c2", "COMMIT")]), "prevented: blocked at step r2");
    }

    /// A step that was ended says nothing of the level, whoever ended it.
    #[test]
    fn only_conflicts_prevent() {
        let judged = |answer: &str| judged("P4", &[("r1", "10"), ("r2", "10"), ("w2", answer)]);
        assert_eq!(judged("wait !57014"), "undecided: 57014 at step w2: wrong");
        assert_eq!(judged("wait !55P03"), "undecided: 55P03 at step w2: wrong");
        assert_eq!(judged("!53200"), "undecided: 53200 at step w2: wrong");
        assert_eq!(judged("!40P01"), "prevented: 40P01 at step w2");
        let mut cancelled = record(&[("r1", "10"), ("w2", "wait")]);
        cancelled.take(&Event::Cancelling { name: "w2".to_owned(), limit: std::time::Duration::ZERO });
        cancelled.take(&Event::Completed { name: "w2".to_owned() });
        cancelled.take(&Event::Error(ServerError::new(SqlState::QUERY_CANCELED, "user request")));
        let why = "57014 at step w2: cancelled because it took too long".to_owned();
        assert_eq!(outcome(&POSTGRESQL, probe("P4"), &cancelled), Outcome::Undecided(why));
    }

    fn asked(product: &'static Product, level: Level, effective: &str) -> Asked {
        Asked { product, level, effective: EffectiveLevel::from_setting(effective) }
    }

    /// Which level runs decides what is promised, not which one was asked for.
    #[test]
    fn the_level_that_runs_is_judged() {
        let standing = |asked: &Asked, outcome| cell(probe("G2-item"), asked, outcome, None).standing;
        let permitted = || Outcome::Permitted(String::new());
        let prevented = || Outcome::Prevented(String::new());
        let raised = asked(&COCKROACHDB, Level::ReadCommitted, "serializable");
        assert_eq!(standing(&raised, permitted()), Standing::Weaker);
        assert_eq!(standing(&raised, prevented()), Standing::AsPromised);
        let plain = asked(&COCKROACHDB, Level::ReadCommitted, "read committed");
        assert_eq!(standing(&plain, permitted()), Standing::AsPromised);
        assert_eq!(standing(&plain, prevented()), Standing::Stronger);
        for effective in ["", "mixed (serializable, read committed)"] {
            let unknown = asked(&COCKROACHDB, Level::Serializable, effective);
            assert_eq!(standing(&unknown, permitted()), Standing::Open);
            assert_eq!(standing(&unknown, prevented()), Standing::Open);
        }
    }

    #[test]
    fn what_is_known_of_a_product_is_a_class_of_its_own() {
        let summarised = |product| {
            let asked = asked(product, Level::Serializable, "serializable");
            cell(probe("G2-item, summarised"), &asked, Outcome::Permitted(String::new()), Some(610))
        };
        let known = summarised(&POSTGRESQL);
        assert_eq!(known.standing, Standing::KnownLimitation);
        let limitation = known.known_limitation.expect("what is known");
        assert_eq!(limitation.seen_in, ["15.18", "15.20", "18.4"]);
        assert!(limitation.reproduction.contains("1..610 "), "{}", limitation.reproduction);
        let elsewhere = summarised(&COCKROACHDB);
        assert_eq!((elsewhere.standing, elsewhere.known_limitation), (Standing::Weaker, None));
    }

    /// Anomalies that are permitted, the level's sentence and how many of them break the promise of
    /// serializability.
    #[test]
    fn a_level_is_what_it_permits() {
        let judge = |permitted: &[&str]| {
            let asked = asked(&POSTGRESQL, Level::Serializable, "serializable");
            let cells = PROBES.iter().map(|probe| {
                let outcome = if permitted.contains(&probe.name) {
                    Outcome::Permitted(String::new())
                } else {
                    Outcome::Prevented(String::new())
                };
                (probe, cell(probe, &asked, outcome, probe.repeats.then_some(7)))
            });
            let row = row(&asked, PROBES.len(), cells.collect());
            let weaker = |cell: &&Cell| matches!(cell.standing, Standing::Weaker | Standing::KnownLimitation);
            let broken = row.cells.iter().filter(weaker).count();
            (row.sentence, broken)
        };
        #[rustfmt::skip]
        let table: [(&[&str], &str); 6] = [
            (&[], "serializable asked: none of 16 anomalies permitted"),
            (&["G2-item"], "serializable asked, runs snapshot isolation: write skew permitted"),
            (&["G2"], "serializable asked, runs snapshot isolation and repeatable read (PL-2.99): write skew on a predicate permitted"),
            (&["G0"], "serializable asked, runs no level at all: dirty write permitted"),
            (&["G1a", "P4"], "serializable asked, runs read uncommitted: aborted read, lost update permitted"),
            (&["G2-item, summarised"], "serializable asked, runs serializable only for a while: write skew after summarisation permitted, once 7 others have committed beside an open one"),
        ];
        for (permitted, sentence) in table {
            assert_eq!(judge(permitted), (sentence.to_owned(), permitted.len()));
        }
    }

    #[test]
    fn a_level_that_was_not_finished_says_so() {
        let asked = asked(&POSTGRESQL, Level::ReadCommitted, "read committed");
        let found = cell(probe("G0"), &asked, Outcome::Prevented(String::new()), None);
        let row = row(&asked, 15, vec![(probe("G0"), found)]);
        let expected = "read committed asked: none of 1 anomalies permitted (ended early: 1 of 15 anomalies were probed)";
        assert_eq!(row.sentence, expected);
    }
}
