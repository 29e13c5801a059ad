//! Reads of bytes that nothing has written. Owns the rule, and one record for each instruction;
//! `bits` has what of shared memory is written. What of global memory is written outlives a launch,
//! and others keep it ([`WrittenBytes`]).
//!
//! Shared memory begins a life with its block: no byte of it has a value then, but those that the
//! system sets up. A byte is written from the first write, atomic operation or copy to it on,
//! whatever that is ordered with: races are the matter of the detector.
//!
//! # How sure it is
//!
//! That nothing has written the bytes is a fact. Whether their value matters is not followed, so
//! nothing is [`Grade::Certain`]: a thread may read a neighbour that does not exist and drop it.
//!
//! - [`Grade::Likely`]: nothing has written any byte that a lane reads with one instruction.
//! - [`Grade::Possible`]: something has written some of these bytes, so that the others may be the
//!   padding of a structure or the end of a vector; or the reader is a copy (`cp.async`, a bulk
//!   operation), which carries bytes on and uses none.
//!
//! A load of padding alone is not to be expected: compilers copy a structure by pieces of its
//! alignment, and its padding is shorter than that.

mod bits;

use std::fmt::Debug;

use rustc_hash::FxHashMap;

use self::bits::Bits;
use crate::events::{Kind, LANES, Memory, Scope, Strength, WarpAccess};
use crate::grade::Grade;
use crate::records::{Race, Remedy, Side};

/// Which bytes of global memory have been written since their memory was allocated.
pub trait WrittenBytes: Sync + Debug {
    /// Lanes write so many bytes each.
    fn write(&self, lanes: u32, addresses: &[u64; LANES], size: u32);
    /// Which of the lanes would read some byte that nothing has written.
    fn unwritten(&self, lanes: u32, addresses: &[u64; LANES], size: u32) -> u32;
    /// Whether nothing has written any of these bytes.
    fn is_unwritten(&self, address: u64, size: u32) -> bool;
    /// Where the first of these bytes is that nothing has written.
    fn first_unwritten(&self, address: u64, size: u32) -> Option<u64>;
}

/// The lanes of a mask.
fn lanes(mask: u32) -> impl Iterator<Item = u32> {
    (0..LANES as u32).filter(move |lane| mask >> lane & 1 != 0)
}

/// What is kept of a launch.
#[derive(Debug)]
pub(crate) struct Unwritten {
    global: &'static dyn WrittenBytes,
    shared: FxHashMap<u32, Bits>,
    /// By the instruction, and whether its memory is shared.
    found: FxHashMap<(u32, bool), Race>,
}

impl Unwritten {
    pub(crate) fn new(global: &'static dyn WrittenBytes) -> Unwritten {
        Unwritten { global, shared: FxHashMap::default(), found: FxHashMap::default() }
    }

    /// Bytes of a memory have a value that no thread has given them.
    pub(crate) fn given(&mut self, memory: Memory, address: u64, size: u64) {
        if let Memory::Shared(block) = memory {
            self.shared.entry(block).or_default().write(address, size);
        }
    }

    pub(crate) fn block_ends(&mut self, block: u32) {
        self.shared.remove(&block);
    }

    /// Lanes access memory.
    pub(crate) fn access(&mut self, access: &WarpAccess<'_>) {
        // What operates on a barrier object writes it as a whole at first, which is no read.
        if access.kind != Kind::Write && !access.object {
            self.read(access);
        }
        if access.kind == Kind::Read {
            return;
        }
        match access.memory {
            Memory::Global => self.global.write(access.lanes, access.addresses, access.size),
            Memory::Shared(block) => {
                let bits = self.shared.entry(block).or_default();
                for lane in lanes(access.lanes) {
                    bits.write(access.addresses[lane as usize], access.size.into());
                }
            }
        }
    }

    fn read(&mut self, access: &WarpAccess<'_>) {
        let size = u64::from(access.size);
        let mut met = [(0, false); LANES];
        let mut some = 0;
        match access.memory {
            Memory::Global => {
                some = self.global.unwritten(access.lanes, access.addresses, access.size);
                for lane in lanes(some) {
                    let at = access.addresses[lane as usize];
                    let first = self.global.first_unwritten(at, access.size).unwrap_or(at);
                    met[lane as usize] = (first, self.global.is_unwritten(at, access.size));
                }
            }
            Memory::Shared(block) => {
                let bits = self.shared.entry(block).or_default();
                for lane in lanes(access.lanes) {
                    let (count, first) = bits.missing(access.addresses[lane as usize], size);
                    if let Some(first) = first {
                        met[lane as usize] = (first, count == access.size);
                        some |= 1 << lane;
                    }
                }
            }
        }
        if some != 0 {
            self.add(access, some, &met);
        }
    }

    #[cold]
    fn add(&mut self, access: &WarpAccess<'_>, some: u32, met: &[(u64, bool); LANES]) {
        let shared = if let Memory::Shared(block) = access.memory { Some(block) } else { None };
        let copies = access.asynchronous || access.bulk.is_some();
        // The first lane that reads nothing else is the example; else the first.
        let whole = lanes(some).find(|&lane| met[lane as usize].1);
        let lane = whole.unwrap_or(some.trailing_zeros());
        let side = Side {
            site: access.site,
            kind: access.kind,
            scope: match access.strength {
                Strength::Strong(_, scope) => Some(scope),
                Strength::Volatile => Some(Scope::Device),
                Strength::Plain | Strength::Unsaid => None,
            },
            asynchronous: copies,
            block: access.block,
            thread: Some(access.warp * LANES as u32 + lane),
        };
        let found = Race {
            sides: [side; 2],
            shared,
            address: met[lane as usize].0,
            grade: if whole.is_some() && !copies { Grade::Likely } else { Grade::Possible },
            remedy: Remedy::FirstWrite,
            count: 0,
        };
        let kept = self.found.entry((access.site, shared.is_some())).or_insert(found);
        let count = kept.count + 1;
        let order = |race: &Race| (std::cmp::Reverse(race.grade), race.sides[0].block, race.sides[0].thread);
        if order(&found) < order(kept) {
            *kept = found;
        }
        kept.count = count;
    }

    /// All of them, as [`Remedy::FirstWrite`] says.
    pub(crate) fn found(&self) -> impl Iterator<Item = Race> {
        self.found.values().copied()
    }
}
