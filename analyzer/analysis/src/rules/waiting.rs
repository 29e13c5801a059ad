//! Which ops make the host wait, and how surely.
//!
//! Owns the classes. What drivers were seen to wait for is the table of the crate `order`, which is
//! asked for what they do ([`Policy::Observed`]), whatever `--policy` says of races: a step is slow
//! because of what drivers do. Two classes only *may* wait. CUDA's programming guide lists
//! allocations of device and page-locked memory among what synchronises implicitly, and says that
//! an asynchronous copy from pageable memory may wait for its stream first; measured drivers
//! return at once.

use crate::counterfactual::edits::sync::class;
use order::Policy;
use order::policy::{self, HostWait, MemoryClass};
use trace::{MemoryKind, Op, Space};

/// How an op makes the host wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Waiting {
    /// It is there to wait.
    Asked,
    /// A copy for which the host waits.
    Copy,
    /// A fill for which the host waits.
    Set,
    /// Memory is freed when the device has finished.
    Free,
    /// An allocation, which may wait.
    Alloc,
    /// An asynchronous copy from pageable memory, which may wait.
    Staged,
}

impl Waiting {
    /// How an op makes the host wait, if it does. `memory`: the kind of the memory at an address.
    /// `call`: the API function.
    pub(crate) fn of(op: &Op<'_>, call: &str, memory: impl Fn(u64) -> Option<MemoryKind>) -> Option<Self> {
        let waits = |rule: &policy::Rule| rule.wait(Policy::Observed) != HostWait::Nothing;
        match *op {
            Op::SyncBegin { .. } => Some(Self::Asked),
            Op::Copy { ref dst, ref src, dst_space, src_space, asynchronous, .. } => {
                let (to, from) = (class(dst, dst_space, &memory), class(src, src_space, &memory));
                if waits(policy::copy(asynchronous, to, from, false)) {
                    Some(Self::Copy)
                } else {
                    (asynchronous && from == MemoryClass::Pageable).then_some(Self::Staged)
                }
            }
            Op::Set { ref dst, asynchronous, .. } => {
                waits(policy::set(asynchronous, class(dst, Space::Device, &memory), false)).then_some(Self::Set)
            }
            Op::Free { ptr, kind, .. } => waits(policy::free(kind, memory(ptr))).then_some(Self::Free),
            Op::Alloc { kind, .. } => {
                let counts = matches!(
                    kind,
                    MemoryKind::Device | MemoryKind::Managed | MemoryKind::PinnedHost | MemoryKind::RegisteredHost
                );
                // Memory may be seen first in any call.
                let is_made = ["Alloc", "Malloc", "Register"].iter().any(|word| call.contains(word));
                (counts && is_made).then_some(Self::Alloc)
            }
            _ => None,
        }
    }

    /// Whether it is known to wait.
    pub(crate) fn is_sure(self) -> bool {
        !matches!(self, Self::Alloc | Self::Staged)
    }

    /// What it does, behind the name of the function.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Asked => "makes the host wait",
            Self::Copy => "makes the host wait for its copy",
            Self::Set => "makes the host wait for its fill",
            Self::Free => "makes the host wait for the device before memory is freed",
            Self::Alloc | Self::Staged => "may make the host wait",
        }
    }

    /// Why it may; empty where it does.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Alloc => {
                ": CUDA counts allocations among what may synchronise, though the drivers that were measured return \
                 at once"
            }
            Self::Staged => {
                ": its source is pageable memory, for which CUDA may synchronise first, though the drivers that were \
                 measured return at once"
            }
            _ => "",
        }
    }
}
