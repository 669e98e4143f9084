//! Makes an unpacked folder available to all users: they can read and run its contents, but only
//! its owner can write.

use std::fs::{self, DirEntry, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Makes a folder and its contents readable (and programs executable) for all users, and writable
/// only for its owner. Links are left unchanged.
pub(crate) fn open_tree(path: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(path)?;
    if meta.is_symlink() {
        return Ok(());
    }
    let mode = meta.permissions().mode();
    let executable = meta.is_dir() || mode & 0o100 != 0;
    let wanted = (mode | if executable { 0o555 } else { 0o444 }) & !0o022;
    fs::set_permissions(path, Permissions::from_mode(wanted))?;
    if meta.is_dir() {
        let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<DirEntry>>>()?;
        // Sorted, so that a failure is always the same one.
        entries.sort_by_key(DirEntry::file_name);
        for entry in entries {
            open_tree(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn an_opened_tree_can_be_used_by_all_and_changed_by_nobody_else() {
        let top = tempfile::tempdir().expect("folder");
        let inner = top.path().join("bin");
        fs::create_dir(&inner).expect("create");
        for (name, mode) in [("program", 0o700), ("text", 0o600), ("open", 0o666)] {
            fs::write(inner.join(name), "").expect("write");
            fs::set_permissions(inner.join(name), Permissions::from_mode(mode)).expect("chmod");
        }
        fs::set_permissions(&inner, Permissions::from_mode(0o777)).expect("chmod");
        symlink("missing", inner.join("dangling")).expect("link");
        open_tree(&inner).expect("open");
        let mode = |path: &Path| fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
        assert_eq!(mode(&inner), 0o755);
        assert_eq!(mode(&inner.join("program")), 0o755);
        assert_eq!(mode(&inner.join("text")), 0o644);
        assert_eq!(mode(&inner.join("open")), 0o644);
    }
}
