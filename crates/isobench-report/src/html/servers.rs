//! The page of many servers: what each level costs and what it keeps, server by server.
//!
//! Not here: what is in it (`isobench_result::ServerMatrix`).

use maud::{Markup, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::part::scrolling;
use super::sheet::{Part, sheet, warnings};
use isobench_result::numbers::count;
use isobench_result::{ServerEntry, ServerMatrix, ServerRow};

/// What the entries mean, a sentence each.
const MEANING: [&str; 6] = [
    "Throughput: committed transactions per second, relative to the first level of the same result, paired by round. \
     The range is an interval of 95 % confidence.",
    "Conflicts: attempts that failed by a serialization failure or a deadlock, of all attempts.",
    "Verdict: the strongest consistency models that the histories of the counted transactions don't contradict. \
     Anomalies are proven; their absence is not.",
    "The day and the machine are those of the client, which may be the server's, too. Older results of the same level \
     are linked below it.",
    "Results of different machines show how levels compare on each, not how fast servers are.",
    "Each entry leads to its result, which isobench report shows in full.",
];

/// The page.
pub fn servers(matrix: &ServerMatrix) -> String {
    let parts: [Part; 2] = [
        ("matrix", "What each level costs, and what it keeps", table(matrix)),
        ("meaning", "What the entries mean", html! { ul { @for text in MEANING { li { (text) } } } }),
    ];
    let facts = [("Rows".to_owned(), count(matrix.rows.len() as u64))];
    let last = "Results of different measurement versions are left out.";
    sheet("Isolation levels of many servers", &facts, &parts, last)
}

fn table(matrix: &ServerMatrix) -> Markup {
    let caption = "A row for each server and workload, with the newest result of each level.";
    if matrix.rows.is_empty() {
        return html! { (warnings(&matrix.left_out)) p { "There is no result to show." } };
    }
    let markup = html! {
        table class="fit" {
            caption { (caption) }
            thead {
                tr {
                    th scope="col" { "server" }
                    th scope="col" { "workload" }
                    th scope="col" class="number" { "clients" }
                    @for level in &matrix.levels { th scope="col" { (level) } }
                }
            }
            tbody { @for row in &matrix.rows { (of_server(row, &matrix.levels)) } }
        }
    };
    html! { (warnings(&matrix.left_out)) (scrolling(caption, &markup)) }
}

fn of_server(row: &ServerRow, levels: &[String]) -> Markup {
    html! {
        tr {
            th scope="row" { (row.server) }
            td { (row.workload) }
            td class="number" { (count(row.clients.into())) }
            @for level in levels { (row.entries.get(level).map_or_else(|| html! { td { "–" } }, entry)) }
        }
    }
}

fn entry(entry: &ServerEntry) -> Markup {
    let ratio = match (entry.ratio, entry.low, entry.high) {
        (Some(ratio), Some(low), Some(high)) if (low, high) != (1.0, 1.0) => {
            format!("{ratio:.2} × ({low:.2}–{high:.2})")
        }
        (Some(_), Some(_), Some(_)) => "first".to_owned(),
        (Some(ratio), ..) => format!("{ratio:.2} ×"),
        (None, ..) => "measured".to_owned(),
    };
    let lines = entry.verdict.iter().chain(&entry.tables);
    html! {
        td class=[entry.broken.then_some("brand")] {
            a href=(address(&entry.file)) { (ratio) }
            @if entry.broken { " " span class="below" { "PROMISE BROKEN" } }
            @for line in lines { " " span class="below" { (line) } }
            " " span class="below" { (format!("{:.1} %", entry.conflicts * 100.0)) " conflicts" }
            " " span class="below" { (measured(entry)) }
            @if !entry.older.is_empty() {
                " " span class="below" {
                    "older:"
                    @for (index, file) in entry.older.iter().enumerate() {
                        " " a href=(address(file)) { (index + 1) }
                    }
                }
            }
        }
    }
}

/// When and on which machine an entry was measured.
fn measured(entry: &ServerEntry) -> String {
    let day = entry.started_at.as_deref().and_then(|time| time.get(..10));
    let known = [day.unwrap_or_default(), &entry.machine].into_iter().filter(|text| !text.is_empty());
    known.collect::<Vec<_>>().join(", ")
}

/// What stays as it is in a path: letters, digits, `-._~` and `/` (RFC 3986).
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// A relative path as an address: whatever a file is called, it stays a path below the page.
fn address(path: &str) -> String {
    format!("./{}", utf8_percent_encode(path, PATH))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn entries_lead_to_their_files_and_names_are_never_markup() {
        let entry = ServerEntry {
            ratio: Some(0.5),
            low: Some(0.4),
            high: Some(0.6),
            to: Some("read committed".to_owned()),
            conflicts: 0.25,
            verdict: vec!["<i>".to_owned()],
            tables: Vec::new(),
            broken: true,
            file: "a b/javascript:x\".json".to_owned(),
            started_at: Some("2026-01-02T03:04:05Z".to_owned()),
            machine: "<s>, 2 cores".to_owned(),
            older: vec!["older one.json".to_owned()],
        };
        let row = ServerRow {
            server: "<b>".to_owned(),
            workload: "orders".to_owned(),
            clients: 8,
            entries: BTreeMap::from([("serializable".to_owned(), entry)]),
        };
        let levels = vec!["read committed".to_owned(), "serializable".to_owned()];
        let page = servers(&ServerMatrix { levels, rows: vec![row], left_out: vec!["<u>".to_owned()] });
        assert!(!page.contains("<b>") && !page.contains("<i>") && !page.contains("<u>"), "{page}");
        assert!(page.contains("2026-01-02, &lt;s&gt;, 2 cores"), "{page}");
        assert!(page.contains("older: <a href=\"./older%20one.json\">1</a>"), "{page}");
        assert!(page.contains("<a href=\"./a%20b/javascript%3Ax%22.json\">0.50 × (0.40–0.60)</a>"), "{page}");
        assert!(
            page.contains("PROMISE BROKEN")
                && page.contains("25.0 % conflicts")
                && page.contains("<td>–</td>")
        );
    }
}
