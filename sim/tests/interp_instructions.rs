//! Tests of single instructions: one kernel of generated PTX for each, run on edge cases, against
//! expected bits.

use crate::interp_programs::Nobody;
use crate::interp_support::Gpu;
use device_code::ptx::parse;
use streamsan_sim::interp::Program;

/// Runs `op d, operands` once for each row of inputs (`a`, `b`, `c` as 64-bit patterns) and returns
/// the results. Types are those of the registers: `b16`, `b32`, `b64`, `f32`, `f64`.
fn each_row(op: &str, to: &str, from: [&str; 3], count: usize, rows: &[[u64; 3]]) -> Vec<u64> {
    let load = |at: usize| {
        let (name, ty) = (["a", "b", "c"][at], from[at]);
        let bits: u32 = ty[1..].parse().unwrap();
        format!("ld.global.b64 %w, [%p+{}]; cvt.u{bits}.u64 %t{bits}, %w; mov.b{bits} %{name}, %t{bits};", at * 8)
    };
    let bits: u32 = to[1..].parse().unwrap();
    let sources: Vec<&str> = ["%a", "%b", "%c"][..count].to_vec();
    let text = format!(
        ".version 8.3 .target sm_90 .address_size 64
        .visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n) {{
            .reg .b64 %p, %q, %w, %t64; .reg .b32 %i, %n, %t32; .reg .b16 %t16; .reg .pred %g;
            .reg .{} %a; .reg .{} %b; .reg .{} %c; .reg .{to} %d;
            ld.param.u64 %p, [in]; ld.param.u64 %q, [out]; ld.param.u32 %n, [n];
            mov.u32 %i, %tid.x; setp.ge.u32 %g, %i, %n; @%g bra DONE;
            mad.wide.u32 %p, %i, 24, %p; mad.wide.u32 %q, %i, 8, %q;
            {} {} {}
            {op} %d, {};
            mov.b{bits} %t{bits}, %d; cvt.u64.u{bits} %w, %t{bits}; st.global.b64 [%q], %w;
            DONE: ret;
        }}",
        from[0],
        from[1],
        from[2],
        load(0),
        load(1),
        load(2),
        sources.join(", ")
    );
    let gpu = Gpu::from_ptx(&text);
    let flat: Vec<u64> = rows.iter().flatten().copied().collect();
    let (input, output) = (gpu.buffer(&flat), gpu.zeros::<u64>(rows.len()));
    gpu.launch("k", 1, rows.len() as u32, &[(&input).into(), (&output).into(), (rows.len() as u32).into()]);
    output.read()
}

fn check(op: &str, ty: &str, rows: &[(&[u64], u64)]) {
    check_types(op, ty, [ty; 3], rows);
}

fn check_types(op: &str, to: &str, from: [&str; 3], rows: &[(&[u64], u64)]) {
    let count = rows[0].0.len();
    let inputs: Vec<[u64; 3]> =
        rows.iter().map(|(row, _)| std::array::from_fn(|at| row.get(at).copied().unwrap_or(0))).collect();
    for (got, (row, want)) in each_row(op, to, from, count, &inputs).into_iter().zip(rows) {
        assert_eq!(got, *want, "{op} {row:x?}: got {got:#x}, want {want:#x}");
    }
}

fn f(value: f32) -> u64 {
    u64::from(value.to_bits())
}

fn d(value: f64) -> u64 {
    value.to_bits()
}

const M1: u64 = 0xffff_ffff;
const MIN: u64 = 0x8000_0000;

#[test]
fn integer_arithmetic() {
    check("add.s32", "b32", &[(&[M1, 1], 0), (&[0x7fff_ffff, 1], MIN)]);
    check("add.sat.s32", "b32", &[(&[0x7fff_ffff, 1], 0x7fff_ffff), (&[MIN, M1], MIN)]);
    check("sub.u16", "b16", &[(&[0, 1], 0xffff)]);
    check("mul.lo.s32", "b32", &[(&[M1, M1], 1), (&[MIN, 2], 0)]);
    check("mul.hi.s32", "b32", &[(&[M1, M1], 0), (&[MIN, MIN], 0x4000_0000), (&[M1, 2], M1)]);
    check("mul.hi.u32", "b32", &[(&[M1, M1], 0xffff_fffe)]);
    check("mul.hi.u64", "b64", &[(&[u64::MAX, u64::MAX], u64::MAX - 1)]);
    check("mul.hi.s64", "b64", &[(&[u64::MAX, 5], u64::MAX)]);
    check_types("mul.wide.s32", "b64", ["b32"; 3], &[(&[M1, 2], (-2i64) as u64), (&[MIN, MIN], 1 << 62)]);
    check_types("mul.wide.u32", "b64", ["b32"; 3], &[(&[M1, M1], 0xffff_fffe_0000_0001)]);
    check_types("mul.wide.s16", "b32", ["b16"; 3], &[(&[0xffff, 3], 0xffff_fffd)]);
    check_types("mad.wide.s32", "b64", ["b32", "b32", "b64"], &[(&[M1, 2, 1 << 40], (1 << 40) - 2)]);
    check("mad.hi.u32", "b32", &[(&[M1, M1, 5], 3)]);
    check("mad24.lo.s32", "b32", &[(&[0xff_ffff, 5, 1], 0xffff_fffc)]);
    check("mul24.hi.u32", "b32", &[(&[0xff_ffff, 0xff_ffff], 0xffff_fe00)]);
    check("div.s32", "b32", &[(&[7, 0xffff_fffe], 0xffff_fffd), (&[MIN, M1], MIN), (&[7, 0], M1)]);
    check("div.u64", "b64", &[(&[u64::MAX, 10], u64::MAX / 10), (&[5, 0], u64::MAX)]);
    check("rem.s32", "b32", &[(&[0xffff_fff9, 2], M1), (&[MIN, M1], 0), (&[7, 0], M1)]);
    check("rem.u16", "b16", &[(&[0xffff, 10], 5)]);
    check("min.s32", "b32", &[(&[M1, 1], M1)]);
    check("min.u32", "b32", &[(&[M1, 1], 1)]);
    check("max.s64", "b64", &[(&[u64::MAX, 1], 1)]);
    check("abs.s32", "b32", &[(&[M1], 1), (&[MIN], MIN)]);
    check("neg.s16", "b16", &[(&[1], 0xffff), (&[0x8000], 0x8000)]);
    check("sad.s32", "b32", &[(&[M1, 1, 10], 12), (&[MIN, 0x7fff_ffff, 0], M1)]);
}

#[test]
fn carries() {
    let text = ".version 8.0 .target sm_80 .address_size 64
        .visible .entry k(.param .u64 out) {
            .reg .b32 %r<9>; .reg .b64 %p;
            ld.param.u64 %p, [out];
            add.cc.u32 %r1, 4294967295, 1; addc.cc.u32 %r2, 4294967295, 0; addc.u32 %r3, 5, 0;
            st.global.v2.u32 [%p], {%r1, %r2}; st.global.u32 [%p+8], %r3;
            sub.cc.u32 %r1, 0, 1; subc.cc.u32 %r2, 0, 0; subc.u32 %r3, 5, 0;
            st.global.u32 [%p+12], %r1; st.global.u32 [%p+16], %r2; st.global.u32 [%p+20], %r3;
            mad.lo.cc.u32 %r1, 4294967295, 2, 2; madc.hi.u32 %r2, 4294967295, 2, 7;
            st.global.u32 [%p+24], %r1; st.global.u32 [%p+28], %r2;
            sub.cc.u32 %r1, 5, 5; subc.u32 %r2, 1, 1; st.global.u32 [%p+32], %r2;
            ret;
        }";
    let gpu = Gpu::from_ptx(text);
    let out = gpu.zeros::<u32>(9);
    gpu.launch("k", 1, 1, &[(&out).into()]);
    assert_eq!(out.read::<u32>(), [0, 0, 6, u32::MAX, u32::MAX, 4, 0, 9, 0]);
}

#[test]
fn shifts_and_bit_fields() {
    check_types("shl.b32", "b32", ["b32"; 3], &[(&[1, 31], MIN), (&[1, 32], 0), (&[1, M1], 0)]);
    check_types("shr.s32", "b32", ["b32"; 3], &[(&[MIN, 31], M1), (&[MIN, 32], M1), (&[MIN, 200], M1)]);
    check_types("shr.u32", "b32", ["b32"; 3], &[(&[MIN, 31], 1), (&[MIN, 32], 0)]);
    check_types("shl.b64", "b64", ["b64", "b32", "b32"], &[(&[1, 63], 1 << 63), (&[1, 64], 0)]);
    check_types("shr.s16", "b16", ["b16", "b32", "b32"], &[(&[0x8000, 20], 0xffff)]);
    check("shf.l.wrap.b32", "b32", &[(&[0x8000_0001, 0x1234_5678, 4], 0x2345_6788), (&[1, 2, 32], 2)]);
    check("shf.l.clamp.b32", "b32", &[(&[1, 2, 32], 1), (&[1, 2, 99], 1)]);
    check("shf.r.wrap.b32", "b32", &[(&[0x8000_0001, 0x1234_5678, 4], 0x8800_0000), (&[1, 2, 33], 0)]);
    check("shf.r.clamp.b32", "b32", &[(&[1, 2, 32], 2), (&[1, 2, 40], 2)]);
    check("bfe.u32", "b32", &[(&[0xabcd_1234, 8, 8], 0x12), (&[M1, 28, 8], 0xf), (&[M1, 4, 0], 0), (&[M1, 40, 4], 0)]);
    check("bfe.s32", "b32", &[(&[0x0000_8000, 8, 8], 0xffff_ff80), (&[MIN, 28, 8], 0xffff_fff8), (&[MIN, 40, 4], M1)]);
    check_types("bfe.u64", "b64", ["b64", "b32", "b32"], &[(&[u64::MAX, 32, 16], 0xffff)]);
    check("brev.b32", "b32", &[(&[1], MIN)]);
    check_types("popc.b64", "b32", ["b64"; 3], &[(&[u64::MAX], 64)]);
    check_types("clz.b32", "b32", ["b32"; 3], &[(&[0], 32), (&[1], 31)]);
    check_types("clz.b64", "b32", ["b64"; 3], &[(&[0], 64), (&[1 << 62], 1)]);
    check_types("bfind.u32", "b32", ["b32"; 3], &[(&[0], M1), (&[0x10], 4)]);
    check_types("bfind.s32", "b32", ["b32"; 3], &[(&[M1], M1), (&[0xffff_fffe], 0), (&[4], 2)]);
    check_types("bfind.shiftamt.u32", "b32", ["b32"; 3], &[(&[0x10], 27), (&[0], M1)]);
    check(
        "fns.b32",
        "b32",
        &[
            (&[0b1010_1000, 0, 1], 3),
            (&[0b1010_1000, 0, 3], 7),
            (&[0b1000, 0, 2], M1),
            (&[0b1010, 3, (-2i32) as u32 as u64], 1),
        ],
    );
    check("prmt.b32", "b32", &[(&[0x3322_1100, 0x7766_5544, 0x7531], 0x7755_3311), (&[0x0000_0080, 0, 0x8888], M1)]);
    check("prmt.b32.f4e", "b32", &[(&[0x3322_1100, 0x7766_5544, 1], 0x4433_2211)]);
    check("dp4a.s32.s32", "b32", &[(&[0xff02_0304, 0x0102_0304, 10], 10 + 16 + 9 + 4 - 1)]);
    check("dp4a.u32.u32", "b32", &[(&[0xff00_0000, 0xff00_0000, 0], 65025)]);
    check("dp4a.s32.u32", "b32", &[(&[0xff00_0000, 0xff00_0000, 0], (-255i32) as u32 as u64)]);
    check("dp2a.lo.s32.s32", "b32", &[(&[0xffff_0002, 0x0000_0305, 1], 1 + 10 - 3)]);
    check("cnot.b32", "b32", &[(&[0], 1), (&[7], 0)]);
    check("szext.wrap.s32", "b32", &[(&[0xff, 8], M1), (&[0x7f, 8], 0x7f)]);
    check("bmsk.clamp.b32", "b32", &[(&[4, 8], 0xff0), (&[40, 8], 0), (&[4, 99], 0xffff_fff0)]);
    for (table, want) in [(0xc0u64, 0x00u64), (0xfe, 0xfe), (0x96, 0x96), (0xca, 0xca), (0x80, 0x80)] {
        // a, b and c hold every combination of bits once, in the order of the table's rows.
        let op = format!("lop3.b32 %d, %a, %b, %c, {table}; mov.b32 %c, %d; or.b32");
        let rows = [[0xf0u64, 0xcc, 0xaa]];
        let text = each_row_custom(&op, &rows);
        assert_eq!(text & 0xff, if table == 0xc0 { 0xc0 } else { want }, "table {table:x}");
    }
    let bfi = |a: u64, b: u64, c: u64, e: u64| {
        each_row_custom(&format!("bfi.b32 %d, %a, %b, {c}, {e}; or.b32"), &[[a, b, 0]])
    };
    assert_eq!(bfi(0xff, 0, 4, 4), 0xf0);
    assert_eq!(bfi(0xff, 0xaaaa_aaaa, 28, 8), 0xfaaa_aaaa);
    assert_eq!(bfi(0xff, 0x55, 32, 8), 0x55);
    assert_eq!(bfi(0xff, 0x55, 3, 0), 0x55);
}

/// Runs a statement list that leaves its result in `%d`; the last opcode is a copy of `%d` onto
/// itself.
fn each_row_custom(op: &str, rows: &[[u64; 3]]) -> u64 {
    let text = format!(
        ".version 8.3 .target sm_90 .address_size 64
        .visible .entry k(.param .u64 out) {{
            .reg .b64 %q; .reg .b32 %a, %b, %c, %d;
            ld.param.u64 %q, [out]; mov.u32 %a, {}; mov.u32 %b, {}; mov.u32 %c, {}; mov.u32 %d, 0;
            {op} %d, %d, %d; st.global.u32 [%q], %d; ret;
        }}",
        rows[0][0], rows[0][1], rows[0][2]
    );
    let gpu = Gpu::from_ptx(&text);
    let out = gpu.zeros::<u32>(1);
    gpu.launch("k", 1, 1, &[(&out).into()]);
    u64::from(out.read::<u32>()[0])
}

#[test]
fn singles() {
    let nan = 0x7fff_ffff;
    let tiny = f(f32::MIN_POSITIVE / 2.0);
    check("add.f32", "b32", &[(&[f(1.0), f(2.0)], f(3.0)), (&[f(f32::INFINITY), f(f32::NEG_INFINITY)], nan)]);
    check(
        "add.ftz.f32",
        "b32",
        &[(&[tiny, tiny], 0), (&[tiny | MIN, tiny | MIN], MIN), (&[f(f32::INFINITY), f(f32::NEG_INFINITY)], nan)],
    );
    check(
        "add.rz.f32",
        "b32",
        &[(&[f(1.0), f(-1e-10)], f(1f32.next_down())), (&[f(-1.0), f(1e-10)], f((-1f32).next_up()))],
    );
    check("add.rp.f32", "b32", &[(&[f(1.0), f(1e-10)], f(1f32.next_up()))]);
    check("add.rm.f32", "b32", &[(&[f(1.0), f(-1.0)], MIN), (&[f(0.0), f(0.0)], 0)]);
    check("sub.sat.f32", "b32", &[(&[f(3.0), f(1.0)], f(1.0)), (&[f(1.0), f(3.0)], 0), (&[nan, f(1.0)], 0)]);
    check("mul.f32", "b32", &[(&[f(f32::MAX), f(2.0)], f(f32::INFINITY))]);
    check("mul.rz.f32", "b32", &[(&[f(f32::MAX), f(2.0)], f(f32::MAX)), (&[f(-f32::MAX), f(2.0)], f(-f32::MAX))]);
    let (x, y) = (1.0 + f32::EPSILON, 1.0 - f32::EPSILON / 2.0);
    check("fma.rn.f32", "b32", &[(&[f(x), f(y), f(-1.0)], f(x.mul_add(y, -1.0)))]);
    check("fma.rz.f32", "b32", &[(&[f(1.0), f(1.0), f(-1e-20)], f(1f32.next_down()))]);
    check("fma.rn.sat.f32", "b32", &[(&[f(5.0), f(5.0), f(0.0)], f(1.0))]);
    check(
        "div.rn.f32",
        "b32",
        &[(&[f(1.0), f(3.0)], f(1.0 / 3.0)), (&[f(1.0), f(0.0)], f(f32::INFINITY)), (&[f(0.0), f(0.0)], nan)],
    );
    check("div.rp.f32", "b32", &[(&[f(1.0), f(3.0)], f(1.0 / 3.0))]);
    check("div.rm.f32", "b32", &[(&[f(1.0), f(3.0)], f((1.0f32 / 3.0).next_down()))]);
    check("rcp.rn.f32", "b32", &[(&[f(4.0)], f(0.25)), (&[MIN], f(f32::NEG_INFINITY))]);
    check("sqrt.rn.f32", "b32", &[(&[f(2.0)], f(2f32.sqrt())), (&[f(-1.0)], nan), (&[MIN], MIN)]);
    check("sqrt.rp.f32", "b32", &[(&[f(2.0)], f(2f32.sqrt().next_up()))]);
    check("rsqrt.approx.f32", "b32", &[(&[f(4.0)], f(0.5)), (&[0], f(f32::INFINITY))]);
    check("min.f32", "b32", &[(&[f(f32::NAN), f(1.0)], f(1.0)), (&[0, MIN], MIN), (&[f(f32::NAN), f(f32::NAN)], nan)]);
    check("max.f32", "b32", &[(&[f(f32::NAN), f(1.0)], f(1.0)), (&[MIN, 0], 0)]);
    check("max.NaN.f32", "b32", &[(&[f(f32::NAN), f(1.0)], nan)]);
    check("neg.f32", "b32", &[(&[0], MIN)]);
    check("abs.ftz.f32", "b32", &[(&[tiny | MIN], 0), (&[f(-2.0)], f(2.0))]);
    check("ex2.approx.f32", "b32", &[(&[f(3.0)], f(8.0)), (&[f(-200.0)], 0), (&[f(f32::NEG_INFINITY)], 0)]);
    check("lg2.approx.f32", "b32", &[(&[f(8.0)], f(3.0)), (&[f(0.0)], f(f32::NEG_INFINITY)), (&[f(-1.0)], nan)]);
    check("sin.approx.f32", "b32", &[(&[f(0.0)], 0), (&[f(f32::INFINITY)], nan)]);
    check("copysign.f32", "b32", &[(&[f(-1.0), f(2.0)], f(-2.0))]);
}

#[test]
fn doubles() {
    check("add.f64", "b64", &[(&[d(0.1), d(0.2)], d(0.1 + 0.2))]);
    check("fma.rn.f64", "b64", &[(&[d(0.1), d(10.0), d(-1.0)], d(0.1f64.mul_add(10.0, -1.0)))]);
    check("fma.rz.f64", "b64", &[(&[d(1.0), d(1.0), d(-1e-300)], d(1f64.next_down()))]);
    check("mul.rp.f64", "b64", &[(&[d(0.1), d(0.1)], d((0.1f64 * 0.1).max((0.1f64 * 0.1).next_down())))]);
    check("div.rn.f64", "b64", &[(&[d(1.0), d(0.0)], d(f64::INFINITY))]);
    check("sqrt.rn.f64", "b64", &[(&[d(2.0)], d(2f64.sqrt()))]);
    check("min.f64", "b64", &[(&[d(f64::NAN), d(1.0)], d(1.0))]);
}

#[test]
fn halves() {
    check("add.f16", "b16", &[(&[0x3c00, 0x3c00], 0x4000), (&[0x7bff, 0x7bff], 0x7c00), (&[1, 1], 2)]);
    check("mul.rn.f16", "b16", &[(&[0x3c01, 0x3c01], 0x3c02)]);
    check("fma.rn.f16", "b16", &[(&[0x3c01, 0x3c01, 0xbc02], 0x0010)]);
    check("fma.rn.relu.f16", "b16", &[(&[0x3c00, 0xc000, 0], 0)]);
    check("add.f16x2", "b32", &[(&[0x3c00_4000, 0x3c00_4000], 0x4000_4400)]);
    check("add.rn.bf16x2", "b32", &[(&[0x3f80_4000, 0x3f80_4000], 0x4000_4080)]);
    check("fma.rn.bf16", "b16", &[(&[0x3f81, 0x3f81, 0], 0x3f82)]);
    check("min.f16", "b16", &[(&[0x7e00, 0x3c00], 0x3c00), (&[0x0000, 0x8000], 0x8000)]);
    check("max.NaN.f16x2", "b32", &[(&[0x7e00_3c00, 0x3c00_4000], 0x7fff_4000)]);
    check("neg.f16x2", "b32", &[(&[0x3c00_0000], 0xbc00_8000)]);
}

#[test]
fn conversions() {
    let t = |op: &str, to: &str, from: &str, rows: &[(&[u64], u64)]| check_types(op, to, [from; 3], rows);
    t(
        "cvt.rzi.s32.f32",
        "b32",
        "b32",
        &[(&[f(-1.9)], M1), (&[f(3e9)], 0x7fff_ffff), (&[f(f32::NAN)], 0), (&[f(-3e9)], MIN)],
    );
    t("cvt.rni.s32.f32", "b32", "b32", &[(&[f(2.5)], 2), (&[f(3.5)], 4)]);
    t("cvt.rmi.s32.f32", "b32", "b32", &[(&[f(-1.1)], 0xffff_fffe)]);
    t("cvt.rpi.u32.f32", "b32", "b32", &[(&[f(1.1)], 2), (&[f(-1.5)], 0)]);
    t("cvt.rzi.s64.f32", "b64", "b32", &[(&[f(f32::NAN)], 1 << 63), (&[f(1e30)], i64::MAX as u64)]);
    t("cvt.rzi.s32.f64", "b32", "b64", &[(&[d(f64::NAN)], MIN), (&[d(-7.9)], 0xffff_fff9)]);
    t("cvt.rzi.u64.f64", "b64", "b64", &[(&[d(1e30)], u64::MAX), (&[d(-1.0)], 0)]);
    t("cvt.rzi.u8.f32", "b32", "b32", &[(&[f(300.0)], 255)]);
    t("cvt.rn.f32.s32", "b32", "b32", &[(&[0x7fff_ffff], f(2147483648.0)), (&[M1], f(-1.0))]);
    t("cvt.rz.f32.u32", "b32", "b32", &[(&[M1], f(4294967296f32.next_down()))]);
    t("cvt.rp.f32.s64", "b32", "b64", &[(&[(1 << 24) + 1], f(16777218.0))]);
    t(
        "cvt.rn.f32.u64",
        "b32",
        "b64",
        &[(&[u64::MAX], f(18446744073709551616.0)), (&[0x8000_0080_0000_0001], f(9223373136366403584.0))],
    );
    t("cvt.rn.f64.u64", "b64", "b64", &[(&[u64::MAX], d(18446744073709551616.0))]);
    t("cvt.rz.f64.s64", "b64", "b64", &[(&[i64::MAX as u64], d(9223372036854775807f64.next_down()))]);
    t("cvt.rn.f32.f64", "b32", "b64", &[(&[d(0.1)], f(0.1)), (&[d(1e300)], f(f32::INFINITY))]);
    t("cvt.rz.f32.f64", "b32", "b64", &[(&[d(1e300)], f(f32::MAX)), (&[d(1.0 + 1e-12)], f(1.0))]);
    t("cvt.rm.f32.f64", "b32", "b64", &[(&[d(-1.0 - 1e-12)], f((-1f32).next_down()))]);
    t("cvt.f64.f32", "b64", "b32", &[(&[f(0.1)], d(f64::from(0.1f32)))]);
    t("cvt.rn.f16.f32", "b16", "b32", &[(&[f(65520.0)], 0x7c00), (&[f(1e-8)], 0), (&[f(0.1)], 0x2e66)]);
    t("cvt.f32.f16", "b32", "b16", &[(&[0x3555], f(1365.0 / 4096.0)), (&[1], f(2f32.powi(-24)))]);
    t("cvt.rn.bf16.f32", "b16", "b32", &[(&[f(1.0 + 1.0 / 256.0)], 0x3f80), (&[f(1.0 + 3.0 / 256.0)], 0x3f82)]);
    t("cvt.rn.f16x2.f32", "b32", "b32", &[(&[f(1.0), f(2.0)], 0x3c00_4000)]);
    t("cvt.rn.relu.bf16x2.f32", "b32", "b32", &[(&[f(-1.0), f(2.0)], 0x0000_4000)]);
    t("cvt.rna.tf32.f32", "b32", "b32", &[(&[0x3f80_1000], 0x3f80_2000), (&[0x3f80_0fff], 0x3f80_0000)]);
    t("cvt.rni.f32.f32", "b32", "b32", &[(&[f(2.5)], f(2.0)), (&[f(-0.4)], MIN)]);
    t("cvt.rmi.f64.f64", "b64", "b64", &[(&[d(-2.5)], d(-3.0))]);
    t("cvt.sat.f32.f32", "b32", "b32", &[(&[f(2.5)], f(1.0)), (&[f(-2.5)], 0)]);
    t("cvt.s64.s32", "b64", "b32", &[(&[M1], u64::MAX)]);
    t("cvt.u64.u32", "b64", "b32", &[(&[M1], M1)]);
    t("cvt.s32.s8", "b32", "b32", &[(&[0x80], 0xffff_ff80), (&[0x17f], 0x7f)]);
    t("cvt.u32.u8", "b32", "b32", &[(&[0x1ff], 0xff)]);
    t("cvt.s8.s32", "b32", "b32", &[(&[0xff], M1), (&[0x17f], 0x7f)]);
    t("cvt.u8.u32", "b32", "b32", &[(&[0x1ff], 0xff)]);
    t("cvt.sat.u8.s32", "b32", "b32", &[(&[300], 255), (&[M1], 0)]);
    t("cvt.sat.s16.s32", "b32", "b32", &[(&[0x7fff_ffff], 0x7fff), (&[MIN], 0xffff_8000)]);
    t("cvt.u16.u64", "b16", "b64", &[(&[0x12345], 0x2345)]);
    t("cvt.pack.sat.u8.s32.b32", "b32", "b32", &[(&[300, M1, 0xabcd], 0xabcd_ff00)]);
}

#[test]
fn comparisons_with_nan_and_combination() {
    let nan = f(f32::NAN);
    let run = |op: &str, a: u64, b: u64| {
        let stmt = format!(
            "{{ .reg .pred %p, %q, %r; setp.eq.u32 %r, 0, 0; {op} selp.u32 %d, 1, 0, %p; @%q add.u32 %d, %d, 2; }} or.b32"
        );
        each_row_custom(&stmt, &[[a, b, 0]])
    };
    assert_eq!(run("setp.lt.f32 %p|%q, %a, %b;", f(1.0), f(2.0)), 1);
    assert_eq!(run("setp.lt.f32 %p|%q, %a, %b;", nan, f(2.0)), 2);
    assert_eq!(run("setp.ltu.f32 %p|%q, %a, %b;", nan, f(2.0)), 1);
    assert_eq!(run("setp.ne.f32 %p|%q, %a, %b;", nan, nan), 2, "ordered not-equal is false for NaN");
    assert_eq!(run("setp.neu.f32 %p|%q, %a, %b;", nan, nan), 1);
    assert_eq!(run("setp.equ.f32 %p|%q, %a, %b;", nan, f(1.0)), 1);
    assert_eq!(run("setp.num.f32 %p|%q, %a, %b;", nan, f(1.0)), 2);
    assert_eq!(run("setp.nan.f32 %p|%q, %a, %b;", nan, f(1.0)), 1);
    assert_eq!(run("setp.lt.and.s32 %p|%q, %a, %b, !%r;", M1, 1), 0, "both results are combined");
    assert_eq!(run("setp.lt.or.u32 %p|%q, %a, %b, %r;", M1, 1), 3);
    assert_eq!(run("setp.hi.xor.u32 %p|%q, %a, %b, %r;", M1, 1), 2);
    assert_eq!(run("setp.eq.ftz.f32 %p|%q, %a, %b;", 1, 0), 1, "subnormals are zero");
    assert_eq!(run("testp.notanumber.f32 %p, %a; not.pred %q, %p;", nan, 0), 1);
}

/// Video instructions of whole words: each form is executed as an H200 does, or refused by name.
#[test]
fn video_instructions() {
    let forms = |name: &str, types: &str, modes: &[&str]| -> Vec<(String, bool)> {
        let mut forms = Vec::new();
        for (mode, sat, second) in modes.iter().flat_map(|mode| {
            ["", ".sat"].into_iter().flat_map(move |sat| ["", ".add", ".min", ".max"].map(|second| (mode, sat, second)))
        }) {
            if name == "vset" && !sat.is_empty() {
                continue;
            }
            // See the head of `compile::simd`.
            let differs =
                matches!(second, ".min" | ".max") || !sat.is_empty() && (name == "vshl" || types.starts_with(".u32"));
            forms.push((format!("{name}{types}{sat}{mode}{second}"), differs));
        }
        forms
    };
    let mut all = Vec::new();
    for types in [".u32.u32.u32", ".u32.s32.u32", ".s32.u32.u32", ".s32.s32.u32"] {
        for name in ["vadd", "vsub", "vabsdiff", "vmin", "vmax"] {
            all.extend(forms(name, types, &[""]));
        }
        for name in ["vshl", "vshr"] {
            all.extend(forms(name, types, &[".clamp", ".wrap"]));
        }
    }
    all.extend(forms("vset", ".u32.s32", &[".eq", ".ne", ".lt", ".le", ".gt", ".ge"]));
    all.push(("vadd.s32.s32.s32".into(), false));
    all.push(("vshl.s32.s32.s32.wrap".into(), true));
    all.push(("vshr2.u32.u32.u32".into(), true));
    all.push(("vavrg.u32.u32.u32".into(), true));
    let mut text = ".version 8.3 .target sm_90 .address_size 64\n".to_owned();
    for (at, (form, _)) in all.iter().enumerate() {
        let third =
            if form.ends_with(".add") || form.ends_with(".min") || form.ends_with(".max") { ", %c" } else { "" };
        text += &format!(".visible .entry k{at}() {{ .reg .b32 %a, %b, %c, %d; {form} %d, %a, %b{third}; ret; }}\n");
    }
    let program = Program::compile(&parse(&text).unwrap(), &Nobody);
    assert_eq!(program.kernels().len(), all.len());
    for (kernel, (form, refused)) in program.kernels().iter().zip(&all) {
        let error = kernel.error().map(|error| error.to_string());
        assert_eq!(error.is_some(), *refused, "{form}: {error:?}");
        assert!(error.is_none_or(|error| error.contains(&format!("Unsupported({form})"))), "{form}");
    }
}
