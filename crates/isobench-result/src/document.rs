//! The result of a comparison or a run as it is saved: the document, its JSON, its versions.
//!
//! The names of the fields are the names in the JSON. Nothing here depends on the command line's
//! options, so renaming an option breaks no saved result. Not here: how a summary is computed.

mod answer;
mod cell;
mod environment;
mod fault;
mod flag;
mod latency;
mod layout;
mod observation;
mod recorded;
mod requirement;
mod round;
mod search;
mod series;
mod server_side;
mod summary;
mod tried;
mod verdict;
mod workload;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::factor::names::SERVER_VERSION;

pub use answer::{CombinationAnswer, GivenAnswer, LevelAnswer, LevelSafety};
pub use cell::{Cell, CellLevel, ScriptLevel};
pub use environment::{Client, RelationSize, Server};
pub use fault::{BackgroundWork, Durability, FaultEvent, FaultRound, Settlement, StandbyLag};
pub use flag::{Flag, FlagKind};
pub use isobench_plan::{Experiment, Plan, PublishedFigure, PublishedRow, Selector, Shape};
pub use latency::{Distribution, Latency};
pub use observation::{CarriedValue, Observation, ObservedRows, ObservedStatement, Tracked};
pub use recorded::RecordedHistory;
pub use requirement::{RequiredCell, RequirementResult};
pub use round::{BranchRound, Conflict, Invariant, Round, RoundError, ScriptRound, StartingState, Warmup};
pub use search::{Resolution, SweepResult, SweepStep};
pub use series::{ClientLoad, MachineRound, Series, Turns, UsedEventLoop};
pub use server_side::{
    CountComparison, Counter, Granularity, LockWait, LockedRelation, LocksSeen, PredicateLocks,
    ServerProcesses, ServerSide, TableUse, WaitRow,
};
pub use summary::{
    Interval, IntervalSource, PercentileInterval, RatioToFirst, RoundsFor, Summary, WaitShare, are_alike,
};
pub use tried::{AnsweredRows, ChangedTable, NotTried, OrderOutcome, Tried, TriedStep, WrongOutcome};
pub use verdict::{
    AnomalyCount, AnomalyFound, BrokenPromise, ClearedTransactions, ExaminedHistory, LevelTransactions,
    MixedVerdict, StatementDependencies, Verdict, VerdictSummary, Withheld, WitnessArrow, WitnessTransaction,
    WritingBack, WrittenBack,
};
pub use workload::{PlannedScript, PlannedStrategy, Workload};

/// The value of `format` in every result document.
pub const FORMAT: &str = "isobench/result";

/// The version of the document's shape. Rises when a field changes its name or type, not when one
/// is added.
pub const FORMAT_VERSION: u32 = 1;

/// The version of what the numbers mean. Rises when the same field measures something else.
pub const MEASUREMENT_VERSION: u32 = 4;

/// The result of a comparison or a run, complete or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(title = "isobench result"))]
pub struct Document {
    /// Always "isobench/result".
    #[cfg_attr(feature = "schema", schemars(extend("const" = FORMAT)))]
    pub format: String,
    /// The version of the document's shape. Readers refuse newer ones; added fields don't raise it.
    pub format_version: u32,
    /// The version of what the numbers mean. Documents of different versions must not be compared.
    pub measurement_version: u32,
    /// True if everything planned was measured.
    pub complete: bool,
    /// The reason why the document isn't complete; missing if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete_reason: Option<String>,
    /// The start of measuring, RFC 3339 with time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    /// The end of measuring, RFC 3339 with time zone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<String>,
    /// The command line that measured, a word each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The answer: which levels are recommended, and what is known of each; null until everything is
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<GivenAnswer>,
    /// The precision of the ratios, wanted and reached; null if none was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
    /// The highest rates that were searched for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sweeps: Vec<SweepResult>,
    /// The thresholds that the result had to keep, and what came of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<RequirementResult>,
    /// Facts to know before trusting the numbers, a sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The server under test; the first one, if several versions were.
    pub server: Server,
    /// The other servers, if the plan varies the server's version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_servers: Vec<Server>,
    /// The machine and the program that measured.
    pub client: Client,
    /// The plan, as a file and the options have it, with all defaults.
    pub plan: Plan,
    /// The scripts that the clients ran.
    #[serde(default)]
    pub workload: Workload,
    /// What was seen of the transactions, for each workload and strategy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observations: Vec<Observation>,
    /// One cell for each combination of the plan's factors, in the plan's order.
    pub cells: Vec<Cell>,
}

/// A text that isn't a result document, or isn't one that this version reads.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The text isn't JSON, or a field is missing or has the wrong type. isobench writes results
    /// whole, so the file was changed or cut since.
    #[error(
        "this is not a readable isobench result: {0}; use the file as isobench wrote it, or measure again"
    )]
    Malformed(#[from] serde_json::Error),
    /// A line of a result that wasn't finished can't be read.
    #[error(
        "line {line} of this unfinished isobench result is not readable: {why}; remove the line, or measure again"
    )]
    Line {
        /// The line, from 1.
        line: usize,
        /// The reason.
        why: String,
    },
    /// The JSON is something else.
    #[error(
        "this is not an isobench result: \"format\" is {found}, expected \"{FORMAT}\"; \
         use a file that --json wrote"
    )]
    NotAResult {
        /// The value of `format` as JSON, or "missing".
        found: String,
    },
    /// A later version of isobench wrote it.
    #[error(
        "this result has format version {found}, but this isobench reads version {FORMAT_VERSION}; \
         use the isobench that wrote it or a newer one"
    )]
    Newer {
        /// The version that the document has.
        found: u64,
    },
    /// There has never been such a version.
    #[error(
        "this is not a readable isobench result: \"format_version\" is {found}, expected {FORMAT_VERSION}; \
         use the file as isobench wrote it"
    )]
    UnknownVersion {
        /// The value of `format_version` as JSON, or "missing".
        found: String,
    },
}

/// The members that say how to read the rest.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Header {
    format: Option<Value>,
    format_version: Option<Value>,
}

impl Header {
    /// Refuses other formats and other versions.
    fn check(&self) -> Result<(), DocumentError> {
        let text = |value: Option<&Value>| value.map_or_else(|| "missing".to_owned(), Value::to_string);
        if self.format.as_ref().and_then(Value::as_str) != Some(FORMAT) {
            return Err(DocumentError::NotAResult { found: text(self.format.as_ref()) });
        }
        match self.format_version.as_ref().and_then(Value::as_u64) {
            Some(found) if found == u64::from(FORMAT_VERSION) => Ok(()),
            Some(found) if found > u64::from(FORMAT_VERSION) => Err(DocumentError::Newer { found }),
            _ => Err(DocumentError::UnknownVersion { found: text(self.format_version.as_ref()) }),
        }
    }
}

/// What is written, as JSON. Everything goes through this one serializer: each further one would compile
/// the code of all fields once more, which takes seconds of each build.
///
/// # Panics
/// Never: every key is a string and nothing refuses to be written.
pub(crate) fn plain<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("a document is plain data")
}

impl Document {
    /// Of the ways in which the tables came into their starting state, the one that is furthest
    /// from making them anew.
    pub fn starting_state(&self) -> StartingState {
        let rounds = self.cells.iter().flat_map(|cell| &cell.rounds);
        rounds.map(|round| round.starting_state).max().unwrap_or_default()
    }

    /// A document without cells, not complete yet.
    pub fn new(server: Server, client: Client, plan: Plan) -> Self {
        Document {
            format: FORMAT.to_owned(),
            format_version: FORMAT_VERSION,
            measurement_version: MEASUREMENT_VERSION,
            complete: false,
            incomplete_reason: None,
            started_at: None,
            finished_at: None,
            command: Vec::new(),
            answer: None,
            resolution: None,
            sweeps: Vec::new(),
            requirements: Vec::new(),
            warnings: Vec::new(),
            server,
            other_servers: Vec::new(),
            client,
            plan,
            workload: Workload::default(),
            observations: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// Reads a document that was finished.
    ///
    /// # Errors
    /// As of [`Document::from_json`].
    pub(crate) fn of_json(text: &[u8]) -> Result<Document, DocumentError> {
        let header: Header = serde_json::from_slice(text)?;
        header.check()?;
        Ok(serde_json::from_slice(text)?)
    }

    /// The document as indented JSON, lists of numbers on one line, with a newline at the end.
    /// Numbers that aren't finite become null.
    ///
    /// # Panics
    /// Never: every key is a string and nothing refuses to be written.
    pub fn to_json(&self) -> String {
        layout::lines(&plain(self))
    }

    /// The document after `change` of its JSON.
    ///
    /// # Errors
    /// The changed JSON is no document.
    pub fn changed(&self, change: &mut dyn FnMut(&mut Value)) -> Result<Document, DocumentError> {
        let mut value = plain(self);
        change(&mut value);
        Document::of_json(value.to_string().as_bytes())
    }

    /// The server that a cell was measured on. (Results of earlier versions of isobench don't number
    /// them: where the plan varies the version, it is the one of that version.)
    pub fn server_of(&self, cell: &Cell) -> &Server {
        if let Some(server) = self.servers().nth(cell.server).filter(|_| cell.server > 0) {
            return server;
        }
        let wanted = cell.varied.get(SERVER_VERSION);
        let is_wanted = |server: &&Server| {
            wanted.is_some_and(|wanted| {
                let rest = server.version.strip_prefix(wanted.as_str());
                rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
            })
        };
        self.servers().find(is_wanted).unwrap_or(&self.server)
    }

    /// All servers under test, the first one first.
    pub fn servers(&self) -> impl Iterator<Item = &Server> {
        std::iter::once(&self.server).chain(&self.other_servers)
    }

    /// True if an invariant of the workload was found broken in any round of any cell, or anything
    /// while rates were searched for.
    pub fn has_violations(&self) -> bool {
        let swept = self.sweeps.iter().flat_map(|sweep| &sweep.tried).any(|step| step.broken);
        swept || self.cells.iter().flat_map(|cell| &cell.rounds).any(Round::is_violated)
    }

    /// True if commits are lost that the settings promise to keep.
    pub fn has_lost_promised(&self) -> bool {
        self.cells.iter().any(|cell| cell.durability() == Some(Durability::Broken))
    }

    /// True if the histories of any cell contradict what the level promises.
    pub fn has_broken_promise(&self) -> bool {
        self.cells.iter().any(Cell::breaks_promise)
    }

    /// The reason why the verdict of a cell is withheld; `None` if none is.
    pub fn withheld(&self) -> Option<&str> {
        let rounds = || self.cells.iter().flat_map(|cell| &cell.rounds);
        let verdicts = rounds().filter_map(|round| round.verdict.as_ref());
        let reasons = verdicts.flat_map(|verdict| &verdict.withheld).map(|withheld| withheld.reason.as_str());
        let settled = rounds().filter_map(|round| round.faults.as_ref()?.settlement.withheld.as_deref());
        reasons.chain(settled).next()
    }

    /// True if any cell ran at another level than the one asked for.
    pub fn has_level_mismatch(&self) -> bool {
        self.cells.iter().any(|cell| cell.level.differs())
    }
}

/// The JSON schema of the result document (draft 2020-12), indented, with a newline at the end.
///
/// # Panics
/// Never: a schema is plain data.
#[cfg(feature = "schema")]
pub fn json_schema() -> String {
    let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    let schema = settings.into_generator().into_root_schema_for::<Document>();
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain data");
    text.push('\n');
    text
}
