//! What a tool in the process may ask about memory: whether devices reach it past the program's
//! mapping, so that `mprotect` of the program's pages does not stop them.
//!
//! Owns one exported function, which no driver has.

use crate::memory::{self, AllocationKind, registered_view};

/// Whether copies and kernels reach these bytes by a mapping of the simulator's own. Of memory that
/// the program registered, the whole pages from here on; their mapping is made now.
#[cfg_attr(feature = "driver", unsafe(no_mangle))]
pub(crate) extern "C" fn streamsan_sim_has_own_view(start: u64, size: u64) -> i32 {
    let answer = || {
        let memory = memory::try_get()?;
        if memory.space.has_own_view(start, size) {
            return Some(1);
        }
        let block = memory.find(start).filter(|block| matches!(block.kind, AllocationKind::Registered(_)))?;
        (block.at == start && block.size == size && registered_view::make(start, start + size)).then_some(1)
    };
    answer().unwrap_or(0)
}
