//! The ids of opaque arrays and of memory pools.
//!
//! Owns defining arrays that were made before the shim was there when they are first used. Pools
//! need no definition.

use cuda_sys::*;
use trace::{ArrayId, Op, PoolId};

use crate::observe::Cx;

impl Cx<'_> {
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
        let array = ArrayId(core.handles.next.array.take());
        let key = handle.0 as u64;
        self.log(&Op::ArrayCreate { array, handle: key, size });
        if let Some(address) = crate::exact::simulated_array(handle) {
            self.log(&Op::ArrayAt { array, address });
        }
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
        *core.handles.pools.entry(handle.0 as u64).or_insert_with(|| PoolId(core.handles.next.pool.take()))
    }

    /// A pool goes away.
    pub fn forget_pool(&mut self, handle: CUmemoryPool) {
        if let Some(core) = self.core() {
            core.handles.pools.remove(&(handle.0 as u64));
        }
    }
}
