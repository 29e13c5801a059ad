//! What orders the host after a kernel and what does not, with loads and stores of the host behind
//! it, while other threads make calls, with `--host-accesses`.

use tests::{build, run};

use super::graph_functions::check_with;

const FILE: &str = "sim/host_syncs.cu";

/// Stream and event synchronisation and queries, host functions, values and attachment: four cases
/// of each, right and wrong, load and store.
#[track_caller]
fn while_others(what: &str) {
    let cases = check_with(FILE, &[], &[what], |f| f["host"] == true);
    assert!(matches!(cases, None | Some(32)), "{what}: {cases:?}");
}

#[test]
fn the_host_is_ordered_by_what_it_waits_for_while_others_are_idle() {
    while_others("idle");
}

#[test]
fn the_host_is_ordered_by_what_it_waits_for_while_others_record_events() {
    while_others("records");
}

#[test]
fn the_host_is_ordered_by_what_it_waits_for_while_others_launch() {
    while_others("launches");
}

#[test]
fn the_host_is_ordered_by_what_it_waits_for_while_others_allocate() {
    while_others("allocates");
}

/// A register that a call does not read may hold any address: it opens no page.
#[test]
fn arguments_that_a_call_does_not_take_hide_no_touch() {
    let cases = check_with(FILE, &[], &["arguments"], |f| f["host"] == true);
    assert!(matches!(cases, None | Some(52)), "{cases:?}");
}

/// Loops over a page are seen to their ends, whatever their elements and steps.
#[test]
fn the_last_access_of_a_loop_over_a_page_is_seen() {
    let cases = check_with(FILE, &[], &["loops"], |f| f["host"] == true);
    assert!(matches!(cases, None | Some(24)), "{cases:?}");
}

/// What is not followed is said.
#[test]
fn pages_that_are_left_open_are_counted() {
    let Some(program) = build::cuda_program_if_possible(FILE, "static", &["-w", "-lrt"]) else { return };
    for (word, status) in [("long", 0), ("loops", 66)] {
        let mut command = run::streamsan(["run", "--sim", "--host-accesses", "--"]);
        let ended = run::end(command.arg(&program).arg(word).env_remove("LD_LIBRARY_PATH"));
        assert_eq!(ended.status.code(), Some(status), "{word}: {}", ended.err);
        let note = "not observed: touches of a page of host memory, until the next call, after many of them";
        assert_eq!(ended.err.contains(note), word == "long", "{word}: {}", ended.err);
    }
}
