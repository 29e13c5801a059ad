//! Object files of living processes: a build may replace them, and a program may delete itself,
//! before a report asks for the names in them.
//!
//! Owns which of them are open, for all processes, and the ways to a file that has lost its name:
//! the kernel gives the executable to the owner of a process, and other mapped files to those with
//! the capability for it (proc_pid_map_files(5)). The launcher's program may delete itself and end
//! before its first record is read: its file is opened before it starts.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use memmap2::Mmap;
use object::Object;
use system::{descriptors, local_files};
use trace::FileIdentity;

/// The process whose files they are.
#[derive(Clone, Default, Debug)]
pub(crate) struct Living {
    /// Its number, as it knows it itself.
    pid: u32,
    /// Its executable when it began.
    exe: PathBuf,
}

/// The files that are open, shared by all processes.
static HELD: Mutex<Option<HashMap<FileIdentity, Weak<File>>>> = Mutex::new(None);

/// The program that the launcher started last.
static STARTED: Mutex<Option<Arc<File>>> = Mutex::new(None);

/// Opens the file of a program that is about to start. A file that cannot be opened is left to
/// what is found when the process says its modules.
pub fn hold_program(path: &Path) {
    let file = local_files::open(path).ok().map(Arc::new);
    *STARTED.lock().unwrap_or_else(PoisonError::into_inner) = file;
}

/// The file of the program that was started, if it has this build id.
pub(crate) fn started(build_id: &[u8]) -> Option<Arc<File>> {
    if build_id.is_empty() || local_files::are_named_by_traces() {
        return None;
    }
    let started = STARTED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    started.filter(|file| has_build_id(file, build_id))
}

impl Living {
    /// A process that says this of itself. `None`: a trace does, which may be of another machine
    /// and another time, or the process is not seen from here under this number (it has another
    /// namespace, or has ended).
    pub(crate) fn new(pid: u32, exe: &Path) -> Option<Self> {
        let living = Self { pid, exe: named(exe) };
        (!local_files::are_named_by_traces() && living.is_here()).then_some(living)
    }

    fn link(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/exe", self.pid))
    }

    /// Whether the executable of the process has its name, or had it.
    fn is_here(&self) -> bool {
        self.link().read_link().is_ok_and(|exe| named(&exe) == self.exe)
    }

    /// Opens the file of a module, and holds it. `None`: it is not to be had, or too many are open.
    pub(crate) fn hold(&self, path: &Path, start: u64, build_id: &[u8]) -> Option<Arc<File>> {
        let file = self.open(path, start, build_id)?;
        let identity = FileIdentity::new(&file.metadata().ok()?);
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.get_or_insert_default();
        if let Some(file) = held.get(&identity).and_then(Weak::upgrade) {
            return Some(file);
        }
        held.retain(|_, file| file.strong_count() > 0);
        // The lowest free number is given first: it tells how many are open.
        if file.as_raw_fd() as u64 >= descriptors::limit().unwrap_or(0) / 4 {
            return None;
        }
        let file = Arc::new(file);
        held.insert(identity, Arc::downgrade(&file));
        Some(file)
    }

    fn open(&self, path: &Path, start: u64, build_id: &[u8]) -> Option<File> {
        if !path.is_absolute() {
            return None;
        }
        let has_id = |file: &File| build_id.is_empty() || has_build_id(file, build_id);
        if named(path) == self.exe {
            // Another process may have got the number. A build id alone says that this is the file.
            let is_it = |file: &File| if build_id.is_empty() { self.is_here() } else { has_id(file) };
            if let Some(file) = local_files::open(&self.link()).ok().filter(is_it) {
                return Some(file);
            }
        }
        local_files::open(path)
            .ok()
            .filter(has_id)
            .or_else(|| (!build_id.is_empty()).then(|| self.mapped_at(start)).flatten().filter(has_id))
    }

    /// The file that is mapped at an address.
    fn mapped_at(&self, start: u64) -> Option<File> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", self.pid)).ok()?;
        let ranges = maps.lines().filter_map(|line| line.split(' ').next());
        let begins = |range: &&str| range.split('-').next().is_some_and(|at| u64::from_str_radix(at, 16) == Ok(start));
        let range = ranges.into_iter().find(begins)?;
        local_files::open(Path::new(&format!("/proc/{}/map_files/{range}", self.pid))).ok()
    }
}

/// A path without the kernel's mark of a file that has no name any more (proc_pid_exe(5)).
pub(crate) fn named(path: &Path) -> PathBuf {
    let bytes = path.as_os_str().as_bytes();
    let bytes = bytes.strip_suffix(b" (deleted)").unwrap_or(bytes);
    std::ffi::OsStr::from_bytes(bytes).into()
}

fn has_build_id(file: &File, build_id: &[u8]) -> bool {
    // SAFETY: the mapping is private and read-only. Truncating an object file while it is read is a
    // fault that every debugger shares.
    let Ok(map) = (unsafe { Mmap::map(file) }) else { return false };
    object::File::parse(&*map).is_ok_and(|file| file.build_id().ok().flatten() == Some(build_id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    use std::process::{Child, Command};

    /// A copy of `sleep` that runs, and the build id of it.
    fn sleeping(folder: &Path) -> (Child, PathBuf, Vec<u8>) {
        let program = folder.join("program");
        let of = fs::canonicalize("/bin/sleep").expect("sleep");
        fs::copy(&of, &program).expect("copied");
        let bytes = fs::read(&program).expect("readable");
        let id =
            object::File::parse(&*bytes).expect("an object").build_id().expect("notes").unwrap_or_default().to_vec();
        // Another process of this test may have the copy open for writing for a moment.
        let start = || Command::new(&program).arg("60").spawn().ok();
        let child = std::iter::repeat_with(start).take(100).find_map(|child| {
            std::thread::sleep(std::time::Duration::from_millis(if child.is_some() { 0 } else { 10 }));
            child
        });
        (child.expect("it runs"), program, id)
    }

    #[test]
    fn a_program_that_deletes_itself_and_ends_is_still_read() {
        let folder = system::private_file::folder("streamsan-held-objects-").expect("a folder");
        let program = folder.join("program");
        let of = fs::canonicalize("/bin/sleep").expect("sleep");
        fs::copy(&of, &program).expect("copied");
        let bytes = fs::read(&program).expect("readable");
        let id = object::File::parse(&*bytes).expect("an object").build_id().expect("notes").expect("one").to_vec();
        let inode = fs::metadata(&program).expect("there").ino();
        hold_program(&program);
        fs::remove_file(&program).expect("ours");
        let found = |id: &[u8]| started(id).map(|file| file.metadata().expect("open").ino());
        assert_eq!(found(&id), Some(inode));
        assert_eq!((found(&[9; 20]), found(&[])), (None, None));
        hold_program(&program);
        assert_eq!(found(&id), None, "no such file any more");
        fs::remove_dir_all(folder).expect("ours");
    }

    #[test]
    fn an_executable_is_found_whatever_its_name_leads_to() {
        let folder = system::private_file::folder("streamsan-held-objects-").expect("a folder");
        let (mut child, program, id) = sleeping(&folder);
        let inode = fs::metadata(&program).expect("there").ino();
        let living = Living::new(child.id(), &program).expect("a living process");
        let found = |path: &Path, id: &[u8]| {
            let file = living.hold(path, 0, id)?;
            Some(file.metadata().expect("open").ino())
        };
        let deleted = PathBuf::from(format!("{} (deleted)", program.display()));
        let ways: [fn(&Path); 3] = [
            |path| fs::remove_file(path).expect("ours"),
            |path| fs::write(path, b"another").expect("writable"),
            |path| {
                let _ = fs::copy(std::env::current_exe().expect("this test"), path).expect("copied");
            },
        ];
        for (at, way) in ways.into_iter().enumerate() {
            for id in [&id[..], &[]] {
                assert_eq!(found(&program, id), Some(inode), "{at}");
                assert_eq!(found(&deleted, id), Some(inode), "{at}");
            }
            assert_ne!(found(&program, &[9; 20]), Some(inode), "{at}: an id that is not its");
            way(&program);
        }
        // Not that of a process which has another executable, now or then.
        let own = std::process::id();
        assert!(Living::new(own, &program).is_none());
        let other = Living { pid: own, exe: program.clone() };
        for id in [&id[..], &[]] {
            assert!(other.hold(&deleted, 0, id).is_none(), "{id:?}");
        }
        child.kill().and_then(|()| child.wait()).expect("ended");
        fs::remove_dir_all(folder).expect("ours");
    }
}
