//! Which pages of the host's memory devices can reach: one bit for each page of the address space,
//! and one byte for each granule of 64 KiB.
//!
//! Owns the bits and the bytes, which the library for instrumented code reads without a lock, and
//! the list that they are made from. They take 4 and 2 GiB of addresses (twice that on aarch64), of
//! which the system backs what is used: 4 KiB of bits for each 128 MiB of the program's memory, 4
//! KiB of bytes for each 256 MiB. What is not used is not writable: `mlockall` would give memory to
//! all that is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use trace::{FreeKind, MemoryKind, Op};

use crate::arch::ADDRESSES;
use crate::runtime::lifecycle;

const PAGE: u64 = 12;
/// Bytes of the bits.
const BYTES: usize = 1 << (ADDRESSES - PAGE - 3);
/// Bits to shift an address by to get the index of its granule.
const GRANULE: u64 = 16;
const GRANULES: usize = 1 << (ADDRESSES - GRANULE);

static TABLE: AtomicPtr<AtomicU32> = AtomicPtr::new(std::ptr::null_mut());

/// The bits, as words of 32: null before [`map`].
pub fn table() -> *mut AtomicU32 {
    TABLE.load(Ordering::Acquire)
}

static GRANULE_BYTES: AtomicPtr<AtomicU8> = AtomicPtr::new(std::ptr::null_mut());

/// The bytes of the granules; null before [`map`].
pub fn granules() -> *mut AtomicU8 {
    GRANULE_BYTES.load(Ordering::Acquire)
}

/// Makes room for the bits and the bytes, once. The bytes are in `room`, if that is not null.
/// False: there is no room.
pub fn map(room: *mut AtomicU8) -> bool {
    if !table().is_null() {
        return true;
    }
    if room.is_null() {
        keep(&GRANULE_BYTES, GRANULES);
    } else {
        let _ = GRANULE_BYTES.compare_exchange(std::ptr::null_mut(), room, Ordering::AcqRel, Ordering::Acquire);
    }
    // The bits last: who finds those finds the bytes.
    let made = !granules().is_null() && keep(&TABLE, BYTES);
    if made {
        // `mlockall(MCL_CURRENT)` reads all pages in: zeros in large ones take a thousandth of the
        // time. Those that become writable are small again: see `open`.
        advise(granules() as u64, GRANULES as u64, libc::MADV_HUGEPAGE);
        advise(table() as u64, BYTES as u64, libc::MADV_HUGEPAGE);
    }
    made
}

/// Kernels that know no such pages have nothing to be told.
fn advise(at: u64, len: u64, advice: i32) {
    // SAFETY: pages of a table, which nothing takes away; errno is this thread's own.
    unsafe {
        let errno = *libc::__errno_location();
        libc::madvise(at as *mut _, len as usize, advice);
        *libc::__errno_location() = errno;
    }
}

/// Maps `size` zeros, unless another thread was faster. False: there is no room.
fn keep<T>(place: &AtomicPtr<T>, size: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping, which nobody knows when it is given back; errno is the thread's own.
    unsafe {
        let errno = *libc::__errno_location();
        let at = libc::mmap(std::ptr::null_mut(), size, libc::PROT_NONE, flags, -1, 0);
        if at != libc::MAP_FAILED {
            // After `mlockall(MCL_FUTURE)`, before anything can be filled.
            libc::munlock(at, size);
            libc::mprotect(at, size, libc::PROT_READ);
            libc::madvise(at, size, libc::MADV_DONTDUMP);
            let old = place.compare_exchange(std::ptr::null_mut(), at.cast(), Ordering::AcqRel, Ordering::Acquire);
            if old.is_err() {
                libc::munmap(at, size);
            }
        }
        *libc::__errno_location() = errno;
    }
    !place.load(Ordering::Acquire).is_null()
}

/// Memory of the host that devices can reach: managed, pinned, mapped and registered.
#[derive(Debug, Default)]
pub struct HostMemory {
    /// One past the end, by the first address.
    ranges: BTreeMap<u64, u64>,
    /// Whether the bits say the same.
    shown: bool,
}

impl HostMemory {
    /// Memory comes or goes.
    #[inline]
    pub fn note(&mut self, op: &Op<'_>) {
        match *op {
            Op::Alloc {
                ptr,
                size,
                kind: MemoryKind::Managed | MemoryKind::PinnedHost | MemoryKind::RegisteredHost,
                ..
            } => self.comes(ptr, size),
            // On the host, only a variable that is managed can be touched.
            Op::Global { ptr, size, .. } => self.comes(ptr, size),
            Op::Free { ptr, kind: FreeKind::Plain | FreeKind::Host | FreeKind::Unregister, .. } => self.goes(ptr),
            _ => {}
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Shows the bits what is known, when that has not been done.
    pub fn show(&mut self) {
        if !self.shown && !table().is_null() {
            self.shown = true;
            self.ranges.iter().for_each(|(start, end)| mark(*start, *end, true));
        }
    }

    #[cold]
    fn comes(&mut self, start: u64, size: u64) {
        let end = start.saturating_add(size);
        if start == 0 || size == 0 || end >> ADDRESSES != 0 {
            return;
        }
        self.ranges.insert(start, end);
        if self.shown {
            mark(start, end, true);
        }
    }

    #[cold]
    fn goes(&mut self, start: u64) {
        let Some(end) = self.ranges.remove(&start) else { return };
        if !self.shown {
            return;
        }
        mark(start, end, false);
        // Neighbours may share the first page and the last.
        let page = 1 << PAGE;
        let (from, to) = (start & !(page - 1), end.next_multiple_of(page));
        let before = self.ranges.range(..start).next_back();
        let beside = before.into_iter().chain(self.ranges.range(start..to)).filter(|(_, end)| **end > from);
        beside.for_each(|(start, end)| mark((*start).max(from), (*end).min(to), true));
    }
}

/// Makes the pages of a table writable that hold these bytes.
fn open(start: u64, end: u64) -> bool {
    // The largest page of a kernel; the tables begin at multiples of a smaller one, perhaps.
    // SAFETY: asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let (from, to) = (start & !(page - 1), end.next_multiple_of(page));
    advise(from, to - from, libc::MADV_NOHUGEPAGE);
    // SAFETY: pages of a table, which nothing takes away.
    unsafe { libc::mprotect(from as *mut _, (to - from) as usize, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// Sets or clears the bits of all pages that a range touches. The caller holds the lock of the log.
fn mark(start: u64, end: u64, on: bool) {
    let table = table();
    if on {
        // SAFETY: errno is this thread's own.
        let errno = unsafe { *libc::__errno_location() };
        let (word, byte) = (|granule: u64| table as u64 + granule / 2 * 4, |granule: u64| granules() as u64 + granule);
        let (first, last) = (start >> GRANULE, (end - 1) >> GRANULE);
        if !open(word(first), word(last) + 4) || !open(byte(first), byte(last) + 1) {
            lifecycle::switch_off(format_args!("no memory for the table of pages that devices can reach"));
            return;
        }
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
    }
    let (mut page, last) = (start >> PAGE, (end - 1) >> PAGE);
    while page <= last {
        let in_word = page % 32;
        let count = (32 - in_word).min(last - page + 1);
        let bits = (u32::MAX >> (32 - count)) << in_word;
        // SAFETY: the page is one that programs have, so its word lies in the table.
        let word = unsafe { &*table.add((page / 32) as usize) };
        if on {
            word.fetch_or(bits, Ordering::Relaxed);
        } else {
            word.fetch_and(!bits, Ordering::Relaxed);
        }
        page += count;
    }
    let granules = granules();
    for granule in start >> GRANULE..=(end - 1) >> GRANULE {
        // A word of bits is two granules.
        // SAFETY: the granule lies below 2^47, so its bits and its byte lie in the mapping.
        let (word, byte) = unsafe { (&*table.add((granule / 2) as usize), &*granules.add(granule as usize)) };
        let reached = word.load(Ordering::Relaxed) >> (granule % 2 * 16) & 0xffff != 0;
        byte.store(u8::from(reached), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::{ContextId, PoolId, StreamId};

    fn has(address: u64) -> bool {
        let page = address >> PAGE;
        // SAFETY: tests ask for addresses of programs only, and have mapped the table.
        unsafe { &*table().add((page / 32) as usize) }.load(Ordering::Relaxed) >> (page % 32) & 1 != 0
    }

    fn is_near(address: u64) -> bool {
        // SAFETY: as above.
        unsafe { &*granules().add((address >> GRANULE) as usize) }.load(Ordering::Relaxed) != 0
    }

    fn comes(memory: &mut HostMemory, ptr: u64, size: u64) {
        let (kind, context, stream, pool) = (MemoryKind::Managed, ContextId(1), StreamId::NONE, PoolId(0));
        memory.note(&Op::Alloc { ptr, size, kind, context, stream, pool, flags: 0 });
    }

    fn goes(memory: &mut HostMemory, ptr: u64) {
        memory.note(&Op::Free { ptr, kind: FreeKind::Plain, stream: StreamId::NONE });
    }

    #[test]
    fn pages_are_marked_as_long_as_something_lies_on_them() {
        const BASE: u64 = 0x4200_0000_0000;
        assert!(map(std::ptr::null_mut()) && map(std::ptr::null_mut()));
        let mut memory = HostMemory::default();
        comes(&mut memory, BASE + 100, 200);
        assert!(!has(BASE), "no library has asked yet");
        memory.show();
        comes(&mut memory, BASE + 4000, 200_000);
        comes(&mut memory, BASE + 204_000, 8);
        assert!(has(BASE) && has(BASE + 100_000) && has(BASE + 204_100) && !has(BASE + 208_896));
        assert!(is_near(BASE + 131_072) && is_near(BASE + 262_143) && !is_near(BASE + 262_144) && !is_near(BASE - 1));
        goes(&mut memory, BASE + 4000);
        assert!(is_near(BASE) && !is_near(BASE + 65_536) && is_near(BASE + 196_608));
        assert!(has(BASE) && !has(BASE + 4096) && !has(BASE + 196_608) && has(BASE + 204_000));
        goes(&mut memory, BASE + 204_000);
        goes(&mut memory, BASE + 204_000);
        assert!(has(BASE) && !has(BASE + 204_000));
        goes(&mut memory, BASE + 100);
        assert!(!has(BASE) && memory.is_empty());
    }

    #[test]
    fn addresses_that_no_program_has_are_left_out() {
        let mut memory = HostMemory::default();
        assert!(map(std::ptr::null_mut()));
        memory.show();
        comes(&mut memory, u64::MAX - 100, 4096);
        comes(&mut memory, (1 << ADDRESSES) - 4096, 4096);
        comes(&mut memory, 0, 4096);
        comes(&mut memory, 4096, 0);
        assert!(memory.is_empty());
    }
}
