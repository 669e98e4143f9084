//! What went wrong while a capture was recorded: changes that were lost, rows that two requests inserted because
//! neither saw the other's, and limits that two requests exceeded together.
//!
//! Nothing is concluded from the code, only from times and values. A statement ran between the time when it was
//! sent and the time when its answer came, and a transaction committed after its last statement was sent. Two
//! transactions that write a row do so one after the other: the second one waits for the first one's lock. So it
//! is certain what a statement can't have seen, and which change came last. Every client that writes these rows is
//! assumed to be recorded. That what was written depends on
//! what was read is taken for certain only if the same code did it with other values before or after. Whatever
//! isn't certain is left out, and so is everything that statements do whose texts alone don't say it.
//!
//! | file | holds |
//! |---|---|
//! | `form` | statements whose texts say which rows they are about |
//! | `traffic` | the recorded transactions with what they did to rows, and requests |
//! | `change` | values that were read and then written, and what the new value is made of |
//! | `lost` | changes that were overwritten unseen |
//! | `counted` | limits that were exceeded, since each counted without the other's row |
//! | `twice` | rows that were inserted after each other's absence was seen |

mod change;
mod counted;
mod form;
mod lost;
mod traffic;
mod twice;

use std::collections::BTreeSet;

use isobench_capture::{Opened, Source};
use isobench_replay::Recorded;
use serde::Serialize;

use crate::between::History;
use crate::programs::Programs;
use crate::suspect::Kind;

use self::traffic::Traffic;

/// The most that is reported.
const MOST: usize = 1000;

/// Something that went wrong while it was recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Live {
    /// A lost update, a duplicate, or write skew: a limit that was exceeded.
    pub kind: Kind,
    /// The table.
    pub table: String,
    /// The columns that say which row it is, with their values.
    pub row: Vec<(String, String)>,
    /// Both sides: of a lost update first that whose change is lost, if it is certain which one was first.
    pub sides: [Side; 2],
    /// What the columns would be after one another, if it is known: the column, and its value. Of a limit: how many
    /// rows the second one would have found.
    pub otherwise: Vec<(String, String)>,
}

/// What one request did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Side {
    /// The number of its session.
    pub session: u64,
    /// The line of the capture with its read; `None` if it wrote without one.
    pub read_line: Option<u64>,
    /// The line of the capture with its write.
    pub write_line: u64,
    /// What it read, by column.
    pub read: Vec<(String, String)>,
    /// What it wrote, by column.
    pub wrote: Vec<(String, String)>,
    /// The route of the request, if its statements name one.
    pub route: Option<String>,
    /// The number of the template that wrote.
    pub template: usize,
}

/// True if one name is one table throughout a capture, and nothing passed unseen.
fn is_clear(recorded: &Recorded) -> bool {
    let place = |opened: &Opened| {
        let of = |name: &str| opened.parameters.get(name).cloned();
        (of("database"), of("user"))
    };
    let places: BTreeSet<(Option<String>, Option<String>)> = recorded.opened.iter().map(place).collect();
    // A server's log has other times, and no results.
    recorded.header.source == Source::Protocol
        && recorded.unseen.is_empty()
        && recorded.schema.is_empty()
        && recorded.search_paths.is_empty()
        && places.len() <= 1
}

impl History<'_> {
    /// What certainly went wrong while the capture was recorded, in order. `programs` are those in which recorded
    /// values are believed; only tables and keys are taken from them.
    pub fn live(&self, programs: &Programs, stopped: &dyn Fn() -> bool) -> Vec<Live> {
        if !is_clear(self.recorded) {
            return Vec::new();
        }
        let traffic = Traffic::of(self, programs);
        let mut found = lost::lost(&traffic, stopped);
        found.extend(twice::twice(&traffic, stopped));
        found.extend(counted::counted(&traffic, stopped));
        found.sort_by_key(|live| live.sides[1].write_line);
        found.truncate(MOST);
        found
    }
}
