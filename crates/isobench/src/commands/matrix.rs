//! `isobench matrix`: results of many servers on one page; `isobench check-result`: whether a result
//! agrees with itself.
//!
//! Not here: what the page holds (`isobench_result::ServerMatrix`), and its layout (`isobench_report`).

use std::fs;
use std::path::{Path, PathBuf};

use isobench_comparison::{Failure, Outcome};
use isobench_report::servers;
use isobench_result::{Document, ServerMatrix, Submitted, objections};
use isobench_trust::refuse_foreign_links;

use crate::destination::{Kind, check_file};
use crate::options::{CheckResultOptions, MatrixOptions};
use crate::output::{self, is_stream, say, shown};
use crate::saved::read;

/// The file that a server shows for a folder.
const PAGE: &str = "index.html";

/// How deep folders are looked into.
const DEPTH: usize = 8;

/// Makes the page.
///
/// # Errors
/// The folder can't be read, or has no result; the page can't be written, or isn't isobench's.
pub fn matrix(options: &MatrixOptions) -> Outcome {
    let page = options.html.clone().unwrap_or_else(|| options.folder.join(PAGE));
    check_file("--html", &page, Kind::Page)?;
    let mut paths = Vec::new();
    find(&options.folder, 0, &mut paths)?;
    paths.sort();
    let mut results: Vec<(String, Document)> = Vec::new();
    let mut unreadable = Vec::new();
    for path in &paths {
        match read(path) {
            Ok(document) => {
                // The page and the files are moved together.
                let below = path.strip_prefix(&options.folder).unwrap_or(path);
                results.push((below.to_string_lossy().into_owned(), document));
            }
            Err(why) => unreadable.push(why.to_string()),
        }
    }
    for why in &unreadable {
        say(&format!("warning: left out: {why}"));
    }
    if results.is_empty() {
        return Err(Failure::setup(format!("{}: there is no result in it", shown(&options.folder))));
    }
    let submitted: Vec<Submitted<'_>> =
        results.iter().map(|(file, document)| Submitted { file, document }).collect();
    let mut matrix = ServerMatrix::of(&submitted);
    matrix.left_out.extend(unreadable);
    output::save(&page, &servers(&matrix))?;
    if !is_stream(&page) {
        say(&format!("{} results of {} rows are in {}", results.len(), matrix.rows.len(), shown(&page)));
    }
    Ok(())
}

/// Finds the files that may be results.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Outcome {
    let failure =
        |error: std::io::Error| Failure::setup(format!("could not read {}: {error}", shown(folder)));
    refuse_foreign_links(folder).map_err(failure)?;
    for entry in fs::read_dir(folder).map_err(failure)? {
        let entry = entry.map_err(failure)?;
        let kind = entry.file_type().map_err(failure)?;
        let path = entry.path();
        if kind.is_dir() && depth < DEPTH {
            find(&path, depth + 1, found)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "json") {
            found.push(path);
        }
    }
    Ok(())
}

/// Checks results, and prints a line for each.
///
/// # Errors
/// A file that is no result, or one that doesn't agree with itself.
pub fn check_result(options: &CheckResultOptions) -> Outcome {
    let mut wrong = 0;
    for path in &options.files {
        let found = match read(path) {
            Ok(document) => objections(&document),
            Err(why) => vec![why.to_string()],
        };
        if found.is_empty() {
            output::print(&format!("{}: agrees with itself\n", shown(path)))?;
        } else {
            wrong += 1;
            for why in found {
                output::print(&format!("{}: {why}\n", shown(path)))?;
            }
        }
    }
    match wrong {
        0 => Ok(()),
        1 => Err(Failure::setup("one result isn't to be counted on; see above")),
        some => Err(Failure::setup(format!("{some} results aren't to be counted on; see above"))),
    }
}
