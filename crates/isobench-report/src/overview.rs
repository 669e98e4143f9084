//! Many results on a terminal, a row for each.
//!
//! Not here: what a row says (`isobench_result::ResultRow`).

use isobench_result::ResultRow;
use isobench_result::view::{Entry, Heading, Table};
use isobench_result::words::enumerated;

use crate::text::layout;

/// Renders results for a terminal of `width` columns; `duration` says how long one took.
pub fn overview(rows: &[ResultRow], width: usize, duration: impl Fn(u64) -> String) -> String {
    let columns = Heading::all(&[
        ("result", false),
        ("tags", false),
        ("recommended", false),
        ("server", false),
        ("workload and levels", false),
        ("took", true),
        ("machine", false),
    ]);
    let entries = rows.iter().map(|row| entries(row, &row.seconds.map_or_else(String::new, &duration)));
    let lines = layout::lines(&Table::new(columns, entries), width);
    // No heading has a second line.
    let shown = lines.iter().enumerate().filter(|(index, line)| *index != 1 || !line.trim().is_empty());
    let lines: Vec<&str> = shown.map(|(_, line)| line.trim_end()).collect();
    lines.join("\n") + "\n"
}

fn entries(row: &ResultRow, duration: &str) -> Vec<Entry> {
    let stacked = |items: &[String]| Entry::Stack(items.iter().map(|item| item.as_str().into()).collect());
    let answer = match row.recommended.as_slice() {
        _ if !row.complete => "INCOMPLETE".to_owned(),
        [] => "none".to_owned(),
        some => enumerated(some),
    };
    let broken = (row.promise_kept == Some(false)).then(|| Entry::grave("BROKEN"));
    vec![
        row.name.as_str().into(),
        stacked(&row.tags),
        Entry::Stack(std::iter::once(Entry::from(answer)).chain(broken).collect()),
        stacked(&row.servers),
        stacked(&[row.workloads.as_slice(), row.levels.as_slice()].concat()),
        duration.into(),
        stacked(&row.machine),
    ]
}
