//! What `excess` says of waits for the kernels in front and of triggers for those behind: each that
//! gains nothing has twins that are needed.

use crate::support::*;
use analysis::counterfactual::excess::dependents::Superfluous;
use analysis::counterfactual::excess::listing::Listing;
use analysis::counterfactual::excess::{page, text};
use trace::*;

const WHOLE: Shape = Shape::Exact(0, 1024);
const Y: u64 = X + 4096;
const Z: u64 = X + 8192;

/// A program of kernels that wait, trigger, or both, by their names.
struct Chain(Program);

impl Chain {
    fn new() -> Self {
        let mut p = Program::new();
        p.malloc(X, 1 << 16);
        Self(p)
    }

    fn launch(&mut self, stream: StreamId, name: &str, does: &[Does], pointer: u64, flags: u32) -> &mut Self {
        let kernel = self.0.kernel(name, does);
        let params = pointer.to_le_bytes();
        self.0.does("cudaLaunchKernelExC", launch_with(stream, kernel, flags, &params));
        self
    }

    /// A launch behind all before it.
    fn first(&mut self, name: &str, does: &[Does], pointer: u64) -> &mut Self {
        self.launch(A, name, does, pointer, 0)
    }

    /// A launch that may overlap those before it.
    fn then(&mut self, name: &str, does: &[Does], pointer: u64) -> &mut Self {
        self.launch(A, name, does, pointer, launch_flags::PROGRAMMATIC_SERIALIZATION)
    }

    fn listing(&mut self) -> Listing {
        self.0.listing()
    }

    /// What gains nothing: the kernels' names up to their arguments.
    fn superfluous(&mut self) -> Vec<(Superfluous, String)> {
        let listing = self.listing();
        let named = |name: &str| name.split('(').next().unwrap_or_default().to_owned();
        listing.dependents.iter().map(|of| (of.superfluous, named(&of.kernel))).collect()
    }

    fn superfluous_waits(&mut self) -> Vec<String> {
        self.superfluous()
            .into_iter()
            .filter(|(superfluous, _)| *superfluous == Superfluous::Wait)
            .map(|(_, name)| name)
            .collect()
    }
}

fn write() -> [Does; 1] {
    [writes(0, WHOLE)]
}

fn read() -> [Does; 1] {
    [reads(0, WHOLE)]
}

#[test]
fn a_wait_in_front_of_other_bytes_orders_nothing() {
    let mut c = Chain::new();
    c.first("dependent_triggers", &write(), X).then("dependent_waits", &write(), Y);
    assert_eq!(c.superfluous(), [(Superfluous::Wait, "dependent_waits".to_owned())]);
}

#[test]
fn a_wait_for_what_is_read_or_overwritten_is_needed() {
    for (before, after) in [(write(), read()), (read(), write()), (write(), write())] {
        let mut c = Chain::new();
        c.first("dependent_triggers", &before, X).then("dependent_waits", &after, X);
        assert_eq!(c.superfluous(), []);
    }
}

#[test]
fn a_wait_between_reads_orders_nothing() {
    let mut c = Chain::new();
    c.first("dependent_triggers", &read(), X).then("dependent_waits", &read(), X);
    assert_eq!(c.superfluous_waits(), ["dependent_waits"]);
}

/// (Each launch is of a function that was loaded again: they count as one.)
#[test]
fn one_launch_of_many_that_needs_the_wait_keeps_it() {
    let mut c = Chain::new();
    for pointer in [Y, Z, X, Y] {
        c.first("dependent_triggers", &write(), X).then("dependent_waits", &read(), pointer);
    }
    assert_eq!(c.superfluous_waits(), [""; 0]);
}

/// A waits for nothing that it touches itself, but a later kernel begins behind that.
#[test]
fn a_wait_that_a_later_kernel_relies_on_is_needed() {
    let chain = |last: u64| {
        let mut c = Chain::new();
        c.first("dependent_triggers", &write(), X);
        c.then("dependent_waits_triggers", &write(), Y).then("dependent_neither", &read(), last);
        c.superfluous_waits()
    };
    assert_eq!(chain(X), [""; 0]);
    assert_eq!(chain(Z), ["dependent_waits_triggers"]);
}

/// Without its wait a kernel may begin beside those that the one in front has not waited for.
#[test]
fn a_wait_for_an_earlier_kernel_of_the_chain_is_needed() {
    let chain = |last: u64| {
        let mut c = Chain::new();
        c.first("dependent_triggers", &write(), X);
        c.then("dependent_too_triggers", &write(), Y).then("dependent_waits", &read(), last);
        c.superfluous_waits()
    };
    assert_eq!(chain(X), [""; 0]);
    assert_eq!(chain(Z), ["dependent_waits"]);
}

/// Behind a kernel that never triggers, the next one begins at its end.
#[test]
fn a_wait_behind_a_kernel_that_never_triggers_orders_nothing() {
    for (before, superfluous) in [("dependent_neither", true), ("dependent_triggers", false)] {
        let mut c = Chain::new();
        c.first(before, &write(), X).then("dependent_waits", &read(), X);
        assert_eq!(!c.superfluous_waits().is_empty(), superfluous, "{before}");
    }
}

/// Each of two waits could go, but not both: one stays.
#[test]
fn of_two_waits_that_replace_each_other_one_is_listed() {
    let mut c = Chain::new();
    c.first("dependent_triggers", &write(), X);
    c.then("dependent_first_waits_triggers", &write(), Y).then("dependent_second_waits", &read(), X);
    assert_eq!(c.superfluous_waits().len(), 1, "{:?}", c.listing().dependents);
}

#[test]
fn a_wait_is_not_judged_if_bytes_are_unknown_or_the_run_races() {
    // A kernel without code in front.
    let mut c = Chain::new();
    let mystery = c.0.define("mystery");
    c.0.launch(A, mystery, &[X]);
    c.then("dependent_waits", &write(), Y);
    let listing = c.listing();
    assert_eq!(listing.dependents, []);
    assert!(listing.notes.iter().any(|note| note.contains("not judged: the bytes")), "{:?}", listing.notes);
    // It runs on another stream, which is not ordered with this one.
    let mut c = Chain::new();
    let mystery = c.0.define("mystery");
    c.0.launch(B, mystery, &[Z]);
    c.0.sync(B);
    c.first("dependent_triggers", &write(), X).then("dependent_waits", &write(), Y);
    assert_eq!(c.superfluous_waits(), ["dependent_waits"]);
    // Upper bounds that may meet.
    let mut c = Chain::new();
    c.first("dependent_triggers", &write(), X).then("dependent_waits", &[reads(0, Shape::Bound(0, 8192))], X + 512);
    assert_eq!(c.superfluous_waits(), [""; 0]);
    // Two streams race.
    let mut c = Chain::new();
    c.launch(B, "dependent_other", &write(), Z, 0);
    c.first("dependent_triggers", &write(), Z).then("dependent_waits", &write(), Y);
    let listing = c.listing();
    assert_eq!(listing.dependents, []);
    assert!(listing.notes.iter().any(|note| note.contains("not judged: this run has findings")), "{:?}", listing.notes);
}

/// What is not checked may need the wait.
#[test]
fn a_wait_is_not_judged_if_checking_was_off() {
    let mut c = Chain::new();
    c.0.does("streamsan_stop", Op::Checking { on: false });
    c.first("dependent_triggers", &write(), X).then("dependent_waits", &read(), X);
    c.0.does("streamsan_start", Op::Checking { on: true });
    c.first("dependent_triggers", &write(), X).then("dependent_waits", &read(), Y);
    let listing = c.listing();
    assert_eq!(listing.dependents, []);
    assert!(listing.notes.iter().any(|note| note.contains("not all of it was seen")), "{:?}", listing.notes);
}

#[test]
fn a_trigger_without_a_dependent_lets_nothing_begin() {
    // In front of an ordinary launch, beside a kernel whose trigger counts.
    let mut c = Chain::new();
    c.first("dependent_used_triggers", &write(), X).then("dependent_waits", &read(), X);
    c.first("dependent_unused_triggers", &write(), X).first("dependent_neither", &read(), X);
    assert_eq!(c.superfluous(), [(Superfluous::Trigger, "dependent_unused_triggers".to_owned())]);
    // Once in front of a launch that may overlap it.
    let mut c = Chain::new();
    c.first("dependent_triggers", &write(), X).first("dependent_neither", &read(), X);
    c.first("dependent_triggers", &write(), X).then("dependent_waits", &read(), X);
    assert_eq!(c.superfluous(), []);
    // The other launch is on another stream.
    let mut c = Chain::new();
    c.first("dependent_used_triggers", &write(), X).then("dependent_waits", &read(), X);
    c.launch(B, "dependent_unused_triggers", &write(), Y, 0).then("dependent_waits", &read(), X);
    assert_eq!(c.superfluous(), [(Superfluous::Trigger, "dependent_unused_triggers".to_owned())]);
}

#[test]
fn a_trigger_at_the_end_gains_little() {
    for (name, superfluous) in [("dependent_triggers_last", true), ("dependent_triggers", false)] {
        let mut c = Chain::new();
        c.first(name, &write(), X).then("dependent_waits", &read(), X);
        let wanted: &[(Superfluous, String)] = &[(Superfluous::LastTrigger, name.to_owned())];
        assert_eq!(c.superfluous(), if superfluous { wanted } else { &[] });
    }
}

#[test]
fn where_no_launch_may_overlap_another_nothing_is_listed() {
    let mut c = Chain::new();
    c.first("dependent_triggers", &write(), X).first("dependent_waits", &write(), Y);
    assert_eq!(c.superfluous(), []);
}

#[test]
fn text_json_and_page_name_kernel_line_and_reason() {
    let mut c = Chain::new();
    c.first("dependent_triggers", &write(), X).then("dependent_waits", &write(), Y);
    let all = [c.listing()];
    let text = text::text(&all);
    let line = "  dependent_waits(float*, int) (dep.cu:3): its wait orders nothing: ";
    assert!(text.contains(line), "{text}");
    assert!(page::page(&all).contains("<li>dependent_waits(float*, int) (dep.cu:3): its wait"));
    let json = Listing::json(&all, "t.trace");
    let of = &json["processes"][0]["dependents"][0];
    assert_eq!((of["what"].as_str(), of["at"][0].as_str()), (Some("wait-orders-nothing"), Some("dep.cu:3")));
    assert_eq!(of["launches"].as_u64(), Some(1));
}
