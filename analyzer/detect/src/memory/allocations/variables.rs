//! `__device__` variables, by name.
//!
//! Owns the stand-in addresses of variables whose real address was not queried yet, and the real
//! addresses once they are known.

use super::Allocations;
use crate::memory::Allocation;
use trace::ImageId;

/// Stand-in addresses of variables whose real address is unknown: no canonical address of x86-64 or
/// AArch64 begins like this.
const NOWHERE: u64 = 0xffee_0000_0000_0000;

/// A variable of an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variable {
    /// Where its accesses are kept: its address, or a stand-in if kernels ran before that was
    /// known.
    place: u64,
    /// Its address, if it is known.
    address: Option<u64>,
}

impl Allocations {
    /// The real address of a variable, if it is known.
    pub fn address_of(&self, image: ImageId, name: &str) -> Option<u64> {
        self.globals.get(&(image, Box::from(name)))?.address
    }

    /// Address and size of a `__device__` variable of an image. One whose address was not queried
    /// yet gets a place of its own where no memory can be, so that kernels that share it are
    /// compared.
    pub(crate) fn global(&mut self, image: ImageId, name: &str) -> Option<(u64, u64)> {
        /// Distance between stand-ins, enough for any size.
        const APART: u64 = 1 << 34;
        let key = (image, Box::from(name));
        if let Some(variable) = self.globals.get(&key) {
            return self.root(variable.place).map(|info| (info.ptr, info.size));
        }
        let ptr = NOWHERE + self.globals.len() as u64 % (1 << 12) * APART;
        self.globals.insert(key, Variable { place: ptr, address: None });
        self.alloc(Allocation::variable(ptr, APART / 2));
        Some((ptr, APART / 2))
    }

    /// Sets the real address of a `__device__` variable.
    pub fn name_global(&mut self, image: ImageId, name: &str, info: Allocation) {
        let key = (image, Box::from(name));
        let address = Some(info.ptr);
        match self.globals.get_mut(&key) {
            Some(known) if known.place == info.ptr => {}
            // Kernels that ran before are remembered under the stand-in, so the real address
            // becomes an alias of it.
            Some(known) => {
                known.address = address;
                let place = known.place;
                self.alias(info.ptr, place, info.size);
            }
            None => {
                self.globals.insert(key, Variable { place: info.ptr, address });
                self.alloc(info);
            }
        }
    }
}
