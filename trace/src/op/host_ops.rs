//! Rows of the op table: the host's own accesses to watched bytes, and what the program says of
//! itself.
//!
//! How to read a row, and how to add one: see the parent module. The macro of this file is the last
//! link of the chain.

macro_rules! host_ops {
    ($($rows:tt)*) => { op_enum! { $($rows)*

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
    /// The host loaded or stored these bytes of memory that devices can reach, seen in the act: the
    /// stack is that of the access. Compared with whatever work is not ordered before it.
    162 HostTouch {
        /// First address.
        start: u64,
        /// One past the last address.
        end: u64,
        /// Whether the host wrote.
        writes: bool,
        /// Whether by an atomic instruction.
        atomic: bool,
        /// The host function in which it did, when it was in one.
        func: HostFuncId,
    }
    /// From here on all loads and stores of the host to this memory are looked for while work of a
    /// device that may use it is pending.
    163 HostWatched {
        /// First address of the allocation.
        ptr: u64,
    }

    } };
}
