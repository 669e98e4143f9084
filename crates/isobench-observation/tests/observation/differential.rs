//! Random statements, as written against as sent, on two copies of the same tables: the author's
//! columns, the tags, the values of sequences, the final tables and the order in which triggers fire
//! have to be the same.
//!
//! `ISOBENCH_DIFFERENTIAL_STATEMENTS` is their number, `ISOBENCH_DIFFERENTIAL_SEED` the first seed.
//! Each statement has a seed of its own, which a failure
//! prints with both texts.

mod copy;
mod statement;

use crate::support::{self, Seen};
use copy::Copy;
use isobench_pgserver::{Server, ServerOptions};
use isobench_script::{Piece, Sql};
use isobench_testkit::installed::{postgresql_programs, skip};

/// The number of statements without the variable.
const STATEMENTS: u64 = 2_000;

/// Statements after which the tables are made anew, because rolled back rows make them grow.
const FRESH_AFTER: u64 = 400;

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[test]
fn what_is_sent_does_what_is_written() {
    let Some(bin) = postgresql_programs().filter(|folder| folder.join("postgres").exists()) else {
        return skip("what_is_sent_does_what_is_written", "no installed PostgreSQL (pg_config)");
    };
    // Nothing but the statements changes what plans depend on.
    let settings = vec![("autovacuum".to_owned(), "off".to_owned())];
    let options = ServerOptions { bin: Some(bin), settings, ..ServerOptions::default() };
    let server = Server::start(&options, &mut |_| {}).expect("the installed server starts");
    let first = number("ISOBENCH_DIFFERENTIAL_SEED", 1);
    let count = number("ISOBENCH_DIFFERENTIAL_STATEMENTS", STATEMENTS);
    let (mut written, mut sent) = (Copy::make(&server, "written"), Copy::make(&server, "sent"));
    let mut tally = Tally::default();
    let mut failures = Vec::new();
    for seed in first..first + count {
        if (seed - first).is_multiple_of(FRESH_AFTER) {
            written.renew();
            sent.renew();
        }
        let text = statement::random(seed);
        if let Err(why) = check(&mut written, &mut sent, &text, &mut tally) {
            failures.push(format!("ISOBENCH_DIFFERENTIAL_SEED={seed}: {why}"));
            // What differs once may differ from now on.
            written.renew();
            sent.renew();
        }
        if failures.len() == 10 {
            break;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    eprintln!("{tally:?}");
    assert!(
        count < STATEMENTS
            || tally.failed < count / 4 && tally.sent > count / 4 && tally.changed > count / 100,
        "of {count} statements: {tally:?}"
    );
}

/// What became of the statements.
#[derive(Debug, Default)]
struct Tally {
    /// The server refuses them.
    failed: u64,
    /// They are sent differently.
    sent: u64,
    /// They would be, but their plans would change.
    changed: u64,
}

/// Runs a statement in both copies.
fn check(written: &mut Copy, sent: &mut Copy, text: &str, tally: &mut Tally) -> Result<(), String> {
    let seen = support::see(text, sent.catalog());
    // What is sent as written does what is written.
    let Some(forms) = seen.observed.forms.first() else { return Ok(()) };
    if sent.compare(forms).is_some() {
        tally.changed += 1;
        return Ok(());
    }
    tally.sent += 1;
    let appended = seen.sql.observed.first().map_or(0, |observed| usize::from(observed.appended));
    let (original, changed) = (plain(&seen.original), plain(&seen.sql));
    let left = written.run(&original, 0);
    let right = sent.run(&changed, appended);
    tally.failed += u64::from(left.is_err());
    if left == right {
        return Ok(());
    }
    let changes = match (&left, &right) {
        (Ok(left), Ok(right)) => left.differences(right).join("\n  "),
        _ => format!("as written: {left:?}\n  as sent: {right:?}"),
    };
    Err(format!("{}\n  written: {original}\n  sent: {changed}\n  {changes}", describe(&seen)))
}

fn describe(seen: &Seen) -> String {
    let dark = seen.observed.statements.iter().flat_map(|statement| &statement.dark);
    dark.map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The text of the simple protocol; there are no variables.
fn plain(sql: &Sql) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Variable { written, .. } => written.clone(),
    };
    sql.pieces.iter().map(piece).collect()
}
