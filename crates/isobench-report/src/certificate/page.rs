//! The certificate as a page.

use isobench_probe::{CellOutcome, SpecOutcome};
use maud::{DOCTYPE, Markup, html};

use super::{
    AtLevel, Certificate, LEGEND, METHOD, OfAnomaly, SPECIFICATIONS, Shown, Specifications, Table, is_bad,
};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;\
    color-scheme:light dark}table{border-collapse:collapse;display:block;overflow-x:auto}\
    th,td{border:1px solid #8888;padding:.25rem .6rem;text-align:left}pre{overflow-x:auto;padding:.6rem;\
    border:1px solid #8888}.bad{font-weight:bold}";

/// Writes the page.
pub fn write(certificate: &Certificate<'_>) -> String {
    let Certificate { title, generator, levels, witnesses, specs, limitations } = certificate;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content=(generator);
                title { (title) }
                style { (STYLE) }
            }
            body {
                h1 { (title) }
                p { (METHOD) " Made by " (generator) "." }
                ul { @for (mark, meaning) in LEGEND { li { b { (mark) } " " (meaning) "." } } }
                @for level in levels { (of_level(level)) }
                h2 { "Witnesses" }
                @for anomaly in witnesses { (of_anomaly(anomaly)) }
                @if let Some(specs) = specs { (specifications(specs)) }
                @if !limitations.is_empty() { h2 { "Known limitations" } }
                @for limitation in limitations {
                    p { (limitation.product) " (seen in " (limitation.seen_in.join(", ")) "): " (limitation.why) ". In two psql sessions:" }
                    pre { (limitation.reproduction) }
                }
            }
        }
    };
    page.into_string() + "\n"
}

fn of_level(level: &AtLevel<'_>) -> Markup {
    html! {
        h2 { (level.level) }
        @for answer in &level.answers { p { (answer) } }
        @for shown in &level.tables { (table(shown)) }
    }
}

fn table(table: &Table<'_>) -> Markup {
    html! {
        table {
            tr {
                th { (table.what) }
                @for column in &table.columns { th { @for server in &column.servers { div { (server) } } } }
            }
            @for (number, (name, anchor)) in table.rows.iter().enumerate() {
                tr {
                    td { @if let Some(anchor) = anchor { a href=(format!("#{anchor}")) { (name) } } @else { (name) } }
                    @for mark in table.marks(number) { td class=[is_bad(mark).then_some("bad")] { (mark) } }
                }
            }
        }
    }
}

fn of_anomaly(anomaly: &OfAnomaly<'_>) -> Markup {
    html! {
        h3 id=(anomaly.anchor) { (anomaly.label) }
        p { "An instance of the standard's phenomenon: " (anomaly.phenomenon) "." }
        @for Shown { outcome, steps, places } in &anomaly.shown {
            @let (word, how) = outcome.words();
            details open[matches!(outcome, CellOutcome::Permitted(_))] {
                summary { b { (word) } ": " (how) ". " (places) }
                pre { (steps) }
            }
        }
    }
}

fn specifications(specs: &Specifications<'_>) -> Markup {
    html! {
        h2 { "Specifications" }
        p { (SPECIFICATIONS) }
        (table(&specs.table))
        @for (server, spec) in &specs.shown {
            details {
                summary {
                    b { (spec.mark()) } ": " (spec.name) ", " (server)
                    @if let SpecOutcome::Failed(why) = &spec.outcome { ": " (why) }
                }
                pre { (spec.output) }
            }
        }
    }
}
