//! `isobench results prune`: removes old results, and nothing that isn't a result of isobench's.
//!
//! A folder is removed only if it has a result that can be read and its report, and nothing but files
//! that isobench writes, each recognized by its contents. Everything happens below a folder that was
//! opened and checked once, without following links, so that nobody can put anything else in its
//! place. Tagged results stay, and so does the newest.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use isobench_comparison::{Failure, Outcome};
use isobench_result::Document;
use isobench_trust::refuse_foreign_links;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat, unlinkat};

use crate::destination::{HEAD, Kind};
use crate::latest::RESULT;
use crate::options::PruneOptions;
use crate::output::{self, shown};
use crate::saved::tags::{self, untrusted};
use crate::saved::{Saved, SavedResult, counted};

/// The name of a report in a folder of results.
const PAGE: &str = "report.html";

/// Lists what would be removed, or removes it.
///
/// # Errors
/// The folder can't be read; for root, others can write to it; a file can't be removed.
pub fn prune(folder: &Path, options: &PruneOptions) -> Outcome {
    let saved = Saved::in_folder(folder)?;
    let failure = |error: io::Error| Failure::setup(format!("{}: {error}", shown(folder)));
    refuse_foreign_links(folder).map_err(failure)?;
    // Links on the way were examined; the last part may be one of the user's own.
    let root = opened(CWD, folder, OFlags::empty()).map_err(failure)?;
    let mut removed = 0;
    for result in old(&saved.results, options) {
        match Removable::examine(&root, &result.name) {
            Err(why) => eprintln!("left alone: {}: {why}", result.name),
            Ok(removable) if options.yes => {
                removable.remove(&root, &result.name).map_err(failure)?;
                output::print(&format!("removed {}\n", result.name))?;
                removed += 1;
            }
            Ok(removable) => {
                output::print(&format!("would remove {}: {}\n", result.name, removable.files.join(", ")))?;
                removed += 1;
            }
        }
    }
    for why in &saved.unreadable {
        eprintln!("left alone: {why}");
    }
    for name in &saved.foreign {
        eprintln!("left alone: {name}: it is no folder with a {RESULT}");
    }
    let word = if options.yes { "removed" } else { "would be removed; --yes removes" };
    let them = if options.yes {
        ""
    } else if removed == 1 {
        " it"
    } else {
        " them"
    };
    output::print(&format!("{} {word}{them}\n", counted(removed)))
}

/// The results that are neither tagged nor new enough to stay, the oldest first.
fn old<'a>(results: &'a [SavedResult], options: &PruneOptions) -> Vec<&'a SavedResult> {
    let keep = options.keep.unwrap_or(1).max(1);
    let is_old = |result: &&SavedResult| {
        // What doesn't say when it was measured isn't known to be old.
        options.older_than.is_none_or(|limit| result.age().is_some_and(|age| age >= limit))
    };
    let candidates = &results[..results.len().saturating_sub(keep)];
    candidates.iter().filter(|result| result.tags.is_empty()).filter(is_old).collect()
}

/// A folder that has nothing but isobench's files.
struct Removable {
    folder: OwnedFd,
    files: Vec<String>,
}

/// Opens a folder that root may change something in.
fn opened(at: impl AsFd, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
    let folder = openat(at, path, flags, Mode::empty())?;
    let there = fstat(&folder)?;
    untrusted(there.st_uid, there.st_mode).map_or(Ok(folder), |why| Err(io::Error::other(why)))
}

impl Removable {
    /// Examines a result's folder; the error says what else is in it.
    fn examine(root: &OwnedFd, name: &str) -> io::Result<Removable> {
        let folder = opened(root, Path::new(name), OFlags::NOFOLLOW)?;
        let mut files = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let file = entry?.file_name().to_string_lossy().into_owned();
            if file == "." || file == ".." {
                continue;
            }
            if !is_ours(&folder, &file)? {
                return Err(io::Error::other(format!(
                    "\"{file}\" in it isn't a file that isobench writes there"
                )));
            }
            files.push(file);
        }
        files.sort();
        if !files.iter().any(|file| file == PAGE) {
            let why = format!("it has no {PAGE}, so it may still be measured (isobench report writes one)");
            return Err(io::Error::other(why));
        }
        if files.iter().any(|file| file == tags::FILE) {
            return Err(io::Error::other("it has tags"));
        }
        Ok(Removable { folder, files })
    }

    fn remove(&self, root: &OwnedFd, name: &str) -> io::Result<()> {
        for file in &self.files {
            unlinkat(&self.folder, file.as_str(), AtFlags::empty())?;
        }
        // Fails if something has come in between.
        Ok(unlinkat(root, name, AtFlags::REMOVEDIR)?)
    }
}

/// True for a regular file that has the name and the contents of one of isobench's.
fn is_ours(folder: &OwnedFd, name: &str) -> io::Result<bool> {
    let there = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(there.st_mode) != FileType::RegularFile {
        return Ok(false);
    }
    let read = |most: u64| -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(openat(folder, name, flags, Mode::empty())?);
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let extension = Path::new(name).extension().and_then(|extension| extension.to_str());
    Ok(match (name, extension) {
        (RESULT, _) => Document::from_json(read(u64::MAX)?).is_ok(),
        (PAGE, _) => Kind::Page.recognises(&read(HEAD)?),
        (tags::FILE, _) => tags::parse(&read(HEAD)?).is_ok(),
        (_, Some("history")) => Kind::History.recognises(&read(HEAD)?),
        (_, Some("csv")) => Kind::Lines.recognises(&read(HEAD)?),
        _ => false,
    })
}
