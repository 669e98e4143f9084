//! Hatchings, which distinguish the kinds of a whole without colour.
//!
//! Lines or dots in the paper's colour over a filled shape, clipped to it. (A `<pattern>` would be
//! shorter, but browsers print it as bitmaps, megabytes of them.) Not here: which kind means what.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::frame::WIDTH;
use super::marks::u;

/// The lines of each kind: those of outcomes, then those of waits. Within each of the two no lines
/// are there twice, and kinds with lines 0 have none.
const LINES: [usize; 14] = [0, 1, 4, 2, 8, 0, 2, 1, 3, 7, 4, 5, 6, 8];

/// The kinds of outcomes, numbered from 0; the others are waits.
#[cfg(test)]
const OUTCOMES: usize = 5;

/// The height of the field of lines that shapes are clipped from: that of the highest shape.
const HEIGHT: u32 = 72;

/// The distance between lines.
const STEP: usize = 8;

/// The definitions of a figure's hatchings.
pub fn hatchings(figure: &str, kinds: impl IntoIterator<Item = usize>) -> Markup {
    html! {
        defs {
            @for kind in kinds {
                @if let Some(lines) = field(kind) { path id={ (figure) "-h" (kind) } d=(lines) {} }
            }
        }
    }
}

/// A box in the colour and with the lines of a kind. It clips them as a picture within the picture,
/// which is half as long as naming a shape: there are several boxes for each cell.
pub fn hatched_bar(
    figure: &str,
    kind: usize,
    (left, right): (f64, f64),
    (top, bottom): (f64, f64),
) -> Markup {
    let (width, height) = (u(right - left), u(bottom - top));
    html! {
        path class={ "segment k" (kind) } d={ "M" (u(left)) " " (u(top)) "H" (u(right)) "V" (u(bottom)) "H" (u(left)) "Z" } {}
        @if lines_of(kind) > 0 {
            svg x=(u(left)) y=(u(top)) width=(width) height=(height) {
                use class=(class(kind)) href={ "#" (figure) "-h" (kind) } {}
            }
        }
    }
}

/// A sample for a legend, of 20 by 14 units.
pub fn sample(figure: &str, kind: usize) -> Markup {
    html! {
        rect class={ "segment k" (kind) } width="20" height="14" {}
        @if lines_of(kind) > 0 { use class=(class(kind)) href={ "#" (figure) "-h" (kind) } {} }
    }
}

/// The style of a kind's lines. It belongs to what uses them, which they inherit it from: what is
/// used is out of the reach of rules that name the picture.
fn class(kind: usize) -> &'static str {
    if matches!(lines_of(kind), 2 | 8) { "hatch dots" } else { "hatch" }
}

/// The number of a kind's lines.
fn lines_of(kind: usize) -> usize {
    LINES.get(kind).copied().unwrap_or_default()
}

/// The path of a kind's lines, over the whole width of a picture.
fn field(kind: usize) -> Option<String> {
    let mut lines = String::new();
    let height = HEIGHT as usize;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a constant")]
    let width = WIDTH as usize;
    let rising = |lines: &mut String| {
        for right in (STEP..width + height).step_by(STEP) {
            let _ = write!(lines, "M{right} 0l-{height} {height}");
        }
    };
    let falling = |lines: &mut String| {
        for right in (STEP..width + height).step_by(STEP) {
            let _ = write!(lines, "M{right} {height}l-{height}-{height}");
        }
    };
    let level = |lines: &mut String, step: usize| {
        for (index, y) in (step / 2..height).step_by(step).enumerate() {
            // Every other line of dots begins half a step later.
            let _ = write!(lines, "M{} {y}H{width}", if index % 2 == 0 { 2 } else { 6 });
        }
    };
    let upright = |lines: &mut String| {
        for x in (STEP / 2..width).step_by(STEP) {
            let _ = write!(lines, "M{x} 0V{height}");
        }
    };
    match lines_of(kind) {
        1 => rising(&mut lines),
        2 => level(&mut lines, STEP / 2),
        3 => falling(&mut lines),
        4 => level(&mut lines, STEP - 2),
        5 => upright(&mut lines),
        6 => {
            level(&mut lines, STEP);
            upright(&mut lines);
        }
        7 => {
            rising(&mut lines);
            falling(&mut lines);
        }
        8 => level(&mut lines, STEP),
        _ => return None,
    }
    Some(lines)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn kinds_that_stand_together_have_lines_of_their_own() {
        let (outcomes, waits) = LINES.split_at(OUTCOMES);
        for family in [outcomes, waits] {
            for (index, lines) in family.iter().enumerate() {
                assert!(!family[..index].contains(lines), "{family:?}");
            }
        }
        for (kind, lines) in LINES.iter().enumerate() {
            assert_eq!(field(kind).is_none(), *lines == 0, "{kind}");
        }
        let shapes: BTreeSet<_> = (0..LINES.len()).map(field).collect();
        assert_eq!(shapes.len(), 9, "lines of another number are other lines");
    }
}
