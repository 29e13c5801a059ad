//! The ops: what the trace stores of a call.
//!
//! Owns the list of ops with their tags and fields. An op says what the program asked for, in
//! CUDA's terms; what follows from it (order, accesses, races) is the business of `order` and of
//! the analyzer.
//!
//! Two families share one numbering: *definitions* (tags below 32: stacks, modules, images,
//! kernels, names), stored once and referenced by id, and *ops* proper. A definition always
//! precedes the first op that refers to it.

use crate::codec::{DecodeError, Decoder, Encoder, Field, List, Text};
use crate::id::*;
use crate::kind::*;
use crate::parts::*;
use crate::region::Region;

macro_rules! ops {
    ($($(#[$doc:meta])* $tag:literal $name:ident { $($(#[$fdoc:meta])* $field:ident : $type:ty,)* })*) => {
        /// One op. Variants are append-only; tags are never reused.
        #[derive(Clone, Copy, PartialEq, Debug)]
        #[non_exhaustive]
        pub enum Op<'a> {
            $($(#[$doc])* $name { $($(#[$fdoc])* $field: $type,)* },)*
        }

        /// The tags, under the names of the ops.
        #[allow(non_upper_case_globals, missing_docs)]
        pub mod tag {
            $(pub const $name: u16 = $tag;)*
        }

        impl<'a> Op<'a> {
            /// The number of this kind of op in the encoding.
            pub fn tag(&self) -> u16 {
                match self { $(Self::$name { .. } => $tag,)* }
            }

            /// The name of this kind of op, as `streamsan dump` prints it.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$name { .. } => stringify!($name),)* }
            }

            /// Appends the fields (not the tag).
            pub fn encode(&self, to: &mut Encoder<'_>) {
                self.put(&mut [0; 2], to);
            }

            /// As [`Op::encode`], and the tag, at one jump; inlined, so that a buffer of known
            /// length is not measured at each field.
            #[inline(always)]
            pub(crate) fn put(&self, tag: &mut [u8; 2], to: &mut Encoder<'_>) {
                match self {
                    $(Self::$name { $($field,)* } => {
                        *tag = u16::to_le_bytes($tag);
                        $(Field::put($field, to);)*
                        let _ = &to;
                    })*
                }
            }

            /// Reads the fields of the op with this tag.
            pub fn decode(tag: u16, bytes: &'a [u8]) -> Result<Self, DecodeError> {
                let mut from = Decoder::new(bytes);
                let _ = &mut from;
                match tag {
                    $($tag => Ok(Self::$name { $($field: Field::get(&mut from)?,)* }),)*
                    other => Err(DecodeError::UnknownTag(other)),
                }
            }
        }
    };
}

ops! {
    // ---- definitions
    // -----------------------------------------------------------------------------------------------
    /// The process that writes: always the first record.
    1 Process {
        /// Process id.
        pid: u32,
        /// Process id of the parent.
        parent: u32,
        /// Path of the executable.
        exe: Text<'a>,
        /// Arguments, separated by NUL.
        args: Text<'a>,
        /// Working directory.
        cwd: Text<'a>,
        /// Version that `cuDriverGetVersion` answered.
        driver: u32,
    }
    /// The name of an API function.
    2 CallName {
        /// Its id.
        id: CallId,
        /// Its exported name, or the name of the runtime function that the program called.
        name: Text<'a>,
    }
    /// An object file mapped into the process. A later one takes over the addresses that it covers.
    3 Module {
        /// First address mapped.
        start: u64,
        /// One past the last address mapped.
        end: u64,
        /// What to subtract from an address to get the file's own virtual address.
        bias: u64,
        /// Path of the file.
        path: Text<'a>,
        /// GNU build id, empty when there is none.
        build_id: &'a [u8],
    }
    /// A call stack, innermost frame first.
    4 Stack {
        /// Its id.
        id: StackId,
        /// Return addresses of native frames (the first is inside the caller of the CUDA function).
        native: List<'a, u64>,
        /// Python frames of the same thread.
        python: List<'a, PyFrame>,
    }
    /// A Python code object.
    5 PyCode {
        /// Its id.
        id: PyCodeId,
        /// Path of the source file as Python knows it.
        file: Text<'a>,
        /// Qualified name of the function.
        name: Text<'a>,
        /// First line of the function.
        first_line: u32,
        /// Encoding of `lines`.
        encoding: LineTable,
        /// The line table.
        lines: &'a [u8],
    }
    /// A code image that was loaded.
    6 Image {
        /// Its id.
        id: ImageId,
        /// Where the bytes are.
        source: ImageSource,
        /// File name when `source` is `File`.
        path: Text<'a>,
        /// Byte offset in that file.
        offset: u64,
        /// Size in bytes (0: up to the end of the file).
        size: u64,
        /// The bytes when `source` is `Inline`.
        bytes: &'a [u8],
    }
    /// A kernel that was launched for the first time.
    7 Kernel {
        /// Its id.
        id: KernelId,
        /// Mangled name.
        name: Text<'a>,
        /// The image it comes from; [`ImageId::NONE`] when that is not known.
        image: ImageId,
        /// Parameter layout as the driver tells it; empty when it does not.
        params: List<'a, ParamSlot>,
        /// The handle, for `dump`.
        handle: u64,
    }
    /// A host thread that made its first call.
    8 Thread {
        /// Its id.
        id: ThreadId,
        /// Kernel thread id.
        tid: u32,
        /// Name of the thread.
        name: Text<'a>,
    }
    /// A device.
    9 Device {
        /// Ordinal.
        ordinal: u32,
        /// Compute capability, major * 10 + minor.
        arch: u32,
        /// Name as the driver tells it.
        name: Text<'a>,
    }
    /// Something the user should know about the recording itself.
    10 Note {
        /// Sort of the note.
        kind: NoteKind,
        /// The function or the reason.
        text: Text<'a>,
        /// How often.
        count: u64,
    }

    /// What is at one address of an object file: written when the recording ends, so that the trace
    /// can be read where the files are not. One for the function and one for each that is inlined
    /// there, innermost first.
    11 Symbol {
        /// Which object file: how many [`Op::Module`] of this process came before its own.
        module: u32,
        /// The file's own virtual address.
        address: u64,
        /// Function as the programmer wrote it, empty when unknown.
        function: Text<'a>,
        /// Source file, empty when unknown.
        file: Text<'a>,
        /// Line in it, 0 when unknown.
        line: u32,
        /// Whether it was inlined into the next one.
        inlined: bool,
    }
    /// The text of a source line.
    12 Source {
        /// Path of the file, as symbols or Python code objects name it.
        file: Text<'a>,
        /// The line, from 1.
        line: u32,
        /// Its text.
        text: Text<'a>,
    }
    /// The schema of an operator of PyTorch, as the library that registers it has it.
    13 Schema {
        /// The operator as the library's functions are named: `mul_out`.
        operator: Text<'a>,
        /// `aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)`.
        text: Text<'a>,
    }

    // ---- contexts, streams, events
    // ---------------------------------------------------------------------------------
    /// A context was made or first seen.
    32 ContextCreate {
        /// Its id.
        context: ContextId,
        /// Device ordinal.
        device: u32,
        /// The handle.
        handle: u64,
    }
    /// A context goes away with all its streams and memory.
    33 ContextDestroy {
        /// Which.
        context: ContextId,
    }
    /// A stream was made or first seen.
    34 StreamCreate {
        /// Its id.
        stream: StreamId,
        /// Its context.
        context: ContextId,
        /// Its kind.
        kind: StreamKind,
        /// Its priority (lower numbers first).
        priority: i32,
        /// The handle.
        handle: u64,
    }
    /// A stream was destroyed. Its pending work goes on; this is no synchronisation.
    35 StreamDestroy {
        /// Which.
        stream: StreamId,
    }
    /// An event was made or first seen.
    36 EventCreate {
        /// Its id.
        event: EventId,
        /// Its context.
        context: ContextId,
        /// Creation flags.
        flags: u32,
        /// The handle.
        handle: u64,
    }
    /// An event was destroyed. Waits already made stay.
    37 EventDestroy {
        /// Which.
        event: EventId,
    }
    /// An event captures the work of a stream.
    38 EventRecord {
        /// Which event.
        event: EventId,
        /// Which stream.
        stream: StreamId,
        /// How.
        mode: EventMode,
    }
    /// A stream waits for the latest record of an event.
    39 StreamWait {
        /// The stream that waits.
        stream: StreamId,
        /// The event it waits for.
        event: EventId,
        /// How.
        mode: EventMode,
    }
    /// Every stream of a context is recorded by one event (`cuCtxRecordEvent`).
    40 ContextRecord {
        /// Which event.
        event: EventId,
        /// Which context.
        context: ContextId,
    }
    /// Every stream of a context waits for an event (`cuCtxWaitEvent`).
    41 ContextWait {
        /// Which context.
        context: ContextId,
        /// Which event.
        event: EventId,
    }
    /// The host begins to wait: what was enqueued before this is what it waits for.
    42 SyncBegin {
        /// Pairs with the end.
        sync: SyncId,
        /// What is waited for.
        scope: SyncScope,
        /// The stream, when `scope` is `Stream` or `Legacy`.
        stream: StreamId,
        /// The event, when `scope` is `Event`.
        event: EventId,
        /// The context, when `scope` is `Context`.
        context: ContextId,
    }
    /// The wait is over: the host is now ordered after what it waited for.
    43 SyncEnd {
        /// Pairs with the beginning.
        sync: SyncId,
    }
    /// A query found a stream idle: the host is ordered after what was in the stream when the query
    /// began.
    44 StreamIdle {
        /// Which stream.
        stream: StreamId,
        /// Time of the stream when the query began.
        upto: u64,
    }
    /// A query found an event complete: the host is ordered after the record that was current when
    /// the query began.
    45 EventReached {
        /// Which event.
        event: EventId,
        /// Number of the record (1 is the first) that was current when the query began; 0: never
        /// recorded.
        record: u64,
    }
    /// A context is part of another one (a green context of a primary one): waiting for the whole
    /// waits for the part.
    46 ContextPart {
        /// The part.
        context: ContextId,
        /// The whole.
        whole: ContextId,
    }
    /// `CU_CTX_SYNC_MEMOPS` was set or taken back: synchronous memory operations in this context
    /// always synchronise.
    47 ContextSyncMemops {
        /// Which.
        context: ContextId,
        /// On or off.
        on: bool,
    }
    /// From here on the trace holds the synchronisation of host threads, as [`Op::HostEdge`].
    48 HostThreads {}
    /// A host thread releases or acquires an object that host threads synchronise by: a mutex, a
    /// semaphore, a thread's start.
    49 HostEdge {
        /// The object: its address, or a number that no address has.
        object: u64,
        /// Whether the thread acquires it.
        acquire: bool,
        /// Whether this is the start of the thread.
        start: bool,
    }

    /// The time of the next record, by a clock that all processes of the machine share. Only
    /// processes that share memory or events with others write it.
    50 Clock {
        /// Nanoseconds of `CLOCK_MONOTONIC`.
        ns: u64,
    }
    /// An event that other processes may know.
    51 SharedEvent {
        /// Which.
        event: EventId,
        /// What they know it by: the bytes of its handle between processes.
        key: &'a [u8],
    }
    /// An event of several processes is about to be waited for. Another process may have recorded
    /// it, and may have waited for all that was enqueued here before; so far as this process can
    /// tell, that is what the event stands for.
    52 OthersRecord {
        /// Which event.
        event: EventId,
        /// The context that waits.
        context: ContextId,
    }

    /// A library's pool handed a stream out (PyTorch makes its streams at once, long before the
    /// program asks for one).
    60 StreamTaken {
        /// Which.
        stream: StreamId,
    }
    /// A call failed with an error that ends the context (illegal address, device-side assert). The
    /// record's stack and call are the failed call's.
    61 Failed {
        /// What the driver answered, as `CUresult`.
        result: u32,
        /// The stream of the launch that was waited for, when `launch-blocking` tells which one
        /// failed.
        stream: StreamId,
    }

    // ---- memory
    // ----------------------------------------------------------------------------------------------------
    /// A call failed for lack of memory. The record's stack and call are the failed call's. No
    /// effect on order or memory.
    73 OutOfMemory {}
    /// Memory was allocated, registered, mapped or first seen.
    64 Alloc {
        /// First address as kernels see it.
        ptr: u64,
        /// Bytes.
        size: u64,
        /// Sort of memory.
        kind: MemoryKind,
        /// Context.
        context: ContextId,
        /// The stream, for stream-ordered memory.
        stream: StreamId,
        /// The pool, for stream-ordered memory.
        pool: PoolId,
        /// Flags of the call.
        flags: u32,
    }
    /// Memory goes away.
    65 Free {
        /// First address.
        ptr: u64,
        /// Sort of free.
        kind: FreeKind,
        /// The stream, when `kind` is `Async`.
        stream: StreamId,
    }
    /// A second address of memory that is already known (the device pointer of host memory, a
    /// second mapping).
    66 Alias {
        /// First address of the alias.
        ptr: u64,
        /// First address that it stands for.
        target: u64,
        /// Bytes.
        size: u64,
    }
    /// An opaque array was made.
    67 ArrayCreate {
        /// Its id.
        array: ArrayId,
        /// The handle.
        handle: u64,
        /// Bytes it holds, row-major.
        size: u64,
    }
    /// An opaque array goes away.
    68 ArrayDestroy {
        /// Which.
        array: ArrayId,
    }
    /// A texture or surface object was made over memory or an array.
    69 ObjectCreate {
        /// The 64-bit object handle that kernels get as a parameter.
        object: u64,
        /// What it shows.
        region: Region,
        /// Whether kernels may write through it (surface).
        writable: bool,
    }
    /// A texture or surface object goes away.
    70 ObjectDestroy {
        /// The object handle.
        object: u64,
    }
    /// `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS` was set: synchronous memory operations on this memory
    /// always synchronise.
    71 SyncMemops {
        /// First address.
        ptr: u64,
        /// On or off.
        on: bool,
    }

    /// The address of a `__device__` or `__constant__` variable was asked for.
    72 Global {
        /// First address.
        ptr: u64,
        /// Bytes.
        size: u64,
        /// The image that defines it.
        image: ImageId,
        /// Its mangled name.
        name: Text<'a>,
    }

    /// Memory that other processes may know: exported, or opened here.
    74 SharedMemory {
        /// The address that was exported or that opening answered.
        ptr: u64,
        /// What they know it by: the bytes of its handle between processes.
        key: &'a [u8],
    }

    /// What the program calls a piece of memory.
    75 MemoryName {
        /// First address of the innermost allocation.
        ptr: u64,
        /// Its own name; may be empty.
        name: Text<'a>,
        /// The pool that it comes from; may be empty.
        heap: Text<'a>,
    }

    // ---- work
    // ------------------------------------------------------------------------------------------------------
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
    /// What the copy before it (of the same thread) has put into device memory: only copies of a
    /// few bytes from host memory that may hold addresses are told so, for the tables of pointers
    /// that kernels read.
    110 Contents {
        /// Where to.
        ptr: u64,
        /// The bytes, a multiple of 8.
        bytes: &'a [u8],
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
        /// Blocks.
        grid: [u32; 3],
        /// Threads a block.
        block: [u32; 3],
        /// Blocks a cluster; zeros when there are no clusters.
        cluster: [u32; 3],
        /// Dynamic shared memory, bytes.
        shared: u32,
        /// Launch attributes that matter, see [`launch_flags`].
        flags: u32,
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
    /// Of the next launch of an executable graph these nodes are measured: for each of them comes
    /// an [`Op::Exact`].
    109 ExactNodes {
        /// The executable graph.
        exec: GraphExecId,
        /// The nodes, counted from 1, each once.
        nodes: List<'a, u32>,
    }

    // ---- graphs
    // ----------------------------------------------------------------------------------------------------
    /// A stream began to be captured.
    128 CaptureBegin {
        /// The stream.
        stream: StreamId,
        /// The graph, by its handle when known.
        graph: GraphId,
    }
    /// A stream's capture ended.
    129 CaptureEnd {
        /// The stream.
        stream: StreamId,
        /// The graph.
        graph: GraphId,
    }
    /// An executable graph was made or made anew (update): its nodes follow as [`Op::GraphNode`].
    130 GraphExec {
        /// Its id.
        exec: GraphExecId,
        /// How many nodes follow.
        nodes: u32,
        /// Flags of the instantiation.
        flags: u32,
        /// The handle.
        handle: u64,
    }
    /// One node of an executable graph. Sent again with the same index when its parameters change.
    131 GraphNode {
        /// Whose node.
        exec: GraphExecId,
        /// Index in that graph.
        index: u32,
        /// Where the node was captured or added.
        stack: StackId,
        /// The call that made it.
        call: CallId,
        /// Enabled or disabled.
        enabled: bool,
        /// Nodes that come first.
        dependencies: List<'a, Dependency>,
        /// Tag of the op that the node does; 0 for none (empty nodes).
        tag: u16,
        /// The encoded op. Its stream is [`StreamId::NONE`].
        body: &'a [u8],
    }
    /// An executable graph goes away.
    132 GraphExecDestroy {
        /// Which.
        exec: GraphExecId,
    }
    // ---- what the program says of itself
    // -----------------------------------------------------------------------------
    /// What follows is checked, or is not (its order counts all the same).
    192 Checking {
        /// Whether.
        on: bool,
    }
    /// A part of the program begins, on the thread of the record.
    193 RangePush {
        /// What it is called.
        name: Text<'a>,
    }
    /// The innermost part that the thread is in ends.
    194 RangePop {}

    /// An executable graph runs.
    133 GraphLaunch {
        /// The stream.
        stream: StreamId,
        /// Which.
        exec: GraphExecId,
    }

    // ---- the host's own accesses
    // -----------------------------------------------------------------------------------
    /// Bytes of the host that the latest copy or graph launch of this thread reads or writes: the
    /// shim looks whether the host touches them before that is over.
    160 HostWatch {
        /// Its number.
        watch: u32,
        /// The stream of that work.
        stream: StreamId,
        /// The executable graph, when the work is one of its nodes.
        exec: GraphExecId,
        /// Node of that graph, counted from 1; 0 when no graph.
        node: u32,
        /// Which bytes.
        region: Region,
        /// Whether the work writes them.
        writes: bool,
    }
    /// The host touched watched bytes before it was ordered after the work.
    161 HostAccess {
        /// The number of the watch.
        watch: u32,
        /// First address.
        start: u64,
        /// One past the last address. When not seen in the act: these are the bytes among which
        /// some have changed.
        end: u64,
        /// Whether the host wrote.
        writes: bool,
        /// Whether it was seen in the act (then the stack is that of the access). Otherwise other
        /// bytes were found there by the call whose stack this is, and the host wrote at some time
        /// between that call and the watched work's.
        in_the_act: bool,
    }
}
