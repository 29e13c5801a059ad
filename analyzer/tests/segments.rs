//! Recordings in segments: read as a whole they say what one file says, and with segments missing
//! they say nothing else.
//!
//! `PROPTEST_CASES=10000 cargo test --release -p analyzer --test it segments::` takes ten thousand
//! random programs; some seconds for a thousand.

pub(crate) mod program;

use analysis::AnalysisOptions;
use ingest::progress::Progress;
use ingest::recorded;
use ingest::segments::parts;
use ingest::segments::writer::{SegmentLimits, SegmentWriter};
use options::Amount;
use program::{CELL, Program, Step, programs};
use proptest::prelude::*;
use report::model::{Finding, Outcome};
use settings::Judging;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use trace::*;

/// A folder that goes away.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        Self(system::private_file::folder("streamsan-segments-").expect("a folder"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Segments of some hundred bytes: a few ops each.
pub(crate) const TINY: SegmentLimits = SegmentLimits { bytes: 120, block: 250, age: None, keep: None, symbols: 0 };

fn one_file(records: &[Vec<u8>], path: &Path) {
    let mut writer = trace::file::Writer::new(std::fs::File::create(path).expect("created")).expect("header");
    records.iter().for_each(|record| writer.record(0, record).expect("written"));
    writer.finish().expect("written");
}

fn segments(records: &[Vec<u8>], folder: &Path, limits: SegmentLimits) {
    let mut writer = SegmentWriter::create(folder, limits).expect("a folder");
    records.iter().for_each(|record| writer.record(0, record).expect("written"));
    writer.finish().expect("written");
}

pub(crate) fn checked(path: &Path) -> (Vec<Outcome>, Option<String>) {
    let options =
        AnalysisOptions { judging: Judging { pedantic: true, ..Default::default() }, ..AnalysisOptions::default() };
    let (outcomes, error) = recorded::check(path, options, None, &[], (0, &mut Progress::new(1)), &mut drop);
    (outcomes, error.map(|error| error.to_string()))
}

/// What a finding says: kind, and the lines of both sides and of the allocation.
fn said(finding: &Finding) -> (String, [String; 3]) {
    let line = |stack: &[symbols::frame::Frame]| stack.first().map_or(String::new(), |f| f.function.clone());
    let allocation = finding.allocation.as_ref().map_or(String::new(), |a| line(&a.stack));
    (format!("{:?}", finding.hazard), [line(&finding.access.stack), line(&finding.previous.stack), allocation])
}

pub(crate) fn findings(outcomes: &[Outcome]) -> BTreeSet<(String, [String; 3])> {
    outcomes.iter().flat_map(|outcome| &outcome.findings).map(said).collect()
}

/// Numbers of the finished segments.
fn numbers(folder: &Path) -> Vec<u64> {
    let parts = parts::parts(folder).expect("segments");
    parts.files.iter().filter_map(|part| part.number).collect()
}

pub(crate) fn segment(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:06}.trace"))
}

/// Takes the segments away whose bits are set, checks the rest, and puts them back.
fn without(folder: &Path, gone: &[u64]) -> (Vec<Outcome>, Option<String>) {
    let aside = |number: u64| folder.join(format!("{number}.aside"));
    gone.iter().for_each(|n| std::fs::rename(segment(folder, *n), aside(*n)).expect("there"));
    let checked = checked(folder);
    gone.iter().for_each(|n| std::fs::rename(aside(*n), segment(folder, *n)).expect("there"));
    checked
}

fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn segments_say_what_one_file_says_and_less_when_some_are_missing(
        steps in programs(), chance in any::<u64>()
    ) {
        let records = Program::of(&steps).records;
        let scratch = Scratch::new();
        let (file, folder) = (scratch.0.join("whole.trace"), scratch.0.join("parts"));
        one_file(&records, &file);
        segments(&records, &folder, TINY);
        let (whole, error) = checked(&file);
        prop_assert_eq!(error, None);
        let (parts, error) = checked(&folder);
        prop_assert_eq!(error, None);
        prop_assert_eq!(&whole, &parts);
        let (all, numbers) = (findings(&whole), numbers(&folder));
        // Four of them one by one, and a random half.
        let sets = (0..4).map(|n| vec![numbers[(chance >> (8 * n)) as usize % numbers.len()]]);
        let random: Vec<u64> = numbers.iter().copied().filter(|n| chance >> (n % 64) & 1 != 0).collect();
        for gone in sets.chain([random]).filter(|gone| !gone.is_empty() && gone.len() < numbers.len()) {
            let (rest, error) = without(&folder, &gone);
            prop_assert!(error.is_some_and(|error| error.contains("missing")), "{:?}", gone);
            let found = findings(&rest);
            let invented: Vec<_> = found.difference(&all).collect();
            prop_assert!(invented.is_empty(), "without {:?}: {:#?} {:#?}", gone, invented, steps);
        }
    }
}

/// Two processes of one run, one of which ends early.
#[test]
fn each_process_is_told_what_lives_in_it() {
    let mut first = Program::new();
    let mut second = Program::new();
    pass_time(&mut first);
    pass_time(&mut second);
    [Step::Write(0, 1, 1), Step::Write(1, 1, 1)].iter().for_each(|step| second.step(*step));
    let scratch = Scratch::new();
    let (file, folder) = (scratch.0.join("whole.trace"), scratch.0.join("parts"));
    let mut whole = trace::file::Writer::new(std::fs::File::create(&file).expect("created")).expect("header");
    let mut parts = SegmentWriter::create(&folder, TINY).expect("a folder");
    let mut write = |process: u32, record: &[u8]| {
        whole.record(process, record).expect("written");
        parts.record(process, record).expect("written");
    };
    for (n, record) in second.records.iter().enumerate() {
        if let Some(record) = first.records.get(n) {
            write(0, record);
        }
        write(1, record);
    }
    whole.finish().expect("written");
    parts.process_ended(0).expect("written");
    parts.finish().expect("written");
    assert_eq!(checked(&file), checked(&folder));
    let last = *numbers(&folder).last().expect("some");
    let (rest, error) = without(&folder, &(0..last - 2).collect::<Vec<_>>());
    assert!(error.is_some_and(|error| error.contains("missing")));
    let found: Vec<usize> = rest.iter().map(|outcome| outcome.findings.len()).collect();
    assert_eq!(found, [0, 1]);
    assert!(rest[1].findings[0].allocation.as_ref().is_some_and(|memory| memory.size == 8 * CELL));
}

/// Work that fills segments and touches nothing that matters.
pub(crate) fn pass_time(p: &mut Program) {
    (0..40).for_each(|_| p.step(Step::IdleQuery(3)));
}

/// The race of two streams that begins after a gap, on memory that was allocated before it; and its
/// twin, where the second stream waits.
pub(crate) fn after_a_gap(waits: bool) -> (Scratch, PathBuf, Vec<u64>) {
    let mut p = Program::new();
    pass_time(&mut p);
    p.step(Step::Write(0, 1, 1));
    if waits {
        p.step(Step::Record(0, 0));
        p.step(Step::Wait(1, 0));
    }
    p.step(Step::Write(1, 1, 1));
    let scratch = Scratch::new();
    let folder = scratch.0.join("parts");
    segments(&p.records, &folder, TINY);
    let all = numbers(&folder);
    (scratch, folder, all)
}

#[test]
fn a_race_after_a_gap_is_found_and_its_memory_named() {
    for waits in [false, true] {
        let (_scratch, folder, all) = after_a_gap(waits);
        let (whole, _) = checked(&folder);
        assert_eq!(findings(&whole).len(), usize::from(!waits));
        // All but the segments with the race itself: their memory was allocated in the first.
        let last = all.len() as u64 - 1;
        let race: Vec<u64> = (0..=last).filter(|n| findings(&without(&folder, &[*n]).0).is_empty()).collect();
        let gone: Vec<u64> = (0..last.saturating_sub(3)).filter(|n| waits || !race.contains(n)).collect();
        assert!(gone.len() > 3, "{all:?} {race:?}");
        let (rest, error) = without(&folder, &gone);
        assert_eq!(findings(&rest), findings(&whole));
        let to = gone.last().expect("some");
        assert_eq!(error.as_deref(), Some(&*format!("segments 0 to {to} are missing")));
    }
}

#[test]
fn what_is_missing_is_named_and_a_damaged_segment_hides_no_other() {
    let (_scratch, folder, all) = after_a_gap(false);
    let last = *all.last().expect("some");
    assert_eq!(without(&folder, &[2]).1.as_deref(), Some("segment 2 is missing"));
    assert_eq!(without(&folder, &[1, 2, 4]).1.as_deref(), Some("segments 1 to 2 are missing; segment 4 is missing"));
    assert_eq!(without(&folder, &[last]).1.as_deref(), Some("the end of the recording is missing"));
    let (whole, _) = checked(&folder);
    let mut bytes = std::fs::read(segment(&folder, 1)).expect("there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    std::fs::write(segment(&folder, 1), bytes).expect("written");
    let (rest, error) = checked(&folder);
    assert!(error.is_some_and(|error| error.contains("000001.trace: the trace is damaged")));
    assert_eq!(findings(&rest), findings(&whole));
}

#[test]
fn a_segment_by_itself_is_read() {
    let (_scratch, folder, all) = after_a_gap(false);
    let whole = findings(&checked(&folder).0);
    let mut seen = BTreeSet::new();
    for number in all {
        let (outcomes, error) = checked(&segment(&folder, number));
        assert_eq!(error, None);
        seen.extend(findings(&outcomes));
    }
    assert!(seen.is_subset(&whole));
}

#[test]
fn a_recording_that_goes_on_is_read_up_to_its_last_segment_and_one_that_died_to_its_last_frame() {
    let mut p = Program::new();
    pass_time(&mut p);
    let scratch = Scratch::new();
    let folder = scratch.0.join("parts");
    let mut writer = SegmentWriter::create(&folder, TINY).expect("a folder");
    p.records.iter().for_each(|record| writer.record(0, record).expect("written"));
    let (outcomes, error) = checked(&folder);
    assert_eq!((outcomes.len(), error), (1, None));
    let notes = parts::parts(&folder).expect("segments").notes;
    assert!(notes.iter().any(|note| note.contains("goes on")), "{notes:?}");
    let some = outcomes[0].coverage.ops;
    // Its writer dies: the lock goes with it, and what it had not written.
    drop(writer);
    let (outcomes, error) = checked(&folder);
    assert_eq!(error.as_deref(), Some("the end of the recording is missing"));
    assert!(outcomes[0].coverage.ops >= some);
    assert!(SegmentWriter::create(&folder, TINY).is_err(), "a recording is not written over");
}

#[test]
fn the_last_bytes_are_kept_and_what_was_saved_stays() {
    let mut p = Program::new();
    pass_time(&mut p);
    let (begun, first) = (p.records.len(), [Step::Write(0, 1, 1), Step::Write(1, 1, 1)]);
    first.iter().for_each(|step| p.step(*step));
    p.does(Op::Save { reason: "odd loss".into() });
    let saved = p.records.len();
    (0..8).for_each(|_| pass_time(&mut p));
    // The second one is the first again: everything fails after an error of this kind.
    (0..2).for_each(|_| p.does(Op::Failed { result: 700, stream: StreamId(0) }));
    (0..8).for_each(|_| pass_time(&mut p));
    let scratch = Scratch::new();
    let folder = scratch.0.join("parts");
    segments(&p.records, &folder, SegmentLimits { keep: Some(Amount::Bytes(4000)), ..TINY });
    assert!(begun < saved && numbers(&folder)[0] > 3, "the first went");
    // What is left of the end has no race any more, and that is no error.
    let (outcomes, error) = checked(&folder);
    assert_eq!((findings(&outcomes).len(), error), (0, None));
    let (outcomes, error) = checked(&folder.join("saved-1-odd-loss"));
    assert_eq!((findings(&outcomes).len(), error), (1, None));
    let (outcomes, error) = checked(&folder.join("saved-2-fault"));
    assert_eq!((outcomes[0].faults.len(), error), (1, None));
    assert!(!folder.join("saved-3-fault").exists());
    let size: u64 =
        numbers(&folder).iter().map(|n| std::fs::metadata(segment(&folder, *n)).expect("there").len()).sum();
    assert!(size <= 4000 + 2 * TINY.bytes + 1000, "{size}");
    // With all kept there is nothing to save.
    let folder = scratch.0.join("all");
    segments(&p.records, &folder, TINY);
    assert!(!folder.join("saved-1-odd-loss").exists());
}

#[test]
fn code_lies_beside_the_segments_once() {
    let code = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry put(.param .u64 p)\n{\n\
        .reg .b64 %rd<3>;\n.reg .f32 %f<2>;\nld.param.u64 %rd1, [p];\ncvta.to.global.u64 %rd2, %rd1;\n\
        mov.f32 %f1, 0f00000000;\nst.global.f32 [%rd2], %f1;\nret;\n}\n\0";
    let mut p = Program::new();
    for id in [1, 2] {
        let (bytes, size, source) = (code.as_bytes(), code.len() as u64, ImageSource::Inline);
        p.does(Op::Image { id: ImageId(id), source, path: "".into(), offset: 0, size, bytes });
    }
    let params = [ParamSlot { offset: 0, size: 8 }];
    let params = codec::List::new(&params);
    p.does(Op::Kernel { id: KernelId(1), name: "put".into(), image: ImageId(2), params, handle: 0 });
    pass_time(&mut p);
    for stream in [0, 1] {
        let (params, stream) = (0x7f00_0000_0000_u64.to_le_bytes(), p.stream(stream));
        let shape = LaunchShape::new([1; 3], [1; 3]);
        p.does(Op::Launch { stream, kernel: KernelId(1), shape, params: &params });
    }
    let scratch = Scratch::new();
    let (file, folder) = (scratch.0.join("whole.trace"), scratch.0.join("parts"));
    one_file(&p.records, &file);
    segments(&p.records, &folder, TINY);
    let (whole, parts) = (checked(&file).0, checked(&folder).0);
    assert_eq!(whole, parts);
    assert_eq!((whole[0].findings.len(), whole[0].coverage.launches_exact), (1, 2));
    let is_code = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "code");
    let shared = std::fs::read_dir(folder.join("shared")).expect("there").map(|e| e.expect("there").path());
    assert_eq!(shared.filter(is_code).count(), 1);
    // Without the first segments the code is still known.
    let last = *numbers(&folder).last().expect("some");
    let gone: Vec<u64> = (0..last - 1).collect();
    let (rest, _) = without(&folder, &gone);
    assert_eq!(rest[0].coverage.launches_exact, rest[0].coverage.launches, "{gone:?} of {last}");
}

/// Source lines that lie beside the segments.
fn lines_beside(folder: &Path) -> BTreeSet<u32> {
    let mut lines = BTreeSet::new();
    for file in parts::parts(folder).expect("segments").symbols() {
        // The writer's thread may have deleted it since the folder was listed.
        let opened = match std::fs::File::open(file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            opened => opened.expect("readable"),
        };
        trace::file::late(opened, |_, bytes, _| {
            if let Ok(Record { op: Op::Source { line, .. }, .. }) = Record::decode(bytes) {
                lines.insert(line);
            }
        });
    }
    lines
}

/// A job that calls lines of a Python file; symbols are written and deleted by another thread.
struct LinesJob {
    program: Program,
    writer: SegmentWriter,
    folder: PathBuf,
    file: String,
    began: std::time::Instant,
}

impl LinesJob {
    fn new(scratch: &Path, name: &str) -> Self {
        let source = scratch.join("job.py");
        std::fs::write(&source, "first()\nsecond()\nthird()\n").expect("written");
        let (folder, file) = (scratch.join(name), source.to_string_lossy().into_owned());
        let limits = SegmentLimits { keep: Some(Amount::Bytes(10_000)), ..TINY };
        let writer = SegmentWriter::create(&folder, limits).expect("a folder");
        Self { program: Program::new(), writer, folder, file, began: std::time::Instant::now() }
    }

    /// The stack that calls this line, and a call of it.
    fn define(&mut self, line: u32) {
        let (id, encoding, file) = (PyCodeId(line), LineTable::V311, self.file.clone());
        let code = Op::PyCode { id, file: (&*file).into(), name: "job".into(), first_line: line, encoding, lines: &[] };
        self.program.raw(code);
        let python = [PyFrame { code: id, offset: 0 }];
        let (native, python) = (codec::List::new(&[]), codec::List::new(&python));
        self.program.raw(Op::Stack { id: StackId(1000 + line), native, python });
        self.program.asks_at(1000 + line);
    }

    fn write(&mut self) {
        let records = std::mem::take(&mut self.program.records);
        records.iter().for_each(|record| self.writer.record(0, record).expect("written"));
    }

    fn newest(&self) -> Option<u64> {
        std::fs::read_dir(&self.folder)
            .ok()?
            .filter_map(|entry| entry.ok()?.path().file_stem()?.to_str()?.parse().ok())
            .max()
    }

    /// Lets the job call a line, for one more segment or until only these lines are there.
    fn until(&mut self, lines: &[u32], calls: Option<u32>) {
        self.write();
        let newest = self.newest();
        while calls.is_some() && self.newest() == newest {
            self.program.asks_at(1000 + calls.unwrap_or_default());
            self.write();
        }
        while lines_beside(&self.folder) != lines.iter().copied().collect() {
            assert!(
                self.began.elapsed().as_secs() < 60,
                "{:?}, not {lines:?}, in {:?}",
                lines_beside(&self.folder),
                numbers(&self.folder)
            );
            match calls {
                Some(_) => std::thread::sleep(std::time::Duration::from_millis(2)),
                None => {
                    pass_time(&mut self.program);
                    self.program.asks_at(1003);
                    self.write();
                }
            }
        }
    }
}

#[test]
fn symbols_go_with_the_segments_that_need_them_and_come_back() {
    let scratch = Scratch::new();
    let mut job = LinesJob::new(&scratch.0, "parts");
    [1, 3].iter().for_each(|line| job.define(*line));
    job.until(&[1, 3], Some(3));
    job.until(&[3], None);
    job.until(&[1, 3], Some(1));
    job.until(&[3], None);
    job.writer.finish().expect("written");
    assert_eq!(lines_beside(&job.folder), BTreeSet::from([3]));
}

#[test]
fn symbols_of_what_was_saved_stay() {
    let scratch = Scratch::new();
    let mut job = LinesJob::new(&scratch.0, "parts");
    [1, 3].iter().for_each(|line| job.define(*line));
    job.program.does(Op::Save { reason: "kept".into() });
    job.until(&[1, 3], Some(3));
    job.define(2);
    job.until(&[1, 2, 3], Some(3));
    job.until(&[1, 3], None);
    job.writer.finish().expect("written");
    assert_eq!(lines_beside(&job.folder), BTreeSet::from([1, 3]));
}
