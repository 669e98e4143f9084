//! A result as people and programs read it: terminal, page, Markdown, CSV, services that keep
//! benchmarks over time.
//!
//! Lays out what `isobench-result` found, and concludes nothing: any saved document renders again,
//! years later and on another machine.
//!
//! | module | layout |
//! |---|---|
//! | `text` | the table of `isobench compare` and the sentences below it |
//! | `html` | the page: the answer, the pictures, everything behind them |
//! | `page` | the parts of pages that others make |
//! | `markdown` | the answer and the table for a comment on a pull request |
//! | `certificate` | which server permits which anomaly, as a page and as Markdown |
//! | `csv` | one line per round |
//! | `tables` | rounds, time series and recorded transactions, for other programs |
//! | `pair`, `trend` | several results, in every layout |
//! | `overview` | many results, a row for each |
//! | `servers` | results of many servers, as a page |
//! | `gate` | what was asked and found, as `JUnit` and SARIF |
//! | `trackers` | a result for services that keep benchmarks over time |
//!
//! ```
//! use isobench_report::render;
//! use isobench_result::{Client, Document, Plan, Server};
//!
//! let document = Document::new(Server::default(), Client::default(), Plan::default());
//! assert!(render(&document, 100).contains("Nothing was measured"));
//! ```

mod certificate;
mod csv;
pub mod gate;
mod html;
mod markdown;
mod overview;
mod pair;
mod tables;
mod text;
mod trackers;
mod trend;

pub use certificate::{CertificateLayout, MARKDOWN_START, certificate};
pub use csv::{titles as csv_titles, to_csv};
pub use html::{servers, to_html};
pub use markdown::to_markdown;
pub use overview::overview;
pub use tables::{ExportError, TransactionsTable, write_rounds, write_series};
pub use text::layout::wrap;
pub use text::{Extent, Terminal, Text, folder_of, phrase, render, statements, witness};
pub use trackers::{to_bencher, to_github_action_benchmark};
pub use trend::TREND_TITLES;

/// What other pages than those of results are made of.
pub mod page {
    pub use crate::csv::line;
    pub use crate::html::{Arrow, Figure, Node, Part, code, graph, picture, sheet, table, warnings};
}

/// What is found in several results, in every layout.
pub trait Layouts {
    /// Renders it for a terminal of `width` columns.
    fn to_text(&self, width: usize) -> String;

    /// Renders it as GitHub-flavoured Markdown.
    fn to_markdown(&self) -> String;

    /// Renders it as a page like that of one result.
    fn to_html(&self) -> String;

    /// Renders it as lines of comma-separated values, titles first.
    fn to_csv(&self) -> String;
}
