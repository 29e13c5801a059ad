//! The patterns of `--exact=PATTERN`.
//!
//! Owns the comparison of a pattern with a kernel's name. Knows nothing of kernels.

use std::ffi::{CStr, c_char};

/// Whether a kernel is to be measured: `None` wants none, the empty pattern all.
pub fn wants(pattern: Option<&[u8]>, name: *const c_char) -> bool {
    let Some(pattern) = pattern else { return false };
    if pattern.is_empty() {
        return true;
    }
    // SAFETY: null, or a C string of the one who launches.
    !name.is_null() && matches(pattern, unsafe { CStr::from_ptr(name) }.to_bytes())
}

/// Whether a name matches: a pattern without `*` may occur anywhere in it.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    if !pattern.contains(&b'*') {
        return pattern.len() <= name.len() && name.windows(pattern.len().max(1)).any(|w| w == pattern);
    }
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, n));
            p += 1;
        } else if pattern.get(p) == Some(&name[n]) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, n) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_like_globs_or_anywhere() {
        assert!(matches(b"copy", b"_Z6k_copyPKfPfi"));
        assert!(!matches(b"copyx", b"_Z6k_copyPKfPfi"));
        assert!(matches(b"_Z*copy*", b"_Z6k_copyPKfPfi"));
        assert!(!matches(b"copy*", b"_Z6k_copyPKfPfi"));
        assert!(matches(b"*", b""));
        assert!(!matches(b"abc", b"ab"));
    }
}
