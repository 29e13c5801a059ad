//! Conversions to and from numbers of eight bits: machine code for 9.0 leaves the same bits as PTX,
//! whichever half of a register they are in.

use crate::interp_support::both::Random;
use crate::interp_support::{Arg, Gpu, compile, ptx};

const SOURCE: &str = r#"
typedef unsigned short u16;
#define SINGLES(form, at) { u16 h; asm volatile("cvt.rn.satfinite." form "x2.f32 %0, %1, %2;" : "=h"(h) : "f"(a), "f"(b)); to[at] = h; }
#define HALVES(form, at) { u16 h; asm volatile("cvt.rn.satfinite." form "x2.f16x2 %0, %1;" : "=h"(h) : "r"(bits)); to[at] = h; }
#define WIDEN(form, half, at) { unsigned w; asm volatile("cvt.rn." form "x2 %0, %1;" : "=r"(w) : "h"((u16)(bits >> half))); to[at] = w; }
extern "C" __global__ void eights(const float* singles, const unsigned* words, unsigned* out) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    float a = singles[2 * t], b = singles[2 * t + 1];
    unsigned bits = words[t], *to = out + 16 * t;
    SINGLES("e4m3", 0) SINGLES("e5m2", 1) SINGLES("relu.e4m3", 2) SINGLES("relu.e5m2", 3)
    HALVES("e4m3", 4) HALVES("e5m2", 5) HALVES("relu.e4m3", 6) HALVES("relu.e5m2", 7)
    WIDEN("f16x2.e4m3", 0, 8) WIDEN("f16x2.e5m2", 0, 9) WIDEN("f16x2.e4m3", 16, 10) WIDEN("f16x2.e5m2", 16, 11)
    WIDEN("relu.f16x2.e4m3", 16, 12) WIDEN("relu.f16x2.e5m2", 0, 13)
    // Four in one register: the second pair is above the first.
    unsigned four;
    asm volatile("{ .reg .b16 l, h; cvt.rn.satfinite.e4m3x2.f32 l, %1, %2; cvt.rn.satfinite.e4m3x2.f32 h, %2, %1; mov.b32 %0, {l, h}; }"
        : "=r"(four) : "f"(a), "f"(b));
    to[14] = four;
    asm volatile("{ .reg .b16 l, h; cvt.rn.satfinite.e5m2x2.f16x2 l, %1; cvt.rn.satfinite.e5m2x2.f16x2 h, %2; mov.b32 %0, {l, h}; }"
        : "=r"(four) : "r"(bits), "r"(~bits));
    to[15] = four;
}
"#;

const THREADS: usize = 256;
const BLOCKS: usize = 16;

#[test]
fn both_kinds_of_code_convert_alike() {
    let count = THREADS * BLOCKS;
    let mut random = Random(7);
    let special =
        [0.0, -0.0, 1.0, -448.0, 464.0, 465.0, 57344.0, 1e9, -1e-9, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let singles: Vec<f32> = (0..2 * count)
        .map(|at| match special.get(at) {
            Some(&value) => value,
            // As large as numbers of eight bits are, with fractions that have to be rounded.
            None => {
                let bits = random.next();
                let size = f64::from((bits >> 32) as u32 % 44) - 24.0;
                ((bits as u32 as i32) as f64 / 2f64.powi(31) * size.exp2()) as f32
            }
        })
        .collect();
    let words: Vec<u32> = (0..count).map(|at| (at as u32) << 16 | random.next() as u32 & 0xffff).collect();
    let machine = Gpu::from_cubin(compile(SOURCE, &["-cubin", "-arch=sm_90a"], &[]));
    let [ptx, machine] = [Gpu::from_ptx(&ptx(SOURCE, "compute_90a", &[])), machine].map(|gpu| {
        let (a, b, out) = (gpu.buffer(&singles), gpu.buffer(&words), gpu.zeros::<u32>(16 * count));
        let args: [Arg; 3] = [(&a).into(), (&b).into(), (&out).into()];
        gpu.launch("eights", BLOCKS as u32, THREADS as u32, &args);
        out.read::<u32>()
    });
    for (at, (p, m)) in ptx.iter().zip(&machine).enumerate() {
        let thread = at / 16;
        assert_eq!(p, m, "{}: {:?}, {:#x}", at % 16, &singles[2 * thread..][..2], words[thread]);
    }
    // 1.0 and -448 in the pair of the second thread: codes that the format's document has.
    assert_eq!(ptx[16], 0x38fe);
    assert_eq!(ptx[16 + 14], 0xfe38_38fe);
}
