//! When reads are put off and when they come to the histories: with the first other access to
//! their page, block after block. Where a thread has read a byte by several instructions in one
//! epoch, the history keeps one of them: that may be another one then. `deferred` has the list;
//! `simple` and `accesses` have what an access means.

use crate::deferred::Deferred;
use crate::detector::State;
use crate::events::{Kind, Memory, Strength, WarpAccess};
use crate::shadow::{Access, Shadow};
use crate::simple::{keep_read, kept, together};

impl State {
    /// Puts off what of an access can be, and brings what was put off to the pages of the rest.
    /// Returns the lanes that are left.
    pub(crate) fn defer(&mut self, access: &WarpAccess<'_>) -> u32 {
        #[cfg(test)]
        if self.no_short_way || self.defers_nothing {
            return access.lanes;
        }
        if access.memory != Memory::Global {
            return access.lanes;
        }
        let mut left = access.lanes;
        if (access.kind, access.strength) == (Kind::Read, Strength::Plain)
            && !access.asynchronous
            && !access.object
            && access.bulk.is_none()
            && matches!(access.size, 1 | 2 | 4 | 8 | 16)
            && let Some(block) = self.blocks.get(&access.block)
            && let Some((epoch, floor)) = together(access, block)
        {
            let now = Access { epoch, ..kept(access, block, Access::READ) };
            left = self.log.add(&now, access.lanes, access.addresses, floor);
        }
        if left != 0 {
            let shadow = self.shadows.entry(Memory::Global).or_default();
            self.log.settle(left, access.addresses, u64::from(access.size), |read| settle(shadow, read));
        }
        left
    }

    /// Brings what was put off to some bytes of global memory.
    pub(crate) fn settle(&mut self, address: u64, size: u64) {
        let shadow = self.shadows.entry(Memory::Global).or_default();
        self.log.settle_bytes(address, size, |read| settle(shadow, read));
    }
}

fn settle(shadow: &mut Shadow, read: &Deferred) {
    keep_read(shadow, &read.access, (&read.addresses, read.size), read.floor);
}
