//! An embedded PostgreSQL: finds or fetches the binaries, starts, stops, cleans up.
