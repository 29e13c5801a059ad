//! Texture and surface operations. The device executes them, for all lanes at once.

use crate::exec::per_lane::each;
use crate::interface::{FaultKind, WarpTexture};
use crate::program::{Inst, LANES, Next, Row, Slot};
use crate::warp::Warp;

/// Object `a`, opcode text `x`; `z` counts results, coordinates and values (a byte each), whose
/// slots begin at `y`.
#[inline(never)]
pub(crate) fn access(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let program = w.env.program;
    let (results, coordinates, values) = ((i.z & 0xff) as usize, (i.z >> 8 & 0xff) as usize, (i.z >> 16) as usize);
    let slots = &program.slots[i.y as usize..][..results + coordinates + values];
    const NOTHING: Row = Row([0; LANES]);
    let mut operands = [&NOTHING.0; 24];
    for (operand, &slot) in operands.iter_mut().zip(&slots[results..]) {
        // SAFETY: a live row. Results are written when nobody looks at it any more.
        *operand = unsafe { &(*w.row(slot)).0 };
    }
    let (given, stored) = operands[..coordinates + values].split_at(coordinates);
    let mut found = [[0; LANES]; 4];
    let mut warp = WarpTexture {
        opcode: &program.texts[i.x as usize],
        lanes: mask,
        // SAFETY: as above.
        objects: unsafe { &(*w.row(i.a)).0 },
        coordinates: given,
        values: stored,
        results: &mut found,
    };
    if let Err((lane, why)) = w.env.device.textures(&mut warp) {
        return w.fail(FaultKind::Texture(why), 1 << lane);
    }
    for (&slot, row) in slots[..results].iter().zip(&found) {
        if slot != Slot::NONE {
            each(mask, |l| w.set(slot, l, row[l]));
        }
    }
    Next::Step
}
