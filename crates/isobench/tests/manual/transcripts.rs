//! The outputs that the manual shows are generated: each block after a line `<!-- report of FILE -->`
//! is what `isobench report FILE` prints of a result in `docs/examples`, at 80 columns; of
//! `<!-- report of FILE, first N lines -->` the first lines.
//!
//! `docs/examples/record` measures the results again; `ISOBENCH_BLESS=1` takes from them what is not
//! shown, and writes the blocks anew.

use std::fs;

use isobench_report::render;
use isobench_result::{Document, PredicateLocks, ServerSide};
use isobench_testkit::golden::{blessing, expect};

use crate::markdown::{files, root};

/// The width of the blocks, in columns.
const WIDTH: usize = 80;

/// A page with its generated blocks as they should be, and the number of them.
fn generated(text: &str) -> (String, usize) {
    let mut lines = text.split_inclusive('\n');
    let (mut page, mut count) = (String::new(), 0);
    while let Some(line) = lines.next() {
        page.push_str(line);
        let Some(file) = line.trim_end().strip_prefix("<!-- report of ") else { continue };
        let file = file.strip_suffix(" -->").unwrap_or_else(|| panic!("not a comment of one line: {line}"));
        let (file, lines_shown) = file.split_once(", first ").unwrap_or((file, ""));
        let most = lines_shown.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(usize::MAX);
        let saved = fs::read_to_string(root().join("docs/examples").join(file));
        let saved = saved.unwrap_or_else(|error| panic!("docs/examples/{file}: {error}"));
        let document = Document::from_json(&saved).unwrap_or_else(|error| panic!("{file}: {error}"));
        let shown: String =
            render(&document, WIDTH).lines().take(most).flat_map(|line| [line, "\n"]).collect();
        page.extend(["\n```\n", &shown, "```\n"]);
        count += 1;
        // The old block.
        let mut old = lines.by_ref().skip_while(|line| !line.starts_with("```")).skip(1);
        assert!(old.any(|line| line.starts_with("```")), "no block follows {line}");
    }
    (page, count)
}

/// A result as it is kept: without what each round has for every moment, and with few of the server's
/// statistics; the rest, which is most of a file, is shown by pages and not by text. What sessions
/// waited for is summed up, as in one sample. Each round has a line. Where the program lay doesn't matter.
fn kept(mut document: Document) -> String {
    if let Some(program) = document.command.first_mut() {
        "isobench".clone_into(program);
    }
    for round in document.cells.iter_mut().flat_map(|cell| &mut cell.rounds) {
        round.series = None;
        let Some(server) = &mut round.server else { continue };
        for row in &mut server.waits {
            row.sessions = vec![row.sessions.iter().sum()];
        }
        *server = ServerSide {
            at_s: server.at_s.last().copied().into_iter().collect(),
            waits: server.waits.drain(..).filter(|row| row.sessions != [0]).collect(),
            predicate_locks: server.predicate_locks.take().map(|locks| most(&locks)),
            processes: server.processes,
            ..ServerSide::default()
        };
    }
    let text = serde_json::to_string(&document).expect("a result is plain data");
    text.replace(r#"{"round":"#, "\n{\"round\":") + "\n"
}

/// The sample with the most locks.
fn most(locks: &PredicateLocks) -> PredicateLocks {
    let locked = |index: &usize| locks.tuple[*index] + locks.page[*index] + locks.relation[*index];
    let only = |list: &[u64], index: usize| vec![list[index]];
    (0..locks.at_s.len()).max_by_key(locked).map_or_else(PredicateLocks::default, |index| PredicateLocks {
        at_s: vec![locks.at_s[index]],
        tuple: only(&locks.tuple, index),
        page: only(&locks.page, index),
        relation: only(&locks.relation, index),
        ..PredicateLocks::default()
    })
}

/// Checks that the results are as they are kept, or writes them so.
fn keep_results() {
    let folder = root().join("docs/examples");
    let mut count = 0;
    for entry in fs::read_dir(&folder).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let saved = fs::read(&path).expect("the file can be read");
            let document =
                Document::from_json(&saved).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            expect(&path, &kept(document));
            count += 1;
        }
    }
    assert!(count >= 3, "{count} results in {}", folder.display());
}

#[test]
fn the_outputs_shown_are_generated() {
    keep_results();
    let mut count = 0;
    for (path, text) in files() {
        let (page, more) = generated(&text);
        count += more;
        if blessing() && page != text {
            fs::write(root().join(&path), &page).expect("the page can be written");
        } else {
            assert!(page == text, "{}: outdated; ISOBENCH_BLESS=1 writes it anew", path.display());
        }
    }
    assert!(count >= 3, "{count} generated blocks");
}
