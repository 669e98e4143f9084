//! Fetches PostgreSQL's binaries, once per version, into the cache.
//!
//! `builds` selects and verifies the build; `download` and `unpack` get it. This file makes that
//! happen once at a time (by a lock), completely or not at all (by a rename), and with modes that
//! let another user run the programs.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::builds::Build;
use crate::cache::{Cache, lock_file};
use crate::download::{self, Limits};
use crate::modes::open_tree;
use crate::unpack::unpack;
use crate::{MajorVersion, ServerError};

/// The limits of the download of about 15 MB. Without a network, waiting longer would be useless.
const LIMITS: Limits = Limits {
    answer: Duration::from_secs(45),
    whole: Duration::from_mins(15),
    size: 100 << 20,
    pauses: &[Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)],
};
/// The maximum unpacked size of a build in bytes; the builds have about 60 MB.
const UNPACKED_LIMIT: u64 = 1 << 30;
/// The name prefix of folders in which downloads are unpacked. The next run removes leftovers of
/// killed ones.
const STAGING: &str = ".new-";

/// Returns the folder of a version's programs, fetching them if necessary.
///
/// The build is fixed in the source, so that the same isobench measures the same server everywhere.
/// After the first time, no network is needed.
///
/// # Errors
/// [`ServerError::Fetch`], with alternatives; [`ServerError::UnsafeCache`].
pub(crate) fn fetch(
    major: MajorVersion,
    cache: &Cache,
    note: &mut dyn FnMut(&str),
) -> Result<PathBuf, ServerError> {
    let failed = |message: String| ServerError::Fetch { version: major, message };
    let build = Build::find(major).ok_or_else(|| {
        let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
        let yet = if major > MajorVersion::FETCHED { " yet" } else { "" };
        failed(format!("isobench has no build of it for {os} on {arch}{yet}"))
    })?;
    if let Some(bin) = find(&build, cache)? {
        return Ok(bin);
    }
    let folder = cache.make("fetched")?;
    let lock_path = folder.join("fetched.lock");
    let lock = lock_file(&lock_path)?;
    if lock.try_lock().is_err() {
        note("waiting for another isobench that is fetching PostgreSQL");
        lock.lock().map_err(|source| ServerError::io("lock", &lock_path, source))?;
    }
    if let Some(bin) = find(&build, cache)? {
        return Ok(bin);
    }
    remove_staging(&folder);
    if cache.is_temporary {
        note(&format!("no cache folder is writable: keeping PostgreSQL in {}", cache.folder.display()));
    }
    note(&format!("fetching PostgreSQL {major} (about 15 MB), once …"));
    let proxy = download::proxy(|name| std::env::var(name).ok());
    let archive = download::get(&build.url(), &LIMITS, proxy).map_err(&failed)?;
    build.verify(&archive).map_err(&failed)?;
    install(&build, &archive, &folder, failed)?;
    note(&format!("fetched PostgreSQL {}", build.version.trim_end_matches(".0")));
    Ok(folder.join(build.folder()).join("bin"))
}

/// Finds a build that was fetched earlier.
fn find(build: &Build, cache: &Cache) -> Result<Option<PathBuf>, ServerError> {
    let bin = cache.find(&format!("fetched/{}/bin", build.folder()))?;
    Ok(bin.filter(|bin| bin.join("postgres").is_file()))
}

/// Unpacks an archive into its folder in `folder`, completely or not at all.
fn install(
    build: &Build,
    archive: &[u8],
    folder: &Path,
    failed: impl Fn(String) -> ServerError,
) -> Result<(), ServerError> {
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |source| ServerError::io(action, &path, source)
    };
    let staging = tempfile::Builder::new().prefix(STAGING).tempdir_in(folder);
    let staging = staging.map_err(io("create a folder in", folder))?;
    let unpacked = staging.path().join("postgresql");
    unpack(archive, &unpacked, UNPACKED_LIMIT).map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ServerError::NoSpace { folder: folder.to_owned() }
        }
        _ => failed(format!("cannot unpack it: {}", with_causes(&error))),
    })?;
    open_tree(&unpacked).map_err(io("open to all", &unpacked))?;
    let target = folder.join(build.folder());
    fs::rename(&unpacked, &target).map_err(io("create", &target))
}

/// The text of an error and of its causes: tar's own errors contain only the file name.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn remove_staging(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(STAGING.as_bytes()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn major(number: u8) -> MajorVersion {
        number.to_string().parse().expect("a supported version")
    }

    fn put(folder: &Path, name: &str) {
        fs::create_dir_all(folder.join(name).join("bin")).expect("create");
        fs::write(folder.join(name).join("bin/postgres"), "").expect("write");
    }

    #[test]
    fn what_was_fetched_needs_no_network_and_no_writing() {
        let Some(build) = Build::find(major(16)) else {
            return println!(
                "skipped: what_was_fetched_needs_no_network_and_no_writing: no build for this machine"
            );
        };
        let folder = tempfile::tempdir().expect("folder");
        put(&folder.path().join("fetched"), &build.folder());
        let cache = Cache { folder: folder.path().to_owned(), is_temporary: false };
        let mut notes = Vec::new();
        let bin = fetch(major(16), &cache, &mut |line| notes.push(line.to_owned())).expect("found");
        assert!(bin.ends_with("bin") && notes.is_empty());
        assert!(!folder.path().join("fetched/fetched.lock").exists());
    }

    #[test]
    fn programs_that_others_can_change_are_refused() {
        let Some(build) = Build::find(major(16)) else {
            return println!(
                "skipped: programs_that_others_can_change_are_refused: no build for this machine"
            );
        };
        let folder = tempfile::tempdir().expect("folder");
        put(&folder.path().join("fetched"), &build.folder());
        let bin = folder.path().join("fetched").join(build.folder()).join("bin");
        // The temporary folder must be accessible to other users, or they couldn't change anything.
        for (path, mode) in [(folder.path(), 0o755), (&bin, 0o777)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("chmod");
        }
        let cache = Cache { folder: folder.path().to_owned(), is_temporary: true };
        let error = fetch(major(16), &cache, &mut |_| ()).expect_err("refused");
        assert!(matches!(error, ServerError::UnsafeCache { .. }), "{error}");
    }

    #[test]
    fn staging_folders_are_removed_and_others_kept() {
        let folder = tempfile::tempdir().expect("folder");
        put(folder.path(), ".new-abc");
        put(folder.path(), "18.1.0");
        remove_staging(folder.path());
        assert!(!folder.path().join(".new-abc").exists() && folder.path().join("18.1.0").exists());
    }
}
