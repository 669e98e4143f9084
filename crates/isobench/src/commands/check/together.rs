//! A recording that several machines check together: each reads a share of it.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use isobench_comparison::{Failure, Machines, Outcome};
use isobench_isolation::check::{CheckedRecording, check_recording_together};
use isobench_isolation::history::{Format, beginning};
use isobench_trust::open_to_show;

use super::input::failure;
use super::{Checked, Results, asked};
use crate::machines;
use crate::options::{CheckOptions, Found};
use crate::output::{is_stream, say, shown};

/// Checks a recording together with the other machines. Rank 0 prints the report, the others a line.
///
/// # Errors
/// As those of [`super::check`]; or it isn't known which machine this is, one is missing, is lost
/// or has another recording.
pub(super) fn check(options: &CheckOptions, aloud: bool) -> Outcome {
    let opened = machines::heard(&options.machines, open(options));
    let (path, file) = opened?;
    let task = format!(
        "check {:?} {:?} {:?} {} {}",
        options.promised, options.server.name, options.order, options.partial, options.complete
    );
    let machines = machines::meet_to_check(&options.machines, &task)?;
    let name = shown(path);
    let began = Instant::now();
    let checked = check_recording_together(file, options.partial, &asked(options), &mut machines.ways());
    machines.leave();
    match checked.map_err(|error| failed(&machines, &name, &error, options))? {
        None => {
            say(&format!("rank {} of {}: has checked its share", machines.rank(), machines.number()));
            Ok(())
        }
        Some(CheckedRecording { report, witnesses, problem }) => {
            let problem = problem.map(|problem| problem.to_string());
            let took = began.elapsed();
            let mut all = Results::default();
            let checked = Checked { format: Format::Binary, report, witnesses, problem, took };
            all.add(path, checked, options, aloud)?;
            all.end(options)
        }
    }
}

/// The failure of a check: a machine that is lost, or what is wrong with the recording.
fn failed(
    machines: &Machines,
    name: &str,
    error: &isobench_isolation::history::FormatError,
    options: &CheckOptions,
) -> Failure {
    match machines.lost() {
        Some(lost) => Failure::Incomplete(lost.to_owned()),
        None => failure(name, error, options),
    }
}

/// The recording.
fn open(options: &CheckOptions) -> Outcome<(&Path, File)> {
    let [path] = options.files.as_slice() else {
        return Err(Failure::setup("--peers: several machines check one recording at a time"));
    };
    let name = shown(path);
    if is_stream(path) {
        return Err(Failure::setup(
            "--peers: each machine reads a share of a file, so it can't be standard input",
        ));
    }
    if options.convert.is_some() {
        return Err(Failure::setup(
            "--convert takes the whole history, and with --peers each machine has a share",
        ));
    }
    let mut file = open_to_show(path).map_err(|error| failure(&name, &error.into(), options))?;
    let start = beginning(&mut file).map_err(|error| failure(&name, &error.into(), options))?;
    let binary = match options.format {
        Some(Found::Given(format)) => format == Format::Binary,
        Some(Found::Automatically) | None => Format::detect(&start) == Some(Format::Binary),
    };
    if !binary {
        return Err(Failure::setup(format!(
            "{name}: --peers takes recordings of isobench; --convert binary:FILE makes one of another history"
        )));
    }
    std::io::Seek::rewind(&mut file).map_err(|error| failure(&name, &error.into(), options))?;
    Ok((path, file))
}
