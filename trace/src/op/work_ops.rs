//! Rows of the op table: what streams do (copies, launches, host functions, values in memory), and
//! what a launch really touched.
//!
//! How to read a row, and how to add one: see the parent module.

macro_rules! work_ops {
    ($($rows:tt)*) => { graph_ops! { $($rows)*

    /// A copy.
    96 Copy {
        /// The stream.
        stream: StreamId,
        /// Where to.
        dst: Region,
        /// Where from.
        src: Region,
        /// What the function says of `dst`.
        dst_space: Space,
        /// What the function says of `src`.
        src_space: Space,
        /// Whether the function is one of the `Async` ones.
        asynchronous: bool,
        /// Copies with the same number inside one batch call are unordered among themselves; 0: no
        /// batch.
        batch: u32,
    }
    /// What the copy before it (of the same thread) has put into device memory. Only some copies
    /// from host memory have one: small ones that may hold addresses, for the tables of pointers
    /// that kernels read, and those of a few bytes, for the values that streams wait for.
    110 Contents {
        /// Where to.
        ptr: u64,
        /// The bytes, a multiple of 4.
        bytes: &'a [u8],
    }
    /// What the fill before it (of the same thread) leaves in memory, for the values that streams
    /// wait for. Traces of before 2026-11-28 have none.
    122 Filled {
        /// Which bytes.
        dst: Region,
        /// What each element is set to.
        value: u32,
        /// Bytes of an element: 1, 2 or 4.
        element: u8,
    }
    /// A fill.
    97 Set {
        /// The stream.
        stream: StreamId,
        /// Where to.
        dst: Region,
        /// Whether the function is one of the `Async` ones.
        asynchronous: bool,
    }
    /// A kernel launch.
    98 Launch {
        /// The stream.
        stream: StreamId,
        /// Which kernel.
        kernel: KernelId,
        /// Grid, block, cluster, shared memory, flags.
        #[cfg_attr(feature = "serde", serde(flatten))]
        shape: LaunchShape,
        /// The parameter buffer.
        params: &'a [u8],
    }
    /// A host function was put into a stream.
    99 HostFunc {
        /// The stream.
        stream: StreamId,
        /// Its id.
        func: HostFuncId,
        /// Address of the function.
        address: u64,
    }
    /// A host function begins or ends on a thread of the driver.
    100 HostFuncRun {
        /// Which.
        func: HostFuncId,
        /// True at the end.
        done: bool,
    }
    /// A stream writes a value to memory (release).
    101 WriteValue {
        /// The stream.
        stream: StreamId,
        /// Address.
        address: u64,
        /// The value.
        value: u64,
        /// 4 or 8.
        width: u8,
        /// Whether memory written before is visible first (no `NO_MEMORY_BARRIER`).
        barrier: bool,
    }
    /// A stream waits for a value in memory (acquire).
    102 WaitValue {
        /// The stream.
        stream: StreamId,
        /// Address.
        address: u64,
        /// The value.
        value: u64,
        /// 4 or 8.
        width: u8,
        /// How they are compared.
        compare: WaitCompare,
    }
    /// Managed memory is prefetched, discarded or attached in stream order: it orders, but changes
    /// no byte.
    103 Prefetch {
        /// The stream.
        stream: StreamId,
        /// What.
        region: Region,
        /// True when the contents are given up (discard counts as a write).
        discard: bool,
    }
    /// An op in a stream whose effect is not modelled; the stream's time goes on.
    104 Opaque {
        /// The stream.
        stream: StreamId,
    }
    /// A copy whose attributes say that its source is not read in stream order; otherwise an
    /// asynchronous [`Op::Copy`].
    105 AttributedCopy {
        /// The stream.
        stream: StreamId,
        /// Where to.
        dst: Region,
        /// Where from.
        src: Region,
        /// What the function says of `dst`.
        dst_space: Space,
        /// What the function says of `src`.
        src_space: Space,
        /// As in [`Op::Copy`].
        batch: u32,
        /// When the source is read.
        source: SourceOrder,
    }
    /// A stream signals an external semaphore.
    106 SemaphoreSignal {
        /// The stream.
        stream: StreamId,
        /// Which semaphore, by a number of its own.
        semaphore: u32,
        /// The value it has then; of semaphores without values, how many signals there were.
        value: u64,
    }
    /// A stream waits until an external semaphore has at least this value.
    107 SemaphoreWait {
        /// The stream.
        stream: StreamId,
        /// Which semaphore.
        semaphore: u32,
        /// The value; of semaphores without values, how many waits there were.
        value: u64,
    }
    /// What a launch really touched, seen by patched instructions (exact mode). Comes after its
    /// launch, at any distance; a launch that one will come for has [`launch_flags::EXACT`].
    108 Exact {
        /// Timeline of the launch.
        timeline: TimelineId,
        /// Time of the launch on it.
        time: u64,
        /// Node of the launched graph, counted from 1; 0 when no graph.
        node: u32,
        /// See [`exact_flags`].
        flags: u32,
        /// The bytes.
        runs: List<'a, ExactRun>,
    }
    /// Some of the bytes of an [`Op::Exact`] that comes later: one record must not fill the ring.
    120 ExactPart {
        /// Timeline of the launch.
        timeline: TimelineId,
        /// Time of the launch on it.
        time: u64,
        /// Node of the launched graph, counted from 1; 0 when no graph.
        node: u32,
        /// The bytes.
        runs: List<'a, ExactRun>,
    }
    /// Of the launch of an [`Op::Exact`] that comes later: bytes of which some access is not
    /// ordered for others ([`exact_order`]). A simulated GPU alone tells them, of launches whose
    /// code can order memory.
    124 ExactOrder {
        /// Timeline of the launch.
        timeline: TimelineId,
        /// Time of the launch on it.
        time: u64,
        /// Node of the launched graph, counted from 1; 0 when no graph.
        node: u32,
        /// The bytes. Their kinds are those of [`exact_order`].
        runs: List<'a, ExactRun>,
    }
    /// Of the next launch of an executable graph these nodes are measured: for each of them comes
    /// an [`Op::Exact`].
    109 ExactNodes {
        /// The executable graph.
        exec: GraphExecId,
        /// The nodes, counted from 1, each once.
        nodes: List<'a, u32>,
    }
    /// The races of a launch's threads with each other, where they were looked for. Comes after
    /// its launch and before the [`Op::Exact`] of it, once for each grid that it ran: kernels that
    /// it launched have their own. [`inside::ReadInside`] reads it.
    123 Inside {
        /// Timeline of the launch.
        timeline: TimelineId,
        /// Time of the launch on it.
        time: u64,
        /// Node of the launched graph, counted from 1; 0 when no graph.
        node: u32,
        /// The kernel's mangled name.
        kernel: Text<'a>,
        /// See [`inside::inside_flags`].
        flags: u32,
        /// Blocks.
        grid: [u32; 3],
        /// Threads of a block.
        block: [u32; 3],
        /// Four numbers: accesses that were joined to those of whole blocks, pairs that machine
        /// code does not say enough of, accesses of textures, and races that are not listed.
        counts: List<'a, u64>,
        /// The races.
        races: List<'a, InsideRace>,
        /// Their sides, two for each.
        sides: List<'a, InsideSide>,
        /// The source lines of the sides.
        frames: List<'a, InsideFrame>,
        /// Texts, each with a zero byte behind it. Number 0 is empty.
        texts: &'a [u8],
    }

    } };
}
