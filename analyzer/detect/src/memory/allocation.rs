//! The description of one lifetime of an allocation, and of a texture or surface object.
//!
//! Owns plain data only. [`super::allocations`] begins and ends lifetimes.

use trace::{CallId, ContextId, MemoryKind, Region, StackId, StreamId, ThreadId};

/// One lifetime of an allocation. 0 stands for "no allocation" (pageable host memory).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct AllocationId(pub u32);

impl AllocationId {
    /// Not an allocation.
    pub const NONE: Self = Self(0);
}

/// A hasher that puts consecutive numbers side by side in a hash map: only the tags (the upper
/// bits) are mixed.
#[derive(Clone, Copy, Default)]
pub(crate) struct InOrder(u64);

impl std::hash::Hasher for InOrder {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        let number = (self.0 << 8) ^ u64::from(number);
        self.0 = (number & (u64::MAX >> 7)) | (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57 << 57);
    }
}

/// One lifetime of an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    /// Its id.
    pub id: AllocationId,
    /// First address (0 for arrays).
    pub ptr: u64,
    /// Bytes.
    pub size: u64,
    /// Kind of memory; `None` for arrays.
    pub kind: Option<MemoryKind>,
    /// Where it was allocated.
    pub stack: StackId,
    /// The API function.
    pub call: CallId,
    /// The host thread.
    pub thread: ThreadId,
    /// The stream, for stream-ordered memory.
    pub stream: StreamId,
    /// The context.
    pub context: ContextId,
    /// Where it was freed.
    pub freed: Option<StackId>,
    /// The program's name for it, as an index into [`crate::memory::Allocations::names`] from 1; 0:
    /// none.
    pub name: u32,
    /// Where the levels of a mipmapped array end, as an index into
    /// [`crate::memory::Allocations::levels`] from 1; 0: it is no such array.
    pub levels: u32,
}

impl Allocation {
    /// A `__device__` variable whose address was not queried yet.
    pub(crate) fn variable(ptr: u64, size: u64) -> Self {
        Self {
            id: AllocationId::NONE,
            ptr,
            size,
            kind: Some(MemoryKind::ModuleGlobal),
            stack: StackId::NONE,
            call: CallId::NONE,
            thread: ThreadId::NONE,
            stream: StreamId::NONE,
            context: ContextId::NONE,
            freed: None,
            name: 0,
            levels: 0,
        }
    }

    /// One past the last address.
    pub fn end(&self) -> u64 {
        self.ptr.saturating_add(self.size)
    }
}

/// A texture or surface object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Object {
    /// The memory behind it.
    pub region: Region,
    /// Whether kernels may write through it.
    pub writable: bool,
}
