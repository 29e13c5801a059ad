//! The ring: shared memory through which ops leave the program under test.
//!
//! Owns the layout of the memory, the mapping, and both ends. The counters and their memory orders
//! are in `counters`; what the analyzer sends back is in [`back_channel`]. A ring has one
//! producing process, which serialises its threads itself, and one consuming process. It does not
//! decide how long either waits: the producer asks for space and gets it or not
//! ([`Producer::try_reserve`]). Policy (back-pressure, a dead consumer) belongs to the shim.
//!
//! # Layout and protocol
//!
//! [`HEADER`] bytes (in them also the back channel, [`MeasureRequests`] and [`SettledLaunches`]),
//! then `capacity` bytes of data (a power of two). Both sides map the data **twice in a row**, so
//! that a record that runs past the end is still contiguous. All that is mapped begins and ends at
//! a multiple of the largest page that a kernel may have. `head` counts bytes ever written,
//! `tail` bytes ever consumed; both only grow. A record is a `u32` length, then that many bytes,
//! padded to [`ALIGN`]. A length of all ones ends the lap: while the consumer keeps up, the
//! producer stays in the first megabyte (a warm launch took 116 ns instead of 133, a copy 117
//! instead of 182; lowest of 8 alternating runs). The producer writes the record, then stores
//! `head` with release order: a producer killed at any instruction leaves either a whole record or
//! none, and the memory outlives it because the consumer maps it too (memfd; 200 random SIGKILLs
//! and 114 million records were tried without a loss).
//!
//! The consumer treats the memory as hostile: a length that runs past `head` is damage and ends the
//! stream ([`RingError::Damaged`]).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use crate::FORMAT_VERSION;
use crate::arch;
use crate::ring::back_channel::{MeasureRequests, SettledLaunches};
use counters::{Counters, ReadCursor, WriteCursor};

pub mod back_channel;
mod counters;
#[cfg(all(test, not(loom)))]
mod tests;

/// First 8 bytes of every ring.
pub const MAGIC: u64 = u64::from_le_bytes(*b"StrmSan\x02");

/// Records begin at multiples of this.
pub const ALIGN: usize = 8;

/// The largest page of a kernel: 64 KiB, on aarch64. The layout is the same on all kernels and
/// processors; of the header only what is used is ever in memory.
pub const LARGEST_PAGE: usize = 1 << 16;

/// Bytes before the data, which are mapped on their own.
pub const HEADER: usize = LARGEST_PAGE;

/// The shared header. Every field that is written after start-up is atomic, and the two hot
/// counters have a cache line each.
#[repr(C)]
pub struct Header {
    magic: u64,
    version: u32,
    _pad: u32,
    capacity: u64,
    /// Process id of the producer as it sees itself.
    pub producer_pid: AtomicU32,
    /// 1 once the producer is about to exit and writes no more.
    pub producer_done: AtomicU32,
    /// Counts up at least every 100 ms while the consumer lives, whatever it is doing.
    pub heartbeat: AtomicU32,
    /// 1 once the consumer has consumed everything and has finished its report.
    pub consumer_done: AtomicU32,
    /// Findings that count for the exit code, valid once `consumer_done` is 1.
    pub findings: AtomicU32,
    /// What a run that its analyzer has judged ends with (66, 70, ...), valid once `consumer_done`
    /// is 1.
    pub exit_code: AtomicU32,
    /// 1 once the producer has switched itself off: what came later is not in the ring.
    pub producer_off: AtomicU32,
    /// The thread that keeps the ring for its consumer: see [`owner`].
    pub owner: AtomicU32,
    _line: [u8; 8],
    counters: Counters,
    /// Kernels that the consumer wants measured from now on.
    pub wanted: MeasureRequests,
    /// Kernels that need no measuring.
    pub settled: SettledLaunches,
}

const _: () = assert!(size_of::<Header>() <= HEADER);

/// The values of [`Header::owner`]. The word is a robust futex: when its thread dies, by whichever
/// signal, the kernel itself marks it. The producer reads it without a system call.
pub mod owner {
    /// No consumer has come yet.
    pub const NONE: u32 = 0;
    /// A consumer lives, and nothing marks its death (emulators know no robust futexes).
    pub const UNMARKED: u32 = 0x8000_0000;
    /// Set by the kernel: the owner has died (`FUTEX_OWNER_DIED`).
    pub const DIED: u32 = 0x4000_0000;
}

/// Why a ring could not be used.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The system refused memory or a descriptor.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// The memory is no ring.
    #[error("this is not a StreamSan ring")]
    Foreign,
    /// The other side is another version of StreamSan.
    #[error("the program's shim writes format {theirs}, this analyzer reads format {ours}: use both from one build")]
    Version {
        /// Their format.
        theirs: u32,
        /// Our format.
        ours: u32,
    },
    /// The contents make no sense: the program has overwritten them.
    #[error("the ring is damaged at byte {at} (length {length}): the program has overwritten it")]
    Damaged {
        /// Count of bytes consumed so far.
        at: u64,
        /// The impossible length.
        length: u32,
    },
}

fn system(what: &'static str) -> RingError {
    RingError::System { what, error: io::Error::last_os_error() }
}

/// A piece of the file, and where it is mapped in the ring.
struct Part {
    at: usize,
    len: usize,
    offset: usize,
}

/// The header with the data, and the data once more.
fn parts(capacity: usize) -> [Part; 2] {
    let end = HEADER + capacity;
    [Part { at: 0, len: end, offset: 0 }, Part { at: end, len: capacity, offset: HEADER }]
}

/// The mapping, whichever side it is.
pub struct Ring {
    base: NonNull<u8>,
    capacity: usize,
}

// SAFETY: the mapping is plain shared memory; all mutable state in it is atomic or guarded by the
// head/tail protocol.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    /// Makes a new ring of `capacity` data bytes (rounded up to a power of two, at least
    /// [`LARGEST_PAGE`]) and maps it. The descriptor is for the consumer; the producer can close
    /// it.
    pub fn create(capacity: usize) -> Result<(Self, OwnedFd), RingError> {
        let capacity = capacity.max(LARGEST_PAGE).next_power_of_two();
        // By number: C libraries before 2.27 have no such function, and the shim must load there.
        let (name, flags) = (c"streamsan-ring".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        // SAFETY: the name is a C string; the call has no other preconditions.
        let fd = unsafe { libc::syscall(libc::SYS_memfd_create, name, flags) };
        if fd < 0 {
            return Err(system("memfd_create"));
        }
        // SAFETY: fd was just opened by us and is owned by nothing else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as i32) };
        // SAFETY: fd is an open, writable file.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), (HEADER + capacity) as libc::off_t) } != 0 {
            return Err(system("ftruncate"));
        }
        // A shorter file would kill the other side by SIGBUS: the seals forbid it. (Where there are
        // no seals, nothing else has the file yet.)
        // SAFETY: fd is open.
        unsafe {
            libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL)
        };
        Self::lay_out(fd, capacity)
    }

    /// As [`Ring::create`], on an empty file that the caller opened (where memfd is forbidden). All
    /// of it is allocated now: a file system that is full must say so here and not by SIGBUS when
    /// the program runs.
    pub fn create_on(fd: OwnedFd, capacity: usize) -> Result<(Self, OwnedFd), RingError> {
        let capacity = capacity.max(LARGEST_PAGE).next_power_of_two();
        // SAFETY: fd is an open, writable file.
        let error = unsafe { libc::posix_fallocate(fd.as_raw_fd(), 0, (HEADER + capacity) as libc::off_t) };
        if error != 0 {
            return Err(RingError::System { what: "posix_fallocate", error: io::Error::from_raw_os_error(error) });
        }
        Self::lay_out(fd, capacity)
    }

    fn lay_out(fd: OwnedFd, capacity: usize) -> Result<(Self, OwnedFd), RingError> {
        let ring = Self::map(&fd, capacity)?;
        let header = ring.base.as_ptr().cast::<Header>();
        // SAFETY: the mapping is at least HEADER bytes, page-aligned, zeroed by the kernel, and
        // nothing else has it yet.
        unsafe {
            (*header).version = FORMAT_VERSION;
            (*header).capacity = capacity as u64;
            (*header).magic = MAGIC;
        }
        Ok((ring, fd))
    }

    /// Maps a ring that another process made.
    pub fn open(fd: BorrowedFd<'_>) -> Result<Self, RingError> {
        // SAFETY: an all-zero stat is a valid value to be overwritten.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: fd is open and stat is writable.
        if unsafe { libc::fstat(fd.as_raw_fd(), &mut stat) } != 0 {
            return Err(system("fstat"));
        }
        let size = usize::try_from(stat.st_size).unwrap_or(0);
        let capacity = size.checked_sub(HEADER).filter(|c| c.is_power_of_two() && *c >= LARGEST_PAGE);
        let capacity = capacity.ok_or(RingError::Foreign)?;
        let ring = Self::map(&fd, capacity)?;
        let header = ring.header();
        if header.magic != MAGIC || header.capacity != capacity as u64 {
            return Err(RingError::Foreign);
        }
        if header.version != FORMAT_VERSION {
            return Err(RingError::Version { theirs: header.version, ours: FORMAT_VERSION });
        }
        Ok(ring)
    }

    fn map(fd: &impl AsRawFd, capacity: usize) -> Result<Self, RingError> {
        let total = HEADER + 2 * capacity;
        // SAFETY: reserves fresh address space, no preconditions.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                total,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(system("mmap"));
        }
        for Part { at, len, offset } in parts(capacity) {
            // SAFETY: maps over address space reserved just above; the file is long enough for
            // offset + len.
            let part = unsafe {
                libc::mmap(
                    base.byte_add(at),
                    len,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED | libc::MAP_FIXED,
                    fd.as_raw_fd(),
                    offset as libc::off_t,
                )
            };
            if part == libc::MAP_FAILED {
                let error = system("mmap");
                // SAFETY: unmaps exactly what was reserved above.
                unsafe { libc::munmap(base, total) };
                return Err(error);
            }
        }
        // A core file of the program would hold the records twice.
        // SAFETY: advice about exactly what was mapped above.
        unsafe { libc::madvise(base, total, libc::MADV_DONTDUMP) };
        let base = NonNull::new(base.cast()).ok_or(RingError::Foreign)?;
        Ok(Self { base, capacity })
    }

    /// Leaves the mapping out of forked children: they get a ring of their own.
    pub fn hide_from_children(&self) {
        // SAFETY: the range is exactly our mapping. A failure only means that a child keeps the
        // mapping.
        unsafe { libc::madvise(self.base.as_ptr().cast(), HEADER + 2 * self.capacity, libc::MADV_DONTFORK) };
    }

    /// The shared header.
    pub fn header(&self) -> &Header {
        // SAFETY: the mapping starts with a Header and lives as long as self; non-atomic fields are
        // written only at creation.
        unsafe { self.base.cast::<Header>().as_ref() }
    }

    /// Data bytes.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes ever written.
    pub fn written(&self) -> u64 {
        self.header().counters.written()
    }

    /// Bytes ever consumed.
    pub fn consumed(&self) -> u64 {
        self.header().counters.consumed()
    }

    fn data(&self, count: u64) -> *mut u8 {
        let at = HEADER + (count as usize & (self.capacity - 1));
        // SAFETY: at is below HEADER + capacity, inside the mapping.
        unsafe { self.base.as_ptr().add(at) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // Miri has no shared mappings: its tests keep rings in ordinary memory, see there.
        if cfg!(miri) {
            return;
        }
        // SAFETY: the mapping was made by map() with exactly this length and is not used after
        // drop.
        unsafe { libc::munmap(self.base.as_ptr().cast(), HEADER + 2 * self.capacity) };
    }
}

/// The writing end. The caller makes sure that only one thread uses it at a time.
pub struct Producer {
    ring: Ring,
    writing: WriteCursor,
    /// Bytes up to which lines were asked for.
    fetched: u64,
}

impl Producer {
    /// Takes over a ring that was just created.
    pub fn new(ring: Ring) -> Self {
        let writing = WriteCursor::new(&ring.header().counters, ring.capacity);
        Self { ring, writing, fetched: 0 }
    }

    /// The ring.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Largest record that can ever be written.
    #[inline]
    pub fn max_record(&self) -> usize {
        self.ring.capacity / 2
    }

    /// Whether there is room for a record of up to `len` bytes.
    #[inline]
    pub fn has_room(&mut self, len: usize) -> bool {
        self.writing.has_room(&self.ring.header().counters, len)
    }

    /// Room for a record of up to `len` bytes, or `None` while the consumer is behind.
    #[inline]
    pub fn try_reserve(&mut self, len: usize) -> Option<&mut [u8]> {
        if !self.has_room(len) {
            return None;
        }
        let start = self.ring.data(self.writing.at());
        // SAFETY: there is room for the length and the bytes, contiguous thanks to the double
        // mapping, and only this producer writes there; the borrow of self keeps a second
        // reservation out.
        Some(unsafe { std::slice::from_raw_parts_mut(start.add(4), len) })
    }

    /// Publishes the first `len` bytes of what was reserved last.
    #[inline]
    pub fn commit(&mut self, len: usize) {
        let start = self.ring.data(self.writing.at());
        // SAFETY: the 4 bytes before the reserved ones belong to the same reservation.
        unsafe { start.cast::<u32>().write((len as u32).to_le()) };
        // SAFETY: asked for where the next record would begin, with room for one.
        let mark = |at, length: u32| unsafe { self.ring.data(at).cast::<u32>().write(length.to_le()) };
        self.writing.publish(&self.ring.header().counters, len, mark);
        self.fetch_ahead();
    }

    /// Asks for the lines that the next records go to, to be written: they were last touched a lap
    /// ago, by the consumer's processor. Without this the next locked instruction of the program
    /// waits until they have come, one after the other.
    #[inline(always)]
    fn fetch_ahead(&mut self) {
        // After an early end of a lap what was fetched before is of no use.
        self.fetched = if self.fetched < self.writing.at() { self.writing.at() } else { self.fetched };
        while self.fetched < self.writing.at() + AHEAD {
            arch::fetch_for_writing(self.ring.data(self.fetched));
            self.fetched += 64;
        }
    }
}

/// Bytes fetched ahead of the next record: most launches have less.
const AHEAD: u64 = 512;

/// The reading end.
pub struct Consumer {
    ring: Ring,
    reading: ReadCursor,
}

impl Consumer {
    /// Takes over an opened ring, from wherever an earlier consumer stopped.
    pub fn new(ring: Ring) -> Self {
        let reading = ReadCursor::new(&ring.header().counters, ring.capacity);
        Self { ring, reading }
    }

    /// The ring.
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Hands every record that is there to `each` and frees their space; returns how many there
    /// were.
    pub fn drain(&mut self, mut each: impl FnMut(&[u8])) -> Result<usize, RingError> {
        let ring = &self.ring;
        // SAFETY: asked for published bytes only, of which there are at least ALIGN.
        let length_at = |at| u32::from_le(unsafe { ring.data(at).cast::<u32>().read_volatile() });
        let hand_out = |at, length: u32| {
            // SAFETY: the bytes were published with release order before head was stored, and a
            // producer that keeps the protocol does not touch them before tail passes them. A
            // hostile one can only change their values; decoding copes with any bytes.
            each(unsafe { std::slice::from_raw_parts(ring.data(at).add(4), length as usize) });
        };
        let drained = self.reading.drain(&ring.header().counters, length_at, hand_out);
        drained.map_err(|impossible| RingError::Damaged { at: impossible.at, length: impossible.length })
    }
}
