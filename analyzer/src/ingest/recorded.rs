//! Recorded traces: several files, several processes each, analysed as if they were live.
//!
//! Owns the reading of trace files, and what is done with their records besides analysis: printing
//! them, and passing them to the tools.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::mpsc::{channel, sync_channel};

use trace::file::{FileError, Frame, LATE, Reader};
use trace::{Op, Record};

use super::progress::Progress;
use crate::causes::{self, Effort};
use crate::ipc::Across;
use crate::launches::image_reader::ImageReader;
use crate::replan::records::Records;
use crate::replan::written::WrittenWait;
use crate::report::model::Outcome;
use crate::symbols::Symbolizer;
use crate::{Analysis, AnalysisOptions};

/// An analysis with the real symboliser and the real code reader.
pub fn analysis(options: AnalysisOptions) -> Analysis {
    let mut analysis = Analysis::new(options, Box::new(Symbolizer::new()), Box::new(ImageReader::default()));
    if let Some(learned) = crate::exact::learned::given() {
        analysis.learn(learned);
    }
    analysis
}

/// The same, compared with the other processes of its run.
fn joined(options: AnalysisOptions, across: Option<&Across>) -> Analysis {
    let mut analysis = analysis(options);
    if let Some(across) = across {
        analysis.join(across.join());
    }
    analysis
}

/// The same, with waits that the user wrote down.
fn replanned(options: AnalysisOptions, across: Option<&Across>, with: &[WrittenWait]) -> Analysis {
    let mut analysis = joined(options, across);
    analysis.add_waits(with);
    analysis
}

/// The trace files that these words name: files as they are, folders as all traces in them (for
/// example one a rank), by name. The error is a line for the user.
pub fn files(words: &[String]) -> Result<Vec<String>, String> {
    let mut files = Vec::new();
    for word in words {
        if !std::fs::metadata(word).is_ok_and(|m| m.is_dir()) {
            files.push(word.clone());
            continue;
        }
        let entries = std::fs::read_dir(word).map_err(|error| format!("{word}: {error}"))?;
        let paths = entries.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.is_file() && is_trace(p));
        let mut found: Vec<String> = paths.map(|p| p.to_string_lossy().into_owned()).collect();
        if found.is_empty() {
            return Err(format!("{word}: there is no trace in this folder"));
        }
        // Rank 10 comes after rank 9.
        found.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        files.extend(found);
    }
    Ok(files)
}

fn is_trace(path: &Path) -> bool {
    let mut head = [0; 8];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == trace::file::MAGIC
}

/// Analyses a trace file. Its processes are compared with those of other files that `across` has
/// seen. `with`: waits to add. Returns an outcome for each process, and why reading stopped early,
/// if it did. `done` and `progress`: the bytes of other files read before, and the progress line.
pub fn check(
    path: &str,
    options: AnalysisOptions,
    across: Option<&Across>,
    with: &[WrittenWait],
    (done, progress): (u64, &mut Progress),
) -> (Vec<Outcome>, Option<FileError>) {
    let (mut processes, error) = analysed(path, options, across, with, (done, progress));
    let ended = processes.iter_mut().map(|(process, analysis)| {
        let mut records = FileRecords { path: path.to_string(), process: *process };
        causes::finish(analysis, Some(&mut records), Effort::RECORDED)
    });
    (ended.collect(), error)
}

/// As [`check`], without its end: the analyses by process.
pub fn analysed(
    path: &str,
    options: AnalysisOptions,
    across: Option<&Across>,
    with: &[WrittenWait],
    (done, progress): (u64, &mut Progress),
) -> (BTreeMap<u32, Analysis>, Option<FileError>) {
    let mut processes: BTreeMap<u32, Analysis> = BTreeMap::new();
    each_late(path, |process, op| {
        processes.entry(process).or_insert_with(|| replanned(options, across, with)).define_late(op);
    });
    let error = each_frame(path, |frame| {
        if frame.process & LATE == 0 {
            let analysis = processes.entry(frame.process).or_insert_with(|| replanned(options, across, with));
            crate::ingest::prefetch::feed(analysis, frame)?;
        }
        progress.at(done + frame.upto);
        Ok(())
    })
    .err();
    (processes, error)
}

/// The records of one process in a trace file.
pub struct FileRecords {
    /// The file.
    pub path: String,
    /// The process.
    pub process: u32,
}

impl Records for FileRecords {
    fn each(&mut self, each: &mut dyn FnMut(&[u8])) -> bool {
        let read = each_record(&self.path, |process, bytes| {
            if process == self.process && process & LATE == 0 {
                each(bytes);
            }
        });
        // What is missing at the end of a trace was missing in the first pass as well.
        read.is_ok() || matches!(read, Err(error) if !matches!(error, FileError::Io(_)))
    }
}

/// Number of frames that are unpacked ahead.
const AHEAD: usize = 4;

/// Passes every frame of a trace to `each`. Another thread reads and unpacks them.
fn each_frame(path: &str, mut each: impl FnMut(&Frame) -> Result<(), FileError>) -> Result<(), FileError> {
    let mut reader = Reader::new(BufReader::new(File::open(path)?))?;
    let (full, frames) = sync_channel::<Result<Frame, FileError>>(AHEAD);
    let (back, used) = channel::<Frame>();
    let read = move || {
        loop {
            let mut frame = used.try_recv().unwrap_or_default();
            let next = match reader.next_frame(&mut frame) {
                Ok(true) => Ok(frame),
                Ok(false) => return,
                Err(error) => Err(error),
            };
            let ends = next.is_err();
            // The receiver is gone: the other side has met an error.
            if full.send(next).is_err() || ends {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("reader".into()).spawn_scoped(scope, read);
        thread?;
        for frame in frames {
            let frame = frame?;
            each(&frame)?;
            // The reader is gone when it has read the last frame.
            drop(back.send(frame));
        }
        Ok(())
    })
}

/// Passes the definitions in the trailer of a trace to `each`. They are needed first.
pub fn each_late(path: &str, mut each: impl FnMut(u32, &Op<'_>)) {
    let Ok(file) = File::open(path) else { return };
    trace::file::late(BufReader::new(file), |process, bytes| {
        if let Ok(record) = Record::decode(bytes) {
            each(process, &record.op);
        }
    });
}

/// Prints every op of a trace, one a line.
pub fn dump(path: &str, mut to: impl std::io::Write) -> Result<(), FileError> {
    let mut written = Ok(());
    each_record(path, |process, bytes| {
        if written.is_err() {
            return;
        }
        let process = process & !LATE;
        written = match Record::decode(bytes) {
            Ok(r) => {
                // Machine code would take megabytes of digits.
                let (op, omitted) = match r.op {
                    Op::Image { id, source, path, offset, size, bytes } if !bytes.is_empty() => {
                        (Op::Image { id, source, path, offset, size, bytes: &[] }, format!(" + {} bytes", bytes.len()))
                    }
                    op => (op, String::new()),
                };
                writeln!(
                    to,
                    "{process} thread={} stack={} timeline={} time={} call={} {op:?}{omitted}",
                    r.origin.thread.0,
                    r.origin.stack.0,
                    r.origin.epoch.timeline.0,
                    r.origin.epoch.time,
                    r.origin.call.0,
                )
            }
            Err(error) => writeln!(to, "{process} (unreadable: {error})"),
        };
    })?;
    // A reader that has seen enough (`head`) closes the pipe, which is no error.
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Passes every record of a trace to `each`, with the number of its process. [`LATE`] is set in the
/// number for records of the trailer.
pub fn each_record(path: &str, mut each: impl FnMut(u32, &[u8])) -> Result<(), FileError> {
    let mut reader = Reader::new(BufReader::new(File::open(path)?))?;
    while reader.frame(&mut each)? {}
    Ok(())
}
