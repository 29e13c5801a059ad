//! Which executables use CUDA, by what their files say.
//!
//! Owns the signs: a library of CUDA among those that the loader must bring, directly or through
//! libraries of the project; code for GPUs in the file; the name of the driver's library among its
//! constants, which the static runtime and programs that open the driver themselves have. A file
//! that cannot be read has none of them. Nothing is run.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf;
use object::read::elf::{Dyn, FileHeader, ProgramHeader, SectionHeader};

use crate::launcher::dynamic_section;

/// How the names of CUDA's libraries begin, and of those that stand for them.
const LIBRARIES: [&str; 20] = [
    "libcuda.so",
    "libcudart",
    "libcublas",
    "libcufft",
    "libcurand",
    "libcusparse",
    "libcusolver",
    "libcudnn",
    "libcutensor",
    "libcufile",
    "libnccl",
    "libnvrtc",
    "libnvJitLink",
    "libnvjpeg",
    "libnpp",
    "libnvshmem",
    "libtorch_cuda",
    "libc10_cuda",
    "libnvinfer",
    "libonnxruntime_providers_cuda",
];

/// Sections that hold code for GPUs.
const CODE: [&[u8]; 3] = [b".nv_fatbin", b".nvFatBinSegment", b"__nv_relfatbin"];

/// What a file says of itself.
#[derive(Default)]
struct Signs {
    /// A user can start it.
    program: bool,
    /// It has a sign of its own.
    cuda: bool,
    needed: Vec<String>,
    /// Where the loader looks for those.
    paths: Vec<PathBuf>,
}

/// The files of a tree.
pub(crate) struct CudaLinks {
    /// Libraries of the tree, by name.
    libraries: BTreeMap<String, PathBuf>,
    known: BTreeMap<PathBuf, bool>,
}

impl CudaLinks {
    /// With these libraries to look among.
    pub(crate) fn new(libraries: impl IntoIterator<Item = PathBuf>) -> Self {
        let named = |path: PathBuf| Some((path.file_name()?.to_str()?.to_owned(), path));
        Self { libraries: libraries.into_iter().filter_map(named).collect(), known: BTreeMap::new() }
    }

    /// Whether a file is a program that uses CUDA.
    pub(crate) fn is_program(&mut self, file: &Path) -> bool {
        let signs = signs(file).unwrap_or_default();
        signs.program && self.of(&signs, file)
    }

    fn of(&mut self, signs: &Signs, file: &Path) -> bool {
        // Libraries may need each other.
        self.known.insert(file.to_path_buf(), signs.cuda);
        let uses = signs.cuda || signs.needed.iter().any(|name| self.library(name, &signs.paths));
        self.known.insert(file.to_path_buf(), uses);
        uses
    }

    fn library(&mut self, name: &str, paths: &[PathBuf]) -> bool {
        if LIBRARIES.iter().any(|prefix| name.starts_with(prefix)) {
            return true;
        }
        let beside = paths.iter().map(|folder| folder.join(name)).find(|file| file.is_file());
        let Some(file) = beside.or_else(|| self.libraries.get(name).cloned()) else { return false };
        match self.known.get(&file) {
            Some(uses) => *uses,
            None => signs(&file).is_some_and(|signs| self.of(&signs, &file)),
        }
    }
}

fn signs(path: &Path) -> Option<Signs> {
    let file = File::open(path).ok()?;
    // SAFETY: the file is only read. Should it shrink meanwhile, the hunt ends by a signal, as any
    // reader of mapped files would.
    let data = unsafe { memmap2::Mmap::map(&file) }.ok()?;
    let data: &[u8] = &data;
    let header = elf::FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let sections = header.sections(endian, data).ok()?;
    // What is linked statically cannot be checked; that is said when it is run.
    let interpreted = segments.iter().any(|segment| segment.p_type(endian) == elf::PT_INTERP);
    let kind = header.e_type(endian);
    let foreign = header.e_machine(endian) == elf::EM_CUDA;
    let program = !foreign && (kind == elf::ET_EXEC || (kind == elf::ET_DYN && interpreted));
    let mut signs = Signs { program, ..Signs::default() };
    for section in sections.iter() {
        let name = sections.section_name(endian, section).unwrap_or_default();
        let driver =
            || section.data(endian, data).is_ok_and(|text| memchr::memmem::find(text, b"libcuda.so").is_some());
        signs.cuda |= CODE.contains(&name) || (name == b".rodata" && driver());
    }
    if let Some((dynamic, _)) = sections.dynamic(endian, data).ok()? {
        let pie = |entry: &elf::Dyn64<Endianness>| {
            entry.tag(endian) == elf::DT_FLAGS_1 && entry.val(endian) & elf::DF_1_PIE.0 != 0
        };
        signs.program |= dynamic.iter().any(pie);
    }
    if let Some(needs) = dynamic_section::needs_in(data, path) {
        signs.needed = needs.names;
        signs.paths = [needs.rpath, needs.runpath].concat();
    }
    Some(signs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_no_programs_have_no_signs() {
        let mut links = CudaLinks::new([]);
        for file in ["/nowhere", file!(), "/proc/self/cmdline"] {
            assert!(!links.is_program(Path::new(file)), "{file}");
        }
        let folder = std::env::temp_dir().join(format!("streamsan-links-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let bytes = std::fs::read(std::env::current_exe().expect("this test")).expect("readable");
        for len in [0, 3, 16, 63, 64, 200, 5000] {
            let file = folder.join(len.to_string());
            std::fs::write(&file, &bytes[..len]).expect("writable");
            assert!(!links.is_program(&file), "{len} bytes");
        }
        let _ = std::fs::remove_dir_all(folder);
    }
}
