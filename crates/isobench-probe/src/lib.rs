//! Deterministic interleavings of sessions, and which anomalies they show at each isolation level.
//!
//! From the inside out: the language of PostgreSQL's isolation tester, a tester that runs it
//! against any server, its output, and on top of that the anomalies with the question which levels
//! permit them. It must not know options, files of the user, or the exit status.
//!
//! | file | holds |
//! |---|---|
//! | `spec`, `spec/…` | a test specification and how it is read |
//! | `tester`, `tester/…` | runs permutations: sessions, steps, waiting, time limits |
//! | `event`, `output`, `output/…` | what happens in a run, and the isolation tester's words for it |
//! | `record` | what each step of a run did |
//! | `anomalies`, `anomalies/*.spec` | the anomalies as a table, with an interleaving each |
//! | `probe`, `judge` | runs them at every level, and says what follows |
//! | `limitations`, `limitations/*.sql` | what is known of a product, with a reproduction for psql |
//! | `summarisation` | how many transactions it takes until PostgreSQL forgets the details of the old ones |
//! | `text` | the matrix for people |
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
mod judge;
mod limitations;
pub mod output;
mod probe;
mod record;
mod spec;
pub mod summarisation;
mod tester;
mod text;

pub use event::{Event, Table};
pub use judge::{Cell, LevelRow, Matrix, Outcome, Standing};
pub use limitations::{Known, LIMITATIONS, Limitation};
pub use probe::{ProbeError, Progress, probe};
pub use record::{Record, StepRecord};
pub use spec::{Launch, Marker, Permutation, Place, SessionSpec, Spec, SpecError, SpecProblem, Step, StepId};
pub use tester::{Opener, Options, RunError, Tester, WhoWaits};
pub use text::render;
