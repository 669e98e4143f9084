//! Golden files: texts that are compared with a file, or written to it if `ISOBENCH_BLESS=1`.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::Path;
use std::{env, fs, thread};

/// True if golden files are to be written, that is, if `ISOBENCH_BLESS` is `1`.
pub fn blessing() -> bool {
    means_yes(env::var_os("ISOBENCH_BLESS").as_deref())
}

fn means_yes(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| value == "1")
}

/// Compares a text with a golden file, or writes it there when blessing.
///
/// # Panics
/// If the file's contents differ, or it is missing or can't be written.
#[track_caller]
pub fn expect(path: impl AsRef<Path>, found: &str) {
    if let Some(difference) = difference(path, found) {
        panic!("{difference}");
    }
}

/// Compares a text with a golden file, for a test that reports several differences at once. Returns
/// the difference.
///
/// When blessing, it writes the file and returns `None`.
///
/// # Panics
/// If the file can't be written.
pub fn difference(path: impl AsRef<Path>, found: &str) -> Option<String> {
    let path = path.as_ref();
    if !blessing() {
        return compare(path, found);
    }
    let folder = path.parent().expect("a file lies in a folder");
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, found))
        .unwrap_or_else(|error| panic!("{} can't be written: {error}", path.display()));
    None
}

fn compare(path: &Path, found: &str) -> Option<String> {
    let file = path.display();
    let what = match fs::read_to_string(path) {
        Ok(expected) if expected == found => return None,
        Ok(expected) => {
            let (line, expected, found) = first_difference(&expected, found);
            format!("{file} differs from line {line} on\nexpected: {expected}\nfound:    {found}")
        }
        Err(error) => format!("{file} can't be read: {error}"),
    };
    Some(format!("{what}\nIf the change is intended, update the file: {}", command()))
}

/// The number of the first line that differs, and both lines, with visible line breaks.
fn first_difference(expected: &str, found: &str) -> (usize, String, String) {
    let shown = |line: Option<&str>| line.map_or_else(|| "(the end)".to_owned(), |line| format!("{line:?}"));
    let (mut expected, mut found) = (expected.split_inclusive('\n'), found.split_inclusive('\n'));
    let mut number = 1;
    loop {
        let (left, right) = (expected.next(), found.next());
        if left != right || left.is_none() {
            return (number, shown(left), shown(right));
        }
        number += 1;
    }
}

/// The command that blesses the running test's files.
fn command() -> String {
    let package =
        env::var("CARGO_PKG_NAME").map_or_else(|_| "--workspace".to_owned(), |it| format!("-p {it}"));
    let test = thread::current().name().map_or_else(String::new, |name| format!(" {name}"));
    format!("ISOBENCH_BLESS=1 cargo test {package}{test}")
}

/// The parts of a series of texts that show something for the first time, so that many golden files
/// hold each kind of line once and not in each of them. Lines are of one kind if only their numbers
/// differ.
#[derive(Debug, Default)]
pub struct News {
    known: HashSet<String>,
}

impl News {
    /// The parts of the next text that have a line of a kind that no text before had, and `…` in the
    /// place of others.
    pub fn of<'a>(&mut self, parts: impl IntoIterator<Item = &'a str>) -> String {
        let mut news = String::new();
        for part in parts {
            // Every line is noted, whether or not another one was new.
            let new = part.lines().filter(|line| self.known.insert(kind(line))).count() > 0;
            if new {
                news += part;
            } else if !news.ends_with("…\n") {
                news += "…\n";
            }
        }
        news
    }
}

/// The line with `#` in the place of each number.
fn kind(line: &str) -> String {
    let mut kind = String::new();
    for character in line.chars() {
        match character {
            '0'..='9' | '.' | ',' if kind.ends_with('#') => {}
            '0'..='9' => kind.push('#'),
            other => kind.push(other),
        }
    }
    kind
}

/// Replaces the text between the marks `<!-- begin: NAME -->` and `<!-- end: NAME -->` of a page.
///
/// # Panics
/// If the page lacks a mark.
#[track_caller]
pub fn fill(page: &mut String, name: &str, text: &str) {
    fill_with(page, name, &format!("```text\n{text}```\n"));
}

/// The same with a part in Markdown, such as a table.
///
/// # Panics
/// If the page has no such part.
pub fn fill_with(page: &mut String, name: &str, text: &str) {
    let (begin, end) = (format!("<!-- begin: {name} -->\n"), format!("<!-- end: {name} -->"));
    let from = page.find(&begin).unwrap_or_else(|| panic!("the page has no {begin}")) + begin.len();
    let to = from + page[from..].find(&end).unwrap_or_else(|| panic!("the page has no {end}"));
    page.replace_range(from..to, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_means_yes() {
        assert!(means_yes(Some(OsStr::new("1"))));
        for value in [None, Some(OsStr::new("")), Some(OsStr::new("0")), Some(OsStr::new("true"))] {
            assert!(!means_yes(value), "{value:?}");
        }
    }

    #[test]
    fn a_difference_names_the_file_the_line_and_the_command() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(compare(&path, &text), None);
        let difference = compare(&path, &text.replacen("[package]\n", "[package]\r\n", 1)).unwrap();
        for part in [
            "Cargo.toml differs from line 1 on\nexpected: \"[package]\\n\"\nfound:    \"[package]\\r\\n\"\n",
            "ISOBENCH_BLESS=1 cargo test -p isobench-testkit golden::tests::a_difference_names_",
        ] {
            assert!(difference.contains(part), "{difference}");
        }
        let missing = compare(Path::new("/nonexistent/file"), "").unwrap();
        assert!(missing.starts_with("/nonexistent/file can't be read: "), "{missing}");
    }

    #[test]
    fn the_first_difference_is_found_at_the_end_too() {
        for (expected, found, line, left, right) in [
            ("a\nb\n", "a\nc\n", 2, "\"b\\n\"", "\"c\\n\""),
            ("a\n", "a\nb", 2, "(the end)", "\"b\""),
            ("a\nb\n", "a\n", 2, "\"b\\n\"", "(the end)"),
            ("a\n", "a", 1, "\"a\\n\"", "\"a\""),
        ] {
            assert_eq!(first_difference(expected, found), (line, left.to_owned(), right.to_owned()));
        }
    }

    #[test]
    fn news_are_parts_with_a_line_of_a_new_kind() {
        let mut news = News::default();
        assert_eq!(news.of(["a 1\n", "b\n", "a 2\n"]), "a 1\nb\n…\n");
        assert_eq!(news.of(["a 1,234.5 c\nb\n", "a 3.\nb\n", "b\n", "d -1\n"]), "a 1,234.5 c\nb\n…\nd -1\n");
        assert_eq!(news.of(["d -20.5\na 7\n"]), "…\n");
    }

    #[test]
    fn a_page_is_filled_between_its_marks() {
        let mut page = "x\n<!-- begin: a -->\nold\n<!-- end: a -->\ny".to_owned();
        fill(&mut page, "a", "new\n");
        assert_eq!(page, "x\n<!-- begin: a -->\n```text\nnew\n```\n<!-- end: a -->\ny");
    }
}
