//! Calls from which nothing returns: `ptxas` writes some jumps out of loops as such calls. A kernel
//! whose jumps are written like this does what it did before.

use device_code::arch::{Arch, Generation};
use device_code::image::{CodeRef, Cubin};
use device_code::sass::{Opcode, decode_all};
use kernels::CodeImage;

const SOURCE: &str = "extern \"C\" __global__ void steps(float *o, const float *a, const int *counts, int n) {\n\
    #pragma unroll 1\n\
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) {\n\
        float s = 0;\n\
        #pragma unroll 1\n\
        for (int k = 0; k < counts[i]; k++) { s = s * 2 + a[i]; if (s > 1000) break; }\n\
        o[i] = s;\n\
    }\n}\n";

/// Low bits of the opcodes, and the bit that a call has set (`NOINC`).
const BRA: u64 = 0x947;
const CALL: u64 = 0x944;
const NOINC: u64 = 1 << (86 - 64);

fn said(cubin: &[u8]) -> (Vec<(u16, bool, bool, bool)>, bool) {
    let image = CodeImage::from_code(CodeRef::Cubin(cubin.into()), Arch::new(80)).expect("loads");
    let summary = image.summary("steps").expect("summarised");
    let extents = summary.words().iter().map(|w| (w.offset, w.reads, w.writes, w.why.is_some())).collect();
    (extents, summary.indirect().any())
}

#[test]
fn calls_that_nothing_returns_from_are_jumps() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = folder.join("jumps.cu");
    std::fs::write(&source, SOURCE).expect("written");
    let plain = std::fs::read(tests::build::nvcc(&source, &["-cubin", "-arch=sm_80", "-w"])).expect("compiled");
    let cubin = Cubin::parse(&plain).expect("a cubin");
    let code = cubin.kernel("steps").expect("the kernel").code.to_vec();
    let start = plain.windows(code.len()).position(|w| w == code).expect("the code is in the file");
    let before = said(&plain);
    assert_eq!(before, (vec![(0, false, true, false), (8, true, false, false), (16, true, false, false)], false));
    let jumps: Vec<_> = decode_all(Generation::Ampere, &code, 0)
        .into_iter()
        .filter(|i| matches!(i.op, Opcode::Bra { .. }) && i.is_conditional())
        .collect();
    assert!(jumps.len() >= 3, "{}", jumps.len());
    let mut called = plain.clone();
    for jump in &jumps {
        let at = start + jump.pc as usize;
        let word = |b: &[u8], at: usize| u64::from_le_bytes(b[at..at + 8].try_into().expect("eight bytes"));
        let (low, high) = (word(&called, at), word(&called, at + 8));
        assert_eq!(low & 0xfff, BRA);
        called[at..at + 8].copy_from_slice(&(low & !0xfff | CALL).to_le_bytes());
        called[at + 8..at + 16].copy_from_slice(&(high | NOINC).to_le_bytes());
        // It is read as a call of the same place.
        let again = decode_all(Generation::Ampere, &called[start..start + code.len()], 0);
        let call = again.iter().find(|i| i.pc == jump.pc).expect("the instruction");
        assert!(matches!(call.op, Opcode::Call { .. }) && call.target == jump.target, "{call}, not {jump}");
    }
    assert_eq!(said(&called), before);
}
