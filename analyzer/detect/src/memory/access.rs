//! One access: which bytes, how, when, and from where in the program.
//!
//! Owns the record that the access map keeps. A copy allocates nothing, because
//! irregular bytes are shared. Does not judge pairs, except for which kinds conflict.

use super::allocation::AllocationId;
use super::extent::Extent;
use super::lock::Lock;
use crate::memory::Region;
use kernels::Selection;
use std::num::NonZeroU32;
use trace::{CallId, Epoch, KernelId, StackId, StreamId, ThreadId};

/// What an access does to its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum AccessKind {
    /// Loads.
    Read = 1,
    /// Stores.
    Write = 2,
    /// Reads and writes by atomic instructions only. Conflicts like a write, but not with another
    /// atomic.
    Atomic = 4,
    /// Atomic loads only. Conflicts like a read, but with no other atomic.
    AtomicRead = 8,
    /// Atomic stores only. Conflicts like a write, but with no other atomic.
    AtomicWrite = 16,
}

impl AccessKind {
    /// Number of bits that kinds are told apart by.
    pub(crate) const BITS: u32 = 5;

    /// Whether bytes may change.
    pub fn writes(self) -> bool {
        !matches!(self, Self::Read | Self::AtomicRead)
    }

    /// Whether the old value of the bytes matters.
    pub(crate) fn reads(self) -> bool {
        !matches!(self, Self::Write | Self::AtomicWrite)
    }

    /// Whether it conflicts with no other atomic access.
    pub fn is_atomic(self) -> bool {
        !matches!(self, Self::Read | Self::Write)
    }

    /// Whether two accesses to one byte conflict, if each reaches the other: see [`conflict`].
    pub fn conflicts(self, other: Self) -> bool {
        (self.writes() || other.writes()) && !(self.is_atomic() && other.is_atomic())
    }

    /// Whether every access that conflicts with `other` conflicts with `self` too.
    #[inline]
    pub(crate) fn stands_for(self, other: Self) -> bool {
        self.stands() & other as u32 != 0
    }

    /// The bits of all kinds that it stands for: those for which [`AccessKind::stands_for`] holds.
    #[inline]
    pub(crate) fn stands(self) -> u32 {
        match self {
            Self::Write => 0b1_1111,
            Self::Read => Self::Read as u32 | Self::AtomicRead as u32,
            // They conflict with the same.
            Self::Atomic | Self::AtomicWrite => {
                Self::Atomic as u32 | Self::AtomicWrite as u32 | Self::AtomicRead as u32
            }
            Self::AtomicRead => Self::AtomicRead as u32,
        }
    }

    /// The bits of all kinds that stand for it.
    #[inline]
    pub(crate) fn stood_for_by(self) -> u32 {
        match self {
            Self::Write => Self::Write as u32,
            Self::Read => Self::Read as u32 | Self::Write as u32,
            Self::Atomic | Self::AtomicWrite => Self::Atomic as u32 | Self::AtomicWrite as u32 | Self::Write as u32,
            Self::AtomicRead => 0b1_1111,
        }
    }
}

/// What made the access.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// A copy. The kind of the access says which side.
    Copy,
    /// A fill.
    Set,
    /// A kernel.
    Kernel,
    /// A stream-ordered allocation: counts as a write of the whole block.
    Alloc,
    /// A free: counts as a write of the whole block.
    Free,
    /// `cuStreamWriteValue` or `cuStreamWaitValue`.
    Value,
    /// The contents are discarded.
    Discard,
    /// A library that sends and receives for the host (MPI).
    Message,
    /// The host itself, observed during a load or store.
    Host,
    /// The host itself, by a store between two calls. The site is that of the second call, which
    /// found other bytes than the first.
    HostBetween,
}

/// Where in the program an access comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site {
    /// The call stack.
    pub stack: StackId,
    /// The API function.
    pub call: CallId,
    /// The kind of op.
    pub cause: Cause,
    /// The host thread.
    pub thread: ThreadId,
    /// The stream, [`StreamId::NONE`] for the host.
    pub stream: StreamId,
    /// The kernel, when it is one.
    pub kernel: KernelId,
    /// Number of the batch call, 0 for none: members of one batch are unordered among themselves.
    pub batch: u32,
    /// Node of the launched graph, counted from 1; 0 when no graph.
    pub node: u32,
    /// For a graph node: where its graph was launched.
    pub launched: StackId,
    /// The NVTX region.
    pub region: Region,
    /// Byte offset of the kernel parameter that led here, when there is one.
    pub param: Option<u32>,
    /// The kernel's memory instruction, the first one that touches such bytes: byte offset in its
    /// code section, or line of PTX; 0 when it is not known.
    pub at: u32,
    /// Whether the bytes were measured (exact mode), not predicted.
    pub measured: bool,
    /// Whether nothing says that the kernel reads there, nor that it writes: it counts as doing
    /// both, by one access for each.
    pub guessed: bool,
    /// Whether it goes through a texture or a surface, of which it is not known which texels.
    pub texels: bool,
    /// Whether the op is in a body of a conditional node, and nothing says that the body ran.
    pub conditional: bool,
    /// Whether the kernel may run beside the work it depends on when it makes it.
    pub overlap: Overlap,
    /// Whether it is not known that it does: something may have handed on to it that others have
    /// waited, or the kernel in front may not let it begin in this launch.
    pub overlap_in_doubt: bool,
}

/// How an access of a kernel comes to be made beside the work that the kernel depends on
/// (programmatic dependent launch).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Overlap {
    /// It does not: it comes behind that work.
    #[default]
    No,
    /// Some threads make it before they have waited, or never wait.
    BeforeWait,
    /// The kernel never waits.
    NeverWaits,
}

impl Site {
    /// An op of this kind, of which nothing else is known.
    pub fn unknown(cause: Cause) -> Self {
        Self {
            stack: StackId::NONE,
            call: CallId::NONE,
            cause,
            thread: ThreadId::NONE,
            stream: StreamId::NONE,
            kernel: KernelId::NONE,
            batch: 0,
            node: 0,
            launched: StackId::NONE,
            region: Region::default(),
            param: None,
            at: 0,
            measured: false,
            guessed: false,
            texels: false,
            conditional: false,
            overlap: Overlap::No,
            overlap_in_doubt: false,
        }
    }
}

/// What may keep the threads of an access from those of another. Few accesses have any of it, and
/// each access keeps a copy of its site, so this is no part of the site: as one, it took a
/// twentieth of the time of repeated launches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Exclusion {
    /// The lock that the thread of the kernel holds meanwhile.
    pub lock: Option<Lock>,
    /// The words in memory that decide which threads of the kernel make it.
    pub selection: Option<Selection>,
    /// A message of its own launch tells the host nothing of it.
    pub untold: bool,
    /// The host takes this atomic store for a plain one, though the kernel has others that reach
    /// the host.
    pub narrow: bool,
    /// Where several devices may reach the memory: whom an atomic access reaches, or, of what is
    /// handed over by such accesses, whom these reach.
    pub reach: Option<AtomicReach>,
}

impl Exclusion {
    /// No lock, and no selection.
    pub const NONE: Self = Self { lock: None, selection: None, untold: false, narrow: false, reach: None };

    /// Whether every atomic access that misses an access of the other kind misses one of this kind,
    /// too.
    pub(crate) fn reach_stands_for(&self, other: &Self) -> bool {
        match (self.reach, other.reach) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(other)) => own.device == other.device && own.is_narrow >= other.is_narrow,
        }
    }
}

/// Whom an atomic access of a kernel reaches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AtomicReach {
    /// The device that makes it, the same number in each process.
    pub device: NonZeroU32,
    /// It stores, and its scope does not go beyond that device; of what is handed over: no atomic
    /// store of the launch goes beyond.
    pub is_narrow: bool,
}

impl AtomicReach {
    /// Whether one of two atomic accesses is a plain one to the other: they come from two devices,
    /// and the scope of a store does not contain both.
    fn misses(self, other: Self) -> bool {
        self.device != other.device && (self.is_narrow || other.is_narrow)
    }
}

/// Whether two accesses of different ops to one byte conflict.
pub fn conflict(one: (AccessKind, &Exclusion), other: (AccessKind, &Exclusion)) -> bool {
    let misses = || one.1.reach.zip(other.1.reach).is_some_and(|(own, other)| own.misses(other));
    one.0.conflicts(other.0) || one.0.is_atomic() && other.0.is_atomic() && misses()
}

/// What few accesses have.
#[derive(Clone, Debug)]
pub(crate) struct Rare {
    /// The bytes, when they are not exactly those from its first to its last.
    pub(crate) odd: Option<Extent>,
    /// See [`Exclusion`].
    pub(crate) exclusion: Exclusion,
}

impl Rare {
    /// That of an access that is being added. `None`: it has nothing of it.
    pub(crate) fn of(touch: &Touch<'_>) -> Option<Box<Self>> {
        let Touch { odd, exclusion, .. } = *touch;
        let is_rare = odd.is_some() || *exclusion != Exclusion::NONE;
        is_rare.then(|| Box::new(Self { odd: odd.cloned(), exclusion: *exclusion }))
    }
}

/// One access.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// The epoch of its op.
    pub epoch: Epoch,
    /// Read, write or atomic.
    pub kind: AccessKind,
    /// Which bytes.
    pub extent: Extent,
    /// The innermost allocation it falls into.
    pub allocation: AllocationId,
    /// Where from.
    pub site: Site,
    /// What may keep its threads from those of another.
    pub exclusion: Exclusion,
}

impl Access {
    /// Whether both belong to one op, or to one node of one graph launch.
    pub(crate) fn same_op(&self, other: &Self) -> bool {
        self.epoch == other.epoch && self.site.node == other.site.node
    }
}

/// An access that is being added to a map.
#[derive(Clone, Copy, Debug)]
pub struct Touch<'a> {
    /// See [`Access`].
    pub(crate) epoch: Epoch,
    /// See [`Access`].
    pub(crate) kind: AccessKind,
    /// First byte.
    pub(crate) start: u64,
    /// One past the last byte.
    pub(crate) end: u64,
    /// The bytes, when they are not exactly those between.
    pub(crate) odd: Option<&'a Extent>,
    /// See [`Access`].
    pub(crate) allocation: AllocationId,
    /// See [`Access`].
    pub(crate) site: &'a Site,
    /// See [`Access`].
    pub(crate) exclusion: &'a Exclusion,
}

impl<'a> Touch<'a> {
    /// An access.
    pub fn of(access: &'a Access) -> Self {
        let Access { epoch, kind, ref extent, allocation, ref site, ref exclusion } = *access;
        let odd = (!extent.is_plain()).then_some(extent);
        Self { epoch, kind, start: extent.start, end: extent.end, odd, allocation, site, exclusion }
    }

    /// The access.
    pub(crate) fn access(&self) -> Access {
        let Self { epoch, kind, allocation, site, exclusion, .. } = *self;
        Access { epoch, kind, extent: self.extent(), allocation, site: *site, exclusion: *exclusion }
    }

    /// Which bytes.
    pub(crate) fn extent(&self) -> Extent {
        self.odd.cloned().unwrap_or_else(|| Extent::exact(self.start, self.end))
    }
}

#[cfg(test)]
mod tests {
    use super::AccessKind::{self, Atomic, AtomicRead, AtomicWrite, Read, Write};
    use super::{AtomicReach, Exclusion, conflict};
    use std::num::NonZeroU32;

    const ALL: [AccessKind; 5] = [Read, Write, Atomic, AtomicRead, AtomicWrite];

    #[test]
    fn atomics_conflict_with_plain_accesses_only() {
        let conflicts = |a: AccessKind| ALL.into_iter().filter(|b| a.conflicts(*b)).collect::<Vec<_>>();
        assert_eq!(conflicts(Read), [Write, Atomic, AtomicWrite]);
        assert_eq!(conflicts(Write), ALL);
        assert_eq!(conflicts(AtomicRead), [Write]);
        assert_eq!((conflicts(Atomic), conflicts(AtomicWrite)), (vec![Read, Write], vec![Read, Write]));
    }

    #[test]
    fn what_stands_for_another_conflicts_with_all_that_it_does() {
        for (a, b) in ALL.into_iter().flat_map(|a| ALL.map(|b| (a, b))) {
            let holds = ALL.into_iter().all(|c| !b.conflicts(c) || a.conflicts(c));
            assert_eq!(a.stands_for(b), holds, "{a:?} for {b:?}");
            assert_eq!(b.stood_for_by() & a as u32 != 0, holds, "{b:?} by {a:?}");
        }
    }

    fn on(device: u32, is_narrow: bool) -> Exclusion {
        let device = NonZeroU32::new(device).expect("a device");
        Exclusion { reach: Some(AtomicReach { device, is_narrow }), ..Exclusion::NONE }
    }

    #[test]
    fn a_narrow_scope_misses_other_devices() {
        fn meets(one: (AccessKind, &Exclusion), other: (AccessKind, &Exclusion)) -> bool {
            assert_eq!(conflict(one, other), conflict(other, one));
            conflict(one, other)
        }
        let (wide, narrow) = (on(1, false), on(1, true));
        for of in [Atomic, AtomicWrite, AtomicRead] {
            assert!(meets((Atomic, &narrow), (of, &on(2, false))), "{of:?}");
            assert!(!meets((Atomic, &narrow), (of, &on(1, false))), "{of:?}: one device");
            assert!(!meets((Atomic, &wide), (of, &on(2, false))), "{of:?}: the system");
            assert!(!meets((Atomic, &narrow), (of, &Exclusion::NONE)), "{of:?}: unknown");
        }
        assert!(meets((AtomicWrite, &wide), (Atomic, &on(2, true))));
        assert!(meets((Atomic, &wide), (Read, &Exclusion::NONE)));
    }

    #[test]
    fn one_stands_for_what_misses_no_more() {
        assert!(on(1, true).reach_stands_for(&on(1, false)) && on(1, false).reach_stands_for(&on(1, false)));
        assert!(!on(1, false).reach_stands_for(&on(1, true)), "the narrow one misses more");
        assert!(!on(2, true).reach_stands_for(&on(1, true)), "another device");
        assert!(on(1, false).reach_stands_for(&Exclusion::NONE) && !Exclusion::NONE.reach_stands_for(&on(1, false)));
    }
}
