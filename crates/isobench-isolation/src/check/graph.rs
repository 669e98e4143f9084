//! Draws a witness as a small graph, for Graphviz and as SVG.
//!
//! The graph of all dependencies is in `dependencies.rs`.

use std::f64::consts::TAU;
use std::fmt::Write as _;

use super::report::{Finding, WitnessStep};
use crate::history::History;

/// A witness detached from its history: boxes for transactions, and an arrow for each step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    /// The anomaly's name in the literature, and its common name.
    pub title: String,
    /// The transactions, each once, in the witness's order.
    pub transactions: Vec<Node>,
    /// The steps.
    pub arrows: Vec<Arrow>,
}

/// A transaction of a graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name in the history, for example "T7".
    pub name: String,
    /// The client, for example "client 3"; may be empty.
    pub client: String,
}

/// A step of a graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrow {
    /// The index of the preceding transaction.
    pub from: usize,
    /// The index of the following transaction; the same one if the step concerns only one
    /// transaction.
    pub to: usize,
    /// The short name of the dependency: ww, wr, rw …; may be empty.
    pub label: String,
    /// The reason, as a sentence.
    pub why: String,
}

/// The witness of a finding in Graphviz' language: boxes for transactions, and an arrow for each
/// step.
pub fn dot(history: &History, finding: &Finding) -> String {
    let graph = Graph::of(history, finding);
    let mut text = format!("digraph \"{}\" {{\n  node [shape=box];\n", quoted(finding.anomaly.facts().name));
    for (index, transaction) in transactions(finding).into_iter().enumerate() {
        let _ = writeln!(text, "  t{transaction} [label=\"{}\"];", quoted(&graph.transactions[index].name));
    }
    for step in &finding.witness.steps {
        let _ = writeln!(
            text,
            "  t{} -> t{} [label=\"{}\", tooltip=\"{}\"];",
            step.from,
            step.to,
            label(finding, step),
            quoted(&step.why)
        );
    }
    text + "}\n"
}

/// The witness of a finding as SVG, see [`Graph::svg`].
pub fn svg(history: &History, finding: &Finding) -> String {
    Graph::of(history, finding).svg()
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " ")
}

/// The label of an arrow.
fn label(finding: &Finding, step: &WitnessStep) -> &'static str {
    let fact = if finding.witness.is_inferred() { "inferred" } else { "" };
    step.dependency.map_or(fact, |dependency| dependency.name())
}

/// The transactions of a witness, each once, in order.
fn transactions(finding: &Finding) -> Vec<usize> {
    let mut transactions = Vec::new();
    for transaction in finding.witness.steps.iter().flat_map(|step| [step.from, step.to]) {
        if !transactions.contains(&transaction) {
            transactions.push(transaction);
        }
    }
    transactions
}

const BOX: (f64, f64) = (92.0, 38.0);

impl Graph {
    /// The graph of a finding's witness.
    pub fn of(history: &History, finding: &Finding) -> Graph {
        let places = transactions(finding);
        let facts = finding.anomaly.facts();
        let node = |&place: &usize| match history.transactions().get(place) {
            Some(transaction) => Node {
                name: format!("T{}", transaction.id),
                client: format!("client {}", transaction.client),
            },
            None => Node { name: place.to_string(), client: String::new() },
        };
        let index = |transaction| places.iter().position(|known| *known == transaction).unwrap_or(0);
        let arrow = |step: &WitnessStep| Arrow {
            from: index(step.from),
            to: index(step.to),
            label: label(finding, step).to_owned(),
            why: step.why.clone(),
        };
        Graph {
            title: format!("{}, {}", facts.name, facts.known_as),
            transactions: places.iter().map(node).collect(),
            arrows: finding.witness.steps.iter().map(arrow).collect(),
        }
    }

    /// The graph as SVG: boxes on a circle, and an arrow for each step. Arrows to boxes that don't
    /// exist are left out.
    ///
    /// Self-contained, and drawn in the colour of the surrounding text. The steps as sentences are
    /// its description for screen readers, and the tooltips of the arrows.
    pub fn svg(&self) -> String {
        let count = self.transactions.len();
        let radius = (count as f64 * 36.0).max(84.0);
        // Two boxes are side by side and need no height.
        let flat = count <= 2;
        let (width, height) =
            (2.0 * radius + BOX.0 + 40.0, if flat { BOX.1 + 124.0 } else { 2.0 * radius + BOX.1 + 60.0 });
        let middle = (width / 2.0, height / 2.0);
        let place = |index: usize| {
            let turn = TAU * index as f64 / count as f64 + if flat { TAU / 2.0 } else { -TAU / 4.0 };
            let radius = if count == 1 { 0.0 } else { radius };
            (middle.0 + radius * turn.cos(), middle.1 + radius * turn.sin())
        };
        let render = self.arrows.iter().map(|arrow| arrow.why.as_str()).collect::<Vec<_>>().join("; ");
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" role=\"img\" fill=\"none\" stroke=\"currentColor\" font-family=\"sans-serif\" \
             font-size=\"13\" text-anchor=\"middle\">\n<title>{}</title>\n<desc>{}</desc>\n",
            escaped(&self.title),
            escaped(&render)
        );
        for arrow in &self.arrows {
            if arrow.from != arrow.to && arrow.from.max(arrow.to) < count {
                draw(&mut text, place(arrow.from), place(arrow.to), arrow);
            }
        }
        for (index, transaction) in self.transactions.iter().enumerate() {
            let (x, y) = place(index);
            let _ = writeln!(
                text,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{}\" height=\"{}\" rx=\"5\"/>\n\
                 <text x=\"{x:.1}\" y=\"{y:.1}\" stroke=\"none\" fill=\"currentColor\">{}</text>\n\
                 <text x=\"{x:.1}\" y=\"{:.1}\" stroke=\"none\" fill=\"currentColor\" font-size=\"10\">{}</text>",
                x - BOX.0 / 2.0,
                y - BOX.1 / 2.0,
                BOX.0,
                BOX.1,
                escaped(&transaction.name),
                y + 13.0,
                escaped(&transaction.client)
            );
        }
        text + "</svg>\n"
    }
}

/// Draws a bent arrow between boxes, so that opposite arrows are separate.
fn draw(text: &mut String, from: (f64, f64), to: (f64, f64), arrow: &Arrow) {
    const BEND: f64 = 60.0;
    let (x, y) = (to.0 - from.0, to.1 - from.1);
    let length = x.hypot(y).max(1.0);
    let side = (y / length, -x / length);
    let bend = (from.0.midpoint(to.0) + BEND * side.0, from.1.midpoint(to.1) + BEND * side.1);
    let (start, end) = (at_edge(from, bend), at_edge(to, bend));
    let turn = (end.1 - bend.1).atan2(end.0 - bend.0);
    let wing = |turn: f64| (end.0 - 9.0 * turn.cos(), end.1 - 9.0 * turn.sin());
    let (left, right) = (wing(turn - 0.4), wing(turn + 0.4));
    // The curve reaches half-way to its control point. The label is outside the curve, further away
    // at the sides than above.
    let apex = (start.0.midpoint(end.0).midpoint(bend.0), start.1.midpoint(end.1).midpoint(bend.1));
    let out = 10.0 + 3.5 * arrow.label.len() as f64 * side.0.abs();
    let render = (apex.0 + out * side.0, apex.1 + out * side.1 + 4.0);
    let _ = writeln!(
        text,
        "<g><title>{}</title><path d=\"M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}\"/>\
         <path d=\"M{:.1} {:.1}L{:.1} {:.1}L{:.1} {:.1}\"/>\
         <text x=\"{:.1}\" y=\"{:.1}\" stroke=\"none\" fill=\"currentColor\">{}</text></g>",
        escaped(&arrow.why),
        start.0,
        start.1,
        bend.0,
        bend.1,
        end.0,
        end.1,
        left.0,
        left.1,
        end.0,
        end.1,
        right.0,
        right.1,
        render.0,
        render.1,
        escaped(&arrow.label)
    );
}

/// The point at which the line from a box's centre to another point leaves the box.
fn at_edge(middle: (f64, f64), point: (f64, f64)) -> (f64, f64) {
    let (x, y) = (point.0 - middle.0, point.1 - middle.1);
    let share = (BOX.0 / 2.0 / x.abs().max(0.1)).min(BOX.1 / 2.0 / y.abs().max(0.1)).min(1.0);
    (middle.0 + share * x, middle.1 + share * y)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{Options, check};
    use crate::history::text;

    fn first(history: &str) -> (History, Finding) {
        let history = text::parse(history).unwrap();
        let finding = check(&history, &Options::default()).findings.remove(0);
        (history, finding)
    }

    #[test]
    fn write_skew_for_graphviz() {
        let (history, finding) =
            first("T7: r x = v0, r \"<y>\" = v0, w x = v1\nT9: r x = v0, r \"<y>\" = v0, w \"<y>\" = v1");
        assert_eq!(
            dot(&history, &finding),
            "digraph \"G2-item\" {\n  node [shape=box];\n  t0 [label=\"T7\"];\n  t1 [label=\"T9\"];\n  \
             t0 -> t1 [label=\"rw\", tooltip=\"T7 (client 0) read version 0 of <y> 0, and T9 \
             (client 1) wrote version 1\"];\n  \
             t1 -> t0 [label=\"rw\", tooltip=\"T9 (client 1) read version 0 of x 0, and T7 (client \
             0) wrote version 1\"];\n}\n"
        );
    }

    #[test]
    fn pictures_have_a_box_for_each_transaction_and_an_arrow_for_each_step() {
        let fork = "T1: w x = v1\nT2: w y = v1\nT3: r x = v1, r y = v0\nT4: r x = v0, r y = v1";
        for (history, boxes, arrows) in [
            ("T7: r x = v0, r y = v0, w x = v1\nT9: r x = v0, r y = v0, w y = v1", 2, 2),
            (fork, 4, 4),
            ("T1: w x = v1, r x = v0", 1, 0),
            ("T1 aborted: w \"<x>&\" = v1\nT2: r \"<x>&\" = v1", 2, 1),
        ] {
            let (history, finding) = first(history);
            let picture = svg(&history, &finding);
            assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
            assert_eq!(picture.matches("<rect ").count(), boxes, "{picture}");
            assert_eq!(picture.matches("<g>").count(), arrows, "{picture}");
            let texts = picture.matches("</title>").count() + picture.matches("</desc>").count();
            assert_eq!(texts, 2 + arrows);
            assert!(!picture.contains("<x>") && !picture.contains("NaN"), "{picture}");
        }
    }
}
