//! Finds machine code in what programs load: the cubin that a driver would take for the device.
//!
//! Owns that choice, and which machine code can be executed at all. `fatbin` finds PTX.

use device_code::arch::{Arch, Generation};
use device_code::image::{CodeRef, Image, ImageSize, image_size};

/// The bytes of the image at `image`, of whatever length it says of itself. `None` when they make
/// no sense.
///
/// # Safety
/// As for [`crate::loader::fatbin::find_ptx`], with wrappers followed already.
pub(crate) unsafe fn image_at<'a>(image: *const u8) -> Option<&'a [u8]> {
    let mut len = 64;
    for _ in 0..64 {
        // SAFETY: the caller's promise: an image has the bytes that it says it has.
        let prefix = unsafe { std::slice::from_raw_parts(image, len) };
        match image_size(prefix).ok()? {
            ImageSize::NeedAtLeast(more) => len = usize::try_from(more).ok()?,
            ImageSize::Exact(all) => {
                // SAFETY: as above.
                return Some(unsafe { std::slice::from_raw_parts(image, usize::try_from(all).ok()?) });
            }
        }
    }
    None
}

/// The machine code that a driver takes for compute capability `arch` (times ten). `None` when
/// there is none, and when PTX would be taken.
pub(crate) fn cubin_in(image: &[u8], arch: u32) -> Option<Vec<u8>> {
    let device = Arch::new(u16::try_from(arch).ok()?);
    match Image::parse(image).ok()?.select(device).ok()?? {
        CodeRef::Cubin(bytes) => Some(bytes.into_owned()),
        CodeRef::Ptx(_) => None,
    }
}

/// True when the interpreter executes machine code of devices of that compute capability.
pub(crate) fn is_executed(arch: u32) -> bool {
    let arch = u16::try_from(arch).map(Arch::new).ok();
    matches!(arch.and_then(Arch::generation), Some(Generation::Turing | Generation::Ampere | Generation::Hopper))
}
