//! A published experiment beside what was measured: its table with our figures, and whether each
//! shape came out again.
//!
//! A shape is a ratio or an order that should come out again on any machine; absolute figures never
//! do. Not here: what was published (`document/experiment`), the words (`text/experiment`).

use crate::document::{Cell, Document, Experiment, PublishedFigure, PublishedRow, Selector, Shape};
use crate::factor::selects;
use crate::figure::{Figure, OfRound, unknown_figure};
use crate::numbers::{counted, finite, short};
use crate::rounds::FEWEST_FOR_INTERVALS;
use crate::summarise::{pairs_of, ratio_of};
use crate::view::Line;

/// A published experiment with what came out here. The document's summaries must have been
/// computed.
pub struct ComparedExperiment<'a> {
    /// The rows of the published table.
    pub rows: Vec<ComparedRow<'a>>,
    /// The shapes.
    pub shapes: Vec<JudgedShape<'a>>,
}

/// A row of the published table.
pub struct ComparedRow<'a> {
    /// The cells that the row is of, as far as the experiment says.
    pub selector: &'a Selector,
    /// Our cell; `None` if none was measured that is meant.
    pub cell: Option<&'a Cell>,
    /// The published figures, each with ours, where there is such a metric.
    pub figures: Vec<(&'a PublishedFigure, Option<String>)>,
}

/// A shape and what became of it.
pub struct JudgedShape<'a> {
    /// The statement.
    pub shape: &'a Shape,
    /// The outcome here.
    pub outcome: Reproduction<'a>,
}

/// The outcome of a shape.
pub enum Reproduction<'a> {
    /// Our figure lies within the tolerance.
    Same(Ours),
    /// It doesn't.
    Differs {
        /// Our figure.
        ours: Ours,
        /// The reason for this product, if the plan knows it.
        reason: Option<&'a str>,
    },
    /// More rounds may change the outcome.
    Open {
        /// Our figure.
        ours: Ours,
        /// True if there are too few rounds for an interval; else the interval lies partly within the
        /// tolerance, and partly not.
        few: bool,
        /// The reason for a difference, if the plan knows it.
        reason: Option<&'a str>,
    },
    /// There is no figure of ours, and why.
    NotMeasured(String),
}

/// A figure of ours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ours {
    /// The figure.
    pub mean: f64,
    /// Its 95 % interval, where it has one.
    pub ends: Option<(f64, f64)>,
    /// True if it would have an interval, had there been more rounds.
    pub few: bool,
}

/// Compares the document with the experiment that it repeats; `None` if it repeats none.
pub fn compare(document: &Document) -> Option<ComparedExperiment<'_>> {
    let experiment = document.plan.experiment.as_ref()?;
    let row = |published| row(document, published);
    let shape = |shape| JudgedShape { shape, outcome: judge(document, shape) };
    Some(ComparedExperiment {
        rows: experiment.published.iter().map(row).collect(),
        shapes: experiment.shapes.iter().map(shape).collect(),
    })
}

/// True if the experiment was published for the product that was measured here.
pub fn is_same_product(document: &Document, experiment: &Experiment) -> bool {
    let (published, ours) = (experiment.product.to_lowercase(), document.server.product.to_lowercase());
    !ours.is_empty() && published.starts_with(&ours)
}

fn row<'a>(document: &'a Document, published: &'a PublishedRow) -> ComparedRow<'a> {
    let cell = find(document, &published.cell);
    let ours = |figure: &'a PublishedFigure| {
        let metric = figure.metric.as_deref().and_then(Figure::named);
        let found = metric.zip(cell).and_then(|(metric, cell)| figure_of(document, cell, metric));
        (figure, found.zip(metric).map(|(ours, metric)| metric.text(ours.mean)))
    };
    ComparedRow { selector: &published.cell, cell, figures: published.figures.iter().map(ours).collect() }
}

/// The first cell that is meant and was measured.
fn find<'a>(document: &'a Document, selector: &Selector) -> Option<&'a Cell> {
    document.cells.iter().find(|cell| !cell.calibration && !cell.rounds.is_empty() && selects(cell, selector))
}

/// A selector in words, one at least: "serializable", "swallow", "64 clients", "rows 1000".
pub fn selected(selector: &Selector) -> Vec<String> {
    let clients = selector.clients.map(|clients| counted(clients.into(), "client"));
    let named = [selector.level.clone(), selector.strategy.clone(), clients].into_iter().flatten();
    let varied = selector.varied.iter().map(|(name, value)| format!("{name} {value}"));
    let words: Vec<String> = named.chain(varied).collect();
    if words.is_empty() { vec!["every cell".to_owned()] } else { words }
}

fn judge<'a>(document: &Document, shape: &'a Shape) -> Reproduction<'a> {
    let ours = match ours(document, shape) {
        Ok(ours) => ours,
        Err(why) => return Reproduction::NotMeasured(why),
    };
    let product = |(name, _): &(&'a String, &'a String)| name.eq_ignore_ascii_case(&document.server.product);
    let reason = shape.differs.iter().find(product).map(|(_, reason)| reason.as_str());
    let (low, high) = ours.ends.unwrap_or((ours.mean, ours.mean));
    let apart = shape.least.is_some_and(|least| high < least) || shape.most.is_some_and(|most| low > most);
    match ours.few {
        true => Reproduction::Open { ours, few: true, reason },
        false if apart => Reproduction::Differs { ours, reason },
        false if within(shape, low) && within(shape, high) => Reproduction::Same(ours),
        false => Reproduction::Open { ours, few: false, reason },
    }
}

/// True if a figure lies within the tolerance.
fn within(shape: &Shape, figure: f64) -> bool {
    shape.least.is_none_or(|least| figure >= least) && shape.most.is_none_or(|most| figure <= most)
}

/// The figure of ours that a shape is about, or why there is none.
fn ours(document: &Document, shape: &Shape) -> Result<Ours, String> {
    let cell = |selector: &Selector| {
        find(document, selector)
            .ok_or_else(|| format!("nothing was measured of {}", selected(selector).join(", ")))
    };
    let figure = Figure::named(&shape.metric).ok_or_else(|| unknown_figure(&shape.metric))?;
    let of = cell(&shape.of)?;
    let missing = |cell: &Selector| format!("{} has no {}", selected(cell).join(", "), figure.said);
    let Some(reference) = &shape.to else {
        return figure_of(document, of, figure).ok_or_else(|| missing(&shape.of));
    };
    let to = cell(reference)?;
    if let Some(of_round @ OfRound::Number(_)) = figure.of_round
        && let pairs = pairs_of(of, to, |round| of_round.number(round))
        && let Some(ratio) = ratio_of(document, &pairs, 1)
    {
        let few = pairs.len() < FEWEST_FOR_INTERVALS;
        return Ok(Ours { mean: ratio.mean, ends: ratio.low.zip(ratio.high), few });
    }
    let of = figure_of(document, of, figure).ok_or_else(|| missing(&shape.of))?;
    let to = figure_of(document, to, figure).ok_or_else(|| missing(reference))?;
    match finite(of.mean / to.mean) {
        Some(mean) => Ok(Ours { mean, ends: None, few: false }),
        None => Err(format!("{} has {} 0", selected(reference).join(", "), figure.said)),
    }
}

/// A figure of a cell.
fn figure_of(document: &Document, cell: &Cell, figure: &Figure) -> Option<Ours> {
    let found = figure.measured(document, cell).ok()?;
    let mean = finite(found.number)?;
    let ends = found.low.zip(found.high);
    let few =
        figure.has_interval() && ends.is_none() && (cell.summary.rounds as usize) < FEWEST_FOR_INTERVALS;
    Some(Ours { mean, ends, few })
}

/// A value of a metric as text.
fn shown(metric: &str, value: f64) -> String {
    Figure::named(metric).map_or_else(|| short(value), |figure| figure.text(value))
}

impl JudgedShape<'_> {
    /// The outcome, in two or three words.
    pub fn verdict(&self) -> Line {
        match self.outcome {
            Reproduction::Same(_) => Line::plain("same shape"),
            Reproduction::Open { .. } => Line::plain("not settled"),
            Reproduction::Differs { .. } => Line::grave("DIFFERS"),
            Reproduction::NotMeasured(_) => Line::plain("not measured"),
        }
    }

    /// The published figure, ours, and the tolerance, in a sentence; then why it differs, if that
    /// is known.
    pub fn figures(&self) -> String {
        let bare = |value: f64| match self.shape.to {
            Some(_) => short(value),
            None => shown(&self.shape.metric, value),
        };
        let times = if self.shape.to.is_some() { " times" } else { "" };
        let published = match self.shape.published {
            Some(figure) => format!("published {}{times}", bare(figure)),
            None => "no figure was published".to_owned(),
        };
        let tolerance = match (self.shape.least, self.shape.most) {
            (Some(least), Some(most)) => format!("; {} to {} is the same shape", bare(least), bare(most)),
            (Some(least), None) => format!("; {} or more is the same shape", bare(least)),
            (None, Some(most)) => format!("; {} or less is the same shape", bare(most)),
            (None, None) => String::new(),
        };
        let ours = |ours: &Ours| {
            let ends = ours.ends.map(|(low, high)| format!(" ({} to {})", bare(low), bare(high)));
            format!("{published}, ours {}{times}{}{tolerance}.", bare(ours.mean), ends.unwrap_or_default())
        };
        match &self.outcome {
            Reproduction::Same(figure) => ours(figure),
            Reproduction::Differs { ours: figure, reason } => {
                let why = reason.map_or_else(String::new, |reason| format!(" Why: {reason}"));
                format!("{}{why}", ours(figure))
            }
            Reproduction::Open { ours: figure, few, reason } => {
                let open = if *few {
                    "There are too few rounds: it takes three at least."
                } else {
                    "Our interval lies partly within the tolerance, so it takes more rounds."
                };
                let outside = !within(self.shape, figure.mean);
                let why = reason.filter(|_| outside);
                let why = why.map_or_else(String::new, |reason| format!(" If it differs, why: {reason}"));
                format!("{} {open}{why}", ours(figure))
            }
            Reproduction::NotMeasured(why) => format!("{published}; {why}."),
        }
    }
}

impl ComparedExperiment<'_> {
    /// The number of shapes that came out again, in a sentence; `None` if the experiment has none.
    pub fn verdict(&self) -> Option<String> {
        let all = self.shapes.len();
        let count = |wanted: fn(&Reproduction) -> bool| {
            self.shapes.iter().filter(|shape| wanted(&shape.outcome)).count()
        };
        let same = count(|outcome| matches!(outcome, Reproduction::Same(_)));
        let explained = count(|outcome| matches!(outcome, Reproduction::Differs { reason: Some(_), .. }));
        let unexplained = count(|outcome| matches!(outcome, Reproduction::Differs { reason: None, .. }));
        let open = count(|outcome| matches!(outcome, Reproduction::Open { .. }));
        let missing = count(|outcome| matches!(outcome, Reproduction::NotMeasured(_)));
        if all == 0 {
            return None;
        }
        let rest: Vec<String> = [
            (explained, "for a known reason", "differs", "differ"),
            (unexplained, "for no reason that is known", "differs", "differ"),
            (open, "by the scatter of the rounds", "is left open", "are left open"),
            (missing, "", "wasn't measured", "weren't measured"),
        ]
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, why, one, many)| {
            format!("{count} {} {why}", if count == 1 { one } else { many }).trim_end().to_owned()
        })
        .collect();
        let rest = if rest.is_empty() { String::new() } else { format!("; {}", rest.join(", ")) };
        Some(format!("{same} of {} came out again{rest}.", counted(all as u64, "shape")))
    }
}
