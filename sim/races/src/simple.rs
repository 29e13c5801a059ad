//! The short way for most accesses of most kernels. It finds no race and changes nothing but
//! histories that hold the past of the accessing thread and of its block; it leaves everything else
//! to the detector.

use std::cmp::Ordering;

use crate::detector::State;
use crate::events::{Kind, LANES, Memory, Strength, WarpAccess};
use crate::pair::lanes;
use crate::shadow::Access;

impl State {
    /// Takes care of lanes that have to do with their own past and that of the block only: most
    /// accesses of most kernels. Returns the others.
    pub(crate) fn simple(&mut self, access: &WarpAccess<'_>) -> u32 {
        let all = access.lanes;
        let shared = access.memory != Memory::Global;
        if access.strength != Strength::Plain
            || access.kind == Kind::Atomic
            || access.asynchronous
            || access.object
            || !matches!(access.size, 1 | 2 | 4 | 8 | 16)
            || shared && self.has_objects
        {
            return all;
        }
        // Lanes at one address are one access. Others mostly go upwards or downwards.
        let mut steps = lanes(all)
            .zip(lanes(all).skip(1))
            .map(|(lane, next)| access.addresses[next as usize].cmp(&access.addresses[lane as usize]));
        if let Some(first) = steps.next()
            && (first == Ordering::Equal || steps.any(|step| step != first))
        {
            return all;
        }
        let Some(block) = self.blocks.get(&access.block) else { return all };
        let (shadow, cell) = (self.shadows.entry(access.memory).or_default(), access.size.trailing_zeros());
        let whole = if access.executing == block.alive(access.warp) { Access::WHOLE } else { 0 };
        let (writes, warp) = (access.kind == Kind::Write, access.warp as u8);
        let mut left = 0;
        for lane in lanes(all) {
            let thread = &block.threads[access.warp as usize * LANES + lane as usize];
            let now = Access {
                epoch: thread.epoch,
                block: access.block,
                lanes: 1 << lane,
                site: access.site,
                warp,
                flags: whole | if writes { Access::WRITE } else { Access::READ },
                reach: (cell as u8) << 4,
                exact: true,
            };
            let behind = |before: &Access| {
                before.block == now.block
                    && before.flags & (Access::STRONG | Access::COPY) == 0
                    && !before.is_wide()
                    && (before.epoch < thread.floor || before.warp == warp && before.lanes == now.lanes)
            };
            let done = match shadow.cell(access.addresses[lane as usize], cell) {
                None => false,
                Some(history) => match (writes, &*history) {
                    (_, [first, _]) if first.flags == 0 => {
                        history[0] = now;
                        true
                    }
                    (true, [first, second]) => {
                        let last = access.unchanged >> lane & 1 == 0;
                        let all = last && behind(first) && (second.flags == 0 || behind(second));
                        if all {
                            *history = [now, Access::default()];
                        }
                        all
                    }
                    (false, [first, second]) if first.is(Access::WRITE) => {
                        let second_is = second.flags == 0 || !second.is(Access::WRITE) && behind(second);
                        let all = behind(first) && second_is;
                        if all {
                            history[1] = now;
                        }
                        all
                    }
                    (false, [first, second]) => {
                        let all = second.flags == 0 && behind(first);
                        if all {
                            history[0] = now;
                        }
                        all
                    }
                },
            };
            left |= u32::from(!done) << lane;
        }
        left
    }
}
