//! The address space of the simulated GPU: where device, pinned and managed memory lie, and how the
//! simulator reaches any byte that a program may name. Does not know who owns which bytes: the
//! table in `memory` does.
//!
//! One range of addresses is reserved, far from the host heap. Its first view ("public", the
//! addresses that programs see) allows the CPU nothing where device memory lies, so that a host
//! dereference of a device pointer faults as on a real machine, and everything where pinned or
//! managed memory lies. The second view ("alias", at a constant distance) is the simulator's own
//! and always readable and writable: like DMA, it ignores what `mprotect` says about the public
//! view. Host memory that the simulator did not allocate is reached as `own_memory` says.
//!
//! What no allocation has needed yet is inaccessible in both views, so that `mlockall` fills none
//! of it with memory. What one has needed stays open in the second view: a kernel may still use
//! memory that is freed.

use crate::memory::backing_file::{self, BackingFile, Mapping};
use crate::memory::own_memory::OwnMemory;
use crate::memory::{registered_view, shareable, unwritten};
use signal_free::descriptors::FileIdentity;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Bytes per entry of the page table: what is mapped or not is decided in steps of this size.
pub(crate) const GRANULE: u64 = 1 << 16;

/// A range of addresses could not be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnmappedAddress {
    /// The first address of the access that failed.
    pub(crate) addr: u64,
}

/// What lies at a granule of the public view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Page {
    /// Nothing: access faults.
    None = 0,
    /// Readable and writable by the device.
    ReadWrite = 1,
    /// Readable by the device.
    ReadOnly = 2,
}

/// The reserved range and its second view. There is one per process.
pub(crate) struct AddressSpace {
    base: u64,
    size: u64,
    alias: u64,
    pages: *const AtomicU8,
    device: BackingFile,
    host: BackingFile,
    host_at: u64,
    phys: BackingFile,
    phys_size: u64,
    own: OwnMemory,
}

// SAFETY: the raw pointer is to an immortal table of atomics.
unsafe impl Send for AddressSpace {}
// SAFETY: as above; everything else is plain data that never changes after creation.
unsafe impl Sync for AddressSpace {}

/// A part of the second view was mapped: no copy in children, none in core files.
fn hide(at: u64, len: u64) {
    // SAFETY: advice about a range of our own.
    unsafe {
        libc::madvise(at as *mut _, len as usize, libc::MADV_DONTDUMP);
        libc::madvise(at as *mut _, len as usize, libc::MADV_DONTFORK);
    }
}

/// The limit of file sizes, which holds for shared memory as well.
fn largest_file() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: limit is writable.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    limit.rlim_cur
}

impl AddressSpace {
    /// The space of this process; made on first use. `None` when the kernel refuses to reserve
    /// addresses, or files of half its size: that is said.
    pub(crate) fn get() -> Option<&'static AddressSpace> {
        static SPACE: OnceLock<Option<AddressSpace>> = OnceLock::new();
        let make = || {
            let most = largest_file();
            let made =
                (31..=41).rev().filter(|bits| 1 << (bits - 1) <= most).find_map(|bits| AddressSpace::create(1 << bits));
            if made.is_none() {
                let error = std::io::Error::last_os_error();
                crate::status::complain(&format!(
                    "there is no memory for the simulated GPU: {error} (files may have {most} bytes: see 'ulimit -f'; \
                     for addresses and locked memory see 'ulimit -v' and 'ulimit -l')"
                ));
            }
            made
        };
        SPACE.get_or_init(make).as_ref()
    }

    fn create(size: u64) -> Option<AddressSpace> {
        const ANON: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // The last is for kernels for Arm that give programs 39 or 42 bits of addresses.
        let candidates = [0x7000_0000_0000u64, 0x6800_0000_0000, 0x4000_0000_0000, 0x3000_0000_0000, 0x20_0000_0000];
        let public = candidates.iter().find_map(|&at| {
            // Kernels that do not know MAP_FIXED_NOREPLACE give another, fresh range.
            Mapping::inaccessible(at, size, ANON | libc::MAP_FIXED_NOREPLACE, -1).filter(|got| got.at() == at)
        })?;
        let second = Mapping::inaccessible(0, size, ANON, -1)?;
        let (base, alias) = (public.at(), second.at());
        // A file, so that other processes can map parts of it.
        let device = BackingFile::create(c"streamsan-sim plain device memory", size / 2)?;
        let host_size = size / 8;
        let host_at = base + size - host_size;
        let host = BackingFile::create(c"streamsan-sim host memory", host_size)?;
        let phys = BackingFile::create(shareable::FILE, size / 2)?;
        if !device.place(alias, 0, size / 2) || !host.place(alias + (host_at - base), 0, host_size) {
            return None;
        }
        hide(alias, size);
        let table = Mapping::inaccessible(0, size / GRANULE, ANON, -1)?;
        // Every byte of it is read, but few are written: not locked, it takes little memory.
        // SAFETY: the mapping made above.
        unsafe { libc::munlock(table.at() as *const _, (size / GRANULE) as usize) };
        if !backing_file::open(table.at(), size / GRANULE) {
            return None;
        }
        let pages = table.keep() as *const AtomicU8;
        public.keep();
        second.keep();
        let (phys_size, own) = (size / 2, OwnMemory::new());
        Some(AddressSpace { base, size, alias, pages, device, host, host_at, phys, phys_size, own })
    }

    /// Addresses for device memory of plain allocations: half of the space.
    pub(crate) fn device_range(&self) -> (u64, u64) {
        (self.base, self.base + self.size / 2)
    }

    /// Addresses for reservations (`cuMemAddressReserve`).
    pub(crate) fn reserve_range(&self) -> (u64, u64) {
        (self.base + self.size / 2, self.host_at)
    }

    /// Addresses for pinned and managed memory.
    pub(crate) fn host_range(&self) -> (u64, u64) {
        (self.host_at, self.base + self.size)
    }

    /// How many bytes of physical memory handles (`cuMemCreate`) can be given out.
    pub(crate) fn phys_size(&self) -> u64 {
        self.phys_size
    }

    /// Whether the address belongs to the simulated space, mapped or not.
    pub(crate) fn contains(&self, addr: u64) -> bool {
        addr.wrapping_sub(self.base) < self.size
    }

    fn page(&self, addr: u64) -> &AtomicU8 {
        debug_assert!(self.contains(addr));
        // SAFETY: the table has one byte for each granule of the space and `addr` lies in the
        // space.
        unsafe { &*self.pages.add(((addr - self.base) / GRANULE) as usize) }
    }

    /// What is mapped at an address of the space.
    pub(crate) fn page_at(&self, addr: u64) -> Page {
        match self.page(addr).load(Ordering::Acquire) {
            1 => Page::ReadWrite,
            2 => Page::ReadOnly,
            _ => Page::None,
        }
    }

    /// The granules around an address at which the same is mapped as there (up to a gigabyte each
    /// way): the first address, one past the last, and what it is. `None` where nothing is.
    pub(crate) fn run_at(&self, addr: u64) -> Option<(u64, u64, Page)> {
        const MOST: usize = 1 << 14;
        let page = self.page_at(addr);
        if page == Page::None {
            return None;
        }
        let here = ((addr - self.base) / GRANULE) as usize;
        let (low, high) = (here.saturating_sub(MOST), (here + MOST).min((self.size / GRANULE) as usize));
        // SAFETY: the table has a byte for each granule of the space; eight of them at a time,
        // where they are aligned.
        let (byte, eight) = unsafe {
            (
                |at: usize| (*self.pages.add(at)).load(Ordering::Acquire) == page as u8,
                |at: usize| {
                    (*self.pages.add(at).cast::<AtomicU64>()).load(Ordering::Acquire)
                        == u64::from_ne_bytes([page as u8; 8])
                },
            )
        };
        let mut end = here + 1;
        while end < high {
            match end.is_multiple_of(8) && end + 8 <= high && eight(end) {
                true => end += 8,
                false if byte(end) => end += 1,
                false => break,
            }
        }
        let mut start = here;
        while start > low {
            match start.is_multiple_of(8) && start >= low + 8 && eight(start - 8) {
                true => start -= 8,
                false if byte(start - 1) => start -= 1,
                false => break,
            }
        }
        Some((self.base + start as u64 * GRANULE, self.base + end as u64 * GRANULE, page))
    }

    /// Where the simulator itself reaches an address: of the space, through the second view; of the
    /// host, directly.
    pub(crate) fn alias_of(&self, addr: u64) -> u64 {
        if self.contains(addr) {
            return addr - self.base + self.alias;
        }
        registered_view::find(addr).map_or(addr, |view| view.alias_of(addr))
    }

    /// Whether the simulator reaches all of these bytes by another mapping than the program.
    pub(crate) fn has_own_view(&self, addr: u64, len: u64) -> bool {
        self.contains(addr) && len <= self.size - (addr - self.base)
    }

    fn mark(&self, addr: u64, len: u64, page: Page) {
        let mut at = addr;
        while at < addr + len {
            self.page(at).store(page as u8, Ordering::Release);
            at += GRANULE;
        }
    }

    /// Makes granules of device memory accessible to the device. Both ends are multiples of the
    /// granule. False: the system refuses.
    pub(crate) fn map_device(&self, addr: u64, len: u64) -> bool {
        let is_mapped = |at: u64| self.page_at(at) == Page::ReadWrite;
        if (addr..addr + len).step_by(GRANULE as usize).all(is_mapped) {
            return true;
        }
        let opened = backing_file::open(addr - self.base + self.alias, len);
        if opened {
            self.mark(addr, len, Page::ReadWrite);
        }
        opened
    }

    /// Takes granules of device memory away and gives their memory back to the system.
    pub(crate) fn unmap_device(&self, addr: u64, len: u64) {
        self.mark(addr, len, Page::None);
        self.device.discard(addr - self.base, len);
    }

    /// The descriptor of the file that plain device memory lies in, which file that is, and where
    /// in it. None: the program has closed the descriptor.
    pub(crate) fn device_file(&self, addr: u64) -> Option<(i32, FileIdentity, u64)> {
        let (fd, identity) = self.device.descriptor()?;
        Some((fd, identity, addr - self.base))
    }

    /// Lets the simulator and the device reach part of another process's file at an address of
    /// device memory. All are multiples of the granule.
    pub(super) fn map_foreign(&self, addr: u64, len: u64, fd: i32, offset: u64) -> bool {
        let (at, flags) = (addr - self.base + self.alias, libc::MAP_SHARED | libc::MAP_FIXED);
        // SAFETY: inside the second view, where nothing is mapped for the device.
        let got = unsafe { libc::mmap(at as *mut _, len as usize, libc::PROT_NONE, flags, fd, offset as libc::off_t) };
        hide(at, len);
        let done = got != libc::MAP_FAILED && backing_file::open(at, len);
        if done {
            self.mark(addr, len, Page::ReadWrite);
        }
        done
    }

    /// Puts this process's own memory back, which is mapped when it is allocated.
    pub(super) fn unmap_foreign(&self, addr: u64, len: u64) {
        self.mark(addr, len, Page::None);
        let at = addr - self.base + self.alias;
        self.device.place(at, addr - self.base, len);
        hide(at, len);
    }

    /// Makes granules of pinned or managed memory accessible to the device and to the CPU.
    pub(crate) fn map_host(&self, addr: u64, len: u64) -> bool {
        let done = self.host.map(addr, addr - self.host_at, len) && backing_file::open(self.alias_of(addr), len);
        if done {
            self.mark(addr, len, Page::ReadWrite);
        }
        done
    }

    /// Takes granules of pinned or managed memory away.
    pub(crate) fn unmap_host(&self, addr: u64, len: u64) {
        self.mark(addr, len, Page::None);
        backing_file::close(addr, len);
        self.host.discard(addr - self.host_at, len);
    }

    /// Maps physical memory (an offset of a `cuMemCreate` handle, in a file of its own if it has
    /// one) at a reserved address; `access` is none until set.
    pub(super) fn map_phys(&self, addr: u64, len: u64, file: Option<&BackingFile>, offset: u64, cpu: bool) -> bool {
        let at = self.alias_of(addr);
        let file = file.unwrap_or(&self.phys);
        let done = file.map(at, offset, len);
        hide(at, len);
        done && (!cpu || file.map(addr, offset, len))
    }

    /// Undoes [`AddressSpace::map_phys`]. No work uses the memory any more.
    pub(crate) fn unmap_phys(&self, addr: u64, len: u64) {
        self.mark(addr, len, Page::None);
        let at = self.alias_of(addr);
        backing_file::close(at, len);
        hide(at, len);
        backing_file::close(addr, len);
    }

    /// Says what the device may do with granules of reserved memory.
    pub(crate) fn protect(&self, addr: u64, len: u64, page: Page) {
        self.mark(addr, len, page);
    }

    /// The file that physical memory lies in, while the program has not closed its descriptor.
    pub(super) fn phys_file(&self) -> Option<(i32, FileIdentity)> {
        self.phys.descriptor()
    }

    /// Gives the content of a physical range back to the system; it reads as zeros afterwards.
    pub(crate) fn drop_phys(&self, offset: u64, len: u64) {
        self.phys.discard(offset, len);
    }

    /// Where the simulator itself reaches `addr`, if all of `len` bytes are mapped in the space
    /// (and writable).
    pub(crate) fn view(&self, addr: u64, len: u64, write: bool) -> Result<*mut u8, UnmappedAddress> {
        if !self.contains(addr) || len > self.size - (addr - self.base) {
            return Err(UnmappedAddress { addr });
        }
        let mut at = addr;
        let end = addr + len.max(1);
        while at < end {
            // Eight granules at a time where one may write to all of them, as mostly.
            let index = (at - self.base) / GRANULE;
            if index.is_multiple_of(8) && end - at >= 8 * GRANULE {
                // SAFETY: the table has a byte for each granule of the space, and these lie in it.
                let eight = unsafe { &*self.pages.add(index as usize).cast::<AtomicU64>() };
                if eight.load(Ordering::Acquire) == u64::from_ne_bytes([Page::ReadWrite as u8; 8]) {
                    at = (at & !(GRANULE - 1)) + 8 * GRANULE;
                    continue;
                }
            }
            let page = self.page(at).load(Ordering::Acquire);
            if page == Page::None as u8 || (write && page != Page::ReadWrite as u8) {
                return Err(UnmappedAddress { addr: at });
            }
            at = (at & !(GRANULE - 1)) + GRANULE;
        }
        if write {
            unwritten::written(addr, len);
        }
        Ok((addr - self.base + self.alias) as *mut u8)
    }

    /// Reads bytes at any address: of the space, or of the host.
    pub(crate) fn read(&self, addr: u64, into: &mut [u8]) -> Result<(), UnmappedAddress> {
        if self.contains(addr) {
            let from = self.view(addr, into.len() as u64, false)?;
            // SAFETY: `view` vouches for the source; other threads may write it meanwhile, as on a
            // GPU.
            unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr(), into.len()) };
            return Ok(());
        }
        // SAFETY: the slice is writable for its length.
        unsafe { self.read_host(addr, into.as_mut_ptr(), into.len()) }
    }

    /// Writes bytes at any address: of the space, or of the host.
    pub(crate) fn write(&self, addr: u64, from: &[u8]) -> Result<(), UnmappedAddress> {
        if self.contains(addr) {
            let to = self.view(addr, from.len() as u64, true)?;
            // SAFETY: `view` vouches for the destination.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
            return Ok(());
        }
        self.write_host(addr, from)
    }

    /// Copies bytes between any two addresses; overlapping ranges are copied as by `memmove`.
    pub(crate) fn copy(&self, dst: u64, src: u64, len: u64) -> Result<(), UnmappedAddress> {
        if len == 0 {
            return Ok(());
        }
        match (self.contains(dst), self.contains(src)) {
            (true, true) => {
                let (from, to) = (self.view(src, len, false)?, self.view(dst, len, true)?);
                // SAFETY: `view` vouches for both ranges.
                unsafe { std::ptr::copy(from, to, len as usize) };
                Ok(())
            }
            (true, false) => {
                let to = self.view(dst, len, true)?;
                // SAFETY: `view` vouches for the destination.
                unsafe { self.read_host(src, to, len as usize) }
            }
            (false, true) => {
                let from = self.view(src, len, false)?;
                // SAFETY: `view` vouches for the source.
                self.write_host(dst, unsafe { std::slice::from_raw_parts(from, len as usize) })
            }
            (false, false) => {
                let mut buffer = vec![0; len as usize];
                self.read(src, &mut buffer)?;
                self.write(dst, &buffer)
            }
        }
    }

    /// # Safety
    /// `into` must be writable for `len` bytes.
    unsafe fn read_host(&self, addr: u64, into: *mut u8, len: usize) -> Result<(), UnmappedAddress> {
        // SAFETY: the caller vouches for the destination; u8 has no invalid values.
        let mut into = unsafe { std::slice::from_raw_parts_mut(into, len) };
        let mut addr = addr;
        while !into.is_empty() {
            let found = registered_view::find(addr);
            let end = found.map_or_else(|next| next, |view| view.end);
            let (piece, rest) = into.split_at_mut(into.len().min((end - addr) as usize));
            match found {
                // SAFETY: the view is mapped up to its end.
                Ok(view) => unsafe {
                    std::ptr::copy_nonoverlapping(view.alias_of(addr) as *const u8, piece.as_mut_ptr(), piece.len());
                },
                Err(_) => self.read_plain(addr, piece)?,
            }
            addr = addr.wrapping_add(piece.len() as u64);
            into = rest;
        }
        Ok(())
    }

    fn read_plain(&self, addr: u64, into: &mut [u8]) -> Result<(), UnmappedAddress> {
        self.own.read(addr, into).then_some(()).ok_or(UnmappedAddress { addr })
    }

    fn write_host(&self, addr: u64, from: &[u8]) -> Result<(), UnmappedAddress> {
        let (mut addr, mut from) = (addr, from);
        while !from.is_empty() {
            let found = registered_view::find(addr);
            let end = found.map_or_else(|next| next, |view| view.end);
            let (piece, rest) = from.split_at(from.len().min((end - addr) as usize));
            match found {
                // SAFETY: the view is mapped up to its end.
                Ok(view) => unsafe {
                    std::ptr::copy_nonoverlapping(piece.as_ptr(), view.alias_of(addr) as *mut u8, piece.len());
                },
                Err(_) => self.write_plain(addr, piece)?,
            }
            addr = addr.wrapping_add(piece.len() as u64);
            from = rest;
        }
        Ok(())
    }

    fn write_plain(&self, addr: u64, from: &[u8]) -> Result<(), UnmappedAddress> {
        self.own.write(addr, from).then_some(()).ok_or(UnmappedAddress { addr })
    }
}
