//! `__device__` variables, by name.
//!
//! Owns the stand-in addresses of variables whose real address was not queried yet.

use super::Allocations;
use crate::memory::Allocation;
use trace::ImageId;

/// Stand-in addresses of variables whose real address is unknown: no canonical address of x86-64 or
/// AArch64 begins like this.
const NOWHERE: u64 = 0xffee_0000_0000_0000;

impl Allocations {
    /// Whether the real address of a variable is known.
    pub fn has_address(&self, image: ImageId, name: &str) -> bool {
        self.globals.get(&(image, Box::from(name))).is_some_and(|ptr| *ptr < NOWHERE)
    }

    /// Address and size of a `__device__` variable of an image. One whose address was not queried
    /// yet gets a place of its own where no memory can be, so that kernels that share it are
    /// compared.
    pub(crate) fn global(&mut self, image: ImageId, name: &str) -> Option<(u64, u64)> {
        /// Distance between stand-ins, enough for any size.
        const APART: u64 = 1 << 34;
        let key = (image, Box::from(name));
        if let Some(ptr) = self.globals.get(&key) {
            return self.root(*ptr).map(|info| (info.ptr, info.size));
        }
        let ptr = NOWHERE + self.globals.len() as u64 % (1 << 12) * APART;
        self.globals.insert(key, ptr);
        self.alloc(Allocation::variable(ptr, APART / 2));
        Some((ptr, APART / 2))
    }

    /// Sets the real address of a `__device__` variable.
    pub fn name_global(&mut self, image: ImageId, name: &str, info: Allocation) {
        let key = (image, Box::from(name));
        match self.globals.get(&key) {
            Some(known) if *known == info.ptr => {}
            // Kernels that ran before are remembered under the stand-in, so the real address
            // becomes an alias of it.
            Some(stand_in) => self.alias(info.ptr, *stand_in, info.size),
            None => {
                self.globals.insert(key, info.ptr);
                self.alloc(info);
            }
        }
    }
}
