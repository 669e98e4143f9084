//! Which results make one series: those whose cells have the same factors, under the same
//! conditions.
//!
//! Not here: the conditions that any comparison needs (`pair/differences`).

use serde_json::Value;

use super::{Axis, TrendPoint};
use crate::document::{Cell, Document};
use crate::factor::{Assignment, Names};
use crate::figure::Wanted;
use crate::pair;

/// A series in the making.
pub(super) struct Line {
    /// Its factors, less the one along the axis.
    factors: Assignment,
    /// What must be equal besides, by name.
    conditions: Vec<(&'static str, Value)>,
    /// Its place among the lines: that of the first line with the same factors, and its own.
    pub first: (usize, usize),
    /// Its results.
    pub points: Vec<TrendPoint>,
}

/// Puts a point into the line that it belongs to.
pub(super) fn put(
    lines: &mut Vec<Line>,
    document: &Document,
    cell: &Cell,
    of: &Wanted,
    axis: &Axis,
    point: TrendPoint,
) {
    let factors = axis.without(Assignment::of(cell));
    let conditions = conditions(document, cell, of);
    let own = lines.len();
    let same = lines.iter_mut().filter(|line| line.factors == factors);
    let mut first = own;
    for line in same {
        first = line.first.0;
        if line.conditions == conditions {
            line.points.push(point);
            return;
        }
    }
    lines.push(Line { factors, conditions, first: (first, own), points: vec![point] });
}

/// What must be equal for values to be of one series: what a comparison of two results warns of, and
/// what it compares on purpose, besides the versions and settings of the server, whose changes a
/// trend is for.
fn conditions(document: &Document, cell: &Cell, of: &Wanted) -> Vec<(&'static str, Value)> {
    let server = document.server_of(cell);
    // Of an embedded server the place is that of its programs, which every version has its own of.
    let place = (!server.embedded).then_some((&server.description, &server.host));
    let reference = of.figure.reference(cell).map(|ratio| &ratio.to);
    // Plain data can always be written.
    let json = |value: serde_json::Result<Value>| value.unwrap_or_default();
    let own = [
        ("the meaning of the numbers", Value::from(document.measurement_version)),
        ("the server's product", Value::from(server.product.as_str())),
        ("the server's place", json(serde_json::to_value((server.embedded, place)))),
        ("whether the server shares the machine", Value::from(document.client.same_machine)),
        ("the level that ran", Value::from(cell.level.effective.to_string())),
        ("what is observed", json(serde_json::to_value(document.plan.observe))),
        ("what the ratio is to", json(serde_json::to_value(reference))),
    ];
    pair::conditions(document).chain(own).collect()
}

/// The name of each line, and in what it differs from the one above of the same name.
pub(super) fn names(lines: &[Line]) -> Vec<(String, Vec<&'static str>)> {
    let names = Names::of(lines.iter().map(|line| &line.factors));
    let name = |(index, line): (usize, &Line)| {
        let above = lines[..index].iter().rev().find(|above| above.factors == line.factors);
        let differs_in = above.map_or_else(Vec::new, |above| {
            let both = above.conditions.iter().zip(&line.conditions);
            both.filter(|(one, other)| one != other).map(|((name, _), _)| *name).collect()
        });
        (names.of_cell(&line.factors), differs_in)
    };
    lines.iter().enumerate().map(name).collect()
}
