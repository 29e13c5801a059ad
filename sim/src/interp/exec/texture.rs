//! Texture and surface operations, lane by lane. The device executes them.

use crate::interp::interface::{FaultKind, TextureRequest};
use crate::interp::program::{Inst, LANES, Next};
use crate::interp::warp::Warp;

/// Object `a`, opcode text `x`; `z` counts results, coordinates and values (a byte each), whose
/// slots begin at `y`.
#[inline(never)]
pub(crate) fn access(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let program = w.env.program;
    let (results, coordinates, values) = ((i.z & 0xff) as usize, (i.z >> 8 & 0xff) as usize, (i.z >> 16) as usize);
    let slots = &program.slots[i.y as usize..][..results + coordinates + values];
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
        let mut coordinate_bits = [0u32; 16];
        for (to, &slot) in coordinate_bits.iter_mut().zip(&slots[results..results + coordinates]) {
            *to = w.get(slot, lane) as u32;
        }
        let mut value_bits = [0u64; 8];
        for (to, &slot) in value_bits.iter_mut().zip(&slots[results + coordinates..]) {
            *to = w.get(slot, lane);
        }
        let request = TextureRequest {
            opcode: &program.texts[i.x as usize],
            object: w.get(i.a, lane),
            coordinates: &coordinate_bits[..coordinates],
            values: &value_bits[..values],
        };
        match w.env.device.texture(&request) {
            Ok(found) => {
                for (&slot, value) in slots[..results].iter().zip(found) {
                    w.set(slot, lane, value);
                }
            }
            Err(why) => return w.fail(FaultKind::Texture(why), 1 << lane),
        }
    }
    Next::Step
}
