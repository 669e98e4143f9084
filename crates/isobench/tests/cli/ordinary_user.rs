//! As an ordinary user, with a home folder that can't be written to.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use isobench_testkit::user::as_ordinary_user;

use crate::compare::words;
use crate::support::document::{self, assert_invariants_held};
use crate::support::program::{Running, isobench};
use crate::support::scene::Scene;

#[test]
fn compare_works_with_a_read_only_home() {
    let Some(scene) = Scene::with_server("compare_works_with_a_read_only_home") else { return };
    // The build folder may be inaccessible to other users.
    let program = scene.folder().join("isobench");
    fs::copy(isobench(), &program).expect("a copy");
    let home = scene.folder().join("home");
    fs::create_dir(&home).expect("a folder");
    fs::set_permissions(&home, Permissions::from_mode(0o555)).expect("chmod");
    let options =
        "compare -w tpcb-like --levels rc,rr --transactions 10 --warmup 0 --rounds 1 -c 2 --json out.json";
    let mut command = scene.program(Path::new(&program), &words(options));
    command.env("HOME", &home).env_remove("XDG_CACHE_HOME").env_remove("USER").env_remove("LOGNAME");
    as_ordinary_user(&mut command);
    Running::start(&mut command).finish().expect(0).prints(&["  repeatable read "]);
    assert_invariants_held(&document::read(&scene, "out.json"));
    assert_eq!(fs::read_dir(&home).expect("the home").count(), 0);
    scene.assert_clean();
}
