//! The isolation tester's own words for events, so that output can be compared with its expected
//! files.
//!
//! Determined by running PostgreSQL's `isolationtester` (15), with which `tests/differential.rs`
//! compares.

mod table;

use std::fmt::Write as _;
use std::time::Duration;

use crate::event::Event;

/// The text that an event adds to the output; empty for events that aren't part of it.
pub fn text(event: &Event) -> String {
    let mut out = String::new();
    // Writing to a String can't fail.
    let _ = match event {
        Event::Begin(sessions) => writeln!(out, "Parsed test spec with {sessions} sessions"),
        Event::Permutation(steps) => writeln!(out, "\nstarting permutation: {}", steps.join(" ")),
        Event::Step { name, sql } => writeln!(out, "step {name}: {sql}"),
        Event::Waiting { name, sql } => writeln!(out, "step {name}: {sql} <waiting ...>"),
        Event::Completed { name } => writeln!(out, "step {name}: <... completed>"),
        Event::Cancelling { name, limit } => {
            writeln!(out, "isolationtester: canceling step {name} after {} seconds", seconds(*limit))
        }
        Event::Rows(rows) => {
            out = table::render(rows);
            Ok(())
        }
        Event::Error(error) => writeln!(out, "{error}"),
        Event::Lost(why) => writeln!(out, "{why}\n"),
        Event::Unexpected(state) => writeln!(out, "unexpected result status: {state}"),
        Event::Notice { session, notice } => writeln!(out, "{session}: {}", notice.report(None)),
        Event::Notification { session, channel, payload, from } => {
            writeln!(out, "{session}: NOTIFY \"{channel}\" with payload \"{payload}\" from {from}")
        }
        Event::End | Event::Command(_) | Event::Warning(_) => Ok(()),
    };
    out
}

/// A limit in seconds: whole ones as in the isolation tester, or with decimals.
pub(crate) fn seconds(limit: Duration) -> String {
    limit.as_secs_f64().to_string()
}
