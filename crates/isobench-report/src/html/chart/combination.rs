//! Cells that differ in one factor and in their levels, as lines: a line for each level, a
//! combination for all else.
//!
//! Not here: what is measured of them, and how it is drawn (`against`).

use super::subject::{Group, Subject, name_of};
use isobench_result::document::Cell;
use isobench_result::factor::Factor;

/// A level's cells, by the factor.
pub struct LevelLine<'a> {
    /// The first of the cells, whose name and style are the line's.
    pub subject: &'a Subject<'a>,
    /// The factor's value in each cell, rising.
    pub points: Vec<(f64, &'a Cell)>,
}

/// A combination of the other factors.
pub struct Combination<'a> {
    /// These factors, as far as they vary.
    pub name: String,
    /// A line for each level.
    pub lines: Vec<LevelLine<'a>>,
}

impl<'a> Combination<'a> {
    fn add(&mut self, subject: &'a Subject<'a>, value: f64) {
        let same =
            |line: &&mut LevelLine| line.subject.name == subject.name && line.subject.again == subject.again;
        match self.lines.iter_mut().find(same) {
            Some(line) => line.points.push((value, subject.cell)),
            None => self.lines.push(LevelLine { subject, points: vec![(value, subject.cell)] }),
        }
    }
}

/// All combinations in which a line has at least two values of the factor.
///
/// `value` is the factor's in a cell, `None` where there is nothing to draw; `varies` is true for the
/// factors that vary within a combination. The others name it, and make it another one.
pub fn all<'a>(
    groups: &'a [Group<'a>],
    value: impl Fn(&Cell) -> Option<f64>,
    varies: impl Fn(&Factor) -> bool,
) -> Vec<Combination<'a>> {
    let mut found: Vec<Combination> = Vec::new();
    for group in groups {
        for subject in &group.members {
            let usable = |value: &f64| value.is_finite() && *value > 0.0;
            let Some(value) = value(subject.cell).filter(usable) else { continue };
            let mut others = group.factors.clone();
            others.retain(|(factor, _)| !varies(factor));
            let name = name_of(&others);
            if let Some(known) = found.iter_mut().find(|known| known.name == name) {
                known.add(subject, value);
                continue;
            }
            let mut new = Combination { name, lines: Vec::new() };
            new.add(subject, value);
            found.push(new);
        }
    }
    for line in found.iter_mut().flat_map(|combination| &mut combination.lines) {
        line.points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    // One point doesn't make a line, but beside lines it is worth its place.
    found.retain(|combination| combination.lines.iter().any(|line| line.points.len() > 1));
    found
}

/// The factor's values, rising.
pub fn values(combinations: &[Combination]) -> Vec<f64> {
    let points = combinations.iter().flat_map(|combination| &combination.lines).flat_map(|line| &line.points);
    let mut values: Vec<f64> = points.map(|(value, _)| *value).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}
