//! Machine code against PTX: what nvcc makes of one source in both forms leaves the same memory.
//! Integers, memory, control flow, what lanes and warps do together, calls. Arithmetic of floating
//! point is in `interp_sass_float`.

use std::ops::Range;

use crate::interp_support::{self, Gpu};
use streamsan_sim::interp::{FaultKind, Launch};

const SOURCE: &str = r#"
#include <cassert>
#include <cstdio>
typedef unsigned u32; typedef unsigned long long u64; typedef long long s64;

// Each thread has four random numbers and writes 64 results.
#define ARGS const u32* in, u64* out
#define BEGIN int t = threadIdx.x, n = 0; u64* o = out + 64 * t; \
    u32 a = in[4 * t], b = in[4 * t + 1], c = in[4 * t + 2], d = in[4 * t + 3]; \
    s64 x = (s64)a << 32 | b, y = (s64)c << 32 | d; (void)x; (void)y; (void)n;
#define PUT(value) o[n++] = (u64)(value)

extern "C" __global__ void arithmetic(ARGS) {
    BEGIN
    PUT(a + b - c); PUT(a * b + c); PUT((int)a * (int)b >> 3); PUT(__umulhi(a, b)); PUT(__mulhi((int)a, (int)b));
    PUT(x + y); PUT(x - y); PUT(x * y); PUT(__umul64hi(x, y)); PUT(__mul64hi(x, y)); PUT((u64)a * b + c); PUT((s64)(int)a * (int)b);
    PUT(a / (b | 1)); PUT((int)a % ((int)b | 1)); PUT((u64)x / (y | 1)); PUT(x % (y | 1)); PUT(x / ((int)d | 1));
    PUT(min((int)a, (int)b)); PUT(max(a, b)); PUT(abs((int)a)); PUT(min(x, y)); PUT(max((u64)x, (u64)y)); PUT(-x); PUT(~y ^ x);
    PUT(__usad(a, b, c)); PUT(a / 7 + (int)b / -13 + d % 10); PUT((u64)x / 1000000007ull);
    u32 low, high; asm("{add.cc.u32 %0,%2,%3; addc.u32 %1,%4,%5;}" : "=r"(low), "=r"(high) : "r"(a), "r"(b), "r"(c), "r"(d));
    PUT((u64)high << 32 | low);
    asm("{sub.cc.u32 %0,%2,%3; subc.u32 %1,%4,%5;}" : "=r"(low), "=r"(high) : "r"(a), "r"(b), "r"(c), "r"(d));
    PUT((u64)high << 32 | low); PUT(a * 5 + (b << 3)); PUT(x * 24 + y); PUT((x << 3) + a);
}
extern "C" __global__ void bits(ARGS) {
    BEGIN
    int s = d & 63;
    PUT(a << (d & 31)); PUT(a >> (d & 31)); PUT((int)a >> (d & 31)); PUT(x << s); PUT(x >> s); PUT((u64)x >> s);
    PUT(__funnelshift_l(a, b, d)); PUT(__funnelshift_r(a, b, d)); PUT(__funnelshift_lc(a, b, s)); PUT(__funnelshift_rc(a, b, s));
    PUT(__popc(a)); PUT(__popcll(x)); PUT(__clz(a >> s % 32)); PUT(__clzll(x)); PUT(__ffs(a << s % 32)); PUT(__ffsll(y)); PUT(__brev(a)); PUT(__brevll(x));
    PUT(__byte_perm(a, b, c)); PUT(__byte_perm(a, b, 0x9876)); PUT((a & b) | (c & ~d)); PUT((a ^ b) & (c | d)); PUT((a & 0xff00ff) ^ ~b);
    u32 r; asm("bfe.u32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b & 31), "r"(c & 31)); PUT(r);
    asm("bfe.s32 %0,%1,%2,%3;" : "=r"(r) : "r"(a), "r"(b & 31), "r"(c & 31)); PUT(r);
    asm("bfi.b32 %0,%1,%2,%3,%4;" : "=r"(r) : "r"(a), "r"(b), "r"(c & 31), "r"(d & 31)); PUT(r);
    asm("bfind.u32 %0,%1;" : "=r"(r) : "r"(a >> s % 32)); PUT(r); asm("bfind.s32 %0,%1;" : "=r"(r) : "r"((int)a >> s % 32)); PUT(r);
    asm("bfind.shiftamt.u32 %0,%1;" : "=r"(r) : "r"(a >> s % 32)); PUT(r); PUT((char)a); PUT((short)b); PUT((unsigned char)(c >> 7)); PUT((s64)(int)(short)d);
    asm("szext.clamp.s32 %0,%1,%2;" : "=r"(r) : "r"(a), "r"(b & 63)); PUT(r); asm("szext.wrap.u32 %0,%1,%2;" : "=r"(r) : "r"(a), "r"(b)); PUT(r);
    asm("bmsk.clamp.b32 %0,%1,%2;" : "=r"(r) : "r"(a & 63), "r"(b & 63)); PUT(r); asm("bmsk.wrap.b32 %0,%1,%2;" : "=r"(r) : "r"(a), "r"(b)); PUT(r);
}
extern "C" __global__ void compares(ARGS) {
    BEGIN
    PUT(a < b); PUT((int)a < (int)b); PUT(x < y); PUT((u64)x < (u64)y); PUT(x <= y); PUT(x == y); PUT(x != (y & 7)); PUT((a < b) ^ (c >= d));
    PUT((a < b && c < d) || (a > d && b != c)); PUT(a < b ? c : d); PUT(x > y ? x : y); PUT((a & 1) + (b & 2 ? 5 : 7) * (c & 4 ? a : b));
    u64 sum = 0; for (u32 i = 0; i < (a & 31); i++) { if ((b >> i & 1) == 0) continue; if (i == (c & 31)) break; sum += i * d; } PUT(sum);
    for (u32 i = a & 15; i > 0; i--) for (u32 k = 0; k < (b & 7); k++) { sum ^= (u64)i << (k + 3); if ((sum & 63) == (c & 63)) goto out; } out: PUT(sum);
    switch (a & 15) { case 0: sum += 3; break; case 1: sum *= b; break; case 2: sum -= c; case 3: sum ^= d; break; case 5: sum = x; break;
        case 6: sum += y; break; case 7: sum /= 3; break; case 9: sum <<= 2; break; case 11: sum = ~sum; break; default: sum = 77; } PUT(sum);
    bool p[8]; for (int i = 0; i < 8; i++) p[i] = (a >> i & 1) != (b >> (i + 3) & 1); for (int i = 0; i < 8; i++) if (p[i] && !p[(i + 3) & 7]) sum += i; PUT(sum);
}
__constant__ int table[32] = {1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144};
__device__ int shift = 5; __device__ int* to_shift = &shift; __device__ short zeroed[64];
struct Large { int v[16]; long long w; char c[5]; };
extern "C" __global__ void memory(ARGS, Large large) {
    extern __shared__ u32 dynamic[]; __shared__ u64 wide[64]; __shared__ short narrow[64];
    BEGIN
    u32 local[16]; for (int i = 0; i < 16; i++) local[i] = a * i + b; local[c & 15] ^= d; PUT(local[a & 15]); PUT(local[(a >> 4) & 15]);
    wide[t] = x; narrow[t] = (short)y; dynamic[t] = a; __syncthreads(); int e = (t + (int)(in[0] & 31)) & 63;
    PUT(wide[e]); PUT(narrow[e]); PUT(dynamic[e]); PUT(table[a & 31]); PUT(table[3]); PUT(shift + *to_shift); PUT(zeroed[t]);
    PUT(large.v[b & 15]); PUT(large.w); PUT(large.c[d % 5]); PUT(large.c[3]);
    u32* g = t & 1 ? local : dynamic; PUT(g[b & 15]); g[(b + 1) & 15] = t & 1 ? c : g[(b + 1) & 15]; PUT(local[(b + 1) & 15]);
    int4 q = ((const int4*)in)[t]; PUT(q.x ^ q.w); PUT(((const unsigned char*)in)[t]); PUT(((const short*)in)[t]); PUT(((const signed char*)in)[t + 9]);
    ((uint4*)(o + 60))[0] = make_uint4(a, b, c, d); ((char*)(o + 59))[t & 7] = a; ((short*)(o + 58))[t & 3] = b; ((u64*)o)[57] = x;
    PUT(__isShared(g)); PUT(__isLocal(g)); PUT(__isGlobal(in));
    const int* either = a & 2 ? table : (const int*)in; PUT(either[b & 31]);
    zeroed[t] = 1;
}
extern "C" __global__ void warps(ARGS) {
    BEGIN
    u32 all = ~0u;
    PUT(__shfl_sync(all, a, b & 31)); PUT(__shfl_up_sync(all, a, 3)); PUT(__shfl_down_sync(all, a, 5, 8)); PUT(__shfl_xor_sync(all, x, 9)); PUT(__shfl_sync(all, a, d, 16));
    PUT(__ballot_sync(all, a & 1)); PUT(__any_sync(all, a == b)); PUT(__all_sync(all, a | 1)); PUT(__match_any_sync(all, a & 3)); int p; PUT(__match_all_sync(all, b & 0, &p)); PUT(p);
    PUT(__match_any_sync(all, x & 0x700000003ll)); PUT(__reduce_add_sync(all, a)); PUT(__reduce_min_sync(all, (int)a)); PUT(__reduce_max_sync(all, b)); PUT(__reduce_xor_sync(all, c)); PUT(__reduce_and_sync(all, d | 0xff)); PUT(__reduce_or_sync(all, d & 0xff));
    u32 mask = __ballot_sync(all, a & 2); if (a & 2) { PUT(__shfl_sync(mask, b, __ffs(mask) - 1)); PUT(__popc(mask)); PUT(__reduce_add_sync(mask, c)); } else { n += 3; __syncwarp(~mask); }
    mask = __match_any_sync(all, a & 3); PUT(__reduce_add_sync(mask, b)); PUT(__reduce_max_sync(mask, (int)c)); PUT(__shfl_sync(mask, d, __ffs(mask) - 1)); PUT(__ballot_sync(mask, b & 1)); PUT(__match_any_sync(mask, c & 1));
    PUT(__syncthreads_count(a & 1)); PUT(__syncthreads_and(b | 1)); PUT(__syncthreads_or(c == d));
    asm volatile("bar.sync 3, 64;"); if (t < 32) asm volatile("bar.sync 4, 64;"); else asm volatile("bar.arrive 4, 64;");
    int rounds = 0; for (u32 i = a & 63; __any_sync(all, i != 0);) { if (i) { i >>= 1; rounds++; } } PUT(rounds);
}
extern "C" __global__ void atomics(u32* g, u64* w, u32* out) {
    __shared__ u32 s[16]; __shared__ u64 sw[4]; int t = threadIdx.x; if (t < 16) s[t] = t; if (t < 4) sw[t] = t; __syncthreads();
    atomicAdd(g, t); atomicAdd(g + 1, 1); atomicMin((int*)g + 2, -t); atomicMax(g + 3, t); atomicInc(g + 4, 7); atomicDec(g + 5, 9); atomicAnd(g + 6, ~(1u << (t & 31))); atomicOr(g + 7, 1u << (t & 31)); atomicXor(g + 8, t * t);
    atomicAdd(w, (u64)t << 30); atomicMin((s64*)w + 1, (s64)-t); atomicMax(w + 2, (u64)t << 33); atomicAnd(w + 3, ~((u64)1 << t)); atomicXor(w + 4, (u64)t << 31);
    atomicAdd(s, t); atomicAdd(s + 1, 1); atomicMin((int*)s + 2, -t); atomicMax(s + 3, t); atomicInc(s + 4, 7); atomicAnd(s + 5, ~(1u << (t & 3))); atomicXor(s + 6, t); atomicAdd(sw, (u64)t << 30); atomicMax(sw + 1, (u64)t << 33);
    u32* either = t & 1 ? s + 8 : g + 9; atomicAdd(either, t); atomicMax(either + 1, t); atomicCAS(either + 2, t & 1 ? 10 : 0, 77);
    out[atomicAdd(g + 12, 1)] = 1; if (atomicExch(g + 13, 5) == 0) out[100] = 3; for (u32 old = g[14], seen; (seen = atomicCAS(g + 14, old, old * 3 + 1)) != old;) old = seen;
    while (atomicCAS(g + 20, 0, 1) != 0) ; g[21] = g[21] * 3 + 1; __threadfence(); atomicExch(g + 20, 0);
    __syncthreads(); if (t < 16) out[t + 128] = s[t]; if (t < 4) w[t + 8] = sw[t];
}
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ int twice(int v) { return 2 * v; } __device__ int square(int v) { return v * v; } __device__ __noinline__ u64 third(u64 v, int k) { return v / (k + 3); }
typedef int (*Function)(int); __device__ Function functions[] = {twice, square, fibonacci};
extern "C" __global__ void calls(ARGS) {
    BEGIN
    PUT(fibonacci(a & 7)); PUT(functions[b % 3](c & 7)); PUT(functions[t & 1](d)); PUT(third(x, c & 15)); PUT(third(y, 5));
    int* heap = (int*)malloc(64); for (int i = 0; i < 16; i++) heap[i] = a + i; PUT(heap[b & 15]); free(heap);
    if (t == 3) printf("%d %u %s %llx|%5d|%c\n", (int)a, b, "text", x, t, 'z');
}
extern "C" __global__ void checks(int n) { assert(n + (int)threadIdx.x < 40); }
extern "C" __global__ void copies(const int4* in, int4* out, int n) {
    __shared__ int4 s[64]; int t = threadIdx.x; s[t] = make_int4(-1, -2, -3, -4); __syncthreads();
    u32 p = __cvta_generic_to_shared(s + t);
    asm volatile("cp.async.cg.shared.global [%0],[%1],16,%2;" :: "r"(p), "l"(in + t), "r"(n & 15)); asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_all;"); __syncthreads(); out[t] = s[63 - t];
    asm volatile("cp.async.ca.shared.global [%0],[%1],4;" :: "r"(p), "l"((const int*)in + t)); asm volatile("cp.async.wait_all;"); __syncthreads();
    u32 a, b, c, d; asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(p)); out[64 + t] = make_int4(a, b, c, d);
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1},[%2];" : "=r"(a), "=r"(b) : "r"(p)); out[128 + t] = make_int4(a, b, 0, 0);
}
"#;

/// Random numbers, small ones and edges among them.
fn numbers(seed: u64, count: usize) -> Vec<u32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let one = |kind: u32, value: u32| match kind % 8 {
        0 => value & 15,
        1 => value | 0xffff_fff0,
        2 => 0x8000_0000,
        3 => 0,
        _ => value << 1,
    };
    (0..count).map(|_| one(next(), next())).collect()
}

fn launch(gpu: &Gpu, name: &str, shared: u32, args: &[interp_support::Arg]) {
    let launch = Launch { grid: [1, 1, 1], block: [64, 1, 1], dynamic_shared: shared, ..Launch::default() };
    gpu.launch_with(name, launch, args);
}

#[test]
fn both_forms_leave_the_same_memory() {
    agree(Gpu::both(SOURCE), 1..9);
}

/// What `nvcc -G` makes: nothing is kept in registers, and each function looks at its stack.
#[test]
fn machine_code_for_debuggers_leaves_the_same_memory() {
    agree([Gpu::new(SOURCE), Gpu::machine(SOURCE, &["-G"])], 1..4);
}

fn agree(gpus: [Gpu; 2], seeds: Range<u64>) {
    for seed in seeds {
        let input = numbers(seed, 256);
        for name in ["arithmetic", "bits", "compares", "memory", "warps", "calls"] {
            let [ptx, machine] = gpus.each_ref().map(|gpu| {
                let (from, to) = (gpu.buffer(&input), gpu.zeros::<u64>(64 * 64));
                let large: Vec<u8> = (0..80).map(|n| (n * 37 + 11) as u8).collect();
                let mut args = vec![(&from).into(), (&to).into()];
                if name == "memory" {
                    args.push(interp_support::Arg::Bytes(large));
                }
                launch(gpu, name, 256, &args);
                to.read::<u64>()
            });
            for (at, (ptx, machine)) in ptx.iter().zip(&machine).enumerate() {
                let (thread, result) = (at / 64, at % 64);
                assert_eq!(ptx, machine, "{name}, seed {seed}: result {result} of thread {thread}");
            }
        }
    }
    let printed = gpus.each_ref().map(Gpu::printed);
    assert!(printed[0].contains(" text ") && printed[0] == printed[1], "{printed:?}");
}

#[test]
fn atomics_and_copies_leave_the_same_memory() {
    let gpus = Gpu::both(SOURCE);
    let [ptx, machine] = gpus.each_ref().map(|gpu| {
        let (g, w, out) = (gpu.zeros::<u32>(64), gpu.zeros::<u64>(16), gpu.zeros::<u32>(256));
        launch(gpu, "atomics", 0, &[(&g).into(), (&w).into(), (&out).into()]);
        (g.read::<u32>(), w.read::<u64>(), out.read::<u32>())
    });
    assert_eq!(ptx, machine);
    assert_eq!(machine.0[1], 64, "64 threads added one");
    for n in [0, 3, 4, 13] {
        let [ptx, machine] = gpus.each_ref().map(|gpu| {
            let (from, to) = (gpu.buffer(&numbers(5, 256)), gpu.zeros::<u32>(768));
            launch(gpu, "copies", 0, &[(&from).into(), (&to).into(), n.into()]);
            to.read::<u32>()
        });
        assert_eq!(ptx, machine, "{n} bytes read");
    }
}

#[test]
fn faults_are_the_same() {
    for gpu in Gpu::both(SOURCE) {
        let block = Launch { grid: [1, 1, 1], block: [64, 1, 1], ..Launch::default() };
        let fault = gpu.try_launch("checks", block.clone(), &[0.into()]).expect_err("thread 40 fails");
        assert_eq!((&fault.kind, fault.thread), (&FaultKind::Assert, [40, 0, 0]));
        let text = gpu.printed();
        assert!(text.contains("Assertion") && text.contains("thread: [40,0,0]"), "{text}");
        gpu.try_launch("checks", block.clone(), &[(-64).into()]).expect("no thread fails");
        let nowhere = [8u64.into(), 8u64.into()];
        let fault = gpu.try_launch("arithmetic", block, &nowhere).expect_err("no memory is there");
        assert!(matches!(fault.kind, FaultKind::OutOfBounds { address: 8.., .. }), "{fault}");
    }
}
