//! Copies (`cp.async`) that report to a barrier object: who waits for the object's phase has them
//! behind, who has only arrived, or met the others at a barrier of the block, has not. And objects
//! that several threads initialise.

use sim_races::{Grade, Remedy};
use streamsan_sim::interp::Launch;

use crate::interp_support::{Arg, Gpu};

const SOURCE: &str = r#"
#define T (int)threadIdx.x
__device__ __forceinline__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void wait(unsigned bar) {
    int done = 0;
    while (!done) asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(bar) : "memory");
}
template <bool M> __device__ void copy(int* d, int* f) {
    __shared__ __align__(8) unsigned long long bar;
    __shared__ __align__(16) int s[64];
    if (T == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(at(&bar)) : "memory");
    __syncthreads();
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at(&s[T])), "l"(d + T) : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(at(&bar)) : "memory");
    if (M) wait(at(&bar)); else __syncthreads();
    f[T] = s[63 - T];
    if (!M) wait(at(&bar));
}
// One thread initialises the object, or each 16th does.
template <bool M> __device__ void begin(int* d, int* f) {
    __shared__ __align__(8) unsigned long long bar;
    __shared__ int s[64];
    if (M ? T == 0 : T % 16 == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(at(&bar)) : "memory");
    __syncthreads();
    s[T] = d[T];
    asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" :: "r"(at(&bar)) : "memory");
    wait(at(&bar));
    f[T] = s[63 - T];
}
extern "C" __global__ void begin_racy(int* d, int* f) { begin<false>(d, f); }
extern "C" __global__ void begin_mended(int* d, int* f) { begin<true>(d, f); }
extern "C" __global__ void racy(int* d, int* f) { copy<false>(d, f); }
extern "C" __global__ void mended(int* d, int* f) { copy<true>(d, f); }
"#;

fn surest(gpu: &Gpu, name: &str) -> Option<(Grade, Remedy)> {
    let detector = gpu.detect();
    let (data, out) = (gpu.buffer(&(1..65).collect::<Vec<i32>>()), gpu.zeros::<i32>(64));
    let args: [Arg; 2] = [(&data).into(), (&out).into()];
    gpu.launch_with(name, Launch { grid: [1, 1, 1], block: [64, 1, 1], ..Launch::default() }, &args);
    assert_eq!(out.read::<i32>()[0], 64, "{name}");
    detector.races().first().map(|race| (race.grade, race.remedy))
}

#[test]
fn only_the_phase_ends_copies() {
    for gpu in Gpu::both(SOURCE) {
        assert_eq!(surest(&gpu, "racy").map(|found| found.0), Some(Grade::Certain));
        assert_eq!(surest(&gpu, "mended"), None);
    }
}

#[test]
fn one_thread_initialises_an_object() {
    let [ptx, machine] = Gpu::both(SOURCE);
    assert_eq!(surest(&ptx, "begin_racy"), Some((Grade::Certain, Remedy::OneBegins)));
    assert_eq!(surest(&machine, "begin_racy").map(|found| found.0), Some(Grade::Certain));
    for gpu in [ptx, machine] {
        assert_eq!(surest(&gpu, "begin_mended"), None);
    }
}
