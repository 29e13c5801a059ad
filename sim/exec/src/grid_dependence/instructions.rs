//! `griddepcontrol` and its machine code, executed for a warp. What a launch makes of its triggers
//! is in the folder's `mod.rs`.

use crate::program::{Inst, Next};
use crate::warp::Warp;

/// `griddepcontrol.launch_dependents`, PREEXIT: of any thread of a block it is for the block.
#[inline(never)]
pub(crate) fn trigger(w: &mut Warp<'_>, _: &Inst, _: u32) -> Next {
    let env = w.env;
    if !env.opening.is_wanted() || std::mem::replace(&mut w.block().triggered, true) {
        return Next::Step;
    }
    env.opening.block_opens(env.overlap);
    w.pc += 1;
    Next::Yield
}

/// `griddepcontrol.wait`, ACQBULK.
#[inline(never)]
pub(crate) fn wait(w: &mut Warp<'_>, _: &Inst, _: u32) -> Next {
    match w.env.overlap {
        Some(overlap) if !overlap.may_pass() => {
            w.awaits_grids = true;
            Next::Yield
        }
        _ => Next::Step,
    }
}
