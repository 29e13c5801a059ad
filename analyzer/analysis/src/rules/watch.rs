//! What of the ops of one process breaks a rule: once for each call site, with a count.
//!
//! Owns the observation, by ids. Names and sentences are made at the end, in [`super::elaborate`].
//!
//! # When each rule is broken
//!
//! - `default-stream`: by any op in stream order on the legacy default stream of a context, the
//!   synchronisation of it too. With a module: only if the innermost frame of the stack that is
//!   none of CUDA's lies in that object file. The stack of a Python function that calls CUDA itself
//!   begins with its source file, which counts as its module.
//! - `sync`: by an op for which the host waits or may wait ([`super::waiting`]). With a range: by
//!   each, while the thread is in it, or while it is open in the process (`nvtxRangeStart`).
//!   Without: when a call site is reached again. The first time of each counts as setting up, or as
//!   the first step.
//! - `unnamed-stream`: by work on a stream that the program has made and not named, at any time.
//!   Told once for each place that makes streams.
//!
//! While the program has switched checking off, nothing is looked at.

use super::waiting::Waiting;
use crate::counterfactual::edits::sync::stream_of;
use detect::coverage::Coverage;
use detect::memory::{Region, SeenRegions};
use detect::state::regions::{RangeName, Regions};
use report::gate::forbidden::Forbidden;
use report::model::Actor;
use report::model::RuleKind;
use rustc_hash::{FxHashMap, FxHashSet};
use symbols::frame::{Frame, FrameKind};
use symbols::stacks::Stacks;
use trace::{CallId, FreeKind, KernelId, MemoryKind, Op, Origin, StackId, StreamId, StreamKind};

/// Maximum number of call sites that are kept for one process. More are only counted.
const MAX_SITES: usize = 4096;

/// A call site that breaks a rule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    rule: usize,
    stack: StackId,
    call: CallId,
    kernel: KernelId,
    waiting: Option<Waiting>,
}

/// The first time that a call site breaks a rule, and how often it does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawBreach {
    /// Which rule.
    pub(crate) forbidden: &'static Forbidden,
    /// Its place in the list.
    rule: usize,
    /// The op's origin.
    pub(crate) origin: Origin,
    /// Its stream; none of an allocation and the like.
    pub(crate) stream: StreamId,
    /// The kernel, of launches.
    pub(crate) kernel: KernelId,
    /// What it does.
    pub(crate) actor: Actor,
    /// How it makes the host wait.
    pub(crate) waiting: Option<Waiting>,
    /// The NVTX ranges around it.
    pub(crate) region: Region,
    /// Times.
    pub(crate) count: u64,
}

/// What the rules need to know of the analysis.
pub(crate) struct RuleContext<'a> {
    /// The API function.
    pub(crate) call: &'a str,
    /// The kind of the memory at an address.
    pub(crate) memory: &'a dyn Fn(u64) -> Option<MemoryKind>,
    /// NVTX ranges.
    pub(crate) regions: &'a Regions,
    /// Stacks.
    pub(crate) stacks: &'a mut dyn Stacks,
    /// The program has switched checking off for now.
    pub(crate) paused: bool,
}

/// A stream that the program has made.
#[derive(Clone, Copy, Debug)]
struct Made {
    kind: StreamKind,
    named: bool,
    /// Its first work.
    used: Option<RawBreach>,
    stack: StackId,
}

/// The rules during one pass.
#[derive(Debug)]
pub(crate) struct RuleWatch {
    rules: &'static [Forbidden],
    /// Rules of each kind that launches can break.
    for_launches: bool,
    streams: FxHashMap<StreamId, Made>,
    index: FxHashMap<Key, usize>,
    list: Vec<RawBreach>,
    /// The regions that each of the list was in, all times, each once.
    regions: Vec<SeenRegions>,
    dropped: u64,
    /// Call sites that have made the host wait.
    reached: FxHashSet<(StackId, CallId)>,
    /// Whether a stack's innermost module is the one of a rule.
    modules: FxHashMap<(usize, StackId), bool>,
    /// Whether a region is within the range of a rule.
    ranges: FxHashMap<(usize, Region), bool>,
    /// Rules whose range the program has entered or whose module has used a stream, and those for
    /// all.
    met: Vec<bool>,
    /// Ops of which it is not known who has called them.
    without_stack: u64,
}

impl RuleWatch {
    /// Nothing has been seen yet.
    pub(crate) fn new(rules: &'static [Forbidden]) -> Self {
        Self {
            rules,
            for_launches: rules.iter().any(|rule| rule.kind != RuleKind::Sync),
            streams: FxHashMap::default(),
            index: FxHashMap::default(),
            list: Vec::new(),
            regions: Vec::new(),
            dropped: 0,
            reached: FxHashSet::default(),
            modules: FxHashMap::default(),
            ranges: FxHashMap::default(),
            met: rules.iter().map(|rule| rule.only.is_none()).collect(),
            without_stack: 0,
        }
    }

    /// Whether launches can break a rule.
    pub(crate) fn is_for_launches(&self) -> bool {
        self.for_launches
    }

    /// Looks at an op, before it takes effect.
    pub(crate) fn observe(&mut self, op: &Op<'_>, origin: &Origin, cx: &mut RuleContext<'_>) {
        match *op {
            Op::StreamCreate { stream, kind, .. } => {
                self.streams.insert(stream, Made { kind, named: false, used: None, stack: origin.stack });
                return;
            }
            Op::StreamTaken { stream } => {
                if let Some(made) = self.streams.get_mut(&stream).filter(|_| !origin.stack.is_none()) {
                    made.stack = origin.stack;
                }
                return;
            }
            Op::StreamName { stream, .. } => {
                if let Some(made) = self.streams.get_mut(&stream) {
                    made.named = true;
                }
                return;
            }
            Op::StreamDestroy { stream } => {
                self.stream_ended(stream);
                return;
            }
            Op::RangePush { .. } | Op::RangeStart { .. } | Op::DomainPush { .. } => self.range_entered(op),
            // They are about a stream, but nothing is submitted to it. Blocks of a pool are no
            // calls of CUDA at all.
            Op::StreamIdle { .. }
            | Op::HostWatch { .. }
            | Op::Failed { .. }
            | Op::Alloc { kind: MemoryKind::Block, .. }
            | Op::Free { kind: FreeKind::Block, .. } => return,
            _ => {}
        }
        if cx.paused {
            return;
        }
        let waiting = Waiting::of(op, cx.call, cx.memory);
        let stream = stream_of(op);
        if waiting.is_none() && stream.is_none() {
            return;
        }
        let kernel = if let Op::Launch { kernel, .. } = *op { kernel } else { KernelId::NONE };
        let region = cx.regions.current(origin.thread);
        let one = RawBreach {
            forbidden: &self.rules[0],
            rule: 0,
            origin: *origin,
            stream: stream.unwrap_or(StreamId::NONE),
            kernel,
            actor: actor(op),
            waiting,
            region,
            count: 1,
        };
        let again = waiting.is_some() && !self.reached.insert((origin.stack, origin.call));
        for rule in 0..self.rules.len() {
            let is_broken = match self.rules[rule].kind {
                RuleKind::DefaultStream => self.breaks_default_stream(rule, &one, cx),
                RuleKind::Sync => waiting.is_some() && self.is_in_range(rule, region, again, cx.regions),
                RuleKind::UnnamedStream => {
                    self.used(&one, op);
                    false
                }
            };
            if is_broken {
                let waiting = waiting.filter(|_| self.rules[rule].kind == RuleKind::Sync);
                self.add(RawBreach { rule, forbidden: &self.rules[rule], waiting, ..one });
            }
        }
    }

    fn is_legacy(&self, stream: StreamId) -> bool {
        self.streams.get(&stream).is_some_and(|made| made.kind == StreamKind::Legacy)
    }

    /// Whether an op of the module is on the legacy default stream. Until the module is met, the
    /// module of every call site that uses a stream is looked up, once.
    fn breaks_default_stream(&mut self, rule: usize, one: &RawBreach, cx: &mut RuleContext<'_>) -> bool {
        let is_legacy = self.is_legacy(one.stream);
        let stack = one.origin.stack;
        if !is_legacy && (self.met[rule] || stack.is_none() || one.stream == StreamId::NONE) {
            return false;
        }
        let is_in_module = self.is_in_module(rule, stack, cx);
        // Without a stack it may have been.
        self.met[rule] |= is_in_module || stack.is_none();
        is_legacy && is_in_module
    }

    fn is_in_module(&mut self, rule: usize, stack: StackId, cx: &mut RuleContext<'_>) -> bool {
        let Some(only) = &self.rules[rule].only else { return true };
        if stack.is_none() {
            self.without_stack += 1;
            return false;
        }
        let stacks = &mut cx.stacks;
        *self.modules.entry((rule, stack)).or_insert_with(|| {
            let frames = stacks.resolve(stack);
            innermost_module(&frames).is_some_and(|module| only.matches(module))
        })
    }

    fn is_in_range(&mut self, rule: usize, region: Region, again: bool, regions: &Regions) -> bool {
        let Some(only) = &self.rules[rule].only else { return again };
        *self.ranges.entry((rule, region)).or_insert_with(|| regions.is_within(region, |name| only.matches(name)))
    }

    fn range_entered(&mut self, op: &Op<'_>) {
        let is_open = |(rule, met): &(&Forbidden, &mut bool)| rule.kind == RuleKind::Sync && !**met;
        let mut open = self.rules.iter().zip(&mut self.met).filter(is_open).peekable();
        if open.peek().is_none() {
            return;
        }
        let Some(name) = RangeName::of(op) else { return };
        for (rule, met) in open {
            *met = rule.only.as_ref().is_some_and(|only| name.is(|text| only.matches(text)));
        }
    }

    /// Notes work on a stream that the program has made.
    fn used(&mut self, one: &RawBreach, op: &Op<'_>) {
        let is_made = |made: &&mut Made| matches!(made.kind, StreamKind::Blocking | StreamKind::NonBlocking);
        // A synchronisation is no work.
        if matches!(op, Op::SyncBegin { .. } | Op::EventRecord { .. } | Op::StreamWait { .. }) {
            return;
        }
        if let Some(made) = self.streams.get_mut(&one.stream).filter(is_made) {
            made.used.get_or_insert(*one);
        }
    }

    /// A stream that is gone can get no name any more.
    fn stream_ended(&mut self, stream: StreamId) {
        if let Some(Made { named: false, used: Some(used), stack, .. }) = self.streams.remove(&stream) {
            for rule in 0..self.rules.len() {
                if self.rules[rule].kind == RuleKind::UnnamedStream {
                    self.add_at(RawBreach { rule, forbidden: &self.rules[rule], waiting: None, ..used }, stack);
                }
            }
        }
    }

    fn add(&mut self, one: RawBreach) {
        self.add_at(one, one.origin.stack);
    }

    fn add_at(&mut self, one: RawBreach, stack: StackId) {
        let is_of_stream = self.rules[one.rule].kind == RuleKind::UnnamedStream;
        let key = Key {
            rule: one.rule,
            stack,
            call: if is_of_stream { CallId::default() } else { one.origin.call },
            kernel: if is_of_stream { KernelId::NONE } else { one.kernel },
            waiting: one.waiting,
        };
        match self.index.get(&key) {
            Some(&at) => {
                self.list[at].count += 1;
                self.regions[at].add(one.region);
            }
            None if self.list.len() >= MAX_SITES => self.dropped += 1,
            None => {
                self.index.insert(key, self.list.len());
                self.list.push(one);
                self.regions.push(SeenRegions::of(one.region));
            }
        }
    }

    /// What breaks the rules so far, in the order in which it came up.
    pub(crate) fn all(&self) -> &[RawBreach] {
        &self.list
    }

    /// Ends the pass: what breaks the rules, in the order in which it came up, and its regions.
    pub(crate) fn finish(&mut self) -> Vec<(RawBreach, SeenRegions)> {
        let mut left: Vec<StreamId> = self.streams.keys().copied().collect();
        left.sort_unstable_by_key(|stream| stream.0);
        left.into_iter().for_each(|stream| self.stream_ended(stream));
        std::mem::take(&mut self.list).into_iter().zip(std::mem::take(&mut self.regions)).collect()
    }

    /// Notes what could not be judged or kept.
    pub(crate) fn count_in(&self, coverage: &mut Coverage) {
        coverage.unjudged = self.unjudged();
        coverage.rules_unmet = self.unmet().map(|rule| (rule.text.clone(), 1)).collect();
        coverage.findings_dropped += self.dropped;
    }

    fn unjudged(&self) -> Vec<String> {
        let what = report::words::counted(self.without_stack, "operation", "operations");
        let line = format!("{what} on the default stream, for --forbid default-stream=MODULE: no stack was recorded");
        if self.without_stack > 0 { vec![line] } else { Vec::new() }
    }

    /// The rules that are limited to what the program has not shown.
    fn unmet(&self) -> impl Iterator<Item = &'static Forbidden> {
        self.rules.iter().zip(&self.met).filter(|(_, met)| !**met).map(|(rule, _)| rule)
    }
}

/// What kind of side an op is.
fn actor(op: &Op<'_>) -> Actor {
    match op {
        Op::Launch { .. } | Op::GraphLaunch { .. } => Actor::Kernel,
        Op::Copy { .. } | Op::AttributedCopy { .. } => Actor::Copy,
        Op::Set { .. } => Actor::Set,
        Op::Alloc { .. } => Actor::Alloc,
        Op::Free { .. } => Actor::Free,
        Op::WriteValue { .. } | Op::WaitValue { .. } => Actor::Value,
        _ => Actor::Host,
    }
}

/// The object file, without its folder, of the innermost frame that is none of CUDA's; of Python
/// code its source file.
pub(crate) fn innermost_module(frames: &[Frame]) -> Option<&str> {
    let frame = frames.iter().find(|frame| frame.kind != FrameKind::Folded)?;
    let path = frame.module.as_deref().or(frame.file.as_deref())?;
    path.rsplit('/').next()
}
