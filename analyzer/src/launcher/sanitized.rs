//! Programs that are compiled with `-fsanitize=thread`: which library answers them.
//!
//! Owns what a program's file says of it, and the folder with the stand-in for the shared runtime
//! of ThreadSanitizer (crate `shim-instrumented`). A file that cannot be read counts as an ordinary
//! program.

use std::path::{Path, PathBuf};

use object::elf::{self, FileHeader64};
use object::read::elf::{FileHeader, Sym};
use object::{Endianness, ReadCache};

use crate::launcher::dynamic_section;

/// Which runtime the code of a program calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sanitized {
    /// It is not instrumented, or another library is.
    No,
    /// A shared one, or StreamSan's library: that is taken.
    Shared,
    /// ThreadSanitizer's own, which is a part of the program.
    Inside,
}

/// Names of libraries whose place is taken, up to where versions and processors differ.
const SHARED: [&str; 3] = ["libtsan.so", "libclang_rt.tsan", "libstreamsan_host.so"];

/// What a file says.
pub(crate) fn of(file: &Path) -> Sanitized {
    let Ok(opened) = std::fs::File::open(file) else { return Sanitized::No };
    let data = ReadCache::new(opened);
    let Some(needs) = dynamic_section::needs_in(&data, file) else { return Sanitized::No };
    if needs.names.iter().any(|name| SHARED.iter().any(|start| name.starts_with(start))) {
        return Sanitized::Shared;
    }
    if defines_runtime(&data).unwrap_or(false) { Sanitized::Inside } else { Sanitized::No }
}

fn defines_runtime(data: &ReadCache<std::fs::File>) -> Option<bool> {
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    for kind in [elf::SHT_DYNSYM, elf::SHT_SYMTAB] {
        let table = sections.symbols(endian, data, kind).ok()?;
        let strings = table.strings();
        let found = table.iter().any(|symbol| {
            symbol.st_shndx(endian) != elf::SHN_UNDEF
                && symbol.name(endian, strings).is_ok_and(|name| name == b"__tsan_init")
        });
        if found {
            return Some(true);
        }
    }
    Some(false)
}

/// The folder with the stand-ins for the shared runtimes, beside the running program.
pub(crate) fn folder() -> Option<PathBuf> {
    crate::launcher::process::beside("tsan").ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_and_damaged_files_are_not_instrumented() {
        let this = std::env::current_exe().expect("this test");
        assert_eq!(of(&this), Sanitized::No);
        assert_eq!(of(Path::new("/nowhere")), Sanitized::No);
        assert_eq!(of(Path::new(file!())), Sanitized::No);
    }
}
