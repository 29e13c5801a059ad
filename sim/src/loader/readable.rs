//! Whether memory that a program names can be read: images come without a length, and one that is
//! damaged says any.
//!
//! Owns the probe of pages. A page that the simulator itself gave out counts as readable: the CPU
//! may be kept off it for a while (`--host-accesses`), and a read waits until it is not.

use signal_free::calls;

use crate::memory;

/// Pages may be larger; probing a page in parts is only slower.
const PAGE: usize = 4096;

/// The `len` bytes from `at` on; none where some of them cannot be read.
///
/// # Safety
/// Bytes that are mapped stay mapped, and are not written, while the slice lives.
pub(crate) unsafe fn bytes<'a>(at: *const u8, len: usize) -> Option<&'a [u8]> {
    let end = (at as usize).checked_add(len).filter(|end| isize::try_from(*end).is_ok())?;
    let first = at as usize & !(PAGE - 1);
    if at.is_null() || !(first..end).step_by(PAGE).all(is_readable) {
        return None;
    }
    // SAFETY: every page was found readable; the rest is the caller's promise.
    Some(unsafe { std::slice::from_raw_parts(at, len) })
}

/// The text from `at` on, without the zero at its end; none where no zero comes before memory that
/// cannot be read.
///
/// # Safety
/// As for [`bytes`].
pub(crate) unsafe fn text<'a>(at: *const u8) -> Option<&'a [u8]> {
    let mut len = PAGE - (at as usize & (PAGE - 1));
    let mut searched = 0;
    // SAFETY: the caller's promise; what was found readable stays so.
    while !at.is_null() && is_readable((at as usize).checked_add(searched)?) {
        // SAFETY: all pages up to here are readable.
        let known = unsafe { std::slice::from_raw_parts(at, len) };
        if let Some(zero) = known[searched..].iter().position(|byte| *byte == 0) {
            return Some(&known[..searched + zero]);
        }
        searched = len;
        len += PAGE;
    }
    None
}

fn is_readable(address: usize) -> bool {
    calls::is_readable(address as u64)
        || memory::try_get().and_then(|memory| memory.find(address as u64)).is_some_and(|found| found.is_host())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two pages, of which the second cannot be accessed; `tail` lies at the end of the first.
    fn before_a_gap(tail: &[u8]) -> *const u8 {
        // SAFETY: a fresh mapping that is never unmapped; the tail fits its first page.
        unsafe {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let pages = libc::mmap(std::ptr::null_mut(), 2 * PAGE, rights, flags, -1, 0);
            assert_ne!(pages, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(pages.byte_add(PAGE), PAGE, libc::PROT_NONE), 0);
            let at = pages.cast::<u8>().add(PAGE - tail.len());
            std::ptr::copy_nonoverlapping(tail.as_ptr(), at, tail.len());
            at
        }
    }

    #[test]
    fn bytes_end_where_memory_does() {
        for len in [1, 7, 64, PAGE - 1] {
            let at = before_a_gap(&vec![b'x'; len]);
            // SAFETY: the pages stay.
            unsafe {
                assert_eq!(bytes(at, len).map(<[u8]>::len), Some(len));
                for more in [len + 1, len + PAGE, usize::MAX / 2, usize::MAX] {
                    assert_eq!(bytes(at, more), None, "{len} {more}");
                }
                assert_eq!(text(at), None, "{len}");
            }
            let mut ended = vec![b'x'; len];
            ended[len - 1] = 0;
            // SAFETY: as above.
            assert_eq!(unsafe { text(before_a_gap(&ended)) }.map(<[u8]>::len), Some(len - 1));
        }
        // SAFETY: nothing is mapped there.
        unsafe {
            assert_eq!((bytes(std::ptr::null(), 1), bytes(8 as *const u8, 1), text(8 as *const u8)), (None, None, None))
        };
    }
}
