//! Copies of tiles by tensor maps (`cp.async.bulk.tensor`), and reductions of tiles.

pub mod map;

use crate::exec::load_store::{GENERIC, GLOBAL, SHARED};
use crate::exec::mbarrier::{bytes_came, element_update};
use crate::exec::tensor::map::{SIZE, TensorMap};
use crate::exec::told;
use crate::exec::told::strength::PLAIN;
use crate::exec::{refused, unsupported};
use crate::interface::{AccessKind, FaultKind};
use crate::operations::operands;
use crate::program::{Inst, LANES, Next};
use crate::warp::Warp;

/// What [`tile`] does: from global to shared memory, the other way, and the other way by atomic
/// operations, one for each type of elements, of which the program has a list.
pub(crate) const LOAD: u32 = 0;
pub(crate) const STORE: u32 = 1;
pub(crate) const REDUCE: u32 = 2;

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

/// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`, at once: the map, the tile in
/// shared memory, and the coordinates of its first element. A load tells the barrier.
#[inline(never)]
pub(crate) fn tile(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
        match one_tile(w, operands::TensorTile::of(i), lane) {
            Ok(Next::Step) => {}
            Ok(other) => return other,
            Err(kind) => return w.fail(kind, 1 << lane),
        }
    }
    Next::Step
}

fn one_tile(w: &mut Warp<'_>, i: operands::TensorTile<'_>, lane: usize) -> Result<Next, FaultKind> {
    let address = w.get(i.map(), lane);
    let map = map_at(w, address, lane)?;
    let coordinates = i.coordinates(w.env.program);
    let mut first = [0i64; 5];
    for (axis, coordinate) in first[..map.rank].iter_mut().enumerate() {
        *coordinate = i64::from(w.get(coordinates[axis], lane) as u32 as i32);
    }
    let (counts, element) = (map.counts(), map.tensor.element);
    let shared = w.get(i.shared(), lane);
    let inside = |axis: usize, at: i64| (0..map.tensor.sizes[axis] as i64).contains(&at);
    let rows: u32 = counts[1..].iter().product();
    for row in 0..rows {
        let (mut rest, mut base, mut is_inside) = (row, map.tensor.address as i64, true);
        for axis in 1..5 {
            let at = first[axis] + i64::from(rest % counts[axis] * map.tile.step[axis]);
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
        if low < high && w.env.observing && i.what() != REDUCE {
            let kind = if i.what() == LOAD { AccessKind::Read } else { AccessKind::Write };
            w.observe(PLAIN, 1 << lane, (high - low) as u32 * element as u32, kind, &[there(low); LANES]);
        }
    }
    if i.what() == LOAD {
        // What lies outside counts, too.
        let barrier = w.get(i.barrier(), lane);
        bytes_came(w, barrier, counts.iter().product::<u32>() * element as u32, lane)?;
    }
    Ok(Next::Step)
}

/// Copies an element between its place in shared memory and global memory. Outside the tensor zeros
/// are loaded, and nothing is stored.
fn one_element(
    w: &mut Warp<'_>,
    i: operands::TensorTile<'_>,
    lane: usize,
    map: &TensorMap,
    place: u64,
    global: Option<u64>,
) -> Result<Next, FaultKind> {
    let (loads, size) = (i.what() == LOAD, map.tensor.element as u32);
    let kind = if loads { AccessKind::Write } else { AccessKind::Read };
    let shared = w.resolve(SHARED, place, size, kind, lane)? as *mut u8;
    told::lane(w, SHARED, PLAIN, (place, size), kind, lane);
    let bytes = size as usize;
    let Some(address) = global else {
        if loads {
            // SAFETY: `resolve` vouches for the element.
            unsafe { shared.write_bytes(0, bytes) };
        }
        return Ok(Next::Step);
    };
    if i.what() == REDUCE {
        let mut operand = [0; 8];
        // SAFETY: as above.
        unsafe { std::ptr::copy(shared, operand.as_mut_ptr(), bytes) };
        w.set(i.element(), lane, address);
        w.set(i.operand(), lane, u64::from_le_bytes(operand));
        let Some(update) = w.env.program.reductions[i.reduction() as usize + usize::from(map.kind)] else {
            return Ok(refused(w, 1 << lane));
        };
        let element = element_update(update, i.element(), i.operand(), GLOBAL);
        return Ok((element.run)(w, &element, 1 << lane));
    }
    let kind = if loads { AccessKind::Read } else { AccessKind::Write };
    let global = w.resolve(GLOBAL, address, size, kind, lane)? as *mut u8;
    told::lane(w, GLOBAL, PLAIN, (address, size), kind, lane);
    let (from, to) = if loads { (global, shared) } else { (shared, global) };
    // SAFETY: `resolve` vouches for both.
    unsafe { std::ptr::copy(from, to, bytes) };
    Ok(Next::Step)
}
