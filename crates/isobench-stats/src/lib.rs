//! Ledgers of attempts, latency histograms, estimates with intervals.
