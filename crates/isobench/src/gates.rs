//! The files of gates: what a command was asked and found, as `JUnit` and SARIF.
//!
//! Not here: their formats (`isobench_report::gate`), and the questions of each command.

use std::path::{Component, Path};

use isobench_comparison::{Failure, Outcome};
use isobench_pgwire::fit;
use isobench_report::gate::{Question, junit, sarif};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::destination::{Kind, check_file};
use crate::options::GateOptions;
use crate::output;

/// Characters that a segment of a URI's path has to escape (RFC 3986, section 2.3).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Checks that the files can be written, before anything is started.
///
/// # Errors
/// One can't, isn't isobench's, or is named twice.
pub fn check(options: &GateOptions) -> Outcome {
    if options.junit.is_some() && options.junit == options.sarif {
        return Err(Failure::setup("--junit and --sarif name the same file; name two"));
    }
    for (option, path, kind) in
        [("--junit", &options.junit, Kind::JUnit), ("--sarif", &options.sarif, Kind::Sarif)]
    {
        path.iter().try_for_each(|path| check_file(option, path, kind))?;
    }
    Ok(())
}

/// Writes the files.
///
/// # Errors
/// One can't be written.
pub fn write(options: &GateOptions, command: &str, questions: Vec<Question>) -> Outcome {
    write_fit(options, command, questions, &fit)
}

/// The same with texts that are made fit by the caller: without passwords and control characters. Formats
/// escape them only afterwards, so that they are found.
///
/// # Errors
/// A file can't be written.
pub fn write_fit(
    options: &GateOptions,
    command: &str,
    questions: Vec<Question>,
    fit: &dyn Fn(&str) -> String,
) -> Outcome {
    if options.given().is_none() {
        return Ok(());
    }
    let questions: Vec<Question> = questions.into_iter().map(|question| question.map(fit)).collect();
    if let Some(path) = &options.junit {
        let unwritten = |error: std::io::Error| Failure::Output(format!("--junit: {error}"));
        output::save_fit(path, &junit(command, &questions).map_err(unwritten)?)?;
    }
    if let Some(path) = &options.sarif {
        output::save_fit(path, &sarif(&questions, &|name| uri(Path::new(name))))?;
    }
    Ok(())
}

/// The URI of a script's file, relative to this folder if it is in it; `None` if there is no such file.
fn uri(file: &Path) -> Option<String> {
    if !file.is_file() {
        return None;
    }
    let here = std::env::current_dir().unwrap_or_default();
    Some(uri_from(&here, file))
}

fn uri_from(here: &Path, file: &Path) -> String {
    let shown = file.strip_prefix(here).unwrap_or(file);
    let segments = shown.components().filter_map(|part| match part {
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        Component::ParentDir => Some("..".to_owned()),
        Component::Normal(name) => Some(utf8_percent_encode(&name.to_string_lossy(), ESCAPED).to_string()),
    });
    let path = segments.collect::<Vec<_>>().join("/");
    if shown.is_absolute() { format!("file:///{path}") } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_from_here() {
        let here = Path::new("/home/ada/shop");
        for (file, expected) in [
            ("./sql/a b.sql", "sql/a%20b.sql"),
            ("/home/ada/shop/sql/a.sql", "sql/a.sql"),
            ("/srv/ü.sql", "file:///srv/%C3%BC.sql"),
            ("../a.sql", "../a.sql"),
        ] {
            assert_eq!(uri_from(here, Path::new(file)), expected);
        }
        assert_eq!(uri(Path::new("no such file")), None);
    }
}
