//! Arithmetic of machine code against PTX: every instruction that `ptxas` makes of the floating
//! point, half and conversion instructions of PTX leaves the same bits in memory. So do CUDA's own
//! functions. Products of matrices by themselves are in `interp_sass_matrix`.

use std::fmt::Write as _;

use crate::interp_support;
use crate::interp_support::both::{Both, Random};

const SINGLES: [u32; 20] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x0080_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc1_2345,
    0x7f7f_ffff,
    0x3f80_0000,
    0xbf80_0000,
    0x4f00_0000,
    0x3f00_0000,
    0x3eff_ffff,
    0x4b00_0001,
    0xc2fd_0000,
    0x7e80_0001,
    0x5f00_0000,
];
const DOUBLES: [u64; 16] = [
    0,
    1 << 63,
    1,
    0x8000_0000_0000_0001,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff8_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x41e0_0000_0000_0000,
    0x43e0_0000_0000_0000,
    0x3fe0_0000_0000_0000,
    0x47ef_ffff_f000_0000,
];
const HALVES: [u16; 14] =
    [0, 0x8000, 1, 0x3ff, 0x400, 0x7c00, 0xfc00, 0x7e00, 0x7bff, 0x3c00, 0xbc00, 0x3800, 0x3f80, 0x0080];

/// A value of a type, special or random.
fn value(ty: &str, random: &mut Random) -> u64 {
    let (bits, pick) = (random.next(), random.next());
    let special = pick % 3 == 0;
    let which = (pick >> 8) as usize;
    match ty {
        "f32" if special => u64::from(SINGLES[which % SINGLES.len()]),
        // Numbers of like size, so that sums and quotients say something.
        "f32" if pick % 3 == 1 => u64::from(bits as u32 & 0x87ff_ffff | 0x3800_0000),
        "f64" if special => DOUBLES[which % DOUBLES.len()],
        "f64" if pick % 3 == 1 => bits & 0x80ff_ffff_ffff_ffff | 0x3f00_0000_0000_0000,
        "b16x2" => {
            let half = |bits: u64, which: usize| match which % 3 {
                0 => u64::from(HALVES[which / 3 % HALVES.len()]),
                1 => bits & 0x8fff | 0x3000,
                _ => bits & 0xffff,
            };
            half(bits, which) | half(bits >> 16, which >> 8) << 16
        }
        _ if special => [0, 1, u64::MAX, 0x7fff_ffff, 0x8000_0000, 1 << 63, 255, 0x8080_8080][which % 8],
        _ if pick % 3 == 1 => (bits as i64 >> (pick >> 32 & 63)) as u64,
        _ => bits,
    }
}

/// Type of the register, and the type that loads and stores name.
fn register(ty: &str) -> &str {
    match ty {
        "b16x2" => "b32",
        other => other,
    }
}

/// A kernel for each operation: destination type, text with `$d`, `$a`, `$b`, `$c`, operand types.
fn module(ops: &[(String, &str, Vec<&str>)]) -> String {
    let mut text = String::from(".version 8.7\n.target sm_80\n.address_size 64\n");
    for (at, (op, to, from)) in ops.iter().enumerate() {
        let _ = write!(
            text,
            ".visible .entry k{at}(.param .u64 pin, .param .u64 pout) {{\n.reg .b64 %in, %out, %t; .reg .b32 %i; \
             .reg .pred %p, %q;\n.reg .{} %d;\n",
            register(to)
        );
        for (name, ty) in ["a", "b", "c"].iter().zip(from) {
            let _ = writeln!(text, ".reg .{} %{name};", register(ty));
        }
        text += "ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; mov.u32 %i, %tid.x;\n\
                 mul.wide.u32 %t, %i, 24; add.u64 %in, %in, %t; mul.wide.u32 %t, %i, 8; add.u64 %out, %out, %t;\n";
        for (at, (name, ty)) in ["a", "b", "c"].iter().zip(from).enumerate() {
            let _ = writeln!(text, "ld.global.{} %{name}, [%in+{}];", register(ty), 8 * at);
        }
        let line = op.replace("$d", "%d").replace("$a", "%a").replace("$b", "%b").replace("$c", "%c");
        let _ = writeln!(text, "{line}\nst.global.{} [%out], %d;\nret;\n}}", register(to));
    }
    text
}

fn is_nan(ty: &str, bits: u64) -> bool {
    match ty {
        "f32" => f32::from_bits(bits as u32).is_nan(),
        "f64" => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

/// Runs the operations on random operands. Two NaNs are equal.
fn agree(ops: &[(String, &str, Vec<&str>)]) {
    const THREADS: usize = 512;
    let both = Both::new(&module(ops));
    let mut wrong = String::new();
    for (at, (op, to, from)) in ops.iter().enumerate() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (at as u64) << 20);
        let input: Vec<u64> =
            (0..THREADS * 3).map(|slot| value(from.get(slot % 3).unwrap_or(&"u64"), &mut random)).collect();
        let bytes: Vec<u8> = input.iter().flat_map(|word| word.to_le_bytes()).collect();
        match both.run(&format!("k{at}"), THREADS as u32, &bytes, THREADS * 8) {
            Err(why) => {
                let _ = writeln!(wrong, "{op}: {why}");
            }
            Ok([ptx, machine]) => {
                let words = |bytes: &[u8]| -> Vec<u64> {
                    bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
                };
                let pairs = words(&ptx).into_iter().zip(words(&machine)).enumerate();
                let differ: Vec<_> = pairs.filter(|&(_, (p, m))| p != m && !(is_nan(to, p) && is_nan(to, m))).collect();
                if let Some(&(lane, (p, m))) = differ.first() {
                    let _ = writeln!(
                        wrong,
                        "{op}: {} of {THREADS} differ; of {:x?}: PTX {p:#x}, machine code {m:#x}",
                        differ.len(),
                        &input[lane * 3..lane * 3 + from.len()]
                    );
                }
            }
        }
    }
    assert!(wrong.is_empty(), "PTX and machine code differ:\n{wrong}");
}

fn op(text: impl Into<String>, to: &'static str, from: &[&'static str]) -> (String, &'static str, Vec<&'static str>) {
    (text.into(), to, from.to_vec())
}

#[test]
fn singles() {
    let mut ops = Vec::new();
    for name in ["add", "sub", "mul"] {
        for mode in ["rn", "rz", "rm", "rp"] {
            for flags in ["", ".ftz", ".sat", ".ftz.sat"] {
                ops.push(op(format!("{name}.{mode}{flags}.f32 $d, $a, $b;"), "f32", &["f32", "f32"]));
            }
        }
    }
    for mode in ["rn", "rz", "rm", "rp"] {
        for flags in ["", ".ftz.sat"] {
            ops.push(op(format!("fma.{mode}{flags}.f32 $d, $a, $b, $c;"), "f32", &["f32", "f32", "f32"]));
        }
        for name in ["div", "rcp", "sqrt"] {
            let second = if name == "div" { ", $b" } else { "" };
            ops.push(op(format!("{name}.{mode}.f32 $d, $a{second};"), "f32", &["f32", "f32"]));
            ops.push(op(format!("{name}.{mode}.ftz.f32 $d, $a{second};"), "f32", &["f32", "f32"]));
        }
    }
    ops.push(op("fma.rn.f32 $d, $a, $b, $c; neg.f32 $d, $d; fma.rn.f32 $d, $d, $a, $c;", "f32", &["f32"; 3]));
    for name in
        ["min", "max", "min.ftz", "max.NaN", "div.approx", "div.full", "div.approx.ftz", "div.full.ftz", "copysign"]
    {
        ops.push(op(format!("{name}.f32 $d, $a, $b;"), "f32", &["f32", "f32"]));
    }
    for name in ["sin", "cos", "ex2", "lg2", "rcp", "rsqrt", "sqrt"] {
        ops.push(op(format!("{name}.approx.f32 $d, $a;"), "f32", &["f32"]));
        ops.push(op(format!("{name}.approx.ftz.f32 $d, $a;"), "f32", &["f32"]));
    }
    for name in ["tanh.approx", "neg", "abs", "neg.ftz", "abs.ftz"] {
        ops.push(op(format!("{name}.f32 $d, $a;"), "f32", &["f32"]));
    }
    for cmp in ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"] {
        ops.push(op(
            format!("setp.{cmp}.f32 %p, $a, $b; setp.gt.or.f32 %q, $c, 0f3f800000, %p; selp.f32 $d, $a, $c, %q;"),
            "f32",
            &["f32", "f32", "f32"],
        ));
        ops.push(op(format!("set.{cmp}.ftz.f32.f32 $d, $a, $b;"), "f32", &["f32", "f32"]));
        ops.push(op(
            format!("setp.{cmp}.f64 %p|%q, $a, $b; selp.f64 $d, $a, $c, %p; @%q add.f64 $d, $d, $d;"),
            "f64",
            &["f64", "f64", "f64"],
        ));
    }
    agree(&ops);
}

#[test]
fn doubles() {
    let mut ops = Vec::new();
    for mode in ["rn", "rz", "rm", "rp"] {
        for name in ["add", "sub", "mul", "div"] {
            ops.push(op(format!("{name}.{mode}.f64 $d, $a, $b;"), "f64", &["f64", "f64"]));
        }
        ops.push(op(format!("fma.{mode}.f64 $d, $a, $b, $c;"), "f64", &["f64", "f64", "f64"]));
        for name in ["rcp", "sqrt"] {
            ops.push(op(format!("{name}.{mode}.f64 $d, $a;"), "f64", &["f64"]));
        }
    }
    ops.push(op("fma.rn.f64 $d, $a, $b, 0d3ff0000000000000; neg.f64 $d, $d; mul.f64 $d, $d, $c;", "f64", &["f64"; 3]));
    for name in ["min", "max", "copysign"] {
        ops.push(op(format!("{name}.f64 $d, $a, $b;"), "f64", &["f64", "f64"]));
    }
    for name in ["neg", "abs", "rcp.approx.ftz", "rsqrt.approx.ftz", "rsqrt.approx"] {
        ops.push(op(format!("{name}.f64 $d, $a;"), "f64", &["f64"]));
    }
    agree(&ops);
}

#[test]
fn conversions() {
    let mut ops = Vec::new();
    let integers = ["s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"];
    for ty in integers {
        for (float, wide) in [("f16", "u16"), ("f32", "f32"), ("f64", "f64")] {
            let narrow = matches!(ty, "s8" | "u8");
            for mode in ["rn", "rz", "rm", "rp"] {
                let register = if narrow { if ty == "s8" { "s16" } else { "u16" } } else { ty };
                if float == "f16" {
                    let text = format!("{{ .reg .b16 %h; cvt.{mode}.f16.{ty} %h, $a; cvt.u32.u16 $d, %h; }}");
                    ops.push(op(text, "u32", &[register]));
                } else {
                    ops.push(op(format!("cvt.{mode}.{float}.{ty} $d, $a;"), wide, &[register]));
                }
                let to = if narrow { if ty == "s8" { "s32" } else { "u32" } } else { ty };
                let text = match float {
                    "f16" => format!("{{ .reg .b16 %h; cvt.u16.u32 %h, $a; cvt.{mode}i.{ty}.f16 $d, %h; }}"),
                    _ => format!("cvt.{mode}i.{ty}.{float} $d, $a;"),
                };
                ops.push(op(text, to, &[if float == "f16" { "b16x2" } else { float }]));
            }
        }
    }
    for mode in ["rn", "rz", "rm", "rp"] {
        ops.push(op(format!("cvt.{mode}.f32.f64 $d, $a;"), "f32", &["f64"]));
        ops.push(op(format!("cvt.{mode}.ftz.f32.f64 $d, $a;"), "f32", &["f64"]));
        for ty in ["f32", "f64"] {
            ops.push(op(format!("cvt.{mode}i.{ty}.{ty} $d, $a;"), ty, &[ty]));
            ops.push(op(format!("{{ .reg .b16 %h; cvt.{mode}.f16.{ty} %h, $a; cvt.u32.u16 $d, %h; }}"), "u32", &[ty]));
        }
        ops.push(op(
            format!("{{ .reg .b16 %h; cvt.u16.u32 %h, $a; cvt.{mode}i.f16.f16 %h, %h; cvt.u32.u16 $d, %h; }}"),
            "u32",
            &["b16x2"],
        ));
    }
    ops.push(op("cvt.f64.f32 $d, $a;", "f64", &["f32"]));
    ops.push(op("cvt.ftz.f64.f32 $d, $a;", "f64", &["f32"]));
    ops.push(op("cvt.sat.f32.f32 $d, $a;", "f32", &["f32"]));
    ops.push(op("cvt.ftz.f32.f32 $d, $a;", "f32", &["f32"]));
    ops.push(op("cvt.rna.tf32.f32 $d, $a;", "b32", &["f32"]));
    for to in ["f32", "f64"] {
        for half in ["%l", "%h"] {
            let text = format!("{{ .reg .b16 %l, %h; mov.b32 {{%l, %h}}, $a; cvt.{to}.f16 $d, {half}; }}");
            ops.push(op(text, to, &["b16x2"]));
        }
    }
    for mode in ["rn", "rz"] {
        for flags in ["", ".relu"] {
            for ty in ["f16x2", "bf16x2"] {
                ops.push(op(format!("cvt.{mode}{flags}.{ty}.f32 $d, $a, $b;"), "b32", &["f32", "f32"]));
            }
            let text = format!("{{ .reg .b16 %h; cvt.{mode}{flags}.bf16.f32 %h, $a; cvt.u32.u16 $d, %h; }}");
            ops.push(op(text, "u32", &["f32"]));
        }
    }
    for ty in ["u8", "s8", "u4", "s4", "u2", "s2"] {
        ops.push(op(format!("cvt.pack.sat.{ty}.s32.b32 $d, $a, $b, $c;"), "b32", &["s32", "s32", "b32"]));
    }
    for ty in ["u16", "s16"] {
        ops.push(op(format!("cvt.pack.sat.{ty}.s32 $d, $a, $b;"), "b32", &["s32", "s32"]));
    }
    agree(&ops);
}

#[test]
fn halves_and_dot_products() {
    let mut ops = Vec::new();
    let two = ["b16x2", "b16x2"];
    let three = ["b16x2", "b16x2", "b16x2"];
    for ty in ["f16x2", "bf16x2"] {
        for flags in ["", ".relu"] {
            ops.push(op(format!("fma.rn{flags}.{ty} $d, $a, $b, $c;"), "b32", &three));
        }
        for name in ["min", "max", "min.NaN", "max.NaN"] {
            ops.push(op(format!("{name}.{ty} $d, $a, $b;"), "b32", &two));
        }
        for name in ["neg", "abs"] {
            ops.push(op(format!("{name}.{ty} $d, $a;"), "b32", &["b16x2"]));
        }
        // One half with another, the result's other half kept.
        let scalar = ty.trim_end_matches("x2");
        ops.push(op(
            format!(
                "{{ .reg .b16 %l, %h, %m, %n; mov.b32 {{%l, %h}}, $a; mov.b32 {{%m, %n}}, $b; \
                 fma.rn.{scalar} %l, %h, %m, %n; mov.b32 $d, {{%l, %h}}; }}"
            ),
            "b32",
            &two,
        ));
    }
    for name in ["add", "sub", "mul"] {
        for flags in ["", ".ftz", ".sat", ".ftz.sat"] {
            ops.push(op(format!("{name}{flags}.f16x2 $d, $a, $b;"), "b32", &two));
        }
    }
    ops.push(op("fma.rn.ftz.sat.f16x2 $d, $a, $b, $c;", "b32", &three));
    for name in ["ex2.approx", "tanh.approx"] {
        ops.push(op(format!("{name}.f16x2 $d, $a;"), "b32", &["b16x2"]));
    }
    for cmp in ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"] {
        ops.push(op(format!("set.{cmp}.f16x2.f16x2 $d, $a, $b;"), "b32", &two));
        ops.push(op(
            format!("setp.{cmp}.f16x2 %p|%q, $a, $b; selp.b32 $d, $a, $b, %p; @%q add.u32 $d, $d, 1;"),
            "b32",
            &two,
        ));
        ops.push(op(
            format!(
                "{{ .reg .b16 %l, %h, %m; mov.b32 {{%l, %h}}, $a; cvt.u16.u32 %m, $b; setp.{cmp}.f16 %p, %h, %m; \
                 selp.b32 $d, $a, $b, %p; }}"
            ),
            "b32",
            &two,
        ));
    }
    for (a, b) in [("s32", "s32"), ("s32", "u32"), ("u32", "s32"), ("u32", "u32")] {
        ops.push(op(format!("dp4a.{a}.{b} $d, $a, $b, $c;"), "b32", &["b32", "b32", "b32"]));
        for half in ["lo", "hi"] {
            ops.push(op(format!("dp2a.{half}.{a}.{b} $d, $a, $b, $c;"), "b32", &["b32", "b32", "b32"]));
        }
    }
    for ty in ["s32", "u32"] {
        ops.push(op(format!("sad.{ty} $d, $a, $b, $c;"), "b32", &["b32", "b32", "b32"]));
    }
    ops.push(op("vabsdiff4.u32.u32.u32 $d, $a, $b, $c;", "b32", &["b32", "b32", "b32"]));
    ops.push(op("vabsdiff4.u32.u32.u32.add $d, $a, $b, $c;", "b32", &["b32", "b32", "b32"]));
    ops.push(op("vabsdiff4.u32.s32.s32.add $d, $a, $b, $c;", "b32", &["b32", "b32", "b32"]));
    agree(&ops);
}

/// What the compiler makes of CUDA's own functions: long sequences with slow paths in functions of
/// their own, tables of constants, local memory.
#[test]
fn functions_of_cuda() {
    let source = r#"
        #include <cuda_fp16.h>
        #include <cuda_bf16.h>
        #include <mma.h>
        using namespace nvcuda;
        #define S(name, e) extern "C" __global__ void name(const double* in, double* out) { \
            float x = ((const float*)(in + threadIdx.x * 3))[0], y = ((const float*)(in + threadIdx.x * 3))[2]; \
            out[threadIdx.x] = e; }
        #define D(name, e) extern "C" __global__ void name(const double* in, double* out) { \
            double x = in[threadIdx.x * 3], y = in[threadIdx.x * 3 + 1]; out[threadIdx.x] = e; }
        S(s_trig, sinf(x) + cosf(y) + tanf(x)) S(s_big, sinf(x * 1e30f)) S(s_log, logf(x) + log2f(fabsf(y)) + log1pf(x))
        S(s_exp, expf(x) + exp2f(y) + expm1f(x)) S(s_pow, powf(x, y)) S(s_mod, fmodf(x, y) + remainderf(y, x))
        S(s_hyper, tanhf(x) + sinhf(y) + atan2f(x, y)) S(s_erf, erff(x) + erfcf(y) + tgammaf(x)) S(s_gamma, lgammaf(x))
        // Kept apart by maxima: the assembler fuses products and sums that are neighbours.
        S(s_fast, fmaxf(fmaxf(__sinf(x), __expf(y)), fminf(__logf(fabsf(x)), fmaxf(__fdividef(x, y), __powf(fabsf(x), y)))))
        S(s_root, cbrtf(x) + rsqrtf(y) + hypotf(x, y) + norm3df(x, y, 1.0f)) S(s_div, x / y + 1.0f / x + sqrtf(fabsf(y)))
        S(s_round, rintf(x) + floorf(y) + ceilf(x) + truncf(y) + roundf(x) + nearbyintf(y) + lrintf(x))
        S(s_bits, ldexpf(x, 3) + scalbnf(y, -140) + logbf(x) + nextafterf(x, y) + fdimf(x, y) + (float)ilogbf(y))
        D(d_trig, sin(x) + cos(y) + tan(x)) D(d_big, sin(x * 1e300)) D(d_log, log(x) + log2(fabs(y)) + log10(fabs(x)))
        D(d_exp, exp(x) + exp2(y)) D(d_pow, pow(x, y)) D(d_mod, fmod(x, y)) D(d_hyper, tanh(x) + atan2(x, y) + asin(y))
        D(d_erf, erf(x) + erfc(y) + tgamma(x)) D(d_root, cbrt(x) + rsqrt(y) + hypot(x, y)) D(d_div, x / y + sqrt(fabs(y)))
        D(d_round, rint(x) + floor(y) + ceil(x) + trunc(y) + round(x) + (double)llrint(y))
        D(h_all, (double)__half2float(hexp(__double2half(x)) * __float2half((float)y) + hsqrt(__double2half(fabs(y)))
            + hrcp(__double2half(x)) + hsin(__double2half(x)) + hlog(__double2half(fabs(y)))))
        D(b_all, (double)__bfloat162float(hexp(__double2bfloat16(x)) * __float2bfloat16((float)y)
            + hsqrt(__double2bfloat16(fabs(y))) + __hmax(__double2bfloat16(x), __double2bfloat16(y))))
        template <class A, class C, int M, int N, int K> __device__ void go(const double* in, double* out) {
            __shared__ A a[M * K], b[K * N]; __shared__ C c[M * N];
            for (int i = threadIdx.x; i < M * K; i += blockDim.x) a[i] = (A)(float)((((const int*)in)[i] & 15) - 7);
            for (int i = threadIdx.x; i < K * N; i += blockDim.x) b[i] = (A)(float)((((const int*)in)[i + 512] & 15) - 7);
            __syncthreads();
            if (threadIdx.x < 32) {
                wmma::fragment<wmma::matrix_a, M, N, K, A, wmma::row_major> fa;
                wmma::fragment<wmma::matrix_b, M, N, K, A, wmma::col_major> fb;
                wmma::fragment<wmma::accumulator, M, N, K, C> fc;
                wmma::fill_fragment(fc, (C)1.0f);
                wmma::load_matrix_sync(fa, a, K); wmma::load_matrix_sync(fb, b, K);
                wmma::mma_sync(fc, fa, fb, fc);
                wmma::store_matrix_sync(c, fc, N, wmma::mem_row_major);
            }
            __syncthreads();
            for (int i = threadIdx.x; i < M * N; i += blockDim.x) out[i] = (double)(float)c[i];
        }
        extern "C" __global__ void w_half(const double* in, double* out) { go<half, float, 16, 16, 16>(in, out); }
        extern "C" __global__ void w_wide(const double* in, double* out) { go<half, half, 32, 8, 16>(in, out); }
        extern "C" __global__ void w_tall(const double* in, double* out) { go<__nv_bfloat16, float, 8, 32, 16>(in, out); }
        extern "C" __global__ void w_bytes(const double* in, double* out) { go<signed char, int, 16, 16, 16>(in, out); }
    "#;
    let both = Both::new(&interp_support::ptx(source, "compute_80", &[]));
    let mut wrong = String::new();
    for name in both.kernels() {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let kind = if name.starts_with("s_") { "f32" } else { "f64" };
        let input: Vec<u64> = (0..256 * 3)
            .map(|_| match value(kind, &mut random) {
                single if kind == "f32" => single,
                double if name.starts_with("w_") => double >> 7,
                double => double,
            })
            .collect();
        let bytes: Vec<u8> = input.iter().flat_map(|word| word.to_le_bytes()).collect();
        match both.run(&name, 256, &bytes, 256 * 8) {
            Err(why) => {
                let _ = writeln!(wrong, "{name}: {why}");
            }
            Ok([ptx, machine]) => {
                let words = |bytes: &[u8]| -> Vec<f64> {
                    bytes.chunks(8).map(|word| f64::from_le_bytes(word.try_into().unwrap())).collect()
                };
                let (p, m) = (words(&ptx), words(&machine));
                let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                let differ: Vec<usize> = (0..p.len()).filter(|&at| !same(p[at], m[at])).collect();
                if let Some(&at) = differ.first() {
                    let of = &input[at * 3..at * 3 + 2];
                    let _ = writeln!(
                        wrong,
                        "{name}: {} differ; of {of:x?}: PTX {:e}, machine code {:e}",
                        differ.len(),
                        p[at],
                        m[at]
                    );
                }
                assert!(p.iter().any(|&v| v.is_finite() && v != 0.0), "{name} computes nothing");
            }
        }
    }
    assert!(wrong.is_empty(), "PTX and machine code differ:\n{wrong}");
}
