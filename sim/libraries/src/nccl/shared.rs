//! The file that the ranks of a communicator share: counters, and rings for what is sent.
//!
//! Each rank has a ring for collectives, and one for each peer that it sends to. All know the sizes
//! of all messages of a ring, so all know where each lies. Nothing is allocated before it is used.

use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most ranks of a communicator.
pub(super) const RANKS: usize = 16;
/// Bytes of a ring: no message is larger.
pub(super) const RING: u64 = 1 << 31;
const HEADER: u64 = 1 << 16;
/// A ring for each rank, and for each pair.
const RINGS: usize = RANKS + RANKS * RANKS;
const SIZE: u64 = HEADER + RINGS as u64 * RING;

/// Which file: of which process, and a number that tells it from another that came there later.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct UniqueId {
    mark: [u8; 16],
    process: u32,
    file: i32,
    number: u64,
    rest: [u8; 96],
}

const MARK: [u8; 16] = *b"streamsan-nccl-1";

const _: () = assert!(size_of::<UniqueId>() == 128);

impl UniqueId {
    /// A new file. It stays open: the process that made it outlives the communicator.
    pub(super) fn new() -> Option<UniqueId> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // SAFETY: a valid C string; the descriptor is ours. By number, as in the crate `sim`.
        let file =
            unsafe { libc::syscall(libc::SYS_memfd_create, c"streamsan-sim nccl".as_ptr(), libc::MFD_CLOEXEC) } as i32;
        if file < 0 || !signal_free::resize(file, SIZE) {
            return None;
        }
        let number = u64::from(std::process::id()) << 32 | NEXT.fetch_add(1, Ordering::Relaxed);
        let id = UniqueId { mark: MARK, process: std::process::id(), file, number, rest: [0; 96] };
        let shared = Shared::open(&id)?;
        shared.word(0).store(number as u32, Ordering::Release);
        Some(id)
    }
}

impl UniqueId {
    /// The id of a file that another rank has told of.
    pub(super) fn of(process: u32, file: i32, number: u64) -> UniqueId {
        UniqueId { mark: MARK, process, file, number, rest: [0; 96] }
    }

    /// What another rank has to be told: process, descriptor and number.
    pub(super) fn parts(&self) -> (u32, i32, u64) {
        (self.process, self.file, self.number)
    }
}

/// Lets this process access bytes of the file. All others stay inaccessible: `mlockall` would give
/// memory to them.
fn open(at: u64, bytes: u64) -> bool {
    // SAFETY: asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let (from, to) = (at & !(page - 1), (at + bytes).next_multiple_of(page));
    // SAFETY: pages of the mapping of the file.
    unsafe { libc::mprotect(from as *mut _, (to - from) as usize, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// The mapped file. It is never unmapped, for streams may still wait for its counters.
#[derive(Clone, Copy)]
pub(super) struct Shared(u64);

impl Shared {
    /// Maps the file of an id.
    pub(super) fn open(id: &UniqueId) -> Option<Shared> {
        if id.mark != MARK {
            return None;
        }
        let path = CString::new(format!("/proc/{}/fd/{}", id.process, id.file)).ok()?;
        // SAFETY: a valid C string; the mapping is a fresh one, and the descriptor is closed once.
        unsafe {
            let file = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
            if file < 0 {
                return None;
            }
            // Its process may have closed it, and opened another file under the number.
            let mut stat: libc::stat = std::mem::zeroed();
            if libc::fstat(file, &mut stat) != 0 || stat.st_nlink != 0 || stat.st_size != SIZE as libc::off_t {
                libc::close(file);
                return None;
            }
            let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
            let at = libc::mmap(std::ptr::null_mut(), SIZE as usize, libc::PROT_NONE, flags, file, 0);
            libc::close(file);
            (at != libc::MAP_FAILED && open(at as u64, HEADER)).then_some(Shared(at as u64))
        }
    }

    /// A word of the header.
    fn word(&self, at: usize) -> &'static std::sync::atomic::AtomicU32 {
        debug_assert!(((at + 1) * 4) as u64 <= HEADER);
        // SAFETY: the header is mapped for ever, and zero at first.
        unsafe { &*((self.0 as *const std::sync::atomic::AtomicU32).add(at)) }
    }

    /// How many messages were put into a ring.
    pub(super) fn posted(&self, ring: usize) -> &'static std::sync::atomic::AtomicU32 {
        self.word(16 + ring)
    }

    /// How many of a ring's messages a rank has taken.
    pub(super) fn taken(&self, ring: usize, rank: usize) -> &'static std::sync::atomic::AtomicU32 {
        self.word(512 + ring * RANKS + rank)
    }

    /// What a rank tells the others of a split.
    pub(super) fn split_word(&self, rank: usize, at: usize) -> &'static std::sync::atomic::AtomicU32 {
        self.word(8192 + rank * super::split::WORDS + at)
    }

    /// Where bytes of a ring lie; they can be accessed from then on.
    pub(super) fn at(&self, ring: usize, offset: u64, bytes: u64) -> u64 {
        let at = self.0 + HEADER + ring as u64 * RING + offset;
        open(at, bytes);
        at
    }
}

/// The ring of a rank's contributions to collectives.
pub(super) fn own_ring(rank: usize) -> usize {
    rank
}

/// The ring of what one rank sends to another.
pub(super) fn pair_ring(from: usize, to: usize) -> usize {
    RANKS + from * RANKS + to
}
