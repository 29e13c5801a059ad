//! `--soname`: a copy of the shim that carries the driver's SONAME.
//!
//! Owns that copy and the search for the real driver. A library opened with `RTLD_DEEPBIND` finds
//! the C library's `dlsym` before the shim's, but it finds a library that is already loaded under
//! the name `libcuda.so.1`. So every look-up of that name leads to the shim, which opens the real
//! driver by its path. A link gives the copy the driver's other name, `libcuda.so`: a file that is
//! found under another name and is loaded already is not loaded twice (`ld.so(8)`). The price: a
//! program that opens the driver by path is caught by the `dlsym` hook only, as always, and the
//! driver has to be found here.

use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};

const OURS: &[u8] = b"\0libstreamsan.so\0";
const DRIVER: &str = "libcuda.so.1";
/// The other name, by which Taichi and Dr.Jit open the driver.
const LINK: &str = "libcuda.so";

/// Writes the copy into `folder`. The error is a line for the user.
pub(crate) fn copy(shim: &Path, folder: &Path) -> Result<PathBuf, String> {
    let mut bytes = std::fs::read(shim).map_err(|error| format!("{}: {error}", shim.display()))?;
    let place = soname_offset(&bytes).ok_or_else(|| format!("{}: built without a SONAME", shim.display()))?;
    let mut name = [0; OURS.len() - 2];
    name[..DRIVER.len()].copy_from_slice(DRIVER.as_bytes());
    bytes[place..place + name.len()].copy_from_slice(&name);
    let path = folder.join("libstreamsan-as-driver.so");
    // Other users that the program becomes load it, too.
    let for_all = |path: &Path| std::fs::set_permissions(path, Permissions::from_mode(0o755));
    let written = std::fs::write(&path, bytes).and_then(|()| for_all(&path));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    let links = links(&path);
    let made = std::fs::create_dir(&links).and_then(|()| for_all(&links));
    let made = made.and_then(|()| std::os::unix::fs::symlink(&path, links.join(LINK)));
    made.map_err(|error| format!("{}: {error}", links.display()))?;
    Ok(path)
}

/// The folder in which the copy has the driver's other name, for `LD_LIBRARY_PATH`.
pub(crate) fn links(copy: &Path) -> PathBuf {
    copy.with_extension("links")
}

/// The offset of the SONAME in the file: in the table of dynamic strings.
fn soname_offset(bytes: &[u8]) -> Option<usize> {
    let file = object::File::parse(bytes).ok()?;
    let (start, size) = file.section_by_name(".dynstr")?.file_range()?;
    let strings = bytes.get(start as usize..(start + size) as usize)?;
    let at = strings.windows(OURS.len()).position(|window| window == OURS)?;
    Some(start as usize + at + 1)
}

/// The real driver, as the dynamic linker would find it. The error is a line for the user.
pub(crate) fn driver() -> Result<OsString, String> {
    let listed = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let of_debian = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let known = [&*of_debian, "/usr/lib64", "/usr/lib", "/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"];
    let mut folders = std::env::split_paths(&listed).chain(known.into_iter().map(PathBuf::from));
    let found = folders.find_map(|folder| Some(folder.join(DRIVER)).filter(|path| path.is_file()));
    found.map(PathBuf::into_os_string).ok_or_else(|| {
        format!("no {DRIVER} found in LD_LIBRARY_PATH or the usual folders, which --soname needs: name its folder in LD_LIBRARY_PATH")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_without_our_name_is_refused() {
        let folder = std::env::temp_dir();
        let error = copy(Path::new("/proc/self/exe"), &folder).unwrap_err();
        assert!(error.contains("SONAME"), "{error}");
        assert!(copy(Path::new("/nowhere/lib.so"), &folder).is_err());
    }
}
