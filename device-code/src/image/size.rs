//! What kind of image starts here, and how long it is.
//!
//! Owns that question. The driver gets a bare pointer, so the length must come from the headers of
//! the image.

use super::ImageError;

/// Magic number of a fatbin.
pub(super) const FATBIN: u32 = 0xba55_ed50;
/// Magic number of the wrapper that host code passes around: magic, version, pointer to the fatbin,
/// pointer.
pub(super) const WRAPPER: u32 = 0x4662_43b1;
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");

/// The kinds of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImageKind {
    Fatbin,
    Elf,
    Ptx,
}

/// How long an image is, as far as the bytes given tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageSize {
    /// The image occupies exactly this many bytes (PTX text: its final NUL included, when it has
    /// one).
    Exact(u64),
    /// At least this many bytes are readable and needed to know more: ask again with them.
    NeedAtLeast(u64),
}

fn u16_at(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(b.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(b: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(b.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(b: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(b.get(at..at + 8)?.try_into().ok()?))
}

pub(super) fn kind(bytes: &[u8]) -> Result<ImageKind, ImageError> {
    match u32_at(bytes, 0) {
        Some(FATBIN) => return Ok(ImageKind::Fatbin),
        Some(ELF) => return Ok(ImageKind::Elf),
        Some(WRAPPER) => return Err(ImageError::Wrapper(u64_at(bytes, 8).unwrap_or(0))),
        _ => {}
    }
    if looks_like_ptx(bytes) {
        return Ok(ImageKind::Ptx);
    }
    Err(ImageError::Unrecognised(bytes.iter().take(8).copied().collect()))
}

/// PTX is text that begins, after blanks and comments, with a directive.
fn looks_like_ptx(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    loop {
        while let [b' ' | b'\t' | b'\r' | b'\n' | 0x0c, tail @ ..] = rest {
            rest = tail;
        }
        let end = match rest {
            [b'/', b'/', ..] => rest.iter().position(|&b| b == b'\n').map(|n| n + 1),
            [b'/', b'*', tail @ ..] => tail.windows(2).position(|w| w == b"*/").map(|n| n + 4),
            _ => return rest.starts_with(b".version") || rest.starts_with(b".target"),
        };
        match end {
            Some(n) => rest = &rest[n..],
            // A comment that goes on behind the bytes given.
            None => return !rest.contains(&0) && std::str::from_utf8(rest).is_ok(),
        }
    }
}

/// How many bytes the image that starts at `prefix[0]` occupies. Start with 64 bytes and follow
/// [`ImageSize::NeedAtLeast`]. It grows with every step, and only asks for bytes that the image
/// must have. (Of PTX text it asks for one byte more than is known, so pass as much as is mapped.)
pub fn image_size(prefix: &[u8]) -> Result<ImageSize, ImageError> {
    if prefix.len() < 16 {
        return Ok(ImageSize::NeedAtLeast(16));
    }
    let have = prefix.len() as u64;
    match kind(prefix)? {
        ImageKind::Fatbin => {
            let header = u64::from(u16_at(prefix, 6).unwrap_or(0));
            let size = u64_at(prefix, 8).unwrap_or(0);
            let total = header.checked_add(size).ok_or(ImageError::Unknown { what: "fatbin size", value: size })?;
            Ok(ImageSize::Exact(total))
        }
        ImageKind::Elf => elf_size(prefix, have),
        ImageKind::Ptx => Ok(match prefix.iter().position(|&b| b == 0) {
            Some(n) => ImageSize::Exact(n as u64 + 1),
            None => ImageSize::NeedAtLeast(have + 1),
        }),
    }
}

/// An ELF file ends with the last of: header, section table, program table, section contents.
fn elf_size(b: &[u8], have: u64) -> Result<ImageSize, ImageError> {
    if have < 64 {
        return Ok(ImageSize::NeedAtLeast(64));
    }
    if b[4] != 2 || b[5] != 1 {
        return Err(ImageError::Unknown {
            what: "ELF class and byte order",
            value: u64::from(b[4]) << 8 | u64::from(b[5]),
        });
    }
    let too_far = || ImageError::Elf("a table lies outside of any file".into());
    let table = |at: usize, entry: usize, count: usize| -> Option<(u64, u64, u64)> {
        let (start, entry, count) = (u64_at(b, at)?, u64::from(u16_at(b, entry)?), u64::from(u16_at(b, count)?));
        Some((start, entry, start.checked_add(entry * count)?))
    };
    let (programs, _, program_end) = table(32, 54, 56).ok_or_else(too_far)?;
    let (sections, entry, section_end) = table(40, 58, 60).ok_or_else(too_far)?;
    if sections != 0 && entry != 64 {
        return Err(ImageError::Unknown { what: "ELF section header size", value: entry });
    }
    let mut end = 64u64.max(section_end);
    if programs != 0 {
        end = end.max(program_end);
    }
    if end > super::MAX_UNPACKED {
        return Err(ImageError::TooLarge(end));
    }
    if have < section_end {
        return Ok(ImageSize::NeedAtLeast(section_end));
    }
    let headers = b.get(sections as usize..section_end as usize).unwrap_or(&[]);
    for header in headers.chunks_exact(64) {
        if u32_at(header, 4).is_some_and(has_no_bytes) {
            continue;
        }
        let (start, size) = (u64_at(header, 24).unwrap_or(0), u64_at(header, 32).unwrap_or(0));
        end = end.max(start.checked_add(size).ok_or_else(too_far)?);
    }
    Ok(ImageSize::Exact(end))
}

/// Section types that take memory but no bytes of the file: NOBITS, and NVIDIA's own for
/// `.nv.global`, `.nv.local`, `.nv.shared` and reserved shared memory.
pub(super) fn has_no_bytes(section_type: u32) -> bool {
    matches!(section_type, 8 | 0x7000_0007 | 0x7000_0009 | 0x7000_000a | 0x7000_0015)
}
