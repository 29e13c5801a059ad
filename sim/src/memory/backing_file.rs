//! The files without a name that simulated memory lies in, and how parts of them are mapped.
//!
//! The program may close their descriptors at any time, as daemons do, and open its own files under
//! the same numbers. So a file is mapped whole once more, inaccessible, and parts of it are mapped
//! from there: `mremap` of no bytes of a shared mapping makes another one of the same pages
//! (`mremap(2)`). The descriptor is for systems that can not do so, and for other processes.
//!
//! `mlockall(MCL_FUTURE)` fills each new mapping with memory, unless nothing may be accessed there
//! (`mlock(2)`; measured on Linux 6.18). So all is mapped inaccessible and opened afterwards.

use signal_free::descriptors::{FileIdentity, HeldFile};
use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// A mapping that ends with this value, unless it is kept.
pub(super) struct Mapping {
    at: u64,
    len: u64,
}

impl Mapping {
    /// Maps where nothing may be accessed yet. None: the system refuses.
    pub(super) fn inaccessible(at: u64, len: u64, flags: i32, fd: i32) -> Option<Mapping> {
        // SAFETY: a fresh mapping: no caller passes MAP_FIXED.
        let got = unsafe { libc::mmap(at as *mut _, len as usize, libc::PROT_NONE, flags, fd, 0) };
        (got != libc::MAP_FAILED).then_some(Mapping { at: got as u64, len })
    }

    /// Maps a part of a file in the same way.
    fn of_file(len: u64, fd: i32, begin: u64) -> Option<Mapping> {
        let begin = begin as libc::off_t;
        // SAFETY: a fresh mapping.
        let got =
            unsafe { libc::mmap(std::ptr::null_mut(), len as usize, libc::PROT_NONE, libc::MAP_SHARED, fd, begin) };
        (got != libc::MAP_FAILED).then_some(Mapping { at: got as u64, len })
    }

    /// Where it lies.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// It stays for ever.
    pub(super) fn keep(self) -> u64 {
        let at = self.at;
        std::mem::forget(self);
        at
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: a mapping of this module, whose address nobody has kept.
        unsafe { libc::munmap(self.at as *mut _, self.len as usize) };
    }
}

/// Lets the simulator read and write a part of one of its mappings.
pub(super) fn open(at: u64, len: u64) -> bool {
    // SAFETY: the caller's own mapping.
    unsafe { libc::mprotect(at as *mut _, len as usize, RW) == 0 }
}

/// Replaces what is mapped at these addresses of ours by nothing.
pub(super) fn close(at: u64, len: u64) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: inside a range that the caller reserved.
    unsafe { libc::mmap(at as *mut _, len as usize, libc::PROT_NONE, flags, -1, 0) };
}

/// One file. Offsets and lengths are multiples of the page size.
pub(super) struct BackingFile {
    file: HeldFile,
    /// Where in the file it begins.
    begin: u64,
    /// All of it, inaccessible.
    whole: Mapping,
}

impl BackingFile {
    /// Makes a file of zeros. None: the system refuses.
    pub(super) fn create(name: &CStr, len: u64) -> Option<BackingFile> {
        // By number: C libraries before 2.27 have no such function.
        // SAFETY: a valid C string; the descriptor is ours.
        let fd = unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), libc::MFD_CLOEXEC) } as i32;
        if fd < 0 {
            return None;
        }
        // SAFETY: just opened, and owned by nothing else.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        if !signal_free::resize(file.as_raw_fd(), len) {
            return None;
        }
        Self::part_of(file, 0, len)
    }

    /// A part of a file that is there already, such as another process's: offsets count from where
    /// it begins.
    pub(super) fn part_of(file: OwnedFd, begin: u64, len: u64) -> Option<BackingFile> {
        let whole = Mapping::of_file(len, file.as_raw_fd(), begin)?;
        // A core file would hold all of it, with each page that nobody has written: the kernel
        // dumps shared memory whatever may be accessed (core(5), coredump_filter). Mappings made
        // from it inherit this.
        // SAFETY: advice about a mapping of our own.
        unsafe { libc::madvise(whole.at as *mut _, len as usize, libc::MADV_DONTDUMP) };
        Some(BackingFile { file: HeldFile::new(file)?, begin, whole })
    }

    /// The descriptor, while it is still this file's, and which file it is.
    pub(super) fn descriptor(&self) -> Option<(i32, FileIdentity)> {
        Some((self.file.number()?, self.file.identity()))
    }

    /// Maps a part of the file at addresses of ours, in place of what is there. Nothing may be
    /// accessed there yet.
    pub(super) fn place(&self, at: u64, offset: u64, len: u64) -> bool {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let from = (self.whole.at + offset) as *mut libc::c_void;
        // SAFETY: a second mapping of pages of the file, inside a range that the caller reserved.
        let got = unsafe { libc::mremap(from, 0, len as usize, flags, at as *mut libc::c_void) };
        if got != libc::MAP_FAILED {
            return true;
        }
        let Some(fd) = self.file.number() else { return false };
        let (flags, from) = (libc::MAP_SHARED | libc::MAP_FIXED, (self.begin + offset) as libc::off_t);
        // SAFETY: as above.
        let got = unsafe { libc::mmap(at as *mut _, len as usize, libc::PROT_NONE, flags, fd, from) };
        got != libc::MAP_FAILED
    }

    /// As [`BackingFile::place`], to be read and written, and part of core files.
    pub(super) fn map(&self, at: u64, offset: u64, len: u64) -> bool {
        // SAFETY: advice about what was just mapped.
        let dump = || unsafe { libc::madvise(at as *mut _, len as usize, libc::MADV_DODUMP) };
        self.place(at, offset, len) && {
            dump();
            open(at, len)
        }
    }

    /// Gives the memory of a part back to the system: it reads as zeros afterwards.
    pub(super) fn discard(&self, offset: u64, len: u64) {
        let (at, size) = ((self.whole.at + offset) as *mut libc::c_void, len as usize);
        // SAFETY: the content of our own file is no longer wanted.
        let remove = || unsafe { libc::madvise(at, size, libc::MADV_REMOVE) == 0 };
        if remove() {
            return;
        }
        // Pages that the program has locked (`mlockall`) are not removed in this way, nor, by
        // kernels before 6.7, those that may not be written.
        if let Some(fd) = self.file.number() {
            let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // SAFETY: as above.
            if unsafe { libc::fallocate(fd, hole, (self.begin + offset) as libc::off_t, len as libc::off_t) } == 0 {
                return;
            }
        }
        // SAFETY: our own mapping, which nothing reads or writes.
        unsafe {
            libc::munlock(at, size);
            libc::mprotect(at, size, RW);
            remove();
            libc::mprotect(at, size, libc::PROT_NONE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = 1 << 16;

    /// A part of a file: where it is mapped, and its word.
    fn mapped(file: &BackingFile, offset: u64) -> (Mapping, *mut u64) {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let range = Mapping::inaccessible(0, PAGE, flags, -1).expect("addresses");
        assert!(file.map(range.at(), offset, PAGE));
        let word = range.at() as *mut u64;
        (range, word)
    }

    #[test]
    fn parts_are_mapped_and_discarded_in_each_way() {
        for (closed, locked) in [(false, false), (false, true), (true, false), (true, true)] {
            let file = BackingFile::create(c"test", 4 * PAGE).expect("a file");
            let (one, word) = mapped(&file, PAGE);
            if closed {
                let (fd, _) = file.descriptor().expect("open");
                // SAFETY: as a program that knows nothing of us.
                unsafe { libc::close(fd) };
                assert!(file.descriptor().is_none());
            }
            if locked {
                // The pages can not be read in, which the call says; they are locked all the same.
                // SAFETY: a mapping of this test.
                unsafe { libc::mlock(file.whole.at as *const _, 4 * PAGE as usize) };
            }
            let (two, again) = mapped(&file, PAGE);
            // SAFETY: both are mapped, and so are the zeros after the content is gone.
            unsafe {
                word.write(7);
                assert_eq!(again.read(), 7, "closed {closed} locked {locked}");
                file.discard(PAGE, PAGE);
                assert_eq!((word.read(), again.read()), (0, 0), "closed {closed} locked {locked}");
            }
            drop((one, two));
        }
    }

    /// Whether the mapping of this address is left out of core files.
    fn is_left_out(at: u64) -> bool {
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("/proc");
        let begins = format!("{at:x}-");
        let flags =
            maps.lines().skip_while(|line| !line.starts_with(&begins)).find(|line| line.starts_with("VmFlags:"));
        flags.expect("the mapping").split_whitespace().any(|flag| flag == "dd")
    }

    #[test]
    fn core_files_hold_what_the_program_has_mapped_only() {
        let file = BackingFile::create(c"test", 4 * PAGE).expect("a file");
        assert!(is_left_out(file.whole.at));
        let (mapped, _) = mapped(&file, PAGE);
        assert!(!is_left_out(mapped.at()));
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let placed = Mapping::inaccessible(0, PAGE, flags, -1).expect("addresses");
        assert!(file.place(placed.at(), 2 * PAGE, PAGE) && is_left_out(placed.at()));
    }

    #[test]
    fn a_number_that_became_the_programs_is_left_alone() {
        let file = BackingFile::create(c"test", 2 * PAGE).expect("a file");
        let theirs = BackingFile::create(c"theirs", 2 * PAGE).expect("a file");
        let (number, _) = file.descriptor().expect("open");
        let (_theirs, word) = mapped(&theirs, 0);
        // SAFETY: mapped above; the number is replaced as by a program.
        unsafe {
            word.write(5);
            libc::mlock(file.whole.at as *const _, PAGE as usize);
            libc::dup2(theirs.descriptor().expect("open").0, number);
        }
        file.discard(0, PAGE);
        let (_ours, ours) = mapped(&file, 0);
        // SAFETY: both are mapped.
        assert_eq!(unsafe { (word.read(), ours.read()) }, (5, 0));
        // SAFETY: the duplicate made above.
        unsafe { libc::close(number) };
    }
}
