//! The watches over the host's memory, as calls begin and end them.
//!
//! Owns the way from a call to [`crate::host::watches`]: which bytes a copy or a graph uses, when a
//! watch is checked (outside of the lock), and the ops that come of it. What a change is worth is
//! decided by the analyzer.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cuda_sys::*;
use trace::{Epoch, GraphExecId, HostFuncId, MemoryKind, NoteKind, Op, Region, Space, StreamId};

use super::context::Cx;
use crate::host::checksum::{self, Checksums};
use crate::host::in_place::InPlaceKind;
use crate::host::page_protection::is_ordinary;
use crate::host::read_budget::Reading;
use crate::host::watches::{WatchCheck, Watched, Watches};
use crate::host::{held_touches, holds, in_place, pinned_bounds, sigsegv, single_step, touches};
use crate::log::core::Core;
use crate::real::driver::real;
use crate::real::reach;
use crate::runtime::thread_state;
use crate::stack::native::is_readable_range;

/// The graph whose node does the work, and which node, counted from 1.
pub type NodeOfGraph = (GraphExecId, u32);

/// Work at `epoch`, the op logged last, reads these bytes: when they are pinned memory, they
/// are watched until it is over.
pub fn watch_source(cx: &mut Cx<'_>, epoch: Epoch, stream: StreamId, node: NodeOfGraph, region: &Region) {
    if pinned_bounds::may_hold(region) {
        watch_bytes(cx, epoch, stream, node, region, Watched::Pinned);
    }
}

/// Work at `epoch`, the op logged last, reads these bytes in its turn, wherever they lie: when
/// they are memory that CUDA does not know, they are watched until it is over. Their pages stay
/// accessible, for other things lie on them.
pub fn watch_pageable_source(cx: &mut Cx<'_>, epoch: Epoch, stream: StreamId, region: &Region, space: Space) {
    let unknown = |core: &Core| core.lock().is_some_and(|shared| shared.engine.is_pageable(region, space));
    if cx.core().is_some_and(unknown) {
        watch_bytes(cx, epoch, stream, (GraphExecId::NONE, 0), region, Watched::Pageable);
    }
}

fn watch_bytes(cx: &mut Cx<'_>, epoch: Epoch, stream: StreamId, node: NodeOfGraph, region: &Region, what: Watched) {
    let Some(core) = cx.core().filter(|core| core.options.host_writes) else { return };
    let Some(look) = begin_watch(cx, core, epoch, stream, node, region, what) else { return };
    // Older work that still reads these bytes: the host has just said that they are ready for
    // more, so now is the time to check them.
    let (mut known, mut after, mut seed) = (None, 0, look.seed);
    while let Some(old) = core.lock().and_then(|mut s| s.watches.next_reused(region, look.id, after)) {
        after = old.id;
        let now = see(core, &old);
        if old.region == look.region && old.most == look.most {
            (known, seed) = (now, old.seed);
        }
        conclude(cx, core, &old, now, true);
    }
    if known.is_none() {
        seed = look.seed;
    }
    let sums = known.or_else(|| see(core, &look));
    let protects = may_protect(core);
    if let Some(mut shared) = core.lock() {
        let shared = &mut *shared;
        if shared.watches.ready(&shared.engine, look.id, seed, sums) {
            shared.watches.supersede(look.id);
            if protects {
                shared.watches.protect(look.id);
            }
        }
    }
}

/// Work at `epoch`, the op logged last, writes these bytes: when they are pinned memory,
/// touches of the CPU are looked for until it is over.
pub fn watch_target(cx: &mut Cx<'_>, epoch: Epoch, stream: StreamId, node: NodeOfGraph, region: &Region) {
    if !pinned_bounds::may_hold(region) {
        return;
    }
    let Some(core) = cx.core().filter(|core| may_protect(core)) else { return };
    // All work in such memory is watched together.
    if core.lock().is_none_or(|shared| shared.watches.in_place.knows(region.start)) {
        return;
    }
    let Some(look) = begin_watch(cx, core, epoch, stream, node, region, Watched::Written) else { return };
    if let Some(mut shared) = core.lock() {
        shared.watches.supersede(look.id);
        shared.watches.protect(look.id);
    }
}

fn begin_watch(
    cx: &mut Cx<'_>,
    core: &'static Core,
    epoch: Epoch,
    stream: StreamId,
    (exec, node): NodeOfGraph,
    region: &Region,
    what: Watched,
) -> Option<WatchCheck> {
    if thread_state::inside_transport() {
        return None;
    }
    let thread = cx.thread();
    let mut shared = core.lock()?;
    let shared = &mut *shared;
    // A thread has waited since the op was logged: what the device wrote meanwhile cannot be
    // distinguished from the host's writes.
    if shared.engine.host_changes() != cx.host_changes() {
        return None;
    }
    let most = |bytes, combined| match core.read_budget.most(bytes, combined, core.options.host_sample) {
        Reading::Most(most) => Some(most),
        Reading::Nothing => {
            core.read_budget.count_uncompared();
            None
        }
    };
    let look = shared.watches.begin(&shared.engine, epoch, region, what, most)?;
    if what == Watched::Pageable {
        pinned_bounds::note(&shared.watches);
    }
    let writes = what == Watched::Written;
    let op = Op::HostWatch { watch: look.id, stream, exec, node, region: *region, writes };
    shared.log(cx.call, thread, cx.captured_frames(), &op);
    Some(look)
}

/// Checks the watches that have just ended. `func`: a host function begins, which knows more
/// than the host threads.
#[cold]
pub fn look_at_ended(cx: &mut Cx<'_>, func: Option<HostFuncId>) {
    let Some(core) = cx.core() else { return };
    loop {
        let next = core.lock().and_then(|mut shared| {
            let shared = &mut *shared;
            shared.watches.next_ended(&shared.engine, func)
        });
        let Some(look) = next else { return };
        let now = see(core, &look);
        conclude(cx, core, &look, now, false);
    }
}

/// A check is over: logs what changed.
fn conclude(cx: &mut Cx<'_>, core: &'static Core, look: &WatchCheck, now: Option<Checksums>, goes_on: bool) {
    let changed = |watches: &Watches| match &now {
        Some(now) => watches.changed(look.id, now),
        None => watches.taken_away(look.id),
    };
    let Some(mut shared) = core.lock() else { return };
    if changed(&shared.watches).is_none() {
        return shared.watches.settle(look.id, goes_on && now.is_some());
    }
    drop(shared);
    // Another thread may have enqueued work that writes here and not have come to log it.
    if core.thread_count() > 1 {
        std::thread::sleep(Duration::from_millis(2));
    }
    cx.with_full_stack(core);
    let thread = cx.thread();
    let Some(mut shared) = core.lock() else { return };
    if let Some((start, end)) = changed(&shared.watches) {
        let op = Op::HostAccess { watch: look.id, start, end, writes: true, in_the_act: false };
        shared.log(cx.call, thread, cx.captured_frames(), &op);
    }
    shared.watches.settle(look.id, false);
}

/// A copy is about to write here.
pub fn device_will_write(cx: &mut Cx<'_>, region: &Region) {
    if pinned_bounds::may_hold(region)
        && let Some(mut shared) = cx.core().and_then(Core::lock)
        && !shared.watches.is_empty()
    {
        shared.watches.forget(region.start, region.end());
    }
}

/// Memory of the host that devices can use in place has come: whether it is watched is logged.
pub fn host_memory_comes(cx: &mut Cx<'_>, ptr: u64, size: u64, kind: InPlaceKind) {
    let Some(core) = cx.core().filter(|core| watches_in_place(core)) else { return };
    let end = ptr.saturating_add(size);
    let memory = match kind {
        InPlaceKind::Pinned => MemoryKind::PinnedHost,
        InPlaceKind::Managed | InPlaceKind::Variable => MemoryKind::Managed,
        InPlaceKind::Registered => MemoryKind::RegisteredHost,
    };
    if size == 0 || !reach::bears_protection(ptr, size, memory) || !is_ordinary(ptr, end) || !sigsegv::install() {
        return;
    }
    if !reach::bears_many_pieces() {
        holds::be_sparing();
    }
    single_step::prepare();
    held_touches::prepare();
    let Some(mut shared) = core.lock() else { return };
    shared.watches.in_place.add(ptr, end, kind);
    drop(shared);
    cx.log(&Op::HostWatched { ptr });
}

/// A variable of a module was found: if it is managed, the host uses it in place.
pub fn variable_found(cx: &mut Cx<'_>, ptr: u64, size: u64) {
    if !cx.core().is_some_and(watches_in_place) {
        return;
    }
    // The driver writes four bytes: an `int`, as of all boolean attributes (H200, driver 580).
    let mut managed: c_int = 0;
    let answer = real!(cuPointerGetAttribute(
        (&raw mut managed).cast() => *mut c_void, CU_POINTER_ATTRIBUTE_IS_MANAGED => CUpointer_attribute, ptr => CUdeviceptr
    ));
    if answer == CUresult::SUCCESS && managed != 0 {
        host_memory_comes(cx, ptr, size, InPlaceKind::Variable);
    }
}

/// The memory that begins here is about to go away.
pub fn host_memory_freed(cx: &mut Cx<'_>, ptr: u64) {
    if in_place::exists()
        && let Some(mut shared) = cx.core().and_then(Core::lock)
        && shared.watches.in_place.begins_at(ptr)
    {
        shared.watches.in_place.leave(ptr, ptr + 1);
    }
}

/// Work at `epoch` was submitted with these parameters.
#[cold]
pub fn uses_words(cx: &mut Cx<'_>, epoch: Epoch, words: impl Iterator<Item = u64>) {
    if let Some(mut shared) = cx.core().and_then(Core::lock) {
        let shared = &mut *shared;
        shared.watches.in_place.use_words(&shared.engine, epoch, words);
    }
}

/// Work at `epoch` reads or writes these bytes.
pub fn uses_region(cx: &mut Cx<'_>, epoch: Epoch, region: &Region, writes: bool) {
    if in_place::exists()
        && let Some(mut shared) = cx.core().and_then(Core::lock)
    {
        let shared = &mut *shared;
        shared.watches.in_place.use_region(&shared.engine, epoch, region, writes);
    }
}

/// Where the pinned memory that begins at an address lies.
pub fn pinned_range(cx: &Cx<'_>, ptr: u64) -> Option<(u64, u64)> {
    cx.core()?.lock()?.watches.range(ptr)
}

/// Memory from `start` to `end` is about to go away: returns when no thread reads it any more.
pub fn host_memory_goes(cx: &mut Cx<'_>, start: u64, end: u64) {
    let Some(core) = cx.core() else { return };
    for _ in 0..4000 {
        let Some(mut shared) = core.lock() else { return };
        if !shared.watches.is_read(start, end) {
            return shared.watches.leave(start, end);
        }
        drop(shared);
        std::thread::sleep(Duration::from_micros(50));
    }
}

/// A graph was launched: its copies from the host are watched.
pub fn watch_graph(cx: &mut Cx<'_>, epoch: Epoch, stream: StreamId, handle: CUgraphExec) {
    if pinned_bounds::are_empty() && !touches::is_linked() && !in_place::exists() {
        return;
    }
    let Some(core) = cx.core() else { return };
    let Some((exec, host)) = core.handles.execs.get(&(handle.0 as u64)).map(|e| (e.id, e.host.clone())) else {
        return;
    };
    if host.calls_host
        && let Some(mut shared) = core.lock()
    {
        shared.watches.calls_host(epoch);
    }
    if host.calls_unseen && (touches::is_linked() || core.options.host_accesses) {
        let text = "host function of a graph, whose loads and stores are not seen".into();
        cx.define(&Op::Note { kind: NoteKind::NotModelled, text, count: 1 });
    }
    if in_place::exists() {
        uses_words(cx, epoch, host.words.iter().copied());
        host.read.iter().for_each(|region| uses_region(cx, epoch, region, false));
        host.written.iter().for_each(|region| uses_region(cx, epoch, region, true));
    }
    for (index, region) in &host.sources {
        watch_source(cx, node_epoch(core, exec, *index, epoch), stream, (exec, index + 1), region);
    }
    for (index, region) in &host.targets {
        watch_target(cx, node_epoch(core, exec, *index, epoch), stream, (exec, index + 1), region);
    }
}

/// The epoch of a node of a launch, which is the latest of its executable graph.
fn node_epoch(core: &'static Core, exec: GraphExecId, index: u32, launch: Epoch) -> Epoch {
    core.lock().and_then(|shared| shared.engine.node_epoch(exec, index)).unwrap_or(launch)
}

/// Whether memory that devices use in place is to be watched.
fn watches_in_place(core: &'static Core) -> bool {
    core.options.host_accesses && core.options.host_in_place
}

/// Whether pages may be protected: asked for, possible, and without effect on the device.
fn may_protect(core: &Core) -> bool {
    static SHARED: AtomicU64 = AtomicU64::new(0);
    if !core.options.host_accesses {
        return false;
    }
    // Where devices go through the CPU's page tables they would lose access too.
    if SHARED.load(Ordering::Relaxed) == 0 {
        let mut shared = 0_i32;
        let _ = real!(cuDeviceGetAttribute(&raw mut shared => *mut i32, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES => CUdevice_attribute, 0 => i32));
        SHARED.store(1 + u64::from(shared != 0), Ordering::Relaxed);
    }
    SHARED.load(Ordering::Relaxed) == 1 && sigsegv::install()
}

/// Computes the checksums of a watch, outside of the lock. `None`: some byte can not be read.
fn see(core: &Core, look: &WatchCheck) -> Option<Checksums> {
    let began = Instant::now();
    // What the driver allocated is readable until a call that waits for us frees it.
    if look.registered && !is_readable_range(look.region.start, look.region.end()) {
        return None;
    }
    // SAFETY: as just said; registered pages were tried.
    let sums = unsafe { checksum::sums(&look.region, look.most, look.seed) };
    let took = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
    core.read_budget.spend(took, look.bytes, look.most);
    Some(sums)
}
