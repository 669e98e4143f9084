//! The invariants of the tables: their state before the measured part, and the comparison of its
//! change with the run's counts.
//!
//! Not here: the verdict on a recorded history (`judgement.rs`).

use std::time::{Duration, Instant};

use isobench_database::{Baseline, Connector, Database, Error, Expectation, Writes, baseline, check};
use isobench_isolation::{Guarantee, Model};
use isobench_limits::LIMITS;
use isobench_pgwire::Connection;
use isobench_result::Invariant;
use isobench_runner::RunOutcome;
use isobench_workloads::{Chosen, Violations};

use crate::workload::Sources;

/// The knowledge of the tables before the measured part.
pub enum InvariantCheck {
    /// Built-in scripts: what they write, the state before, and the number of transactions on the
    /// server that reading it took.
    Builtin(Vec<Writes>, Baseline, u64),
    /// A checked workload, whose invariants held before.
    Checked(Chosen),
    /// No check is possible, for this reason.
    Unavailable(String),
    /// Only the user's own conditions say what must be true.
    LeftToUser,
}

impl InvariantCheck {
    /// Reads the state before the measurement, if the scripts' invariants need it. `own_tables` is
    /// true if the tables are the user's own, even with built-in scripts; `fresh_tables` if they were
    /// made for this measurement; `conditions` if the user says what must be true.
    pub fn begin(
        connector: &Connector,
        database: &Database,
        sources: &Sources,
        own_tables: bool,
        fresh_tables: bool,
        conditions: bool,
    ) -> InvariantCheck {
        match sources.checked() {
            Some(chosen) if fresh_tables => return InvariantCheck::Checked(chosen.clone()),
            Some(chosen) => return InvariantCheck::of_existing(connector, database, chosen),
            None => {}
        }
        let Some(writes) = sources.writes().filter(|_| !own_tables) else {
            if conditions {
                return InvariantCheck::LeftToUser;
            }
            return InvariantCheck::Unavailable(
                "the workload has scripts of your own, whose invariants are not known".to_owned(),
            );
        };
        let read = |mut connection: Connection| {
            if let Some(alone) = database.product.dialect.no_parallel_workers {
                connection.execute(alone)?;
            }
            let before = baseline(&mut connection, database)?;
            Ok((before, connection.transactions()))
        };
        match connector.open().and_then(read) {
            Ok((before, transactions)) => InvariantCheck::Builtin(writes, before, transactions),
            Err(error) => InvariantCheck::Unavailable(format!("could not be read before measuring: {error}")),
        }
    }

    /// A checked workload on tables that earlier runs may have used. A violation that is there
    /// already is theirs, at whatever level they ran, and the scripts' assertions meet it, too.
    fn of_existing(connector: &Connector, database: &Database, chosen: &Chosen) -> InvariantCheck {
        let found = connector
            .open()
            .and_then(|mut connection| isobench_workloads::check(&mut connection, database, chosen));
        match found {
            Err(error) => InvariantCheck::Unavailable(format!("could not be read before measuring: {error}")),
            Ok(found) => match found.iter().find(|invariant| invariant.found > 0) {
                None => InvariantCheck::Checked(chosen.clone()),
                Some(violated) => InvariantCheck::Unavailable(format!(
                    "{} was violated before this run already; isobench init --workload {} makes the tables anew",
                    violated.name,
                    chosen.name()
                )),
            },
        }
    }

    /// Number of sessions opened to read the state before.
    pub fn sessions(&self) -> u64 {
        u64::from(matches!(self, InvariantCheck::Builtin(..)))
    }

    /// Number of transactions of these sessions, as the server counts them.
    pub fn transactions(&self) -> u64 {
        if let InvariantCheck::Builtin(_, _, transactions) = self { *transactions } else { 0 }
    }

    /// Reads the state again and compares its change with the run's counts. `lost` of the acknowledged
    /// commits are known to be missing; `promised` is the level's guarantee.
    pub fn end(
        self,
        connector: &Connector,
        database: &Database,
        run: &RunOutcome,
        lost: u64,
        promised: Option<Guarantee>,
    ) -> Vec<Invariant> {
        let checked = match self {
            InvariantCheck::LeftToUser => return Vec::new(),
            InvariantCheck::Unavailable(why) => return vec![Invariant::unchecked("tables", why)],
            InvariantCheck::Builtin(writes, before, _) => open_after(connector, run)
                .and_then(|mut connection| {
                    check(&mut connection, database, &before, expected(run, &writes, lost), &writes)
                })
                .map(|checked| {
                    let invariant = |checked: isobench_database::InvariantResult| {
                        Invariant::checked(checked.name, checked.held, checked.detail)
                    };
                    checked.into_iter().map(invariant).collect()
                }),
            InvariantCheck::Checked(chosen) => open_after(connector, run)
                .and_then(|mut connection| isobench_workloads::check(&mut connection, database, &chosen))
                .map(|found| {
                    let of_tables = found.into_iter().map(|found| of_table(found, promised));
                    of_tables.chain(asserted(&chosen, run, promised)).collect()
                }),
        };
        checked.unwrap_or_else(|error| {
            vec![Invariant::unchecked("tables", format!("could not be checked: {error}"))]
        })
    }
}

/// Returns the run's counts of transactions that write into the history. Which scripts the lost
/// ones are of isn't known.
fn expected(run: &RunOutcome, writes: &[Writes], lost: u64) -> Expectation {
    let mut expected = Expectation::default();
    for (script, writes) in run.scripts.iter().zip(writes) {
        if *writes != Writes::Nothing {
            expected.committed += script.ledger.transactions.committed;
            expected.ambiguous += script.ledger.transactions.ambiguous;
        }
    }
    let lost = lost.min(expected.committed);
    expected.committed -= lost;
    expected.ambiguous += lost;
    expected
}

/// An invariant of a checked workload. It holds for serial execution, so only a serializable
/// guarantee promises it.
fn counted(name: &str, (found, unit): (u64, &str), detail: String, promised: Option<Guarantee>) -> Invariant {
    Invariant {
        violations: Some(found),
        unit: Some(unit.to_owned()),
        promised: promised.is_some_and(|promised| promised.model.implies(Model::Serializable)),
        ..Invariant::checked(name, found == 0, detail)
    }
}

fn of_table(found: Violations, promised: Option<Guarantee>) -> Invariant {
    let example = found.example.map_or_else(String::new, |example| format!(", for example {example}"));
    counted(
        found.name,
        (found.found, found.unit),
        format!("{}: {} {}{example}", found.meaning, found.found, found.unit),
        promised,
    )
}

/// The assertions of the scripts about the rows they read.
fn asserted(chosen: &Chosen, run: &RunOutcome, promised: Option<Guarantee>) -> Vec<Invariant> {
    let mut sums: Vec<(&str, u64, u64)> = Vec::new();
    for assertion in run.scripts.iter().flat_map(|script| &script.assertions) {
        match sums.iter_mut().find(|sum| sum.0 == assertion.name) {
            Some(sum) => *sum = (sum.0, sum.1 + assertion.checked, sum.2 + assertion.broken),
            None => sums.push((&assertion.name, assertion.checked, assertion.broken)),
        }
    }
    let invariant = |(name, checked, broken): (&str, u64, u64)| {
        let known = chosen.workload().assertions.iter().find(|assertion| assertion.name == name);
        let meaning = known.map_or(name, |assertion| assertion.meaning);
        let detail = format!("{meaning}: {broken} of {checked} committed transactions found it broken");
        counted(name, (broken, "transactions"), detail, promised)
    };
    sums.into_iter().map(invariant).collect()
}

/// Connects to a server that may be restarting after this run.
pub fn open_after(connector: &Connector, run: &RunOutcome) -> Result<Connection, Error> {
    open_again(connector, if run.aborted > 0 { LIMITS.comeback } else { Duration::ZERO })
}

fn open_again(connector: &Connector, patience: Duration) -> Result<Connection, Error> {
    let began = Instant::now();
    loop {
        match connector.open() {
            // A user who asks to stop doesn't want to wait for the server.
            Err(_) if began.elapsed() < patience && connector.patience().requests() == 0 => {
                std::thread::sleep(Duration::from_millis(200));
            }
            outcome => return outcome,
        }
    }
}
