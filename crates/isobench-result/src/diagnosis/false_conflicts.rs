//! Why conflicts at serializable may be false: what the server's own samples say about them.
//!
//! PostgreSQL notices which transactions depend on one another by predicate locks. A lock on more
//! than what a transaction read makes it depend on others that it has nothing to do with, and then
//! it may fail for nothing. PostgreSQL manual, "Serializable Isolation Level".
//!
//! Every rule is a row of [`RULES`]. Not here: the conflicts themselves, and what they cost.

use std::collections::BTreeMap;

use isobench_isolation::{EffectiveLevel, Level};

use super::{Diagnosis, DiagnosisKind, Suspect, place};
use crate::document::{Cell, Document, LockedRelation, LocksSeen, ServerSide, TableUse};
use crate::numbers::{counted, percent};
use crate::rounds::{counted_ledger, counted_rounds, same_factors};
use crate::seen;
use crate::words::{distinct, enumerated};

/// Where at a weaker level more transactions went wrong than this share of those that fail at
/// serializable, failing is what serializable is for.
const REAL: f64 = 0.1;

/// Fewer read/write conflicts than this share of the attempts aren't worth a word.
const CONFLICTS: f64 = 0.01;

/// Locks that fewer samples than this share show don't explain most of the conflicts.
const SEEN: f64 = 0.25;

/// A use of a table that is rarer than this for each attempt doesn't explain them either.
const EACH: f64 = 0.05;

/// The planner passes over the index of a table with fewer rows than this, as reading them all is
/// cheaper than an index scan, which it takes for 8 units of cost and more. (PostgreSQL manual,
/// "Planner Cost Constants": a row costs 0.0125 with its condition.)
const SMALL: u64 = 600;

/// An index with more pages than this is no small one: two transactions seldom meet in one of them.
const FEW_PAGES: u64 = 100;

/// The same where entries come from inserts: a new row may be what others search for, and then a
/// conflict is real, so that an index has to be very small to be suspected.
const FEW_PAGES_OF_INSERTS: u64 = 10;

/// What a rule looks for, and what it says. They are asked in this order, the coarsest lock first,
/// and the first one that finds something speaks.
struct Rule {
    kind: DiagnosisKind,
    /// True if a relation has such locks.
    finds: fn(&Evidence, &LockedRelation) -> bool,
    /// What is found, and what may help, as sentences.
    says: fn(&Evidence, &[Suspect]) -> String,
}

/// Statements that scan are named with their lines up to this number.
const PLACES: usize = 3;

/// The rules.
const RULES: [Rule; 3] = [
    Rule { kind: DiagnosisKind::Scanned, finds: is_scanned, says: scanned },
    Rule { kind: DiagnosisKind::Promoted, finds: is_promoted, says: promoted },
    Rule { kind: DiagnosisKind::IndexPages, finds: is_small_index, says: index_pages },
];

/// Diagnoses the conflicts of a row at serializable: a reason if most of them may be false. None at other
/// levels and of other products than PostgreSQL, which lock in other ways, and where the server wasn't observed.
pub(super) fn of(document: &Document, cell: &Cell) -> Option<Diagnosis> {
    let serializable = cell.level.effective == EffectiveLevel::Standard(Level::Serializable);
    if !serializable || document.server_of(cell).product != "PostgreSQL" {
        return None;
    }
    let snapshot = at_repeatable_read(document, cell);
    if !are_mostly_dependencies(cell, snapshot)
        || went_wrong_below(document, cell) > REAL * cell.summary.conflict_ratio
    {
        return None;
    }
    let evidence = Evidence::of(cell);
    for rule in &RULES {
        let locked = evidence.locked.iter().filter(|relation| (rule.finds)(&evidence, relation));
        let suspects: Vec<Suspect> = locked.map(|relation| Suspect::of(document, cell, relation)).collect();
        if !suspects.is_empty() {
            let at_snapshot =
                snapshot.map_or_else(String::new, |ratio| format!(", {} at repeatable read", percent(ratio)));
            let sentence = format!(
                "Most conflicts at {} ({} of attempts{at_snapshot}) may be false: {}",
                place(document, cell),
                percent(cell.summary.conflict_ratio),
                (rule.says)(&evidence, &suspects)
            );
            let conflict_ratio = cell.summary.conflict_ratio;
            return Some(Diagnosis { kind: rule.kind, relations: suspects, conflict_ratio, sentence });
        }
    }
    None
}

/// The conflict ratio of the row that differs only in its level, repeatable read: it has the
/// conflicts between writers, and no others.
fn at_repeatable_read(document: &Document, cell: &Cell) -> Option<f64> {
    let is = |other: &&Cell| {
        other.level.effective == EffectiveLevel::Standard(Level::RepeatableRead)
            && !other.calibration
            && same_factors(other, cell)
            && counted_ledger(other).attempts.started > 0
    };
    document.cells.iter().find(is).map(|other| other.summary.conflict_ratio)
}

/// The share of transactions that went wrong at repeatable read, or else at the next weaker
/// level, in a row that differs only in its level; 0 if no history tells. What repeatable read
/// prevents by itself isn't what a conflict of readers and writers at serializable prevents.
fn went_wrong_below(document: &Document, cell: &Cell) -> f64 {
    let share = |other: &Cell| Some(other.summary.verdict.as_ref()?.anomalies_per_million? / 1e6);
    let weaker = |level: Level| {
        let rows = document.cells.iter().filter(move |other| {
            other.level.effective == EffectiveLevel::Standard(level)
                && !other.calibration
                && same_factors(other, cell)
        });
        rows.filter_map(share).reduce(f64::max)
    };
    let levels = [Level::RepeatableRead, Level::ReadCommitted, Level::ReadUncommitted];
    levels.into_iter().find_map(weaker).unwrap_or(0.0)
}

/// True if most of a row's conflicts are dependencies between readers and writers, and are no
/// conflicts at repeatable read.
fn are_mostly_dependencies(cell: &Cell, snapshot: Option<f64>) -> bool {
    let ledger = counted_ledger(cell);
    let conflicts = counted_rounds(cell).into_iter().flat_map(|round| &round.conflicts);
    let dependencies = conflicts
        .filter(|conflict| {
            conflict.sqlstate == "40001" && conflict.reason.contains("read/write dependencies")
        })
        .fold(0_u64, |sum, conflict| sum.saturating_add(conflict.count)) as f64;
    dependencies > CONFLICTS * ledger.attempts.started as f64
        && dependencies * 2.0 >= ledger.conflicts as f64
        && snapshot.is_none_or(|ratio| ratio * 2.0 <= cell.summary.conflict_ratio)
}

/// What the server showed in all rounds of a row.
struct Evidence {
    /// Attempts, those of the warm-up included, as in the server's counts.
    attempts: f64,
    /// Reads and writes in each attempt, if histories were recorded.
    operations: Option<f64>,
    /// Tables and indexes with predicate locks, the most locks first.
    locked: Vec<LockedRelation>,
    tables: BTreeMap<String, TableUse>,
}

impl Evidence {
    fn of(cell: &Cell) -> Evidence {
        let mut evidence =
            Evidence { attempts: 0.0, operations: None, locked: Vec::new(), tables: BTreeMap::new() };
        let (mut samples, mut operations, mut examined) = (0.0, 0_u64, 0_u64);
        for round in counted_rounds(cell) {
            let warmup = round.warmup.map_or(0, |warmup| warmup.attempts);
            evidence.attempts += round.attempts.started.saturating_add(warmup) as f64;
            if let Some(verdict) = round.verdict.as_ref().filter(|verdict| verdict.withheld.is_empty()) {
                operations = operations.saturating_add(verdict.examined.operations);
                for attempts in
                    [verdict.examined.committed, verdict.examined.aborted, verdict.examined.unknown]
                {
                    examined = examined.saturating_add(attempts);
                }
            }
            if let Some(server) = &round.server {
                samples += evidence.add(server);
            }
        }
        for relation in &mut evidence.locked {
            for seen in [&mut relation.tuple, &mut relation.page, &mut relation.relation] {
                seen.share /= f64::max(samples, 1.0);
            }
        }
        evidence.operations = (examined > 0).then(|| operations as f64 / examined as f64);
        let most = |relation: &LockedRelation| {
            let counts = [relation.tuple.most, relation.page.most, relation.relation.most];
            counts.into_iter().fold(0, u64::saturating_add)
        };
        evidence.locked.sort_by_key(|relation| std::cmp::Reverse(most(relation)));
        evidence
    }

    /// Adds a round's server. Shares become numbers of samples, until all are added. Returns the
    /// number of samples.
    fn add(&mut self, server: &ServerSide) -> f64 {
        for table in &server.tables {
            let sum = self.tables.entry(table.table.clone()).or_default();
            sum.seq_scans = sum.seq_scans.saturating_add(table.seq_scans);
            sum.inserted = sum.inserted.saturating_add(table.inserted);
            sum.updated = sum.updated.saturating_add(table.updated);
            sum.hot_updated = sum.hot_updated.saturating_add(table.hot_updated);
        }
        let Some(locks) = &server.predicate_locks else { return 0.0 };
        let samples = locks.at_s.len() as f64;
        for found in &locks.relations {
            let same = |known: &LockedRelation| known.name == found.name && known.table == found.table;
            let place = self.locked.iter().position(same).unwrap_or_else(|| {
                let (name, table) = (found.name.clone(), found.table.clone());
                self.locked.push(LockedRelation { name, table, ..LockedRelation::default() });
                self.locked.len() - 1
            });
            let known = &mut self.locked[place];
            (known.rows, known.pages) = (found.rows.or(known.rows), found.pages.max(known.pages));
            known.indexes.clone_from(&found.indexes);
            let add = |sum: &mut LocksSeen, seen: LocksSeen| {
                sum.most = sum.most.max(seen.most);
                sum.share += seen.share * samples;
            };
            add(&mut known.tuple, found.tuple);
            add(&mut known.page, found.page);
            add(&mut known.relation, found.relation);
        }
        samples
    }

    fn table(&self, relation: &LockedRelation) -> Option<&TableUse> {
        self.tables.get(relation.table.as_ref().unwrap_or(&relation.name))
    }

    /// The number for each attempt.
    fn each(&self, number: u64) -> f64 {
        number as f64 / self.attempts.max(1.0)
    }

    /// True if the histories show that transactions read most rows of a table, or that there is
    /// only one, so that a lock on all of them is none on too many.
    fn needs_all(&self, rows: Option<u64>) -> bool {
        let Some(rows) = rows else { return false };
        rows <= 1 || self.operations.is_some_and(|operations| operations * 2.0 >= rows as f64)
    }
}

fn is_scanned(evidence: &Evidence, relation: &LockedRelation) -> bool {
    relation.table.is_none()
        && relation.relation.share >= SEEN
        && evidence.table(relation).is_some_and(|table| evidence.each(table.seq_scans) >= EACH)
        && !evidence.needs_all(relation.rows)
}

fn is_promoted(evidence: &Evidence, relation: &LockedRelation) -> bool {
    let finer = relation.table.is_none() || relation.page.most > 0;
    // Kinds of indexes without locks on pages are always locked as a whole.
    finer
        && relation.relation.share >= SEEN
        && evidence.table(relation).is_some_and(|table| evidence.each(table.seq_scans) < EACH)
        && !evidence.needs_all(relation.rows)
}

fn is_small_index(evidence: &Evidence, relation: &LockedRelation) -> bool {
    let Some((table, pages)) = evidence.table(relation).zip(relation.pages) else { return false };
    let cold = cold_updates(table);
    let few = if cold >= table.inserted { FEW_PAGES } else { FEW_PAGES_OF_INSERTS };
    relation.table.is_some()
        && relation.page.share >= SEEN
        && pages <= few
        && evidence.each(table.inserted.saturating_add(cold)) >= EACH
        && !evidence.needs_all(relation.rows)
}

/// The statements of a row's scripts that scan a table as a whole, as the planner said before: "pay.sql:3".
fn scanned_by(document: &Document, cell: &Cell, table: &str) -> Vec<String> {
    let own = document.observations.iter().filter(|one| {
        one.workload == cell.workload && one.strategy.as_deref().is_none_or(|it| it == cell.strategy())
    });
    let statements = own.flat_map(|one| &one.statements);
    distinct(statements.filter(|one| one.scans.iter().any(|scan| scan == table)).map(seen::place))
}

/// Updates that made new index entries.
fn cold_updates(table: &TableUse) -> u64 {
    table.updated.saturating_sub(table.hot_updated)
}

impl Suspect {
    fn of(document: &Document, cell: &Cell, relation: &LockedRelation) -> Suspect {
        let table = relation.table.clone().unwrap_or_else(|| relation.name.clone());
        Suspect {
            name: relation.name.clone(),
            scanned_by: scanned_by(document, cell, &table),
            table,
            rows: relation.rows,
            pages: relation.pages,
            indexes: relation.indexes.clone(),
        }
    }
}

impl Suspect {
    /// Its indexes as "account has an index on (id)", if any are known.
    fn indexed(&self) -> Option<String> {
        let many = if self.indexes.len() > 1 { "indexes" } else { "an index" };
        let on = enumerated(&self.indexes);
        (!self.indexes.is_empty()).then(|| format!("{} has {many} on {on}", self.table))
    }

    fn is_table(&self) -> bool {
        self.name == self.table
    }

    /// A table as "account (100 rows)", an index as "pkey (7 pages)".
    fn named(&self) -> String {
        let size = if self.is_table() {
            self.rows.map(|rows| counted(rows, "row"))
        } else {
            self.pages.map(|pages| counted(pages, "page"))
        };
        let size = size.map_or_else(String::new, |size| format!(" ({size})"));
        format!("{}{size}", self.name)
    }
}

/// "table account (100 rows) is", "indexes a (2 pages) and b (3 pages) are". A rule finds either tables or indexes,
/// or both as "relations".
fn subject(suspects: &[Suspect]) -> String {
    let names: Vec<String> = suspects.iter().map(Suspect::named).collect();
    let tables = suspects.iter().filter(|suspect| suspect.is_table()).count();
    let what = match (tables, suspects.len()) {
        (1, 1) => "table",
        (0, 1) => "index",
        (0, _) => "indexes",
        (tables, all) if tables == all => "tables",
        _ => "relations",
    };
    format!("{what} {} {}", enumerated(&names), if names.len() > 1 { "are" } else { "is" })
}

fn scanned(_: &Evidence, suspects: &[Suspect]) -> String {
    let small = suspects.iter().any(|suspect| suspect.rows.is_some_and(|rows| rows < SMALL));
    let indexes: Vec<String> = suspects.iter().filter_map(Suspect::indexed).collect();
    let remedy = if small {
        "Larger tables with an index on what is searched for may have none".to_owned()
    } else if indexes.is_empty() {
        "With an index on what is searched for they may vanish".to_owned()
    } else {
        format!(
            "{}: ANALYZE at the end of the set-up may make the server use one; else an index on what is searched for \
             may end the conflicts",
            enumerated(&indexes)
        )
    };
    let places = distinct(suspects.iter().flat_map(|suspect| suspect.scanned_by.clone()));
    let by = if places.is_empty() { String::new() } else { format!(" by {}", by_script(places)) };
    format!("{} scanned as a whole{by}. {remedy}, unless transactions need all rows.", subject(suspects))
}

/// Statements with the lines of each script together: "pay.sql:3 and 7". Of many only the scripts are named.
fn by_script(mut places: Vec<String>) -> String {
    places.sort();
    let mut scripts: Vec<(String, Vec<u32>)> = Vec::new();
    let mut others = Vec::new();
    for place in places {
        match place.rsplit_once(':').map(|(script, line)| (script, line.parse())) {
            Some((script, Ok(line))) => match scripts.last_mut().filter(|(known, _)| known == script) {
                Some((_, lines)) => lines.push(line),
                None => scripts.push((script.to_owned(), vec![line])),
            },
            _ => others.push(place),
        }
    }
    let few = scripts.iter().map(|(_, lines)| lines.len()).sum::<usize>() <= PLACES;
    let named = scripts.into_iter().map(|(script, mut lines)| {
        lines.sort_unstable();
        let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
        if few { format!("{script}:{}", enumerated(&lines)) } else { script }
    });
    enumerated(&named.chain(others).collect::<Vec<String>>())
}

fn promoted(_: &Evidence, suspects: &[Suspect]) -> String {
    format!(
        "{} locked as a whole, though hardly ever read as a whole: transactions take more locks on its rows \
         or pages than the server keeps. With a higher max_pred_locks_per_relation, or \
         max_pred_locks_per_transaction, they may vanish.",
        subject(suspects)
    )
}

fn index_pages(evidence: &Evidence, suspects: &[Suspect]) -> String {
    let tables = suspects.iter().filter_map(|suspect| evidence.tables.get(&suspect.table));
    let (inserted, cold) = tables.fold((0_u64, 0_u64), |(inserted, cold), table| {
        (inserted.saturating_add(table.inserted), cold.saturating_add(cold_updates(table)))
    });
    let (which, remedy) = if cold >= inserted {
        (
            "update that isn't HOT",
            "With more rows, or a lower fillfactor and no index on columns that change, so that \
             updates are HOT, they may become fewer.",
        )
    } else {
        (
            "insert",
            "With more rows they may become fewer. If transactions insert what others search for, the \
             conflicts are real.",
        )
    };
    format!(
        "{} small, and an index scan locks the pages that it reads, to which every {which} adds an \
         entry. {remedy}",
        subject(suspects)
    )
}
