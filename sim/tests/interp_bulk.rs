//! Bulk and tensor copies, barrier objects and the fences of proxies: results at every time that
//! PTX leaves open, and what the detector of races says. Each kernel is a template with a racy and
//! a mended form.

use sim_races::{Grade, Race, Remedy};
use streamsan_sim::interp::exec::tensor::map::TensorMap;
use streamsan_sim::interp::{BulkTiming, FaultKind, Launch};

use crate::interp_support::{Arg, Gpu};
use device_code::tensor_map::{Tensor, Tile};

use BulkTiming::{AtOnce, Late, Random};

/// The parameter says whether the kernel is mended.
const SOURCE: &str = r#"
#define T (int)threadIdx.x
#define N (int)blockDim.x
#define B (int)blockIdx.x
#define G (B * N + T)
typedef unsigned long long u64;
#define DEV __device__ __forceinline__
DEV unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
DEV void init(u64* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
DEV void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEV void expect(u64* b, int n) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
DEV void arrive(u64* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(b)) : "memory"); }
DEV void wait(u64* b, int parity) {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra D; bra W; D: }" :: "r"(at(b)), "r"(parity) : "memory");
}
DEV void poll(u64* b, int parity) {
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%0], %1; }" :: "r"(at(b)), "r"(parity) : "memory");
}
DEV void load(void* s, const void* g, int n, u64* b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(at(s)), "l"(g), "r"(n), "r"(at(b)) : "memory");
}
DEV void store(void* g, const void* s, int n) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(g), "r"(at(s)), "r"(n) : "memory");
}
DEV void add(void* g, const void* s, int n) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;" :: "l"(g), "r"(at(s)), "r"(n) : "memory");
}
DEV void commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int K> DEV void wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" :: "n"(K) : "memory"); }
template <int K> DEV void wait_all() { asm volatile("cp.async.bulk.wait_group %0;" :: "n"(K) : "memory"); }
DEV void fence_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
DEV void fence_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }

// Only the thread that loads waits.
template <bool M> DEV void loads(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    __shared__ u64 bar;
    if (T == 0) { init(&bar, 1); fence_init(); }
    __syncthreads();
    if (T == 0) { expect(&bar, 256); load(s, d + B * 64, 256, &bar); }
    if (M || T == 0) wait(&bar, 0);
    f[G] = s[63 - T]; // behind
}
// A wait for the phase before.
template <bool M> DEV void parity(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    __shared__ u64 bar;
    if (T == 0) { init(&bar, 1); expect(&bar, 256); load(s, d + B * 64, 256, &bar); }
    __syncthreads();
    if (M) wait(&bar, 0); else poll(&bar, 1);
    f[G] = s[63 - T];
}
// Two stages: a lane of warp 0 fills them, two warps use them.
template <bool M> DEV void ring(int* d, int* f) {
    __shared__ __align__(16) int s[2][64];
    __shared__ u64 full[2], empty[2];
    if (T == 0) { for (int i = 0; i < 2; i++) { init(&full[i], 1); init(&empty[i], 64); } fence_init(); }
    __syncthreads();
    if (T == 0) {
        for (int k = 0; k < 6; k++) {
            if (k >= 2) wait(&empty[k & 1], (k / 2 - 1) & 1);
            expect(&full[k & 1], 256);
            load(s[k & 1], d + k * 64, 256, &full[k & 1]);
        }
    } else if (T >= 32) {
        int sum = 0, t = T - 32;
        for (int k = 0; k < 6; k++) {
            wait(&full[k & 1], k / 2 & 1);
            if (!M) arrive(&empty[k & 1]);
            sum += s[k & 1][63 - t] * (k + 1);
            if (M) arrive(&empty[k & 1]);
        }
        f[t] = sum;
    }
}
template <bool M> DEV void stores(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    s[T] = d[G] + 1;
    if (M) fence_shared();
    __syncthreads();
    if (T == 0) { store(f + B * 64, s, 256); commit(); wait_read<0>(); }
}
// The fence by the thread that stores, behind the barrier, is enough.
template <bool M> DEV void stores_elsewhere(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    s[T] = d[G] + 1;
    __syncthreads();
    if (T == 0) { if (M) fence_shared(); store(f + B * 64, s, 256); commit(); wait_read<0>(); }
}
// A fence of global memory is none of shared memory.
template <bool M> DEV void fence_of_other_memory(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    s[T] = d[G] + 1;
    if (M) fence_shared(); else fence_global();
    __syncthreads();
    if (T == 0) { store(f + B * 64, s, 256); commit(); wait_read<0>(); }
}
template <bool M> DEV void reuses(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    s[T] = d[G] + 1;
    fence_shared();
    __syncthreads();
    if (T == 0) { store(f + B * 64, s, 256); commit(); if (M) wait_read<0>(); }
    __syncthreads();
    s[T] = -1;
}
// Two groups, of which the first is waited for.
template <bool M> DEV void groups(int* d, int* f) {
    __shared__ __align__(16) int s[2][32];
    s[T / 32][T % 32] = d[G] + 1;
    fence_shared();
    __syncthreads();
    if (T == 0) {
        store(f + B * 64, s[0], 128); commit();
        store(f + B * 64 + 32, s[1], 128); commit();
        wait_read<1>();
        for (int i = 0; i < 32; i++) s[M ? 0 : 1][i] = -1;
    }
}
// What was stored is read back by another thread.
template <bool M> DEV void stored_then_read(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    s[T] = d[G] + 1;
    fence_shared();
    __syncthreads();
    if (T == 0) { store(f + B * 64, s, 256); commit(); if (M) wait_all<0>(); else wait_read<0>(); }
    __syncthreads();
    f[1024 + G] = f[B * 64 + 63 - T];
}
template <bool M> DEV void adds(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    s[T] = d[G] + 1;
    if (M) fence_shared();
    __syncthreads();
    if (T == 0) { add(f, s, 256); commit(); wait_all<0>(); }
}
// An elected lane arrives for 32 writers.
template <bool M> DEV void elected(int* d, int* f) {
    __shared__ int s[32];
    __shared__ u64 bar;
    if (T == 0) init(&bar, 1);
    __syncthreads();
    if (T < 32) {
        s[T] = d[T] + 1;
        if (M) __syncwarp();
        if (T == 0) arrive(&bar);
    } else {
        wait(&bar, 0);
        f[T - 32] = s[63 - T];
    }
}
template <bool M> DEV void global_proxy(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    __shared__ u64 bar;
    if (T == 0) init(&bar, 1);
    d[G] = T * 5;
    if (M) fence_global();
    __syncthreads();
    if (T == 0) { expect(&bar, 256); load(s, d + B * 64, 256, &bar); }
    wait(&bar, 0);
    f[G] = s[63 - T];
}
// The barrier is made anew while a load reports to it.
template <bool M> DEV void made_anew(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    __shared__ u64 bar;
    if (T == 0) {
        init(&bar, 1); expect(&bar, 256); load(s, d, 256, &bar);
        if (M) wait(&bar, 0);
        init(&bar, 1);
    }
}
// A load into memory that threads still read.
template <bool M> DEV void overwrites(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    __shared__ u64 bar, again;
    if (T == 0) { init(&bar, 1); init(&again, 1); expect(&bar, 256); load(s, d, 256, &bar); }
    __syncthreads();
    wait(&bar, 0);
    int sum = s[63 - T];
    if (M) __syncthreads();
    if (T == 0) { expect(&again, 256); load(s, d + 64, 256, &again); }
    wait(&again, 0);
    f[T] = sum + 3 * s[T];
}
// Nothing but the fence is missing between two writes.
template <bool M> DEV void two_writes(int* d, int* f) {
    __shared__ __align__(16) int s[64];
    __shared__ u64 bar;
    if (T == 0) init(&bar, 1);
    s[T] = 7;
    if (M) fence_shared();
    __syncthreads();
    if (T == 0) { expect(&bar, 256); load(s, d, 256, &bar); }
    wait(&bar, 0);
    f[T] = s[63 - T];
}

#define TWINS(k) \
    extern "C" __global__ void k##_racy(int* d, int* f) { k<false>(d, f); } \
    extern "C" __global__ void k##_mended(int* d, int* f) { k<true>(d, f); }
TWINS(loads) TWINS(parity) TWINS(ring) TWINS(stores) TWINS(stores_elsewhere) TWINS(fence_of_other_memory)
TWINS(reuses) TWINS(groups) TWINS(stored_then_read) TWINS(adds) TWINS(elected) TWINS(global_proxy)
TWINS(made_anew) TWINS(overwrites) TWINS(two_writes)

// Forms of arrivals, and what their states say.
extern "C" __global__ void forms(int* d, int* f) {
    __shared__ u64 bar;
    u64 state; int count, done;
    auto pending = [&] { asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(state)); return count; };
    auto tested = [&] { asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(at(&bar)), "l"(state) : "memory"); return done; };
    init(&bar, 4);
    asm volatile("mbarrier.arrive.noComplete.shared::cta.b64 %0, [%1], 2;" : "=l"(state) : "r"(at(&bar)) : "memory");
    f[0] = pending();
    asm volatile("mbarrier.arrive_drop.noComplete.shared::cta.b64 %0, [%1], 1;" : "=l"(state) : "r"(at(&bar)) : "memory");
    f[1] = pending(); f[2] = tested();
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 32;" :: "r"(at(&bar)) : "memory");
    asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(at(&bar)) : "memory");
    f[3] = pending(); f[4] = tested();
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 32;" :: "r"(at(&bar)) : "memory");
    f[5] = tested();
    // Three are left in the next phase.
    asm volatile("mbarrier.arrive_drop.expect_tx.shared::cta.b64 %0, [%1], 16;" : "=l"(state) : "r"(at(&bar)) : "memory");
    f[6] = pending();
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], 2;" : "=l"(state) : "r"(at(&bar)) : "memory");
    f[7] = tested();
    asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], 16;" :: "r"(at(&bar)) : "memory") ;
    f[8] = tested();
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at(&bar)) : "memory");
}

// Phases that never end.
template <int W> DEV void stuck(int* d) {
    __shared__ __align__(16) int s[64];
    __shared__ u64 bar;
    if (T == 0) {
        init(&bar, W == 0 ? 2 : 1);
        expect(&bar, W == 1 ? 512 : W == 2 ? 128 : 256);
        load(s, d, 256, &bar);
    }
    __syncthreads();
    wait(&bar, 0);
}
extern "C" __global__ void stuck_arrivals(int* d, int* f) { stuck<0>(d); }
extern "C" __global__ void stuck_bytes(int* d, int* f) { stuck<1>(d); }
extern "C" __global__ void stuck_more(int* d, int* f) { stuck<2>(d); }

// A tile of a tensor, swizzled, and back to another tensor.
struct __align__(64) Map { char bytes[128]; };
extern "C" __global__ void tiles(const __grid_constant__ Map from, const __grid_constant__ Map to, int* f, int x, int y) {
    __shared__ __align__(1024) int s[8 * 32];
    __shared__ u64 bar;
    if (T == 0) {
        init(&bar, 1);
        expect(&bar, 1024);
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
            :: "r"(at(s)), "l"(&from), "r"(x), "r"(y), "r"(at(&bar)) : "memory");
    }
    __syncthreads();
    wait(&bar, 0);
    for (int i = T; i < 256; i += N) { f[i] = s[i]; s[i] += 1; }
    fence_shared();
    __syncthreads();
    if (T == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" :: "l"(&to), "r"(x), "r"(y), "r"(at(s)) : "memory");
        commit(); wait_all<0>();
    }
}
// A tile for both blocks of a cluster, each of which tells its own barrier.
extern "C" __global__ void __cluster_dims__(2, 1, 1) tile_for_both(const __grid_constant__ Map from, int* f) {
    __shared__ __align__(1024) int s[8 * 32];
    __shared__ u64 bar;
    if (T == 0) { init(&bar, 1); fence_init(); expect(&bar, 1024); }
    asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (T == 0 && B % 2 == 0)
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;"
            :: "r"(at(s)), "l"(&from), "r"(0), "r"(0), "r"(at(&bar)), "h"((short)3) : "memory");
    wait(&bar, 0);
    for (int i = T; i < 256; i += N) f[B * 256 + i] = s[i];
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}
"#;

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
    // Machine code has other instructions for all of this, which are not executed yet.
    Gpu::from_ptx(&crate::interp_support::ptx(SOURCE, "compute_90", &[]))
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
    let gpu = gpu();
    let mut wrong = Vec::new();
    for case in cases() {
        let shape = (case.blocks, case.threads);
        for bulk in TIMES {
            for schedule in 0..4 {
                let name = format!("{}_mended", case.name);
                let (input, got, _) = run(&gpu, &name, shape, bulk, schedule, false);
                let want = (case.want)(&input);
                if got[..want.len()] != want {
                    wrong.push(format!("{name}, {bulk:?}, {schedule}: {:?}, not {want:?}", &got[..want.len()]));
                }
            }
        }
        if case.shows {
            let (input, got, _) = run(&gpu, &format!("{}_racy", case.name), shape, Late, 0, false);
            let want = (case.want)(&input);
            if got[..want.len()] == want {
                wrong.push(format!("{} shows nothing", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn twins_are_told_apart_whatever_the_time() {
    let gpu = gpu();
    let mut wrong = Vec::new();
    for case in cases() {
        let shape = (case.blocks, case.threads);
        for (bulk, schedule) in [(AtOnce, 0), (Late, 0), (Late, 5), (Random(7), 3)] {
            let (_, _, races) = run(&gpu, &format!("{}_mended", case.name), shape, bulk, schedule, true);
            if !races.is_empty() {
                wrong.push(format!("{}_mended, {bulk:?}, {schedule}: {races:?}", case.name));
            }
            let (_, _, races) = run(&gpu, &format!("{}_racy", case.name), shape, bulk, schedule, true);
            let got = races.first().map(|race| (race.grade, race.remedy));
            if got != Some(case.racy) {
                wrong
                    .push(format!("{}_racy, {bulk:?}, {schedule}: {got:?}, not {:?}: {races:?}", case.name, case.racy));
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
    let gpu = gpu();
    let cases = [
        ("stuck_arrivals", [1, 2], 0, "1 of 2 arrivals are missing"),
        ("stuck_bytes", [0, 1], 256, "256 bytes that are expected do not come"),
        ("stuck_more", [0, 1], -128, "128 more bytes came than were expected"),
    ];
    for (name, arrivals, bytes, says) in cases {
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
    TensorMap { tensor, tile, kind: 3, rank: 2, swizzle }
}

#[test]
fn tiles_come_swizzled_and_end_with_the_tensor() {
    let gpu = gpu();
    let input: Vec<i32> = (0..40 * 20).collect();
    for bulk in TIMES {
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
                let stored = (x..x + 32).contains(&column) && (y..y + 8).contains(&row);
                assert_eq!(got, if stored { value(column, row) + 1 } else { 0 }, "{bulk:?} {x} {y}: {column} {row}");
            }
            assert_eq!(detector.races(), []);
        }
    }
}

#[test]
fn a_tile_goes_to_several_blocks() {
    let gpu = gpu();
    let input: Vec<i32> = (0..40 * 20).collect();
    for bulk in TIMES {
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
