//! Implicit synchronisation of copies, sets and frees under both policies; stream-ordered memory.

use crate::common::World;
use order::{Options, Policy};
use trace::*;

const DEVICE: u64 = 0x10_0000;
const DEVICE2: u64 = 0x20_0000;
const PINNED: u64 = 0x30_0000;
const PINNED2: u64 = 0x40_0000;
const MANAGED: u64 = 0x50_0000;
const POOL: u64 = 0x60_0000;
const PAGEABLE: u64 = 0x7000_0000;
const PAGEABLE2: u64 = 0x7100_0000;

struct Case {
    w: World,
    legacy: StreamId,
    blocking: StreamId,
    free: StreamId,
    kb: Epoch,
    kf: Epoch,
}

/// A busy blocking stream and a busy non-blocking one, and memory of each sort.
fn case(policy: Policy) -> Case {
    let mut options = Options::default();
    options.policy = policy;
    case_with(options)
}

fn case_with(options: Options) -> Case {
    let mut w = World::with(options);
    let legacy = w.stream(1, StreamKind::Legacy);
    let blocking = w.stream(2, StreamKind::Blocking);
    let free = w.stream(3, StreamKind::NonBlocking);
    for (ptr, kind) in [
        (DEVICE, MemoryKind::Device),
        (DEVICE2, MemoryKind::Device),
        (PINNED, MemoryKind::PinnedHost),
        (PINNED2, MemoryKind::RegisteredHost),
        (MANAGED, MemoryKind::Managed),
    ] {
        w.alloc(ptr, 4096, kind);
    }
    w.alloc_async(POOL, 4096, free);
    w.sync_context();
    let (kb, kf) = (w.launch(blocking), w.launch(free));
    Case { w, legacy, blocking, free, kb, kf }
}

/// What the host has seen: (work of blocking streams, work of non-blocking ones, the op).
fn seen(c: &Case, op: Epoch) -> (bool, bool, bool) {
    (c.w.host_after(c.kb), c.w.host_after(c.kf), c.w.host_after(op))
}

/// Driver API, API synchronization behavior, synchronous copies; observed:
/// `tests/gpu/programs/what_waits.cu`.
#[test]
fn synchronous_copies_on_the_legacy_stream() {
    for policy in [Policy::Observed, Policy::Documented] {
        for (dst, src, expected) in [
            (DEVICE, PINNED, (true, false, true)),
            (DEVICE, PINNED2, (true, false, true)),
            // Staged: what was before is over, the transfer to the device need not be.
            (DEVICE, PAGEABLE, (true, false, false)),
            (PINNED, DEVICE, (true, false, true)),
            (PAGEABLE, DEVICE, (true, false, true)),
            (PAGEABLE, PINNED, (true, false, true)),
            (DEVICE, DEVICE2, (false, false, false)),
        ] {
            let mut c = case(policy);
            let op = c.w.copy(c.legacy, dst, src, false);
            assert_eq!(seen(&c, op), expected, "{policy:?} {dst:#x} <- {src:#x}");
        }
    }
}

/// The same page, asynchronous copies.
#[test]
fn asynchronous_copies_on_their_own_stream() {
    let nothing = (false, false, false);
    let own = (true, false, true);
    for (dst, src, observed, documented) in [
        (PAGEABLE, DEVICE, own, nothing),
        (PAGEABLE, PAGEABLE2, own, own),
        (PINNED, PINNED2, own, own),
        (PINNED, DEVICE, nothing, nothing),
        (DEVICE, PINNED, nothing, nothing),
        (DEVICE, PAGEABLE, nothing, nothing),
        (DEVICE, DEVICE2, nothing, nothing),
    ] {
        for (policy, expected) in [(Policy::Observed, observed), (Policy::Documented, documented)] {
            let mut c = case(policy);
            let op = c.w.copy(c.blocking, dst, src, true);
            assert_eq!(seen(&c, op), expected, "{policy:?} {dst:#x} <- {src:#x}");
        }
    }
}

/// The same page: pageable memory is staged before the call returns.
#[test]
fn a_staged_source_is_read_during_the_call() {
    let mut c = case(Policy::Observed);
    c.w.copy(c.blocking, DEVICE, PAGEABLE, true);
    assert!(c.w.engine.source_epoch().is_some_and(|e| e.timeline == TimelineId::HOST));
    c.w.copy(c.blocking, DEVICE, PINNED, true);
    assert_eq!(c.w.engine.source_epoch(), None, "a pinned source is read in stream order");
    let mut c = case(Policy::Documented);
    c.w.copy(c.blocking, DEVICE, PAGEABLE, true);
    assert_eq!(c.w.engine.source_epoch(), None, "staging is not promised");
    c.w.copy(c.legacy, DEVICE, PAGEABLE, false);
    assert!(c.w.engine.source_epoch().is_some(), "here it is");
    c.w.launch(c.blocking);
    assert_eq!(c.w.engine.source_epoch(), None);
}

/// The same page: "the DMA to final destination may not have completed" when the call returns.
/// Programs that rely on it can be taken at their word.
#[test]
fn a_pageable_copy_can_be_taken_to_be_over() {
    for (waits, policy) in [false, true].into_iter().flat_map(|w| [(w, Policy::Observed), (w, Policy::Documented)]) {
        let mut options = Options::default();
        (options.policy, options.pageable_copies_wait) = (policy, waits);
        let mut c = case_with(options);
        let op = c.w.copy(c.legacy, DEVICE, PAGEABLE, false);
        assert_eq!(seen(&c, op), (true, false, waits), "{policy:?}");
        let op = c.w.copy(c.legacy, DEVICE, PAGEABLE, true);
        assert!(!seen(&c, op).2, "an asynchronous one is not over: {policy:?}");
        let op = c.w.copy(c.legacy, DEVICE, DEVICE2, false);
        assert!(!seen(&c, op).2, "nor one within the device: {policy:?}");
    }
}

/// The same page, memsets.
#[test]
fn sets() {
    for (dst, asynchronous, expected) in [
        (DEVICE, false, (false, false, false)),
        (PAGEABLE, false, (false, false, false)),
        (PINNED, false, (true, false, true)),
        (MANAGED, false, (true, false, true)),
        (PINNED, true, (false, false, false)),
    ] {
        let mut c = case(Policy::Observed);
        let op = c.w.set(c.legacy, dst, asynchronous);
        assert_eq!(seen(&c, op), expected, "{dst:#x} asynchronous: {asynchronous}");
    }
}

/// cuda.h, `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`.
#[test]
fn sync_memops_makes_synchronous_operations_wait() {
    let mut c = case(Policy::Documented);
    c.w.op(Op::SyncMemops { ptr: DEVICE + 8, on: true });
    let op = c.w.copy(c.legacy, DEVICE, DEVICE2, false);
    assert_eq!(seen(&c, op), (true, false, true));
    let mut c = case(Policy::Documented);
    c.w.op(Op::SyncMemops { ptr: DEVICE, on: true });
    let op = c.w.copy(c.blocking, DEVICE, DEVICE2, true);
    assert_eq!(seen(&c, op), (false, false, false), "asynchronous ones stay so");
    c.w.op(Op::SyncMemops { ptr: DEVICE, on: false });
    let op = c.w.set(c.legacy, DEVICE, false);
    assert_eq!(seen(&c, op), (false, false, false));
}

/// `cuMemFree`, `cuMemFreeHost`: "may" synchronise; measured: they drain the device, pool memory
/// does not (`tests/gpu/programs/what_waits.cu`).
#[test]
fn frees() {
    let all = (true, true);
    let none = (false, false);
    for (ptr, kind, observed) in [
        (DEVICE, FreeKind::Plain, all),
        (MANAGED, FreeKind::Plain, all),
        (PINNED, FreeKind::Host, all),
        (PINNED2, FreeKind::Unregister, all),
        (POOL, FreeKind::Plain, none),
        (DEVICE, FreeKind::Imported, all),
        (DEVICE, FreeKind::Block, none),
        (DEVICE, FreeKind::Unmap, none),
    ] {
        for (policy, expected) in [(Policy::Observed, observed), (Policy::Documented, none)] {
            let mut c = case(policy);
            c.w.free(ptr, kind);
            assert_eq!((c.w.host_after(c.kb), c.w.host_after(c.kf)), expected, "{policy:?} {kind:?} {ptr:#x}");
            // The free itself never races with running work where the driver drains the device
            // first.
            let drains = ptr != POOL && matches!(kind, FreeKind::Plain | FreeKind::Imported);
            assert_eq!(c.w.after(c.kb), drains || expected == all, "{policy:?} {kind:?}");
        }
    }
}

/// Measured: the host waits for blocking, other and legacy streams. CUDA does not promise it.
#[test]
fn destroying_an_array_drains_the_device() {
    for (policy, expected) in [(Policy::Observed, (true, true)), (Policy::Documented, (false, false))] {
        let mut c = case(policy);
        c.w.op(Op::ArrayDestroy { array: trace::ArrayId(5) });
        assert_eq!((c.w.host_after(c.kb), c.w.host_after(c.kf)), expected, "{policy:?}");
        assert!(c.w.after(c.kb) && c.w.after(c.kf), "the array itself goes when they are over");
    }
}

/// Measured for one device; another one has no part in it.
#[test]
fn a_free_drains_its_own_device_only() {
    let mut c = case(Policy::Observed);
    let far = ContextId(2);
    c.w.op(Op::ContextCreate { context: far, device: 1, handle: 2 });
    let s = c.w.stream_in(far, 50, StreamKind::NonBlocking);
    let k = c.w.launch(s);
    c.w.free(DEVICE, FreeKind::Plain);
    assert!(c.w.host_after(c.kf) && !c.w.host_after(k));
}

/// Blocks of a sub-allocator are memory of what they lie in.
#[test]
fn a_block_inside_an_allocation_does_not_hide_it() {
    let mut c = case(Policy::Observed);
    c.w.alloc(DEVICE + 512, 512, MemoryKind::Block);
    assert_eq!(c.w.engine.memory_kind(DEVICE + 600), Some(MemoryKind::Device));
    c.w.free(DEVICE + 512, FreeKind::Block);
    assert_eq!(c.w.engine.memory_kind(DEVICE + 600), Some(MemoryKind::Device));
}

/// `cuMemHostGetDevicePointer`: another address of the same memory.
#[test]
fn an_alias_of_pinned_memory_is_pinned() {
    let mut c = case(Policy::Observed);
    c.w.op(Op::Alias { ptr: 0x9000_0000, target: PINNED, size: 4096 });
    let op = c.w.set(c.legacy, 0x9000_0000, false);
    assert_eq!(seen(&c, op), (true, false, true));
}

/// cuda.h, `CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES`, `..._ALLOW_INTERNAL_DEPENDENCIES`:
/// memory is handed out after its free.
#[test]
fn a_pool_orders_reuse_after_the_free() {
    let mut c = case(Policy::Observed);
    let other = c.w.stream(10, StreamKind::NonBlocking);
    c.w.free_async(POOL, c.free);
    let late = c.w.launch(c.free);
    c.w.alloc_async(POOL + 2048, 1024, other);
    assert!(c.w.after(c.kf), "the same bytes: after the free, and so after all before it");
    assert!(!c.w.after(late));
    let third = c.w.stream(11, StreamKind::NonBlocking);
    c.w.alloc_async(POOL + 8192, 1024, third);
    assert!(!c.w.after(c.kf), "other bytes");
    c.w.alloc_async(POOL, 64, third);
    assert!(c.w.after(c.kf), "the rest of the freed block is still the pool's");
}

/// `cuMemAllocAsync`: usable in stream order.
#[test]
fn allocating_from_a_pool_is_an_op_of_its_stream() {
    let mut c = case(Policy::Observed);
    let alloc = c.w.alloc_async(POOL + 0x10_0000, 64, c.free);
    assert!(!c.w.launch_after(c.blocking, alloc) && c.w.launch_after(c.free, alloc));
    let free = c.w.free_async(POOL + 0x10_0000, c.free);
    assert!(!c.w.host_after(free) && !c.w.launch_after(c.blocking, free));
    let plain = c.w.alloc(0x8000_0000, 64, MemoryKind::Device);
    assert_eq!(plain.timeline, TimelineId::HOST);
    assert!(c.w.launch_after(c.blocking, plain) && c.w.launch_after(c.free, plain));
}

/// `cuMemcpyBatchAsync`: in stream order as a whole, in no order inside.
#[test]
fn copies_of_one_batch_are_unordered_among_themselves() {
    let mut c = case(Policy::Observed);
    let one = |w: &mut World, stream, batch| {
        let (dst, src) = (Region::linear(DEVICE, 8), Region::linear(PINNED, 8));
        let (dst_space, src_space) = (Space::Unified, Space::Unified);
        w.op(Op::Copy { stream, dst, src, dst_space, src_space, asynchronous: true, batch })
    };
    let first = one(&mut c.w, c.free, 1);
    let second = one(&mut c.w, c.free, 1);
    assert!(c.w.after(c.kf) && !c.w.after(first));
    let third = one(&mut c.w, c.free, 1);
    assert!(!c.w.after(first) && !c.w.after(second));
    one(&mut c.w, c.free, 2);
    assert!(c.w.after(first) && c.w.after(third), "the next batch waits for the whole one");
    assert!(c.w.launch_after(c.free, third));
    let a = one(&mut c.w, c.free, 0);
    one(&mut c.w, c.free, 0);
    assert!(c.w.after(a), "no batch");
}

/// Driver API, API synchronization behavior: what "may" happen is observed, not promised.
#[test]
fn a_latent_engine_tells_promises_from_observations() {
    let mut options = Options::default();
    options.latent = true;
    let mut w = World::with(options);
    let [a, b] = w.streams();
    w.alloc(DEVICE, 4096, MemoryKind::Device);
    w.alloc(DEVICE2, 4096, MemoryKind::Device);
    let ka = w.launch(a);
    w.free(DEVICE2, FreeKind::Plain);
    w.launch(b);
    assert!(w.after(ka) && !w.engine.start_clock().covers_documented(ka));
    let copy = w.copy(a, PAGEABLE, DEVICE, true);
    w.launch(b);
    assert!(w.after(copy) && !w.engine.start_clock().covers_documented(copy));
    w.record(1, a);
    w.wait(b, 1);
    w.launch(b);
    assert!(w.engine.start_clock().covers_documented(copy), "an event is a promise");
    let kb = w.launch(b);
    w.sync_stream(b);
    w.launch(a);
    assert!(w.engine.start_clock().covers_documented(kb), "and so is a synchronise");
}
