//! Random kernels, interpreted and as native code: all that they leave in memory must be the same,
//! bit by bit. `NATIVE_FUZZ` is how many kernels are tried (default: six; `cargo xtask nightly`:
//! 300), `NATIVE_FUZZ_SEED` the first seed. Kernels that differ are left in the folder for
//! temporary files, with their input as bytes; `NATIVE_FUZZ_FILE` tries such a file with the seed's
//! input. `INTERP_CODE=sass` tries the machine code that the assembler makes of the kernels.
//!
//! `NATIVE_FUZZ_KEEP` is a folder where all kernels are left, with what they read and what they
//! made: `tests/gpu random_kernels` holds a GPU to it. `NATIVE_FUZZ_EXACT=1` writes kernels without
//! what PTX leaves open; `NATIVE_FUZZ_FORMS=1` writes kernels of one instruction each, by seed, so
//! that a difference says which it is.
//!
//! This file runs them. `kernel` and `writer` write them, `forms` has their instructions.

mod forms;
mod kernel;
mod writer;

use std::path::Path;
use std::process::Command;

use crate::interp_support::both::Random;
use crate::interp_support::{Gpu, arch, toolkit};
use kernel::{BLOCKS, Body, INPUT, OUTPUT, THREADS, kernel};
use streamsan_sim::interp::{Compile, FaultKind, Launch, run};

/// Numbers among which the odd ones are frequent.
fn input(random: &mut Random) -> Vec<u32> {
    let odd = [
        0,
        1,
        u32::MAX,
        0x8000_0000,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x7fff_ffff,
        0x0000_0001,
        0x8000_0001,
        0x3f80_0000,
        0xbf80_0000,
        0x7f7f_ffff,
        0x0080_0000,
        0x7ff0_0000,
        31,
        32,
        5,
    ];
    (0..INPUT * THREADS * BLOCKS)
        .map(|_| {
            let value = random.next();
            match value >> 60 {
                0..6 => odd[(value >> 20) as usize % odd.len()],
                6..10 => ((value >> 32) as f32 / 4e8 - 3.0).to_bits(),
                10..12 => (value >> 32) as u32 % 64,
                _ => (value >> 16) as u32,
            }
        })
        .collect()
}

/// Machine code of a kernel. None: the assembler itself crashed (seed 1900136).
fn assembled(text: &str, arch: &str) -> Option<Vec<u8>> {
    // Tests may run side by side in one process.
    let (process, thread) = (std::process::id(), std::thread::current().id());
    let place = |name: &str| std::env::temp_dir().join(format!("native-fuzz-{process}-{thread:?}.{name}"));
    let (from, to) = (place("ptx"), place("cubin"));
    std::fs::write(&from, text).unwrap();
    let ptxas = toolkit().join("bin/ptxas");
    let done = Command::new(ptxas).arg(format!("-arch={arch}")).arg("-o").args([&to, &from]).output().unwrap();
    let _ = std::fs::remove_file(from);
    done.status.code()?;
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let made = std::fs::read(&to).unwrap();
    let _ = std::fs::remove_file(to);
    Some(made)
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Writes what belongs to a seed: its kernel, what that reads, or what it makes.
fn leave(folder: &Path, seed: u64, kind: &str, what: &[u8]) -> std::io::Result<()> {
    std::fs::write(folder.join(format!("native-fuzz-{seed}.{kind}")), what)
}

/// What came of a seed's kernel.
enum Tried {
    Same,
    Different,
    /// There is no machine code, or it has instructions that are not executed.
    Refused,
}

/// Runs a kernel with the seed's input, interpreted and as native code: as PTX, or as machine code
/// for `machine`. Panics where one of them fails.
fn try_kernel(seed: u64, text: &str, machine: Option<&str>) -> Tried {
    let data = input(&mut Random(seed | 1 << 40));
    let block = [[THREADS, 1, 1], [16, 5, 1], [THREADS, 1, 1], [8, 5, 2]][seed as usize % 4];
    let keep = || {
        let folder = std::env::temp_dir();
        let _ = (leave(&folder, seed, "ptx", text.as_bytes()), leave(&folder, seed, "input", &bytes(&data)));
    };
    let outputs = [Compile::Off, Compile::Always].map(|compile| {
        let gpu = match machine {
            Some(arch) => Gpu::from_cubin(assembled(text, arch)?),
            None => Gpu::from_ptx(text),
        };
        let words = (OUTPUT + 4 * (16 + 8 + 4 + 2) / 4) * THREADS * BLOCKS;
        let (from, to) = (gpu.buffer(&data), gpu.zeros::<u32>(words as usize));
        let params = [from.address.to_le_bytes(), to.address.to_le_bytes()].concat();
        let launch =
            Launch { grid: [BLOCKS, 1, 1], block, params, compile, native: streamsan_sim::NATIVE, ..Launch::default() };
        let kernels = gpu.kernels();
        let (program, kernel) = kernels[0];
        match run(program, kernel, &launch, &gpu.device, 1) {
            Ok(()) => Some(to.read::<u32>()),
            Err(fault) if machine.is_some() && matches!(fault.kind, FaultKind::Unsupported(_)) => None,
            Err(fault) => {
                keep();
                panic!("seed {seed}, compile {compile:?}: {fault}")
            }
        }
    });
    let [Some(interpreted), Some(native)] = outputs else { return Tried::Refused };
    if let Some(folder) = std::env::var_os("NATIVE_FUZZ_KEEP") {
        let folder = Path::new(&folder);
        let [x, y, z] = block;
        let text = format!("// grid {BLOCKS} 1 1, block {x} {y} {z}\n{text}");
        for (kind, what) in [("ptx", text.as_bytes()), ("input", &bytes(&data)), ("output", &bytes(&interpreted))] {
            leave(folder, seed, kind, what).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        }
    }
    let Some(at) = (0..native.len()).find(|&at| interpreted[at] != native[at]) else { return Tried::Same };
    // Behind all threads' own output it is the place.
    let (thread, word) = (at as u32 / OUTPUT, at as u32 % OUTPUT);
    eprintln!(
        "seed {seed}: thread {thread}, output {word}: {:#x} interpreted, {:#x} native",
        interpreted[at], native[at]
    );
    keep();
    Tried::Different
}

#[test]
fn random_kernels_do_the_same_as_native_code() {
    let number = |name: &str, default: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (count, first) = (number("NATIVE_FUZZ", 6), number("NATIVE_FUZZ_SEED", 1));
    let machine = std::env::var_os("INTERP_CODE").is_some_and(|code| code == "sass").then(arch);
    let asked = |name: &str| std::env::var_os(name).is_some_and(|value| value == "1");
    let body = Body { exact: asked("NATIVE_FUZZ_EXACT"), one_form: asked("NATIVE_FUZZ_FORMS") };
    let (mut differ, mut refused) = (0, 0);
    for seed in first..first + count {
        // A kernel that was written down, to make it smaller.
        let text = std::env::var("NATIVE_FUZZ_FILE")
            .map_or_else(|_| kernel(seed, body), |f| std::fs::read_to_string(f).unwrap());
        match try_kernel(seed, &text, machine.as_deref()) {
            Tried::Same => {}
            Tried::Different => differ += 1,
            Tried::Refused => refused += 1,
        }
    }
    assert_eq!(differ, 0, "of {count} kernels");
    assert!(refused * 2 <= count, "{refused} of {count} kernels were refused");
}

/// Lanes leave a region of convergence by a branch without BREAK and wait at a WARPSYNC for those
/// that wait for them at the region's BSYNC. It ends on an H200.
#[test]
fn lanes_that_left_a_region_are_not_waited_for_there() {
    for arch in ["sm_80", "sm_90"] {
        assert!(matches!(try_kernel(60063, &kernel(60063, Body::default()), Some(arch)), Tried::Same), "{arch}");
    }
}
