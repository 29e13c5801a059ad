//! Whether the program may use MPI: then the library that observes MPI's calls (crate `shim-mpi`)
//! is preloaded, too.
//!
//! Owns that decision. The dynamic linker takes MPI's names from the libraries that it loads first,
//! so it has to be made before the program starts. A program may also load MPI later (mpi4py), or
//! start the programs that use it (`mpirun`, a shell, Python), and those inherit what is preloaded.
//! Therefore the library is left out in one case only: the program uses CUDA itself, and neither
//! the libraries that it is linked with nor its file name MPI. If such a program loads or starts
//! something that uses MPI after all, the shim notices, and the report says what was not observed.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use memchr::memmem;

use crate::launcher::executable;
use crate::launcher::node::Rank;

/// Whether MPI's calls are to be observed in a program and in those that it starts. `search`: the
/// `LD_LIBRARY_PATH` that it gets, if that is another one than ours.
pub(crate) fn may_be_used(program: &OsStr, search: Option<&OsStr>) -> bool {
    // SAFETY: getppid has no preconditions.
    let parent = unsafe { libc::getppid() } as u32;
    if Rank::of(|name| std::env::var(name).ok(), parent).is_some() {
        return true;
    }
    let Some(file) = executable::find(program) else { return true };
    let Some(libraries) = linked_with(&file, search) else { return true };
    // SAFETY: the file of a program that is about to run; whoever changes it meanwhile breaks the
    // program, too.
    let bytes = std::fs::File::open(&file).and_then(|file| unsafe { memmap2::Mmap::map(&file) });
    decide(&libraries, bytes.as_deref().unwrap_or_default())
}

/// Decides by the libraries that a program is linked with, and by its file.
fn decide(libraries: &[String], program: &[u8]) -> bool {
    let any = |starts: &[&str]| libraries.iter().any(|name| starts.iter().any(|start| name.starts_with(start)));
    if any(&["libmpi"]) || memmem::find(program, b"libmpi").is_some() {
        return true;
    }
    !any(&["libcudart.so", "libcuda.so"]) && !executable::is_with_device_code(program)
}

/// The names of all libraries that the loader loads with a program, as it says itself: it knows the
/// search paths. `None`: it does not say, perhaps because one is missing.
fn linked_with(program: &Path, search: Option<&OsStr>) -> Option<Vec<String>> {
    let loader = executable::loader(program)?;
    let mut list = Command::new(loader);
    list.arg("--list").arg(program).stdin(Stdio::null()).stderr(Stdio::null());
    list.envs(search.map(|search| ("LD_LIBRARY_PATH", search)));
    let list = list.output().ok().filter(|list| list.status.success())?;
    let text = String::from_utf8_lossy(&list.stdout);
    let names = text.lines().filter_map(|line| line.split_whitespace().next()?.rsplit('/').next());
    let names: Vec<String> = names.map(str::to_owned).collect();
    (!names.is_empty()).then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_are_not_known_to_do_without_mpi_may_use_it() {
        let this = std::env::current_exe().expect("this test");
        // This test uses no CUDA: it may start programs that do. Its file names libmpi, as well.
        for program in [this.as_os_str(), OsStr::new("sh"), OsStr::new("/nowhere"), OsStr::new(file!())] {
            assert!(may_be_used(program, None), "{}", program.display());
        }
        let libraries = linked_with(&this, None).expect("the loader's list");
        assert!(libraries.iter().any(|name| name.starts_with("libc.so")), "{libraries:?}");
    }

    #[test]
    fn cuda_without_mpi_decides() {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for cuda in ["libcudart.so.12", "libcudart.so.13", "libcuda.so.1"] {
            assert!(!decide(&names(&["libm.so.6", cuda]), b""), "{cuda}");
            for mpi in ["libmpi.so.40", "libmpi.so.12", "libmpich.so.12", "libmpi_abi.so.1", "libmpi_mpifh.so.40"] {
                assert!(decide(&names(&[cuda, mpi]), b""), "{cuda} {mpi}");
            }
            assert!(decide(&names(&[cuda]), b"\0libmpi.so.40\0"), "{cuda}: it may open the library itself");
        }
        assert!(decide(&names(&["libpython3.11.so.1.0", "libc.so.6"]), b""), "what it loads is not known");
    }
}
