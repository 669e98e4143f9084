//! Removes the leftovers of killed runs.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::account::Account;
use crate::folder::{self, OWNER_FILE, PREFIX};
use crate::postmaster::{self, ServerFiles};
use crate::process;
use isobench_trust::{is_own_folder, open_plain, safe_place};

/// The age from which a folder without an owner file is a leftover, rather than being created.
const UNOWNED_AGE: Duration = Duration::from_mins(10);

/// The maximum length of the path in an owner file, in bytes.
const LONGEST_PATH: u64 = 4096;

/// Stops the servers and removes the folders of runs whose program is dead.
///
/// Only the caller's own folders are considered, in places where no other user can replace them: a
/// folder of the same name made by another user doesn't cause anything to be run, read or removed.
/// A run is dead if the lock on its owner file is free. The system releases the lock however the
/// process dies, and locks work where process ids don't, for example between containers that share
/// `/tmp`. A server is stopped only if its process works in that folder and belongs to the owner of
/// the data, whose privileges also suffice for removing the data. Whatever can't be removed is left
/// for the next sweep.
pub fn sweep_leftovers() {
    let mut seen = Vec::new();
    for place in folder::places() {
        let Ok(place) = safe_place(&place) else {
            continue;
        };
        if !seen.contains(&place) {
            sweep(&place);
            seen.push(place);
        }
    }
}

fn sweep(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
            // The metadata of the entry itself: links are never followed.
            && entry.metadata().is_ok_and(|meta| is_own_folder(&meta));
        if ours {
            sweep_folder(&entry.path());
        }
    }
}

fn sweep_folder(path: &Path) {
    let owner = match open_plain(&path.join(OWNER_FILE)) {
        Ok(owner) => owner,
        Err(error) => {
            if error.kind() == io::ErrorKind::NotFound && is_old(path) {
                let _ = folder::remove(path);
            }
            return;
        }
    };
    // Kept until the end, so that concurrent sweeps don't work on the same folder.
    if owner.try_lock().is_err() {
        return;
    }
    let mut program = Vec::new();
    let _ = (&owner).take(LONGEST_PATH).read_to_end(&mut program);
    let program = PathBuf::from(OsStr::from_bytes(&program));
    for data in folder::data_folders(path) {
        let Ok(meta) = fs::symlink_metadata(&data) else { continue };
        if !process::end_server(&data, None) {
            return;
        }
        let files = ServerFiles::of(program.clone(), Account::owner(&meta), &data);
        postmaster::release_shared_memory(&files);
    }
    let _ = folder::remove(path);
}

fn is_old(path: &Path) -> bool {
    let changed = fs::symlink_metadata(path).and_then(|meta| meta.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > UNOWNED_AGE))
}
