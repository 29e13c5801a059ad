//! Fatbins inside host executables and shared libraries.
//!
//! Owns the sections in which they lie: `.nv_fatbin` (what the driver gets) and `__nv_relfatbin`
//! (relocatable device code, linked at build time).

use super::size::FATBIN;
use super::{Image, ImageError, ImageSize, image_size};
use object::LittleEndian as LE;
use object::elf::{FileHeader64, SHT_NOBITS};
use object::read::elf::{FileHeader, SectionHeader};
use std::ops::ControlFlow;

/// A fatbin found in a host file.
#[derive(Clone, Debug)]
pub struct HostImage<'d> {
    /// Offset in the file.
    pub offset: u64,
    /// It is relocatable device code: the driver never sees it.
    pub relocatable: bool,
    /// Its entries, or why they could not be read.
    pub image: Result<Image<'d>, ImageError>,
}

/// Finds all fatbins of a host ELF file. A file without any gives an empty list.
pub fn find_in_host(bytes: &[u8]) -> Result<Vec<HostImage<'_>>, ImageError> {
    let mut found = Vec::new();
    each_in_host(bytes, |image| {
        found.push(image);
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Hands the fatbins of a host ELF file over one by one, until `visit` has seen enough. Only what
/// comes before is read: libraries hold gigabytes of them.
pub fn each_in_host<'d>(
    bytes: &'d [u8],
    mut visit: impl FnMut(HostImage<'d>) -> ControlFlow<()>,
) -> Result<(), ImageError> {
    let elf = |e: object::Error| ImageError::Elf(e.to_string());
    let header = FileHeader64::<LE>::parse(bytes).map_err(elf)?;
    let table = header.sections(LE, bytes).map_err(elf)?;
    for s in table.iter().filter(|s| s.sh_type.get(LE) != SHT_NOBITS) {
        let name = table.section_name(LE, s).map_err(elf)?;
        let relocatable = match name {
            b".nv_fatbin" => false,
            b"__nv_relfatbin" => true,
            _ => continue,
        };
        let data = s.data(LE, bytes).map_err(elf)?;
        let start = s.sh_offset.get(LE);
        let mut at = 0usize;
        // Fatbins are aligned to 8 bytes, with padding between them.
        while let Some(rest) = data.get(at..).filter(|r| r.len() >= 16) {
            if rest[..4] != FATBIN.to_le_bytes() {
                at += 8;
                continue;
            }
            let image = HostImage { offset: start + at as u64, relocatable, image: Image::parse(rest) };
            if visit(image).is_break() {
                return Ok(());
            }
            at += match image_size(rest) {
                Ok(ImageSize::Exact(n)) if n >= 16 && n <= rest.len() as u64 => (n as usize).next_multiple_of(8),
                _ => 16,
            };
        }
    }
    Ok(())
}
