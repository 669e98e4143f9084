//! `isobench report --tables`, read by the programs that it is for: every recipe of the guide is run
//! on the files of a real comparison, and the figures are the document's.
//!
//! Not here: what is in each line (`crates/isobench-report/tests`).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use isobench_testkit::installed::{python_with, skip};
use serde_json::{Value, json};

use crate::compare::words;
use crate::support::document::{self, cells, count, number};
use crate::support::program::{Finished, Running};
use crate::support::scene::Scene;

/// Runs the SQL of a JSON file in one session, and prints a list of rows for each as JSON.
const DUCKDB: &str = "
import duckdb, json, sys
session = duckdb.connect()
tables = []
# JSON has no NaN, which is what a slope through equal values is.
plain = lambda value: None if value != value else value
for block in json.load(open(sys.argv[1])):
    table = session.sql(block)
    tables.append([dict(zip(table.columns, map(plain, row))) for row in table.fetchall()])
json.dump(tables, sys.stdout, default=str)
";

/// The blocks of the guide in a language.
fn blocks(language: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/analysing-results.md");
    let text = fs::read_to_string(page).expect("the page");
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().expect("an end").to_owned()).collect()
}

/// Rows by the first column that no other table has.
struct Tables(Vec<Vec<Value>>);

impl Tables {
    fn with(&self, column: &str) -> &[Value] {
        let found = self.0.iter().find(|rows| rows.first().is_some_and(|row| row.get(column).is_some()));
        found.unwrap_or_else(|| panic!("no table has rows with {column}: {:#?}", self.0))
    }
}

/// A scene with a result, `old`, its recordings and tables, and a log.
fn measured(test: &str) -> Option<Scene> {
    let scene = Scene::with_database(test)?;
    for command in [
        "compare -w registers:keys=20 --levels rc,ser --clients 4 --transactions 150 --warmup 0.2 --rounds 3 --results old \
         --history recordings",
        "report old --tables tables --transactions recordings",
        "init --workload registers",
        "run --workload registers --isolation rc -c 2 -t 50 --log --json log.json",
    ] {
        scene.run(&words(command)).expect(0);
    }
    Some(scene)
}

fn python(scene: &Scene, program: &Path, arguments: &[&str]) -> Finished {
    Running::start(&mut scene.program(program, arguments)).finish().expect(0)
}

fn duckdb(scene: &Scene, program: &Path, sql: &[String]) -> Tables {
    scene.write("blocks.json", &json!(sql).to_string());
    let finished = python(scene, program, &["-c", DUCKDB, "blocks.json"]);
    Tables(serde_json::from_str(&finished.stdout).expect("JSON"))
}

fn is_near(found: f64, wanted: f64, share: f64) -> bool {
    (found - wanted).abs() <= share * wanted.abs()
}

/// The cell with this level.
fn cell<'d>(document: &'d Value, row: &Value) -> &'d Value {
    let found = cells(document).iter().find(|cell| cell["level"]["requested"] == row["level"]);
    found.unwrap_or_else(|| panic!("no cell for {row:#}"))
}

#[test]
fn the_recipes_of_the_guide_give_the_reports_figures() {
    const TEST: &str = "tables::the_recipes_of_the_guide_give_the_reports_figures";
    let program = match python_with("duckdb") {
        Ok(program) => program,
        Err(why) => return skip(TEST, &why),
    };
    let Some(scene) = measured(TEST) else { return };
    let mut sql = blocks("sql");
    assert_eq!(sql.len(), 7, "recipes");
    sql.push(
        "SELECT cell, round, outcome, count(*) AS found_attempts FROM 'tables/transactions.csv' \
         WHERE NOT warmup GROUP BY ALL"
            .to_owned(),
    );
    let tables = duckdb(&scene, &program, &sql);
    let old = document::read(&scene, "old/result.json");

    for row in tables.with("low") {
        for part in ["mean", "low", "high"] {
            let found = number(row, &format!("/{}", if part == "mean" { "tps" } else { part }));
            let wanted = number(cell(&old, row), &format!("/summary/tps/{part}"));
            assert!(is_near(found, wanted, 1e-3), "{part}: {found} and {wanted}");
        }
    }
    let ratios = tables.with("ratios");
    assert_eq!(ratios.len(), 2);
    let (found, wanted) = (number(&ratios[1], "/ratio"), number(&cells(&old)[1], "/summary/ratio/mean"));
    assert!(ratios[1]["level"] == "serializable" && is_near(found, wanted, 1e-6), "{found} and {wanted}");
    latencies_are_the_reports(tables.with("reported_p99_ms"), &old);
    attempts_are_the_documents(tables.with("found_attempts"), &old);
    for row in tables.with("seconds") {
        let counted: u64 =
            cell(&old, row)["rounds"].as_array().expect("rounds").iter().fold(0, |sum, round| {
                let path = if row["outcome"] == "committed" { "committed" } else { "retried" };
                sum + count(round, &format!("/attempts/{path}"))
            });
        assert_eq!(count(row, "/attempts"), counted, "{row}");
    }
    let mut conflicts: BTreeMap<&str, f64> = BTreeMap::new();
    for row in tables.with("conflict_ratio") {
        *conflicts.entry(row["level"].as_str().expect("a level")).or_default() += number(row, "/conflicts");
    }
    let reasons: f64 = tables.with("reason").iter().map(|row| number(row, "/attempts")).sum();
    assert!(reasons > 0.0, "there are conflicts");
    assert_eq!((conflicts["read committed"], conflicts["serializable"]), (0.0, reasons));
    assert_eq!(count(&tables.with("log_p99_ms")[0], "/transactions"), 100);
}

/// The latencies computed from transactions, and the report's.
fn latencies_are_the_reports(rows: &[Value], document: &Value) {
    assert_eq!(rows.len(), 6);
    for row in rows {
        let round = &cell(document, row)["rounds"][usize::try_from(count(row, "/round")).expect("small") - 1];
        assert_eq!(count(row, "/commits"), count(round, "/transactions/committed"));
        // A recording's end is a later reading of the clock, by microseconds; on a busy machine the
        // processor is taken away between the two for some transactions, but not for half of them.
        for (column, path, later) in
            [("p50_ms", "/latency_ms/p50", 5.0), ("p99_ms", "/latency_ms/p99", 1000.0)]
        {
            let (found, wanted) = (number(row, &format!("/{column}")), number(round, path));
            let (least, most) = (0.998 * wanted - 0.002, 1.002 * wanted + later);
            assert!((least..=most).contains(&found), "{column}: {found} and {wanted}");
        }
    }
    assert!(rows.iter().any(|row| count(row, "/most_tries") > 1), "something was tried again: {rows:#?}");
}

/// Every attempt of the measured part is a row.
fn attempts_are_the_documents(rows: &[Value], document: &Value) {
    for row in rows {
        let place = |column| usize::try_from(count(row, column)).expect("small");
        let round = &cells(document)[place("/cell")]["rounds"][place("/round") - 1];
        let bucket = if row["outcome"] == "committed" { "committed" } else { "retried" };
        assert_eq!(count(row, "/found_attempts"), count(round, &format!("/attempts/{bucket}")), "{row}");
    }
    assert!(rows.len() > 6, "{rows:#?}");
}

#[test]
fn polars_and_pandas_read_the_tables() {
    const TEST: &str = "tables::polars_and_pandas_read_the_tables";
    let scripts = blocks("python");
    assert_eq!(scripts.len(), 2);
    let missing = ["polars", "pandas"].into_iter().find_map(|module| python_with(module).err());
    if let Some(why) = missing {
        return skip(TEST, &why);
    }
    let program = python_with("polars").expect("found before");
    let Some(scene) = Scene::with_database(TEST) else { return };
    let measured = "compare --levels rc,ser --clients 2 --transactions 30 --rounds 1 --warmup 0 --results old \
                    --history recordings";
    scene.run(&words(measured)).expect(0);
    scene.run(&words("report old --tables tables --transactions recordings")).expect(0);
    for script in scripts {
        let printed = python(&scene, &program, &["-c", &script]);
        assert!(printed.stdout.contains("serializable"), "{printed:?}");
    }
}

/// A small comparison with recordings.
fn recorded(scene: &Scene) {
    let options = "compare -w registers --levels rr --clients 2 --transactions 20 --rounds 2 --warmup 0 --results a \
                   --history recordings";
    scene.run(&words(options)).expect(0);
}

#[test]
fn nothing_is_overwritten_or_mixed_up() {
    let Some(scene) = Scene::with_database("tables::nothing_is_overwritten_or_mixed_up") else { return };
    recorded(&scene);
    let all = "report a --tables tables --transactions recordings";
    let finished = scene.run(&words(all)).expect(0);
    let finished = finished.says(&["rounds.csv (2 rows)", "transactions.csv ("]);
    assert_eq!(finished.stdout, "");
    assert!(!scene.file("a.html").exists() && !scene.file("report.html").exists(), "only what is asked for");
    let names = || {
        let entries = fs::read_dir(scene.file("tables")).expect("the folder").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(), ["rounds.csv", "series.csv", "transactions.csv"]);
    scene.run(&words(all)).expect(0);
    // Transactions of an earlier export would be taken for those of this one.
    scene.run(&words("report a --tables tables")).expect(1).says(&["--tables: ", "another export"]);

    // A recording that is cut short, or isn't this result's: everything stays as it was.
    let before = fs::read(scene.file("tables/rounds.csv")).expect("the table");
    let first = "recordings/repeatable-read-2-clients-round-1.history";
    let second = "recordings/repeatable-read-2-clients-round-2.history";
    let whole = fs::read(scene.file(first)).expect("a recording");
    fs::write(scene.file(first), &whole[..whole.len() - 1]).expect("a file");
    scene.run(&words(all)).expect(1).says(&["--transactions: ", first, "it ends within"]);
    fs::remove_file(scene.file(first)).expect("removed");
    scene.run(&words(all)).expect(1).says(&["--transactions: there is no \"repeatable-read-2", "round 1"]);
    let one = format!("report a --tables tables --transactions {second}");
    fs::write(scene.file("tables/rounds.csv"), "mine").expect("a file");
    scene.run(&words(&one)).expect(1).says(&["--tables: ", "isn't overwritten"]);
    fs::write(scene.file("tables/rounds.csv"), &before).expect("a file");
    scene.run(&words(&one)).expect(0).says(&["transactions.csv ("]);
    assert_eq!(names().len(), 3, "no temporary file is left");

    scene.write("other.history", "T1: r x = 1\n");
    for (options, said) in [
        ("report a --tables tables --transactions other.history", "isn't named as a recording"),
        ("report a --transactions recordings", "--tables <FOLDER>"),
        ("report a a --tables tables", "--tables is of one result"),
        ("report a --tables other.history", "--tables: "),
        ("report a --tables -", "standard output is no folder"),
    ] {
        let finished = scene.run(&words(options)).expect(1);
        finished.says(&[said]);
    }
}

#[test]
fn a_recording_of_another_run_is_refused() {
    let Some(scene) = Scene::with_database("tables::a_recording_of_another_run_is_refused") else { return };
    recorded(&scene);
    // The same cells again, of another length: the files have the same names.
    let again = "compare -w registers --levels rr --clients 2 --transactions 30 --rounds 2 --warmup 0 --results b \
                 --history recordings";
    scene.run(&words(again)).expect(0);
    let finished = scene.run(&words("report a --tables tables --transactions recordings")).expect(1);
    finished.says(&["--transactions: ", "it is of another run"]);
    assert_eq!(fs::read_dir(scene.file("tables")).expect("the folder").count(), 0, "nothing is half there");
    scene.run(&words("report b --tables tables --transactions recordings")).expect(0);
    scene
        .run(&words("compare -w registers --levels rr --clients 1 -t 5 --rounds 1 --warmup 0 --results c"))
        .expect(0);
    let finished = scene.run(&words("report c --tables c --transactions recordings")).expect(1);
    finished.says(&["the result names no recordings"]);
}
