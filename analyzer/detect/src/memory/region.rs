//! The region of the program that an access is in, as a number.
//!
//! Owns the number, and lists of them. Which regions there are, and how they are nested, is
//! [`crate::state::regions`].

use smallvec::SmallVec;

/// A region with all regions around it; 0: none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Region(pub(crate) u32);

/// Maximum number of regions in a list.
const MOST: usize = 4096;

/// The regions in which something has come up, each once, in their order.
#[derive(Clone, Debug)]
pub struct SeenRegions(SmallVec<[Region; 1]>);

impl SeenRegions {
    /// It has come up in this region.
    pub fn of(region: Region) -> Self {
        Self(SmallVec::from_slice(&[region]))
    }

    /// It has come up again.
    pub fn add(&mut self, region: Region) {
        // What comes up in one region mostly does so several times in a row.
        if self.0.last() != Some(&region) && self.0.len() < MOST && !self.0.contains(&region) {
            self.0.push(region);
        }
    }

    /// The regions.
    pub fn as_slice(&self) -> &[Region] {
        &self.0
    }
}
