//! Code images that are damaged, in memory that ends where they do: each number of their headers
//! and of PTX directives is replaced by others. An error is answered, never a panic or a fault.

use std::path::Path;
use std::process::Command;

use cuda_sys::*;

use crate::support::*;

const PAGE: usize = 4096;

/// Memory whose end is followed by a page without access.
struct Fenced {
    start: *mut u8,
    room: usize,
}

impl Fenced {
    fn new(most: usize) -> Fenced {
        let room = most.next_multiple_of(PAGE);
        // SAFETY: a fresh mapping.
        let start = unsafe {
            let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let start = libc::mmap(std::ptr::null_mut(), room + PAGE, rights, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(start.byte_add(room), PAGE, libc::PROT_NONE), 0);
            start.cast()
        };
        Fenced { start, room }
    }

    /// Puts bytes at the end.
    fn put(&self, bytes: &[u8]) -> *const std::ffi::c_void {
        // SAFETY: the room is large enough.
        unsafe {
            let at = self.start.add(self.room - bytes.len());
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len());
            at.cast()
        }
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`.
        unsafe { libc::munmap(self.start.cast(), self.room + PAGE) };
    }
}

/// Loads an image from memory, asks for its kernels, and unloads it. What the driver answered to
/// loading.
fn load(image: *const std::ffi::c_void, what: &dyn Fn() -> String) -> CUresult {
    let mut module = CUmodule::NULL;
    let status = cu!(cuModuleLoadData(&mut module, image));
    // The simulator answers this when it has panicked.
    assert_ne!(status, CUresult::ERROR_UNKNOWN, "{}", what());
    if status == CUresult::SUCCESS {
        for name in [c"k", c"put"] {
            let mut f = CUfunction::NULL;
            let status = cu!(cuModuleGetFunction(&mut f, module, name.as_ptr()));
            assert_ne!(status, CUresult::ERROR_UNKNOWN, "{}", what());
        }
        ok!(cuModuleUnload(module));
    }
    status
}

const KERNEL: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
    .visible .global .align 4 .u32 counter = 7;\n.visible .const .align 4 .u32 factor = 3;\n\
    .visible .entry k(.param .u64 dst, .param .align 8 .b8 pair[16])\n.maxntid 64, 1, 1\n.minnctapersm 1\n{\n\
    .reg .u32 %r<6>; .reg .u64 %d<4>; .shared .align 4 .b8 buffer[64]; .local .align 8 .b8 frame[32];\n\
    ld.param.u64 %d1, [dst]; ld.const.u32 %r1, [factor]; ld.global.u32 %r2, [counter];\n\
    add.u32 %r3, %r1, %r2; st.global.u32 [%d1], %r3; ret;\n}\n";

/// Machine code of [`KERNEL`], and a fat binary with it and the text.
fn images() -> [Vec<u8>; 2] {
    let folder = std::env::temp_dir().join(format!("images-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = |name: &str| folder.join(name);
    std::fs::write(file("k.ptx"), KERNEL).expect("written");
    let tools = tests::build::installed_toolkit().join("bin");
    let tool = |name: &str, args: &[&str]| {
        let program: &Path = &tools.join(name);
        let ended = Command::new(program).current_dir(&folder).args(args).output().expect(name);
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    };
    tool("ptxas", &["-arch=sm_80", "k.ptx", "-o", "k.cubin"]);
    let parts = ["--image3=kind=elf,sm=80,file=k.cubin", "--image3=kind=ptx,sm=80,file=k.ptx"];
    tool("fatbinary", &["--create=k.fatbin", "-64", parts[0], parts[1]]);
    let read = |name: &str| std::fs::read(file(name)).expect(name);
    let images = [read("k.cubin"), read("k.fatbin")];
    let _ = std::fs::remove_dir_all(&folder);
    images
}

fn number(bytes: &[u8], at: usize, width: usize) -> u64 {
    let mut word = [0; 8];
    word[..width].copy_from_slice(&bytes[at..at + width]);
    u64::from_le_bytes(word)
}

/// Offsets and widths of the numbers in a cubin's headers: of the file, each section, each segment,
/// each symbol.
fn cubin_fields(cubin: &[u8]) -> Vec<(usize, usize)> {
    const FILE: [usize; 13] = [2, 2, 4, 8, 8, 8, 4, 2, 2, 2, 2, 2, 2];
    const SECTION: [usize; 10] = [4, 4, 8, 8, 8, 8, 4, 4, 8, 8];
    const SEGMENT: [usize; 8] = [4, 4, 8, 8, 8, 8, 8, 8];
    const SYMBOL: [usize; 6] = [4, 1, 1, 2, 8, 8];
    let mut fields = Vec::new();
    let mut add = |start: usize, widths: &[usize]| {
        let mut at = start;
        for &width in widths {
            fields.push((at, width));
            at += width;
        }
    };
    add(16, &FILE);
    let table = |at: usize, count: usize| (number(cubin, at, 8) as usize, number(cubin, count, 2) as usize);
    let (segments, segment_count) = table(32, 56);
    let (sections, section_count) = table(40, 60);
    (0..segment_count).for_each(|n| add(segments + n * 56, &SEGMENT));
    for n in 0..section_count {
        let header = sections + n * 64;
        add(header, &SECTION);
        if number(cubin, header + 4, 4) == 2 {
            let (start, size) = (number(cubin, header + 24, 8) as usize, number(cubin, header + 32, 8) as usize);
            (0..size / 24).for_each(|symbol| add(start + symbol * 24, &SYMBOL));
        }
    }
    fields
}

/// The same of a fat binary: of the file and of its entries.
fn fatbin_fields(fatbin: &[u8]) -> Vec<(usize, usize)> {
    let mut fields = vec![(0, 4), (4, 2), (6, 2), (8, 8)];
    let mut at = number(fatbin, 6, 2) as usize;
    while at + 64 <= fatbin.len() {
        fields.extend([(0, 2), (2, 2)].map(|(offset, width)| (at + offset, width)));
        fields.extend((4..64).step_by(4).map(|offset| (at + offset, 4)));
        fields.extend((8..64).step_by(8).map(|offset| (at + offset, 8)));
        at += (number(fatbin, at + 4, 4) + number(fatbin, at + 8, 8)) as usize;
    }
    fields
}

#[test]
fn damaged_headers_are_errors() {
    let _gpu = gpu();
    let [cubin, fatbin] = images();
    let mut refused = 0;
    for (name, image, fields) in [("cubin", &cubin, cubin_fields(&cubin)), ("fatbin", &fatbin, fatbin_fields(&fatbin))]
    {
        assert!(fields.len() > 20, "{name}");
        let memory = Fenced::new(image.len());
        assert_eq!(load(memory.put(image), &|| name.to_owned()), CUresult::SUCCESS, "{name}");
        for (at, width) in fields {
            let most = u64::MAX >> (64 - 8 * width);
            for value in [0, 1, most, most / 2, most / 2 + 1, number(image, at, width).wrapping_add(1) & most] {
                let mut bytes = image.clone();
                bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
                let what = || format!("{name}: {width} bytes at {at} are {value:#x}");
                refused += usize::from(load(memory.put(&bytes), &what) != CUresult::SUCCESS);
            }
        }
        // Each length up to the file header's, then each tenth of the whole.
        for len in (1..80).chain((1..10).map(|part| image.len() * part / 10)) {
            let what = || format!("{name}: the first {len} bytes");
            assert_ne!(load(memory.put(&image[..len]), &what), CUresult::SUCCESS, "{}", what());
        }
    }
    assert!(refused > 200, "{refused}");
}

#[test]
fn numbers_of_ptx_that_do_not_fit_are_errors() {
    let _gpu = gpu();
    let memory = Fenced::new(2 * PAGE);
    let mut loaded = 0;
    let starts: Vec<usize> = KERNEL.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
    for at in starts {
        let before = KERNEL.as_bytes()[at - 1];
        // A number, not part of a name or of a longer one.
        if before.is_ascii_alphanumeric() || matches!(before, b'_' | b'%' | b'.') {
            continue;
        }
        let len = KERNEL[at..].find(|c: char| !c.is_ascii_digit()).expect("text behind it");
        for value in ["0", "1", "4294967295", "4294967296", "18446744073709551615"] {
            let text = format!("{}{value}{}\0", &KERNEL[..at], &KERNEL[at + len..]);
            let what = || format!("{value} in place of {} at {at}", &KERNEL[at..at + len]);
            loaded += usize::from(load(memory.put(text.as_bytes()), &what) == CUresult::SUCCESS);
        }
    }
    assert!(loaded > 0, "numbers of no importance");
    // Several at once: products and sums of what fits by itself.
    for limit in ["reqntid", "maxntid"] {
        for value in [u64::from(u32::MAX), 1 << 31, 1 << 22, 0, 1 << 32] {
            let limits = format!(".{limit} {value}, {value}, {value}");
            let text = format!("{}\0", KERNEL.replace(".maxntid 64, 1, 1", &limits));
            let fits = (1..1 << 32).contains(&value);
            let status = load(memory.put(text.as_bytes()), &|| limits.clone());
            assert_eq!(status == CUresult::SUCCESS, fits, "{limits}: {status:?}");
        }
    }
}

#[test]
fn a_text_without_an_end_is_an_error() {
    let _gpu = gpu();
    let memory = Fenced::new(2 * PAGE);
    for len in [1, 3, 4, 8, 16, 63, 64, KERNEL.len()] {
        let status = load(memory.put(&KERNEL.as_bytes()[..len]), &|| format!("{len}"));
        assert_eq!(status, CUresult::ERROR_INVALID_IMAGE, "{len}");
    }
    // A wrapper that leads nowhere, to itself, or is cut off.
    for target in
        [0_usize, 8, usize::MAX, memory.start as usize + memory.room - 24, memory.start as usize + memory.room]
    {
        let mut wrapper = 0x4662_43b1_u32.to_le_bytes().to_vec();
        wrapper.extend(1_u32.to_le_bytes());
        wrapper.extend(target.to_le_bytes());
        wrapper.extend([0; 8]);
        for len in [wrapper.len(), 12, 5] {
            let status = load(memory.put(&wrapper[..len]), &|| format!("{target:#x} {len}"));
            assert_eq!(status, CUresult::ERROR_INVALID_IMAGE, "{target:#x} {len}");
        }
    }
}
