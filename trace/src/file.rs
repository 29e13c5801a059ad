//! Trace files: the records of one run, of all its processes, on disk.
//!
//! Owns the framing. A file is a header and then frames; a frame holds whole records of one
//! process, compressed, with a checksum. A writer that dies leaves whole frames and perhaps a torn
//! one at the end, which the reader names and leaves out ([`FileError::Torn`]).
//!
//! ```text
//! header: magic (8)  version (4)  reserved (4)
//! frame:  magic (4)  process (4)  bytes stored (4)  bytes of records (4)
//!         crc32 of the stored bytes (4)  then the stored bytes (zstd)
//! records: length (4), record, length, record ...
//! ```
//!
//! The version is [`crate::FORMAT_VERSION`]; all numbers are little-endian.
//!
//! A process number with [`LATE`] set marks definitions that were added when the process had ended
//! (symbols, code): they stand at the end and are wanted first, see [`late`]. The other marks are
//! those of segments ([`crate::segment`]), whose header says more and has a version of its own.

use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::FORMAT_VERSION;
use crate::segment::{SEGMENT_HEAD, SEGMENT_VERSION, SegmentHead};

/// First 8 bytes of every trace file.
pub const MAGIC: [u8; 8] = *b"StrmTrc\n";
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
const FRAME: u32 = u32::from_le_bytes(*b"SSfr");
const FRAME_HEAD: usize = 20;

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
    #[error("the trace has format {theirs}, this streamsan reads format {ours}: use the version that wrote it")]
    Version {
        /// Format of the file.
        theirs: u32,
        /// Our format.
        ours: u32,
    },
    /// The file ends inside a frame: the writer died or the disk was full. Everything before was
    /// read.
    #[error("the trace ends in the middle of a frame at byte {at}: what was recorded last is missing")]
    Torn {
        /// Where the torn frame begins.
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

/// Writes a trace file. Each process of the run has a number of its own and a block of its own.
pub struct Writer<W: Write> {
    to: W,
    blocks: Vec<Vec<u8>>,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    pub fn new(mut to: W) -> io::Result<Self> {
        to.write_all(&MAGIC)?;
        to.write_all(&FORMAT_VERSION.to_le_bytes())?;
        to.write_all(&0_u32.to_le_bytes())?;
        Ok(Self { to, blocks: Vec::new(), written: 16 })
    }

    /// Writes the header of a segment.
    pub fn segment(mut to: W, head: &SegmentHead) -> io::Result<Self> {
        to.write_all(&MAGIC)?;
        to.write_all(&SEGMENT_VERSION.to_le_bytes())?;
        to.write_all(&0_u32.to_le_bytes())?;
        to.write_all(&head.encode())?;
        Ok(Self { to, blocks: Vec::new(), written: 16 + SEGMENT_HEAD as u64 })
    }

    /// Bytes written so far, without what is pending.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Appends a record of a process.
    pub fn record(&mut self, process: u32, bytes: &[u8]) -> io::Result<()> {
        let index = process as usize;
        if self.blocks.len() <= index {
            self.blocks.resize_with(index + 1, Vec::new);
        }
        let block = &mut self.blocks[index];
        block.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        block.extend_from_slice(bytes);
        if block.len() >= BLOCK { self.write_block(index) } else { Ok(()) }
    }

    /// Adds definitions of a process that has ended.
    pub fn late(&mut self, process: u32, records: impl IntoIterator<Item = Vec<u8>>) -> io::Result<()> {
        let mut block = Vec::new();
        for record in records {
            block.extend_from_slice(&(record.len() as u32).to_le_bytes());
            block.extend_from_slice(&record);
            if block.len() >= BLOCK {
                self.write_frame(process | LATE, &block)?;
                block.clear();
            }
        }
        if block.is_empty() { Ok(()) } else { self.write_frame(process | LATE, &block) }
    }

    /// Writes what is pending, so that a reader finds it.
    pub fn flush(&mut self) -> io::Result<()> {
        for index in 0..self.blocks.len() {
            self.write_block(index)?;
        }
        self.to.flush()
    }

    fn write_block(&mut self, index: usize) -> io::Result<()> {
        let mut block = std::mem::take(&mut self.blocks[index]);
        if !block.is_empty() {
            self.write_frame(index as u32, &block)?;
        }
        block.clear();
        self.blocks[index] = block;
        Ok(())
    }

    /// Writes a frame: whole records, each behind its length (4 bytes).
    pub fn write_frame(&mut self, process: u32, block: &[u8]) -> io::Result<()> {
        let stored = zstd::bulk::compress(block, LEVEL)?;
        let words = [FRAME, process, stored.len() as u32, block.len() as u32, crc32fast::hash(&stored)];
        let mut head = [0; FRAME_HEAD];
        for (to, word) in head.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        self.to.write_all(&head)?;
        self.written += (FRAME_HEAD + stored.len()) as u64;
        self.to.write_all(&stored)
    }
}

/// Hands the late definitions of a trace to `each`, with the number of their process (without
/// [`LATE`]), passing over everything else without unpacking it. Damage ends the search:
/// reading the whole file names it.
pub fn late(mut from: impl Read + Seek, mut each: impl FnMut(u32, &[u8])) {
    // Foreign files and those of another version have nothing for us.
    let Ok(mut at) = Reader::new(&mut from).map(|reader| reader.at) else { return };
    let mut unpacked = 0;
    let mut head = [0; FRAME_HEAD];
    while from.seek(SeekFrom::Start(at)).is_ok() && matches!(fill(&mut from, &mut head), Ok(FRAME_HEAD)) {
        let [magic, process, stored] = [0, 4, 8].map(|i| word(&head, i));
        if magic != FRAME || stored > MAX_FRAME {
            return;
        }
        if process & LATE != 0 {
            if from.seek(SeekFrom::Start(at)).is_err() {
                return;
            }
            let Ok(mut reader) = Reader::after_header(&mut from, at) else { return };
            reader.unpacked = unpacked;
            if !matches!(reader.frame(|process, record| each(process & !LATE, record)), Ok(true)) {
                return;
            }
            unpacked = reader.unpacked;
        }
        at += FRAME_HEAD as u64 + u64::from(stored);
    }
}

/// Whole records of one process, as a frame holds them.
#[derive(Default)]
pub struct Frame {
    /// Number of the process.
    pub process: u32,
    /// Bytes of the file up to the end of the frame.
    pub upto: u64,
    at: u64,
    records: Vec<u8>,
}

impl Frame {
    /// The records. An error is the last answer: what follows is cut.
    pub fn records(&self) -> impl Iterator<Item = Result<&[u8], FileError>> {
        let mut rest = &self.records[..];
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let parts = rest.split_first_chunk::<4>();
            let parts = parts.and_then(|(len, more)| more.split_at_checked(u32::from_le_bytes(*len) as usize));
            let (record, more) = parts.unwrap_or_default();
            rest = more;
            Some(match parts {
                Some(_) => Ok(record),
                None => Err(FileError::Damaged { at: self.at, what: "a record is cut" }),
            })
        })
    }
}

/// Reads a trace file.
pub struct Reader<R: Read> {
    from: R,
    at: u64,
    /// Bytes that its frames were unpacked to.
    unpacked: u64,
    segment: Option<SegmentHead>,
    frame: Frame,
    stored: Vec<u8>,
    decompressor: zstd::bulk::Decompressor<'static>,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    pub fn new(mut from: R) -> Result<Self, FileError> {
        let mut head = [0; 16];
        let got = fill(&mut from, &mut head)?;
        if got < 16 || head[..8] != MAGIC {
            return Err(FileError::Foreign);
        }
        match word(&head, 8) {
            FORMAT_VERSION => Self::after_header(from, 16),
            SEGMENT_VERSION => {
                let mut more = [0; SEGMENT_HEAD];
                if fill(&mut from, &mut more)? < SEGMENT_HEAD {
                    return Err(FileError::Torn { at: 16 });
                }
                let mut reader = Self::after_header(from, 16 + SEGMENT_HEAD as u64)?;
                reader.segment = Some(SegmentHead::decode(&more));
                Ok(reader)
            }
            theirs => Err(FileError::Version { theirs, ours: FORMAT_VERSION }),
        }
    }

    /// Which segment of which recording this is, if it is one.
    pub fn segment(&self) -> Option<SegmentHead> {
        self.segment
    }

    /// Goes on at a frame that begins at this byte.
    fn after_header(from: R, at: u64) -> Result<Self, FileError> {
        let decompressor = zstd::bulk::Decompressor::new()?;
        Ok(Self { from, at, unpacked: 0, segment: None, frame: Frame::default(), stored: Vec::new(), decompressor })
    }

    /// Bytes read so far.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Hands every record of the next frame to `each` with the number of its process. False at the
    /// end of the file.
    pub fn frame(&mut self, mut each: impl FnMut(u32, &[u8])) -> Result<bool, FileError> {
        let mut frame = std::mem::take(&mut self.frame);
        let any = self.next_frame(&mut frame)?;
        if any {
            for record in frame.records() {
                each(frame.process, record?);
            }
        }
        self.frame = frame;
        Ok(any)
    }

    /// Reads the next frame into `frame`, whose room is used again. False at the end of the file.
    pub fn next_frame(&mut self, frame: &mut Frame) -> Result<bool, FileError> {
        let at = self.at;
        let mut head = [0; FRAME_HEAD];
        match fill(&mut self.from, &mut head)? {
            0 => return Ok(false),
            FRAME_HEAD => {}
            _ => return Err(FileError::Torn { at }),
        }
        let [magic, process, stored, raw, sum] = [0, 4, 8, 12, 16].map(|i| word(&head, i));
        let damaged = |what| FileError::Damaged { at, what };
        if magic != FRAME || stored > MAX_FRAME || raw > MAX_FRAME {
            return Err(damaged("no frame begins here"));
        }
        self.unpacked += u64::from(raw);
        if self.unpacked > UNPACKED_MORE + UNPACKED_PER_BYTE * (at + u64::from(stored)) {
            return Err(damaged("it claims more than 1024 bytes for each byte of the file"));
        }
        // Read in steps: a damaged length must not reserve gigabytes that the file does not have.
        for room in [&mut self.stored, &mut frame.records] {
            room.clear();
            // What a large image took is given back.
            room.shrink_to(4 * BLOCK);
        }
        let got = self.from.by_ref().take(u64::from(stored)).read_to_end(&mut self.stored)?;
        if got < stored as usize {
            return Err(FileError::Torn { at });
        }
        if crc32fast::hash(&self.stored) != sum {
            return Err(damaged("its checksum is wrong"));
        }
        frame.records.reserve(raw as usize);
        let got = self.decompressor.decompress_to_buffer(&self.stored, &mut frame.records);
        got.map_err(|_| damaged("it does not decompress"))?;
        self.at += FRAME_HEAD as u64 + u64::from(stored);
        (frame.process, frame.at, frame.upto) = (process, at, self.at);
        Ok(true)
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

/// Reads until the buffer is full or the file ends; answers how much there was.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match from.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).expect("header");
        for n in 0..20_000_u32 {
            writer.record(n % 3, &n.to_le_bytes().repeat(1 + n as usize % 7)).expect("record");
        }
        writer.flush().expect("flush");
        bytes
    }

    fn read(bytes: &[u8]) -> (Vec<(u32, Vec<u8>)>, Option<FileError>) {
        let mut records = Vec::new();
        let mut reader = match Reader::new(bytes) {
            Ok(reader) => reader,
            Err(error) => return (records, Some(error)),
        };
        loop {
            match reader.frame(|process, record| records.push((process, record.to_vec()))) {
                Ok(true) => {}
                Ok(false) => return (records, None),
                Err(error) => return (records, Some(error)),
            }
        }
    }

    #[test]
    fn records_come_back_per_process_in_order() {
        let (records, error) = read(&sample());
        assert!(error.is_none());
        assert_eq!(records.len(), 20_000);
        for process in 0..3 {
            let numbers: Vec<u32> = records.iter().filter(|(p, _)| *p == process).map(|(_, r)| word(r, 0)).collect();
            assert!(numbers.windows(2).all(|w| w[0] + 3 == w[1]));
        }
    }

    #[test]
    fn late_definitions_are_found_without_reading_the_rest() {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).expect("header");
        writer.record(3, b"early").expect("record");
        writer.flush().expect("flush");
        writer.late(3, [b"one".to_vec(), vec![7; BLOCK], b"two".to_vec()]).expect("late");
        writer.late(4, []).expect("nothing");
        let found = |bytes: &[u8]| {
            let mut list = Vec::new();
            late(io::Cursor::new(bytes), |process, record| list.push((process, record.len())));
            list
        };
        assert_eq!(found(&bytes), [(3, 3), (3, BLOCK), (3, 3)]);
        let (records, error) = read(&bytes);
        assert!(error.is_none());
        assert_eq!(records.iter().map(|(p, _)| *p).collect::<Vec<_>>(), [3, 3 | LATE, 3 | LATE, 3 | LATE]);
        for cut in 0..bytes.len() {
            assert!(found(&bytes[..cut]).len() <= 3);
        }
    }

    #[test]
    fn a_torn_file_gives_its_whole_frames_and_a_named_error() {
        let bytes = sample();
        let whole = read(&bytes).0.len();
        for cut in [17, 30, bytes.len() / 2, bytes.len() - 1] {
            let (records, error) = read(&bytes[..cut]);
            assert!(records.len() < whole);
            assert!(matches!(error, Some(FileError::Torn { .. })), "cut at {cut}: {error:?}");
        }
    }

    #[test]
    fn damage_never_panics_and_is_named() {
        let bytes = sample();
        for at in (16..bytes.len()).step_by(97) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            let (_, error) = read(&damaged);
            assert!(error.is_some(), "a changed byte at {at} went unnoticed");
        }
        assert!(matches!(read(b"hello").1, Some(FileError::Foreign)));
        let mut newer = bytes;
        newer[8] = 99;
        assert!(matches!(read(&newer).1, Some(FileError::Version { theirs: 99, .. })));
    }

    /// A file of frames that each unpack to so many bytes of nothing.
    fn claims(frames: usize, raw: usize, late: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes).expect("header");
        let mut block = Vec::new();
        block.extend_from_slice(&(raw as u32).to_le_bytes());
        block.resize(4 + raw, 0);
        for _ in 0..frames {
            writer.write_frame(if late { LATE } else { 0 }, &block).expect("frame");
        }
        bytes
    }

    #[test]
    fn what_a_file_unpacks_to_is_bounded_by_its_size() {
        for (frames, raw) in [(1, 64 << 20), (2, 30 << 20), (40, 4 << 20), (400, 1 << 20)] {
            let bytes = claims(frames, raw, false);
            let (records, error) = read(&bytes);
            assert!(matches!(error, Some(FileError::Damaged { .. })), "{frames} frames of {raw}: {error:?}");
            let unpacked: usize = records.iter().map(|(_, record)| record.len()).sum();
            assert!(unpacked as u64 <= UNPACKED_MORE + UNPACKED_PER_BYTE * bytes.len() as u64, "{unpacked}");
            let (mut seen, from) = (0, claims(frames, raw, true));
            late(std::io::Cursor::new(&from), |_, record| seen += record.len() as u64);
            assert!(seen <= UNPACKED_MORE + UNPACKED_PER_BYTE * from.len() as u64, "{seen}");
        }
        // What programs record is far from it, and so is a large image of zeros.
        for (frames, raw) in [(1, 1 << 20), (20, 1 << 20), (1, 31 << 20)] {
            assert!(read(&claims(frames, raw, false)).1.is_none(), "{frames} frames of {raw}");
        }
    }
}
