//! The outputs that the manual shows are generated: each block after a line `<!-- report of FILE -->`
//! is what `isobench report FILE` prints of a result in `docs/examples`, at 80 columns; of
//! `<!-- report of FILE, first N lines -->` the first lines.
//!
//! `docs/examples/record` measures the results again; `ISOBENCH_BLESS=1` writes the blocks anew.

use std::fs;

use isobench_report::render;
use isobench_result::Document;
use isobench_testkit::golden::blessing;

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

#[test]
fn the_outputs_shown_are_generated() {
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
