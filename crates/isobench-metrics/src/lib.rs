//! Live metrics of a running command: what its clients have done so far, for Prometheus to fetch
//! (OpenMetrics) and for a collector of OpenTelemetry (OTLP).
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
//! | `otlp` | these as JSON, for OpenTelemetry |
//! | `collector` | the address of a collector, and pushing to it |

mod catalogue;
mod collector;
mod endpoint;
mod family;
mod meter;
mod openmetrics;
mod otlp;
mod value;

pub use catalogue::{
    ATTRIBUTES, CELL, Kind, LEVEL, METRICS, Metric, NAMESPACE, PHASE, SYSTEM, WORKLOAD, prometheus_label,
};
pub use collector::{Collector, CollectorError, Pusher};
pub use endpoint::{Endpoint, EndpointError};
pub use meter::{Attributes, Meter, Working};
