//! What is common to all blocks of a launch. Does not run them: `grid` does.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use sim_races::MemoryEvents;

use crate::device_work::DeviceWorkState;
use crate::exec::matrix::held_registers::ProductRows;
use crate::grid_barrier::GridBarrier;
use crate::grid_dependence::{Opening, Overlap};
use crate::interface::{Device, Launch};
use crate::polls::Changes;
use crate::program::{InstFn, Kernel, LANES, NativeEntries, Program, Row};

/// Bytes of shared memory that the system keeps of each block (CUDA C++ Programming Guide, "Compute
/// Capability 8.x": 1 KB per thread block).
pub(crate) const RESERVED_SHARED_BYTES: u32 = 1024;

fn shared_size(kernel: &Kernel, launch: &Launch) -> u32 {
    match launch.dynamic_shared {
        0 => kernel.static_shared,
        dynamic => kernel.dynamic_start() + dynamic,
    }
}

fn shared_limit(kernel: &Kernel, launch: &Launch) -> u32 {
    shared_size(kernel, launch).next_multiple_of(launch.shared_unit.max(1))
}

/// Where the shared memory is that the system keeps of each block of a launch. It lies behind what
/// the block can access otherwise, and is there only for code that asks for it: other accesses
/// there are out of bounds.
pub(crate) fn reserved_shared(program: &Program, kernel: &Kernel, launch: &Launch) -> Range<u32> {
    let start = shared_limit(kernel, launch).next_multiple_of(16);
    start..start + if program.asks_for_reserved { RESERVED_SHARED_BYTES } else { 0 }
}

/// Where of that cooperative groups keep the barriers of tiles of several warps
/// (`%reserved_smem_offset_1`).
pub(crate) fn reserved_middle(reserved: &Range<u32>) -> u32 {
    reserved.start + RESERVED_SHARED_BYTES / 2
}

/// What is common to all blocks of a launch.
pub struct Env<'b> {
    pub device: &'b dyn Device,
    pub program: &'b Program,
    pub(crate) kernel: &'b Kernel,
    pub launch: &'b Launch,
    /// The parameter block, padded with zeros.
    pub params: Vec<u64>,
    /// The program's constants; of machine code with what this launch fills in.
    pub constants: Cow<'b, [Row]>,
    /// Constant bank 0 of machine code: what the driver writes there, then the parameters.
    pub(crate) bank0: Vec<u64>,
    /// Whether accesses are told to anybody.
    pub(crate) observing: bool,
    /// Whether those who observe accesses are told what orders them: see
    /// [`OrderEvent`](crate::observed_order::OrderEvent).
    pub(crate) orders: bool,
    /// Who is told of everything that matters for races inside the launch.
    pub(crate) events: Option<&'b dyn MemoryEvents>,
    /// For them: which rows products of warp groups use.
    pub(crate) product_rows: Option<ProductRows>,
    /// Is called before each instruction then.
    pub(crate) touch: Option<InstFn>,
    /// Where a block's shared memory is that the system keeps, behind its own: empty where the code
    /// does not ask for it.
    pub(crate) reserved_shared: Range<u32>,
    /// Bytes of local memory of each lane.
    pub lane_local: u32,
    pub(crate) cluster: [u32; 3],
    /// The launch or the kernel has said how large clusters are.
    pub(crate) explicit_cluster: bool,
    /// The program's native code, where this launch uses it.
    pub(crate) native: Option<&'b NativeEntries>,
    pub(crate) started: std::time::Instant,
    /// What cooperative groups keep for a grid-wide barrier: its size, then the barrier's word.
    pub(crate) workspace: Vec<AtomicU32>,
    /// Of that, and of what the system keeps of shared memory.
    pub(crate) system_changes: Changes,
    /// Whether an access behind the shared memory that was asked for has been reported.
    pub(crate) overrun: AtomicBool,
    /// What threads keep that launch work themselves.
    pub(crate) device_work: DeviceWorkState,
    pub(crate) grid_barrier: GridBarrier,
    /// The launches that it overlaps, or that overlap it.
    pub(crate) overlap: Option<&'b dyn Overlap>,
    pub(crate) opening: Opening,
    /// The number of the next bulk operation.
    pub(crate) operations: AtomicU64,
}

impl Env<'_> {
    pub(crate) fn warps(&self) -> u32 {
        self.launch.block.iter().product::<u32>().div_ceil(LANES as u32)
    }

    /// Threads of the launch.
    pub(crate) fn threads(&self) -> u64 {
        self.launch.grid.iter().chain(&self.launch.block).map(|&n| u64::from(n)).product()
    }

    /// Bytes of shared memory that were asked for.
    pub(crate) fn shared_size(&self) -> u32 {
        shared_size(self.kernel, self.launch)
    }

    /// Bytes of shared memory that a block can access.
    pub(crate) fn shared_limit(&self) -> u32 {
        shared_limit(self.kernel, self.launch)
    }

    /// Where dynamic shared memory begins.
    pub fn dynamic_start(&self) -> u32 {
        self.kernel.dynamic_start()
    }

    /// The range of the grid's workspace, if it has one.
    pub(crate) fn workspace(&self) -> (u64, u64) {
        let start = self.workspace.as_ptr() as u64;
        (start, start + size_of_val(self.workspace.as_slice()) as u64)
    }

    pub(crate) fn block_index(&self, linear: u64) -> [u32; 3] {
        let [gx, gy, _] = self.launch.grid.map(u64::from);
        // Most grids have one dimension, and to divide takes long.
        if linear < gx {
            return [linear as u32, 0, 0];
        }
        [(linear % gx) as u32, (linear / gx % gy) as u32, (linear / gx / gy) as u32]
    }

    /// The linear number of the block of that rank in the cluster of that linear number.
    pub(crate) fn block_of_cluster(&self, linear: u64, rank: u32) -> u64 {
        if self.cluster == [1; 3] {
            return linear;
        }
        let size = self.cluster.map(u64::from);
        let [gx, gy, gz] = self.launch.grid.map(u64::from);
        let (nx, ny) = (gx / size[0], gy / size[1]);
        let at = [linear % nx, linear / nx % ny, linear / nx / ny];
        let rank = u64::from(rank);
        let within = [rank % size[0], rank / size[0] % size[1], rank / size[0] / size[1]];
        let [x, y, z] = std::array::from_fn(|axis| at[axis] * size[axis] + within[axis]);
        debug_assert!(x < gx && y < gy && z < gz);
        x + gx * (y + gy * z)
    }
}
