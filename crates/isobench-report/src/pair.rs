//! Two results side by side, in every layout.
//!
//! Not here: what is compared, and the table (`isobench_result::pair`).

mod csv;
mod markdown;
mod text;

use isobench_result::Pair;
use isobench_result::pair::table::{LEGEND, levels, table_of_two_rows};

use crate::Layouts;

impl Layouts for Pair {
    fn to_text(&self, width: usize) -> String {
        text::render(self, width)
    }

    fn to_markdown(&self) -> String {
        markdown::render(self)
    }

    fn to_html(&self) -> String {
        let between = (!self.levels.is_empty()).then(|| levels(&self.levels));
        crate::html::pair(self, &table_of_two_rows(&self.cells), between.as_ref(), &LEGEND)
    }

    fn to_csv(&self) -> String {
        csv::render(self)
    }
}
