//! What orders the host after a kernel and what does not, with loads and stores of the host behind
//! it, while other threads make calls, with `--host-accesses`.

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
