//! Creates a data folder as a copy of one that `initdb` prepared earlier, which takes a tenth of
//! the time.
//!
//! A template is kept for each path of programs, with a stamp of their identity and the arguments
//! of `initdb`; it is replaced if the stamp differs. The template's folder and its stamp are the
//! caller's. The data in it belong to the user who runs servers and are copied by a process of that
//! user, so that root doesn't read anything that user could have replaced.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::ServerError;
use crate::account::Account;
use crate::binaries::Binaries;
use crate::cache::{Cache, lock_file};
use crate::folder::{self, DATA};
use crate::postmaster::ServerFiles;

/// The options of `initdb`. UTF8 and the locale C exist everywhere and sort identically, and the
/// server's messages are in English. Users who can access the socket (in a closed folder) are
/// trusted. Over TCP, which is off by default, any local user can connect, so a password is
/// required.
const INITDB: [&str; 5] = [
    "--username=postgres",
    "--encoding=UTF8",
    "--locale=C",
    "--auth-local=trust",
    "--auth-host=scram-sha-256",
];

/// Creates a data folder, which must not exist yet.
///
/// Without a usable cache, `initdb` creates it directly, which is slower by a second and keeps
/// nothing.
pub(crate) fn make_data(
    binaries: &Binaries,
    files: &ServerFiles,
    cache: &Cache,
    note: &mut dyn FnMut(&str),
) -> Result<(), ServerError> {
    let data = files.data();
    make_folder(&files.account, &data)?;
    // The temporary folder keeps only fetched binaries, because users don't expect more to remain
    // there.
    let result = if cache.is_temporary && !binaries.fetched {
        Err(None)
    } else {
        from_template(binaries, &files.account, cache, &data, note).map_err(Some)
    };
    match result {
        Ok(()) => Ok(()),
        Err(Some(error @ ServerError::UnsafeCache { .. })) => Err(error),
        // The disk would be full again; all other problems may be due to the cache.
        Err(Some(error @ ServerError::NoSpace { .. })) if is_same_disk(&cache.folder, &data) => Err(error),
        Err(_) => {
            folder::remove(&data)?;
            make_folder(&files.account, &data)?;
            note(&format!("preparing PostgreSQL {} (initdb) …", binaries.version.text));
            initdb(binaries, &files.account, &data, false)
        }
    }
}

/// Copies the data folder of a server that isn't running, and was shut down in order, for a standby.
pub(crate) fn copy_for_standby(server: &ServerFiles, standby: &ServerFiles) -> Result<(), ServerError> {
    let (from, data) = (server.data(), standby.data());
    make_folder(&server.account, &data)?;
    let failed = |message| ServerError::io("write", &data, io::Error::other(message));
    let mut copy = server.account.command(Path::new("cp"));
    copy.args(["-R", "--"]).arg(from.join(".")).arg(&data);
    Account::run(&mut copy, &data, failed)?;
    let mut signal = server.account.command(Path::new("touch"));
    signal.arg("--").arg(data.join("standby.signal"));
    Account::run(&mut signal, &data, failed)
}

fn make_folder(account: &Account, path: &Path) -> Result<(), ServerError> {
    account.make_folder(path).map_err(|source| ServerError::io("create the folder", path, source))
}

fn is_same_disk(one: &Path, other: &Path) -> bool {
    let disk = |path: &Path| fs::metadata(path).map(|meta| meta.dev()).ok();
    disk(one) == disk(other)
}

fn from_template(
    binaries: &Binaries,
    account: &Account,
    cache: &Cache,
    data: &Path,
    note: &mut dyn FnMut(&str),
) -> Result<(), ServerError> {
    let folder = cache.make("templates")?;
    let key = key(&binaries.folder);
    let (template, lock_path) = (folder.join(&key), folder.join(format!("{key}.lock")));
    let stamp = stamp(binaries);
    let lock = lock_file(&lock_path)?;
    let io = |source| ServerError::io("lock", &lock_path, source);
    lock.lock_shared().map_err(io)?;
    if !has_stamp(&template, &stamp) {
        lock.unlock().map_err(io)?;
        lock.lock().map_err(io)?;
        // Another process may have created it in the meantime.
        if !has_stamp(&template, &stamp) {
            note(&format!("preparing PostgreSQL {} for the first time (initdb) …", binaries.version.text));
            make_template(binaries, account, &folder, &template, &stamp)?;
        }
    }
    let mut copy = account.command(Path::new("cp"));
    copy.args(["-R", "--"]).arg(template.join(DATA).join(".")).arg(data);
    Account::run(&mut copy, data, |message| ServerError::io("write", data, io::Error::other(message)))
}

fn make_template(
    binaries: &Binaries,
    account: &Account,
    folder: &Path,
    template: &Path,
    stamp: &str,
) -> Result<(), ServerError> {
    // Leftovers of runs that were killed while creating a template. The next name differs, because
    // a killed run's initdb may still be running.
    let prefix = format!("{}.new-", template.file_name().unwrap_or_default().to_string_lossy());
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()) {
            let _ = folder::remove(&entry.path());
        }
    }
    let staging = tempfile::Builder::new().prefix(&prefix).tempdir_in(folder);
    let staging = staging.map_err(|source| ServerError::io("create a folder in", folder, source))?.keep();
    let io = |action| {
        let path = staging.clone();
        move |source| ServerError::io(action, &path, source)
    };
    let data = staging.join(DATA);
    let made = account
        .admit(&staging)
        .map_err(io("open"))
        .and_then(|()| make_folder(account, &data))
        .and_then(|()| initdb(binaries, account, &data, true))
        .and_then(|()| fs::write(staging.join("stamp"), stamp).map_err(io("write")))
        .and_then(|()| folder::remove(template))
        .and_then(|()| fs::rename(&staging, template).map_err(io("rename")));
    if made.is_err() {
        let _ = folder::remove(&staging);
    }
    remove_orphans(folder);
    made
}

/// Runs `initdb`. A permanent folder is flushed to disk, a temporary one isn't.
fn initdb(binaries: &Binaries, account: &Account, data: &Path, lasting: bool) -> Result<(), ServerError> {
    let program = binaries.program("initdb");
    let mut arguments: Vec<OsString> = ["-D".into(), data.into()].into();
    arguments.extend(INITDB.map(OsString::from));
    if !lasting {
        arguments.push("--no-sync".into());
    }
    let mut command = account.command(&program);
    command.args(&arguments);
    Account::run(&mut command, data.parent().unwrap_or(data), |message| {
        let hint = if message.contains("user does not exist") {
            " (PostgreSQL needs an entry in /etc/passwd for the user who runs it)"
        } else {
            ""
        };
        ServerError::Initdb { program, message: format!("{message}{hint}") }
    })
}

/// Removes templates whose programs no longer exist, for example after an upgrade.
fn remove_orphans(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let stamp = fs::read_to_string(path.join("stamp")).unwrap_or_default();
        let Some(program) = stamp.lines().next() else {
            continue;
        };
        let unused = !Path::new(program).exists()
            && lock_file(&path.with_extension("lock")).is_ok_and(|lock| lock.try_lock().is_ok());
        if unused {
            let _ = folder::remove(&path);
            let _ = fs::remove_file(path.with_extension("lock"));
        }
    }
}

/// True if a template exists and has the wanted stamp.
fn has_stamp(template: &Path, stamp: &str) -> bool {
    fs::read_to_string(template.join("stamp")).is_ok_and(|found| found == stamp)
}

/// The dependencies of a template: the program, its version and build, and the arguments of
/// `initdb`.
fn stamp(binaries: &Binaries) -> String {
    let program = binaries.program("postgres");
    let build = fs::metadata(&program).map(|meta| format!("{} {}", meta.len(), meta.mtime()));
    format!(
        "{}\n{}\n{}\n{}\n",
        program.display(),
        binaries.version_line,
        build.unwrap_or_default(),
        INITDB.join(" ")
    )
}

/// A short name for a path: its FNV-1a hash, which unlike std's never changes.
fn key(path: &Path) -> String {
    let path: PathBuf = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let hash = path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_stable_and_differ_by_path() {
        assert_eq!(key(Path::new("/nonexistent/a")), "3f470bb58e9ac2b5");
        assert_ne!(key(Path::new("/nonexistent/a")), key(Path::new("/nonexistent/b")));
    }

    #[test]
    fn templates_of_vanished_programs_are_removed() {
        let folder = tempfile::tempdir().expect("folder");
        for (name, program) in [("gone", "/nonexistent/postgres"), ("here", "/bin/sh")] {
            fs::create_dir(folder.path().join(name)).expect("create");
            fs::write(folder.path().join(name).join("stamp"), format!("{program}\nx\n")).expect("write");
        }
        fs::create_dir(folder.path().join("unfinished.new")).expect("create");
        remove_orphans(folder.path());
        assert!(!folder.path().join("gone").exists() && !folder.path().join("gone.lock").exists());
        assert!(folder.path().join("here").exists() && folder.path().join("unfinished.new").exists());
    }
}
