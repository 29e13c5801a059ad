//! Traces of others: what they name on this machine is read only where it is known to be theirs,
//! nothing that they name holds an analysis up, and a signal ends one at once.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tests::made::{self, Named};
use tests::run::{self, Ended, command, end, streamsan};
use tests::{build, product};

const KEY: &str = "api_key = 'hunter2'";

/// A program with a build id, and that id.
fn program(folder: &Path) -> (PathBuf, Vec<u8>) {
    let path = folder.join("program");
    fs::write(folder.join("program.c"), "int main(void) { return 0; }\n").expect("writable");
    let gcc =
        Command::new("gcc").arg(folder.join("program.c")).arg("-o").arg(&path).arg("-Wl,--build-id=sha1").status();
    assert!(gcc.expect("gcc").success());
    let notes = Command::new("readelf").arg("-n").arg(&path).output().expect("readelf");
    let notes = String::from_utf8_lossy(&notes.stdout).into_owned();
    let digits = notes.split("Build ID: ").nth(1).expect("a build id").split_whitespace().next().expect("digits");
    let id = (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits"));
    (path, id.collect())
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
}

/// Everything that the analysis writes of a trace.
fn told(trace: &Path, options: &[&str]) -> String {
    let [json, html] = ["json", "html"].map(|ending| trace.with_extension(ending));
    let mut check = streamsan(["check"]);
    check.args(options).arg("--json").arg(&json).arg("--html").arg(&html).arg(trace);
    let ended = end(&mut check);
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    [ended.out, ended.err]
        .into_iter()
        .chain([json, html].map(|file| fs::read_to_string(file).expect("written")))
        .collect()
}

#[test]
fn sources_are_read_only_where_they_are_known_to_be_the_programs() {
    let folder = build::scratch("foreign_sources");
    let (inside, outside) = (folder.join("inside"), folder.join("outside"));
    [&inside, &outside].iter().for_each(|folder| fs::create_dir(folder).expect("a folder"));
    let (exe, build_id) = program(&inside);
    for file in [inside.join("a.py"), outside.join("a.py")] {
        fs::write(file, format!("{KEY}\n")).expect("writable");
    }
    symlink(outside.join("a.py"), inside.join("link.py")).expect("a link");
    let other = [0x11_u8; 20];
    let search = format!("--symbol-path={}", outside.display());
    let cases: [(&Path, &[u8], &[&str], bool); 9] = [
        (&inside.join("a.py"), &build_id, &[], true),
        // The program here is another one than the recorded one, or it is not known which it is.
        (&inside.join("a.py"), &other, &[], false),
        (&inside.join("a.py"), &[], &[], false),
        // A way out of its folder.
        (&outside.join("a.py"), &build_id, &[], false),
        (&inside.join("../outside/a.py"), &build_id, &[], false),
        (&inside.join("link.py"), &build_id, &[], false),
        // The user has named the folder.
        (&outside.join("a.py"), &other, &[&search], true),
        (&inside.join("link.py"), &other, &[&search], true),
        (&inside.join("a.py"), &other, &[&search], false),
    ];
    for (source, build_id, options, is_read) in cases {
        let trace = folder.join("t.trace");
        let absent = folder.join("absent");
        made::write(&trace, &made::naming(&Named { exe: &exe, build_id, module: &absent, source, image: &absent }));
        let told = told(&trace, options);
        assert!(told.contains("a.py:1") || told.contains("link.py:1"), "the place is told: {told}");
        assert_eq!(told.contains("hunter2"), is_read, "{} {options:?}", source.display());
    }
}

#[test]
fn code_is_read_only_where_it_is_known_to_be_the_programs() {
    let folder = build::scratch("foreign_code");
    let (exe, build_id) = program(&folder);
    let code = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry kernel(.param .u64 p)\n{ ret; }\n";
    let outside = build::scratch("foreign_code_outside");
    for file in [folder.join("a.ptx"), outside.join("a.ptx")] {
        fs::write(file, code).expect("writable");
    }
    let absent = folder.join("absent");
    for (image, id, options, is_read) in [
        (folder.join("a.ptx"), &build_id[..], vec![], true),
        (folder.join("a.ptx"), &[7; 20], vec![], false),
        (outside.join("a.ptx"), &build_id, vec![], false),
        (outside.join("a.ptx"), &[7; 20], vec![format!("--symbol-path={}", outside.display())], true),
    ] {
        let trace = folder.join("t.trace");
        made::write(
            &trace,
            &made::naming(&Named { exe: &exe, build_id: id, module: &absent, source: &absent, image: &image }),
        );
        let ended = end(streamsan(["check"]).args(&options).arg(&trace));
        let refused = ended.err.contains("not known to be the recorded one");
        assert_eq!(refused, !is_read, "{} {options:?}: {}", image.display(), ended.err);
        let explained = end(streamsan(["explain"]).args(&options).arg(&trace));
        assert_eq!(
            explained.out.contains("not known to be the recorded file"),
            !is_read,
            "{}{}",
            explained.out,
            explained.err
        );
    }
}

#[test]
fn pipes_and_devices_that_a_trace_names_hold_nothing_up() {
    let folder = build::scratch("foreign_pipes");
    let (exe, build_id) = program(&folder);
    let fifo = folder.join("fifo");
    pipe(&fifo);
    let absent = folder.join("absent");
    let traces = folder.join("traces");
    fs::create_dir(&traces).expect("a folder");
    // Beside traces, too: a folder is looked through.
    pipe(&traces.join("a.trace"));
    for special in [&fifo, Path::new("/dev/zero"), Path::new("/dev/tty")] {
        for which in 0..4 {
            let pick = |at: usize, other: &Path| if at == which { special.to_path_buf() } else { other.to_path_buf() };
            let (program, module) = (pick(0, &exe), pick(1, &absent));
            let (source, image) = (pick(2, &absent), pick(3, &absent));
            let files = Named { exe: &program, build_id: &build_id, module: &module, source: &source, image: &image };
            made::write(&traces.join(format!("t{which}.trace")), &made::naming(&files));
        }
        let search = format!("--symbol-path={}", folder.display());
        for words in [&["check"][..], &["check", &search]] {
            let ended = run::end_within(streamsan(words).arg(&traces), Duration::from_secs(20));
            assert_eq!(ended.code(), Some(66), "{} {words:?}: {}", special.display(), ended.err);
        }
        for which in 0..4 {
            for word in ["explain", "memory", "excess", "timeline"] {
                let trace = traces.join(format!("t{which}.trace"));
                let mut ask = streamsan([word]);
                let ended = run::end_within(ask.arg(&trace).current_dir(&folder), Duration::from_secs(20));
                assert!(!ended.hung && ended.signal().is_none(), "{word} {which} {}: {}", special.display(), ended.err);
            }
        }
    }
}

#[test]
fn a_signal_ends_an_analysis_with_what_is_known_and_a_second_one_without() {
    let trace = build::scratch("foreign_signals").join("t.trace");
    made::write(&trace, &made::long(1_000_000));
    let start = || {
        let mut check = streamsan(["check"]);
        // Who was told to ignore a signal goes on ignoring it.
        // SAFETY: signal is async-signal-safe.
        unsafe {
            check.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                libc::signal(libc::SIGTERM, libc::SIG_DFL);
                Ok(())
            })
        };
        check.arg(&trace).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = check.spawn().expect("starts");
        // It listens to signals once it is about to read.
        let status = format!("/proc/{}/status", child.id());
        let listens = || {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0").trim().to_owned();
            u64::from_str_radix(&caught, 16).unwrap_or(0) & 1 << (libc::SIGTERM - 1) != 0
        };
        let began = Instant::now();
        while !listens() && began.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The finding is at the beginning.
        std::thread::sleep(Duration::from_millis(100));
        child
    };
    let kill = |child: &std::process::Child, signal| {
        // SAFETY: our own child, which has not been waited for.
        assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
    };
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let child = start();
        kill(&child, signal);
        let began = Instant::now();
        let ended: Ended = run::end_of(child);
        assert!(began.elapsed() < Duration::from_secs(20), "{}", ended.err);
        assert!(matches!(ended.code(), Some(66 | 70)), "{:?} {}", ended.status, ended.err);
        assert!(ended.err.contains("SUMMARY: "), "{}", ended.err);
        assert!(ended.err.contains(&format!("interrupted by signal {signal} at byte")), "{}", ended.err);
        let child = start();
        kill(&child, signal);
        kill(&child, signal);
        let ended = run::end_of(child);
        // Two signals at once may come as one.
        assert!(
            ended.signal() == Some(signal) || matches!(ended.code(), Some(66 | 70)),
            "{:?} {}",
            ended.status,
            ended.err
        );
    }
}

#[test]
fn names_of_files_do_not_move_the_terminal() {
    let folder = build::scratch("foreign_names");
    for name in ["a\u{1b}[2J", "b\n::error::owned", "c\r\u{202e}"] {
        let file = folder.join(name);
        let ended = end(streamsan(["check"]).arg(&file));
        assert_eq!(ended.code(), Some(2), "{}", ended.err);
        fs::write(&file, "no trace").expect("writable");
        let unread = end(streamsan(["check"]).arg(&file));
        assert_eq!(unread.code(), Some(70), "{}", unread.err);
        for said in [ended.err, unread.err] {
            assert!(!said.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'), "{said:?}");
            assert!(said.lines().all(|line| line.starts_with("streamsan: ")), "{said:?}");
        }
        let out = folder.join(name).with_extension("trace");
        let mut record = streamsan(["record", "-o"]);
        let ended = end(record.arg(&out).args(["--", "/bin/true"]));
        assert!(!ended.err.contains(|c: char| c.is_control() && c != '\n'), "{:?}", ended.err);
    }
}

#[test]
fn a_name_that_is_not_utf_8_is_refused_by_its_option_or_used_as_it_is() {
    use std::os::unix::ffi::OsStrExt;
    let folder = build::scratch("foreign_bytes");
    let bytes = folder.join(std::ffi::OsStr::from_bytes(b"re\xffport"));
    for option in ["--json", "--sarif", "--html", "--junit", "--log-file", "-o"] {
        let mut run = streamsan(["run", option]);
        let ended = end(run.arg(&bytes).args(["--", "/bin/true"]));
        assert_eq!(ended.code(), Some(2), "{option}: {}", ended.err);
        assert!(ended.err.contains("UTF-8"), "{option}: {}", ended.err);
    }
    let mut options = std::ffi::OsString::from("json=");
    options.push(&bytes);
    let ended = end(streamsan(["run", "--", "/bin/true"]).env("STREAMSAN_OPTIONS", &options));
    assert_eq!(ended.code(), Some(2), "{}", ended.err);
    assert_eq!(fs::read_dir(&folder).expect("there").count(), 0, "no file of another name");
}

#[test]
fn a_program_whose_path_is_not_utf_8_is_checked_as_any_other() {
    use std::os::unix::ffi::OsStrExt;
    let Some(racy) = build::cuda_program_if_possible("report/wrong_event.cu", "static", &[]) else { return };
    let folder = build::scratch("foreign_path").join(std::ffi::OsStr::from_bytes(b"pa\xffth"));
    fs::create_dir(&folder).expect("a folder");
    let program = folder.join(std::ffi::OsStr::from_bytes(b"ra\xfece"));
    fs::copy(&racy, &program).expect("copied");
    let trace = folder.with_file_name("t.trace");
    let plain = end(streamsan(["run", "--sim", "--"]).arg(&racy));
    let ended = end(streamsan(["run", "--sim", "--"]).arg(&program));
    let summary = |ended: &Ended| ended.ours().last().map(|line| (*line).to_owned());
    assert_eq!((plain.code(), ended.code()), (Some(66), Some(66)), "{}\n{}", plain.err, ended.err);
    assert_eq!(summary(&ended), summary(&plain), "{}", ended.err);
    let recorded = end(streamsan(["record", "--sim", "-o"]).arg(&trace).arg("--").arg(&program));
    assert_eq!(recorded.code(), Some(0), "{}", recorded.err);
    let checked = end(streamsan(["check"]).arg(&trace));
    assert_eq!((checked.code(), summary(&checked)), (Some(66), summary(&plain)), "{}", checked.err);
}

#[test]
fn a_configuration_through_another_users_link_is_not_read_unbidden() {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        // Only root can make what belongs to another user.
        return;
    }
    let folder = build::scratch("foreign_toml");
    fs::write(folder.join("own.toml"), "json = \"written.json\"\n").expect("writable");
    let link = folder.join("streamsan.toml");
    symlink(folder.join("own.toml"), &link).expect("a link");
    let run = |options: &[&str]| end(streamsan(["run"]).args(options).args(["--", "/bin/true"]).current_dir(&folder));
    assert_eq!(run(&[]).code(), Some(0), "a link of one's own is followed");
    assert!(fs::remove_file(folder.join("written.json")).is_ok());
    assert!(Command::new("chown").args(["-h", "1:1"]).arg(&link).status().expect("chown").success());
    let ended = run(&[]);
    assert_eq!(ended.code(), Some(2), "{}", ended.err);
    assert!(ended.err.contains("belongs to another user"), "{}", ended.err);
    assert!(!folder.join("written.json").exists());
    assert_eq!(run(&["--config=off"]).code(), Some(0));
}

#[test]
fn the_way_to_the_simulated_gpu_is_told_in_the_words_of_who_asked() {
    let told = |inner: bool, options: &[&str]| {
        let mut run = command(product::streamsan());
        run.arg("run").args(options).args(["--", "/bin/true"]).env_remove("LD_LIBRARY_PATH");
        if inner {
            run.env("STREAMSAN_PYTEST_INNER", "1");
        }
        end(&mut run).err
    };
    if !told(false, &[]).contains("NOTE: there is") {
        // There is a GPU here.
        return;
    }
    assert!(told(false, &[]).contains("'streamsan --sim' runs the program"));
    assert!(told(true, &[]).contains("--streamsan-args=--sim"));
    assert_eq!(told(false, &["--quiet"]), "");
}
