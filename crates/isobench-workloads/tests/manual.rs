//! The page on workloads has each of them, as the program describes it. `ISOBENCH_BLESS=1` writes the descriptions anew.

use std::fs;
use std::path::Path;

use isobench_workloads::all;

#[test]
fn the_page_describes_every_workload() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/workloads.md");
    let before = fs::read_to_string(&path).expect("the page can be read");
    let mut text = before.clone();
    for workload in all() {
        let name = workload.name;
        assert!(text.contains(&format!("\n## {name}\n")), "the page has no section {name}");
        let (begin, end) = (format!("<!-- begin: {name} -->\n"), format!("<!-- end: {name} -->"));
        let from = text.find(&begin).unwrap_or_else(|| panic!("the page has no {begin}")) + begin.len();
        let to = from + text[from..].find(&end).unwrap_or_else(|| panic!("the page has no {end}"));
        text.replace_range(from..to, &format!("```text\n{}```\n", workload.describe()));
    }
    if std::env::var_os("ISOBENCH_BLESS").is_some() {
        fs::write(&path, text).expect("the page is writable");
        return;
    }
    assert!(text == before, "docs/reference/workloads.md is out of date; ISOBENCH_BLESS=1 writes it anew");
}
