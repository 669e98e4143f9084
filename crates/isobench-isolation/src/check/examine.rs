//! Examines a row according to its kind.

use super::context::Context;
use super::dependencies::Sink;
use super::findings::Findings;
use super::infer::OpenRow;
use super::rows::{Class, Rows};
use super::{groups, lists, registers};

/// Examines a row: records its anomalies, and passes its dependencies to the sink. Returns the
/// number of pairs of versions whose order is unknown.
pub(super) fn examine_row<S: Sink>(
    context: Context<'_>,
    rows: &Rows,
    row: u32,
    found: &mut Findings,
    sink: &mut S,
) -> u64 {
    let places = rows.places(row);
    match rows.row(row).class {
        Class::Register => registers::examine(context, places, found, sink),
        Class::List => lists::examine(context, places, found, sink),
        Class::Group => {
            groups::examine(context, places, found, sink);
            0
        }
    }
}

/// What the inference needs of a row with unknown version orders.
pub(super) fn open_row(context: Context<'_>, rows: &Rows, row: u32) -> Option<OpenRow> {
    let places = rows.places(row);
    match rows.row(row).class {
        Class::Register => registers::open_row(context, places),
        Class::List => Some(lists::open_row(context, places)),
        Class::Group => None,
    }
}
