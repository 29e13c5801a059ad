//! What the host waits for by itself: one table of call classes and memory kinds, under both
//! policies.
//!
//! Owns the table. The engine decides how a wait changes clocks. Explicit synchronisation
//! (`*Synchronize`, successful queries, events, waits, default streams) is the same under every
//! policy and is not in here.
//!
//! Sources. *Observed*: measured behind a 90 ms kernel on an H200, driver 580, CUDA 13.0.
//! *Documented*: the driver API's page "API synchronization behavior", read strictly: only what is
//! guaranteed counts, "may" and "might" are no promise.

use trace::{FreeKind, MemoryKind, Space};

/// Which synchronisation counts that the program did not ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// What the driver does.
    #[default]
    Observed,
    /// Only what the documents promise.
    Documented,
}

/// What the host has seen finish when a call returns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HostWait {
    /// Nothing.
    Nothing,
    /// The earlier work of the op's stream, but not the op.
    Before,
    /// The op itself, and with it the earlier work of its stream.
    Op,
    /// All work of the device.
    Device,
}

/// When a copy has read its source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SourceRead {
    /// In stream order, like the rest of the copy.
    InOrder,
    /// By the host during the call: staged.
    DuringCall,
}

/// Class of an address, as far as copies care.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryClass {
    /// Memory of a device: allocated, pooled, mapped, global variables, arrays.
    Device,
    /// Page-locked host memory.
    Pinned,
    /// Any other host memory.
    Pageable,
    /// Managed memory: may be on either side.
    Managed,
}

impl MemoryClass {
    /// From what the function's name says and what is known of the address.
    pub fn of(space: Space, kind: Option<MemoryKind>) -> Self {
        match (space, kind) {
            (Space::Array, _) => Self::Device,
            (_, Some(MemoryKind::PinnedHost | MemoryKind::RegisteredHost)) => Self::Pinned,
            (_, Some(MemoryKind::Managed)) => Self::Managed,
            (Space::Host, _) | (Space::Unified, None) => Self::Pageable,
            (Space::Device, _) | (Space::Unified, Some(_)) => Self::Device,
        }
    }
}

/// One line of the table: a class of calls, and what its return means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The class, for `--help` and reports.
    pub(crate) class: &'static str,
    /// What the driver was seen to wait for.
    pub(crate) observed: HostWait,
    /// What is promised.
    pub(crate) documented: HostWait,
    /// When the source has been read, by observation.
    pub(crate) source: SourceRead,
    /// When the source has been read, by promise.
    pub(crate) source_documented: SourceRead,
}

impl Rule {
    const fn new(class: &'static str, observed: HostWait, documented: HostWait) -> Self {
        let source = SourceRead::InOrder;
        Self { class, observed, documented, source, source_documented: source }
    }

    /// What the host waits for under a policy.
    pub fn wait(&self, policy: Policy) -> HostWait {
        match policy {
            Policy::Observed => self.observed,
            Policy::Documented => self.documented,
        }
    }

    /// When the source has been read under a policy.
    pub(crate) fn source(&self, policy: Policy) -> SourceRead {
        match policy {
            Policy::Observed => self.source,
            Policy::Documented => self.source_documented,
        }
    }
}

use HostWait::{Before, Device, Nothing, Op};

const ASYNC: Rule = Rule::new("asynchronous copy", Nothing, Nothing);
const ASYNC_TO_PAGEABLE: Rule = Rule::new("asynchronous copy, device to pageable", Op, Nothing);
const ASYNC_HOST_TO_HOST: Rule = Rule::new("asynchronous copy, host to host", Op, Op);
// It returns at once behind a busy kernel, so the bytes were staged by then. The documents only say
// that the driver "may" do so.
const ASYNC_FROM_PAGEABLE: Rule =
    Rule { source: SourceRead::DuringCall, ..Rule::new("asynchronous copy, pageable to device", Nothing, Nothing) };
// Measured on an H200 with driver 580 (tests/gpu/programs/batch_sources.h200.txt): a call with
// `DURING_API_CALL` drains its stream before it returns, unless the source is pageable.
const SOURCE_DURING_CALL: Rule =
    Rule::new("asynchronous copy, source accessed during the call, not pageable", Before, Nothing);
const PAGEABLE_DURING_CALL: Rule =
    Rule::new("asynchronous copy, source accessed during the call, pageable", Nothing, Nothing);
const COPY_DEVICE: Rule = Rule::new("copy, device to device", Nothing, Nothing);
// Measured on an H200 with driver 580 (tests/gpu/programs/what_waits.cu): the host waits as for
// pinned memory. Older documents promised it.
const COPY_MANAGED: Rule = Rule::new("copy, managed memory on either side", Op, Nothing);
const COPY_TO_HOST: Rule = Rule::new("copy, device to host", Op, Op);
const COPY_FROM_PINNED: Rule = Rule::new("copy, pinned to device", Op, Op);
// "A stream sync is performed before the copy", then the bytes are staged; the transfer to the
// final destination may not be over at return.
const COPY_FROM_PAGEABLE: Rule = Rule {
    source: SourceRead::DuringCall,
    source_documented: SourceRead::DuringCall,
    ..Rule::new("copy, pageable to device", Before, Before)
};
const COPY_HOST_TO_HOST: Rule = Rule::new("copy, host to host", Op, Op);
const COPY_SYNC_MEMOPS: Rule = Rule::new("copy or set on memory with SYNC_MEMOPS", Op, Op);

const ASYNC_SET: Rule = Rule::new("asynchronous set", Nothing, Nothing);
const SET_DEVICE: Rule = Rule::new("set, device memory", Nothing, Nothing);
const SET_HOST: Rule = Rule::new("set, pinned or managed memory", Op, Op);

const FREE: Rule = Rule::new("free of device memory", Device, Nothing);
const FREE_HOST: Rule = Rule::new("free or unregistering of pinned memory", Device, Nothing);
const FREE_POOL: Rule = Rule::new("free of pool memory without a stream", Nothing, Nothing);
const FREE_IMPORTED: Rule = Rule::new("closing of another process's memory", Device, Nothing);
// Measured on an H100 with driver 580 (tests/gpu/programs/what_waits.cu), for small and large ones.
const FREE_ARRAY: Rule = Rule::new("free of an array", Device, Nothing);
const FREE_OTHER: Rule = Rule::new("unmapping, sub-allocator's free", Nothing, Nothing);

/// All lines.
#[cfg(test)]
const RULES: &[Rule] = &[
    COPY_DEVICE,
    COPY_MANAGED,
    COPY_TO_HOST,
    COPY_FROM_PINNED,
    COPY_FROM_PAGEABLE,
    COPY_HOST_TO_HOST,
    COPY_SYNC_MEMOPS,
    ASYNC,
    ASYNC_TO_PAGEABLE,
    ASYNC_HOST_TO_HOST,
    ASYNC_FROM_PAGEABLE,
    SOURCE_DURING_CALL,
    PAGEABLE_DURING_CALL,
    SET_DEVICE,
    SET_HOST,
    ASYNC_SET,
    FREE,
    FREE_HOST,
    FREE_POOL,
    FREE_IMPORTED,
    FREE_ARRAY,
    FREE_OTHER,
];

/// The line for a copy.
pub fn copy(asynchronous: bool, dst: MemoryClass, src: MemoryClass, sync_memops: bool) -> &'static Rule {
    use MemoryClass::{Managed, Pageable, Pinned};
    let host = |p| matches!(p, Pinned | Pageable);
    match (asynchronous, dst, src) {
        (true, d, s) if host(d) && host(s) => &ASYNC_HOST_TO_HOST,
        (true, Pageable, _) => &ASYNC_TO_PAGEABLE,
        (true, _, Pageable) => &ASYNC_FROM_PAGEABLE,
        (true, _, _) => &ASYNC,
        (false, d, s) if host(d) && host(s) => &COPY_HOST_TO_HOST,
        (false, d, _) if host(d) => &COPY_TO_HOST,
        (false, _, Pinned) => &COPY_FROM_PINNED,
        _ if sync_memops => &COPY_SYNC_MEMOPS,
        (false, _, Pageable) => &COPY_FROM_PAGEABLE,
        (false, Managed, _) | (false, _, Managed) => &COPY_MANAGED,
        (false, _, _) => &COPY_DEVICE,
    }
}

/// The line for a copy whose source is accessed during the call (`DURING_API_CALL`).
pub(crate) fn source_during_call(src: MemoryClass) -> &'static Rule {
    if src == MemoryClass::Pageable { &PAGEABLE_DURING_CALL } else { &SOURCE_DURING_CALL }
}

/// Pageable sources of so many bytes and more are read after a call with `DURING_API_CALL` has
/// returned, which the documents exclude (measured as [`SOURCE_DURING_CALL`]: 64 KiB at the call, 1
/// MiB later).
const READ_LATE: u64 = 1 << 20;

/// Whether a pageable source with `DURING_API_CALL` may be read after the call has returned.
pub(crate) fn is_read_late(policy: Policy, len: u64) -> bool {
    policy == Policy::Observed && len >= READ_LATE
}

/// Whether this is the line of a copy whose bytes are staged when it returns, and may still be on
/// their way to the device.
pub(crate) fn is_staged(rule: &Rule) -> bool {
    rule == &COPY_FROM_PAGEABLE
}

/// The line for a synchronous copy from pinned memory: the host waits for all of it.
pub(crate) fn copied_from_pinned() -> &'static Rule {
    &COPY_FROM_PINNED
}

/// The line for a set.
pub fn set(asynchronous: bool, dst: MemoryClass, sync_memops: bool) -> &'static Rule {
    match (asynchronous, dst) {
        (true, _) => &ASYNC_SET,
        (false, MemoryClass::Pinned | MemoryClass::Pageable | MemoryClass::Managed) => &SET_HOST,
        (false, MemoryClass::Device) if sync_memops => &COPY_SYNC_MEMOPS,
        (false, MemoryClass::Device) => &SET_DEVICE,
    }
}

/// The line for a free; `memory` is the kind of the memory, when it is known. [`FreeKind::Async`]
/// is a stream op and waits for nothing.
pub fn free(kind: FreeKind, memory: Option<MemoryKind>) -> &'static Rule {
    match (kind, memory) {
        (FreeKind::Plain, Some(MemoryKind::Pool | MemoryKind::GraphNode)) | (FreeKind::Async, _) => &FREE_POOL,
        (FreeKind::Plain, _) => &FREE,
        (FreeKind::Host | FreeKind::Unregister, _) => &FREE_HOST,
        (FreeKind::Imported, _) => &FREE_IMPORTED,
        (FreeKind::Unmap | FreeKind::Block, _) => &FREE_OTHER,
    }
}

/// The line for an array that is destroyed.
pub(crate) fn free_array() -> &'static Rule {
    &FREE_ARRAY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_memory_before_the_name() {
        use MemoryKind as M;
        assert_eq!(MemoryClass::of(Space::Unified, None), MemoryClass::Pageable);
        assert_eq!(MemoryClass::of(Space::Host, Some(M::PinnedHost)), MemoryClass::Pinned);
        assert_eq!(
            MemoryClass::of(Space::Device, Some(M::RegisteredHost)),
            MemoryClass::Pinned,
            "mapped host memory stays host memory"
        );
        assert_eq!(MemoryClass::of(Space::Unified, Some(M::Pool)), MemoryClass::Device);
        assert_eq!(MemoryClass::of(Space::Device, None), MemoryClass::Device, "memory from before the tool was loaded");
        assert_eq!(MemoryClass::of(Space::Array, None), MemoryClass::Device);
    }

    #[test]
    fn copies_of_managed_memory_hold_the_host_and_device_copies_do_not() {
        for (dst, src) in [(MemoryClass::Device, MemoryClass::Managed), (MemoryClass::Managed, MemoryClass::Device)] {
            let rule = copy(false, dst, src, false);
            assert_eq!((rule.observed, rule.documented), (Op, Nothing), "{dst:?} {src:?}");
            assert_eq!(copy(true, dst, src, false).observed, Nothing, "asynchronous copies do not");
        }
        assert_eq!(copy(false, MemoryClass::Device, MemoryClass::Device, false).observed, Nothing);
    }

    #[test]
    fn observed_is_never_weaker_than_documented() {
        for rule in RULES {
            assert!(rule.observed >= rule.documented, "{}", rule.class);
        }
    }
}
