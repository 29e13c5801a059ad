//! A second mapping of memory that the program registered, made when a tool asks for it.
//!
//! Owns these mappings: the program's whole pages move into a file of memory that is mapped at
//! their addresses and once more for the simulator, which reaches them there whatever `mprotect`
//! says about the program's. Pages that registered memory shares with something else stay as they
//! are. When the memory is unregistered its bytes go back to ordinary pages. A child of `fork`
//! shares the pages meanwhile, which it otherwise would not.

use signal_free::descriptors::own_proc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegisteredView {
    /// First address of the program's pages.
    pub(crate) start: u64,
    /// One past the last address.
    pub(crate) end: u64,
    /// Where the simulator has them.
    alias: u64,
}

static VIEWS: RwLock<Vec<RegisteredView>> = RwLock::new(Vec::new());
static ANY: AtomicBool = AtomicBool::new(false);

/// The view that holds an address, or else how far from there on no view begins.
pub(crate) fn find(address: u64) -> Result<RegisteredView, u64> {
    if !ANY.load(Ordering::Acquire) {
        return Err(u64::MAX);
    }
    let views = VIEWS.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(view) = views.iter().find(|v| v.start <= address && address < v.end) {
        return Ok(*view);
    }
    Err(views.iter().map(|v| v.start).filter(|start| *start > address).min().unwrap_or(u64::MAX))
}

/// The last address up to this one at which a view ends; 0: none.
pub(crate) fn last_end(address: u64) -> u64 {
    let views = VIEWS.read().unwrap_or_else(PoisonError::into_inner);
    views.iter().map(|v| v.end).filter(|end| *end <= address).max().unwrap_or(0)
}

impl RegisteredView {
    /// Where the simulator reaches an address of it.
    pub(crate) fn alias_of(&self, address: u64) -> u64 {
        address - self.start + self.alias
    }
}

/// Whether one line of the list of mappings after the other covers these addresses and fits.
fn all_mapped(start: u64, end: u64, fits: impl Fn(&str, &str) -> bool) -> bool {
    let Ok(maps) = std::fs::read_to_string(own_proc("maps")) else { return false };
    let mut at = start;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some(rights)) = (words.next(), words.next()) else { continue };
        let name = words.nth(3).unwrap_or_default();
        let Some((from, to)) = range.split_once('-') else { continue };
        let (Ok(from), Ok(to)) = (u64::from_str_radix(from, 16), u64::from_str_radix(to, 16)) else { continue };
        if from <= at && at < to {
            if !fits(rights, name) {
                return false;
            }
            at = to;
            if at >= end {
                return true;
            }
        }
    }
    false
}

fn map(at: u64, len: u64, flags: i32, fd: i32) -> Option<u64> {
    // SAFETY: a fresh mapping, or a fixed one over whole pages of the program, whose bytes the
    // caller has saved.
    let got = unsafe { libc::mmap(at as *mut _, len as usize, RW, flags, fd, 0) };
    (got != libc::MAP_FAILED).then_some(got as u64)
}

/// The size of the kernel's pages: on aarch64 up to 64 KiB.
fn page_size() -> u64 {
    // SAFETY: asks for a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Makes a view of the whole pages of registered memory, if they are ordinary memory of the
/// program.
pub(crate) fn make(start: u64, end: u64) -> bool {
    let page = page_size();
    let (start, end) = (start.next_multiple_of(page), end & !(page - 1));
    // Anonymous and private: what is shared with others, or lies in a file, must stay there.
    let ordinary = |rights: &str, name: &str| rights == "rw-p" && (name.is_empty() || name == "[heap]");
    if start >= end || find(start).is_ok() || !all_mapped(start, end, ordinary) {
        return false;
    }
    let len = end - start;
    let made = || {
        // SAFETY: a valid C string; the descriptor is closed below.
        let fd = unsafe {
            libc::syscall(libc::SYS_memfd_create, c"streamsan-sim registered memory".as_ptr(), libc::MFD_CLOEXEC)
        } as i32;
        if fd < 0 {
            return None;
        }
        let sized = signal_free::resize(fd, len);
        let alias = if sized { map(0, len, libc::MAP_SHARED, fd) } else { None };
        let done = alias.filter(|alias| {
            // SAFETY: both are mapped for `len` bytes and do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(start as *const u8, *alias as *mut u8, len as usize) };
            // SAFETY: advice about a mapping of our own.
            unsafe { libc::madvise(*alias as *mut _, len as usize, libc::MADV_DONTFORK) };
            map(start, len, libc::MAP_SHARED | libc::MAP_FIXED, fd).is_some()
        });
        // SAFETY: our own descriptor; the mappings keep the file.
        unsafe { libc::close(fd) };
        done
    };
    let Some(alias) = made() else { return false };
    VIEWS.write().unwrap_or_else(PoisonError::into_inner).push(RegisteredView { start, end, alias });
    ANY.store(true, Ordering::Release);
    true
}

/// Registered memory between these addresses is the program's alone again.
pub(crate) fn end(start: u64, end: u64) {
    let mut views = VIEWS.write().unwrap_or_else(PoisonError::into_inner);
    let gone: Vec<_> = views.extract_if(.., |v| start <= v.start && v.end <= end).collect();
    ANY.store(!views.is_empty(), Ordering::Release);
    drop(views);
    for view in gone {
        let len = (view.end - view.start) as usize;
        // Nothing else lies there by now: the program has not unmapped it.
        let is_there = all_mapped(view.start, view.end, |_, name| name.starts_with("/memfd:streamsan-sim"));
        let plain = map(0, len as u64, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1).filter(|_| is_there);
        if let Some(plain) = plain {
            // SAFETY: both are mapped for `len` bytes; the second call moves the copy to where the
            // program has the pages.
            unsafe {
                std::ptr::copy_nonoverlapping(view.alias as *const u8, plain as *mut u8, len);
                let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
                libc::mremap(plain as *mut _, len, len, flags, view.start as *mut libc::c_void);
            }
        }
        // SAFETY: our own mapping.
        unsafe { libc::munmap(view.alias as *mut _, len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_survive_the_way_there_and_back_and_are_reached_past_the_protection() {
        let page = page_size();
        let len = 4 * page;
        let at = map(0, len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1).expect("memory");
        let byte = |offset: u64| (at + offset) as *mut u8;
        // SAFETY: just mapped.
        unsafe { byte(page + 5).write(7) };
        assert!(make(at + 1, at + len), "three whole pages");
        let view = find(at + page + 5).expect("a view");
        assert_eq!((view.start, view.end), (at + page, at + len));
        assert_eq!(find(at + 5).err(), Some(at + page), "the first page holds other things too");
        // SAFETY: the program's pages are closed and opened again; the alias is open.
        unsafe {
            assert_eq!(libc::mprotect((at + page) as *mut _, page as usize, libc::PROT_NONE), 0);
            let alias = view.alias_of(at + page + 5) as *mut u8;
            assert_eq!(alias.read(), 7);
            alias.write(9);
            assert_eq!(libc::mprotect((at + page) as *mut _, page as usize, RW), 0);
            assert_eq!(byte(page + 5).read(), 9);
        }
        end(at + 1, at + len);
        assert!(find(at + page).is_err());
        // SAFETY: mapped as before.
        assert_eq!(unsafe { byte(page + 5).read() }, 9);
        assert!(all_mapped(at, at + len, |rights, name| rights == "rw-p" && name.is_empty()));
        // SAFETY: the mapping of this test.
        unsafe { libc::munmap(at as *mut _, len as usize) };
    }
}
