//! Folders for tests that start servers.

use std::path::PathBuf;

use tempfile::TempDir;

/// The longest path that leaves room for a socket's below it, whose length is limited.
const LONGEST: usize = "/dev/shm".len();

/// Creates a folder with a short path: in `TMPDIR` if that is short, which lets servers of tests be
/// in memory, else in `/tmp`.
///
/// # Panics
/// If it can't be created.
pub fn short() -> TempDir {
    let place = Some(std::env::temp_dir()).filter(|place| place.as_os_str().len() <= LONGEST);
    let place = place.unwrap_or_else(|| PathBuf::from("/tmp"));
    tempfile::Builder::new().prefix("isob").tempdir_in(place).expect("a folder")
}
