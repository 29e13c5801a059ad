//! What asynchronous copies (`cp.async`) have still to read. The copy may read its source until its
//! thread has waited for its group, so a write in between races with it, be it by the same thread
//! (PTX ISA, "Data Movement and Conversion Instructions: Asynchronous copy": no order is guaranteed
//! without a wait). Owns the open reads; where they go when they are done is the detector's matter.
//!
//! Nobody can have an open read behind it. So whatever writes there meanwhile races, and no clock
//! is looked at. What is done is a read of its thread at the time of the wait.

use crate::events::{LANES, Lanes, WarpAccess};
use crate::pair::lanes;
use crate::threads::Block;

/// What copies of lanes of a warp, begun by one instruction, have still to read.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) block: u32,
    pub(crate) warp: u32,
    pub(crate) site: u32,
    pub(crate) size: u32,
    /// The lanes whose copy is open.
    pub(crate) open: u32,
    /// Those of which something was overwritten: that has been told.
    pub(crate) overwritten: u32,
    pub(crate) addresses: [u64; LANES],
    groups: [u64; LANES],
    /// All of it lies there.
    range: (u64, u64),
}

impl Source {
    /// The first lane whose open copy reads some of these bytes, and the first of them.
    fn reads(&self, address: u64, size: u64) -> Option<(u32, u64)> {
        let within = |lane: &u32| {
            let at = self.addresses[*lane as usize];
            at < address + size && address < at + u64::from(self.size)
        };
        let lane = lanes(self.open).find(within)?;
        Some((lane, self.addresses[lane as usize].max(address)))
    }
}

/// A write to what a copy has still to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overwritten {
    /// The copy's place in [`Sources::get`].
    pub(crate) source: usize,
    /// The lane that has begun it, and the one that writes.
    pub(crate) lanes: (u32, u32),
    pub(crate) address: u64,
}

/// All of a launch.
#[derive(Debug, Default)]
pub(crate) struct Sources(Vec<Source>);

impl Sources {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Source> {
        self.0.get(at)
    }

    /// Copies begin.
    pub(crate) fn begin(&mut self, block: &mut Block, access: &WarpAccess<'_>) {
        let first = access.warp as usize * LANES;
        let (mut groups, mut range) = ([0; LANES], (u64::MAX, 0));
        for lane in lanes(access.lanes) {
            groups[lane as usize] = block.open_group(first + lane as usize);
            let at = access.addresses[lane as usize];
            range = (range.0.min(at), range.1.max(at + u64::from(access.size)));
        }
        self.0.push(Source {
            block: access.block,
            warp: access.warp,
            site: access.site,
            size: access.size,
            open: access.lanes,
            overwritten: 0,
            addresses: *access.addresses,
            groups,
            range,
        });
    }

    /// Which open reads a write meets: one for each instruction that has begun some.
    pub(crate) fn overwrite(&mut self, access: &WarpAccess<'_>) -> Vec<Overwritten> {
        let size = u64::from(access.size);
        let all = || lanes(access.lanes).map(|lane| access.addresses[lane as usize]);
        let (low, high) = (all().min().unwrap_or(0), all().max().unwrap_or(0) + size);
        let mut met = Vec::new();
        for (source, open) in self.0.iter_mut().enumerate() {
            if open.open == 0 || high <= open.range.0 || open.range.1 <= low {
                continue;
            }
            let mut first = None;
            for lane in lanes(access.lanes) {
                let Some((other, address)) = open.reads(access.addresses[lane as usize], size) else { continue };
                open.overwritten |= 1 << other;
                first = first.or(Some(Overwritten { source, lanes: (other, lane), address }));
            }
            met.extend(first);
        }
        met
    }

    /// Lanes have waited, or an object learns of their copies: what is done then leaves, and is
    /// returned.
    pub(crate) fn end(&mut self, of: Lanes, is_done: impl Fn(usize, u64) -> bool) -> Vec<Source> {
        let mut done = Vec::new();
        for source in self.0.iter_mut().filter(|source| (source.block, source.warp) == (of.block, of.warp)) {
            let first = of.warp as usize * LANES;
            let over = lanes(source.open & of.mask)
                .filter(|&lane| is_done(first + lane as usize, source.groups[lane as usize]))
                .fold(0, |over, lane| over | 1 << lane);
            if over != 0 {
                done.push(Source { open: over, ..source.clone() });
                source.open &= !over;
            }
        }
        if !done.is_empty() {
            self.0.retain(|source| source.open != 0);
        }
        done
    }

    /// A block has ended.
    pub(crate) fn block_ends(&mut self, block: u32) {
        self.0.retain(|source| source.block != block);
    }
}
