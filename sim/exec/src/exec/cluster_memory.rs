//! Addresses in the shared memory of other blocks of a cluster.

use crate::cluster::RANK_SHIFT;
use crate::exec::per_lane::each;
use crate::interface::{AccessKind, FaultKind};
use crate::operations::operands;
use crate::program::{Inst, Next};
use crate::warp::Warp;

/// The part of an address in the window of shared memory that says where in a block's memory it is.
pub(crate) const OFFSET: u64 = (1 << RANK_SHIFT) - 1;

impl Warp<'_> {
    /// The rank in the cluster of the block that runs.
    pub(crate) fn rank(&mut self) -> usize {
        let (index, size) = (self.block().index, self.env.cluster);
        let at = |axis: usize| (index[axis] % size[axis]) as usize;
        at(0) + size[0] as usize * (at(1) + size[1] as usize * at(2))
    }

    /// The host address of an address in the window of shared memory, whose offset is inside a
    /// block's memory. None where the cluster has no such block.
    pub(crate) fn in_window(&mut self, address: u64) -> Option<u64> {
        let (rank, offset) = ((address >> RANK_SHIFT) as usize, address & OFFSET);
        let rank = if self.env.program.machine.is_some() { Some(rank) } else { rank.checked_sub(1) };
        match rank {
            Some(rank) if self.env.cluster != [1; 3] => Some(self.block().members.shared(rank)?.0 + offset),
            None | Some(0) => Some(self.shared_base() + offset),
            Some(_) => None,
        }
    }

    /// As [`Warp::in_window`], for instructions of machine code that reach the block's own memory
    /// only.
    pub(crate) fn in_own_window(&mut self, address: u64) -> Option<u64> {
        let rank = (address >> RANK_SHIFT) as usize;
        (rank == 0 || rank == self.rank()).then(|| self.shared_base() + (address & OFFSET))
    }

    /// The generic address of an address in the window of shared memory, which may be another
    /// block's of the cluster.
    pub(crate) fn shared_to_generic(&mut self, address: u64) -> u64 {
        let rank = (address >> RANK_SHIFT & 0xff) as usize;
        match rank.checked_sub(1).and_then(|rank| self.block().members.shared(rank)) {
            Some((start, _)) => start + (address & OFFSET),
            None => self.shared_base().wrapping_add(address),
        }
    }

    /// The rank of the block of the cluster whose shared memory holds a generic address, and the
    /// offset there. The block's own has a rank too.
    pub(crate) fn shared_owner(&mut self, address: u64) -> Option<(usize, u64)> {
        let members = &self.block().members;
        (0..members.count()).find_map(|rank| {
            let (start, size) = members.shared(rank)?;
            let offset = address.wrapping_sub(start);
            (offset < u64::from(size)).then_some((rank, offset))
        })
    }
}

/// A generic address as one in the window of shared memory: without a rank where it is the block's
/// own.
pub(super) fn window(w: &mut Warp<'_>, address: u64) -> u64 {
    let own = address.wrapping_sub(w.shared_base());
    if own < u64::from(w.block().shared_end) {
        return own;
    }
    w.shared_owner(address).map_or(own, |(rank, offset)| (rank as u64 + 1) << RANK_SHIFT | offset)
}

/// `mapa`: what is at an address (`shared` = 1: in the window of shared memory, else generic) in
/// the block of a rank of the cluster.
#[inline(never)]
pub(crate) fn map_to_block(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::MapToBlock::of(i);
    let mut outside = 0u32;
    each(mask, |l| {
        let (address, rank) = (w.get(i.address(), l), w.get(i.rank(), l) as u32 as usize);
        let value = if i.shared() == 1 {
            (rank < w.block().members.count()).then_some((rank as u64 + 1) << RANK_SHIFT | (address & OFFSET))
        } else {
            let offset = w.shared_owner(address).map(|(_, offset)| offset);
            offset.and_then(|offset| Some(w.block().members.shared(rank)?.0 + offset))
        };
        match value {
            Some(value) => w.set(i.d(), l, value),
            None => outside |= 1 << l,
        }
    });
    if outside != 0 {
        let address = w.get(i.address(), outside.trailing_zeros() as usize);
        let kind = FaultKind::OutOfBounds { address, size: 1, access: AccessKind::Read, space: "shared" };
        return w.fail(kind, outside);
    }
    Next::Step
}

/// `getctarank`: the rank of the block of the cluster that holds an address, as in
/// [`map_to_block`].
#[inline(never)]
pub(crate) fn rank_of(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::RankOf::of(i);
    each(mask, |l| {
        let address = w.get(i.address(), l);
        let generic = if i.shared() == 1 { w.shared_to_generic(address) } else { address };
        let rank = w.shared_owner(generic).map_or(0, |(rank, _)| rank);
        w.set(i.d(), l, rank as u64);
    });
    Next::Step
}
