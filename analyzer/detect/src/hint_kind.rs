//! The kinds of hints.
//!
//! Owns their names. [`super::hints`] finds them.

use serde::{Deserialize, Serialize};

/// What a hint is about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum HintKind {
    /// A wait for an event that was never recorded: CUDA treats it as complete.
    #[serde(rename = "wait-never-recorded")]
    WaitNeverRecorded,
    /// An event that was recorded and that nothing ever waited for or queried.
    #[serde(rename = "event-never-waited-for")]
    NeverWaitedFor,
    /// An event that was recorded again on another stream although nothing had waited for the
    /// previous record, which the new one does not cover. Then something waited.
    #[serde(rename = "event-recorded-again")]
    RecordedAgain,
    /// A kernel on the legacy default stream, which waits for none of the program's non-blocking
    /// streams.
    #[serde(rename = "legacy-stream-kernel")]
    LegacyKernel,
    /// A launched graph copies from or to pageable memory of the host: it does so at each launch,
    /// and whether the memory still lives is not seen.
    #[serde(rename = "graph-pageable-memory")]
    PageableNode,
    /// A kernel polls a flag that another process sets, by a load whose scope does not reach that
    /// process's device.
    #[serde(rename = "flag-scope")]
    FlagScope,
    /// A kernel polls a flag that another process sets, and reads on without an acquire.
    #[serde(rename = "flag-without-acquire")]
    FlagUnordered,
    /// Two kernels of PyTorch's symmetric memory use one word of a signal pad, and nothing orders
    /// them.
    #[serde(rename = "signal-pad")]
    SignalPad,
    /// Two members of two communicators enqueue collectives of them in different orders.
    #[serde(rename = "communicator-order")]
    CommunicatorOrder,
    /// The code of a kernel leads from a store to shared memory to a bulk operation that reads it,
    /// without a fence between the proxies.
    #[serde(rename = "copy-without-proxy-fence")]
    UnfencedCopy,
    /// A fence or a barrier inside a kernel without which nothing is unordered in this run.
    #[serde(rename = "superfluous-in-kernel")]
    SuperfluousInKernel,
}

impl HintKind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::WaitNeverRecorded,
        Self::NeverWaitedFor,
        Self::RecordedAgain,
        Self::LegacyKernel,
        Self::PageableNode,
        Self::FlagScope,
        Self::FlagUnordered,
        Self::SignalPad,
        Self::CommunicatorOrder,
        Self::UnfencedCopy,
        Self::SuperfluousInKernel,
    ];

    /// The name that JSON and scripts use.
    pub fn name(self) -> &'static str {
        match self {
            Self::WaitNeverRecorded => "wait-never-recorded",
            Self::NeverWaitedFor => "event-never-waited-for",
            Self::RecordedAgain => "event-recorded-again",
            Self::LegacyKernel => "legacy-stream-kernel",
            Self::PageableNode => "graph-pageable-memory",
            Self::FlagScope => "flag-scope",
            Self::FlagUnordered => "flag-without-acquire",
            Self::SignalPad => "signal-pad",
            Self::CommunicatorOrder => "communicator-order",
            Self::UnfencedCopy => "copy-without-proxy-fence",
            Self::SuperfluousInKernel => "superfluous-in-kernel",
        }
    }
}
