//! Settles attempts by the data: every transaction leaves a row with its attempt's number, and what
//! the clients were answered is compared with the rows that are there after a fault.
//!
//! Not here: the faults (`fault.rs`), the script that leaves the row (`isobench_script`), and what
//! settings promise (`isobench_database`).

use std::collections::HashMap;
use std::time::{Duration, Instant};

use isobench_database::{Connector, Database, Error, SynchronousCommit, current_setting};
use isobench_limits::LIMITS;
use isobench_pgwire::Connection;
use isobench_plan::Fault;
use isobench_result as report;
use isobench_runner::{AttemptEnd, EndedAttempt, Restart, RetryPolicy, RunOutcome, RunWorkload};

use crate::failure::{Failure, Outcome};
use crate::fault::{Struck, outage};
use crate::site::Site;

/// The table of attempts' numbers.
const TABLE: &str = "isobench_attempts";

/// Rows fetched at once.
const BATCH: usize = 50_000;

/// What is known of an attempt, and how often its number was found.
type Attempts = HashMap<u64, (AttemptEnd, u64)>;

/// The name of the table for statements.
fn table(database: &Database) -> String {
    match &database.schema {
        Some(schema) => format!("{schema}.{TABLE}"),
        None => TABLE.to_owned(),
    }
}

/// Changes scripts so that each of their transactions leaves a row.
///
/// # Errors
/// A script isn't exactly one transaction, or retries start within one.
pub fn leave_rows(workload: &mut RunWorkload, retry: &RetryPolicy, database: &Database) -> Outcome {
    let refused = |script: &str, why: &str| {
        Failure::setup(format!(
            "--fault: {script}: {why}, so its transactions can't leave a row each that shows after the fault which of \
             them were committed; measure one that is a single transaction"
        ))
    };
    let statement = format!("INSERT INTO {} VALUES (:attempt_id);", table(database));
    let symbols = &mut workload.symbols;
    for script in workload.mix.scripts_mut() {
        if script.sql().any(|sql| sql.as_written().contains(TABLE)) {
            return Err(refused(&script.name, "it uses the table isobench_attempts itself"));
        }
        if retry.restart != Restart::Transaction {
            return Err(refused(&script.name, "it retries from a savepoint"));
        }
        let left = script.leaving(&statement, symbols);
        *script = left.map_err(|why| refused(&script.name, &why.to_string()))?;
    }
    Ok(())
}

/// The table in which the attempts of a cell leave their numbers, and what the settings promise.
#[derive(Debug)]
pub struct Attested {
    connector: Connector,
    table: String,
    /// `None` if a script sets it by itself, or if it isn't known.
    commit: Option<SynchronousCommit>,
    /// How the settings are said.
    settings: String,
    /// Commits wait for standbys.
    synchronous: bool,
}

impl Attested {
    /// Makes the table, and reads what the settings promise. `own_commit`: a script sets
    /// `synchronous_commit` by itself.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn make(site: &Site, own_commit: bool) -> Outcome<Attested> {
        let table = table(&site.database);
        let mut connection = site.open().map_err(Failure::setup)?;
        let mut read = |name: &str| current_setting(&mut connection, name);
        let commit = read("synchronous_commit").map_err(Failure::setup)?;
        let names = read("synchronous_standby_names").map_err(Failure::setup)?;
        for sql in [
            format!("DROP TABLE IF EXISTS {table}"),
            format!("CREATE TABLE {table} (attempt bigint NOT NULL)"),
        ] {
            connection.execute(&sql).map_err(Failure::setup)?;
        }
        connection.close();
        let synchronous = !names.trim().is_empty();
        let standbys =
            if synchronous { "with a synchronous standby" } else { "without a synchronous standby" };
        Ok(Attested {
            connector: site.connector().clone(),
            table,
            commit: SynchronousCommit::of(&commit).filter(|_| !own_commit),
            settings: format!("synchronous_commit={commit} {standbys}"),
            synchronous,
        })
    }

    /// Empties the table before the measured part.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn empty(&self) -> Outcome {
        let emptied = self.connector.open().and_then(|mut connection| {
            connection.execute(&format!("TRUNCATE {}", self.table))?;
            connection.close();
            Ok(())
        });
        emptied.map_err(Failure::setup)
    }

    /// Compares the answers to the clients of a run with the rows. `struck` are the faults.
    pub fn settle(&self, run: &RunOutcome, struck: &[Struck]) -> report::Settlement {
        let mut attempts: Attempts = run.ended.iter().map(|ended| (ended.id, (ended.end, 0))).collect();
        let happened: Vec<Fault> =
            struck.iter().filter(|struck| struck.at.is_some()).map(|struck| struck.fault).collect();
        let survives = |commit: SynchronousCommit, fault: &Fault| {
            outage(fault.kind).map(|outage| commit.survives(outage, self.synchronous))
        };
        // What a fault may lose is lost, whatever another one is.
        let promised = self.commit.and_then(|commit| {
            let each: Vec<Option<bool>> = happened.iter().map(|fault| survives(commit, fault)).collect();
            if each.contains(&Some(false)) {
                Some(false)
            } else {
                each.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
            }
        });
        let mut settlement =
            report::Settlement { promised, settings: self.settings.clone(), ..report::Settlement::default() };
        match self.read(&mut attempts) {
            Ok(strangers) => settlement.strangers = strangers,
            Err(why) => settlement.withheld = Some(format!("the rows of the attempts can't be read: {why}")),
        }
        for (end, rows) in attempts.values() {
            let (count, found) = match end {
                AttemptEnd::Acknowledged => (&mut settlement.acknowledged, &mut settlement.found),
                AttemptEnd::Unknown => (&mut settlement.unacknowledged, &mut settlement.kept),
                AttemptEnd::Failed => (&mut settlement.failed, &mut settlement.failed_kept),
            };
            *count += 1;
            *found += u64::from(*rows > 0);
            settlement.repeated += u64::from(*rows > 1);
        }
        if settlement.withheld.is_none() {
            settlement.lost = settlement.acknowledged - settlement.found;
            settlement.lost_before_s = lost_before(&run.ended, &attempts, struck);
        }
        let doubt = match (settlement.strangers, settlement.lost, promised) {
            (0, 1.., None) => Some(format!(
                "{} acknowledged commits are lost, but {}, so what is promised isn't known",
                settlement.lost,
                if self.commit.is_none() {
                    "a script sets synchronous_commit by itself"
                } else {
                    "only --fault-command knows what happened"
                }
            )),
            (0, ..) => None,
            (1, ..) => Some("1 row is of no attempt of this run".to_owned()),
            (strangers, ..) => Some(format!("{strangers} rows are of no attempt of this run")),
        };
        settlement.withheld = settlement.withheld.or(doubt);
        settlement
    }

    /// Counts the rows of each attempt, and returns the number of those that are no attempt's. Nothing
    /// can add any when it returns: the table is locked, and then dropped.
    fn read(&self, attempts: &mut Attempts) -> Result<u64, Error> {
        let began = Instant::now();
        let mut connection = loop {
            match self.connector.open() {
                Err(_)
                    if began.elapsed() < LIMITS.settlement && self.connector.patience().requests() == 0 =>
                {
                    std::thread::sleep(Duration::from_millis(50));
                }
                outcome => break outcome?,
            }
        };
        let mut strangers = 0;
        // Waiting for a standby that is gone would never end, and nothing here has to last.
        connection.execute("SET synchronous_commit = local")?;
        connection.execute(&format!("SET lock_timeout = {}", LIMITS.settlement.as_millis()))?;
        connection.execute("BEGIN")?;
        connection.execute(&format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", self.table))?;
        connection
            .execute(&format!("DECLARE isobench_rows CURSOR FOR SELECT attempt FROM {}", self.table))?;
        while read_batch(&mut connection, attempts, &mut strangers)? > 0 {}
        connection.execute("CLOSE isobench_rows")?;
        connection.execute(&format!("DROP TABLE {}", self.table))?;
        connection.execute("COMMIT")?;
        connection.close();
        Ok(strangers)
    }
}

/// Reads the next rows, and returns how many.
fn read_batch(
    connection: &mut Connection,
    attempts: &mut Attempts,
    strangers: &mut u64,
) -> Result<usize, Error> {
    let rows = connection.query(&format!("FETCH {BATCH} FROM isobench_rows"))?.rows;
    for row in &rows {
        let number = row.first().and_then(Option::as_deref).and_then(|text| text.parse::<u64>().ok());
        match number.and_then(|number| attempts.get_mut(&number)) {
            Some((_, found)) => *found += 1,
            None => *strangers += 1,
        }
    }
    Ok(rows.len())
}

/// How long before a fault the first of the lost attempts was acknowledged, in seconds; `None` if none
/// is lost.
fn lost_before(ended: &[EndedAttempt], attempts: &Attempts, struck: &[Struck]) -> Option<f64> {
    let lost = |attempt: &&EndedAttempt| {
        attempt.end == AttemptEnd::Acknowledged
            && attempts.get(&attempt.id).is_some_and(|(_, found)| *found == 0)
    };
    let first = Duration::from_nanos(ended.iter().filter(lost).map(|attempt| attempt.at).min()?);
    let next = struck.iter().filter_map(|struck| struck.at).filter(|at| *at >= first).min();
    next.map(|at| at.saturating_sub(first).as_secs_f64())
}

/// A round's report on its faults.
pub fn fault_round(
    run: &RunOutcome,
    struck: &[Struck],
    settlement: report::Settlement,
) -> report::FaultRound {
    let mut commits: Vec<u64> = run
        .ended
        .iter()
        .filter(|attempt| attempt.end == AttemptEnd::Acknowledged)
        .map(|attempt| attempt.at)
        .collect();
    commits.sort_unstable();
    let event = |struck: &Struck| {
        let silence = struck.at.map(|at| silence(&commits, at, struck.back, run.elapsed));
        report::FaultEvent {
            fault: struck.fault.to_string(),
            at_s: struck.at.map(|at| at.as_secs_f64()),
            back_s: struck.back.zip(struck.at).map(|(back, at)| back.saturating_sub(at).as_secs_f64()),
            silent_s: silence.map(|silence| silence.0.as_secs_f64()),
            first_commit_s: silence.and_then(|silence| silence.1).map(|first| first.as_secs_f64()),
            problem: struck.problem.clone(),
        }
    };
    report::FaultRound {
        faults: struck.iter().map(event).collect(),
        lost_sessions: run.lost_sessions,
        away: crate::design::count(run.away),
        settlement,
    }
}

/// The longest time between two acknowledged commits that overlaps the time from the fault until the
/// server was back (`None`: it wasn't), and the time from the fault to the commit that ended it; `None` if
/// none did until the end of the run. `commits` are instants in nanoseconds, sorted.
fn silence(
    commits: &[u64],
    at: Duration,
    back: Option<Duration>,
    end: Duration,
) -> (Duration, Option<Duration>) {
    let (start, end) = (nanos(at), nanos(end));
    let back = back.map_or(end, nanos).max(start);
    let first = commits.partition_point(|commit| *commit <= start);
    let mut last = first.checked_sub(1).map_or(0, |before| commits[before]);
    let mut longest = (0, None);
    let after = commits[first..].iter().map(|commit| Some(*commit)).chain([None]);
    for next in after {
        let silent = next.unwrap_or(end).saturating_sub(last);
        if silent > longest.0 {
            longest = (silent, next);
        }
        match next {
            Some(commit) if commit <= back => last = commit,
            _ => break,
        }
    }
    let ended = longest.1.map(|commit| Duration::from_nanos(commit.saturating_sub(start)));
    (Duration::from_nanos(longest.0), ended)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use isobench_plan::FaultKind;

    use super::*;

    fn millis(number: u64) -> Duration {
        Duration::from_millis(number)
    }

    #[test]
    fn silence_is_the_longest_gap_after_the_fault() {
        let commits: Vec<u64> = [10, 20, 30, 95, 100, 180].map(|at| at * 1_000_000).into();
        let of = |at: u64, back: Option<u64>, end: u64| {
            silence(&commits, millis(at), back.map(millis), millis(end))
        };
        assert_eq!(of(32, Some(90), 200), (millis(65), Some(millis(63))));
        // The later pause isn't the fault's.
        assert_eq!(of(32, Some(96), 200), (millis(65), Some(millis(63))));
        // The reply to a commit may still be read after the fault.
        assert_eq!(of(29, Some(90), 200), (millis(65), Some(millis(66))));
        assert_eq!(of(185, None, 500), (millis(320), None), "it never came back");
        assert_eq!(silence(&[], millis(5), None, millis(50)), (millis(50), None));
    }

    #[test]
    fn what_was_lost_was_acknowledged_before_the_fault() {
        let ended = |id, at: u64, end| EndedAttempt { id, at: at * 1_000_000, end };
        let all = [
            ended(1, 900, AttemptEnd::Acknowledged),
            ended(2, 950, AttemptEnd::Acknowledged),
            ended(3, 990, AttemptEnd::Unknown),
        ];
        let attempts: Attempts = all.iter().map(|one| (one.id, (one.end, u64::from(one.id == 1)))).collect();
        let fault = Fault { kind: FaultKind::Crash, at: 1.0 };
        let struck = [Struck { fault, at: Some(millis(1000)), back: None, problem: None }];
        assert_eq!(lost_before(&all, &attempts, &struck), Some(0.05));
        assert_eq!(lost_before(&all[..1], &attempts, &struck), None);
    }
}
