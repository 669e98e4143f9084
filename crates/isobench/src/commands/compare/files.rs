//! The files of a comparison's result: the JSON document, the report, one line per round.
//!
//! Not here: their contents (`isobench_result`, `isobench_report`).

use std::cell::RefCell;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use isobench_report::{to_csv, to_html};
use isobench_result::Document;

use super::saving::Saving;
use crate::destination::{Kind, check_file, check_folder, one_stream};
use crate::latest::{self, FOLDER, RESULT};
use crate::options::CompareOptions;
use crate::output::{self, is_stream};
use isobench_comparison::{Failure, Outcome};

/// Renders a result as text.
type Render = fn(&Document) -> String;

/// The files to write.
#[derive(Debug, Default)]
pub struct Files {
    json: Option<PathBuf>,
    html: Option<PathBuf>,
    csv: Option<PathBuf>,
    /// The folder of the first two, which is created with the first file.
    folder: Option<PathBuf>,
    /// The files are the default ones, so failing to write them isn't an error.
    unasked: bool,
    /// True if one of them is standard output, so that the table goes to standard error.
    pub takes_stdout: bool,
    /// The result until everything is measured.
    saving: RefCell<Saving>,
}

impl Files {
    /// Determines the files from the options; by default a new folder named after the time `now`.
    /// If that can't be created, prints a warning, and nothing is written.
    ///
    /// # Errors
    /// A file named in the options can't be written, or isn't isobench's.
    pub fn new(options: &CompareOptions, now: &str) -> Outcome<Files> {
        for (option, path, kind) in [
            ("--json", &options.json, Kind::Result),
            ("--html", &options.html, Kind::Page),
            ("--csv", &options.csv, Kind::Lines),
        ] {
            path.iter().try_for_each(|path| check_file(option, path, kind))?;
        }
        let takes_stdout =
            one_stream(&[("--json", &options.json), ("--html", &options.html), ("--csv", &options.csv)])?;
        let files = Files {
            json: options.json.clone(),
            html: options.html.clone(),
            csv: options.csv.clone(),
            takes_stdout,
            ..Files::default()
        };
        if options.no_save || options.json.is_some() || options.html.is_some() {
            return Ok(files);
        }
        let unasked = options.results.is_none();
        let folder = options.results.clone().unwrap_or_else(|| Path::new(FOLDER).join(now.replace(':', "-")));
        let files = Files { unasked, ..files };
        files.into_folder(&folder)
    }

    /// The same files, result and report in this folder. If a default folder can't be written,
    /// prints a warning and leaves them out.
    fn into_folder(self, folder: &Path) -> Outcome<Files> {
        let (json, html) = (folder.join(RESULT), folder.join("report.html"));
        if let Err(why) = latest::check(folder) {
            if !self.unasked {
                return Err(Failure::setup(format!("--results: {why}")));
            }
            eprintln!("{}", self.complaint(&why));
        }
        if let Err(error) = check_folder(folder) {
            let why = format!("could not make the folder \"{}\": {error}", folder.display());
            if !self.unasked {
                return Err(Failure::setup(format!("--results: {why}")));
            }
            eprintln!("{}", self.complaint(&why));
            return Ok(Files { unasked: false, ..self });
        }
        if folder.is_dir() {
            check_file("--results", &json, Kind::Result)?;
            check_file("--results", &html, Kind::Page)?;
        }
        Ok(Files { json: Some(json), html: Some(html), folder: Some(folder.to_owned()), ..self })
    }

    /// Writes the result so far; the report is written at the end.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn save_result(&self, document: &Document) -> Outcome {
        // A stream takes the whole result only.
        let is_file =
            |path: &Path| !is_stream(path) && fs::metadata(path).map_or(true, |there| there.is_file());
        let Some(path) = self.json.as_ref().filter(|path| is_file(path)) else { return Ok(()) };
        let saved = || {
            self.saving.borrow_mut().save(path, document).map_err(|error| {
                let shown = path.display();
                Failure::Output(format!(
                    "could not write \"{shown}\": {error}; the results above are not saved"
                ))
            })
        };
        self.make_folder()
            .and_then(|()| saved())
            // If the link can't be written, the end of the comparison says so, once.
            .map(|()| drop(self.point_here()))
            .or_else(|failure| self.excuse(failure))
    }

    /// Writes all files. Returns those for the user to look at.
    ///
    /// # Errors
    /// A file named in the options can't be written.
    pub fn save_all(&self, document: &Document) -> Outcome<Vec<PathBuf>> {
        if let Some(path) = &self.csv {
            output::save(path, &to_csv(document))?;
        }
        let texts: [(&Option<PathBuf>, Render); 2] = [(&self.json, Document::to_json), (&self.html, to_html)];
        let mut written = Vec::new();
        for (path, text) in texts {
            let Some(path) = path else { continue };
            match self.make_folder().and_then(|()| output::save(path, &text(document))) {
                Ok(()) => written.extend(Some(path.clone()).filter(|path| !is_stream(path))),
                Err(failure) => {
                    eprintln!("{}", self.complaint(&failure));
                    self.excuse(failure)?;
                    break;
                }
            }
        }
        if let Some(Err(error)) = written.first().map(|_| self.point_here()) {
            eprintln!("warning: could not update the link to the newest result: {error}");
        }
        Ok(written)
    }

    fn make_folder(&self) -> Outcome {
        let Some(folder) = &self.folder else { return Ok(()) };
        fs::create_dir_all(folder).map_err(|error| {
            Failure::Output(format!("could not make the folder \"{}\": {error}", folder.display()))
        })
    }

    /// Lets the link to the newest result lead here, where something was saved.
    fn point_here(&self) -> std::io::Result<()> {
        self.folder.as_deref().map_or(Ok(()), latest::point_to)
    }

    fn complaint(&self, failure: &dyn Display) -> String {
        let hint =
            if self.unasked { "; --results FOLDER names another place, --no-save does without" } else { "" };
        format!("warning: {failure}{hint}")
    }

    /// Turns a failure to write a default file into a warning.
    fn excuse(&self, failure: Failure) -> Outcome {
        if self.unasked { Ok(()) } else { Err(failure) }
    }
}

/// Returns a line that says where the report is.
pub fn told(written: &[PathBuf]) -> String {
    let report = written.iter().find(|path| path.extension().is_some_and(|extension| extension == "html"));
    report.map_or_else(String::new, |path| format!("\nReport: {}\n", path.display()))
}
