//! Copies of tiles and of columns of images by tensor maps (`cp.async.bulk.tensor`), and reductions
//! of them. Maps that a kernel changes are in `changes`.

pub(crate) mod changes;
pub mod map;

use crate::bulk_work::{Move, Source};
use crate::exec::bulk::{
    UNIT, begin, element_update, executing, issuers, number_of, one_element, push, report_to, shared_space, targets,
    there,
};
use crate::exec::load_store::{GENERIC, GLOBAL};
use crate::exec::tensor::map::{SIZE, TensorMap};
use crate::exec::told;
use crate::exec::told::strength::{MAP, PLAIN};
use crate::exec::{refused, unsupported};
use crate::interface::{AccessKind, FaultKind};
use crate::operations::operands;
use crate::program::{Inst, LANES, Next, Slot};
use crate::warp::Warp;

/// What [`tile`] does: from global to shared memory, the other way, and the other way by atomic
/// operations, one for each type of elements, of which the program has a list. And from global
/// memory to several blocks of the cluster.
pub(crate) const LOAD: u32 = 0;
pub(crate) const STORE: u32 = 1;
pub(crate) const REDUCE: u32 = 2;
pub(crate) const LOAD_TO_BLOCKS: u32 = 3;

/// The bytes of a map, which lies among the parameters, in constant or in global memory (PTX ISA,
/// "cp.async.bulk.tensor"). An H200 reports an illegal address for one in local or in shared memory
/// (2026-11-30).
fn map_at(w: &mut Warp<'_>, address: u64, lane: usize) -> Result<TensorMap, FaultKind> {
    if w.is_local(address) {
        return Err(FaultKind::MapPlace(
            "a tensor map in local memory, which copies do not reach (a map among the parameters \
             stays there if it is declared `const __grid_constant__ CUtensorMap`)",
        ));
    }
    if w.is_shared(address) {
        return Err(FaultKind::MapPlace("a tensor map in shared memory, which copies do not reach"));
    }
    let mut bytes = [0; SIZE];
    for (n, word) in bytes.chunks_exact_mut(8).enumerate() {
        let at = w.resolve(GENERIC, address + 8 * n as u64, 8, AccessKind::Read, lane)?;
        // SAFETY: `resolve` vouches for the word.
        word.copy_from_slice(&unsafe { std::ptr::read_unaligned(at as *const [u8; 8]) });
    }
    TensorMap::decode(&bytes)
        .ok_or_else(|| unsupported(w, "a copy by bytes that are no tensor map, or one with what is not executed"))
}

/// `cp.async.bulk.tensor` and `cp.reduce.async.bulk.tensor`: the map, the tile in shared memory,
/// and the coordinates of its first element. A load reports to the barrier.
#[inline(never)]
pub(crate) fn tile(w: &mut Warp<'_>, i: &Inst, mask: u32) -> Next {
    let operands = operands::TensorTile::of(i);
    let mut rows = vec![operands.map(), operands.shared()];
    rows.extend_from_slice(&operands.coordinates(w.env.program)[..5]);
    let mask = executing(w, mask);
    let issuers = if operands.what() == STORE { issuers(w, &rows, mask) } else { mask };
    for lane in (0..LANES).filter(|lane| issuers >> lane & 1 != 0) {
        match one_tile(w, operands::TensorTile::of(i), lane) {
            Ok(Next::Step) => {}
            Ok(other) => return other,
            Err(kind) => return w.fail(kind, 1 << lane),
        }
    }
    Next::Step
}

/// Bytes of a tile that are side by side on both sides: the address in shared memory, and in global
/// memory if they are inside the tensor.
struct Piece {
    shared: u64,
    global: Option<u64>,
    size: u32,
}

/// Where the rows of a tile or of an image's column begin, as coordinates. Along the first axis
/// elements follow.
fn rows(map: &TensorMap, first: &[i64; 5], offsets: [i64; 3]) -> Vec<[i64; 5]> {
    let Some(image) = map.image else {
        let counts = map.counts();
        let row = |number: u32| {
            let (mut rest, mut at) = (number, *first);
            for axis in 1..5 {
                at[axis] += i64::from(rest % counts[axis] * map.tile.step[axis]);
                rest /= counts[axis];
            }
            at
        };
        return (0..counts[1..].iter().product()).map(row).collect();
    };
    // Pixels follow each other in the box, then in that of the next image (PTX ISA, "Im2col mode").
    let last = map.rank - 1;
    let corner = |axis: usize| {
        let (lower, upper) = (i64::from(image.lower[axis - 1]), i64::from(image.upper[axis - 1]));
        (lower, map.tensor.sizes[axis] as i64 - 1 + upper)
    };
    let mut pixel = *first;
    let mut rows = Vec::new();
    for _ in 0..image.pixels {
        let mut at = pixel;
        (1..last).for_each(|axis| at[axis] += offsets[axis - 1]);
        rows.push(at);
        // To the next pixel of the row, the next row, and so on; behind the last one to the next
        // image.
        let ended = (1..last).all(|axis| {
            let (lower, upper) = corner(axis);
            pixel[axis] += i64::from(map.tile.step[axis]);
            let ended = pixel[axis] > upper;
            if ended {
                pixel[axis] = lower;
            }
            ended
        });
        pixel[last] += i64::from(ended);
    }
    rows
}

/// The pieces of a tile or of a column, none longer than a unit of [`UNIT`] bytes. An H200 begins
/// each row at a multiple of the swizzle's width, and stores the last unit of a row whole, also
/// where the tensor ends within it (2026-11-30: `tests/programs/sim/tensor_maps.h200.txt`).
fn pieces(map: &TensorMap, rows: &[[i64; 5]], shared: u64, loads: bool) -> Vec<Piece> {
    let element = map.tensor.element;
    let count = map.image.map_or(map.counts()[0], |image| u32::from(image.channels));
    let pitch = u64::from(count) * element;
    let pitch = if map.swizzle == 0 { pitch } else { pitch.next_multiple_of(u64::from(map.swizzle)) };
    let mut sizes = map.tensor.sizes;
    if !loads {
        sizes[0] = sizes[0].next_multiple_of(u64::from(UNIT) / element);
    }
    let inside = |axis: usize, at: i64| (0..sizes[axis] as i64).contains(&at);
    let mut pieces: Vec<Piece> = Vec::new();
    for (row, first) in rows.iter().enumerate() {
        let is_inside = (1..5).all(|axis| inside(axis, first[axis]));
        let behind = (1..5).map(|axis| first[axis] * map.tensor.strides[axis - 1] as i64);
        let base = map.tensor.address as i64 + behind.sum::<i64>();
        for n in 0..i64::from(count) {
            let linear = shared + row as u64 * pitch + n as u64 * element;
            let there = is_inside && inside(0, first[0] + n);
            let global = there.then(|| (base + (first[0] + n) * element as i64) as u64);
            let place = map.swizzled(linear);
            if let Some(last) = pieces.last_mut()
                && n > 0
                && last.shared / u64::from(UNIT) == place / u64::from(UNIT)
                && last.shared + u64::from(last.size) == place
                && last.global.map(|at| at + u64::from(last.size)) == global
            {
                last.size += element as u32;
            } else {
                pieces.push(Piece { shared: place, global, size: element as u32 });
            }
        }
    }
    pieces
}

/// Why the hardware does not carry out a copy of the tile that begins there. Writes must not begin
/// at negative coordinates (CUDA programming guide, "Tensor Memory Accelerator"). That the first
/// coordinate must be at a multiple of 16 bytes is what an H200 does (2026-11-30): all of 40 tiles
/// that began elsewhere ended in an illegal instruction, and none of 22 others that may be copied.
/// So did 12 of 12 columns that were stored by maps with an upper corner behind the image, and none
/// of 18 others.
fn illegal(map: &TensorMap, first: &[i64; 5], loads: bool) -> Option<&'static str> {
    if let Some(image) = map.image {
        let outside = !loads && image.upper.iter().any(|&corner| corner > 0);
        return outside.then_some("a column is written by a map whose box reaches behind the image");
    }
    if first[0] * map.tensor.element as i64 % 16 != 0 {
        return Some("the first coordinate of a tile is not at a multiple of 16 bytes");
    }
    (!loads && first.iter().any(|&at| at < 0)).then_some("a tile is written from a negative coordinate on")
}

fn one_tile(w: &mut Warp<'_>, i: operands::TensorTile<'_>, lane: usize) -> Result<Next, FaultKind> {
    let address = w.get(i.map(), lane);
    let map = map_at(w, address, lane)?;
    let coordinates = i.coordinates(w.env.program);
    let mut first = [0i64; 5];
    for (axis, coordinate) in first[..map.rank].iter_mut().enumerate() {
        *coordinate = i64::from(w.get(coordinates[axis], lane) as u32 as i32);
    }
    if map.image.is_some() != (i.image() == 1) {
        let what =
            if map.image.is_some() { "a tile by a map of images" } else { "a column of images by a map of tiles" };
        return Err(unsupported(w, what));
    }
    // Offsets have 16 bits, without a sign.
    let offsets = std::array::from_fn(|axis| i64::from(w.get(coordinates[6 + axis], lane) as u16));
    let loads = matches!(i.what(), LOAD | LOAD_TO_BLOCKS);
    if let Some(why) = illegal(&map, &first, loads) {
        return Err(FaultKind::Tile(why));
    }
    let mut pieces = pieces(&map, &rows(&map, &first, offsets), w.get(i.shared(), lane), loads);
    if !loads {
        end_with_memory(w, &map, &mut pieces);
    }
    let blocks = if i.what() == LOAD_TO_BLOCKS { coordinates[5] } else { Slot::NONE };
    for target in targets(w, blocks, lane) {
        let number = number_of(w, !loads);
        let mut moves = Vec::new();
        // Of maps that threads may have changed.
        if w.extent(address).is_some() {
            told::bulk(w, GLOBAL, MAP, (address, SIZE as u32), AccessKind::Read, lane, number);
        }
        for piece in &pieces {
            let place = there(target, piece.shared);
            match one_piece(w, i, lane, &map, (place, piece), number, &mut moves)? {
                Next::Step => {}
                other => return Ok(other),
            }
        }
        // What lies outside counts, too.
        let bytes = pieces.iter().map(|piece| piece.size).sum();
        let report = match loads {
            true => Some(report_to(w, there(target, w.get(i.barrier(), lane)), bytes, lane, number)?),
            false => None,
        };
        begin(w, lane, number, moves, report);
    }
    observe(w, i.what(), lane, &pieces);
    Ok(Next::Step)
}

/// Cuts what is stored behind the tensor where its allocation ends. On a GPU more memory follows
/// there, because no allocation ends within a unit.
fn end_with_memory(w: &mut Warp<'_>, map: &TensorMap, pieces: &mut [Piece]) {
    let end = map.tensor.end();
    for piece in pieces {
        let Some(at) = piece.global.filter(|at| *at < end && at + u64::from(piece.size) > end) else { continue };
        if w.extent(end - 1).is_some_and(|extent| extent.end < at + u64::from(piece.size)) {
            piece.size = (end - at) as u32;
        }
    }
}

/// Tells those who observe global memory, run by run.
fn observe(w: &mut Warp<'_>, what: u32, lane: usize, pieces: &[Piece]) {
    if !w.env.observing || what == REDUCE {
        return;
    }
    let kind = if what == STORE { AccessKind::Write } else { AccessKind::Read };
    let mut run: Option<(u64, u32)> = None;
    for piece in pieces {
        let Some(at) = piece.global else { continue };
        match &mut run {
            Some((start, size)) if *start + u64::from(*size) == at => *size += piece.size,
            _ => {
                if let Some((start, size)) = run.replace((at, piece.size)) {
                    w.observe(PLAIN, 1 << lane, size, kind, &[start; LANES]);
                }
            }
        }
    }
    if let Some((start, size)) = run {
        w.observe(PLAIN, 1 << lane, size, kind, &[start; LANES]);
    }
}

/// Where the CPU finds bytes that are checked element by element.
fn resolved(
    w: &mut Warp<'_>,
    space: u32,
    (address, size): (u64, u32),
    element: u32,
    kind: AccessKind,
    lane: usize,
) -> Result<u64, FaultKind> {
    let first = w.resolve(space, address, element, kind, lane)?;
    for at in (element..size).step_by(element as usize) {
        w.resolve(space, address + u64::from(at), element, kind, lane)?;
    }
    Ok(first)
}

/// Plans to copy a piece between its place in shared memory and global memory. Outside the tensor
/// zeros are loaded, and nothing is stored. A reduction is carried out.
fn one_piece(
    w: &mut Warp<'_>,
    i: operands::TensorTile<'_>,
    lane: usize,
    map: &TensorMap,
    (place, piece): (u64, &Piece),
    number: u64,
    moves: &mut Vec<Move>,
) -> Result<Next, FaultKind> {
    let (what, element, size) = (i.what(), map.tensor.element as u32, piece.size);
    let loads = matches!(what, LOAD | LOAD_TO_BLOCKS);
    let kind = if loads { AccessKind::Write } else { AccessKind::Read };
    let space = shared_space(w);
    let shared = resolved(w, space, (place, size), element, kind, lane)?;
    if !loads && piece.global.is_none() {
        return Ok(Next::Step);
    }
    told::bulk(w, space, PLAIN, (place, size), kind, lane, number + u64::from(loads));
    let Some(address) = piece.global else {
        moves.push(Move { from: Source::These(vec![0; size as usize]), to: shared, size });
        return Ok(Next::Step);
    };
    if what == REDUCE {
        for at in (0..u64::from(size)).step_by(element as usize) {
            let mut operand = [0; 8];
            // SAFETY: `resolved` vouches for the element.
            unsafe { std::ptr::copy((shared + at) as *const u8, operand.as_mut_ptr(), element as usize) };
            w.set(i.element(), lane, address + at);
            w.set(i.operand(), lane, u64::from_le_bytes(operand));
            let Some(update) = w.env.program.reductions[i.reduction() as usize + usize::from(map.kind)] else {
                return Ok(refused(w, 1 << lane));
            };
            let element = element_update(update, i.element(), i.operand(), GLOBAL);
            match one_element(w, &element, lane, number) {
                Next::Step => {}
                other => return Ok(other),
            }
        }
        return Ok(Next::Step);
    }
    let kind = if loads { AccessKind::Read } else { AccessKind::Write };
    let global = resolved(w, GLOBAL, (address, size), element, kind, lane)?;
    told::bulk(w, GLOBAL, PLAIN, (address, size), kind, lane, number + u64::from(!loads));
    let (from, to) = if loads { (global, shared) } else { (shared, global) };
    push(moves, from, to, size);
    Ok(Next::Step)
}
