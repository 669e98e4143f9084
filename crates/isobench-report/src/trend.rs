//! One figure over many results, in every layout.
//!
//! Not here: the series, their changes, and the table (`isobench_result::trend`).

mod csv;
mod text;

use isobench_result::Trend;
use isobench_result::trend::table::{legend, table};

use crate::{Layouts, markdown};

pub use csv::TREND_TITLES;

impl Layouts for Trend {
    fn to_text(&self, width: usize) -> String {
        text::render(self, width)
    }

    fn to_markdown(&self) -> String {
        let mut blocks = vec![markdown::escape(&self.heading())];
        for series in &self.series {
            blocks.push(format!("**{}**", markdown::escape(&series.title())));
            blocks.push(markdown::table(&table(series)));
            blocks.push(markdown::escape(&series.said().join(" ")));
        }
        blocks.extend(self.left_out.iter().map(|sentence| format!("- {}", markdown::escape(sentence))));
        blocks.push(markdown::escape(&legend(self).join(" ")));
        blocks.join("\n\n") + "\n"
    }

    fn to_html(&self) -> String {
        crate::html::trend(self, &legend(self), table)
    }

    fn to_csv(&self) -> String {
        csv::render(self)
    }
}
