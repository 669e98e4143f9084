//! Crates whose manifest builds no unit tests, or no examples of the documentation, have none.
//!
//! Each would take an executable that is linked, or a run of rustdoc, for nothing. One that is written
//! there later would never run, so that it fails here.

use std::fs;
use std::path::{Path, PathBuf};

/// A line of a manifest, and what the sources of its crate don't have then.
const OMITTED: [(&str, &[&str]); 2] = [
    ("\ntest = false\n", &["#[test]", "#[cfg(test)]", "proptest!"]),
    ("\ndoctest = false\n", &["/// ```", "//! ```"]),
];

/// All Rust files in a folder and below.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let of = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    entries.flat_map(of).filter(|path| path.extension().is_some_and(|end| end == "rs")).collect()
}

#[test]
fn what_a_manifest_leaves_out_is_not_there() {
    let crates = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).expect("the crates");
    let mut omitted = 0;
    for folder in crates.map(|entry| entry.expect("a crate").path()) {
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        for (line, marks) in OMITTED.iter().filter(|(line, _)| manifest.contains(line)) {
            omitted += 1;
            for path in sources(&folder.join("src")) {
                let text = fs::read_to_string(&path).expect("a source");
                for mark in *marks {
                    assert!(!text.contains(mark), "{}: {mark} never runs: {}", path.display(), line.trim());
                }
            }
        }
    }
    assert!(omitted > 5, "{omitted} lines of manifests");
}
