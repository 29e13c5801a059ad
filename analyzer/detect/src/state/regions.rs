//! Regions that the program names itself: NVTX ranges and those of `streamsan.h`.
//!
//! Owns the nesting on each host thread, and the ranges of the process (`nvtxRangeStart`), which
//! every thread is in until they end. Those lie around whatever a thread is in. A region is a small
//! number, so that every access can carry it. Does not print: reports ask for the names.

use std::sync::Arc;

use crate::memory::Region;
use rustc_hash::FxHashMap;
use trace::{Op, ThreadId};

/// Maximum number of different regions. A program that numbers its ranges (one a step) gets this
/// many.
const MAX_REGIONS: usize = 1 << 16;

/// Maximum nesting that is kept. Deeper levels are only counted.
const MAX_DEPTH: usize = 64;

/// What a range is called.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct RangeName {
    /// Its own name; may be empty.
    pub(crate) name: String,
    /// The name of its NVTX domain; empty for the default one.
    pub(crate) domain: String,
}

impl RangeName {
    /// The name of a range in the default domain.
    pub(crate) fn plain(name: &str) -> Self {
        Self { name: name.to_string(), domain: String::new() }
    }

    /// A name in a domain.
    pub(crate) fn within(name: &str, domain: &str) -> Self {
        Self { name: name.to_string(), domain: domain.to_string() }
    }

    /// The name of the range that an op begins, if it begins one.
    pub fn of(op: &Op<'_>) -> Option<Self> {
        match *op {
            Op::RangePush { name } => Some(Self::plain(&name.lossy())),
            Op::RangeStart { name, domain, .. } | Op::DomainPush { name, domain } => {
                Some(Self::within(&name.lossy(), &domain.lossy()))
            }
            _ => None,
        }
    }

    /// As reports show it, `range@domain`; empty without a name.
    pub(crate) fn shown(&self) -> String {
        if self.domain.is_empty() || self.name.is_empty() {
            return self.name.clone();
        }
        format!("{}@{}", self.name, self.domain)
    }

    /// Whether someone who looks for a name means this one, with its domain or without.
    pub fn is(&self, wanted: impl Fn(&str) -> bool) -> bool {
        wanted(&self.name) || (!self.domain.is_empty() && wanted(&self.shown()))
    }
}

/// A range that a thread is in.
struct Level {
    name: Arc<RangeName>,
    /// With all that is around it.
    region: Region,
}

/// All regions of one process.
#[derive(Default)]
pub struct Regions {
    /// The region around it, and its name.
    list: Vec<(Region, Arc<RangeName>)>,
    index: FxHashMap<(Region, Arc<RangeName>), Region>,
    threads: FxHashMap<ThreadId, Vec<Level>>,
    /// Open ranges of the process, by their number, in the order in which they began.
    started: Vec<(u64, Arc<RangeName>)>,
    /// The region of all of these.
    process: Region,
}

impl Regions {
    /// Applies an op that begins or ends a region.
    pub fn apply(&mut self, op: &Op<'_>, thread: ThreadId) {
        match *op {
            Op::RangePop {} => self.pop(thread, ""),
            Op::DomainPop { domain } => self.pop(thread, &domain.lossy()),
            Op::RangeEnd { range } => self.end(range),
            Op::RangeStart { range, .. } => self.start(range, RangeName::of(op).unwrap_or_default()),
            _ => {
                if let Some(name) = RangeName::of(op) {
                    self.push(thread, name);
                }
            }
        }
    }

    /// Begins a region on a thread.
    fn push(&mut self, thread: ThreadId, name: RangeName) {
        let name = Arc::new(name);
        let (around, depth) = (self.current(thread), self.depth(thread));
        let region = self.inside(around, &name, depth);
        self.threads.entry(thread).or_default().push(Level { name, region });
    }

    /// Ends the innermost region of a thread in one domain: each has a nesting of its own. The end
    /// of one that began before the recording is ignored.
    fn pop(&mut self, thread: ThreadId, domain: &str) {
        let Some(levels) = self.threads.get_mut(&thread) else { return };
        if let Some(at) = levels.iter().rposition(|level| level.name.domain == domain) {
            levels.remove(at);
            if at < levels.len() {
                self.renew(thread);
            }
        }
    }

    /// Begins a range of the process.
    fn start(&mut self, range: u64, name: RangeName) {
        if self.started.len() < MAX_DEPTH {
            self.started.push((range, Arc::new(name)));
            self.renew_all();
        }
    }

    /// Ends a range of the process. The end of one that began before the recording is ignored.
    fn end(&mut self, range: u64) {
        if let Some(at) = self.started.iter().position(|(known, _)| *known == range) {
            self.started.remove(at);
            self.renew_all();
        }
    }

    /// The region of this name inside another one.
    fn inside(&mut self, around: Region, name: &Arc<RangeName>, depth: usize) -> Region {
        let key = (around, Arc::clone(name));
        match self.index.get(&key) {
            Some(region) => *region,
            None if self.list.len() >= MAX_REGIONS || depth >= MAX_DEPTH => around,
            None => {
                self.list.push(key.clone());
                let region = Region(self.list.len() as u32);
                self.index.insert(key, region);
                region
            }
        }
    }

    /// What the process is in has changed, and so has every thread's region.
    fn renew_all(&mut self) {
        let mut process = Region(0);
        for at in 0..self.started.len() {
            let name = Arc::clone(&self.started[at].1);
            process = self.inside(process, &name, 0);
        }
        self.process = process;
        self.threads.retain(|_, levels| !levels.is_empty());
        for thread in self.threads.keys().copied().collect::<Vec<_>>() {
            self.renew(thread);
        }
    }

    /// The regions of a thread anew, from the outermost inwards.
    fn renew(&mut self, thread: ThreadId) {
        let mut levels = self.threads.remove(&thread).unwrap_or_default();
        let mut around = self.process;
        for (depth, level) in levels.iter_mut().enumerate() {
            around = self.inside(around, &level.name, depth);
            level.region = around;
        }
        self.threads.insert(thread, levels);
    }

    fn depth(&self, thread: ThreadId) -> usize {
        self.threads.get(&thread).map_or(0, Vec::len)
    }

    /// The innermost region that a thread is in.
    #[inline]
    pub fn current(&self, thread: ThreadId) -> Region {
        if self.list.is_empty() {
            return Region(0);
        }
        self.threads.get(&thread).and_then(|levels| levels.last()).map_or(self.process, |level| level.region)
    }

    /// A region and all regions around it, innermost first.
    fn chain(&self, region: Region) -> impl Iterator<Item = &RangeName> {
        let mut at = region;
        std::iter::from_fn(move || {
            let (around, name) = self.list.get(at.0.checked_sub(1)? as usize)?;
            at = *around;
            Some(&**name)
        })
    }

    /// The names of a region and of all regions around it, outermost first.
    pub fn names(&self, region: Region) -> Vec<String> {
        // A registered string may have no text here.
        let mut names: Vec<String> = self.chain(region).filter(|n| !n.name.is_empty()).map(RangeName::shown).collect();
        names.reverse();
        names
    }

    /// Whether a region or one around it has a name that is looked for.
    pub fn is_within(&self, region: Region, wanted: impl Fn(&str) -> bool) -> bool {
        self.chain(region).any(|name| name.is(&wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ThreadId = ThreadId(1);
    const B: ThreadId = ThreadId(2);

    fn named(name: &str) -> RangeName {
        RangeName::plain(name)
    }

    #[test]
    fn parts_nest_on_each_thread() {
        let mut r = Regions::default();
        r.pop(A, "");
        r.push(A, named("step"));
        r.push(A, named("forward"));
        r.push(B, named("other"));
        let forward = r.current(A);
        assert_eq!(r.names(forward), ["step", "forward"]);
        assert_eq!(r.names(r.current(B)), ["other"]);
        r.pop(A, "");
        r.push(A, named("forward"));
        assert_eq!(r.current(A), forward, "the same part again");
        r.pop(A, "");
        r.pop(A, "");
        assert!(r.names(r.current(A)).is_empty() && r.names(Region(99)).is_empty());
    }

    #[test]
    fn a_range_of_the_process_lies_around_every_thread() {
        let mut r = Regions::default();
        r.push(A, named("outer"));
        r.start(7, named("epoch"));
        r.start(8, named("step"));
        r.push(A, named("inner"));
        assert_eq!(r.names(r.current(A)), ["epoch", "step", "outer", "inner"]);
        assert_eq!(r.names(r.current(B)), ["epoch", "step"], "a thread that has begun nothing");
        r.end(7);
        r.end(99);
        assert_eq!(r.names(r.current(A)), ["step", "outer", "inner"], "they need not nest");
        r.pop(A, "");
        r.end(8);
        assert_eq!(r.names(r.current(A)), ["outer"]);
        assert!(r.names(r.current(B)).is_empty());
        r.start(9, named("step"));
        assert_eq!(r.names(r.current(B)), ["step"], "and again");
    }

    #[test]
    fn each_domain_nests_on_its_own() {
        let mut r = Regions::default();
        r.push(A, RangeName::within("load", "io"));
        r.push(A, named("step"));
        r.pop(A, "none");
        assert_eq!(r.names(r.current(A)), ["load@io", "step"]);
        let wants = |text: &'static str| move |name: &str| name == text;
        assert!(r.is_within(r.current(A), wants("load")) && r.is_within(r.current(A), wants("load@io")));
        assert!(!r.is_within(r.current(A), wants("load@net")) && !r.is_within(r.current(A), wants("io")));
        r.pop(A, "io");
        assert_eq!(r.names(r.current(A)), ["step"], "not the innermost of all");
        r.pop(A, "");
        assert!(r.names(r.current(A)).is_empty());
    }
}
