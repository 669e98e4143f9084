//! The certificate: for each level which server permits which anomaly, on one page, with each witness step by
//! step.

use maud::{DOCTYPE, Markup, html};

use crate::event::Event;
use crate::judge::{Cell, CellOutcome, LevelRow, Matrix};
use crate::output::text;
use crate::probe::Progress;
use crate::text::{label, mark};

/// The steps of an interleaving as they were executed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Witness {
    level: String,
    name: String,
    steps: String,
}

/// Writes down the steps of each interleaving, in the isolation tester's words.
#[derive(Debug, Clone, Default)]
pub struct Transcript {
    current: String,
    witnesses: Vec<Witness>,
}

/// A server with tables of one kind, and what it permits.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The server's product and version, and the kind of tables if it isn't the ordinary one.
    pub name: String,
    /// What it permits.
    pub matrix: Matrix,
    /// The steps.
    pub transcript: Transcript,
}

impl Transcript {
    /// Takes what happens while a server is probed.
    pub fn take(&mut self, progress: &Progress<'_>) {
        match progress {
            // It may be executed again.
            Progress::Begin(..) | Progress::Event(Event::Begin(_)) => self.current.clear(),
            Progress::Event(Event::Warning(_)) => {}
            Progress::Event(event) => self.current.push_str(&text(event)),
            Progress::End(level, cell) => {
                let (level, name) = (level.name().to_owned(), cell.name.clone());
                let steps = std::mem::take(&mut self.current).trim().to_owned();
                self.witnesses.push(Witness { level, name, steps });
            }
        }
    }

    fn of(&self, level: &str, name: &str) -> &str {
        let found = self.witnesses.iter().find(|one| one.level == level && one.name == name);
        found.map_or("", |one| &one.steps)
    }
}

/// What several servers and levels have in common.
struct Common<'a> {
    outcome: &'a CellOutcome,
    steps: &'a str,
    /// Servers with the levels at which it is so.
    places: Vec<(&'a str, Vec<&'a str>)>,
}

/// Makes the page. `generator` is the program with its version.
pub fn certificate(subjects: &[Subject], generator: &str) -> String {
    let levels = requested(subjects);
    let anomalies = all_cells(subjects);
    let title = subjects.first().map_or("Isolation", |subject| subject.matrix.tests.title());
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
                p {
                    "For each row one interleaving of a few sessions was executed, step by step, at each level. "
                    b { "permitted" } " was shown, and its steps are below. "
                    b { "–" } " was prevented in that interleaving, which proves nothing about others. "
                    b { "BROKEN" } " is permitted against the promise of the product's manual, "
                    b { "limitation" } " the same as a known one. Made by " (generator) "."
                }
                @for level in &levels { (table(level, subjects, &anomalies)) }
                h2 { "Witnesses" }
                @for cell in &anomalies { (witnesses(cell, subjects)) }
                (limitations(subjects))
            }
        }
    };
    page.into_string() + "\n"
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;\
    color-scheme:light dark}table{border-collapse:collapse;display:block;overflow-x:auto}\
    th,td{border:1px solid #8888;padding:.25rem .6rem;text-align:left}pre{overflow-x:auto;padding:.6rem;\
    border:1px solid #8888}.bad{font-weight:bold}";

/// The levels that were asked for, in their order.
fn requested(subjects: &[Subject]) -> Vec<&str> {
    let mut levels: Vec<&str> = Vec::new();
    for row in rows(subjects) {
        if !levels.contains(&row.requested.as_str()) {
            levels.push(&row.requested);
        }
    }
    levels
}

fn rows(subjects: &[Subject]) -> impl Iterator<Item = &LevelRow> {
    subjects.iter().flat_map(|subject| &subject.matrix.levels)
}

/// A cell of each anomaly, in their order.
fn all_cells(subjects: &[Subject]) -> Vec<&Cell> {
    let mut cells: Vec<&Cell> = Vec::new();
    let mut longest: Vec<&LevelRow> = rows(subjects).collect();
    longest.sort_by_key(|row| std::cmp::Reverse(row.cells.len()));
    for cell in longest.iter().flat_map(|row| &row.cells) {
        if !cells.iter().any(|known| known.name == cell.name) {
            cells.push(cell);
        }
    }
    cells
}

fn row_of<'a>(subject: &'a Subject, level: &str) -> Option<&'a LevelRow> {
    subject.matrix.levels.iter().find(|row| row.requested == level)
}

fn cell_of<'a>(subject: &'a Subject, level: &str, name: &str) -> Option<&'a Cell> {
    row_of(subject, level)?.cells.iter().find(|cell| cell.name == name)
}

fn table(level: &str, subjects: &[Subject], anomalies: &[&Cell]) -> Markup {
    let runs = |subject: &Subject| match row_of(subject, level) {
        Some(row) if row.effective != level => format!("runs {}", row.effective),
        Some(_) => String::new(),
        None => "not probed".to_owned(),
    };
    html! {
        h2 { (level) }
        table {
            tr {
                th { "anomaly" }
                @for subject in subjects { th { (subject.name) @let runs = runs(subject); @if !runs.is_empty() { br; (runs) } } }
            }
            @for anomaly in anomalies {
                @if subjects.iter().any(|subject| cell_of(subject, level, &anomaly.name).is_some()) {
                    tr {
                        td { a href=(format!("#{}", id(anomaly))) { (label(anomaly)) } }
                        @for subject in subjects {
                            @let shown = cell_of(subject, level, &anomaly.name).map_or("", mark);
                            td class=[(shown == "BROKEN").then_some("bad")] { (if shown == "-" { "–" } else { shown }) }
                        }
                    }
                }
            }
        }
    }
}

/// The name of an anomaly's section.
fn id(cell: &Cell) -> String {
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    cell.name.chars().map(letter).collect()
}

/// What each server shows of an anomaly, those together that show the same.
fn witnesses(anomaly: &Cell, subjects: &[Subject]) -> Markup {
    let mut found: Vec<Common<'_>> = Vec::new();
    for subject in subjects {
        for row in &subject.matrix.levels {
            let Some(cell) = row.cells.iter().find(|cell| cell.name == anomaly.name) else { continue };
            let steps = subject.transcript.of(&row.requested, &cell.name);
            let same = |common: &&mut Common<'_>| common.outcome == &cell.outcome && common.steps == steps;
            let level = row.requested.as_str();
            match found.iter_mut().find(same) {
                None => {
                    let places = vec![(subject.name.as_str(), vec![level])];
                    found.push(Common { outcome: &cell.outcome, steps, places });
                }
                Some(common) => match common.places.iter_mut().find(|(name, _)| *name == subject.name) {
                    Some((_, levels)) => levels.push(level),
                    None => common.places.push((&subject.name, vec![level])),
                },
            }
        }
    }
    html! {
        h3 id=(id(anomaly)) { (label(anomaly)) }
        p { "An instance of the standard's phenomenon: " (anomaly.phenomenon) "." }
        @for Common { outcome, steps, places } in &found {
            @let (word, how) = outcome.words();
            details open[matches!(outcome, CellOutcome::Permitted(_))] {
                summary {
                    b { (word) } ": " (how) ". "
                    @for (number, (server, levels)) in places.iter().enumerate() {
                        @if number > 0 { "; " } (server) " at " (levels.join(", "))
                    }
                }
                pre { (steps) }
            }
        }
    }
}

/// The known limitations that showed, each once.
fn limitations(subjects: &[Subject]) -> Markup {
    let mut known = Vec::new();
    for (_, _, limitation) in subjects.iter().flat_map(|subject| subject.matrix.limited()) {
        if !known.iter().any(|one: &&crate::limitations::KnownLimitation| one.why == limitation.why) {
            known.push(limitation);
        }
    }
    html! {
        @if !known.is_empty() { h2 { "Known limitations" } }
        @for limitation in known {
            p { (limitation.product) " (seen in " (limitation.seen_in.join(", ")) "): " (limitation.why) ". In two psql sessions:" }
            pre { (limitation.reproduction) }
        }
    }
}
