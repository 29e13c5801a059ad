//! What a report says, as plain data: everything is resolved, nothing refers to the analysis any
//! more.
//!
//! Owns the shape and the counting of findings; `text` and `json` print it.

use super::fingerprint::{Identity, number};
use crate::detect::coverage::Coverage;
use crate::detect::race::{Confidence, Hazard};
use crate::exact::learned::Learned;
use crate::exact::oracle::Oracle;
use crate::gate::Judgement;
use crate::options::FailOn;
use crate::report::escape::Harmless;
use crate::report::neighbourhood::Scene;
use crate::state::names::Process;

/// Sort of a stack frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FrameKind {
    /// Machine code.
    Native,
    /// Python code.
    Python,
    /// Stands for frames that nobody wants to see: the driver, cudart, StreamSan itself, the
    /// interpreter.
    Folded,
}

/// One frame of a stack, innermost first.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    /// Its sort.
    pub kind: FrameKind,
    /// Demangled name of the function; empty when unknown.
    pub function: String,
    /// Source file.
    pub file: Option<String>,
    /// Source line.
    pub line: Option<u32>,
    /// Object file.
    pub module: Option<String>,
    /// Address in the process (0 for Python).
    pub address: u64,
    /// Whether the function was inlined into the next frame.
    pub inlined: bool,
    /// The source line's text.
    pub source: Option<String>,
}

impl Frame {
    /// `file:line`, as short as it stays useful; `None` without a file.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_ref()?;
        Some(self.line.map_or_else(|| file.clone(), |line| format!("{file}:{line}")))
    }
}

/// The frame a reader looks for first: the innermost one in the program's own source.
pub fn site_frame(stack: &[Frame]) -> Option<&Frame> {
    let has_line = |f: &&Frame| f.kind == FrameKind::Python && f.file.is_some();
    // A line of the program says more than one of a library that it uses.
    let installed = |f: &Frame| {
        const FOLDERS: [&str; 3] = ["/site-packages/", "/dist-packages/", "/lib/python"];
        f.file
            .as_deref()
            .is_some_and(|file| file.starts_with('<') || FOLDERS.iter().any(|folder| file.contains(folder)))
    };
    let python = stack.iter().filter(has_line).find(|f| !installed(f)).or_else(|| stack.iter().find(has_line));
    python.or_else(|| stack.iter().find(|f| f.kind == FrameKind::Native && f.file.is_some()))
}

/// [`site_frame`] as `file:line` without directories.
pub fn site(stack: &[Frame]) -> Option<String> {
    let Some(frame) = site_frame(stack) else {
        // Built without line tables: the function is the next best.
        let named = stack.iter().find(|f| f.kind == FrameKind::Native && !f.function.is_empty())?;
        return Some(crate::report::stack_text::shortened(&named.function, 60));
    };
    let file = frame.file.as_deref()?;
    let base = file.rsplit('/').next().unwrap_or(file);
    Some(frame.line.map_or_else(|| base.to_string(), |line| format!("{base}:{line}")))
}

/// What a side of a finding was.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Actor {
    /// A kernel.
    Kernel,
    /// A copy.
    Copy,
    /// A fill.
    Set,
    /// An allocation in stream order.
    Alloc,
    /// A free.
    Free,
    /// A value written or waited for by a stream.
    Value,
    /// The contents were discarded.
    Discard,
    /// The host.
    Host,
}

impl Actor {
    /// The name that JSON uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Copy => "copy",
            Self::Set => "set",
            Self::Alloc => "alloc",
            Self::Free => "free",
            Self::Value => "value",
            Self::Discard => "discard",
            Self::Host => "host",
        }
    }
}

/// How a stream is called.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamName {
    /// Number of the stream (unique within the process); 0 for the host.
    pub id: u32,
    /// In prose: `stream 3 (non-blocking, created at main.cu:41)`, `the legacy default stream`,
    /// `the host`.
    pub long: String,
    /// In prose, once it has been introduced: `stream 3`, `the legacy default stream`.
    pub name: String,
    /// In code: what to write for it in the line that mends the race.
    pub short: String,
    /// `blocking`, `non-blocking`, `legacy`, `per-thread`, `host`, `unknown`.
    pub kind: &'static str,
    /// Where it was made.
    pub stack: Vec<Frame>,
    /// CUDA's handle; 0 for default streams.
    pub handle: u64,
}

/// One side of a finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Side {
    /// What it was.
    pub actor: Actor,
    /// `reads`, `writes`, `updates atomically`, `reads and writes`.
    pub verb: &'static str,
    /// The API function.
    pub call: String,
    /// Of the host: the call that found the change; empty when the host was seen in the act.
    pub seen_by: String,
    /// Demangled kernel name.
    pub kernel: Option<String>,
    /// The operator of PyTorch that did it, with its schema when its library tells.
    pub operator: Option<String>,
    /// The stream.
    pub stream: StreamName,
    /// The host thread: kernel thread id and name.
    pub thread: Option<(u32, String)>,
    /// Index of the graph node.
    pub node: Option<u32>,
    /// Offset of the kernel parameter that holds the pointer.
    pub param: Option<u32>,
    /// First byte touched, as an offset in the allocation (or an address without one).
    pub from: u64,
    /// One past the last byte touched.
    pub to: u64,
    /// `exact`, `bound` (no other bytes) or `unknown` (only the start is known).
    pub precision: &'static str,
    /// Gaps between the bytes: run length and strides, empty for plain ranges.
    pub gaps: String,
    /// The stack, innermost first.
    pub stack: Vec<Frame>,
    /// Of graph nodes: where the graph was launched.
    pub launched: Vec<Frame>,
    /// The part of the program, as it names it (NVTX ranges), outermost first.
    pub regions: Vec<String>,
    /// The process, when the other side is in another one.
    pub process: Option<u32>,
    /// Where in the kernel the first of its instructions is that touch these bytes, when its code
    /// has a line table.
    pub inside: Option<Inside>,
}

/// A line inside a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inside {
    /// Source file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// The line's text.
    pub source: Option<String>,
}

/// The allocation of a finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// `device memory`, `pinned host memory`, ...
    pub kind: &'static str,
    /// What the program calls it (NVTX); empty: nothing.
    pub name: String,
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
    /// The API function that made it.
    pub call: String,
    /// Where.
    pub stack: Vec<Frame>,
    /// Where it was freed, if it was.
    pub freed: Vec<Frame>,
}

impl Memory {
    /// The sort of memory, with its name if it has one.
    pub fn what(&self) -> String {
        if self.name.is_empty() { self.kind.to_string() } else { format!("{}, {}", self.kind, self.name) }
    }
}

/// What orders the two sides, and what would.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Synchronisation {
    /// What is there, one sentence each.
    pub facts: Vec<String>,
    /// What is missing, one sentence.
    pub missing: String,
    /// The calls that would add it, in CUDA.
    pub cuda: Vec<String>,
    /// The calls that would add it, in PyTorch; empty when the program runs no Python.
    pub torch: Vec<String>,
}

/// What the gate has made of a finding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GateStatus {
    /// Nobody knows it yet.
    #[default]
    New,
    /// The baseline has it.
    Known,
    /// A suppression covers it: its index in the judgement's list.
    Suppressed(usize),
}

/// A race after de-duplication.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What it is recognised by, within the run and across runs.
    pub identity: Identity,
    /// Names the finding across runs, also when its lines have moved (see [`super::fingerprint`]).
    pub fingerprint: String,
    /// What the gate has made of it.
    pub standing: GateStatus,
    /// The kind of conflict.
    pub hazard: Hazard,
    /// `race`; or `freed-without-record_stream` (a tensor of PyTorch's) and `freed-while-used` (a
    /// block of another pool): the later side is an allocation that could have been given the
    /// bytes.
    pub kind: &'static str,
    /// How sure.
    pub confidence: Confidence,
    /// How the bytes are known: `call` (from the arguments of calls, no kernel takes part), `code`
    /// (some kernel's were predicted from its code), `exact` (those of all kernels were measured).
    pub established: &'static str,
    /// Ordered, but only by a synchronisation that CUDA does not promise.
    pub latent: bool,
    /// One side is the host.
    pub host: bool,
    /// Both sides and the memory belong to one of NVIDIA's libraries, which the program can not
    /// mend.
    pub internal: bool,
    /// Occurrences.
    pub count: u64,
    /// The process of the first occurrence.
    pub pid: u32,
    /// What that process is called: `process 77`, with several traces `process 77 of rank3.trace`.
    pub origin: String,
    /// All processes it came up in, as places in the report's list of them.
    pub processes: Vec<u32>,
    /// Occurrences in each of them.
    pub occurrences: Vec<u64>,
    /// The later op.
    pub access: Side,
    /// The earlier op.
    pub previous: Side,
    /// The memory; `None` for pageable host memory.
    pub allocation: Option<Memory>,
    /// What the earlier op took the memory for, when it was another life of it.
    pub previous_allocation: Option<Memory>,
    /// First byte that both touch (or may touch), as an offset in the allocation.
    pub from: u64,
    /// One past the last byte that both touch.
    pub to: u64,
    /// Order between the two.
    pub synchronisation: Synchronisation,
    /// What was submitted around the two.
    pub scene: Scene,
}

impl Finding {
    /// Whether it counts as a failure of the run.
    fn fails(&self, pedantic: bool, fail_on: FailOn) -> bool {
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

/// Something that is no race, but probably not meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hint {
    /// Its sort, see [`crate::detect::hints::HintKind`].
    pub kind: &'static str,
    /// One sentence.
    pub text: String,
    /// Occurrences.
    pub count: u64,
    /// The process.
    pub pid: u32,
    /// Where.
    pub stack: Vec<Frame>,
    /// Where the other call was made, if there are two.
    pub other: Vec<Frame>,
}

/// What one process did and where it raced.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// The process.
    pub process: Process,
    /// Its number among those that are compared with each other.
    pub member: Option<u32>,
    /// Its findings.
    pub findings: Vec<Finding>,
    /// Findings that measured ranges refute.
    pub withdrawn: Vec<Finding>,
    /// Its hints, when they were asked for.
    pub hints: Vec<Hint>,
    /// Errors that ended a context.
    pub faults: Vec<Fault>,
    /// What could be seen.
    pub coverage: Coverage,
    /// Predictions against measurements, when that was asked for.
    pub oracle: Oracle,
    /// Ranges to keep, when that was asked for.
    pub learned: Learned,
}

/// A place that launched a kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FaultSite {
    /// Demangled kernel name; empty when unknown.
    pub kernel: String,
    /// Where.
    pub stack: Vec<Frame>,
    /// How many launches.
    pub count: u64,
}

/// Launches of one stream that nobody had seen finish.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Running {
    /// The stream.
    pub stream: String,
    /// How many launches.
    pub total: u64,
    /// From how many places.
    pub places: u64,
    /// The places that launched first, oldest first.
    pub oldest: Vec<FaultSite>,
}

/// An error that ended a context.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Fault {
    /// The process.
    pub pid: u32,
    /// What the driver answered (`CUresult`).
    pub result: u32,
    /// The call that answered it.
    pub call: String,
    /// Where that was.
    pub stack: Vec<Frame>,
    /// The launch that made it, when each was waited for.
    pub culprit: Option<FaultSite>,
    /// The stream of that launch.
    pub stream: String,
    /// Otherwise: what was still under way, by stream.
    pub running: Vec<Running>,
}

/// The report of a run: all its processes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// All processes that used CUDA, in the order they were given.
    pub processes: Vec<Process>,
    /// All findings, the surest and most frequent first.
    pub findings: Vec<Finding>,
    /// Findings that measured ranges refute; see [`Report::withdrawn`].
    pub withdrawn: Vec<Finding>,
    /// Hints, when they were asked for. They never fail a run.
    pub hints: Vec<Hint>,
    /// Errors that ended a context. They are the program's to report: they fail no run.
    pub faults: Vec<Fault>,
    /// What could be seen in all processes.
    pub coverage: Coverage,
    /// Predictions against measurements, when that was asked for.
    pub oracle: Oracle,
    /// Ranges to keep, when that was asked for.
    pub learned: Learned,
    /// Whether weak findings are shown.
    pub pedantic: bool,
    /// The weakest finding that fails the run.
    pub fail_on: FailOn,
    /// What the gate has set aside.
    pub judgement: Judgement,
}

impl Report {
    /// Puts the outcomes of several processes together. Findings with one identity become one.
    pub fn merge(outcomes: Vec<Outcome>, pedantic: bool) -> Self {
        let fail_on = if pedantic { FailOn::Possible } else { FailOn::Likely };
        let mut report = Self { pedantic, fail_on, ..Self::default() };
        for (index, outcome) in outcomes.into_iter().enumerate() {
            report.coverage.merge(&outcome.coverage);
            let origin = outcome.process.name();
            report.oracle.merge(outcome.oracle);
            report.learned.merge(outcome.learned);
            for finding in outcome.withdrawn {
                merge_finding(&mut report.withdrawn, finding);
            }
            report.processes.push(outcome.process);
            report.hints.extend(outcome.hints);
            report.faults.extend(outcome.faults);
            for mut finding in outcome.findings {
                finding.processes = vec![index as u32];
                finding.occurrences = vec![finding.count];
                finding.origin.clone_from(&origin);
                merge_finding(&mut report.findings, finding);
            }
        }
        report.findings.sort_by(|a, b| {
            (a.latent, std::cmp::Reverse(a.confidence)).cmp(&(b.latent, std::cmp::Reverse(b.confidence)))
        });
        number(&mut report.findings);
        report.disarm();
        report
    }

    /// Whatever the program calls its things: no format may be led astray by it.
    fn disarm(&mut self) {
        self.processes.disarm();
        self.findings.disarm();
        self.withdrawn.disarm();
        self.hints.disarm();
        self.faults.disarm();
        self.coverage.disarm();
    }

    /// Findings that are printed: nobody has set them aside, and they are sure enough. Those inside
    /// NVIDIA's libraries only when weak ones are wanted too.
    pub fn shown(&self) -> impl Iterator<Item = &Finding> {
        self.worth_showing().filter(|f| f.standing == GateStatus::New)
    }

    /// Findings that measured ranges refute and that would be printed otherwise.
    pub fn withdrawn(&self) -> impl Iterator<Item = &Finding> {
        let stands = |w: &Finding| self.findings.iter().any(|f| f.identity == w.identity && f.latent == w.latent);
        self.withdrawn.iter().filter(move |f| self.is_worth_showing(f) && !stands(f))
    }

    /// Findings that would be printed, had nobody set them aside.
    pub fn set_aside(&self) -> impl Iterator<Item = &Finding> {
        self.worth_showing().filter(|f| f.standing != GateStatus::New)
    }

    fn worth_showing(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| self.is_worth_showing(f))
    }

    fn is_worth_showing(&self, f: &Finding) -> bool {
        let least = if self.pedantic { Confidence::Possible } else { Confidence::Likely };
        f.confidence >= least && (self.pedantic || !f.internal)
    }

    /// Whether a finding of this report fails the run.
    pub fn fails(&self, finding: &Finding) -> bool {
        finding.fails(self.pedantic, self.fail_on)
    }

    /// Findings that fail the run.
    pub fn failures(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| self.fails(f))
    }

    /// Number of findings that fail the run, by confidence: certain, likely, possible; and latent
    /// ones, which do not.
    pub fn counts(&self) -> [usize; 4] {
        let by = |c: Confidence| self.failures().filter(|f| f.confidence == c).count();
        let latent = self.findings.iter().filter(|f| f.latent && f.standing == GateStatus::New).count();
        [by(Confidence::Certain), by(Confidence::Likely), by(Confidence::Possible), latent]
    }
}

/// Adds a finding, or counts it with the one of the same identity.
pub fn merge_finding(findings: &mut Vec<Finding>, finding: Finding) {
    let same = |f: &&mut Finding| f.identity == finding.identity && f.latent == finding.latent;
    let Some(first) = findings.iter_mut().find(same) else {
        findings.push(finding);
        return;
    };
    let count = first.count + finding.count;
    let mut processes = std::mem::take(&mut first.processes);
    let mut occurrences = std::mem::take(&mut first.occurrences);
    for (process, count) in finding.processes.iter().zip(&finding.occurrences) {
        match (processes.last(), occurrences.last_mut()) {
            (Some(last), Some(sum)) if last == process => *sum += count,
            _ => {
                processes.push(*process);
                occurrences.push(*count);
            }
        }
    }
    if first.confidence < finding.confidence {
        *first = finding;
    }
    first.count = count;
    first.processes = processes;
    first.occurrences = occurrences;
}
