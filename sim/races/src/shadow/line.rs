//! A line: neighbouring cells that a warp accesses at once. As long as few instructions have
//! touched it, it keeps a run for each, in place of an access in each cell. Owns both forms and the
//! way from one to the other, not what an access means.

use super::Access;

/// Cells of a line.
pub(crate) const CELLS: u32 = 32;

/// Binary digits of counts of accesses. What is more is not told apart.
const DIGITS: usize = 6;

/// Tables of a line that are told apart when some of them go; a line seldom has more than two.
const TABLES: usize = 256;

/// Which lanes are at each cell of a line.
type Table = [u32; CELLS as usize];

/// Which lanes are at which cells.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Spread<'a> {
    /// These at each cell.
    Alike(u32),
    /// These, of which lane 0 is one, moved upwards by the number of the cell and so many more.
    Moving(u32, i8),
    /// One lane at a cell, and the next one after it so many cells later, and so on.
    Stepping(Steps),
    /// As the table says.
    Each(&'a Table),
}

/// One lane after another, some cells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Steps {
    /// The first of the cells, and the lane there.
    pub(crate) from: u8,
    pub(crate) lane: u8,
    /// Cells from a lane to the next one.
    pub(crate) by: u8,
}

impl Spread<'_> {
    /// The lanes at one of the cells.
    #[inline]
    pub(crate) fn at(&self, cell: u32) -> u32 {
        match *self {
            Spread::Alike(lanes) => lanes,
            Spread::Moving(lanes, more) => (u64::from(lanes) << ((cell as i32 + i32::from(more)) & 63)) as u32,
            Spread::Stepping(Steps { from, lane, by }) => {
                let steps = cell.wrapping_sub(u32::from(from)) / u32::from(by);
                1u32.wrapping_shl(u32::from(lane) + steps)
            }
            Spread::Each(table) => table[cell as usize],
        }
    }

    /// Whether two are known to be the same everywhere.
    #[inline]
    fn is(&self, other: &Spread<'_>) -> bool {
        match (*self, *other) {
            (Spread::Alike(a), Spread::Alike(b)) => a == b,
            (Spread::Moving(a, i), Spread::Moving(b, j)) => (a, i) == (b, j),
            (Spread::Stepping(a), Spread::Stepping(b)) => a == b,
            _ => false,
        }
    }

    /// Whether something is so of the lanes of both at all of some cells.
    #[inline]
    fn all(&self, other: &Spread<'_>, cells: u32, is_so: impl Fn(u32, u32) -> bool) -> bool {
        let mut left = cells;
        while left != 0 {
            let cell = left.trailing_zeros();
            if !is_so(self.at(cell), other.at(cell)) {
                return false;
            }
            left &= left - 1;
        }
        true
    }

    /// Whether the same lanes are at each of some cells.
    #[inline]
    pub(crate) fn equals(&self, other: &Spread<'_>, cells: u32) -> bool {
        self.is(other) || self.all(other, cells, |a, b| a == b)
    }

    /// Whether all lanes of another one are at each of some cells.
    #[inline]
    pub(crate) fn includes(&self, other: &Spread<'_>, cells: u32) -> bool {
        self.is(other) || self.all(other, cells, |a, b| b & !a == 0)
    }

    /// Whether no lane is at one of some cells in both.
    #[inline]
    pub(crate) fn is_apart_from(&self, other: &Spread<'_>, cells: u32) -> bool {
        match (*self, *other) {
            (Spread::Alike(a), Spread::Alike(b)) => a & b == 0,
            (Spread::Moving(1, i), Spread::Moving(1, j)) => i != j,
            _ => self.all(other, cells, |a, b| a & b == 0),
        }
    }
}

/// What of an access of a warp is in one line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece<'a> {
    pub(crate) cells: u32,
    pub(crate) spread: Spread<'a>,
    /// All lanes.
    pub(crate) lanes: u32,
    /// The lanes of the access go their own ways, and few are here.
    pub(crate) is_narrow: bool,
}

/// How a run has its spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Alike,
    Moving(i8),
    Stepping(Steps),
    /// The number of the table.
    Each(u16),
}

/// An access of a warp to cells of a line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    /// Its lanes are those of the spread.
    pub(crate) access: Access,
    pub(crate) cells: u32,
    shape: Shape,
}

/// Reads of some blocks that may become one.
struct Group {
    access: Access,
    cells: u32,
    /// Cells of which there are several.
    twice: u32,
    runs: Vec<usize>,
}

/// A line, in one of its forms.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// In the order of execution at each cell.
    pub(crate) runs: Vec<Run>,
    tables: Vec<Table>,
    /// If it is cut: each cell. What has no room there is in the page.
    cells: Vec<[Access; 2]>,
}

impl Line {
    /// One that is cut, without any access.
    pub(super) fn of_cells() -> Line {
        Line { cells: vec![[Access::default(); 2]; CELLS as usize], ..Line::default() }
    }

    /// Whether it has cells, and no runs.
    #[inline]
    pub(crate) fn is_cut(&self) -> bool {
        !self.cells.is_empty()
    }

    /// A cell of one that is cut.
    #[inline]
    pub(super) fn slots(&mut self, index: u32) -> &mut [Access; 2] {
        &mut self.cells[(index % CELLS) as usize]
    }

    /// Adds the accesses of a cell that are kept here to a list.
    pub(super) fn history(&self, cell: u32, history: &mut Vec<Access>) {
        if let Some(slots) = self.cells.get(cell as usize) {
            history.extend(slots.iter().filter(|access| access.flags != 0));
            return;
        }
        let first = history.len();
        for run in self.runs.iter().filter(|run| run.cells >> cell & 1 != 0) {
            let mut now = Access { lanes: self.spread(run).at(cell), ..run.access };
            // Lanes of one instruction are one access, as late as the last of them.
            let same = |before: &Access| !now.is_wide() && before.is_one_with(&now);
            if let Some(at) = history[first..].iter().position(same) {
                now.lanes |= history.remove(first + at).lanes;
            }
            history.push(now);
        }
    }

    #[inline]
    pub(crate) fn spread(&self, run: &Run) -> Spread<'_> {
        match run.shape {
            Shape::Alike => Spread::Alike(run.access.lanes),
            Shape::Moving(more) => Spread::Moving(run.access.lanes, more),
            Shape::Stepping(steps) => Spread::Stepping(steps),
            Shape::Each(table) => Spread::Each(&self.tables[usize::from(table)]),
        }
    }

    /// Adds an access to some cells of a piece, as the latest one.
    pub(crate) fn push(&mut self, access: &Access, cells: u32, piece: &Piece<'_>) {
        let (lanes, shape) = match piece.spread {
            Spread::Alike(lanes) => (lanes, Shape::Alike),
            Spread::Moving(lanes, more) => (lanes, Shape::Moving(more)),
            Spread::Stepping(steps) => (0, Shape::Stepping(steps)),
            Spread::Each(table) => {
                self.tables.push(*table);
                (0, Shape::Each((self.tables.len() - 1) as u16))
            }
        };
        self.runs.push(Run { access: Access { lanes, ..*access }, cells, shape });
    }

    /// Makes an access of a run that has no cells any more: as [`Line::push`] does, where no other
    /// run is at these cells, or their order does not matter.
    pub(crate) fn replace(&mut self, at: usize, access: &Access, piece: &Piece<'_>) {
        match (self.runs[at].shape, piece.spread) {
            (Shape::Each(table), Spread::Each(lanes)) => {
                self.tables[usize::from(table)] = *lanes;
                let access = Access { lanes: 0, ..*access };
                self.runs[at] = Run { access, cells: piece.cells, shape: Shape::Each(table) };
            }
            (Shape::Each(_), _) => {
                self.tidy();
                self.push(access, piece.cells, piece);
            }
            _ => {
                self.push(access, piece.cells, piece);
                self.runs.swap_remove(at);
            }
        }
    }

    /// Adds an access whose place among the others does not matter, to runs of the same access if
    /// there are any.
    pub(crate) fn join(&mut self, access: &Access, piece: &Piece<'_>) {
        let mut same = None;
        for at in 0..self.runs.len() {
            let run = &self.runs[at];
            if !run.access.is_one_with(access) {
                continue;
            }
            if self.spread(run).is(&piece.spread) {
                self.runs[at].cells |= piece.cells;
                return;
            }
            same = Some(at);
        }
        match same {
            Some(at) => self.merge(at, piece),
            None => self.push(access, piece.cells, piece),
        }
    }

    /// Cells that have so many accesses, or more. Counted for all cells at once: each word has a
    /// digit of all counts.
    pub(crate) fn with(&self, count: u32) -> u32 {
        let (mut digits, mut more) = ([0; DIGITS], 0);
        for run in &self.runs {
            let mut carried = run.cells;
            for digit in &mut digits {
                (*digit, carried) = (*digit ^ carried, *digit & carried);
            }
            more |= carried;
        }
        // From the highest digit: where the counts are the same so far, or more already.
        let mut same = u32::MAX;
        for (at, digit) in digits.iter().enumerate().rev() {
            if count >> at & 1 == 0 {
                more |= same & digit;
                same &= !digit;
            } else {
                same &= digit;
            }
        }
        more | same
    }

    /// Makes accesses of whole blocks of plain reads of other blocks than the newest, at some
    /// cells, where that says no more than was there but which threads they were of: as histories
    /// of cells are joined.
    pub(crate) fn join_blocks(&mut self, newest: u32, cells: u32) {
        let is_plain = |access: &Access| access.flags & !Access::WHOLE == Access::READ;
        let may = |run: &Run| {
            is_plain(&run.access) && run.cells & cells != 0 && (run.access.is_wide() || run.access.block != newest)
        };
        let mut groups: Vec<Group> = Vec::new();
        for (at, run) in self.runs.iter().enumerate().filter(|(_, run)| may(run)) {
            let access = Access { lanes: run.access.last_block(), warp: Access::WIDE, ..run.access };
            groups.push(Group { access, cells: run.cells & cells, twice: 0, runs: vec![at] });
        }
        let kind = |access: &Access| (access.reach, access.epoch, access.marks);
        groups.sort_by_key(|group| (kind(&group.access), group.access.block, group.access.lanes));
        // Those of the same blocks.
        groups.dedup_by(|next, kept| {
            let same = kind(&next.access) == kind(&kept.access)
                && (next.access.block, next.access.lanes) == (kept.access.block, kept.access.lanes);
            if same {
                kept.twice |= kept.cells & next.cells;
                kept.cells |= next.cells;
                kept.runs.append(&mut next.runs);
            }
            same
        });
        // Those of the next blocks, if both have been at the same cells.
        groups.dedup_by(|next, kept| {
            let (a, b) = (&kept.access, &next.access);
            let joins = kind(a) == kind(b) && kept.cells == next.cells && b.block <= a.lanes.saturating_add(1);
            if joins {
                kept.access.lanes = a.lanes.max(b.lanes);
                kept.twice = kept.cells;
                kept.runs.append(&mut next.runs);
            }
            joins
        });
        // What is alone at a cell stays what it is.
        groups.retain(|group| group.twice != 0);
        for group in &groups {
            group.runs.iter().for_each(|&at| self.runs[at].cells &= !group.twice);
        }
        let wide = groups.iter().map(|group| Run { access: group.access, cells: group.twice, shape: Shape::Alike });
        self.runs.splice(..0, wide);
        self.tidy();
    }

    /// Adds the lanes of a piece to a run.
    pub(crate) fn merge(&mut self, at: usize, piece: &Piece<'_>) {
        if self.spread(&self.runs[at]).is(&piece.spread) {
            self.runs[at].cells |= piece.cells;
            return;
        }
        self.change(at, piece.cells, |lanes, cell| lanes | piece.spread.at(cell));
    }

    /// Takes the lanes of a piece out of a run.
    pub(crate) fn subtract(&mut self, at: usize, piece: &Piece<'_>) {
        let run = &self.runs[at];
        let cells = run.cells & piece.cells;
        if piece.spread.includes(&self.spread(run), cells) {
            self.runs[at].cells &= !cells;
        } else {
            self.change(at, cells, |lanes, cell| lanes & !piece.spread.at(cell));
        }
    }

    /// Changes the lanes at some cells of a run, which gets a table.
    fn change(&mut self, at: usize, cells: u32, lanes: impl Fn(u32, u32) -> u32) {
        let run = self.runs[at];
        let number = if let Shape::Each(table) = run.shape {
            usize::from(table)
        } else {
            let spread = self.spread(&run);
            let old = |cell| if run.cells >> cell & 1 != 0 { spread.at(cell) } else { 0 };
            let table = std::array::from_fn(|cell| old(cell as u32));
            self.tables.push(table);
            self.tables.len() - 1
        };
        let (table, mut all) = (&mut self.tables[number], run.cells | cells);
        for cell in (0..CELLS).filter(|cell| cells >> cell & 1 != 0) {
            let old = if run.cells >> cell & 1 != 0 { table[cell as usize] } else { 0 };
            table[cell as usize] = lanes(old, cell);
            if table[cell as usize] == 0 {
                all &= !(1 << cell);
            }
        }
        let shape = Shape::Each(number as u16);
        self.runs[at] = Run { access: Access { lanes: 0, ..run.access }, cells: all, shape };
    }

    /// Leaves out runs without cells, and their tables. Runs without cells say nothing.
    pub(crate) fn tidy(&mut self) {
        self.runs.retain(|run| run.cells != 0);
        if self.tables.is_empty() {
            return;
        }
        let mut used = [0u64; TABLES / 64];
        for run in &self.runs {
            if let Shape::Each(table) = run.shape
                && let Some(word) = used.get_mut(usize::from(table) / 64)
            {
                *word |= 1 << (table % 64);
            }
        }
        // The last table takes the place of one that goes.
        for at in (0..self.tables.len().min(TABLES)).rev().filter(|at| used[at / 64] >> (at % 64) & 1 == 0) {
            self.tables.swap_remove(at);
            let last = Shape::Each(self.tables.len() as u16);
            if let Some(run) = self.runs.iter_mut().find(|run| run.shape == last) {
                run.shape = Shape::Each(at as u16);
            }
        }
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Line>()
            + self.runs.capacity() * size_of::<Run>()
            + self.tables.capacity() * size_of::<Table>()
            + self.cells.len() * size_of::<[Access; 2]>()
    }
}
