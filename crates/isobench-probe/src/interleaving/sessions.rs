//! The sessions in which transactions run against each other, and the steps that they take.

use std::collections::BTreeSet;
use std::time::Instant;

use isobench_database::WaitView;
use isobench_isolation::history::Mode;
use isobench_pgwire::TransactionStatus;

use super::execution::{Ending, Execution, Next, View};
use super::outcome::Outcome;
use super::program::{Programs, Transaction};
use super::step::{Step, StepResult};
use super::tables::{Delta, Keys, WatchedTables, query};
use super::{TriedCondition, TryError, Trying};
use crate::tester::{Options, Patience, Reply, TestSession, Tester, WaitDetection, Waits};

/// Sessions and tables.
pub struct Sessions<'a> {
    pub(super) programs: &'a Programs,
    options: Options,
    stopped: &'a dyn Fn() -> bool,
    pub(super) control: TestSession,
    /// The modes of each program in each allocation, as numbers of modes.
    modes: Vec<Vec<usize>>,
    /// For each mode as many sessions as transactions run against each other.
    pub(super) all: Vec<TestSession>,
    /// Their number for each mode.
    side_by_side: usize,
    waits: Waits,
    /// The tables.
    pub tables: WatchedTables,
    /// The number from which each program's draws count, where their range has it.
    pub starts: Vec<Option<i64>>,
    conditions: &'a [TriedCondition],
    /// The number of statements of scripts that have been answered.
    pub statements: u64,
    /// True if scripts take locks that outlast their transactions.
    keeps_locks: bool,
    /// True if scripts listen, so that sessions would get notifications of what others do later.
    listens: bool,
    /// What functions of the schema ask for.
    pub(super) by_functions: Option<&'static str>,
    /// True if scripts, or functions, limit the time that they wait.
    pub(super) limits_waits: bool,
}

/// A way to run transactions against each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Schedule {
    /// One after the other, in this order.
    Serial(Vec<usize>),
    /// The first one until it has taken this many steps; then the others, one after the other; then
    /// its rest.
    Split(usize),
    /// One step of each of these in turn, as far as it doesn't wait; then the rest.
    #[cfg(test)]
    Steps(Vec<usize>),
}

/// A schedule that was executed.
#[derive(Debug, Clone)]
pub struct ExecutedSchedule {
    /// What came of it.
    pub outcome: Outcome,
    /// What happened, in order.
    pub steps: Vec<Step>,
    /// True if the first transaction ended before the place at which it was to be split.
    pub over: bool,
    /// True if the first one was split between two of its transactions.
    pub between: bool,
    /// Something that asks for what no order gives: it was sent while another one was under way.
    pub by_design: Option<&'static str>,
    /// True if some didn't end, or failed after a part of them had committed.
    pub inconclusive: bool,
}

/// Texts by which statements ask for outcomes that no order gives.
const BY_DESIGN: [(&str, &str); 3] =
    [("skip locked", "SKIP LOCKED"), ("nowait", "NOWAIT"), ("pg_try_advisory", "pg_try_advisory_lock")];

/// The setting that ends a wait.
const LOCK_TIMEOUT: &str = "lock_timeout";

/// Settings that save time. The server or the role may not know or permit one; then deadlocks take a
/// second to be found, and commits wait for the disk.
const SETTINGS: [&str; 2] = ["SET deadlock_timeout = '10ms'", "SET synchronous_commit = off"];

/// The most transactions that run against each other, unless longer combinations are asked for.
const MOST: usize = 3;

/// The number of milliseconds without an answer after which the server is asked whether a session
/// waits.
const ASK_AFTER: u32 = 1;

/// What one step led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Went {
    On,
    Waits,
    Ended,
}

/// What has changed, and the processes that changed it.
pub type Changes = (Delta, BTreeSet<i32>);

/// Transactions in progress.
pub struct InProgress<'a> {
    pub(super) executions: Vec<Execution<'a>>,
    /// The session of each.
    pub(super) sessions: Vec<usize>,
    waiting: Vec<Option<String>>,
    steps: Vec<Step>,
    committed_part: Vec<bool>,
    by_design: Option<&'static str>,
}

impl InProgress<'_> {
    fn push(&mut self, transaction: usize, sql: String, result: StepResult) {
        let execution = &self.executions[transaction];
        let (enclosed, line) = (execution.enclosed, execution.line());
        self.steps.push(Step { transaction, sql, line, enclosed, result });
    }
}

impl<'a> Sessions<'a> {
    /// Opens the sessions and prepares the tables.
    ///
    /// # Errors
    /// The server refuses or is gone, or rows couldn't be put back.
    pub fn open(programs: &'a Programs, trying: &Trying<'a>) -> Result<Sessions<'a>, TryError> {
        let Trying { product, allocations, conditions, options, stopped, .. } = *trying;
        let mut different: Vec<Mode> = Vec::new();
        let mut number = |mode: Mode| {
            different.iter().position(|other| *other == mode).unwrap_or_else(|| {
                different.push(mode);
                different.len() - 1
            })
        };
        let names = || programs.programs.iter().map(|program| program.script.name.as_str());
        let modes =
            allocations.iter().map(|one| names().map(|name| number(one.of(name))).collect()).collect();
        let tester = Tester {
            open: trying.open.clone(),
            product,
            level: None,
            options,
            wait_detection: WaitDetection::View,
            stopped,
        };
        let mut control = tester.session("control connection", None)?;
        let longest = trying.combinations.unwrap_or_default().iter().map(Vec::len).max();
        let side_by_side = longest.unwrap_or(0).max(MOST);
        let mut sessions = Vec::new();
        for mode in &different {
            for number in 1..=side_by_side {
                sessions.push(tester.session(&format!("T{number}"), Some(mode.level))?);
            }
        }
        // The last one takes over locks.
        sessions.push(tester.session("holder of locks", None)?);
        let view = match product.waits {
            WaitView::Query { .. } => Waits::find(product, &mut control, &sessions, stopped)?,
            WaitView::Time => None,
        };
        let waits = view.unwrap_or(Waits::Timed(options.waits_after));
        let patience = Patience { limit: options.step_timeout, stopped, now: options.now };
        let modes_of_sessions = different.iter().flat_map(|mode| std::iter::repeat_n(mode, side_by_side));
        let modes_of_all = modes_of_sessions.map(Some).chain(std::iter::repeat(None));
        for (session, mode) in sessions.iter_mut().chain([&mut control]).zip(modes_of_all) {
            set_up(session, mode, patience)?;
        }
        let tables = WatchedTables::prepare(&mut control, product, patience)?;
        let (by_functions, by_role) = asked_by_functions(&mut control, patience)?;
        let keeps_locks =
            programs.mention(&["pg_advisory_lock", "pg_advisory_lock_shared", "pg_try_advisory_lock"]);
        Ok(Sessions {
            programs,
            options,
            stopped,
            control,
            modes,
            all: sessions,
            side_by_side,
            waits,
            tables,
            starts: vec![None; programs.programs.len()],
            conditions,
            statements: 0,
            keeps_locks,
            listens: programs.mention(&["listen"]),
            by_functions,
            limits_waits: by_role || programs.mention(&[LOCK_TIMEOUT]),
        })
    }

    /// The conditions that aren't met, by their indexes. One that can't be read isn't among them.
    fn broken(&mut self) -> Result<BTreeSet<usize>, TryError> {
        let patience = self.patience();
        let mut broken = BTreeSet::new();
        for (number, condition) in self.conditions.iter().enumerate() {
            let asked = query(&mut self.control, "BEGIN TRANSACTION READ ONLY", patience)
                .and_then(|_| query(&mut self.control, &condition.sql, patience));
            query(&mut self.control, "ROLLBACK", patience)?;
            match asked {
                Ok(rows) if rows.first().and_then(|row| row.first()) == Some(&Some("f".to_owned())) => {
                    broken.insert(number);
                }
                Ok(_) | Err(TryError::Server(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(broken)
    }

    /// Transactions that are about to begin, in the sessions of this allocation.
    pub(super) fn in_progress<'p>(&self, transactions: &'p [Transaction], allocation: usize) -> InProgress<'p>
    where
        'a: 'p,
    {
        let execution = |(client, transaction): (usize, &'p Transaction)| {
            Execution::new(self.programs, transaction, client, self.starts[transaction.program])
        };
        let modes = &self.modes[allocation];
        let session = |(number, transaction): (usize, &Transaction)| {
            self.side_by_side * modes[transaction.program] + number
        };
        InProgress {
            executions: transactions.iter().enumerate().map(execution).collect(),
            sessions: transactions.iter().enumerate().map(session).collect(),
            waiting: vec![None; transactions.len()],
            steps: Vec::new(),
            committed_part: vec![false; transactions.len()],
            by_design: None,
        }
    }

    /// The limit of one statement.
    pub fn patience(&self) -> Patience<'a> {
        Patience { limit: self.options.step_timeout, stopped: self.stopped, now: self.options.now }
    }

    /// Runs some transactions in an allocation, given by its number, and further ones afterwards, one
    /// after the other.
    ///
    /// # Errors
    /// The server refuses what isn't a script's, or is gone; the run is stopped.
    pub fn run(
        &mut self,
        transactions: &[Transaction],
        schedule: &Schedule,
        allocation: usize,
        later: &[Transaction],
    ) -> Result<ExecutedSchedule, TryError> {
        if (self.stopped)() {
            return Err(TryError::Stopped);
        }
        let mut in_progress = self.in_progress(transactions, allocation);
        let (mut over, mut between) = (false, false);
        match schedule {
            Schedule::Serial(order) => {
                for number in order {
                    while self.step(&mut in_progress, *number)? == Went::On {}
                }
            }
            Schedule::Split(after) => {
                while in_progress.executions[0].steps < *after && self.step(&mut in_progress, 0)? == Went::On
                {
                }
                over = in_progress.executions[0].ending != Ending::Running;
                between = self.all[in_progress.sessions[0]].status() == TransactionStatus::Idle;
                if !over {
                    for number in 1..transactions.len() {
                        while self.step(&mut in_progress, number)? == Went::On {}
                    }
                    self.finish(&mut in_progress)?;
                }
            }
            #[cfg(test)]
            Schedule::Steps(steps) => {
                for number in steps {
                    self.step(&mut in_progress, *number)?;
                }
                self.finish(&mut in_progress)?;
            }
        }
        let takes_part = |number: usize| match schedule {
            Schedule::Serial(order) => order.contains(&number),
            Schedule::Split(_) => !over,
            #[cfg(test)]
            Schedule::Steps(_) => true,
        };
        let executed = self.concluded(in_progress, &takes_part, &Changes::default(), later)?;
        Ok(ExecutedSchedule { over, between, ..executed })
    }

    /// Ends what is in progress, and reads what has changed. `before` has already changed.
    pub(super) fn concluded(
        &mut self,
        mut in_progress: InProgress<'_>,
        takes_part: &dyn Fn(usize) -> bool,
        (before, wrote_before): &Changes,
        later: &[Transaction],
    ) -> Result<ExecutedSchedule, TryError> {
        let running = |execution: &Execution<'_>| execution.ending == Ending::Running;
        let mut all = in_progress.executions.iter().enumerate();
        let stuck = all.any(|(number, execution)| takes_part(number) && running(execution));
        let count = in_progress.executions.len();
        self.leave(&mut in_progress, count)?;
        let mut pairs = in_progress.executions.iter().zip(&in_progress.committed_part);
        let torn =
            pairs.any(|(execution, committed)| *committed && matches!(execution.ending, Ending::Failed(_)));
        let (further, writers) = self.changes()?;
        let (delta, writers) = (before.then(&further), wrote_before | &writers);
        let mut views: Vec<View> =
            in_progress.executions.iter().map(|execution| execution.view.clone()).collect();
        if self.tables.knows_writers() {
            for (view, session) in views.iter_mut().zip(&in_progress.sessions) {
                view.wrote = writers.contains(&self.all[*session].pid());
            }
        }
        let endings = in_progress.executions.iter().map(|execution| execution.ending.clone()).collect();
        let broken = self.broken()?;
        let later = if later.is_empty() { None } else { Some(self.carry_on(later, &delta)?) };
        Ok(ExecutedSchedule {
            outcome: Outcome { views, endings, delta, later, broken },
            steps: in_progress.steps,
            over: false,
            between: false,
            by_design: in_progress.by_design,
            inconclusive: stuck || torn,
        })
    }

    /// Runs a script alone, and returns the indexes of the tables that its transactions touch, of those that
    /// they may change, and of those of which they may lock rows. The locks that they hold tell, so the tables
    /// of functions and triggers are among them. The changes of the script stay.
    ///
    /// # Errors
    /// The server refuses what isn't a script's, or is gone; the run is stopped.
    pub fn uses(&mut self, transaction: &Transaction) -> Result<[BTreeSet<usize>; 3], TryError> {
        let all: BTreeSet<usize> = (0..self.tables.all.len()).collect();
        if !self.tables.knows_writers() {
            return Ok([all.clone(), all.clone(), all]);
        }
        let mut alone = self.in_progress(std::slice::from_ref(transaction), 0);
        let session = alone.sessions[0];
        let mut found = [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()];
        let sql = format!(
            "SELECT relation, bool_or(mode NOT IN ('AccessShareLock', 'RowShareLock')), \
             bool_or(mode <> 'AccessShareLock') FROM pg_catalog.pg_locks \
             WHERE locktype = 'relation' AND pid = {} GROUP BY relation",
            self.all[session].pid()
        );
        loop {
            let was_idle = self.all[session].status() == TransactionStatus::Idle;
            if self.step(&mut alone, 0)? != Went::On {
                if matches!(alone.executions[0].ending, Ending::Failed(_)) {
                    // The locks of what it failed with are gone.
                    found = [all.clone(), all.clone(), all.clone()];
                }
                break;
            }
            if self.all[session].status() == TransactionStatus::Idle {
                if was_idle {
                    // It has its own transactions, whose locks are gone.
                    found = [all.clone(), all.clone(), all.clone()];
                }
                continue;
            }
            let patience = self.patience();
            for row in query(&mut self.control, &sql, patience)? {
                let mut values = row.into_iter().flatten();
                let Some(table) = values.next().and_then(|oid| self.tables.table(&oid)) else { continue };
                let [touched, further @ ..] = &mut found;
                touched.insert(table);
                for tables in further {
                    if values.next().is_some_and(|is_so| is_so == "t") {
                        tables.insert(table);
                    }
                }
            }
        }
        self.leave(&mut alone, 1)?;
        Ok(found)
    }

    /// Runs further transactions, and returns all that has changed then.
    fn carry_on(&mut self, later: &[Transaction], before: &Delta) -> Result<Delta, TryError> {
        for transaction in later {
            let mut alone = self.in_progress(std::slice::from_ref(transaction), 0);
            while self.step(&mut alone, 0)? == Went::On {}
            self.leave(&mut alone, 1)?;
        }
        let (after, _) = self.changes()?;
        Ok(before.then(&after))
    }

    /// Some of the least whole numbers by which rows are found, and some by which none are.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn keys(&mut self) -> Result<Keys, TryError> {
        let patience = self.patience();
        self.tables.keys(&mut self.control, patience)
    }

    /// Reads what has changed since the last call, and which processes changed it.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn changes(&mut self) -> Result<Changes, TryError> {
        let patience = self.patience();
        self.tables.changes(&mut self.control, patience)
    }

    /// Puts the tables back by what has changed since.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn put_back(&mut self, delta: &Delta, ahead: i64) -> Result<(), TryError> {
        let patience = self.patience();
        self.tables.put_back(&mut self.control, delta, ahead, patience)
    }

    /// Puts everything back as it was found, if this is the difference from that.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn start_again(&mut self, delta: &Delta) -> Result<(), TryError> {
        let patience = self.patience();
        self.tables.start_again(&mut self.control, delta, patience)
    }

    /// Takes the present state of sequences as the one to come back to.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn note_sequences(&mut self) -> Result<(), TryError> {
        let patience = self.patience();
        self.tables.note_sequences(&mut self.control, patience)
    }

    /// Lets all go on, until they have ended or wait for each other for good.
    fn finish(&mut self, in_progress: &mut InProgress<'_>) -> Result<(), TryError> {
        loop {
            let mut moved = false;
            for number in 0..in_progress.executions.len() {
                while in_progress.executions[number].ending == Ending::Running {
                    let before =
                        (in_progress.executions[number].steps, in_progress.waiting[number].is_some());
                    let went = self.step(in_progress, number)?;
                    moved |= (in_progress.executions[number].steps, in_progress.waiting[number].is_some())
                        != before
                        || went == Went::Ended;
                    if went != Went::On {
                        break;
                    }
                }
            }
            if !moved || in_progress.executions.iter().all(|execution| execution.ending != Ending::Running) {
                return Ok(());
            }
        }
    }

    /// Takes one step of a transaction, or looks whether the one for which it waits is over.
    pub(super) fn step(&mut self, in_progress: &mut InProgress<'_>, number: usize) -> Result<Went, TryError> {
        let execution = &mut in_progress.executions[number];
        if execution.ending != Ending::Running {
            return Ok(Went::Ended);
        }
        let (patience, session) = (self.patience(), &mut self.all[in_progress.sessions[number]]);
        if in_progress.waiting[number].is_none() {
            let status = session.status();
            let (sql, enclose) = match execution.next(status) {
                Next::Send { sql, enclose } => (sql, enclose),
                Next::End => {
                    execution.ending = Ending::Done;
                    return Ok(Went::Ended);
                }
                Next::Stuck(why) => {
                    execution.ending = Ending::Failed(why);
                    return Ok(Went::Ended);
                }
            };
            if enclose {
                query(session, "BEGIN", patience)?;
                execution.enclosed = true;
            }
            session.send(&sql, patience).map_err(TryError::Lost)?;
            in_progress.waiting[number] = Some(sql);
            let accompanied = |other: usize, execution: &Execution<'_>| {
                other != number && execution.steps > 0 && execution.ending == Ending::Running
            };
            if in_progress
                .executions
                .iter()
                .enumerate()
                .any(|(other, execution)| accompanied(other, execution))
            {
                let sent = in_progress.waiting[number].as_deref().unwrap_or_default();
                in_progress.by_design = in_progress.by_design.or(asks(sent)).or(self.by_functions);
            }
        }
        let resumed = in_progress.steps.iter().any(|step| {
            step.transaction == number
                && step.result == StepResult::Waits
                && Some(&step.sql) == in_progress.waiting[number].as_ref()
        });
        if self.waits(in_progress.sessions[number])? {
            if !resumed {
                let sql = in_progress.waiting[number].clone().unwrap_or_default();
                in_progress.push(number, sql, StepResult::Waits);
            }
            return Ok(Went::Waits);
        }
        let sql = in_progress.waiting[number].take().unwrap_or_default();
        self.receive(in_progress, number, sql)
    }

    /// Takes the replies to a statement.
    fn receive(
        &mut self,
        in_progress: &mut InProgress<'_>,
        number: usize,
        sql: String,
    ) -> Result<Went, TryError> {
        let (patience, session) = (self.patience(), &mut self.all[in_progress.sessions[number]]);
        let mut replies = Vec::new();
        session.busy(&mut |_| {});
        while let Some(reply) = session.reply() {
            replies.push(reply);
            session.busy(&mut |_| {});
        }
        let result = match replies.last() {
            Some(Reply::Rows(table)) => StepResult::Rows(table.clone()),
            Some(Reply::Command(tag)) => StepResult::Tag(tag.clone()),
            Some(Reply::Error(error)) => StepResult::Failed(error.to_string()),
            Some(Reply::Lost(why)) => return Err(TryError::Lost(why.clone())),
            Some(Reply::Copy(_)) | None => StepResult::Failed("COPY".to_owned()),
        };
        in_progress.push(number, sql, result);
        self.statements += 1;
        let tables = &self.tables;
        let execution = &mut in_progress.executions[number];
        execution.take(replies, &|column| !tables.finds_rows(column));
        let failed = execution.ending != Ending::Running;
        if failed && session.status() != TransactionStatus::Idle {
            execution.enclosed = false;
            query(session, "ROLLBACK", patience)?;
        }
        if failed {
            return Ok(Went::Ended);
        }
        in_progress.committed_part[number] |= session.status() == TransactionStatus::Idle;
        Ok(Went::On)
    }

    /// Waits until a session has its answer. Returns true if it waits for another one instead.
    fn waits(&mut self, session: usize) -> Result<bool, TryError> {
        let began = Instant::now();
        while !self.all[session].finished() {
            let arrived = self.all[session].wait_for(ASK_AFTER);
            if (self.stopped)() {
                return Err(TryError::Stopped);
            }
            let elapsed = began.elapsed();
            if !arrived && self.waits.waits(&mut self.control, session, elapsed, self.stopped)? {
                return Ok(true);
            }
            if elapsed > self.options.step_timeout {
                self.all[session].cancel();
                return Err(TryError::TooLong(self.options.step_timeout));
            }
        }
        Ok(false)
    }

    /// Ends what is still in progress, and frees locks that outlast transactions.
    pub(super) fn leave(&mut self, in_progress: &mut InProgress<'_>, count: usize) -> Result<(), TryError> {
        let patience = self.patience();
        for number in 0..count {
            let session = &mut self.all[in_progress.sessions[number]];
            if in_progress.waiting[number].take().is_some() {
                session.cancel();
                while !session.finished() {
                    session.wait_for(ASK_AFTER);
                    if (self.stopped)() {
                        return Err(TryError::Stopped);
                    }
                }
                session.busy(&mut |_| {});
                while session.reply().is_some() {
                    session.busy(&mut |_| {});
                }
            }
            if session.status() != TransactionStatus::Idle {
                query(session, "ROLLBACK", patience)?;
            }
            if self.keeps_locks {
                query(session, "SELECT pg_advisory_unlock_all()", patience)?;
            }
            if self.listens {
                query(session, "UNLISTEN *", patience)?;
            }
        }
        Ok(())
    }
}

/// Makes the settings of a session; with a mode, also those of its transactions.
fn set_up(session: &mut TestSession, mode: Option<&Mode>, patience: Patience<'_>) -> Result<(), TryError> {
    for setting in SETTINGS {
        match query(session, setting, patience) {
            Ok(_) | Err(TryError::Server(_)) => {}
            Err(error) => return Err(error),
        }
    }
    let Some(mode) = mode else { return Ok(()) };
    for (on, setting) in [(mode.read_only, "read_only"), (mode.deferrable, "deferrable")] {
        if on {
            query(session, &format!("SET default_transaction_{setting} = on"), patience)?;
        }
    }
    Ok(())
}

/// What a text asks for that no order gives.
pub fn asks(text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    BY_DESIGN.iter().find(|(words, _)| text.contains(words)).map(|(_, name)| *name)
}

/// What functions of the schema ask for that no order gives, and whether one limits the time that it waits.
fn asked_by_functions(
    control: &mut TestSession,
    patience: Patience<'_>,
) -> Result<(Option<&'static str>, bool), TryError> {
    const TEXTS: &str = "SELECT prosrc || coalesce(array_to_string(proconfig, ' '), '') FROM pg_catalog.pg_proc WHERE \
        pronamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema())";
    let texts: Vec<String> = query(control, TEXTS, patience)?.into_iter().flatten().flatten().collect();
    let limits = texts.iter().any(|text| text.to_ascii_lowercase().contains(LOCK_TIMEOUT));
    Ok((texts.iter().find_map(|text| asks(text)), limits))
}
