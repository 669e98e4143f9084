//! The figures of the example documents as outlines in text, compared with files; and what must be
//! true of any document's.
//!
//! `ISOBENCH_BLESS=1 cargo test -p isobench-report` writes the files anew.

mod contrast;
#[path = "../../../../isobench-result/tests/result/examples/mod.rs"]
mod examples;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use isobench_testkit::golden::{News, expect};

use super::{Figure, course, rates, safety};
use isobench_result::document::{Cell, CellLevel, Document};
use isobench_result::summarise;

/// All figures of a document.
fn figures(document: &Document) -> Vec<Figure> {
    safety(document).into_iter().chain(rates(document)).chain(course(document)).collect()
}

/// A file below the golden ones.
fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The text of an example.
fn example(name: &str) -> String {
    examples::example(name).to_json()
}

fn summarised(text: &str) -> Option<Document> {
    let mut document = Document::from_json(text).ok()?;
    summarise(&mut document);
    Some(document)
}

/// The texts between a start tag and the next tag.
fn texts<'a>(svg: &'a str, class: &str) -> Vec<&'a str> {
    let start = format!("<text class=\"{class}\"");
    let parts = svg.split(start.as_str()).skip(1);
    parts.filter_map(|part| part.split_once('>')?.1.split('<').next()).collect()
}

/// The number of elements of each class.
fn classes(svg: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for part in svg.split("class=\"").skip(1) {
        for class in part.split('"').next().unwrap_or("").split(' ') {
            *counts.entry(class.to_owned()).or_insert(0) += 1;
        }
    }
    counts
}

/// The readable parts of a figure: not the places of its marks.
fn outline(figure: &Figure) -> String {
    let mut text =
        format!("## {}: {}\n\n{}\n\n{}\n", figure.id, figure.title, figure.caption, figure.description);
    let plain = |class: &str| texts(&figure.svg, class).join(" | ");
    let _ = writeln!(text, "\naxes: {} {}", plain("axis"), plain("axis end"));
    let _ = writeln!(text, "labels: {}", plain("label"));
    let _ = writeln!(text, "ticks: {} / {}", plain("tick end"), plain("tick middle"));
    let marks = classes(&figure.svg).into_iter().map(|(class, count)| format!("{class} {count}"));
    let _ = writeln!(text, "marks: {}", marks.collect::<Vec<_>>().join(", "));
    let lines: Vec<&str> = figure.csv.lines().collect();
    let _ = writeln!(text, "data: {} lines", lines.len());
    for line in lines.iter().take(6) {
        let _ = writeln!(text, "  {line}");
    }
    text + "\n"
}

/// Of each example the figures that show something which those before it don't.
#[test]
fn outlines_are_as_expected() {
    let mut news = News::default();
    for (name, document) in examples::all() {
        let outlines: Vec<String> = figures(&document).iter().map(outline).collect();
        expect(golden(&format!("charts/{name}.txt")), &news.of(outlines.iter().map(String::as_str)));
    }
}

/// Checks what must be true of any figures.
fn check(figures: &[Figure]) {
    let mut ids = BTreeSet::new();
    for figure in figures {
        let Figure { id, title, caption, description, legend, svg, csv } = figure;
        for text in [title, caption, description, legend, svg] {
            for word in ["NaN", "inf ", "inf\"", "null", "undefined"] {
                assert!(!text.contains(word), "{id} contains {word}: {text}");
            }
        }
        for text in [title, caption, description] {
            assert!(!text.trim().is_empty(), "{id} lacks words");
        }
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"), "{id}: {svg}");
        for (opened, closed) in
            [("<g ", "</g>"), ("<text ", "</text>"), ("<title", "</title>"), ("<rect ", "</rect>")]
        {
            assert_eq!(svg.matches(opened).count(), svg.matches(closed).count(), "{id}: {opened}");
        }
        for part in svg.split(" id=\"").skip(1) {
            let own = part.split('"').next().unwrap_or("");
            assert!(own.starts_with(id), "{own} of {id} doesn't begin with its figure's name");
            assert!(ids.insert(own.to_owned()), "{own} exists twice");
        }
        for part in svg.split("url(#").skip(1) {
            let target = part.split(')').next().unwrap_or("");
            if target.starts_with(id) {
                assert!(ids.contains(target), "{id} refers to {target}, which doesn't exist");
            }
        }
        for part in svg.split("href=\"#").skip(1).chain(legend.split("href=\"#").skip(1)) {
            let target = part.split('"').next().unwrap_or("");
            assert!(ids.contains(target), "{id} uses {target}, which doesn't exist");
        }
        for part in svg.split("<title>").skip(1) {
            assert!(!part.starts_with('<'), "{id} has an empty tip");
        }
        assert!(
            !svg.contains("style=") && !svg.contains("fill=\"#") && !svg.contains("stroke=\""),
            "{id} has colours"
        );
        let columns = csv.lines().next().unwrap_or("").split(',').count();
        assert!(columns > 1 && csv.ends_with('\n') && csv.lines().count() > 1, "{id}: {csv}");
    }
}

#[test]
fn examples_have_sound_figures() {
    for (name, document) in examples::all() {
        let figures = figures(&document);
        check(&figures);
        let size: usize =
            figures.iter().map(|figure| figure.svg.len() + figure.legend.len() + figure.csv.len()).sum();
        assert!(size < 400_000, "{name}: {size} bytes");
    }
}

#[test]
fn nothing_measured_is_nothing_drawn() {
    for (name, mut document) in examples::all() {
        document.sweeps.clear();
        for cell in &mut document.cells {
            cell.rounds.clear();
        }
        summarise(&mut document);
        assert_eq!(figures(&document), [], "{name}");
    }
}

#[test]
fn rates_that_vary_have_a_figure_of_their_own() {
    let mut document = summarised(&example("many-factors")).expect("an example can be read");
    for cell in &mut document.cells {
        cell.rate = Some(f64::from(cell.clients) * 12.5);
        cell.clients = 8;
    }
    summarise(&mut document);
    let figures = figures(&document);
    check(&figures);
    let ids: Vec<&str> = figures.iter().map(|figure| figure.id).collect();
    assert!(ids.contains(&"against-rate") && !ids.contains(&"against-clients"), "{ids:?}");
    let figure = figures.iter().find(|figure| figure.id == "against-rate").expect("found above");
    assert!(figure.description.contains("at 100 transactions due per s"), "{}", figure.description);
    assert_eq!(classes(&figure.svg).get("line"), Some(&12), "a line for each level, measurement and policy");
}

#[test]
fn a_parameter_may_be_called_like_a_factor() {
    let mut document = summarised(&example("many-factors")).expect("an example can be read");
    for (index, cell) in document.cells.iter_mut().enumerate() {
        let value = if index % 2 == 0 { "few" } else { "many" };
        cell.varied.insert("jobs".to_owned(), value.to_owned());
    }
    summarise(&mut document);
    let figures = figures(&document);
    check(&figures);
    let figure = figures.iter().find(|figure| figure.id == "against-clients").expect("clients vary");
    for heading in ["backoff none, jobs few", "jobs many"] {
        assert!(figure.description.contains(heading), "{heading}: {}", figure.description);
    }
}

#[test]
fn text_of_a_document_is_never_markup() {
    let text = example("many-factors");
    let evil = "</text><script>\\\"&";
    let text = text.replace("tpcb-like", evil).replace("concurrent update", evil).replace("UPDATE", evil);
    let mut document = summarised(&text).expect("it is a document still");
    for (index, cell) in document.cells.iter_mut().enumerate() {
        cell.workload = format!("{}{index}", cell.workload);
        cell.level.effective = isobench_isolation::EffectiveLevel::Other("</title><script>".to_owned());
    }
    summarise(&mut document);
    let figures = figures(&document);
    assert!(figures.len() > 2);
    check(&figures);
    for figure in &figures {
        assert!(!figure.svg.contains("<script>") && !figure.legend.contains("<script>"), "{}", figure.id);
    }
}

#[test]
fn many_cells_are_bounded() {
    let text = example("observed");
    let mut document = summarised(&text).expect("an example can be read");
    let cells: Vec<Cell> = document.cells.clone();
    for clients in 1..5 {
        document.cells.extend(cells.iter().cloned().map(|cell| Cell { clients: 10 * clients, ..cell }));
    }
    let more = document.cells.iter().find_map(|cell| cell.rounds.first()).expect("a round").clone();
    for cell in &mut document.cells {
        let numbers = 10..14;
        cell.rounds.extend(numbers.map(|round| isobench_result::document::Round { round, ..more.clone() }));
    }
    summarise(&mut document);
    let figures = figures(&document);
    check(&figures);
    let size: usize =
        figures.iter().map(|figure| figure.svg.len() + figure.legend.len() + figure.csv.len()).sum();
    assert!(size < 900_000, "{size} bytes for {} cells of seven rounds", document.cells.len());
}

#[test]
fn a_cell_without_anything_is_no_reason_to_panic() {
    let text = example("observed");
    let mut document = summarised(&text).expect("an example can be read");
    let level = CellLevel::new(None, isobench_isolation::EffectiveLevel::Unknown);
    document.cells.insert(0, Cell::new("", level));
    document.plan.levels = None;
    summarise(&mut document);
    check(&figures(&document));
}
