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
    /// The user's specifications, if they were run there.
    pub specs: Vec<SpecRun>,
}

/// A specification that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecRun {
    /// The file's name without its ending.
    pub name: String,
    /// The comparison with what is expected.
    pub outcome: SpecOutcome,
    /// What the isolation tester would print.
    pub output: String,
}

/// The comparison of a specification's output with the files of expected ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpecOutcome {
    /// One of them is the same.
    AsExpected,
    /// None is.
    Differs,
    /// There is none.
    Unknown,
    /// It couldn't be run to its end; the reason.
    Failed(String),
}

impl SpecRun {
    /// The outcome of output, of which `expected` are the possible ones.
    pub fn compared(name: String, output: String, expected: &[String]) -> SpecRun {
        let outcome = match expected {
            [] => SpecOutcome::Unknown,
            some if some.contains(&output) => SpecOutcome::AsExpected,
            _ => SpecOutcome::Differs,
        };
        SpecRun { name, outcome, output }
    }

    const fn mark(&self) -> &'static str {
        match self.outcome {
            SpecOutcome::AsExpected => "as expected",
            SpecOutcome::Differs => "differs",
            SpecOutcome::Unknown => "run",
            SpecOutcome::Failed(_) => "failed",
        }
    }
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
    let title = capital(subjects.first().map_or("isolation", |subject| subject.matrix.tests.title()));
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
                    b { "n/a" } " can't be executed there, and " b { "?" } " was decided neither way; the reason is below. "
                    b { "BROKEN" } " is permitted against the promise that is named above the table, "
                    b { "limitation" } " the same as a known one. Made by " (generator) "."
                }
                @for level in &levels { (of_level(level, subjects, &anomalies)) }
                h2 { "Witnesses" }
                @for cell in &anomalies { (witnesses(cell, subjects)) }
                (specifications(subjects))
                (limitations(subjects))
            }
        }
    };
    page.into_string() + "\n"
}

/// A text that begins with a capital letter.
fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
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

/// A column of a table: the servers that have it in common, and its marks.
struct Column<'a> {
    servers: Vec<&'a str>,
    marks: Vec<&'static str>,
}

/// The columns of servers, the same ones together.
fn columns<'a>(of: impl Iterator<Item = (&'a str, Vec<&'static str>)>) -> Vec<Column<'a>> {
    let mut columns: Vec<Column<'a>> = Vec::new();
    for (server, marks) in of {
        match columns.iter_mut().find(|column| column.marks == marks) {
            Some(column) => column.servers.push(server),
            None => columns.push(Column { servers: vec![server], marks }),
        }
    }
    columns
}

/// A table with a row for each name.
fn table(what: &str, names: &[Markup], columns: &[Column<'_>]) -> Markup {
    html! {
        table {
            tr {
                th { (what) }
                @for column in columns { th { @for server in &column.servers { div { (server) } } } }
            }
            @for (number, name) in names.iter().enumerate() {
                tr {
                    td { (name) }
                    @for column in columns {
                        @let shown = column.marks.get(number).copied().unwrap_or_default();
                        td class=[matches!(shown, "BROKEN" | "differs").then_some("bad")] {
                            (if shown == "-" { "–" } else { shown })
                        }
                    }
                }
            }
        }
    }
}

/// The table of a level.
fn of_level(level: &str, subjects: &[Subject], anomalies: &[&Cell]) -> Markup {
    let probed =
        |anomaly: &&&Cell| subjects.iter().any(|subject| cell_of(subject, level, &anomaly.name).is_some());
    let anomalies: Vec<&&Cell> = anomalies.iter().filter(probed).collect();
    let marks = |subject: &Subject| -> Vec<&'static str> {
        let other =
            if row_of(subject, level).is_some_and(|row| row.cells.is_empty()) { "refused" } else { "" };
        let cell = |anomaly: &&&Cell| cell_of(subject, level, &anomaly.name).map_or(other, mark);
        anomalies.iter().map(cell).collect()
    };
    let columns = columns(subjects.iter().map(|subject| (subject.name.as_str(), marks(subject))));
    let name = |anomaly: &&&Cell| html! { a href=(format!("#{}", id(anomaly))) { (label(anomaly)) } };
    let names: Vec<Markup> = anomalies.iter().map(name).collect();
    html! {
        h2 { (level) }
        @for (servers, answer) in answers(level, subjects) {
            p {
                @if servers.len() == subjects.len() && servers.len() > 1 { "every server" } @else { (servers.join("; ")) }
                ": " (answer) "."
            }
        }
        @if !names.is_empty() { (table("anomaly", &names, &columns)) }
    }
}

/// The answer of each server to the request for a level, and the promise; servers with the same one
/// together.
fn answers<'a>(level: &str, subjects: &'a [Subject]) -> Vec<(Vec<&'a str>, String)> {
    let mut answers: Vec<(Vec<&str>, String)> = Vec::new();
    for (subject, row) in subjects.iter().filter_map(|subject| Some((subject, row_of(subject, level)?))) {
        let answer = match (&row.promised, row.cells.is_empty()) {
            // "… requested: the server refuses it: …"
            (_, true) => row.sentence.split_once(": ").map_or("", |(_, why)| why).to_owned(),
            (Some(promised), _) => {
                format!(
                    "the server says {}; {} promises {promised}",
                    row.effective,
                    subject.matrix.promiser()
                )
            }
            (None, _) => format!("the server says {}, so nothing is held against it", row.effective),
        };
        match answers.iter_mut().find(|(_, known)| *known == answer) {
            Some((servers, _)) => servers.push(&subject.name),
            None => answers.push((vec![&subject.name], answer)),
        }
    }
    answers
}

/// The user's specifications: how they compare with what is expected, and the output of those that don't.
fn specifications(subjects: &[Subject]) -> Markup {
    let run: Vec<&Subject> = subjects.iter().filter(|subject| !subject.specs.is_empty()).collect();
    let Some(first) = run.first() else { return html! {} };
    let names: Vec<Markup> = first.specs.iter().map(|spec| html! { (spec.name) }).collect();
    let marks = |subject: &&Subject| subject.specs.iter().map(SpecRun::mark).collect();
    let columns = columns(run.iter().map(|subject| (subject.name.as_str(), marks(subject))));
    let shown = run.iter().flat_map(|subject| subject.specs.iter().map(move |spec| (subject, spec)));
    let shown = shown.filter(|(_, spec)| spec.outcome != SpecOutcome::AsExpected);
    html! {
        h2 { "Specifications" }
        p { "Specifications of PostgreSQL's isolation tester at the server's default level, compared with the files of expected output beside them." }
        (table("specification", &names, &columns))
        @for (subject, spec) in shown {
            details {
                summary {
                    b { (spec.mark()) } ": " (spec.name) ", " (subject.name)
                    @if let SpecOutcome::Failed(why) = &spec.outcome { ": " (why) }
                }
                pre { (spec.output) }
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
                    (at(places, subjects.len()))
                }
                pre { (steps) }
            }
        }
    }
}

/// Servers and levels: "every server at read committed; PostgreSQL 18.6 at serializable".
fn at(places: &[(&str, Vec<&str>)], all: usize) -> String {
    let mut by_levels: Vec<(&[&str], Vec<&str>)> = Vec::new();
    for (server, levels) in places {
        match by_levels.iter_mut().find(|(known, _)| known == levels) {
            Some((_, servers)) => servers.push(server),
            None => by_levels.push((levels, vec![server])),
        }
    }
    let place = |(levels, servers): &(&[&str], Vec<&str>)| {
        let who =
            if servers.len() == all && all > 1 { "every server".to_owned() } else { servers.join("; ") };
        format!("{who} at {}", levels.join(", "))
    };
    by_levels.iter().map(place).collect::<Vec<_>>().join("; ")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_that_show_the_same_are_together() {
        let rows = [("a", vec!["-", "permitted"]), ("b", vec!["-", "-"]), ("c", vec!["-", "permitted"])];
        let found = columns(rows.into_iter());
        let servers: Vec<Vec<&str>> = found.into_iter().map(|column| column.servers).collect();
        assert_eq!(servers, [vec!["a", "c"], vec!["b"]]);
        let levels = vec!["read committed"];
        assert_eq!(at(&[("a", levels.clone()), ("b", levels.clone())], 2), "every server at read committed");
        assert_eq!(
            at(&[("a", levels.clone()), ("b", vec!["serializable"])], 3),
            "a at read committed; b at serializable"
        );
    }

    fn subject(name: &str, product: &str, row: LevelRow) -> Subject {
        let matrix = Matrix {
            probe_version: crate::judge::VERSION,
            product: product.to_owned(),
            version: "1".to_owned(),
            tests: crate::anomalies::Tests::Anomalies,
            tables: crate::Tables::Ordinary,
            levels: vec![row],
            complete: true,
            incomplete_reason: None,
        };
        Subject { name: name.to_owned(), matrix, transcript: Transcript::default(), specs: Vec::new() }
    }

    /// The reader sees by which promise each server is measured, and which levels a server refuses.
    #[test]
    fn each_server_has_its_promise_above_the_table() {
        let level = isobench_isolation::Level::Serializable;
        let row = |product, effective: &str| {
            let effective = isobench_isolation::EffectiveLevel::from_setting(effective);
            let probed = crate::judge::ProbedLevel { product, level, effective };
            let probe = &crate::anomalies::PROBES[0];
            let outcome = CellOutcome::Prevented("blocked at step w2".to_owned());
            let cell = crate::judge::cell(probe, &probed, outcome, None);
            crate::judge::row(&probed, 1, vec![(probe, cell)])
        };
        let (h2, unknown) = (&isobench_database::products::H2, &isobench_database::products::UNKNOWN);
        let subjects = [
            subject("H2 2.5", h2.name, row(h2, "serializable")),
            subject("Duck", unknown.name, row(unknown, "")),
            subject("Other", unknown.name, row(unknown, "serializable")),
            subject("Small", unknown.name, crate::judge::refused(level, "no such level")),
        ];
        let page = certificate(&subjects, "isobench");
        for part in [
            "<p>H2 2.5: the server says serializable; its manual promises snapshot isolation.</p>",
            "<p>Duck: the server says unknown, so nothing is held against it.</p>",
            "<p>Other: the server says serializable; the level's name promises serializable.</p>",
            "<p>Small: the server refuses it: no such level.</p>",
            "<td>refused</td>",
        ] {
            assert!(page.contains(part), "no {part} in {page}");
        }
    }

    #[test]
    fn output_is_compared_with_each_expected_one() {
        let outcome = |expected: &[&str]| {
            let expected: Vec<String> = expected.iter().map(|text| (*text).to_owned()).collect();
            SpecRun::compared("s".to_owned(), "x".to_owned(), &expected).outcome
        };
        assert_eq!(outcome(&["y", "x"]), SpecOutcome::AsExpected);
        assert_eq!(outcome(&["y"]), SpecOutcome::Differs);
        assert_eq!(outcome(&[]), SpecOutcome::Unknown);
    }
}
