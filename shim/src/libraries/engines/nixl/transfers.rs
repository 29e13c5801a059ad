//! NIXL's lists of descriptors and its transfers, as far as they are known.
//!
//! Owns these tables, by the handles of the C interface. Does not log.
//!
//! Up to NIXL 0.7 a list may be kept sorted by the library, and places in it are then not those in
//! which descriptors were added. What is named by place in such a list is not known.

use std::collections::HashMap;

/// A descriptor: address and length.
pub(super) type Descriptor = (u64, u64);

/// A list of descriptors.
#[derive(Clone, Default)]
pub(super) struct List {
    /// Whether the descriptors are of memory (and not of a file or an object).
    pub is_memory: bool,
    /// Whether places in it are known.
    pub has_places: bool,
    /// Whether the descriptors are known.
    pub is_known: bool,
    pub descriptors: Vec<Descriptor>,
}

/// A transfer that can be posted, once or again and again.
#[derive(Clone, Default)]
pub(super) struct Transfer {
    pub writes: bool,
    /// Local descriptors; `None`: not known.
    pub local: Option<Vec<Descriptor>>,
    /// Its request while it is under way.
    pub request: u32,
}

/// The tables.
#[derive(Default)]
pub(super) struct Transfers {
    pub lists: HashMap<usize, List>,
    pub prepared: HashMap<usize, List>,
    pub transfers: HashMap<usize, Transfer>,
}

impl List {
    pub(super) fn add(&mut self, start: u64, length: u64) {
        self.descriptors.push((start, length));
    }

    /// The descriptor at a place is removed.
    pub(super) fn remove(&mut self, place: usize) {
        if self.has_places && place < self.descriptors.len() {
            self.descriptors.remove(place);
        } else {
            self.is_known = false;
        }
    }

    /// It has so many descriptors from here on; new ones are empty.
    pub(super) fn resize(&mut self, count: usize) {
        self.is_known &= self.has_places || count >= self.descriptors.len();
        self.descriptors.resize(count, (0, 0));
    }

    pub(super) fn clear(&mut self) {
        self.descriptors.clear();
        self.is_known = true;
    }

    /// All descriptors; `None`: not known.
    pub(super) fn all(&self) -> Option<Vec<Descriptor>> {
        match (self.is_memory, self.is_known) {
            (false, _) => Some(Vec::new()),
            (true, true) => Some(self.descriptors.clone()),
            (true, false) => None,
        }
    }

    /// The descriptors at these places; `None`: not known.
    pub(super) fn at(&self, places: impl Iterator<Item = usize>) -> Option<Vec<Descriptor>> {
        let all = self.all()?;
        if all.is_empty() {
            return Some(all);
        }
        let found = places.map(|place| all.get(place).copied().filter(|_| self.has_places));
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(has_places: bool) -> List {
        let descriptors = vec![(0x100, 8), (0x200, 8), (0x300, 8)];
        List { is_memory: true, has_places, is_known: true, descriptors }
    }

    #[test]
    fn descriptors_are_named_by_place() {
        assert_eq!(list(true).at([2, 0].into_iter()), Some(vec![(0x300, 8), (0x100, 8)]));
        assert_eq!(list(true).at([3].into_iter()), None, "no such place");
        let mut removed = list(true);
        removed.remove(0);
        assert_eq!(removed.at([0].into_iter()), Some(vec![(0x200, 8)]));
    }

    #[test]
    fn places_in_a_sorted_list_are_not_known_and_all_of_it_is() {
        assert_eq!(list(false).at([0].into_iter()), None);
        assert_eq!(list(false).all().map(|all| all.len()), Some(3));
        let mut removed = list(false);
        removed.remove(0);
        assert_eq!(removed.all(), None);
        removed.clear();
        removed.add(0x400, 8);
        assert_eq!(removed.all(), Some(vec![(0x400, 8)]));
    }

    #[test]
    fn a_list_of_files_is_no_memory() {
        let files = List { is_memory: false, ..list(true) };
        assert_eq!(files.all(), Some(Vec::new()));
        assert_eq!(files.at([1].into_iter()), Some(Vec::new()));
    }

    #[test]
    fn a_list_shrinks_and_grows() {
        let mut sized = list(true);
        sized.resize(1);
        assert_eq!(sized.all(), Some(vec![(0x100, 8)]));
        sized.resize(2);
        assert_eq!(sized.all(), Some(vec![(0x100, 8), (0, 0)]));
        let mut sorted = list(false);
        sorted.resize(1);
        assert_eq!(sorted.all(), None);
    }
}
