//! Words that streams wait for and a kernel stores, and what that kernel does besides.
//!
//! Owns two questions. Which one launch can have stored a word? And which bytes of an op did that
//! launch access without telling anybody by a release behind it? A stream that waits for the word
//! comes after the release that the kernel stores it by, and after nothing else of the kernel: such
//! bytes are not ordered. Does not know which streams wait, nor for which values.
//!
//! Whether something unseen can have stored the word is answered with yes where in doubt.

use super::leftovers::OF_DEVICES;
use super::{Allocations, Home};
use crate::memory::access::{Access, Cause};
use crate::memory::extent::{Extent, Meet};
use crate::memory::roots::Root;
use std::ops::Range;
use trace::Epoch;

/// A word of memory that only this process's CUDA calls write: its root, and the bytes.
fn word_of(memory: &Allocations, (address, width): (u64, u8)) -> Option<(&Root, Range<u64>)> {
    let place = memory.locate(address)?;
    let Home::Root(start) = place.home else { return None };
    let root = memory.roots.get(start).filter(|root| !root.shared)?;
    let kind = memory.infos.get(&root.id).and_then(|info| info.kind);
    let is_seen =
        kind.is_some_and(|kind| OF_DEVICES.contains(&kind)) && !memory.strays.any_since(0, [place.allocation, root.id]);
    is_seen.then_some((root, place.address..place.address.saturating_add(width.into())))
}

/// All that is known to have written a word, and how. `None`: something unseen may have.
pub fn writers(memory: &Allocations, word: (u64, u8)) -> Option<Vec<(Epoch, Cause)>> {
    let (root, bytes) = word_of(memory, word)?;
    let mut found = Vec::new();
    for at in bytes {
        let byte = Extent::exact(at, at.saturating_add(1));
        root.map.each_at(at, &mut |access| {
            let by = (access.epoch, access.site.cause);
            if access.kind.writes() && access.extent.meet(&byte) != Meet::No && !found.contains(&by) {
                found.push(by);
            }
        });
    }
    Some(found)
}

/// The launch that stored a word, if it is the only one and nothing else can have. `is_past`:
/// whether an op of this epoch is over, or comes before that launch.
pub fn sole_writer(memory: &Allocations, word: (u64, u8), is_past: impl Fn(Epoch) -> bool) -> Option<Epoch> {
    let (root, bytes) = word_of(memory, word)?;
    let mut found: Option<Epoch> = None;
    let mut is_one = true;
    for at in bytes {
        let byte = Extent::exact(at, at.saturating_add(1));
        root.map.each_at(at, &mut |access| {
            if !access.kind.writes() || access.extent.meet(&byte) == Meet::No || is_past(access.epoch) {
                return;
            }
            let is_launch = access.site.cause == Cause::Kernel && access.site.node == 0;
            is_one &= is_launch && found.is_none_or(|epoch| epoch == access.epoch);
            found = Some(access.epoch);
        });
    }
    found.filter(|_| is_one)
}

/// The accesses of a launch that it tells nobody of, each with one of the op that conflicts with
/// it.
pub fn untold_pairs(memory: &Allocations, launch: Epoch, op: Epoch) -> Vec<(Access, Access)> {
    let mut pairs = Vec::new();
    for root in memory.roots.values() {
        let untold = |access: &Access| access.epoch == launch && access.site.node == 0 && access.exclusion.untold;
        let untold: Vec<Access> = root.map.iter().filter(untold).collect();
        if untold.is_empty() {
            continue;
        }
        for access in root.map.iter().filter(|access| access.epoch == op && access.site.node == 0) {
            let meets = |of: &&Access| of.kind.conflicts(access.kind) && of.extent.meet(&access.extent) != Meet::No;
            pairs.extend(untold.iter().find(meets).map(|of| (of.clone(), access.clone())));
        }
    }
    pairs
}
