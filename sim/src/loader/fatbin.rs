//! Chooses the PTX of a loaded image: PTX text, fat binaries (wrapped or not). `machine_code`
//! chooses machine code, and `device_code::image` reads the containers.
//!
//! Separable compilation (`nvcc -rdc=true`) leaves linked machine code in the fat binary, and the
//! PTX of each source in one of its own. The wrapper names them all, and their texts are linked
//! here.

use cuda_sys::CUresult;
use device_code::arch::Arch;
use device_code::image::{self, CodeRef, Entry, EntryKind, Image, runs_on};

use super::readable;

const WRAPPER: u32 = 0x4662_43b1;
const FATBIN: u32 = 0xba55_ed50;
/// Version of a wrapper whose last word points to a list of images, null at its end.
const SEPARATE: u32 = 2;
/// No program has more sources; guards against a list without end.
const MAX_IMAGES: usize = 1 << 16;
const ELF: &[u8; 4] = b"\x7fELF";
/// No fat binary is longer; guards against nonsense in size fields.
const MAX_SIZE: usize = 4 << 30;

/// How a text begins that was linked without those images that hold machine code only.
pub(crate) const INCOMPLETE: &str = "// some of it is machine code only\n";

/// Why an image holds nothing that can run here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ImageError {
    /// Neither PTX, nor a fat binary, nor ELF.
    #[error("not a code image that CUDA knows")]
    Unknown,
    /// Only machine code.
    #[error(
        "no PTX inside, only machine code, of which that for 7.5 to 9.0 runs here: build for that (nvcc -arch=sm_80), or with PTX"
    )]
    NoPtx,
    /// Nothing in it runs on the device.
    #[error(
        "made for {0}, which does not run on the simulated sm_{1}: build for sm_{1}, or choose another device \
         (STREAMSAN_SIM=arch=...)"
    )]
    OtherDevice(String, u32),
    /// The same, of PTX text.
    #[error(
        "PTX for {0}, which does not run on the simulated sm_{1}: compile it for sm_{1}, or choose another device \
         (STREAMSAN_SIM=arch=...)"
    )]
    OtherTarget(Arch, u32),
    /// Ends in the middle, or its compressed parts are damaged.
    #[error("damaged: {0}")]
    Damaged(String),
    /// PTX of several images does not fit together.
    #[error("linking: {0}")]
    Link(#[from] device_code::ptx::LinkError),
}

impl ImageError {
    /// Says what is wrong with an image. What no driver takes either is no refusal of the
    /// simulator.
    pub(crate) fn report(&self, what: &str) {
        let text = format!("{what}: {self}");
        match self {
            ImageError::Unknown | ImageError::Link(device_code::ptx::LinkError::Twice(_)) => crate::status::say(&text),
            _ => crate::status::complain(&text),
        }
    }

    /// The status that the driver answers.
    pub(crate) fn status(&self) -> CUresult {
        match self {
            ImageError::NoPtx | ImageError::OtherDevice(..) => CUresult::ERROR_NO_BINARY_FOR_GPU,
            // Measured on an H200, driver 580: PTX text for sm_100.
            ImageError::OtherTarget(..) => CUresult::ERROR_INVALID_PTX,
            ImageError::Unknown | ImageError::Damaged(_) => CUresult::ERROR_INVALID_IMAGE,
            ImageError::Link(_) => CUresult::ERROR_INVALID_PTX,
        }
    }
}

/// The first four bytes of an image, zeros behind a zero: a text may be shorter.
///
/// # Safety
/// As for [`find_ptx`].
unsafe fn head(image: *const u8) -> Result<[u8; 4], ImageError> {
    let mut head = [0; 4];
    for (at, byte) in head.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        *byte = unsafe { field::<1>(image, at) }?[0];
        if *byte == 0 {
            break;
        }
    }
    Ok(head)
}

/// Some bytes of a header; refused where they cannot be read.
///
/// # Safety
/// As for [`find_ptx`].
unsafe fn field<const N: usize>(image: *const u8, at: usize) -> Result<[u8; N], ImageError> {
    // SAFETY: the caller's promise.
    let bytes = unsafe { readable::bytes(image.wrapping_add(at), N) };
    bytes.and_then(|bytes| bytes.try_into().ok()).ok_or_else(cut)
}

/// What is said of an image that is longer, by its headers, than the memory that it lies in.
pub(crate) fn cut() -> ImageError {
    ImageError::Damaged("its headers lead to memory that cannot be read".to_owned())
}

/// The image itself, where a fat binary's wrapper is given.
///
/// # Safety
/// As for [`find_ptx`].
pub(crate) unsafe fn unwrapped(image: *const u8) -> Result<*const u8, ImageError> {
    // SAFETY: the caller's promise.
    unsafe {
        let is_wrapper = u32::from_le_bytes(head(image)?) == WRAPPER;
        Ok(if is_wrapper { usize::from_le_bytes(field(image, 8)?) as *const u8 } else { image })
    }
}

/// The PTX text of the image at `image` that suits compute capability `arch` (times ten) best.
///
/// # Safety
/// What is mapped at `image`, and where the image leads to, stays so and is not written meanwhile.
/// An image of one of the kinds that `cuModuleLoadData` takes has its length in it; what it says is
/// checked against the memory that is there.
pub(crate) unsafe fn find_ptx(image: *const u8, arch: u32) -> Result<String, ImageError> {
    // SAFETY: the caller's promise.
    unsafe {
        let head = head(image)?;
        match u32::from_le_bytes(head) {
            WRAPPER => {
                let data = unwrapped(image)?;
                if data.is_null() {
                    return Err(ImageError::Damaged("wrapper without data".to_owned()));
                }
                // A wrapper in a wrapper has no end.
                if u32::from_le_bytes(self::head(data)?) == WRAPPER {
                    return Err(ImageError::Damaged("a wrapper leads to a wrapper".to_owned()));
                }
                match find_ptx(data, arch) {
                    Err(ImageError::NoPtx) if u32::from_le_bytes(field(image, 4)?) == SEPARATE => {
                        link(usize::from_le_bytes(field(image, 16)?) as *const *const u8, arch)
                    }
                    found => found,
                }
            }
            FATBIN => {
                let header = usize::from(u16::from_le_bytes(field(image, 6)?));
                let size = usize::from_le_bytes(field(image, 8)?);
                if size > MAX_SIZE {
                    return Err(ImageError::Damaged("impossible size".to_owned()));
                }
                from_fatbin(readable::bytes(image, header + size).ok_or_else(cut)?, arch)
            }
            _ if &head == ELF => Err(ImageError::NoPtx),
            _ => {
                let text = readable::text(image).ok_or_else(cut)?;
                fits(text, arch)?;
                from_text(text)
            }
        }
    }
}

/// The PTX of all images in a list with a null at its end, linked.
///
/// # Safety
/// As for [`find_ptx`], for each image of the list; the list may be null.
unsafe fn link(list: *const *const u8, arch: u32) -> Result<String, ImageError> {
    let (mut texts, mut incomplete) = (Vec::new(), false);
    for at in 0..if list.is_null() { 0 } else { MAX_IMAGES } {
        // SAFETY: the caller's promise; the null at the end has not come yet.
        let image = usize::from_le_bytes(unsafe { field(list.wrapping_add(at).cast(), 0) }?) as *const u8;
        if image.is_null() {
            break;
        }
        // SAFETY: as above.
        match unsafe { find_ptx(image, arch) } {
            Ok(text) => texts.push(text),
            // What needs its code finds that it is missing.
            Err(ImageError::NoPtx) => incomplete = true,
            Err(error) => return Err(error),
        }
    }
    match texts.as_slice() {
        [] => Err(ImageError::NoPtx),
        [one] if !incomplete => Ok(one.clone()),
        several => {
            let linked = device_code::ptx::link(&several.iter().map(String::as_str).collect::<Vec<_>>())?;
            Ok(if incomplete { format!("{INCOMPLETE}{linked}") } else { linked })
        }
    }
}

/// The same for an image of known length, as read from a file.
pub(crate) fn find_ptx_in(image: &[u8], arch: u32) -> Result<String, ImageError> {
    let head: [u8; 4] = image.get(..4).and_then(|head| head.try_into().ok()).ok_or(ImageError::Unknown)?;
    match u32::from_le_bytes(head) {
        FATBIN => from_fatbin(image, arch),
        _ if &head == ELF => Err(ImageError::NoPtx),
        _ => {
            let text = image.split(|&byte| byte == 0).next().unwrap_or_default();
            fits(text, arch)?;
            from_text(text)
        }
    }
}

/// Refuses what a driver refuses: an image without code that runs on the device. What cannot be
/// read is left to whoever reads it next.
fn fits(image: &[u8], arch: u32) -> Result<(), ImageError> {
    let (Ok(parsed), Ok(sm)) = (Image::parse(image), u16::try_from(arch)) else { return Ok(()) };
    let entries = parsed.entries();
    if entries.is_empty() || entries.iter().any(|entry| runs_on(entry.kind, entry.arch, Arch::new(sm))) {
        return Ok(());
    }
    if let [Entry { kind: EntryKind::Ptx, arch: target, .. }] = entries
        && !image.starts_with(&FATBIN.to_le_bytes())
    {
        return Err(ImageError::OtherTarget(*target, arch));
    }
    let mut made_for: Vec<Arch> = entries.iter().map(|entry| entry.arch).collect();
    made_for.sort_unstable();
    made_for.dedup();
    let names: Vec<String> = made_for.iter().map(ToString::to_string).collect();
    Err(ImageError::OtherDevice(names.join(", "), arch))
}

/// True when a driver would compile this text for compute capability `arch` (times ten): it is for
/// no newer device.
pub(crate) fn is_for(text: &str, arch: u32) -> bool {
    let (Ok(parsed), Ok(sm)) = (Image::parse(text.as_bytes()), u16::try_from(arch)) else { return true };
    parsed.entries().iter().all(|entry| runs_on(entry.kind, entry.arch, Arch::new(sm)))
}

fn from_text(text: &[u8]) -> Result<String, ImageError> {
    let text = std::str::from_utf8(text).map_err(|_| ImageError::Unknown)?;
    if !text.contains(".version") {
        return Err(ImageError::Unknown);
    }
    Ok(text.to_owned())
}

/// The PTX of a fat binary for the newest architecture that is not newer than `arch`, or the oldest
/// one (a device would run the machine code beside it; an interpreter cannot).
fn from_fatbin(bytes: &[u8], arch: u32) -> Result<String, ImageError> {
    fits(bytes, arch)?;
    let damaged = |error: image::ImageError| ImageError::Damaged(error.to_string());
    let image = Image::parse(bytes).map_err(damaged)?;
    let key = |entry: &&Entry<'_>| {
        let sm = u32::from(entry.arch.sm);
        (sm <= arch, if sm <= arch { sm } else { u32::MAX - sm })
    };
    // Of several for one architecture the first.
    let texts = image.entries().iter().filter(|entry| entry.kind == EntryKind::Ptx).rev();
    match texts.max_by_key(key).ok_or(ImageError::NoPtx)?.unpack().map_err(damaged)? {
        CodeRef::Ptx(text) => from_text(text.as_bytes()),
        CodeRef::Cubin(_) => Err(ImageError::NoPtx),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND_PTX: u16 = 1;
    const FLAG_LZ4: u64 = 0x2000;
    const PTX: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

    fn entry(kind: u16, sm: u32, flags: u64, payload: &[u8], compressed: usize) -> Vec<u8> {
        let mut entry = vec![0; 64];
        entry[0..2].copy_from_slice(&kind.to_le_bytes());
        entry[2..4].copy_from_slice(&0x101u16.to_le_bytes());
        entry[4..8].copy_from_slice(&64u32.to_le_bytes());
        entry[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        entry[16..20].copy_from_slice(&(compressed as u32).to_le_bytes());
        entry[28..32].copy_from_slice(&sm.to_le_bytes());
        entry[40..48].copy_from_slice(&flags.to_le_bytes());
        entry[56..64].copy_from_slice(&(PTX.len() as u64 + 9).to_le_bytes());
        entry.extend_from_slice(payload);
        entry
    }

    fn fatbin(entries: &[Vec<u8>]) -> Vec<u8> {
        let body = entries.concat();
        let mut image = FATBIN.to_le_bytes().to_vec();
        image.extend_from_slice(&1u16.to_le_bytes());
        image.extend_from_slice(&16u16.to_le_bytes());
        image.extend_from_slice(&(body.len() as u64).to_le_bytes());
        image.extend(body);
        image
    }

    fn text(sm: u32) -> Vec<u8> {
        format!("{PTX}// sm_{sm}\0").into_bytes()
    }

    #[test]
    fn picks_the_newest_that_the_device_can_run() {
        let image = fatbin(&[
            entry(2, 80, 0x11, b"\x7fELF....", 0),
            entry(KIND_PTX, 70, 0x11, &text(70), 0),
            entry(KIND_PTX, 80, 0x11, &text(80), 0),
            entry(KIND_PTX, 90, 0x11, &text(90), 0),
        ]);
        for (arch, expected) in [(75, "sm_70"), (80, "sm_80"), (89, "sm_80"), (100, "sm_90")] {
            assert!(find_ptx_in(&image, arch).unwrap().contains(expected), "{arch}");
        }
        let beside = fatbin(&[entry(2, 80, 0x11, b"\x7fELF....", 0), entry(KIND_PTX, 90, 0x11, &text(90), 0)]);
        assert!(find_ptx_in(&beside, 80).unwrap().contains("sm_90"), "in place of the machine code for sm_80");
    }

    #[test]
    fn refuses_what_was_made_for_other_devices() {
        let newer = fatbin(&[entry(2, 90, 0x11, b"\x7fELF....", 0), entry(KIND_PTX, 90, 0x11, &text(90), 0)]);
        assert!(find_ptx_in(&newer, 90).is_ok() && find_ptx_in(&newer, 120).is_ok());
        let other = || ImageError::OtherDevice("sm_90".into(), 80);
        assert_eq!(find_ptx_in(&newer, 80), Err(other()));
        assert_eq!(other().status(), CUresult::ERROR_NO_BINARY_FOR_GPU);
        // `sm_90a`: that device and no other.
        let exact = fatbin(&[entry(KIND_PTX, 90, 0x10_0011, &text(90), 0)]);
        assert!(find_ptx_in(&exact, 90).is_ok() && find_ptx_in(&exact, 100).is_err());
        let text = ".version 8.0\n.target sm_90\n.address_size 64\n";
        assert!(find_ptx_in(text.as_bytes(), 90).is_ok());
        let other = || ImageError::OtherTarget(Arch::new(90), 80);
        assert_eq!(find_ptx_in(text.as_bytes(), 80), Err(other()));
        assert_eq!(other().status(), CUresult::ERROR_INVALID_PTX);
        let c = std::ffi::CString::new(text).expect("no NUL");
        // SAFETY: a text that ends with NUL.
        assert_eq!(unsafe { find_ptx(c.as_ptr().cast(), 80) }, Err(other()));
    }

    #[test]
    fn unpacks_lz4() {
        let packed = lz4_flex::block::compress(&text(80));
        let image = fatbin(&[entry(KIND_PTX, 80, 0x11 | FLAG_LZ4, &packed, packed.len())]);
        assert!(find_ptx_in(&image, 80).unwrap().contains("sm_80"));
    }

    #[test]
    fn follows_wrappers() {
        let image = fatbin(&[entry(KIND_PTX, 80, 0x11, &text(80), 0)]);
        let mut wrapper = WRAPPER.to_le_bytes().to_vec();
        wrapper.extend_from_slice(&1u32.to_le_bytes());
        wrapper.extend_from_slice(&(image.as_ptr() as u64).to_le_bytes());
        wrapper.extend_from_slice(&[0; 8]);
        // SAFETY: a well-formed image.
        assert!(unsafe { find_ptx(wrapper.as_ptr(), 80) }.unwrap().contains("sm_80"));
    }

    #[test]
    fn links_what_was_compiled_separately() {
        let function = |name: &str| format!("{PTX}.visible .func {name}() {{ ret; }}\0").into_bytes();
        let machine = fatbin(&[entry(2, 80, 0x11, b"\x7fELF....", 0)]);
        let one = fatbin(&[entry(2, 80, 0x11, b"\x7fELF....", 0), entry(KIND_PTX, 80, 0x11, &function("one"), 0)]);
        let two = fatbin(&[entry(KIND_PTX, 80, 0x11, &function("two"), 0)]);
        let find = |version: u32, list: &[*const u8]| {
            let mut wrapper = WRAPPER.to_le_bytes().to_vec();
            wrapper.extend_from_slice(&version.to_le_bytes());
            wrapper.extend_from_slice(&(machine.as_ptr() as u64).to_le_bytes());
            wrapper.extend_from_slice(&(list.as_ptr() as u64).to_le_bytes());
            // SAFETY: a well-formed image with a list that ends.
            unsafe { find_ptx(wrapper.as_ptr(), 80) }
        };
        let null = std::ptr::null();
        let both = find(2, &[one.as_ptr(), machine.as_ptr(), two.as_ptr(), null]).unwrap();
        assert!(both.starts_with(INCOMPLETE), "{both}");
        assert_eq!((both.matches(".func one").count(), both.matches(".func two").count()), (1, 1), "{both}");
        let whole = find(2, &[one.as_ptr(), null]).unwrap();
        assert!(whole.contains("one") && !whole.starts_with(INCOMPLETE), "{whole}");
        assert_eq!(find(2, &[machine.as_ptr(), null]), Err(ImageError::NoPtx));
        assert_eq!(find(2, &[null]), Err(ImageError::NoPtx));
        assert_eq!(find(1, &[one.as_ptr(), null]), Err(ImageError::NoPtx), "the word means something else there");
        let twice = find(2, &[one.as_ptr(), one.as_ptr(), null]);
        assert!(matches!(twice, Err(ImageError::Link(_))), "{twice:?}");
    }

    #[test]
    fn refuses_what_it_cannot_run() {
        assert_eq!(find_ptx_in(b"\x7fELF\x02\x01\x01", 80), Err(ImageError::NoPtx));
        assert_eq!(find_ptx_in(b"hello", 80), Err(ImageError::Unknown));
        assert_eq!(find_ptx_in(b"", 80), Err(ImageError::Unknown));
        assert_eq!(find_ptx_in(&fatbin(&[entry(2, 80, 0x11, b"\x7fELF....", 0)]), 80), Err(ImageError::NoPtx));
    }

    #[test]
    fn damaged_images_are_errors_at_every_length() {
        let packed = lz4_flex::block::compress(&text(80));
        let image = fatbin(&[entry(KIND_PTX, 80, 0x11 | FLAG_LZ4, &packed, packed.len())]);
        for len in 0..image.len() {
            assert!(find_ptx_in(&image[..len], 80).is_err(), "{len}");
        }
        for at in 16..image.len() {
            let mut broken = image.clone();
            broken[at] ^= 0xff;
            let _ = find_ptx_in(&broken, 80);
        }
    }
}
