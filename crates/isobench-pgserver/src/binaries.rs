//! Finds the server's programs: given, installed, or fetched.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::io::Errno;

use crate::account::Account;
use crate::cache::Cache;
use crate::fetch::fetch;
use crate::version::Version;
use crate::{MajorVersion, ServerError, ServerOptions};

/// The oldest major version that writes "ready" to `postmaster.pid`.
const OLDEST_MAJOR: u32 = 10;
/// The programs that a folder must have.
const PROGRAMS: [&str; 2] = ["postgres", "initdb"];
/// Folders of well-known packages, where a star matches any name: Debian, Red Hat, Homebrew,
/// source.
const KNOWN_FOLDERS: [&str; 9] = [
    "/usr/lib/postgresql/*/bin",
    "/usr/lib/postgresql*/bin",
    "/usr/libexec/postgresql*",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
    "/usr/local/pgsql/bin",
    "/usr/local/pgsql-*/bin",
];

/// A server's programs.
#[derive(Clone, Debug)]
pub(crate) struct Binaries {
    /// The folder that contains them.
    pub(crate) folder: PathBuf,
    /// Their version.
    pub(crate) version: Version,
    /// The whole line printed by `--version`.
    pub(crate) version_line: String,
    /// The origin, for messages.
    pub(crate) origin: String,
    /// True if they were fetched.
    pub(crate) fetched: bool,
}

impl Binaries {
    /// The path of a program.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Examines a folder and asks the server for its version.
    fn open(folder: &Path, account: &Account, origin: &str) -> Result<Self, ServerError> {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        account.check_reach(&folder)?;
        if let Some(program) = PROGRAMS.into_iter().find(|program| !folder.join(program).is_file()) {
            return Err(ServerError::MissingProgram { folder, program });
        }
        let program = folder.join("postgres");
        let output = account.command(&program).arg("--version").output();
        let output = output.map_err(|error| spawn_error(error, program.clone(), account))?;
        let line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let Some(version) = Version::parse(&line).filter(|_| output.status.success()) else {
            let errors = String::from_utf8_lossy(&output.stderr);
            let message = if is_for_another_machine(&program) {
                "it is built for another kind of machine".to_owned()
            } else {
                format!("{} ({})", errors.trim(), output.status)
            };
            return Err(ServerError::WontRun { program, message });
        };
        if version.major < OLDEST_MAJOR {
            return Err(ServerError::TooOld { program, version: version.text });
        }
        Ok(Self { folder, version, version_line: line, origin: origin.to_owned(), fetched: false })
    }
}

/// Finds the programs to use: the given folder, the version to fetch, the newest installed server
/// of a supported version, or the newest supported one, fetched.
pub(crate) fn find(
    options: &ServerOptions,
    account: &Account,
    cache: &Cache,
    note: &mut dyn FnMut(&str),
) -> Result<Binaries, ServerError> {
    match (&options.bin, options.version) {
        (Some(_), Some(_)) => Err(ServerError::BinAndVersion),
        (Some(folder), None) => Binaries::open(folder, account, "--server-bin"),
        (None, Some(version)) => fetched(version, account, cache, note),
        (None, None) => match newest(&candidates()?, account)? {
            Some(binaries) => Ok(binaries),
            None => fetched(MajorVersion::FETCHED, account, cache, note),
        },
    }
}

fn fetched(
    version: MajorVersion,
    account: &Account,
    cache: &Cache,
    note: &mut dyn FnMut(&str),
) -> Result<Binaries, ServerError> {
    // Checked before the download rather than after it.
    account.check_reach(&cache.folder)?;
    let folder = fetch(version, cache, note)?;
    Binaries::open(&folder, account, "fetched").map(|binaries| Binaries { fetched: true, ..binaries })
}

/// Selects the newest server that works and has a supported version; `None` if none is installed.
///
/// # Errors
/// The reason that none works, if there are some: fetching another one would hide what is wrong
/// with them. [`ServerError::CannotBecome`] and [`ServerError::Io`] are returned immediately,
/// because they would affect any other server.
fn newest(folders: &[PathBuf], account: &Account) -> Result<Option<Binaries>, ServerError> {
    let oldest = u32::from(MajorVersion::OLDEST.get());
    let mut best: Option<Binaries> = None;
    let mut broken = None;
    for folder in folders {
        match Binaries::open(folder, account, &format!("installed at {}", folder.display())) {
            Ok(next) => {
                // The first one of equal versions, so that PATH takes precedence.
                let is_newer = best.as_ref().is_none_or(|best| next.version.compare(&best.version).is_gt());
                if is_newer && next.version.major >= oldest {
                    best = Some(next);
                }
            }
            Err(error @ (ServerError::CannotBecome { .. } | ServerError::Io { .. })) => return Err(error),
            Err(error @ ServerError::WontRun { .. }) => broken = broken.or(Some(error)),
            // It doesn't exist, isn't accessible to the user who runs servers, or is too old.
            Err(_) => (),
        }
    }
    match (best, broken) {
        (None, Some(error)) => Err(error),
        (best, _) => Ok(best),
    }
}

/// Lists the folders in which a server may be installed, without duplicates and without examining
/// them.
///
/// # Errors
/// If the system couldn't search them. Missing or inaccessible folders aren't errors.
fn candidates() -> Result<Vec<PathBuf>, ServerError> {
    let mut folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    folders.extend(pg_config_folder()?);
    for pattern in KNOWN_FOLDERS {
        folders.extend(expand(pattern)?);
    }
    let mut real_folders = Vec::new();
    for folder in folders {
        if let Some(folder) = real_folder(&folder)?
            && !real_folders.contains(&folder)
        {
            real_folders.push(folder);
        }
    }
    Ok(real_folders)
}

/// The result for a path; `None` if it doesn't exist or isn't accessible.
fn found<T>(result: io::Result<T>, path: &Path) -> Result<Option<T>, ServerError> {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound, PermissionDenied};
    match result {
        Ok(found) => Ok(Some(found)),
        // The system's error for a circle of links has no stable kind.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => Ok(None),
        Err(error) => match error.kind() {
            NotFound | NotADirectory | PermissionDenied | InvalidFilename | InvalidInput => Ok(None),
            _ => Err(ServerError::io("look for an installed PostgreSQL at", path, error)),
        },
    }
}

/// The folder of a server's programs, with links such as those in `/usr/local/bin` resolved.
fn real_folder(folder: &Path) -> Result<Option<PathBuf>, ServerError> {
    let program = folder.join("postgres");
    let Some(real) = found(fs::canonicalize(&program), &program)? else { return Ok(None) };
    let is_complete = |folder: &Path| folder.join("postgres").is_file() && folder.join("initdb").is_file();
    match real.parent() {
        Some(real) if is_complete(real) => Ok(Some(real.to_owned())),
        _ => found(std::path::absolute(folder), folder),
    }
}

fn pg_config_folder() -> Result<Option<PathBuf>, ServerError> {
    let program = "pg_config";
    let Some(output) = found(Command::new(program).arg("--bindir").output(), Path::new(program))? else {
        return Ok(None);
    };
    let folder = String::from_utf8(output.stdout).ok().filter(|_| output.status.success());
    Ok(folder.map(|folder| folder.trim().into()))
}

/// Lists the paths that match a pattern, in which a star matches any letters within a name.
fn expand(pattern: &str) -> Result<Vec<PathBuf>, ServerError> {
    let mut folders = vec![PathBuf::from("/")];
    for part in pattern.split('/').skip(1) {
        folders = match part.split_once('*') {
            None => folders.into_iter().map(|folder| folder.join(part)).collect(),
            Some((start, end)) => {
                let all = folders.iter().map(|folder| matching(folder, start, end));
                all.collect::<Result<Vec<_>, _>>()?.concat()
            }
        };
    }
    Ok(folders)
}

fn matching(folder: &Path, start: &str, end: &str) -> Result<Vec<PathBuf>, ServerError> {
    let Some(entries) = found(fs::read_dir(folder), folder)? else { return Ok(Vec::new()) };
    let fits = |name: &OsStr| {
        name.to_str().is_some_and(|name| {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        })
    };
    let mut matching = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| ServerError::io("read", folder, error))?;
        if fits(&entry.file_name()) {
            matching.push(entry.path());
        }
    }
    matching.sort();
    Ok(matching)
}

/// True if a program's ELF header has another machine type than this process. (Checked after a
/// failure: if the system can't execute a program, it passes it to the shell, whose message is
/// misleading.)
fn is_for_another_machine(program: &Path) -> bool {
    /// Magic number, header type, and (from byte 18) machine.
    const HEADER: usize = 20;
    let header = |path: &Path| {
        let mut header = [0; HEADER];
        File::open(path).and_then(|mut file| file.read_exact(&mut header)).ok().map(|()| header)
    };
    let (Some(theirs), Some(ours)) = (header(program), header(Path::new("/proc/self/exe"))) else {
        return false;
    };
    theirs.starts_with(b"\x7fELF") && (theirs[4..6] != ours[4..6] || theirs[18..] != ours[18..])
}

/// Makes the error for a program that the system can't start, with an explanation if the message
/// lacks one.
fn spawn_error(error: io::Error, program: PathBuf, account: &Account) -> ServerError {
    let hint = match (Errno::from_io_error(&error), account.other_name()) {
        (Some(Errno::PERM | Errno::INVAL), Some(user)) => {
            return ServerError::CannotBecome { user: user.to_owned(), source: error };
        }
        // The program isn't at fault: the system can't start any program.
        (Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN), _) => {
            return ServerError::io("run", &program, error);
        }
        (Some(Errno::NOENT), _) => {
            "; the file is there, so its dynamic loader isn't: it is built for another system"
        }
        _ => "",
    };
    ServerError::WontRun { program, message: format!("{error}{hint}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// Creates a folder with programs that print a version.
    fn fake(top: &Path, name: &str, script: &str) -> PathBuf {
        let folder = top.join(name);
        fs::create_dir_all(&folder).expect("create");
        for program in PROGRAMS {
            fs::write(folder.join(program), script).expect("write");
            fs::set_permissions(folder.join(program), fs::Permissions::from_mode(0o755)).expect("chmod");
        }
        folder
    }

    fn stating(version: &str) -> String {
        format!("#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
    }

    fn top() -> tempfile::TempDir {
        let top = tempfile::tempdir().expect("folder");
        fs::set_permissions(top.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
        top
    }

    fn open(folder: &Path) -> Result<Binaries, ServerError> {
        Binaries::open(folder, &Account::for_server().expect("account"), "--server-bin")
    }

    #[test]
    fn the_newest_supported_server_that_runs_wins() {
        let top = top();
        let folders = [
            fake(top.path(), "old", &stating("13.1")),
            fake(top.path(), "a", &stating("16.9")),
            fake(top.path(), "b", &stating("16.10")),
            fake(top.path(), "same", &stating("16.10")),
            fake(top.path(), "broken", "#!/bin/sh\nexit 1\n"),
            top.path().join("missing"),
        ];
        let account = Account::for_server().expect("account");
        let found = newest(&folders, &account).expect("no error").expect("one");
        assert_eq!((found.version.text.as_str(), found.folder), ("16.10", top.path().join("b")));
        assert!(found.origin.starts_with("installed at /"));
        assert!(newest(&folders[..1], &account).expect("no error").is_none());
    }

    #[test]
    fn what_is_installed_and_does_not_run_is_not_missing() {
        let top = top();
        let broken = fake(top.path(), "broken", "#!/bin/sh\necho 'Error 24' >&2\nexit 127\n");
        let account = Account::for_server().expect("account");
        let error = newest(&[top.path().join("missing"), broken], &account).expect_err("broken");
        assert!(error.to_string().contains("Error 24"), "{error}");
    }

    #[test]
    fn not_there_and_not_to_be_looked_at_are_told_apart() {
        let path = Path::new("/x");
        for missing in [Errno::NOENT, Errno::NOTDIR, Errno::ACCESS, Errno::NAMETOOLONG, Errno::LOOP] {
            let result: io::Result<()> = Err(missing.into());
            assert!(matches!(found(result, path), Ok(None)), "{missing}");
        }
        for trouble in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN, Errno::IO] {
            let result: io::Result<()> = Err(trouble.into());
            let message = found(result, path).expect_err("trouble").to_string();
            assert!(message.starts_with("cannot look for an installed PostgreSQL at /x: "), "{message}");
        }
    }

    #[test]
    fn what_is_missing_or_broken_is_named() {
        let top = top();
        let folder = fake(top.path(), "no-initdb", &stating("18.1"));
        fs::remove_file(folder.join("initdb")).expect("remove");
        let message = open(&folder).expect_err("no initdb").to_string();
        assert!(message.contains("there is no initdb") && message.contains("no-initdb"), "{message}");
        let message = open(Path::new("/nonexistent")).expect_err("no folder").to_string();
        assert!(message.contains("there is no postgres in /nonexistent"), "{message}");

        let noise = "#!/bin/sh\necho 'libfoo.so.1: cannot open shared object file' >&2\nexit 127\n";
        let message = open(&fake(top.path(), "library", noise)).expect_err("a library").to_string();
        assert!(message.contains("libfoo.so.1") && message.contains("127"), "{message}");
        let message =
            open(&fake(top.path(), "loader", "#!/nonexistent/sh\n")).expect_err("loader").to_string();
        assert!(message.contains("dynamic loader"), "{message}");
        let message = open(&fake(top.path(), "arch", &format!("\u{7f}ELF{}", "\u{1}".repeat(16))))
            .expect_err("arch")
            .to_string();
        assert!(message.contains("another kind of machine"), "{message}");
        let message = open(&fake(top.path(), "ancient", &stating("9.6.1"))).expect_err("old").to_string();
        assert!(message.contains("9.6.1"), "{message}");
    }

    #[test]
    fn a_folder_and_a_version_exclude_each_other() {
        let options = ServerOptions {
            bin: Some("/x".into()),
            version: Some(MajorVersion::FETCHED),
            ..ServerOptions::default()
        };
        let account = Account::for_server().expect("account");
        let cache = Cache { folder: "/nonexistent".into(), is_temporary: false };
        let result = find(&options, &account, &cache, &mut |_| ());
        assert!(matches!(result, Err(ServerError::BinAndVersion)));
    }

    #[test]
    fn patterns_are_expanded() {
        let top = top();
        for name in ["pgsql-9/bin", "pgsql-18/bin", "other/bin"] {
            fs::create_dir_all(top.path().join(name)).expect("create");
        }
        let pattern = format!("{}/pgsql-*/bin", top.path().display());
        let found = expand(&pattern).expect("no error");
        assert_eq!(found, [top.path().join("pgsql-18/bin"), top.path().join("pgsql-9/bin")]);
        assert_eq!(expand("/nonexistent-*/bin").expect("no error"), Vec::<PathBuf>::new());
    }
}
