//! The tables behind CUDA's handles: what is known of each stream, event, kernel, graph.
//!
//! Owns the state of one trace that handles are keys of. Nothing here asks the driver, takes a
//! place in the order, or writes to the trace: [`crate::ids`] and [`crate::ops`] do. So these types
//! lie below the log, whose `Core` holds them.
//!
//! [`tables`] holds all the tables and uses the types of its siblings, which do not know each
//! other: [`arrays`] (opaque arrays and their shapes), [`kernel`] (a launched kernel and how its
//! parameters are gathered), [`graph_execs`] (an executable graph with its nodes), [`mappings`]
//! (virtual memory), [`unlisted_images`] (images whose variables were not asked for),
//! [`image_files`] (the files that images are mapped from), [`tensor_maps`] (the tensor maps that
//! the driver made). [`descriptor_marks`] names memory and pools that descriptors carry.
//! [`captures`] counts the streams that are being captured, for the whole process.

pub mod arrays;
pub mod captures;
pub mod descriptor_marks;
pub mod graph_execs;
pub mod image_files;
pub mod kernel;
pub mod mappings;
pub mod tables;
pub mod tensor_maps;
pub mod unlisted_images;

use std::hash::BuildHasherDefault;

use dashmap::DashMap;

/// A table of handles, or of addresses.
pub type HandleTable<K, V> = DashMap<K, V, BuildHasherDefault<HandleHasher>>;

/// A fast hash for handles: addresses, which differ in their middle bits.
#[derive(Default, Clone, Copy)]
pub struct HandleHasher(u64);

impl std::hash::Hasher for HandleHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, word: u64) {
        let mixed = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }
}
