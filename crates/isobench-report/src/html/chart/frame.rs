//! The picture itself, and the plots in it: sizes, grids, axes, labels.
//!
//! A picture is 600 units wide and scales with its column. The style makes text 18 units high on a
//! phone (where that is some 10 pixels) and 12 on a desk, so the layout leaves room for 18. Not
//! here: marks.

use maud::{Markup, html};

use super::marks::{marker, path, u};
use super::scale::{Scale, Tick};
use super::subject::Subject;

/// The width of every picture in units.
pub const WIDTH: f64 = 600.0;

/// The height of a line of text in units.
pub const LINE: f64 = 23.0;

/// The widths of letters, figures and narrow signs in units, as the wider ones of the usual fonts
/// have them.
const LETTER: f64 = 9.6;
const FIGURE: f64 = 11.4;
const NARROW: f64 = 6.4;

/// Bold letters are wider by this factor.
pub const BOLD: f64 = 1.3;

/// Draws a picture of this height around its content.
///
/// Its name is for screen readers, and so are the words below it ([`super::Figure::description`]); what
/// can be stopped at inside has names of its own.
pub fn picture(id: &str, title: &str, height: f64, content: &Markup) -> String {
    let drawn = html! {
        svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox={ "0 0 " (u(WIDTH)) " " (u(height)) }
            role="group" aria-labelledby={ (id) "-name" } aria-describedby={ (id) "-words" } {
            title id={ (id) "-name" } { (title) }
            (content)
        }
    };
    drawn.into_string()
}

/// The room that a text needs, in units.
pub fn width_of(text: &str) -> f64 {
    text.chars().map(width_of_letter).sum()
}

fn width_of_letter(letter: char) -> f64 {
    match letter {
        '0'..='9' | 'A'..='Z' | 'm' | 'w' | '%' | '…' | '→' => FIGURE,
        ' ' | ',' | '.' | ':' | ';' | '(' | ')' | '/' | 'i' | 'j' | 'l' | 't' | 'f' => NARROW,
        _ => LETTER,
    }
}

/// The text, cut where it has no room.
pub fn fitting(text: &str, room: f64) -> String {
    if width_of(text) <= room {
        return text.to_owned();
    }
    let mut left = room - width_of_letter('…');
    let fits = |letter: &char| {
        left -= width_of_letter(*letter);
        left >= 0.0
    };
    let cut: String = text.chars().take_while(fits).collect();
    cut.trim_end().to_owned() + "…"
}

/// The text in at most `most` lines, broken between words; the last one is cut where it has no
/// room.
pub fn lines(text: &str, room: f64, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let full = lines.len() >= most;
        let Some(line) = lines.last_mut() else { continue };
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if full || line.is_empty() || width_of(&longer) <= room {
            *line = longer;
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.iter().map(|line| fitting(line, room)).collect()
}

/// A line of text that begins at a place, cut where it has no room; the whole of it is shown at a
/// pointer. Nothing without words.
pub fn text(class: &str, (x, y): (f64, f64), words: &str, room: f64) -> Markup {
    if words.is_empty() {
        return html! {};
    }
    let room = if matches!(class, "heading" | "label") { room / BOLD } else { room };
    let shown = fitting(words, room);
    html! {
        text class=(class) x=(u(x)) y=(u(y)) {
            @if shown != words { title { (words) } }
            (shown)
        }
    }
}

/// The part of a picture where data lie.
#[derive(Debug, Clone, Copy)]
pub struct Plot {
    /// The left edge.
    pub left: f64,
    /// The right edge.
    pub right: f64,
    /// The upper edge.
    pub top: f64,
    /// The lower edge.
    pub bottom: f64,
}

impl Plot {
    /// Horizontal lines with their labels at the left, and what they count above them.
    pub fn rising(&self, scale: &Scale, most: usize, what: &str) -> Markup {
        html! {
            (text("axis", (0.0, self.top - TITLE_ABOVE), what, WIDTH))
            @for (tick, y) in apart(scale, most) {
                line class=(if tick.value == 0.0 { "base" } else { "grid" })
                    x1=(u(self.left)) x2=(u(self.right)) y1=(u(y)) y2=(u(y)) {}
                text class="tick end" x=(u(self.left - 7.0)) y=(u(y)) dy="0.35em" { (tick.label) }
            }
        }
    }

    /// Vertical lines, with their labels below where these have room, and what they count below
    /// these.
    pub fn across(&self, scale: &Scale, ticks: &[Tick], what: &str) -> Markup {
        html! {
            @for tick in ticks {
                @let x = scale.at(tick.value);
                line class="grid" x1=(u(x)) x2=(u(x)) y1=(u(self.top)) y2=(u(self.bottom)) {}
            }
            (labels_below(scale, ticks, self.bottom))
            text class="axis end" x=(u(self.right)) y=(u(self.bottom + 2.0 * LINE - 4.0)) { (what) }
        }
    }

    /// The names of lines beside their ends, each with its marker.
    pub fn names(&self, names: &[Name]) -> Markup {
        let wished: Vec<f64> = names.iter().map(|name| name.end).collect();
        let places = spread(&wished, self.top + 4.0, self.bottom);
        html! {
            @for (name, y) in names.iter().zip(places) {
                g class=(name.class) {
                    path class="leader" d=(path([Some((self.right + 2.0, name.end)), Some((self.right + 12.0, y))])) {}
                    (marker(name.style, self.right + 20.0, y))
                    (text("note", (self.right + 31.0, y + 5.0), &name.words, WIDTH - self.right - 31.0))
                }
            }
        }
    }
}

/// The ticks of an upright scale with their heights, without those that touch the one below.
fn apart(scale: &Scale, most: usize) -> Vec<(Tick, f64)> {
    let mut last = f64::INFINITY;
    let mut ticks = Vec::new();
    for tick in scale.ticks(most) {
        let y = scale.at(tick.value);
        if y <= last - LINE + 5.0 {
            last = y;
            ticks.push((tick, y));
        }
    }
    ticks
}

/// The name of a line.
pub struct Name {
    /// Classes that give it the line's colour.
    pub class: String,
    /// The line's marker.
    pub style: usize,
    /// The name.
    pub words: String,
    /// The height at which the line ends.
    pub end: f64,
}

impl Name {
    /// The name of a cell's line.
    pub fn of(subject: &Subject, end: f64) -> Name {
        Name { class: subject.class(), style: subject.style, words: subject.short.clone(), end }
    }
}

/// The room at the right of a plot for the names of its lines.
pub const NAMES: f64 = 172.0;

/// The room that the labels of [`Plot::across`] take below a plot.
pub const BELOW: f64 = 2.0 * LINE + 2.0;

/// The labels of an axis below `bottom`. One that would touch its neighbour is left out.
pub fn labels_below(scale: &Scale, ticks: &[Tick], bottom: f64) -> Markup {
    let mut free_from = f64::NEG_INFINITY;
    let mut labels = Vec::new();
    for tick in ticks {
        let width = width_of(&tick.label);
        let middle = scale.at(tick.value);
        // The last label ends where the picture does.
        let (class, x, left) = if middle + width / 2.0 > WIDTH {
            ("tick end", WIDTH, WIDTH - width)
        } else {
            ("tick middle", middle.max(width / 2.0), middle - width / 2.0)
        };
        if left >= free_from {
            free_from = left + width + 8.0;
            labels.push((class, x, &tick.label));
        }
    }
    html! {
        @for (class, x, label) in labels {
            text class=(class) x=(u(x)) y=(u(bottom + LINE - 3.0)) { (label) }
        }
    }
}

/// The room above a plot for what its axis counts.
pub const ABOVE: f64 = LINE + 12.0;

/// The distance of the axis' title above a plot.
pub const TITLE_ABOVE: f64 = 15.0;

/// The left edge of a plot whose labels at the left are these.
pub fn left_of(scales: &[(&Scale, usize)]) -> f64 {
    let labels = scales.iter().flat_map(|(scale, most)| scale.ticks(*most));
    labels.map(|tick| width_of(&tick.label)).fold(20.0, f64::max) + 9.0
}

/// Places for labels near the wished ones, in their order, so that none touches another or leaves
/// the range.
pub fn spread(wished: &[f64], low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wished.len()).collect();
    order.sort_by(|one, other| wished[*one].total_cmp(&wished[*other]));
    let mut places = wished.to_vec();
    let mut free_from = low;
    for index in &order {
        places[*index] = places[*index].max(free_from);
        free_from = places[*index] + LINE - 3.0;
    }
    let mut free_to = high;
    for index in order.iter().rev() {
        places[*index] = places[*index].min(free_to);
        free_to = places[*index] - LINE + 3.0;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(fitting("serializable", 200.0), "serializable");
        assert_eq!(fitting("exponential:base=1ms", 100.0), "exponenti…");
        assert_eq!(fitting("x", f64::NAN), "…");
    }

    #[test]
    fn texts_are_broken_between_words() {
        assert_eq!(lines("one two three four five", 100.0, 2), ["one two", "three four…"]);
        assert_eq!(lines("", 100.0, 2), [""]);
        assert_eq!(lines("one two", 0.0, 1), ["…"]);
    }

    #[test]
    fn labels_are_moved_apart() {
        assert_eq!(spread(&[50.0, 10.0], 0.0, 100.0), [50.0, 10.0]);
        assert_eq!(spread(&[50.0, 50.0, 50.0], 0.0, 100.0), [50.0, 70.0, 90.0]);
        assert_eq!(spread(&[95.0, 99.0], 0.0, 100.0), [80.0, 100.0]);
        assert_eq!(spread(&[], 0.0, 1.0), [0.0; 0]);
    }
}
