//! The private table through which a tool learns which bytes the kernels of the simulated driver
//! touch.
//!
//! Owns the ABI between the two. Not part of CUDA's ABI: a real driver does not know its id, and
//! says so.

use crate::{CUarray, CUgraphExec, CUgraphNode};
use std::ffi::{c_char, c_int, c_uint};

/// The id under which the simulated driver hands out [`SimMeasureTable`] through
/// `cuGetExportTable`.
pub const SIM_MEASURE_TABLE: [u8; 16] = *b"streamsan-byte-3";

/// A kernel that is about to run.
#[repr(C)]
pub struct ObservedLaunch {
    /// A number of the function, which no other function of the process ever has.
    pub function: u64,
    /// Its mangled name.
    pub name: *const c_char,
    /// Blocks.
    pub grid: [c_uint; 3],
    /// Threads of a block.
    pub block: [c_uint; 3],
    /// The node of the graph's launch that it is part of, by the handle that the program could have
    /// for it; null for a launch by itself.
    pub node: CUgraphNode,
}

/// 4 KiB of memory of which a launch touched some bytes in one way.
#[repr(C)]
pub struct TouchedPage {
    /// Its first address.
    pub address: u64,
    /// 0: loaded, 1: stored, 2: updated by atomic instructions, 3: loaded by them, 4: stored. Others
    /// say of bytes that some plain access to them is not ordered: 5: no acquire of the device's
    /// scope came before it, 6: no release of that scope came behind it, 7: neither is the system's
    /// scope. The last is said of atomic stores, too, that told the host nothing. There is one page
    /// of these kinds at least, perhaps an empty one, if the launch was looked at for its order.
    pub kind: c_uint,
    /// 128 words with a bit for each byte, the lowest bit first.
    pub bits: *const u32,
}

/// How launches end.
pub mod launch_end {
    /// It failed, or it was dropped.
    pub const FAILED: i32 = 0;
    /// It ran.
    pub const RAN: i32 = 1;
    /// It is a node in a part of a graph that was left out.
    pub const LEFT_OUT: i32 = 2;
}

/// What a tool is asked and told. All functions may be called on any thread, several at a time, and
/// must call nothing of CUDA.
#[repr(C)]
pub struct LaunchObserver {
    /// A graph is being launched: the kernels that begin next on this thread are its nodes, up to
    /// the end of the call.
    pub graph_begins: unsafe extern "C" fn(CUgraphExec),
    /// A kernel has been accepted, inside the call that launches it. Answers the number by which
    /// its bytes are to be told, or 0 when nobody wants them.
    pub begins: unsafe extern "C" fn(*const ObservedLaunch) -> u64,
    /// A launch starts to run: whether its bytes are still wanted. If they are not, it ends as
    /// failed. A kernel in the loop of a graph starts several times.
    pub starts: unsafe extern "C" fn(u64) -> c_int,
    /// A launch has ended: its number, its pages in any order (each kind of a page once), how many,
    /// its [`launch_end`], and the nanoseconds that it ran while its bytes were noted. Told once
    /// for each number, at any time after `begins`, perhaps before the call has returned.
    pub ended: unsafe extern "C" fn(u64, *const TouchedPage, usize, c_int, u64),
}

/// Functions of the simulated driver for a tool.
#[repr(C)]
pub struct SimMeasureTable {
    /// From now on this observer is asked of every launch. It must live as long as the process. The
    /// first one stays; 0 says that this is another.
    pub observe: unsafe extern "C" fn(*const LaunchObserver) -> c_int,
    /// Where the texels of an opaque array begin, row by row without padding; 0 for what is none.
    pub array: unsafe extern "C" fn(CUarray) -> u64,
    /// Waits until nothing runs and nothing could, but so many milliseconds at most.
    pub drain: unsafe extern "C" fn(c_uint),
}
