//! Device memory of other processes (`cuIpcGetMemHandle`, `cuMemPoolExportPointer`): exports
//! allocations, and maps those of others.
//!
//! Device memory lies in a file without a name. A handle says which process has which descriptor
//! for it and where in it the allocation lies. The process that gets the handle opens that
//! descriptor under `/proc` and maps the same pages. So a handle works as long as its process
//! lives, and memory that was opened outlives it.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use cuda_sys::CUresult;
use signal_free::descriptors::{FileIdentity, own_proc};

use super::arena::round_up;
use super::pool::{POOLS, Pool, Sharing};
use super::{ALIGN, Allocation, AllocationKind, DEVICE_STEP, Memory, lock};
use crate::config;
use crate::memory::address_space::GRANULE;
use crate::memory::unwritten;
use crate::sched::ContextId;

/// What a handle says, in the 64 bytes that CUDA has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IpcHandle {
    /// What the handle is for: an allocation, an event.
    pub(crate) magic: u64,
    /// The process that it comes from.
    pub(crate) pid: u64,
    /// Its descriptor of the file.
    pub(crate) fd: u64,
    /// Where in the file.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// The device.
    pub(crate) device: u64,
    /// Which file the descriptor stands for: the process may have closed it since, and opened
    /// another file under its number.
    pub(crate) file: (u64, u64),
}

const MEMORY: u64 = u64::from_le_bytes(*b"sim-mem1");
/// Memory of a pool.
const POOLED: u64 = u64::from_le_bytes(*b"sim-plm1");

impl IpcHandle {
    /// As programs carry it.
    pub(crate) fn to_bytes(self) -> [u8; 64] {
        let mut bytes = [0; 64];
        let (file_system, inode) = self.file;
        let words = [self.magic, self.pid, self.fd, self.offset, self.size, self.device, file_system, inode];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// From what a program hands over; nothing if it is not of the kind wanted.
    pub(crate) fn from_bytes(bytes: &[u8; 64], magic: u64) -> Option<IpcHandle> {
        let mut words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        let mut next = || words.next().unwrap_or(0);
        let handle = IpcHandle {
            magic: next(),
            pid: next(),
            fd: next(),
            offset: next(),
            size: next(),
            device: next(),
            file: (next(), next()),
        };
        (handle.magic == magic).then_some(handle)
    }

    /// Whether it comes from this very process.
    pub(crate) fn is_ours(&self) -> bool {
        self.pid == u64::from(std::process::id())
    }

    /// The file, from the process that has it.
    pub(crate) fn open(&self) -> Result<File, CUresult> {
        let path = PathBuf::from(format!("/proc/{}/fd/{}", self.pid, self.fd));
        let is_it = |path: &Path| std::fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == self.file);
        // Opening another file could do something: the look comes first, and once more afterwards.
        let file =
            is_it(&path).then(|| File::options().read(true).write(true).open(&path).ok()).flatten().filter(|file| {
                FileIdentity::of(file.as_raw_fd()).is_some_and(|found| (found.device, found.inode) == self.file)
            });
        if file.is_none() && Path::new(&format!("/proc/{}", self.pid)).exists() {
            crate::status::complain(&format!(
                "process {} has closed the descriptor of the memory that it shares (CUDA IPC), or lets nobody look at it",
                self.pid
            ));
        }
        file.ok_or(CUresult::ERROR_INVALID_VALUE)
    }
}

/// An allocation of another process that is mapped here.
#[derive(Clone, Copy)]
struct Opened {
    handle: IpcHandle,
    at: u64,
    /// The addresses that it takes up.
    region: (u64, u64),
    count: u32,
}

static OPENED: Mutex<BTreeMap<u64, Opened>> = Mutex::new(BTreeMap::new());

impl Memory {
    /// A handle for the plain allocation that holds an address.
    pub(crate) fn export(&self, at: u64) -> Result<[u8; 64], CUresult> {
        let block = self.find(at).filter(|block| block.kind == AllocationKind::Device);
        self.export_block(&block.ok_or(CUresult::ERROR_INVALID_VALUE)?, MEMORY)
    }

    /// What stands for a block of a pool that other processes have.
    pub(crate) fn export_pooled(&self, at: u64) -> Result<[u8; 64], CUresult> {
        const INVALID: CUresult = CUresult::ERROR_INVALID_VALUE;
        let block = self.find(at).filter(|block| block.at == at).ok_or(INVALID)?;
        let AllocationKind::Pool(pool) = block.kind else { return Err(INVALID) };
        if POOLS.get(pool)?.sharing != Sharing::Exportable {
            return Err(INVALID);
        }
        self.export_block(&block, POOLED)
    }

    fn export_block(&self, block: &Allocation, magic: u64) -> Result<[u8; 64], CUresult> {
        let Some((fd, file, offset)) = self.space.device_file(block.at) else {
            crate::status::complain(
                "cuIpcGetMemHandle: the program has closed the descriptor of the simulated GPU's memory, which other \
                 processes need",
            );
            return Err(CUresult::ERROR_OPERATING_SYSTEM);
        };
        // Another process may write it.
        unwritten::ends(block.at, block.size);
        let handle = IpcHandle {
            magic,
            pid: u64::from(std::process::id()),
            fd: fd as u64,
            offset,
            size: block.size,
            device: u64::from(block.device),
            file: (file.device, file.inode),
        };
        Ok(handle.to_bytes())
    }

    /// Maps an allocation of another process. The same one again is counted.
    pub(crate) fn import(&self, ctx: ContextId, device: u32, bytes: &[u8; 64]) -> Result<u64, CUresult> {
        let handle = IpcHandle::from_bytes(bytes, MEMORY).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        if handle.is_ours() {
            return Err(CUresult::ERROR_INVALID_CONTEXT);
        }
        self.import_block(ctx, device, handle)
    }

    /// Maps a block of a pool that came from another process.
    pub(crate) fn import_pooled(&self, ctx: ContextId, pool: &Pool, bytes: &[u8; 64]) -> Result<u64, CUresult> {
        let handle = IpcHandle::from_bytes(bytes, POOLED).filter(|it| pool.sharing == Sharing::Imported(it.pid));
        self.import_block(ctx, pool.device, handle.ok_or(CUresult::ERROR_INVALID_VALUE)?)
    }

    /// Whether a block of another process's pool begins there: a free closes it.
    pub(crate) fn is_pooled_elsewhere(&self, at: u64) -> bool {
        lock(&OPENED).get(&at).is_some_and(|known| known.handle.magic == POOLED)
    }

    fn import_block(&self, ctx: ContextId, device: u32, handle: IpcHandle) -> Result<u64, CUresult> {
        const INVALID: CUresult = CUresult::ERROR_INVALID_VALUE;
        let mut opened = lock(&OPENED);
        if let Some(known) = opened.values_mut().find(|known| known.handle == handle) {
            known.count += 1;
            return Ok(known.at);
        }
        let from = handle.offset & !(GRANULE - 1);
        let end = handle.offset.checked_add(handle.size).and_then(|end| round_up(end, GRANULE)).ok_or(INVALID)?;
        let file = handle.open()?;
        if file.metadata().map_or(0, |data| data.len()) < end {
            return Err(INVALID);
        }
        // Whole steps: nothing of this process's own lies beside it.
        let len = round_up(end - from, DEVICE_STEP).ok_or(INVALID)?;
        let mut arena = lock(&self.device[device as usize]);
        let region = arena.take(len, DEVICE_STEP.max(ALIGN)).ok_or(CUresult::ERROR_OUT_OF_MEMORY)?;
        if !self.space.map_foreign(region, end - from, file.as_raw_fd(), from) {
            arena.give(region, len);
            return Err(CUresult::ERROR_MAP_FAILED);
        }
        drop(arena);
        let at = region + (handle.offset - from);
        opened.insert(at, Opened { handle, at, region: (region, len), count: 1 });
        self.insert(at, handle.size, AllocationKind::Ipc, ctx, device);
        Ok(at)
    }

    /// Undoes [`Memory::import`]. The caller has waited for the work that may use the memory, if
    /// `is_last` said so.
    pub(crate) fn close(&self, at: u64) -> Result<(), CUresult> {
        let mut opened = lock(&OPENED);
        let known = opened.get_mut(&at).ok_or(CUresult::ERROR_INVALID_VALUE)?;
        known.count -= 1;
        if known.count > 0 {
            return Ok(());
        }
        let (region, len) = known.region;
        let device = self.remove(at, |kind| kind == AllocationKind::Ipc).map_or(0, |block| block.device);
        opened.remove(&at);
        self.space.unmap_foreign(region, len);
        lock(&self.device[device as usize]).give(region, len);
        Ok(())
    }
}

/// The file behind an exported pool says which process it is of, and on which device. Its memory
/// goes by pointers into it.
const POOL_FILE: &CStr = c"streamsan-sim memory pool";

/// A descriptor of the program's for a pool.
pub(crate) fn export_pool(pool: &Pool) -> Result<RawFd, CUresult> {
    if pool.sharing != Sharing::Exportable {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    const REFUSED: CUresult = CUresult::ERROR_OPERATING_SYSTEM;
    // SAFETY: a valid C string.
    let fd = unsafe { libc::syscall(libc::SYS_memfd_create, POOL_FILE.as_ptr(), libc::MFD_CLOEXEC) } as i32;
    if fd < 0 {
        return Err(REFUSED);
    }
    // SAFETY: just opened, and owned by nothing else.
    let mut file = unsafe { File::from_raw_fd(fd) };
    let words = [u64::from(std::process::id()), u64::from(pool.device)];
    file.write_all(words.map(u64::to_le_bytes).as_flattened()).map_err(|_| REFUSED)?;
    Ok(file.into_raw_fd())
}

/// The pool behind a descriptor, which stays the program's.
pub(crate) fn import_pool(file: RawFd) -> Result<Arc<Pool>, CUresult> {
    let link = std::fs::read_link(own_proc(&format!("fd/{file}"))).map_err(|_| CUresult::ERROR_INVALID_VALUE)?;
    let name = link.to_str().and_then(|link| link.strip_prefix("/memfd:")?.strip_suffix(" (deleted)"));
    if file < 0 || name.is_none_or(|name| Ok(name) != POOL_FILE.to_str()) {
        return Err(CUresult::ERROR_INVALID_VALUE);
    }
    // SAFETY: borrowed for the copy only, which fails if the number is not open.
    let copy =
        unsafe { BorrowedFd::borrow_raw(file) }.try_clone_to_owned().map_err(|_| CUresult::ERROR_INVALID_VALUE)?;
    let mut bytes = [0; 16];
    File::from(copy).read_exact_at(&mut bytes, 0).map_err(|_| CUresult::ERROR_INVALID_VALUE)?;
    let word = |at: usize| bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes);
    let device = u32::try_from(word(8)).ok().filter(|device| *device < config::get_or_default().devices);
    let device = device.ok_or(CUresult::ERROR_INVALID_DEVICE)?;
    Ok(Pool::create(device, false, false, 0, Sharing::Imported(word(0))))
}
