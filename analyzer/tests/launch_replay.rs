//! The model test of launch replay: repeated launches find what they would find if each came for
//! the first time, whatever happened to the memory in between.

use crate::support::*;
use analysis::AnalysisOptions;
use proptest::prelude::*;
use settings::Judging;
use trace::*;

const KERNELS: usize = 7;
/// Two allocations, and one close behind the first.
const ROOTS: [u64; 3] = [X, X + 256, X + 4096];
const SIZE: u64 = 256;

#[derive(Clone, Debug)]
enum Step {
    Launch { kernel: usize, stream: bool, pointers: [u64; 2] },
    Malloc(usize, MemoryKind),
    Free(usize),
    Block { place: u64, size: u64 },
    FreeBlock(u64),
    Alias(u64),
    Object(bool),
    Copy(u64, bool),
    Order(bool),
    Sync(bool),
}

fn pointer() -> impl Strategy<Value = u64> {
    prop_oneof![(0..12_u64).prop_map(|n| X + n * 64), (0..4_u64).prop_map(|n| X + 4096 + n * 64)]
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![Just(MemoryKind::Device), Just(MemoryKind::Pool)];
    prop_oneof![
        12 => (0..KERNELS, any::<bool>(), pointer(), pointer())
            .prop_map(|(kernel, stream, a, b)| Step::Launch { kernel, stream, pointers: [a, b] }),
        2 => (0..3_usize, kind).prop_map(|(root, kind)| Step::Malloc(root, kind)),
        1 => (0..3_usize).prop_map(Step::Free),
        3 => (0..4_u64, 1..3_u64).prop_map(|(place, size)| Step::Block { place: X + place * 64, size: size * 64 }),
        2 => (0..4_u64).prop_map(|place| Step::FreeBlock(X + place * 64)),
        1 => (0..4_u64).prop_map(|place| Step::Alias(X + place * 64)),
        1 => any::<bool>().prop_map(Step::Object),
        1 => (pointer(), any::<bool>()).prop_map(|(to, stream)| Step::Copy(to, stream)),
        2 => any::<bool>().prop_map(Step::Order),
        1 => any::<bool>().prop_map(Step::Sync),
    ]
}

/// Kernels of every kind: exact, bounded, with gaps, of unknown extent, over the end of an
/// allocation, in place.
fn kernels(p: &mut Program) -> [KernelId; KERNELS] {
    let gaps = Shape::Strided { lo: 0, width: 8, stride: 16, count: 4 };
    [
        p.kernel("copy", &[reads(0, Shape::Exact(0, 64)), writes(8, Shape::Exact(0, 64))]),
        p.kernel("part", &[reads(0, Shape::Exact(16, 48)), writes(8, Shape::Exact(0, 24))]),
        p.kernel("bound", &[reads(0, Shape::Bound(0, 100)), writes(8, Shape::Bound(8, 64))]),
        p.kernel("gaps", &[reads(0, gaps.clone()), writes(8, gaps)]),
        p.kernel("unknown", &[reads(0, Shape::Unknown), writes(8, Shape::Scattered)]),
        p.kernel("far", &[reads(0, Shape::Exact(0, 600)), atomics(8, Shape::Exact(0, 8))]),
        p.kernel("in_place", &[reads(8, Shape::Exact(0, 64)), reads(0, Shape::Object), writes(8, Shape::Exact(0, 64))]),
    ]
}

fn of(second: bool) -> StreamId {
    if second { B } else { A }
}

/// The findings of a program, and the number of launches that were replayed. `recorded`: the
/// program is read from a trace.
fn run(steps: &[Step], options: AnalysisOptions, recorded: bool) -> (String, u64) {
    let mut p = Program::with(options);
    if recorded {
        p.record_on();
    }
    let kernels = kernels(&mut p);
    p.malloc(ROOTS[0], SIZE);
    for step in steps {
        match *step {
            Step::Launch { kernel, stream, pointers } => p.launch(of(stream), kernels[kernel], &pointers),
            Step::Malloc(root, MemoryKind::Pool) => p.malloc_async(ROOTS[root], SIZE, A),
            Step::Malloc(root, _) => p.malloc(ROOTS[root], SIZE),
            Step::Free(root) => p.free(ROOTS[root], FreeKind::Async, A),
            Step::Block { place, size } => p.alloc(place, size, MemoryKind::Block),
            Step::FreeBlock(place) => p.free(place, FreeKind::Block, A),
            Step::Alias(place) => p.does("alias", Op::Alias { ptr: X + 4096, target: place, size: 64 }),
            Step::Object(live) => {
                let op = Op::ObjectCreate { object: X, region: Region::linear(X, 64), writable: true };
                p.does("object", if live { op } else { Op::ObjectDestroy { object: X } });
            }
            Step::Copy(to, stream) => p.copy(of(stream), to, PAGEABLE, 64, H2D),
            Step::Order(back) => p.order(of(back), of(!back)),
            Step::Sync(stream) => p.sync(of(stream)),
        }
    }
    if recorded {
        p.play();
    }
    let repeats = p.analysis.repeats();
    let outcome = p.outcome();
    (format!("{:#?} {:#?}", outcome.findings, outcome.coverage), repeats)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn replays_find_what_evaluations_find(steps in proptest::collection::vec(step(), 1..80), pedantic in any::<bool>()) {
        let options = AnalysisOptions { judging: Judging { pedantic, ..Default::default() }, ..Default::default() };
        let (again, _) = run(&steps, options, false);
        // With `settle` every launch is evaluated again.
        let (anew, none) = run(&steps, AnalysisOptions { settle: true, ..options }, false);
        prop_assert_eq!(&again, &anew);
        prop_assert_eq!(none, 0);
        // From a trace, where launches are prefetched.
        prop_assert_eq!(again, run(&steps, options, true).0);
    }
}

fn launch(stream: bool) -> Step {
    Step::Launch { kernel: 0, stream, pointers: [X, X + 64] }
}

fn repeats(steps: &[Step]) -> u64 {
    run(steps, AnalysisOptions::default(), false).1
}

#[test]
fn an_equal_launch_is_replayed() {
    assert_eq!(repeats(&[launch(false), launch(false), launch(true), Step::Sync(true), launch(false)]), 3);
    assert_eq!(repeats(&[launch(false), Step::Launch { kernel: 0, stream: false, pointers: [X, X + 128] }]), 0);
}

#[test]
fn a_block_that_returns_to_its_place_is_replayed() {
    let block = |place| Step::Block { place, size: 64 };
    let begin = [block(X), block(X + 64), launch(false)];
    let after = |steps: &[Step]| repeats(&[&begin, steps, &[launch(false)]].concat());
    assert_eq!(after(&[]), 1);
    assert_eq!(after(&[Step::FreeBlock(X + 64)]), 0, "it would not know whose memory it touches");
    assert_eq!(after(&[Step::FreeBlock(X + 64), block(X + 64)]), 1);
    assert_eq!(after(&[Step::FreeBlock(X + 64), Step::Block { place: X + 64, size: 128 }]), 0);
    assert_eq!(after(&[Step::FreeBlock(X + 128), block(X + 128)]), 1, "others may come and go");
    assert_eq!(after(&[Step::Malloc(0, MemoryKind::Device)]), 0, "all of it is other memory");
    assert_eq!(after(&[Step::Alias(X)]), 0);
    // A block over two mappings gets a new generation when it returns, but blocks elsewhere keep
    // theirs.
    let wide = [Step::Malloc(1, MemoryKind::Device), Step::Block { place: X + 192, size: 128 }];
    assert_eq!(after(&wide), 1);
    let to_wide = [Step::Launch { kernel: 0, stream: false, pointers: [X + 192; 2] }];
    let again = |steps: &[Step]| repeats(&[&wide, &to_wide[..], steps, &to_wide].concat());
    assert_eq!(again(&[]), 1);
    assert_eq!(again(&[Step::FreeBlock(X + 192), wide[1].clone()]), 0);
}
