//! The words of a fragment of `wmma` in the order of its entries, and how they come from and go to
//! the registers of a warp.
//!
//! A lane has the same number of entries in the same number of registers as every other, and they
//! follow those of the lane before (`matrix::of_fragment`). So moving a fragment is transposing a
//! matrix of a row for each register and a column for each lane. Does not know what entries mean.

use crate::arch::in_widest_vectors;
use crate::exec::matrix::Element;
use crate::program::{LANES, Slot};
use crate::warp::Warp;

/// Entries that a fragment has at most.
pub(in crate::exec) const MOST: usize = 512;

/// The words of a fragment. Entries of 64 bits are two each, and half as many.
#[repr(C, align(64))]
pub(in crate::exec) struct Words(pub(in crate::exec) [u32; MOST]);

/// What a register holds in all lanes.
type Lanes = [u64; LANES];

impl Words {
    /// As entries of 64 bits.
    #[inline(always)]
    pub(super) fn longs(&self) -> &[u64; MOST / 2] {
        // SAFETY: as large, aligned for them, and any bits are a number.
        unsafe { &*(&raw const self.0).cast() }
    }

    #[inline(always)]
    pub(super) fn longs_mut(&mut self) -> &mut [u64; MOST / 2] {
        // SAFETY: as above.
        unsafe { &mut *(&raw mut self.0).cast() }
    }

    /// As entries of 16 bits.
    #[inline(always)]
    pub(super) fn halves(&self) -> &[u16; 2 * MOST] {
        // SAFETY: as above.
        unsafe { &*(&raw const self.0).cast() }
    }

    #[inline(always)]
    pub(super) fn halves_mut(&mut self) -> &mut [u16; 2 * MOST] {
        // SAFETY: as above.
        unsafe { &mut *(&raw mut self.0).cast() }
    }

    /// Takes a fragment from 1, 2, 4, 8 or 16 registers, of which it fills all.
    pub(in crate::exec) fn gather(&mut self, w: &Warp<'_>, slots: &[Slot], element: Element) {
        let mut rows = [std::ptr::null(); 16];
        // The rows of a warp are live, and nobody writes them meanwhile.
        rows.iter_mut().zip(slots).for_each(|(row, &slot)| *row = w.row(slot).cast());
        let (rows, words) = (&rows[..slots.len().min(16)], &mut *self);
        if element == Element::F64 {
            in_widest_vectors!(gather_longs(rows: &[*const Lanes], words: &mut Words));
        } else {
            in_widest_vectors!(gather_words(rows: &[*const Lanes], words: &mut Words));
        }
    }

    /// Puts a fragment into 1, 2, 4, 8 or 16 registers, of which it fills all.
    pub(in crate::exec) fn scatter(&self, w: &mut Warp<'_>, slots: &[Slot], element: Element) {
        let mut rows = [std::ptr::null_mut(); 16];
        // The rows of a warp are live, and no reference to them is there.
        rows.iter_mut().zip(slots).for_each(|(row, &slot)| *row = w.row_mut(slot).cast());
        let (rows, words) = (&rows[..slots.len().min(16)], self);
        if element == Element::F64 {
            in_widest_vectors!(scatter_longs(rows: &[*mut Lanes], words: &Words));
        } else {
            in_widest_vectors!(scatter_words(rows: &[*mut Lanes], words: &Words));
        }
    }
}

/// Calls a generic function with a number of registers that is known when it is compiled.
macro_rules! with_count {
    ($count:expr, $call:ident($($argument:expr),*)) => {
        match $count {
            2 => $call::<2>($($argument),*),
            4 => $call::<4>($($argument),*),
            8 => $call::<8>($($argument),*),
            _ => unreachable!("fragments have 1, 2, 4, 8 or 16 registers"),
        }
    };
}

/// The words of two registers side by side, lane by lane.
#[inline(always)]
fn paired(low: &Lanes, high: &Lanes) -> Lanes {
    let mut pairs = [0; LANES];
    for (pair, (low, high)) in pairs.iter_mut().zip(low.iter().zip(high)) {
        *pair = low & 0xffff_ffff | high << 32;
    }
    pairs
}

#[inline(always)]
fn gather_words(rows: &[*const Lanes], words: &mut Words) {
    #[inline(always)]
    fn pairs<const PAIRS: usize>(rows: &[*const Lanes], words: &mut Words) {
        let mut pairs = [[0; LANES]; PAIRS];
        for (pair, rows) in pairs.iter_mut().zip(rows.as_chunks::<2>().0) {
            // SAFETY: as `gather` says of rows.
            *pair = unsafe { paired(&*rows[0], &*rows[1]) };
        }
        interleave(&pairs, words.longs_mut());
    }
    match rows.len() {
        1 => {
            // SAFETY: as above.
            let row = unsafe { &*rows[0] };
            words.0.iter_mut().zip(row).for_each(|(to, &from)| *to = from as u32);
        }
        2 => pairs::<1>(rows, words),
        count => with_count!(count / 2, pairs(rows, words)),
    }
}

#[inline(always)]
fn gather_longs(rows: &[*const Lanes], words: &mut Words) {
    #[inline(always)]
    fn longs<const COUNT: usize>(rows: &[*const Lanes], words: &mut Words) {
        let mut longs = [[0; LANES]; COUNT];
        // SAFETY: as above.
        longs.iter_mut().zip(rows).for_each(|(long, &row)| *long = unsafe { *row });
        interleave(&longs, words.longs_mut());
    }
    match rows.len() {
        1 => longs::<1>(rows, words),
        count => with_count!(count, longs(rows, words)),
    }
}

#[inline(always)]
fn scatter_words(rows: &[*mut Lanes], words: &Words) {
    #[inline(always)]
    fn pairs<const PAIRS: usize>(rows: &[*mut Lanes], words: &Words) {
        for (at, pair) in apart::<PAIRS>(words.longs()).iter().enumerate() {
            // SAFETY: as `scatter` says of rows.
            unsafe { &mut *rows[2 * at] }.iter_mut().zip(pair).for_each(|(to, &pair)| *to = pair & 0xffff_ffff);
            // SAFETY: as above; the other reference is gone.
            unsafe { &mut *rows[2 * at + 1] }.iter_mut().zip(pair).for_each(|(to, &pair)| *to = pair >> 32);
        }
    }
    match rows.len() {
        1 => {
            // SAFETY: as above.
            let row = unsafe { &mut *rows[0] };
            row.iter_mut().zip(&words.0).for_each(|(to, &from)| *to = u64::from(from));
        }
        2 => pairs::<1>(rows, words),
        count => with_count!(count / 2, pairs(rows, words)),
    }
}

#[inline(always)]
fn scatter_longs(rows: &[*mut Lanes], words: &Words) {
    #[inline(always)]
    fn longs<const COUNT: usize>(rows: &[*mut Lanes], words: &Words) {
        // SAFETY: as above.
        rows.iter().zip(apart::<COUNT>(words.longs())).for_each(|(&row, long)| unsafe { *row = long });
    }
    match rows.len() {
        1 => longs::<1>(rows, words),
        count => with_count!(count, longs(rows, words)),
    }
}

/// A column for each lane becomes a row for each. Two steps, because only transposing two rows is
/// code that compilers vectorise well.
#[inline(always)]
fn interleave<const COUNT: usize>(rows: &[Lanes; COUNT], into: &mut [u64; MOST / 2]) {
    let (couples, last) = rows.as_chunks::<2>();
    if let [row] = last {
        into[..LANES].copy_from_slice(row);
        return;
    }
    for (at, [even, odd]) in couples.iter().enumerate() {
        let mut couple = [[0; 2]; LANES];
        for (to, (&even, &odd)) in couple.iter_mut().zip(even.iter().zip(odd)) {
            *to = [even, odd];
        }
        for (to, &couple) in into.as_chunks_mut::<2>().0.iter_mut().skip(at).step_by(COUNT / 2).zip(&couple) {
            *to = couple;
        }
    }
}

/// The opposite of [`interleave`].
#[inline(always)]
fn apart<const COUNT: usize>(from: &[u64; MOST / 2]) -> [Lanes; COUNT] {
    let mut rows = [[0; LANES]; COUNT];
    for (lane, own) in from.as_chunks::<COUNT>().0.iter().take(LANES).enumerate() {
        for (row, &value) in rows.iter_mut().zip(own) {
            row[lane] = value;
        }
    }
    rows
}
