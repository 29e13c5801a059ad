//! Texture and surface operations. The device executes them, for all lanes at once.

use crate::exec::per_lane::each;
use crate::interface::{FaultKind, WarpTexture};
use crate::operations::operands;
use crate::program::{Inst, LANES, Next, Row, Slot};
use crate::warp::Warp;

/// An access to an object, with coordinates and values.
#[inline(never)]
pub(crate) fn access(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let i = operands::Texture::of(i);
    let program = w.env.program;
    let (coordinates, values) = (i.coordinates(program), i.values(program));
    const NOTHING: Row = Row([0; LANES]);
    let mut rows = [&NOTHING.0; 24];
    for (row, &slot) in rows.iter_mut().zip(coordinates.iter().chain(values)) {
        // SAFETY: a live row. Results are written when nobody looks at it any more.
        *row = unsafe { &(*w.row(slot)).0 };
    }
    let (given, stored) = rows[..coordinates.len() + values.len()].split_at(coordinates.len());
    let mut found = [[0; LANES]; 4];
    let mut warp = WarpTexture {
        opcode: &program.texts[i.text() as usize],
        lanes: mask,
        // SAFETY: as above.
        objects: unsafe { &(*w.row(i.object())).0 },
        coordinates: given,
        values: stored,
        results: &mut found,
    };
    if let Err((lane, why)) = w.env.device.textures(&mut warp) {
        return w.fail(FaultKind::Texture(why), 1 << lane);
    }
    for (&slot, row) in i.results(program).iter().zip(&found) {
        if slot != Slot::NONE {
            each(mask, |l| w.set(slot, l, row[l]));
        }
    }
    Next::Step
}
