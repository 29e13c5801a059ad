//! How many lanes a pack has, and one vector of the host for each four (or two) of them.

use std::ops::{Deref, DerefMut};

use cranelift_codegen::ir::Value;

use sim_exec::program::LANES;

/// Vectors of four lanes in a pack at most.
pub(crate) const MOST_PARTS: usize = LANES / 4;

/// The lanes of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Width(usize);

impl Width {
    /// From wide to narrow.
    pub(crate) const ALL: [Width; 3] = [Width(LANES), Width(16), Width(8)];
    pub(crate) const NARROWEST: Width = Width(8);

    pub(crate) fn lanes(self) -> usize {
        self.0
    }

    /// Vectors of four lanes.
    pub(crate) fn parts(self) -> usize {
        self.0 / 4
    }

    /// A bit for each lane.
    pub(crate) fn full(self) -> u32 {
        u32::MAX >> (LANES - self.0)
    }

    /// The lanes of a mask whose pack is complete.
    #[inline]
    pub(crate) fn full_packs(self, mask: u32) -> u32 {
        if mask == u32::MAX {
            return mask;
        }
        let mut packs = 0;
        for first in (0..LANES).step_by(self.0) {
            if mask >> first & self.full() == self.full() {
                packs |= self.full() << first;
            }
        }
        packs
    }

    /// The width of that many lanes.
    pub(crate) fn of_lanes(lanes: usize) -> Width {
        match lanes {
            LANES => Width(LANES),
            16 => Width(16),
            _ => Width::NARROWEST,
        }
    }
}

/// The vectors of a pack.
#[derive(Clone, Copy)]
pub(super) struct Vectors<const MOST: usize> {
    values: [Value; MOST],
    count: usize,
}

/// Values of 32 bits, and of 64.
pub(super) type Narrow = Vectors<MOST_PARTS>;
pub(super) type Wide = Vectors<{ 2 * MOST_PARTS }>;

impl<const MOST: usize> Vectors<MOST> {
    pub(super) fn map(self, mut f: impl FnMut(Value) -> Value) -> Self {
        let mut mapped = self;
        mapped.iter_mut().for_each(|value| *value = f(*value));
        mapped
    }
}

impl<const MOST: usize> Deref for Vectors<MOST> {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.values[..self.count]
    }
}

impl<const MOST: usize> DerefMut for Vectors<MOST> {
    fn deref_mut(&mut self) -> &mut [Value] {
        &mut self.values[..self.count]
    }
}

impl<const MOST: usize> IntoIterator for Vectors<MOST> {
    type Item = Value;
    type IntoIter = std::iter::Take<std::array::IntoIter<Value, MOST>>;

    fn into_iter(self) -> Self::IntoIter {
        self.values.into_iter().take(self.count)
    }
}

/// The same of each part.
pub(super) fn each<const MOST: usize>(width: Width, mut f: impl FnMut(usize) -> Value) -> Vectors<MOST> {
    let count = width.parts() * (MOST / MOST_PARTS);
    let mut vectors = Vectors { values: [Value::from_u32(0); MOST], count };
    vectors.iter_mut().enumerate().for_each(|(at, value)| *value = f(at));
    vectors
}

/// One value for all parts.
pub(super) fn all<const MOST: usize>(width: Width, value: Value) -> Vectors<MOST> {
    each(width, |_| value)
}
