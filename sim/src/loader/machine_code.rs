//! Finds machine code in what programs load: the cubin that a driver would take for the device.
//!
//! Owns that choice, and which machine code can be executed at all. `fatbin` finds PTX.

use device_code::arch::{Arch, Generation};
use device_code::image::{self, CodeRef, Image, ImageSize, image_size};

use super::fatbin::{self, ImageError};
use super::readable;

/// No image is longer; guards against nonsense in size fields.
const LARGEST: usize = 4 << 30;

/// The bytes of the image at `image`, of whatever length it says of itself.
///
/// # Errors
/// They make no sense, or not all of them are there.
///
/// # Safety
/// As for [`fatbin::find_ptx`], with wrappers followed already.
pub(crate) unsafe fn image_at<'a>(image: *const u8) -> Result<&'a [u8], ImageError> {
    let mut len = 16;
    for _ in 0..64 {
        // SAFETY: the caller's promise.
        let prefix = unsafe { readable::bytes(image, len) }.ok_or_else(fatbin::cut)?;
        match image_size(prefix).map_err(damaged)? {
            ImageSize::NeedAtLeast(more) => len = usize::try_from(more).map_err(|_| fatbin::cut())?,
            ImageSize::Exact(all) => {
                let all = usize::try_from(all).ok().filter(|all| *all <= LARGEST).ok_or_else(fatbin::cut)?;
                // SAFETY: as above.
                return unsafe { readable::bytes(image, all) }.ok_or_else(fatbin::cut);
            }
        }
    }
    Err(ImageError::Unknown)
}

fn damaged(error: image::ImageError) -> ImageError {
    ImageError::Damaged(error.to_string())
}

/// The machine code that a driver takes for compute capability `arch` (times ten). `None` when
/// there is none, and when PTX would be taken.
///
/// # Errors
/// The image is damaged.
pub(crate) fn cubin_in(image: &[u8], arch: u32) -> Result<Option<Vec<u8>>, ImageError> {
    let Ok(device) = u16::try_from(arch).map(Arch::new) else { return Ok(None) };
    let chosen = Image::parse(image).and_then(|image| image.select(device)).map_err(damaged)?;
    Ok(match chosen {
        Some(CodeRef::Cubin(bytes)) => Some(bytes.into_owned()),
        Some(CodeRef::Ptx(_)) | None => None,
    })
}

/// True when the interpreter executes machine code of devices of that compute capability.
pub(crate) fn is_executed(arch: u32) -> bool {
    let arch = u16::try_from(arch).map(Arch::new).ok();
    matches!(arch.and_then(Arch::generation), Some(Generation::Turing | Generation::Ampere | Generation::Hopper))
}
