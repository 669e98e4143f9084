//! Live metrics of a running command: what its clients have done so far, for Prometheus and collectors of
//! OpenTelemetry to fetch (OpenMetrics).
//!
//! Knows no cells and no servers: the caller says what is going on, with attributes, and passes in
//! what the clients have done ([`Meter`]). It must not know the workers: they share nothing with
//! whoever reads metrics.
//!
//! | file | holds |
//! |---|---|
//! | `catalogue` | every metric: name, unit, kind, what is counted from when to when |
//! | `meter` | the counts of the whole command, by cell |
//! | `family` | the values of each metric at an instant |
//! | `value` | what they are made of |
//! | `openmetrics` | these as text, for Prometheus |
//! | `endpoint` | the HTTP server that answers with that text |

mod catalogue;
mod endpoint;
mod family;
mod meter;
mod openmetrics;
mod value;

pub use catalogue::{
    ATTRIBUTES, CELL, Kind, LEVEL, METRICS, Metric, NAMESPACE, PHASE, SYSTEM, WORKLOAD, prometheus_label,
};
pub use endpoint::{Endpoint, EndpointError};
pub use meter::{Attributes, Meter, Working};
