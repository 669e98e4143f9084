//! Evaluates the runs: the anomalies that each level permits, compared with its promise, and the
//! models that remain.

use std::fmt::Write as _;

use isobench_database::Product;
use isobench_database::products::UNKNOWN;
use isobench_isolation::{EffectiveLevel, Guarantee, Level, Model};
use isobench_pgwire::{ServerError, SqlState};
use serde::Serialize;

use crate::anomalies::{Evidence, Probe, Takes, Tests};
use crate::limitations::{self, KnownLimitation};
use crate::probe::MANY;
use crate::record::{Record, StepRecord};
use crate::tables::Tables;

/// The version of [`Matrix`] as a document.
pub const VERSION: u32 = 2;

/// The document with the results of probing.
#[derive(Debug, Clone, Serialize)]
pub struct Matrix {
    /// The version of this document, which is incremented when the meaning of a field changes.
    pub probe_version: u32,
    /// The server's product.
    pub product: String,
    /// Its version.
    pub version: String,
    /// The interleavings.
    pub tests: Tests,
    /// The kind of tables.
    pub tables: Tables,
    /// The levels.
    pub levels: Vec<LevelRow>,
    /// False if probing ended early.
    pub complete: bool,
    /// The reason for ending early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incomplete_reason: Option<String>,
}

/// The results at one level.
#[derive(Debug, Clone, Serialize)]
pub struct LevelRow {
    /// The requested level.
    pub requested: String,
    /// The level that the server reports as running.
    pub effective: String,
    /// The promise of the product's manual at the level that runs; `None` if the server doesn't
    /// report that level.
    pub promised: Option<String>,
    /// The anomalies.
    pub cells: Vec<Cell>,
    /// The strongest models that no permitted anomaly contradicts, none of which implies another.
    /// Anomalies that need many transactions are left out.
    pub not_contradicted: Vec<String>,
    /// A summary for users.
    pub sentence: String,
}

/// The result for one anomaly at one level.
#[derive(Debug, Clone, Serialize)]
pub struct Cell {
    /// The anomaly's name in the literature.
    pub name: String,
    /// The common name.
    pub known_as: String,
    /// The phenomenon of the SQL standard that it is an instance of.
    pub phenomenon: String,
    /// True if the standard excludes it at this level.
    pub standard_excludes: bool,
    /// True if the manual's promise excludes it; `None` if the promise is unknown.
    pub manual_excludes: Option<bool>,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: CellOutcome,
    /// The comparison with the promise.
    pub standing: PromiseComparison,
    /// The number of transactions that committed in between, if the anomaly needs that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_transactions: Option<u64>,
    /// The known limitation of the product, if it explains why the anomaly is permitted against the
    /// promise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_limitation: Option<KnownLimitation>,
}

/// An outcome, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", content = "how", rename_all = "snake_case")]
pub enum CellOutcome {
    /// The anomaly shows; the values that show it.
    Permitted(String),
    /// It doesn't: a step waited, failed because of a conflict, or read something else.
    Prevented(String),
    /// The interleaving can't be run on this product; the reason.
    NotApplicable(String),
    /// Neither shows, or a step was aborted for a reason other than a conflict; the reason.
    Undecided(String),
}

impl CellOutcome {
    /// The outcome in a word, and its evidence.
    pub fn words(&self) -> (&'static str, &str) {
        match self {
            CellOutcome::Permitted(how) => ("permitted", how),
            CellOutcome::Prevented(how) => ("prevented", how),
            CellOutcome::NotApplicable(how) => ("not applicable", how),
            CellOutcome::Undecided(how) => ("undecided", how),
        }
    }
}

impl Cell {
    /// The names: "P4, lost update".
    pub fn label(&self) -> String {
        if self.name == self.known_as {
            self.name.clone()
        } else {
            format!("{}, {}", self.name, self.known_as)
        }
    }

    /// The outcome as a table shows it.
    pub const fn mark(&self) -> &'static str {
        match (&self.outcome, self.standing) {
            (CellOutcome::Permitted(_), PromiseComparison::Weaker) => "BROKEN",
            (CellOutcome::Permitted(_), PromiseComparison::KnownLimitation) => "limitation",
            (CellOutcome::Permitted(_), _) => "permitted",
            (CellOutcome::Prevented(_), _) => "-",
            (CellOutcome::NotApplicable(_), _) => "n/a",
            (CellOutcome::Undecided(_), _) => "?",
        }
    }
}

/// The comparison of an outcome with the promise of the manual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PromiseComparison {
    /// Permitted against the promise.
    Weaker,
    /// The same, but a known limitation of this product.
    KnownLimitation,
    /// As promised.
    AsPromised,
    /// Prevented without a promise.
    Stronger,
    /// Nothing to compare.
    Open,
}

/// The level being probed.
#[derive(Debug)]
pub struct ProbedLevel {
    /// The product.
    pub product: &'static Product,
    /// The requested level.
    pub level: Level,
    /// The level that the server reports as running.
    pub effective: EffectiveLevel,
}

impl ProbedLevel {
    /// The promise with which outcomes are compared.
    fn promised(&self) -> Option<Guarantee> {
        self.product.promises_effective(&self.effective)
    }
}

/// Determines the outcome of a run.
pub fn outcome(product: &Product, probe: &Probe, record: &Record) -> CellOutcome {
    if let Some(why) = probe.plans.iter().find_map(|name| without_index(record.step(name)?)) {
        return CellOutcome::NotApplicable(why);
    }
    if let Some(evidence) = probe.permitted.iter().find(|evidence| shows(evidence, record)) {
        return CellOutcome::Permitted(evidence.says.to_owned());
    }
    // Failures that only follow from other failures aren't reasons.
    let errors = || {
        let failed = record.steps.iter().filter_map(|step| Some((step, step.error.as_ref()?)));
        failed.filter(|(_, error)| error.code != SqlState::IN_FAILED_SQL_TRANSACTION)
    };
    if let Some((step, error)) = errors().find(|(_, error)| is_missing(error.code)) {
        return CellOutcome::NotApplicable(format!("{}: {}", at(step, error), first_line(&error.message)));
    }
    if let Some((step, error)) = errors().next() {
        return failed(product, step, error);
    }
    // Many transactions take long without waiting for anyone.
    if let Some(step) = record.steps.iter().find(|step| step.waited && step.name != MANY) {
        return CellOutcome::Prevented(format!("blocked at step {}", step.name));
    }
    if let Some(step) = record.steps.iter().find(|step| named(probe, &step.name) && rolled_back(step)) {
        return CellOutcome::Prevented(format!("step {} answered ROLLBACK", step.name));
    }
    match probe.permitted.iter().find_map(|evidence| differs(evidence, record)) {
        Some(text) => CellOutcome::Prevented(text),
        None => CellOutcome::Undecided("the steps show neither the anomaly nor what prevents it".to_owned()),
    }
}

/// Why a step's plan isn't that of an index. Without a plan, its error decides.
fn without_index(step: &StepRecord) -> Option<String> {
    let plan = step.rows().unwrap_or_default();
    let uses = plan.contains("Index") && !plan.contains("Seq Scan");
    (step.error.is_none() && !uses).then(|| format!("the plan at step {} doesn't use the index", step.name))
}

/// The outcome of a failed step. Only a conflict prevents an anomaly; a time limit, whether
/// isobench's or the server's, isn't related to the level.
fn failed(product: &Product, step: &StepRecord, error: &ServerError) -> CellOutcome {
    let at = at(step, error);
    if product.conflict(error).is_some() {
        let waited = if step.waited { ", after it had waited" } else { "" };
        return CellOutcome::Prevented(format!("{at}{waited}"));
    }
    let why = if step.cancelled { "cancelled because it took too long" } else { first_line(&error.message) };
    CellOutcome::Undecided(format!("{at}: {why}"))
}

/// The code of a step's error, and the step.
fn at(step: &StepRecord, error: &ServerError) -> String {
    match error.code {
        SqlState::MISSING => format!("an error without SQLSTATE at step {}", step.name),
        code => format!("{code} at step {}", step.name),
    }
}

fn shows(evidence: &Evidence, record: &Record) -> bool {
    let step = |name: &str| record.step(name);
    record.steps.iter().all(|step| step.error.is_none())
        && evidence.committed.iter().all(|name| step(name).is_some_and(StepRecord::committed))
        && evidence.at_once.iter().all(|name| step(name).is_some_and(|step| !step.waited))
        && evidence
            .read
            .iter()
            .all(|(name, rows)| step(name).and_then(StepRecord::rows).as_deref() == Some(rows))
        && evidence.tags.iter().all(|(name, tag)| {
            step(name).is_some_and(|step| step.succeeded() && step.tags.iter().any(|t| t == tag))
        })
}

/// The difference between the evidence and what a step read.
fn differs(evidence: &Evidence, record: &Record) -> Option<String> {
    let read = evidence.read.iter().find_map(|(name, rows)| {
        let found = record.step(name)?.rows()?;
        let shown = if found.is_empty() { "nothing" } else { &found };
        (found != *rows).then(|| format!("step {name} read {shown}"))
    });
    let tag = || {
        evidence.tags.iter().find_map(|(name, tag)| {
            let found = record.step(name)?.tags.first()?;
            // Some products have other tags, without a number, or none.
            let command = |tag: &str| tag.rsplit_once(' ').map(|(command, _)| command.to_owned());
            (command(found) == command(tag) && found != tag).then(|| format!("step {name} answered {found}"))
        })
    };
    read.or_else(tag)
}

fn named(probe: &Probe, step: &str) -> bool {
    probe.permitted.iter().any(|evidence| evidence.committed.contains(&step))
}

/// True for a COMMIT that rolled back, which some products report by the tag instead of an error.
fn rolled_back(step: &StepRecord) -> bool {
    step.tags.last().is_some_and(|tag| tag.eq_ignore_ascii_case("rollback"))
}

/// True for syntax errors, unknown names and missing features: the product lacks something.
fn is_missing(code: SqlState) -> bool {
    matches!(code.class(), "42" | "0A")
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or("")
}

/// The cell for an outcome.
pub fn cell(probe: &Probe, probed: &ProbedLevel, outcome: CellOutcome, after: Option<u64>) -> Cell {
    // Nothing is promised of what a server and its standby show together.
    let promised = probed.promised().filter(|_| probe.takes != Takes::Standby);
    let manual_excludes = promised.map(|promised| probe.anomaly.contradicts(promised.model));
    let known = || limitations::known(probed.product.name, probe.name, after.unwrap_or_default());
    let (standing, known_limitation) = match (&outcome, manual_excludes) {
        (CellOutcome::Permitted(_), Some(true)) => match known() {
            Some(known) => (PromiseComparison::KnownLimitation, Some(known)),
            None => (PromiseComparison::Weaker, None),
        },
        (CellOutcome::Prevented(_), Some(false)) => (PromiseComparison::Stronger, None),
        (CellOutcome::Permitted(_), Some(false)) | (CellOutcome::Prevented(_), Some(true)) => {
            (PromiseComparison::AsPromised, None)
        }
        (CellOutcome::NotApplicable(_) | CellOutcome::Undecided(_), _) | (_, None) => {
            (PromiseComparison::Open, None)
        }
    };
    Cell {
        name: probe.name.to_owned(),
        known_as: probe.known_as.to_owned(),
        phenomenon: probe.phenomenon.name().to_owned(),
        standard_excludes: probe.phenomenon.excluded_at(probed.level),
        manual_excludes,
        outcome,
        standing,
        after_transactions: after,
        known_limitation,
    }
}

/// The row for a level that the server refuses.
pub fn refused(level: Level, why: &str) -> LevelRow {
    LevelRow {
        requested: level.name().to_owned(),
        effective: EffectiveLevel::Unknown.to_string(),
        promised: None,
        cells: Vec::new(),
        not_contradicted: Vec::new(),
        sentence: format!("{level} requested: the server refuses it: {}", first_line(why)),
    }
}

/// The row for a level; there are fewer cells than `planned` if probing ended early.
pub fn row(probed: &ProbedLevel, planned: usize, cells: Vec<(&'static Probe, Cell)>) -> LevelRow {
    let left: Vec<Model> = Model::ALL
        .into_iter()
        .filter(|model| !permitted(&cells, false).any(|(probe, _)| probe.anomaly.contradicts(*model)))
        .collect();
    let strongest = Model::strongest(&left);
    LevelRow {
        requested: probed.level.name().to_owned(),
        effective: probed.effective.to_string(),
        promised: probed.promised().map(|promised| promised.to_string()),
        not_contradicted: strongest.iter().map(|model| model.name().to_owned()).collect(),
        sentence: sentence(probed.level, planned, &cells, &strongest),
        cells: cells.into_iter().map(|(_, cell)| cell).collect(),
    }
}

/// The permitted anomalies, either those that need many transactions or the others.
fn permitted<'a>(
    cells: &'a [(&'static Probe, Cell)],
    repeats: bool,
) -> impl Iterator<Item = &'a (&'static Probe, Cell)> {
    let of_kind = cells.iter().filter(move |(probe, _)| {
        (probe.takes == Takes::Transactions) == repeats && probe.takes != Takes::Standby
    });
    of_kind.filter(|(_, cell)| matches!(cell.outcome, CellOutcome::Permitted(_)))
}

/// The summary for users.
fn sentence(level: Level, planned: usize, cells: &[(&'static Probe, Cell)], strongest: &[Model]) -> String {
    let decided = cells
        .iter()
        .filter(|(_, cell)| matches!(cell.outcome, CellOutcome::Permitted(_) | CellOutcome::Prevented(_)))
        .count();
    let names = permitted(cells, false).map(|(probe, _)| probe.known_as).collect::<Vec<_>>().join(", ");
    let late = permitted(cells, true).next().map(|(probe, cell)| {
        let count = cell.after_transactions.unwrap_or_default();
        format!(
            "{} permitted after {count} other transactions have committed during an open one",
            probe.known_as
        )
    });
    let models = joined(strongest);
    let mut sentence = match (decided, names.as_str(), late) {
        (0, ..) => format!("{level} requested: nothing could be probed"),
        (_, "", None) => format!("{level} requested: none of {decided} anomalies permitted"),
        (_, "", Some(late)) => format!("{level} requested, runs {models} only for a while: {late}"),
        (_, names, late) => {
            let models = if strongest.is_empty() { "no level at all" } else { &models };
            let late = late.map_or_else(String::new, |late| format!("; {late}"));
            format!("{level} requested, runs {models}: {names} permitted{late}")
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
    /// The document as indented JSON, ending with a line break.
    pub fn to_json(&self) -> String {
        // Strings, numbers and lists of them can always be serialised.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The source of the promises: isobench has read no manual of a product that it doesn't know.
    pub fn promiser(&self) -> &'static str {
        if self.product == UNKNOWN.name { "the level's name" } else { "its manual" }
    }

    /// The cells in which the server is weaker than its manual promises, except for known
    /// limitations.
    pub fn broken(&self) -> impl Iterator<Item = (&LevelRow, &Cell)> {
        self.cells().filter(|(_, cell)| cell.standing == PromiseComparison::Weaker)
    }

    /// The cells in which the server shows a known limitation of its product.
    pub fn limited(&self) -> impl Iterator<Item = (&LevelRow, &Cell, &KnownLimitation)> {
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

    /// Steps and their results: `wait` makes the step wait, `!` and a code make it fail, upper case
    /// is a tag, anything else a value.
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
            CellOutcome::Permitted(how) => format!("permitted: {how}"),
            CellOutcome::Prevented(how) => format!("prevented: {how}"),
            CellOutcome::NotApplicable(how) => format!("not applicable: {how}"),
            CellOutcome::Undecided(how) => format!("undecided: {how}"),
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

    /// A server without command tags doesn't say how many rows a DELETE found, and many transactions take
    /// long.
    #[test]
    fn a_lacking_tag_and_a_long_step_prevent_nothing() {
        let deleted = |tag: &str| {
            let mut record = record(&[("r1", "10"), ("w2", "COMMIT")]);
            record.take(&Event::Completed { name: "d1".to_owned() });
            record.take(&Event::Command(tag.to_owned()));
            outcome(&POSTGRESQL, probe("G-single by a write"), &record)
        };
        assert_eq!(deleted("DELETE 1"), CellOutcome::Prevented("step d1 answered DELETE 1".to_owned()));
        for other in ["", "DELETE", "Success"] {
            assert!(matches!(deleted(other), CellOutcome::Undecided(_)), "{other}");
        }
        let long = [("r2", "10"), ("many", "wait COMMIT"), ("w1", "20")];
        assert!(judged("G2-item, summarised", &long).starts_with("undecided"));
    }

    /// An aborted step proves nothing about the level, whoever aborted it.
    #[test]
    fn only_conflicts_prevent() {
        let judged = |answer: &str| judged("P4", &[("r1", "10"), ("r2", "10"), ("w2", answer)]);
        assert_eq!(judged("wait !57014"), "undecided: 57014 at step w2: wrong");
        assert_eq!(judged("wait !55P03"), "undecided: 55P03 at step w2: wrong");
        assert_eq!(judged("!53200"), "undecided: 53200 at step w2: wrong");
        assert_eq!(judged("!"), "undecided: an error without SQLSTATE at step w2: wrong");
        assert_eq!(judged("!40P01"), "prevented: 40P01 at step w2");
        let mut cancelled = record(&[("r1", "10"), ("w2", "wait")]);
        cancelled.take(&Event::Cancelling { name: "w2".to_owned(), limit: std::time::Duration::ZERO });
        cancelled.take(&Event::Completed { name: "w2".to_owned() });
        cancelled.take(&Event::Error(ServerError::new(SqlState::QUERY_CANCELED, "user request")));
        let why = "57014 at step w2: cancelled because it took too long".to_owned();
        assert_eq!(outcome(&POSTGRESQL, probe("P4"), &cancelled), CellOutcome::Undecided(why));
    }

    /// Whatever shows, it isn't the index that permits it.
    #[test]
    fn a_plan_without_the_index_decides_nothing() {
        let index = &crate::anomalies::indexes::INDEXES[0];
        let with = |plan: &str| {
            let steps = [("p2", "Index"), ("r1", "0"), ("r2", "0"), ("w1", "INSERT"), ("w2", "INSERT")];
            let mut steps = [&steps[..], &[("c1", "COMMIT"), ("c2", "COMMIT")]].concat();
            steps.insert(0, ("p1", plan));
            let mut record = record(&[]);
            for (name, answer) in steps {
                record.take(&Event::Completed { name: name.to_owned() });
                record.take(&if answer.chars().all(char::is_uppercase) {
                    Event::Command(answer.to_owned())
                } else {
                    let rows = vec![vec![Some(answer.to_owned())]];
                    Event::Rows(Table { columns: vec!["v".to_owned()], rows })
                });
            }
            outcome(&POSTGRESQL, index, &record)
        };
        assert!(matches!(with("Bitmap Index Scan on keyed_k"), CellOutcome::Permitted(_)));
        for plan in ["Seq Scan on keyed", "Index Scan on a; Seq Scan on b", "scan"] {
            let why = "the plan at step p1 doesn't use the index".to_owned();
            assert_eq!(with(plan), CellOutcome::NotApplicable(why), "{plan}");
        }
    }

    fn probed(product: &'static Product, level: Level, effective: &str) -> ProbedLevel {
        ProbedLevel { product, level, effective: EffectiveLevel::from_setting(effective) }
    }

    /// The promise is that of the level that runs, not of the requested one.
    #[test]
    fn the_level_that_runs_is_judged() {
        let standing = |probed: &ProbedLevel, outcome| cell(probe("G2-item"), probed, outcome, None).standing;
        let permitted = || CellOutcome::Permitted(String::new());
        let prevented = || CellOutcome::Prevented(String::new());
        let raised = probed(&COCKROACHDB, Level::ReadCommitted, "serializable");
        assert_eq!(standing(&raised, permitted()), PromiseComparison::Weaker);
        assert_eq!(standing(&raised, prevented()), PromiseComparison::AsPromised);
        let plain = probed(&COCKROACHDB, Level::ReadCommitted, "read committed");
        assert_eq!(standing(&plain, permitted()), PromiseComparison::AsPromised);
        assert_eq!(standing(&plain, prevented()), PromiseComparison::Stronger);
        for effective in ["", "mixed (serializable, read committed)"] {
            let unknown = probed(&COCKROACHDB, Level::Serializable, effective);
            assert_eq!(standing(&unknown, permitted()), PromiseComparison::Open);
            assert_eq!(standing(&unknown, prevented()), PromiseComparison::Open);
        }
    }

    #[test]
    fn what_is_known_of_a_product_is_a_class_of_its_own() {
        let summarised = |product| {
            let probed = probed(product, Level::Serializable, "serializable");
            cell(probe("G2-item, summarised"), &probed, CellOutcome::Permitted(String::new()), Some(610))
        };
        let known = summarised(&POSTGRESQL);
        assert_eq!(known.standing, PromiseComparison::KnownLimitation);
        let limitation = known.known_limitation.expect("what is known");
        assert_eq!(limitation.seen_in, ["10.4 to 18.6", "19rc1"]);
        assert!(limitation.reproduction.contains("1..610 "), "{}", limitation.reproduction);
        let elsewhere = summarised(&COCKROACHDB);
        assert_eq!((elsewhere.standing, elsewhere.known_limitation), (PromiseComparison::Weaker, None));
    }

    /// Permitted anomalies, the level's summary, and the number of them that break the promise of
    /// serializable.
    #[test]
    fn a_level_is_what_it_permits() {
        let judge = |permitted: &[&str]| {
            let probed = probed(&POSTGRESQL, Level::Serializable, "serializable");
            let alone = || PROBES.iter().filter(|probe| probe.takes != Takes::Standby);
            let cells = alone().map(|probe| {
                let outcome = if permitted.contains(&probe.name) {
                    CellOutcome::Permitted(String::new())
                } else {
                    CellOutcome::Prevented(String::new())
                };
                (probe, cell(probe, &probed, outcome, (probe.takes == Takes::Transactions).then_some(7)))
            });
            let row = row(&probed, alone().count(), cells.collect());
            let weaker = |cell: &&Cell| {
                matches!(cell.standing, PromiseComparison::Weaker | PromiseComparison::KnownLimitation)
            };
            let broken = row.cells.iter().filter(weaker).count();
            (row.sentence, broken)
        };
        #[rustfmt::skip]
        let table: [(&[&str], &str); 6] = [
            (&[], "serializable requested: none of 16 anomalies permitted"),
            (&["G2-item"], "serializable requested, runs snapshot isolation: write skew permitted"),
            (&["G2"], "serializable requested, runs snapshot isolation and repeatable read \
                       (PL-2.99): write skew on a predicate permitted"),
            (&["G0"], "serializable requested, runs no level at all: dirty write permitted"),
            (&["G1a", "P4"], "serializable requested, runs read uncommitted: aborted read, lost update permitted"),
            (&["G2-item, summarised"], "serializable requested, runs serializable only for a while: \
                                        write skew after summarisation permitted after 7 other \
                                        transactions have committed during an open one"),
        ];
        for (permitted, sentence) in table {
            assert_eq!(judge(permitted), (sentence.to_owned(), permitted.len()));
        }
    }

    #[test]
    fn a_level_that_was_not_finished_says_so() {
        let probed = probed(&POSTGRESQL, Level::ReadCommitted, "read committed");
        let found = cell(probe("G0"), &probed, CellOutcome::Prevented(String::new()), None);
        let row = row(&probed, 15, vec![(probe("G0"), found)]);
        let expected = "read committed requested: none of 1 anomalies permitted (ended early: 1 of \
                        15 anomalies were probed)";
        assert_eq!(row.sentence, expected);
    }
}
