//! Links of other users, in folders that others can write to: they could lead anywhere.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::place::MOST_LINKS;

/// Checks that no link on the way to a file was put there by another user than root, in a folder
/// that others can write to: it could lead anywhere. A path that can't be followed is left to
/// whoever opens it.
///
/// # Errors
/// There is such a link; the message names it.
pub fn refuse_foreign_links(path: &Path) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let trusted = |user: u32| user == own || user == 0;
    let parts =
        |path: &Path| path.components().map(|part| part.as_os_str().to_owned()).collect::<Vec<OsString>>();
    let mut rest: VecDeque<OsString> = parts(path).into();
    let (mut here, mut links) = (PathBuf::new(), 0);
    while let Some(part) = rest.pop_front() {
        let next = here.join(&part);
        let is_link = next.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        if !is_link || links == MOST_LINKS {
            here = next;
            continue;
        }
        links += 1;
        let folder = if here.as_os_str().is_empty() { Path::new(".") } else { &here };
        let (folder, link) = (fs::metadata(folder)?, next.symlink_metadata()?);
        let shared = folder.mode() & 0o022 != 0 || !trusted(folder.uid());
        if shared && !trusted(link.uid()) {
            return Err(io::Error::other(format!(
                "\"{}\" is a link of another user, in a folder that others can write to",
                next.display()
            )));
        }
        for part in parts(&fs::read_link(&next)?).into_iter().rev() {
            rest.push_front(part);
        }
    }
    Ok(())
}

/// Opens a file to show what it holds, if no link of another user's leads to it.
///
/// # Errors
/// One does, or the file can't be opened.
pub fn open_to_show(path: &Path) -> io::Result<File> {
    refuse_foreign_links(path)?;
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_other_users_are_not_followed_where_they_could_be_planted() {
        use std::os::unix::fs::{PermissionsExt as _, lchown, symlink};

        if !rustix::process::geteuid().is_root() {
            // Only root can make a link of another user's.
            return;
        }
        let scene = tempfile::tempdir().expect("a folder");
        let at = |name: &str| scene.path().join(name);
        fs::create_dir(at("real")).expect("a folder");
        symlink("real", at("own")).expect("a link");
        symlink("real", at("theirs")).expect("a link");
        symlink("theirs", at("indirect")).expect("a link");
        symlink("loop", at("loop")).expect("a link");
        lchown(at("theirs"), Some(65534), None).expect("root can");
        let refused = |name: &str| refuse_foreign_links(&at(name)).is_err();
        let seen = ["own/x", "theirs/x", "theirs", "indirect/x", "real/x", "nosuch/x", "loop"].map(refused);
        assert_eq!(seen, [false; 7], "nobody else could have put them there");
        fs::set_permissions(scene.path(), fs::Permissions::from_mode(0o1777)).expect("chmod");
        let seen = ["own/x", "theirs/x", "theirs", "indirect/x", "real/x", "nosuch/x", "loop"].map(refused);
        assert_eq!(seen, [false, true, true, true, false, false, false]);
        let error = refuse_foreign_links(&at("theirs/x")).expect_err("a planted link");
        assert!(error.to_string().contains("is a link of another user"), "{error}");
    }
}
