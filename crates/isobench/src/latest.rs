//! `isobench-results/latest`: the way to the newest result, a symbolic link, or where links are
//! impossible a small text file.
//!
//! Not here: the files of a result (`commands/compare/files.rs`).

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use isobench_comparison::{Failure, Outcome};
use isobench_trust::refuse_foreign_links;

/// The default folder of results.
pub const FOLDER: &str = "isobench-results";

/// The name of the link in it.
const NAME: &str = "latest";

/// The name of a result in its folder.
pub const RESULT: &str = "result.json";

/// The start of the text file that takes the place of a link; the folder's name follows.
const MARK: &str = "isobench's newest result: ";

/// The most bytes of such a file.
const LONGEST: u64 = 4096;

/// What is found in the place of the link.
enum Found {
    Nothing,
    /// A link, or a text file, of isobench's, and the name of the folder that it leads to.
    Ours(PathBuf),
    /// Something else, which isn't touched.
    Foreign,
}

/// The link beside a folder of results, if it has one: folders elsewhere have none.
fn beside(folder: &Path) -> Option<PathBuf> {
    let parent = folder.parent().filter(|parent| *parent == Path::new(FOLDER))?;
    Some(parent.join(NAME))
}

/// Checks that the link beside a folder of results may be written.
///
/// # Errors
/// Something in its place isn't isobench's, or the folder has its name; the message says so.
pub fn check(folder: &Path) -> Result<(), String> {
    let Some(link) = beside(folder) else { return Ok(()) };
    let shown = link.display();
    if folder == link {
        return Err(format!("\"{shown}\" is where the newest result is found; name another folder"));
    }
    match found(&link) {
        Ok(Found::Foreign) => Err(format!(
            "\"{shown}\" exists and isn't isobench's, so it isn't overwritten; remove it, or name another folder"
        )),
        // The folder may not exist yet, and whether it can be made is checked elsewhere.
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Lets the link lead to a folder of results, in one step.
///
/// # Errors
/// It can't be written.
pub fn point_to(folder: &Path) -> io::Result<()> {
    let (Some(link), Some(name)) = (beside(folder), folder.file_name()) else { return Ok(()) };
    match found(&link)? {
        Found::Foreign => return Ok(()),
        Found::Ours(current) if current == Path::new(name) => return Ok(()),
        Found::Ours(_) | Found::Nothing => {}
    }
    let room = tempfile::Builder::new().prefix(".isobench-").tempdir_in(Path::new(FOLDER))?;
    let new = room.path().join(NAME);
    if symlink(name, &new).is_err() {
        let mut file = fs::File::create_new(&new)?;
        writeln!(file, "{MARK}{}", Path::new(name).display())?;
    }
    fs::rename(new, link)
}

fn found(link: &Path) -> io::Result<Found> {
    let kind = match link.symlink_metadata() {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let target = if kind.is_symlink() {
        Some(fs::read_link(link)?)
    } else if kind.is_file() {
        named_in(link)?
    } else {
        None
    };
    Ok(target.filter(|target| is_name(target)).map_or(Found::Foreign, Found::Ours))
}

/// The folder that a text file of ours names.
fn named_in(file: &Path) -> io::Result<Option<PathBuf>> {
    let mut text = String::new();
    match fs::File::open(file)?.take(LONGEST).read_to_string(&mut text) {
        Ok(_) => Ok(text.strip_prefix(MARK).map(|name| PathBuf::from(name.trim_end()))),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(error),
    }
}

/// True for a single name, so that nothing outside the folder is reached.
fn is_name(target: &Path) -> bool {
    let mut parts = target.components();
    matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
}

/// The result that a path of the command line means: the file itself, or the result in a folder.
/// Of several results in a folder it is the newest.
///
/// # Errors
/// The folder has no result, or a link on the way isn't to be trusted; the message names it.
pub fn result_in(path: &Path) -> Outcome<PathBuf> {
    let failure = |why: &dyn std::fmt::Display| Failure::setup(format!("\"{}\": {why}", path.display()));
    refuse_foreign_links(path).map_err(|error| failure(&error))?;
    if path.file_name().is_some_and(|name| name == NAME)
        && let Ok(Found::Ours(name)) = found(path)
    {
        return complete(&path.with_file_name(name)).ok_or_else(|| {
            failure(&format!("it leads to a folder that has no {RESULT} any more; name a result"))
        });
    }
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    if let Some(result) = complete(path) {
        return Ok(result);
    }
    if path.join(NAME).symlink_metadata().is_ok() {
        return result_in(&path.join(NAME));
    }
    Err(failure(&format!("the folder has no {RESULT}; name a result, as compare or --json writes it")))
}

/// The result in a folder, if there is one.
fn complete(folder: &Path) -> Option<PathBuf> {
    Some(folder.join(RESULT)).filter(|result| result.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_a_name_beside_it_only() {
        for (target, ours) in [
            ("2026-01-01T00-00-00Z", true),
            ("..", false),
            ("../x", false),
            ("/etc", false),
            ("", false),
            ("a/b", false),
        ] {
            assert_eq!(is_name(Path::new(target)), ours, "{target}");
        }
    }

    #[test]
    fn links_and_texts_of_ours_are_known_and_nothing_else() {
        let scene = tempfile::tempdir().expect("a folder");
        let link = scene.path().join(NAME);
        let kind = || match found(&link).expect("it can be read") {
            Found::Nothing => "nothing".to_owned(),
            Found::Ours(name) => name.display().to_string(),
            Found::Foreign => "foreign".to_owned(),
        };
        assert_eq!(kind(), "nothing");
        symlink("one", &link).expect("a link");
        assert_eq!(kind(), "one");
        fs::remove_file(&link).expect("the link");
        symlink("/tmp", &link).expect("a link");
        assert_eq!(kind(), "foreign");
        fs::remove_file(&link).expect("the link");
        for (text, expected) in [
            (&b"isobench's newest result: two\n"[..], "two"),
            (b"my notes", "foreign"),
            (b"\xff\xfe", "foreign"),
        ] {
            fs::write(&link, text).expect("a file");
            assert_eq!(kind(), expected);
        }
        fs::write(&link, format!("{MARK}../..\n")).expect("a file");
        assert_eq!(kind(), "foreign");
        fs::remove_file(&link).expect("the file");
        fs::create_dir(&link).expect("a folder");
        assert_eq!(kind(), "foreign");
    }
}
