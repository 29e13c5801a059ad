//! The patterns of `--exact=PATTERN,PATTERN,...`.
//!
//! Owns the comparison of patterns with a kernel's name. Knows nothing of kernels.

use std::ffi::{CStr, c_char};

/// Whether a kernel is to be measured: `None` wants none, the empty text all, otherwise one of the
/// patterns between commas has to match.
pub(super) fn wants(patterns: Option<&[u8]>, name: *const c_char) -> bool {
    let Some(patterns) = patterns else { return false };
    if patterns.is_empty() {
        return true;
    }
    // SAFETY: null, or a C string of the one who launches.
    !name.is_null() && any_matches(patterns, unsafe { CStr::from_ptr(name) }.to_bytes())
}

/// Whether one of the patterns between commas matches. An empty one matches nothing.
fn any_matches(patterns: &[u8], name: &[u8]) -> bool {
    patterns.split(|b| *b == b',').any(|pattern| !pattern.is_empty() && matches(pattern, name))
}

/// Whether a name matches: a pattern without `*` may occur anywhere in it.
pub(super) fn matches(pattern: &[u8], name: &[u8]) -> bool {
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
    use super::{any_matches, matches};

    #[test]
    fn one_pattern_of_several_is_enough() {
        assert!(any_matches(b"no_such,*copy*", b"_Z6k_copyPKfPfi"));
        assert!(any_matches(b"k_copy,no_such", b"_Z6k_copyPKfPfi"));
        assert!(!any_matches(b"no_such,nor_this", b"_Z6k_copyPKfPfi"));
        assert!(!any_matches(b",no_such,", b"_Z6k_copyPKfPfi"), "an empty one matches nothing");
    }

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
