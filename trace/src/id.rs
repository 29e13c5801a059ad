//! Newtypes for everything that ops name. An id is never reused within one process of a run, unlike
//! the CUDA handles (and addresses) behind it.

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($int:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[repr(transparent)]
        pub struct $name(pub $int);

        impl $name {
            /// The id that stands for "none" or "unknown".
            pub const NONE: Self = Self(0);

            /// Whether this id stands for "none".
            pub fn is_none(self) -> bool {
                self == Self::NONE
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }
    )*};
}

ids! {
    /// One life of a stream. Default streams have ids of their own: one legacy stream a context,
    /// one per-thread stream a host thread and context.
    StreamId(u32);
    /// One life of a CUDA event.
    EventId(u32);
    /// One life of a context (green contexts included).
    ContextId(u32);
    /// A host thread of the program.
    ThreadId(u32);
    /// A call stack, defined once by [`crate::Op::Stack`].
    StackId(u32);
    /// A kernel as loaded: name, parameter layout and image, defined once by [`crate::Op::Kernel`].
    KernelId(u32);
    /// A code image (fatbin, cubin or PTX), defined once by [`crate::Op::Image`].
    ImageId(u32);
    /// A Python code object, defined once by [`crate::Op::PyCode`].
    PyCodeId(u32);
    /// The name of an API function, defined once by [`crate::Op::CallName`].
    CallId(u16);
    /// A clocked thing: the host is [`TimelineId::HOST`], every stream has one of its own.
    TimelineId(u32);
    /// A pending host synchronisation: pairs [`crate::Op::SyncBegin`] with [`crate::Op::SyncEnd`].
    SyncId(u32);
    /// One execution of a host function in stream order.
    HostFuncId(u32);
    /// An executable graph.
    GraphExecId(u32);
    /// A graph that is being built (captured or explicit).
    GraphId(u32);
    /// A capture, by the driver's own number.
    CaptureId(u64);
    /// A stream-ordered memory pool.
    PoolId(u32);
    /// An opaque array or mipmapped array.
    ArrayId(u32);
}

impl ContextId {
    /// Stands for the context of requests: what libraries do for the host, beside it. No device
    /// and no context waits for them.
    pub const REQUESTS: Self = Self(u32::MAX);
}

impl TimelineId {
    /// The merged host timeline (handovers between host threads are taken to be synchronised).
    pub const HOST: Self = Self(0);
}

/// One point of a timeline: the `time`-th op of `timeline`. Times start at 1; 0 means "before
/// everything".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Epoch {
    /// Whose clock.
    pub timeline: TimelineId,
    /// Counter of that clock.
    pub time: u64,
}
