//! Installations in folders whose names the dynamic linker would cut: programs are checked as from
//! any other folder.

use std::path::{Path, PathBuf};

use tests::run::{Ended, command, end};
use tests::{build, fake, product};

fn racy() -> PathBuf {
    build::c_program("racy.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"])
}

/// The product in another folder: the command itself, and links to the rest.
fn install(folder: &Path) {
    std::fs::create_dir_all(folder).expect("writable");
    for entry in std::fs::read_dir(product::bin()).expect("built").flatten() {
        let (from, to) = (entry.path(), folder.join(entry.file_name()));
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "streamsan" {
            // It asks where it is itself.
            std::fs::hard_link(&from, &to).or_else(|_| std::fs::copy(&from, &to).map(drop)).expect("copied");
        } else if name.starts_with("libstreamsan") || ["sim", "tsan"].contains(&&*name) {
            std::os::unix::fs::symlink(&from, &to).expect("a link");
        }
    }
}

/// Names of folders: plain ones, and those that `LD_PRELOAD` or `LD_LIBRARY_PATH` cut.
const NAMES: [&str; 8] =
    ["plain", "sp ace", " leading", "co:lon", "semi;colon", "$ORIGIN", "$LIB", "all of: it; and $PLATFORM"];

#[test]
fn an_installation_may_lie_in_a_folder_of_any_name() {
    let base = build::scratch("installed");
    let mut folder = base.join("first");
    install(&folder);
    let simulated = std::env::var_os("STREAMSAN_NO_TOOLKIT").is_none_or(|v| v != "1");
    let simulated = simulated
        .then(|| build::cuda_program(&build::programs().join("sim/refused.cu"), "shared", &[]).expect("built"));
    for name in NAMES {
        let odd = base.join(format!("temporary {name}"));
        std::fs::create_dir(&odd).expect("writable");
        let next = base.join(name);
        std::fs::rename(&folder, &next).expect("ours");
        folder = next;
        let run = |options: &[&str], program: &Path, words: &[&str]| -> Ended {
            let mut run = command(folder.join("streamsan"));
            run.arg("run").args(options).arg("--").arg(program).args(words);
            // A run's own folder, too, must have a name that is not cut.
            end(run.env("TMPDIR", &odd))
        };
        let ordered: &[&str] = &["0", "ordered"];
        for (options, words, code) in [
            (&[][..], &["0"][..], 66),
            (&[], ordered, 0),
            (&["--host-order", "threads"], &["0"], 66),
            (&["--soname"], &["0"], 66),
        ] {
            let ended = run(&[options, &["--require-cuda"]].concat(), &racy(), words);
            assert_eq!(ended.code(), Some(code), "'{name}' {options:?} {words:?}: {}", ended.err);
            assert!(!ended.err.contains("ld.so"), "'{name}': {}", ended.err);
        }
        if let Some(program) = &simulated {
            let mut run = command(folder.join("streamsan"));
            run.args(["run", "--sim", "--require-cuda", "--"]).arg(program).arg("nothing");
            let ended = end(run.env_remove("LD_LIBRARY_PATH"));
            assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "'{name}': {}", ended.err);
            assert!(!ended.err.contains("ld.so"), "'{name}': {}", ended.err);
        }
    }
    std::fs::remove_dir_all(base).expect("ours");
}

#[test]
fn without_proc_the_line_says_so() {
    let script = "mount -t tmpfs none /proc 2>/dev/null || exit 99; exec \"$0\" run --sim -- /bin/true";
    let mut command = command("unshare");
    command.args(["-m", "sh", "-c", script]).arg(product::streamsan());
    let ended = end(&mut command);
    if ended.code() == Some(99) || ended.err.contains("unshare failed") {
        // Only root may have a view of its own.
        return;
    }
    assert_ne!(ended.code(), Some(0), "{}", ended.err);
    assert!(ended.err.contains("/proc/self/exe") && !ended.err.contains("build it"), "{}", ended.err);
}
