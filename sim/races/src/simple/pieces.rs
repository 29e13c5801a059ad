//! An access of a warp as pieces, one for each line that it touches. Knows no history.

use crate::events::LANES;
use crate::pair::lanes;
use crate::shadow::{CELLS, Cursor, Line, Piece, Spread, Steps};
use crate::simple::lanes::Groups;

/// How the addresses of lanes lie.
enum Layout {
    /// All at one address.
    One(u64),
    /// Cell after cell: the address of lane 0, if it were one of them. After so many lanes, a power
    /// of two, they begin anew.
    InTurn(u64, u32),
    /// Neighbouring lanes, so many accesses apart.
    Stepping(u32),
    Other,
}

/// Neighbouring lanes, at addresses that are some accesses apart: fewer than a line has cells.
fn stepping(mask: u32, addresses: &[u64; LANES], cell: u32) -> Layout {
    let first = mask.trailing_zeros();
    let count = mask.count_ones() as usize;
    let addresses = &addresses[first as usize..];
    if count < 2 || mask >> first != (u64::MAX >> (64 - count)) as u32 {
        return Layout::Other;
    }
    let apart = addresses[1].wrapping_sub(addresses[0]);
    let steps = apart >> cell;
    if steps << cell != apart || !(1..u64::from(CELLS)).contains(&steps) {
        return Layout::Other;
    }
    let in_turn = addresses[..count].windows(2).all(|two| two[1].wrapping_sub(two[0]) == apart);
    if in_turn { Layout::Stepping(steps as u32) } else { Layout::Other }
}

/// Every so many cells of a line, from the first one on.
const EVERY: [u32; CELLS as usize] = {
    let mut all = [u32::MAX; CELLS as usize];
    let mut steps = 1;
    while steps < CELLS {
        let (mut cells, mut at) = (0, 0);
        while at < CELLS {
            cells |= 1 << at;
            at += steps;
        }
        all[steps as usize] = cells;
        steps += 1;
    }
    all
};

fn layout(mask: u32, addresses: &[u64; LANES], cell: u32) -> Layout {
    let first = mask.trailing_zeros() as usize;
    let (start, others) = (addresses[first], mask & (mask - 1));
    if others == 0 || addresses[others.trailing_zeros() as usize] == start {
        let mut left = others;
        while left != 0 {
            if addresses[left.trailing_zeros() as usize] != start {
                return Layout::Other;
            }
            left &= left - 1;
        }
        return Layout::One(start);
    }
    // The second half of the lanes may do as the first one, or the second quarter already.
    let again = |lanes: &usize| mask == u32::MAX && addresses[*lanes] == start;
    let period = [4, 8, 16].into_iter().find(again).unwrap_or(LANES);
    let lane_0 = start.wrapping_sub((first as u64) << cell);
    let mut left = others;
    while left != 0 {
        let lane = left.trailing_zeros() as usize;
        if addresses[lane] != lane_0.wrapping_add(((lane & (period - 1)) as u64) << cell) {
            return stepping(mask, addresses, cell);
        }
        left &= left - 1;
    }
    Layout::InTurn(lane_0, period as u32)
}

/// A piece that is being put together.
#[derive(Clone, Copy)]
struct Open {
    /// The address of the line.
    line: u64,
    cells: u32,
    lanes: u32,
    table: [u32; CELLS as usize],
}

/// Pieces that are put together at once: lanes may go to and fro between lines.
const OPEN: usize = 4;

/// Cells from which on a piece without an order is kept as one.
const FEW: u32 = 4;

/// Lanes from which on a piece is not narrow.
const WIDE: u32 = 8;

/// Gives each piece of an access to a rule, which says whether it has taken care of it. Returns the
/// lanes of the others. With `apart` lanes of one address are left, too.
pub(super) fn each(
    (mask, addresses, size): (u32, &[u64; LANES], u32),
    apart: bool,
    cursor: &mut Cursor<'_>,
    mut rule: impl FnMut(&mut Line, &Piece<'_>) -> bool,
) -> u32 {
    let first = addresses[mask.trailing_zeros() as usize];
    // An access of more than a cell is one of each of its cells.
    let fine = cursor.cell_at(first);
    let Some(part) = size.checked_sub(fine) else { return mask };
    let cell_of = |address: u64| (address >> fine) as u32 % CELLS;
    let cells_of = |address: u64| (((1u64 << (1 << part)) - 1) as u32) << cell_of(address);
    let line_of = |address: u64| address & !((u64::from(CELLS) << fine) - 1);
    let mut left = 0;
    let mut give = |cursor: &mut Cursor<'_>, address: u64, piece: &Piece<'_>| {
        let done = cursor.line(address, fine).is_some_and(|line| rule(line, piece));
        left |= if done { 0 } else { piece.lanes };
    };
    let layout = match layout(mask, addresses, size) {
        Layout::InTurn(..) if part > 0 => stepping(mask, addresses, size),
        layout => layout,
    };
    let layout = match layout {
        Layout::Stepping(steps) if steps << part >= CELLS => Layout::Other,
        layout => layout,
    };
    match layout {
        Layout::One(_) if apart && !mask.is_power_of_two() => return mask,
        Layout::One(address) => {
            give(
                cursor,
                address,
                &Piece { cells: cells_of(address), spread: Spread::Alike(mask), lanes: mask, is_narrow: false },
            );
        }
        Layout::InTurn(_, period) if apart && period < CELLS => return mask,
        Layout::InTurn(lane_0, period) => {
            let first = cell_of(lane_0);
            // Lanes below this one are in the first line.
            let here = CELLS - first;
            let turn = mask & (u64::MAX >> (64 - period)) as u32;
            let low = turn & (u64::MAX >> (64 - here)) as u32;
            let line = line_of(lane_0);
            // Lane 0, and those that do the same.
            let repeated = (0..CELLS / period).fold(0, |lanes, turn| lanes | 1 << (turn * period));
            let lanes_of = |part: u32| (u64::from(part) * u64::from(repeated)) as u32;
            if low != 0 {
                let spread = Spread::Moving(repeated, -(first as i8));
                give(cursor, line, &Piece { cells: low << first, spread, lanes: lanes_of(low), is_narrow: false });
            }
            let high = turn & !low;
            if high != 0 {
                let spread = Spread::Moving(repeated, here as i8);
                let piece = Piece { cells: high >> here, spread, lanes: lanes_of(high), is_narrow: false };
                give(cursor, line.wrapping_add(u64::from(CELLS) << fine), &piece);
            }
        }
        Layout::Stepping(steps) => {
            let (mut lane, mut left) = (mask.trailing_zeros(), mask.count_ones());
            let (steps, each) = (steps << part, (1 << (1 << part)) - 1);
            while left > 0 {
                let address = addresses[lane as usize];
                let from = cell_of(address);
                let count = (CELLS - from).div_ceil(steps).min(left);
                let firsts = EVERY[steps as usize] & (u64::MAX >> (63 - (count - 1) * steps)) as u32;
                let cells = firsts * each;
                let lanes = (u64::MAX >> (64 - count)) as u32;
                let spread = if count == 1 {
                    Spread::Alike(1 << lane)
                } else {
                    Spread::Stepping(Steps { from: from as u8, lane: lane as u8, by: steps as u8 })
                };
                let piece = Piece { cells: cells << from, spread, lanes: lanes << lane, is_narrow: count < WIDE };
                give(cursor, line_of(address), &piece);
                (lane, left) = (lane + count, left - count);
            }
        }
        Layout::Other => {
            // Where lanes go their own ways, all lines are cut soon.
            if cursor.line(first, fine).is_none() {
                return mask;
            }
            let mut open = [const { Open { line: 0, cells: 0, lanes: 0, table: [0; CELLS as usize] } }; OPEN];
            let (mut count, mut next) = (0, 0);
            for &(address, group) in Groups::of(mask, addresses, size).iter() {
                if apart && !group.is_power_of_two() {
                    return mask;
                }
                let (line, cells) = (line_of(address), cells_of(address));
                let place = match open[..count].iter().position(|open| open.line == line) {
                    Some(place) => place,
                    None if count < OPEN => {
                        count += 1;
                        open[count - 1].line = line;
                        count - 1
                    }
                    None => {
                        close(&open[next], part, |piece| give(cursor, open[next].line, piece));
                        (open[next].line, open[next].cells, open[next].lanes) = (line, 0, 0);
                        let place = next;
                        next = (next + 1) % OPEN;
                        place
                    }
                };
                let piece = &mut open[place];
                piece.cells |= cells;
                piece.lanes |= group;
                for cell in lanes(cells) {
                    piece.table[cell as usize] = group;
                }
            }
            for piece in &open[..count] {
                close(piece, part, |some| give(cursor, piece.line, some));
            }
        }
    }
    left
}

/// Gives a piece with the simplest spread that it has, or cell by cell if these are few.
fn close(open: &Open, part: u32, mut give: impl FnMut(&Piece<'_>)) {
    let first = open.cells.trailing_zeros();
    let lowest = open.table[first as usize];
    let shift = lowest.trailing_zeros();
    let moving = Spread::Moving(lowest >> shift, shift as i8 - first as i8);
    let mut left = open.cells & (open.cells - 1);
    let mut is_moving = left != 0;
    while is_moving && left != 0 {
        let cell = left.trailing_zeros();
        is_moving = moving.at(cell) == open.table[cell as usize];
        left &= left - 1;
    }
    let is_narrow = open.lanes.count_ones() < WIDE;
    let whole = |spread| Piece { cells: open.cells, spread, lanes: open.lanes, is_narrow };
    if is_moving {
        give(&whole(moving));
    } else if open.cells.count_ones() >= FEW || part > 0 {
        give(&whole(Spread::Each(&open.table)));
    } else {
        for cell in lanes(open.cells) {
            let group = open.table[cell as usize];
            give(&Piece { cells: 1 << cell, spread: Spread::Alike(group), lanes: group, is_narrow });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shadow::Shadow;

    /// The lanes at each address, as the pieces have them.
    fn pieces(mask: u32, address: impl Fn(u64) -> u64) -> (Vec<(u64, u32)>, usize) {
        let addresses = std::array::from_fn(|lane| address(lane as u64));
        let (mut shadow, mut count) = (Shadow::default(), 0);
        let mut cursor = shadow.cursor(2);
        let all = crate::shadow::Access { flags: crate::shadow::Access::READ, ..Default::default() };
        let left = each((mask, &addresses, 2), false, &mut cursor, |line, piece| {
            count += 1;
            line.push(&all, piece.cells, piece);
            true
        });
        assert_eq!(left, 0);
        let mut found = Vec::new();
        shadow.each(|address, access| found.push((address, access.lanes)));
        found.sort_unstable();
        (found, count)
    }

    #[test]
    fn pieces_have_each_lane_at_its_address() {
        type Shape = (fn(u64) -> u64, usize);
        let shapes: [Shape; 12] = [
            (|_| 512, 1),
            (|lane| 512 + lane * 4, 1),
            (|lane| 520 + lane * 4, 2),
            (|lane| 1000 + lane * 4, 2),
            (|lane| 512 + lane % 16 * 4, 1),
            (|lane| 512 + lane / 16 * 64, 1),
            (|lane| 512 + (31 - lane) * 4, 1),
            (|lane| 512 + (lane * 7 % 64) * 4, 2),
            (|lane| 512 + lane * 132, 32),
            (|lane| 520 + lane * 24, 6),
            (|lane| 512 + lane * 8, 2),
            (|lane| 512 + lane * 124, 31),
        ];
        for (address, count) in shapes {
            for mask in [!0, 0x8003_0003, 0b110, 1 << 9] {
                let mut wanted = Vec::new();
                for lane in lanes(mask) {
                    let at = address(u64::from(lane));
                    match wanted.iter_mut().find(|(other, _)| *other == at) {
                        Some((_, lanes)) => *lanes |= 1 << lane,
                        None => wanted.push((at, 1u32 << lane)),
                    }
                }
                wanted.sort_unstable();
                let (found, pieces) = pieces(mask, address);
                assert_eq!(found, wanted, "{mask:#x} at {}", address(1));
                assert!(mask != !0 || pieces == count, "{pieces} pieces at {}", address(1));
            }
        }
    }
}
