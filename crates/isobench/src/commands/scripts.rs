//! `isobench scripts`: from a capture to a folder of scripts.
//!
//! Not here: how scripts are made (`isobench_replay`), and the capture's format (`isobench_capture`).

mod before;
mod check;
mod execution;
mod fitting;

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, BufReader, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use isobench_comparison::{Failure, Outcome};
use isobench_replay::{Folder, Options, Recorded, Scope, Tables, read};

use crate::commands::dump::dump;
use crate::options::{CaptureOptions, CopyOptions, EmbeddedOptions, ScriptsOptions, Unit};
use crate::output::{self, is_stream, say};

/// The plan file of a folder of scripts.
const PLAN: &str = "workload.toml";

/// Makes the folder, and prints what it covers.
///
/// # Errors
/// The capture can't be read, there are no tables for its scripts, or the folder isn't empty.
pub fn scripts(options: &ScriptsOptions) -> Outcome {
    let scope = match options.scope {
        Unit::Transaction => Scope::Transaction,
        Unit::Request => Scope::Request,
    };
    let wanted = Wanted {
        capture: &options.capture,
        folder: &options.output,
        options: Options { scope, coverage: options.coverage, pauses: options.pauses },
        setup: options.setup.as_deref(),
        copy: &options.copy,
        check: (!options.no_check).then_some(&options.embedded),
    };
    require_empty(wanted.folder, "--output", "name another folder")?;
    let place = options.output.display();
    let next = format!(
        "\nRules and their hit rates: {place}/README.md\nNext:\n  isobench compare --plan {place}/{PLAN}\n  \
         isobench advise --plan {place}/{PLAN}\n"
    );
    output::print(&(made(&wanted)? + &next))
}

/// The plan file of a capture's scripts, if one is given. They are made in a folder next to it, unless they
/// were before.
///
/// # Errors
/// Those of [`scripts`]; the capture is newer than its scripts.
pub fn plan_of(
    given: &CaptureOptions,
    setup: Option<&Path>,
    embedded: &EmbeddedOptions,
) -> Outcome<Option<PathBuf>> {
    let Some(capture) = &given.capture else {
        let copied = given.copy.copy_from.as_ref().map(|_| {
            Failure::setup(
                "--copy-from: it copies the tables for the scripts of a capture; for scripts of your own, make a dump \
                 and name it: pg_dump --no-owner --no-privileges DATABASE > tables.sql, then --setup tables.sql",
            )
        });
        return copied.map_or(Ok(None), Err);
    };
    let shown = capture.display();
    if is_stream(capture) {
        return Err(Failure::setup("a capture from standard input takes isobench scripts - -o FOLDER first"));
    }
    let mut folder = capture.with_extension("scripts");
    if folder == *capture {
        folder.as_mut_os_string().push(".scripts");
    }
    let (plan, place) = (folder.join(PLAN), folder.display());
    if let Ok(before) = fs::metadata(&plan).and_then(|plan| plan.modified()) {
        let changed = fs::metadata(capture)
            .and_then(|capture| capture.modified())
            .map_err(|error| Failure::setup(format!("could not open capture \"{shown}\": {error}")))?;
        let given_again = setup.is_some() || given.copy.copy_from.is_some();
        if changed > before || given_again {
            let why = if given_again {
                "already has scripts and tables"
            } else {
                "has scripts of an older capture"
            };
            return Err(Failure::setup(format!(
                "\"{place}\" {why}: move it away, or use it as it is by --plan {place}/{PLAN}"
            )));
        }
        before::require_as_made(&folder, &plan)?;
        say(&format!("using the scripts in {place}, which were made before"));
        say_claim(Some(&plan));
        return Ok(Some(plan));
    }
    require_empty(
        &folder,
        "CAPTURE",
        "make the scripts elsewhere (isobench scripts) and name them by --plan",
    )?;
    let options = Options::default();
    let wanted =
        Wanted { capture, folder: &folder, options, setup, copy: &given.copy, check: Some(embedded) };
    for line in made(&wanted)?.lines() {
        say(line);
    }
    say(&format!("rules and their hit rates: {place}/README.md"));
    Ok(Some(plan))
}

/// The folder to make.
struct Wanted<'a> {
    capture: &'a Path,
    folder: &'a Path,
    options: Options,
    setup: Option<&'a Path>,
    copy: &'a CopyOptions,
    /// The server on which the scripts are replayed, if they are.
    check: Option<&'a EmbeddedOptions>,
}

/// Makes a folder of scripts, and returns what it covers.
fn made(wanted: &Wanted<'_>) -> Outcome<String> {
    let recorded = recorded(wanted.capture)?;
    let tables = tables(wanted)?;
    let shown = wanted.capture.display();
    let mut folder = Folder::of(&recorded, wanted.options, &tables)
        .map_err(|error| Failure::setup(format!("{shown}: {error}")))?;
    let path = wanted.folder;
    let unwritten =
        |error: io::Error| Failure::setup(format!("could not write into \"{}\": {error}", path.display()));
    make(path).map_err(unwritten)?;
    for (name, text) in &mut folder.files {
        if name == "README.md" {
            *text = isobench_pgwire::fit(text);
        }
        write(&path.join(name), text).map_err(unwritten)?;
    }
    let mut text: String = folder.summary.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    if let Some(embedded) = wanted.check {
        let before = folder.files.clone();
        let checked = check::check(&mut folder, path, embedded)?;
        for ((name, text), _) in folder.files.iter().zip(&before).filter(|(now, before)| now != before) {
            fs::write(path.join(name), text).map_err(unwritten)?;
        }
        write(&path.join(check::FILE), &checked.json()).map_err(unwritten)?;
        let mut readme = OpenOptions::new().append(true).open(path.join("README.md")).map_err(unwritten)?;
        let lines: String = checked.lines().iter().flat_map(|line| ["- ", line, "\n"]).collect();
        let section = format!("\n## Replayed and compared with the record\n\n{lines}");
        readme.write_all(section.as_bytes()).map_err(unwritten)?;
        text.extend(checked.lines().iter().flat_map(|line| [line.as_str(), "\n"]));
    }
    Ok(text)
}

/// Says how the scripts of a plan file differ from what was recorded, if they were checked.
pub fn say_claim(plan: Option<&Path>) {
    if let Some(checked) = plan.and_then(Path::parent).and_then(check::Checked::read) {
        say(&checked.claim());
    }
}

/// Reads a capture.
///
/// # Errors
/// It can't be read, or isn't one.
pub fn recorded(path: &Path) -> Outcome<Recorded> {
    let shown = path.display();
    let wrong = |error: &dyn std::fmt::Display| Failure::setup(format!("{shown}: {error}{}", remedy(path)));
    if is_stream(path) {
        return read(io::stdin().lock()).map_err(|error| wrong(&error));
    }
    let file = isobench_trust::open(path).map_err(|error| {
        Failure::setup(format!("could not open capture \"{shown}\": {error}{}", remedy(path)))
    })?;
    read(BufReader::new(file)).map_err(|error| wrong(&error))
}

/// What to do about a script in place of a capture.
fn remedy(path: &Path) -> String {
    let is_script = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("sql"));
    if is_script { format!("; a script is named by -f: -f {}", path.display()) } else { String::new() }
}

/// Refuses a folder that has something in it.
fn require_empty(folder: &Path, option: &str, remedy: &str) -> Outcome {
    let shown = folder.display();
    match fs::read_dir(folder).map(Iterator::count) {
        Ok(0) => Ok(()),
        Ok(_) => Err(Failure::setup(format!("{option}: \"{shown}\" isn't empty; {remedy}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Failure::setup(format!("{option}: \"{shown}\": {error}"))),
    }
}

/// Makes a folder that only its owner may read: it has data of an application.
fn make(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            fs::set_permissions(folder, permissions)
        }
        made => made,
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(text.as_bytes())
}

fn tables(wanted: &Wanted<'_>) -> Outcome<Tables> {
    if let Some(path) = wanted.setup {
        let text = isobench_trust::read_to_string(path).map_err(|error| {
            Failure::setup(format!("--setup: could not read \"{}\": {error}", path.display()))
        })?;
        return Ok(Tables::Setup(text));
    }
    match &wanted.copy.copy_from {
        Some(conninfo) => {
            let limit = wanted.copy.copy_limit;
            let remedy =
                format!("--copy-limit {limit}; raise it, or make a smaller copy and give that by --setup");
            dump(conninfo, limit, &remedy).map(Tables::Dump)
        }
        None => Ok(Tables::Captured),
    }
}
