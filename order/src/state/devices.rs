//! What the rules of order depend on a device for.
//!
//! Owns the compute capability of each device, and from which one on launches may overlap. What an
//! overlap does to clocks is decided in `engine` and `rules`.

use crate::id_map::IdMap;

/// The least compute capability (major * 10 + minor) with programmatic dependent launch. The
/// programming guide names it, and `griddepcontrol` needs it. Below it the attributes, events and
/// edges are accepted, and the driver orders kernels as it does without them.
const PROGRAMMATIC_LAUNCHES: u32 = 90;

/// Whether programmatic dependent launch exists on a device of this compute capability (major * 10
/// + minor). Unknown: no, because then no order is taken away that may be there.
#[must_use]
pub fn has_programmatic_launches(arch: Option<u32>) -> bool {
    arch.is_some_and(|arch| arch >= PROGRAMMATIC_LAUNCHES)
}

/// All devices that were defined.
#[derive(Debug, Default)]
pub(crate) struct Devices(IdMap<u32, u32>);

impl Devices {
    /// A device, by its ordinal.
    pub(crate) fn define(&mut self, ordinal: u32, arch: u32) {
        self.0.insert(ordinal, arch);
    }

    /// Whether programmatic dependent launch exists on a device. Of an unknown one: whether it does
    /// on all that are known.
    pub(crate) fn have_programmatic_launches(&self, ordinal: Option<u32>) -> bool {
        match ordinal.and_then(|ordinal| self.0.get(&ordinal)) {
            Some(&arch) => has_programmatic_launches(Some(arch)),
            None => !self.0.is_empty() && self.0.values().all(|&arch| has_programmatic_launches(Some(arch))),
        }
    }
}
