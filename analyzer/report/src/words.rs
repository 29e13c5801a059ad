//! Words of a report: its fixed vocabularies, the choice of those for causes, accesses and memory,
//! and nouns behind a number.
//!
//! Owns the vocabularies of reports that are of no other module. Each is an enum whose words stand
//! once, in its row: JSON, tables and texts take them from there, and read them back.

use std::fmt;

use serde::{Deserialize, Serialize};
use trace::MemoryKind;

use detect::memory::{AccessKind, Cause};

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $variant:ident = $word:literal,)+ })+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
        pub enum $name {
            $(
                $(#[$of])*
                #[doc = concat!("`", $word, "`.")]
                #[serde(rename = $word)]
                $variant,
            )+
        }

        impl $name {
            /// All of them.
            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    )+ };
}

words! {
    /// What a finding is: a race, memory that was freed too early, a race of two threads of one
    /// kernel, a graph that names memory which was freed, or a read of memory that nothing wrote.
    /// Of memory that was freed too early the later side is an allocation that could have received
    /// the bytes.
    FindingKind {
        Race = "race",
        FreedWithoutRecordStream = "freed-without-record_stream",
        FreedWhileUsed = "freed-while-used",
        RaceInsideKernel = "race-inside-kernel",
        StaleGraphMemory = "stale-graph-memory",
        UninitializedRead = "uninitialized-read",
    }

    /// What a side of a finding is: work on the device, a call that ends or discards memory, a
    /// value that a stream writes or waits for, a library that sends and receives for the host, or
    /// the host.
    Actor {
        Kernel = "kernel",
        Copy = "copy",
        Set = "set",
        Alloc = "alloc",
        Free = "free",
        Value = "value",
        Discard = "discard",
        Message = "message",
        Host = "host",
    }

    /// How the bytes of a finding are known: from arguments of calls, without a kernel; predicted
    /// from the code of some kernel; or measured for all kernels involved.
    Established {
        Call = "call",
        Code = "code",
        Exact = "exact",
    }

    /// What a side of a finding does.
    Verb {
        Allocates = "allocates",
        Frees = "frees",
        Discards = "discards",
        Reads = "reads",
        Writes = "writes",
        UpdatesAtomically = "updates atomically",
        ReadsAtomically = "reads atomically",
        WritesAtomically = "writes atomically",
        Calls = "calls",
    }

    /// What a lane of work is: a kind of stream, or another timeline.
    LaneKind {
        Blocking = "blocking",
        NonBlocking = "non-blocking",
        Legacy = "legacy",
        PerThread = "per-thread",
        Host = "host",
        Request = "request",
        Unknown = "unknown",
    }

    /// What the memory of a finding is.
    MemoryWord {
        Array = "array",
        Device = "device memory",
        Managed = "managed memory",
        PinnedHost = "pinned host memory",
        RegisteredHost = "registered host memory",
        StreamOrdered = "stream-ordered memory",
        Mapped = "mapped memory",
        ModuleVariable = "variable of a module",
        Imported = "imported memory",
        OfGraph = "memory of a graph",
        ProgramPool = "a pool of the program",
        Tensor = "PyTorch tensor memory",
        Segment = "a segment of PyTorch's allocator",
        SegmentOfUnseenBlocks = "a segment of PyTorch's allocator, whose blocks were not seen",
    }

    /// How sure a race inside a kernel is to be an error: by the rule in `sim/races/src/grade.rs`.
    KernelGrade {
        Benign = "benign",
        Possible = "possible",
        Likely = "likely",
        Certain = "certain",
    }

    /// Which threads an atomic access reaches.
    KernelScope {
        Block = "block",
        Cluster = "cluster",
        Device = "device",
    }

    /// The code that a kernel ran as.
    KernelCode {
        Ptx = "PTX",
        Machine = "machine code",
    }

    /// What is missing between the places of a cause; not stated for one that is not in the report.
    #[derive(Default)]
    CauseKind {
        MissingWait = "missing-wait",
        MissingHostWait = "missing-host-wait",
        MissingRecordStream = "missing-record_stream",
        MissingGraphEdge = "missing-graph-edge",
        KernelRange = "kernel-range",
        MissingThreadOrder = "missing-thread-order",
        OutlivedMemory = "outlived-memory",
        MissingWrite = "missing-write",
        Other = "other",
        #[default]
        Unstated = "",
    }

    /// The side of a finding that a doubt is about.
    DoubtSide {
        Access = "access",
        Previous = "previous",
        Pair = "pair",
    }

    /// What is known of a side that is not exact; of a pair there is no such word.
    Known {
        UpperBound = "upper bound",
        StartOnly = "start only",
        Nothing = "nothing",
        OfPair = "",
    }

    /// What a step near a race does.
    Operation {
        Kernel = "kernel",
        Copy = "copy",
        Fill = "fill",
        Graph = "graph",
        HostFunction = "host function",
        Value = "value",
        Allocation = "allocation",
        Free = "free",
        Record = "record",
        Wait = "wait",
        HostWait = "host wait",
        Host = "host",
    }

    /// Which side of the race a step near it is.
    StepRole {
        Previous = "previous",
        Access = "access",
        Neither = "",
    }

    /// An interface in which a program synchronises.
    Api {
        Runtime = "CUDA runtime",
        Driver = "CUDA driver",
        Torch = "PyTorch",
        CuPy = "CuPy",
        Jax = "JAX",
        CudaCore = "cuda.core",
        Numba = "Numba",
    }
}

impl Actor {
    /// What work of a cause is.
    pub(crate) fn of(cause: Cause) -> Self {
        match cause {
            Cause::Copy => Self::Copy,
            Cause::Set => Self::Set,
            Cause::Kernel => Self::Kernel,
            Cause::Alloc => Self::Alloc,
            Cause::Free => Self::Free,
            Cause::Value => Self::Value,
            Cause::Discard => Self::Discard,
            Cause::Message => Self::Message,
            Cause::Host | Cause::HostBetween => Self::Host,
        }
    }
}

impl Api {
    /// Whether it is one of CUDA's own, in C.
    pub(crate) fn is_cuda(self) -> bool {
        matches!(self, Self::Runtime | Self::Driver)
    }
}

/// A number with its noun: `1 op`, `2 ops`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// The call that completes what this function of MPI, or of an engine beside CUDA, has begun.
pub(super) fn completion(call: &str) -> &'static str {
    if call == "STREAMSAN_EXTERNAL_BEGIN" {
        return "STREAMSAN_EXTERNAL_END(key);";
    }
    if call == "cuFileBatchIOSubmit" {
        return "cuFileBatchIOGetStatus(batch, count, &count, events, NULL);";
    }
    if call.starts_with("ibv_post_") {
        return "ibv_poll_cq(cq, 1, &completion);";
    }
    if call.starts_with("ucp_") {
        return "while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker);";
    }
    if call == "nixl_capi_post_xfer_req" {
        return "while (nixl_capi_get_xfer_status(agent, request) == NIXL_CAPI_IN_PROG) {}";
    }
    let epoch = ["MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Fetch_and_op", "MPI_Compare_and_swap"];
    if epoch.iter().any(|begin| call.starts_with(begin)) {
        "MPI_Win_flush_local(rank, win);"
    } else {
        "MPI_Wait(&request, MPI_STATUS_IGNORE);"
    }
}

impl Verb {
    /// Whether it is an atomic operation of a kernel.
    pub fn is_atomic(self) -> bool {
        match self {
            Self::UpdatesAtomically | Self::ReadsAtomically | Self::WritesAtomically => true,
            Self::Allocates | Self::Frees | Self::Discards | Self::Reads | Self::Writes | Self::Calls => false,
        }
    }
}

/// What an access does.
pub(super) fn verb(cause: Cause, kind: AccessKind) -> Verb {
    match (cause, kind) {
        (Cause::Alloc, _) => Verb::Allocates,
        (Cause::Free, _) => Verb::Frees,
        (Cause::Discard, _) => Verb::Discards,
        (_, AccessKind::Read) => Verb::Reads,
        (Cause::Value, _) | (_, AccessKind::Write) => Verb::Writes,
        (_, AccessKind::Atomic) => Verb::UpdatesAtomically,
        (_, AccessKind::AtomicRead) => Verb::ReadsAtomically,
        (_, AccessKind::AtomicWrite) => Verb::WritesAtomically,
    }
}

/// What memory is.
pub fn memory_kind(kind: Option<MemoryKind>) -> MemoryWord {
    match kind {
        None => MemoryWord::Array,
        Some(MemoryKind::Device) => MemoryWord::Device,
        Some(MemoryKind::Managed) => MemoryWord::Managed,
        Some(MemoryKind::PinnedHost) => MemoryWord::PinnedHost,
        Some(MemoryKind::RegisteredHost) => MemoryWord::RegisteredHost,
        Some(MemoryKind::Pool) => MemoryWord::StreamOrdered,
        Some(MemoryKind::Mapped) => MemoryWord::Mapped,
        Some(MemoryKind::ModuleGlobal) => MemoryWord::ModuleVariable,
        Some(MemoryKind::Imported) => MemoryWord::Imported,
        Some(MemoryKind::GraphNode) => MemoryWord::OfGraph,
        Some(MemoryKind::Block) => MemoryWord::ProgramPool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breach::RuleKind;
    use detect::confidence::Weakness;
    use detect::hint_kind::HintKind;
    use detect::memory::Precision;

    /// Written as its word, read back as itself; another word is an error.
    fn survives<T: Serialize + for<'de> Deserialize<'de> + PartialEq + fmt::Debug>(all: &[(T, &str)]) {
        for (word, name) in all {
            let text = serde_json::to_string(word).expect("a word");
            assert_eq!(text, format!("{name:?}"));
            assert_eq!(&serde_json::from_str::<T>(&text).expect("a word"), word);
        }
        assert!(serde_json::from_str::<T>("\"no such word\"").is_err());
    }

    #[test]
    fn every_word_is_written_and_read_as_its_name() {
        macro_rules! all {
            ($($name:ident),+) => { $(survives(&$name::ALL.iter().map(|word| (*word, word.name())).collect::<Vec<_>>());)+ };
        }
        all!(
            Actor,
            FindingKind,
            Established,
            KernelGrade,
            KernelScope,
            KernelCode,
            Verb,
            LaneKind,
            MemoryWord,
            CauseKind,
            DoubtSide,
            Known,
            Operation,
            StepRole,
            Api
        );
        all!(HintKind, RuleKind, Weakness, Precision);
    }
}
