//! Which device a program was built for: the code images of the executable and of the libraries
//! that are loaded.
//!
//! Owns the choice of the simulated devices' compute capability where nobody named one. Loads
//! nothing: an image that does not run on the chosen device is refused when it is loaded, as a
//! driver refuses it.
//!
//! The default stays wherever it can, because libraries bring code for many devices. It does not
//! where a driver would find nothing to run on it: a program built with `-arch=sm_90` needs a
//! device of 9.0. Of an executable every image counts, because somebody built it for a device; of
//! a library it is enough that one runs. Where the images contradict each other, most of them run.

use std::ffi::CStr;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use device_code::arch::Arch;
use device_code::image::cubin::{Symbol, SymbolKind};
use device_code::image::{CodeRef, Cubin, EntryKind, Image, each_in_host, runs_on};
use libc::{c_int, c_void};

/// Compute capabilities (times ten) that a simulated device may have.
pub(crate) const ARCHES: std::ops::RangeInclusive<u32> = 50..=130;

/// No empty image is larger, in bytes: the compiler's has less than two thousand.
const EMPTY: u64 = 16 << 10;

/// Images of one file that are looked at. They are much alike.
const ENOUGH: usize = 1024;

/// What one image has code for.
type Targets = Vec<(EntryKind, Arch)>;

/// What one object file asks of the device.
#[derive(Debug, PartialEq, Eq)]
struct Object {
    /// The executable itself.
    is_program: bool,
    images: Vec<Targets>,
}

impl Object {
    /// How much of it runs on a device: images of an executable, 0 or 1 of a library.
    fn runs(&self, device: u32) -> usize {
        let all = self.images.iter().filter(|targets| image_runs(targets, device));
        if self.is_program { all.count() } else { all.take(1).count() }
    }
}

fn image_runs(targets: &Targets, device: u32) -> bool {
    let Ok(sm) = u16::try_from(device) else { return false };
    targets.iter().any(|&(kind, arch)| runs_on(kind, arch, Arch::new(sm)))
}

fn targets(image: &Image<'_>) -> Targets {
    image.entries().iter().map(|entry| (entry.kind, entry.arch)).collect()
}

/// Whether an image holds neither kernels nor variables: the compiler adds one, of machine code
/// only, to every program.
fn is_empty(image: &Image<'_>) -> bool {
    image.entries().iter().all(|entry| {
        if entry.unpacked_size > EMPTY {
            return false;
        }
        let Ok(CodeRef::Cubin(bytes)) = entry.unpack() else { return false };
        let Ok(cubin) = Cubin::parse(&bytes) else { return false };
        let is_variable = |symbol: &Symbol| symbol.kind == SymbolKind::Object && symbol.size > 0;
        cubin.kernels().is_empty() && !cubin.symbols().iter().any(is_variable)
    })
}

/// The compute capability (times ten) of a device that runs the images of this process, `default`
/// where that one does.
pub(crate) fn arch(default: u32) -> u32 {
    choose(&objects(default), default)
}

fn choose(objects: &[Object], default: u32) -> u32 {
    let named = objects.iter().flat_map(|object| &object.images).flatten().map(|(_, arch)| u32::from(arch.sm));
    let mut candidates: Vec<u32> = named.filter(|sm| ARCHES.contains(sm)).collect();
    // The nearest newer device is tried first, older ones last.
    candidates.sort_unstable_by_key(|&sm| (sm < default, sm.abs_diff(default)));
    let score = |device: u32| {
        let of = |is_program| objects.iter().filter(move |o| o.is_program == is_program).map(move |o| o.runs(device));
        (of(true).sum::<usize>(), of(false).sum::<usize>())
    };
    let mut best = (default, score(default));
    for device in candidates {
        let reached = score(device);
        if reached > best.1 {
            best = (device, reached);
        }
    }
    best.0
}

/// The loaded object files with code images. Libraries that run on the default device ask nothing
/// and are left out.
fn objects(default: u32) -> Vec<Object> {
    let mut files: Vec<PathBuf> = Vec::new();
    // SAFETY: visit() has the signature that dl_iterate_phdr wants, and files outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut files).cast()) };
    let read = |(place, path): (usize, &PathBuf)| {
        let file = Mapping::of(path)?;
        // The first object is the program.
        let object = read(file.bytes(), place == 0, default);
        (!object.images.is_empty()).then_some(object)
    };
    files.iter().enumerate().filter_map(read).collect()
}

fn read(bytes: &[u8], is_program: bool, default: u32) -> Object {
    let mut images = Vec::new();
    let mut is_at_home = false;
    // What cannot be read asks for nothing.
    let _ = each_in_host(bytes, |found| {
        let Ok(image) = found.image else { return ControlFlow::Continue(()) };
        let targets = targets(&image);
        if found.relocatable || targets.is_empty() || (!image_runs(&targets, default) && is_empty(&image)) {
            return ControlFlow::Continue(());
        }
        is_at_home = !is_program && image_runs(&targets, default);
        images.push(targets);
        if is_at_home || images.len() == ENOUGH { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if is_at_home {
        images.clear();
    }
    Object { is_program, images }
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: data is the list that objects() passed; info is valid during the callback, and names
    // are C strings.
    let (files, name) = unsafe { (&mut *data.cast::<Vec<PathBuf>>(), CStr::from_ptr((*info).dlpi_name)) };
    let name = name.to_string_lossy();
    files.push(if files.is_empty() {
        signal_free::descriptors::own_proc("exe")
    } else {
        PathBuf::from(name.into_owned())
    });
    0
}

/// A file mapped for reading: of large libraries only headers are touched.
struct Mapping {
    at: *mut c_void,
    len: usize,
}

impl Mapping {
    fn of(path: &PathBuf) -> Option<Mapping> {
        let file = File::open(path).ok()?;
        let len = usize::try_from(file.metadata().ok()?.len()).ok().filter(|len| *len > 0)?;
        // SAFETY: a private mapping of a whole file at an address of the system's choice.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0) };
        (at != libc::MAP_FAILED).then_some(Mapping { at, len })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping lasts as long as self. The loader has the same file mapped, so
        // whoever cuts it short ends the program anyway.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: made by mmap with this length; no slice outlives self.
        unsafe { libc::munmap(self.at, self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(targets: &str) -> Targets {
        let target = |word: &str| {
            let kind = if word.starts_with("sm") { EntryKind::Cubin } else { EntryKind::Ptx };
            (kind, word.parse().expect("a target"))
        };
        targets.split(' ').map(target).collect()
    }

    fn object(is_program: bool, images: &[&str]) -> Object {
        Object { is_program, images: images.iter().map(|targets| image(targets)).collect() }
    }

    fn program(images: &[&str]) -> u32 {
        choose(&[object(true, images)], 80)
    }

    #[test]
    fn the_default_stays_where_it_runs_everything() {
        assert_eq!(choose(&[], 80), 80);
        assert_eq!(program(&["sm_80 compute_80", "sm_90 compute_75"]), 80);
        assert_eq!(program(&["sm_75 compute_75"]), 80);
        assert_eq!(program(&["sm_80", "sm_86 sm_80"]), 80);
    }

    #[test]
    fn a_program_gets_the_device_it_was_built_for() {
        assert_eq!(program(&["sm_90", "sm_90 compute_90"]), 90);
        assert_eq!(program(&["sm_90a compute_90a"]), 90);
        assert_eq!(program(&["sm_86"]), 86);
        assert_eq!(program(&["sm_100f"]), 100);
        assert_eq!(program(&["sm_75"]), 75);
        assert_eq!(program(&["compute_75", "compute_90", "compute_120"]), 120);
        assert_eq!(program(&["sm_90 compute_90", "sm_80 compute_80"]), 90);
    }

    #[test]
    fn most_images_run_where_they_contradict() {
        assert_eq!(program(&["sm_90", "sm_90a", "sm_75"]), 90);
        assert_eq!(program(&["sm_90", "sm_80"]), 80);
    }

    #[test]
    fn libraries_bring_code_for_other_devices() {
        let library = object(false, &["sm_90a", "sm_80 sm_90"]);
        assert_eq!(choose(&[library], 80), 80);
        let extension = || object(false, &["sm_90", "sm_90a"]);
        assert_eq!(choose(&[extension()], 80), 90);
        assert_eq!(choose(&[object(true, &["sm_80"]), extension()], 80), 80);
        assert_eq!(choose(&[object(true, &["compute_80"]), extension()], 80), 90);
    }

    #[test]
    fn nonsense_asks_for_nothing() {
        assert_eq!(program(&["sm_0", "sm_999"]), 80);
        assert_eq!(read(b"no ELF file", true, 80).images, Vec::<Targets>::new());
    }
}
