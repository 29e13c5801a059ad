//! Any words as the code of a kernel: lowering ends in a function or a named error, and its summary
//! answers for any launch, the same whether the launch is evaluated or replayed.
//!
//! The first byte is the generation, the second the launch; instructions follow. Seeds: code
//! sections of cubins behind two bytes.

#![no_main]

use device_code::arch::Generation::{Ampere, Blackwell, BlackwellConsumer, Hopper, Turing, Volta};
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
    // Launches that differ in some words and in the grid: what is replayed must be what an
    // evaluation finds.
    let mut params: Vec<u8> = (0..64u8).map(|n| n.wrapping_mul(*launch)).collect();
    for (round, step) in [0u8, 1, 1, 16, 128].into_iter().enumerate() {
        let at = 4 * (usize::from(launch.wrapping_add(round as u8)) % 16);
        params[at] = params[at].wrapping_add(step);
        params[24] = params[24].wrapping_add(step);
        let grid = [u32::from(*launch % 16) + 1 + (round as u32) / 2, u32::from(*launch / 16) + 1, 1];
        let launch = LaunchArgs::new(grid, [64, 2, 1], &params);
        let (mut kept, mut anew) = (Vec::new(), Vec::new());
        summary.evaluate(&launch, &mut kept);
        summary.evaluate_uncached(&launch, &mut anew);
        assert_eq!(kept, anew);
    }
});
