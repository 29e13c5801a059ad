//! Mappings of physical memory into virtual addresses (`cuMemMap`).
//!
//! Owns by which address the trace knows memory that is mapped more than once: that of the first
//! mapping that is still known. Does not log: the op functions do.

use super::HandleTable;

/// A mapping of virtual memory.
#[derive(Clone, Copy)]
struct Mapping {
    handle: u64,
    offset: u64,
    size: u64,
    /// Where the first mapping of this memory is, or was: what the trace knows it by. 0: by nothing
    /// any more.
    root: u64,
    /// The address by which the trace knows the first byte of the mapping.
    at: u64,
}

/// All mappings, by address.
#[derive(Default)]
pub struct Mappings(HandleTable<u64, Mapping>);

impl Mappings {
    /// Remembers a mapping of physical memory; answers the address by which the same bytes are
    /// known already.
    pub fn map(&self, handle: u64, offset: u64, ptr: u64, size: u64) -> Option<u64> {
        // These addresses mean something else from now on, whatever was known by them.
        let stale = ptr..ptr.saturating_add(size);
        self.0.iter_mut().for_each(|mut mapping| {
            if stale.contains(&mapping.root) {
                mapping.root = 0;
            }
        });
        let known = self.0.iter().find_map(|mapping| {
            let m = *mapping.value();
            let holds = m.handle == handle && m.offset <= offset && offset + size <= m.offset + m.size;
            (holds && m.root != 0).then(|| (m.root, m.at + (offset - m.offset)))
        });
        let (root, at) = known.unwrap_or((ptr, ptr));
        self.0.insert(ptr, Mapping { handle, offset, size, root, at });
        known.map(|(_, target)| target)
    }

    /// Forgets the mappings that begin in a range; answers the names in the trace that end with
    /// them. Memory that is mapped elsewhere too goes on being known by the address of its first
    /// mapping, though nothing is there any more.
    pub fn unmap(&self, ptr: u64, size: u64) -> Vec<u64> {
        let inside = |start: u64| (ptr..ptr.saturating_add(size)).contains(&start);
        let starts: Vec<u64> = self.0.iter().map(|m| *m.key()).filter(|start| inside(*start)).collect();
        let mut ended = Vec::new();
        for start in starts {
            let Some((_, gone)) = self.0.remove(&start) else { continue };
            let is_left = gone.root != 0 && self.0.iter().any(|m| m.root == gone.root);
            match gone.root {
                0 => ended.push(start),
                root if !is_left => ended.push(root),
                root if root != start => ended.push(start),
                _ => {}
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Virtual memory is known by the address of its first mapping for as long as any mapping of it
    /// is left.
    #[test]
    fn two_mappings_are_one_memory_until_both_are_gone() {
        let h = Mappings::default();
        assert_eq!(h.map(7, 0, 0x1000, 0x100), None);
        assert_eq!(h.map(7, 0x40, 0x2000, 0x40), Some(0x1040));
        assert_eq!(h.map(8, 0, 0x3000, 0x100), None, "another handle");
        assert!(h.unmap(0x1000, 0x100).is_empty(), "what is left is the same memory");
        assert_eq!(h.map(7, 0x40, 0x4000, 0x20), Some(0x1040));
        assert_eq!(h.unmap(0x2000, 0x40), [0x2000], "one name of two");
        assert_eq!(h.unmap(0x4000, 0x20), [0x1000], "the last one takes the memory along");
        assert_eq!(h.unmap(0x3000, 0x100), [0x3000]);
    }

    #[test]
    fn an_address_mapped_anew_is_other_memory() {
        let h = Mappings::default();
        h.map(7, 0, 0x1000, 0x100);
        h.map(7, 0, 0x2000, 0x100);
        h.unmap(0x1000, 0x100);
        assert_eq!(h.map(9, 0, 0x1000, 0x100), None);
        assert_eq!(h.unmap(0x2000, 0x100), [0x2000], "its old root is other memory now");
        assert_eq!(h.unmap(0x1000, 0x100), [0x1000]);
    }
}
