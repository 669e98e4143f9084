//! Random transactions at different levels on real servers: whatever they did, nothing that the levels
//! promise was broken.
//!
//! The rules of mixed histories are PostgreSQL's as isobench understands them (decision 0066). Here the
//! server has the word.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

use fastrand::Rng;
use isobench_isolation::check::{Options as CheckOptions, check, render};
use isobench_isolation::history::{
    Draft, Key, Mode, Operation, Transaction, TransactionOutcome, Version, text,
};
use isobench_isolation::model::Order;
use isobench_isolation::{History, Level};
use isobench_probe::{Event, Options, Record, Spec, Tester, WaitDetection};

use crate::support::{TestServer, fetched, installed};

const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];

/// The sessions of a schedule, the schedules of the same transactions, and the different transactions.
pub const SESSIONS: usize = 3;
const SCHEDULES: usize = 12;

/// The seeds for a random test.
pub fn seeds(usual: u64) -> Range<u64> {
    let times = std::env::var("ISOBENCH_SEEDS").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    0..usual * times
}

/// What a statement does.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    Read(i64),
    Lock(i64, &'static str),
    Write(i64),
    Search,
    Insert,
}

impl Act {
    fn random(random: &mut Rng) -> Act {
        let row = random.i64(0..2);
        match random.u8(0..10) {
            0..=3 => Act::Read(row),
            4 => Act::Lock(row, STRENGTHS[random.usize(0..4)].0),
            5..=7 => Act::Write(row),
            8 => Act::Search,
            _ => Act::Insert,
        }
    }

    fn sql(self, writer: usize) -> String {
        match self {
            Act::Read(row) => format!("SELECT version, writer FROM mixed WHERE id = {row}"),
            Act::Lock(row, strength) => {
                format!("SELECT version, writer FROM mixed WHERE id = {row} FOR {strength}")
            }
            Act::Write(row) => format!(
                "UPDATE mixed SET version = version + 1, writer = {writer} WHERE id = {row} RETURNING version, writer"
            ),
            Act::Search => "SELECT id FROM grouped WHERE kind = 0".to_owned(),
            Act::Insert => "INSERT INTO grouped (kind) VALUES (0) RETURNING id".to_owned(),
        }
    }

    /// Adds what a statement that returned these rows read and wrote.
    fn note(self, rows: &[Vec<Option<String>>], draft: &mut Draft) {
        let number = |row: &[Option<String>], column: usize| {
            row[column].as_ref().map(|it| it.parse().expect("a number"))
        };
        let version = |row: &[Option<String>]| Version {
            counter: number(row, 0).map(i64::cast_unsigned),
            value: number(row, 1),
        };
        let ids: Vec<i64> = rows.iter().filter_map(|row| number(row, 0)).collect();
        match self {
            Act::Read(id) | Act::Lock(id, _) => {
                draft.push(Operation::Read { key: Key { table: 0, id }, version: version(&rows[0]) });
            }
            Act::Write(id) => {
                draft.push(Operation::Write { key: Key { table: 0, id }, version: version(&rows[0]) });
            }
            Act::Search => draft.push(Operation::ReadGroup { table: 1, group: 0, rows: &ids }),
            Act::Insert => draft.push(Operation::Insert { key: Key { table: 1, id: ids[0] }, group: 0 }),
        }
    }
}

/// A transaction of a session.
#[derive(Debug)]
pub struct Plan {
    pub level: Level,
    pub acts: Vec<Act>,
}

impl Plan {
    fn random(random: &mut Rng) -> Plan {
        let acts = (0..random.usize(2..=4)).map(|_| Act::random(random)).collect();
        Plan { level: LEVELS[random.usize(0..3)], acts }
    }

    /// A transaction that reads each row and group once at most, and not after it has written it.
    pub fn without_repetition(random: &mut Rng) -> Plan {
        let mut plan = Plan::random(random);
        let (mut read, mut written) = (BTreeSet::new(), BTreeSet::new());
        plan.acts.retain(|act| match act {
            Act::Read(row) | Act::Lock(row, _) => !written.contains(row) && read.insert(*row),
            Act::Write(row) => written.insert(*row),
            Act::Search => !written.contains(&-1) && read.insert(-1),
            Act::Insert => written.insert(-1),
        });
        plan
    }
}

/// The specification of some schedules of transactions. Step `n` takes a snapshot and reads nothing.
pub fn spec(plans: &[Plan], schedules: &[Vec<String>]) -> Spec {
    let mut text = "setup { UPDATE mixed SET version = 0, writer = NULL; DELETE FROM grouped; }\n".to_owned();
    for (session, plan) in plans.iter().enumerate() {
        writeln!(
            text,
            "session s{session}\nstep b{session} {{ BEGIN ISOLATION LEVEL {}; }}",
            plan.level.sql()
        )
        .unwrap();
        for (place, act) in plan.acts.iter().enumerate() {
            writeln!(text, "step a{session}_{place} {{ {}; }}", act.sql(session + 1)).unwrap();
        }
        writeln!(text, "step n{session} {{ SELECT 1; }}\nstep c{session} {{ COMMIT; }}").unwrap();
    }
    for schedule in schedules {
        writeln!(text, "permutation {}", schedule.join(" ")).unwrap();
    }
    Spec::parse("mixed.spec", &text).expect("a specification")
}

/// The results of each schedule.
pub fn execute(server: &TestServer, spec: &Spec) -> Vec<Record> {
    let mut records: Vec<Record> = Vec::new();
    let tester = Tester {
        open: server.opener(),
        product: server.database.product,
        level: None,
        options: Options::default(),
        wait_detection: WaitDetection::View,
        stopped: &|| false,
    };
    let done = tester.run(spec, &mut |event| {
        if let Event::Permutation(_) = event {
            records.push(Record::default());
        }
        if let Some(record) = records.last_mut() {
            record.take(&event);
        }
    });
    done.unwrap_or_else(|error| panic!("{error}"));
    records
}

/// Makes the tables. Rows are found by their keys, so that predicate locks are of rows.
pub fn make_tables(server: &TestServer) {
    let mut connection = server.open().expect("a session");
    for sql in [
        "CREATE TABLE mixed (id bigint PRIMARY KEY, version bigint NOT NULL, writer bigint)",
        "INSERT INTO mixed SELECT id, 0, NULL FROM generate_series(0, 1) AS ids(id)",
        "CREATE TABLE grouped (id bigserial PRIMARY KEY, kind bigint NOT NULL)",
        "CREATE INDEX ON grouped (kind)",
        "ALTER SYSTEM SET enable_seqscan = off",
        // What has to read a whole table all the same seems to be worth compiling.
        "ALTER SYSTEM SET jit = off",
        "SELECT pg_reload_conf()",
    ] {
        connection.query(sql).expect(sql);
    }
}

/// A random schedule in which a session's next step is launched only if its last one doesn't wait any
/// more, as far as row locks make it wait.
pub struct Schedule<'p> {
    plans: &'p [Plan],
    steps: Vec<String>,
    /// For each session the number of its steps so far, and `None` after its end.
    next: Vec<Option<usize>>,
    /// Locks by session, row and strength.
    held: Vec<(usize, i64, usize)>,
    /// The lock that a session waits for: one at most.
    awaited: Option<(usize, i64, usize)>,
}

/// The strengths of row locks, the weakest first, with those that each conflicts with (PostgreSQL manual,
/// "Conflicting Row-Level Locks").
const STRENGTHS: [(&str, &[usize]); 4] =
    [("KEY SHARE", &[3]), ("SHARE", &[2, 3]), ("NO KEY UPDATE", &[1, 2, 3]), ("UPDATE", &[0, 1, 2, 3])];

impl Schedule<'_> {
    pub fn random(plans: &[Plan], random: &mut Rng) -> Vec<String> {
        let (next, held) = (vec![Some(0); plans.len()], Vec::new());
        let mut schedule = Schedule { plans, steps: Vec::new(), next, held, awaited: None };
        while schedule.next.iter().any(Option::is_some) {
            let able: Vec<usize> = (0..plans.len()).filter(|session| schedule.is_able(*session)).collect();
            if able.is_empty() {
                // Each would wait for the other: one ends early.
                let waits = |session: usize| schedule.awaited.is_some_and(|(waiting, ..)| waiting == session);
                let left = (0..plans.len()).filter(|it| schedule.next[*it].is_some() && !waits(*it));
                let left: Vec<usize> = left.collect();
                schedule.end(left[random.usize(0..left.len())]);
            } else {
                schedule.launch(able[random.usize(0..able.len())]);
            }
        }
        schedule.steps
    }

    /// The lock that the next step of a session takes.
    fn lock(&self, session: usize) -> Option<(usize, i64, usize)> {
        let act = self.next[session]?.checked_sub(1)?;
        let strength = |name: &str| STRENGTHS.iter().position(|(known, _)| *known == name).expect("known");
        match self.plans[session].acts.get(act)? {
            Act::Lock(row, name) => Some((session, *row, strength(name))),
            Act::Write(row) => Some((session, *row, strength("NO KEY UPDATE"))),
            _ => None,
        }
    }

    fn is_free(&self, (session, row, strength): (usize, i64, usize)) -> bool {
        !self
            .held
            .iter()
            .any(|(by, of, held)| *by != session && *of == row && STRENGTHS[strength].1.contains(held))
    }

    fn is_able(&self, session: usize) -> bool {
        let free = self.lock(session).is_none_or(|lock| self.is_free(lock));
        self.next[session].is_some() && self.awaited.is_none_or(|(waiting, ..)| waiting != session && free)
    }

    fn launch(&mut self, session: usize) {
        let lock = self.lock(session);
        let Some(number) = self.next[session] else { return };
        if number > self.plans[session].acts.len() {
            self.end(session);
            return;
        }
        let name =
            number.checked_sub(1).map_or_else(|| format!("b{session}"), |act| format!("a{session}_{act}"));
        self.steps.push(name);
        self.next[session] = Some(number + 1);
        match lock {
            Some(lock) if self.is_free(lock) => self.held.push(lock),
            Some(_) => self.awaited = lock,
            None => {}
        }
    }

    fn end(&mut self, session: usize) {
        self.steps.push(format!("c{session}"));
        self.next[session] = None;
        self.held.retain(|(by, ..)| *by != session);
        if let Some(lock) = self.awaited.filter(|lock| self.is_free(*lock)) {
            self.awaited = None;
            self.held.push(lock);
        }
    }
}

/// The history of a schedule.
pub fn history(plans: &[Plan], record: &Record) -> History {
    let mut history = History::new(vec!["mixed".to_owned(), "grouped".to_owned()]);
    for (session, plan) in plans.iter().enumerate() {
        let mut draft = Draft::new();
        for (place, act) in plan.acts.iter().enumerate() {
            let step = record.step(&format!("a{session}_{place}"));
            if let Some(step) = step.filter(|step| step.succeeded()) {
                act.note(&step.tables[0].rows, &mut draft);
            }
        }
        let committed =
            record.step(&format!("c{session}")).is_some_and(isobench_probe::StepRecord::committed);
        let outcome = if committed { TransactionOutcome::Committed } else { TransactionOutcome::Aborted };
        let (id, client) = (session as u64 + 1, u32::try_from(session).expect("few"));
        let mode = Some(Mode::of(plan.level));
        history.push(Transaction { id, client, begin: 0, end: 0, outcome, mode }, &draft);
    }
    history
}

/// The question for what was executed: by data alone, and each transaction by its own level.
pub fn options(server: &TestServer) -> CheckOptions {
    CheckOptions {
        levels: Some(server.database.product.promises),
        order: Order::Data,
        ..CheckOptions::default()
    }
}

/// The number of transactions that committed.
pub fn committed(history: &History) -> usize {
    let all = history.transactions().iter();
    all.filter(|one| one.outcome == TransactionOutcome::Committed).count()
}

/// Executes random schedules, and judges each.
fn judge(server: &TestServer, sets: u64) {
    make_tables(server);
    let options = options(server);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in seeds(sets) {
        let mut random = Rng::with_seed(seed);
        let plans: Vec<Plan> = (0..SESSIONS).map(|_| Plan::random(&mut random)).collect();
        let schedules: Vec<Vec<String>> =
            (0..SCHEDULES).map(|_| Schedule::random(&plans, &mut random)).collect();
        for record in &execute(server, &spec(&plans, &schedules)) {
            let history = history(&plans, record);
            let report = check(&history, &options);
            assert_ne!(
                report.verdict.kept,
                Some(false),
                "seed {seed}:\n{}\n{}",
                render(&report),
                text::print(&history)
            );
            assert!(report.verdict.withheld.is_empty(), "seed {seed}:\n{}", render(&report));
            *counts.entry("schedules").or_default() += 1;
            *counts.entry("committed").or_default() += committed(&history) as u64;
            *counts.entry("mixed").or_default() += u64::from(report.mixed.is_some());
            *counts.entry("not serializable").or_default() += u64::from(!report.is_serializable());
            *counts.entry("waited").or_default() += u64::from(record.steps.iter().any(|step| step.waited));
        }
    }
    println!("{counts:?}");
    for (what, count) in counts {
        assert!(count > 0, "no schedule was {what}");
    }
}

#[test]
fn the_installed_server_breaks_no_promise_to_a_mixture() {
    let Some(server) = installed("the_installed_server_breaks_no_promise_to_a_mixture") else { return };
    judge(&server, 20);
}

#[test]
fn version_18_breaks_no_promise_to_a_mixture() {
    let Some(server) = fetched("version_18_breaks_no_promise_to_a_mixture", "18") else { return };
    judge(&server, 20);
}
