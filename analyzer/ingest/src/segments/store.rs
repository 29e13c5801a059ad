//! What a run records into: one file, or segments.
//!
//! Owns the choice between the two and the signal that saves. Both take records of several
//! processes, from several threads under one lock.

use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::writer::{SegmentLimits, SegmentWriter};
use system::private_file;

/// The signal that saves what is kept: one that does nothing to who does not expect it.
pub(crate) const SAVE: libc::c_int = libc::SIGURG;

/// The signal has come.
static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn ask(_signal: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// Where a regular file lies, to see at the end whether it is still there.
struct Place {
    path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
}

impl Place {
    /// The place of an open file. `None`: it is a pipe or a device.
    fn of(path: &Path, file: &File) -> io::Result<Option<Self>> {
        let meta = file.metadata()?;
        let id = (meta.dev(), meta.ino());
        Ok(meta.is_file().then_some(Self { path: std::path::absolute(path)?, id }))
    }

    /// Whether the name still leads to this file, with all that was written.
    fn holds(&self, written: u64) -> io::Result<()> {
        let gone = |what: &str| Err(io::Error::other(format!("the trace is gone: {} {what}", self.path.display())));
        match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => gone("was deleted during the run"),
            Err(error) => Err(error),
            Ok(meta) if (meta.dev(), meta.ino()) != self.id => gone("was replaced during the run"),
            Ok(meta) if meta.len() != written => gone("was changed by another program during the run"),
            Ok(_) => Ok(()),
        }
    }
}

/// What is recorded into. Once something could not be written, the recording is no longer whole:
/// [`TraceStore::finish`] says so again, however it went on, and leaves it without an end.
pub struct TraceStore {
    to: To,
    /// The file, or the folder of segments, as it was named.
    path: PathBuf,
    /// The first error.
    failed: Option<String>,
    /// Whether each process, by its number, has begun and not ended.
    running: Vec<bool>,
}

enum To {
    /// One file.
    File(trace::file::Writer<BufWriter<File>>, Option<Place>),
    /// A folder of segments.
    Segments(Box<SegmentWriter>),
}

impl TraceStore {
    /// A file.
    pub fn file(path: &Path) -> io::Result<Self> {
        let file = private_file::create(path)?;
        let place = Place::of(path, &file)?;
        let mut writer = trace::file::Writer::new(BufWriter::new(file))?;
        // Who looks on must find the header. What can not be written is told when the run ends.
        let _ = writer.flush();
        let to = To::File(writer, place);
        Ok(Self::of(to, path))
    }

    /// A folder of segments. From now on the signal saves.
    pub fn segments(folder: &Path, limits: SegmentLimits) -> io::Result<Self> {
        let writer = SegmentWriter::create(folder, limits)?;
        if limits.keep.is_some() {
            // SAFETY: all-zero is a valid sigaction; the handler is async-signal-safe.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = ask as extern "C" fn(libc::c_int) as usize;
                action.sa_flags = libc::SA_RESTART;
                libc::sigaction(SAVE, &raw const action, std::ptr::null_mut());
            }
        }
        Ok(Self::of(To::Segments(Box::new(writer)), folder))
    }

    fn of(to: To, path: &Path) -> Self {
        Self { to, path: path.to_path_buf(), failed: None, running: Vec::new() }
    }

    /// A line for the user about an error of this recording.
    pub fn complaint(&self, error: &io::Error) -> String {
        format!("{}: the trace can not be written: {error}", self.path.display())
    }

    /// Writes, and remembers if that failed.
    fn tried(&mut self, write: impl FnOnce(&mut To) -> io::Result<()>) -> io::Result<()> {
        let done = write(&mut self.to);
        if let Err(error) = &done {
            self.failed.get_or_insert_with(|| error.to_string());
        }
        done
    }

    /// Notes whether a process is being recorded.
    fn runs(&mut self, process: u32, runs: bool) {
        let index = process as usize;
        if self.running.len() <= index {
            self.running.resize(index + 1, false);
        }
        self.running[index] = runs;
    }

    /// Appends a record of a process.
    pub(crate) fn record(&mut self, process: u32, bytes: &[u8]) -> io::Result<()> {
        self.runs(process, true);
        self.tried(|to| match to {
            To::File(writer, _) => writer.record(process, bytes),
            To::Segments(writer) => writer.record(process, bytes),
        })
    }

    /// What is to be done now and then, often.
    pub(crate) fn tick(&mut self) -> io::Result<()> {
        self.tried(|to| {
            let To::Segments(writer) = to else { return Ok(()) };
            if ASKED.swap(false, Ordering::Relaxed) {
                writer.save("signal")?;
            }
            writer.tick()
        })
    }

    /// Whether symbols are added when a process has ended. Segments add them by themselves.
    pub(crate) fn wants_symbols(&self) -> bool {
        matches!(self.to, To::File(..))
    }

    /// Keeps what there is, if older records would be deleted.
    pub(crate) fn save(&mut self, reason: &str) -> io::Result<()> {
        self.tried(|to| match to {
            To::File(..) => Ok(()),
            To::Segments(writer) => writer.save(reason),
        })
    }

    /// Writes what is pending of a process that has ended.
    pub(crate) fn process_ended(&mut self, process: u32) -> io::Result<()> {
        self.runs(process, false);
        self.tried(|to| match to {
            To::File(writer, _) => writer.flush(),
            To::Segments(writer) => writer.process_ended(process),
        })
    }

    /// Adds the symbols of a process that has ended.
    pub(crate) fn late(&mut self, process: u32, records: Vec<Vec<u8>>) -> io::Result<()> {
        self.tried(|to| match to {
            To::File(writer, _) => writer.late(process, records).and_then(|()| writer.flush()),
            To::Segments(_) => Ok(()),
        })
    }

    /// The recording ends. A file was written when its processes ended; one that was deleted or
    /// replaced meanwhile is an error.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(process) = self.running.iter().position(|runs| *runs) {
            // The thread that read its ring is gone.
            self.failed.get_or_insert_with(|| format!("the recording of process {process} broke off"));
        }
        if let Some(error) = &self.failed {
            if let To::Segments(writer) = &mut self.to {
                writer.give_up();
            }
            return Err(io::Error::other(error.clone()));
        }
        self.tried(|to| match to {
            To::File(writer, place) => {
                writer.finish()?;
                place.as_ref().map_or(Ok(()), |place| place.holds(writer.written()))
            }
            To::Segments(writer) => writer.finish(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::recorded;
    use trace::{NoteKind, Op, Origin};

    fn record() -> Vec<u8> {
        let op = Op::Note { kind: NoteKind::Info, text: "a record".into(), count: 1 };
        let mut bytes = vec![0; Origin::encoded_len(&op)];
        assert_eq!(Origin::default().encode(&op, &mut bytes), Some(bytes.len()));
        bytes
    }

    #[test]
    fn only_a_recording_whose_processes_all_ended_and_that_was_written_has_an_end() {
        let folder = private_file::folder("streamsan-store-").expect("a folder");
        for n in 0..6 {
            let (is_one_file, all_end, fails) = (n < 3, n % 3 != 1, n % 3 == 2);
            let path = folder.join(n.to_string());
            let store = match is_one_file {
                true => TraceStore::file(&path),
                false => TraceStore::segments(&path, SegmentLimits::of(1, None)),
            };
            let mut store = store.expect("created");
            for process in [0, 1] {
                store.record(process, &record()).expect("written");
            }
            store.process_ended(0).expect("written");
            if all_end {
                store.process_ended(1).expect("written");
            }
            if fails {
                store.tried(|_| Err(io::Error::other("no room"))).expect_err("an error");
            }
            let is_whole = all_end && !fails;
            let why = store.finish().err().map(|error| error.to_string());
            let right = if fails { "no room" } else { "the recording of process 1 broke off" };
            assert_eq!(why.as_deref(), (!is_whole).then_some(right), "{n}");
            drop(store);
            let mut seen = 0;
            let read = recorded::each_record(&path, |_, _| seen += 1);
            assert!(seen == 2 || !all_end, "{n}: {seen}");
            let right = if is_one_file { "has no end mark" } else { "the end of the recording is missing" };
            match read {
                Ok(()) => assert!(is_whole, "{n}"),
                Err(error) => assert!(!is_whole && error.to_string().contains(right), "{n}: {error}"),
            }
        }
        std::fs::remove_dir_all(folder).expect("ours");
    }
}
