//! A list of horizontal tracks on a common scale, each below the label of its cell, so that no
//! label needs a margin.
//!
//! Not here: what is drawn on a track.

use maud::{Markup, PreEscaped, html};

use super::frame::{BELOW, BOLD, LINE, WIDTH, labels_below, lines, text, width_of};
use super::marks::{marker, path, u};
use super::scale::{Scale, Tick};
use super::subject::Subject;

/// The ends of the scales of rows: marks at the ends have room.
pub const ENDS: (f64, f64) = (7.0, 593.0);

/// The label of a cell at this height: its marker, its name, at the right its value; and how high
/// it is.
pub fn title(subject: &Subject, value: &str, top: f64) -> (Markup, f64) {
    let y = top + 17.0;
    let room = WIDTH - 32.0 - width_of(value);
    let drawn = html! {
        g class=(subject.class()) { (marker(subject.style, 8.0, y - 6.0)) }
        (text("label", (22.0, y), &subject.name, room.max(120.0)))
        text class="end" x=(u(WIDTH)) y=(u(y)) { (value) }
    };
    (drawn, LINE)
}

/// The strip of a row on which marks lie.
#[derive(Debug, Clone, Copy)]
pub struct Track {
    /// Its upper edge.
    pub top: f64,
    /// Its lower edge.
    pub bottom: f64,
}

impl Track {
    /// The height in the middle.
    pub fn middle(&self) -> f64 {
        self.top.midpoint(self.bottom)
    }
}

/// Rows in the making, from top to bottom.
pub struct Rows {
    scale: Scale,
    ticks: Vec<Tick>,
    thickness: f64,
    y: f64,
    drawn: String,
}

impl Rows {
    /// No rows yet; `thick` is the height of their tracks, `lines` the most grid lines.
    pub fn new(scale: Scale, most: usize, thickness: f64) -> Rows {
        Rows { ticks: scale.ticks(most), scale, thickness, y: 0.0, drawn: String::new() }
    }

    /// Adds a heading for the following rows; nothing if it is empty.
    pub fn heading(&mut self, words: &str) {
        if words.is_empty() {
            return;
        }
        self.y += if self.y > 0.0 { LINE / 2.0 } else { 0.0 };
        for line in lines(words, WIDTH / BOLD, 3) {
            self.add(&text("heading", (0.0, self.y + 17.0), &line, WIDTH));
            self.y += LINE;
        }
        self.y += 3.0;
    }

    /// The label of a cell, its value in words at the right, and the track below.
    pub fn cell(&mut self, subject: &Subject, value: &str) -> Track {
        self.title(subject, value);
        self.track(self.thickness)
    }

    /// The label of a cell and its value in words, without a track.
    pub fn title(&mut self, subject: &Subject, value: &str) {
        let (label, height) = title(subject, value, self.y);
        self.add(&label);
        self.y += height;
    }

    /// An empty track with its grid.
    fn track(&mut self, thickness: f64) -> Track {
        let track = Track { top: self.y + 2.0, bottom: self.y + 2.0 + thickness };
        let lines = self.ticks.iter().flat_map(|tick| {
            let x = self.scale.at(tick.value);
            [Some((x, track.top)), Some((x, track.bottom)), None]
        });
        // One path rather than a line for each: there are as many tracks as cells.
        self.add(&html! { path class="grid" d=(path(lines)) {} });
        self.y = track.bottom + 9.0;
        track
    }

    /// Draws what was made elsewhere.
    pub fn add(&mut self, marks: &Markup) {
        self.drawn += &marks.0;
    }

    /// The rows with their axis below, and their height.
    pub fn finish(self, what: &str) -> (Markup, f64) {
        let bottom = self.y - 6.0;
        let axis = html! {
            (labels_below(&self.scale, &self.ticks, bottom))
            text class="axis end" x=(u(WIDTH)) y=(u(bottom + 2.0 * LINE - 4.0)) { (what) }
        };
        (PreEscaped(self.drawn + &axis.0), bottom + BELOW)
    }
}
