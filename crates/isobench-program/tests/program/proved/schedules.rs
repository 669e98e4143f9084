//! Executions of some scripts at once, and in all orders, and whether the outcomes are the same.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use isobench_isolation::Level;
use isobench_pgwire::{ConnectOptions, Connection};

use super::run::{Run, Transaction};
use super::schema::Schema;
use super::scripts::Script;
use super::sessions::Session;

/// The most transactions of a schedule of which all orders are tried, and those of each session in their
/// order.
const MOST: usize = 4;
const MOST_IN_ORDER: usize = 6;

/// What a schedule left, and what its transactions saw.
struct Outcome {
    state: Vec<Vec<Option<String>>>,
    /// For each session, its transactions.
    transactions: Vec<Vec<Transaction>>,
    log: String,
}

/// An execution of a script by a session.
#[derive(Clone)]
pub struct Part {
    pub script: usize,
    pub draws: Vec<i64>,
}

/// What a schedule is found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    Serial,
    /// Too many transactions to tell.
    Unknown,
}

pub struct Stage {
    pub monitor: Connection,
    sessions: Vec<Session>,
    levels: Vec<Option<Level>>,
}

impl Stage {
    pub fn open(options: &ConnectOptions) -> Stage {
        let mut monitor = Connection::open(options).expect("a connection");
        monitor
            .execute("SET session_replication_role = replica; SET client_min_messages = error")
            .expect("a role");
        let sessions = (0..3).map(|_| Session::open(options)).collect();
        Stage { monitor, sessions, levels: vec![None; 3] }
    }

    /// Makes the tables.
    pub fn set_up(&mut self, schema: &Schema) -> Result<(), String> {
        let fresh = "DROP SCHEMA IF EXISTS public, saved CASCADE; CREATE SCHEMA public; CREATE SCHEMA saved";
        self.monitor.execute(fresh).expect("empty schemas");
        self.monitor.execute(&schema.setup).map_err(|error| error.to_string())?;
        self.monitor.execute(&schema.save()).expect("copies");
        Ok(())
    }

    fn restore(&mut self, schema: &Schema) {
        self.monitor.execute(&schema.restore()).expect("the rows as they were");
    }

    fn state(&mut self, schema: &Schema) -> Vec<Vec<Option<String>>> {
        self.monitor.query(&schema.contents()).expect("all rows").rows
    }

    fn at_level(&mut self, session: usize, level: Level) {
        if self.levels[session] != Some(level) {
            let sql = format!("SET default_transaction_isolation = '{}'", level.sql().to_lowercase());
            self.sessions[session].execute(&sql).expect("a level");
            self.levels[session] = Some(level);
        }
    }

    /// Lets the first session execute so many statements, then the others all of theirs, then the first its
    /// rest. Who waits goes on when it can.
    fn split(
        &mut self,
        schema: &Schema,
        scripts: &[Script],
        parts: &[Part],
        levels: &[Level],
        at: usize,
    ) -> (Outcome, bool) {
        self.restore(schema);
        let mut runs: Vec<Run<'_>> =
            parts.iter().map(|part| Run::new(&scripts[part.script], &part.draws)).collect();
        for (session, part) in parts.iter().enumerate() {
            self.at_level(session, levels[part.script]);
        }
        let mut log = String::new();
        self.advance(&mut runs, 0, at, &mut log);
        let ended_early = runs[0].done;
        for session in 1..runs.len() {
            self.advance(&mut runs, session, usize::MAX, &mut log);
        }
        while runs.iter().any(|run| !run.done) {
            for session in 0..runs.len() {
                self.advance(&mut runs, session, usize::MAX, &mut log);
            }
        }
        let state = self.state(schema);
        let transactions = runs.into_iter().map(|run| run.transactions).collect();
        (Outcome { state, transactions, log }, ended_early)
    }

    /// Lets a session go on for so many statements, or until it waits or has ended.
    fn advance(&mut self, runs: &mut [Run<'_>], session: usize, count: usize, log: &mut String) {
        let (run, own) = (&mut runs[session], &mut self.sessions[session]);
        let mut sent = 0;
        while !run.done && sent < count {
            if !own.pending {
                let Some(sql) = run.next() else {
                    if run.is_in_block() {
                        let _ = own.execute("ROLLBACK");
                    }
                    break;
                };
                let _ = writeln!(log, "{session}: {sql}");
                own.send(&sql);
            }
            let Some(reply) = own.reply(&mut self.monitor) else {
                let _ = writeln!(log, "{session} waits");
                return;
            };
            let _ = match &reply {
                Ok(reply) if reply.columns.is_empty() => Ok(()),
                Ok(reply) => writeln!(log, "{session} gets {:?}", reply.rows),
                Err(why) => writeln!(log, "{session} fails: {why}"),
            };
            run.take(reply);
            sent += 1;
            if run.done && run.failure.as_deref() == Some("no row") {
                let _ = own.execute("ROLLBACK");
            }
        }
    }

    /// The transactions in this order, each alone; `None` as soon as one doesn't see the same.
    fn in_order(
        &mut self,
        schema: &Schema,
        scripts: &[Script],
        parts: &[Part],
        order: &[(usize, &Transaction)],
    ) -> Option<Vec<Vec<Option<String>>>> {
        self.restore(schema);
        self.at_level(0, Level::ReadCommitted);
        for (session, transaction) in order {
            let part = &parts[*session];
            let mut run = Run::again(&scripts[part.script], &part.draws, transaction);
            while let Some(sql) = run.next() {
                let reply = self.sessions[0].execute(&sql);
                run.take(reply);
                if run.failure.is_some() && run.transactions.last().is_some_and(|own| !own.committed) {
                    let _ = self.sessions[0].execute("ROLLBACK");
                }
            }
            let own = run.transactions.first()?;
            let places = transaction.counted();
            if !own.committed || own.shown(&places) != transaction.shown(&places) {
                return None;
            }
        }
        Some(self.state(schema))
    }

    /// Tries a schedule: whether its outcome is that of an order of the transactions that committed.
    ///
    /// # Errors
    /// No order gives it: what happened.
    fn judge(
        &mut self,
        schema: &Schema,
        scripts: &[Script],
        parts: &[Part],
        outcome: &Outcome,
    ) -> Result<Judged, String> {
        let all = outcome.transactions.iter().enumerate();
        let all = all.flat_map(|(session, own)| own.iter().map(move |transaction| (session, transaction)));
        let committed: Vec<(usize, &Transaction)> =
            all.filter(|(_, own)| own.committed && !own.declined()).collect();
        if committed.len() > MOST_IN_ORDER {
            return Ok(Judged::Unknown);
        }
        let mut orders = permutations(committed.len());
        let backwards = |order: &[usize]| {
            let pairs = (0..order.len()).flat_map(|to| (0..to).map(move |from| (from, to)));
            pairs
                .filter(|(from, to)| {
                    committed[order[*from]].0 == committed[order[*to]].0 && order[*from] > order[*to]
                })
                .count()
        };
        // That of the sessions is the right one mostly.
        orders.sort_by_key(|order| backwards(order));
        let all = committed.len() <= MOST;
        orders.retain(|order| all || backwards(order) == 0);
        for order in orders {
            let order: Vec<(usize, &Transaction)> = order.iter().map(|place| committed[*place]).collect();
            if self.in_order(schema, scripts, parts, &order).as_ref() == Some(&outcome.state) {
                return Ok(Judged::Serial);
            }
        }
        if !all {
            return Ok(Judged::Unknown);
        }
        Err(format!("{}then there is {:?}", outcome.log, outcome.state))
    }

    /// Tries all splits of the first part by the others.
    ///
    /// # Errors
    /// No order of its transactions gives the outcome of one: what happened.
    pub fn splits(
        &mut self,
        schema: &Schema,
        scripts: &[Script],
        parts: &[Part],
        levels: &[Level],
        tally: &mut Tally,
    ) -> Result<(), String> {
        for at in 1.. {
            let (outcome, ended) = self.split(schema, scripts, parts, levels, at);
            if ended {
                break;
            }
            tally.schedules += 1;
            let failed = outcome.transactions.iter().flatten().any(|own| !own.committed);
            tally.with_failures += u64::from(failed);
            if outcome.log.contains("waits") {
                tally.with_waits += 1;
            }
            tally.with_deadlocks += u64::from(outcome.log.contains("deadlock detected"));
            let judged = self.judge(schema, scripts, parts, &outcome).map_err(|why| {
                let draws: Vec<String> =
                    parts.iter().map(|part| format!("{} draws {:?}", part.script + 1, part.draws)).collect();
                format!("scripts {}, after {at} statements of the first:\n{why}", draws.join(", "))
            })?;
            tally.unknown += u64::from(judged == Judged::Unknown);
        }
        Ok(())
    }
}

/// How many schedules there were.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    pub schedules: u64,
    pub with_failures: u64,
    pub with_waits: u64,
    pub unknown: u64,
    pub with_deadlocks: u64,
}

impl Tally {
    /// Adds others.
    pub fn add(&mut self, other: Tally) {
        self.schedules += other.schedules;
        self.with_failures += other.with_failures;
        self.with_waits += other.with_waits;
        self.unknown += other.unknown;
        self.with_deadlocks += other.with_deadlocks;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tally { schedules, with_failures, with_waits, unknown, with_deadlocks } = self;
        write!(
            f,
            "{schedules} schedules, {with_failures} with failures, {with_waits} with waits, \
             {with_deadlocks} with deadlocks, {unknown} not judged"
        )
    }
}

fn permutations(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        let longer = all.iter().flat_map(|order: &Vec<usize>| {
            let used: BTreeSet<usize> = order.iter().copied().collect();
            let free = (0..count).filter(move |next| !used.contains(next));
            free.map(|next| order.iter().copied().chain([next]).collect::<Vec<_>>()).collect::<Vec<_>>()
        });
        all = longer.collect();
    }
    all
}
