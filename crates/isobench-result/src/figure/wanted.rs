//! Figures as they are asked for, by requirements, trends and plans: names resolved, with what there is
//! where there is no such one.
//!
//! Not here: how a requirement is written (`isobench_plan`).

use std::fmt;
use std::str::FromStr;

use isobench_plan::{CellFigure, End, Plan, Requirement, Selector, WrongValue};
use isobench_suggest::did_you_mean;

use super::{FIGURES, Figure};

/// A figure of some cells whose name is known: what a trend shows, and a requirement is about.
#[derive(Clone)]
pub struct Wanted {
    /// The cells; `None`: all.
    pub selector: Option<Selector>,
    /// The figure.
    pub figure: &'static Figure,
    /// Which value of the figure.
    pub end: End,
}

impl Wanted {
    /// Resolves the name of a figure.
    ///
    /// # Errors
    /// There is no such figure, level or interval, in a sentence with what there is.
    pub fn of(asked: &CellFigure) -> Result<Wanted, String> {
        let Some(figure) = Figure::named(&asked.figure) else { return Err(unknown(asked)) };
        if asked.end != End::Mean && !figure.has_interval() {
            let with = FIGURES.iter().filter(|row| row.has_interval()).map(|row| row.name);
            return Err(format!(
                "{} has no interval, so neither .low nor .high; those with one are {}",
                figure.name,
                with.collect::<Vec<_>>().join(", ")
            ));
        }
        Ok(Wanted { selector: asked.selector.clone(), figure, end: asked.end })
    }

    /// The same as text has it, with the figure's one name.
    pub fn written(&self) -> CellFigure {
        CellFigure { selector: self.selector.clone(), figure: self.figure.name.to_owned(), end: self.end }
    }
}

/// Why a name is none of a figure. One that follows another name may be known; then that is no level.
fn unknown(asked: &CellFigure) -> String {
    let after = asked.figure.split_once('.').filter(|(_, figure)| Figure::named(figure.trim()).is_some());
    match after.map(|(before, _)| before.parse::<Selector>()) {
        Some(Err(why)) => why.to_string(),
        _ => unknown_figure(&asked.figure),
    }
}

/// Says that no figure has this name, and which there are.
pub fn unknown_figure(name: &str) -> String {
    // Of names with the same beginning the shortest is meant.
    let mut known: Vec<&str> =
        FIGURES.iter().flat_map(|row| std::iter::once(row.name).chain(row.aliases.iter().copied())).collect();
    known.sort_by_key(|name| name.len());
    let hint = did_you_mean(name, known);
    let names: Vec<&str> = FIGURES.iter().map(|row| row.name).collect();
    format!("unknown metric \"{name}\"; use one of {}{hint}", names.join(", "))
}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wanted({self})")
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.written().fmt(f)
    }
}

impl FromStr for Wanted {
    type Err = WrongValue;

    fn from_str(text: &str) -> Result<Wanted, WrongValue> {
        Wanted::of(&text.parse()?).map_err(|why| WrongValue::new(text, &why))
    }
}

/// Reads a requirement whose figure must be known.
///
/// # Errors
/// It isn't one, or names no figure.
pub fn requirement(text: &str) -> Result<Requirement, WrongValue> {
    let read: Requirement = text.parse()?;
    let wanted = Wanted::of(&read.of).map_err(|why| WrongValue::new(text, &why))?;
    Ok(Requirement { of: wanted.written(), ..read })
}

/// Resolves every name of a figure in a plan: its requirements, and what the experiment that it repeats
/// is compared by.
///
/// # Errors
/// One names no figure.
pub fn resolve(plan: &mut Plan) -> Result<(), WrongValue> {
    for required in plan.require.iter_mut().flatten() {
        let wanted = Wanted::of(&required.of);
        let wanted = wanted.map_err(|why| WrongValue(format!("--require \"{required}\": {why}")))?;
        required.of = wanted.written();
    }
    let Some(experiment) = &mut plan.experiment else { return Ok(()) };
    let shapes = experiment.shapes.iter_mut().map(|shape| &mut shape.metric);
    let rows = experiment.published.iter_mut().flat_map(|row| &mut row.figures);
    for metric in shapes.chain(rows.filter_map(|figure| figure.metric.as_mut())) {
        let figure = Figure::named(metric)
            .ok_or_else(|| WrongValue(format!("experiment: {}", unknown_figure(metric))))?;
        figure.name.clone_into(metric);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        requirement(text).expect_err(text).to_string()
    }

    #[test]
    fn names_of_earlier_versions_are_read_and_the_one_name_is_written() {
        for (old, written) in [
            ("ser.p99 <= 50", "serializable.latency_p99_ms <= 50"),
            ("p99.9.high < 7", "latency_p999_ms.high < 7"),
            ("rr.p99.9 < 7", "repeatable read.latency_p999_ms < 7"),
            ("conflict-ratio < 20%", "conflict_ratio < 0.2"),
            ("anomalies-per-million == 0", "anomalies_per_million == 0"),
            ("retries < 1", "retries_per_transaction < 1"),
            ("wasted < 20 %", "wasted_share < 0.2"),
            ("wasted-share < 20 %", "wasted_share < 0.2"),
            ("given-up == 0", "transactions_given_up == 0"),
            ("median-latency < 5", "latency_p50_ms < 5"),
        ] {
            assert_eq!(requirement(old).map(|read| read.to_string()), Ok(written.to_owned()), "{old}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_what_there_is() {
        for (text, said) in [
            ("tsp >= 5", "unknown metric \"tsp\"; use one of tps, ratio, anomalies_per_million,"),
            ("anomalie == 0", "did you mean \"anomalies\"?"),
            ("ser.conflict-rate < 1", "unknown metric \"conflict-rate\""),
            ("ser.conflict-rate < 1", "did you mean \"conflict_ratio\"?"),
            ("serialisable.tps > 1", "unknown isolation level \"serialisable\""),
            ("serialisable.tps > 1", "did you mean \"serializable\"?"),
            ("p99.8 < 1", "unknown metric \"p99.8\""),
            ("anomalies.low == 0", "anomalies has no interval"),
            ("ser+.tps > 1", "\"ser+\" names nothing after +"),
            (".tps > 1", "unknown isolation level \"\""),
        ] {
            let message = refused(text);
            assert!(message.contains(said) && message.starts_with(&format!("\"{text}\": ")), "{message}");
        }
        let message = "tsp".parse::<Wanted>().expect_err("no figure").to_string();
        assert!(message.starts_with("\"tsp\": unknown metric"), "{message}");
    }

    #[test]
    fn a_plan_is_resolved_before_anything_is_measured() {
        let plan = |text: &str| Plan { require: Some(vec![text.parse().expect("one")]), ..Plan::default() };
        let mut old = plan("ser.p99 < 5");
        assert_eq!(resolve(&mut old), Ok(()));
        assert_eq!(old.required()[0].to_string(), "serializable.latency_p99_ms < 5");
        let message = resolve(&mut plan("tsp < 5")).expect_err("no figure").to_string();
        assert!(message.starts_with("--require \"tsp < 5\": unknown metric \"tsp\""), "{message}");
        let shape = |metric: &str| crate::document::Shape {
            says: String::new(),
            metric: metric.to_owned(),
            of: Selector::default(),
            to: None,
            published: None,
            least: None,
            most: None,
            differs: std::collections::BTreeMap::new(),
        };
        let of = |metric: &str| {
            let shapes = vec![shape(metric)];
            let experiment = crate::document::Experiment { shapes, ..Default::default() };
            Plan { experiment: Some(experiment), ..Plan::default() }
        };
        let mut old = of("kept-share");
        assert_eq!(resolve(&mut old), Ok(()));
        assert_eq!(old.experiment.expect("one").shapes[0].metric, "kept_share");
        let message = resolve(&mut of("kept-part")).expect_err("no figure").to_string();
        assert!(
            message.contains("unknown metric \"kept-part\"") && message.contains("kept_share"),
            "{message}"
        );
    }
}
