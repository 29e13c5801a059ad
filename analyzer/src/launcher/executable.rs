//! What the file of a program shows: whether and why nothing can be preloaded into it.
//!
//! Owns finding the file that a shell would start, and reading its headers. A file that it cannot
//! read counts as an ordinary program.

use std::ffi::OsStr;
use std::fmt;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};

/// Why the loader preloads nothing into a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closed {
    /// It has no dynamic loader.
    Static,
    /// It runs with other rights than its user's (set-user-ID or set-group-ID).
    Privileged,
}

impl fmt::Display for Closed {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Static => {
                "it is linked statically, so no library can be preloaded into it: link it with the shared C library"
            }
            Self::Privileged => {
                "it is set-user-ID or set-group-ID, so the loader preloads nothing into it: run a copy without that"
            }
        })
    }
}

/// The file that a shell would start under this name.
pub(crate) fn find(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH")?;
    let is_executable = |file: &PathBuf| {
        std::fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(is_executable)
}

/// Why nothing can be preloaded into this file; `None` when something can.
pub(crate) fn closed(file: &Path) -> Option<Closed> {
    let data = beginning(file)?;
    let header = elf::FileHeader64::<object::Endianness>::parse(data.as_slice()).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data.as_slice()).ok()?;
    if !segments.iter().any(|segment| segment.p_type(endian) == elf::PT_INTERP) {
        return Some(Closed::Static);
    }
    let mode = std::fs::metadata(file).ok()?.permissions().mode();
    (mode & 0o6000 != 0).then_some(Closed::Privileged)
}

/// The dynamic loader that a program asks for; `None`: it asks for none, or is no program.
pub(crate) fn loader(file: &Path) -> Option<PathBuf> {
    let data = beginning(file)?;
    let header = elf::FileHeader64::<object::Endianness>::parse(data.as_slice()).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data.as_slice()).ok()?;
    let path = segments.iter().find_map(|segment| segment.interpreter(endian, data.as_slice()).ok()?)?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

/// The beginning of a file, where the program headers lie.
fn beginning(file: &Path) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    std::fs::File::open(file).ok()?.take(1 << 16).read_to_end(&mut data).ok()?;
    Some(data)
}

/// Whether the file holds code for a GPU.
pub(crate) fn has_device_code(file: &Path) -> bool {
    std::fs::read(file).is_ok_and(|bytes| is_with_device_code(&bytes))
}

/// Whether a file of this content does.
pub(crate) fn is_with_device_code(bytes: &[u8]) -> bool {
    device_code::image::find_in_host(bytes).is_ok_and(|images| !images.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_programs_scripts_and_damaged_files_are_open() {
        let this = std::env::current_exe().expect("this test");
        assert_eq!(closed(&this), None);
        assert_eq!(closed(Path::new("/nowhere")), None);
        assert_eq!(closed(Path::new(file!())), None);
        assert!(loader(&this).is_some_and(|path| path.exists()));
        assert_eq!((loader(Path::new("/nowhere")), loader(Path::new(file!()))), (None, None));
        let bytes = std::fs::read(this).expect("readable");
        let file = std::env::temp_dir().join(format!("streamsan-program-{}", std::process::id()));
        for len in [0, 3, 16, 63, 64, 200] {
            std::fs::write(&file, &bytes[..len]).expect("writable");
            assert_eq!((closed(&file), loader(&file)), (None, None), "{len} bytes");
        }
        let _ = std::fs::remove_file(&file);
    }

    #[test]
    fn names_without_a_slash_are_looked_for_in_the_path() {
        assert!(find(OsStr::new("sh")).is_some_and(|file| file.ends_with("sh")));
        assert_eq!(find(OsStr::new("./a/b")), Some(PathBuf::from("./a/b")));
        assert_eq!(find(OsStr::new("no-such-program-anywhere")), None);
    }
}
