//! Histories of the literature and of other checkers' tests, with the labels that their sources give
//! them: `tests/published/SOURCE.txt`.
//!
//! | line | is |
//! |---|---|
//! | `== NAME` | the beginning of a history, in the text format |
//! | `violates: GUARANTEE; …` | the source says that the history breaks these |
//! | `permits: GUARANTEE; …` | the source says that it keeps these |
//! | `differs: violates GUARANTEE: REASON` | the same, but its definition isn't this checker's |
//!
//! Values only, unless the source states the version order. Each label must be reached, and none of
//! those that differ may be, so that the list of differences stays true.

use std::fs;
use std::path::PathBuf;

use isobench_isolation::check::{Options, Report};
use isobench_isolation::history::text;
use isobench_isolation::{Guarantee, History};

use crate::naive::Case;
use crate::pieces::check;
use crate::{oracle, witness};

/// A labelled history.
pub struct Published {
    /// The source and the name there.
    pub name: String,
    pub history: History,
    pub violates: Vec<Guarantee>,
    pub permits: Vec<Guarantee>,
    /// Violations by another definition.
    pub differs: Vec<Guarantee>,
}

fn guarantees(text: &str) -> Vec<Guarantee> {
    let parse = |name: &str| name.trim().parse().unwrap_or_else(|error| panic!("{name}: {error}"));
    text.split(';').map(parse).collect()
}

fn labelled(source: &str, section: &str) -> Published {
    let (name, lines) = section.split_once('\n').unwrap_or((section, ""));
    let name = format!("{source}, {}", name.trim());
    let (mut violates, mut permits, mut differs) = (Vec::new(), Vec::new(), Vec::new());
    let mut history = String::new();
    for line in lines.lines() {
        if let Some(labels) = line.strip_prefix("violates:") {
            violates.extend(guarantees(labels));
        } else if let Some(labels) = line.strip_prefix("permits:") {
            permits.extend(guarantees(labels));
        } else if let Some(label) = line.strip_prefix("differs: violates ") {
            let (label, reason) = label.split_once(':').unwrap_or_else(|| panic!("{name}: no reason"));
            assert!(reason.trim().len() > 20, "{name}: the reason says too little");
            differs.extend(guarantees(label));
        } else {
            history.push_str(line);
            history.push('\n');
        }
    }
    let history = text::parse(&history).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(violates.len() + permits.len() > 0, "{name} has no label");
    Published { name, history, violates, permits, differs }
}

/// All published histories.
pub fn all() -> Vec<Published> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/published");
    let mut files: Vec<PathBuf> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut all = Vec::new();
    for path in files {
        let source = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{source}: the source is named first");
        all.extend(text.split("\n== ").skip(1).map(|section| labelled(&source, section)));
    }
    all
}

fn contradicts(report: &Report, guarantee: Guarantee) -> bool {
    report.findings.iter().any(|finding| finding.contradicts(guarantee))
}

/// The labels that a report doesn't reach.
fn wrong(published: &Published, report: &Report) -> Vec<String> {
    let named = |what: &str, guarantee: Guarantee| format!("{}: {what} {guarantee}", published.name);
    let missed = published.violates.iter().filter(|it| !contradicts(report, **it));
    let accused = published.permits.iter().filter(|it| contradicts(report, **it));
    let same = published.differs.iter().filter(|it| contradicts(report, **it));
    missed
        .map(|it| named("violates", *it))
        .chain(accused.map(|it| named("is accused of breaking", *it)))
        .chain(same.map(|it| named("needn't differ about", *it)))
        .collect()
}

#[test]
fn all_published_labels_are_reached() {
    let (mut labels, mut differing) = (0, 0);
    let mut wrongs = Vec::new();
    for published in all() {
        let report = check(&published.history, &Options::default());
        labels += published.violates.len() + published.permits.len();
        differing += published.differs.len();
        wrongs.extend(wrong(&published, &report));
        let case = Case::new(&published.history);
        let unsound = witness::verify(&case, &report).err();
        let unsound = unsound.or_else(|| oracle::wrong_verdict(&published.history, &report));
        wrongs.extend(unsound.map(|why| format!("{}: {why}", published.name)));
    }
    println!("{labels} labels, {} not reached, {differing} by other definitions", wrongs.len());
    assert!(labels > 150, "only {labels} labels");
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}

/// No label contradicts the definitions by themselves, applied to every version order.
#[test]
fn published_labels_agree_with_the_definitions() {
    let mut wrongs = Vec::new();
    for published in all().into_iter().filter(|published| published.history.transactions().len() <= 6) {
        let judgement = Case::new(&published.history).judge();
        let open =
            |it: &Guarantee| judgement.open_at_pl1 && it.model == isobench_isolation::Model::ReadUncommitted;
        let mut say = |what: &str, it: Guarantee| wrongs.push(format!("{}: {what} {it}", published.name));
        for &it in published.violates.iter().filter(|it| !open(it)) {
            if judgement.allowed.contains(&it) {
                say("should permit", it);
            }
        }
        for &it in published.permits.iter().chain(&published.differs).filter(|it| !open(it)) {
            if !judgement.allowed.contains(&it) {
                say("should violate", it);
            }
        }
    }
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
}
