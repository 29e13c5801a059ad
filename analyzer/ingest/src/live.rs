//! One live process: a thread of its own empties the ring until the process ends, and another one
//! analyses the records.
//!
//! Owns the pace of reading and the heartbeat. Does not decide what a record means.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use trace::ring::{Consumer, Ring};
use trace::{NoteKind, Op, Origin};

use crate::backlog::{Backlog, Piece};
use crate::contention::Load;
use crate::heart::Heart;
use crate::process_watch::ProcessWatch;
use crate::segments::store::TraceStore;
use analysis::counterfactual::causes::{self, Effort};
use analysis::counterfactual::trial::records::{KeptRecords, Records};
use analysis::ipc::{Across, Member};
use analysis::{Analysis, AnalysisOptions};
use detect::launches::ahead::Scout;
use detect::launches::images::SharedImages;
use report::model::{Breach, Finding, Outcome};
use settings::exit_code::Ending;
use system::interrupt;

/// Pause between two reads of the ring while it holds little.
const SHORTEST: Duration = Duration::from_micros(500);
/// Number of records that is no longer little.
const BATCH: usize = 1000;
/// Pause between two reads of an idle ring.
const LONGEST: Duration = Duration::from_millis(4);

/// The trace that records are also written to, shared by all processes of a run.
pub type Recorder = Arc<Mutex<TraceStore>>;

/// What the program is told of its report.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// Findings that fail the run.
    pub findings: u32,
    /// How the run ends; known under plain `LD_PRELOAD` only, where the run is this process.
    pub ending: Ending,
}

/// What to do with the records of a process.
#[derive(Clone)]
pub struct Sink {
    /// Compare the processes of the run with each other.
    pub across: Option<Across>,
    /// Analyse them (a pure recording does not).
    pub analysis: Option<AnalysisOptions>,
    /// Write them to a trace file.
    pub recorder: Option<Recorder>,
    /// Writes findings before their causes are sought.
    pub early: Option<Arc<Early>>,
    /// Hears of findings as they come.
    pub fresh: Option<Arc<Fresh>>,
    /// The analysis pauses while the program waits for cores. (A simulated GPU has work for all.)
    pub gives_way: bool,
}

/// Who hears of findings and broken rules as they come.
pub type Fresh = dyn Fn(Vec<Finding>, Vec<Breach>) + Send + Sync;

/// What is known of the processes that have ended, for a report before the last one.
pub struct Early {
    known: Mutex<BTreeMap<u32, Outcome>>,
    write: Box<dyn Fn(Vec<Outcome>) + Send + Sync>,
}

impl Early {
    /// Reports with this function.
    pub fn new(write: impl Fn(Vec<Outcome>) + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { known: Mutex::default(), write: Box::new(write) })
    }

    /// Notes an outcome, and reports all that are known where the search for causes takes long.
    fn note(&self, process: u32, outcome: &Outcome, takes_long: bool) {
        if outcome.findings.is_empty() {
            return;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(process, causes::unsought(outcome));
        if takes_long {
            (self.write)(known.values().cloned().collect());
        }
    }
}

/// Reads the ring of one process until the process has ended, is done, or `stop` is set. Then reads
/// everything that is left.
///
/// `finished` gets the outcome before the process is notified that its report is there, and answers
/// how it was judged.
#[expect(clippy::too_many_arguments, reason = "two callers, each with all of it")]
pub fn follow(
    ring: Ring,
    beat: Ring,
    process: u32,
    watch: &ProcessWatch,
    stop: &AtomicBool,
    sink: &Sink,
    member: Option<Member>,
    finished: impl FnOnce(Option<Outcome>) -> Judged,
) {
    let beat = Arc::new(beat);
    let backlog = if sink.analysis.is_some() { Backlog::of_analysis() } else { Backlog::of_recording() };
    let program = sink.gives_way.then(|| watch.processors()).flatten();
    let heart = Heart::beat(&beat, program.map(|program| Load::of(program, backlog.is_roomy())));
    let images = SharedImages::default();
    let mut analysis = sink.analysis.map(|options| super::recorded::analysis(options, &images));
    if let (Some(analysis), Some(member)) = (&mut analysis, member) {
        analysis.join(member);
    }
    let mut kept = analysis.is_some().then(|| KeptRecords::bounded(causes::KEPT_LIVE));
    let wants_symbols = |recorder: &Recorder| lock(recorder).wants_symbols();
    let mut late = sink.recorder.as_ref().is_some_and(wants_symbols).then(crate::trailer::Late::default);
    let (mut write_error, mut found) = (false, false);
    let mut cut = None;
    let scout = analysis.is_some().then(|| Scout::new(&images)).flatten();
    let (consumer, backlog) = (Consumer::new(ring), &backlog);
    std::thread::scope(|scope| {
        let empty = move || empty_ring(consumer, backlog, scout, watch, stop);
        let reader = std::thread::Builder::new().name("ring".into()).spawn_scoped(scope, empty);
        let recorder = sink.recorder.as_ref();
        let mut piece = Piece::default();
        while reader.is_ok() {
            piece = match backlog.take(piece) {
                Ok(piece) => piece,
                Err(None) => break,
                Err(Some(error)) => {
                    system::say!("{error}; the rest of this process is not checked");
                    cut = Some(error.to_string());
                    break;
                }
            };
            for bytes in piece.records() {
                if let Some(recorder) = recorder.filter(|_| !write_error) {
                    let mut store = lock(recorder);
                    if let Err(error) = store.record(process, bytes) {
                        write_error = true;
                        system::say!("{}", store.complaint(&error));
                    }
                }
                if let Some(late) = &mut late {
                    late.observe(bytes);
                }
                if let (Some(analysis), Some(kept)) = (&mut analysis, &mut kept) {
                    kept.keep(bytes);
                    analysis.feed_encoded(bytes);
                    while let Some(kernel) = analysis.wanted() {
                        beat.header().wanted.add(kernel);
                    }
                    while let Some((class, settled)) = analysis.settled() {
                        beat.header().settled.set(class, settled);
                    }
                }
                kernels::safepoint();
            }
            if let Some(analysis) = &mut analysis {
                if let Some(began) = piece.began {
                    analysis.reached(began);
                }
                if let Some(hears) = &sink.fresh {
                    let (findings, breaches) = analysis.take_fresh();
                    if !(findings.is_empty() && breaches.is_empty()) {
                        hears(findings, breaches);
                    }
                }
            }
            if let Some(recorder) = recorder.filter(|_| !write_error) {
                let mut store = lock(recorder);
                let is_first = !found && analysis.as_ref().is_some_and(Analysis::has_found);
                found |= is_first;
                if let Err(error) = store.tick().and_then(|()| if is_first { store.save("finding") } else { Ok(()) }) {
                    write_error = true;
                    system::say!("{}", store.complaint(&error));
                }
            }
            // The program has ended, for before that the signal is the program's.
            if interrupt::is_asked() {
                cut = Some("the analysis was interrupted".to_owned());
                break;
            }
        }
        backlog.close();
        if let Err(error) = reader {
            cut = Some(format!("there is no thread that reads the ring: {error}"));
        }
    });
    let header = beat.header();
    if header.producer_off.load(Ordering::Acquire) != 0 {
        cut.get_or_insert_with(|| "the shim switched itself off".to_owned());
    }
    if let Some(why) = cut {
        let note = switched_off(&why);
        if let Some(recorder) = sink.recorder.as_ref().filter(|_| !write_error) {
            write_error = lock(recorder).record(process, &note).is_err();
        }
        if let Some(analysis) = &mut analysis {
            analysis.feed_encoded(&note);
        }
    }
    if let Some(recorder) = &sink.recorder {
        let mut store = lock(recorder);
        if let Err(error) = store.process_ended(process)
            && !write_error
        {
            system::say!("{}", store.complaint(&error));
        }
    }
    let kept = kept.as_mut().filter(|kept| !kept.is_overflown()).map(|kept| kept as &mut dyn Records);
    let judged = finished(analysis.as_mut().map(|analysis| {
        let (outcome, sought) = causes::findings(analysis);
        if let Some(early) = &sink.early {
            early.note(process, &outcome, sought.takes_long());
        }
        causes::seek(analysis, outcome, sought, kept, Effort::LIVE)
    }));
    header.findings.store(judged.findings, Ordering::Relaxed);
    header.exit_code.store(judged.ending.code() as u32, Ordering::Relaxed);
    header.consumer_done.store(1, Ordering::Release);
    drop(heart);
    if let (Some(late), Some(recorder)) = (late, &sink.recorder)
        && !write_error
        && let Err(error) = late.write(|records| lock(recorder).late(process, records))
    {
        system::say!("symbols can not be written into the trace: {error}");
    }
}

/// Empties the ring into the backlog, in the pace that costs the program least, until the process
/// has ended, is done, or `stop` is set, or nobody takes the records any more.
fn empty_ring(
    mut consumer: Consumer,
    backlog: &Backlog,
    mut scout: Option<Scout>,
    watch: &ProcessWatch,
    stop: &AtomicBool,
) {
    let mut filler = backlog.filler();
    let mut pause = SHORTEST;
    loop {
        // Checked before draining, so that everything committed before the end is read in the same
        // round.
        let last = stop.load(Ordering::Relaxed)
            || consumer.ring().header().producer_done.load(Ordering::Acquire) != 0
            || watch.has_ended();
        let began = monotonic();
        let drained = consumer.drain(|bytes| {
            if let Some(scout) = &mut scout {
                scout.look(bytes);
            }
            filler.put(bytes);
        });
        let few = match drained {
            Ok(records) => records,
            Err(error) => return filler.fail(error),
        };
        if !filler.round(began) || last {
            return;
        }
        match few {
            0 => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(LONGEST);
            }
            few => {
                // Reading data the moment it is written takes it out of the program's caches.
                // Batches cost the program less.
                if few < BATCH {
                    std::thread::sleep(SHORTEST);
                }
                pause = SHORTEST;
            }
        }
    }
}

/// The record that says that a process was not observed to its end. It goes where the process's own
/// records go: whoever reads the trace later must know it, too.
fn switched_off(why: &str) -> Vec<u8> {
    let op = Op::Note { kind: NoteKind::Disabled, text: why.into(), count: 1 };
    let mut bytes = vec![0; Origin::encoded_len(&op)];
    let written = Origin::default().encode(&op, &mut bytes);
    debug_assert_eq!(written, Some(bytes.len()));
    bytes
}

fn lock(recorder: &Recorder) -> MutexGuard<'_, TraceStore> {
    recorder.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nanoseconds of the clock that all processes of the machine share.
fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: time is writable; this clock always exists.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
