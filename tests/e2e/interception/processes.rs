//! What the shim promises to the process it lives in: nothing is lost when it is killed, nothing it
//! could see is changed.
//!
//! Runs against the fake driver. The programs check most of it themselves (`tests/programs`); here
//! they are started, killed, and compared with what the trace says.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tests::recorded::Trace;
use tests::run::{self, command, end, preloaded, record, record_with, streamsan};
use tests::{build, fake};

fn linked(source: &str) -> PathBuf {
    build::c_program(source, &["-L", &fake::folder().to_string_lossy(), "-lcuda"])
}

/// Parameters of the launches of `count_4_4`: which stream, which number.
fn counts(trace: &Trace) -> BTreeMap<(u32, u32), Vec<u32>> {
    let mut by_stream: BTreeMap<(u32, u32), Vec<u32>> = BTreeMap::new();
    for op in trace.launches() {
        let (name, params) = op.launch.as_ref().expect("a launch");
        assert_eq!(name, "count_4_4");
        let word = |at: usize| u32::from_le_bytes(params[at..at + 4].try_into().expect("4 bytes"));
        by_stream.entry((op.process, word(0))).or_default().push(word(4));
    }
    by_stream
}

fn upto(n: u32) -> Vec<u32> {
    (0..n).collect()
}

/// Pid and the last acknowledged count, of what `launches.c` wrote.
fn acknowledged(bytes: &[u8]) -> (i32, u32) {
    let words: Vec<u32> = bytes.chunks_exact(4).map(|c| u32::from_le_bytes(c.try_into().expect("4 bytes"))).collect();
    (words[0] as i32, words[1..].last().copied().unwrap_or(0))
}

/// Starts a command whose standard output is `launches.c`'s; reads until `count` launches are
/// acknowledged.
fn until(command: &mut Command, count: u32) -> (std::process::Child, i32, Vec<u8>) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).spawn();
    let mut child = child.expect("the program starts");
    let mut bytes = Vec::new();
    let mut block = [0_u8; 4096];
    while bytes.len() < 4 + 4 * count as usize {
        let got = child.stdout.as_mut().expect("piped").read(&mut block).expect("read");
        assert!(got > 0, "the program ended early");
        bytes.extend_from_slice(&block[..got]);
    }
    let (pid, _) = acknowledged(&bytes);
    (child, pid, bytes)
}

fn kill(pid: i32, signal: i32) {
    // SAFETY: a pid that the program has told us of itself, or that we found by its command line
    // just now.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0, "kill {pid}");
}

#[test]
fn a_killed_program_loses_no_committed_op() {
    let program = linked("launches.c");
    // A night's run is longer (`cargo xtask harden --long kill`).
    let rounds = if std::env::var_os("STREAMSAN_HARDENING").is_some_and(|v| v == "full") { 240 } else { 6 };
    for round in 0..rounds {
        let folder = build::scratch("sigkill");
        let file = folder.join("run.trace");
        let mut command = streamsan(["record", "-o"]);
        command.arg(&file).arg("--").arg(&program).arg("0");
        let (mut child, pid, mut bytes) = until(&mut command, 500 + 1777 * (round % 12));
        kill(pid, libc::SIGKILL);
        // What it managed to acknowledge before it died.
        child.stdout.take().expect("piped").read_to_end(&mut bytes).expect("read");
        let ended = run::end_of(child);
        assert_eq!(ended.signal(), Some(libc::SIGKILL), "{}", ended.err);
        let (_, last) = acknowledged(&bytes);
        let trace = Trace::read(&file);
        assert_eq!((trace.error.as_deref(), trace.unreadable), (None, 0));
        let seen = &counts(&trace)[&(0, 0)];
        assert!(seen.len() as u32 >= last, "{} launches in the trace, {last} acknowledged", seen.len());
        assert_eq!(*seen, upto(seen.len() as u32), "a gap or a repetition");
    }
}

#[test]
fn a_killed_program_is_reported_under_plain_preload_too() {
    let folder = build::scratch("sigkill-preload");
    let (report, trace) = (folder.join("report.txt"), folder.join("run.trace"));
    let options = format!("log-file={}:output={}", report.display(), trace.display());
    let mut command = preloaded(linked("launches.c"), &options);
    let (mut child, pid, mut bytes) = until(command.arg("0"), 3000);
    kill(pid, libc::SIGKILL);
    child.stdout.take().expect("piped").read_to_end(&mut bytes).expect("read");
    assert_eq!(run::end_of(child).signal(), Some(libc::SIGKILL));
    let text = wait_for(|| std::fs::read_to_string(&report).ok().filter(|text| text.contains("SUMMARY")));
    assert!(text.contains("streamsan: SUMMARY: 0 findings"), "{text}");
    let seen = counts(&Trace::read(&trace));
    assert!(seen[&(0, 0)].len() as u32 >= acknowledged(&bytes).1);
}

/// Waits until something is there.
fn wait_for<T>(mut there: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = there() {
            return value;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "waited in vain");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn sixteen_threads_keep_the_order_of_each_stream() {
    let folder = build::scratch("threads");
    for stack in ["0", "64"] {
        let (ended, trace) = record(&folder, &linked("threads.c"), &[stack, "2000"]);
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{}", ended.err);
        let seen = counts(&trace);
        assert_eq!(seen.len(), 17);
        for ((_, stream), numbers) in &seen {
            let wanted = if *stream == 0 { 16 * 500 } else { 2000 };
            assert_eq!(numbers.len(), wanted, "stream {stream}");
            assert_eq!(*numbers, upto(wanted as u32), "stream {stream}");
        }
        let threads: std::collections::BTreeSet<u32> = trace.launches().map(|op| op.thread).collect();
        assert_eq!(threads.len(), 16);
    }
}

#[test]
fn the_first_call_may_come_from_a_small_stack() {
    let folder = build::scratch("smallstack");
    for kib in ["64", "128"] {
        let (ended, trace) = record(&folder, &linked("smallstack.c"), &[kib]);
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{kib} KiB: {}", ended.err);
        assert_eq!(counts(&trace)[&(0, 0)], upto(10));
        // As an analyzer of its own must be started from there, too.
        let ended = end(preloaded(linked("smallstack.c"), "").arg(kib));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{kib} KiB: {}", ended.err);
        assert!(ended.err.contains("COVERAGE: 10 launches"), "{}", ended.err);
    }
}

/// Runs `family.c`; answers the launches by process and tag.
fn family(how: &str) -> (Trace, BTreeMap<(u32, u32), Vec<u32>>) {
    let folder = build::scratch(&format!("family-{how}"));
    let (ended, trace) = record(&folder, &linked("family.c"), &[how]);
    let wanted = if how == "exec" { (Some(5), "") } else { (Some(0), "done\n") };
    assert_eq!((ended.code(), ended.out.as_str()), wanted, "{how}: {}", ended.err);
    assert_eq!((trace.error.as_deref(), trace.unreadable), (None, 0));
    let seen = counts(&trace);
    (trace, seen)
}

/// The numbers of a tag, whichever process used it (exactly one must have).
fn of_tag(seen: &BTreeMap<(u32, u32), Vec<u32>>, tag: u32) -> (u32, Vec<u32>) {
    let mut found = seen.iter().filter(|((_, t), _)| *t == tag);
    let ((process, _), numbers) = found.next().expect("the tag was used");
    assert!(found.next().is_none(), "tag {tag} in two processes");
    (*process, numbers.clone())
}

#[test]
fn a_forked_child_that_uses_cuda_is_a_process_of_its_own() {
    let (trace, seen) = family("fork");
    assert_eq!(trace.processes.len(), 2);
    let (parent, first) = of_tag(&seen, 1);
    assert_eq!(first, [upto(10), upto(5)].concat());
    assert_eq!(of_tag(&seen, 3), (parent, upto(30)));
    let (child, numbers) = of_tag(&seen, 2);
    assert_eq!(numbers, upto(20));
    assert_ne!(child, parent);
}

#[test]
fn a_forked_child_without_cuda_leaves_nothing() {
    let (trace, seen) = family("fork-idle");
    assert_eq!(trace.processes.len(), 1);
    assert_eq!(of_tag(&seen, 1).1, [upto(10), upto(5)].concat());
}

#[test]
fn a_child_may_be_the_only_one_to_use_cuda() {
    let (trace, seen) = family("fork-first");
    assert_eq!(trace.processes.len(), 1);
    assert_eq!(of_tag(&seen, 2).1, upto(20));
}

#[test]
fn three_generations() {
    let (trace, seen) = family("fork-twice");
    assert_eq!(trace.processes.len(), 3);
    assert_eq!([1, 2, 3].map(|tag| of_tag(&seen, tag).1.len()), [3, 4, 5]);
}

#[test]
fn exec_keeps_what_was_before_and_what_comes_after() {
    let (trace, seen) = family("exec");
    assert_eq!(of_tag(&seen, 1).1, upto(10));
    assert_eq!(of_tag(&seen, 9).1, upto(7));
    let pids: std::collections::BTreeSet<_> = trace.processes.values().collect();
    assert_eq!((trace.processes.len(), pids.len()), (2, 1), "one process, two programs");
}

#[test]
fn helpers_without_cuda_start_nothing() {
    let (trace, seen) = family("spawn");
    assert_eq!(trace.processes.len(), 1);
    assert_eq!(of_tag(&seen, 1).1, [upto(10), upto(5)].concat());
}

#[test]
fn a_child_in_an_empty_environment_runs_unchecked_and_unharmed() {
    let (trace, seen) = family("env-i");
    assert_eq!(trace.processes.len(), 1);
    assert_eq!(of_tag(&seen, 1).1, upto(10));
}

#[test]
fn forks_under_plain_preload_each_get_a_report() {
    let ended = end(preloaded(linked("family.c"), "").arg("fork"));
    assert_eq!((ended.code(), ended.out.as_str()), (Some(0), "done\n"), "{}", ended.err);
    let mut launches: Vec<_> =
        ended.err.lines().filter_map(|line| line.strip_prefix("streamsan: COVERAGE: ")).collect();
    launches.sort_unstable();
    assert_eq!(launches.len(), 2, "{}", ended.err);
    assert!(launches[0].starts_with("20 launches") && launches[1].starts_with("45 launches"), "{}", ended.err);
}

#[test]
fn every_way_to_end_keeps_its_code_and_its_ops() {
    let program = linked("ending.c");
    let late = [upto(5)].concat();
    for (how, code, signal) in [
        ("return", Some(3), None),
        ("_exit", Some(4), None),
        ("thread", Some(5), None),
        ("busy", Some(6), None),
        ("atexit", Some(7), None),
        ("atexit-early", Some(7), None),
        ("quick", Some(8), None),
        ("pthread_exit", Some(5), None),
        ("abort", None, Some(libc::SIGABRT)),
        ("segv", None, Some(libc::SIGSEGV)),
        ("kill", None, Some(libc::SIGKILL)),
        ("term", None, Some(libc::SIGTERM)),
    ] {
        let folder = build::scratch(&format!("ending-{how}"));
        let bare = end(command(&program).arg(how));
        assert_eq!((bare.status.code(), bare.signal()), (code, signal), "bare {how}: {}", bare.err);
        let (ended, trace) = record(&folder, &program, &[how]);
        assert_eq!((ended.status.code(), ended.signal()), (code, signal), "{how}: {}", ended.err);
        assert_eq!(ended.out, bare.out, "{how}");
        let seen = counts(&trace);
        assert_eq!(seen[&(0, 0)], upto(10), "{how}");
        if how.starts_with("atexit") {
            assert_eq!(seen.get(&(0, 1)), Some(&late), "{how}: calls in exit handlers");
        }
        // The same without the launcher: the report is there before the program is seen to have
        // ended, where it can be.
        let ended = end(preloaded(&program, "").arg(how));
        assert_eq!((ended.status.code(), ended.signal()), (code, signal), "preloaded {how}: {}", ended.err);
        assert_eq!(ended.out, bare.out, "{how}");
        if matches!(how, "return" | "thread" | "atexit" | "pthread_exit") {
            assert!(ended.err.contains("streamsan: SUMMARY: 0 findings"), "preloaded {how}: {}", ended.err);
        }
    }
}

/// Runs `manners.c` in the three ways.
fn manners(what: &str, code: i32, out: &str) {
    let program = linked("manners.c");
    for (way, mut command) in [
        ("bare", command(&program)),
        ("preloaded", preloaded(&program, "")),
        ("streamsan", {
            let mut command = streamsan(["run", "--"]);
            command.arg(&program);
            command
        }),
    ] {
        let ended = end(command.arg(what));
        assert_eq!((ended.code(), ended.out.as_str()), (Some(code), out), "{way} {what}: {}", ended.err);
    }
}

#[test]
fn no_child_of_ours_is_seen_by_wait() {
    manners("children", 0, "done\n");
}

#[test]
fn no_descriptor_of_ours_is_seen_or_needed() {
    manners("descriptors", 0, "done\n");
}

#[test]
fn a_program_may_close_all_its_descriptors() {
    manners("all-closed", 11, "");
}

#[test]
fn errno_survives_every_call() {
    manners("errno", 0, "done\n");
}

#[test]
fn signal_mask_and_handlers_stay() {
    manners("mask", 0, "done\n");
}

#[test]
fn handlers_that_call_cuda_inside_a_hook_are_counted() {
    let folder = build::scratch("signals");
    let (ended, trace) = record(&folder, &linked("manners.c"), &["signals"]);
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    let numbers: Vec<usize> = ended.out.split_whitespace().take(2).map(|n| n.parse().expect("a number")).collect();
    let seen = counts(&trace);
    assert_eq!(seen[&(0, 0)], upto(numbers[0] as u32), "the interrupted launches are all there, in order");
    let handled = seen.get(&(0, 7)).map_or(0, Vec::len);
    assert!(handled <= numbers[1]);
    if handled < numbers[1] {
        // What could not be observed must be said.
        let dump = end(streamsan(["dump"]).arg(folder.join("run.trace")));
        assert!(dump.out.contains("Unobserved"), "{} handled, {handled} seen, and no note", numbers[1]);
    }
}

#[test]
fn a_program_without_cuda_costs_nothing() {
    let program = build::c_program("quiet.c", &[]);
    // No driver to be found either.
    let bare = end(command(&program).env("LD_LIBRARY_PATH", ""));
    assert_eq!(bare.code(), Some(0));
    assert!(bare.out.contains("rings 0 drivers 0 children 0"), "{}", bare.out);
    let ended = end(preloaded(&program, "").env("LD_LIBRARY_PATH", ""));
    assert_eq!((ended.code(), ended.out.as_str(), ended.err.as_str()), (Some(0), bare.out.as_str(), ""));
    // A listener in the launcher's place: nobody may come.
    let folder = build::scratch("quiet");
    let socket = folder.join("s");
    let listener = seqpacket_listener(&socket);
    let ended = end(preloaded(&program, "").env("STREAMSAN_SOCKET", &socket).env("LD_LIBRARY_PATH", ""));
    assert_eq!((ended.code(), ended.out.as_str(), ended.err.as_str()), (Some(0), bare.out.as_str(), ""));
    assert!(!has_visitor(listener), "the shim connected from a program without CUDA");
    // The listener would have seen one: a program with CUDA does come.
    let mut child = preloaded(linked("family.c"), "")
        .args(["work", "1", "0"])
        .env("STREAMSAN_SOCKET", &socket)
        .process_group(0)
        .stderr(Stdio::null())
        .spawn()
        .expect("start");
    assert!(wait_for(|| has_visitor(listener).then_some(true)));
    child.kill().expect("kill");
    child.wait().expect("wait");
}

fn seqpacket_listener(path: &Path) -> i32 {
    use std::os::unix::ffi::OsStrExt;
    // SAFETY: plain socket calls on a descriptor of our own; the address is filled within its
    // bounds.
    unsafe {
        let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0);
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as u16;
        let bytes = path.as_os_str().as_bytes();
        assert!(bytes.len() < address.sun_path.len(), "the target folder's path is too long for a socket");
        for (to, from) in address.sun_path.iter_mut().zip(bytes) {
            *to = *from as libc::c_char;
        }
        let length = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        assert_eq!(libc::bind(fd, (&raw const address).cast(), length), 0, "{}", std::io::Error::last_os_error());
        assert_eq!(libc::listen(fd, 8), 0);
        fd
    }
}

fn has_visitor(listener: i32) -> bool {
    // SAFETY: accept4 on a listening, non-blocking descriptor of our own.
    unsafe { libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), libc::SOCK_CLOEXEC) >= 0 }
}

/// The processes whose command line holds all of these words.
fn processes_with(words: &[&str]) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    all.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_string_lossy().parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line: Vec<_> = line.split(|b| *b == 0).map(String::from_utf8_lossy).collect();
        words.iter().all(|word| line.iter().any(|part| part == word)).then_some(pid)
    })
    .collect()
}

#[test]
fn the_program_survives_the_death_of_its_own_analyzer() {
    // Enough launches to fill the smallest ring many times over.
    let mut command = preloaded(linked("launches.c"), "ring-mib=1");
    let (mut child, pid, mut bytes) = until(command.args(["120000", "7"]), 100);
    let analyzers = wait_for(|| {
        let found = processes_with(&["attach-ring", &pid.to_string()]);
        (!found.is_empty()).then_some(found)
    });
    assert_eq!(analyzers.len(), 1);
    kill(analyzers[0], libc::SIGKILL);
    child.stdout.take().expect("piped").read_to_end(&mut bytes).expect("read");
    let ended = run::end_of(child);
    assert_eq!(ended.code(), Some(7), "{}", ended.err);
    assert_eq!(acknowledged(&bytes).1, 120_000);
    assert_eq!(ended.ours().len(), 1, "one line, not more: {}", ended.err);
    assert!(ended.err.contains("the analyzer has died"), "{}", ended.err);
}

#[test]
fn the_program_survives_the_death_of_the_launcher() {
    let program = linked("launches.c");
    let script = format!("{} 120000 7; echo code $? >&2", program.display());
    let mut command = streamsan(["run", "--", "sh", "-c", &script]);
    command.env("STREAMSAN_OPTIONS", "");
    let (mut child, _, mut bytes) = until(&mut command, 100);
    kill(child.id() as i32, libc::SIGKILL);
    child.stdout.take().expect("piped").read_to_end(&mut bytes).expect("read");
    let ended = run::end_of(child);
    assert_eq!(acknowledged(&bytes).1, 120_000);
    assert!(ended.err.contains("code 7\n"), "{}", ended.err);
    assert_eq!(ended.ours().len(), 1, "one line: {}", ended.err);
}

#[test]
fn a_slow_analyzer_holds_the_program_back_and_loses_nothing() {
    let folder = build::scratch("slow");
    let (ended, trace) = record_with(&folder, &linked("launches.c"), &["60000"], |command| {
        command.env("STREAMSAN_OPTIONS", "ring-mib=1");
    });
    assert_eq!(ended.code(), Some(0), "{}", ended.err);
    assert_eq!(counts(&trace)[&(0, 0)], upto(60_000));
}

#[test]
fn a_socket_that_leads_nowhere_leaves_the_program_alone() {
    let ended =
        end(preloaded(linked("family.c"), "").args(["work", "3", "5"]).env("STREAMSAN_SOCKET", "/nonexistent/s"));
    assert_eq!((ended.code(), ended.ours().len()), (Some(5), 1), "{}", ended.err);
    let ended = end(preloaded(linked("family.c"), "analyzer=/nonexistent/streamsan").args(["work", "3", "5"]));
    assert_eq!((ended.code(), ended.ours().len()), (Some(5), 1), "{}", ended.err);
    assert!(ended.err.contains("/nonexistent/streamsan"), "{}", ended.err);
}

#[test]
fn switched_off_it_does_nothing() {
    let ended = end(preloaded(linked("family.c"), "off=1").args(["work", "3", "5"]));
    assert_eq!((ended.code(), ended.err.as_str()), (Some(5), ""));
}

/// What a process does that outlives the program is not checked, so a line names it, also one that
/// has not used CUDA.
#[test]
fn processes_that_outlive_the_program_are_named() {
    let run = |script: &str| run::end(streamsan(["run", "--quiet", "--", "sh", "-c"]).arg(script));
    let left = run("sleep 2 >/dev/null 2>&1 &");
    assert_eq!(left.status.code(), Some(0), "{}", left.err);
    let line = "(sleep) outlives the program and has not used CUDA: not checked from now on";
    assert!(left.ours().len() == 1 && left.err.contains(line), "{}", left.err);
    let waited = run("sleep 0.2 >/dev/null 2>&1 & wait");
    assert_eq!((waited.status.code(), waited.err.as_str()), (Some(0), ""));
}
