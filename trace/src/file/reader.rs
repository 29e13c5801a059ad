//! Reads trace files.
//!
//! Owns the search for damage and for what is missing. Reading ends at the first frame that is
//! damaged or does not follow the one before: the records behind a gap would be judged by an order
//! whose part is lost.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;

use super::{
    AGAIN, BLOCK, END, FILE_VERSION, FRAME_HEAD, FileError, FrameHead, LATE, MAGIC, STATE, UNCHAINED_FILE,
    UNPACKED_MORE, UNPACKED_PER_BYTE, word,
};
use crate::segment::{SEGMENT_HEAD, SEGMENT_VERSION, SegmentHead, UNCHAINED_SEGMENT};

/// Marks that only frames of segments have.
const OF_SEGMENTS: u32 = STATE | AGAIN | END;

/// Hands the late definitions of a trace to `each`, with the number of their process (without
/// [`LATE`]), passing over everything else without unpacking it. With each record comes all of its
/// frame, so that a large record can be kept without a copy. Damage ends the search: reading the
/// whole file names it. Returns how far it came: each frame of late definitions that begins before
/// that byte was handed out, all of it.
pub fn late(mut from: impl Read + Seek, mut each: impl FnMut(u32, &[u8], &Arc<Vec<u8>>)) -> u64 {
    // Foreign files and those of another version have nothing for us.
    let begun = Reader::new(&mut from).map(|reader| (reader.at, reader.is_chained));
    let Ok((mut at, is_chained)) = begun else { return 0 };
    let mut unpacked = 0;
    let mut bytes = [0; FRAME_HEAD];
    let len = FrameHead::len(is_chained);
    while from.seek(SeekFrom::Start(at)).is_ok() && fill(&mut from, &mut bytes[..len]).is_ok_and(|got| got == len) {
        let Some(head) = FrameHead::decode(&bytes, is_chained).filter(|head| !head.is_last()) else { break };
        if head.process & LATE != 0 {
            if from.seek(SeekFrom::Start(at)).is_err() {
                break;
            }
            let Ok(mut reader) = Reader::after_header(&mut from, at, is_chained) else { break };
            reader.unpacked = unpacked;
            let mut frame = Frame::default();
            let read = reader.next_frame(&mut frame);
            let mut records = || {
                frame.records().try_for_each(|record| record.map(|r| each(frame.process & !LATE, r, &frame.records)))
            };
            if !read.and_then(|any| if any { records().map(|()| true) } else { Ok(false) }).unwrap_or(false) {
                break;
            }
            unpacked = reader.unpacked;
        }
        at += len as u64 + u64::from(head.stored);
    }
    at
}

/// Whole records of one process, as a frame holds them.
#[derive(Default)]
pub struct Frame {
    /// Number of the process.
    pub process: u32,
    /// Bytes of the file up to the end of the frame.
    pub upto: u64,
    at: u64,
    /// Its room is used again unless somebody has kept it.
    records: Arc<Vec<u8>>,
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
    /// Whether frames name the one before, and an end mark follows.
    is_chained: bool,
    /// Checksum of the frame before; `None`: it was not read.
    before: Option<u32>,
    /// The end mark was read.
    ended: bool,
    /// Bytes that its frames were unpacked to.
    unpacked: u64,
    /// Frames of late definitions that begin before this byte are not unpacked.
    known_late: u64,
    segment: Option<SegmentHead>,
    frame: Frame,
    stored: Vec<u8>,
    decompressor: zstd::bulk::Decompressor<'static>,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    pub fn new(mut from: R) -> Result<Self, FileError> {
        let mut head = [0; 16 + SEGMENT_HEAD];
        let got = fill(&mut from, &mut head[..16])?;
        if got < 16 || head[..8] != MAGIC {
            return Err(FileError::Foreign);
        }
        let version = word(&head, 8);
        let (is_segment, is_chained) = match version {
            UNCHAINED_FILE => (false, false),
            UNCHAINED_SEGMENT => (true, false),
            FILE_VERSION => (false, true),
            SEGMENT_VERSION => (true, true),
            theirs => return Err(FileError::Version { theirs, ours: FILE_VERSION.max(SEGMENT_VERSION) }),
        };
        let mut len = 16;
        if is_segment {
            len += fill(&mut from, &mut head[16..])?;
            if len < head.len() {
                return Err(FileError::Torn { at: 16 });
            }
        }
        let mut reader = Self::after_header(from, len as u64, is_chained)?;
        reader.before = Some(crc32fast::hash(&head[..len]));
        if let Some(more) = head[..len].get(16..).and_then(|more| more.first_chunk()) {
            reader.segment = Some(SegmentHead::decode(more));
        }
        Ok(reader)
    }

    /// Which segment of which recording this is, if it is one.
    pub fn segment(&self) -> Option<SegmentHead> {
        self.segment
    }

    /// Whether files of this version end with a mark, without which they are not whole.
    pub fn has_end_mark(&self) -> bool {
        self.is_chained
    }

    /// Goes on at a frame that begins at this byte, whatever was before it.
    fn after_header(from: R, at: u64, is_chained: bool) -> Result<Self, FileError> {
        Ok(Self {
            from,
            at,
            is_chained,
            before: None,
            ended: false,
            unpacked: 0,
            known_late: 0,
            segment: None,
            frame: Frame::default(),
            stored: Vec::new(),
            decompressor: zstd::bulk::Decompressor::new()?,
        })
    }

    /// Frames of late definitions that begin before this byte are known to the caller, by [`late`]:
    /// from now on they are handed out without records. Their checksums are looked at.
    pub fn pass_over_late(&mut self, before: u64) {
        self.known_late = before;
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
        if self.ended {
            return Ok(false);
        }
        let at = self.at;
        let mut bytes = [0; FRAME_HEAD];
        let len = FrameHead::len(self.is_chained);
        match fill(&mut self.from, &mut bytes[..len])? {
            0 if self.is_chained => return Err(FileError::Cut { at }),
            0 => return Ok(false),
            got if got < len => return Err(FileError::Torn { at }),
            _ => {}
        }
        let damaged = |what| FileError::Damaged { at, what };
        let head = FrameHead::decode(&bytes, self.is_chained).ok_or_else(|| damaged("no frame begins here"))?;
        self.unpacked += u64::from(head.raw);
        if self.unpacked > UNPACKED_MORE + UNPACKED_PER_BYTE * (at + u64::from(head.stored)) {
            return Err(damaged("it claims more than 1024 bytes for each byte of the file"));
        }
        // Read in steps: a damaged length must not reserve gigabytes that the file does not have.
        if Arc::get_mut(&mut frame.records).is_none() {
            frame.records = Arc::default();
        }
        let records = Arc::make_mut(&mut frame.records);
        for room in [&mut self.stored, records] {
            room.clear();
            // What a large image took is given back.
            room.shrink_to(4 * BLOCK);
        }
        let got = self.from.by_ref().take(u64::from(head.stored)).read_to_end(&mut self.stored)?;
        if got < head.stored as usize {
            return Err(FileError::Torn { at });
        }
        if head.right_sum(&self.stored) != head.sum {
            return Err(damaged("its checksum is wrong"));
        }
        // A frame that is not chained names none.
        if self.before.is_some_and(|before| head.before.is_some_and(|named| named != before)) {
            return Err(FileError::Missing { at });
        }
        self.before = Some(head.sum);
        self.at += len as u64 + u64::from(head.stored);
        if head.is_last() {
            if fill(&mut self.from, &mut [0])? > 0 {
                return Err(FileError::Damaged { at: self.at, what: "something follows its end" });
            }
            self.ended = true;
            return Ok(false);
        }
        if head.process & LATE == 0 || at >= self.known_late {
            let records = Arc::make_mut(&mut frame.records);
            records.reserve(head.raw as usize);
            ask_for_large_pages(records);
            let got = self.decompressor.decompress_to_buffer(&self.stored, records);
            let got = got.map_err(|_| damaged("it does not decompress"))?;
            if got != head.raw as usize {
                return Err(damaged("it does not hold as many bytes as it claims"));
            }
        }
        if self.segment.is_none() && head.process & OF_SEGMENTS != 0 {
            return Err(damaged("it has a mark of segments, and this file is none"));
        }
        (frame.process, frame.at, frame.upto) = (head.process, at, self.at);
        Ok(true)
    }
}

/// Asks for large pages behind the bytes of a vector. Images unpack to more than a hundred
/// megabytes, and a fault for every four kilobytes of them takes as long as unpacking.
fn ask_for_large_pages(bytes: &mut Vec<u8>) {
    const LARGE: usize = 2 << 20;
    let spare = bytes.spare_capacity_mut();
    let (from, len) = (spare.as_mut_ptr(), spare.len());
    let before = from.align_offset(LARGE);
    let len = len.saturating_sub(before) / LARGE * LARGE;
    if len > 0 && !cfg!(miri) {
        // SAFETY: advice about whole pages of memory that is borrowed here; what it holds stays.
        unsafe { libc::madvise(from.add(before).cast(), len, libc::MADV_HUGEPAGE) };
    }
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
