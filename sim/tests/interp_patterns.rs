//! Irregular code on graphs, as public suites of races have it, generated: a pattern, how vertices
//! are given to threads, the direction, whether threads take several vertices, the type of the
//! data, and the bug. A member without a bug must stay silent, one with a bug must be found, as PTX
//! and as machine code.

use std::fmt::Write;

use sim_races::Grade;
use streamsan_sim::interp::Launch;

use crate::interp_support::{Arg, Gpu};

/// `PATTERN_SCHEDULE_DIRECTION_PERSISTENT_TYPE_BUG` are the parameters of `member`.
const TEMPLATES: &str = r#"
enum { PUSH, PULL, VERTICES, EDGES, WORKLIST, PATHS };
enum { THREAD, WARP, BLOCK };
enum { CLEAN, PLAIN, SYNC, GUARD, SCOPE };
#define D __device__ __forceinline__
typedef unsigned long long u64;

template <int BUG, class T> D T add(T* p, T x) {
    if (BUG == PLAIN) { T old = *p; *p = old + x; return old; }
    if (BUG == GUARD && *p > (T)1000000) return 0;
    return BUG == SCOPE ? atomicAdd_block(p, x) : atomicAdd(p, x);
}
template <int BUG, class T> D void raise(T* p, T x) {
    if (BUG == PLAIN) { if (*p < x) *p = x; return; }
    if (BUG == GUARD && *p >= x) return;
    if (BUG == SCOPE) atomicMax_block(p, x); else atomicMax(p, x);
}
// The sum over the threads that share a vertex; the first of them has it.
template <int SCHEDULE, int BUG, class T> D T sum(T x, T* shared) {
    int t = threadIdx.x;
    if (SCHEDULE == WARP) for (int o = 16; o; o /= 2) x += __shfl_down_sync(~0u, x, o);
    if (SCHEDULE != BLOCK) return x;
    __syncthreads();
    shared[t] = x;
    if (BUG != SYNC) __syncthreads();
    for (int o = blockDim.x / 2; o; o /= 2) { if (t < o) shared[t] += shared[t + o]; __syncthreads(); }
    return shared[0];
}
D int load(int* p) { return atomicAdd(p, 0); }
// Halves the paths on the way to the root.
template <int BUG> D int root(int* parent, int v) {
    int up = BUG == PLAIN ? parent[v] : load(parent + v);
    while (up != v) {
        int next = BUG == PLAIN ? parent[up] : load(parent + up);
        if (BUG == PLAIN) parent[v] = next; else atomicCAS(parent + v, up, next);
        v = up;
        up = next;
    }
    return v;
}
template <int PATTERN, int SCHEDULE, bool REVERSE, bool PERSISTENT, class T, int BUG>
D void member(const int* index, const int* list, T* in, T* out, int* parent, int n) {
    __shared__ T shared[64];
    int t = threadIdx.x, g = blockIdx.x * blockDim.x + t;
    int unit = SCHEDULE == THREAD ? g : SCHEDULE == WARP ? g / 32 : blockIdx.x;
    int units = SCHEDULE == THREAD ? gridDim.x * blockDim.x : SCHEDULE == WARP ? gridDim.x * blockDim.x / 32 : gridDim.x;
    int lane = SCHEDULE == THREAD ? 0 : SCHEDULE == WARP ? t % 32 : t;
    int step = SCHEDULE == THREAD ? 1 : SCHEDULE == WARP ? 32 : blockDim.x;
    for (int v = unit; v < n; v += PERSISTENT ? units : n) {
        int first = index[v], count = index[v + 1] - first;
        T mine = 0;
        for (int k = lane; k < count; k += step) {
            int to = list[REVERSE ? first + count - 1 - k : first + k];
            if (PATTERN == PUSH) raise<BUG>(out + to, in[v] + (T)v);
            if (PATTERN == PULL) mine += (BUG == PLAIN ? out : in)[to];
            if (PATTERN == EDGES) mine += v < to ? (T)1 : (T)2;
            if (PATTERN == VERTICES) mine = mine > in[to] ? mine : in[to];
            if (PATTERN == WORKLIST && to > v) { T at = add<BUG>(out, (T)1); if (at < (T)8000) out[16 + (int)at] = v; }
            if (PATTERN == PATHS) {
                for (int a = root<BUG>(parent, v), b = root<BUG>(parent, to); a != b;) {
                    int high = a > b ? a : b, low = a > b ? b : a;
                    int seen = atomicCAS(parent + high, high, low);
                    if (seen == high) break;
                    a = seen, b = low;
                }
            }
        }
        if (PATTERN == PULL) { T all = sum<SCHEDULE, BUG>(mine, shared); if (lane == 0) out[v] = all; }
        if (PATTERN == EDGES) { T all = sum<SCHEDULE, BUG>(mine, shared); if (lane == 0) add<BUG>(out, all); }
        if (PATTERN == VERTICES && mine > (T)v) add<BUG>(out, (T)1);
    }
}
"#;

const PATTERNS: [&str; 6] = ["PUSH", "PULL", "VERTICES", "EDGES", "WORKLIST", "PATHS"];
const SCHEDULES: [&str; 3] = ["THREAD", "WARP", "BLOCK"];
const TYPES: [&str; 2] = ["int", "u64"];

/// The bugs that a pattern can have, and none.
fn bugs(pattern: &str, schedule: &str) -> &'static [&'static str] {
    match (pattern, schedule) {
        ("PULL", "BLOCK") => &["CLEAN", "PLAIN", "SYNC"],
        ("PULL" | "PATHS", _) => &["CLEAN", "PLAIN"],
        ("EDGES", "BLOCK") => &["CLEAN", "PLAIN", "SYNC", "GUARD", "SCOPE"],
        _ => &["CLEAN", "PLAIN", "GUARD", "SCOPE"],
    }
}

struct Member {
    name: String,
    schedule: &'static str,
    persistent: bool,
    wide: bool,
    clean: bool,
}

const VERTICES: usize = 96;
const DEGREE: usize = 40;

fn generate() -> (String, Vec<Member>) {
    let (mut source, mut members) = (TEMPLATES.to_owned(), Vec::new());
    for pattern in PATTERNS {
        for schedule in SCHEDULES {
            for (reverse, persistent, ty) in (0..8).map(|bits| (bits & 1 != 0, bits & 2 != 0, TYPES[bits >> 2])) {
                for bug in bugs(pattern, schedule) {
                    let name = format!(
                        "{pattern}_{schedule}_{}_{}_{ty}_{bug}",
                        if reverse { "reverse" } else { "forward" },
                        if persistent { "persistent" } else { "once" }
                    );
                    writeln!(
                        source,
                        "extern \"C\" __global__ void {name}(const int* index, const int* list, {ty}* in, {ty}* out, \
                         int* parent, int n) {{ member<{pattern}, {schedule}, {reverse}, {persistent}, {ty}, {bug}>(\
                         index, list, in, out, parent, n); }}"
                    )
                    .unwrap();
                    members.push(Member { name, schedule, persistent, wide: ty == "u64", clean: *bug == "CLEAN" });
                }
            }
        }
    }
    (source, members)
}

/// What is wrong with a verdict.
fn judge(gpu: &Gpu, member: &Member) -> Option<String> {
    let index: Vec<i32> = (0..=VERTICES).map(|v| (v * DEGREE) as i32).collect();
    let list: Vec<i32> =
        (0..VERTICES * DEGREE).map(|e| ((e / DEGREE + 1 + e % DEGREE * 7) % VERTICES) as i32).collect();
    let (index, list) = (gpu.buffer(&index), gpu.buffer(&list));
    let parent = gpu.buffer(&(0..VERTICES as i32).collect::<Vec<_>>());
    let data: Vec<i64> = (0..1 << 14).map(|at| at * 11 % 101).collect();
    let narrow: Vec<i32> = data.iter().map(|&at| at as i32).collect();
    let input = if member.wide { gpu.buffer(&data) } else { gpu.buffer(&narrow) };
    let ones = |n: i64| (0..1 << 14).map(|at| i64::from(at != 0) * n).collect::<Vec<i64>>();
    let output = if member.wide { gpu.buffer(&ones(1)) } else { gpu.buffer(&ones(1 << 32 | 1)) };
    let blocks = match (member.persistent, member.schedule) {
        (false, "WARP") => VERTICES.div_ceil(2) as u32,
        (false, "BLOCK") => VERTICES as u32,
        _ => 2,
    };
    let detector = gpu.detect();
    let args: [Arg; 6] = [
        (&index).into(),
        (&list).into(),
        (&input).into(),
        (&output).into(),
        (&parent).into(),
        (VERTICES as i32).into(),
    ];
    gpu.launch_with(&member.name, Launch { grid: [blocks, 1, 1], block: [64, 1, 1], ..Launch::default() }, &args);
    let races = detector.races();
    let right = if member.clean { races.is_empty() } else { races.first().is_some_and(|r| r.grade >= Grade::Likely) };
    (!right).then(|| format!("{}: {:?}", member.name, races.first()))
}

fn all_are_judged(code: &str, make: fn(&str) -> Gpu) {
    let (source, members) = generate();
    let (racy, clean) = (members.iter().filter(|m| !m.clean).count(), members.iter().filter(|m| m.clean).count());
    assert_eq!((racy, clean), (352, 144));
    let gpu = make(&source);
    let wrong: Vec<String> = members.iter().filter_map(|member| judge(&gpu, member)).collect();
    assert!(wrong.is_empty(), "{code}: {} of {} wrong:\n{}", wrong.len(), members.len(), wrong.join("\n"));
}

#[test]
fn members_of_ptx() {
    all_are_judged("PTX", Gpu::new);
}

#[test]
fn members_of_machine_code() {
    all_are_judged("machine code", |source| Gpu::machine(source, &[]));
}
