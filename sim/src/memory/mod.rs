//! Memory of the simulated GPU: who owns which bytes.
//!
//! This file keeps the table of allocations. Below it lie `address_space` (where memory is mapped),
//! `backing_file` (the files that it lies in), `own_memory` (the program's) and `arena` (which
//! addresses are free). Beside it, one file for each kind of memory: `pool`
//! (stream-ordered), `graph_memory`, `virtual_memory` (reserved and mapped), `ipc` (of other
//! processes), `array`, `texture`. `memcpy` moves bytes.
//! `registered_view` maps pages of the program twice. `unwritten` keeps which bytes nothing has
//! written.
//!
//! Some files know the table and the table knows them: a free digests the content of the allocation
//! (`result_digests`), and the digest reads it through the table; `virtual_memory` keeps its
//! reservations in it. `memcpy` holds an `array` alive while it copies from it, and an `array` is
//! an allocation of the table.

pub(crate) mod address_space;
pub(crate) mod arena;
pub(crate) mod array;
mod backing_file;
pub(crate) mod graph_memory;
pub(crate) mod ipc;
pub(crate) mod memcpy;
mod own_memory;
pub(crate) mod pool;
pub(crate) mod registered_view;
pub(crate) mod result_digests;
pub(crate) mod shareable;
pub(crate) mod texture;
pub(crate) mod unwritten;
pub(crate) mod virtual_memory;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, RwLock};

use cuda_sys::CUresult;

use crate::config;
use crate::memory::address_space::{AddressSpace, GRANULE};
use crate::sched::ContextId;
use arena::{Arena, round_up};

/// Device memory is mapped in steps of this size, as on a device: bytes beside an allocation do not
/// fault.
const DEVICE_STEP: u64 = 2 << 20;
/// Alignment of every allocation.
pub(crate) const ALIGN: u64 = 512;
/// The largest allocation of `cuMemAlloc` that shares a step with others. A larger one lies at the
/// start of a step and takes whole ones. Measured on an H200, driver 580.159
/// (`tests/gpu/programs/batch_sources.h200.txt`); Taichi counts on it.
const LARGEST_SHARED: u64 = 1 << 20;

/// What kind of memory lies in an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocationKind {
    /// `cuMemAlloc`, `cuMemAllocPitch`.
    Device,
    /// A variable of a module.
    Global,
    /// Of the device's heap: `malloc` and `cudaMalloc` in kernels.
    Heap,
    /// The storage of an array.
    Array,
    /// Stream-ordered; the handle of its pool.
    Pool(usize),
    /// Of a graph's allocation node.
    Graph,
    /// `cuMemHostAlloc` with its flags.
    Host(u32),
    /// `cuMemAllocManaged` with its flags.
    Managed(u32),
    /// `cuMemHostRegister` with its flags: the program's own memory.
    Registered(u32),
    /// Mapped by `cuMemMap`.
    Mapped,
    /// Plain memory of another process.
    Ipc,
}

/// An allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    /// First byte.
    pub(crate) at: u64,
    /// Bytes, as asked for.
    pub size: u64,
    /// What it is.
    pub kind: AllocationKind,
    /// The context that it was made in.
    pub(crate) ctx: ContextId,
    /// The device that it is on (for host memory, of the context).
    pub(crate) device: u32,
    /// Never reused (`CU_POINTER_ATTRIBUTE_BUFFER_ID`).
    pub id: u64,
    /// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS` was set.
    pub(crate) sync_memops: bool,
}

impl Allocation {
    /// One past the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.at + self.size
    }

    /// Whether the memory is the host's (pinned or managed: a copy to it needs no staging).
    pub(crate) fn is_host(&self) -> bool {
        matches!(self.kind, AllocationKind::Host(_) | AllocationKind::Registered(_))
    }
}

/// All memory of the process.
pub(crate) struct Memory {
    /// The address space.
    pub(crate) space: &'static AddressSpace,
    allocations: RwLock<BTreeMap<u64, Allocation>>,
    device: Vec<Mutex<Arena>>,
    used: Vec<AtomicU64>,
    host: Mutex<Arena>,
    reserved: Mutex<crate::memory::virtual_memory::Reserved>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The process's memory. `cuInit` has made sure that it can be had.
pub(crate) fn get() -> &'static Memory {
    try_get().expect("cuInit fails without an address space")
}

/// The process's memory, or `None` when no addresses could be reserved.
pub(crate) fn try_get() -> Option<&'static Memory> {
    static MEMORY: OnceLock<Option<Memory>> = OnceLock::new();
    MEMORY.get_or_init(Memory::new).as_ref()
}

impl Memory {
    fn new() -> Option<Memory> {
        let space = AddressSpace::get()?;
        let devices = 8;
        let (start, end) = space.device_range();
        let each = (end - start) / devices;
        let arena = |n: u64| Mutex::new(Arena::new(start + n * each, start + (n + 1) * each, ALIGN));
        let (host_start, host_end) = space.host_range();
        Some(Memory {
            space,
            allocations: RwLock::default(),
            device: (0..devices).map(arena).collect(),
            used: (0..devices).map(|_| AtomicU64::new(0)).collect(),
            host: Mutex::new(Arena::new(host_start, host_end, ALIGN)),
            reserved: Mutex::new(crate::memory::virtual_memory::Reserved::new(space)),
        })
    }

    /// Free and total bytes of a device.
    pub(crate) fn info(&self, device: u32) -> (u64, u64) {
        let total = config::get_or_default().mem;
        (total.saturating_sub(self.used[device as usize].load(Ordering::Relaxed)), total)
    }

    fn charge(&self, device: u32, size: u64) -> Result<(), CUresult> {
        let total = config::get_or_default().mem;
        let used = &self.used[device as usize];
        let fits = |now: u64| now.checked_add(size).filter(|&sum| sum <= total);
        used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map_err(|_| CUresult::ERROR_OUT_OF_MEMORY)?;
        Ok(())
    }

    fn discharge(&self, device: u32, size: u64) {
        self.used[device as usize].fetch_sub(size, Ordering::Relaxed);
    }

    /// Takes device memory without making it an allocation.
    fn take_device(&self, device: u32, size: u64, align: u64) -> Result<u64, CUresult> {
        let size = round_up(size.max(1), ALIGN).ok_or(CUresult::ERROR_OUT_OF_MEMORY)?;
        self.charge(device, size)?;
        let mut arena = lock(&self.device[device as usize]);
        let Some(at) = arena.take(size, align) else {
            self.discharge(device, size);
            return Err(CUresult::ERROR_OUT_OF_MEMORY);
        };
        let from = at & !(DEVICE_STEP - 1);
        let to = (at + size + DEVICE_STEP - 1) & !(DEVICE_STEP - 1);
        if !self.space.map_device(from, to - from) {
            arena.give(at, size);
            self.discharge(device, size);
            return Err(CUresult::ERROR_OUT_OF_MEMORY);
        }
        Ok(at)
    }

    fn give_device(&self, device: u32, at: u64, size: u64) {
        let size = round_up(size.max(1), ALIGN).unwrap_or(size);
        let mut arena = lock(&self.device[device as usize]);
        let (start, len) = arena.give(at, size);
        // Whole steps that are free now and were not before.
        let from = start.max(at & !(DEVICE_STEP - 1));
        let to = (start + len).min((at + size + DEVICE_STEP - 1) & !(DEVICE_STEP - 1));
        let (from, to) = ((from + DEVICE_STEP - 1) & !(DEVICE_STEP - 1), to & !(DEVICE_STEP - 1));
        if from < to {
            self.space.unmap_device(from, to - from);
        }
        drop(arena);
        self.discharge(device, size);
    }

    fn insert(&self, at: u64, size: u64, kind: AllocationKind, ctx: ContextId, device: u32) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let allocation = Allocation { at, size, kind, ctx, device, id, sync_memops: false };
        match kind {
            AllocationKind::Device | AllocationKind::Heap => unwritten::begins(at, size),
            // That of pools and graphs begins in its turn: see `Task::Alloc`.
            _ => unwritten::ends(at, size),
        }
        self.allocations.write().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(at, allocation);
    }

    /// Takes an allocation out of the table. Its memory is not given back yet.
    fn remove(&self, at: u64, wanted: impl Fn(AllocationKind) -> bool) -> Option<Allocation> {
        let mut allocations = self.allocations.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !allocations.get(&at).is_some_and(|allocation| wanted(allocation.kind)) {
            return None;
        }
        let allocation = allocations.remove(&at)?;
        unwritten::ends(at, allocation.size);
        Some(allocation)
    }

    /// The allocation that holds an address.
    pub(crate) fn find(&self, addr: u64) -> Option<Allocation> {
        let allocations = self.allocations.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (_, allocation) = allocations.range(..=addr).next_back()?;
        (addr < allocation.end()).then_some(*allocation)
    }

    /// All allocations there are now, by address.
    pub(crate) fn allocations(&self) -> Vec<Allocation> {
        let allocations = self.allocations.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        allocations.values().copied().collect()
    }

    /// Changes an allocation's flag for synchronous operations.
    pub(crate) fn set_sync_memops(&self, addr: u64, on: bool) -> Result<(), CUresult> {
        let at = self.find(addr).ok_or(CUresult::ERROR_INVALID_VALUE)?.at;
        let mut allocations = self.allocations.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        allocations.get_mut(&at).ok_or(CUresult::ERROR_INVALID_VALUE)?.sync_memops = on;
        Ok(())
    }

    /// What an allocation takes of the addresses, and the alignment of its first byte.
    fn footprint(size: u64, align: u64, kind: AllocationKind) -> Result<(u64, u64), CUresult> {
        if kind != AllocationKind::Device || size <= LARGEST_SHARED {
            return Ok((size, align));
        }
        let whole = round_up(size, DEVICE_STEP).ok_or(CUresult::ERROR_OUT_OF_MEMORY)?;
        Ok((whole, align.max(DEVICE_STEP)))
    }

    /// Plain device memory.
    pub(crate) fn alloc_device(
        &self,
        ctx: ContextId,
        device: u32,
        size: u64,
        align: u64,
        kind: AllocationKind,
    ) -> Result<u64, CUresult> {
        let (taken, align) = Self::footprint(size, align, kind)?;
        let at = self.take_device(device, taken, align)?;
        self.insert(at, size, kind, ctx, device);
        Ok(at)
    }

    /// Gives plain device memory back. The caller has waited for the work that may use it.
    pub(crate) fn free_device(&self, at: u64) -> Result<(), CUresult> {
        let plain = |kind| {
            matches!(
                kind,
                AllocationKind::Device | AllocationKind::Global | AllocationKind::Heap | AllocationKind::Array
            )
        };
        let allocation = self.remove(at, plain).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        result_digests::allocation_ends(&allocation);
        let (taken, _) = Self::footprint(allocation.size, ALIGN, allocation.kind)?;
        self.give_device(allocation.device, allocation.at, taken);
        Ok(())
    }

    /// Pinned or managed memory.
    pub(crate) fn alloc_host(
        &self,
        ctx: ContextId,
        device: u32,
        size: u64,
        kind: AllocationKind,
    ) -> Result<u64, CUresult> {
        let rounded = round_up(size.max(1), ALIGN).ok_or(CUresult::ERROR_OUT_OF_MEMORY)?;
        let mut arena = lock(&self.host);
        let at = arena.take(rounded, ALIGN).ok_or(CUresult::ERROR_OUT_OF_MEMORY)?;
        // Only granules that are new: mapping one again would undo what a tool has done to its
        // protection.
        let (from, to) = (at & !(GRANULE - 1), (at + rounded + GRANULE - 1) & !(GRANULE - 1));
        let mut granule = from;
        let is_new = |granule| self.space.view(granule, 1, true).is_err();
        while granule < to {
            let mut end = granule;
            while end < to && is_new(end) {
                end += GRANULE;
            }
            if end > granule && !self.space.map_host(granule, end - granule) {
                arena.give(at, rounded);
                return Err(CUresult::ERROR_OUT_OF_MEMORY);
            }
            granule = end.max(granule + GRANULE);
        }
        drop(arena);
        self.insert(at, size, kind, ctx, device);
        Ok(at)
    }

    /// Gives pinned (or, if `managed`, managed) memory back.
    pub(crate) fn free_host(&self, at: u64, managed: bool) -> Result<(), CUresult> {
        let wanted = |kind| match kind {
            AllocationKind::Host(_) => !managed,
            AllocationKind::Managed(_) => managed,
            _ => false,
        };
        let allocation = self.remove(at, wanted).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        result_digests::allocation_ends(&allocation);
        let size = round_up(allocation.size.max(1), ALIGN).unwrap_or(allocation.size);
        let mut arena = lock(&self.host);
        let (start, len) = arena.give(at, size);
        let from = start.max(at & !(GRANULE - 1));
        let to = (start + len).min((at + size + GRANULE - 1) & !(GRANULE - 1));
        let (from, to) = ((from + GRANULE - 1) & !(GRANULE - 1), to & !(GRANULE - 1));
        if from < to {
            self.space.unmap_host(from, to - from);
        }
        Ok(())
    }

    /// Makes the program's own memory known as pinned.
    pub(crate) fn register(&self, ctx: ContextId, device: u32, at: u64, size: u64, flags: u32) -> Result<(), CUresult> {
        let end = at.checked_add(size).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        if self.find(at).is_some_and(|allocation| {
            !matches!(allocation.kind, AllocationKind::Registered(_)) && !allocation.is_host()
        }) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        if self.space.contains(at) || self.space.contains(end - 1) {
            return Err(CUresult::ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        }
        let allocations = self.allocations.read().unwrap_or_else(|poisoned| poisoned.into_inner());
        let overlaps = allocations.range(..end).next_back().is_some_and(|(_, allocation)| allocation.end() > at);
        drop(allocations);
        if overlaps {
            return Err(CUresult::ERROR_HOST_MEMORY_ALREADY_REGISTERED);
        }
        self.insert(at, size, AllocationKind::Registered(flags), ctx, device);
        Ok(())
    }

    /// Undoes [`Memory::register`].
    pub(crate) fn unregister(&self, at: u64) -> Result<(), CUresult> {
        if self
            .find(at)
            .is_some_and(|allocation| matches!(allocation.kind, AllocationKind::Registered(_)) && allocation.at != at)
        {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let allocation = self.remove(at, |kind| matches!(kind, AllocationKind::Registered(_)));
        if let Some(allocation) = &allocation {
            registered_view::end(allocation.at, allocation.end());
        }
        allocation
            .map(|allocation| result_digests::allocation_ends(&allocation))
            .ok_or(CUresult::ERROR_HOST_MEMORY_NOT_REGISTERED)
    }

    /// Gives back what a context owns when it ends.
    pub(crate) fn forget_context(&self, ctx: ContextId) {
        for allocation in self.allocations().into_iter().filter(|allocation| allocation.ctx == ctx) {
            let _ = match allocation.kind {
                AllocationKind::Device | AllocationKind::Global | AllocationKind::Heap | AllocationKind::Array => {
                    self.free_device(allocation.at)
                }
                AllocationKind::Host(_) => self.free_host(allocation.at, false),
                AllocationKind::Managed(_) => self.free_host(allocation.at, true),
                AllocationKind::Registered(_) => self.unregister(allocation.at),
                AllocationKind::Ipc => self.close(allocation.at),
                AllocationKind::Pool(_) | AllocationKind::Graph | AllocationKind::Mapped => Ok(()),
            };
        }
    }
}
