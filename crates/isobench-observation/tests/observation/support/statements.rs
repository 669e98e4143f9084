//! The statements of the corpus.

use std::path::Path;

/// The statements: each starts on a line whose first character isn't a blank, and ends before the
/// next one. Lines `-- title` that stand before a statement start a section.
pub fn of(corpus: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(corpus.join("statements.sql")).unwrap();
    let mut section = String::new();
    let mut found: Vec<(String, String)> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("-- ") {
            title.clone_into(&mut section);
            open = false;
        } else if open && (line.starts_with("FROM") || line == ";") {
            let last = &mut found.last_mut().unwrap().1;
            last.push('\n');
            last.push_str(line);
        } else {
            found.push((section.clone(), line.to_owned()));
            open = true;
        }
    }
    found
}
