//! Indices that are no sums: bits counted and turned, dot products, floating point, values of other
//! lanes. Each kernel stores to `p[f(i)]`; what its threads touch is calculated here. Launches
//! small enough to be followed must be exact to the byte, in PTX and in machine code.

use device_code::arch::Arch;
use kernels::{AccessKind, Base, CodeImage, Extent, LaunchArgs};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

/// An index in CUDA, of the thread's number `i`, lane `l` and the parameter `n`; and here.
type Case = (&'static str, fn(u32, u32, u32) -> u32);

const BLOCK: u32 = 96;
const GRID: u32 = 3;

/// What a lane of the same warp has: `f` of the thread that is there.
fn of_lane(i: u32, l: u32, from: u32, f: impl Fn(u32, u32) -> u32) -> u32 {
    f(i - l + from, from)
}

const CASES: &[Case] = &[
    ("__brev(i) >> 22", |i, _, _| i.reverse_bits() >> 22),
    ("unsigned(__brevll(i) >> 54)", |i, _, _| (u64::from(i).reverse_bits() >> 54) as u32),
    ("31 - __clz(i + 1)", |i, _, _| 31 - (i + 1).leading_zeros()),
    ("__clzll((unsigned long long)i << 20)", |i, _, _| (u64::from(i) << 20).leading_zeros()),
    ("__ffs(i & 240)", |i, _, _| if i & 240 == 0 { 0 } else { (i & 240).trailing_zeros() + 1 }),
    ("__ffsll((unsigned long long)(i + 1) << 24)", |i, _, _| (u64::from(i + 1) << 24).trailing_zeros() + 1),
    ("__popc(i * 37)", |i, _, _| (i * 37).count_ones()),
    ("__popcll((unsigned long long)i * 0x100000001ull)", |i, _, _| 2 * i.count_ones()),
    ("__dp4a(0x01010101u, i, n)", |i, _, n| (i & 255) + (i >> 8) + n),
    ("__dp4a(int(i & 127), 3, 5)", |i, _, _| (i & 127) * 3 + 5),
    ("__dp2a_lo(0x00010002u, i, n)", |i, _, n| 2 * (i & 255) + (i >> 8) + n),
    ("__sad(int(i), 100, n)", |i, _, n| i.abs_diff(100) + n),
    ("__usad(i, 40u, 1u)", |i, _, _| i.abs_diff(40) + 1),
    ("__fns(0x5a5a5a5a, 0, (i & 7) + 1)", |i, _, _| {
        (0..32).filter(|b| 0x5a5a_5a5a_u32 >> b & 1 == 1).nth((i & 7) as usize).unwrap_or(99)
    }),
    ("__funnelshift_l(i << 20, i, i & 7)", |i, _, _| {
        ((u64::from(i) << 32 | u64::from(i << 20)) << (i & 7) >> 32) as u32
    }),
    ("__funnelshift_r(i << 9, i & 3, i & 7) & 1023", |i, _, _| {
        ((u64::from(i & 3) << 32 | u64::from(i << 9)) >> (i & 7)) as u32 & 1023
    }),
    ("(1u << (i & 7)) + (512u >> (i & 3))", |i, _, _| (1 << (i & 7)) + (512 >> (i & 3))),
    ("unsigned((0x100ull << (i & 40)) >> (i & 40))", |_, _, _| 0x100),
    ("__byte_perm(i, i * 3, 0x4440 + (i & 1)) & 1023", |i, _, _| {
        let bytes = (u64::from(i * 3) << 32 | u64::from(i)).to_le_bytes();
        u32::from_le_bytes([bytes[(i & 1) as usize], bytes[4], bytes[4], bytes[4]]) & 1023
    }),
    ("bfe(i * 129, i & 3, 3 + (i & 3))", |i, _, _| ((i * 129) >> (i & 3)) & ((1 << (3 + (i & 3))) - 1)),
    ("bfi(i, 1024 + 7, i & 3, 4) & 2047", |i, _, _| {
        let mask = 15 << (i & 3);
        ((1024 + 7) & !mask | i << (i & 3) & mask) & 2047
    }),
    ("unsigned(i * 0.5f * 2.f)", |i, _, _| i),
    ("unsigned(i * 0.25f)", |i, _, _| i / 4),
    ("unsigned(i * 0.5f + 0.25f)", |i, _, _| i / 2),
    ("unsigned(floorf(i * 0.125f)) + unsigned(ceilf(i * 0.125f))", |i, _, _| i / 8 + i.div_ceil(8)),
    ("unsigned(__float2int_rn(i * 0.5f))", |i, _, _| (f64::from(i) * 0.5).round_ties_even() as u32),
    ("unsigned(fminf(float(i), 100.f))", |i, _, _| i.min(100)),
    ("unsigned(double(i) * 1.5)", |i, _, _| i * 3 / 2),
    ("unsigned((long long)(float(i) * 4.f) >> 1)", |i, _, _| 2 * i),
    ("float(i) < 70.5f ? i : 7", |i, _, _| if i <= 70 { i } else { 7 }),
    ("i % 5 == 0 ? i + n : 0", |i, _, n| if i % 5 == 0 { i + n } else { 0 }),
    ("__shfl_sync(~0u, l == 0 ? i + n : 0, 0) + l", |i, l, n| of_lane(i, l, 0, |i, _| i + n) + l),
    ("__shfl_sync(~0u, 2 * i, l ^ 3) + 1", |i, l, _| of_lane(i, l, l ^ 3, |i, _| 2 * i) + 1),
    ("__shfl_sync(~0u, i * (l % 8 == 5), 5, 8) + (l & 7)", |i, l, _| of_lane(i, l, l / 8 * 8 + 5, |i, _| i) + (l & 7)),
    ("__shfl_up_sync(~0u, 4 * i, 3)", |i, l, _| of_lane(i, l, if l < 3 { l } else { l - 3 }, |i, _| 4 * i)),
    ("__shfl_down_sync(~0u, 4 * i, 3, 16)", |i, l, _| {
        of_lane(i, l, if l % 16 + 3 < 16 { l + 3 } else { l }, |i, _| 4 * i)
    }),
    ("__shfl_xor_sync(~0u, i * 3, 9)", |i, l, _| of_lane(i, l, l ^ 9, |i, _| i * 3)),
    ("unsigned(__shfl_sync(~0u, (unsigned long long)i << 33, 4) >> 33) + l", |i, l, _| of_lane(i, l, 4, |i, _| i) + l),
    ("below(l * 2 + 1)", |_, l, _| (0..=l).map(|l| l * 2 + 1).sum()),
];

fn source() -> String {
    let mut text = String::from(
        "static __device__ unsigned bfe(unsigned a, unsigned b, unsigned c) { unsigned r; \
           asm(\"bfe.u32 %0, %1, %2, %3;\" : \"=r\"(r) : \"r\"(a), \"r\"(b), \"r\"(c)); return r; }\n\
         static __device__ unsigned bfi(unsigned a, unsigned b, unsigned c, unsigned d) { unsigned r; \
           asm(\"bfi.b32 %0, %1, %2, %3, %4;\" : \"=r\"(r) : \"r\"(a), \"r\"(b), \"r\"(c), \"r\"(d)); return r; }\n\
         static __device__ unsigned below(unsigned v) { for (int o = 1; o < 32; o *= 2) { \
           unsigned w = __shfl_up_sync(~0u, v, o); if ((threadIdx.x & 31) >= o) v += w; } return v; }\n",
    );
    for (at, (index, _)) in CASES.iter().enumerate() {
        writeln!(
            text,
            "extern \"C\" __global__ void k{at}(int *p, unsigned n) {{ unsigned i = blockIdx.x * blockDim.x + threadIdx.x, \
             l = threadIdx.x & 31; p[{index}] = 1; }}"
        )
        .unwrap();
    }
    text
}

/// The bytes that a launch writes by its summary; `None` when they are not all exact.
fn written(image: &CodeImage, name: &str, n: u32) -> Option<BTreeSet<i64>> {
    const POINTER: u64 = 0x7f01_0000_0000;
    let params = [&POINTER.to_le_bytes()[..], &n.to_le_bytes()].concat();
    let summary = image.summary(name).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut found = Vec::new();
    summary.evaluate(&LaunchArgs::new([GRID, 1, 1], [BLOCK, 1, 1], &params), &mut found);
    let mut bytes = BTreeSet::new();
    for access in found.iter().filter(|a| a.kind == AccessKind::Write) {
        let Base::Word { offset: 0, .. } = access.base else { return None };
        let Extent::Bounded { lo, dims, width, exact: true, .. } = &access.extent else { return None };
        let mut starts = vec![*lo];
        for d in dims {
            starts = starts.iter().flat_map(|s| (0..d.count).map(move |k| s + (d.stride * k) as i64)).collect();
        }
        bytes.extend(starts.into_iter().flat_map(|s| s..s + i64::from(*width)));
    }
    Some(bytes)
}

#[test]
fn functions_of_the_index_are_exact_to_the_byte() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("index_functions.cu");
    std::fs::write(&file, source()).expect("a file");
    let mut wrong = Vec::new();
    for arch in ["sm_75", "sm_80", "sm_90"] {
        for form in ["-ptx", "-cubin"] {
            let code = std::fs::read(tests::build::nvcc(&file, &[form, &format!("-arch={arch}")])).expect("compiled");
            let image = CodeImage::load(&code, arch.parse::<Arch>().expect("arch")).expect("image");
            for (at, (index, here)) in CASES.iter().enumerate() {
                let n = 1 + at as u32 % 3 * 32;
                let touched = (0..GRID * BLOCK).map(|i| here(i, i % 32, n));
                let truth: BTreeSet<i64> = touched.flat_map(|k| 4 * i64::from(k)..4 * i64::from(k) + 4).collect();
                match written(&image, &format!("k{at}"), n) {
                    None => wrong.push(format!("{arch} {form} {index}: not exact")),
                    Some(bytes) if bytes != truth => wrong.push(format!("{arch} {form} {index}: other bytes")),
                    Some(_) => {}
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
