//! All tables of one trace that CUDA's handles are keys of.
//!
//! Owns [`Handles`] and the counters from which ids are taken. Does not ask the driver and does not
//! log: `crate::ids` defines ids and logs their creation.

use std::ffi::c_uint;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_sys::FnId;
use dashmap::DashMap;
use trace::{ContextId, EventId, GraphExecId, ImageId, PoolId, StackId, StreamId};

use super::HandleTable;
use super::arrays::{Array, Mipmapped};
use super::descriptor_marks::Mark;
use super::graph_execs::GraphExec;
use super::image_files::ImageFiles;
use super::kernel::Kernel;
use super::mappings::Mappings;
use super::tensor_maps::TensorMaps;
use super::unlisted_images::UnlistedImages;

/// All handle tables.
#[derive(Default)]
pub struct Handles {
    /// Streams that were made or first used.
    pub streams: HandleTable<u64, StreamId>,
    /// The legacy default stream of each context.
    pub legacy: HandleTable<u64, StreamId>,
    /// The default stream of each context and thread.
    pub per_thread: HandleTable<(u64, u32), StreamId>,
    /// Events.
    pub events: HandleTable<u64, EventId>,
    /// Contexts, green ones too.
    pub contexts: HandleTable<u64, ContextId>,
    /// Kernels and functions that were launched.
    pub kernels: HandleTable<u64, &'static Kernel>,
    /// Modules and libraries, and the functions and kernels got from them: the image they come
    /// from.
    pub images: HandleTable<u64, ImageId>,
    /// The files that images are mapped from.
    pub image_files: ImageFiles,
    /// Kernels by name: the image, for functions that were not seen being got (the driver makes
    /// them from kernels, in graphs for one). [`ImageId::NONE`] when two images have a kernel of
    /// this name.
    pub kernel_names: DashMap<Box<[u8]>, ImageId>,
    /// Images whose variables were not asked for yet.
    pub unlisted: UnlistedImages,
    /// Nodes of graphs: where they come from.
    pub nodes: HandleTable<u64, NodeOrigin>,
    /// The values that conditions have at each launch of their graph, by handle. `None`: graphs
    /// have different ones, or none.
    pub conditions: HandleTable<u64, Option<c_uint>>,
    /// Executable graphs.
    pub execs: HandleTable<u64, GraphExec>,
    /// Opaque arrays, and levels of mipmapped ones.
    pub arrays: HandleTable<u64, Array>,
    /// Mipmapped arrays.
    pub mipmapped: HandleTable<u64, Mipmapped>,
    /// Tensor maps that were told.
    pub tensor_maps: TensorMaps,
    /// Memory pools.
    pub pools: HandleTable<u64, PoolId>,
    /// Marks of pools that processes share, by handle.
    pub pool_marks: HandleTable<u64, Mark>,
    /// Devices that the trace has a definition of, by ordinal.
    pub devices: HandleTable<u32, ()>,
    /// Mappings of virtual memory.
    pub mappings: Mappings,
    /// Events that other processes record too, by handle.
    pub shared_events: HandleTable<u64, ()>,
    /// External semaphores.
    pub semaphores: HandleTable<u64, ExternalSemaphore>,
    /// Heaps that NVTX annotations name, by handle.
    pub heaps: HandleTable<u64, NvtxHeap>,
    /// Live regions of those heaps: the heap, by first address.
    pub regions: HandleTable<u64, u64>,
    /// What engines beside CUDA are doing, as the program says: by its keys, the requests.
    pub engines: HandleTable<u64, Vec<u32>>,
    /// The ids given out so far.
    pub next: IdCounters,
}

impl Handles {
    /// A fresh number for ids that need no table of their own.
    pub fn fresh(&self) -> u32 {
        self.next.other.take()
    }

    /// A fresh executable graph.
    pub fn fresh_exec(&self) -> GraphExecId {
        GraphExecId(self.fresh())
    }
}

/// Where a node of a graph comes from.
#[derive(Clone)]
pub struct NodeOrigin {
    /// Where it was captured or added.
    pub stack: StackId,
    /// The call that did it.
    pub call: FnId,
    /// The capture that it was made in, 0 when it was added: handles come back.
    pub capture: u64,
    /// The stream that it was captured on; none when it was added.
    pub stream: StreamId,
    /// Its number as a captured node; 0 when it was added.
    pub number: u32,
    /// Of a conditional node: the graphs inside.
    pub bodies: Option<Bodies>,
}

/// The graphs inside a conditional node.
#[derive(Clone)]
pub struct Bodies {
    /// Their handles.
    pub graphs: Vec<u64>,
    /// The handle of the condition.
    pub handle: u64,
    /// The body that runs unless a kernel sets the condition.
    pub by_default: Option<usize>,
}

/// An external semaphore.
#[derive(Clone, Copy)]
pub struct ExternalSemaphore {
    /// Its number in the trace.
    pub id: u32,
    /// Whether signals and waits name values; otherwise each wait takes a signal.
    pub has_values: bool,
    /// Signals so far.
    pub signals: u64,
    /// Waits so far.
    pub waits: u64,
}

/// A heap that NVTX's memory annotations name.
#[derive(Clone, Default)]
pub struct NvtxHeap {
    /// Whether its regions only describe a layout: then they are not what an allocator hands out.
    pub is_layout: bool,
    /// Its name; empty when it has none.
    pub name: Box<[u8]>,
}

/// Counters of ids, one for each kind that has a table.
#[derive(Default)]
pub struct IdCounters {
    /// Of streams.
    pub stream: IdCounter,
    /// Of events.
    pub event: IdCounter,
    /// Of contexts.
    pub context: IdCounter,
    /// Of arrays.
    pub array: IdCounter,
    /// Of memory pools.
    pub pool: IdCounter,
    /// Of everything else.
    pub other: IdCounter,
}

/// Gives out ids from 1 on.
#[derive(Default)]
pub struct IdCounter(AtomicU32);

impl IdCounter {
    /// The next id.
    pub fn take(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}
