//! The sessions in which transactions run against each other, and the steps that they take.

use std::collections::BTreeSet;
use std::time::Instant;

use isobench_database::WaitView;
use isobench_isolation::history::Mode;
use isobench_pgwire::TransactionStatus;

use super::actor::{Actor, Ending, Next, View};
use super::ground::{Delta, Ground, Keys, query};
use super::outcome::Outcome;
use super::program::{Part, Programs};
use super::step::{Step, StepResult};
use super::{TriedCondition, TryError, Trying};
use crate::tester::{Options, Patience, Reply, TestSession, Tester, WaitDetection, Waits};

/// Sessions and tables.
pub struct Stage<'a> {
    pub(super) programs: &'a Programs,
    options: Options,
    stopped: &'a dyn Fn() -> bool,
    pub(super) control: TestSession,
    /// The modes of each program in each allocation, as numbers of modes.
    modes: Vec<Vec<usize>>,
    /// For each mode as many sessions as transactions run against each other.
    pub(super) sessions: Vec<TestSession>,
    /// Their number for each mode.
    side_by_side: usize,
    waits: Waits,
    /// The tables.
    pub ground: Ground,
    /// The number from which each program's draws count, where their range has it.
    pub starts: Vec<Option<i64>>,
    conditions: &'a [TriedCondition],
    /// The number of statements of scripts that have been answered.
    pub statements: u64,
    /// True if scripts take locks that outlast their transactions.
    keeps_locks: bool,
    /// True if scripts listen, so that sessions would be told of what others do later.
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

/// One run of transactions.
#[derive(Debug, Clone)]
pub struct Performance {
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

/// Transactions under way.
pub struct Cast<'a> {
    pub(super) actors: Vec<Actor<'a>>,
    /// The session of each.
    pub(super) sessions: Vec<usize>,
    waiting: Vec<Option<String>>,
    steps: Vec<Step>,
    committed_part: Vec<bool>,
    by_design: Option<&'static str>,
}

impl Cast<'_> {
    fn push(&mut self, transaction: usize, sql: String, result: StepResult) {
        let actor = &self.actors[transaction];
        let (enclosed, line) = (actor.enclosed, actor.line());
        self.steps.push(Step { transaction, sql, line, enclosed, result });
    }
}

impl<'a> Stage<'a> {
    /// Opens the sessions and prepares the tables.
    ///
    /// # Errors
    /// The server refuses or is gone, or rows couldn't be put back.
    pub fn open(programs: &'a Programs, trying: &Trying<'a>) -> Result<Stage<'a>, TryError> {
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
        for session in sessions.iter_mut().chain([&mut control]) {
            for setting in SETTINGS {
                match query(session, setting, patience) {
                    Ok(_) | Err(TryError::Server(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let modes_of_sessions = different.iter().flat_map(|mode| std::iter::repeat_n(mode, side_by_side));
        for (session, mode) in sessions.iter_mut().zip(modes_of_sessions) {
            for (on, setting) in [(mode.read_only, "read_only"), (mode.deferrable, "deferrable")] {
                if on {
                    query(session, &format!("SET default_transaction_{setting} = on"), patience)?;
                }
            }
        }
        let ground = Ground::prepare(&mut control, product, patience)?;
        let (by_functions, by_role) = asked_by_functions(&mut control, patience)?;
        let keeps_locks =
            programs.mention(&["pg_advisory_lock", "pg_advisory_lock_shared", "pg_try_advisory_lock"]);
        Ok(Stage {
            programs,
            options,
            stopped,
            control,
            modes,
            sessions,
            side_by_side,
            waits,
            ground,
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
    pub(super) fn cast<'p>(&self, parts: &'p [Part], allocation: usize) -> Cast<'p>
    where
        'a: 'p,
    {
        let actor = |(client, part): (usize, &'p Part)| {
            Actor::new(self.programs, part, client, self.starts[part.program])
        };
        let modes = &self.modes[allocation];
        let session = |(number, part): (usize, &Part)| self.side_by_side * modes[part.program] + number;
        Cast {
            actors: parts.iter().enumerate().map(actor).collect(),
            sessions: parts.iter().enumerate().map(session).collect(),
            waiting: vec![None; parts.len()],
            steps: Vec::new(),
            committed_part: vec![false; parts.len()],
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
    pub fn perform(
        &mut self,
        cast: &[Part],
        schedule: &Schedule,
        allocation: usize,
        later: &[Part],
    ) -> Result<Performance, TryError> {
        if (self.stopped)() {
            return Err(TryError::Stopped);
        }
        let mut under_way = self.cast(cast, allocation);
        let (mut over, mut between) = (false, false);
        match schedule {
            Schedule::Serial(order) => {
                for number in order {
                    while self.step(&mut under_way, *number)? == Went::On {}
                }
            }
            Schedule::Split(after) => {
                while under_way.actors[0].steps < *after && self.step(&mut under_way, 0)? == Went::On {}
                over = under_way.actors[0].ending != Ending::Running;
                between = self.sessions[under_way.sessions[0]].status() == TransactionStatus::Idle;
                if !over {
                    for number in 1..cast.len() {
                        while self.step(&mut under_way, number)? == Went::On {}
                    }
                    self.finish(&mut under_way)?;
                }
            }
            #[cfg(test)]
            Schedule::Steps(steps) => {
                for number in steps {
                    self.step(&mut under_way, *number)?;
                }
                self.finish(&mut under_way)?;
            }
        }
        let takes_part = |number: usize| match schedule {
            Schedule::Serial(order) => order.contains(&number),
            Schedule::Split(_) => !over,
            #[cfg(test)]
            Schedule::Steps(_) => true,
        };
        let performance = self.concluded(under_way, &takes_part, &Changes::default(), later)?;
        Ok(Performance { over, between, ..performance })
    }

    /// Ends what is under way, and takes stock. `before` has already changed.
    pub(super) fn concluded(
        &mut self,
        mut under_way: Cast<'_>,
        takes_part: &dyn Fn(usize) -> bool,
        (before, wrote_before): &Changes,
        later: &[Part],
    ) -> Result<Performance, TryError> {
        let running = |actor: &Actor<'_>| actor.ending == Ending::Running;
        let mut all = under_way.actors.iter().enumerate();
        let stuck = all.any(|(number, actor)| takes_part(number) && running(actor));
        let count = under_way.actors.len();
        self.leave(&mut under_way, count)?;
        let parts = under_way.actors.iter().zip(&under_way.committed_part);
        let torn = parts.clone().any(|(actor, part)| *part && matches!(actor.ending, Ending::Failed(_)));
        let (further, writers) = self.changes()?;
        let (delta, writers) = (before.then(&further), wrote_before | &writers);
        let mut views: Vec<View> = under_way.actors.iter().map(|actor| actor.view.clone()).collect();
        if self.ground.knows_writers() {
            for (view, session) in views.iter_mut().zip(&under_way.sessions) {
                view.wrote = writers.contains(&self.sessions[*session].pid());
            }
        }
        let endings = under_way.actors.iter().map(|actor| actor.ending.clone()).collect();
        let broken = self.broken()?;
        let later = if later.is_empty() { None } else { Some(self.carry_on(later, &delta)?) };
        Ok(Performance {
            outcome: Outcome { views, endings, delta, later, broken },
            steps: under_way.steps,
            over: false,
            between: false,
            by_design: under_way.by_design,
            inconclusive: stuck || torn,
        })
    }

    /// Runs a script alone, and returns the indexes of the tables that its transactions touch, of those that
    /// they may change, and of those of which they may lock rows. The locks that they hold tell, so the tables
    /// of functions and triggers are among them. The changes of the script stay.
    ///
    /// # Errors
    /// The server refuses what isn't a script's, or is gone; the run is stopped.
    pub fn uses(&mut self, part: &Part) -> Result<[BTreeSet<usize>; 3], TryError> {
        let all: BTreeSet<usize> = (0..self.ground.tables.len()).collect();
        if !self.ground.knows_writers() {
            return Ok([all.clone(), all.clone(), all]);
        }
        let mut alone = self.cast(std::slice::from_ref(part), 0);
        let session = alone.sessions[0];
        let mut found = [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()];
        let sql = format!(
            "SELECT relation, bool_or(mode NOT IN ('AccessShareLock', 'RowShareLock')), \
             bool_or(mode <> 'AccessShareLock') FROM pg_catalog.pg_locks \
             WHERE locktype = 'relation' AND pid = {} GROUP BY relation",
            self.sessions[session].pid()
        );
        loop {
            let was_idle = self.sessions[session].status() == TransactionStatus::Idle;
            if self.step(&mut alone, 0)? != Went::On {
                if matches!(alone.actors[0].ending, Ending::Failed(_)) {
                    // The locks of what it failed with are gone.
                    found = [all.clone(), all.clone(), all.clone()];
                }
                break;
            }
            if self.sessions[session].status() == TransactionStatus::Idle {
                if was_idle {
                    // It has its own transactions, whose locks are gone.
                    found = [all.clone(), all.clone(), all.clone()];
                }
                continue;
            }
            let patience = self.patience();
            for row in query(&mut self.control, &sql, patience)? {
                let mut values = row.into_iter().flatten();
                let Some(table) = values.next().and_then(|oid| self.ground.table(&oid)) else { continue };
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
    fn carry_on(&mut self, later: &[Part], before: &Delta) -> Result<Delta, TryError> {
        for part in later {
            let mut alone = self.cast(std::slice::from_ref(part), 0);
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
        self.ground.keys(&mut self.control, patience)
    }

    /// Reads what has changed since the last call, and which processes changed it.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn changes(&mut self) -> Result<Changes, TryError> {
        let patience = self.patience();
        self.ground.changes(&mut self.control, patience)
    }

    /// Puts the tables back by what has changed since.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn put_back(&mut self, delta: &Delta, ahead: i64) -> Result<(), TryError> {
        let patience = self.patience();
        self.ground.put_back(&mut self.control, delta, ahead, patience)
    }

    /// Puts everything back as it was found, if this is the difference from that.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn start_again(&mut self, delta: &Delta) -> Result<(), TryError> {
        let patience = self.patience();
        self.ground.start_again(&mut self.control, delta, patience)
    }

    /// Takes the present state of sequences as the one to come back to.
    ///
    /// # Errors
    /// The server refuses or is gone.
    pub fn note_sequences(&mut self) -> Result<(), TryError> {
        let patience = self.patience();
        self.ground.note_sequences(&mut self.control, patience)
    }

    /// Lets all go on, until they have ended or wait for each other for good.
    fn finish(&mut self, cast: &mut Cast<'_>) -> Result<(), TryError> {
        loop {
            let mut moved = false;
            for number in 0..cast.actors.len() {
                while cast.actors[number].ending == Ending::Running {
                    let before = (cast.actors[number].steps, cast.waiting[number].is_some());
                    let went = self.step(cast, number)?;
                    moved |= (cast.actors[number].steps, cast.waiting[number].is_some()) != before
                        || went == Went::Ended;
                    if went != Went::On {
                        break;
                    }
                }
            }
            if !moved || cast.actors.iter().all(|actor| actor.ending != Ending::Running) {
                return Ok(());
            }
        }
    }

    /// Takes one step of a transaction, or looks whether the one for which it waits is over.
    pub(super) fn step(&mut self, cast: &mut Cast<'_>, number: usize) -> Result<Went, TryError> {
        let actor = &mut cast.actors[number];
        if actor.ending != Ending::Running {
            return Ok(Went::Ended);
        }
        let (patience, session) = (self.patience(), &mut self.sessions[cast.sessions[number]]);
        if cast.waiting[number].is_none() {
            let status = session.status();
            let (sql, enclose) = match actor.next(status) {
                Next::Send { sql, enclose } => (sql, enclose),
                Next::End => {
                    actor.ending = Ending::Done;
                    return Ok(Went::Ended);
                }
                Next::Stuck(why) => {
                    actor.ending = Ending::Failed(why);
                    return Ok(Went::Ended);
                }
            };
            if enclose {
                query(session, "BEGIN", patience)?;
                actor.enclosed = true;
            }
            session.send(&sql, patience).map_err(TryError::Lost)?;
            cast.waiting[number] = Some(sql);
            let accompanied = |other: usize, actor: &Actor<'_>| {
                other != number && actor.steps > 0 && actor.ending == Ending::Running
            };
            if cast.actors.iter().enumerate().any(|(other, actor)| accompanied(other, actor)) {
                let sent = cast.waiting[number].as_deref().unwrap_or_default();
                cast.by_design = cast.by_design.or(asks(sent)).or(self.by_functions);
            }
        }
        let resumed = cast.steps.iter().any(|step| {
            step.transaction == number
                && step.result == StepResult::Waits
                && Some(&step.sql) == cast.waiting[number].as_ref()
        });
        if self.waits(cast.sessions[number])? {
            if !resumed {
                let sql = cast.waiting[number].clone().unwrap_or_default();
                cast.push(number, sql, StepResult::Waits);
            }
            return Ok(Went::Waits);
        }
        let sql = cast.waiting[number].take().unwrap_or_default();
        self.receive(cast, number, sql)
    }

    /// Takes the replies to a statement.
    fn receive(&mut self, cast: &mut Cast<'_>, number: usize, sql: String) -> Result<Went, TryError> {
        let (patience, session) = (self.patience(), &mut self.sessions[cast.sessions[number]]);
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
        cast.push(number, sql, result);
        self.statements += 1;
        let ground = &self.ground;
        let actor = &mut cast.actors[number];
        actor.take(replies, &|column| !ground.finds_rows(column));
        let failed = actor.ending != Ending::Running;
        if failed && session.status() != TransactionStatus::Idle {
            actor.enclosed = false;
            query(session, "ROLLBACK", patience)?;
        }
        if failed {
            return Ok(Went::Ended);
        }
        cast.committed_part[number] |= session.status() == TransactionStatus::Idle;
        Ok(Went::On)
    }

    /// Waits until a session has its answer. Returns true if it waits for another one instead.
    fn waits(&mut self, session: usize) -> Result<bool, TryError> {
        let began = Instant::now();
        while !self.sessions[session].finished() {
            let arrived = self.sessions[session].wait_for(ASK_AFTER);
            if (self.stopped)() {
                return Err(TryError::Stopped);
            }
            let elapsed = began.elapsed();
            if !arrived && self.waits.waits(&mut self.control, session, elapsed, self.stopped)? {
                return Ok(true);
            }
            if elapsed > self.options.step_timeout {
                self.sessions[session].cancel();
                return Err(TryError::TooLong(self.options.step_timeout));
            }
        }
        Ok(false)
    }

    /// Ends what is still under way, and frees locks that outlast transactions.
    pub(super) fn leave(&mut self, cast: &mut Cast<'_>, count: usize) -> Result<(), TryError> {
        let patience = self.patience();
        for number in 0..count {
            let session = &mut self.sessions[cast.sessions[number]];
            if cast.waiting[number].take().is_some() {
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
