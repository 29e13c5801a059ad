//! What a tool in the process may ask about memory: whether devices reach it past the program's
//! mapping, so that `mprotect` of the program's pages does not stop them.
//!
//! Owns one exported function, which no driver has.

use crate::memory;

/// Whether copies and kernels reach all of these bytes by a mapping of the simulator's own.
#[cfg_attr(feature = "driver", unsafe(no_mangle))]
pub extern "C" fn streamsan_sim_has_own_view(start: u64, size: u64) -> i32 {
    let answer = || {
        let memory = memory::try_get()?;
        memory.space.has_own_view(start, size).then_some(1)
    };
    answer().unwrap_or(0)
}
