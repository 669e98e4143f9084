//! Works on whole folders: copy, give away, open for reading.

use std::fs::{self, DirBuilder, DirEntry, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// Copies a folder of plain files and folders; the copy's folders have mode 0700.
///
/// `std::fs::copy` lets the file system share the blocks where it can (reflink), else copies in the kernel.
/// Links and special files are refused: a data folder fresh from `initdb` has none.
pub(crate) fn copy_tree(from: &Path, to: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(&source, &target)?;
        } else if kind.is_file() {
            fs::copy(&source, &target)?;
        } else {
            let message = format!("{} is neither a file nor a folder", source.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
    }
    Ok(())
}

/// Calls `visit` for a path and everything below it, folders before what is in them.
pub(crate) fn visit_tree(path: &Path, visit: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    visit(path)?;
    if fs::symlink_metadata(path)?.is_dir() {
        let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<DirEntry>>>()?;
        // In order, so that a failure is the same one each time.
        entries.sort_by_key(DirEntry::file_name);
        for entry in entries {
            visit_tree(&entry.path(), visit)?;
        }
    }
    Ok(())
}

/// Makes everything below a folder readable (and programs executable) for all users.
pub(crate) fn open_tree(path: &Path) -> io::Result<()> {
    visit_tree(path, &mut |path| {
        let meta = fs::symlink_metadata(path)?;
        if meta.is_symlink() {
            return Ok(());
        }
        let mode = meta.permissions().mode();
        let executable = meta.is_dir() || mode & 0o100 != 0;
        let wanted = mode | if executable { 0o555 } else { 0o444 };
        fs::set_permissions(path, Permissions::from_mode(wanted))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_and_modes_are_copied_and_links_refused() {
        let top = tempfile::tempdir().expect("folder");
        let (from, to) = (top.path().join("from"), top.path().join("to"));
        fs::create_dir_all(from.join("base/1")).expect("create");
        fs::write(from.join("base/1/112"), b"page").expect("write");
        fs::set_permissions(from.join("base/1/112"), Permissions::from_mode(0o600)).expect("chmod");
        copy_tree(&from, &to).expect("copy");
        let copied = to.join("base/1/112");
        assert_eq!(fs::read(&copied).expect("read"), b"page");
        assert_eq!(fs::metadata(&copied).expect("metadata").permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&to).expect("metadata").permissions().mode() & 0o777, 0o700);

        symlink("/etc/passwd", from.join("link")).expect("link");
        let error = copy_tree(&from, &top.path().join("again")).expect_err("a link");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn an_opened_tree_can_be_used_by_all() {
        let top = tempfile::tempdir().expect("folder");
        let inner = top.path().join("bin");
        DirBuilder::new().mode(0o700).create(&inner).expect("create");
        for (name, mode) in [("program", 0o700), ("text", 0o600)] {
            fs::write(inner.join(name), "").expect("write");
            fs::set_permissions(inner.join(name), Permissions::from_mode(mode)).expect("chmod");
        }
        symlink("missing", inner.join("dangling")).expect("link");
        open_tree(&inner).expect("open");
        let mode = |path: &Path| fs::metadata(path).expect("metadata").permissions().mode() & 0o777;
        assert_eq!(mode(&inner), 0o755);
        assert_eq!(mode(&inner.join("program")), 0o755);
        assert_eq!(mode(&inner.join("text")), 0o644);
    }
}
