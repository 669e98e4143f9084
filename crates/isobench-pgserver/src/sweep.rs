//! Removes what killed runs left behind.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;

use crate::account::Account;
use crate::folder::{self, OWNER_FILE, PREFIX};
use crate::postmaster::{self, Place};
use crate::process;

/// Age from which a folder without an owner file is a leftover, not one that is just being made.
const UNOWNED_AGE: Duration = Duration::from_mins(10);

/// Longest path read from an owner file, in bytes.
const LONGEST_PATH: u64 = 4096;

/// Stops the servers and removes the folders of runs whose program is dead.
///
/// Only folders of the caller (for root also of the user who runs its servers) are looked at. A run is
/// dead if the lock on its owner file is free: the system frees it when a process dies, however it does,
/// and it works where process ids don't, as between containers that share `/tmp`. A server is stopped
/// only if its process works in that folder. What can't be removed stays for the next time.
pub fn sweep_leftovers() {
    let Ok(account) = Account::for_server() else {
        return;
    };
    let mut seen = Vec::new();
    for place in folder::places() {
        let Ok(place) = fs::canonicalize(place) else {
            continue;
        };
        if !seen.contains(&place) {
            sweep(&place, &account);
            seen.push(place);
        }
    }
}

fn sweep(place: &Path, account: &Account) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let ours = entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes())
            // Of the entry itself: a link is never followed.
            && entry.metadata().is_ok_and(|meta| meta.is_dir() && account.is_ours(meta.uid()));
        if ours {
            sweep_folder(&entry.path(), account);
        }
    }
}

fn sweep_folder(path: &Path, account: &Account) {
    let owner_file = path.join(OWNER_FILE);
    let owner = match open_plain(&owner_file) {
        Ok(owner) => owner,
        Err(error) => {
            if error.kind() == io::ErrorKind::NotFound && is_old(path) {
                let _ = folder::remove(path);
            }
            return;
        }
    };
    // Kept until the end, so that no other sweep works on the same folder.
    if owner.try_lock().is_err() {
        return;
    }
    let mut program = Vec::new();
    let _ = (&owner).take(LONGEST_PATH).read_to_end(&mut program);
    let program = PathBuf::from(OsStr::from_bytes(&program));
    let place = Place { program, account: account.clone(), folder: path.to_owned() };
    if process::end_server(&place.data(), None) {
        postmaster::release_shared_memory(&place);
        let _ = folder::remove(path);
    }
}

/// Opens a file without following a link or waiting for a pipe: for root, the folder is another user's.
fn open_plain(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

fn is_old(path: &Path) -> bool {
    let changed = fs::metadata(path).and_then(|meta| meta.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|age| age > UNOWNED_AGE))
}
