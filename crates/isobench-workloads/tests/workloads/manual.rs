//! The manual page on workloads describes each of them as the program does, in short. `ISOBENCH_BLESS=1`
//! updates the descriptions.
//!
//! Not here: what `isobench workloads NAME` prints in full.

use std::fs;
use std::path::Path;

use isobench_testkit::golden;
use isobench_workloads::{Workload, all};

/// The most invariants that are described; of more the page has the names.
const MOST_CONDITIONS: usize = 3;

/// A list of the parts of a workload; the program says what each of them means.
fn summary(workload: &Workload) -> String {
    let code =
        |names: Vec<String>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let parameters = workload.parameters.iter();
    let parameters =
        parameters.map(|parameter| format!("{}={}", parameter.name, parameter.default)).collect();
    let of_variants = workload.variants.iter().flat_map(|variant| variant.invariants);
    // The violations that are counted follow the condition.
    let condition = |meaning: &'static str| meaning.split(';').next().unwrap_or_default().to_owned();
    let invariants: Vec<_> = workload.invariants.iter().chain(of_variants).collect();
    let conditions = if invariants.len() > MOST_CONDITIONS {
        code(invariants.iter().map(|invariant| invariant.name.to_owned()).collect())
    } else {
        let assertions = workload.assertions.iter().map(|assertion| assertion.meaning);
        let meanings = invariants.iter().map(|invariant| invariant.meaning).chain(assertions);
        meanings.map(condition).collect::<Vec<_>>().join("; ")
    };
    let entries = [
        ("Tables", code(workload.tables.iter().map(|&name| name.to_owned()).collect())),
        ("Parameters", code(parameters)),
        ("Variants", code(workload.variants.iter().map(|variant| variant.name.to_owned()).collect())),
        ("Invariants", conditions),
        ("Can't show", workload.blind.to_owned()),
    ];
    let entries = entries.iter().filter(|(_, text)| !text.is_empty());
    let entries = entries.map(|(title, text)| format!("- {title}: {text}\n")).collect::<Vec<_>>().concat();
    format!("{}.\n\n{entries}", workload.summary)
}

#[test]
fn the_page_describes_every_workload() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/workloads.md");
    let mut text = fs::read_to_string(&path).expect("the page can be read");
    for workload in all() {
        let name = workload.name;
        assert!(text.contains(&format!("\n## {name}\n")), "the page has no section {name}");
        golden::fill_with(&mut text, name, &summary(workload));
    }
    golden::expect(path, &text);
}
