//! Rows of the op table: contexts, streams, events, and what host threads wait for.
//!
//! How to read a row, and how to add one: see the parent module.

macro_rules! order_ops {
    ($($rows:tt)*) => { memory_ops! { $($rows)*

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
    /// it, and may have waited for all that was enqueued here before; as far as this process
    /// knows, that is what the event stands for.
    52 OthersRecord {
        /// Which event.
        event: EventId,
        /// The context that waits.
        context: ContextId,
    }
    /// A library begins to work for the host beside it (a request of MPI): on a timeline of its
    /// own, which starts after all that the host has seen finish.
    53 RequestStart {
        /// Its id, from the numbers of streams. It belongs to [`ContextId::REQUESTS`].
        request: StreamId,
    }
    /// The host has seen a request complete. Its id is gone.
    54 RequestDone {
        /// Which.
        request: StreamId,
    }
    /// Records are missing before this one. Only segments of a recording hold it
    /// ([`crate::segment`]): all that came before is over, and what lives follows, up to the one
    /// that says `resumed`.
    55 Gap {
        /// Whether what lives has been told: the program's ops go on.
        resumed: bool,
    }
    /// A member of a communicator (NCCL) enqueues one of its collective operations: they wait for
    /// each other, so the order in which each member enqueues those of several communicators
    /// counts.
    56 Collective {
        /// Its stream; none: from here on this member's operations of the communicator are not
        /// followed.
        stream: StreamId,
        /// The communicator: one number in all of its members.
        communicator: u64,
        /// How many members it has.
        members: u32,
        /// Its number among the member's operations of this communicator.
        number: u64,
        /// The group of calls that it was launched with; 0: none.
        group: u64,
    }
    /// A library's pool handed a stream out (PyTorch makes its streams at once, long before the
    /// program asks for one).
    60 StreamTaken {
        /// Which.
        stream: StreamId,
    }
    /// What the program calls a stream.
    62 StreamName {
        /// Which.
        stream: StreamId,
        /// Its name.
        name: Text<'a>,
    }
    /// A call failed with an error that ends the context (illegal address, device-side assert), or
    /// because a captured stream was not joined. The record's stack and call are the failed call's.
    61 Failed {
        /// What the driver returned, as `CUresult`.
        result: u32,
        /// The stream of the launch that was waited for, when `launch-blocking` shows which one
        /// failed.
        stream: StreamId,
    }

    /// A call failed that would have recorded an event or made a stream wait for one: it did
    /// nothing. The record's stack and call are the failed call's.
    63 OrderFailed {
        /// What the driver returned, as `CUresult`.
        result: u32,
        /// The event; none: it is not known.
        event: EventId,
        /// The stream; none: it is not known.
        stream: StreamId,
        /// Whether it would have recorded; otherwise it would have waited.
        records: bool,
    }

    } };
}
