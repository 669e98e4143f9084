//! The part of Markdown that the tests parse: files, fenced blocks, tables, inline code, headings.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// A page of the manual, by its path in `docs/`.
pub fn page(name: &str) -> String {
    let path = root().join("docs").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All Markdown files of the repository, by path from its root, except for build output, hidden files
/// and what is linked from elsewhere in it.
pub fn files() -> Vec<(PathBuf, String)> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the repository can be read") {
            let path = entry.expect("an entry can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_symlink() {
                continue;
            }
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "md") {
                let text = fs::read_to_string(&path).expect("a page can be read");
                found.push((path.strip_prefix(&root).expect("below the root").to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

/// The lines of a text, each with whether it belongs to a fenced block, including the fences.
pub fn lines(text: &str) -> impl Iterator<Item = (bool, &str)> {
    let mut fenced = false;
    text.lines().map(move |line| {
        let fence = line.trim_start().starts_with("```");
        let inside = fenced || fence;
        fenced ^= fence;
        (inside, line)
    })
}

/// The contents of the fenced blocks marked with `language`.
pub fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block: Option<(bool, String)> = None;
    for line in text.lines() {
        match (line.trim_start().strip_prefix("```"), &mut block) {
            (Some(mark), None) => block = Some((mark == language, String::new())),
            (Some(_), Some(_)) => {
                let (wanted, content) = block.take().expect("a block is open");
                if wanted {
                    found.push(content);
                }
            }
            (None, Some((_, content))) => {
                content.push_str(line);
                content.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

/// The rows of all tables: for each its heading's cells and its own. `\|` is a bar within a cell.
pub fn rows(text: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let mut found = Vec::new();
    let mut heading: Option<Vec<String>> = None;
    for (fenced, line) in lines(text) {
        let Some(row) = line.strip_prefix('|').filter(|_| !fenced) else {
            heading = None;
            continue;
        };
        let row = row.replace("\\|", "\u{1}");
        let cells: Vec<String> = row
            .trim_end()
            .trim_end_matches('|')
            .split('|')
            .map(|cell| cell.trim().replace('\u{1}', "|"))
            .collect();
        match &heading {
            None => heading = Some(cells),
            Some(_) if cells.iter().all(|cell| cell.trim_matches(['-', ':']).is_empty()) => {}
            Some(heading) => found.push((heading.clone(), cells)),
        }
    }
    found
}

/// The pieces of a text between single backticks, outside fenced blocks.
pub fn code(text: &str) -> Vec<String> {
    let outside = lines(text).filter(|(fenced, _)| !fenced).map(|(_, line)| line);
    outside.flat_map(|line| line.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}
