//! The versioned result document and everything that is made from it.
//!
//! Knows no runner, no options and no server: the caller that measured fills a [`Document`], and
//! any saved document renders again, years later and on another machine. Summaries are computed
//! here from the rounds, so they can be computed anew.
//!
//! | module | concept |
//! |---|---|
//! | `document` | what is saved: server, client, plan, cells, rounds, summaries; its JSON and its schema |
//! | `factors` | what cells differ in besides the level, and how that is said |
//! | `summarise` | a cell's summary from its rounds, its ratio to the first level |
//! | `shape` | a published experiment beside ours, and what came out again |
//! | `branches` | conditions of scripts that stopped being true while scripts were measured |
//! | `diagnosis` | why conflicts at serializable may be false |
//! | `overhead` | what each level costs, by the parameters that vary |
//! | `view` | tables whose entries say what they are: between the summary and every rendering that people read |
//! | `text` | the table of `isobench compare` and the sentences below it |
//! | `columns` | the columns of a line per round, and per bin of its time series |
//! | `csv` | one line per round |
//! | `markdown` | the answer and the table for a comment on a pull request |
//! | `pair` | two results side by side, and what counts as a regression |
//! | `overview` | many results, a row for each |
//! | `trackers` | a result for services that keep benchmarks over time |
//! | `require` | whether a result keeps the thresholds that were set for it |
//! | `trend` | a series of results: how each cell went |
//! | `metric_trend` | one figure over many results, by time or something else, with change points |
//! | `seen` | what was seen of the transactions, and what stayed dark |
//! | `words` | pieces of sentences that several renderings share |
//! | `html` | the page: the answer, the pictures, everything behind them |
//!
//! ```
//! use std::time::Duration;
//!
//! use isobench_isolation::{EffectiveLevel, Level};
//! use isobench_report::{Cell, CellLevel, Client, Document, Plan, Round, Server, render, summarise};
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
//! assert!(render(&again, 100).contains("No level is recommended"));
//! ```

mod answer;
mod branches;
mod columns;
mod csv;
mod diagnosis;
mod document;
mod durability;
mod factors;
mod html;
mod machines;
mod markdown;
mod metric_trend;
mod numbers;
mod overhead;
mod overview;
mod pair;
mod require;
mod seen;
mod shape;
mod summarise;
mod text;
mod trackers;
mod trend;
mod view;
mod words;

pub use answer::{Answer, answer, answer_rules, recommended, unsettled};
pub use columns::{Column, Place, Values, bins, place_columns, round_columns, rounds, series_columns};
pub use csv::{titles as csv_titles, to_csv};
pub use diagnosis::{Diagnosis, DiagnosisKind, Suspect, diagnoses};
pub use document::{
    AnomalyCount, AnomalyFound, BackgroundWork, BranchRound, CarriedValue, Cell, CellLevel, Client,
    ClientLoad, CombinationAnswer, Conflict, CountComparison, Counter, Distribution, Document, DocumentError,
    Durability, ExaminedHistory, Experiment, FORMAT, FORMAT_VERSION, FaultEvent, FaultRound, Flag, FlagKind,
    GivenAnswer, Interval, IntervalSource, Invariant, Journal, Latency, LevelAnswer, LevelSafety, LockWait,
    LockedRelation, LocksSeen, MEASUREMENT_VERSION, MachineRound, Metric, Observation, ObservedRows,
    ObservedStatement, PercentileInterval, Plan, PlannedScript, PlannedStrategy, PredicateLocks,
    PublishedFigure, PublishedRow, RatioToFirst, RecordedHistory, RelationSize, RequiredCell,
    RequirementResult, Resolution, Round, RoundError, RoundsFor, ScriptRound, Selector, Series, Server,
    ServerProcesses, ServerSide, Settlement, Shape, StandbyLag, StartingState, Summary, SweepResult,
    SweepStep, TableUse, Turns, UsedEventLoop, Verdict, VerdictSummary, WaitRow, WaitShare, Warmup, Withheld,
    WitnessArrow, WitnessTransaction, Workload, json_schema,
};
pub use html::to_html;
pub use markdown::to_markdown;
pub use metric_trend::{
    Axis, AxisError, METRIC_TREND_FORMAT, METRIC_TREND_FORMAT_VERSION, METRIC_TREND_TITLES, MetricChange,
    MetricPoint, MetricSeries, MetricTrend, TrendResult, metric_trend,
};
pub use overview::{ResultRow, overview};
pub use pair::{
    Difference, Factors, Figures, LevelRatio, PAIR_FORMAT, PAIR_FORMAT_VERSION, Pair, PairError, PairRatio,
    PairedCell, Regression, Side, compare_results,
};
pub use require::{concerns, judge, requirement_lines};
pub use summarise::{resolution, summarise};
pub use text::layout::wrap;
pub use text::{Terminal, Text, render, statements};
pub use trackers::{to_bencher, to_github_action_benchmark};
pub use trend::{
    TREND_FORMAT, TREND_FORMAT_VERSION, Trend, TrendCell, TrendError, TrendPoint, compare_series,
};
pub use view::{Emphasis, Line};
