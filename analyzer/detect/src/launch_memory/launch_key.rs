//! The key by which the launch cache recognises a launch.
//!
//! Owns the key and its hash: kernel, shape, and the parameter bytes that the kernel's [`Mask`]
//! keeps. Does not store launches ([`super::launch_cache`]).

use crate::launches::effects::Launch;
use crate::launches::param_mask::Mask;
use trace::KernelId;

/// Everything a launch depends on besides its parameters, and a hash of everything that matters:
/// kernel, grid, block, cluster, shared memory, and the parameter bytes that the kernel's [`Mask`]
/// keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LaunchKey {
    /// Hash of everything that matters.
    pub hash: u64,
    /// The kernel, the shape of the launch, and the size of its parameters.
    pub words: [u64; 6],
}

/// A hash that consumes sixteen bytes at a time.
struct Mix(u64);

impl Mix {
    #[inline]
    fn add(&mut self, one: u64, other: u64) {
        let wide = u128::from(self.0 ^ one) * u128::from(other ^ 0x9e37_79b9_7f4a_7c15);
        self.0 = (wide >> 64) as u64 ^ wide as u64 ^ 0xd6e8_feb8_6659_fd93;
    }
}

impl LaunchKey {
    /// See [`LaunchKey::words`].
    #[inline]
    pub fn shape(id: KernelId, l: &Launch<'_>) -> [u64; 6] {
        let ([a, b, c], [d, e, f], [g, h, i]) = (l.shape.grid, l.shape.block, l.shape.cluster);
        let two = |one: u32, other: u32| u64::from(one) | u64::from(other) << 32;
        [two(id.0, a), two(b, c), two(d, e), two(f, g), two(h, i), two(l.shape.shared, l.params.len() as u32)]
    }

    /// See [`LaunchKey::hash`].
    #[inline(always)]
    pub(crate) fn mixed(words: &[u64; 6], params: &[u8], mask: Option<&Mask>) -> u64 {
        let mut mix = Mix(words[5]);
        mix.add(words[0], words[1]);
        mix.add(words[2], words[3]);
        mix.add(words[4], 0);
        mask.unwrap_or(&Mask::default()).each_word(params, |both| mix.add(both as u64, (both >> 64) as u64));
        mix.0
    }

    /// The kernel.
    pub fn kernel(&self) -> KernelId {
        KernelId(self.words[0] as u32)
    }
}
