//! `isobench report --servers`: results of many servers on one page.
//!
//! Not here: what the page holds, and which results are left out (`isobench_result::ServerMatrix`); its
//! layout (`isobench_report`).

use std::fs;
use std::path::{Path, PathBuf};

use isobench_comparison::{Failure, Outcome};
use isobench_report::servers as page_of;
use isobench_result::{Document, ServerMatrix, Submitted};
use isobench_trust::refuse_foreign_links;

use crate::destination::{Kind, check_file};
use crate::options::ReportOptions;
use crate::output::{self, is_stream, say, shown};
use crate::saved::{read, tags};

/// The file that a server shows for a folder.
const PAGE: &str = "index.html";

/// How deep folders are looked into.
const DEPTH: usize = 8;

/// Makes the page.
///
/// # Errors
/// The folder can't be read, or has no result; the page can't be written, or isn't isobench's; something is
/// left out.
pub fn servers(options: &ReportOptions) -> Outcome {
    let folder = options.servers.as_deref().unwrap_or(Path::new("."));
    let page = options.rendering.html.clone().unwrap_or_else(|| folder.join(PAGE));
    check_file("--html", &page, Kind::Page)?;
    let mut paths = Vec::new();
    find(folder, 0, &mut paths)?;
    paths.sort();
    let mut results: Vec<(String, Document)> = Vec::new();
    let mut unreadable = Vec::new();
    for path in &paths {
        match read(path) {
            Ok(document) => {
                // The page and the files are moved together.
                let below = path.strip_prefix(folder).unwrap_or(path);
                results.push((below.to_string_lossy().into_owned(), document));
            }
            Err(why) => unreadable.push(why.to_string()),
        }
    }
    let submitted: Vec<Submitted<'_>> =
        results.iter().map(|(file, document)| Submitted { file, document }).collect();
    let mut matrix = ServerMatrix::of(&submitted);
    matrix.left_out.extend(unreadable);
    for why in &matrix.left_out {
        say(&format!("warning: left out: {why}"));
    }
    if matrix.rows.is_empty() {
        let folder = shown(folder);
        return Err(Failure::setup(format!("{folder}: there is no result in it to count on")));
    }
    output::save(&page, &page_of(&matrix))?;
    if !is_stream(&page) {
        say(&format!("the page is in {}", shown(&page)));
    }
    if matrix.left_out.is_empty() {
        return Ok(());
    }
    Err(Failure::setup("the page doesn't have all files of the folder; see above"))
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
        } else if kind.is_file()
            && path.extension().is_some_and(|extension| extension == "json")
            && !path.ends_with(tags::FILE)
        {
            found.push(path);
        }
    }
    Ok(())
}
