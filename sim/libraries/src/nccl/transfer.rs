//! The launches: a contribution goes into a ring, a result comes out.

use std::sync::atomic::{AtomicU32, Ordering};

use half::{bf16, f16};

use super::shared::RANKS;
use crate::model::block::{Block, Dim, ONE};
use crate::model::launch::Call;
use crate::numerics::memory::Memory;

/// Bytes as a block.
fn bytes(count: u64) -> [Dim; 3] {
    [Dim { count, stride: 1 }, ONE, ONE]
}

/// Copies device memory into a ring, and counts.
#[derive(Clone, Copy)]
pub(super) struct Post {
    pub from: u64,
    pub bytes: u64,
    /// Where in this process the ring's place lies.
    pub to: u64,
    pub counter: u64,
    pub value: u32,
}

impl Post {
    pub(super) fn blocks(&self) -> Vec<Block> {
        vec![Block::read(self.from, 1, bytes(self.bytes))]
    }
}

fn count(counter: u64, value: u32) {
    // SAFETY: a counter of a shared file, which is mapped for ever.
    unsafe { (*(counter as *const AtomicU32)).store(value, Ordering::Release) };
}

impl Call for Post {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        if self.bytes > 0 {
            let from = memory.view(self.from, self.bytes, false)?;
            // SAFETY: the view holds the bytes, and so does the ring, of which no other writes this
            // part now.
            unsafe { std::ptr::copy_nonoverlapping(from, self.to as *mut u8, self.bytes as usize) };
        }
        count(self.counter, self.value);
        Some(())
    }
}

/// How contributions become a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combine {
    /// One behind the other.
    Concatenate,
    /// Element by element: `ncclDataType_t` and `ncclRedOp_t`.
    Reduce(i32, i32),
}

/// Writes a result, and counts.
#[derive(Clone, Copy)]
pub(super) struct Take {
    pub combine: Combine,
    /// Where the contributions lie, as many as `ranks`.
    pub parts: [u64; RANKS],
    pub ranks: usize,
    /// Bytes of each part that count.
    pub bytes: u64,
    /// Where the result goes; 0 for a rank that gets none.
    pub to: u64,
    /// The counters of the rings, what they count to; 0 for none.
    pub counters: [u64; RANKS],
    pub value: u32,
}

impl Take {
    fn size(&self) -> u64 {
        self.bytes * if self.combine == Combine::Concatenate { self.ranks as u64 } else { 1 }
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        vec![Block::write(self.to, 1, bytes(self.size()), false)]
    }
}

impl Call for Take {
    fn run(&self, memory: &Memory<'_>) -> Option<()> {
        let (size, part) = (self.size(), self.bytes as usize);
        if self.to != 0 && size > 0 {
            let to = memory.view(self.to, size, true)?;
            let parts = &self.parts[..self.ranks];
            match self.combine {
                Combine::Concatenate => {
                    for (at, &from) in parts.iter().enumerate() {
                        // SAFETY: the view holds all parts, and each ring its own.
                        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.add(at * part), part) };
                    }
                }
                Combine::Reduce(kind, operation) => reduce(parts, to, part, kind, operation),
            }
        }
        self.counters.iter().filter(|&&at| at != 0).for_each(|&at| count(at, self.value));
        Some(())
    }
}

/// Bytes of an element of an `ncclDataType_t` that can be reduced.
pub(super) fn width(kind: i32) -> Option<u64> {
    Some(match kind {
        0 | 1 => 1,
        6 | 9 => 2,
        2 | 3 | 7 => 4,
        4 | 5 | 8 => 8,
        _ => return None,
    })
}

fn reduce(parts: &[u64], to: *mut u8, bytes: usize, kind: i32, operation: i32) {
    macro_rules! whole {
        ($T:ty) => {
            elements::<$T>(parts, to, bytes, |values| match operation {
                0 => values.fold(0, <$T>::wrapping_add),
                1 => values.fold(1, <$T>::wrapping_mul),
                2 => values.max().unwrap_or_default(),
                3 => values.min().unwrap_or_default(),
                _ => values.fold(0, <$T>::wrapping_add) / parts.len() as $T,
            })
        };
    }
    macro_rules! real {
        ($T:ty as $R:ty, $from:expr, $into:expr) => {
            elements::<$T>(parts, to, bytes, |values| {
                let mut values = values.map($from);
                $into(match operation {
                    0 => values.sum(),
                    1 => values.product(),
                    2 => values.reduce(|a, b| if b > a || b.is_nan() { b } else { a }).unwrap_or_default(),
                    3 => values.reduce(|a, b| if b < a || b.is_nan() { b } else { a }).unwrap_or_default(),
                    _ => {
                        let first = values.next().unwrap_or_default();
                        values.fold(first, |a, b| a + b) / parts.len() as $R
                    }
                })
            })
        };
    }
    match kind {
        0 => whole!(i8),
        1 => whole!(u8),
        2 => whole!(i32),
        3 => whole!(u32),
        4 => whole!(i64),
        5 => whole!(u64),
        6 => real!(f16 as f32, f16::to_f32, f16::from_f32),
        9 => real!(bf16 as f32, bf16::to_f32, bf16::from_f32),
        7 => real!(f32 as f32, |x: f32| x, |x: f32| x),
        _ => real!(f64 as f64, |x: f64| x, |x: f64| x),
    }
}

/// Calls `one` with the elements of all parts at each place.
fn elements<T: Copy>(parts: &[u64], to: *mut u8, bytes: usize, one: impl Fn(&mut dyn Iterator<Item = T>) -> T) {
    for at in (0..bytes).step_by(size_of::<T>()) {
        // SAFETY: each part has as many bytes.
        let mut values =
            parts.iter().map(|&part| unsafe { ((part as *const u8).add(at)).cast::<T>().read_unaligned() });
        let value = one(&mut values);
        // SAFETY: so has the result.
        unsafe { to.add(at).cast::<T>().write_unaligned(value) };
    }
}
