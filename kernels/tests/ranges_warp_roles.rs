//! Stores of one thread of a warp in launches that are followed: behind waits whose length is not
//! known, where lanes may be apart, and at quotients by divisors that the host has prepared.
//!
//! The kernels are machine code and PTX. Code for lanes that are apart is put into a cubin, for the
//! compiler makes it in large kernels only.

use crate::support::cuda;
use device_code::arch::Arch;
use kernels::{AccessKind, CodeImage, Extent, LaunchArgs};
use std::collections::BTreeSet;
use std::path::Path;

const SOURCE: &str = "warp_roles.cu";

/// The words that a launch stores to, where all are known exactly. `words`: what follows the
/// pointer among the parameters.
fn told(image: &CodeImage, kernel: &str, grid: u32, block: u32, words: &[u64]) -> Option<BTreeSet<u64>> {
    let summary = image.summary(kernel).expect("a kernel");
    let mut params =
        vec![0; summary.params().iter().map(|p| usize::from(p.offset + p.size)).max().expect("parameters")];
    let values = [0x7f01_0000_0000].into_iter().chain(words.iter().copied());
    for (p, value) in summary.params().iter().zip(values) {
        let (at, size) = (usize::from(p.offset), usize::from(p.size));
        params[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }
    let mut found = Vec::new();
    summary.evaluate(&LaunchArgs::new([grid, 1, 1], [block, 1, 1], &params), &mut found);
    let mut places = BTreeSet::new();
    for a in found.iter().filter(|a| a.kind == AccessKind::Write) {
        let Extent::Bounded { lo, dims, width, exact: true, .. } = &a.extent else { return None };
        let mut all: Vec<u64> = (*lo as u64..*lo as u64 + u64::from(*width)).step_by(4).collect();
        for d in dims {
            let steps = (0..d.count).map(|k| k * d.stride);
            all = steps.flat_map(|step| all.iter().map(move |at| at + step)).collect();
        }
        places.extend(all.into_iter().map(|at| at / 4));
    }
    Some(places)
}

fn both() -> [(CodeImage, &'static str); 2] {
    ["-cubin", "-ptx"].map(|form| (cuda::image(SOURCE, "sm_90a", form), form))
}

/// What `k_elected` stores to.
fn elected(grid: u32, tiles: u32) -> BTreeSet<u64> {
    let all = (0..grid).flat_map(|block| (block..tiles).step_by(grid as usize)).map(u64::from);
    all.flat_map(|tile| [0, 1, 2].map(|k| (tile * tile + k) * 4 + 1).into_iter().chain([4 * tile * tile + 2])).collect()
}

#[test]
fn one_thread_of_a_warp_stores_for_it() {
    cuda::deep(|| {
        for (image, form) in both() {
            for (grid, tiles) in [(3, 8), (4, 3)] {
                let found = told(&image, "k_elected", grid, 96, &[u64::from(tiles), 0]);
                assert_eq!(found, Some(elected(grid, tiles)), "{form} {grid} {tiles}");
            }
        }
    });
}

#[test]
fn what_was_chosen_before_a_wait_is_the_same_behind_it() {
    cuda::deep(|| {
        let wanted: BTreeSet<u64> = (0..5u64)
            .flat_map(|block| {
                let at = if block == 2 { 77 } else { block * block };
                (0..32).map(move |t| at * 64 + t).chain((block != 2).then_some(4096 + at))
            })
            .collect();
        for (image, form) in both() {
            let flag = 0x7f02_0000_0000;
            assert_eq!(told(&image, "k_waits", 5, 32, &[flag, 77]), Some(wanted.clone()), "{form}");
            assert_eq!(told(&image, "k_counts", 5, 32, &[flag, 77]), None, "{form}");
        }
    });
}

#[test]
fn quotients_by_prepared_divisors_are_numbers() {
    cuda::deep(|| {
        for (image, form) in both() {
            for (factor, shift, first) in
                [(0xaaaa_aaab_0000_0000, 1, 5), (0x9249_2492_4924_9249, 2, 0x700_0000), (u64::MAX, 44, u64::MAX - 40)]
            {
                let quotient = |block: u64| {
                    let product = u128::from(first + 3 * block) * u128::from(factor);
                    (product >> 64) as u64 >> shift
                };
                let wanted: BTreeSet<u64> =
                    (0..7).flat_map(|b| (0..32).map(move |t| (quotient(b), t))).map(|(q, t)| q * 32 + t).collect();
                let found = told(&image, "k_divides", 7, 32, &[factor, shift, first]);
                assert_eq!(found, Some(wanted), "{form} {factor:#x} {shift} {first:#x}");
            }
        }
    });
}

/// The cubin whose election in `k_elected` asks whether the lanes are apart. `collective`: where
/// they are, they wait for each other, and the same is done there.
fn apart(collective: bool) -> CodeImage {
    const ELECT: [u64; 2] = [0x0000_0000_003f_782f, 0x000f_da00_0380_0000];
    const NOP: [u64; 2] = [0x0000_0000_0000_7918, 0x000f_c000_0000_0000];
    const END: [u64; 2] = [0x0000_0000_0000_791b, 0x000f_f400_0000_0000];
    const JUMP: [u64; 2] = [0x0000_0000_0000_7947, 0x000f_ea00_0380_0000];
    const JUMP_APART: [u64; 2] = [0x0000_0002_0800_7947, 0x000f_ea00_0b80_0000];
    const TOGETHER: [u64; 2] = [0x0000_0000_0600_7348, 0x000f_ea00_03c0_0000];
    // To a place so many instructions from here.
    let to = |of: [u64; 2], from: usize, place: usize| {
        let words = (place as i64 - from as i64 - 1) * 4;
        let rest = (words >> 8) as u64 & 0xffff_ffff_ffff;
        [of[0] | (words as u64 & 0xff) << 16 | (rest & 0x3fff_ffff) << 34, of[1] | rest >> 30]
    };
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda").join(SOURCE);
    let mut code = std::fs::read(tests::build::nvcc(&source, &["-cubin", "-arch=sm_90a"])).expect("compiled");
    let section = {
        let cubin = device_code::image::Cubin::parse(&code).expect("a cubin");
        let kernel = cubin.kernel("k_elected").expect("the kernel").code;
        let start = kernel.as_ptr() as usize - code.as_ptr() as usize;
        start..start + kernel.len()
    };
    let kernel = &mut code[section];
    let at = |kernel: &[u8], k: usize| {
        [0, 8].map(|half| u64::from_le_bytes(kernel[16 * k + half..][..8].try_into().expect("8 bytes")))
    };
    let places = 0..kernel.len() / 16;
    let elects = places.clone().find(|k| at(kernel, *k)[0] == ELECT[0]).expect("an election");
    let free = places.rev().take_while(|k| at(kernel, *k)[0] == NOP[0]).last().expect("room behind the code");
    let code_there = [
        (elects, to(JUMP, elects, free)),
        (free, to(JUMP_APART, free, free + 3)),
        (free + 1, ELECT),
        (free + 2, to(JUMP, free + 2, elects + 1)),
        (free + 3, if collective { to(TOGETHER, free + 3, free + 6) } else { NOP }),
        (free + 4, ELECT),
        (free + 5, if collective { END } else { NOP }),
        (free + 6, to(JUMP, free + 6, free + 2)),
    ];
    for (k, words) in code_there {
        kernel[16 * k..16 * k + 16].copy_from_slice(words.map(u64::to_le_bytes).as_flattened());
    }
    CodeImage::load(&code, "sm_90a".parse::<Arch>().expect("arch")).expect("image")
}

#[test]
fn lanes_that_are_apart_do_the_same_elsewhere() {
    cuda::deep(|| {
        assert_eq!(told(&apart(true), "k_elected", 3, 96, &[8, 0]), Some(elected(3, 8)));
        // Code elsewhere that does not wait for the others may do anything else.
        assert_eq!(told(&apart(false), "k_elected", 3, 96, &[8, 0]), None);
    });
}
