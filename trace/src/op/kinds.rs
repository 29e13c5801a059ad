//! The small enumerations in the fields of ops: kinds of streams and memory, scopes of
//! synchronisation.
//!
//! Owns their numbers in the encoding, which never change. The ops themselves are in [`crate::op`].

use crate::codec::{DecodeError, Decoder, Encoder, Field};

macro_rules! flag_enum {
    ($($(#[$doc:meta])* $name:ident : $int:ty { $($(#[$vdoc:meta])* $variant:ident = $value:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[repr($int)]
        pub enum $name { $($(#[$vdoc])* $variant = $value,)* }

        impl<'a> Field<'a> for $name {
            #[inline]
            fn put(&self, to: &mut Encoder<'_>) {
                (*self as $int).put(to);
            }
            fn encoded_len(&self) -> usize {
                size_of::<$int>()
            }
            fn get(from: &mut Decoder<'a>) -> Result<Self, DecodeError> {
                match <$int>::get(from)? {
                    $($value => Ok(Self::$variant),)*
                    other => Err(DecodeError::BadValue { field: stringify!($name), value: u64::from(other) }),
                }
            }
        }
    )*};
}

flag_enum! {
    /// What a stream is; decides its part in the order of default streams.
    StreamKind: u8 {
        /// Made by the program, takes part in legacy default stream order.
        Blocking = 0,
        /// Made with `CU_STREAM_NON_BLOCKING` (or belongs to a green context): never waits for the
        /// legacy stream.
        NonBlocking = 1,
        /// The legacy default stream of a context.
        Legacy = 2,
        /// The default stream of one host thread in one context; a blocking stream.
        PerThread = 3,
    }

    /// Where an allocation comes from; decides how it is freed and what copies from it wait for.
    MemoryKind: u8 {
        /// `cuMemAlloc`, `cuMemAllocPitch`.
        Device = 0,
        /// `cuMemAllocManaged`.
        Managed = 1,
        /// `cuMemAllocHost`, `cuMemHostAlloc`.
        PinnedHost = 2,
        /// `cuMemHostRegister`: the program's own pages, pinned.
        RegisteredHost = 3,
        /// `cuMemAllocAsync`, `cuMemAllocFromPoolAsync`: stream-ordered.
        Pool = 4,
        /// `cuMemMap`: virtual memory management.
        Mapped = 5,
        /// A `__device__` or `__constant__` variable, found when its address is asked for.
        ModuleGlobal = 6,
        /// Memory of another process or API: IPC handles, external memory, graphics.
        Imported = 7,
        /// Memory allocated by a node of a graph.
        GraphNode = 8,
        /// A block that an allocator of the program carved out of one of the above (PyTorch, NVTX
        /// annotations).
        Block = 9,
    }

    /// Which kind of free an [`Op::Free`](crate::op::Op::Free) is.
    FreeKind: u8 {
        /// `cuMemFree` on any address (pool memory included: then it does not wait).
        Plain = 0,
        /// `cuMemFreeHost`.
        Host = 1,
        /// `cuMemHostUnregister`.
        Unregister = 2,
        /// `cuMemFreeAsync`: in stream order.
        Async = 3,
        /// `cuMemUnmap`.
        Unmap = 4,
        /// The mapping of foreign memory was closed.
        Imported = 5,
        /// An allocator of the program took its block back.
        Block = 6,
    }

    /// What a side of a copy is, as far as the name of the function says.
    Space: u8 {
        /// The function takes any address (`cuMemcpy`): look it up.
        Unified = 0,
        /// Host memory by the function's name or descriptor.
        Host = 1,
        /// Device memory by the function's name or descriptor.
        Device = 2,
        /// An opaque array.
        Array = 3,
    }

    /// What a host synchronisation waits for.
    SyncScope: u8 {
        /// All work of one stream.
        Stream = 0,
        /// The latest record of one event.
        Event = 1,
        /// All streams of one context.
        Context = 2,
        /// All streams of all contexts of the process (a free that drains the device, a device
        /// reset).
        Device = 3,
        /// What the legacy default stream waits for: itself and the context's blocking streams.
        Legacy = 4,
    }

    /// How an event is recorded or waited for.
    EventMode: u8 {
        /// Plain.
        Plain = 0,
        /// `CU_EVENT_RECORD_EXTERNAL` / `CU_EVENT_WAIT_EXTERNAL`.
        External = 1,
        /// Fired by a kernel's programmatic trigger (launch attribute 7): not completion.
        Programmatic = 2,
        /// Fired when the last block of a kernel has started (launch attribute 12): not completion.
        LaunchCompletion = 3,
    }

    /// What copies by a tensor map take of its tensor.
    MapCopies: u8 {
        /// Tiles (`cuTensorMapEncodeTiled`).
        Tiles = 0,
        /// Columns of images (`cuTensorMapEncodeIm2col`).
        Columns = 1,
        /// The same along one axis (`cuTensorMapEncodeIm2colWide`).
        WideColumns = 2,
        /// Any of them, of a tensor whose channels are interleaved.
        Interleaved = 3,
    }

    /// When a copy reads its source, as its attributes say.
    SourceOrder: u8 {
        /// In stream order, like any copy.
        Stream = 0,
        /// During the call: it has been read when the call returns.
        DuringCall = 1,
        /// At any time, before what comes before the copy too.
        Any = 2,
    }

    /// How a value in memory is compared by a wait.
    WaitCompare: u8 {
        /// `(i32)(*addr - value) >= 0`.
        GreaterEqual = 0,
        /// `*addr == value`.
        Equal = 1,
        /// `(*addr & value) != 0`.
        And = 2,
        /// `~(*addr | value) != 0`.
        Nor = 3,
    }

    /// Where the bytes of a code image are.
    ImageSource: u8 {
        /// In the record itself.
        Inline = 0,
        /// In a file: `path`, from `offset`.
        File = 1,
        /// In the file of that name beside the segments of the recording ([`crate::segment`]).
        Beside = 2,
    }

    /// How the line table of a Python code object is encoded.
    LineTable: u8 {
        /// `co_lnotab` of Python 3.8 and 3.9.
        Lnotab = 0,
        /// `co_linetable` of Python 3.10.
        V310 = 1,
        /// `co_linetable` of Python 3.11 and later.
        V311 = 2,
    }

    /// Why the shim says something about itself.
    NoteKind: u8 {
        /// A call was seen whose effect is not modelled.
        NotModelled = 0,
        /// A call could not be observed (a signal handler inside a hook, a full table, an unknown
        /// handle).
        Unobserved = 1,
        /// The shim switched itself off.
        Disabled = 2,
        /// Anything else a user should know.
        Info = 3,
        /// Ops that the trace should hold and does not: what follows from them was not checked.
        Lost = 4,
    }
}
