//! Regions that the program names itself: NVTX ranges and those of `streamsan.h`.
//!
//! Owns the nesting on each host thread. A region is a small number, so that every access can carry
//! it. Does not print: reports ask for the names.

use rustc_hash::FxHashMap;
use trace::ThreadId;

/// A region with all regions around it; 0: none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Region(u32);

/// Maximum number of different regions. A program that numbers its ranges (one a step) gets this
/// many.
const MAX_REGIONS: usize = 1 << 16;

/// Maximum nesting that is kept. Deeper levels are only counted.
const MAX_DEPTH: usize = 64;

/// All regions of one process.
#[derive(Default)]
pub struct Regions {
    /// The region around it, and its name.
    list: Vec<(Region, String)>,
    index: FxHashMap<(Region, String), Region>,
    threads: FxHashMap<ThreadId, Vec<Region>>,
}

impl Regions {
    /// Begins a region on a thread.
    pub fn push(&mut self, thread: ThreadId, name: &str) {
        let around = self.current(thread);
        let key = (around, name.to_string());
        let region = match self.index.get(&key) {
            Some(region) => *region,
            None if self.list.len() >= MAX_REGIONS || self.depth(thread) >= MAX_DEPTH => around,
            None => {
                self.list.push(key.clone());
                let region = Region(self.list.len() as u32);
                self.index.insert(key, region);
                region
            }
        };
        self.threads.entry(thread).or_default().push(region);
    }

    /// Ends the innermost region of a thread. The end of one that began before the recording is
    /// ignored.
    pub fn pop(&mut self, thread: ThreadId) {
        if let Some(stack) = self.threads.get_mut(&thread) {
            stack.pop();
        }
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
        self.threads.get(&thread).and_then(|stack| stack.last()).copied().unwrap_or_default()
    }

    /// The names of a region and of all regions around it, outermost first.
    pub fn names(&self, region: Region) -> Vec<String> {
        let mut names = Vec::new();
        let mut at = region;
        while let Some((around, name)) = at.0.checked_sub(1).and_then(|i| self.list.get(i as usize)) {
            // NVTX's registered strings have no text here.
            names.extend((!name.is_empty()).then(|| name.clone()));
            at = *around;
        }
        names.reverse();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_nest_on_each_thread() {
        let (a, b) = (ThreadId(1), ThreadId(2));
        let mut r = Regions::default();
        r.pop(a);
        r.push(a, "step");
        r.push(a, "forward");
        r.push(b, "other");
        let forward = r.current(a);
        assert_eq!(r.names(forward), ["step", "forward"]);
        assert_eq!(r.names(r.current(b)), ["other"]);
        r.pop(a);
        r.push(a, "forward");
        assert_eq!(r.current(a), forward, "the same part again");
        r.pop(a);
        r.pop(a);
        assert!(r.names(r.current(a)).is_empty() && r.names(Region(99)).is_empty());
    }
}
