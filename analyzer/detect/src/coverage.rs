//! Coverage: what the run could see and what it could not.
//!
//! Owns the counters behind the coverage line, and nothing else. Every blind spot is counted and
//! stated.

use crate::launches::effects::{Knowledge, Outline};
use kernels::Gap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The lowest address at which an operating system gives memory to programs. Below it are null
/// pointers and what is added to them. (Linux: `vm.mmap_min_addr` is 64 KiB.)
const LOWEST_ADDRESS: u64 = 1 << 16;

/// How the kernels of the simulator's stand-ins are named, and the library of each.
const STAND_INS: [(&str, &str); 6] = [
    ("streamsan_cublas", "cuBLAS"),
    ("streamsan_cudnn", "cuDNN"),
    ("streamsan_cufft", "cuFFT"),
    ("streamsan_curand", "cuRAND"),
    ("streamsan_cusolver", "cuSOLVER"),
    ("streamsan_cusparse", "cuSPARSE"),
];

/// The library in whose place the simulator's stand-in launched a kernel of this name.
pub fn stand_in_of(kernel: &str) -> Option<&'static str> {
    STAND_INS.iter().find(|(prefix, _)| kernel.starts_with(prefix)).map(|(_, library)| *library)
}

/// Launches of the program's kernels by the form of the code that was read for them: what the
/// driver of the device would choose. Those of stand-ins do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeForms {
    /// PTX.
    pub ptx: u64,
    /// Machine code.
    pub machine: u64,
    /// None could be read, or none was needed.
    pub unread: u64,
}

/// What the simulated GPU ran kernels of the program as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimulatedAs {
    /// By [`SimulatedAs::NAMES`].
    forms: [bool; 3],
}

impl SimulatedAs {
    /// The forms, as the simulator names them to the launcher (`sim/src/status.rs`).
    const NAMES: [&str; 3] = ["PTX", "machine code", "nothing"];

    /// Adds a form. What is none is left out: any process can write the simulator's file.
    pub fn add(&mut self, name: &str) {
        for (form, known) in self.forms.iter_mut().zip(Self::NAMES) {
            *form |= known == name;
        }
    }

    /// The names of those that there were. "nothing": machine code that was skipped (`sass=skip`).
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.forms.into_iter().zip(Self::NAMES).filter(|(ran, _)| *ran).map(|(_, name)| name)
    }
}

/// Accesses of one launch at addresses in no allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Unplaced {
    /// All of them.
    pub(crate) accesses: u64,
    /// Whether one begins at a pointer of the program that may well be memory.
    pub(crate) passed: bool,
}

impl Unplaced {
    /// Counts an access that begins at the pointer `base`; 0 where there is none.
    pub(crate) fn count(&mut self, base: u64) {
        self.accesses += 1;
        self.passed |= base >= LOWEST_ADDRESS;
    }
}

/// Counters of one process or of a whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Ops of the trace.
    pub ops: u64,
    /// Copies, fills and other memory operations (their ranges are always exact).
    pub memory_ops: u64,
    /// Loads and stores of instrumented host code, runs of them counted once.
    pub host_touches: u64,
    /// Kernel launches, nodes of graph launches included.
    pub launches: u64,
    /// Launches whose accesses all have exact bytes, or at least an upper bound.
    pub launches_exact: u64,
    /// Launches whose reads and writes are known, but not every extent.
    pub launches_kinds_only: u64,
    /// Launches without known accesses: the memory behind each pointer parameter counts as read and
    /// written.
    pub launches_unknown: u64,
    /// Launches with accesses through addresses that are loaded from memory. Those accesses are not
    /// checked.
    pub launches_indirect: u64,
    /// Launches whose bytes were measured (exact mode), not predicted.
    pub launches_measured: u64,
    /// Measured launches that also make accesses which no measurement sees, and of which code does
    /// not tell the bytes exactly: these keep their prediction.
    #[serde(default)]
    pub launches_in_part: u64,
    /// Launches on the simulated GPU that their code does not decide and that were left unmeasured,
    /// though launches are measured there.
    #[serde(default)]
    pub launches_unmeasured: u64,
    /// Launches whose threads were checked against each other (`--inside`).
    #[serde(default)]
    pub launches_inside: u64,
    /// Inside them: what was not compared, with counts.
    #[serde(default)]
    pub inside_left: BTreeMap<String, u64>,
    /// Launches whose bytes were measured in an earlier run.
    pub launches_learned: u64,
    /// Accesses of kernels at addresses in no known allocation.
    pub unknown_memory: u64,
    /// Launches that were given memory which no observed call allocated, where devices reach what
    /// the operating system allocates (`malloc`). What they do there is not checked.
    #[serde(default)]
    pub launches_system: u64,
    /// Managed allocations that devices used while nothing looked for the host's accesses.
    pub unwatched_managed: u64,
    /// Pinned and registered allocations that kernels or fills used in place meanwhile.
    pub unwatched_pinned: u64,
    /// Accesses dropped for lack of room.
    pub forgotten: u64,
    /// Operations made while the program had switched checking off.
    pub paused: u64,
    /// Graph launches.
    pub graph_launches: u64,
    /// Occurrences of findings beyond the maximum number of findings.
    pub findings_dropped: u64,
    /// Calls whose effect is not modelled, with counts.
    pub not_modelled: BTreeMap<String, u64>,
    /// What the shim could not observe, with counts.
    pub unobserved: BTreeMap<String, u64>,
    /// Ops that should be in the trace and are not, with counts: by name of the op, or as a line
    /// that says what was lost. A run with any is never clean.
    #[serde(default)]
    pub lost: BTreeMap<String, u64>,
    /// Why the code of kernels could not be read, with the number of launches.
    pub reasons: BTreeMap<String, u64>,
    /// The same numbers for each kernel, by mangled name.
    pub kernels: BTreeMap<String, KernelCoverage>,
    /// The code that was read for launches.
    #[serde(default)]
    pub code: CodeForms,
    /// The forms of code that ran on the simulated GPU; none elsewhere, and of recordings.
    #[serde(default)]
    pub simulated_as: SimulatedAs,
    /// Processes that could not be observed, and why, as lines.
    #[serde(default)]
    pub unchecked: Vec<String>,
    /// The shim switched itself off.
    pub disabled: Vec<String>,
    /// Predictions that a measurement has shown to be wrong, as lines.
    #[serde(default)]
    pub mispredicted: Vec<String>,
    /// Work that escaped a capture and that the graph misses, as lines.
    #[serde(default)]
    pub escaped: Vec<String>,
    /// What was assumed of the program instead of what it did, as lines.
    #[serde(default)]
    pub assumed: Vec<String>,
    /// What `--forbid` could not judge, as lines.
    #[serde(default)]
    pub unjudged: Vec<String>,
    /// Rules limited to NVTX ranges or modules that did not show, with the number of processes.
    #[serde(default)]
    pub rules_unmet: BTreeMap<String, u64>,
    /// Why the program, or part of it, could not be run on the simulated GPU.
    pub not_simulated: Vec<String>,
    /// Records that could not be read.
    pub damaged: u64,
    /// Traces that could not be read to their end, and why.
    pub unread: Vec<String>,
    /// Recordings that are not the whole run, though nothing went wrong: they go on, or only their
    /// end was kept; and those of an old version, of which it can not be told.
    #[serde(default)]
    pub partial: Vec<String>,
    /// Processes with missing segments: of them there are no hints, no wait is tried, and nothing
    /// is compared between processes.
    #[serde(default)]
    pub gaps: u64,
}

/// How well the accesses of one kernel's launches are known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelCoverage {
    /// All launches.
    pub launches: u64,
    /// Launches whose accesses all have exact bytes.
    pub exact: u64,
    /// Launches whose accesses all have exact bytes or an upper bound.
    pub ranges: u64,
    /// Launches with some unknown extent.
    pub kinds_only: u64,
    /// Launches without known accesses.
    pub unknown: u64,
    /// Launches with accesses through addresses that are loaded from memory.
    pub indirect: u64,
    /// Launches with an address computed from several parameter words, more than one of which
    /// points into an allocation.
    pub several: u64,
    /// Why an extent is unknown, with the number of launches. In nearly all cases a single entry.
    pub gaps: Vec<(Gap, u64)>,
    /// Where the first address is loaded from memory.
    pub indirect_gap: Option<Gap>,
}

impl KernelCoverage {
    /// Counts `times` launches.
    pub fn count(&mut self, times: u64, known: &Outline, several: bool, indirect: bool) {
        self.launches += times;
        self.exact += times * u64::from(known.exact);
        match known.knowledge {
            Knowledge::Exact => self.ranges += times,
            Knowledge::KindsOnly => self.kinds_only += times,
            Knowledge::Unknown => self.unknown += times,
        }
        self.indirect += times * u64::from(indirect);
        self.several += times * u64::from(several);
        self.indirect_gap = self.indirect_gap.or(known.indirect_gap);
        if let Some(gap) = known.gap {
            self.gap(gap, times);
        }
    }

    fn gap(&mut self, gap: Gap, count: u64) {
        match self.gaps.iter_mut().find(|g| g.0 == gap) {
            Some(g) => g.1 += count,
            None => self.gaps.push((gap, count)),
        }
    }

    /// Adds the numbers of another process, or of a kernel of the same name.
    pub fn merge(&mut self, other: &Self) {
        self.launches += other.launches;
        self.exact += other.exact;
        self.ranges += other.ranges;
        self.kinds_only += other.kinds_only;
        self.unknown += other.unknown;
        self.indirect += other.indirect;
        self.several += other.several;
        self.indirect_gap = self.indirect_gap.or(other.indirect_gap);
        other.gaps.iter().for_each(|g| self.gap(g.0, g.1));
    }
}

impl Coverage {
    /// The option that would have shown the host's accesses to memory that nothing watched.
    /// `None`: nothing was missed, or the option was given and its way is not open on this driver.
    pub fn watching_option(&self) -> Option<&'static str> {
        let unwatched = self.unwatched_managed + self.unwatched_pinned > 0;
        let stepped_aside = self.unobserved.keys().any(|what| what.starts_with(trace::STEPPED_ASIDE));
        (unwatched && !stepped_aside).then_some("--host-accesses")
    }

    /// Counts a launch or a node that may overlap its predecessor, when the compute capability
    /// that decides whether it does is not known. It is taken to wait.
    pub fn count_overlap(&mut self, arch: Option<u32>) {
        if arch.is_none() {
            let what = "whether kernels overlap (the compute capability of the device is not known)";
            *self.unobserved.entry(what.to_string()).or_default() += 1;
        }
    }

    /// Adds the numbers of another process.
    pub fn merge(&mut self, other: &Self) {
        self.ops += other.ops;
        self.memory_ops += other.memory_ops;
        self.host_touches += other.host_touches;
        self.launches += other.launches;
        self.launches_exact += other.launches_exact;
        self.launches_kinds_only += other.launches_kinds_only;
        self.launches_unknown += other.launches_unknown;
        self.launches_indirect += other.launches_indirect;
        self.launches_measured += other.launches_measured;
        self.launches_in_part += other.launches_in_part;
        self.launches_learned += other.launches_learned;
        self.launches_inside += other.launches_inside;
        self.launches_unmeasured += other.launches_unmeasured;
        self.unknown_memory += other.unknown_memory;
        self.launches_system += other.launches_system;
        self.unwatched_managed += other.unwatched_managed;
        self.unwatched_pinned += other.unwatched_pinned;
        self.forgotten += other.forgotten;
        self.paused += other.paused;
        self.graph_launches += other.graph_launches;
        self.findings_dropped += other.findings_dropped;
        self.damaged += other.damaged;
        for (into, from) in [
            (&mut self.not_modelled, &other.not_modelled),
            (&mut self.unobserved, &other.unobserved),
            (&mut self.lost, &other.lost),
            (&mut self.reasons, &other.reasons),
            (&mut self.rules_unmet, &other.rules_unmet),
            (&mut self.inside_left, &other.inside_left),
        ] {
            for (name, count) in from {
                *into.entry(name.clone()).or_default() += count;
            }
        }
        for (name, kernel) in &other.kernels {
            self.kernels.entry(name.clone()).or_default().merge(kernel);
        }
        self.code.ptx += other.code.ptx;
        self.code.machine += other.code.machine;
        self.code.unread += other.code.unread;
        other.simulated_as.names().for_each(|name| self.simulated_as.add(name));
        self.unchecked.extend(other.unchecked.iter().cloned());
        self.disabled.extend(other.disabled.iter().cloned());
        self.mispredicted.extend(other.mispredicted.iter().cloned());
        self.escaped.extend(other.escaped.iter().cloned());
        self.assumed.extend(other.assumed.iter().cloned());
        self.unjudged.extend(other.unjudged.iter().cloned());
        self.unread.extend(other.unread.iter().cloned());
        self.partial.extend(other.partial.iter().cloned());
        self.gaps += other.gaps;
        self.not_simulated.extend(other.not_simulated.iter().cloned());
    }

    /// Counts `times` launches, each with the same accesses at addresses in no allocation. Whether
    /// devices reach what lies there is for [`Coverage::launches_system`]'s reader to know.
    /// A launch without known accesses must be passed to [`Coverage::launch_unknown`] too.
    pub fn launched(&mut self, times: u64, known: &Outline, indirect: bool, unplaced: Unplaced) {
        self.unknown_memory += times * unplaced.accesses;
        self.launches_system += times * u64::from(unplaced.passed);
        self.launches += times;
        self.launches_indirect += times * u64::from(indirect);
        match known.knowledge {
            Knowledge::Exact => self.launches_exact += times,
            Knowledge::KindsOnly => self.launches_kinds_only += times,
            Knowledge::Unknown => {}
        }
    }

    /// Counts launches of a kernel by its code; see [`CodeForms`].
    pub fn count_code(&mut self, kernel: &str, is_ptx: Option<bool>, launches: u64) {
        if stand_in_of(kernel).is_some() {
            return;
        }
        *match is_ptx {
            Some(true) => &mut self.code.ptx,
            Some(false) => &mut self.code.machine,
            None => &mut self.code.unread,
        } += launches;
    }

    /// Counts a launch without known accesses.
    pub fn launch_unknown(&mut self, reason: &str) {
        self.launches_unknown += 1;
        match self.reasons.get_mut(reason) {
            Some(count) => *count += 1,
            None => drop(self.reasons.insert(reason.to_string(), 1)),
        }
    }

    /// Whether the program did anything on a GPU that could be checked.
    pub fn any_work(&self) -> bool {
        self.memory_ops + self.launches > 0
    }
}
