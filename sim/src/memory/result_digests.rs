//! What a program computed, as digests, so that two schedules of one program can be compared
//! without the program's help.
//!
//! `STREAMSAN_SIM_RESULTS=FILE` asks for one line for everything that the program can have taken
//! for a result, appended when it can no longer change: the content of an allocation when it is
//! freed (in stream order, when its free is reached), when its context ends, or when the process
//! ends; and the bytes that a copy put into host memory that CUDA does not know. A line is `KIND
//! BYTES DIGEST`. Lines come in the order of events, which a schedule may change: compare them
//! sorted.
//!
//! Owns the file and the digests. What is freed when is decided by the table of allocations and by
//! the calls.

use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use crate::appended_file::AppendedFile;
use crate::memory::memcpy::Memcpy;
use crate::memory::{self, Allocation, AllocationKind};
use crate::sched;

/// How long the end of the process waits for work that no thread has waited for.
const PATIENCE: Duration = Duration::from_secs(2);

fn file() -> Option<&'static Mutex<AppendedFile>> {
    static FILE: OnceLock<Option<Mutex<AppendedFile>>> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = crate::config::variable("STREAMSAN_SIM_RESULTS")?;
        let opened = AppendedFile::open(path.clone().into());
        match opened {
            Ok(file) => {
                // SAFETY: a function without arguments that may be called when the process ends.
                unsafe { libc::atexit(at_exit) };
                Some(Mutex::new(file))
            }
            Err(error) => {
                signal_free::say!("streamsan-sim: {}: {error}", path.display());
                None
            }
        }
    })
    .as_ref()
}

/// Opens the file that the environment names, if it names one.
pub(crate) fn start() {
    file();
}

/// Whether the file was asked for.
pub(crate) fn wanted() -> bool {
    file().is_some()
}

extern "C" fn at_exit() {
    // A panic must not cross the C library.
    let _ = std::panic::catch_unwind(|| {
        sched::get().drain(PATIENCE);
        memory::get().allocations().iter().for_each(allocation_ends);
    });
}

fn write(kind: &str, bytes: u64, digest: u64) {
    if let Some(file) = file() {
        let file = file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        file.append(format!("{kind} {bytes} {digest:016x}\n").as_bytes());
    }
}

/// Adds bytes to an FNV-1a digest of 64-bit words (what is left over counts bytewise).
fn add(mut digest: u64, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        digest = (digest ^ word).wrapping_mul(PRIME);
        digest ^= digest >> 29;
    }
    words.remainder().iter().fold(digest, |digest, &byte| (digest ^ u64::from(byte)).wrapping_mul(PRIME))
}

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;

fn digest_of(at: u64, len: u64, mut digest: u64) -> Option<u64> {
    let mut buffer = [0u8; 1 << 16];
    let mut done = 0;
    while done < len {
        let part = &mut buffer[..(len - done).min(1 << 16) as usize];
        memory::get().space.read(at + done, part).ok()?;
        digest = add(digest, part);
        done += part.len() as u64;
    }
    Some(digest)
}

/// The content of an allocation will not change any more. Call it while the memory is still there.
pub(crate) fn allocation_ends(block: &Allocation) {
    if !wanted() {
        return;
    }
    let kind = match block.kind {
        AllocationKind::Device => "device",
        AllocationKind::Global => "global",
        AllocationKind::Heap => "heap",
        AllocationKind::Array => "array",
        AllocationKind::Pool(_) | AllocationKind::Graph => "pool",
        AllocationKind::Host(_) => "pinned",
        AllocationKind::Managed(_) => "managed",
        AllocationKind::Registered(_) => "registered",
        AllocationKind::Mapped => "mapped",
        AllocationKind::Ipc => "ipc",
    };
    if let Some(digest) = digest_of(block.at, block.size, BASIS) {
        write(kind, block.size, digest);
    }
}

/// A copy has been made. Only one to memory that CUDA does not know counts: of other memory the
/// last content does.
pub(crate) fn copied(copy: &Memcpy) {
    if !wanted() || memory::get().find(copy.dst.at).is_some() {
        return;
    }
    let mut digest = Some(BASIS);
    for (z, y) in (0..copy.depth).flat_map(|z| (0..copy.height).map(move |y| (z, y))) {
        digest = digest.and_then(|digest| digest_of(copy.dst.row(y, z), copy.width, digest));
    }
    if let Some(digest) = digest {
        write("copy", copy.width * copy.height * copy.depth, digest);
    }
}
