//! The private table through which a tool learns which bytes the kernels of the simulated driver
//! touch, and which accesses of their threads race.
//!
//! Owns the ABI between the two. Not part of CUDA's ABI: a real driver does not know its id, and
//! says so.

use crate::{CUarray, CUgraphExec, CUgraphNode};
use std::ffi::{c_char, c_int, c_uint};

/// The id under which the simulated driver hands out [`SimMeasureTable`] through
/// `cuGetExportTable`.
pub const SIM_MEASURE_TABLE: [u8; 16] = *b"streamsan-byte-4";

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
    /// 0: loaded, 1: stored, 2: updated by atomic instructions, 3: loaded by them, 4: stored.
    /// Others say of bytes that some plain access to them is not ordered: 5: no acquire of the
    /// device's scope came before it, 6: no release of that scope came behind it, 7: neither is
    /// the system's scope. The last is said of atomic stores, too, that told the host nothing.
    /// There is one page of these kinds at least, perhaps an empty one, if the launch was looked
    /// at for its order.
    pub kind: c_uint,
    /// 128 words with a bit for each byte, the lowest bit first.
    pub bits: *const u32,
}

/// What is wanted of a launch that starts to run: bits.
pub mod launch_wish {
    /// The bytes that it touches.
    pub const BYTES: i32 = 1;
    /// The races of its threads with each other.
    pub const INSIDE: i32 = 2;
    /// With [`INSIDE`]: which of its fences and barriers are superfluous.
    pub const SUPERFLUOUS: i32 = 4;
}

/// Bits of [`InsideReport`]'s `flags`.
pub mod inside_flags {
    /// The kernel ran as machine code.
    pub const MACHINE: u32 = 1;
    /// The kernel failed: what it would have done next was not checked.
    pub const FAILED: u32 = 2;
    /// It did nothing (machine code that is skipped), so nothing was checked.
    pub const NOT_RUN: u32 = 4;
    /// Which fences and barriers are superfluous was wanted, and is not known.
    pub const NOT_TRIED: u32 = 8;
}

/// Bits of [`InsideSide`]'s `flags`.
pub mod inside_side_flags {
    /// A copy behind the back of its thread.
    pub const ASYNCHRONOUS: u32 = 1;
    /// The thread is known; without, it is one of many.
    pub const THREAD: u32 = 2;
    /// It is no access: the thread ends there, and the shared memory of its block with it.
    pub const ENDS: u32 = 4;
}

/// A source line of an instruction.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InsideFrame {
    /// Number of the file's name.
    pub file: c_uint,
    /// Line, from 1.
    pub line: c_uint,
}

/// One side of a race. Names are numbers of texts.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InsideSide {
    /// The function's name, mangled.
    pub function: c_uint,
    /// Its first frame; then outwards.
    pub first: c_uint,
    /// How many frames there are; 0: its lines are not known.
    pub frames: c_uint,
    /// The line of the PTX text, or the offset of the machine instruction.
    pub at: c_uint,
    /// 0: reads, 1: writes, 2: both as one.
    pub kind: c_uint,
    /// 0: it is weak; else the scope: 1 the block, 2 the cluster, 3 the device.
    pub scope: c_uint,
    /// See [`inside_side_flags`].
    pub flags: c_uint,
    /// The block.
    pub block: [c_uint; 3],
    /// The thread in it.
    pub thread: [c_uint; 3],
}

/// Accesses of two threads of one launch that race.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InsideRace {
    /// The first byte: an address of global memory, or an offset in a block's shared memory.
    pub address: u64,
    /// Accesses that met an unordered one.
    pub count: u64,
    /// 1: in shared memory.
    pub shared: c_uint,
    /// Number of the name of the variable, mangled; 0: it has none.
    pub variable: c_uint,
    /// Of a shared variable, where in shared memory it begins; of a global one, where in it the
    /// byte is.
    pub begins: c_uint,
    /// Its bytes; 0: not known.
    pub size: c_uint,
    /// 0 benign, 1 possible, 2 likely, 3 certain.
    pub grade: c_uint,
    /// What would order the two: 0 a barrier of the warp, 1 of the block, 2 a wait for the copy, 3
    /// a wider scope, 4 an atomic operation, 5 a barrier of the cluster, 6 a release and an
    /// acquire. Others: see `trace::op::inside::InsideRemedy`, whose numbers these are.
    pub remedy: c_uint,
}

/// Races inside one grid.
#[repr(C)]
pub struct InsideReport {
    /// Number of its kernel's name, mangled.
    pub kernel: c_uint,
    /// See [`inside_flags`].
    pub flags: c_uint,
    /// Blocks.
    pub grid: [c_uint; 3],
    /// Threads of a block.
    pub block: [c_uint; 3],
    /// Accesses that were joined to those of whole blocks, for there were too many.
    pub widened: u64,
    /// Pairs that machine code does not say enough of.
    pub unsaid: u64,
    /// Accesses of textures and surfaces, which are not compared.
    pub textures: u64,
    /// Races beyond those here.
    pub more: u64,
    /// The races.
    pub races: *const InsideRace,
    /// How many there are. Each has two sides.
    pub race_count: usize,
    /// The sides, two for each race.
    pub sides: *const InsideSide,
    /// The frames of the sides.
    pub frames: *const InsideFrame,
    /// How many there are.
    pub frame_count: usize,
    /// Texts, each with a zero byte behind it. The first one, number 0, is empty.
    pub texts: *const u8,
    /// Bytes of them.
    pub text_bytes: usize,
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
    /// A launch starts to run: what is wanted of it ([`launch_wish`]). If its bytes are not, it
    /// ends as failed. A kernel in the loop of a graph starts several times.
    pub starts: unsafe extern "C" fn(u64) -> c_int,
    /// A launch has ended: its number, its pages in any order (each kind of a page once), how many,
    /// its [`launch_end`], and the nanoseconds that it ran while its bytes were noted. Told once
    /// for each number, at any time after `begins`, perhaps before the call has returned.
    pub ended: unsafe extern "C" fn(u64, *const TouchedPage, usize, c_int, u64),
    /// The races inside a grid of a launch, before the launch is told to have ended: for each grid
    /// that it ran, those of kernels that it launched too.
    pub inside: unsafe extern "C" fn(u64, *const InsideReport),
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
    /// From now on it is kept which bytes of device memory nothing has written, and launches whose
    /// races are wanted are told reads of them. Before the program allocates.
    pub keep_written: unsafe extern "C" fn(),
}
