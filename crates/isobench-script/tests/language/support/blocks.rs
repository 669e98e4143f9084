//! Golden files: blocks of a script and its expected text.
//!
//! ```text
//! >>> optional remark; "pgbench 17" in it keeps older programs away
//! the script, without its last line's end (an empty line at the end adds one); ␍ is a carriage return
//! <<<
//! the expected text
//! ```

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use isobench_testkit::golden;

pub struct Block {
    pub remark: String,
    pub script: String,
    pub expected: String,
}

impl Block {
    pub fn needs_17(&self) -> bool {
        self.remark.contains("pgbench 17")
    }
}

pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language/golden").join(name)
}

pub fn read(name: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(path(name)).expect("golden file is readable");
    let mut blocks = Vec::new();
    for part in text.split("\n>>>").map(|part| part.strip_prefix(">>>").unwrap_or(part)) {
        let (remark, rest) = part.split_once('\n').expect("a block has a first line");
        let (script, expected) = match rest.split_once("\n<<<\n") {
            Some((script, expected)) => (script, expected),
            None => (rest.trim_end_matches('\n').trim_end_matches("\n<<<"), ""),
        };
        blocks.push(Block {
            remark: remark.trim().to_owned(),
            script: script.replace('␍', "\r"),
            expected: expected.trim_end_matches('\n').to_owned(),
        });
    }
    assert!(blocks.len() > 1, "{name} has blocks");
    blocks
}

/// Compares the file with the text that `actual` makes of each block's script.
pub fn check(name: &str, actual: impl Fn(&str) -> String) {
    let mut text = String::new();
    for block in read(name) {
        let space = if block.remark.is_empty() { "" } else { " " };
        let script = block.script.replace('\r', "␍");
        writeln!(text, ">>>{space}{}\n{script}\n<<<\n{}", block.remark, actual(&block.script))
            .expect("writes");
    }
    golden::expect(path(name), &text);
}
