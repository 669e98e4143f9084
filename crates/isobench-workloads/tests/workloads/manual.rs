//! The manual page on workloads describes each of them as the program does. `ISOBENCH_BLESS=1`
//! updates the descriptions.

use std::fs;
use std::path::Path;

use isobench_testkit::golden;
use isobench_workloads::all;

#[test]
fn the_page_describes_every_workload() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/workloads.md");
    let mut text = fs::read_to_string(&path).expect("the page can be read");
    for workload in all() {
        let name = workload.name;
        assert!(text.contains(&format!("\n## {name}\n")), "the page has no section {name}");
        golden::fill(&mut text, name, &workload.describe());
    }
    golden::expect(path, &text);
}
