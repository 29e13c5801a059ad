//! Code images as the driver gets them: fatbin (maybe compressed), cubin, PTX text; and fatbins
//! inside host executables.
//!
//! Owns finding, unpacking and describing code. Does not decode instructions (`sass`) or PTX
//! (`ptx`).
//!
//! The order is `size` (what starts here, and how long is it), `host_binary` (fatbins in ELF
//! files), `fatbin` (entries), `select` (which entry runs on a device), `cubin` with `nv_info`
//! (kernels of a cubin), `ptx_variables` (those of a text). `cubin` and `nv_info` know each other:
//! the records fill in the kernel.
//!
//! Layouts were read off files made by the toolkit (all architectures, all compression modes) and
//! are tested on such files. Damaged input gives an [`ImageError`]. Nothing panics, and nothing
//! allocates more than [`MAX_UNPACKED`].

pub mod cubin;
mod error;
mod fatbin;
mod host_binary;
mod nv_info;
mod ptx_variables;
mod select;
mod size;

pub use crate::image::host_binary::{each_in_host, find_in_host};
pub use cubin::Cubin;
pub use error::ImageError;
pub use fatbin::{Compression, Entry, EntryKind};
pub use ptx_variables::ptx_variables;
pub use select::runs_on;
pub use size::{ImageSize, image_size};

use crate::arch::Arch;
use std::borrow::Cow;

/// An unpacked entry may have at most this many bytes.
pub(crate) const MAX_UNPACKED: u64 = 1 << 30;

/// A code image of one of the three kinds. Borrowed: nothing is copied or unpacked before it is
/// asked for.
#[derive(Clone, Debug)]
pub struct Image<'d> {
    entries: Vec<Entry<'d>>,
}

/// One piece of code, unpacked.
#[derive(Clone, Debug)]
pub enum CodeRef<'d> {
    /// A cubin: an ELF file with SASS for [`Entry::arch`].
    Cubin(Cow<'d, [u8]>),
    /// PTX text, without the final NUL.
    Ptx(Cow<'d, str>),
}

impl<'d> Image<'d> {
    /// Reads the headers of an image. Bytes behind its end are ignored (see [`image_size`] for
    /// where it ends).
    pub fn parse(bytes: &'d [u8]) -> Result<Image<'d>, ImageError> {
        let entries = match size::kind(bytes)? {
            size::ImageKind::Fatbin => fatbin::entries(bytes)?,
            size::ImageKind::Elf => {
                let cubin = Cubin::parse(bytes)?;
                vec![Entry::plain(EntryKind::Cubin, cubin.arch, bytes)]
            }
            size::ImageKind::Ptx => {
                let text = bytes.split(|&b| b == 0).next().unwrap_or(bytes);
                vec![Entry::plain(EntryKind::Ptx, select::ptx_target(text), text)]
            }
        };
        Ok(Image { entries })
    }

    /// All entries, in the order of the file.
    #[must_use]
    pub fn entries(&self) -> &[Entry<'d>] {
        &self.entries
    }

    /// The entry that the driver would take for this device: a cubin for exactly it, else the
    /// newest cubin that runs on it, else the newest PTX that can be compiled for it.
    #[must_use]
    pub fn choose(&self, device: Arch) -> Option<&Entry<'d>> {
        select::choose(&self.entries, device)
    }

    /// The newest PTX that can be compiled for the device, unpacked, whatever else there is.
    pub fn select_ptx(&self, device: Arch) -> Result<Option<CodeRef<'d>>, ImageError> {
        let texts = self.entries.iter().filter(|entry| entry.kind == EntryKind::Ptx);
        select::choose(texts, device).map(Entry::unpack).transpose()
    }

    /// [`choose`](Image::choose), unpacked. `Ok(None)` when nothing in the image runs on the
    /// device.
    pub fn select(&self, device: Arch) -> Result<Option<CodeRef<'d>>, ImageError> {
        self.choose(device).map(Entry::unpack).transpose()
    }
}
