//! The data of one simulated user, and what it is called with.
//!
//! Not here: how any of it changes (`client.rs` and the other files of its folder).

use std::time::Duration;

use isobench_pgwire::{FrameBuffer, ServerError, SqlState, TransactionStatus};
use isobench_script::{Prng, Variables};

use super::operations::AttemptOperations;
use super::pipeline::Pipeline;
use super::rows::ShownRows;
use super::store::StoredResults;
use crate::event::{ClientEvent, ClientStep, CommandPlace, EventHandler};
use crate::job::Job;
use crate::observer::TransactionObserver;
use crate::program::Program;
use crate::recorder::{Recorder, ScriptRecord};
use crate::recording::{ChunkWriter, Recording};
use crate::schedule::Schedule;
use crate::spec::StopCondition;
use crate::time::{Clock, Nanos, nanos};

/// The reason given for a lost session when nothing else is known; libpq's words.
pub(crate) const CLOSED: &str = "server closed the connection unexpectedly";

/// The state of a client: what it waits for, and what follows.
///
/// ```text
///          ┌────────────────────────────────────────────────────────────────────┐
///          ▼                                                                    │ committed, given up,
///        Idle ──► Waiting ──► (attempt begins) ──► Replying ◄─► Sleeping ───────┤ ambiguous, cut off
///          │         │            ▲                   │                         │
///          │         │            │                   ▼ conflict or error       │
///          │         │        BackingOff ◄──── RollingBack ─────────────────────┘
///          ▼         ▼            ▼                   │
///       Finished  Finished    Finished                └──► Aborted (also on a lost connection, or Away)
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientState {
    /// Between two transactions. A call never leaves a client in this state, except before the
    /// start and to let other clients have a turn.
    Idle,
    /// Waits until its next transaction is due. Then starts it; at the end of the run: `Finished`.
    Waiting {
        /// When the wait started.
        since: Nanos,
    },
    /// Waits for a session for the transaction that is due. Then starts it.
    Connecting,
    /// Has no session, and waits until it tries again to open one. Then `Connecting`; at the end of
    /// the run: `Finished`.
    Away {
        /// When it tries again.
        until: Nanos,
    },
    /// Waits until the server has prepared the statement of this command. Then executes the
    /// command that needs it again.
    Preparing(usize),
    /// Waits for the transaction's isolation level, which the server is asked for just before
    /// COMMIT. Then executes that COMMIT.
    AskingLevel,
    /// Waits, as a reader, for the answer to what comes before its transaction. Then starts the script;
    /// after an error the attempt has failed.
    CatchingUp,
    /// Waits for the server's reply to the last request. Then continues with the script, or rolls
    /// back.
    Replying,
    /// Waits in a `\sleep`, or lets other clients have a turn. Then continues with the script.
    Sleeping,
    /// Waits for the reply to ROLLBACK after a failed attempt. Then retries, gives up, or aborts.
    RollingBack,
    /// Rolls back a block kept open for a retry that will not happen. The transaction is already
    /// accounted for; then it is left.
    LeavingBlock,
    /// Waits before the next attempt. Then starts it; at the end of the run the transaction is cut
    /// off: `Finished`.
    BackingOff {
        /// When the failed attempt ended.
        since: Nanos,
        /// When the next one starts.
        until: Nanos,
    },
    /// Has done its work; may be started again with the same session.
    Finished,
    /// Ended for good, by an error or a lost connection.
    Aborted,
}

/// The next thing a client needs. Bytes that it left in [`Context::out`] are sent in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientAction {
    /// A call when the server has sent something.
    Receive,
    /// A call at this instant (and when the server has sent something).
    Wake(Nanos),
    /// A new session; then a call of [`Client::on_connected`] or [`Client::on_refused`].
    Connect,
    /// The end of its session; then a call of [`Client::on_disconnected`].
    Disconnect,
    /// Nothing: it has finished.
    Finish,
    /// The end of its connection: it has aborted.
    Close,
}

/// Everything that a client may use during a call.
pub(crate) struct Context<'a> {
    pub(crate) job: &'a Job,
    pub(crate) stop: StopCondition,
    pub(crate) recorder: &'a mut Recorder,
    pub(crate) chunk: &'a mut ChunkWriter,
    pub(crate) schedule: Option<&'a mut Schedule>,
    /// The stream that the worker's clients choose their scripts from, if they share one.
    pub(crate) choice: Option<&'a mut Prng>,
    pub(crate) observer: Option<&'a mut (dyn TransactionObserver + 'static)>,
    /// Bytes to send, appended to those of other clients.
    pub(crate) out: &'a mut Vec<u8>,
    /// Where the bytes of this call start in `out`.
    pub(crate) out_start: usize,
    pub(crate) clock: &'a dyn Clock,
    /// The instant of this call.
    pub(crate) now: Nanos,
    /// No transaction and no attempt starts from this instant on.
    pub(crate) deadline: Nanos,
    /// The run is over: nothing new starts.
    pub(crate) stopping: bool,
    /// A turn is over: nothing new starts until the next one, where everything goes on.
    pub(crate) pausing: bool,
    /// Transactions under way are being cancelled.
    pub(crate) cancelling: bool,
    pub(crate) report: &'a EventHandler<'a>,
}

impl Context<'_> {
    /// Reports a step, if steps were asked for.
    pub(super) fn trace(&self, client: usize, step: impl FnOnce() -> ClientStep) {
        if self.job.spec.detail.steps {
            (self.report)(ClientEvent::Trace { client, step: step() });
        }
    }
}

/// The direction in which a COPY transfers rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyDirection {
    In,
    Out,
}

/// The first error of an attempt.
#[derive(Debug)]
pub(super) struct AttemptError {
    pub(super) error: ServerError,
    /// The command that the error is counted and reported for.
    pub(super) command: usize,
    /// The command whose statement raised it. Differs from `command` under pgbench's rules, which
    /// blame `\endpipeline` for every error in a pipeline.
    pub(super) statement: usize,
    /// Statements of the request that had been answered before.
    pub(super) query: u32,
}

/// The state of the question for an attempt's isolation level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LevelQuestion {
    /// To be asked just before the attempt's COMMIT.
    Open,
    /// Asked already, or the attempt isn't sampled.
    Settled,
}

/// A savepoint of the script, and everything that a retry from it needs.
#[derive(Debug)]
pub(super) struct RetryPoint {
    pub(super) stage: SavepointStage,
    /// The command that set it.
    pub(super) command: usize,
    pub(super) name: Box<str>,
    /// Variables and random state when it was set.
    pub(super) saved: (Variables, Prng),
}

/// The progress of the open block with its savepoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SavepointStage {
    /// The savepoint isn't set.
    Absent,
    /// It is set, and an attempt is under way.
    Set,
    /// ROLLBACK TO has been sent.
    Returning,
    /// ROLLBACK TO has succeeded; the next attempt starts there.
    Returned,
    /// It has been released, which may have been the commit.
    Released,
}

impl RetryPoint {
    /// True if the next attempt starts here.
    pub(super) fn is_next(&self) -> bool {
        self.stage == SavepointStage::Returned
    }
}

/// How the script itself has ended blocks in one attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum BlockEnds {
    /// It has ended none.
    #[default]
    None,
    /// By ROLLBACK, all of them.
    RolledBack,
    /// At least one by COMMIT.
    Committed,
}

/// Errors caught and retries made inside the server during one attempt, as its rows report them.
#[derive(Debug, Default)]
pub(super) struct InsideReport {
    /// The first error that was caught and not raised again, and the command that caught it.
    pub(super) swallowed: Option<(SqlState, usize)>,
    /// Time that failed attempts inside the server took, in nanoseconds.
    pub(super) wasted: u64,
    /// The first value that couldn't be understood.
    pub(super) problem: Option<String>,
}

impl InsideReport {
    /// Forgets the previous attempt.
    pub(super) fn reset(&mut self) {
        self.swallowed = None;
        self.wasted = 0;
        self.problem = None;
    }
}

/// One simulated user and its session with the server.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Client {
    pub(super) id: usize,
    pub(super) state: ClientState,
    /// The instant for which it last asked to be called.
    pub(super) wake: Nanos,

    // The session.
    pub(super) connected: bool,
    /// Sessions opened in place of others.
    pub(super) sessions: u32,
    pub(super) status: TransactionStatus,
    pub(super) frames: FrameBuffer,
    /// The most bytes of the server's messages that are kept: of one message, and of an attempt's
    /// results.
    pub(super) most_kept: usize,
    /// Bytes of results kept since the attempt started, approximately.
    pub(super) kept: usize,
    /// The statements prepared in the session, one bit each.
    pub(super) prepared: Box<[u64]>,

    // The transaction.
    pub(super) script: usize,
    /// The command that is being executed.
    pub(super) command: usize,
    pub(super) tries: u32,
    /// Attempts in all runs.
    pub(super) attempts: u64,
    /// Latency is measured from here: the scheduled start, or the start of the first attempt.
    pub(super) since: Nanos,
    /// When the first attempt started.
    pub(super) began: Nanos,
    pub(super) attempt_began: Nanos,
    pub(super) variables: Variables,
    pub(super) functions: Prng,
    /// Variables and random state at the start of the transaction. A retry restores them, so that
    /// it repeats the same transaction.
    pub(super) saved: (Variables, Prng),
    /// The same at a savepoint, if retries start there.
    pub(super) point: Option<Box<RetryPoint>>,
    pub(super) question: LevelQuestion,
    /// Transactions started or skipped in this run.
    pub(super) done: u64,
    /// A request was sent or a pause made since the transaction started.
    pub(super) yielded: bool,

    // The outstanding request.
    /// `ReadyForQuery` messages still to come.
    pub(super) outstanding: u32,
    /// Statements of the request that have been answered.
    pub(super) answered: u32,
    pub(super) command_began: Nanos,
    /// The next result answers the question for the snapshot.
    pub(super) asking_snapshot: bool,
    /// The server may commit while it executes the outstanding request. If the connection is lost
    /// meanwhile, the outcome is unknown.
    pub(super) may_commit: bool,
    /// The first error of the attempt.
    pub(super) failure: Option<Box<AttemptError>>,
    /// An error that belongs to no reply, so that it isn't the attempt's: the server ended the
    /// session, or complained about messages after a COPY.
    pub(super) unsolicited: Option<Box<ServerError>>,
    /// The reason why the connection was lost, if that isn't to be noticed before the connection
    /// is needed again.
    pub(super) lost: Option<Box<str>>,
    pub(super) pipeline: Option<Box<Pipeline>>,
    pub(super) stored: Option<Box<StoredResults>>,
    /// The COPY that the server has started.
    pub(super) copy: Option<CopyDirection>,

    /// The attempt's reads and writes, if the run is recorded.
    pub(super) operations: Option<Box<AttemptOperations>>,
    /// The rows shown to the current transaction, if that is how the run is recorded.
    pub(super) rows: Option<Box<ShownRows>>,
    /// When that transaction started; a script may have several.
    pub(super) rows_began: Nanos,
    /// How the attempt's blocks have ended so far.
    pub(super) block_ends: BlockEnds,
    /// Present if a script has commands that report what happened inside the server.
    pub(super) inside: Option<Box<InsideReport>>,

    pub(super) choices: Option<Prng>,
    pub(super) backoffs: Prng,
    /// Sessions refused since the last one was lost.
    pub(super) refused: u32,
    /// A transaction that is to be tried again waits for a session.
    pub(super) held: bool,
}

impl Client {
    /// A client that isn't started, with its streams for expressions, choice of scripts and
    /// backoff. `recorded` is where its reads and writes are kept, `most_kept` how many bytes
    /// of the server's messages are kept at most.
    pub(crate) fn new(
        id: usize,
        variables: Variables,
        streams: (Prng, Option<Prng>, Prng),
        (program, recorded, most_kept): (&Program, Option<&Recording>, usize),
    ) -> Client {
        let (functions, choices, backoffs) = streams;
        Client {
            id,
            state: ClientState::Idle,
            wake: Nanos(0),
            connected: false,
            sessions: 0,
            status: TransactionStatus::Idle,
            frames: FrameBuffer::with_limit(most_kept),
            most_kept,
            kept: 0,
            prepared: vec![0; program.statements.div_ceil(64)].into_boxed_slice(),
            script: 0,
            command: 0,
            tries: 0,
            attempts: 0,
            since: Nanos(0),
            began: Nanos(0),
            attempt_began: Nanos(0),
            saved: (variables.clone(), functions.clone()),
            point: None,
            question: LevelQuestion::Settled,
            variables,
            functions,
            done: 0,
            yielded: false,
            outstanding: 0,
            answered: 0,
            asking_snapshot: false,
            command_began: Nanos(0),
            may_commit: false,
            failure: None,
            unsolicited: None,
            lost: None,
            pipeline: None,
            stored: None,
            copy: None,
            operations: recorded.is_some().then(Box::default),
            rows: recorded.is_some_and(|recording| recording.observed().is_some()).then(Box::default),
            rows_began: Nanos(0),
            block_ends: BlockEnds::None,
            inside: program.reports_inside.then(Box::default),
            choices,
            backoffs,
            refused: 0,
            held: false,
        }
    }

    /// Its number, from 0.
    pub(crate) fn id(&self) -> usize {
        self.id
    }

    /// Takes over a session from which these bytes have been received but not yet parsed.
    pub(crate) fn take_over(&mut self, received: &[u8]) {
        self.connected = true;
        // The bytes stay in the buffer until more arrive: nothing is outstanding that they could
        // answer.
        drop(self.frames.feed(received));
    }

    /// True if its session can be reused: connected, outside a transaction, no reply outstanding.
    pub(crate) fn is_at_rest(&self) -> bool {
        let free = self.outstanding == 0 && self.status == TransactionStatus::Idle;
        self.connected
            && self.state == ClientState::Finished
            && free
            && self.lost.is_none()
            && self.unsolicited.is_none()
    }

    /// Bytes received but not yet parsed.
    pub(crate) fn received(&self) -> &[u8] {
        self.frames.pending()
    }

    /// True while the client still wants to be called.
    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.state, ClientState::Finished | ClientState::Aborted)
    }

    /// The instant for which it waits, without a request to the server; `None` if it waits for
    /// something else.
    pub(crate) fn due(&self) -> Option<Nanos> {
        match self.state {
            ClientState::Waiting { .. } => Some(self.since),
            ClientState::BackingOff { until, .. } | ClientState::Away { until } => Some(until),
            _ => None,
        }
    }

    /// True if its next step may wait until another turn.
    pub(crate) fn is_parked(&self) -> bool {
        self.state == ClientState::Idle || self.due().is_some()
    }

    /// True if the client can never run again.
    pub(crate) fn is_aborted(&self) -> bool {
        self.state == ClientState::Aborted
    }

    /// Notes the instant for which it asks to be called.
    pub(crate) fn set_wake(&mut self, at: Nanos) {
        self.wake = at;
    }

    /// True if it still wants a call that it asked for, for this instant. It has no use for one from
    /// before its session was lost.
    pub(crate) fn wants_call(&self, at: Nanos) -> bool {
        self.wake == at
    }

    /// The number of its session.
    pub(crate) fn session(&self) -> u32 {
        self.sessions
    }

    /// True if it lost its session and found no other one.
    pub(crate) fn is_away(&self) -> bool {
        self.refused > 0
    }

    /// True if it has a session, so that events of its connection concern it.
    pub(crate) fn is_connected(&self) -> bool {
        self.connected
    }

    /// True if a reply of the server is outstanding.
    pub(crate) fn awaits_reply(&self) -> bool {
        self.outstanding > 0
    }

    pub(super) fn place(&self, command: usize) -> CommandPlace {
        CommandPlace { client: self.id, script: self.script, command }
    }

    pub(super) fn record<'c>(&self, ctx: &'c mut Context<'_>) -> &'c mut ScriptRecord {
        &mut ctx.recorder.scripts[self.script]
    }

    /// True if the transaction has taken longer than the latency limit.
    pub(super) fn exceeds_limit(&self, limit: Option<Duration>, now: Nanos) -> bool {
        limit.is_some_and(|limit| now.since(self.since) > nanos(limit))
    }

    pub(super) fn is_prepared(&self, statement: usize) -> bool {
        self.prepared[statement / 64] >> (statement % 64) & 1 == 1
    }

    pub(super) fn set_prepared(&mut self, statement: usize) {
        self.prepared[statement / 64] |= 1 << (statement % 64);
    }
}
