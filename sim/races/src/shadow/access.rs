//! An access as histories keep it, and histories that are too long: accesses of warps become such
//! of whole blocks. Owns no place.

/// An access of lanes of a warp, or of all threads of some blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Access {
    pub(crate) epoch: u64,
    pub(crate) block: u32,
    /// The lanes; of a wide one the last block.
    pub(crate) lanes: u32,
    pub(crate) site: u32,
    /// The warp, or [`Access::WIDE`].
    pub(crate) warp: u8,
    pub(crate) flags: u8,
    /// Its scope in bits 0 and 1, its size from bit 4 on (as a power of two).
    pub(crate) reach: u8,
    /// [`Access::EXACT`], and from bit 4 on the bytes of its word that a compare-and-swap leaves as
    /// they are.
    pub(crate) marks: u8,
}

impl Access {
    pub(crate) const READ: u8 = 1;
    pub(crate) const WRITE: u8 = 2;
    pub(crate) const STRONG: u8 = 4;
    pub(crate) const VOLATILE: u8 = 8;
    pub(crate) const UNCHANGED: u8 = 16;
    pub(crate) const COPY: u8 = 32;
    /// All lanes of the warp executed it.
    pub(crate) const WHOLE: u8 = 64;
    /// The asynchronous proxy carries it out; the epoch is the number of the bulk operation.
    pub(crate) const BULK: u8 = 128;

    pub(crate) const WIDE: u8 = u8::MAX;

    /// In its marks: a wide one is of no more than was there.
    pub(crate) const EXACT: u8 = 1;

    /// [`Access::kept`] of a swap of a word for itself.
    pub(crate) const WORD: u8 = 0b1111;

    #[inline(always)]
    pub(crate) fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    #[inline(always)]
    pub(crate) fn is_exact(&self) -> bool {
        self.marks & Access::EXACT != 0
    }

    /// The bytes of its word that a compare-and-swap leaves as they are.
    #[inline(always)]
    pub(crate) fn kept(&self) -> u8 {
        self.marks >> 4
    }

    #[inline(always)]
    pub(crate) fn is_wide(&self) -> bool {
        self.warp == Access::WIDE
    }

    /// Whether two accesses are of one instruction of a warp in one epoch.
    #[inline]
    pub(crate) fn is_one_with(&self, other: &Access) -> bool {
        self.site == other.site
            && self.warp == other.warp
            && self.epoch == other.epoch
            && self.block == other.block
            && self.flags == other.flags
            && self.reach == other.reach
            && self.marks == other.marks
    }

    /// The last of its blocks.
    #[inline]
    pub(crate) fn last_block(&self) -> u32 {
        if self.is_wide() { self.lanes } else { self.block }
    }

    /// Whether it stands for another one already, as one of whole blocks.
    pub(crate) fn includes(&self, other: &Access) -> bool {
        self.is_wide()
            && self.marks == other.marks
            && (self.epoch, self.reach) == (other.epoch, other.reach)
            && (self.flags ^ other.flags) & !Access::WHOLE == 0
            && (self.block..=self.lanes).contains(&other.block)
    }
}

/// Accesses of a cell that are kept one by one.
pub(crate) const KEPT: usize = 48;

/// Where a history has got so many accesses more, it is tried to join those of different blocks.
pub(crate) const STEP: usize = 16;

/// Whether a history of that length is to be joined. Others may get an access more at no cost.
#[inline]
pub(crate) fn is_long(length: usize) -> bool {
    length > KEPT || length.is_multiple_of(STEP)
}

/// The same of a history in which all accesses are of warps of one block: of those none is joined
/// as long as there is room.
#[inline]
pub(crate) fn is_too_long(length: usize) -> bool {
    length > KEPT
}

/// Makes accesses of whole blocks from those of warps. Returns how many say more than was there.
pub(super) fn widen(history: &mut Vec<Access>) -> u64 {
    // The newest one stays behind all others.
    let Some(last) = history.pop() else { return 0 };
    let inexact = widen_older(history, last.block);
    history.push(last);
    inexact
}

fn widen_older(history: &mut Vec<Access>, newest: u32) -> u64 {
    history.sort_by_key(|access| (access.flags & !Access::WHOLE, access.reach, access.kept(), access.block));
    if history.len() < KEPT {
        // Which threads of the newest block they are is told as long as there is room.
        join_blocks(history, false, |access| access.is_wide() || access.block != newest);
        return 0;
    }
    let mut inexact = 0;
    for force in [false, true] {
        if history.len() <= KEPT / 2 {
            break;
        }
        inexact += join_blocks(history, force, |_| true);
    }
    inexact
}

/// Joins neighbours in a history, of those accesses that may be joined.
fn join_blocks(history: &mut Vec<Access>, force: bool, may: impl Fn(&Access) -> bool) -> u64 {
    let wide = |access: &Access| {
        let last = if access.is_wide() { access.lanes } else { access.block };
        Access { lanes: last, warp: Access::WIDE, ..*access }
    };
    let mut inexact = 0;
    let before = std::mem::take(history);
    for access in before {
        let Some(kept) = history.last_mut().filter(|kept| may(kept) && may(&access)) else {
            history.push(access);
            continue;
        };
        let (first, next) = (wide(kept), wide(&access));
        let kind = |access: &Access| (access.flags | Access::WHOLE, access.reach, access.kept());
        let alike = kind(&first) == kind(&next);
        let joins = next.block <= first.lanes.saturating_add(1);
        let same = joins && first.epoch == next.epoch;
        if !alike || first.is(Access::COPY | Access::BULK) || !(same || force) {
            history.push(access);
            continue;
        }
        inexact += u64::from(!same);
        *kept = Access {
            marks: first.marks & next.marks & if same { u8::MAX } else { !Access::EXACT },
            lanes: first.lanes.max(next.lanes),
            epoch: first.epoch.max(next.epoch),
            ..first
        };
    }
    inexact
}
