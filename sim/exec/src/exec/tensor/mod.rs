//! Copies of tiles by tensor maps (`cp.async.bulk.tensor`), and reductions of tiles.

pub mod map;

use crate::exec::load_store::{GENERIC, GLOBAL, SHARED};
use crate::exec::mbarrier::bytes_came;
use crate::exec::tensor::map::{SIZE, TensorMap};
use crate::interface::{AccessKind, CompileError, FaultKind};
use crate::program::{Inst, LANES, Next, Slot};
use crate::warp::Warp;

/// What the low bits of `x` of [`tile`] mean: from global to shared memory, the other way, and the
/// other way by atomic operations, one for each type of elements: the number of the first among the
/// program's stands in bits 32 and up.
pub(crate) const LOAD: u64 = 0;
pub(crate) const STORE: u64 = 1;
pub(crate) const REDUCE: u64 = 2;

/// An operation that there is not for this type of elements.
pub(crate) fn refused(w: &mut Warp<'_>, _: &Inst, mask: u32) -> Next {
    let kind = unsupported(w, "a reduction of a tile of this type");
    w.fail(kind, mask)
}

fn unsupported(w: &Warp<'_>, instruction: &str) -> FaultKind {
    FaultKind::Unsupported(Box::new(CompileError::Unsupported {
        instruction: instruction.to_owned(),
        function: w.env.kernel.name.clone(),
        line: w.env.program.line(w.pc),
    }))
}

/// The bytes of a map, which may lie among the parameters.
fn map_at(w: &mut Warp<'_>, address: u64, lane: usize) -> Result<TensorMap, FaultKind> {
    let mut bytes = [0; SIZE];
    for (n, word) in bytes.chunks_exact_mut(8).enumerate() {
        let at = w.resolve(GENERIC, address + 8 * n as u64, 8, AccessKind::Read, lane)?;
        // SAFETY: `resolve` vouches for the word.
        word.copy_from_slice(&unsafe { std::ptr::read_unaligned(at as *const [u8; 8]) });
    }
    TensorMap::decode(&bytes).ok_or_else(|| unsupported(w, "a tensor map that the simulated driver did not encode"))
}

/// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`, at once: the map at `a`, the tile in
/// shared memory at `b`, the coordinates of its first element in the slots from `y` on. A load
/// tells the barrier at `c`. A reduction finds its element's address and operand in `d` and `z`.
#[inline(never)]
pub(crate) fn tile(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
        match one_tile(w, i, lane) {
            Ok(Next::Step) => {}
            Ok(other) => return other,
            Err(kind) => return w.fail(kind, 1 << lane),
        }
    }
    Next::Step
}

fn one_tile(w: &mut Warp<'_>, i: &Inst, lane: usize) -> Result<Next, FaultKind> {
    let address = w.get(i.a, lane);
    let map = map_at(w, address, lane)?;
    let program = w.env.program;
    let mut first = [0i64; 5];
    for (axis, coordinate) in first[..map.rank].iter_mut().enumerate() {
        *coordinate = i64::from(w.get(program.slots[i.y as usize + axis], lane) as u32 as i32);
    }
    let (counts, element) = (map.counts(), map.tensor.element);
    let shared = w.get(i.b, lane);
    let inside = |axis: usize, at: i64| (0..map.tensor.sizes[axis] as i64).contains(&at);
    let rows: u32 = counts[1..].iter().product();
    for row in 0..rows {
        let (mut rest, mut base, mut is_inside) = (row, map.tensor.address as i64, true);
        for axis in 1..5 {
            let at = first[axis] + i64::from(rest % counts[axis] * map.step[axis]);
            rest /= counts[axis];
            is_inside &= inside(axis, at);
            base += at * map.tensor.strides[axis - 1] as i64;
        }
        // What of the row lies inside the tensor.
        let low = (-first[0]).clamp(0, i64::from(counts[0]));
        let high = (map.tensor.sizes[0] as i64 - first[0]).clamp(low, i64::from(counts[0]));
        let (low, high) = if is_inside { (low, high) } else { (0, 0) };
        let there = |n: i64| (base + (first[0] + n) * element as i64) as u64;
        for n in 0..i64::from(counts[0]) {
            let place = map.swizzled(shared + (u64::from(row) * u64::from(counts[0]) + n as u64) * element);
            let is_there = (low..high).contains(&n);
            match one_element(w, i, lane, &map, place, is_there.then(|| there(n)))? {
                Next::Step => {}
                other => return Ok(other),
            }
        }
        if low < high && w.env.observing && i.x & 15 != REDUCE {
            let kind = if i.x & 15 == LOAD { AccessKind::Read } else { AccessKind::Write };
            w.observe(i, 1 << lane, (high - low) as u32 * element as u32, kind, &[there(low); LANES]);
        }
    }
    if i.x & 15 == LOAD {
        // What lies outside counts, too.
        let barrier = w.get(i.c, lane);
        bytes_came(w, barrier, counts.iter().product::<u32>() * element as u32, lane)?;
    }
    Ok(Next::Step)
}

/// Copies an element between its place in shared memory and global memory. Outside the tensor zeros
/// are loaded, and nothing is stored.
fn one_element(
    w: &mut Warp<'_>,
    i: &Inst,
    lane: usize,
    map: &TensorMap,
    place: u64,
    global: Option<u64>,
) -> Result<Next, FaultKind> {
    let (loads, size) = (i.x & 15 == LOAD, map.tensor.element as u32);
    let kind = if loads { AccessKind::Write } else { AccessKind::Read };
    let shared = w.resolve(SHARED, place, size, kind, lane)? as *mut u8;
    let bytes = size as usize;
    let Some(address) = global else {
        if loads {
            // SAFETY: `resolve` vouches for the element.
            unsafe { shared.write_bytes(0, bytes) };
        }
        return Ok(Next::Step);
    };
    if i.x & 15 == REDUCE {
        let mut operand = [0; 8];
        // SAFETY: as above.
        unsafe { std::ptr::copy(shared, operand.as_mut_ptr(), bytes) };
        w.set(i.d, lane, address);
        w.set(Slot(i.z), lane, u64::from_le_bytes(operand));
        let update = w.env.program.reductions[(i.x >> 32) as usize + usize::from(map.kind)];
        let element = Inst { d: Slot(i.z), a: i.d, b: Slot(i.z), c: Slot(i.z), x: 0, y: 0, z: 1 << 4 | GLOBAL, ..*i };
        return Ok(update(w, &element, 1 << lane));
    }
    let kind = if loads { AccessKind::Read } else { AccessKind::Write };
    let global = w.resolve(GLOBAL, address, size, kind, lane)? as *mut u8;
    let (from, to) = if loads { (global, shared) } else { (shared, global) };
    // SAFETY: `resolve` vouches for both.
    unsafe { std::ptr::copy(from, to, bytes) };
    Ok(Next::Step)
}
