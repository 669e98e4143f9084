//! Drives the load: clients, retries, pacing, accounting.
