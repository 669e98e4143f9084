//! `isobench workloads`: a list of the checked workloads; doesn't need a server.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use isobench_database::Database;
use isobench_workloads::{Chosen, find, list};

use crate::options::WorkloadsOptions;
use crate::output;
use isobench_comparison::{Failure, Outcome};

/// Lists the workloads, or prints the details of one.
///
/// # Errors
/// The name is unknown, or the files can't be written.
pub fn workloads(options: &WorkloadsOptions) -> Outcome {
    let Some(spec) = &options.workload else { return output::print(&list()) };
    let chosen = find(spec).map_err(Failure::setup)?;
    // The tables for PostgreSQL; the scripts are the same for all products.
    let files = chosen.files(&Database::from_version_text("PostgreSQL "));
    match &options.save {
        None => output::print(&(chosen.workload().describe() + &printed(&files))),
        Some(folder) => save(folder, &files, &chosen),
    }
}

fn printed(files: &[(String, String)]) -> String {
    let with_heading = |(name, text): &(_, _)| format!("\n---- {name} ----\n{text}");
    files.iter().map(with_heading).collect::<Vec<String>>().concat()
}

fn save(folder: &Path, files: &[(String, String)], chosen: &Chosen) -> Outcome {
    fs::create_dir_all(folder)
        .map_err(|error| Failure::Output(format!("could not make \"{}\": {error}", folder.display())))?;
    for (name, text) in files {
        output::save(&folder.join(name), text)?;
    }
    let weights: Vec<u64> = chosen.scripts().iter().map(|script| script.weight).collect();
    let mut text = "Saved. To compare levels with it:\n\nisobench compare".to_owned();
    for ((name, _), weight) in files[1..].iter().zip(weights) {
        let _ = write!(text, " --file {}@{weight}", folder.join(name).display());
    }
    let _ = writeln!(text, " --setup {}", folder.join(&files[0].0).display());
    output::print(&text)
}
