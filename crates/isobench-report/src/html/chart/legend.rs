//! The legend of a figure's hatchings or markers: a list that wraps where the page is narrow.
//!
//! Not here: levels, which most pictures label themselves.

use maud::html;

use super::hatching::sample;
use super::marks::marker;

/// The meaning of a hatching.
pub struct LegendEntry {
    /// The number of the hatching.
    pub kind: usize,
    /// Its name, in a few words.
    pub name: String,
    /// More about it; empty if the name says it.
    pub meaning: String,
}

/// The list, as HTML. Its samples use the hatchings that the picture of the figure defines.
pub fn legend(figure: &str, entries: &[LegendEntry]) -> String {
    let list = html! {
        ul class="chart-legend" {
            @for entry in entries {
                li {
                    svg class="chart swatch" viewBox="0 0 20 14" aria-hidden="true" focusable="false" {
                        (sample(figure, entry.kind))
                    }
                    span {
                        (entry.name)
                        @if !entry.meaning.is_empty() { span class="meaning" { ": " (entry.meaning) } }
                    }
                }
            }
        }
    };
    list.into_string()
}

/// A list of markers: the class that gives each its colour, its shape, its name.
pub fn marker_legend(entries: &[(String, usize, String)]) -> String {
    let list = html! {
        ul class="chart-legend" {
            @for (class, shape, name) in entries {
                li {
                    svg class="chart swatch" viewBox="0 0 20 14" aria-hidden="true" focusable="false" {
                        g class=(class) { (marker(*shape, 10.0, 7.0)) }
                    }
                    span { (name) }
                }
            }
        }
    };
    list.into_string()
}
