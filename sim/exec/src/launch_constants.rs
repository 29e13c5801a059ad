//! Constant bank 0 of machine code: what the driver writes there for a launch.
//!
//! Offsets below the parameters are the same on sm_70 to sm_90 (`device_code::arch::Bank0`; the
//! words of the windows were read off code that nvcc made).

use std::borrow::Cow;

use crate::interface::{Launch, SMS};
use crate::machine_module::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::program::{LANES, Program, Row};

/// Where generic addresses of shared memory begin: 8 bytes.
const SHARED_WINDOW_AT: u32 = 0x18;
/// Where those of local memory begin: 8 bytes.
const LOCAL_WINDOW_AT: u32 = 0x20;
/// The first value of the stack pointer: local memory is used downwards.
const STACK_POINTER_AT: u32 = 0x28;

/// Bytes of dynamic shared memory.
const DYNAMIC_SHARED_AT: u32 = 0x2c;
/// The number of the grid: 8 bytes.
const GRID_ID_AT: u32 = 0x30;
/// The address of a cooperative grid's workspace, high word first: before sm_90, and from then on.
const WORKSPACE_AT: [u32; 2] = [0x8c, 0x44];
/// From sm_90 on: 1 where the launch or the kernel has said how large clusters are; blocks of a
/// cluster in each dimension, their reciprocals as `f32`, clusters of the grid in each dimension,
/// and blocks of a cluster.
const CLUSTER_EXPLICIT_AT: u32 = 0x140;
const CLUSTER_AT: u32 = 0x144;
const CLUSTER_RECIPROCAL_AT: u32 = 0x150;
const CLUSTERS_AT: u32 = 0x15c;
const CLUSTER_BLOCKS_AT: u32 = 0x188;
/// What `%aggr_smem_size` is at most.
const MOST_SHARED_AT: u32 = 0x13c;
/// What cooperative groups have of the shared memory that the system keeps, before sm_90. From then
/// on the first kilobyte of a kernel's shared memory is the system's, and zero serves.
pub(crate) const RESERVED_SHARED_AT: u32 = 0x124;
/// Where parameters begin from sm_90 on.
const HOPPER_PARAMETERS_AT: u32 = 0x210;
/// From sm_90 on: the generic address that parameters would have at that place: 8 bytes.
const PARAMETER_WINDOW_AT: u32 = 0x198;
/// Multiprocessors of the device.
const MULTIPROCESSORS_AT: u32 = 0x10c;

/// The clusters of a launch.
pub(crate) struct Clusters {
    /// Blocks in each dimension.
    pub(crate) size: [u32; 3],
    /// The launch or the kernel has said so.
    pub(crate) explicit: bool,
}

/// What code multiplies a block's index with, in single precision, for the index of its cluster. It
/// cuts off what is behind the point, so the quotient must not come out too small.
fn reciprocal(size: u32) -> f32 {
    let nearest = 1.0 / size as f32;
    if f64::from(nearest) * f64::from(size) < 1.0 { nearest.next_up() } else { nearest }
}

/// Memory beside that of the program.
pub(crate) struct Memories {
    /// Bytes of local memory of each thread.
    pub(crate) local: u32,
    /// The address of the grid's workspace.
    pub(crate) workspace: u64,
    /// The address of the parameters.
    pub(crate) params: u64,
    /// The offset in shared memory of what cooperative groups have there.
    pub(crate) reserved: u32,
}

/// The bank for a launch. Empty for PTX.
pub(crate) fn bank0(program: &Program, launch: &Launch, clusters: Clusters, memory: Memories) -> Vec<u64> {
    let Memories { local, workspace, params, reserved } = memory;
    let Some(machine) = &program.machine else { return Vec::new() };
    let mut bytes = vec![0u8; (machine.param_end.max(machine.param_base) as usize).next_multiple_of(8) + 8];
    let mut put = |at: u32, value: &[u8]| {
        if let Some(place) = bytes.get_mut(at as usize..at as usize + value.len()) {
            place.copy_from_slice(value);
        }
    };
    for axis in 0..3 {
        put(4 * axis, &launch.block[axis as usize].to_le_bytes());
        put(0xc + 4 * axis, &launch.grid[axis as usize].to_le_bytes());
    }
    put(SHARED_WINDOW_AT, &SHARED_WINDOW.to_le_bytes());
    put(LOCAL_WINDOW_AT, &LOCAL_WINDOW.to_le_bytes());
    put(STACK_POINTER_AT, &local.to_le_bytes());
    put(DYNAMIC_SHARED_AT, &launch.dynamic_shared.to_le_bytes());
    put(GRID_ID_AT, &launch.grid_id.to_le_bytes());
    let hopper = machine.param_base >= HOPPER_PARAMETERS_AT;
    if hopper {
        put(CLUSTER_EXPLICIT_AT, &u32::from(clusters.explicit).to_le_bytes());
        for (axis, size) in clusters.size.into_iter().enumerate() {
            let at = 4 * axis as u32;
            put(CLUSTER_AT + at, &size.to_le_bytes());
            put(CLUSTER_RECIPROCAL_AT + at, &reciprocal(size).to_le_bytes());
            put(CLUSTERS_AT + at, &(launch.grid[axis] / size).to_le_bytes());
        }
        put(CLUSTER_BLOCKS_AT, &clusters.size.iter().product::<u32>().to_le_bytes());
        let window = params.wrapping_sub(u64::from(machine.param_base - HOPPER_PARAMETERS_AT));
        put(PARAMETER_WINDOW_AT, &window.to_le_bytes());
        put(MOST_SHARED_AT, &u32::MAX.to_le_bytes());
    }
    if !hopper && program.asks_for_reserved {
        put(RESERVED_SHARED_AT, &reserved.to_le_bytes());
    }
    let workspace_at = WORKSPACE_AT[usize::from(hopper)];
    put(workspace_at, &((workspace >> 32) as u32).to_le_bytes());
    put(workspace_at + 4, &(workspace as u32).to_le_bytes());
    put(MULTIPROCESSORS_AT, &(SMS as u32).to_le_bytes());
    let room = machine.param_end.saturating_sub(machine.param_base) as usize;
    put(machine.param_base, &launch.params[..launch.params.len().min(room)]);
    bytes.chunks_exact(8).map(|word| word.iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))).collect()
}

/// The program's constants with the words of the launch in them.
pub(crate) fn fill<'p>(program: &'p Program, bank0: &[u64]) -> Cow<'p, [Row]> {
    let Some(machine) = program.machine.as_ref().filter(|machine| !machine.launch_words.is_empty()) else {
        return Cow::Borrowed(&program.constants);
    };
    let mut rows = program.constants.clone();
    for word in &machine.launch_words {
        let half = |at: u32| bank0.get(at as usize / 8).map_or(0, |&pair| pair >> (at % 8 * 8) & 0xffff_ffff);
        let high = if word.bytes == 8 { half(word.offset + 4) << 32 } else { 0 };
        rows[word.constant as usize] = Row([half(word.offset) | high; LANES]);
    }
    Cow::Owned(rows)
}
