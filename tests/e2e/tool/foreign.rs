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

/// Findings whose causes take a while: the analysis is killed as soon as the report is there.
#[test]
fn findings_are_written_before_their_causes_are_sought() {
    let folder = build::scratch("foreign_early");
    let (trace, json, html) = (folder.join("t.trace"), folder.join("report.json"), folder.join("page.html"));
    const PAIRS: u32 = 2000;
    made::write(&trace, &made::lines(PAIRS));
    let unread = folder.join("no.trace");
    fs::write(&unread, "no trace").expect("writable");
    let names_unread = |report: &serde_json::Value| {
        let lines = report["coverage"]["unread"].as_array().expect("a list");
        lines.len() == 1 && lines[0].as_str().is_some_and(|line| line.contains("no.trace"))
    };
    // The search may have ended before this test looks.
    for attempt in 0.. {
        assert!(attempt < 20, "only the last report was ever seen");
        let _ = (fs::remove_file(&json), fs::remove_file(&html));
        let mut check = streamsan(["check", "--json"]);
        let check = check.arg(&json).arg("--html").arg(&html).args([&unread, &trace]).stderr(Stdio::null());
        let mut child = check.spawn().expect("starts");
        let began = Instant::now();
        while fs::metadata(&html).map_or(true, |meta| meta.len() == 0) {
            assert!(began.elapsed() < Duration::from_secs(50), "nothing was written");
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().and_then(|()| child.wait()).expect("ended");
        let report: serde_json::Value = serde_json::from_slice(&fs::read(&json).expect("written")).expect("whole");
        assert_eq!(report["findings"].as_array().map(Vec::len), Some(PAIRS as usize));
        assert!(names_unread(&report), "{}", report["coverage"]["unread"]);
        assert!(fs::read_to_string(&html).expect("written").trim_end().ends_with("</html>"), "whole");
        if report["tried"]["skipped"] == "the analysis ended before" {
            break;
        }
    }
    let ended = end(streamsan(["check", "--json"]).arg(&json).args([&unread, &trace]));
    let report: serde_json::Value = serde_json::from_slice(&fs::read(&json).expect("written")).expect("whole");
    assert_eq!((ended.code(), &report["tried"]["skipped"]), (Some(66), &"".into()), "{}", ended.err);
    assert!(names_unread(&report), "{}", report["coverage"]["unread"]);
    assert_eq!(report["tried"]["waits"], PAIRS);
}

#[test]
fn names_that_are_not_utf_8_are_used_as_they_are() {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let folder = build::scratch("foreign_bytes");
    let named = |name: &[u8]| folder.join(std::ffi::OsStr::from_bytes(name));
    let trace = named(b"tr\xffce");
    made::write(&trace, &made::crossing());
    let outputs = [
        "json",
        "sarif",
        "html",
        "junit",
        "code-quality",
        "markdown",
        "parquet",
        "log-file",
        "gen-suppressions",
        "write-baseline",
    ];
    let place = |way: &[u8], option: &str| named(&[way, b"\xfe.%%.", option.as_bytes()].concat());
    let written = |way: &[u8], option: &str| named(&[way, b"\xfe.%.", option.as_bytes()].concat());
    let mut check = streamsan(["check"]);
    let mut words = Vec::new();
    for option in outputs {
        check.arg(format!("--{option}")).arg(place(b"cli", option));
        let (name, value) = (format!("{option}=").into_bytes(), place(b"env", option).into_os_string().into_vec());
        words.push([name, value].concat());
    }
    let ended = end(check.arg(&trace));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let by_env = std::ffi::OsString::from_vec(words.join(&b':'));
    let ended = end(streamsan(["check"]).arg(&folder).env("STREAMSAN_OPTIONS", by_env));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    for option in outputs {
        let length = |way| fs::metadata(written(way, option)).map_or(0, |meta| meta.len());
        assert!(length(b"cli") > 0 && length(b"env") > 0, "{option}");
    }
    assert_eq!(fs::read_dir(&folder).expect("there").count(), 1 + 2 * outputs.len(), "no file of another name");
    // What was written is read: suppressions and a baseline of these names set everything aside.
    for (option, of) in [("--suppressions", "gen-suppressions"), ("--baseline", "write-baseline")] {
        let ended = end(streamsan(["check", option]).arg(written(b"cli", of)).arg(&trace));
        assert_eq!(ended.code(), Some(0), "{}", ended.err);
    }
    // Where text stands, bytes are spelt out.
    let two = named(b"two\x80");
    made::write(&two, &made::crossing());
    let json = folder.join("two.json");
    let ended = end(streamsan(["check", "--json"]).arg(&json).args([&trace, &two]));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    let report = fs::read_to_string(&json).expect("written");
    assert!(report.contains(r"tr\\xffce") && report.contains(r"two\\x80"), "{report}");
    let ended = end(streamsan(["check"]).arg(named(b"none\xff")));
    assert!(ended.code() == Some(2) && ended.err.contains(r"none\xff: "), "{}", ended.err);
    // Of the commands that read a trace, and of the launcher.
    for command in [&["timeline", "-o"][..], &["memory", "--json"], &["excess", "--json"], &["record", "-o"]] {
        let out = named(&[command[0].as_bytes(), b"\xff"].concat());
        let mut run = streamsan(command);
        run.arg(&out);
        let ended = end(if command[0] == "record" { run.args(["--", "/bin/true"]) } else { run.arg(&trace) });
        assert_eq!(ended.code(), Some(0), "{command:?}: {}", ended.err);
        assert!(fs::metadata(&out).is_ok(), "{command:?}");
    }
    let log = named(b"run\xff.json");
    let ended = end(streamsan(["run", "--no-require-cuda", "--json"]).arg(&log).args(["--", "/bin/true"]));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(serde_json::from_slice::<serde_json::Value>(&fs::read(&log).expect("written")).is_ok());
    // A configuration file in such a folder names files beside itself.
    let place = named(b"con\xffig");
    fs::create_dir(&place).expect("a folder");
    fs::write(place.join("streamsan.toml"), "json = \"beside.json\"\nrequire-cuda = false\n").expect("writable");
    let ended = end(streamsan(["run", "--", "/bin/true"]).current_dir(&place));
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert!(place.join("beside.json").exists());
    // Words are words.
    let pattern = std::ffi::OsStr::from_bytes(b"ker\xffnel");
    let ended = end(streamsan(["check", "--only-kernel"]).arg(pattern).arg(&trace));
    assert!(ended.code() == Some(2) && ended.err.contains("UTF-8"), "{}", ended.err);
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
    fs::write(folder.join("own.toml"), "json = \"written.json\"\nrequire-cuda = false\n").expect("writable");
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
