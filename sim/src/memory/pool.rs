//! Stream-ordered memory: pools, and when a freed block may be allocated again.
//!
//! A freed block carries the operation that frees it. An allocation may take the block when that
//! operation is ordered before it anyway (same stream, or by events that the program recorded),
//! when it has already happened, or when the pool may make the allocation wait for it. Each of the
//! last three can be switched off, as in CUDA.

use std::sync::{Arc, Mutex};

use cuda_sys::*;

use super::arena::round_up;
use super::{ALIGN, Allocation, AllocationKind, Memory, lock};
use crate::handles::{Handles, handle_of};
use crate::sched::{self, ContextId, OpId, StreamId};

/// All live pools, default ones included.
pub(crate) static POOLS: Handles<Pool> = Handles::new();

/// A free block.
#[derive(Clone, Copy, Debug)]
struct Free {
    at: u64,
    size: u64,
    stream: StreamId,
    op: OpId,
}

/// The attributes and free blocks of a pool.
pub(crate) struct PoolState {
    /// `CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES`.
    pub(crate) follow_events: bool,
    /// `CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC`.
    pub(crate) opportunistic: bool,
    /// `CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES`.
    pub(crate) internal: bool,
    /// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`, in bytes.
    pub(crate) threshold: u64,
    /// Bytes that the pool holds, now and at most.
    pub(crate) reserved: (u64, u64),
    /// Bytes that are given out, now and at most.
    pub(crate) used: (u64, u64),
    free: Vec<Free>,
}

/// What other processes have to do with a pool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sharing {
    /// Nothing.
    Private,
    /// They may get it as a descriptor.
    Exportable,
    /// It is that of the process with this id: nothing is allocated from it here.
    Imported(u64),
}

/// One pool.
pub(crate) struct Pool {
    /// The device it is on.
    pub(crate) device: u32,
    /// Whether it is a device's default pool, which cannot be destroyed.
    pub(crate) default: bool,
    /// Whether its memory is the host's.
    pub(crate) host: bool,
    /// What other processes have to do with it.
    pub(crate) sharing: Sharing,
    /// Most bytes that it may hold; zero is no limit.
    pub(crate) max_size: u64,
    /// Its attributes.
    pub(crate) state: Mutex<PoolState>,
}

impl Pool {
    /// A pool of a device's memory.
    pub(crate) fn create(device: u32, default: bool, host: bool, max_size: u64, sharing: Sharing) -> Arc<Pool> {
        let state = PoolState {
            follow_events: true,
            opportunistic: true,
            internal: true,
            threshold: 0,
            reserved: (0, 0),
            used: (0, 0),
            free: Vec::new(),
        };
        let pool = Arc::new(Pool { device, default, host, sharing, max_size, state: Mutex::new(state) });
        POOLS.insert(pool.clone());
        pool
    }

    /// Takes a block, for use in `stream` after the operations answered. `now` is what an operation
    /// put into the stream now would come after.
    pub(crate) fn alloc(
        self: &Arc<Pool>,
        memory: &Memory,
        ctx: ContextId,
        stream: StreamId,
        now: &[OpId],
        size: u64,
    ) -> Result<(u64, Vec<OpId>), CUresult> {
        if matches!(self.sharing, Sharing::Imported(_)) {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        let rounded = round_up(size, ALIGN).filter(|&n| n > 0).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        let mut state = lock(&self.state);
        let found = state.find(stream, now, rounded);
        let (at, after) = match found {
            Some((index, after)) => {
                let free = state.free[index];
                if free.size > rounded {
                    state.free[index] = Free { at: free.at + rounded, size: free.size - rounded, ..free };
                } else {
                    state.free.remove(index);
                }
                (free.at, after)
            }
            None => {
                if self.max_size != 0 && state.reserved.0 + rounded > self.max_size {
                    return Err(CUresult::ERROR_OUT_OF_MEMORY);
                }
                let at = match memory.take_device(self.device, rounded, ALIGN) {
                    Err(_) => {
                        self.release(&mut state, memory, 0);
                        memory.take_device(self.device, rounded, ALIGN)?
                    }
                    Ok(at) => at,
                };
                state.reserved.0 += rounded;
                state.reserved.1 = state.reserved.1.max(state.reserved.0);
                (at, Vec::new())
            }
        };
        state.used.0 += size;
        state.used.1 = state.used.1.max(state.used.0);
        drop(state);
        memory.insert(at, size, AllocationKind::Pool(handle_of(self)), ctx, self.device);
        Ok((at, after))
    }

    /// Takes back a block that `op` in `stream` frees.
    fn give(&self, block: &Allocation, stream: StreamId, op: OpId) {
        let size = round_up(block.size, ALIGN).unwrap_or(block.size);
        let mut state = lock(&self.state);
        state.used.0 = state.used.0.saturating_sub(block.size);
        state.free.push(Free { at: block.at, size, stream, op });
    }

    /// Gives blocks whose free has happened back to the device until no more than `keep` bytes are
    /// held.
    fn release(&self, state: &mut PoolState, memory: &Memory, keep: u64) {
        let mut at = 0;
        while at < state.free.len() && state.reserved.0 > keep {
            if sched::get().is_done(state.free[at].op) {
                let free = state.free.swap_remove(at);
                state.reserved.0 -= free.size;
                memory.give_device(self.device, free.at, free.size);
            } else {
                at += 1;
            }
        }
    }

    /// `cuMemPoolTrimTo`.
    pub(crate) fn trim(&self, memory: &Memory, keep: u64) {
        self.release(&mut lock(&self.state), memory, keep);
    }
}

impl PoolState {
    /// The best free block: first one that is ordered anyway, then one that needs a dependency;
    /// among equals the smallest that fits, and among those the one freed last.
    fn find(&self, stream: StreamId, now: &[OpId], size: u64) -> Option<(usize, Vec<OpId>)> {
        let scheduler = sched::get();
        let mut best: Option<((u8, u64), usize, Vec<OpId>)> = None;
        for (index, free) in self.free.iter().enumerate().rev() {
            if free.size < size {
                continue;
            }
            let (rank, after) = if free.stream == stream {
                (0, Vec::new())
            } else if match scheduler.is_done(free.op) {
                true => self.opportunistic,
                false => self.follow_events && scheduler.is_ordered(free.op, now),
            } {
                (1, Vec::new())
            } else if self.internal {
                (2, vec![free.op])
            } else {
                continue;
            };
            if best.as_ref().is_none_or(|(key, ..)| (rank, free.size) < *key) {
                best = Some(((rank, free.size), index, after));
            }
        }
        best.map(|(_, index, after)| (index, after))
    }
}

/// A device's default pool.
pub(crate) fn default_of(device: u32) -> Arc<Pool> {
    static DEFAULTS: [Mutex<Option<Arc<Pool>>>; 8] = [const { Mutex::new(None) }; 8];
    let mut slot = lock(&DEFAULTS[device as usize]);
    slot.get_or_insert_with(|| Pool::create(device, true, false, 0, Sharing::Private)).clone()
}

/// The pool that `cuMemAllocAsync` takes from on a device.
pub(crate) fn current_of(device: u32) -> &'static Mutex<Option<Arc<Pool>>> {
    static CURRENT: [Mutex<Option<Arc<Pool>>>; 8] = [const { Mutex::new(None) }; 8];
    &CURRENT[device as usize]
}

impl Memory {
    /// Takes a pool block out of the table; the memory goes back to the pool by
    /// [`Memory::give_pool`].
    pub(crate) fn take_pool_block(&self, at: u64) -> Option<Allocation> {
        self.remove(at, |kind| matches!(kind, AllocationKind::Pool(_)))
    }

    /// Hands a block taken out by [`Memory::take_pool_block`] back to its pool, to be free once
    /// `op` has happened.
    pub(crate) fn give_pool(&self, block: &Allocation, stream: StreamId, op: OpId) {
        if let AllocationKind::Pool(handle) = block.kind {
            match POOLS.find(handle) {
                Some(pool) => pool.give(block, stream, op),
                None => self.give_device(block.device, block.at, block.size),
            }
        }
    }

    /// What happens to pools when the host has synchronised: memory above the threshold goes back
    /// to the device.
    pub(crate) fn after_sync(&self) {
        for pool in POOLS.all() {
            let mut state = lock(&pool.state);
            let keep = state.threshold;
            pool.release(&mut state, self, keep);
        }
    }
}
