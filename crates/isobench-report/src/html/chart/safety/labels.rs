//! Labels beside points that may lie anywhere: each where it covers neither another label nor a
//! mark.
//!
//! Not here: what the labels say.

use maud::{Markup, html};

use crate::html::chart::frame::{LINE, width_of};
use crate::html::chart::marks::u;

/// The reach of a mark around its place.
const MARK: f64 = 8.0;

/// The distance of a label from its mark.
const APART: f64 = 13.0;

/// A box: left, top, right, bottom.
type Area = [f64; 4];

/// The boxes that are taken, and the edges of the picture.
pub struct Labels {
    edges: Area,
    taken: Vec<Area>,
}

impl Labels {
    /// No labels yet between these edges.
    pub fn new(left: f64, right: f64, top: f64, bottom: f64) -> Labels {
        Labels { edges: [left, top, right, bottom], taken: Vec::new() }
    }

    /// Keeps labels away from a mark.
    pub fn occupy(&mut self, (x, y): (f64, f64)) {
        self.taken.push([x - MARK, y - MARK, x + MARK, y + MARK]);
    }

    /// The label of a mark, at the first place around it that is free; nothing if none is, for the
    /// mark has a tooltip, and the figure its words.
    pub fn place(&mut self, words: &str, (x, y): (f64, f64)) -> Markup {
        let width = width_of(words);
        // A line is `LINE` high with some air in it.
        let (up, down) = (LINE - 9.0, 5.0);
        let candidates = [
            ("note halo", x + APART, y + 5.0, x + APART),
            ("note halo end", x - APART, y + 5.0, x - APART - width),
            ("note halo", x + APART, y - 10.0, x + APART),
            ("note halo", x + APART, y + 20.0, x + APART),
            ("note halo end", x - APART, y - 10.0, x - APART - width),
            ("note halo end", x - APART, y + 20.0, x - APART - width),
            ("note halo middle", x, y - APART, x - width / 2.0),
            ("note halo middle", x, y + APART + 12.0, x - width / 2.0),
        ];
        for (class, at, base, left) in candidates {
            let area = [left, base - up, left + width, base + down];
            if self.is_free(area) {
                self.taken.push(area);
                return html! { text class=(class) x=(u(at)) y=(u(base)) { (words) } };
            }
        }
        html! {}
    }

    fn is_free(&self, [left, top, right, bottom]: Area) -> bool {
        let [first, upper, last, lower] = self.edges;
        let inside = left >= first && right <= last && top >= upper - LINE && bottom <= lower + LINE;
        let apart =
            |other: &Area| right <= other[0] || left >= other[2] || bottom <= other[1] || top >= other[3];
        inside && self.taken.iter().all(apart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_stands_where_nothing_else_does() {
        let mut labels = Labels::new(0.0, 300.0, 0.0, 200.0);
        for place in [(50.0, 100.0), (280.0, 100.0)] {
            labels.occupy(place);
        }
        let first = labels.place("serializable", (50.0, 100.0)).into_string();
        assert_eq!(first, "<text class=\"note halo\" x=\"63\" y=\"105\">serializable</text>");
        let at_the_edge = labels.place("retry", (280.0, 100.0)).into_string();
        assert!(at_the_edge.contains("halo end"), "{at_the_edge}");
    }

    #[test]
    fn where_nothing_is_free_there_is_no_label() {
        let mut labels = Labels::new(0.0, 40.0, 0.0, 40.0);
        labels.occupy((20.0, 20.0));
        assert_eq!(labels.place("serializable", (20.0, 20.0)).into_string(), "");
    }
}
