//! Trace files: the records of one run, of all its processes, on disk.
//!
//! Owns the framing. A file is a header and then frames; a frame holds whole records of one
//! process, compressed, with a checksum. Each frame names the checksum of the frame before it (the
//! first one that of the header), and the last frame is empty and says that the recording ended.
//! A reader therefore notices a frame that is cut out, repeated or moved ([`FileError::Missing`]),
//! and an end that is missing: inside a frame ([`FileError::Torn`]) or between two of them
//! ([`FileError::Cut`]).
//!
//! ```text
//! header: magic (8)  version (4)  reserved (4)
//! frame:  magic (4)  process (4)  bytes stored (4)  bytes of records (4)
//!         checksum of the frame before (4)  checksum (4)  then the stored bytes (zstd)
//! last:   a frame with the number LAST in place of that of a process, and without bytes
//! records: length (4), record, length, record ...
//! ```
//!
//! The checksum is the CRC-32 of the five words before it and of the stored bytes. All numbers are
//! little-endian. The version is [`FILE_VERSION`]. Files of [`UNCHAINED_FILE`] are read as well:
//! their frames do not name the one before, have a checksum of the stored bytes only, and no last
//! frame follows.
//!
//! A process number with [`LATE`] set marks definitions that were added when the process had ended
//! (symbols, code): they stand at the end and are wanted first, see [`late`]. The other marks are
//! those of segments ([`crate::segment`]), whose header says more and has versions of its own.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

use std::io;

pub use reader::{Frame, Reader, late};
pub use writer::Writer;

/// First 8 bytes of every trace file.
pub const MAGIC: [u8; 8] = *b"StrmTrc\n";
/// Version of a trace file: of its framing, and of the records in it ([`crate::FORMAT_VERSION`]).
pub const FILE_VERSION: u32 = 3;
/// The version before frames were chained: whether such a file is whole can not be told.
pub const UNCHAINED_FILE: u32 = 1;
/// Set in the number of a process: these records were added when it had ended.
pub const LATE: u32 = 1 << 31;
/// Set in the number of a process: what lives when this segment begins.
pub const STATE: u32 = 1 << 30;
/// Set in the number of a process: definitions of earlier segments that this one refers to.
pub const AGAIN: u32 = 1 << 29;
/// In place of the number of a process: the recording may end here. Its one record is the reason.
pub const END: u32 = 1 << 28;
/// All of these.
pub const MARKS: u32 = LATE | STATE | AGAIN | END;
/// In place of the number of a process: the file ends here. Readers do not hand this frame out.
const LAST: u32 = 1 << 27;

const FRAME: u32 = u32::from_le_bytes(*b"SSfr");
/// Bytes of the head of a frame, and of one that is not chained.
const FRAME_HEAD: usize = 24;
const UNCHAINED_HEAD: usize = 20;

/// Records are compressed in blocks of about this many bytes. A step of a program that repeats
/// itself should find the one before in its block: blocks of a quarter of this take twice the room
/// and half as long again to unpack.
const BLOCK: usize = 1 << 20;
/// Level of compression. In blocks of this size higher ones find little more, and unpack slower.
const LEVEL: i32 = 1;
/// No frame is larger than this: the largest record (half of the largest ring) and a block.
const MAX_FRAME: u32 = 0x8000_0000;
/// Bytes that a file may unpack to for each of its bytes, and as many more in all. Recordings of
/// programs that repeat one launch reach 40 for each; a hostile file of a few kilobytes could else
/// ask for gigabytes.
const UNPACKED_PER_BYTE: u64 = 1024;
const UNPACKED_MORE: u64 = 32 << 20;

/// Why a trace file could not be read (on).
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is something else.
    #[error("this is not a StreamSan trace")]
    Foreign,
    /// The file was written by another version.
    #[error("the trace has format {theirs}, this streamsan reads formats up to {ours}: use the version that wrote it")]
    Version {
        /// Format of the file.
        theirs: u32,
        /// Our newest format.
        ours: u32,
    },
    /// The file ends inside a frame: the writer died or the disk was full. Everything before was
    /// read.
    #[error("the trace ends in the middle of a frame at byte {at}: what was recorded last is missing")]
    Torn {
        /// Where the torn frame begins.
        at: u64,
    },
    /// The file ends between two frames: the writer died, or the end was cut off. Everything before
    /// was read.
    #[error("the trace is cut off at byte {at}, for it has no end mark: what was recorded last is missing")]
    Cut {
        /// Where the next frame should begin.
        at: u64,
    },
    /// The file has no end yet, for its writer goes on. Everything that it had written was read.
    #[error("the recording goes on: what it had not written at byte {at} was not read")]
    GoesOn {
        /// Where the next frame will begin.
        at: u64,
    },
    /// A frame does not follow the one before it.
    #[error("a part of the trace is missing, repeated or moved before byte {at}: what follows was not read")]
    Missing {
        /// Where the frame begins that does not follow.
        at: u64,
    },
    /// The bytes were changed.
    #[error("the trace is damaged at byte {at} ({what}): what follows can not be read")]
    Damaged {
        /// Where the damaged frame begins.
        at: u64,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Its reader was told to end.
    #[error("interrupted by signal {signal} at byte {at}: what follows was not analysed")]
    Interrupted {
        /// The signal.
        signal: i32,
        /// Where it was.
        at: u64,
    },
    /// Segments of a recording are missing or could not be read; all others were.
    #[error("{0}")]
    Parts(String),
}

/// What stands in front of the stored bytes of a frame.
struct FrameHead {
    /// Number of the process, with its marks.
    process: u32,
    /// Bytes in the file.
    stored: u32,
    /// Bytes of records.
    raw: u32,
    /// Checksum of the frame before; `None`: this one is not chained.
    before: Option<u32>,
    /// Checksum.
    sum: u32,
}

impl FrameHead {
    /// Bytes of a head.
    const fn len(is_chained: bool) -> usize {
        if is_chained { FRAME_HEAD } else { UNCHAINED_HEAD }
    }

    /// The head of a chained frame.
    fn chained(process: u32, raw: usize, stored: &[u8], before: u32) -> Self {
        let mut head = Self { process, stored: stored.len() as u32, raw: raw as u32, before: Some(before), sum: 0 };
        head.sum = head.right_sum(stored);
        head
    }

    fn encode(&self) -> [u8; FRAME_HEAD] {
        let words = [FRAME, self.process, self.stored, self.raw, self.before.unwrap_or_default(), self.sum];
        let mut bytes = [0; FRAME_HEAD];
        for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The head that these bytes are, if they are one.
    fn decode(bytes: &[u8; FRAME_HEAD], is_chained: bool) -> Option<Self> {
        let [magic, process, stored, raw, fourth, fifth] = [0, 4, 8, 12, 16, 20].map(|at| word(bytes, at));
        let (before, sum) = if is_chained { (Some(fourth), fifth) } else { (None, fourth) };
        // Only the empty last frame has that mark.
        let is_marked = is_chained && process & LAST != 0;
        let is_last = process == LAST && stored == 0 && raw == 0;
        let is_head = magic == FRAME && stored <= MAX_FRAME && raw <= MAX_FRAME && (!is_marked || is_last);
        is_head.then_some(Self { process, stored, raw, before, sum })
    }

    /// Whether the file ends here.
    fn is_last(&self) -> bool {
        self.before.is_some() && self.process == LAST
    }

    /// The checksum that belongs to this head and these bytes.
    fn right_sum(&self, stored: &[u8]) -> u32 {
        let mut sum = crc32fast::Hasher::new();
        if self.before.is_some() {
            sum.update(&self.encode()[..FRAME_HEAD - 4]);
        }
        sum.update(stored);
        sum.finalize()
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}
