//! A graph: boxes with names, and arrows between them.
//!
//! Not here: what boxes and arrows stand for.

use std::f64::consts::TAU;

use maud::{Markup, html};

use super::frame::{LINE, WIDTH, picture, text};
use super::marks::u;

/// A box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What is said below it.
    pub note: String,
}

/// An arrow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Arrow {
    /// The index of the box at which it begins.
    pub from: usize,
    /// The index of the box to which it points.
    pub to: usize,
    /// A few letters at its middle.
    pub label: String,
    /// What it means, for a pointer and for screen readers.
    pub words: String,
    /// True if it is the kind of arrow that matters most; it is drawn bold.
    pub strong: bool,
}

/// The size of a box.
const BOX: (f64, f64) = (212.0, 2.0 * LINE + 8.0);

/// The room above a box for an arrow from it to itself.
const LOOP: f64 = 40.0;

/// The distance from the centre to the outermost boxes' centres.
const REACH: f64 = (WIDTH - BOX.0) / 2.0 - 2.0;

/// How far the middle of an arrow is from the straight line, as a share of its length. Two arrows in
/// opposite directions don't lie on each other then.
const BEND: f64 = 0.16;

type Point = (f64, f64);

/// Draws boxes on an ellipse, and arrows between them.
pub fn graph(id: &str, title: &str, nodes: &[Node], arrows: &[Arrow]) -> String {
    let (places, height) = places(nodes.len());
    let content = html! {
        defs {
            marker id={ (id) "-head" } viewBox="0 0 10 10" refX="9" refY="5" markerWidth="9" markerHeight="9"
                markerUnits="userSpaceOnUse" orient="auto-start-reverse" { path class="head" d="M0 0L10 5L0 10z" {} }
        }
        @for arrow in arrows { (drawn(id, &places, arrow)) }
        @for (node, (x, y)) in nodes.iter().zip(&places) {
            g class="node" {
                rect x=(u(x - BOX.0 / 2.0)) y=(u(y - BOX.1 / 2.0)) width=(u(BOX.0)) height=(u(BOX.1)) rx="6" {}
                (text("label", (x - BOX.0 / 2.0 + 8.0, y - 5.0), &node.name, BOX.0 - 16.0))
                (text("note", (x - BOX.0 / 2.0 + 8.0, y + LINE - 6.0), &node.note, BOX.0 - 16.0))
            }
        }
        // Above boxes that are in the way.
        @for arrow in arrows {
            @let (x, y) = course(&places, arrow).1;
            text class="label middle halo" x=(u(x)) y=(u(y)) dy="0.35em" aria-hidden="true" { (arrow.label) }
        }
    };
    picture(id, title, height, &content)
}

/// The most boxes on an ellipse; more of them are in two columns.
const MOST_ON_ELLIPSE: usize = 6;

/// The centres of so many boxes, and the height of the picture.
fn places(count: usize) -> (Vec<Point>, f64) {
    let first = LOOP + BOX.1 / 2.0 + 2.0;
    let (reach, places): (f64, Vec<Point>) = if count <= MOST_ON_ELLIPSE {
        // Boxes at the sides of the uppermost one are below it.
        let reach = 38.0 * count as f64;
        let at = |number: usize| {
            let angle = TAU * (number as f64 / count.max(1) as f64 - 0.25);
            (WIDTH / 2.0 + REACH * angle.cos(), first + reach + reach * angle.sin())
        };
        (reach, (0..count).map(at).collect())
    } else {
        let apart = BOX.1 + LOOP;
        let at = |number: usize| {
            let side = if number.is_multiple_of(2) { -REACH } else { REACH };
            (WIDTH / 2.0 + side, first + (number / 2) as f64 * apart)
        };
        ((count.div_ceil(2) - 1) as f64 * apart / 2.0, (0..count).map(at).collect())
    };
    (places, first + 2.0 * reach + BOX.1 / 2.0 + 2.0)
}

fn drawn(id: &str, places: &[Point], arrow: &Arrow) -> Markup {
    let class = if arrow.strong { "arrow strong" } else { "arrow" };
    let head = format!("url(#{id}-head)");
    let (d, _) = course(places, arrow);
    html! {
        g class=(class) role="img" tabindex="0" aria-label=(arrow.words) {
            title { (arrow.words) }
            path class="hidden" d=(d) {}
            path d=(d) marker-end=(head) {}
        }
    }
}

/// The path of an arrow, and the place of its label.
fn course(places: &[Point], arrow: &Arrow) -> (String, Point) {
    if arrow.from == arrow.to {
        to_itself(places[arrow.from])
    } else {
        bent(places[arrow.from], places[arrow.to])
    }
}

/// An arrow from a box to itself, above it, with the place of its label.
fn to_itself((x, y): Point) -> (String, Point) {
    let top = y - BOX.1 / 2.0;
    let (left, right, above) = (x - 26.0, x + 26.0, top - LOOP);
    let d = format!(
        "M{} {}C{} {} {} {} {} {}",
        u(left),
        u(top),
        u(left),
        u(above),
        u(right),
        u(above),
        u(right),
        u(top)
    );
    (d, (x, top - LOOP * 0.75))
}

/// An arrow between two boxes, with the place of its label.
fn bent(from: Point, to: Point) -> (String, Point) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let middle = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
    let control = if dx.abs() < 1.0 && (from.0 - WIDTH / 2.0).abs() > 1.0 {
        // In a column, it passes the boxes between them at the inner side.
        (middle.0 + (BOX.0 + 3.0 * LINE) * (WIDTH / 2.0 - from.0).signum(), middle.1)
    } else {
        (middle.0 - 2.0 * BEND * dy, middle.1 + 2.0 * BEND * dx)
    };
    let (start, end) = (border(from, control), border(to, control));
    let d =
        format!("M{} {}Q{} {} {} {}", u(start.0), u(start.1), u(control.0), u(control.1), u(end.0), u(end.1));
    let on_curve = |start: f64, control: f64, end: f64| (start + 2.0 * control + end) / 4.0;
    (d, (on_curve(start.0, control.0, end.0), on_curve(start.1, control.1, end.1)))
}

/// The point at which the line from the centre of a box towards another point leaves it.
fn border(centre: Point, towards: Point) -> Point {
    let (dx, dy) = (towards.0 - centre.0, towards.1 - centre.1);
    let share = (BOX.0 / 2.0 / dx.abs()).min(BOX.1 / 2.0 / dy.abs());
    if share.is_finite() { (centre.0 + dx * share, centre.1 + dy * share) } else { centre }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_never_overlap_and_stay_in_the_picture() {
        for count in 0..=24 {
            let (places, height) = places(count);
            for (number, (x, y)) in places.iter().enumerate() {
                assert!((BOX.0 / 2.0..=WIDTH - BOX.0 / 2.0).contains(x), "{count}: {x}");
                assert!((BOX.1 / 2.0 + LOOP..=height - BOX.1 / 2.0).contains(y), "{count}: {y} of {height}");
                for (other_x, other_y) in &places[number + 1..] {
                    assert!((x - other_x).abs() > BOX.0 || (y - other_y).abs() > BOX.1, "{count}");
                }
            }
        }
    }

    #[test]
    fn an_arrow_begins_and_ends_at_the_borders_of_boxes() {
        let edge = border((300.0, 100.0), (500.0, 100.0));
        assert_eq!(edge, (300.0 + BOX.0 / 2.0, 100.0));
        assert_eq!(border((300.0, 100.0), (300.0, 400.0)), (300.0, 100.0 + BOX.1 / 2.0));
        assert_eq!(border((1.0, 1.0), (1.0, 1.0)), (1.0, 1.0));
    }

    #[test]
    fn names_are_never_markup() {
        let node = Node { name: "<b>".to_owned(), note: "&".to_owned() };
        let arrow =
            Arrow { from: 0, to: 0, label: "<i>".to_owned(), words: "\"<script>\"".to_owned(), strong: true };
        let drawn = graph("g", "<title>", &[node], &[arrow]);
        for word in ["<b>", "<i>", "<script>", "<title><title>"] {
            assert!(!drawn.contains(word), "{word}: {drawn}");
        }
        assert!(drawn.contains("marker-end=\"url(#g-head)\""));
    }
}
