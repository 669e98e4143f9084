//! The versioned result document, its summaries, and everything that is concluded from it.
//!
//! Knows no runner, no server and no layout: the caller that measured fills a [`Document`], and
//! `isobench-report` lays out what is found here. Summaries are computed from the rounds, so they
//! can be computed anew, years later and on another machine.
//!
//! | module | concept |
//! |---|---|
//! | `document` | what is saved: server, client, plan, cells, rounds, summaries; its JSON and its schema |
//! | `journal` | the same while it is measured: lines that are only appended |
//! | `factor` | what cells differ in, a row for each kind: their identity, and how it is said |
//! | `figure` | the figures of a cell, of which tables, requirements, trends and the manual are views |
//! | `rounds` | the rounds of a cell that count, and the cells that are compared |
//! | `summarise` | a cell's summary from its rounds, its ratio to the first level |
//! | `conclusions` | all summaries, and the answer that follows from them |
//! | `answer` | which level to use, and why |
//! | `shape` | a published experiment beside ours, and what came out again |
//! | `branches` | conditions of scripts that stopped being true while scripts were measured |
//! | `diagnosis` | why transactions fail more often than they would have to |
//! | `durability` | what faults did to each cell |
//! | `machines` | what each of several machines did |
//! | `overhead` | what each level costs, by the parameters that vary |
//! | `columns` | the columns of a line per round, and per bin of its time series |
//! | `pair` | two results side by side, and what counts as a regression |
//! | `trend` | one figure over many results, by time or something else, with change points |
//! | `overview` | what is known of one of many results |
//! | `require` | whether a result keeps the thresholds that were set for it |
//! | `seen` | what was seen of the transactions, and what stayed dark |
//! | `view` | tables whose entries say what they are: between the summary and every layout |
//! | `numbers`, `words`, `phrases` | numbers and pieces of sentences as people read them |
//!
//! ```
//! use std::time::Duration;
//!
//! use isobench_isolation::{EffectiveLevel, Level};
//! use isobench_result::{Cell, CellLevel, Client, Document, Plan, Round, Server, answer, summarise};
//! use isobench_stats::{LatencyHistogram, Ledger};
//!
//! let mut document = Document::new(Server::default(), Client::default(), Plan::default());
//! let level = CellLevel::new(Some(Level::ReadCommitted), EffectiveLevel::from_setting("read committed"));
//! let mut cell = Cell::new("tpcb-like", level);
//! cell.rounds.push(Round::from_ledger(
//!     1,
//!     &Ledger::default(),
//!     &LatencyHistogram::new(),
//!     Duration::from_secs(5),
//!     Vec::new(),
//! ));
//! document.cells.push(cell);
//! document.complete = true;
//! summarise(&mut document);
//!
//! let saved = document.to_json();
//! let again = Document::from_json(&saved).expect("what was written can be read");
//! assert!(answer(&again).text().contains("No level is recommended"));
//! ```

pub mod answer;
pub mod branches;
pub mod columns;
pub mod conclusions;
pub mod diagnosis;
pub mod document;
pub mod durability;
pub mod factor;
pub mod figure;
mod journal;
pub mod machines;
pub mod numbers;
pub mod overhead;
mod overview;
pub mod pair;
pub mod phrases;
pub mod require;
pub mod rounds;
pub mod seen;
mod server_matrix;
pub mod shape;
pub mod summarise;
pub mod trend;
pub mod view;
pub mod words;

pub use answer::{Answer, answer, answer_rules, recommended};
pub use columns::{Column, Place, Values, bins, place_columns, round_columns, rounds, series_columns};
pub use conclusions::{summarise, unsettled};
pub use diagnosis::{Diagnosis, DiagnosisKind, Suspect, diagnoses};
#[cfg(feature = "schema")]
pub use document::json_schema;
pub use document::{
    AnomalyCount, AnomalyFound, AnsweredRows, BackgroundWork, BranchRound, BrokenPromise, CarriedValue, Cell,
    CellLevel, ChangedTable, ClearedTransactions, Client, ClientLoad, CombinationAnswer, Conflict,
    CountComparison, Counter, Distribution, Document, DocumentError, Durability, ExaminedHistory, Experiment,
    FORMAT, FORMAT_VERSION, FaultEvent, FaultRound, Flag, FlagKind, GivenAnswer, Interval, IntervalSource,
    Invariant, Latency, LevelAnswer, LevelSafety, LevelTransactions, LockWait, LockedRelation, LocksSeen,
    MEASUREMENT_VERSION, MachineRound, MixedVerdict, NotTried, Observation, ObservedRows, ObservedStatement,
    OrderOutcome, PercentileInterval, Plan, PlannedScript, PlannedStrategy, PredicateLocks, PublishedFigure,
    PublishedRow, RatioToFirst, RecordedHistory, RelationSize, RequiredCell, RequirementResult, Resolution,
    Round, RoundError, RoundsFor, ScriptLevel, ScriptRound, Selector, Series, Server, ServerProcesses,
    ServerSide, Settlement, Shape, StandbyLag, StartingState, StatementDependencies, Summary, SweepResult,
    SweepStep, TableUse, Tried, TriedStep, Turns, UsedEventLoop, Verdict, VerdictSummary, WaitRow, WaitShare,
    Warmup, Withheld, WitnessArrow, WitnessTransaction, Workload, WritingBack, WrittenBack, WrongOutcome,
};
pub use figure::{FIGURES, Figure, Wanted};
pub use journal::Journal;
pub use overview::ResultRow;
pub use pair::{
    Difference, Figures, LevelRatio, PAIR_FORMAT, PAIR_FORMAT_VERSION, Pair, PairError, PairRatio,
    PairedCell, Regression, Side, compare_results,
};
pub use require::{concerns, judge, requirement_lines};
pub use server_matrix::{ServerEntry, ServerMatrix, ServerRow, Submitted, contradictions, objections};
pub use summarise::{between, resolution};
pub use trend::{
    Axis, AxisError, TREND_FORMAT, TREND_FORMAT_VERSION, Trend, TrendChange, TrendPoint, TrendResult,
    TrendSeries, trend,
};
pub use view::{Emphasis, Line};
