//! What the dynamic section of a program says: which libraries it needs, where they are looked for,
//! and which functions it needs.
//!
//! A file that cannot be read needs nothing.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader};
use object::{Endianness, ReadRef};

/// What a file says of the libraries that it needs.
#[derive(Default)]
pub(crate) struct Needs {
    /// Their names (`DT_NEEDED`).
    pub(crate) names: Vec<String>,
    /// Folders of `DT_RPATH`, which the loader leaves alone where there is a `DT_RUNPATH`.
    pub(crate) rpath: Vec<PathBuf>,
    /// Folders of `DT_RUNPATH`.
    pub(crate) runpath: Vec<PathBuf>,
}

/// What a file says of the libraries that it needs, with its folder in place of `$ORIGIN`. `None`
/// when it is damaged or needs none.
pub(crate) fn needs_in<'data>(data: impl ReadRef<'data>, file: &Path) -> Option<Needs> {
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let (dynamic, link) = sections.dynamic(endian, data).ok()??;
    let strings = sections.strings(endian, data, link).ok()?;
    let origin = file.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
    let mut needs = Needs::default();
    for entry in dynamic {
        let tag = entry.tag(endian);
        if !matches!(tag, elf::DT_NEEDED | elf::DT_RPATH | elf::DT_RUNPATH) {
            continue;
        }
        let Ok(text) = entry.string(endian, strings) else { continue };
        let text = String::from_utf8_lossy(text).into_owned();
        let text = text.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
        let folders = || text.split(':').filter(|folder| !folder.is_empty()).map(PathBuf::from);
        match tag {
            elf::DT_RPATH => needs.rpath.extend(folders()),
            elf::DT_RUNPATH => needs.runpath.extend(folders()),
            _ => needs.names.push(text),
        }
    }
    Some(needs)
}

/// Functions of CUDA that a program is linked with and none of these libraries has, sorted.
pub(crate) fn missing_functions(program: &Path, libraries: &[PathBuf]) -> Vec<String> {
    let has: HashSet<String> = libraries.iter().flat_map(|file| symbols(file, true)).collect();
    let wanted = symbols(program, false).into_iter();
    let mut missing: Vec<String> = wanted.filter(|name| is_cuda(name) && !has.contains(name)).collect();
    missing.sort();
    missing
}

/// A function of the runtime or the driver, but not of a library such as cuBLAS.
fn is_cuda(name: &str) -> bool {
    let capital = |rest: &str| rest.starts_with(|c: char| c.is_ascii_uppercase());
    ["__cuda", "cuda", "cu"].into_iter().any(|prefix| name.strip_prefix(prefix).is_some_and(capital))
}

/// Names of the dynamic symbols that a file defines, or needs from others.
fn symbols(file: &Path, defined: bool) -> Vec<String> {
    let read = || {
        let data = std::fs::read(file).ok()?;
        let data = data.as_slice();
        let header = FileHeader64::<Endianness>::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let sections = header.sections(endian, data).ok()?;
        let table = sections.symbols(endian, data, elf::SHT_DYNSYM).ok()?;
        let strings = table.strings();
        let wanted = |symbol: &&elf::Sym64<Endianness>| {
            let is_defined = symbol.st_shndx.get(endian) != elf::SHN_UNDEF;
            // A weak reference may stay without a definition.
            is_defined == defined && (defined || symbol.st_bind() != elf::STB_WEAK)
        };
        let names = table.iter().filter(wanted).filter_map(|symbol| {
            let name = strings.get(symbol.st_name.get(endian)).ok()?;
            Some(String::from_utf8_lossy(name).into_owned())
        });
        Some(names.collect())
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_without_cuda_and_damaged_files_need_nothing() {
        let this = std::env::current_exe().expect("this test");
        let bytes = std::fs::read(&this).expect("readable");
        let needs = |bytes: &[u8]| needs_in(bytes, &this);
        assert!(needs(&bytes).is_some_and(|needs| needs.names.iter().any(|name| name.starts_with("libc.so"))));
        let missing = |file: &Path| missing_functions(file, &[]);
        for file in [this.as_path(), Path::new("/nowhere"), Path::new(file!())] {
            assert_eq!(missing(file), Vec::<String>::new());
        }
        let file = std::env::temp_dir().join(format!("streamsan-dynamic-{}", std::process::id()));
        for len in [0, 3, 64, 4096, bytes.len() / 2] {
            std::fs::write(&file, &bytes[..len]).expect("writable");
            assert_eq!(missing(&file), Vec::<String>::new(), "{len} bytes");
            assert!(needs(&bytes[..len]).is_none(), "{len} bytes");
        }
        let _ = std::fs::remove_file(&file);
    }

    #[test]
    fn functions_of_the_runtime_and_the_driver_are_told_from_those_of_libraries() {
        assert!(["cudaMalloc", "__cudaRegisterFatBinary", "cuInit"].into_iter().all(is_cuda));
        assert!(
            !["cublasCreate_v2", "cudnnCreate", "curl_easy_init", "cufftPlan1d", "custom"].into_iter().any(is_cuda)
        );
    }
}
