//! The levels that are proved for sets of which too much was proved once (tests/corpus/proved.txt).

use std::collections::BTreeSet;
use std::fmt::Write;

use isobench_database::Asked;
use isobench_pgwire::Connection;
use isobench_program::{Templates, templates};
use isobench_robustness::{Struck, allocate};
use isobench_script::{Symbols, parse};
use isobench_testkit::golden::expect;

use crate::support::{connected, golden, installed, load};

/// The number of databases in which sets are read at a time.
const DATABASES: usize = 4;

#[test]
fn no_more_is_proved_than_what_is_understood() {
    let Some((server, mut connection)) = installed("no_more_is_proved_than_what_is_understood") else {
        return;
    };
    let path = golden("proved.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let (head, sets) = text.split_once("===== ").unwrap();
    let sets: Vec<&str> = sets.split("\n===== ").collect();
    let share = sets.len().div_ceil(DATABASES);
    let found: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = sets
            .chunks(share)
            .enumerate()
            .map(|(number, sets)| {
                let database = format!("sets_{number}");
                connection.execute(&format!("CREATE DATABASE {database}")).unwrap();
                let mut own = connected(&server, &database);
                scope.spawn(move || sets.iter().map(|set| proved(set, &mut own)).collect::<String>())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    expect(path, &format!("{head}{}", found.concat()));
}

/// A set with the levels that are proved for it.
fn proved(set: &str, connection: &mut Connection) -> String {
    let (given, _) = set.rsplit_once("--> ").unwrap();
    let mut sections = given.split("--- ");
    let (_, setup) = sections.next().unwrap().split_once('\n').unwrap();
    connection
        .execute("DROP SCHEMA IF EXISTS proved CASCADE; CREATE SCHEMA proved; SET search_path = proved")
        .unwrap();
    connection.execute(setup).unwrap();
    let mut catalog = load(connection);
    let mut symbols = Symbols::new();
    let scripts: Vec<_> = sections
        .map(|section| {
            let (name, text) = section.split_once('\n').unwrap();
            parse(name, text, &mut symbols).unwrap()
        })
        .collect();
    catalog.read_statements(&scripts, &mut Asked(connection)).unwrap();
    let Templates { programs, carried, .. } = templates(&scripts, &symbols, &catalog, &BTreeSet::new());
    let allocated = allocate(&programs, &Struck::new());
    let level = |number: usize| {
        let unprotected = allocated.unprotected.iter().any(|one| one.program == number);
        if unprotected { "none".to_owned() } else { allocated.levels[number].to_string() }
    };
    let levels: Vec<String> = programs
        .iter()
        .enumerate()
        .map(|(number, program)| format!("{}: {}", program.name, level(number)))
        .collect();
    let mut found = format!("===== {given}--> {}", levels.join(", "));
    for one in carried {
        let (read, written) = (one.read, one.written);
        write!(found, "; line {} of {} carries a value to line {}", read.line, read.file, written.line)
            .unwrap();
    }
    found.push('\n');
    found
}
