//! Writes trace files.
//!
//! Owns the blocks that records wait in, the chain of frames, and the end mark: a file of which
//! anything could not be written never gets one.

use std::io::{self, Write};

use super::{BLOCK, FILE_VERSION, FrameHead, LAST, LATE, LEVEL, MAGIC};
use crate::segment::{SEGMENT_VERSION, SegmentHead};

/// Writes a trace file. Each process of the run has a number of its own and a block of its own.
/// The file is whole once [`Writer::finish`] has returned.
pub struct Writer<W: Write> {
    to: W,
    blocks: Vec<Vec<u8>>,
    written: u64,
    /// Checksum of the last frame.
    before: u32,
    /// Why nothing can be added.
    closed: Option<String>,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    pub fn new(to: W) -> io::Result<Self> {
        Self::begin(to, FILE_VERSION, &[])
    }

    /// Writes the header of a segment.
    pub fn segment(to: W, head: &SegmentHead) -> io::Result<Self> {
        Self::begin(to, SEGMENT_VERSION, &head.encode())
    }

    fn begin(mut to: W, version: u32, more: &[u8]) -> io::Result<Self> {
        let header = [&MAGIC[..], &version.to_le_bytes(), &0_u32.to_le_bytes(), more].concat();
        to.write_all(&header)?;
        let (written, before) = (header.len() as u64, crc32fast::hash(&header));
        Ok(Self { to, blocks: Vec::new(), written, before, closed: None })
    }

    /// Bytes written so far, without what is pending.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Appends a record of a process.
    pub fn record(&mut self, process: u32, bytes: &[u8]) -> io::Result<()> {
        self.open()?;
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
        self.noted(|to| to.flush())
    }

    /// Writes what is pending and the end mark. Nothing can be added any more.
    pub fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        self.write_stored(LAST, 0, &[])?;
        self.noted(|to| to.flush())?;
        self.closed = Some("the trace has ended".to_owned());
        Ok(())
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
        self.write_stored(process, block.len(), &stored)
    }

    fn write_stored(&mut self, process: u32, raw: usize, stored: &[u8]) -> io::Result<()> {
        self.open()?;
        let head = FrameHead::chained(process, raw, stored, self.before);
        let bytes = head.encode();
        self.noted(|to| to.write_all(&bytes).and_then(|()| to.write_all(stored)))?;
        self.written += (bytes.len() + stored.len()) as u64;
        self.before = head.sum;
        Ok(())
    }

    /// Whether something can be added.
    fn open(&self) -> io::Result<()> {
        self.closed.as_ref().map_or(Ok(()), |why| Err(io::Error::other(why.clone())))
    }

    /// Writes. After an error the file lacks something, and gets no end mark.
    fn noted(&mut self, write: impl FnOnce(&mut W) -> io::Result<()>) -> io::Result<()> {
        write(&mut self.to).inspect_err(|error| self.closed = Some(format!("an earlier part is missing: {error}")))
    }
}
