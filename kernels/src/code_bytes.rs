//! The bytes of an image, which may be a part of a larger piece that others hold too.
//!
//! Owns the sharing: an image of a trace lies in the frame that it was unpacked into, and is
//! neither copied when it is defined nor when it is loaded. Does not know what the bytes mean.

use std::ops::{Deref, Range};
use std::sync::Arc;

/// Bytes of an image.
#[derive(Clone, Debug)]
pub struct CodeBytes {
    whole: Arc<Vec<u8>>,
    part: Range<usize>,
}

impl CodeBytes {
    /// These bytes of a larger piece. They are copied where most of the piece is something else,
    /// which would be held with them, and where they are none of it.
    #[must_use]
    pub fn within(whole: &Arc<Vec<u8>>, bytes: &[u8]) -> Self {
        let part = place(whole, bytes).filter(|part| part.len() >= whole.capacity() / 2);
        part.map_or_else(|| bytes.to_vec().into(), |part| Self { whole: whole.clone(), part })
    }

    /// A part of these bytes, or a copy of others.
    #[must_use]
    pub fn part(&self, bytes: &[u8]) -> Self {
        Self::within(&self.whole, bytes)
    }
}

/// Where in a piece these bytes lie, if they lie there.
fn place(whole: &[u8], bytes: &[u8]) -> Option<Range<usize>> {
    let start = bytes.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let part = start..start.checked_add(bytes.len())?;
    (part.end <= whole.len()).then_some(part)
}

impl From<Vec<u8>> for CodeBytes {
    fn from(bytes: Vec<u8>) -> Self {
        let part = 0..bytes.len();
        Self { whole: Arc::new(bytes), part }
    }
}

impl Deref for CodeBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.whole.get(self.part.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_part_is_shared_and_others_are_copied() {
        let whole = Arc::new((0..=255_u8).cycle().take(4096).collect::<Vec<_>>());
        let shares = |code: &CodeBytes| {
            code.as_ptr_range().start >= whole.as_ptr_range().start
                && code.as_ptr_range().end <= whole.as_ptr_range().end
        };
        let other = whole[..].to_vec();
        for (bytes, is_shared) in [
            (&whole[..], true),
            (&whole[100..4000], true),
            (&whole[100..200], false),
            (&other[..], false),
            (&other[100..4000], false),
        ] {
            let kept = CodeBytes::within(&whole, bytes);
            assert_eq!(&*kept, bytes);
            assert_eq!(shares(&kept), is_shared, "{} bytes", bytes.len());
            assert_eq!(&*kept.part(&kept[1..]), &bytes[1..]);
        }
        assert!(CodeBytes::within(&whole, &[]).is_empty());
        let kept = CodeBytes::within(&whole, &whole[1..]);
        drop(other);
        assert_eq!(Arc::strong_count(&whole), 2);
        drop(kept);
        assert_eq!(Arc::strong_count(&whole), 1);
    }
}
