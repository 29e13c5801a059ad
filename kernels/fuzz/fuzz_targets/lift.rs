//! Any words as the code of a kernel: lowering ends in a function or a named error, and its summary answers for any launch.
//!
//! The first byte is the generation, the second the launch, then follow instructions. Seeds: code sections of cubins behind two bytes.
#![no_main]

use kernels::arch::Generation::{Ampere, Blackwell, BlackwellConsumer, Hopper, Turing, Volta};
use kernels::lower_sass::{Code, Links, lower};
use kernels::{LaunchArgs, Summary, sass};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [which, launch, code @ ..] = bytes else { return };
    // As long as kernels may be that are analysed on the caller's stack.
    let code = &code[..code.len().min(250 * 16)];
    let (generation, param_base) =
        [(Volta, 0x160), (Turing, 0x160), (Ampere, 0x160), (Hopper, 0x210), (Blackwell, 0x380), (BlackwellConsumer, 0x380)]
            [usize::from(*which) % 6];
    let insts = sass::decode_all(generation, code, 0);
    let code = Code {
        name: "k",
        generation,
        insts: &insts,
        entry: 0,
        param_base,
        params: vec![(0, 8), (8, 8), (16, 8), (24, 4), (28, 4), (32, 32)],
        links: &Links::default(),
    };
    let Ok(f) = lower(&code) else { return };
    let summary = Summary::new(&f);
    let _ = (summary.words().len(), summary.indirect());
    let params: Vec<u8> = (0..64u8).map(|n| n.wrapping_mul(*launch)).collect();
    let grid = [u32::from(*launch % 16) + 1, u32::from(*launch / 16) + 1, 1];
    let mut out = Vec::new();
    summary.evaluate(&LaunchArgs::new(grid, [64, 2, 1], &params), &mut out);
});
