//! Cuts a recording into segments.
//!
//! Owns when a segment ends, what it begins with, and its names: `.part` while it is written (and
//! locked by this process), `.trace` from the moment it is whole. Runs in the process of the
//! analyzer, on the threads that read the rings.
//!
//! A segment of a process that is known already begins with frames of what lives
//! ([`trace::file::STATE`]). Every block is preceded by the definitions that it refers to and that
//! this segment does not hold yet ([`trace::file::AGAIN`]), so that a segment whose writer has died
//! is readable up to its last whole frame, as every trace is.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use options::Amount;
use trace::file::{AGAIN, END, STATE, Writer};
use trace::segment::{FINISHED, SegmentHead, UNFINISHED};
use trace::{ImageSource, Op, Origin, Record, tag};

use super::keep::KeptSegments;
use super::live_state::{LiveState, framed};
use super::shared::SharedFiles;
use system::private_file;

/// Bytes of records in a block, as in other traces.
const BLOCK: usize = 1 << 20;

/// Ending of a segment without a header, which nobody reads.
const BEGUN: &str = "begun";

/// Bytes of symbols beside the segments, compressed, from which old ones are looked for.
const SYMBOLS: u64 = 1 << 20;

/// How a recording is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentLimits {
    /// Bytes in the file at which a segment ends, without what it was told at its beginning.
    pub bytes: u64,
    /// Bytes of records that are compressed together.
    pub block: usize,
    /// Age at which a segment ends.
    pub age: Option<Duration>,
    /// What is kept; `None`: all segments.
    pub keep: Option<Amount>,
    /// Bytes of symbols from which those of deleted segments are deleted.
    pub symbols: u64,
}

impl SegmentLimits {
    /// The usual ones: segments of so many MiB (0: as fits what is kept).
    pub fn of(mib: u64, keep: Option<Amount>) -> Self {
        const MIB: u64 = 1 << 20;
        let fitting = match keep {
            Some(Amount::Bytes(bytes)) => (bytes / 16).clamp(MIB, 256 * MIB),
            _ => 64 * MIB,
        };
        let age = match keep {
            Some(Amount::Seconds(seconds)) => Some(Duration::from_secs((seconds / 16).max(1))),
            _ => None,
        };
        Self { bytes: if mib == 0 { fitting } else { mib * MIB }, block: BLOCK, age, keep, symbols: SYMBOLS }
    }
}

#[derive(Default)]
struct Recorded {
    block: Vec<u8>,
    state: LiveState,
    ended: bool,
}

/// Writes a recording in segments.
pub struct SegmentWriter {
    folder: PathBuf,
    limits: SegmentLimits,
    head: SegmentHead,
    to: Writer<BufWriter<File>>,
    /// Size of the segment after what it was told at its beginning.
    told: u64,
    began: Instant,
    processes: Vec<Recorded>,
    kept: KeptSegments,
    shared: SharedFiles,
    faulted: bool,
    ended: bool,
}

impl SegmentWriter {
    /// Makes the folder and begins the first segment. A folder that holds a recording is refused.
    pub fn create(folder: &Path, limits: SegmentLimits) -> io::Result<Self> {
        use std::os::unix::fs::DirBuilderExt;
        if super::parts::holds_recording(folder) {
            return Err(io::Error::other("it holds a recording already: name another folder"));
        }
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let shared = SharedFiles::create(folder, limits.symbols)?;
        let head = SegmentHead { recording: random(), number: 0, keeps_last: limits.keep.is_some() };
        let to = open(folder, &head)?;
        let told = to.written();
        Ok(Self {
            folder: folder.to_path_buf(),
            limits,
            head,
            to,
            told,
            began: Instant::now(),
            processes: Vec::new(),
            kept: KeptSegments::new(folder, limits.keep),
            shared,
            faulted: false,
            ended: false,
        })
    }

    /// Appends a record of a process.
    pub fn record(&mut self, process: u32, bytes: &[u8]) -> io::Result<()> {
        let index = process as usize;
        if self.processes.len() <= index {
            self.processes.resize_with(index + 1, Recorded::default);
            self.processes[index].state.begin(self.head.number);
        }
        let beside;
        let mut bytes = bytes;
        if matches!(bytes, [kind, 0, ..] if u16::from(*kind) < trace::op::FIRST_OP) {
            beside = self.beside(bytes)?;
            bytes = beside.as_deref().unwrap_or(bytes);
            self.shared.define(process, bytes);
        }
        let recorded = &mut self.processes[index];
        recorded.state.observe(bytes);
        framed(&mut recorded.block, bytes);
        if recorded.block.len() >= self.limits.block {
            self.write_block(index)?;
            if self.to.written() - self.told >= self.limits.bytes {
                self.cut(None)?;
            }
        }
        if bytes.first_chunk() == Some(&tag::Save.to_le_bytes())
            && let Ok(Record { op: Op::Save { reason }, .. }) = Record::decode(bytes)
        {
            self.save(&reason.lossy())?;
        } else if bytes.first_chunk() == Some(&tag::Failed.to_le_bytes()) && !self.faulted {
            // All later calls fail as well.
            self.faulted = true;
            self.save("fault")?;
        }
        Ok(())
    }

    /// An image whose bytes are in its record goes into a file of its own.
    fn beside(&self, bytes: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let Ok(Record { op: Op::Image { id, source: ImageSource::Inline, bytes: code, .. }, origin }) =
            Record::decode(bytes)
        else {
            return Ok(None);
        };
        let name = self.shared.code(code)?;
        let size = code.len() as u64;
        let path = name.as_str().into();
        let op = Op::Image { id, source: ImageSource::Beside, path, offset: 0, size, bytes: &[] };
        let mut room = vec![0; 512];
        let len = Record { origin, op }.encode(&mut room);
        room.truncate(len.ok_or_else(|| io::Error::other("a record is too long"))?);
        Ok(Some(room))
    }

    fn write_block(&mut self, index: usize) -> io::Result<()> {
        let recorded = &mut self.processes[index];
        if let Some(again) = recorded.state.needed() {
            self.to.write_frame(index as u32 | AGAIN, &again)?;
            self.define_again(index as u32, &again);
        }
        let recorded = &mut self.processes[index];
        if !recorded.block.is_empty() {
            self.to.write_frame(index as u32, &recorded.block)?;
            recorded.block.clear();
        }
        Ok(())
    }

    /// What is to be done now and then: segments end by age, and old ones go.
    pub(crate) fn tick(&mut self) -> io::Result<()> {
        let Some(age) = self.limits.age else { return Ok(()) };
        if self.began.elapsed() >= age {
            self.cut(None)?;
        }
        Ok(())
    }

    /// A process has ended.
    pub fn process_ended(&mut self, process: u32) -> io::Result<()> {
        let index = process as usize;
        if index < self.processes.len() {
            self.write_block(index)?;
            self.processes[index].ended = true;
        }
        Ok(())
    }

    /// Ends the segment and keeps all that is there, if not everything is kept anyway.
    pub(crate) fn save(&mut self, reason: &str) -> io::Result<()> {
        if self.limits.keep.is_none() || self.ended {
            return Ok(());
        }
        self.cut(Some(reason))?;
        let to = self.kept.save(reason)?;
        self.shared.pin();
        system::say!("SAVED: {} ({reason})", to.display());
        Ok(())
    }

    /// The recording ends.
    pub fn finish(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        self.close(Some("finished"))?;
        self.name(self.head.number, self.to.written())?;
        self.shared.finish();
        Ok(())
    }

    /// The recording ends without its end. What is beside the segments is written all the same.
    pub(crate) fn give_up(&mut self) {
        if !std::mem::replace(&mut self.ended, true) {
            self.shared.finish();
        }
    }

    /// Ends the segment and begins the next.
    fn cut(&mut self, reason: Option<&str>) -> io::Result<()> {
        self.close(reason)?;
        self.head.number += 1;
        // The next one is there before this one has its name: who looks on sees that it goes on.
        let closed = std::mem::replace(&mut self.to, open(&self.folder, &self.head)?);
        self.name(self.head.number - 1, closed.written())?;
        for index in 0..self.processes.len() {
            if !self.processes[index].ended {
                self.begin(index)?;
            }
        }
        self.told = self.to.written();
        self.began = Instant::now();
        self.kept.prune(self.told);
        self.prune_symbols();
        Ok(())
    }

    /// Writes what lives in a process.
    fn begin(&mut self, index: usize) -> io::Result<()> {
        let recorded = &mut self.processes[index];
        let process = index as u32;
        let mut block = Vec::new();
        framed(&mut block, &encoded(&Op::Gap { resumed: false }));
        for record in recorded.state.begin(self.head.number) {
            framed(&mut block, &record);
            if block.len() >= BLOCK {
                self.to.write_frame(process | STATE, &block)?;
                block.clear();
            }
        }
        framed(&mut block, &encoded(&Op::Gap { resumed: true }));
        self.to.write_frame(process | STATE, &block)?;
        if let Some(again) = recorded.state.needed() {
            self.to.write_frame(process | AGAIN, &again)?;
            self.define_again(process, &again);
        }
        Ok(())
    }

    /// Symbols of stacks of old may be gone.
    fn define_again(&self, process: u32, block: &[u8]) {
        let records = framed_records(block).filter(|_| self.limits.keep.is_some());
        records
            .filter(|bytes| bytes.first_chunk() == Some(&tag::Stack.to_le_bytes()))
            .for_each(|bytes| self.shared.define(process, bytes));
    }

    /// Deletes symbols that no kept segment needs, if there are many.
    fn prune_symbols(&self) {
        if self.limits.keep.is_none() || !self.shared.are_many() {
            return;
        }
        let first = self.head.number - self.kept.count() as u64;
        let stacks = self.processes.iter().enumerate().flat_map(|(process, recorded)| {
            recorded.state.stacks_since(first).map(move |bytes| (process as u32, bytes.to_vec()))
        });
        self.shared.keep(stacks.collect());
    }

    /// Writes what is pending and the end.
    fn close(&mut self, reason: Option<&str>) -> io::Result<()> {
        for index in 0..self.processes.len() {
            self.write_block(index)?;
        }
        if let Some(reason) = reason {
            let mut block = Vec::new();
            framed(&mut block, reason.as_bytes());
            self.to.write_frame(END, &block)?;
        }
        self.to.finish()
    }

    /// Gives a segment that was closed its name.
    fn name(&mut self, number: u64, written: u64) -> io::Result<()> {
        let [part, name] = [UNFINISHED, FINISHED].map(|ending| SegmentHead::file_name(number, ending));
        fs::rename(self.folder.join(part), self.folder.join(&name))?;
        self.kept.add(name, written);
        self.shared.resolve();
        Ok(())
    }
}

/// Opens the file of a segment and locks it, so that others can tell that it is being written.
fn open(folder: &Path, head: &SegmentHead) -> io::Result<Writer<BufWriter<File>>> {
    let [begun, part] = [BEGUN, UNFINISHED].map(|ending| folder.join(SegmentHead::file_name(head.number, ending)));
    // Where files cannot be locked the recording looks abandoned while it goes on: said, not wrong.
    let mut writer = Writer::segment(BufWriter::new(private_file::create(&begun)?), head)?;
    // Who looks on must find it locked, and the header in it.
    writer.flush()?;
    fs::rename(begun, part)?;
    Ok(writer)
}

/// The records of a block of [`framed`] ones.
fn framed_records(mut block: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let len = u32::from_le_bytes(*block.first_chunk()?) as usize;
        let record = block.get(4..4 + len)?;
        block = &block[4 + len..];
        Some(record)
    })
}

fn encoded(op: &Op<'_>) -> Vec<u8> {
    let mut room = vec![0; 128];
    let len = Record { origin: Origin::default(), op: *op }.encode(&mut room).unwrap_or(0);
    room.truncate(len);
    room
}

/// A number that no other recording has.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}
