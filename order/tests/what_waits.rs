//! The table of what calls really wait for, as measured on a GPU, against the `observed` policy.
//!
//! `tests/gpu/programs/what_waits.cu` prints one line a question: a kernel spins on one stream, a
//! call is made, did the call return only after the kernel? This test asks the engine every line of
//! the committed table. A line that it cannot ask fails the test.

use crate::common::{CTX, World};
use trace::*;

const TABLE: &str = include_str!("../../tests/gpu/programs/what_waits.txt");

const DEVICE: u64 = 0x1_0000;
const OTHER: u64 = 0x2_0000;
const PINNED: u64 = 0x3_0000;
const MANAGED: u64 = 0x4_0000;
const REGISTERED: u64 = 0x5_0000;
const POOLED: u64 = 0x6_0000;
const MAPPED: u64 = 0x7_0000;
const IMPORTED: u64 = 0x8_0000;
const PAGEABLE: u64 = 0x9_0000;

struct Bench {
    w: World,
    legacy: StreamId,
    b: StreamId,
    c: StreamId,
    n: StreamId,
}

impl Bench {
    fn new() -> Self {
        let mut w = World::new();
        let legacy = w.stream(1, StreamKind::Legacy);
        let (b, c) = (w.stream(2, StreamKind::Blocking), w.stream(3, StreamKind::Blocking));
        let n = w.stream(4, StreamKind::NonBlocking);
        w.alloc(DEVICE, 64, MemoryKind::Device);
        w.alloc(OTHER, 64, MemoryKind::Device);
        w.alloc(PINNED, 64, MemoryKind::PinnedHost);
        w.alloc(MANAGED, 64, MemoryKind::Managed);
        Self { w, legacy, b, c, n }
    }

    fn copy(&mut self, stream: StreamId, dst: u64, src: u64, asynchronous: bool) {
        self.w.copy(stream, dst, src, asynchronous);
    }

    /// Makes the call of a row. False: this call is unknown.
    fn call(&mut self, call: &str) -> bool {
        let legacy = self.legacy;
        match call {
            "cudaMemcpy H2D pageable" => self.copy(legacy, DEVICE, PAGEABLE, false),
            "cudaMemcpy H2D pinned" => self.copy(legacy, DEVICE, PINNED, false),
            "cudaMemcpy D2H" => self.copy(legacy, PINNED, DEVICE, false),
            "cudaMemcpy D2D" => self.copy(legacy, DEVICE, OTHER, false),
            "cudaMemcpy managed to device" => self.copy(legacy, DEVICE, MANAGED, false),
            "cudaMemset device" => drop(self.w.set(legacy, DEVICE, false)),
            "cudaMemset pinned" => drop(self.w.set(legacy, PINNED, false)),
            "cudaMemset managed" => drop(self.w.set(legacy, MANAGED, false)),
            "cudaMemset device, SYNC_MEMOPS" => {
                self.w.op(Op::SyncMemops { ptr: DEVICE, on: true });
                self.w.set(legacy, DEVICE, false);
            }
            "cudaMemcpy D2D, SYNC_MEMOPS" => {
                self.w.op(Op::SyncMemops { ptr: OTHER, on: true });
                self.copy(legacy, DEVICE, OTHER, false);
            }
            "cudaFree" => drop(self.w.free(OTHER, FreeKind::Plain)),
            "cudaFreeArray, 16 KiB" | "cudaFreeArray, 65536 KiB" => {
                self.w.op(Op::ArrayDestroy { array: ArrayId(5) });
            }
            "cudaFreeMipmappedArray, 16 KiB" | "cudaFreeMipmappedArray, 65536 KiB" => {
                self.w.op(Op::ArrayDestroy { array: ArrayId::NONE });
            }
            "cudaFreeHost" => drop(self.w.free(PINNED, FreeKind::Host)),
            "cudaHostUnregister" => {
                self.w.alloc(REGISTERED, 64, MemoryKind::RegisteredHost);
                self.w.free(REGISTERED, FreeKind::Unregister);
            }
            "cudaFree of pool memory" => {
                self.w.alloc_async(POOLED, 64, self.c);
                self.w.free(POOLED, FreeKind::Plain);
            }
            "cuMemUnmap" => {
                self.w.alloc(MAPPED, 64, MemoryKind::Mapped);
                self.w.free(MAPPED, FreeKind::Unmap);
            }
            "cudaIpcCloseMemHandle" => {
                self.w.alloc(IMPORTED, 64, MemoryKind::Imported);
                self.w.free(IMPORTED, FreeKind::Imported);
            }
            // Orders nothing, so there is no op.
            "cuMemSetAccess" => drop(self.w.alloc(MAPPED, 64, MemoryKind::Mapped)),
            "cudaStreamDestroy" => {
                let stream = self.w.stream(9, StreamKind::Blocking);
                self.w.op(Op::StreamDestroy { stream });
            }
            "cudaStreamSynchronize(blocking b)" => self.w.sync_stream(self.b),
            "cudaStreamSynchronize(0)" => self.w.sync_stream(legacy),
            "cudaMemcpyAsync D2H pageable on blocking c" => self.copy(self.c, PAGEABLE, DEVICE, true),
            "record on c after wait(0, completed event)" => {
                self.w.record(1, self.n);
                self.w.sync_event(1);
                self.w.wait(legacy, 1);
                self.record_on_c();
            }
            "record on c after wait(0, never recorded)" => {
                self.w.op(Op::EventCreate { event: EventId(1), context: CTX, flags: 0, handle: 1 });
                self.w.wait(legacy, 1);
                self.record_on_c();
            }
            "record on c after record on 0" => {
                self.w.record(1, legacy);
                self.record_on_c();
            }
            "record on c" => self.record_on_c(),
            _ => return false,
        }
        true
    }

    fn record_on_c(&mut self) {
        self.w.record(2, self.c);
        self.w.sync_event(2);
    }

    fn stream(&self, words: &str) -> Option<StreamId> {
        match words.strip_suffix(" stream busy").or_else(|| words.strip_suffix(" busy"))? {
            "blocking" | "b" => Some(self.b),
            "non-blocking" => Some(self.n),
            "legacy" => Some(self.legacy),
            _ => None,
        }
    }
}

#[test]
fn the_observed_policy_is_what_was_measured() {
    let (mut asked, mut wrong) = (0, Vec::new());
    // Queries have lines of another form.
    for line in TABLE.lines().filter(|line| !line.starts_with("cudaStreamQuery(")) {
        let mut bench = Bench::new();
        let (question, waits) = match (line.split_once(" waits ("), line.split_once(" returns (")) {
            (Some((question, _)), None) => (question, true),
            (None, Some((question, _))) => (question, false),
            _ => panic!("not a row: {line}"),
        };
        // "b busy (no legacy action between)" is said for the reader only.
        let question = question.trim_end().trim_end_matches(" (no legacy action between)");
        let (call, busy) = question.rsplit_once(", ").unwrap_or_else(|| panic!("not a row: {line}"));
        let stream = bench.stream(busy).unwrap_or_else(|| panic!("no such stream: {line}"));
        let kernel = bench.w.launch(stream);
        assert!(bench.call(call), "nobody knows how to ask: {line}");
        if bench.w.host_after(kernel) != waits {
            wrong.push(line);
        }
        asked += 1;
    }
    assert!(wrong.is_empty(), "the policy says otherwise:\n{}", wrong.join("\n"));
    assert_eq!(asked, 3 * (12 + 13) + 4, "rows are missing");
}

/// Queries of a default stream: what an answer of "finished" says. (What "not ready" says is
/// nothing.)
#[test]
fn queries_answer_for_what_was_measured() {
    assert!(TABLE.contains("cudaStreamQuery(0) with b busy: cudaErrorNotReady"));
    let mut bench = Bench::new();
    let kernel = bench.w.launch(bench.b);
    let upto = bench.w.engine.stream_time(bench.legacy);
    bench.w.op(Op::StreamIdle { stream: bench.legacy, upto });
    assert!(bench.w.host_after(kernel), "an idle legacy stream means idle blocking streams");

    assert!(TABLE.contains("cudaStreamQuery(b) with legacy busy: cudaSuccess"));
    let mut bench = Bench::new();
    let kernel = bench.w.launch(bench.legacy);
    let upto = bench.w.engine.stream_time(bench.b);
    bench.w.op(Op::StreamIdle { stream: bench.b, upto });
    assert!(!bench.w.host_after(kernel), "an idle blocking stream says nothing of the legacy one");
}
