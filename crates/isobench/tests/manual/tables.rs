//! The tables of the manual are whole: each row ends with a bar, has as many cells as its heading, and no
//! text follows right below it, as if a cell had been wrapped.

use crate::markdown::{files, lines};

/// The number of cells of a row, in which `\|` is a bar within a cell; `None` for a line outside of tables.
fn cells(line: &str) -> Option<usize> {
    let row = line.trim().strip_prefix('|')?.replace("\\|", "");
    Some(row.strip_suffix('|').unwrap_or(&row).split('|').count())
}

/// What is broken in the tables of a text, with the numbers of the lines.
fn broken(text: &str) -> Vec<String> {
    let (mut found, mut width) = (Vec::new(), None::<usize>);
    for (index, (fenced, line)) in lines(text).enumerate() {
        let row = if fenced { None } else { cells(line) };
        let ends = fenced || line.trim().is_empty() || line.starts_with("<!--");
        let why = match (row, width) {
            (Some(_), _) if !line.trim_end().ends_with('|') => "no bar at the end",
            (Some(count), Some(wanted)) if count != wanted => "not as many cells as in the heading",
            (None, Some(_)) if !ends => "text right below a table",
            _ => "",
        };
        if !why.is_empty() {
            found.push(format!("{}: {why}: {line}", index + 1));
        }
        width = row.map(|count| width.unwrap_or(count));
    }
    found
}

#[test]
fn tables_of_the_manual_are_whole() {
    let (mut wrong, mut rows) = (Vec::new(), 0);
    for (path, text) in files() {
        if !path.starts_with("docs") {
            continue;
        }
        rows += lines(&text).filter(|(fenced, line)| !fenced && cells(line).is_some()).count();
        wrong.extend(broken(&text).into_iter().map(|why| format!("{}:{why}", path.display())));
    }
    assert!(rows > 300, "only {rows} rows found: the test looks in the wrong place");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_wrapped_row_is_broken() {
    assert!(broken("| a | b |\n|---|---|\n| 1 | 2 |\n\ntext\n").is_empty());
    assert!(broken("| a |\n|---|\n| 1 \\| 2 |\n").is_empty());
    assert_eq!(broken("| a | b |\n|---|---|\n| 1 | 2\n3 |\n").len(), 2);
    assert_eq!(broken("| a |\n|---|\n| 1 | 2 |\n").len(), 1);
}
