//! The report that people read in a browser: one self-contained page.
//!
//! The page makes no request of any kind (its content security policy forbids them), and is
//! complete without its script: that only adds tooltips and buttons. Sections are rows of a table,
//! in the page's order, each in a file of its own. Not here: the figures (`chart`), the computation
//! of what is shown.

mod accounting;
mod answer;
mod chart;
mod conflicts;
mod durability;
mod environment;
mod experiment;
mod limits;
mod machines;
mod matrix;
mod method;
mod occasions;
mod overhead;
mod part;
mod pictures;
mod requirements;
mod room;
mod scripts;
mod seen;
mod server_side;
mod servers;
mod sheet;
mod table;
mod verdict;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use isobench_result::conclusions::summarised;
use isobench_result::document::Document;
use isobench_result::numbers::{count, counted};
use isobench_result::phrases::length;
use isobench_result::words::{capital, distinct};

pub use chart::Figure;
pub use chart::graph::{Arrow, Node, graph};
pub use occasions::{pair, trend};
pub use part::{code, table};
pub use pictures::picture;
pub use servers::servers;
pub use sheet::{Part, sheet, warnings};

const STYLE: &str = include_str!("html/page.css");
/// The figures' own style.
const FIGURES_STYLE: &str = include_str!("html/chart/chart.css");
const SCRIPT: &str = include_str!("html/page.js");

/// The sections that the contents name: five, and those of few documents. All others follow one of them.
const LINKED: [&str; 8] =
    ["answer", "requirements", "experiment", "durability", "pictures", "course", "verdict", "method"];

/// A part of the page.
struct Section {
    /// Its anchor.
    id: &'static str,
    /// Its heading.
    title: &'static str,
    /// What it holds, if it is folded until a reader asks for it; else `None`.
    folded: Option<&'static str>,
    /// Its content; `None` if the document has nothing for it.
    body: fn(&Document) -> Option<Markup>,
    /// The same of a section with figures.
    figures: fn(&Document) -> Option<(Markup, Contents)>,
}

/// Figures in the table of contents: their anchors and titles.
type Contents = Vec<(&'static str, String)>;

/// A section that is open.
const PLAIN: Section = Section { id: "", title: "", folded: None, body: |_| None, figures: |_| None };

/// The sections in the order of the page.
static SECTIONS: [Section; 16] = [
    Section { id: "answer", title: "Answer", body: answer::body, ..PLAIN },
    Section { id: "tradeoff", title: "What it costs, what it buys", body: matrix::body, ..PLAIN },
    Section { id: "requirements", title: "Requirements", body: requirements::body, ..PLAIN },
    Section { id: "experiment", title: "The published experiment", body: experiment::body, ..PLAIN },
    Section { id: "durability", title: "Faults and durability", figures: durability::body, ..PLAIN },
    Section { id: "overhead", title: "What each level costs", body: overhead::body, ..PLAIN },
    Section { id: "pictures", title: "Rates, and where the time went", figures: pictures::rates, ..PLAIN },
    Section { id: "conflicts", title: "Conflicts", body: conflicts::body, ..PLAIN },
    Section { id: "course", title: "Latency, and where sessions waited", figures: pictures::course, ..PLAIN },
    Section { id: "verdict", title: "Verdict", body: verdict::body, ..PLAIN },
    Section { id: "machines", title: "The machines", body: machines::body, ..PLAIN },
    Section { id: "limits", title: "What the numbers do not say", body: limits::body, ..PLAIN },
    Section {
        id: "server",
        title: "The server's side",
        folded: Some("Counters, processes, locks waited for"),
        body: server_side::body,
        ..PLAIN
    },
    Section {
        id: "accounting",
        title: "Accounting",
        folded: Some("Every attempt, every transaction, all time, every round"),
        body: accounting::body,
        ..PLAIN
    },
    Section {
        id: "method",
        title: "How it was measured",
        folded: Some("The plan, the order, the intervals; what it takes to repeat it"),
        body: method::body,
        ..PLAIN
    },
    Section {
        id: "environment",
        title: "Environment",
        folded: Some("The server, its settings, the client's machine"),
        body: environment::body,
        ..PLAIN
    },
];

/// Renders a document as a page that needs nothing but itself: no network, no other file, no
/// script.
///
/// Summaries are computed from the rounds, whatever the document says.
pub fn to_html(document: &Document) -> String {
    let document = &summarised(document);
    let of = |section: &'static Section| {
        let plain = || Some(((section.body)(document)?, Contents::new()));
        let (body, figures) = (section.figures)(document).or_else(plain)?;
        Some((section, body, figures))
    };
    let sections: Vec<(&Section, Markup, Contents)> = SECTIONS.iter().filter_map(of).collect();
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            (head(document))
            body {
                a class="skip" href="#answer" { "Skip to the answer" }
                (header(document))
                div class="columns" {
                    (contents(&sections))
                    main id="main" {
                        @for (section, body, _) in &sections {
                            section id=(section.id) aria-labelledby={ (section.id) "-title" } {
                                h2 id={ (section.id) "-title" } { (section.title) }
                                @if let Some(what) = section.folded {
                                    details class="folded" { summary { (what) } (body) }
                                } @else {
                                    (body)
                                }
                            }
                        }
                    }
                }
                (footer(document))
                div id="tip" role="tooltip" hidden {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn head(document: &Document) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy" content=(policy());
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta name="generator" content={ "isobench " (document.client.version) };
            title { (title(document)) " · isobench" }
            style { (PreEscaped(style())) }
        }
    }
}

/// The style of a page, with that of its tables and figures.
fn style() -> String {
    [STYLE, &part::narrow(), FIGURES_STYLE].concat()
}

/// Nothing is loaded from anywhere; the only script that runs is the page's own, known by its
/// digest.
fn policy() -> String {
    let digest = STANDARD.encode(Sha256::digest(SCRIPT));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri \
         'none'; form-action 'none'"
    )
}

/// The subject of the comparison, in a line.
fn title(document: &Document) -> String {
    let server = document.server.name();
    match distinct(document.cells.iter().map(|cell| cell.level.name())).as_slice() {
        [] => format!("Isolation levels of {server}"),
        [one] => format!("{} on {server}", capital(one)),
        _ => format!("What isolation costs on {server}"),
    }
}

fn header(document: &Document) -> Markup {
    html! {
        header class="top" {
            div {
                p class="brandname" { "isobench" }
                h1 { (title(document)) }
                p class="facts" {
                    @for fact in facts(document) { span { (fact) } " " }
                }
            }
            fieldset class="theme" {
                legend { "Theme" }
                @for (id, name) in [("auto", "Auto"), ("light", "Light"), ("dark", "Dark")] {
                    input type="radio" name="theme" id={ "theme-" (id) } checked[id == "auto"];
                    label for={ "theme-" (id) } { (name) }
                }
            }
        }
    }
}

/// The few facts without which no number says anything.
fn facts(document: &Document) -> Vec<String> {
    let plan = &document.plan;
    let scripts: Vec<&str> = document.workload.scripts.iter().map(|script| script.name.as_str()).collect();
    let workload = if plan.workload().len() > 1 { plan.workload().join(", ") } else { workload(&scripts) };
    let clients: Vec<String> = plan.clients().iter().map(|clients| count((*clients).into())).collect();
    let mut facts = Vec::new();
    if !workload.is_empty() {
        facts.push(workload);
    }
    match plan.clients() {
        [] => {}
        [one] => facts.push(counted((*one).into(), "client")),
        _ => facts.push(format!("{} clients", clients.join(", "))),
    }
    facts.push(format!("scale {}", count(plan.scale().into())));
    facts.extend(length(document));
    facts.extend(document.started_at.clone());
    facts
}

/// The scripts' names; those of one workload ("smallbank/balance", "smallbank/amalgamate" …) by its
/// name.
fn workload(scripts: &[&str]) -> String {
    let of = |script: &&str| script.split_once('/').map(|(workload, _)| workload.to_owned());
    match scripts.first().and_then(of) {
        Some(first)
            if scripts.len() > 1 && scripts.iter().all(|script| of(script).as_ref() == Some(&first)) =>
        {
            format!("{first} ({} scripts)", scripts.len())
        }
        _ => scripts.join(" + "),
    }
}

fn contents(sections: &[(&Section, Markup, Contents)]) -> Markup {
    html! {
        nav class="contents" aria-label="Contents" {
            ol {
                @for (section, _, figures) in sections.iter().filter(|(section, ..)| LINKED.contains(&section.id)) {
                    li {
                        a href={ "#" (section.id) } { (section.title) }
                        @if !figures.is_empty() {
                            ol { @for (id, title) in figures { li { a href={ "#" (id) } { (title) } } } }
                        }
                    }
                }
            }
        }
    }
}

fn footer(document: &Document) -> Markup {
    html! {
        footer {
            p {
                "Written by isobench " (document.client.version) " from a result of format version "
                (document.format_version) ", measurement version " (document.measurement_version)
                ". Results of different measurement versions must not be compared."
            }
        }
    }
}
