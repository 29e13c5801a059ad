//! Programs that take away or replace what the C library gives, before their first CUDA call: the
//! environment, `getenv`, functions that the preloaded libraries need, threads, the rights of new
//! files.
//!
//! Runs `tests/programs/overridden.c` on the simulated GPU. What StreamSan needs it has from its
//! own start, from the kernel, or says that it is missing.

use std::fmt::Write as _;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use object::{Object, ObjectSymbol};
use tests::run::{Ended, end_within, streamsan};
use tests::{build, product};

/// The functions that StreamSan's libraries take from nobody.
const LIST: &str = include_str!("../../../signal-free/wrapped_calls.txt");

/// The program with functions of its own under these names, seen by every library.
fn program(functions: &[&str]) -> PathBuf {
    if functions.is_empty() {
        return build::c_program("overridden.c", &[]);
    }
    let mut text = String::from("char *strcat(char *, const char *);\nextern char overridden[4096];\n");
    for name in functions {
        // By register, so that any number of arguments may be passed; no answer makes sense.
        let _ = writeln!(text, "long {name}() {{ strcat(overridden, \" {name}\"); return 7; }}");
    }
    let own = build::generated("own_functions.c", &text);
    build::c_program("overridden.c", &["-rdynamic", "-fno-builtin", "-w", "-std=gnu11", &own.display().to_string()])
}

fn run(program: &Path, options: &[&str], args: &[&str]) -> Ended {
    let mut command = streamsan(["run", "--sim"]);
    command.args(options).arg("--").arg(program).args(args);
    end_within(&mut command, Duration::from_secs(60))
}

/// The race is found, and nothing but the race; without it, or with `--off`, nothing is.
#[track_caller]
fn is_checked(program: &Path, mode: &str) {
    for (options, args, code) in [(&[][..], &[mode][..], 66), (&[], &[mode, "ordered"], 0), (&["--off"], &[mode], 0)] {
        let ended = run(program, options, args);
        let what = format!("{} {options:?} {args:?}: {} {}", program.display(), ended.out, ended.err);
        assert_eq!((ended.code(), ended.out.as_str()), (Some(code), "answered 0, called:\n"), "{what}");
        assert_eq!(ended.err.matches("DATA RACE").count(), usize::from(code == 66), "{what}");
    }
}

#[test]
fn a_program_may_do_away_with_its_environment() {
    for mode in ["plain", "clear", "null", "other", "zero"] {
        is_checked(&program(&[]), mode);
    }
}

#[test]
fn a_program_may_answer_for_the_environment() {
    is_checked(&program(&["secure_getenv"]), "plain");
    // `getenv` is asked by others too: whether it was called is not the question.
    let text = "char *getenv(const char *name) { return 0; }\n";
    let own = build::generated("own_getenv.c", text);
    let extra = ["-rdynamic", "-fno-builtin", "-w", &own.display().to_string()];
    is_checked(&build::c_program("overridden.c", &extra), "plain");
}

#[test]
fn no_function_of_the_program_is_called_in_place_of_the_c_librarys() {
    let all = program(&LIST.lines().collect::<Vec<_>>());
    is_checked(&all, "plain");
    let ended = run(&all, &["--host-order", "threads", "--host-accesses"], &["plain"]);
    assert_eq!((ended.code(), ended.out.as_str()), (Some(66), "answered 0, called:\n"), "{}", ended.err);
    // Each by itself as well: the others might stand before it.
    for name in ["socket", "connect", "sendmsg", "getrandom", "close"] {
        is_checked(&program(&[name]), "plain");
    }
}

#[test]
fn no_library_of_ours_asks_the_loader_for_these_functions() {
    let folder = product::bin().to_path_buf();
    let mut seen = Vec::new();
    for folder in [folder.clone(), folder.join("sim"), folder.join("tsan")] {
        for file in std::fs::read_dir(&folder).expect("part of the product") {
            let path = file.expect("readable").path();
            let name = path.file_name().expect("a file").to_string_lossy().into_owned();
            if path.is_symlink() || !name.contains(".so") {
                continue;
            }
            let bytes = std::fs::read(&path).expect("readable");
            let object = object::File::parse(&*bytes).expect("an object");
            let asked: Vec<&str> = (object.dynamic_symbols())
                .filter(|symbol| symbol.is_undefined())
                .filter_map(|symbol| symbol.name().ok())
                .filter(|name| LIST.lines().any(|listed| listed == *name))
                .collect();
            assert_eq!(asked, <[&str; 0]>::default(), "{name}");
            seen.push(name);
        }
    }
    for library in ["", "_threads", "_host", "_mpi", "_sim", "_sim_cudart"] {
        assert!(seen.contains(&format!("libstreamsan{library}.so")), "{library}: {seen:?}");
    }
}

#[test]
fn a_device_without_threads_is_an_error_and_not_a_wait() {
    for options in [&[][..], &["--off"]] {
        let ended = run(&program(&[]), options, &["threadless"]);
        let what = format!("{options:?}: {} {}", ended.out, ended.err);
        // CUDA_ERROR_OPERATING_SYSTEM.
        assert_eq!(ended.out, "answered 304, called:\n", "{what}");
        assert!(ended.err.contains("gives no thread to the simulated GPU"), "{what}");
        assert_eq!(ended.code(), Some(70), "{what}");
    }
}

/// Makes a command that of a user who is not root, whose new files have no rights of this mask.
fn masked(mut command: Command, mask: libc::mode_t) -> Command {
    // SAFETY: geteuid has no preconditions; umask is async-signal-safe.
    unsafe {
        if libc::geteuid() == 0 {
            command.uid(65534).gid(65534);
        }
        command.pre_exec(move || {
            libc::umask(mask);
            Ok(())
        });
    }
    command.env("HOME", "/nonexistent").env_remove("XDG_RUNTIME_DIR").env_remove("XDG_CACHE_HOME").current_dir("/");
    command
}

#[test]
fn a_umask_that_leaves_nothing_changes_no_run() {
    let program = program(&[]);
    let mut here = masked(streamsan(["--version"]), 0o22);
    if !here.output().is_ok_and(|out| out.status.success()) {
        // That user does not get to where this was built.
        return;
    }
    let folder = std::env::temp_dir().join(format!("streamsan-umask-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::set_permissions(&folder, Permissions::from_mode(0o777)).expect("ours");
    for mask in [0o22, 0o277, 0o777] {
        for (args, code) in [(&["plain"][..], 66), (&["plain", "ordered"], 0), (&["threadless"], 70)] {
            let mut command = masked(streamsan(["run", "--sim"]), mask);
            command.env("TMPDIR", &folder).arg("--").arg(&program).args(args);
            let ended = end_within(&mut command, Duration::from_secs(60));
            assert_eq!(ended.code(), Some(code), "{mask:o} {args:?}: {} {}", ended.out, ended.err);
        }
    }
    let left = std::fs::read_dir(&folder).expect("readable").count();
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!(left, 0, "the folders of the runs are gone");
}
