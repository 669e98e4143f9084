//! The matrix for people: an overview, the details of each level, and a line for each level.

use std::fmt::Write as _;

use crate::judge::{Cell, LevelRow, Matrix, Outcome, Standing};

/// Renders the matrix.
pub fn render(matrix: &Matrix) -> String {
    let mut out = format!("{} {}: which anomalies each level permits\n\n", matrix.product, matrix.version);
    overview(&mut out, matrix);
    for row in matrix.levels.iter().filter(|row| !row.cells.is_empty()) {
        details(&mut out, row);
    }
    out.push('\n');
    for row in &matrix.levels {
        // Writing to a String can't fail.
        let _ = writeln!(out, "{}", row.sentence);
    }
    for (row, cell) in matrix.broken() {
        let _ = writeln!(
            out,
            "BROKEN: {} promises {}, but {} ({}) is permitted",
            row.requested, row.promised, cell.known_as, cell.name
        );
    }
    out
}

/// One line for each anomaly, one column for each level.
fn overview(out: &mut String, matrix: &Matrix) {
    let all = matrix.levels.iter().max_by_key(|row| row.cells.len());
    let Some(all) = all else { return };
    let width = all.cells.iter().map(|cell| label(cell).chars().count()).max().unwrap_or(0);
    let _ = write!(out, "{:width$}", "");
    for row in &matrix.levels {
        let _ = write!(out, "  {}", row.requested);
    }
    out.push('\n');
    for cell in &all.cells {
        let mut line = format!("{:width$}", label(cell));
        for row in &matrix.levels {
            let found = row.cells.iter().find(|other| other.name == cell.name);
            let _ = write!(line, "  {:1$}", found.map_or("", mark), row.requested.len());
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn label(cell: &Cell) -> String {
    if cell.name == cell.known_as { cell.name.clone() } else { format!("{}, {}", cell.name, cell.known_as) }
}

fn mark(cell: &Cell) -> &'static str {
    match (&cell.outcome, cell.standing) {
        (Outcome::Permitted(_), Standing::Weaker) => "BROKEN",
        (Outcome::Permitted(_), _) => "permitted",
        (Outcome::Prevented(_), _) => "-",
        (Outcome::NotApplicable(_), _) => "n/a",
        (Outcome::Undecided(_), _) => "?",
    }
}

/// What happened at one level, anomaly by anomaly.
fn details(out: &mut String, row: &LevelRow) {
    let _ = write!(
        out,
        "\n{}: the server says {}, its manual promises {}\n",
        row.requested, row.effective, row.promised
    );
    let columns: Vec<[String; 4]> = row
        .cells
        .iter()
        .map(|cell| {
            [label(cell), excluded(cell.standard_excludes), excluded(cell.manual_excludes), what(cell)]
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

fn excluded(excluded: bool) -> String {
    if excluded { "excluded" } else { "possible" }.to_owned()
}

fn what(cell: &Cell) -> String {
    let after = cell
        .after_transactions
        .map_or_else(String::new, |count| format!(", with {count} transactions committed in between"));
    let (word, how) = match &cell.outcome {
        Outcome::Permitted(how) => ("permitted", how),
        Outcome::Prevented(how) => ("prevented", how),
        Outcome::NotApplicable(how) => ("not applicable", how),
        Outcome::Undecided(how) => ("undecided", how),
    };
    let mark = match cell.standing {
        Standing::Weaker => " (WEAKER than promised)",
        Standing::Stronger => " (stronger than promised)",
        Standing::AsPromised | Standing::Open => "",
    };
    format!("{word}: {how}{after}{mark}")
}

#[cfg(test)]
mod tests {
    use isobench_isolation::{EffectiveLevel, Guarantee, Level, Model};

    use super::*;
    use crate::anomalies::PROBES;
    use crate::judge::{VERSION, cell, refused, row};

    #[test]
    fn each_kind_of_cell_has_its_mark_and_its_words() {
        let promised = Guarantee::of(Model::ReadCommitted);
        let outcomes = [
            Outcome::Prevented("blocked at step w2".to_owned()),
            Outcome::Permitted("T2 read 101".to_owned()),
            Outcome::NotApplicable("42601 at step r2".to_owned()),
            Outcome::Undecided("it took too long".to_owned()),
        ];
        let cells = PROBES.iter().zip(outcomes);
        let level = Level::ReadCommitted;
        let cells =
            cells.map(|(probe, outcome)| (probe, cell(probe, level, promised, outcome, None))).collect();
        let matrix = Matrix {
            probe_version: VERSION,
            product: "Sample".to_owned(),
            version: "1".to_owned(),
            levels: vec![
                row(level, &EffectiveLevel::Unknown, promised, cells),
                refused(Level::Serializable, Guarantee::of(Model::Serializable), "no such level\nindeed"),
            ],
            complete: true,
        };
        let expected = "\
Sample 1: which anomalies each level permits

                                read committed  serializable
G0, dirty write                 -
G1a, aborted read               BROKEN
G1b, intermediate read          n/a
G1c, circular information flow  ?

read committed: the server says unknown, its manual promises read committed
  anomaly                         standard  manual    here
  G0, dirty write                 excluded  excluded  prevented: blocked at step w2
  G1a, aborted read               excluded  excluded  permitted: T2 read 101 (WEAKER than promised)
  G1b, intermediate read          excluded  excluded  not applicable: 42601 at step r2
  G1c, circular information flow  excluded  excluded  undecided: it took too long

read committed asked, runs read uncommitted: aborted read permitted (2 of 4 anomalies could be probed)
serializable asked: the server refuses it: no such level
BROKEN: read committed promises read committed, but aborted read (G1a) is permitted
";
        assert_eq!(render(&matrix), expected);
    }
}
