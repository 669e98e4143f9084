//! The marks that show data: markers, lines, boxes, and their tooltips.
//!
//! Every kind differs in shape, not only in colour. Not here: colours (`chart.css`), places
//! (`scale`), `hatching`.

use std::fmt::{self, Display, Formatter, Write as _};

use maud::{Markup, html};

use super::scale::Scale;
use super::subject::STYLES;

/// A length or a place in the picture's units: at most one decimal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Units(pub f64);

impl Display for Units {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        // Neither "NaN" nor "-0" are of use to a browser.
        let tenths = if tenths.is_finite() && tenths != 0.0 { tenths } else { 0.0 };
        write!(f, "{}", tenths / 10.0)
    }
}

/// Shorthand for [`Units`].
pub fn u(value: f64) -> Units {
    Units(value)
}

/// Marks with what a pointer or the keyboard shows at them: the title, which the page's script turns
/// into a tooltip.
pub fn tipped(class: &str, tip: &str, marks: &Markup) -> Markup {
    html! { g class=(class) { title { (tip) } (marks) } }
}

/// Everything that belongs to a cell or a category: one stop for the keyboard, one sentence for a
/// screen reader, which the page's script shows as a tooltip, too.
pub fn series(class: &str, label: &str, marks: &Markup) -> Markup {
    html! { g class={ "series " (class) } role="img" tabindex="0" aria-label=(label) { (marks) } }
}

/// The marker of a level: disc, square, triangle, diamond, cross, star.
pub fn marker(style: usize, x: f64, y: f64) -> Markup {
    let mut path = String::new();
    let points: &[(f64, f64)] = match style % STYLES {
        1 => &[(-5.0, -5.0), (5.0, -5.0), (5.0, 5.0), (-5.0, 5.0)],
        2 => &[(0.0, -6.5), (6.0, 4.5), (-6.0, 4.5)],
        3 => &[(0.0, -7.0), (7.0, 0.0), (0.0, 7.0), (-7.0, 0.0)],
        4 => &[
            (-2.0, -6.0),
            (2.0, -6.0),
            (2.0, -2.0),
            (6.0, -2.0),
            (6.0, 2.0),
            (2.0, 2.0),
            (2.0, 6.0),
            (-2.0, 6.0),
            (-2.0, 2.0),
            (-6.0, 2.0),
            (-6.0, -2.0),
            (-2.0, -2.0),
        ],
        5 => &[(0.0, 6.5), (6.0, -4.5), (-6.0, -4.5)],
        _ => return html! { circle class="marker" cx=(u(x)) cy=(u(y)) r="5.5" {} },
    };
    for (index, (right, down)) in points.iter().enumerate() {
        let _ = write!(path, "{}{} {}", if index == 0 { "M" } else { "L" }, u(x + right), u(y + down));
    }
    html! { path class="marker" d={ (path) "Z" } {} }
}

/// The path of a line through points; broken where one is missing.
pub fn path(points: impl IntoIterator<Item = Option<(f64, f64)>>) -> String {
    let mut text = String::new();
    let mut pen_down = false;
    for point in points {
        if let Some((x, y)) = point {
            let _ = write!(text, "{}{} {}", if pen_down { "L" } else { "M" }, u(x), u(y));
        }
        pen_down = point.is_some();
    }
    text
}

/// The path of many dots: lines without a length, whose round ends are seen.
pub fn dots(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut text = String::new();
    for (x, y) in points {
        let _ = write!(text, "M{} {}h0", u(x), u(y));
    }
    text
}

/// A line of an interval from `low` to `high` with a stroke across at each end.
pub fn whisker(low: (f64, f64), high: (f64, f64)) -> Markup {
    const REACH: f64 = 4.0;
    let flat = (low.1 - high.1).abs() < f64::EPSILON;
    let (x, y) = if flat { (0.0, REACH) } else { (REACH, 0.0) };
    let end = |(along, across): (f64, f64)| {
        format!("M{} {}L{} {}", u(along - x), u(across - y), u(along + x), u(across + y))
    };
    html! { path class="whisker" d={ (path([Some(low), Some(high)])) (end(low)) (end(high)) } {} }
}

/// A line of an interval along a level scale. Where the interval goes on beyond the scale there is
/// an arrow in place of the stroke across.
pub fn interval(scale: &Scale, ends: (f64, f64), y: f64) -> Markup {
    along(scale, ends, |place, across| (place, y + across))
}

/// The same along an upright scale.
pub fn upright_interval(scale: &Scale, ends: (f64, f64), x: f64) -> Markup {
    along(scale, ends, |place, across| (x + across, place))
}

fn along(scale: &Scale, (low, high): (f64, f64), point: impl Fn(f64, f64) -> (f64, f64)) -> Markup {
    const REACH: f64 = 4.0;
    let end = |value: f64, outwards: f64| {
        let place = scale.nearest(value);
        let back = if scale.holds(value) { place } else { place - outwards * scale.direction() * REACH };
        let ((left, above), (x, y), (right, below)) =
            (point(back, -REACH), point(place, 0.0), point(back, REACH));
        if scale.holds(value) {
            format!("M{} {}L{} {}", u(left), u(above), u(right), u(below))
        } else {
            format!("M{} {}L{} {}L{} {}", u(left), u(above), u(x), u(y), u(right), u(below))
        }
    };
    let line = path([low, high].map(|value| Some(point(scale.nearest(value), 0.0))));
    html! { path class="whisker" d={ (line) (end(low, -1.0)) (end(high, 1.0)) } {} }
}

/// A filled box.
pub fn bar(class: &str, (left, right): (f64, f64), (top, bottom): (f64, f64)) -> Markup {
    let (width, height) = ((right - left).max(0.0), (bottom - top).max(0.0));
    html! {
        rect class=(class) x=(u(left)) y=(u(top)) width=(u(width)) height=(u(height)) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_one_decimal_and_are_numbers() {
        for (value, text) in
            [(1.0, "1"), (1.25, "1.3"), (-0.04, "0"), (f64::NAN, "0"), (f64::INFINITY, "0"), (599.96, "600")]
        {
            assert_eq!(u(value).to_string(), text);
        }
    }

    #[test]
    fn lines_are_broken_where_a_point_is_missing() {
        let points = [Some((0.0, 1.0)), Some((1.0, 2.0)), None, Some((3.0, 4.0)), Some((5.0, 6.0))];
        assert_eq!(path(points), "M0 1L1 2M3 4L5 6");
    }

    #[test]
    fn an_interval_that_goes_on_beyond_the_scale_shows_it() {
        let scale = Scale::up_to(10.0, 0.0, 100.0);
        let drawn = |low, high| interval(&scale, (low, high), 50.0).into_string();
        assert!(drawn(2.0, 6.0).contains("\"M20 50L60 50M20 46L20 54M60 46L60 54\""), "{}", drawn(2.0, 6.0));
        assert!(drawn(2.0, 60.0).contains("M20 46L20 54M96 46L100 50L96 54\""), "{}", drawn(2.0, 60.0));
        let upright = Scale::up_to(10.0, 100.0, 0.0);
        let drawn = |low, high| upright_interval(&upright, (low, high), 50.0).into_string();
        assert!(drawn(2.0, 6.0).contains("\"M50 80L50 40M46 80L54 80M46 40L54 40\""), "{}", drawn(2.0, 6.0));
        assert!(drawn(2.0, 60.0).contains("M46 80L54 80M46 4L50 0L54 4\""), "{}", drawn(2.0, 60.0));
    }

    #[test]
    fn tips_are_escaped() {
        let marks = tipped("x", "a \"b\" <c>", &html! {}).into_string();
        assert_eq!(marks, "<g class=\"x\"><title>a &quot;b&quot; &lt;c&gt;</title></g>");
    }
}
