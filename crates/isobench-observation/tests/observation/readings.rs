//! Two readers of SQL are compared: isobench's own, and the server's tree of the same statement.

use std::collections::BTreeSet;
use std::fmt::Write;

use isobench_database::Asked;
use isobench_observation::templates;
use isobench_script::{Symbols, parse};
use isobench_testkit::golden::expect;

use crate::support;
use crate::workloads::{installed, load};

/// Of the statements that isobench believes to understand, those in which the server reads more
/// (tests/corpus/readings.txt), and how many have been compared.
#[test]
fn the_server_reads_no_more_than_isobench_believes_to_understand() {
    let test = "the_server_reads_no_more_than_isobench_believes_to_understand";
    let Some((_server, mut connection)) = installed(test) else { return };
    connection.execute(&std::fs::read_to_string(support::corpus().join("schema.sql")).unwrap()).unwrap();
    let own = load(&mut connection);
    let (mut compared, mut understood) = (0, 0);
    let mut found = String::new();
    for (section, statement) in support::statements() {
        let mut symbols = Symbols::new();
        let Ok(script) = parse("s", &format!("{statement};\n"), &mut symbols) else { continue };
        let scripts = [script];
        let mut both = own.clone();
        both.read_statements(&scripts, &mut Asked(&mut connection)).unwrap();
        compared += both.readings.as_ref().map_or(0, std::collections::BTreeMap::len);
        let read = |catalog| templates(&scripts, &symbols, catalog, &BTreeSet::new()).statements;
        for (alone, together) in read(&own).into_iter().zip(read(&both)) {
            if alone.unknown.is_some() {
                continue;
            }
            understood += usize::from(both.readings.iter().flatten().any(|(_, read)| read.is_ok()));
            if let Some(why) = together.unknown {
                writeln!(found, "{section}: {statement}\n    {why}").unwrap();
            }
        }
    }
    writeln!(found, "{understood} statements are understood by both").unwrap();
    assert!(compared > 300, "{compared}");
    expect(support::corpus().join("readings.txt"), &found);
}
