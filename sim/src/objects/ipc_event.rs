//! The state of an event made with `CU_EVENT_INTERPROCESS` that processes share.
//!
//! Owns a page of memory that all of them map. It counts how often the event was recorded, and how
//! many of these records have completed.

use signal_free::descriptors::HeldFile;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cuda_sys::CUresult;

use crate::memory::ipc::IpcHandle;

const EVENT: u64 = u64::from_le_bytes(*b"sim-evt1");
const BYTES: usize = 4096;

/// The page: all zeros at first.
#[repr(C)]
struct Page {
    recorded: AtomicU64,
    done: AtomicU64,
    /// The process of the last record.
    by: AtomicU64,
}

/// An event's page.
pub(crate) struct IpcEventState {
    page: *const Page,
    file: HeldFile,
}

// SAFETY: the page is mapped as long as the object lives and is only used through atomics.
unsafe impl Send for IpcEventState {}
// SAFETY: as above.
unsafe impl Sync for IpcEventState {}

impl Drop for IpcEventState {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and nothing else has the address.
        unsafe { libc::munmap(self.page as *mut _, BYTES) };
    }
}

fn map(file: OwnedFd) -> Option<Arc<IpcEventState>> {
    // SAFETY: a fresh shared mapping of a file that we own; its size is checked where it was made
    // or opened.
    let page = unsafe {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        libc::mmap(std::ptr::null_mut(), BYTES, prot, libc::MAP_SHARED, file.as_raw_fd(), 0)
    };
    if page == libc::MAP_FAILED {
        return None;
    }
    Some(Arc::new(IpcEventState { page: page.cast(), file: HeldFile::new(file)? }))
}

fn me() -> u64 {
    u64::from(std::process::id())
}

impl IpcEventState {
    /// A page for a new event; none when the system has no more.
    pub(crate) fn create() -> Option<Arc<IpcEventState>> {
        // SAFETY: a valid C string; the descriptor is ours.
        let file = unsafe {
            let fd = libc::memfd_create(c"streamsan-sim event".as_ptr(), libc::MFD_CLOEXEC);
            (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))?
        };
        signal_free::resize(file.as_raw_fd(), BYTES as u64).then(|| map(file)).flatten()
    }

    /// What another process needs to open it.
    pub(crate) fn export(&self) -> Result<[u8; 64], CUresult> {
        let Some(fd) = self.file.number() else {
            crate::status::complain(
                "cuIpcGetEventHandle: the program has closed the descriptor of the event, which other processes need",
            );
            return Err(CUresult::ERROR_OPERATING_SYSTEM);
        };
        let (fd, file) = (fd as u64, self.file.identity());
        let file = (file.device, file.inode);
        Ok(IpcHandle { magic: EVENT, pid: me(), fd, offset: 0, size: BYTES as u64, device: 0, file }.to_bytes())
    }

    /// The page of another process's event.
    pub(crate) fn import(bytes: &[u8; 64]) -> Result<Arc<IpcEventState>, CUresult> {
        let handle = IpcHandle::from_bytes(bytes, EVENT).ok_or(CUresult::ERROR_MAP_FAILED)?;
        if handle.is_ours() {
            return Err(CUresult::ERROR_INVALID_CONTEXT);
        }
        let file = handle.open()?;
        if file.metadata().map_or(0, |data| data.len()) < BYTES as u64 {
            return Err(CUresult::ERROR_INVALID_VALUE);
        }
        map(file.into()).ok_or(CUresult::ERROR_MAP_FAILED)
    }

    fn page(&self) -> &Page {
        // SAFETY: mapped as long as the object lives, and long enough.
        unsafe { &*self.page }
    }

    /// A record was enqueued here: its number.
    pub(crate) fn begin(&self) -> u64 {
        let number = self.page().recorded.fetch_add(1, Ordering::AcqRel) + 1;
        self.page().by.store(me(), Ordering::Release);
        number
    }

    /// The record of that number has happened.
    pub(crate) fn finish(&self, number: u64) {
        self.page().done.fetch_max(number, Ordering::AcqRel);
    }

    /// Whether the last record of now has happened, if another process made it. What a process that
    /// is gone had enqueued is over.
    pub(crate) fn last_elsewhere(self: Arc<Self>) -> Option<impl FnMut() -> bool + Send + 'static> {
        let (number, by) = (self.page().recorded.load(Ordering::Acquire), self.page().by.load(Ordering::Acquire));
        let is_gone = move || {
            // SAFETY: signal 0 only asks whether there is such a process.
            let asked = unsafe { libc::kill(by as libc::pid_t, 0) };
            asked != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
        };
        (number > 0 && by != me()).then_some(move || self.page().done.load(Ordering::Acquire) >= number || is_gone())
    }
}
