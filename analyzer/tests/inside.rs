//! Races inside kernels as the trace has them: memory at the launch's place in the order, damage,
//! and what was not checked.

use crate::support::*;
use analysis::AnalysisOptions;
use detect::confidence::{Confidence, Weakness};
use detect::race::Hazard;
use report::model::Report;
use trace::codec::List;
use trace::op::inside::{InsideFrame, InsideRace, InsideSide, inside_flags};
use trace::*;

/// A launch with so many races of lines 3 and 7 in the memory at `address`, told after `then`.
/// `change` damages what is told.
fn told(
    address: u64,
    grade: u32,
    flags: u32,
    then: impl FnOnce(&mut Program),
    change: impl FnOnce(&mut InsideRace, &mut [InsideSide; 2]),
) -> Report {
    told_in("mix.cu", (address, grade, flags), then, change)
}

/// The same of a source file.
fn told_in(
    file: &str,
    (address, grade, flags): (u64, u32, u32),
    then: impl FnOnce(&mut Program),
    change: impl FnOnce(&mut InsideRace, &mut [InsideSide; 2]),
) -> Report {
    let mut p = Program::with(AnalysisOptions::default());
    p.malloc(X, 4096);
    let kernel = p.kernel("mixer", &[writes(0, Shape::Exact(0, 4))]);
    let epoch = Epoch { timeline: TimelineId(A.0), time: 1 };
    let call = p.call("cudaLaunchKernel");
    let origin = Origin { call, thread: ThreadId(1), stack: StackId(20), epoch };
    let params = X.to_le_bytes();
    p.analysis.feed(&Record { origin, op: launch_with(A, kernel, launch_flags::EXACT, &params) });
    then(&mut p);
    let mut race = InsideRace { address, count: 4, grade, remedy: 6, ..InsideRace::default() };
    let side = |first, kind, thread| InsideSide { first, frames: 1, kind, flags: 2, thread, ..InsideSide::default() };
    let mut sides = [side(0, 1, [1, 0, 0]), side(1, 0, [2, 0, 0])];
    change(&mut race, &mut sides);
    let frames = [InsideFrame { file: 1, line: 3 }, InsideFrame { file: 1, line: 7 }];
    let Epoch { timeline, time } = epoch;
    p.raw(Op::Inside {
        timeline,
        time,
        node: 0,
        kernel: "mixer".into(),
        flags,
        grid: [2, 1, 1],
        block: [32, 1, 1],
        counts: List::new(&[0, 0, 5, 0]),
        races: List::new(&[race]),
        sides: List::new(&sides),
        frames: List::new(&frames),
        texts: format!("\0{file}\0").as_bytes(),
    });
    p.raw(Op::Exact { timeline, time, node: 0, flags: exact_flags::LOST, runs: List::new(&[]) });
    p.report()
}

fn nothing(_: &mut Program) {}

fn sound(_: &mut InsideRace, _: &mut [InsideSide; 2]) {}

#[test]
fn memory_is_that_of_the_launch() {
    // What is freed and allocated while the kernel runs comes behind it in the order.
    let report = told(X + 40, 3, 0, |p| p.free(X, FreeKind::Plain, StreamId::NONE), sound);
    let [f] = &report.findings[..] else { panic!("{:?}", report.findings) };
    let memory = f.allocation.as_ref().expect("an allocation");
    assert_eq!((memory.address, memory.size, f.from, f.count), (X, 4096, 40, 4));
    assert_eq!((f.confidence, f.kind.name()), (Confidence::Certain, "race-inside-kernel"));
    assert_eq!((f.previous.stack[0].line, f.access.stack[0].line), (Some(3), Some(7)));
    let inside = f.in_kernel.as_ref().expect("of a kernel");
    assert_eq!(inside.threads.map(|thread| thread.thread), [Some([1, 0, 0]), Some([2, 0, 0])]);
    assert_eq!((report.coverage.launches_inside, report.failures().count()), (1, 1));
    assert_eq!(report.coverage.inside_left["accesses of textures and surfaces"], 5);
}

#[test]
fn grades_decide_on_the_run() {
    for (grade, confidence, fails) in [
        (0, Confidence::Possible, 0),
        (1, Confidence::Possible, 0),
        (2, Confidence::Likely, 1),
        (3, Confidence::Certain, 1),
    ] {
        let report = told(X, grade, 0, nothing, sound);
        assert_eq!(report.findings[0].confidence, confidence, "{grade}");
        assert_eq!(report.failures().count(), fails, "{grade}");
    }
}

#[test]
fn a_read_of_unwritten_memory_has_one_side() {
    let reads = |race: &mut InsideRace, sides: &mut [InsideSide; 2]| {
        race.remedy = 17;
        sides[0] = sides[1];
    };
    for (grade, weakness, fails) in [(1, Some("partly-written"), 0), (2, None, 1)] {
        let report = told(X + 40, grade, 0, nothing, reads);
        let [f] = &report.findings[..] else { panic!("{:?}", report.findings) };
        assert_eq!((f.kind.name(), f.weakness.map(Weakness::name)), ("uninitialized-read", weakness));
        assert_eq!(f.hazard, Hazard::ReadAfterWrite);
        assert_eq!((f.access.stack[0].line, f.from, report.failures().count()), (Some(7), 40, fails));
        let s = &f.synchronisation;
        assert!(s.missing.starts_with("No kernel, copy or fill has written these bytes since "), "{s:?}");
        assert!(s.mend[0].lines[0].starts_with("cudaMemset(...);  // or a copy"), "{s:?}");
        assert_eq!(s.facts.is_empty(), grade == 2, "{s:?}");
        let updates = |race: &mut InsideRace, sides: &mut [InsideSide; 2]| {
            reads(race, sides);
            race.shared = 1;
            sides.iter_mut().for_each(|side| (side.kind, side.scope) = (2, 3));
        };
        let report = told(40, grade, 0, nothing, updates);
        let [f] = &report.findings[..] else { panic!("{:?}", report.findings) };
        assert!(f.synchronisation.missing.starts_with("No thread of any block"), "{:?}", f.synchronisation);
    }
}

#[test]
fn collectives_of_cooperative_groups_are_the_librarys_own() {
    let of = |file: &str, shared, grade| {
        let in_memory = |race: &mut InsideRace, _: &mut [InsideSide; 2]| race.shared = shared;
        let report = told_in(file, (X, grade, 0), nothing, in_memory);
        (report.findings[0].internal, report.failures().count())
    };
    let header = |name| format!("/usr/local/cuda/include/cooperative_groups/details/{name}.h");
    for name in ["reduce", "coalesced_scan", "memory", "sync"] {
        assert_eq!(of(&header(name), 1, 3), (true, 0), "{name}");
    }
    // What the program copies, what is in its own files, and what others see.
    assert_eq!(of(&header("async"), 1, 3), (false, 1));
    assert_eq!(of("/home/me/details/reduce.h", 1, 3), (false, 1));
    assert_eq!(of("mix.cu", 1, 3), (false, 1));
    assert_eq!(of(&header("reduce"), 0, 3), (false, 1));
}

#[test]
fn memory_of_no_allocation_is_an_address() {
    let report = told(X + (1 << 30), 3, 0, nothing, sound);
    assert!(report.findings[0].allocation.is_none());
    assert_eq!(report.findings[0].from, X + (1 << 30));
}

#[test]
fn damage_and_failures_are_named_and_never_clean() {
    let unchecked = |report: Report| report.coverage.unchecked.concat();
    let damaged = told(X, 9, 0, nothing, sound);
    assert!(damaged.findings.is_empty());
    let said = unchecked(damaged);
    assert!(said.contains("kernel mixer") && said.contains("`InsideGrade` holds the unknown value 9"), "{said}");
    let said = unchecked(told(X, 3, 0, nothing, |_, sides| sides[1].first = 7));
    assert!(said.contains("`frames`"), "{said}");
    let said = unchecked(told(X, 3, inside_flags::FAILED, nothing, sound));
    assert_eq!(said, "the inside of kernel mixer(float*, int) behind the fault that ended it");
    let said = unchecked(told(X, 3, inside_flags::NOT_RUN, nothing, sound));
    assert_eq!(said, "the inside of kernel mixer(float*, int), which did not run");
}

#[test]
fn what_comes_too_late_is_named() {
    let mut p = Program::with(AnalysisOptions::default());
    p.raw(Op::Inside {
        timeline: TimelineId(1),
        time: 5,
        node: 0,
        kernel: "mixer".into(),
        flags: 0,
        grid: [1; 3],
        block: [1; 3],
        counts: List::new(&[0; 4]),
        races: List::new(&[]),
        sides: List::new(&[]),
        frames: List::new(&[]),
        texts: b"",
    });
    let report = p.report();
    assert_eq!(report.coverage.unchecked, ["the inside of launches that were not seen to end"]);
}
