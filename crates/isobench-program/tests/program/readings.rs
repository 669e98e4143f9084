//! Which statements the server reads so that isobench knows all that they may do.

use std::collections::BTreeSet;
use std::fmt::Write;

use isobench_database::Asked;
use isobench_program::templates;
use isobench_script::{Symbols, parse};
use isobench_testkit::golden::expect;

use crate::support::{corpus, golden, installed, load, statements};

/// The statements of the corpus that may do anything (tests/corpus/readings.txt), with the reasons.
#[test]
fn statements_that_may_do_anything_are_few() {
    let Some((_server, mut connection)) = installed("statements_that_may_do_anything_are_few") else {
        return;
    };
    connection.execute(&std::fs::read_to_string(corpus().join("schema.sql")).unwrap()).unwrap();
    let mut catalog = load(&mut connection);
    let (mut found, mut understood) = (String::new(), 0);
    for (section, statement) in statements() {
        let mut symbols = Symbols::new();
        let Ok(script) = parse("s", &format!("{statement};\n"), &mut symbols) else { continue };
        let scripts = [script];
        catalog.read_statements(&scripts, &mut Asked(&mut connection)).unwrap();
        for statement in templates(&scripts, &symbols, &catalog, &BTreeSet::new()).statements {
            match statement.unknown {
                Some(why) => writeln!(found, "{section}: {}\n    {why}", statement.text).unwrap(),
                None => understood += 1,
            }
        }
    }
    writeln!(found, "all is known of {understood} statements").unwrap();
    assert!(understood > 300, "{understood}");
    expect(golden("readings.txt"), &found);
}
