//! Fatbins: a header and a list of entries, each a cubin or PTX text for one architecture, maybe
//! compressed.
//!
//! Owns the list and its compression. Does not choose an entry (`select`).

use super::{CodeRef, ImageError, MAX_UNPACKED};
use crate::arch::{Arch, Variant};
use std::borrow::Cow;
use std::io::Read;

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// PTX text.
    Ptx,
    /// A cubin.
    Cubin,
}

/// How an entry is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// As it is.
    None,
    /// An LZ4 block.
    Lz4,
    /// A zstd frame.
    Zstd,
}

/// One entry of an image.
#[derive(Clone, Debug)]
pub struct Entry<'d> {
    /// What it holds.
    pub kind: EntryKind,
    /// The architecture it was made for.
    pub arch: Arch,
    /// How it is packed.
    pub compression: Compression,
    /// Bytes once unpacked, as the header says.
    pub unpacked_size: u64,
    payload: &'d [u8],
}

/// Entry flags, measured: nvcc 13.0 with every compression mode and kind of architecture.
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const FLAG_EXACT: u64 = 0x10_0000;
const FLAG_FAMILY: u64 = 0x20_0000;

impl<'d> Entry<'d> {
    /// An image that is one unpacked piece of code.
    pub(super) fn plain(kind: EntryKind, arch: Arch, payload: &'d [u8]) -> Entry<'d> {
        Entry { kind, arch, compression: Compression::None, unpacked_size: payload.len() as u64, payload }
    }

    /// The code itself.
    pub fn unpack(&self) -> Result<CodeRef<'d>, ImageError> {
        let bytes = match self.compression {
            Compression::None => Cow::Borrowed(self.payload),
            Compression::Lz4 => Cow::Owned(self.unpack_lz4()?),
            Compression::Zstd => Cow::Owned(self.unpack_zstd()?),
        };
        Ok(match self.kind {
            EntryKind::Cubin => CodeRef::Cubin(bytes),
            EntryKind::Ptx => CodeRef::Ptx(text(bytes)?),
        })
    }

    fn unpack_lz4(&self) -> Result<Vec<u8>, ImageError> {
        // LZ4 can not pack better than 1:255, so a larger claim is a lie that must not become an
        // allocation.
        if self.unpacked_size > MAX_UNPACKED || self.unpacked_size > (self.payload.len() as u64 + 16) * 255 {
            return Err(ImageError::TooLarge(self.unpacked_size));
        }
        let mut out = vec![0; self.unpacked_size as usize];
        let n = lz4_flex::block::decompress_into(self.payload, &mut out)
            .map_err(|e| ImageError::Compressed { how: "LZ4", why: e.to_string() })?;
        out.truncate(n);
        Ok(out)
    }

    fn unpack_zstd(&self) -> Result<Vec<u8>, ImageError> {
        let failed = |why: String| ImageError::Compressed { how: "zstd", why };
        if self.unpacked_size > MAX_UNPACKED {
            return Err(ImageError::TooLarge(self.unpacked_size));
        }
        let decoder = ruzstd::decoding::StreamingDecoder::new(self.payload).map_err(|e| failed(e.to_string()))?;
        // Grows as data comes, up to the size that the header states: the statement alone allocates
        // nothing.
        let mut out = Vec::new();
        decoder.take(self.unpacked_size).read_to_end(&mut out).map_err(|e| failed(e.to_string()))?;
        if out.len() as u64 != self.unpacked_size {
            return Err(failed(format!("{} bytes instead of {}", out.len(), self.unpacked_size)));
        }
        Ok(out)
    }
}

/// PTX text ends at its first NUL.
fn text(bytes: Cow<'_, [u8]>) -> Result<Cow<'_, str>, ImageError> {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    Ok(match bytes {
        Cow::Borrowed(b) => {
            Cow::Borrowed(std::str::from_utf8(&b[..end]).map_err(|e| ImageError::PtxText(e.valid_up_to()))?)
        }
        Cow::Owned(mut b) => {
            b.truncate(end);
            Cow::Owned(String::from_utf8(b).map_err(|e| ImageError::PtxText(e.utf8_error().valid_up_to()))?)
        }
    })
}

fn field<const N: usize>(b: &[u8], at: usize) -> Option<[u8; N]> {
    b.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Reads the list of entries. Entries of kinds that hold no device code (options, indexes) are left
/// out.
pub(super) fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, ImageError> {
    let have = bytes.len() as u64;
    let short = |what, needed| ImageError::Truncated { what, needed, have };
    let header_size = u64::from(u16::from_le_bytes(field(bytes, 6).ok_or_else(|| short("fatbin header", 16))?));
    let size = u64::from_le_bytes(field(bytes, 8).ok_or_else(|| short("fatbin header", 16))?);
    if header_size < 16 {
        return Err(ImageError::Unknown { what: "fatbin header size", value: header_size });
    }
    let end = header_size.checked_add(size).ok_or(ImageError::Unknown { what: "fatbin size", value: size })?;
    if end > have {
        return Err(short("fatbin", end));
    }
    let mut rest = &bytes[header_size as usize..end as usize];
    let mut list = Vec::new();
    // Fatbins are padded at their end.
    while rest.len() >= 16 {
        let (entry, tail) = entry(rest)?;
        list.extend(entry);
        rest = tail;
    }
    Ok(list)
}

/// One entry and what follows it.
///
/// Layout: u16 kind, u16 version, u32 header size, u64 payload size (padded), u32 packed size, ...,
/// u32 architecture at 28, u64 flags at 40, u64 unpacked size at 56.
fn entry(b: &[u8]) -> Result<(Option<Entry<'_>>, &[u8]), ImageError> {
    let have = b.len() as u64;
    let short = |what, needed| ImageError::Truncated { what, needed, have };
    let read32 =
        |at| field::<4>(b, at).map(u32::from_le_bytes).ok_or_else(|| short("fatbin entry header", at as u64 + 4));
    let read64 =
        |at| field::<8>(b, at).map(u64::from_le_bytes).ok_or_else(|| short("fatbin entry header", at as u64 + 8));
    let kind = read32(0)? & 0xffff;
    let header = read32(4)?;
    let size = read64(8)?;
    if header < 48 {
        return Err(ImageError::Unknown { what: "fatbin entry header size", value: u64::from(header) });
    }
    let end =
        u64::from(header).checked_add(size).ok_or(ImageError::Unknown { what: "fatbin entry size", value: size })?;
    if end > have {
        return Err(short("fatbin entry", end));
    }
    let payload = &b[header as usize..end as usize];
    let rest = &b[end as usize..];
    let kind = match kind {
        1 => EntryKind::Ptx,
        2 => EntryKind::Cubin,
        _ => return Ok((None, rest)),
    };
    let packed = read32(16)? as usize;
    let sm = read32(28)?;
    let flags = read64(40)?;
    let compression = match flags & (FLAG_LZ4 | FLAG_ZSTD) {
        0 => Compression::None,
        FLAG_LZ4 => Compression::Lz4,
        FLAG_ZSTD => Compression::Zstd,
        both => return Err(ImageError::Unknown { what: "fatbin compression flags", value: both }),
    };
    let (payload, unpacked_size) = match compression {
        Compression::None => (payload, payload.len() as u64),
        _ => {
            if header < 64 {
                return Err(ImageError::Unknown { what: "fatbin entry header size", value: u64::from(header) });
            }
            let needed = packed as u64;
            (payload.get(..packed).ok_or_else(|| short("compressed entry", needed))?, read64(56)?)
        }
    };
    let variant = if flags & FLAG_EXACT != 0 {
        Variant::Exact
    } else if flags & FLAG_FAMILY != 0 {
        Variant::Family
    } else {
        Variant::Base
    };
    let sm =
        u16::try_from(sm).map_err(|_| ImageError::Unknown { what: "fatbin architecture", value: u64::from(sm) })?;
    Ok((Some(Entry { kind, arch: Arch { sm, variant }, compression, unpacked_size, payload }), rest))
}
