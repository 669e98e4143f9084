//! Programs run by an ordinary user.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::geteuid;

/// The number of the user `nobody`, which may have another name.
const ORDINARY_USER: u32 = 65534;

/// Lets root's program be run by an ordinary user. Everybody else's stays their own.
pub fn as_ordinary_user(command: &mut Command) {
    if geteuid().is_root() {
        command.uid(ORDINARY_USER).gid(ORDINARY_USER);
    }
}
