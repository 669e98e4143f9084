//! Deterministic interleavings of sessions, and the anomalies that they show at each isolation
//! level.
//!
//! The layers are: the language of PostgreSQL's isolation tester, a tester that runs it against any
//! server, its output, and on top of these the anomalies and the levels that permit them. The crate
//! doesn't depend on command-line options, users' files, or exit statuses.
//!
//! | file | holds |
//! |---|---|
//! | `spec`, `spec/…` | a test specification and its parser |
//! | `tester`, `tester/…` | runs permutations: sessions, steps, waiting, time limits |
//! | `event`, `output`, `output/…` | the events of a run, and their text in the isolation tester's words |
//! | `record` | the results of each step of a run |
//! | `anomalies`, `anomalies/*.spec` | the anomalies as a table, with an interleaving each |
//! | `anomalies/tpcc`, `anomalies/tpcc/*.spec` | TPC-C's isolation tests, likewise |
//! | `tables` | kinds of tables |
//! | `interleaving`, `interleaving/…` | scripts tried against each other, judged by their outcome |
//! | `probe`, `judge` | runs them at every level, and evaluates the results |
//! | `limitations`, `limitations/*.sql` | known limitations of products, with a reproduction for psql |
//! | `summarisation` | the number of transactions until PostgreSQL summarises old ones |
//! | `text` | the matrix as text |
//! | `subject` | a server as it was probed, with each step |
//!
//! ```
//! use isobench_probe::Spec;
//!
//! let spec = Spec::parse("two.spec", "session a step a1 { SELECT 1; } session b step b1 { SELECT 2; }").unwrap();
//! assert_eq!(spec.permutations().count(), 2);
//! let error = Spec::parse("two.spec", "session a step a1 { } permutation a2").unwrap_err();
//! assert_eq!(error.to_string(), "two.spec:1:35: there is no step \"a2\"");
//! ```

pub mod anomalies;
mod event;
pub mod interleaving;
mod judge;
mod limitations;
pub mod output;
mod probe;
mod record;
mod spec;
mod subject;
pub mod summarisation;
mod tables;
mod tester;
mod text;

pub use event::{Event, Table};
pub use judge::{Cell, CellOutcome, LevelRow, Matrix, PromiseComparison, VERSION};
pub use limitations::{KnownLimitation, LIMITATIONS, Limitation};
pub use probe::{ProbeError, Progress, probe};
pub use record::{Record, StepRecord};
pub use spec::{
    Marker, Permutation, PermutationStep, Position, SessionSpec, Spec, SpecError, SpecProblem, StepId,
    StepSpec,
};
pub use subject::{Part, SpecOutcome, SpecRun, Subject, Transcript};
pub use tables::Tables;
pub use tester::{Opener, Options, RunError, Tester, WaitDetection};
pub use text::render;
