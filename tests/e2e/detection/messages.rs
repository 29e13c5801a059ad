//! `--sim --host-accesses`: kernels that tell the host by a flag in memory that they are over, and
//! hosts that look at it or do not.

use std::path::PathBuf;

use tests::{build, product, run};

/// Where payload and flag lie.
const KINDS: [&str; 3] = ["mapped", "registered", "managed"];

/// The host has looked at no flag before it touches the bytes.
const UNHEARD: [&str; 4] = ["unwaited", "one_element", "refilled", "read_then_polled"];

/// The kernel can tell the host, and this launch does not: its flag is null, or a word in memory
/// forbids it.
const SWITCHED_OFF: [&str; 3] = ["off", "again", "silenced"];

/// A later launch tells it; it is the host that tells.
const SWITCHED_ON: [&str; 3] = ["switched_on", "switched_back", "stopped"];

/// By what the kernel tells it.
const RELEASES: [&str; 3] = ["store", "fence", "exchange"];

/// The kernel loads a word, and the host stores to it: both atomically, as far as can be seen.
const OBEYED: [&str; 4] = ["obeyed_acquire", "obeyed_relaxed", "obeyed_volatile", "array_acquire"];

/// One of them not, or the words are data.
const NOT_ATOMIC: [&str; 4] = ["obeyed_device", "obeyed_plain", "wide", "array_volatile"];

/// What a host function touches is compared with work behind it on another stream.
const BESIDE: [&str; 1] = ["function_beside"];

/// It has looked at one, which says nothing: not told from those that are right.
const OPEN: [&str; 1] = ["looked_once"];

/// The kernel sets its flag before it is done with the bytes.
const TOO_EARLY: [&str; 1] = ["too_early"];

/// The kernel takes what the host writes behind no acquire, or before it waits for the host.
const TAKEN: [&str; 2] = ["taken_relaxed", "taken_early"];

const MENDED: [&str; 12] = [
    "polled",
    "plain",
    "synchronised",
    "refilled_behind",
    "one_instruction",
    "slots",
    "free_slot_first",
    "busy_page",
    "another_thread",
    "mailbox",
    "taken",
    "function_before",
];

const NOTE: &str = "of the host with work that may exchange messages with it through memory";

fn program() -> Option<PathBuf> {
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return None;
    }
    let file = product::root().join("tests/programs/sim/messages.cu");
    Some(build::cuda_program(&file, "shared", &[]).unwrap_or_else(|e| panic!("{e}")))
}

fn case(program: &PathBuf, kind: &str, form: &str) -> run::Ended {
    let mut command = run::streamsan(["run", "--sim", "--host-accesses"]);
    run::end(command.arg("--").arg(program).args([kind, form]).env_remove("LD_LIBRARY_PATH"))
}

/// What is wrong with these forms in memory of these kinds.
fn wrong(kinds: &[&str], forms: &[&str], right: impl Fn(&run::Ended) -> bool) -> String {
    let Some(program) = program() else { return String::new() };
    let cases = kinds.iter().flat_map(|kind| forms.iter().map(move |form| (*kind, *form)));
    let judge = |(kind, form)| {
        let ended = case(&program, kind, form);
        let fine = ended.out == "done\n" && right(&ended);
        (!fine).then(|| format!("{kind} {form} ended with {:?}:\n{}\n{}\n", ended.code(), ended.out, ended.err))
    };
    cases.filter_map(judge).collect()
}

fn is_silent(ended: &run::Ended) -> bool {
    ended.code() == Some(0) && ended.err.contains(" 0 findings")
}

/// Without single steps (aarch64) a page stays open behind its first touch, and that one is found.
#[test]
fn a_host_that_has_not_looked_at_a_flag_was_told_nothing() {
    let found = |ended: &run::Ended| ended.code() == Some(66) && ended.err.contains("certain");
    assert_eq!(wrong(&KINDS, &UNHEARD, found), "");
}

#[test]
fn a_launch_that_reaches_no_fence_tells_nobody() {
    let forms = |ways: [&str; 3], start: &str| -> Vec<String> {
        ways.iter().flat_map(|way| RELEASES.map(|by| format!("{start}{way}_{by}"))).collect()
    };
    let (off, on) = (forms(SWITCHED_OFF, "switched_"), forms(SWITCHED_ON, ""));
    let (off, on): (Vec<_>, Vec<_>) =
        (off.iter().map(String::as_str).collect(), on.iter().map(String::as_str).collect());
    let found = |ended: &run::Ended| ended.code() == Some(66) && ended.err.contains("certain");
    assert_eq!(wrong(&KINDS[..1], &off, found), "");
    assert_eq!(wrong(&KINDS[1..], &off[..1], found), "");
    assert_eq!(wrong(&KINDS[..1], &on, is_silent), "");
}

#[test]
fn a_kernel_may_look_at_what_the_host_stores_atomically() {
    assert_eq!(wrong(&KINDS[..1], &OBEYED, is_silent), "");
    let found = |ended: &run::Ended| ended.code() == Some(66) && ended.err.contains("certain");
    assert_eq!(wrong(&KINDS[..1], &NOT_ATOMIC, found), "");
}

#[test]
fn a_host_function_races_with_work_that_does_not_wait_for_it() {
    let found = |ended: &run::Ended| ended.code() == Some(66) && ended.err.contains("certain");
    assert_eq!(wrong(&KINDS, &BESIDE, found), "");
}

#[test]
fn a_kernel_that_sets_its_flag_too_early_tells_nothing() {
    let found = |ended: &run::Ended| ended.code() == Some(66) && ended.err.contains("certain");
    assert_eq!(wrong(&KINDS, &TOO_EARLY, found), "");
}

#[test]
fn a_kernel_that_does_not_wait_for_the_host_is_not_behind_it() {
    let found = |ended: &run::Ended| ended.code() == Some(66) && ended.err.contains("certain");
    assert_eq!(wrong(&KINDS[..1], &TAKEN, found), "");
}

#[test]
fn a_host_that_has_looked_may_have_been_told() {
    assert_eq!(wrong(&KINDS[..1], &OPEN, |ended| ended.code() == Some(0) && ended.err.contains(NOTE)), "");
}

#[test]
fn a_host_that_waits_for_the_flag_is_silent() {
    assert_eq!(wrong(&KINDS[..1], &MENDED, is_silent), "");
    assert_eq!(wrong(&KINDS[1..], &["polled", "one_instruction", "busy_page"], is_silent), "");
}
