//! How a native function reaches device memory.

use cuda_sys::{NativeMemory, c_int};

/// The memory of the device that a call runs on.
pub struct Memory<'m>(&'m NativeMemory);

impl<'m> Memory<'m> {
    /// Wraps what the driver gave.
    pub fn new(memory: &'m NativeMemory) -> Self {
        Memory(memory)
    }

    /// Where the bytes at a device address lie; `None` when they are not mapped.
    pub fn view(&self, address: u64, bytes: u64, write: bool) -> Option<*mut u8> {
        // SAFETY: the driver's function with the driver's owner.
        let at = unsafe { (self.0.view)(self.0.owner, address, bytes, c_int::from(write)) };
        (!at.is_null()).then_some(at)
    }

    /// Reads a plain value.
    pub fn get<T: Copy>(&self, address: u64) -> Option<T> {
        let at = self.view(address, size_of::<T>() as u64, false)?;
        // SAFETY: the view holds a whole value; all types here are plain numbers.
        Some(unsafe { at.cast::<T>().read_unaligned() })
    }

    /// Writes a plain value.
    pub fn put<T: Copy>(&self, address: u64, value: T) -> Option<()> {
        let at = self.view(address, size_of::<T>() as u64, true)?;
        // SAFETY: the view holds a whole value.
        unsafe { at.cast::<T>().write_unaligned(value) };
        Some(())
    }
}
