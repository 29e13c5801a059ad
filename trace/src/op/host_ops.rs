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
    /// The innermost part that the thread is in ends: of the default domain, unless another one has
    /// its own op for that.
    194 RangePop {}
    /// A part of the program begins that all of its threads are in (`nvtxRangeStart`).
    196 RangeStart {
        /// Its number.
        range: u64,
        /// What it is called.
        name: Text<'a>,
        /// Its NVTX domain; empty for the default one.
        domain: Text<'a>,
    }
    /// It ends, by whichever thread.
    197 RangeEnd {
        /// Its number.
        range: u64,
    }
    /// As [`Op::RangePush`], in an NVTX domain.
    198 DomainPush {
        /// What it is called.
        name: Text<'a>,
        /// The domain; empty where its name is not known.
        domain: Text<'a>,
    }
    /// The innermost part of an NVTX domain that the thread is in ends.
    199 DomainPop {
        /// The domain.
        domain: Text<'a>,
    }
    /// The program asks for what was recorded last to be kept ([`crate::segment`]).
    195 Save {
        /// Why; may be empty.
        reason: Text<'a>,
    }
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
    /// The words that watched work waits for had the values that it waits for when the host touched
    /// the watched bytes, as the next op says: nothing held the work back from then on.
    172 WaitsMet {
        /// The number of the watch.
        watch: u32,
    }
    /// A host thread touched memory that devices can reach, seen in the act: by its own word (the
    /// library for instrumented host code) or by a page that it may not touch. The stack is that of
    /// the access. It is ordered as the host's calls are.
    170 HostTouch {
        /// Which bytes.
        region: Region,
        /// Whether it wrote.
        writes: bool,
        /// Whether it was an atomic operation, or one of a `volatile` object.
        atomic: bool,
        /// Whether the thread read the same bytes again and again, with no call in between.
        polled: bool,
        /// The host function that the thread was running in stream order, or none.
        func: HostFuncId,
    }

    /// The host looked at these bytes of memory that is held, or may look at them unseen from here
    /// on: what a message in them says may be known to it. The touches themselves follow, as
    /// [`Op::HostTouch`], at the places of their last bytes.
    171 HostLook {
        /// First address.
        start: u64,
        /// One past the last address. From 0 to the highest: nothing is seen any more.
        end: u64,
    }

    /// A library reads or writes bytes for the host (MPI, cuFile): during the call, as a request
    /// that it works on beside the host, or in the order of a stream.
    162 HostTransfer {
        /// The request, or the stream; [`StreamId::NONE`]: during the call.
        request: StreamId,
        /// Which bytes.
        region: Region,
        /// Whether it reads them.
        reads: bool,
        /// Whether it writes them.
        writes: bool,
        /// Whether it touches all of them; otherwise these are the bytes among which it touches
        /// some.
        exact: bool,
    }

    /// From here on all loads and stores of the host to this memory are looked for while work of a
    /// device that may use it is pending.
    163 HostWatched {
        /// First address of the allocation.
        ptr: u64,
    }

    } };
}
