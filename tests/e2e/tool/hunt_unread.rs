//! `streamsan hunt` in a folder that it may not read all of: each thing that may hold a program is
//! named, and the hunt is not green. Runs `hunted.c` against the fake driver.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use tests::build;
use tests::run::end;

use super::hunt::{hunt, hunted, put};

/// The same command, for a user who may read nothing that is closed to others.
fn as_nobody(mut command: Command) -> Command {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } == 0 {
        command.uid(65534).gid(65534).env("HOME", "/nonexistent");
    }
    command
}

#[test]
fn what_a_hunt_may_not_read_is_named_and_never_green() {
    let root = build::scratch("hunt-unread");
    let open = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
    };
    std::fs::create_dir_all(root.with_extension("tmp")).expect("a folder");
    open(&root.with_extension("tmp"), 0o777);
    let program = put(&hunted(&["ORDERED"]), &root.join("good"));
    // Each of these may hold a program: a folder that may not be listed, one whose files may not
    // be opened, a program, and a file of tests.
    for (name, mode) in [("none", 0), ("listed", 0o644), ("program", 0o711), ("test_gpu.py", 0), ("", 0)] {
        let path = root.join("closed").join(name);
        match name {
            "none" | "listed" | "" => drop(put(&program, &path.join("hidden"))),
            _ => drop(put(&program, &path)),
        }
        open(&path, mode);
        let what = path.to_string_lossy().trim_end_matches('/').to_owned();
        for options in [&[][..], &["--quiet"]] {
            let ended = end(&mut as_nobody(hunt(options, &root)));
            assert_eq!(ended.code(), Some(70), "{name}: {}", ended.err);
            let named = format!("ERROR: not checked: {what}");
            assert_eq!(ended.err.matches(&named).count(), 1, "{named}: {}", ended.err);
        }
        let listed = end(&mut as_nobody(hunt(&["--list"], &root)));
        assert!(listed.err.contains(&what), "{}", listed.err);
        open(&path, 0o755);
        std::fs::remove_dir_all(root.join("closed")).expect("ours");
    }
    // What holds no program, whoever may read it, is no matter: data, hidden folders, links.
    for name in ["data.bin", ".git/hooks/hook", "CMakeFiles/a.out"] {
        let path = put(&program, &root.join(name));
        open(&path, if name == "data.bin" { 0 } else { 0o755 });
        let folder = path.parent().expect("a folder");
        if folder != root {
            open(folder, 0);
        }
    }
    std::os::unix::fs::symlink("/nonexistent/program", root.join("link")).expect("a link");
    let ended = end(&mut as_nobody(hunt(&[], &root)));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    for folder in [".git/hooks", "CMakeFiles"] {
        open(&root.join(folder), 0o755);
    }
}
