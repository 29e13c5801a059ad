//! Races between the processes of a run, each with a twin that must stay silent. Sources: cuda.h on
//! `cuIpcGetMemHandle`, `cuIpcGetEventHandle` and `cuStreamWaitEvent`. The rule for hosts is
//! StreamSan's own (see `analysis::ipc`).

use crate::support::*;
use analysis::ipc::Across;
use report::model::{Finding, Report};
use trace::*;

pub(crate) const N: u64 = 1 << 20;
/// Where the importing processes have the memory of the exporting one.
pub(crate) const Y: u64 = 0x7e00_0000_0000;
pub(crate) const EVENT: EventId = EventId(50);

pub(crate) struct Run {
    across: Across,
    processes: Vec<Program>,
    now: u64,
}

impl Run {
    /// `count` processes that share nothing yet. `live`: compared while they run.
    pub(crate) fn new(count: u32, live: bool) -> Self {
        let across = Across::new(live);
        let processes = (0..count).map(|i| {
            let mut p = Program::new();
            p.raw(Op::Process {
                pid: 100 + i,
                parent: 1,
                exe: "/opt/app/app".into(),
                args: "app".into(),
                cwd: "/".into(),
                driver: 13000,
            });
            p.analysis.join(across.join());
            p.line(100 * (i + 1));
            p
        });
        Self { processes: processes.collect(), across, now: 1000 }
    }

    /// The process that makes the next call.
    pub(crate) fn at(&mut self, process: usize) -> &mut Program {
        self.now += 10;
        let ns = self.now;
        for p in &self.processes {
            p.analysis.reached(ns - 5);
        }
        let p = &mut self.processes[process];
        p.raw(Op::Clock { ns });
        p
    }

    /// So many nanoseconds in which nobody calls anything.
    pub(crate) fn passes(&mut self, ns: u64) {
        self.now += ns;
    }

    /// Process 0 exports memory at `X`, all others open it at `Y`.
    fn share(&mut self) {
        self.at(0).does("cudaIpcGetMemHandle", Op::SharedMemory { ptr: X, key: &[7; 64] });
        for process in 1..self.processes.len() {
            self.open(process);
        }
    }

    fn open(&mut self, process: usize) {
        self.at(process).alloc(Y, N, MemoryKind::Imported);
        self.at(process).does("cudaIpcOpenMemHandle", Op::SharedMemory { ptr: Y, key: &[7; 64] });
    }

    /// An event that process `from` creates and `to` opens.
    fn share_event(&mut self, from: usize, to: usize, event: EventId) {
        let key = [event.0 as u8; 64];
        for process in [from, to] {
            self.at(process).does("cudaEventCreate", Op::EventCreate { event, context: CONTEXT, flags: 6, handle: 0 });
            self.at(process).does("cudaIpcGetEventHandle", Op::SharedEvent { event, key: &key });
        }
    }

    /// As the shim does it: a record of another process counts as covering everything enqueued
    /// here.
    fn wait(&mut self, process: usize, stream: StreamId, event: EventId) {
        self.at(process).does("cudaStreamWaitEvent", Op::OthersRecord { event, context: CONTEXT });
        self.at(process).wait(stream, event);
    }

    fn found(&mut self) -> Vec<Finding> {
        // All of them live until now.
        let ns = self.now + 10_000;
        self.processes.iter_mut().for_each(|p| p.raw(Op::Clock { ns }));
        let mut outcomes: Vec<_> = self.processes.iter_mut().map(Program::outcome).collect();
        self.across.finish(&mut outcomes);
        Report::merge(outcomes, true).findings
    }

    pub(crate) fn silent(&mut self) {
        let found = self.found();
        assert!(found.is_empty(), "{found:#?}");
    }

    pub(crate) fn found_verdicts(&mut self) -> Vec<String> {
        self.found().iter().map(|f| format!("{} {}", f.hazard.name(), f.confidence.name())).collect()
    }

    pub(crate) fn finds(&mut self, verdict: &str) -> Finding {
        let mut found = self.found();
        let said: Vec<String> = found.iter().map(|f| format!("{} {}", f.hazard.name(), f.confidence.name())).collect();
        assert_eq!(said, [verdict], "{found:#?}");
        found.remove(0)
    }

    pub(crate) fn judge(&mut self, races: bool, verdict: &str) {
        if races {
            self.finds(verdict);
        } else {
            self.silent();
        }
    }
}

pub(crate) fn whole() -> Shape {
    Shape::Exact(0, N)
}

/// Two processes. The first has memory and has shared it.
pub(crate) fn two(live: bool) -> Run {
    let mut run = Run::new(2, live);
    run.at(0).malloc(X, N);
    run.share();
    run
}

pub(crate) const RAW: &str = "read-after-write certain";

#[test]
fn a_host_that_waits_before_the_other_begins_orders_them() {
    for live in [false, true] {
        for mended in [false, true] {
            let mut run = two(live);
            run.at(0).go(A, X, &[writes(0, whole())]);
            if mended {
                run.at(0).sync(A);
            }
            run.at(1).go(B, Y, &[reads(0, whole())]);
            // Too late to order anything.
            run.at(0).sync(A);
            if mended {
                run.silent();
                continue;
            }
            let f = run.finds(RAW);
            assert_eq!((f.previous.process, f.access.process), (Some(100), Some(101)));
            assert_eq!((f.from, f.to, f.pid), (0, N, 101));
            let memory = f.allocation.expect("the memory");
            assert_eq!((memory.address, memory.size, memory.kind.name()), (X, N, "device memory"));
            assert_eq!(f.access.stream.name, "stream 2 of process 101");
            assert!(f.synchronisation.cuda()[0].contains("cudaStreamSynchronize(stream_1)"), "{:?}", f.synchronisation);
        }
    }
}

#[test]
fn what_was_under_way_before_the_memory_was_shared_counts() {
    for mended in [false, true] {
        let mut run = Run::new(2, true);
        // A process sends no times before it shares anything.
        run.processes[0].malloc(X, N);
        run.processes[0].go(A, X, &[writes(0, whole())]);
        if mended {
            run.processes[0].sync(A);
        }
        run.share();
        run.at(1).go(A, Y, &[reads(0, whole())]);
        run.judge(!mended, RAW);
    }
}

#[test]
fn an_event_of_both_orders_what_was_recorded() {
    // Recorded after the write, before it, or (fixed) after it and before the event itself was
    // shared.
    for (case, races) in [("after", false), ("before", true), ("early", false), ("never", true)] {
        let mut run = two(true);
        if case == "early" {
            run.at(0).go(A, X, &[writes(0, whole())]);
            run.at(0).does("cudaEventCreate", Op::EventCreate { event: EVENT, context: CONTEXT, flags: 6, handle: 0 });
            run.at(0).record(EVENT, A);
        }
        run.share_event(0, 1, EVENT);
        if case == "before" {
            run.at(0).record(EVENT, A);
        }
        if case != "early" {
            run.at(0).go(A, X, &[writes(0, whole())]);
        }
        if case == "after" {
            run.at(0).record(EVENT, A);
        }
        run.wait(1, B, EVENT);
        run.at(1).go(B, Y, &[reads(0, whole())]);
        run.judge(races, RAW);
    }
}

#[test]
fn a_wait_orders_its_own_stream_only() {
    for (stream, races) in [(A, true), (B, false)] {
        let mut run = two(true);
        run.share_event(0, 1, EVENT);
        run.at(0).go(A, X, &[writes(0, whole())]);
        run.at(0).record(EVENT, A);
        run.wait(1, B, EVENT);
        run.at(1).go(stream, Y, &[reads(0, whole())]);
        run.judge(races, RAW);
    }
}

#[test]
fn back_and_forth_needs_both_events() {
    let back = EventId(51);
    for mended in [false, true] {
        let mut run = two(true);
        run.share_event(0, 1, EVENT);
        run.share_event(1, 0, back);
        for round in 0..3 {
            if mended && round > 0 {
                run.wait(0, A, back);
            }
            run.at(0).line(20).go(A, X, &[writes(0, whole())]);
            run.at(0).record(EVENT, A);
            run.wait(1, B, EVENT);
            run.at(1).line(30).go(B, Y, &[reads(0, whole())]);
            run.at(1).record(back, B);
        }
        if mended {
            run.silent();
        } else {
            // Kernels have names of their own in each round.
            assert!(run.found().iter().all(|f| f.hazard.name() == "write-after-read"));
        }
    }
}

#[test]
fn order_goes_through_a_third_process() {
    let second = EventId(51);
    for mended in [false, true] {
        let mut run = Run::new(3, true);
        run.at(0).malloc(X, N);
        run.share();
        run.share_event(0, 1, EVENT);
        run.share_event(1, 2, second);
        run.at(0).go(A, X, &[writes(0, whole())]);
        run.at(0).record(EVENT, A);
        run.wait(1, B, EVENT);
        // The middle one passes on what it waited for, or another stream that waited for nothing.
        run.at(1).record(second, if mended { B } else { A });
        run.wait(2, A, second);
        run.at(2).go(A, Y, &[reads(0, whole())]);
        run.judge(!mended, RAW);
    }
}

#[test]
fn a_host_that_waits_for_the_others_event_knows() {
    for mended in [false, true] {
        let mut run = two(true);
        run.share_event(0, 1, EVENT);
        run.at(0).go(A, X, &[writes(0, whole())]);
        if mended {
            run.at(0).record(EVENT, A);
        }
        let sync = SyncId(900);
        let (stream, context) = (StreamId::NONE, ContextId::NONE);
        run.at(1).does(
            "cudaEventSynchronize",
            Op::SyncBegin { sync, scope: SyncScope::Event, stream, event: EVENT, context },
        );
        run.at(1).does("cudaEventSynchronize", Op::SyncEnd { sync });
        run.at(1).go(B, Y, &[reads(0, whole())]);
        run.judge(!mended, RAW);
    }
}

#[test]
fn a_record_made_while_the_host_waits_is_not_what_it_waits_for() {
    let mut run = two(true);
    run.share_event(0, 1, EVENT);
    let sync = SyncId(900);
    let (stream, context) = (StreamId::NONE, ContextId::NONE);
    run.at(1)
        .does("cudaEventSynchronize", Op::SyncBegin { sync, scope: SyncScope::Event, stream, event: EVENT, context });
    run.at(0).go(A, X, &[writes(0, whole())]);
    run.at(0).record(EVENT, A);
    run.at(1).does("cudaEventSynchronize", Op::SyncEnd { sync });
    run.at(1).go(B, Y, &[reads(0, whole())]);
    run.finds(RAW);
}

#[test]
fn other_bytes_are_other_bytes() {
    for (at, races) in [(0, false), (N / 2 - 4, true)] {
        let mut run = two(true);
        run.at(0).go(A, X, &[writes(0, Shape::Exact(N / 2, N))]);
        run.at(1).go(B, Y + at, &[reads(0, Shape::Exact(0, N / 2))]);
        run.judge(races, RAW);
    }
}

#[test]
fn memory_that_was_not_exported_is_private() {
    let mut run = Run::new(2, true);
    for process in [0, 1] {
        run.at(process).malloc(X, N);
        run.at(process).does("cudaIpcGetMemHandle", Op::SharedMemory { ptr: X, key: &[process as u8; 64] });
    }
    run.at(0).go(A, X, &[writes(0, whole())]);
    run.at(1).go(A, X, &[writes(0, whole())]);
    run.silent();
}

#[test]
fn races_of_one_process_are_reported_once() {
    let mut run = two(true);
    run.at(0).go(A, X, &[writes(0, whole())]);
    run.at(0).go(B, X, &[reads(0, whole())]);
    run.at(0).sync(A);
    run.at(0).sync(B);
    run.at(1).go(B, Y, &[reads(0, whole())]);
    let f = run.finds(RAW);
    assert_eq!((f.pid, f.access.process), (100, None));
}

/// cuda.h: "Calling cuMemFree on an exported memory region before calling cuIpcCloseMemHandle in
/// the importing context will result in undefined behavior."
#[test]
fn the_owner_frees_what_the_other_still_uses() {
    // Closing the memory waits for the work that uses it, as a free does (measured).
    for (waits, closes) in [(false, false), (true, false), (false, true)] {
        let mut run = two(true);
        run.at(1).go(B, Y, &[reads(0, whole())]);
        if waits {
            run.at(1).sync(B);
        }
        if closes {
            run.at(1).free(Y, FreeKind::Imported, StreamId::NONE);
        }
        run.at(0).free(X, FreeKind::Plain, StreamId::NONE);
        let free = |f: &Finding| f.access.call == "cudaFree" && f.access.process == Some(100);
        let races = usize::from(!waits && !closes);
        assert_eq!(run.found().iter().filter(|f| free(f)).count(), races, "waits: {waits}, closes: {closes}");
    }
}

#[test]
fn an_address_that_is_given_out_again_is_other_memory() {
    let mut run = two(true);
    run.at(1).go(B, Y, &[writes(0, whole())]);
    run.at(1).sync(B);
    run.at(0).free(X, FreeKind::Plain, StreamId::NONE);
    run.at(0).malloc(X, N);
    // The other's mapping is stale: it is the old memory's.
    run.at(1).go(B, Y, &[writes(0, whole())]);
    run.at(0).go(A, X, &[writes(0, whole())]);
    run.silent();
}

#[test]
fn what_a_process_left_running_ends_with_it() {
    let mut run = two(true);
    run.at(0).go(A, X, &[writes(0, whole())]);
    let mut first = vec![run.processes[0].outcome()];
    run.at(1).go(B, Y, &[reads(0, whole())]);
    first.push(run.processes[1].outcome());
    run.across.finish(&mut first);
    assert!(first.iter().all(|o| o.findings.is_empty()), "{first:#?}");
}

#[test]
fn an_owner_that_is_not_checked_is_named() {
    let mut run = Run::new(1, true);
    run.open(0);
    run.at(0).go(A, Y, &[reads(0, whole())]);
    let mut outcomes = vec![run.processes[0].outcome()];
    run.across.finish(&mut outcomes);
    assert!(outcomes[0].findings.is_empty());
    let named = |o: &report::model::Outcome| o.coverage.unobserved.keys().any(|k| k.contains("not checked"));
    assert!(named(&outcomes[0]), "{:?}", outcomes[0].coverage.unobserved);
}

/// Each process says of its own access why its bytes are not exact.
#[test]
fn a_finding_between_two_processes_says_why_it_is_not_certain() {
    for (shape, verdict, known) in [
        (Shape::Exact(0, 64), RAW, &[][..]),
        (Shape::Bound(0, 64), "read-after-write likely", &[("previous", "upper bound")][..]),
    ] {
        let mut run = two(true);
        // The same place writes exact bytes, too, and the reason is not that write's.
        run.at(0).go(A, X, &[writes(0, Shape::Exact(4096, 8192)), writes(0, shape)]);
        run.at(1).go(B, Y, &[reads(0, Shape::Exact(0, 64))]);
        let found = run.finds(verdict);
        let said: Vec<_> = found.doubts.iter().map(|doubt| (doubt.side.name(), doubt.known.name())).collect();
        assert_eq!(said, known, "{:#?}", found.doubts);
    }
}

/// A process whose ring is read late: nothing is compared before its ops are known.
#[test]
fn nothing_is_compared_before_all_have_passed_it() {
    for mended in [false, true] {
        let mut run = two(true);
        // All of the second process is read before the first one's wait.
        let wrote = run.now + 10;
        run.processes[0].raw(Op::Clock { ns: wrote });
        run.processes[0].go(A, X, &[writes(0, whole())]);
        run.processes[1].raw(Op::Clock { ns: wrote + 100 });
        run.processes[1].go(B, Y, &[reads(0, whole())]);
        run.processes[1].analysis.reached(wrote + 1000);
        run.processes[0].raw(Op::Clock { ns: wrote + if mended { 50 } else { 150 } });
        run.processes[0].sync(A);
        run.processes[0].analysis.reached(wrote + 1000);
        run.judge(!mended, RAW);
    }
}

#[test]
fn the_lines_for_the_other_process_are_in_the_interface_that_it_uses() {
    let lines = |line: u32, has_torch: bool| {
        let mut run = two(true);
        run.at(0).python();
        if has_torch {
            run.at(0).torch();
        }
        run.at(0).line(line).go(A, X, &[writes(0, whole())]);
        run.at(1).go(B, Y, &[reads(0, whole())]);
        let mend = run.finds(RAW).synchronisation.mend;
        mend.into_iter().map(|mend| (mend.api.name(), mend.lines[0].clone())).next().expect("lines")
    };
    let numba = lines(6005, true);
    assert_eq!(numba.0, "Numba");
    assert!(numba.1.starts_with("cuda.synchronize()  # in process 100, "), "{numba:?}");
    assert!(lines(2005, true).1.starts_with("cupy.cuda.runtime.deviceSynchronize()"));
    assert!(lines(1005, true).1.starts_with("torch.cuda.current_stream().synchronize()"));
    assert_eq!(lines(1005, false).0, "CUDA runtime");
}
