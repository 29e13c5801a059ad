//! Recorded traces: several files, several processes each, analysed as if they were live.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

use trace::Record;
use trace::file::{FileError, Reader};

use crate::code_reader::ImageReader;
use crate::report::model::Outcome;
use crate::symbols::Symbolizer;
use crate::{Analysis, AnalysisOptions};

/// An analysis with the real symboliser and the real code reader.
pub fn analysis(options: AnalysisOptions) -> Analysis {
    Analysis::new(options, Box::new(Symbolizer::new()), Box::new(ImageReader::default()))
}

/// Analyses a trace file: an outcome for each of its processes, and why reading stopped before the end, if it did.
pub fn check(path: &str, options: AnalysisOptions) -> (Vec<Outcome>, Option<FileError>) {
    let mut processes: BTreeMap<u32, Analysis> = BTreeMap::new();
    let error = each_record(path, |process, bytes| {
        let analysis = processes.entry(process).or_insert_with(|| analysis(options));
        super::live::feed(analysis, bytes);
    })
    .err();
    (processes.values_mut().map(Analysis::finish).collect(), error)
}

/// Prints every op of a trace, one a line.
pub fn dump(path: &str, mut to: impl std::io::Write) -> Result<(), FileError> {
    let mut written = Ok(());
    each_record(path, |process, bytes| {
        if written.is_err() {
            return;
        }
        written = match Record::decode(bytes) {
            Ok(r) => writeln!(
                to,
                "{process} thread={} stack={} timeline={} time={} call={} {:?}",
                r.origin.thread.0,
                r.origin.stack.0,
                r.origin.epoch.timeline.0,
                r.origin.epoch.time,
                r.origin.call.0,
                r.op
            ),
            Err(error) => writeln!(to, "{process} (unreadable: {error})"),
        };
    })?;
    // A reader that has seen enough (head) closes the pipe: no error of ours.
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn each_record(path: &str, mut each: impl FnMut(u32, &[u8])) -> Result<(), FileError> {
    let mut reader = Reader::new(BufReader::new(File::open(path)?))?;
    while reader.frame(&mut each)? {}
    Ok(())
}
