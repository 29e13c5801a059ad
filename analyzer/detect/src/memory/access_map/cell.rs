//! One cell of an access map: pieces of accesses in a list, scanned one by one.
//!
//! Owns what a new access does to the pieces that it overlaps, and how a cell is split, joined with
//! its neighbour and swept of dead pieces. Knows nothing of where cells lie. [`super`] proves the
//! rules.

use super::pool::{Held, Pool};
use super::{Clocks, FULL, MAX_PIECES, Ordered, SMALL, Span};
use crate::memory::access::{Access, AccessKind, Exclusion, Site, Touch, conflict};
use crate::memory::{Extent, Precision};
use smallvec::SmallVec;
use trace::{Epoch, TimelineId};

/// A part of an access: its bytes, and enough to see whether it has finished and whether a new
/// access stands for it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(crate) start: u64,
    pub(crate) end: u64,
    time: u64,
    timeline: TimelineId,
    /// Number of the access in the pool, whether it is odd ([`ODD`]), and the bit of its kind in
    /// the lowest ones.
    word: u32,
}

/// Set where an access has gaps, doubts or an exclusion. What makes it so is in the pool, which is
/// not looked at for an access that can only stand for others of its kind.
const ODD: u32 = 1 << AccessKind::BITS;

/// The pieces of a cell, in no order.
pub(super) type Cell = Vec<Piece>;

impl Piece {
    /// A piece of the access with this number in the pool.
    #[inline(always)]
    pub(crate) fn new(number: u32, kind: AccessKind, epoch: Epoch, (start, end): (u64, u64)) -> Self {
        let Epoch { timeline, time } = epoch;
        Self { start, end, time, timeline, word: number << (AccessKind::BITS + 1) | kind as u32 }
    }

    /// The same, of an access that is odd, if it is.
    #[inline(always)]
    fn marked(self, is_odd: bool) -> Self {
        Self { word: self.word | if is_odd { ODD } else { 0 }, ..self }
    }

    /// The epoch of its access.
    #[inline(always)]
    pub(crate) fn epoch(self) -> Epoch {
        Epoch { timeline: self.timeline, time: self.time }
    }

    /// Number of its access in the pool.
    #[inline(always)]
    pub(crate) fn number(self) -> u32 {
        self.word >> (AccessKind::BITS + 1)
    }

    /// Whether the kind of its access is among these bits.
    #[inline(always)]
    pub(crate) fn is_among(self, kinds: u32) -> bool {
        self.word & kinds & ((1 << AccessKind::BITS) - 1) != 0
    }

    #[inline(always)]
    pub(crate) fn overlaps(self, (lo, hi): (u64, u64)) -> bool {
        lo < self.end && self.start < hi
    }

    /// Keeps the part before these bytes. Returns the part after them, which the caller has to
    /// count in the pool.
    #[inline]
    pub(crate) fn cut(&mut self, (lo, hi): (u64, u64)) -> Self {
        Self { start: hi, end: std::mem::replace(&mut self.end, lo), ..*self }
    }
}

/// An access that is being added.
pub(super) struct New<'a> {
    pub(crate) touch: &'a Touch<'a>,
    /// Its number in the pool, once it has a piece.
    number: Option<u32>,
    /// Whether it touches every byte from its first to its last.
    whole: bool,
    /// Whether it may stand for an access without gaps, doubts and exclusions. Most that are made
    /// under a lock or touch a part of their bytes may not, and meet hundreds of those.
    stands_for_plain: bool,
    /// The bits of the kinds that its own kind stands for.
    stands: u32,
}

impl<'a> New<'a> {
    #[inline]
    pub(crate) fn of(touch: &'a Touch<'a>) -> Self {
        let whole = touch.odd.is_none_or(Extent::is_whole);
        let Exclusion { lock, selection, .. } = *touch.exclusion;
        let lists = |odd: &Extent| odd.precision == Precision::Exact && odd.pieces().is_some();
        let stands_for_plain = lock.is_none() && selection.is_none() && (whole || touch.odd.is_some_and(lists));
        Self { touch, number: None, whole, stands_for_plain, stands: touch.kind.stands() }
    }

    /// Whether it is odd itself: see [`ODD`].
    fn is_odd(&self) -> bool {
        self.touch.odd.is_some() || *self.touch.exclusion != Exclusion::NONE
    }

    /// Whether it may stand for the access of a piece, which [`New::covers`] decides.
    #[inline]
    fn may_cover(&self, piece: &Piece) -> bool {
        piece.is_among(self.stands) && (self.stands_for_plain || piece.word & ODD != 0)
    }

    /// Whether everything the earlier access says about the overlapping bytes, this one says too:
    /// rule 3 of what may be forgotten. A guess says less than what is known, what
    /// a condition may leave out less than what surely runs, and what is made under a lock less
    /// than what is not, or under fewer locks. So does what some words in memory select.
    #[inline]
    fn covers(&self, e: &Held) -> bool {
        let Exclusion { lock, selection, .. } = *self.touch.exclusion;
        let Site { guessed, conditional, .. } = *self.touch.site;
        let excused = lock.is_some_and(|new| !e.exclusion().lock.is_some_and(|old| old.holds(new)))
            || selection.is_some() && selection != e.exclusion().selection
            || self.touch.kind.is_atomic() && !self.touch.exclusion.reach_stands_for(&e.exclusion());
        if guessed && !e.site.guessed || conditional && !e.site.conditional || excused {
            return false;
        }
        self.whole
            || match (self.touch.odd, e.odd()) {
                (Some(new), Some(old)) => new.same_shape(old) || new.includes(old),
                (Some(new), None) => new.includes(&e.extent()),
                (None, _) => self.touch.extent().same_shape(&e.extent()),
            }
    }

    /// Adds a piece of it.
    #[inline]
    pub(crate) fn put(&mut self, pieces: &mut Cell, pool: &mut Pool, start: u64, end: u64) {
        let number = match self.number {
            Some(number) => pool.count(number),
            None => pool.hold(self.touch),
        };
        let piece = self.piece(number, start, end);
        pieces.push(piece);
    }

    /// Puts a piece of it in place of another.
    #[inline]
    fn put_over(&mut self, piece: &mut Piece, pool: &mut Pool, start: u64, end: u64) {
        let number = match self.number {
            Some(number) => {
                pool.release(piece.number());
                pool.count(number)
            }
            None => pool.replace(piece.number(), self.touch),
        };
        *piece = self.piece(number, start, end);
    }

    #[inline]
    fn piece(&mut self, number: u32, start: u64, end: u64) -> Piece {
        self.number = Some(number);
        Piece::new(number, self.touch.kind, self.touch.epoch, (start, end)).marked(self.is_odd())
    }
}

/// What becomes of an earlier access when a new one is added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// The new access stands for it.
    Drop,
    /// It stays.
    Keep,
    /// It stays, and races; the flag is [`Ordered::Latent`].
    Race(bool),
    /// It belongs to the same op and stands for the new access.
    Redundant,
}

/// Decides about an earlier access that has not certainly finished.
#[inline(never)]
fn judge(e: &Held, new: &New<'_>, clocks: &impl Clocks) -> Verdict {
    let touch = new.touch;
    if e.is_of(touch.epoch, touch.site.node) {
        let selection = e.exclusion().selection;
        let selects = selection.is_some() && selection != touch.exclusion.selection;
        let reaches_less = !e.kind.is_atomic() || e.exclusion().reach_stands_for(touch.exclusion);
        if !selects && reaches_less && e.kind.stands_for(touch.kind) && e.extent().speaks_for(&touch.extent()) {
            return Verdict::Redundant;
        }
    } else {
        let ordered = clocks.ordered(e.epoch, e.site.node);
        if ordered != Ordered::Yes {
            return if conflict((e.kind, &e.exclusion()), (touch.kind, touch.exclusion)) {
                Verdict::Race(ordered == Ordered::Latent)
            } else {
                Verdict::Keep
            };
        }
    }
    if touch.kind.stands_for(e.kind) && new.covers(e) { Verdict::Drop } else { Verdict::Keep }
}

/// Compares a new access with the pieces that it overlaps between two addresses, cuts off what it
/// stands for, and adds it.
#[inline(always)]
pub(super) fn visit(
    pieces: &mut Cell,
    pool: &mut Pool,
    new: &mut New<'_>,
    within: (u64, u64),
    clocks: &impl Clocks,
    race: &mut impl FnMut(&Access, bool),
) {
    let (lo, hi) = within;
    let (mut races, mut redundant, mut i) = (false, false, 0);
    // An empty piece that is still in the list.
    let mut vacant = None;
    while let Some(piece) = pieces.get_mut(i) {
        i += 1;
        if !piece.overlaps(within) {
            continue;
        }
        let drops = if clocks.finished(piece.epoch()) {
            new.may_cover(piece) && new.covers(pool.get(piece.number()))
        } else {
            let verdict = judge(pool.get(piece.number()), new, clocks);
            races |= matches!(verdict, Verdict::Race(_));
            redundant |= verdict == Verdict::Redundant;
            verdict == Verdict::Drop
        };
        if !drops {
            continue;
        }
        match (piece.start < lo, piece.end > hi) {
            (false, false) if vacant.is_none() => vacant = Some(i - 1),
            (false, false) => {
                pool.release(piece.number());
                i -= 1;
                pieces.swap_remove(i);
            }
            (true, false) => piece.end = lo,
            (false, true) => piece.start = hi,
            (true, true) => {
                let tail = piece.cut(within);
                pool.count(tail.number());
                pieces.push(tail);
            }
        }
    }
    if races {
        let judge = |e: &Held| match judge(e, new, clocks) {
            Verdict::Race(latent) => Some(latent),
            _ => None,
        };
        hand_out(pieces, pool, within, judge, race);
    }
    match vacant.and_then(|i| pieces.get_mut(i)) {
        _ if redundant => put_rest(pieces, pool, new, within, vacant, clocks),
        Some(piece) => new.put_over(piece, pool, lo, hi),
        None => new.put(pieces, pool, lo, hi),
    }
}

/// Adds an access except where an access of the same op stands for it.
#[cold]
fn put_rest(
    pieces: &mut Cell,
    pool: &mut Pool,
    new: &mut New<'_>,
    within: (u64, u64),
    vacant: Option<usize>,
    clocks: &impl Clocks,
) {
    if let Some(i) = vacant {
        pool.release(pieces.swap_remove(i).number());
    }
    let is_redundant = |p: &&Piece| judge(pool.get(p.number()), new, clocks) == Verdict::Redundant;
    let overlapping = pieces.iter().filter(|p| p.overlaps(within));
    let mut others: Vec<(u64, u64)> = overlapping.filter(is_redundant).map(|p| (p.start, p.end)).collect();
    others.sort_unstable();
    let mut from = within.0;
    for (start, end) in others.into_iter().chain([(within.1, within.1)]) {
        if from < start.min(within.1) {
            new.put(pieces, pool, from, start.min(within.1));
        }
        from = from.max(end);
    }
}

/// Passes on the accesses between two addresses that race, by address; at one address the oldest
/// first.
#[cold]
pub(super) fn hand_out(
    pieces: &Cell,
    pool: &Pool,
    within: (u64, u64),
    judge: impl Fn(&Held) -> Option<bool>,
    race: &mut impl FnMut(&Access, bool),
) {
    for e in in_order(pieces, pool, within) {
        if let Some(latent) = judge(e) {
            race(&e.access(), latent);
        }
    }
}

/// The accesses between two addresses, by the first address of each piece; at one address the
/// oldest first.
pub(super) fn in_order<'a>(pieces: &Cell, pool: &'a Pool, within: (u64, u64)) -> impl Iterator<Item = &'a Held> {
    let overlapping = pieces.iter().filter(|p| p.overlaps(within));
    let mut places: SmallVec<[(u64, u64, u32); FULL]> =
        overlapping.map(|p| (p.start.max(within.0), pool.age(p.number()), p.number())).collect();
    places.sort_unstable();
    places.into_iter().map(|(.., number)| pool.get(number))
}

/// Drops what can never race again.
pub(super) fn bury(pieces: &mut Cell, pool: &mut Pool, clocks: &impl Clocks) {
    pieces.retain(|p| {
        let dead = clocks.dead(p.epoch());
        if dead {
            pool.release(p.number());
        }
        !dead
    });
}

/// Whether a cell and the next one have few pieces when joined.
pub(super) fn joint(pieces: &Cell, next: &Cell) -> bool {
    pieces.len().max(next.len()) <= SMALL && {
        let meets = |n: &&Piece| pieces.iter().any(|p| p.word == n.word && p.end == n.start);
        pieces.len() + next.len() - next.iter().filter(meets).count() <= SMALL
    }
}

/// Absorbs the pieces of the next cell.
pub(super) fn join(pieces: &mut Cell, next: Cell, pool: &mut Pool) {
    for n in next {
        match pieces.iter_mut().find(|p| p.word == n.word && p.end == n.start) {
            Some(piece) => {
                piece.end = n.end;
                pool.release(n.number());
            }
            None => pieces.push(n),
        }
    }
}

/// The border within a cell that leaves the fewest pieces on either side, the first of several.
/// `None`: a split gains nothing. Wide accesses over one buffer (a product with split sums, say)
/// ask this again and again of cells with a hundred pieces, so each border is looked up among
/// sorted ends instead of being compared with all pieces.
fn best_border(pieces: &Cell, (from, to): (u64, u64)) -> Option<u64> {
    type Ends = SmallVec<[u64; 4 * FULL]>;
    // As of many accesses to the same bytes.
    if pieces.iter().all(|p| p.start <= from && p.end >= to) {
        return None;
    }
    let mut starts: Ends = pieces.iter().map(|p| p.start).collect();
    let mut ends: Ends = pieces.iter().map(|p| p.end).collect();
    starts.sort_unstable();
    ends.sort_unstable();
    let is_large = pieces.len() > MAX_PIECES;
    // Pieces that start before the border, and that end no later than it.
    let (mut before, mut over) = (0, 0);
    let mut best: Option<(usize, u64)> = None;
    loop {
        let border = match (starts.get(before), ends.get(over)) {
            (Some(start), Some(end)) => *start.min(end),
            (None, Some(end)) => *end,
            (_, None) => break,
        };
        while ends.get(over) == Some(&border) {
            over += 1;
        }
        let (left, right) = (before, pieces.len() - over);
        let both = (left + right).saturating_sub(pieces.len());
        if from < border
            && border < to
            && (both * 4 <= left.min(right) || is_large)
            && best.is_none_or(|(most, _)| left.max(right) < most)
        {
            best = Some((left.max(right), border));
        }
        while starts.get(before) == Some(&border) {
            before += 1;
        }
    }
    best.map(|(_, border)| border)
}

/// Splits a full cell where this leaves the fewest pieces on either side. Returns the upper half.
/// `None`: it is not full, or a split gains nothing because its pieces overlap each other (bounds
/// of scattered work on one buffer). Split, most of these would be in both halves, and a new access
/// would look at more of them. Only a cell with too many pieces is split even so, down to pieces
/// that all lie at the same bytes.
pub(super) fn part(cell: &mut Span<Cell>, pool: &mut Pool) -> Option<Span<Cell>> {
    let pieces = &mut cell.value;
    if pieces.len() < FULL {
        return None;
    }
    let border = best_border(pieces, (cell.start, cell.end))?;
    let mut tail: Cell = pieces.iter().filter(|p| p.end > border).copied().collect();
    for piece in tail.iter_mut().filter(|p| p.start < border) {
        piece.start = border;
        pool.count(piece.number());
    }
    pieces.retain_mut(|p| {
        p.end = p.end.min(border);
        p.start < border
    });
    Some(Span { start: border, end: std::mem::replace(&mut cell.end, border), value: tail })
}

/// Drops the oldest pieces beyond the bound. Returns how many.
pub(super) fn forget(pieces: &mut Cell, pool: &mut Pool) -> u64 {
    let more = pieces.len().saturating_sub(MAX_PIECES);
    if more > 0 {
        pieces.sort_unstable_by_key(|p| pool.age(p.number()));
        pieces.drain(..more).for_each(|p| pool.release(p.number()));
    }
    more as u64
}
