//! How long a code image is, and whether its bytes are in a file: the driver takes images without a
//! length.
//!
//! Owns reading the headers of the containers; the facts about them are in `device_code::image`.
//! Owns as well whether a file is still what it was when it was mapped: a build may have replaced
//! it. Does not look inside: the analyzer does.

use std::ffi::{CStr, OsStr, c_int, c_void};
use std::os::unix::ffi::OsStrExt;

use device_code::image::{ImageSize, image_size};
use trace::FileIdentity;

use crate::handles::image_files::{ImageFile, ImageFiles};
use crate::stack::native::is_readable_range;

const WRAPPER: u32 = 0x4662_43b1;
const FATBIN: u32 = 0xba55_ed50;
const ELF: u32 = u32::from_le_bytes(*b"\x7fELF");

/// The bytes of an image: a fatbin (also behind nvcc's wrapper), a cubin, or PTX text. `None` when
/// it is none of these.
///
/// # Safety
/// `image` points to an image that the driver has accepted.
pub unsafe fn span<'a>(image: *const u8) -> Option<&'a [u8]> {
    // SAFETY: every image is at least a word long; header fields lie inside the image.
    unsafe {
        match word(image) {
            WRAPPER => {
                let inner = image.add(8).cast::<*const u8>().read_unaligned();
                if inner.is_null() || word(inner) != FATBIN { None } else { span(inner) }
            }
            FATBIN => {
                let header = u64::from(image.add(6).cast::<u16>().read_unaligned());
                let body = image.add(8).cast::<u64>().read_unaligned();
                slice(image, header.checked_add(body)?)
            }
            ELF => elf(image),
            _ => {
                let text = CStr::from_ptr(image.cast()).to_bytes();
                let is_ptx = text.iter().all(|b| (b' '..0x7f).contains(b) || b"\t\r\n".contains(b) || *b >= 0x80);
                (is_ptx && !text.is_empty()).then_some(text)
            }
        }
    }
}

/// # Safety
/// Four readable bytes.
unsafe fn word(at: *const u8) -> u32 {
    // SAFETY: forwarded from the caller.
    unsafe { at.cast::<u32>().read_unaligned() }
}

/// # Safety
/// `len` readable bytes that live as long as the image stays loaded.
unsafe fn slice<'a>(at: *const u8, len: u64) -> Option<&'a [u8]> {
    // A length beyond 4 GiB is no image but damage.
    let len = usize::try_from(len).ok().filter(|len| *len < 1 << 32)?;
    // SAFETY: forwarded from the caller.
    Some(unsafe { std::slice::from_raw_parts(at, len) })
}

/// The bytes of an ELF image; none where its headers lead to memory that cannot be read.
///
/// # Safety
/// As for [`span`].
unsafe fn elf<'a>(image: *const u8) -> Option<&'a [u8]> {
    let start = image as u64;
    // The file header.
    let mut len = 64;
    for _ in 0..8 {
        if !is_readable_range(start, start.checked_add(len)?) {
            return None;
        }
        // SAFETY: found readable.
        match image_size(unsafe { slice(image, len) }?).ok()? {
            ImageSize::NeedAtLeast(more) => len = more,
            ImageSize::Exact(all) => {
                // SAFETY: as above.
                return is_readable_range(start, start.checked_add(all)?).then(|| unsafe { slice(image, all) })?;
            }
        }
    }
    None
}

struct Find {
    start: u64,
    len: u64,
    found: Option<(Vec<u8>, u64)>,
}

/// Path and offset of the file that these bytes are mapped from, when the mapping is read-only:
/// then file and memory agree.
pub fn file_of(start: *const u8, len: usize) -> Option<(Vec<u8>, u64)> {
    let mut find = Find { start: start as u64, len: len as u64, found: None };
    // SAFETY: visit() has the signature that dl_iterate_phdr wants, and find outlives the call. No
    // lock of ours is held.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut find).cast()) };
    let (path, offset) = find.found?;
    let path = if path.is_empty() {
        std::fs::read_link(signal_free::descriptors::own_proc("exe")).ok()?.into_os_string().into_encoded_bytes()
    } else {
        path
    };
    path.starts_with(b"/").then_some((path, offset))
}

/// Where the analyzer finds the bytes of an image.
#[derive(PartialEq, Eq, Debug)]
pub enum Stored {
    /// Nowhere but here.
    Here,
    /// In a file, from an offset on. The identity is missing where it could not be looked up.
    File(Vec<u8>, u64, Option<FileIdentity>),
}

/// What identifies the file that a path leads to now.
pub fn identity_at(path: &[u8]) -> Option<FileIdentity> {
    std::fs::metadata(OsStr::from_bytes(path)).ok().map(|meta| FileIdentity::new(&meta))
}

/// Where these bytes are stored: in a file only if its path still leads to what is mapped.
pub fn stored(bytes: &[u8], known: &ImageFiles) -> Stored {
    let Some((loader, offset)) = file_of(bytes.as_ptr(), bytes.len()) else { return Stored::Here };
    // One look for all images of an object file, and a cheap one for each.
    let object = (bytes.as_ptr() as u64).wrapping_sub(offset);
    let same = |known: &ImageFile| identity_at(&known.path).is_some_and(|now| now == known.identity);
    if let Some(file) = known.get(object, &loader).filter(same) {
        return Stored::File(file.path, offset, Some(file.identity));
    }
    match mapped_path(bytes.as_ptr() as u64) {
        Some(path) if path.ends_with(b" (deleted)") => Stored::Here,
        Some(path) => match identity_at(&path) {
            Some(identity) => {
                known.set(object, &loader, ImageFile { path: path.clone(), identity });
                Stored::File(path, offset, Some(identity))
            }
            None => Stored::File(loader, offset, None),
        },
        // Without /proc: what the loader says.
        None => Stored::File(loader, offset, None),
    }
}

/// The path of the file that is mapped at an address, as the kernel knows it now: a file that was
/// renamed has its new name, one that was deleted the mark ` (deleted)` (proc_pid_maps(5)).
fn mapped_path(address: u64) -> Option<Vec<u8>> {
    let maps = std::fs::read("/proc/self/maps").ok()?;
    path_at(&maps, address).map(<[u8]>::to_vec)
}

/// The path in the line of a list of mappings that holds an address.
fn path_at(maps: &[u8], address: u64) -> Option<&[u8]> {
    let number = |text: &[u8]| u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok();
    maps.split(|byte| *byte == b'\n').find_map(|line| {
        let mut range = line.split(|byte| *byte == b' ').next()?.split(|byte| *byte == b'-');
        let range = number(range.next()?)?..number(range.next()?)?;
        let path = line.get(line.iter().position(|byte| *byte == b'/')?..)?;
        range.contains(&address).then_some(path)
    })
}

/// A file that a module is loaded from by name, where it is small: its name may be another file's,
/// or none's, by the time the analyzer looks.
pub fn small_file(path: &CStr) -> Option<Vec<u8>> {
    const LARGEST: u64 = 4 << 20;
    let path = OsStr::from_bytes(path.to_bytes());
    let meta = std::fs::metadata(path).ok()?;
    (meta.is_file() && meta.len() <= LARGEST).then(|| std::fs::read(path).ok()).flatten()
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: data is the Find that file_of passed; info is valid during the callback.
    let (find, info) = unsafe { (&mut *data.cast::<Find>(), &*info) };
    // SAFETY: the loader describes dlpi_phnum headers.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    for header in headers.iter().filter(|h| h.p_type == libc::PT_LOAD) {
        let start = info.dlpi_addr + header.p_vaddr;
        let inside = find.start >= start && find.start.saturating_add(find.len) <= start + header.p_filesz;
        if inside && header.p_flags & libc::PF_W == 0 {
            // SAFETY: the loader's names are C strings.
            let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes().to_vec();
            find.found = Some((name, header.p_offset + (find.start - start)));
            return 1;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_come_from_headers() {
        let mut fatbin = [0_u8; 64];
        fatbin[..4].copy_from_slice(&FATBIN.to_le_bytes());
        fatbin[6..8].copy_from_slice(&16_u16.to_le_bytes());
        fatbin[8..16].copy_from_slice(&48_u64.to_le_bytes());
        // SAFETY: the buffer is as long as its header says.
        assert_eq!(unsafe { span(fatbin.as_ptr()) }.map(<[u8]>::len), Some(64));
        let text = c".version 8.0\n.target sm_80\n";
        // SAFETY: a C string.
        assert_eq!(unsafe { span(text.as_ptr().cast()) }, Some(text.to_bytes()));
        let elf = std::fs::read("/proc/self/exe").expect("exe");
        // SAFETY: a whole ELF file.
        let size = unsafe { span(elf.as_ptr()) }.expect("ELF").len();
        assert!(size <= elf.len() && size + 4096 > elf.len(), "{size} of {}", elf.len());
    }

    #[test]
    fn reads_lists_of_mappings() {
        let list =
            b"1000-3000 r--p 0 08:01 5    /a b/c (deleted)\n3000-4000 rw-p 0 00:00 0 \n5000-6000 r-xp 0 0 0 [vdso]\n";
        assert_eq!(path_at(list, 0x2fff), Some(&b"/a b/c (deleted)"[..]));
        for address in [0xfff, 0x3000, 0x5000, 0x7000] {
            assert_eq!(path_at(list, address), None, "{address:x}");
        }
    }

    #[test]
    fn read_only_data_is_found_in_its_file() {
        static DATA: [u8; 64] = *b"some read-only bytes that are in the test program's own file ...";
        let (path, offset) = file_of(DATA.as_ptr(), DATA.len()).expect("in a file");
        let bytes = std::fs::read(String::from_utf8(path).expect("path")).expect("file");
        assert_eq!(bytes[offset as usize..][..64], DATA);
        let known = ImageFiles::default();
        for _ in 0..2 {
            let Stored::File(path, at, Some(identity)) = stored(&DATA, &known) else { panic!("in its file") };
            assert_eq!((at, Some(identity)), (offset, identity_at(&path)));
        }
        let heap = Box::new([0_u8; 64]);
        assert_eq!(stored(&heap[..], &known), Stored::Here);
        assert!(file_of(heap.as_ptr(), heap.len()).is_none());
    }
}
