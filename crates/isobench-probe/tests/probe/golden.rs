//! The parsed form of specifications, and the errors of invalid ones: `golden/specs.txt` has blocks
//! of text and result.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use isobench_probe::{Marker, Spec};
use isobench_testkit::golden;

/// The number of interleavings shown.
const SHOWN: usize = 6;

#[test]
fn specifications_are_read_as_recorded() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/specs.txt");
    let recorded = fs::read_to_string(&path).expect("the file");
    let mut found = String::new();
    for block in recorded.split(">>>\n").skip(1) {
        let (text, _) = block.split_once("<<<\n").expect("a text and its outcome");
        let outcome =
            Spec::parse("x.spec", text).map_or_else(|error| format!("{error}\n"), |spec| describe(&spec));
        write!(found, ">>>\n{text}<<<\n{outcome}").expect("a text");
    }
    golden::expect(path, &found);
}

fn describe(spec: &Spec) -> String {
    let mut text = String::new();
    let mut line = |words: String| writeln!(text, "{words}").expect("a text");
    for sql in &spec.setup {
        line(format!("setup {sql:?}"));
    }
    for session in &spec.sessions {
        line(format!("session {:?} setup {:?} teardown {:?}", session.name, session.setup, session.teardown));
        for step in &session.steps {
            line(format!("  step {:?} {:?}", step.name, step.sql));
        }
    }
    if let Some(sql) = &spec.teardown {
        line(format!("teardown {sql:?}"));
    }
    for permutation in spec.permutations().take(SHOWN) {
        let name = |id| spec.step(id).name.as_str();
        let launches = permutation.iter().map(|launch| {
            let markers = launch.markers.iter().map(|marker| match *marker {
                Marker::Waiting => "(*)".to_owned(),
                Marker::Step(step) => format!("({})", name(step)),
                Marker::Notices(step, count) => format!("({} notices {count})", name(step)),
            });
            format!("{}{}", name(launch.step), markers.collect::<String>())
        });
        line(format!("permutation {}", launches.collect::<Vec<_>>().join(" ")));
    }
    for step in spec.unused() {
        line(format!("unused {step}"));
    }
    text
}
