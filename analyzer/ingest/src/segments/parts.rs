//! Finds the files of a recording: a trace is one, segments are many, and some may be missing.
//!
//! Owns what is missing, in words, and where a reader has to begin anew. Does not read frames
//! ([`crate::recorded`]).

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use trace::file::{FileError, Reader};
use trace::segment::{FINISHED, SHARED, SYMBOLS, SegmentHead, UNFINISHED};

/// One file of a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The file.
    pub(crate) path: PathBuf,
    /// Its number; `None`: it is the whole recording.
    pub number: Option<u64>,
    /// Whether what came before it is not there.
    pub(crate) begins: bool,
    /// Bytes.
    pub(crate) bytes: u64,
}

impl Part {
    /// Whether it was never finished.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.path.extension().is_some_and(|ending| ending == UNFINISHED)
    }
}

/// The files of a recording, in their order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Parts {
    /// The files.
    pub files: Vec<Part>,
    /// The folder of what they share.
    pub shared: Option<PathBuf>,
    /// What is missing and should not be: lines for the user.
    pub(crate) missing: Vec<String>,
    /// What else the user should know.
    pub notes: Vec<String>,
    /// Some file is of a version without an end mark: whether it is whole can not be told.
    pub lacks_end_mark: bool,
    /// Whether the end is in the last file, if the recording has ended. Otherwise that is no
    /// error: it goes on, or this is a part by itself.
    pub(crate) must_end: bool,
}

impl Parts {
    /// Whether something is not there, be it by mistake or not.
    pub fn have_gaps(&self) -> bool {
        self.files.iter().any(|part| part.begins)
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|part| part.bytes).sum()
    }

    /// Files with symbols, by name.
    pub fn symbols(&self) -> Vec<PathBuf> {
        let entries = self.shared.as_ref().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|e| e.path())).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == SYMBOLS));
        paths.sort();
        paths
    }
}

/// Whether a folder holds the segments of a recording.
pub(crate) fn holds_recording(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|entries| {
        entries.filter_map(Result::ok).any(|entry| named(&entry.path()).is_some() && head(&entry.path()).is_ok())
    })
}

/// Whether a folder may hold the segments of a recording: it can not be read, or a file in it is
/// named as a segment is.
pub(crate) fn seems_recording(folder: &Path) -> bool {
    fs::read_dir(folder).map_or(true, |entries| {
        entries.into_iter().any(|entry| entry.map_or(true, |entry| named(&entry.path()).is_some()))
    })
}

/// The ending of a file that is named as a segment is.
fn named(path: &Path) -> Option<&str> {
    let (stem, ending) = (path.file_stem()?.to_str()?, path.extension()?.to_str()?);
    let is_number = stem.len() >= 6 && stem.bytes().all(|b| b.is_ascii_digit());
    (is_number && [FINISHED, UNFINISHED].contains(&ending)).then_some(ending)
}

/// The header of a segment, and whether its version has an end mark. A file that is none is foreign
/// here.
fn head(path: &Path) -> Result<(SegmentHead, bool), FileError> {
    let reader = Reader::new(BufReader::new(system::local_files::open(path)?))?;
    reader.segment().map(|head| (head, reader.has_end_mark())).ok_or(FileError::Foreign)
}

/// The files of a trace, of a folder of segments, or of one segment by itself.
pub fn parts(path: &(impl AsRef<Path> + ?Sized)) -> Result<Parts, FileError> {
    let path = path.as_ref();
    if path.is_dir() {
        return folder(path);
    }
    let reader = Reader::new(BufReader::new(File::open(path)?))?;
    let head = reader.segment();
    let bytes = fs::metadata(path)?.len();
    let begins = head.is_some_and(|head| head.number > 0);
    let part = Part { path: path.to_path_buf(), number: head.map(|head| head.number), begins, bytes };
    let mut parts = Parts { files: vec![part], lacks_end_mark: !reader.has_end_mark(), ..Parts::default() };
    if let Some(head) = head {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        parts.shared = shared(parent);
        parts.notes.push(format!("{} is segment {} by itself", path.display(), head.number));
    }
    Ok(parts)
}

/// What segments in a folder share: beside them, or (of those that were saved) one folder up.
fn shared(folder: &Path) -> Option<PathBuf> {
    [folder.join(SHARED), folder.join("..").join(SHARED)].into_iter().find(|folder| folder.is_dir())
}

fn folder(folder: &Path) -> Result<Parts, FileError> {
    let mut found: Vec<(SegmentHead, PathBuf)> = Vec::new();
    let (mut lacks_end_mark, mut missing) = (false, Vec::new());
    let (paths, mut goes_on) = listed(folder)?;
    for path in paths {
        if named(&path) == Some(UNFINISHED) {
            // One that nobody writes any more has what was saved of it when its writer died.
            if is_written(&path) {
                goes_on = true;
                continue;
            }
        }
        let finished = path.with_extension(FINISHED);
        match head(&path) {
            Ok((head, has_end_mark)) => {
                lacks_end_mark |= !has_end_mark;
                found.push((head, path));
            }
            // It was finished since the folder was listed, and another one was begun.
            Err(FileError::Io(error)) if error.kind() == io::ErrorKind::NotFound && finished.exists() => {
                goes_on = true;
                found.push((head(&finished)?.0, finished));
            }
            Err(error) => missing.push(format!("{}: {error}", path.display())),
        }
    }
    // Of two with one number the finished one is read, and that whose name the writer gave.
    let rank = |(head, path): &(SegmentHead, PathBuf)| {
        (head.number, named(path) == Some(UNFINISHED), path.as_os_str().len(), path.clone())
    };
    found.sort_by_cached_key(rank);
    found.dedup_by(|a, b| a.1 == b.1);
    let Some((first, _)) = found.first().cloned() else {
        return Err(if goes_on {
            FileError::Parts("no segment of this recording is finished yet".into())
        } else {
            FileError::Parts(missing.pop().unwrap_or_else(|| "there is no segment in this folder".into()))
        });
    };
    if found.iter().any(|(head, _)| head.recording != first.recording) {
        return Err(FileError::Parts("the segments in this folder are of several recordings".into()));
    }
    missing.extend(
        strangers(folder, first.recording)?.iter().map(|path| {
            format!("{} is no part of this recording, and was not read: check it by itself", path.display())
        }),
    );
    let (mut files, mut notes, mut next) = (Vec::<Part>::new(), Vec::new(), 0);
    for (head, path) in found {
        if files.last().and_then(|part| part.number) == Some(head.number) {
            missing.push(format!("segment {} is there twice: {} was not read", head.number, path.display()));
            continue;
        }
        let begins = head.number != next;
        if begins && next == 0 && head.keeps_last {
            notes.push(format!("{}: begins at segment {}, the first that was kept", folder.display(), head.number));
        } else if begins {
            missing.push(gone(next, head.number));
        }
        let bytes = fs::metadata(&path)?.len();
        files.push(Part { path, number: Some(head.number), begins, bytes });
        next = head.number.saturating_add(1);
    }
    if goes_on {
        notes.push(format!(
            "{}: the recording goes on; its {} finished segments are read",
            folder.display(),
            files.len()
        ));
    }
    Ok(Parts { files, shared: shared(folder), missing, notes, lacks_end_mark, must_end: !goes_on })
}

/// Traces and recordings in the folder of a recording that are none of its files. What was saved of
/// it lies in folders below, and is of the same recording.
fn strangers(folder: &Path, recording: u64) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    paths.retain(|path| {
        if path.is_dir() {
            return path.file_name().is_none_or(|name| name != SHARED) && holds_another(path, recording);
        }
        // A segment of another name is missed under its own.
        let is_own = || head(path).is_ok_and(|(head, _)| head.recording == recording);
        named(path).is_none() && is_trace(path) && !is_own()
    });
    paths.sort();
    Ok(paths)
}

/// Whether a folder holds segments of another recording, or a trace.
fn holds_another(folder: &Path, recording: u64) -> bool {
    // A folder that can not be read is not known to hold one: nobody said that it is a recording.
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    entries.into_iter().any(|path| match named(&path) {
        Some(_) => head(&path).is_ok_and(|(head, _)| head.recording != recording),
        None => path.is_file() && is_trace(&path),
    })
}

/// Whether this is a regular file that begins as traces do.
pub(crate) fn is_trace(path: &Path) -> bool {
    let mut head = [0; 8];
    system::local_files::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok()
        && head == trace::file::MAGIC
}

/// The files in a folder that are named as segments are, and whether a recording goes on there: a
/// list is no picture of one moment, and one that changes at once has a writer.
fn listed(folder: &Path) -> io::Result<(BTreeSet<PathBuf>, bool)> {
    const TRIES: usize = 4;
    let list = || {
        let paths = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
        paths.filter(|path| path.as_ref().map_or(true, |path| named(path).is_some())).collect::<io::Result<_>>()
    };
    let mut paths = list()?;
    for tried in 0..TRIES {
        let before = std::mem::replace(&mut paths, list()?);
        if paths == before {
            return Ok((paths, tried > 0));
        }
    }
    Ok((paths, true))
}

/// Whether a recording goes on in this file: who writes it holds its lock.
pub(crate) fn is_written(path: &Path) -> bool {
    let is_locked = |file: File| matches!(file.try_lock_shared(), Err(fs::TryLockError::WouldBlock));
    system::local_files::open(path).is_ok_and(is_locked)
}

/// The segments from `from` up to the one before `to` are not there.
fn gone(from: u64, to: u64) -> String {
    match to - from {
        1 => format!("segment {from} is missing"),
        _ => format!("segments {from} to {} are missing", to - 1),
    }
}
