//! Kernels of compute capability 9.0a against the host: tensor maps that a kernel makes, columns of
//! images (`im2col`), `setmaxnreg`, products of warp groups with a sparse factor, stores of tiles,
//! and stores and reductions that a barrier object counts.

use device_code::tensor_map::{Tensor, Tile};
use sim_races::{Grade, Remedy};
use streamsan_sim::interp::exec::tensor::map::{Image, TensorMap};
use streamsan_sim::interp::{BulkTiming, FaultKind, Launch};

use crate::interp_support::{Arg, Gpu, compile, ptx};

const SOURCE: &str = include_str!("cuda/hopper.cu");

fn gpu() -> Gpu {
    Gpu::from_ptx(&ptx(SOURCE, "compute_90a", &[]))
}

/// The same as machine code.
fn machine() -> Gpu {
    Gpu::from_cubin(compile(SOURCE, &["-cubin", "-arch=sm_90a"], &[]))
}

fn launch(threads: u32, bulk: BulkTiming) -> Launch {
    Launch { grid: [1; 3], block: [threads, 1, 1], bulk, ..Launch::default() }
}

#[test]
fn a_map_that_the_kernel_has_made_is_used() {
    let input: Vec<i32> = (0..40 * 20).collect();
    let times = [BulkTiming::AtOnce, BulkTiming::Late, BulkTiming::Random(1)];
    let gpus = [gpu(), machine()];
    for (gpu, bulk) in gpus.iter().flat_map(|gpu| times.map(|bulk| (gpu, bulk))) {
        for mended in [true, false] {
            let detector = gpu.detect();
            let (from, f) = (gpu.buffer(&input), gpu.zeros::<i32>(256));
            // The racy form finds a map there, whoever comes first.
            let tile = Tile { extent: [32, 8, 1, 1, 1], step: [1; 5] };
            let (sizes, strides) = ([40, 20, 1, 1, 1], [160, 0, 0, 0]);
            let tensor = Tensor { address: from.address, element: 4, sizes, strides, tile: Some(tile) };
            let map = TensorMap { tensor, tile, image: None, kind: 3, rank: 2, swizzle: 128 };
            let maps = if mended { gpu.zeros::<u8>(128) } else { gpu.buffer(&map.encode()) };
            let name = if mended { "makes_map_0" } else { "makes_map_1" };
            gpu.launch_with(name, launch(64, bulk), &[(&from).into(), (&f).into(), (&maps).into()]);
            let got = f.read::<i32>();
            for row in 0..8 {
                for column in 0..32 {
                    let at = row * 32 + ((column / 4) ^ (row % 8)) * 4 + column % 4;
                    let (x, y) = (4 + column, 16 + row);
                    let want = if x < 40 && y < 20 { (y * 40 + x) as i32 } else { 0 };
                    assert_eq!(got[at], want, "{bulk:?} {column} {row}");
                }
            }
            if mended {
                assert_eq!(detector.races(), []);
                assert_eq!(maps.read::<u8>(), map.encode());
            } else {
                let found: Vec<_> = detector.races().iter().map(|race| (race.grade, race.remedy)).collect();
                // Machine code copies the map by atomic exchanges. Where the tile is copied first,
                // the map must not change until that ends.
                let remedy = if gpu.is_machine() { Remedy::Atomic } else { Remedy::BlockBarrier };
                let is_it = |(grade, of): &(Grade, Remedy)| {
                    *grade == Grade::Certain && (*of == remedy || *of == Remedy::AwaitPhase)
                };
                assert!(found.iter().any(is_it), "{found:?}");
            }
        }
    }
}

/// Of an image: channels, columns, rows, images.
const SIZES: [i64; 4] = [12, 7, 5, 3];

struct Column {
    lower: [i16; 2],
    upper: [i16; 2],
    step: [u32; 2],
    pixels: u16,
    /// Of the first pixel: channel, column, row, image.
    first: [i32; 4],
    offsets: [i32; 2],
}

const COLUMNS: &[Column] = &[
    Column { lower: [0, 0], upper: [0, 0], step: [1, 1], pixels: 9, first: [0, 0, 0, 0], offsets: [0, 0] },
    // A window of 3 by 3 with a border of one: each corner of it, to the next image.
    Column { lower: [-1, -1], upper: [-1, -1], step: [1, 1], pixels: 40, first: [4, -1, -1, 1], offsets: [0, 0] },
    Column { lower: [-1, -1], upper: [-1, -1], step: [1, 1], pixels: 40, first: [4, 3, 2, 1], offsets: [2, 2] },
    // Every second column, every third row.
    Column { lower: [-1, 0], upper: [0, -1], step: [2, 3], pixels: 12, first: [8, 1, 0, 0], offsets: [1, 1] },
    // Channels that end within the copy, and images that do.
    Column { lower: [0, -2], upper: [0, 0], step: [1, 1], pixels: 40, first: [8, 5, 3, 2], offsets: [0, 1] },
];

impl Column {
    /// Where each pixel is, by going through all of the boxes.
    fn pixels(&self) -> Vec<[i64; 3]> {
        let range = |axis: usize| {
            let last = SIZES[axis + 1] - 1 + i64::from(self.upper[axis]);
            (i64::from(self.lower[axis])..=last).step_by(self.step[axis] as usize)
        };
        let mut all = Vec::new();
        for image in 0..2 * SIZES[3] {
            range(1).for_each(|row| range(0).for_each(|column| all.push([column, row, image])));
        }
        let first = [1, 2, 3].map(|axis| i64::from(self.first[axis]));
        let start = all.iter().position(|pixel| *pixel == first).expect("a pixel of the box");
        all[start..][..usize::from(self.pixels)].to_vec()
    }

    fn map(&self, address: u64) -> TensorMap {
        let sizes = [SIZES[0] as u64, SIZES[1] as u64, SIZES[2] as u64, SIZES[3] as u64, 1];
        let strides = [48, 48 * 7, 48 * 7 * 5, 0];
        let tensor = Tensor { address, element: 4, sizes, strides, tile: None };
        let ([w, h], [right, down]) = (self.lower, self.upper);
        let image = Image { lower: [w, h, 0], upper: [right, down, 0], channels: 8, pixels: self.pixels };
        let tile = Tile { extent: [1; 5], step: [1, self.step[0], self.step[1], 1, 1] };
        TensorMap { tensor, tile, image: Some(image), kind: 3, rank: 4, swizzle: 0 }
    }
}

fn inside(at: [i64; 4]) -> Option<usize> {
    let fits = at.iter().zip(SIZES).all(|(at, size)| (0..size).contains(at));
    fits.then(|| (((at[3] * SIZES[2] + at[2]) * SIZES[1] + at[1]) * SIZES[0] + at[0]) as usize)
}

#[test]
fn columns_of_images_are_those_of_the_host() {
    let input: Vec<i32> = (1..=SIZES.iter().product::<i64>() as i32).collect();
    for gpu in [gpu(), machine()] {
        for (number, case, bulk) in COLUMNS
            .iter()
            .enumerate()
            .flat_map(|(number, case)| [BulkTiming::AtOnce, BulkTiming::Late].map(|bulk| (number, case, bulk)))
        {
            let detector = gpu.detect();
            let count = 8 * usize::from(case.pixels);
            let (image, f) = (gpu.buffer(&input), gpu.zeros::<i32>(count));
            let map = || Arg::Bytes(case.map(image.address).encode().to_vec());
            let [c, w, h, n] = case.first.map(Arg::from);
            let [right, down] = case.offsets.map(Arg::from);
            let args = [map(), (&f).into(), (count as i32).into(), c, w, h, n, right, down];
            gpu.launch_with("column", launch(64, bulk), &args);
            let got = f.read::<i32>();
            for (at, [column, row, n]) in case.pixels().into_iter().enumerate() {
                for channel in 0..8 {
                    let [right, down] = case.offsets.map(i64::from);
                    let place = [i64::from(case.first[0]) + channel, column + right, row + down, n];
                    let want = inside(place).map_or(0, |at| input[at]);
                    assert_eq!(got[at * 8 + channel as usize], want, "{number}, {bulk:?}: pixel {at}, {place:?}");
                }
            }
            assert_eq!(detector.races(), []);
            // And back, without offsets.
            let detector = gpu.detect();
            let [c, w, h, n] = case.first.map(Arg::from);
            gpu.launch_with("column_back", launch(64, bulk), &[map(), (count as i32).into(), c, w, h, n]);
            let mut want = input.clone();
            for (at, [column, row, n]) in case.pixels().into_iter().enumerate() {
                for channel in 0..8 {
                    if let Some(place) = inside([i64::from(case.first[0]) + channel, column, row, n]) {
                        want[place] = 1000 + (at * 8 + channel as usize) as i32;
                    }
                }
            }
            assert_eq!(image.read::<i32>(), want, "{number}, {bulk:?}");
            assert_eq!(detector.races(), []);
        }
    }
}

#[test]
fn lanes_with_the_same_operands_issue_one_store() {
    for gpu in [gpu(), machine()] {
        let run = |name: &str| {
            let detector = gpu.detect();
            let (to, sums) = (gpu.zeros::<i32>(128), gpu.zeros::<i32>(64));
            gpu.launch_with(name, launch(128, BulkTiming::Late), &[(&to).into(), (&sums).into()]);
            assert_eq!(detector.races(), [], "{name}");
            (to.read::<i32>(), sums.read::<i32>())
        };
        let (to, sums) = run("issued_by_a_warp");
        assert!(to[..64].iter().copied().eq(1..65) && sums.into_iter().eq((1..65).map(|sum| 32 * sum)));
        let (to, sums) = run("issued_by_each_lane");
        assert!(to.into_iter().eq(1..129));
        let want = |at: i32| (0..32).map(|lane| 4 * lane + at + 1).sum::<i32>();
        assert!(sums[..4].iter().copied().eq((0..4).map(want)) && sums[4..].iter().all(|&sum| sum == 0));
    }
}

#[test]
fn registers_are_handed_on_and_misuse_has_a_name() {
    let gpus = [gpu(), machine()];
    let ends = |gpu: &Gpu, name: &str| {
        let f = gpu.zeros::<i32>(384);
        let ended = gpu.try_launch(name, launch(384, BulkTiming::AtOnce), &[(&f).into()]);
        if ended.is_ok() {
            assert!(f.read::<i32>().into_iter().eq(1..385), "{name}");
        }
        ended.map_err(|fault| {
            assert!(matches!(fault.kind, FaultKind::Registers(_)), "{name}: {fault}");
            fault.to_string()
        })
    };
    for gpu in &gpus {
        assert_eq!(ends(gpu, "registers_0"), Ok(()));
        assert_eq!(ends(gpu, "registers_4"), Ok(()));
        let said = ends(gpu, "registers_1").unwrap_err();
        assert!(said.contains("threads 128 to 383 wait for 232 registers each ("), "{said}");
        let said = ends(gpu, "registers_2").unwrap_err();
        assert!(said.contains(".dec leaves 200 registers, and the thread has 168"), "{said}");
        let said = ends(gpu, "registers_3").unwrap_err();
        assert!(said.contains("different counts: warp 0 for 40, warp 1 for 48"), "{said}");
    }
}

/// A number between -2 and 2, and its bits in a type of so many bytes.
fn value(at: usize, size: usize) -> (f64, u32) {
    let number = ((at * 7 + at / 5) % 5) as f64 - 2.0;
    let half = [0, 0x3c00, 0x4000][number.abs() as usize] | u32::from(number < 0.0) << 15;
    let bits = match size {
        1 => number as i8 as u8 as u32,
        2 => half,
        _ => (number as f32).to_bits(),
    };
    (number, bits)
}

/// Where an element lies: cores of 8 lines of 16 bytes, those along a line one behind the other.
fn byte_of(line: usize, inner: usize, size: usize, cores: usize) -> usize {
    (line / 8 * cores + inner / (16 / size)) * 128 + line % 8 * 16 + inner % (16 / size) * size
}

#[test]
fn products_with_a_sparse_factor_are_those_of_the_whole_factor() {
    let gpus = [gpu(), machine()];
    let forms = [
        ("sparse_f16_0", 2, 0, 1.0),
        ("sparse_f16_1", 2, 1, -1.0),
        ("sparse_tf32", 4, 1, 1.0),
        ("sparse_s8", 1, 0, 1.0),
    ];
    for (gpu, (name, size, selector, sign)) in gpus.iter().flat_map(|gpu| forms.map(|form| (gpu, form))) {
        // In machine code products are not looked at for races.
        let detector = (!gpu.is_machine()).then(|| gpu.detect());
        let (terms, chunk) = (64 / size, if size == 4 { 2 } else { 4 });
        let mut images = [vec![0u8; 2048], vec![0u8; 512]];
        let mut put = |which: usize, at: usize, bits: u32| {
            images[which][at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
        };
        let mut whole = vec![0.0; 64 * terms];
        // By warp, and what lanes that nobody asks hold.
        let mut metadata = vec![0xdead_beef_u32; 128];
        for row in 0..64 {
            for number in 0..terms / chunk {
                // One of two, or two of four: which ones, and how their bits say so (PTX ISA,
                // "Sparse matrix storage").
                let (places, bits): (&[usize], u32) = match (size, (row + number * 3) % 6) {
                    (4, draw) if draw % 2 == 0 => (&[0], 0b0100),
                    (4, _) => (&[1], 0b1110),
                    (_, 0) => (&[0, 1], 0b0100),
                    (_, 1) => (&[0, 2], 0b1000),
                    (_, 2) => (&[0, 3], 0b1100),
                    (_, 3) => (&[1, 2], 0b1001),
                    (_, 4) => (&[1, 3], 0b1101),
                    _ => (&[2, 3], 0b1110),
                };
                for (at, place) in places.iter().enumerate() {
                    let stored = number * places.len() + at;
                    let (number_there, bits) = value(row * 5 + stored * 3 + 1, size);
                    put(0, byte_of(row, stored, size, 2), bits);
                    whole[row * terms + number * chunk + place] = number_there;
                }
                let (group, high) = (row % 8, row % 16 / 8);
                let (lane, shift) = match size {
                    1 => (number / 8 * 2 + high, number % 8 * 4),
                    _ => (selector * 2 + number / 4, 16 * high + number % 4 * 4),
                };
                let word = &mut metadata[row / 16 * 32 + group * 4 + lane];
                *word = *word & !(15 << shift) | bits << shift;
            }
        }
        for column in 0..8 {
            for k in 0..terms {
                put(1, byte_of(column, k, size, 4), value(column * 3 + k, size).1);
            }
        }
        let (a, b, metadata) = (gpu.buffer(&images[0]), gpu.buffer(&images[1]), gpu.buffer(&metadata));
        let out = gpu.zeros::<u32>(512);
        let args = [(&a).into(), (&b).into(), (&metadata).into(), (&out).into()];
        gpu.launch_with(name, launch(128, BulkTiming::AtOnce), &args);
        for (at, bits) in out.read::<u32>().into_iter().enumerate() {
            let (thread, entry) = (at / 4, at % 4);
            let row = thread / 32 * 16 + thread % 32 / 4 + entry / 2 * 8;
            let column = thread % 4 * 2 + entry % 2;
            let want: f64 = (0..terms).map(|k| sign * whole[row * terms + k] * value(column * 3 + k, size).0).sum();
            let got = if size == 1 { f64::from(bits as i32) } else { f64::from(f32::from_bits(bits)) };
            assert_eq!(got, want, "{name}: {row} {column}");
        }
        assert_eq!(detector.map(|detector| detector.races()).unwrap_or_default(), [], "{name}");
    }
}

#[test]
fn addresses_of_parameters_may_be_cut_to_32_bits() {
    let text = ".version 8.8 .target sm_90a .address_size 64
        .visible .entry k(.param .align 64 .b8 map[128], .param .u64 .ptr .global out) {
            .reg .b32 %r<4>; .reg .b64 %a<6>;
            mov.b32 %r1, map; cvt.u64.u32 %a1, %r1; cvta.param.u64 %a2, %a1; ld.u32 %r2, [%a2+64];
            mov.b64 %a3, map; cvta.param.u64 %a4, %a3; ld.u32 %r3, [%a4+60];
            ld.param.u64 %a5, [out]; st.global.v2.u32 [%a5], {%r2, %r3}; ret;
        }";
    let gpu = Gpu::from_ptx(text);
    let out = gpu.zeros::<u32>(2);
    let bytes: Vec<u8> = (0..32u32).flat_map(|word| (word * 3).to_le_bytes()).collect();
    gpu.launch("k", 1, 1, &[Arg::Bytes(bytes), (&out).into()]);
    assert_eq!(out.read::<u32>(), [48, 45]);
}

/// Stores of tiles, and stores and reductions that a barrier object counts.
const STORES: &str = r#"
#define T (int)threadIdx.x
typedef unsigned long long u64;
__device__ __forceinline__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
#define TILES(form, rows, ...) asm volatile("stmatrix.sync.aligned.m8n8." form ".shared.b16 [%0], {" rows "};" :: "r"(to), __VA_ARGS__ : "memory"); to += 512
extern "C" __global__ void stores(unsigned* out) {
    __shared__ __align__(16) unsigned tiles[640], words[192];
    __shared__ u64 wide, bar;
    for (int i = T; i < 640; i += 32) tiles[i] = 0;
    if (T == 0) {
        words[160] = 7, words[161] = 1000, wide = 1;
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(&bar)) : "memory");
    }
    __syncthreads();
    unsigned r[4], to = at(tiles) + T * 16, a = at(words), w = at(&wide), b = at(&bar);
    for (int j = 0; j < 4; j++) r[j] = (j * 64 + T * 2) | (j * 64 + T * 2 + 1) << 16;
    TILES("x4", "%1, %2, %3, %4", "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
    TILES("x4.trans", "%1, %2, %3, %4", "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
    TILES("x2", "%1, %2", "r"(r[2]), "r"(r[3]));
    TILES("x1", "%1", "r"(r[1]));
    TILES("x1.trans", "%1", "r"(r[3]));
    if (T == 0) asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1152;" :: "r"(b) : "memory");
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" :: "r"(a + T * 4), "r"(T * 3), "r"(b) : "memory");
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %1, %2}, [%3];" :: "r"(a + 128 + T * 16), "r"(T), "r"(T * 5), "r"(b) : "memory");
    asm volatile("red.async.relaxed.cluster.mbarrier::complete_tx::bytes.shared::cluster.add.u32 [%0], %1, [%2];" :: "r"(a + 640), "r"(T), "r"(b) : "memory");
    asm volatile("red.async.relaxed.cluster.mbarrier::complete_tx::bytes.shared::cluster.min.s32 [%0], %1, [%2];" :: "r"(a + 644), "r"(5 - T), "r"(b) : "memory");
    asm volatile("red.async.relaxed.cluster.mbarrier::complete_tx::bytes.shared::cluster.add.u64 [%0], %1, [%2];" :: "r"(w), "l"((u64)T << 31), "r"(b) : "memory");
    asm volatile("{ .reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @p bra D; bra W; D: }" :: "r"(b) : "memory");
    __syncthreads();
    for (int i = T; i < 640; i += 32) out[i] = tiles[i];
    for (int i = T; i < 162; i += 32) out[640 + i] = words[i];
    if (T == 0) out[802] = wide, out[803] = wide >> 32;
}
"#;

#[test]
fn tiles_and_counted_stores_are_those_of_the_host() {
    // A lane has two neighbours of a row, so that tiles hold their own numbers in order.
    let mut halves = vec![0u16; 1280];
    let plain = |tile: u16| move |element: u16| tile * 64 + element;
    let turned = |tile: u16| move |element: u16| tile * 64 + element % 8 * 8 + element / 8;
    let mut put = |first: usize, value: &dyn Fn(u16) -> u16| {
        halves[first..first + 64].iter_mut().zip(0..).for_each(|(half, element)| *half = value(element));
    };
    for tile in 0..4 {
        put(usize::from(tile) * 64, &plain(tile));
        put(256 + usize::from(tile) * 64, &turned(tile));
    }
    (0..2).for_each(|tile| put(512 + usize::from(tile) * 64, &plain(tile + 2)));
    put(768, &plain(1));
    put(1024, &turned(3));
    let mut want: Vec<u32> =
        halves.as_chunks::<2>().0.iter().map(|[a, b]| u32::from(*a) | u32::from(*b) << 16).collect();
    want.extend((0..32).map(|t| t * 3));
    want.extend((0..32).flat_map(|t| [t, t * 5, t, t * 5]));
    want.extend([7 + 496, (5i32 - 31) as u32]);
    let wide = 1 + (496u64 << 31);
    want.extend([wide as u32, (wide >> 32) as u32]);
    for gpu in [
        Gpu::from_ptx(&ptx(STORES, "compute_90a", &[])),
        Gpu::from_cubin(compile(STORES, &["-cubin", "-arch=sm_90a"], &[])),
    ] {
        let detector = gpu.detect();
        let out = gpu.zeros::<u32>(804);
        gpu.launch_with("stores", launch(32, BulkTiming::AtOnce), &[(&out).into()]);
        assert_eq!(out.read::<u32>(), want, "machine code {}", gpu.is_machine());
        assert_eq!(detector.races(), [], "machine code {}", gpu.is_machine());
    }
}
