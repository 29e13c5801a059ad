//! One finding as reports print it: both sides, the memory, and the order between them.
//!
//! Owns the data only. [`crate::elaborate`] makes it; there, ids have become names.

use crate::doubt::Doubt;
use crate::fingerprint::Identity;
use crate::judgement::GateStatus;
use crate::model::Sightings;
use crate::neighbourhood::Scene;
use crate::words::{
    Actor, Api, Established, FindingKind, KernelCode, KernelGrade, KernelScope, LaneKind, MemoryWord, Verb,
};
use detect::confidence::{Confidence, Weakness};
use detect::memory::Precision;
use detect::race::Hazard;
use serde::{Deserialize, Serialize};
use settings::FailOn;
use symbols::frame::Frame;

/// What a report says of a copy that may not be over when it returns, behind the function's name.
pub(crate) const STAGED: &str = "from pageable memory has read its source when it returns";

/// The names of a stream.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StreamName {
    /// Number of the stream (unique within the process); 0 for the host.
    pub id: u32,
    /// In prose: `stream 3 (non-blocking, created at main.cu:41)`, `the legacy default stream`,
    /// `the host`.
    pub long: String,
    /// In prose, once it has been introduced: `stream 3`, `the legacy default stream`.
    pub name: String,
    /// What the program calls it by NVTX; empty if it does not.
    #[serde(default)]
    pub called: String,
    /// In code: the expression for it in the line that fixes the race.
    pub short: String,
    /// Its kind.
    pub(crate) kind: LaneKind,
    /// Where it was made.
    pub stack: Vec<Frame>,
    /// CUDA's handle; 0 for default streams.
    pub(crate) handle: u64,
}

impl StreamName {
    /// Where nothing has introduced it: `stream 3 "copies"`.
    pub(crate) fn title(&self) -> String {
        titled(&self.name, &self.called)
    }
}

/// The name of a stream with what the program calls it, if it does.
pub fn titled(name: &str, called: &str) -> String {
    if called.is_empty() { name.to_owned() } else { format!("{name} \"{called}\"") }
}

/// One side of a finding.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Side {
    /// Its kind.
    pub actor: Actor,
    /// What it does.
    pub verb: Verb,
    /// Besides, it does the other of the two: it reads and writes. The verb stays that of the
    /// hazard.
    #[serde(default)]
    pub does_both: bool,
    /// The operator's arguments that hold this memory.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Whether its output does.
    #[serde(default)]
    pub to_output: bool,
    /// Nothing is known of the kernel, so it may as well only read.
    pub guessed: bool,
    /// The API function.
    pub call: String,
    /// For the host: the call that found the change; empty when the access itself was observed.
    pub seen_by: String,
    /// Demangled kernel name.
    pub kernel: Option<String>,
    /// The kernel's name in its code, by which `--exact` knows it; empty without one. Not printed.
    pub symbol: String,
    /// The PyTorch operator that made the access, with its schema when its library has it.
    pub operator: Option<String>,
    /// The stream.
    pub stream: StreamName,
    /// The host thread: kernel thread id and name.
    pub thread: Option<(u32, String)>,
    /// Index of the graph node.
    pub node: Option<u32>,
    /// Offset of the kernel parameter that holds the pointer.
    pub param: Option<u32>,
    /// That parameter in words: `parameter 2`, counted from 1; empty without one.
    pub through: String,
    /// First byte touched, as an offset in the allocation (or an address without one).
    pub from: u64,
    /// One past the last byte touched.
    pub to: u64,
    /// How precisely they are known.
    pub precision: Precision,
    /// Gaps between the bytes: run length and strides, empty for plain ranges.
    pub gaps: String,
    /// The stack, innermost first.
    pub stack: Vec<Frame>,
    /// For graph nodes: where the graph was launched.
    pub launched: Vec<Frame>,
    /// For a thread of PyTorch's engine: where Python started the backward pass.
    #[serde(default)]
    pub started: Vec<Frame>,
    /// The NVTX ranges, outermost first.
    pub regions: Vec<String>,
    /// The process, when the other side is in another one.
    pub process: Option<u32>,
    /// For a copy by a tensor map: where the map was encoded, several places where it may be one of
    /// several maps.
    #[serde(default)]
    pub encoded: Vec<String>,
    /// The first instruction of the kernel that touches these bytes, as a source line, when its
    /// code has a line table.
    pub inside: Option<Inside>,
}

/// A line inside a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Inside {
    /// Source file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// The line's text.
    pub(crate) source: Option<String>,
}

/// The allocation of a finding.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct AllocationInfo {
    /// What memory it is.
    pub kind: MemoryWord,
    /// The program's name for it (NVTX); empty: none.
    pub(crate) name: String,
    /// One past the last byte of each level of a mipmapped array; empty: it is no such array.
    pub levels: Vec<u64>,
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The API function that made it.
    pub(crate) call: String,
    /// Where.
    pub stack: Vec<Frame>,
    /// Where it was freed, if it was.
    pub freed: Vec<Frame>,
}

impl AllocationInfo {
    /// The kind of memory, with its name if it has one.
    pub(crate) fn what(&self) -> String {
        let levels = if self.levels.is_empty() { "" } else { "mipmapped " };
        let kind = format!("{levels}{}", self.kind);
        if self.name.is_empty() { kind } else { format!("{kind}, {}", self.name) }
    }

    /// The levels of a mipmapped array that these bytes lie in: the first one and the last one.
    pub(crate) fn levels_of(&self, from: u64, to: u64) -> Option<(usize, usize)> {
        let level = |byte: u64| self.levels.iter().position(|end| byte < *end);
        let first = level(from)?;
        Some((first, level(to.saturating_sub(1).max(from)).unwrap_or(first)))
    }
}

/// The mending lines in one interface.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MendingLines {
    /// The interface.
    pub api: Api,
    /// The lines.
    pub lines: Vec<String>,
}

/// The synchronisation between the two sides: what is there, and what is missing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Synchronisation {
    /// What is there, one sentence each.
    pub facts: Vec<String>,
    /// What is missing, one sentence.
    pub missing: String,
    /// The calls that would add it, in each interface that the program uses, Python's first.
    pub mend: Vec<MendingLines>,
}

impl Synchronisation {
    /// The calls in CUDA.
    pub fn cuda(&self) -> &[String] {
        self.mend.iter().find(|mend| mend.api.is_cuda()).map_or(&[], |mend| &mend.lines)
    }

    /// The calls in Python: in PyTorch where the program uses that. Empty when it runs no Python.
    #[cfg(feature = "parquet")]
    pub(crate) fn python(&self) -> Option<&MendingLines> {
        self.mend.iter().find(|mend| !mend.api.is_cuda())
    }

    /// The calls in PyTorch; empty when the program does not use it.
    pub fn torch(&self) -> &[String] {
        self.mend.iter().find(|mend| mend.api == Api::Torch).map_or(&[], |mend| &mend.lines)
    }
}

/// A thread of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ThreadPlace {
    /// Its block.
    pub block: [u32; 3],
    /// The thread in the block; `None`: one of many.
    pub thread: Option<[u32; 3]>,
    /// How far the access reaches; `None`: it is weak, as plain loads and stores are.
    pub scope: Option<KernelScope>,
    /// The access is a copy behind the back of the thread (`cp.async`).
    pub asynchronous: bool,
    /// It is no access: the thread ends, and the shared memory of its block with it.
    #[serde(default)]
    pub ends: bool,
}

/// The shared memory of a race.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SharedArray {
    /// Its name, as far as the symbols have it; `dynamic shared memory`; or empty.
    pub name: String,
    /// Where it begins in the block's shared memory.
    pub offset: u32,
    /// Its bytes; 0: not known.
    pub size: u32,
    /// The first byte of the race, from where it begins.
    pub byte: u64,
}

/// What a race of two threads of one kernel has beside other races.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InKernel {
    /// How sure it is.
    pub grade: KernelGrade,
    /// The code that ran.
    pub code: KernelCode,
    /// The threads of the previous access and of the access.
    pub threads: [ThreadPlace; 2],
    /// The shared memory; `None`: it is in global memory.
    pub shared: Option<SharedArray>,
    /// The variable in global memory, if it is one (its offset is 0).
    pub variable: Option<SharedArray>,
    /// The first byte as the code has it: an address, or an offset in shared memory.
    pub address: u64,
    /// Blocks of the launch.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Launches that showed it.
    pub launches: u64,
    /// Of a node of a graph: where the graph was launched.
    pub graph: Vec<Frame>,
    /// The threads are of two grids, of which a kernel launched one or both.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub two_grids: bool,
    /// It is in the registers of a thread, which a product of its warp group uses.
    #[serde(default)]
    pub registers: bool,
}

/// What a finding about a graph that names ended memory has beside races.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct StaleMemory {
    /// Which address of the node: `parameter 2`, `its target`, `its source`, `its address`.
    pub place: String,
    /// The memory that the address lies in now.
    pub now: Option<AllocationInfo>,
    /// Where the graph was instantiated.
    pub instantiated: Vec<Frame>,
}

impl ThreadPlace {
    /// In words: `thread (3,0,0) of block (0,0,0)`.
    pub(crate) fn words(&self) -> String {
        let three = |[x, y, z]: [u32; 3]| format!("({x},{y},{z})");
        let thread = self.thread.map_or_else(|| "a thread".to_owned(), |thread| format!("thread {}", three(thread)));
        format!("{thread} of block {}", three(self.block))
    }
}

impl SharedArray {
    /// In words: `shared array tile`.
    pub(crate) fn words(&self) -> String {
        match self.name.as_str() {
            "" => "shared memory".to_owned(),
            DYNAMIC => DYNAMIC.to_owned(),
            // The function that declares it is that of the stacks.
            name => format!("shared array {}", name.rsplit("::").next().unwrap_or(name)),
        }
    }
}

/// What dynamic shared memory is called.
pub(crate) const DYNAMIC: &str = "dynamic shared memory";

/// A race after de-duplication.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// The identity of the finding within the run and across runs.
    pub identity: Identity,
    /// Names the finding across runs, also when its lines have moved: see
    /// [`crate::fingerprint`].
    pub fingerprint: String,
    /// The gate's decision.
    pub standing: GateStatus,
    /// The kind of conflict.
    pub hazard: Hazard,
    /// A race, or memory that was freed too early.
    pub kind: FindingKind,
    /// How certain it is that the two sides share a byte.
    pub confidence: Confidence,
    /// Why it is not more than possible, when that is by rule.
    pub weakness: Option<Weakness>,
    /// How the bytes are known.
    pub established: Established,
    /// Why it is not certain; empty when it is.
    pub doubts: Vec<Doubt>,
    /// Ordered, but only by a synchronisation that CUDA does not promise.
    pub latent: bool,
    /// One side is the host.
    pub host: bool,
    /// Both sides and the memory belong to one of NVIDIA's libraries, which the program can not
    /// fix.
    pub internal: bool,
    /// Occurrences.
    pub count: u64,
    /// The process of the first occurrence.
    pub pid: u32,
    /// The name of that process: `process 77`, with several traces `process 77 of rank3.trace`.
    pub origin: String,
    /// All processes it occurred in, as indices into the report's list.
    pub processes: Vec<u32>,
    /// Occurrences in each of them.
    pub occurrences: Vec<u64>,
    /// The ranges (of NVTX, of tests) that the later op was in, outermost first, for all
    /// occurrences; each list once.
    #[serde(default)]
    pub ranges: Vec<Vec<String>>,
    /// The programs of a hunt that showed it; empty elsewhere.
    pub programs: Vec<String>,
    /// The later op.
    pub access: Side,
    /// The earlier op.
    pub previous: Side,
    /// The memory; `None` for pageable host memory.
    pub allocation: Option<AllocationInfo>,
    /// The allocation at the earlier op, when it was another lifetime of the memory.
    pub previous_allocation: Option<AllocationInfo>,
    /// First byte that both touch or may touch, as an offset in the allocation.
    pub from: u64,
    /// One past the last byte that both touch.
    pub to: u64,
    /// Order between the two.
    pub synchronisation: Synchronisation,
    /// Of a race of two threads of one kernel: the threads, and their memory.
    #[serde(default)]
    pub in_kernel: Option<InKernel>,
    /// Of a graph that names memory which has ended. The memory is `allocation`, the earlier op
    /// its free.
    #[serde(default)]
    pub stale: Option<StaleMemory>,
    /// The ops submitted around the two.
    pub scene: Scene,
    /// Fingerprint of its cause, see [`crate::cause`].
    pub cause: String,
    /// Of a finding of a hunt whose cause is one with that of another program: the fingerprint that
    /// the cause has in the program's own report, by which files of the user may name it. Empty
    /// elsewhere.
    #[serde(default)]
    pub own_cause: String,
}

impl Side {
    /// Its ranges, as those of all occurrences.
    pub fn own_ranges(&self) -> Vec<Vec<String>> {
        Vec::from_iter(Some(self.regions.clone()).filter(|names| !names.is_empty()))
    }
}

impl Finding {
    /// Two sides that conflict, of one process that is not known yet and not seen before. What else
    /// a maker knows it fills in; the rest is given when the report is put together.
    pub fn new(
        kind: FindingKind,
        hazard: Hazard,
        confidence: Confidence,
        [access, previous]: [Side; 2],
        synchronisation: Synchronisation,
    ) -> Self {
        Self {
            identity: Identity::default(),
            fingerprint: String::new(),
            standing: GateStatus::New,
            hazard,
            kind,
            confidence,
            weakness: None,
            established: Established::Exact,
            doubts: Vec::new(),
            latent: false,
            host: false,
            internal: false,
            count: 1,
            pid: 0,
            origin: String::new(),
            processes: Vec::new(),
            occurrences: Vec::new(),
            ranges: access.own_ranges(),
            programs: Vec::new(),
            from: access.from,
            to: access.to,
            access,
            previous,
            allocation: None,
            previous_allocation: None,
            synchronisation,
            in_kernel: None,
            stale: None,
            scene: Scene::default(),
            cause: String::new(),
            own_cause: String::new(),
        }
    }

    /// Where and how often it was seen.
    pub(crate) fn sightings(&mut self) -> Sightings<'_> {
        let Self { count, processes, occurrences, ranges, programs, .. } = self;
        Sightings { count, processes, occurrences, ranges, programs }
    }

    /// The name of what is broken, for formats with rules: that of the hazard, or of the kind where
    /// a kind is a rule of its own.
    pub(crate) fn rule(&self) -> &'static str {
        match self.kind {
            FindingKind::RaceInsideKernel | FindingKind::StaleGraphMemory | FindingKind::UninitializedRead => {
                self.kind.name()
            }
            _ => self.hazard.name(),
        }
    }

    /// Whether it is one only if a kernel of which nothing is known writes.
    pub fn is_guessed(&self) -> bool {
        self.confidence == Confidence::Possible && (self.access.guessed || self.previous.guessed)
    }

    /// Whether it counts as a failure of the run.
    pub(crate) fn fails(&self, pedantic: bool, fail_on: FailOn) -> bool {
        let least = match fail_on {
            FailOn::Certain => Confidence::Certain,
            FailOn::Latent if pedantic => Confidence::Possible,
            FailOn::Likely | FailOn::Latent => Confidence::Likely,
            FailOn::Possible => Confidence::Possible,
        };
        self.standing == GateStatus::New
            && self.confidence >= least
            && (pedantic || !self.internal)
            && (!self.latent || fail_on == FailOn::Latent)
    }
}
