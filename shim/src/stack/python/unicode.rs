//! Text of Python's unicode objects, as UTF-8.
//!
//! Owns reading one string into a buffer. Every page is probed first: names are read once a code
//! object.

use super::super::native::is_readable;
use super::is_pointer;
use super::layout::TextLayout;

/// Longest text kept, in bytes of UTF-8; longer ones lose their beginning (of a path, its end
/// matters).
pub(crate) const LONGEST: usize = 1024;

const LENGTH: u64 = 16;
const STATE: u64 = 32;

/// Whether `len` bytes from `at` can be read.
pub(crate) fn all_readable(at: u64, len: u64) -> bool {
    let Some(last) = len.checked_sub(1).and_then(|len| at.checked_add(len)) else { return false };
    (at >> 12..=last >> 12).all(|page| is_readable(page << 12 | 8))
}

/// The text of the unicode object at `object`. `None` when that is none.
pub(crate) fn read<'a>(layout: &TextLayout, object: u64, buffer: &'a mut [u8; LONGEST]) -> Option<&'a str> {
    if !is_pointer(object) || !all_readable(object, STATE + 8) {
        return None;
    }
    // SAFETY: found readable.
    let (len, state) = unsafe { (((object + LENGTH) as *const u64).read(), ((object + STATE) as *const u32).read()) };
    // Bits of the state: 2 for interning, 3 for the width of a character, then compact, then ASCII.
    let (width, compact, ascii) = (u64::from(state >> 2 & 7), state >> 5 & 1 == 1, state >> 6 & 1 == 1);
    if !compact || !matches!(width, 1 | 2 | 4) || len > 1 << 24 {
        return None;
    }
    let data = object + if ascii { layout.ascii } else { layout.other };
    if len == 0 {
        return Some("");
    }
    if !all_readable(data, len * width) {
        return None;
    }
    // SAFETY: found readable; the text of a string never changes.
    let bytes = unsafe { core::slice::from_raw_parts(data as *const u8, (len * width) as usize) };
    let mut used = LONGEST;
    for unit in bytes.rchunks_exact(width as usize) {
        let mut word = [0; 4];
        word[..unit.len()].copy_from_slice(unit);
        // Lone surrogates stand for bytes of a path that are no UTF-8.
        let character = char::from_u32(u32::from_le_bytes(word)).unwrap_or(char::REPLACEMENT_CHARACTER);
        if used < character.len_utf8() {
            break;
        }
        used -= character.len_utf8();
        character.encode_utf8(&mut buffer[used..]);
    }
    core::str::from_utf8(&buffer[used..]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: TextLayout = TextLayout { ascii: 40, other: 56 };

    fn object(width: u32, ascii: bool, data: &[u8], len: u64) -> Vec<u64> {
        let mut words = vec![0; 64 + data.len().div_ceil(8)];
        words[2] = len;
        words[4] = u64::from(width << 2 | 1 << 5 | u32::from(ascii) << 6);
        let at = if ascii { LAYOUT.ascii } else { LAYOUT.other } as usize;
        for (i, byte) in data.iter().enumerate() {
            words[(at + i) / 8] |= u64::from(*byte) << ((at + i) % 8 * 8);
        }
        words
    }

    fn text(words: &[u64]) -> Option<String> {
        read(&LAYOUT, words.as_ptr() as u64, &mut [0; LONGEST]).map(str::to_string)
    }

    #[test]
    fn all_widths() {
        assert_eq!(text(&object(1, true, b"train.py", 8)).as_deref(), Some("train.py"));
        assert_eq!(text(&object(1, false, &[0xe9, 0x61], 2)).as_deref(), Some("\u{e9}a"));
        assert_eq!(text(&object(2, false, &[0xe5, 0x65, 0x2c, 0x67], 2)).as_deref(), Some("\u{65e5}\u{672c}"));
        assert_eq!(text(&object(4, false, &[0x00, 0xf6, 0x01, 0], 1)).as_deref(), Some("\u{1f600}"));
        assert_eq!(text(&object(2, false, &[0x80, 0xdc], 1)).as_deref(), Some("\u{fffd}"));
        assert_eq!(text(&object(1, true, b"", 0)).as_deref(), Some(""));
        let long = "x/".repeat(2000);
        let read = text(&object(1, true, long.as_bytes(), 4000)).expect("text");
        assert!(read.len() == LONGEST && long.ends_with(&read));
    }

    #[test]
    fn what_is_no_text() {
        assert_eq!(text(&object(3, false, b"abc", 1)), None);
        assert_eq!(text(&object(1, true, b"abc", u64::MAX)), None);
        assert_eq!(text(&object(1, true, b"abc", 1 << 30)), None);
        assert_eq!(text(&[0; 8]), None);
        for address in [0, 8, 12345, 1 << 46, u64::MAX - 7] {
            assert_eq!(read(&LAYOUT, address, &mut [0; LONGEST]), None);
        }
        assert!(!all_readable(u64::MAX - 10, 100) && !all_readable(0x1000, 0));
    }
}
