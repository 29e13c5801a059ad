//! Rows of the op table: memory, arrays, and objects over them.
//!
//! How to read a row, and how to add one: see the parent module.

macro_rules! memory_ops {
    ($($rows:tt)*) => { work_ops! { $($rows)*

    /// A call failed for lack of memory. The record's stack and call are the failed call's. No
    /// effect on order or memory.
    73 OutOfMemory {}
    /// Memory was allocated, registered, mapped or first seen.
    64 Alloc {
        /// First address as kernels see it.
        ptr: u64,
        /// Bytes.
        size: u64,
        /// Kind of memory.
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
        /// Kind of free.
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
    /// An alias goes away. The memory that it stands for does not.
    76 Unalias {
        /// First address of the alias.
        ptr: u64,
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
    /// Where the bytes of an opaque array lie on a simulated GPU, row-major.
    121 ArrayAt {
        /// Which.
        array: ArrayId,
        /// Address of the first.
        address: u64,
    }
    /// An opaque array is a mipmapped one: its levels follow each other, the largest first.
    77 ArrayLevels {
        /// Which.
        array: ArrayId,
        /// One past the last byte of each level.
        ends: List<'a, u64>,
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
        /// The address that was exported or that opening returned.
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
    /// A tensor map was made by the driver, or got another address: its bytes, and what copies by
    /// it reach. Bytes that were told before need not be told again. No effect on order.
    78 TensorMap {
        /// The bytes of the map behind the call.
        map: &'a [u8],
        /// First byte of the tensor.
        address: u64,
        /// Bits of an element in global memory.
        bits: u32,
        /// What copies by it take.
        copies: MapCopies,
        /// Elements along each axis, the innermost first.
        sizes: List<'a, u64>,
        /// Bytes from one element to the next along each axis but the innermost.
        strides: List<'a, u64>,
        /// The box of a tile along each axis; empty for images.
        extent: List<'a, u32>,
        /// Every so many elements of it are copied along each axis.
        step: List<'a, u32>,
    }

    } };
}
