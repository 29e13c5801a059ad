//! Accesses to memory of several elements at once.

use crate::arch::{read_pair, write_pair};
use crate::exec::load_store::Cell;

/// Reads 2 to 32 bytes. What is aligned and not longer than 16 bytes is read as one, as devices do
/// it: algorithms that pass a value and its flag from block to block in one vector count on it.
///
/// # Safety
/// The bytes stay mapped, and the address is a multiple of their number.
pub(super) unsafe fn read_whole(at: u64, bytes: usize) -> [u64; 4] {
    let mut words = [0; 4];
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            2 => words[0] = u16::read(at),
            4 => words[0] = u32::read(at),
            8 => words[0] = u64::read(at),
            _ => {
                for (part, pair) in words.chunks_exact_mut(2).take(bytes / 16).enumerate() {
                    pair.copy_from_slice(&read_pair(at + part as u64 * 16));
                }
            }
        }
    }
    words
}

/// The same for writing.
///
/// # Safety
/// As of [`read_whole`].
pub(super) unsafe fn write_whole(at: u64, bytes: usize, words: &[u64; 4]) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            2 => u16::write(at, words[0]),
            4 => u32::write(at, words[0]),
            8 => u64::write(at, words[0]),
            _ => {
                for (part, pair) in words.chunks_exact(2).take(bytes / 16).enumerate() {
                    write_pair(at + part as u64 * 16, [pair[0], pair[1]]);
                }
            }
        }
    }
}
