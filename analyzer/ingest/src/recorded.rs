//! Recorded traces: several files, several processes each, analysed as if they were live. A folder
//! of segments is one trace.
//!
//! Owns the reading of trace files, and what is done with their records besides analysis: printing
//! them, and passing them to the tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use trace::file::{AGAIN, END, FileError, Frame, LATE, MARKS, Reader, STATE};
use trace::segment::FINISHED;
use trace::{Op, Record};

use super::progress::Progress;
use super::segments::parts::{self, Part, Parts};
use analysis::counterfactual::causes::{self, Effort};
use analysis::counterfactual::edits::written::WrittenWait;
use analysis::counterfactual::trial::records::Records;
use analysis::ipc::Across;
use analysis::{Analysis, AnalysisOptions};
use detect::launches::ahead::Scout;
use detect::launches::image_reader::ImageReader;
use detect::launches::images::SharedImages;
use report::model::Outcome;
use symbols::Symbolizer;
use system::file_name::FileName;
use system::local_files::RecordedFiles;

/// An analysis with the real symboliser and the real code reader, which finds the code of kernels
/// here.
pub(crate) fn analysis(options: AnalysisOptions, images: &SharedImages) -> Analysis {
    let (files, code) = (images.files().clone(), ImageReader::new(images.clone()));
    let mut analysis = Analysis::new(options, Box::new(Symbolizer::of(files)), Box::new(code));
    if let Some(learned) = detect::exact::learned::given() {
        analysis.learn(learned);
    }
    analysis
}

/// The same, compared with the other processes of its run.
fn joined(options: AnalysisOptions, across: Option<&Across>, images: &SharedImages) -> Analysis {
    let mut analysis = analysis(options, images);
    if let Some(across) = across {
        analysis.join(across.join());
    }
    analysis
}

/// The same, with waits that the user wrote down.
fn replanned(
    options: AnalysisOptions,
    across: Option<&Across>,
    with: &[WrittenWait],
    images: &SharedImages,
) -> Analysis {
    let mut analysis = joined(options, across, images);
    analysis.add_waits(with);
    analysis
}

/// The traces that these words name: files and folders of segments as they are, other folders as
/// all traces in them (for example one a rank), by name. Among these are files and folders that are
/// named as traces are and hold none that can be read: who reads them says why. The error is a line
/// for the user.
pub fn files(words: &[FileName]) -> Result<Vec<FileName>, String> {
    let mut files = Vec::new();
    for word in words {
        if !std::fs::metadata(word).is_ok_and(|m| m.is_dir()) {
            files.push(word.clone());
            continue;
        }
        if parts::holds_recording(word) {
            files.push(word.clone());
            continue;
        }
        let mut found = in_folder(word.as_ref()).map_err(|error| format!("{word}: {error}"))?;
        if found.is_empty() {
            return Err(format!("{word}: there is no trace in this folder"));
        }
        // Rank 10 comes after rank 9.
        found.sort_by(|a, b| (a.bytes().len(), a).cmp(&(b.bytes().len(), b)));
        files.extend(found);
    }
    Ok(each_once(files))
}

/// The files without those that were named before, by another name too: no occurrence must count
/// twice.
fn each_once(files: Vec<FileName>) -> Vec<FileName> {
    let mut seen = BTreeSet::new();
    let is_new = |file: &FileName| {
        let is_new = std::fs::metadata(file).map_or(true, |meta| seen.insert((meta.dev(), meta.ino())));
        if !is_new {
            system::say!("NOTE: {file} was named before; it is read once");
        }
        is_new
    };
    files.into_iter().filter(is_new).collect()
}

/// The traces in a folder, and what is named as they are.
fn in_folder(folder: &Path) -> io::Result<Vec<FileName>> {
    let entries = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let entries = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    let (mut traces, others): (Vec<PathBuf>, Vec<PathBuf>) = entries
        .into_iter()
        .partition(|path| if path.is_dir() { parts::seems_recording(path) } else { parts::is_trace(path) });
    let patterns: BTreeSet<Vec<u8>> = traces.iter().map(|path| without_digits(path)).collect();
    traces.extend(others.into_iter().filter(|path| {
        let is_file = std::fs::metadata(path).map_or(true, |meta| meta.is_file());
        let is_named = path.extension().is_some_and(|ending| ending == FINISHED);
        is_file && (is_named || patterns.contains(&without_digits(path)))
    }));
    Ok(traces.into_iter().map(FileName::from).collect())
}

/// The name of a file with one mark for each number: the traces of several ranks share it.
fn without_digits(path: &Path) -> Vec<u8> {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let mut pattern: Vec<u8> = name.iter().map(|byte| if byte.is_ascii_digit() { b'0' } else { *byte }).collect();
    pattern.dedup_by(|byte, before| (*byte, *before) == (b'0', b'0'));
    pattern
}

/// Analyses a trace file. Its processes are compared with those of other files that `across` has
/// seen. `with`: waits to add. Returns an outcome for each process, and why reading stopped early,
/// if it did. `done` and `progress`: the bytes of other files read before, and the progress line.
/// `early` gets the outcomes before their causes are sought, where that takes long.
pub fn check(
    path: &(impl AsRef<Path> + ?Sized),
    options: AnalysisOptions,
    across: Option<&Across>,
    with: &[WrittenWait],
    (done, progress): (u64, &mut Progress),
    early: &mut dyn FnMut(Vec<Outcome>),
) -> (Vec<Outcome>, Option<FileError>) {
    let (mut processes, error) = analysed(path, options, across, with, (done, progress));
    let found: Vec<_> = processes.values_mut().map(causes::findings).collect();
    if found.iter().any(|(_, sought)| sought.takes_long()) {
        early(found.iter().map(|(outcome, _)| causes::unsought(outcome)).collect());
    }
    let ended = processes.iter_mut().zip(found).map(|((process, analysis), (outcome, sought))| {
        let mut records = FileRecords { path: path.as_ref().to_path_buf(), process: *process };
        // Waits are tried on what there is; with a gap they would be tried on something else.
        let has_gaps = analysis.has_gaps();
        let records = (!has_gaps).then_some(&mut records as &mut dyn Records);
        let mut outcome = causes::seek(analysis, outcome, sought, records, Effort::RECORDED);
        outcome.coverage.gaps = u64::from(has_gaps);
        outcome
    });
    (ended.collect(), error)
}

/// As [`check`], without its end: the analyses by process.
pub fn analysed(
    path: &(impl AsRef<Path> + ?Sized),
    options: AnalysisOptions,
    across: Option<&Across>,
    with: &[WrittenWait],
    (done, progress): (u64, &mut Progress),
) -> (BTreeMap<u32, Analysis>, Option<FileError>) {
    let mut processes: BTreeMap<u32, Analysis> = BTreeMap::new();
    let shared = parts::parts(path).ok().and_then(|parts| parts.shared);
    let images = ImagesOf { shared, by_process: Mutex::default() };
    let begun = |process| replanned(options, across, with, &images.of(process));
    let known = each_late(path, |process, op, whole| {
        processes.entry(process).or_insert_with(|| begun(process)).define_late(op, whole);
    });
    let mut scouts: BTreeMap<u32, Option<Scout>> = BTreeMap::new();
    let mut look = |frame: &Frame| {
        let process = frame.process & !MARKS;
        if frame.process & LATE == 0
            && let Some(scout) = scouts.entry(process).or_insert_with(|| Scout::new(&images.of(process)))
        {
            frame.records().map_while(Result::ok).for_each(|record| scout.look(record));
        }
    };
    let error = each_frame(path.as_ref(), &known, &mut look, |frame| {
        if frame.process & LATE == 0 {
            let process = frame.process;
            let analysis = processes.entry(process).or_insert_with(|| begun(process));
            crate::prefetch::feed(analysis, frame)?;
        }
        progress.at(done + frame.upto);
        match system::interrupt::signal() {
            Some(signal) => Err(FileError::Interrupted { signal, at: frame.upto }),
            None => Ok(()),
        }
    })
    .err();
    (processes, error)
}

/// The code images of each process, for its pass and for those that work ahead of it.
struct ImagesOf {
    /// Where the code is that segments share.
    shared: Option<PathBuf>,
    by_process: Mutex<BTreeMap<u32, SharedImages>>,
}

impl ImagesOf {
    fn of(&self, process: u32) -> SharedImages {
        let mut all = self.by_process.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = || SharedImages::new(self.shared.clone(), RecordedFiles::default());
        all.entry(process).or_insert_with(begun).clone()
    }
}

/// The records of one process in a trace file.
pub struct FileRecords {
    /// The file.
    pub path: PathBuf,
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

/// How far [`each_late`] came in each file.
type KnownLate = BTreeMap<PathBuf, u64>;

/// Sees frames before their turn, on another thread.
type Look<'a> = &'a mut (dyn FnMut(&Frame) + Send);

/// Passes every frame of a trace to `each`, its [`LATE`] mark left in its number. Another thread
/// reads and unpacks them, but for late definitions that are known, and shows them to `look`.
/// Segments that can not be read are passed over and named at the end.
fn each_frame(
    path: &Path,
    known: &KnownLate,
    look: Look<'_>,
    mut each: impl FnMut(&Frame) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let parts = parts::parts(path)?;
    let mut place = Place::of(&parts);
    for part in &parts.files {
        place.enter(part);
        let known = known.get(&part.path).copied().unwrap_or(0);
        let read =
            each_frame_of(&part.path, known, look, |frame| if place.takes(frame) { each(frame) } else { Ok(()) });
        place.leave(part, read.map_err(|error| without_end(&part.path, error)))?;
    }
    place.end()
}

/// Tells a file that has no end yet from one that has lost its end.
fn without_end(path: &Path, error: FileError) -> FileError {
    let (at, grew) = match error {
        FileError::Torn { at } => (at, false),
        // The rest may have been written since, and its writer be gone.
        FileError::Cut { at } => (at, std::fs::metadata(path).is_ok_and(|meta| meta.len() > at)),
        error => return error,
    };
    if grew || parts::is_written(path) { FileError::GoesOn { at } } else { error }
}

/// Where a reader is in a recording, and what it has to be told there.
struct Place {
    missing: Vec<String>,
    /// Bytes of the files before.
    before: u64,
    /// What lives is told here, for what came before was not read.
    begins: bool,
    /// What came before was not read at some time: definitions are needed again.
    again: bool,
    broken: bool,
    must_end: bool,
    ended: bool,
}

impl Place {
    fn of(parts: &Parts) -> Self {
        let (missing, must_end) = (parts.missing.clone(), parts.must_end);
        Self { missing, before: 0, begins: false, again: false, broken: false, must_end, ended: false }
    }

    fn enter(&mut self, part: &Part) {
        self.begins = part.begins || std::mem::take(&mut self.broken);
        self.again |= self.begins;
        self.ended = false;
    }

    /// Whether the frame is for this reader. Its marks are taken off.
    fn takes(&mut self, frame: &mut Frame) -> bool {
        frame.upto += self.before;
        let marks = frame.process & MARKS & !LATE;
        frame.process &= !marks;
        match marks {
            0 => true,
            STATE => self.begins,
            AGAIN => self.again,
            END => {
                self.ended = true;
                false
            }
            _ => false,
        }
    }

    /// A file has been read. A single one that could not be read is an error; of several, the
    /// others are read first.
    fn leave(&mut self, part: &Part, read: Result<(), FileError>) -> Result<(), FileError> {
        self.before += part.bytes;
        match (read, part.number) {
            // Its writer died, so that it is the last one, and the end is missing.
            (Err(FileError::Cut { .. }), Some(_)) if self.must_end && part.is_unfinished() => {
                self.ended = false;
                Ok(())
            }
            (Err(error), Some(_)) if self.must_end => {
                self.missing.push(format!("{}: {error}", part.path.display()));
                self.broken = true;
                Ok(())
            }
            (read, _) => read,
        }
    }

    fn end(mut self) -> Result<(), FileError> {
        if self.must_end && !self.ended && !self.broken {
            self.missing.push("the end of the recording is missing".into());
        }
        if self.missing.is_empty() { Ok(()) } else { Err(FileError::Parts(self.missing.join("; "))) }
    }
}

/// Passes every frame of a file to `each`. Late definitions before the byte `known` are not
/// unpacked.
fn each_frame_of(
    path: &Path,
    known: u64,
    look: Look<'_>,
    mut each: impl FnMut(&mut Frame) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let mut reader = Reader::new(BufReader::new(File::open(path)?))?;
    reader.pass_over_late(known);
    let (full, frames) = sync_channel::<Result<Frame, FileError>>(AHEAD);
    let (back, used) = channel::<Frame>();
    let read = move || {
        loop {
            let mut frame = used.try_recv().unwrap_or_default();
            let next = match reader.next_frame(&mut frame) {
                Ok(true) => {
                    look(&frame);
                    Ok(frame)
                }
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
            let mut frame = frame?;
            each(&mut frame)?;
            // The reader is gone when it has read the last frame.
            drop(back.send(frame));
        }
        Ok(())
    })
}

/// Passes the definitions in the trailer of a trace, or beside its segments, to `each`, with the
/// bytes of the frame that each is in. They are needed first. Returns how far it came in each file.
pub fn each_late(
    path: &(impl AsRef<Path> + ?Sized),
    mut each: impl FnMut(u32, &Op<'_>, &Arc<Vec<u8>>),
) -> BTreeMap<PathBuf, u64> {
    let mut known = KnownLate::new();
    let Ok(parts) = parts::parts(path) else { return known };
    for file in parts.symbols().into_iter().chain(parts.files.into_iter().map(|part| part.path)) {
        let Ok(opened) = system::local_files::open(&file) else { continue };
        let upto = trace::file::late(BufReader::new(opened), |process, bytes, whole| {
            if let Ok(record) = Record::decode(bytes) {
                each(process, &record.op, whole);
            }
        });
        known.insert(file, upto);
    }
    known
}

/// Prints every op of a trace, one a line.
pub fn dump(path: &(impl AsRef<Path> + ?Sized), mut to: impl std::io::Write) -> Result<(), FileError> {
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
pub fn each_record(path: &(impl AsRef<Path> + ?Sized), mut each: impl FnMut(u32, &[u8])) -> Result<(), FileError> {
    each_frame(path.as_ref(), &KnownLate::new(), &mut |_| (), |frame| {
        for record in frame.records() {
            each(frame.process, record?);
        }
        Ok(())
    })
}
