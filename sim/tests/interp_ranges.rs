//! Compares byte-range summaries with the truth. Generated kernels run in the interpreter, for the
//! PTX and for the machine code of the same source: every address that they touch must lie in what
//! `kernels::Summary::evaluate` predicts, and every byte that a summary calls exact must be
//! touched.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

use crate::interp_support::{Gpu, Seen, compile, ptx};
use device_code::arch::Arch;
use kernels::{AccessKind, Base, CodeImage, Extent, KernelAccess, LaunchArgs, Summary};
use streamsan_sim::interp;

/// Elements on each side of where a pointer argument points to.
const SIDE: i64 = 20_000;

struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % below
    }
    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.next(list.len() as u64) as usize]
    }
}

/// An index expression and a bound of its magnitude.
fn expression(r: &mut Random, depth: u32) -> (String, i64) {
    if depth == 0 || r.next(4) == 0 {
        return match r.next(8) {
            0 => ("i".into(), 400),
            1 => ("(int)threadIdx.x".into(), 100),
            2 => ("(int)blockIdx.x".into(), 4),
            3 => ("j".into(), 8),
            4 => ("n".into(), 300),
            5 => ("(int)blockDim.x".into(), 100),
            6 => ("(int)(threadIdx.x & 31)".into(), 31),
            _ => {
                let c = r.next(40);
                (c.to_string(), c as i64)
            }
        };
    }
    let (a, x) = expression(r, depth - 1);
    let (b, y) = expression(r, depth - 1);
    let c = 1 + r.next(9) as i64;
    let s = r.next(4);
    let (text, bound) = match r.next(17) {
        0 | 1 => (format!("({a} + {b})"), x + y),
        2 => (format!("({a} - {b})"), x + y),
        3 | 4 => (format!("({a} * {c})"), x * c),
        5 => (format!("({a} / {c})"), x),
        6 => (format!("({a} % {c})"), c),
        7 => (format!("({a} << {s})"), x << s),
        8 => (format!("({a} >> {s})"), x),
        9 => (format!("({a} & {})", (1 << (s + 3)) - 1), 1 << (s + 3)),
        10 => (format!("({a} ^ {c})"), x + 16),
        11 => (format!("min({a}, {b})"), x.max(y)),
        12 => (format!("max({a}, {b})"), x.max(y)),
        13 => (format!("({a} < {b} ? {a} : {b} + {c})"), x.max(y + c)),
        14 => (format!("(int)(short)({a})"), x.min(32768)),
        15 => (format!("(int)(unsigned char)({a})"), 255),
        _ => (format!("(int)((unsigned)({a} & 1023) / {c}u)"), 1023),
    };
    if bound > 4000 { (format!("({text} & 2047)"), 2047) } else { (text, bound) }
}

fn condition(r: &mut Random) -> String {
    let (a, _) = expression(r, 1);
    let (b, _) = expression(r, 1);
    let op = r.pick(&["<", "<=", ">", ">=", "==", "!="]);
    match r.next(5) {
        0 => "i < n".into(),
        1 => format!("i < n && {a} {op} {b}"),
        2 => format!("i >= 1 && i < n - 1 || {a} {op} {b}"),
        3 => format!("{a} {op} {b}"),
        _ => format!("threadIdx.x {op} {}", r.next(70)),
    }
}

fn statement(r: &mut Random, depth: u32) -> String {
    let (e, _) = expression(r, 3);
    let (g, _) = expression(r, 2);
    let array = r.pick(&["a", "b", "c", "p.x", "p.y"]);
    let other = r.pick(&["a", "b", "c", "p.x", "p.y"]);
    match r.next(if depth == 0 { 8 } else { 14 }) {
        0 | 1 => format!("{array}[{e}] = {other}[{g}] + 1;"),
        2 => format!("sum += {array}[{e}];"),
        3 => format!("atomicAdd({array} + ({e}), 1);"),
        4 => format!("{array}[(long long){e} + m] = {};", r.next(9)),
        5 => format!("d[{e}] = {g};"),
        6 => format!("((short*){array})[{e}] = {g};"),
        7 => format!("{{ int4 v = ((int4*){array})[{g}]; sum += v.x + v.y + v.z + v.w; }}"),
        8 | 9 => format!("if ({}) {{ {} }}", condition(r), statement(r, depth - 1)),
        10 => format!("if ({}) {{ {} }} else {{ {} }}", condition(r), statement(r, depth - 1), statement(r, depth - 1)),
        11 => format!("for (int j = 0; j < {}; j++) {{ {} }}", 1 + r.next(8), statement(r, depth - 1)),
        12 => format!("for (int j = threadIdx.x & 7; j < 8; j += {}) {{ {} }}", 1 + r.next(3), statement(r, depth - 1)),
        _ => format!("store({array}, {e}, {g});"),
    }
}

fn random_kernel(r: &mut Random, name: &str) -> String {
    let mut body = String::new();
    if r.next(4) == 0 {
        write!(body, "if (!({})) return; ", condition(r)).unwrap();
    }
    for _ in 0..1 + r.next(3) {
        write!(body, "{} ", statement(r, 2)).unwrap();
    }
    format!(
        "extern \"C\" __global__ void {name}(int* a, int* b, int* c, double* d, P p, int n, long long m) {{
            int i = blockIdx.x * blockDim.x + threadIdx.x; int j = 3; int sum = 0;
            {body} if (sum == 123456789) a[0] = sum; }}\n"
    )
}

/// Kernels of shapes that matter, by hand; all with the same parameters.
const SHAPES: &[&str] = &[
    "if (i < n) a[i] = b[i];",
    "for (int k = i; k < n; k += gridDim.x * blockDim.x) a[k] = b[k] + c[n - 1 - k];",
    "if (i > 0 && i < n - 1) a[i] = b[i - 1] + b[i + 1];",
    "int y = blockIdx.y * blockDim.y + threadIdx.y; if (i < n && y < 7) a[y * 320 + i] = b[i * 8 + y];",
    "p.t[i % 3][i] = i;",
    "int* q[3] = {a, b, c}; q[i % 3][i] = 1;",
    "int* q = i & 1 ? a : b; q[i] = 1;",
    "switch (i & 3) { case 0: a[i] = 1; break; case 1: b[i] = 2; break; case 2: c[i] = 3; break; default: p.x[i] = 4; }",
    "switch (n % 7) { case 0: a[i] = 1; break; case 1: b[i] = 2; break; case 2: c[i] = 3; break; case 3: p.x[i] = 4; break;
        case 4: a[i + 1] = 2; break; case 5: b[i + 3] = 1; break; case 6: p.y[i] = 9; break; }",
    "__shared__ int s[128]; s[threadIdx.x & 127] = b[i] & 255; __syncthreads(); a[s[(threadIdx.x + 1) & 127]] = 1;",
    "a[b[i] & 1023] = 1;",
    "int v = b[i]; for (int o = 16; o; o >>= 1) v += __shfl_xor_sync(__activemask(), v, o); if ((threadIdx.x & 31) == 0) a[i >> 5] = v;",
    "if (threadIdx.x == 0) atomicAdd(&counter, 1); table[i & 63] = lookup[n & 7];",
    "for (int k = 1; k < n; k *= 2) a[k + i] = k;",
    "for (int k = 0; k < (i & 7); k++) a[i * 8 + k] = b[k * 8];",
    "unsigned u = i; a[u / 10u * 3 + u % 10u] = b[u / (unsigned)(n | 1)];",
    "chain(a, b, i, n);",
    "P q = p; q.x += i; q.x[n] = 1; *q.y = 2;",
    "const float4* f = (const float4*)b; float4 v = f[i]; ((float2*)a)[i] = make_float2(v.x + v.y, v.z + v.w);",
    "((char*)a)[i * 3 + 1] = ((unsigned char*)b)[i]; d[i] = (double)((short*)c)[i];",
    "a[m + i] = 1; b[m * 2 - i] = 2; if (m > i) c[m - i] = 3;",
    "if (i >= n) return; if (i % 2) { a[i] = 1; } else { b[i] = 1; }",
    "int k = 0; while (true) { if (k >= 5) break; a[i + k * 16] = 1; if (b[i + k] == 77) return; k++; }",
    "a[__popc(i)] = 1; b[__clz(i)] = 1; c[__ffs(i) + 32] = 1;",
    "atomicCAS(a + i, 0, 1); atomicMax(b + i % 4, i); atomicExch(c, i);",
    "short h = (short)(i * 3); unsigned short w = (unsigned short)(i - 5); a[h] = 1; b[w & 4095] = 2;",
    "asm volatile(\"st.global.u32 [%0], %1;\" :: \"l\"(a + i), \"r\"(n));",
    "int k = n > 100 ? i : i * 2; for (int t = k; t < k + 3; ++t) a[t] += b[t - 1];",
    "recurse(a, i & 7);",
];

const PRELUDE: &str = "
    struct P { int* x; int* y; int* t[3]; };
    __device__ int counter; __device__ int table[64]; __constant__ int lookup[8];
    __device__ __noinline__ void store(int* q, int at, int v) { q[at] = v; }
    __device__ __noinline__ int load(const int* q, int at) { return q[at]; }
    __device__ __noinline__ void chain(int* q, const int* s, int at, int n) { if (at < n) store(q, at * 2, load(s, at + 1)); }
    __device__ __noinline__ void recurse(int* q, int at) { if (at > 0) { q[at] = 1; recurse(q, at - 1); } }
    ";

fn source(seed: u64, count: usize) -> (String, Vec<String>) {
    let mut r = Random(seed);
    let mut text = PRELUDE.to_owned();
    let mut names = Vec::new();
    if seed == 0 {
        for (at, body) in SHAPES.iter().enumerate() {
            let name = format!("shape{at}");
            write!(
                text,
                "extern \"C\" __global__ void {name}(int* a, int* b, int* c, double* d, P p, int n, long long m) {{
                int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}\n"
            )
            .unwrap();
            names.push(name);
        }
    }
    for at in 0..count {
        let name = format!("random{seed}_{at}");
        text += &random_kernel(&mut r, &name);
        names.push(name);
    }
    (text, names)
}

fn cubin(source: &str, arch: &str) -> Vec<u8> {
    compile(source, &["-cubin", &format!("-arch={arch}")], &[])
}

fn same_kind(seen: interp::AccessKind, predicted: AccessKind) -> bool {
    matches!(
        (seen, predicted),
        (interp::AccessKind::Read, AccessKind::Read)
            | (interp::AccessKind::Write, AccessKind::Write)
            | (interp::AccessKind::Atomic, AccessKind::Atomic)
            | (interp::AccessKind::AtomicRead, AccessKind::AtomicRead | AccessKind::Atomic)
            | (interp::AccessKind::AtomicWrite, AccessKind::AtomicWrite)
    )
}

/// What a predicted access says of an address: every byte of it is inside.
struct Claim<'a> {
    access: &'a KernelAccess,
    base: Option<u64>,
    /// The allocation that its base lies in.
    allocation: Option<(u64, u64)>,
}

impl Claim<'_> {
    fn covers(&self, seen: &Seen) -> bool {
        if !same_kind(seen.kind, self.access.kind) {
            return false;
        }
        let Some(base) = self.base else { return true };
        match &self.access.extent {
            Extent::Unknown { .. } => {
                self.allocation.is_none_or(|(start, end)| start <= seen.address && seen.address < end)
            }
            Extent::Bounded { lo, hi, dims, width, .. } => {
                let first = seen.address.wrapping_sub(base) as i64;
                (first..first + i64::from(seen.size))
                    .all(|byte| *lo <= byte && byte < *hi && reachable((byte - lo) as u64, dims, u64::from(*width)))
            }
        }
    }
}

/// True when an offset from the lowest byte is in the progressions. Strides ascend; the greedy
/// choice from the largest fails only for progressions that overlap, so it tries the neighbours
/// too.
fn reachable(offset: u64, dims: &[kernels::Dim], width: u64) -> bool {
    let Some((dim, rest)) = dims.split_last() else { return offset < width };
    if dim.stride == 0 {
        return reachable(offset, rest, width);
    }
    let span: u64 = width + rest.iter().map(|d| d.stride * (d.count - 1)).sum::<u64>();
    let most = (offset / dim.stride).min(dim.count - 1);
    let least = offset.saturating_sub(span) / dim.stride;
    (least..=most).rev().any(|k| reachable(offset - k * dim.stride, rest, width))
}

#[derive(Default, Debug)]
struct Score {
    accesses: usize,
    bounded: usize,
    exact: usize,
}

fn check_summary(
    what: &str,
    summary: &Summary,
    launch: &LaunchArgs<'_>,
    gpu: &Gpu,
    seen: &[Seen],
    touched: &HashMap<interp::AccessKind, HashSet<u64>>,
    score: &mut Score,
) {
    let mut accesses = Vec::new();
    summary.evaluate(launch, &mut accesses);
    let claims: Vec<Claim<'_>> = accesses
        .iter()
        .map(|access| {
            let base = match access.base {
                Base::Word { value, .. } | Base::Absolute { value } => Some(value),
                Base::Global(symbol) => Some(gpu.symbol(summary.symbol(symbol))),
                _ => None,
            };
            use interp::Device;
            let allocation = base.and_then(|base| gpu.device.allocation(base)).map(|e| (e.start, e.end));
            Claim { access, base, allocation }
        })
        .collect();
    for one in seen {
        assert!(
            claims.iter().any(|claim| claim.covers(one)),
            "{what}: {one:x?} (PTX line {}) lies in none of {accesses:#x?}\nlaunch {launch:?}",
            one.line
        );
    }
    for claim in &claims {
        score.accesses += 1;
        let (Some(base), Extent::Bounded { lo, dims, width, exact, .. }) = (claim.base, &claim.access.extent) else {
            continue;
        };
        score.bounded += 1;
        // Bytes of machine code's accesses to constants are not seen as accesses.
        if !*exact || claim.access.several {
            continue;
        }
        score.exact += 1;
        let kind = match claim.access.kind {
            AccessKind::Read => interp::AccessKind::Read,
            AccessKind::Write => interp::AccessKind::Write,
            AccessKind::Atomic => interp::AccessKind::Atomic,
            AccessKind::AtomicRead => interp::AccessKind::AtomicRead,
            AccessKind::AtomicWrite => interp::AccessKind::AtomicWrite,
        };
        let empty = HashSet::new();
        let bytes = touched.get(&kind).unwrap_or(&empty);
        let mut starts = vec![*lo];
        for dim in dims {
            starts = starts.iter().flat_map(|s| (0..dim.count).map(move |k| s + (k * dim.stride) as i64)).collect();
        }
        for start in starts {
            for byte in 0..i64::from(*width) {
                let address = base.wrapping_add((start + byte) as u64);
                assert!(
                    bytes.contains(&address),
                    "{what}: byte {} of {:x?} is claimed but not touched\nlaunch {launch:?}",
                    start + byte,
                    claim.access
                );
            }
        }
    }
}

fn check_module(seed: u64, count: usize) {
    let (text, names) = source(seed, count);
    let module_ptx = ptx(&text, "compute_90", &[]);
    if let Ok(folder) = std::env::var("RANGES_DUMP") {
        std::fs::write(format!("{folder}/{seed}.cu"), &text).unwrap();
        std::fs::write(format!("{folder}/{seed}.ptx"), &module_ptx).unwrap();
    }
    let image = CodeImage::load(&cubin(&text, "sm_90"), Arch::new(90)).unwrap();
    let mut gpu = Gpu::from_ptx(&module_ptx);
    gpu.device.observe = true;
    gpu.workers = 1;
    let mut r = Random(seed ^ 0x5555);
    let mut scores: BTreeMap<&str, Score> = BTreeMap::new();
    let arrays: Vec<u64> = (0..8).map(|_| gpu.zeros::<i64>(2 * SIDE as usize).address + SIDE as u64 * 8).collect();
    for name in &names {
        let lowered = kernels::lower_ptx::lower(&gpu.module, name).unwrap();
        let of_ptx = Summary::new(&lowered);
        let of_sass = image.summary(name).unwrap();
        for round in 0..3 {
            let n = [200, 37, 1][round] + r.next(100) as i32 * i32::from(round == 0);
            let m = r.next(50) as i64;
            let two = name == "shape3";
            let grid = [1 + r.next(3) as u32, if two { 2 } else { 1 }, 1];
            let block = [[96, 33, 64][round], if two { 4 } else { 1 }, 1];
            let mut params = Vec::new();
            arrays.iter().for_each(|address| params.extend(address.to_le_bytes()));
            // d is a pointer like the others; p has five.
            params.truncate(8 * 8);
            params.extend(arrays[0].to_le_bytes());
            params.extend(n.to_le_bytes());
            params.extend([0; 4]);
            params.extend(m.to_le_bytes());
            let kernel = gpu.program.kernel(name).unwrap();
            assert_eq!(kernel.params_size() as usize, params.len(), "{name}");
            gpu.device.seen.lock().unwrap().clear();
            let launch = interp::Launch { grid, block, params: params.clone(), ..interp::Launch::default() };
            interp::run(&gpu.program, kernel, &launch, &gpu.device, 1)
                .unwrap_or_else(|fault| panic!("{name}: {fault}"));
            let mut seen = gpu.device.seen.lock().unwrap().clone();
            seen.sort_by_key(|s| (s.address, s.size, s.kind as u32));
            seen.dedup_by_key(|s| (s.address, s.size, s.kind as u32));
            let mut touched: HashMap<interp::AccessKind, HashSet<u64>> = HashMap::new();
            for one in &seen {
                touched.entry(one.kind).or_default().extend(one.address..one.address + u64::from(one.size));
            }
            // Machine code reads constants through their bank: no access of its summary.
            let lookup = gpu.symbol("lookup");
            let global: Vec<Seen> =
                seen.iter().copied().filter(|s| !(lookup..lookup + 32).contains(&s.address)).collect();
            let args = LaunchArgs::new(grid, block, &params);
            let ptx_score = scores.entry("ptx").or_default();
            check_summary(&format!("PTX {name}"), &of_ptx, &args, &gpu, &seen, &touched, ptx_score);
            let sass_score = scores.entry("sass").or_default();
            check_summary(&format!("SASS {name}"), &of_sass, &args, &gpu, &global, &touched, sass_score);
        }
    }
    println!("seed {seed}: {scores:?}");
}

fn on_large_stack(f: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(512 << 20).spawn(f).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn shapes_lie_in_their_summaries() {
    on_large_stack(|| check_module(0, 0));
}

#[test]
fn random_kernels_lie_in_their_summaries() {
    let seeds = std::env::var("RANGES_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(3u64);
    let first = std::env::var("RANGES_FIRST").ok().and_then(|n| n.parse().ok()).unwrap_or(1u64);
    on_large_stack(move || {
        for seed in first..first + seeds {
            check_module(seed, 40);
        }
    });
}
