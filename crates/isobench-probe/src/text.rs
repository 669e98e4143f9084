//! The matrix as text: an overview, the details of each level, and a summary of each level.

use std::fmt::Write as _;

use crate::judge::{Cell, LevelRow, Matrix, PromiseComparison};
use crate::tables::Tables;

/// Renders the matrix.
pub fn render(matrix: &Matrix) -> String {
    let kind =
        if matrix.tables == Tables::Ordinary { String::new() } else { format!(", {} tables", matrix.tables) };
    let title = matrix.tests.title();
    let mut out = format!("{} {}{kind}: {title}\n\n", matrix.product, matrix.version);
    overview(&mut out, matrix);
    for row in matrix.levels.iter().filter(|row| !row.cells.is_empty()) {
        details(&mut out, row, matrix.promiser());
    }
    out.push('\n');
    for row in &matrix.levels {
        // Writing to a String can't fail.
        let _ = writeln!(out, "{}", row.sentence);
    }
    for (row, cell) in matrix.broken() {
        let _ = writeln!(out, "BROKEN: {}", against(row, cell));
    }
    for (row, cell, known) in matrix.limited() {
        let _ = writeln!(
            out,
            "KNOWN LIMITATION of {} (seen in {}): {}, because {}\nTo see it in two psql sessions:\n",
            known.product,
            known.seen_in.join(", "),
            against(row, cell),
            known.why
        );
        out.push_str(&known.reproduction);
    }
    out
}

/// An anomaly that is permitted, and the promise against it.
fn against(row: &LevelRow, cell: &Cell) -> String {
    let level = if row.effective == row.requested {
        row.requested.clone()
    } else {
        format!("{}, which runs as {},", row.requested, row.effective)
    };
    let promised = row.promised.as_deref().unwrap_or("nothing");
    format!("{level} promises {promised}, but {} ({}) is permitted", cell.known_as, cell.name)
}

/// The overview: one line for each anomaly, one column for each level.
fn overview(out: &mut String, matrix: &Matrix) {
    let all = matrix.levels.iter().max_by_key(|row| row.cells.len());
    let Some(all) = all else { return };
    let width = all.cells.iter().map(|cell| cell.label().chars().count()).max().unwrap_or(0);
    let _ = write!(out, "{:width$}", "");
    for row in &matrix.levels {
        let _ = write!(out, "  {}", row.requested);
    }
    out.push('\n');
    for cell in &all.cells {
        let mut line = format!("{:width$}", cell.label());
        for row in &matrix.levels {
            let found = row.cells.iter().find(|other| other.name == cell.name);
            let _ = write!(line, "  {:1$}", found.map_or("", Cell::mark), row.requested.len());
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// The outcomes at one level, one line for each anomaly.
fn details(out: &mut String, row: &LevelRow, promiser: &str) {
    let promised = match &row.promised {
        Some(promised) => format!("{promiser} promises {promised}"),
        None => "so its promise is unknown, and nothing is compared".to_owned(),
    };
    let _ = write!(out, "\n{}: the server says {}, {promised}\n", row.requested, row.effective);
    let columns: Vec<[String; 4]> = row
        .cells
        .iter()
        .map(|cell| {
            let manual = cell.manual_excludes.map_or("unknown", excluded);
            [cell.label(), excluded(cell.standard_excludes).to_owned(), manual.to_owned(), what(cell)]
        })
        .collect();
    let header = ["anomaly", "standard", "manual", "here"].map(str::to_owned);
    let lines: Vec<&[String; 4]> = std::iter::once(&header).chain(&columns).collect();
    let width = |index: usize| lines.iter().map(|line| line[index].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    for [name, standard, manual, here] in lines {
        let _ =
            writeln!(out, "  {name:0$}  {standard:1$}  {manual:2$}  {here}", widths[0], widths[1], widths[2]);
    }
}

fn excluded(excluded: bool) -> &'static str {
    if excluded { "excluded" } else { "possible" }
}

fn what(cell: &Cell) -> String {
    let after = cell
        .after_transactions
        .map_or_else(String::new, |count| format!(", with {count} transactions committed in between"));
    let (word, how) = cell.outcome.words();
    let mark = match cell.standing {
        PromiseComparison::Weaker => " (WEAKER than promised)",
        PromiseComparison::KnownLimitation => " (weaker than promised: a known limitation)",
        PromiseComparison::Stronger => " (stronger than promised)",
        PromiseComparison::AsPromised | PromiseComparison::Open => "",
    };
    format!("{word}: {how}{after}{mark}")
}

#[cfg(test)]
mod tests {
    use isobench_database::Product;
    use isobench_database::products::{COCKROACHDB, POSTGRESQL};
    use isobench_isolation::{EffectiveLevel, Level};

    use super::*;
    use crate::anomalies::{PROBES, Takes, Tests};
    use crate::judge::{CellOutcome, ProbedLevel, VERSION, cell, refused, row};

    fn matrix(levels: Vec<LevelRow>) -> Matrix {
        Matrix {
            probe_version: VERSION,
            product: "Sample".to_owned(),
            version: "1".to_owned(),
            tests: Tests::Anomalies,
            tables: Tables::Ordinary,
            levels,
            complete: true,
            incomplete_reason: None,
        }
    }

    fn probed(product: &'static Product, level: Level, effective: &str) -> ProbedLevel {
        ProbedLevel { product, level, effective: EffectiveLevel::from_setting(effective) }
    }

    #[test]
    fn each_kind_of_cell_has_its_mark_and_its_words() {
        let outcomes = [
            CellOutcome::Prevented("blocked at step w2".to_owned()),
            CellOutcome::Permitted("T2 read 101".to_owned()),
            CellOutcome::NotApplicable("42601 at step r2".to_owned()),
            CellOutcome::Undecided("it took too long".to_owned()),
        ];
        let probed = probed(&POSTGRESQL, Level::ReadCommitted, "read committed");
        let cells = PROBES.iter().zip(outcomes);
        let cells = cells.map(|(probe, outcome)| (probe, cell(probe, &probed, outcome, None))).collect();
        let matrix =
            matrix(vec![row(&probed, 4, cells), refused(Level::Serializable, "no such level\nindeed")]);
        let expected = "\
Sample 1: which anomalies each level permits

                                read committed  serializable
G0, dirty write                 -
G1a, aborted read               BROKEN
G1b, intermediate read          n/a
G1c, circular information flow  ?

read committed: the server says read committed, its manual promises read committed
  anomaly                         standard  manual    here
  G0, dirty write                 excluded  excluded  prevented: blocked at step w2
  G1a, aborted read               excluded  excluded  permitted: T2 read 101 (WEAKER than promised)
  G1b, intermediate read          excluded  excluded  not applicable: 42601 at step r2
  G1c, circular information flow  excluded  excluded  undecided: it took too long

read committed requested, runs read uncommitted: aborted read permitted (2 of 4 anomalies could be probed)
serializable requested: the server refuses it: no such level
BROKEN: read committed promises read committed, but aborted read (G1a) is permitted
";
        assert_eq!(render(&matrix), expected);
    }

    /// The end of the text about a permitted anomaly.
    fn permitted(probed: &ProbedLevel, name: &str) -> String {
        let probe = PROBES.iter().find(|probe| probe.name == name).expect("the probe");
        let cell = cell(
            probe,
            probed,
            CellOutcome::Permitted("it shows".to_owned()),
            (probe.takes == Takes::Transactions).then_some(610),
        );
        let text = render(&matrix(vec![row(probed, 1, vec![(probe, cell)])]));
        text.split_once("\n\n").map_or(String::new(), |(_, text)| text.to_owned())
    }

    #[test]
    fn a_broken_promise_is_that_of_the_level_that_runs() {
        let raised = permitted(&probed(&COCKROACHDB, Level::ReadCommitted, "serializable"), "G2-item");
        let expected = "BROKEN: read committed, which runs as serializable, promises serializable, \
                        but write skew (G2-item) \
                        is permitted\n";
        assert!(raised.ends_with(expected), "{raised}");
        let unknown = permitted(&probed(&COCKROACHDB, Level::Serializable, ""), "G2-item");
        assert!(
            unknown.contains(
                "serializable: the server says unknown, so its promise is unknown, and nothing is compared\n"
            ),
            "{unknown}"
        );
        assert!(!unknown.contains("BROKEN") && !unknown.contains("WEAKER"), "{unknown}");
    }

    #[test]
    fn a_known_limitation_comes_with_its_reproduction() {
        let probed = probed(&POSTGRESQL, Level::Serializable, "serializable");
        let text = permitted(&probed, "G2-item, summarised");
        let expected = "KNOWN LIMITATION of PostgreSQL (seen in 10.4 to 18.6, 19rc1): serializable \
                        promises serializable, but write \
                        skew after summarisation (G2-item, summarised) is permitted, because PostgreSQL summarises ";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("\nTo see it in two psql sessions:\n\n-- psql 1\nCREATE TABLE "), "{text}");
        assert!(text.contains(" (weaker than promised: a known limitation)\n"), "{text}");
        assert!(text.contains("1..610 LOOP"), "{text}");
    }
}
