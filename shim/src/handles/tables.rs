//! From CUDA's handles to ids: each life of a stream, event, context or array has an id of its own,
//! for the driver hands the same handle out again.
//!
//! Handles that were never seen being made (made before the shim was there, or through a door it
//! does not know) are asked about and defined when they are first used. Real calls are made before
//! a table is locked, never under it.

use std::cell::Cell;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_sys::*;
use dashmap::DashMap;
use trace::{ArrayId, ContextId, EventId, GraphExecId, ImageId, Op, PoolId, StackId, StreamId, StreamKind, ThreadId};

use crate::handles::kernel::Kernel;
use crate::ids::variables::Unlisted;
use crate::log::core::Core;
use crate::observe::context::Cx;
use crate::real;
use crate::runtime::thread_state;
use crate::runtime::thread_state::Local;

/// A fast hash for handles: addresses, which differ in their middle bits.
#[derive(Default, Clone, Copy)]
pub struct HandleHasher(u64);

impl std::hash::Hasher for HandleHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
}

type Table<K, V> = DashMap<K, V, BuildHasherDefault<HandleHasher>>;

/// All handle tables.
#[derive(Default)]
pub struct Handles {
    streams: Table<u64, StreamId>,
    legacy: Table<u64, StreamId>,
    per_thread: Table<(u64, u32), StreamId>,
    events: Table<u64, EventId>,
    contexts: Table<u64, ContextId>,
    /// Kernels and functions that were launched.
    pub kernels: Table<u64, &'static Kernel>,
    /// Modules and libraries, and the functions and kernels got from them: the image they come
    /// from.
    pub images: Table<u64, ImageId>,
    /// Kernels by name: the image, for functions that were not seen being got (the driver makes
    /// them from kernels, in graphs for one). [`ImageId::NONE`] when two images have a kernel of
    /// this name.
    pub kernel_names: DashMap<Box<[u8]>, ImageId>,
    /// Images whose variables were not asked for yet.
    pub unlisted: Unlisted,
    /// Nodes of graphs: where they come from.
    pub nodes: Table<u64, NodeOrigin>,
    /// Executable graphs.
    pub execs: Table<u64, crate::ops::graphs::execs::Exec>,
    arrays: Table<u64, ArrayId>,
    pools: Table<u64, PoolId>,
    devices: Table<u32, ()>,
    /// Mappings of virtual memory, by address.
    mappings: Table<u64, Mapping>,
    /// Events that other processes record too, by handle.
    pub shared_events: Table<u64, ()>,
    /// External semaphores.
    pub semaphores: Table<u64, Semaphore>,
    /// Heaps that NVTX annotations name, by handle.
    pub heaps: Table<u64, crate::libraries::nvtx_memory::Heap>,
    /// Live regions of those heaps: the heap, by first address.
    pub regions: Table<u64, u64>,
    next: Next,
}

/// Where a node of a graph comes from.
#[derive(Clone)]
pub struct NodeOrigin {
    /// Where it was captured or added.
    pub stack: StackId,
    /// The call that did it.
    pub call: FnId,
    /// The capture that it was made in, 0 when it was added: handles come back.
    pub capture: u64,
    /// Of a conditional node: the graphs inside.
    pub bodies: Option<Vec<u64>>,
}

/// A mapping of virtual memory.
#[derive(Clone, Copy)]
struct Mapping {
    handle: u64,
    offset: u64,
    size: u64,
    /// Where the first mapping of this memory is, or was: what the trace knows it by. 0: by nothing
    /// any more.
    root: u64,
    /// The address by which the trace knows the first byte of the mapping.
    at: u64,
}

/// An external semaphore.
#[derive(Clone, Copy)]
pub struct Semaphore {
    /// Its number in the trace.
    pub id: u32,
    /// Whether signals and waits name values; otherwise each wait takes a signal.
    pub has_values: bool,
    /// Signals so far.
    pub signals: u64,
    /// Waits so far.
    pub waits: u64,
}

/// Counters of ids.
#[derive(Default)]
struct Next {
    stream: AtomicU32,
    event: AtomicU32,
    context: AtomicU32,
    array: AtomicU32,
    pool: AtomicU32,
    other: AtomicU32,
}

fn take(counter: &AtomicU32) -> u32 {
    counter.fetch_add(1, Ordering::Relaxed) + 1
}

/// Rises whenever a handle's meaning ends, so that what threads remember of handles is forgotten.
#[unsafe(link_section = "streamsan_state")]
static ENDED: AtomicU32 = AtomicU32::new(1);

/// What one thread remembers of the handles that it used last: a table look-up costs two locked
/// instructions. All zeros remembers nothing: [`ENDED`] is never 0.
pub struct Recent<const SLOTS: usize> {
    /// Handle, [`ENDED`] then, id.
    entries: [Cell<(u64, u32, u32)>; SLOTS],
}

impl<const SLOTS: usize> Recent<SLOTS> {
    fn slot(key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % SLOTS
    }

    #[inline]
    fn get(&self, key: u64) -> Option<u32> {
        let (known, ended, id) = self.entries[Self::slot(key)].get();
        (known == key && ended == ENDED.load(Ordering::Acquire)).then_some(id)
    }

    /// `ended`: [`ENDED`] as it was before the table was asked.
    fn put(&self, key: u64, id: u32, ended: u32) {
        self.entries[Self::slot(key)].set((key, ended, id));
    }
}

/// The meaning of some handle has ended, or all have (in the child after a fork).
pub fn forget_recent() {
    ENDED.fetch_add(1, Ordering::AcqRel);
}

/// Counts the endings of handles' meanings.
#[inline]
pub fn meaning() -> u32 {
    ENDED.load(Ordering::Acquire)
}

/// Looks a handle up in the thread's memory, then in the table.
#[inline(always)]
fn recall<const SLOTS: usize>(
    recent: impl Fn(&Local) -> &Recent<SLOTS>,
    key: u64,
    table: impl FnOnce() -> Option<u32>,
) -> Option<u32> {
    thread_state::with(|l| {
        let recent = recent(l);
        recent.get(key).or_else(|| look_up(recent, key, table))
    })
}

#[cold]
#[inline(never)]
fn look_up<const SLOTS: usize>(recent: &Recent<SLOTS>, key: u64, table: impl FnOnce() -> Option<u32>) -> Option<u32> {
    let ended = ENDED.load(Ordering::Acquire);
    let id = table()?;
    recent.put(key, id, ended);
    Some(id)
}

/// Streams that are being captured now, over all threads: while it is 0 nobody asks.
#[unsafe(link_section = "streamsan_state")]
pub static CAPTURES: AtomicU32 = AtomicU32::new(0);

impl Handles {
    /// A fresh number for ids that need no table of their own.
    pub fn fresh(&self) -> u32 {
        take(&self.next.other)
    }

    /// Remembers a mapping of physical memory; answers the address by which the same bytes are
    /// known already.
    pub fn mapped(&self, handle: u64, offset: u64, ptr: u64, size: u64) -> Option<u64> {
        // These addresses mean something else from now on, whatever was known by them.
        let stale = ptr..ptr.saturating_add(size);
        self.mappings.iter_mut().for_each(|mut mapping| {
            if stale.contains(&mapping.root) {
                mapping.root = 0;
            }
        });
        let known = self.mappings.iter().find_map(|mapping| {
            let m = *mapping.value();
            let holds = m.handle == handle && m.offset <= offset && offset + size <= m.offset + m.size;
            (holds && m.root != 0).then(|| (m.root, m.at + (offset - m.offset)))
        });
        let (root, at) = known.unwrap_or((ptr, ptr));
        self.mappings.insert(ptr, Mapping { handle, offset, size, root, at });
        known.map(|(_, target)| target)
    }

    /// Forgets the mappings that begin in a range; answers the names in the trace that end with
    /// them. Memory that is mapped elsewhere too goes on being known by the address of its first
    /// mapping, though nothing is there any more.
    pub fn unmapped(&self, ptr: u64, size: u64) -> Vec<u64> {
        let inside = |start: u64| (ptr..ptr.saturating_add(size)).contains(&start);
        let starts: Vec<u64> = self.mappings.iter().map(|m| *m.key()).filter(|start| inside(*start)).collect();
        let mut ended = Vec::new();
        for start in starts {
            let Some((_, gone)) = self.mappings.remove(&start) else { continue };
            let is_left = gone.root != 0 && self.mappings.iter().any(|m| m.root == gone.root);
            match gone.root {
                0 => ended.push(start),
                root if !is_left => ended.push(root),
                root if root != start => ended.push(start),
                _ => {}
            }
        }
        ended
    }

    /// A fresh executable graph.
    pub fn fresh_exec(&self) -> GraphExecId {
        GraphExecId(self.fresh())
    }
}

impl Cx<'_> {
    /// Whether stream 0 of this call means the calling thread's default stream.
    fn zero_is_per_thread(&self) -> bool {
        self.stream0() == Stream0::PerThread
    }

    /// The current context of this thread; null when there is none.
    pub fn current_context(&self) -> CUcontext {
        let mut context = CUcontext::NULL;
        let _ = real!(cuCtxGetCurrent(&raw mut context => *mut CUcontext));
        context
    }

    /// The id of a context, defining it when it is new.
    pub fn context(&mut self, handle: CUcontext) -> ContextId {
        self.context_on(handle, None)
    }

    /// The id of a context on a device that the caller knows.
    pub fn context_on(&mut self, handle: CUcontext, device: Option<CUdevice>) -> ContextId {
        let Some(core) = self.core() else { return ContextId::NONE };
        if handle == CUcontext::NULL {
            return ContextId::NONE;
        }
        let key = handle.0 as u64;
        if let Some(id) = core.handles.contexts.get(&key) {
            return *id;
        }
        let device = device.unwrap_or_else(|| {
            let mut device: CUdevice = 0;
            let _ = real!(cuCtxGetDevice(&raw mut device => *mut CUdevice));
            device
        });
        self.device(device);
        let mut made = None;
        let id = *core.handles.contexts.entry(key).or_insert_with(|| {
            let id = ContextId(take(&core.handles.next.context));
            made = Some(id);
            id
        });
        if made.is_some() {
            self.log(&Op::ContextCreate { context: id, device: device as u32, handle: key });
            // CU_CTX_SYNC_MEMOPS, when it was set before the context was seen.
            let mut flags = 0_u32;
            let current = self.current_context() == handle
                && real!(cuCtxGetFlags(&raw mut flags => *mut u32)) == CUresult::SUCCESS;
            if current && flags & 0x80 != 0 {
                self.log(&Op::ContextSyncMemops { context: id, on: true });
            }
        }
        id
    }

    /// Another handle of a context that is known.
    pub fn same_context(&mut self, known: CUcontext, other: CUcontext) {
        let id = self.context(known);
        if let Some(core) = self.core() {
            core.handles.contexts.insert(other.0 as u64, id);
        }
    }

    fn device(&mut self, device: CUdevice) {
        let Some(core) = self.core() else { return };
        if core.handles.devices.insert(device as u32, ()).is_some() {
            return;
        }
        let attribute = |which: i32| {
            let mut value: i32 = 0;
            let _ = real!(cuDeviceGetAttribute(
                &raw mut value => *mut i32, which => i32, device => CUdevice
            ));
            value.max(0) as u32
        };
        let arch = attribute(75) * 10 + attribute(76);
        let mut name = [0_u8; 128];
        let _ = real!(cuDeviceGetName(name.as_mut_ptr() => *mut u8, 127 => i32, device => CUdevice));
        let len = name.iter().position(|b| *b == 0).unwrap_or(0);
        self.define(&Op::Device { ordinal: device as u32, arch, name: trace::codec::Text(&name[..len]) });
    }

    /// A context goes away: its handle may come back as another one.
    pub fn forget_context(&mut self, handle: CUcontext) -> Option<ContextId> {
        let core = self.core()?;
        let key = handle.0 as u64;
        let id = core.handles.contexts.remove(&key)?.1;
        core.handles.contexts.retain(|_, other| *other != id);
        core.handles.legacy.remove(&key);
        core.handles.per_thread.retain(|(context, _), _| *context != key);
        forget_recent();
        Some(id)
    }

    /// The id of a stream, with stream 0 and the special handles told apart.
    #[unsafe(link_section = "streamsan_hot")]
    pub fn stream(&mut self, handle: CUstream) -> StreamId {
        const LEGACY: u64 = 1;
        const PER_THREAD: u64 = 2;
        let Some(core) = self.core() else { return StreamId::NONE };
        match handle.0 as u64 {
            0 if self.zero_is_per_thread() => self.per_thread_stream(),
            PER_THREAD => self.per_thread_stream(),
            0 | LEGACY => {
                let context = self.current_context();
                self.legacy_stream(context)
            }
            key => {
                let known = recall(|l| &l.streams, key, || core.handles.streams.get(&key).map(|id| id.0));
                known.map_or_else(|| self.unknown_stream(handle), StreamId)
            }
        }
    }

    /// The legacy default stream of a context.
    #[unsafe(link_section = "streamsan_hot")]
    pub fn legacy_stream(&mut self, context: CUcontext) -> StreamId {
        let Some(core) = self.core() else { return StreamId::NONE };
        let key = context.0 as u64;
        match recall(|l| &l.legacy, key, || core.handles.legacy.get(&key).map(|id| id.0)) {
            Some(id) => StreamId(id),
            None => self.new_legacy_stream(core, context),
        }
    }

    #[cold]
    #[inline(never)]
    fn new_legacy_stream(&mut self, core: &'static Core, context: CUcontext) -> StreamId {
        let key = context.0 as u64;
        let context = self.context(context);
        let mut made = false;
        let id = *core.handles.legacy.entry(key).or_insert_with(|| {
            made = true;
            StreamId(take(&core.handles.next.stream))
        });
        if made {
            self.log(&Op::StreamCreate { stream: id, context, kind: StreamKind::Legacy, priority: 0, handle: 1 });
        }
        id
    }

    fn per_thread_stream(&mut self) -> StreamId {
        let Some(core) = self.core() else { return StreamId::NONE };
        let ThreadId(thread) = self.thread();
        let handle = self.current_context();
        let key = (handle.0 as u64, thread);
        if let Some(id) = core.handles.per_thread.get(&key) {
            return *id;
        }
        let context = self.context(handle);
        let id = StreamId(take(&core.handles.next.stream));
        // Only this thread asks for this key.
        core.handles.per_thread.insert(key, id);
        self.log(&Op::StreamCreate { stream: id, context, kind: StreamKind::PerThread, priority: 0, handle: 2 });
        id
    }

    /// A stream that is used without having been seen made.
    #[cold]
    fn unknown_stream(&mut self, handle: CUstream) -> StreamId {
        let (mut flags, mut priority, mut context) = (0_u32, 0_i32, CUcontext::NULL);
        let _ = real!(cuStreamGetFlags(handle => CUstream, &raw mut flags => *mut u32));
        let _ = real!(cuStreamGetPriority(handle => CUstream, &raw mut priority => *mut i32));
        if real!(cuStreamGetCtx(handle => CUstream, &raw mut context => *mut CUcontext)) != CUresult::SUCCESS {
            context = self.current_context();
        }
        self.define_stream(handle, context, flags, priority)
    }

    /// A stream was made (or seen first): gives it an id.
    pub fn define_stream(&mut self, handle: CUstream, context: CUcontext, flags: u32, priority: i32) -> StreamId {
        const NON_BLOCKING: u32 = 1;
        let Some(core) = self.core() else { return StreamId::NONE };
        let context = self.context(context);
        let kind = if flags & NON_BLOCKING != 0 { StreamKind::NonBlocking } else { StreamKind::Blocking };
        let stream = StreamId(take(&core.handles.next.stream));
        let key = handle.0 as u64;
        self.log(&Op::StreamCreate { stream, context, kind, priority, handle: key });
        core.handles.streams.insert(key, stream);
        stream
    }

    /// A stream goes away: its handle may come back.
    pub fn forget_stream(&mut self, handle: CUstream) -> Option<StreamId> {
        let id = self.core()?.handles.streams.remove(&(handle.0 as u64))?.1;
        ENDED.fetch_add(1, Ordering::AcqRel);
        Some(id)
    }

    /// The id of an event.
    pub fn event(&mut self, handle: CUevent) -> EventId {
        let Some(core) = self.core() else { return EventId::NONE };
        let key = handle.0 as u64;
        let known = recall(|l| &l.events, key, || core.handles.events.get(&key).map(|id| id.0));
        known.map_or_else(|| self.define_event(handle, 0), EventId)
    }

    /// An event was made (or seen first): gives it an id.
    pub fn define_event(&mut self, handle: CUevent, flags: u32) -> EventId {
        let Some(core) = self.core() else { return EventId::NONE };
        let context = self.current_context();
        let context = self.context(context);
        let event = EventId(take(&core.handles.next.event));
        let key = handle.0 as u64;
        self.log(&Op::EventCreate { event, context, flags, handle: key });
        core.handles.events.insert(key, event);
        event
    }

    /// An event goes away: its handle may come back.
    pub fn forget_event(&mut self, handle: CUevent) -> Option<EventId> {
        self.core()?.handles.shared_events.remove(&(handle.0 as u64));
        let id = self.core()?.handles.events.remove(&(handle.0 as u64))?.1;
        ENDED.fetch_add(1, Ordering::AcqRel);
        Some(id)
    }

    /// The id of an opaque array; unknown ones get one without a size.
    pub fn array(&mut self, handle: CUarray) -> ArrayId {
        let Some(core) = self.core() else { return ArrayId::NONE };
        if let Some(id) = core.handles.arrays.get(&(handle.0 as u64)) {
            return *id;
        }
        self.define_array(handle, 0)
    }

    /// An array was made (or seen first).
    pub fn define_array(&mut self, handle: CUarray, size: u64) -> ArrayId {
        let Some(core) = self.core() else { return ArrayId::NONE };
        let array = ArrayId(take(&core.handles.next.array));
        let key = handle.0 as u64;
        self.log(&Op::ArrayCreate { array, handle: key, size });
        core.handles.arrays.insert(key, array);
        array
    }

    /// An array goes away.
    pub fn forget_array(&mut self, handle: CUarray) -> Option<ArrayId> {
        Some(self.core()?.handles.arrays.remove(&(handle.0 as u64))?.1)
    }

    /// The id of a memory pool.
    pub fn pool(&mut self, handle: CUmemoryPool) -> PoolId {
        let Some(core) = self.core() else { return PoolId::NONE };
        *core.handles.pools.entry(handle.0 as u64).or_insert_with(|| PoolId(take(&core.handles.next.pool)))
    }

    /// A pool goes away.
    pub fn forget_pool(&mut self, handle: CUmemoryPool) {
        if let Some(core) = self.core() {
            core.handles.pools.remove(&(handle.0 as u64));
        }
    }

    /// The stream of a work op that really enters it now; `None` while the stream is being captured
    /// (the op becomes a node of a graph, whose stack is remembered).
    pub fn working_stream(&mut self, handle: CUstream) -> Option<StreamId> {
        if CAPTURES.load(Ordering::Acquire) != 0 && self.note_captured(handle) {
            return None;
        }
        Some(self.stream(handle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Virtual memory is known by the address of its first mapping for as long as any mapping of it
    /// is left.
    #[test]
    fn two_mappings_are_one_memory_until_both_are_gone() {
        let h = Handles::default();
        assert_eq!(h.mapped(7, 0, 0x1000, 0x100), None);
        assert_eq!(h.mapped(7, 0x40, 0x2000, 0x40), Some(0x1040));
        assert_eq!(h.mapped(8, 0, 0x3000, 0x100), None, "another handle");
        assert!(h.unmapped(0x1000, 0x100).is_empty(), "what is left is the same memory");
        assert_eq!(h.mapped(7, 0x40, 0x4000, 0x20), Some(0x1040));
        assert_eq!(h.unmapped(0x2000, 0x40), [0x2000], "one name of two");
        assert_eq!(h.unmapped(0x4000, 0x20), [0x1000], "the last one takes the memory along");
        assert_eq!(h.unmapped(0x3000, 0x100), [0x3000]);
    }

    #[test]
    fn an_address_mapped_anew_is_other_memory() {
        let h = Handles::default();
        h.mapped(7, 0, 0x1000, 0x100);
        h.mapped(7, 0, 0x2000, 0x100);
        h.unmapped(0x1000, 0x100);
        assert_eq!(h.mapped(9, 0, 0x1000, 0x100), None);
        assert_eq!(h.unmapped(0x2000, 0x100), [0x2000], "its old root is somebody else now");
        assert_eq!(h.unmapped(0x1000, 0x100), [0x1000]);
    }
}
