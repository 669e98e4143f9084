//! The certificate: for each level which server permits which anomaly, with each witness step by step. One
//! model, which a page and a Markdown text lay out.
//!
//! | file | holds |
//! |---|---|
//! | `markdown` | the text that people paste into an issue |
//! | `page` | the page |

mod markdown;
mod page;

use isobench_probe::anomalies::Tests;
use isobench_probe::{Cell, CellOutcome, KnownLimitation, LevelRow, Part, SpecOutcome, SpecRun, Subject};
use isobench_result::words::capital;

pub use markdown::MARKDOWN_START;

/// The layout of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateLayout {
    /// An HTML page.
    Page,
    /// GitHub-flavoured Markdown.
    Markdown,
}

/// Makes the certificate. `generator` is the program with its version.
pub fn certificate(subjects: &[Subject], generator: &str, layout: CertificateLayout) -> String {
    let certificate = Certificate::of(subjects, generator);
    match layout {
        CertificateLayout::Page => page::write(&certificate),
        CertificateLayout::Markdown => markdown::write(&certificate),
    }
}

/// The marks and their meaning.
const LEGEND: [(&str, &str); 6] = [
    ("permitted", "was shown, and its steps are below"),
    ("–", "was prevented in that interleaving, which proves nothing about others"),
    ("n/a", "can't be executed there; the reason is below"),
    ("?", "was decided neither way; the reason is below"),
    ("BROKEN", "is permitted against the promise that is named above the table"),
    ("limitation", "is the same, and known of the product"),
];

/// What was executed.
const METHOD: &str =
    "For each row one interleaving of a few sessions was executed, step by step, at each level.";

/// What the specifications are.
const SPECIFICATIONS: &str = "Specifications of PostgreSQL's isolation tester at the server's default level, \
    compared with the files of expected output beside them.";

/// What is shown, in the order of the page.
struct Certificate<'a> {
    title: String,
    generator: &'a str,
    levels: Vec<AtLevel<'a>>,
    witnesses: Vec<OfAnomaly<'a>>,
    specs: Option<Specifications<'a>>,
    limitations: Vec<&'a KnownLimitation>,
}

/// The anomalies that servers permit at a level.
struct AtLevel<'a> {
    level: &'a str,
    /// The answers to the request for it, each with its servers.
    answers: Vec<String>,
    tables: Vec<Table<'a>>,
}

/// A table with a row for each name, and a column for servers that have all marks in common.
struct Table<'a> {
    what: &'static str,
    /// Names, and the anchors of their witnesses.
    rows: Vec<(String, Option<String>)>,
    columns: Vec<Column<'a>>,
}

/// The servers of a column, and its marks.
struct Column<'a> {
    servers: Vec<&'a str>,
    marks: Vec<&'static str>,
}

/// The outcomes of an anomaly on all servers.
struct OfAnomaly<'a> {
    anchor: String,
    label: String,
    phenomenon: &'a str,
    shown: Vec<Shown<'a>>,
}

/// What several servers and levels have in common.
struct Shown<'a> {
    outcome: &'a CellOutcome,
    steps: &'a str,
    /// "every server at read committed; PostgreSQL 18.6 at serializable"
    places: String,
}

/// The user's specifications.
struct Specifications<'a> {
    table: Table<'a>,
    /// Those whose output isn't as expected, with the server's name.
    shown: Vec<(&'a str, &'a SpecRun)>,
}

impl<'a> Certificate<'a> {
    fn of(subjects: &'a [Subject], generator: &'a str) -> Certificate<'a> {
        let first = subjects.first().and_then(|subject| subject.parts.first());
        let mut limitations: Vec<&KnownLimitation> = Vec::new();
        for (_, _, limitation) in parts(subjects).flat_map(|part| part.matrix.limited()) {
            if !limitations.iter().any(|known| known.why == limitation.why) {
                limitations.push(limitation);
            }
        }
        Certificate {
            title: capital(first.map_or("isolation", |part| part.matrix.tests.title())),
            generator,
            levels: requested(subjects).into_iter().map(|level| AtLevel::of(level, subjects)).collect(),
            witnesses: collections(subjects)
                .into_iter()
                .flat_map(|tests| cells(subjects, tests).into_iter().map(move |cell| (tests, cell)))
                .map(|(tests, cell)| OfAnomaly::of(cell, tests, subjects))
                .collect(),
            specs: Specifications::of(subjects),
            limitations,
        }
    }
}

fn parts(subjects: &[Subject]) -> impl Iterator<Item = &Part> {
    subjects.iter().flat_map(|subject| &subject.parts)
}

/// The levels that were asked for, in their order.
fn requested(subjects: &[Subject]) -> Vec<&str> {
    let mut levels: Vec<&str> = Vec::new();
    for row in parts(subjects).flat_map(|part| &part.matrix.levels) {
        if !levels.contains(&row.requested.as_str()) {
            levels.push(&row.requested);
        }
    }
    levels
}

/// The collections of interleavings, in their order.
fn collections(subjects: &[Subject]) -> Vec<Tests> {
    let mut collections = Vec::new();
    for part in parts(subjects) {
        if !collections.contains(&part.matrix.tests) {
            collections.push(part.matrix.tests);
        }
    }
    collections
}

/// A cell of each anomaly of a collection, in their order.
fn cells(subjects: &[Subject], tests: Tests) -> Vec<&Cell> {
    let own = parts(subjects).filter(|part| part.matrix.tests == tests);
    let mut longest: Vec<&LevelRow> = own.flat_map(|part| &part.matrix.levels).collect();
    longest.sort_by_key(|row| std::cmp::Reverse(row.cells.len()));
    let mut cells: Vec<&Cell> = Vec::new();
    for cell in longest.iter().flat_map(|row| &row.cells) {
        if !cells.iter().any(|known| known.name == cell.name) {
            cells.push(cell);
        }
    }
    cells
}

fn part_of(subject: &Subject, tests: Tests) -> Option<&Part> {
    subject.parts.iter().find(|part| part.matrix.tests == tests)
}

fn row_of<'a>(part: &'a Part, level: &str) -> Option<&'a LevelRow> {
    part.matrix.levels.iter().find(|row| row.requested == level)
}

fn cell_of<'a>(part: &'a Part, level: &str, name: &str) -> Option<&'a Cell> {
    row_of(part, level)?.cells.iter().find(|cell| cell.name == name)
}

impl<'a> AtLevel<'a> {
    fn of(level: &'a str, subjects: &'a [Subject]) -> AtLevel<'a> {
        let tables = collections(subjects).into_iter().map(|tests| anomalies(level, subjects, tests));
        let tables = tables.filter(|table| !table.rows.is_empty()).collect();
        AtLevel { level, answers: answers(level, subjects), tables }
    }
}

/// The table of a level and a collection.
fn anomalies<'a>(level: &str, subjects: &'a [Subject], tests: Tests) -> Table<'a> {
    let of = |subject: &'a Subject| Some((subject.name.as_str(), part_of(subject, tests)?));
    let probed: Vec<(&str, &Part)> = subjects.iter().filter_map(of).collect();
    let mut cells = cells(subjects, tests);
    cells.retain(|cell| probed.iter().any(|(_, part)| cell_of(part, level, &cell.name).is_some()));
    let marks = |part: &Part| -> Vec<&'static str> {
        let refused = row_of(part, level).is_some_and(|row| row.cells.is_empty());
        let other = if refused { "refused" } else { "" };
        let mark = |cell: &&Cell| cell_of(part, level, &cell.name).map_or(other, Cell::mark);
        cells.iter().map(mark).map(|mark| if mark == "-" { "–" } else { mark }).collect()
    };
    Table {
        what: tests.one(),
        rows: cells.iter().map(|cell| (cell.label(), Some(anchor(cell)))).collect(),
        columns: columns(probed.iter().map(|(name, part)| (*name, marks(part)))),
    }
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

impl Table<'_> {
    /// The marks of a row, from left to right.
    fn marks(&self, row: usize) -> impl Iterator<Item = &'static str> {
        self.columns.iter().map(move |column| column.marks.get(row).copied().unwrap_or_default())
    }
}

/// True for a mark that stands out.
fn is_bad(mark: &str) -> bool {
    matches!(mark, "BROKEN" | "differs")
}

/// The answer of each server to the request for a level, and the promise; servers with the same one
/// together.
fn answers(level: &str, subjects: &[Subject]) -> Vec<String> {
    let mut answers: Vec<(Vec<&str>, String)> = Vec::new();
    for subject in subjects {
        let found = subject.parts.iter().find_map(|part| Some((part, row_of(part, level)?)));
        let Some((part, row)) = found else { continue };
        let answer = match (&row.promised, row.cells.is_empty()) {
            // "… requested: the server refuses it: …"
            (_, true) => row.sentence.split_once(": ").map_or("", |(_, why)| why).to_owned(),
            (Some(promised), _) => {
                format!("the server says {}; {} promises {promised}", row.effective, part.matrix.promiser())
            }
            (None, _) => format!("the server says {}, so nothing is held against it", row.effective),
        };
        match answers.iter_mut().find(|(_, known)| *known == answer) {
            Some((servers, _)) => servers.push(&subject.name),
            None => answers.push((vec![&subject.name], answer)),
        }
    }
    answers
        .iter()
        .map(|(servers, answer)| format!("{}: {answer}.", together(servers, subjects.len())))
        .collect()
}

/// Servers in words; `all` is the number of all of them.
fn together(servers: &[&str], all: usize) -> String {
    if servers.len() == all && all > 1 { "every server".to_owned() } else { servers.join("; ") }
}

/// The anchor of an anomaly's witnesses.
fn anchor(cell: &Cell) -> String {
    let letter =
        |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    cell.name.chars().map(letter).collect()
}

impl<'a> OfAnomaly<'a> {
    /// What each server shows of an anomaly, those together that show the same.
    fn of(anomaly: &'a Cell, tests: Tests, subjects: &'a [Subject]) -> OfAnomaly<'a> {
        let mut found: Vec<(&CellOutcome, &str, Places<'_>)> = Vec::new();
        for (subject, part) in subjects.iter().filter_map(|one| Some((one, part_of(one, tests)?))) {
            for row in &part.matrix.levels {
                let Some(cell) = row.cells.iter().find(|cell| cell.name == anomaly.name) else { continue };
                let steps = part.transcript.of(&row.requested, &cell.name);
                let (name, level) = (subject.name.as_str(), row.requested.as_str());
                match found
                    .iter_mut()
                    .find(|(outcome, known, _)| *outcome == &cell.outcome && *known == steps)
                {
                    None => found.push((&cell.outcome, steps, vec![(name, vec![level])])),
                    Some((_, _, places)) => match places.iter_mut().find(|(known, _)| *known == name) {
                        Some((_, levels)) => levels.push(level),
                        None => places.push((name, vec![level])),
                    },
                }
            }
        }
        let shown = found.into_iter().map(|(outcome, steps, places)| Shown {
            outcome,
            steps,
            places: at(&places, subjects.len()),
        });
        OfAnomaly {
            anchor: anchor(anomaly),
            label: anomaly.label(),
            phenomenon: &anomaly.phenomenon,
            shown: shown.collect(),
        }
    }
}

/// Servers, each with levels.
type Places<'a> = Vec<(&'a str, Vec<&'a str>)>;

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
        format!("{} at {}", together(servers, all), levels.join(", "))
    };
    by_levels.iter().map(place).collect::<Vec<_>>().join("; ")
}

impl<'a> Specifications<'a> {
    fn of(subjects: &'a [Subject]) -> Option<Specifications<'a>> {
        let run: Vec<&Subject> = subjects.iter().filter(|subject| !subject.specs.is_empty()).collect();
        let rows = run.first()?.specs.iter().map(|spec| (spec.name.clone(), None)).collect();
        let marks = |subject: &&'a Subject| subject.specs.iter().map(SpecRun::mark).collect();
        let columns = columns(run.iter().map(|subject| (subject.name.as_str(), marks(subject))));
        let all = run
            .iter()
            .flat_map(|subject| subject.specs.iter().map(move |spec| (subject.name.as_str(), spec)));
        let shown = all.filter(|(_, spec)| spec.outcome != SpecOutcome::AsExpected).collect();
        Some(Specifications { table: Table { what: "specification", rows, columns }, shown })
    }
}

#[cfg(test)]
mod tests {
    use isobench_probe::{Matrix, PromiseComparison, Tables, Transcript};

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

    /// A server on which one anomaly shows `outcome` at serializable; without one the server refuses the level.
    fn subject(name: &str, product: &str, promised: Option<&str>, outcome: Option<CellOutcome>) -> Subject {
        let cell = |outcome: CellOutcome| Cell {
            name: "G2-item".to_owned(),
            known_as: "write_skew".to_owned(),
            phenomenon: "unnamed".to_owned(),
            standard_excludes: true,
            manual_excludes: Some(true),
            standing: match outcome {
                CellOutcome::Permitted(_) => PromiseComparison::Weaker,
                _ => PromiseComparison::AsPromised,
            },
            outcome,
            after_transactions: None,
            known_limitation: None,
        };
        let row = LevelRow {
            requested: "serializable".to_owned(),
            effective: promised.map_or("unknown", |_| "serializable").to_owned(),
            promised: promised.map(str::to_owned),
            cells: outcome.into_iter().map(cell).collect(),
            not_contradicted: Vec::new(),
            sentence: "serializable requested: the server refuses it: no such level".to_owned(),
        };
        let matrix = Matrix {
            probe_version: isobench_probe::VERSION,
            product: product.to_owned(),
            version: "1".to_owned(),
            tests: Tests::Anomalies,
            tables: Tables::Ordinary,
            levels: vec![row],
            complete: true,
            incomplete_reason: None,
        };
        let parts = vec![Part { matrix, transcript: Transcript::default() }];
        Subject { name: name.to_owned(), parts, specs: Vec::new() }
    }

    fn several() -> [Subject; 4] {
        let prevented = || Some(CellOutcome::Prevented("blocked at step w2".to_owned()));
        let permitted = CellOutcome::Permitted("T1 <and> T2".to_owned());
        [
            subject("H2 2.5", "H2", Some("snapshot isolation"), prevented()),
            subject("Duck", "unknown", None, prevented()),
            subject("a|b_", "unknown", Some("serializable"), Some(permitted)),
            subject("Small", "unknown", None, None),
        ]
    }

    /// The reader sees by which promise each server is measured, and which levels a server refuses.
    #[test]
    fn each_server_has_its_promise_above_the_table() {
        let page = certificate(&several(), "isobench", CertificateLayout::Page);
        for part in [
            "<p>H2 2.5: the server says serializable; its manual promises snapshot isolation.</p>",
            "<p>Duck: the server says unknown, so nothing is held against it.</p>",
            "<p>a|b_: the server says serializable; the level's name promises serializable.</p>",
            "<p>Small: the server refuses it: no such level.</p>",
            "<td>refused</td>",
            "<td class=\"bad\">BROKEN</td>",
        ] {
            assert!(page.contains(part), "no {part} in {page}");
        }
    }

    #[test]
    fn markdown_says_the_same() {
        let text = certificate(&several(), "isobench 1.2", CertificateLayout::Markdown);
        for part in [
            "<!-- isobench: certificate -->\n",
            "\nH2 2.5: the server says serializable; its manual promises snapshot isolation.\n",
            "\nDuck: the server says unknown, so nothing is held against it.\n",
            "\na\\|b\\_: the server says serializable; the level's name promises serializable.\n",
            "\nSmall: the server refuses it: no such level.\n",
            "| anomaly | H2 2.5<br>Duck | a\\|b\\_ | Small |\n| --- | --- | --- | --- |\n\
             | G2-item, write\\_skew | – | **BROKEN** | refused |\n",
            "\n- **prevented**: blocked at step w2. H2 2.5; Duck at serializable\n",
            "<summary><b>permitted</b>: T1 &lt;and&gt; T2. a|b_ at serializable</summary>\n",
            "Made by isobench 1.2.",
        ] {
            assert!(text.contains(part), "no {part} in {text}");
        }
    }
}
