//! Products of warp groups (`wgmma`) against products on the host, for each type of factors and for
//! how matrices lie in shared memory: by the major and the swizzle of a descriptor. Numbers are
//! small, so that every sum is exact.

use std::fmt::Write;

use sim_races::{Grade, Remedy};
use streamsan_sim::interp::{BulkTiming, Launch};

use crate::interp_support::{Arg, Gpu, compile, ptx};

/// A form of the instruction.
#[derive(Clone, Copy)]
struct Form {
    name: &'static str,
    n: usize,
    /// `f32.f16.f16`
    types: &'static str,
    /// Bytes of an element of a factor.
    size: usize,
    registers: bool,
    transpose: [bool; 2],
    negate: [bool; 2],
}

const fn form(name: &'static str, n: usize, types: &'static str, size: usize) -> Form {
    Form { name, n, types, size, registers: false, transpose: [false; 2], negate: [false; 2] }
}

const FORMS: [Form; 14] = [
    form("half", 16, "f32.f16.f16", 2),
    form("brain", 24, "f32.bf16.bf16", 2),
    form("tf32", 8, "f32.tf32.tf32", 4),
    form("e4m3", 16, "f32.e4m3.e4m3", 1),
    form("e5m2", 16, "f32.e5m2.e4m3", 1),
    form("bytes", 16, "s32.s8.u8", 1),
    form("bits", 16, "s32.b1.b1.and.popc", 1),
    Form { registers: true, ..form("bit_registers", 24, "s32.b1.b1.and.popc", 1) },
    form("halves", 16, "f16.f16.f16", 2),
    Form { negate: [true, false], ..form("negative", 16, "f32.f16.f16", 2) },
    Form { registers: true, ..form("registers", 16, "f32.f16.f16", 2) },
    Form { registers: true, ..form("byte_registers", 16, "s32.u8.s8", 1) },
    Form { transpose: [false, true], ..form("b_by_columns", 64, "f32.f16.f16", 2) },
    Form { transpose: [true, true], ..form("both_by_columns", 64, "f32.f16.f16", 2) },
];

impl Form {
    fn inner(&self) -> usize {
        32 / self.size
    }

    fn half_sums(&self) -> bool {
        self.types.starts_with("f16")
    }

    fn sums(&self) -> usize {
        if self.half_sums() { self.n / 4 } else { self.n / 2 }
    }

    /// The kernel: copies the images to shared memory, multiplies in steps, writes its registers.
    fn kernel(&self, out: &mut String) {
        let (name, sums) = (self.name, self.sums());
        let list = |first: usize, count: usize| {
            (first..first + count).map(|at| format!("%{at}")).collect::<Vec<_>>().join(", ")
        };
        let a = if self.registers { format!("{{{}}}", list(sums, 4)) } else { format!("%{sums}") };
        let b = sums + if self.registers { 4 } else { 1 };
        let mut tail = String::new();
        if !self.types.starts_with("s32") {
            for negate in self.negate {
                tail += if negate { ", -1" } else { ", 1" };
            }
            if self.size == 2 {
                for transpose in self.transpose.iter().skip(usize::from(self.registers)) {
                    tail += if *transpose { ", 1" } else { ", 0" };
                }
            }
        }
        let first = if self.registers {
            (0..4).map(|at| format!("\"r\"(f[{at}])")).collect::<Vec<_>>().join(", ")
        } else {
            "\"l\"(a + ((u64)(at(sa) + i * step_a) >> 4))".to_owned()
        };
        // Registers of a factor are written while no product uses them, and before a fence (PTX
        // ISA, wgmma.fence).
        let (load, used) = if self.registers {
            let words = (0..4).map(|at| format!("ar[i * 512 + T * 4 + {at}]")).collect::<Vec<_>>().join(", ");
            (
                format!(
                    "unsigned f[4] = {{{words}}};\n        asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");"
                ),
                r#"asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");"#,
            )
        } else {
            (String::new(), "")
        };
        let results = (0..sums).map(|at| format!("\"+r\"(d[{at}])")).collect::<Vec<_>>().join(", ");
        let _ = write!(
            out,
            r#"
extern "C" __global__ void {name}(const int4* ia, const int4* ib, int na, int nb, u64 a, u64 b, int steps, int step_a, int step_b, unsigned* out) {{
    __shared__ __align__(1024) int4 sa[512];
    __shared__ __align__(1024) int4 sb[512];
    const unsigned* ar = (const unsigned*)ia;
    for (int i = T; i < na / 16; i += 128) sa[i] = ia[i];
    for (int i = T; i < nb / 16; i += 128) sb[i] = ib[i];
    fence();
    __syncthreads();
    unsigned d[{sums}];
    for (int r = 0; r < {sums}; r++) d[r] = 12345;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    for (int i = 0; i < steps; i++) {{
        {load}
        asm volatile("{{ .reg .pred p; setp.ne.b32 p, %{keep}, 0; wgmma.mma_async.sync.aligned.m64n{n}k{k}.{types} {{{ds}}}, {a}, %{b}, p{tail}; }}"
            : {results} : {first}, "l"(b + ((u64)(at(sb) + i * step_b) >> 4)), "r"(i) : "memory");
        {used}
    }}
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int r = 0; r < {sums}; r++) out[T * {sums} + r] = d[r];
}}
"#,
            n = self.n,
            k = self.inner() * if self.types.contains("b1") { 8 } else { 1 },
            types = self.types,
            ds = list(0, sums),
            keep = b + 1,
        );
    }
}

const HEAD: &str = r#"
#define T (int)threadIdx.x
typedef unsigned long long u64;
__device__ __forceinline__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
"#;

/// Both factors are zero: what matters is who touches shared memory, and when.
const TWINS: &str = r#"
__device__ __forceinline__ void product(float* d, u64 a, u64 b) {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b) : "memory");
}
// W: 0 is mended, 1 has no fence, 2 writes before the wait, 3 waits for too few groups.
template <int W> __device__ void twin(float* out) {
    __shared__ __align__(128) int s[1024];
    for (int i = T; i < 1024; i += 128) s[i] = 0;
    if (W != 1) fence();
    __syncthreads();
    float d[4] = {0, 0, 0, 0};
    u64 a = (u64)(at(s) >> 4) | (u64)(128 >> 4) << 16 | (u64)(256 >> 4) << 32;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    product(d, a, a);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    if (W == 3) asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    else if (W != 2) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    __syncthreads();
    s[T] = 1;
    out[T] = d[0];
}
extern "C" __global__ void twin_0(float* out) { twin<0>(out); }
extern "C" __global__ void twin_1(float* out) { twin<1>(out); }
extern "C" __global__ void twin_2(float* out) { twin<2>(out); }
extern "C" __global__ void twin_3(float* out) { twin<3>(out); }
"#;

/// Two warp groups multiply what a warp has filled stages of a ring with. One thread of each hands
/// a stage back, behind its own wait for the product of its warp group.
const RINGS: &str = r#"
__device__ __forceinline__ void init(u64* b, int n) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(b)), "r"(n) : "memory"); }
__device__ __forceinline__ void arrive(u64* b) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(b)) : "memory"); }
__device__ __forceinline__ void await(u64* b, int parity) {
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra D; bra W; D: }" :: "r"(at(b)), "r"(parity) : "memory");
}
__device__ __forceinline__ int look(const char* s) {
    int x;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(at(s + 2048)) : "memory");
    return x;
}
__device__ __forceinline__ void fill(void* s, const char* g, int n, u64* b) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(b)), "r"(n) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        :: "r"(at(s)), "l"(g), "r"(n), "r"(at(b)) : "memory");
}
// W: 0 is mended, and so is 1, which has a product under way and hands the stage before back; 2
// hands back the stage of the product that is under way; in 3 the second warp group hands
// none back. In 4 to 6 all threads read of the stage besides: before the product, behind the wait for
// it, or before it with an arrival of each.
template <int W> __device__ void ring(const char* in, float* out) {
    __shared__ __align__(128) char stages[2][2304];
    __shared__ u64 full[2], empty[2];
    if (T == 0) {
        for (int i = 0; i < 2; i++) { init(full + i, 1); init(empty + i, W == 6 ? 256 : W == 3 ? 1 : 2); }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (T >= 256) {
        if (T == 256) for (int k = 0; k < 6; k++) {
            if (k >= 2) await(&empty[k % 2], k / 2 - 1 & 1);
            fill(stages[k % 2], in + k * 2304, 2304, &full[k % 2]);
        }
        return;
    }
    float d[4] = {0, 0, 0, 0};
    int seen = 0;
    bool hands = W == 6 || T % 128 == 64 && (W != 3 || T < 128);
    u64 layout = (u64)(128 >> 4) << 16 | (u64)(256 >> 4) << 32;
    for (int k = 0; k < 6; k++) {
        await(&full[k % 2], k / 2 & 1);
        u64 a = (u64)((at(stages[k % 2]) & 0x3ffff) >> 4) | layout;
        u64 b = (u64)((at(stages[k % 2] + 2048) & 0x3ffff) >> 4) | layout;
        if (W == 4 || W == 6) seen += look(stages[k % 2]);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        product(d, a, b);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (W == 1 || W == 2) asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        else asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (W == 5) seen += look(stages[k % 2]);
        if (W == 1) { if (hands && k > 0) arrive(&empty[(k - 1) % 2]); }
        else if (hands) arrive(&empty[k % 2]);
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :: "memory");
    // No assembler leaves out what is read for this.
    out[blockIdx.x * 256 + T] = seen == 1 ? 0 : d[0];
}
extern "C" __global__ void ring_0(const char* in, float* out) { ring<0>(in, out); }
extern "C" __global__ void ring_1(const char* in, float* out) { ring<1>(in, out); }
extern "C" __global__ void ring_2(const char* in, float* out) { ring<2>(in, out); }
extern "C" __global__ void ring_3(const char* in, float* out) { ring<3>(in, out); }
extern "C" __global__ void ring_4(const char* in, float* out) { ring<4>(in, out); }
extern "C" __global__ void ring_5(const char* in, float* out) { ring<5>(in, out); }
extern "C" __global__ void ring_6(const char* in, float* out) { ring<6>(in, out); }
"#;

/// Both kinds of code. In machine code groups are scoreboards, and descriptors are in uniform
/// registers.
fn gpus() -> [Gpu; 2] {
    let mut source = HEAD.to_owned();
    FORMS.iter().for_each(|form| form.kernel(&mut source));
    source += TWINS;
    source += RINGS;
    [
        Gpu::from_ptx(&ptx(&source, "compute_90a", &[])),
        Gpu::from_cubin(compile(&source, &["-cubin", "-arch=sm_90a"], &[])),
    ]
}

/// A small number that each type has, and its bits.
fn value(ty: &str, at: usize) -> (f64, u64) {
    let signed = (at * 7 + at / 5) % 5;
    let number = signed as f64 - 2.0;
    let eight = |one: u64, step: u64| match number.abs() as u32 {
        0 => 0,
        1 => one,
        _ => one + step,
    };
    let sign = |bits: u64, top: u32| bits | u64::from(number < 0.0) << top;
    match ty {
        "f16" => (number, sign([0, 0x3c00, 0x4000][number.abs() as usize], 15)),
        "bf16" => (number, u64::from((number as f32).to_bits() >> 16)),
        "tf32" => (number, u64::from((number as f32).to_bits())),
        "e4m3" => (number, if number == 0.0 { 0 } else { sign(eight(0x38, 8), 7) }),
        "e5m2" => (number, if number == 0.0 { 0 } else { sign(eight(0x3c, 4), 7) }),
        "s8" => (number * 50.0, (number * 50.0) as i8 as u8 as u64),
        _ => (signed as f64 * 60.0, signed as u64 * 60),
    }
}

/// The number of a half that is no subnormal one.
fn half(bits: u32) -> f64 {
    let magnitude = match bits & 0x7fff {
        0 => 0.0,
        bits => f64::from((bits & 0x3ff) | 0x400) * f64::from((bits >> 10) as i32 - 25).exp2(),
    };
    if bits >> 15 != 0 { -magnitude } else { magnitude }
}

/// How a matrix lies in shared memory: which byte an element is at, of a row (or column) outside
/// and an inner index. Then a descriptor without its start, and how far a step along the inner
/// dimension is.
#[derive(Clone, Copy, Debug)]
struct Place {
    units: usize,
    transposed: bool,
    outside: usize,
    inner: usize,
    size: usize,
}

impl Place {
    /// Elements of 16 bytes.
    fn lane(&self) -> usize {
        16 / self.size
    }

    fn byte(&self, outside: usize, inner: usize) -> usize {
        let lane = self.lane();
        let (line, along) = if self.transposed { (inner, outside) } else { (outside, inner) };
        if self.units == 1 {
            // Cores of 8 lines of 16 bytes: those along a line one behind the other.
            let cores = if self.transposed { self.outside } else { self.inner } / lane;
            return (line / 8 * cores + along / lane) * 128 + line % 8 * 16 + along % lane * self.size;
        }
        // Lines of so many units, in which units change places by the line. Blocks of such columns.
        let width = self.units * lane;
        let lines = if self.transposed { self.inner } else { self.outside };
        let row = self.units * 16;
        let linear = along / width * lines * row + line * row + along % width / lane * 16;
        (linear ^ ((linear / 128 % self.units) * 16)) + along % lane * self.size
    }

    fn descriptor(&self) -> u64 {
        let lane = self.lane();
        let (leading, stride) = match (self.transposed, self.units) {
            (false, 1) => (128, self.inner / lane * 128),
            (false, units) => (16, 128 * units),
            (true, 1) => (self.outside / lane * 128, 128),
            (true, units) => (self.inner * units * 16, 128 * units),
        };
        let swizzle = [0u64, 3, 2, 0, 1][self.units / 2];
        (leading as u64 >> 4) << 16 | (stride as u64 >> 4) << 32 | swizzle << 62
    }

    /// Bytes from one step of 32 bytes of the inner dimension to the next.
    fn step(&self) -> usize {
        self.byte_of_line_start(32 / self.size)
    }

    fn byte_of_line_start(&self, inner: usize) -> usize {
        // Without the swizzle, which the hardware applies to the address.
        let lane = self.lane();
        match (self.transposed, self.units) {
            (false, 1) => inner / lane * 128,
            (false, _) => inner * self.size,
            (true, 1) => inner / 8 * (self.outside / lane) * 128,
            (true, units) => inner * units * 16,
        }
    }
}

#[test]
fn products_are_those_of_the_host() {
    let gpus = gpus();
    for (gpu, form) in gpus.iter().flat_map(|gpu| FORMS.map(|form| (gpu, form))) {
        let (n, k) = (form.n, form.inner());
        let types: Vec<&str> = form.types.split('.').collect();
        for units in [1, 2, 4, 8] {
            for steps in [1, 2] {
                let inner = k * steps;
                // A row of a swizzle holds no more than its units.
                if units * 16 < inner * form.size && units != 1 && !(form.transpose[0] || form.transpose[1]) {
                    continue;
                }
                let full = |size: usize| if units == 1 { inner } else { units * 16 / size };
                let place = |at: usize, outside: usize| Place {
                    units,
                    transposed: form.transpose[at],
                    outside,
                    inner: if form.transpose[at] { inner } else { full(form.size).max(inner) },
                    size: form.size,
                };
                let too_wide = |at: usize| !form.transpose[at] && units != 1 && inner * form.size > units * 16;
                if too_wide(0) || too_wide(1) {
                    continue;
                }
                let places = [place(0, 64), place(1, n)];
                let mut images = [vec![0u8; 8192], vec![0u8; 8192]];
                let element =
                    |at: usize, outside: usize, inner: usize| value(types[1 + at], outside * 3 + inner * 11 + at);
                for at in 0..2 {
                    for outside in 0..places[at].outside {
                        for k in 0..inner {
                            let byte = places[at].byte(outside, k);
                            let bits = element(at, outside, k).1.to_le_bytes();
                            images[at][byte..byte + form.size].copy_from_slice(&bits[..form.size]);
                        }
                    }
                }
                if form.registers {
                    images[0].fill(0);
                    let packed = 4 / form.size;
                    for step in 0..steps {
                        for thread in 0..128 {
                            for register in 0..4 {
                                let row = thread / 32 * 16 + thread % 32 / 4 + register % 2 * 8;
                                for part in 0..packed {
                                    let inner = step * k + thread % 4 * packed + part + register / 2 * (k / 2);
                                    let byte = (step * 512 + thread * 4 + register) * 4 + part * form.size;
                                    let bits = element(0, row, inner).1.to_le_bytes();
                                    images[0][byte..byte + form.size].copy_from_slice(&bits[..form.size]);
                                }
                            }
                        }
                    }
                }
                let detector = gpu.detect();
                let (a, b) = (gpu.buffer(&images[0]), gpu.buffer(&images[1]));
                let out = gpu.zeros::<u32>(128 * form.sums());
                let bytes = 8192i32;
                let args: [Arg; 10] = [
                    (&a).into(),
                    (&b).into(),
                    bytes.into(),
                    bytes.into(),
                    places[0].descriptor().into(),
                    places[1].descriptor().into(),
                    (steps as i32).into(),
                    (places[0].step() as i32).into(),
                    (places[1].step() as i32).into(),
                    (&out).into(),
                ];
                gpu.launch(form.name, 1, 128, &args);
                let got = out.read::<u32>();
                let sign = if form.negate[0] != form.negate[1] { -1.0 } else { 1.0 };
                for thread in 0..128 {
                    for entry in 0..n / 2 {
                        let row = thread / 32 * 16 + thread % 32 / 4 + entry / 2 % 2 * 8;
                        let column = entry / 4 * 8 + thread % 4 * 2 + entry % 2;
                        let term = |k: usize| match (element(0, row, k), element(1, column, k)) {
                            // Of bits, those that both have.
                            (a, b) if types[1] == "b1" => f64::from((a.1 & b.1).count_ones()),
                            (a, b) => sign * a.0 * b.0,
                        };
                        let want: f64 = (0..inner).map(term).sum();
                        let is = match (form.half_sums(), types[0]) {
                            (true, _) => {
                                let bits = got[thread * form.sums() + entry / 2] >> (entry % 2 * 16) & 0xffff;
                                half(bits)
                            }
                            (_, "s32") => f64::from(got[thread * form.sums() + entry] as i32),
                            _ => f64::from(f32::from_bits(got[thread * form.sums() + entry])),
                        };
                        assert_eq!(is, want, "{}, {units} units, {steps} steps: {row} {column}", form.name);
                    }
                }
                assert_eq!(detector.races(), [], "{}", form.name);
            }
        }
    }
}

#[test]
fn factors_belong_to_the_product_until_its_group_is_waited_for() {
    for gpu in gpus() {
        let run = |name: &str| {
            let detector = gpu.detect();
            let out = gpu.zeros::<f32>(128);
            gpu.launch_with(name, Launch { grid: [1; 3], block: [128, 1, 1], ..Launch::default() }, &[(&out).into()]);
            detector.races().first().map(|race| (race.grade, race.remedy))
        };
        assert_eq!(run("twin_0"), None);
        assert_eq!(run("twin_1"), Some((Grade::Certain, Remedy::ProxyFence)));
        assert_eq!(run("twin_2"), Some((Grade::Certain, Remedy::AwaitGroup)));
        // The assembler waits for the sums that the kernel reads, and before the barrier.
        let early = (!gpu.is_machine()).then_some((Grade::Certain, Remedy::AwaitGroup));
        assert_eq!(run("twin_3"), early);
    }
}

#[test]
fn a_product_is_its_warp_group_s_so_that_one_thread_hands_a_stage_back() {
    // In each step all of the first factor is one small number, all of the second one.
    let mut data = Vec::new();
    for bits in [0x3c00u16, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600] {
        data.extend([bits; 1024]);
        data.extend([0x3c00; 128]);
    }
    for gpu in gpus() {
        // In a cluster, descriptors do not say whose memory they are of.
        for (blocks, schedule, bulk) in [
            (1, 0, BulkTiming::AtOnce),
            (1, 0, BulkTiming::Late),
            (2, 5, BulkTiming::Late),
            (1, 3, BulkTiming::Random(1)),
            (2, 9, BulkTiming::Random(2)),
        ] {
            let run = |name: &str, looked_at: bool| {
                gpu.watch_nothing();
                let detector = looked_at.then(|| gpu.detect());
                let (input, out) = (gpu.buffer(&data), gpu.zeros::<f32>(256 * blocks));
                let cluster = [blocks as u32, 1, 1];
                let shape = Launch { grid: cluster, block: [288, 1, 1], cluster, ..Launch::default() };
                let launch = Launch { schedule, bulk, ..shape };
                gpu.launch_with(name, launch, &[(&input).into(), (&out).into()]);
                let races = detector.map(|detector| detector.races()).unwrap_or_default();
                (out.read::<f32>(), races.first().map(|race| (race.grade, race.remedy)))
            };
            let at = format!("machine code {}, {blocks} blocks, schedule {schedule}, {bulk:?}", gpu.is_machine());
            for name in ["ring_0", "ring_1", "ring_6"] {
                for looked_at in [false, true] {
                    assert_eq!(run(name, looked_at), (vec![336.0; 256 * blocks], None), "{name}, {at}");
                }
            }
            // The load overwrites what the product reads, whatever the results are.
            for name in ["ring_2", "ring_3"] {
                let (_, race) = run(name, true);
                assert_eq!(race, Some((Grade::Certain, Remedy::AwaitGroup)), "{name}, {at}");
            }
            // What others of the warp group have read before the product has been read by then.
            assert_eq!(run("ring_4", true).1, Some((Grade::Possible, Remedy::EachReader)), "{at}");
            assert_eq!(run("ring_5", true).1, Some((Grade::Certain, Remedy::AwaitUsers)), "{at}");
        }
    }
}
