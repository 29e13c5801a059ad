//! Launches that differ in numbers only are not evaluated again. What is found for them must be
//! what an evaluation finds, number for number. (`ranges_fuzz` checks the same for generated
//! kernels.)
//!
//! `REPLAYS=N` runs that many launches of each kernel (`cargo xtask nightly`: 2,000).

use device_code::image::{CodeRef, Image};
use kernels::{CodeImage, KernelAccess, LaunchArgs, Summary};
use std::path::Path;

/// xorshift64*
struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % n
    }

    /// A number near the one before, as a rule; sometimes one of another size, or at the end of a
    /// type.
    fn near(&mut self, before: u32) -> u32 {
        const ENDS: [u32; 10] = [0, 1, 2, 31, 32, 33, 1 << 16, i32::MAX as u32, 1 << 31, u32::MAX];
        match self.below(16) {
            0 => ENDS[self.below(10) as usize],
            1 => self.below(1 << 20) as u32 >> self.below(20),
            2..=5 => before.wrapping_add(self.below(9) as u32).wrapping_sub(4),
            6 => 16 * self.below(200) as u32,
            _ => before,
        }
    }
}

/// Launches of one kernel, each like the one before: grids and parameters.
fn launches(r: &mut Rng, s: &Summary, count: usize) -> Vec<([u32; 3], Vec<u8>)> {
    let size = s.params().iter().map(|p| usize::from(p.offset) + usize::from(p.size)).max().unwrap_or(0);
    let mut numbers = vec![1000u32; size.div_ceil(8) * 2];
    // High words of 64-bit parameters are zero; in structs either width may be meant.
    for p in s.params().iter().filter(|p| p.size == 8) {
        numbers[usize::from(p.offset) / 4 + 1] = 0;
    }
    let pointers: Vec<usize> = s.words().iter().map(|w| usize::from(w.offset)).collect();
    let mut grid = [6, 3, 2];
    let mut made = Vec::new();
    for _ in 0..count {
        let rarely = r.below(4) == 0;
        for p in s.params().iter().filter(|p| p.size <= 64 || rarely) {
            for at in (usize::from(p.offset)..).step_by(4).take(usize::from(p.size).div_ceil(4)) {
                if p.size != 8 || at.is_multiple_of(8) {
                    numbers[at / 4] = r.near(numbers[at / 4]);
                }
            }
        }
        let d = r.below(3) as usize;
        grid[d] = (r.near(grid[d]) % 4096).max(1);
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        for at in pointers.iter().filter(|at| **at + 8 <= 4 * numbers.len()) {
            let pointer = 0x7f00_0000_0000 + ((*at as u64) << 32) + 16 * r.below(4);
            bytes[*at..*at + 8].copy_from_slice(&pointer.to_le_bytes());
        }
        bytes.truncate(size);
        made.push((grid, bytes));
    }
    made
}

/// Every kernel of an image, and launches of it, which are checked.
fn every_kernel(image: &CodeImage, count: usize, what: &str) {
    let mut r = Rng(0x9e37_79b9_7f4a_7c15);
    for name in image.kernel_names() {
        let summary = image.summary(name).expect("a summary");
        let mut found = 0;
        for (grid, bytes) in launches(&mut r, &summary, count) {
            let launch = LaunchArgs::new(grid, [128, 1, 1], &bytes);
            let (mut kept, mut anew): (Vec<KernelAccess>, Vec<KernelAccess>) = Default::default();
            summary.evaluate(&launch, &mut kept);
            summary.evaluate_uncached(&launch, &mut anew);
            assert_eq!(kept, anew, "{what}: {name}: {launch:?}");
            found += kept.len();
        }
        assert!(found > 0 || summary.access_count() == 0, "{what}: {name}: nothing found");
    }
}

/// What launches in a row are found to access, the bytes that this rests on, and how many took the
/// bytes of others.
fn in_turn(s: &Summary, launches: &[([u32; 3], Vec<u8>)], pause: impl Fn(usize)) -> (Vec<String>, u64) {
    let one = |(n, (grid, params)): (usize, &([u32; 3], Vec<u8>))| {
        pause(n);
        let (mut found, mut inputs) = (Vec::new(), Vec::new());
        s.evaluate_with_inputs(&LaunchArgs::new(*grid, [128, 1, 1], params), &mut found, &mut inputs);
        format!("{found:?} {inputs:?}")
    };
    (launches.iter().enumerate().map(one).collect(), s.relocated())
}

/// Launches of each kernel are evaluated by other threads before their turn, or beside it, or
/// behind it, some of them and in any order. Nothing of that shows.
fn every_kernel_ahead(load: impl Fn() -> CodeImage, count: usize, what: &str) {
    let mut r = Rng(0x2545_f491_4f6c_dd1d);
    let image = load();
    for name in image.kernel_names() {
        let summary = image.summary(name).expect("a summary");
        let pointers: Vec<usize> = summary.words().iter().map(|w| usize::from(w.offset)).collect();
        let mut all = launches(&mut r, &summary, count);
        // Of some there are many that differ in pointers only.
        for n in 0..2 * count {
            let (grid, mut params) = all[n % 3].clone();
            let size = params.len();
            for at in pointers.iter().filter(|at| **at + 8 <= size) {
                let pointer = 0x7f10_0000_0000 + ((*at as u64) << 32) + ((n as u64) << 20);
                params[*at..*at + 8].copy_from_slice(&pointer.to_le_bytes());
            }
            all.push((grid, params));
        }
        let expected = in_turn(&summary, &all, |_| ());
        for (threads, late) in [(1, 100), (1, 0), (3, 100), (2, 7)] {
            let summary = load().summary(name).expect("a summary");
            let (seed, half_way) = (r.below(1 << 40), std::sync::Barrier::new(2));
            let found = std::thread::scope(|scope| {
                for thread in 0..threads {
                    let (summary, all, half_way) = (&summary, &all, &half_way);
                    scope.spawn(move || {
                        let mut r = Rng(seed + thread as u64 + 1);
                        for at in 0..all.len() {
                            // One thread follows the order, the others jump.
                            let at = if thread == 0 { at } else { r.below(all.len() as u64) as usize };
                            let (grid, params) = &all[at];
                            summary.evaluate_ahead(&LaunchArgs::new(*grid, [128, 1, 1], params));
                            if at == all.len() / 2 && thread == 0 {
                                half_way.wait();
                            }
                        }
                    });
                }
                // The turns begin when others are half way, or at once.
                if late > 50 {
                    half_way.wait();
                }
                let found = in_turn(&summary, &all, |n| {
                    if late > 0 && n % late == 0 {
                        std::thread::yield_now();
                    }
                });
                if late <= 50 {
                    half_way.wait();
                }
                found
            });
            assert_eq!(found.0, expected.0, "{what}: {name}");
            assert_eq!(found.1, expected.1, "{what}: {name}: how many took the bytes of others");
        }
    }
}

fn count(usual: usize) -> usize {
    std::env::var("REPLAYS").ok().and_then(|v| v.parse().ok()).unwrap_or(usual)
}

#[test]
fn kernels_of_triton_and_numba() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx");
    let entries = std::fs::read_dir(&folder).expect("the folder").filter_map(|e| Some(e.ok()?.path()));
    for file in entries.filter(|p| p.extension().is_some_and(|e| e == "ptx")) {
        let text = std::fs::read_to_string(&file).expect("a text");
        let image = CodeImage::from_code(CodeRef::Ptx(text.into()), "sm_90".parse().expect("sm_90")).expect("PTX");
        every_kernel(&image, count(30), &file.display().to_string());
    }
}

#[test]
fn launches_that_others_evaluate_ahead_are_found_as_in_their_turn() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (source, options) in [
        ("tests/cuda/ranges.cu", ["-cubin", "-arch=sm_90"]),
        ("tests/cuda/tables.cu", ["-cubin", "-arch=sm_75"]),
        ("benches/small.cu", ["-ptx", "-arch=sm_80"]),
    ] {
        let code = std::fs::read(tests::build::nvcc(&folder.join(source), &options)).expect("compiled");
        let load = || {
            let image = Image::parse(&code).expect("an image");
            let entry = image.entries().first().expect("an entry");
            CodeImage::from_code(entry.unpack().expect("unpacked"), entry.arch).expect("code")
        };
        every_kernel_ahead(load, count(8), &format!("{source} {options:?}"));
    }
}

#[test]
fn our_own_kernels() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for source in
        ["tests/cuda/ranges.cu", "tests/cuda/tables.cu", "../device-code/tests/sass/flow.cu", "benches/small.cu"]
    {
        for options in [["-cubin", "-arch=sm_90"], ["-cubin", "-arch=sm_75"], ["-ptx", "-arch=sm_80"]] {
            let code = std::fs::read(tests::build::nvcc(&folder.join(source), &options)).expect("compiled");
            let image = Image::parse(&code).expect("an image");
            let entry = image.entries().first().expect("an entry");
            let image = CodeImage::from_code(entry.unpack().expect("unpacked"), entry.arch).expect("code");
            every_kernel(&image, count(20), &format!("{source} {options:?}"));
        }
    }
}
