//! Bulk and tensor copies, barrier objects and the fences of proxies: results at every time that
//! PTX leaves open, and what the detector of races says. Each kernel is a template with a racy and
//! a mended form.

use sim_races::{Grade, Race, Remedy};
use streamsan_sim::interp::exec::tensor::map::TensorMap;
use streamsan_sim::interp::{BulkTiming, FaultKind, Launch};

use crate::interp_support::{Arg, Gpu, compile};
use device_code::tensor_map::{Tensor, Tile};

use BulkTiming::{AtOnce, Late, Random};

/// The parameter says whether the kernel is mended.
const SOURCE: &str = include_str!("cuda/bulk.cu");

/// What a kernel leaves in its second argument, from the first one.
type Want = fn(&[i32]) -> Vec<i32>;

fn reversed(d: &[i32]) -> Vec<i32> {
    d[..128].chunks(64).flat_map(|block| block.iter().rev().copied()).collect()
}

fn plus_one(d: &[i32]) -> Vec<i32> {
    d[..128].iter().map(|value| value + 1).collect()
}

struct Case {
    name: &'static str,
    blocks: u32,
    threads: u32,
    want: Want,
    /// What the racy form has.
    racy: (Grade, Remedy),
    /// The race shows in the results if operations come late.
    shows: bool,
}

const fn case(name: &'static str, (blocks, threads): (u32, u32), want: Want, remedy: Remedy, shows: bool) -> Case {
    Case { name, blocks, threads, want, racy: (Grade::Certain, remedy), shows }
}

fn cases() -> Vec<Case> {
    use Remedy::{AwaitGroup, AwaitPhase, AwaitUsers, BlockBarrier, ProxyFence};
    let half = |d: &[i32]| d[..32].iter().rev().map(|value| value + 1).collect();
    let rings = |d: &[i32]| (0..64).map(|t| (0..6).map(|k| d[k * 64 + 63 - t] * (k as i32 + 1)).sum()).collect();
    let sums = |d: &[i32]| (0..64).map(|t| d[t] + 1 + d[64 + t] + 1).collect();
    let fives = |_: &[i32]| (0..128).map(|at| (63 - at % 64) * 5).collect();
    let over = |d: &[i32]| (0..64).map(|t| d[63 - t] + 3 * d[64 + t]).collect();
    vec![
        case("loads", (2, 64), reversed, AwaitPhase, true),
        case("parity", (2, 64), reversed, AwaitPhase, true),
        case("ring", (1, 96), rings, AwaitUsers, false),
        case("stores", (2, 64), plus_one, ProxyFence, false),
        case("stores_elsewhere", (2, 64), plus_one, ProxyFence, false),
        case("fence_of_other_memory", (2, 64), plus_one, ProxyFence, false),
        case("reuses", (2, 64), plus_one, AwaitGroup, true),
        case("groups", (2, 64), plus_one, AwaitGroup, true),
        case("stored_then_read", (2, 64), plus_one, AwaitGroup, false),
        case("adds", (2, 64), sums, ProxyFence, false),
        case("elected", (1, 64), half, BlockBarrier, false),
        case("elected_each", (1, 64), |d| d[..64].iter().rev().map(|value| value + 1).collect(), BlockBarrier, false),
        case("handed_back", (1, 96), rings, AwaitUsers, false),
        case("global_proxy", (2, 64), fives, ProxyFence, false),
        case("made_anew", (1, 32), |_| Vec::new(), AwaitPhase, false),
        case("overwrites", (1, 64), over, AwaitUsers, false),
        Case {
            racy: (Grade::Possible, ProxyFence),
            ..case("two_writes", (1, 64), |d| d[..64].iter().rev().copied().collect(), ProxyFence, false)
        },
    ]
}

const TIMES: [BulkTiming; 5] = [AtOnce, Late, Random(1), Random(2), Random(3)];

fn gpu() -> Gpu {
    Gpu::from_ptx(&crate::interp_support::ptx(SOURCE, "compute_90", &[]))
}

/// The same as machine code.
fn machine() -> Gpu {
    Gpu::from_cubin(compile(SOURCE, &["-cubin", "-arch=sm_90"], &[]))
}

/// The results and the races of a launch.
fn run(
    gpu: &Gpu,
    name: &str,
    shape: (u32, u32),
    bulk: BulkTiming,
    schedule: u64,
    detects: bool,
) -> (Vec<i32>, Vec<i32>, Vec<Race>) {
    let detector = detects.then(|| gpu.detect());
    let input: Vec<i32> = (0..4096).map(|at| at * 7 + 13).collect();
    let (data, out) = (gpu.buffer(&input), gpu.zeros::<i32>(4096));
    let args: [Arg; 2] = [(&data).into(), (&out).into()];
    let launch = Launch { grid: [shape.0, 1, 1], block: [shape.1, 1, 1], bulk, schedule, ..Launch::default() };
    gpu.launch_with(name, launch, &args);
    (input, out.read::<i32>(), detector.map(|detector| detector.races()).unwrap_or_default())
}

#[test]
fn waits_are_enough_at_every_time_and_missing_ones_show() {
    let mut wrong = Vec::new();
    for gpu in [gpu(), machine()] {
        let kind = if gpu.is_machine() { "machine code" } else { "PTX" };
        for case in cases() {
            let shape = (case.blocks, case.threads);
            for bulk in TIMES {
                for schedule in 0..4 {
                    let name = format!("{}_mended", case.name);
                    let (input, got, _) = run(&gpu, &name, shape, bulk, schedule, false);
                    let want = (case.want)(&input);
                    if got[..want.len()] != want {
                        let got = &got[..want.len()];
                        wrong.push(format!("{kind}, {name}, {bulk:?}, {schedule}: {got:?}, not {want:?}"));
                    }
                }
            }
            if case.shows {
                let (input, got, _) = run(&gpu, &format!("{}_racy", case.name), shape, Late, 0, false);
                let want = (case.want)(&input);
                if got[..want.len()] == want {
                    wrong.push(format!("{kind}, {} shows nothing", case.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn twins_are_told_apart_whatever_the_time() {
    let mut wrong = Vec::new();
    for gpu in [gpu(), machine()] {
        let kind = if gpu.is_machine() { "machine code" } else { "PTX" };
        for case in cases() {
            let shape = (case.blocks, case.threads);
            for (bulk, schedule) in [(AtOnce, 0), (Late, 0), (Late, 5), (Random(7), 3)] {
                let at = format!("{kind}, {}, {bulk:?}, {schedule}", case.name);
                let (_, _, races) = run(&gpu, &format!("{}_mended", case.name), shape, bulk, schedule, true);
                if !races.is_empty() {
                    wrong.push(format!("{at}, mended: {races:?}"));
                }
                let (_, _, races) = run(&gpu, &format!("{}_racy", case.name), shape, bulk, schedule, true);
                let got = races.first().map(|race| (race.grade, race.remedy));
                if got != Some(case.racy) {
                    wrong.push(format!("{at}, racy: {got:?}, not {:?}: {races:?}", case.racy));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn both_sides_of_a_missing_wait_have_their_lines() {
    let gpu = gpu();
    let (_, _, races) = run(&gpu, "loads_racy", (1, 64), AtOnce, 0, true);
    let lines = races[0].sides.map(|side| gpu.program.source(side.site).unwrap().1);
    let behind = SOURCE.lines().position(|line| line.ends_with("// behind")).unwrap() as u32 + 1;
    let load = SOURCE.lines().position(|line| line.contains("cp.async.bulk.shared::cluster.global.mbarrier")).unwrap()
        as u32
        + 1;
    assert_eq!(lines, [load, behind]);
    assert!(races[0].sides[0].asynchronous && !races[0].sides[1].asynchronous);
}

#[test]
fn forms_of_arrivals() {
    let (_, got, _) = run(&gpu(), "forms", (1, 1), AtOnce, 0, false);
    assert_eq!(got[..9], [4, 2, 0, 1, 0, 1, 3, 0, 1]);
}

#[test]
fn a_phase_that_never_ends_is_named() {
    let cases = [
        ("stuck_arrivals", [1, 2], 0, "1 of 2 arrivals are missing"),
        ("stuck_bytes", [0, 1], 256, "256 bytes that are expected do not come"),
        ("stuck_more", [0, 1], -128, "128 more bytes came than were expected"),
    ];
    let gpus = [gpu(), machine()];
    for (gpu, (name, arrivals, bytes, says)) in gpus.iter().flat_map(|gpu| cases.map(|case| (gpu, case))) {
        let data = gpu.zeros::<i32>(64);
        let launch = Launch { grid: [1; 3], block: [64, 1, 1], bulk: AtOnce, ..Launch::default() };
        let fault = gpu.try_launch(name, launch, &[(&data).into(), (&data).into()]).unwrap_err();
        assert!(
            matches!(fault.kind, FaultKind::Phase { arrivals: a, bytes: b, .. } if (a, b) == (arrivals, bytes)),
            "{fault}"
        );
        let line = SOURCE.lines().position(|line| line.contains("mbarrier.try_wait.parity")).unwrap() + 1;
        let text = fault.to_string();
        assert!(text.contains(says) && text.contains(&format!("a.cu:{line}")), "{text}");
    }
}

fn map(address: u64, sizes: [u64; 2], swizzle: u32) -> TensorMap {
    let tile = Tile { extent: [32, 8, 1, 1, 1], step: [1; 5] };
    let sizes = [sizes[0], sizes[1], 1, 1, 1];
    let tensor = Tensor { address, element: 4, sizes, strides: [sizes[0] * 4, 0, 0, 0], tile: Some(tile) };
    TensorMap { tensor, tile, image: None, kind: 3, rank: 2, swizzle }
}

#[test]
fn tiles_come_swizzled_and_end_with_the_tensor() {
    let input: Vec<i32> = (0..40 * 20).collect();
    let gpus = [gpu(), machine()];
    for (gpu, bulk) in gpus.iter().flat_map(|gpu| TIMES.map(|bulk| (gpu, bulk))) {
        for (x, y) in [(0, 0), (16, 4), (-8, -3), (36, 16)] {
            let detector = gpu.detect();
            let (from, to, f) = (gpu.buffer(&input), gpu.zeros::<i32>(40 * 20), gpu.zeros::<i32>(256));
            let maps = [map(from.address, [40, 20], 128), map(to.address, [40, 20], 128)];
            let [from, there] = maps.map(|map| Arg::Bytes(map.encode().to_vec()));
            let launch = Launch { grid: [1; 3], block: [64, 1, 1], bulk, ..Launch::default() };
            gpu.launch_with("tiles", launch, &[from, there, (&f).into(), x.into(), y.into()]);
            let value = |column: i32, row: i32| {
                let inside = (0..40).contains(&column) && (0..20).contains(&row);
                if inside { input[(row * 40 + column) as usize] } else { 0 }
            };
            let got = f.read::<i32>();
            for row in 0..8 {
                for column in 0..32 {
                    // Rows of 128 bytes: the unit of 16 bytes moves by the row.
                    let at = row * 32 + ((column / 4) ^ (row % 8)) * 4 + column % 4;
                    assert_eq!(got[at as usize], value(x + column, y + row), "{bulk:?} {x} {y}: {column} {row}");
                }
            }
            for (at, got) in to.read::<i32>().into_iter().enumerate() {
                let (column, row) = (at as i32 % 40, at as i32 / 40);
                let stored = x >= 0 && (x..x + 32).contains(&column) && (y..y + 8).contains(&row);
                assert_eq!(got, if stored { value(column, row) + 1 } else { 0 }, "{bulk:?} {x} {y}: {column} {row}");
            }
            assert_eq!(detector.races(), []);
        }
    }
}

#[test]
fn a_tile_goes_to_several_blocks() {
    let input: Vec<i32> = (0..40 * 20).collect();
    let gpus = [gpu(), machine()];
    for (gpu, bulk) in gpus.iter().flat_map(|gpu| TIMES.map(|bulk| (gpu, bulk))) {
        let detector = gpu.detect();
        let (from, f) = (gpu.buffer(&input), gpu.zeros::<i32>(4 * 256));
        let launch = Launch { grid: [4, 1, 1], block: [32, 1, 1], bulk, ..Launch::default() };
        let map = Arg::Bytes(map(from.address, [40, 20], 0).encode().to_vec());
        gpu.launch_with("tile_for_both", launch, &[map, (&f).into()]);
        for (at, got) in f.read::<i32>().into_iter().enumerate() {
            assert_eq!(got, (at / 32 % 8 * 40 + at % 32) as i32, "{bulk:?} {at}");
        }
        assert_eq!(detector.races(), []);
    }
}
