//! Counts, latencies and estimates: what a run has to add up, and what may be concluded from it.
//!
//! Pure arithmetic without I/O, clock or threads. It must not know where the numbers come from (no
//! protocol, no script, no server product) nor where they go (no document, no table): recorders own
//! these types, and reports read them. Ledgers are JSON, histograms text, so that both can be saved.
//!
//! | file | concept |
//! |---|---|
//! | `ledger` | every attempt and every transaction in exactly one bucket, and the identities between them |
//! | `histogram` | a distribution of latencies that merges without loss |
//! | `counted` | latencies counted between fixed bounds, for whoever watches a run |
//! | `moments` | exact count, mean, standard deviation and maximum |
//! | `encoding` | the histogram as text that other HdrHistogram libraries read |
//! | `percentile` | percentiles over rounds with intervals |
//! | `estimate` | a mean of independent measurements with its interval |
//! | `batches` | the mean of one run's correlated series with its interval |
//! | `steady` | whether a run's series was steady: transient, drift, two levels |
//! | `ratio` | a ratio of two series of measurements with its interval; noise, resolution, many comparisons |
//! | `poisson` | a count of rare events with its interval |
//! | `changes` | where a series of results goes over to another level |
//! | `sweep` | the search for the highest rate that keeps a condition |
//!
//! How the methods were chosen, what they assume, and how they did in simulation:
//! `docs/concept/statistics.md`.
//!
//! ```
//! use isobench_stats::{LatencyHistogram, Ledger, mean_interval, paired_ratio};
//!
//! let mut ledger = Ledger::default();
//! ledger.attempts.started = 3;
//! ledger.attempts.committed = 2;
//! ledger.attempts.retried = 1;
//! ledger.transactions.total = 2;
//! ledger.transactions.committed = 2;
//! ledger.conflicts = 1;
//! ledger.retries = 1;
//! ledger.check().expect("every attempt is accounted for");
//!
//! let mut latency = LatencyHistogram::new();
//! latency.record(1_500_000);
//! latency.record(2_500_000);
//! assert_eq!(latency.mean_ms(), Some(2.0));
//!
//! let tps = mean_interval(&[410.0, 420.0, 400.0]).expect("three finite samples");
//! assert!(tps.low < Some(410.0) && Some(410.0) < tps.high);
//! let ratio = paired_ratio(&[(200.0, 400.0), (210.0, 415.0), (190.0, 390.0)], 1).expect("positive pairs");
//! assert!(ratio.significant);
//! ```

mod batches;
mod changes;
mod counted;
mod encoding;
mod estimate;
mod histogram;
mod ledger;
mod moments;
mod percentile;
mod poisson;
mod ratio;
mod steady;
mod sweep;

pub use batches::{SeriesEstimate, series_interval};
pub use changes::{ChangePoint, change_points, fewest};
pub use counted::{LATENCY_BOUNDS_US, LatencyCounts};
pub use encoding::{EncodedHistogram, HistogramError};
pub use estimate::{CONFIDENCE, Estimate, mean_interval};
pub use histogram::LatencyHistogram;
pub use ledger::{Attempts, Ledger, LedgerError, TimeLedger, Transactions, seconds};
pub use moments::Moments;
pub use percentile::{Percentile, RoundLatencies};
pub use poisson::poisson_interval;
pub use ratio::{
    Ratio, independent_ratio, is_resolved, noise_of, paired_ratio, resolving_ratio, rounds_needed,
    settling_ratio,
};
pub use steady::{Drift, drift, drift_of_rounds, is_bimodal, is_warm, start_of_rounds, transient};
pub use sweep::Sweep;
