//! Edges of the tries in which walks are kept: from a node, with a word that differs, to another
//! path.
//!
//! Owns one hash table of edges without pointers, usable when it is all zeros. Both kinds of walks
//! keep such a table: [`super::native::walk_tree`] and [`super::python::walk_chains`]. Does not
//! know what a node or a word stands for.

/// From a place on a path, with a word that is not the one on the path, to another path.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
struct Edge {
    value: u64,
    from: u16,
    to: [u16; 2],
    generation: u16,
}

/// Homes of edges, at first and at most, as powers of two: few stacks should lie on few pages.
const FIRST_BITS: u32 = 8;
const MOST_BITS: u32 = 13;
/// Edges that have the same home at most.
const NEAR: usize = 8;

/// Edges by where they begin. All zeros: none, once cleared.
pub struct Edges {
    generation: u16,
    bits: u32,
    full: bool,
    table: [Edge; (1 << MOST_BITS) + NEAR],
}

impl Edges {
    #[inline(always)]
    fn home(&self, from: u16, value: u64) -> usize {
        let mixed = (value ^ u64::from(from) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> (64 - self.bits)) as usize
    }

    /// Where the edge leads, if there is one.
    #[inline(always)]
    pub fn get(&self, from: u16, value: u64) -> Option<[u16; 2]> {
        let home = self.home(from, value);
        for edge in &self.table[home..home + NEAR] {
            if edge.generation != self.generation {
                break;
            }
            if edge.value == value && edge.from == from {
                return Some(edge.to);
            }
        }
        None
    }

    /// Adds an edge, unless there is no room: there is more once it is cleared.
    pub fn put(&mut self, from: u16, value: u64, to: [u16; 2]) -> Option<()> {
        let home = self.home(from, value);
        let generation = self.generation;
        let Some(free) = self.table[home..home + NEAR].iter_mut().find(|edge| edge.generation != generation) else {
            self.full = true;
            return None;
        };
        *free = Edge { value, from, to, generation };
        Some(())
    }

    /// Whether [`Edges::clear`] was ever called.
    #[inline]
    pub fn is_new(&self) -> bool {
        self.generation == 0
    }

    /// Forgets all edges.
    pub fn clear(&mut self) {
        self.bits = (self.bits + u32::from(core::mem::take(&mut self.full))).clamp(FIRST_BITS, MOST_BITS);
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            // Those of this generation's last time are still there.
            self.table.fill(Edge { value: 0, from: 0, to: [0; 2], generation: 0 });
            self.generation = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_found_until_they_are_cleared_and_then_there_is_more_room() {
        // SAFETY: zeros are valid.
        let mut edges: Box<Edges> = unsafe { Box::new_zeroed().assume_init() };
        assert!(edges.is_new());
        let mut room = 0;
        loop {
            edges.clear();
            let put = (0..60_000).take_while(|n| edges.put(*n, u64::from(*n) / 3, [*n, 7]).is_some()).count();
            assert!(
                (0..put as u16)
                    .all(|n| edges.get(n, u64::from(n) / 3) == Some([n, 7]) && edges.get(n, 1 << 40).is_none())
            );
            assert_eq!(edges.get(put as u16, put as u64 / 3), None);
            if put <= room {
                break;
            }
            room = put;
        }
        assert!(room > 2000, "{room} edges");
        // Generations come round.
        (0..u32::from(u16::MAX) + 2).for_each(|_| edges.clear());
        assert!((0..60_000).all(|n| edges.get(n, u64::from(n) / 3).is_none()));
    }
}
