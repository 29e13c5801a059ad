//! Products of matrices in machine code (HMMA, IMMA, DMMA, BMMA, MOVM) against PTX, and those of
//! small integers and bits against plain products.

use std::fmt::Write as _;

use crate::interp_support::both::{Both, Random};

/// One `mma` in a kernel: registers of the sums, of both factors; whether they hold doubles, and
/// whether the sums are singles.
fn mma(text: &mut String, at: usize, name: &str, sums: (&str, usize), a: usize, b: usize, factor: &str) {
    let list = |prefix: &str, count: usize| {
        format!("{{{}}}", (0..count).map(|n| format!("%{prefix}{n}")).collect::<Vec<_>>().join(", "))
    };
    let (sum, count) = sums;
    let _ = write!(
        text,
        ".visible .entry m{at}(.param .u64 pin, .param .u64 pout) {{\n.reg .b64 %in, %out, %t; .reg .b32 %i;\n\
         .reg .{sum} %d<{count}>; .reg .{sum} %c<{count}>; .reg .{factor} %a<{a}>; .reg .{factor} %b<{b}>;\n\
         ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; mov.u32 %i, %tid.x;\n\
         mul.wide.u32 %t, %i, 128; add.u64 %in, %in, %t; mul.wide.u32 %t, %i, 64; add.u64 %out, %out, %t;\n"
    );
    let mut offset = 0;
    for (prefix, ty, count) in [("c", sum, count), ("a", factor, a), ("b", factor, b)] {
        for n in 0..count {
            let _ = writeln!(text, "ld.global.{ty} %{prefix}{n}, [%in+{offset}];");
            offset += 8;
        }
    }
    let (d, c) = (list("d", count), list("c", count));
    let _ = writeln!(text, "{name} {d}, {}, {}, {c};", list("a", a), list("b", b));
    for n in 0..count {
        let _ = writeln!(text, "st.global.{sum} [%out+{}], %d{n};", 8 * n);
    }
    text.push_str("ret;\n}\n");
}

/// Every shape of sm_80 that the PTX interpreter knows.
#[test]
fn matrices() {
    let mut text = String::from(".version 8.7\n.target sm_80\n.address_size 64\n");
    let mut kinds = Vec::new();
    let mut add =
        |name: String, sums: (&'static str, usize), a: usize, b: usize, factor: &str, number: &'static str| {
            mma(&mut text, kinds.len(), &name, sums, a, b, factor);
            kinds.push((name, sums.0, number));
        };
    for (k, a, b) in [(8, 2, 1), (16, 4, 2)] {
        let head = format!("mma.sync.aligned.m16n8k{k}.row.col");
        add(format!("{head}.f16.f16.f16.f16"), ("b32", 2), a, b, "b32", "f16");
        add(format!("{head}.f32.f16.f16.f32"), ("f32", 4), a, b, "b32", "f16");
        add(format!("{head}.f32.bf16.bf16.f32"), ("f32", 4), a, b, "b32", "bf16");
    }
    add("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32".into(), ("f32", 4), 2, 1, "b32", "tf32");
    add("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32".into(), ("f32", 4), 4, 2, "b32", "tf32");
    add("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64".into(), ("f64", 2), 1, 1, "f64", "f64");
    for sat in ["", ".satfinite"] {
        for left in ["s8", "u8"] {
            for right in ["s8", "u8"] {
                for (k, a, b) in [(16, 2, 1), (32, 4, 2)] {
                    let name = format!("mma.sync.aligned.m16n8k{k}.row.col{sat}.s32.{left}.{right}.s32");
                    add(name, ("b32", 4), a, b, "b32", "s8");
                }
            }
        }
    }
    add("movmatrix".into(), ("b32", 1), 1, 1, "b32", "s8");
    let text = text.replace("movmatrix {%d0}, {%a0}, {%b0}, {%c0};", "movmatrix.sync.aligned.m8n8.trans.b16 %d0, %a0;");
    let both = Both::new(&text);
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut wrong = String::new();
    for (at, (name, sum, number)) in kinds.iter().enumerate() {
        let input: Vec<u64> = (0..32 * 16)
            .map(|slot| {
                let bits = random.next();
                // Small numbers, so that the sums are exact whatever their order.
                let small = |bits: u64| ((bits % 31) as f32 - 15.0) / 8.0;
                let pair = |cut: fn(f32) -> u64| cut(small(bits)) | cut(small(bits >> 8)) << 16;
                match *number {
                    _ if slot % 16 < 4 && *sum == "f32" => u64::from(small(bits).to_bits()),
                    "f64" => f64::from(small(bits)).to_bits(),
                    "tf32" => u64::from(small(bits).to_bits()),
                    "bf16" => pair(|value| u64::from(value.to_bits() >> 16)),
                    "f16" => pair(|value| {
                        let bits = value.to_bits();
                        if value == 0.0 {
                            return 0;
                        }
                        u64::from((bits >> 16 & 0x8000) | ((bits >> 23 & 255) - 112) << 10 | (bits >> 13 & 0x3ff))
                    }),
                    _ => bits,
                }
            })
            .collect();
        let bytes: Vec<u8> = input.iter().flat_map(|word| word.to_le_bytes()).collect();
        match both.run(&format!("m{at}"), 32, &bytes, 32 * 64) {
            Err(why) => {
                let _ = writeln!(wrong, "{name}: {why}");
            }
            Ok([ptx, machine]) if ptx != machine || ptx.iter().all(|&byte| byte == 0) => {
                let _ = writeln!(wrong, "{name}: the results differ or are nothing");
            }
            Ok(_) => {}
        }
    }
    assert!(wrong.is_empty(), "PTX and machine code differ:\n{wrong}");
}

/// Matrices of small integers and of bits against plain products, with the places of entries as
/// PTX's manual gives them.
#[test]
fn matrices_of_small_integers() {
    let mut text = String::from(".version 8.7\n.target sm_80\n.address_size 64\n");
    let mut kinds = Vec::new();
    for (m, k, bits, left, right, tail) in [
        (8, 16, 8, "s8", "u8", ""),
        (8, 32, 4, "s4", "s4", ""),
        (16, 32, 4, "u4", "s4", ""),
        (16, 64, 4, "s4", "u4", ""),
        (8, 128, 1, "b1", "b1", ".xor.popc"),
        (16, 128, 1, "b1", "b1", ".and.popc"),
        (16, 256, 1, "b1", "b1", ".xor.popc"),
    ] {
        let name = format!("mma.sync.aligned.m{m}n8k{k}.row.col.s32.{left}.{right}.s32{tail}");
        mma(&mut text, kinds.len(), &name, ("b32", m / 4), m * k * bits / 1024, 8 * k * bits / 1024, "b32");
        kinds.push((name, m, k, bits, left, right));
    }
    let both = Both::new(&text);
    let mut random = Random(0x0dd0_1234_5678_9abc);
    for (at, (name, m, k, bits, left, right)) in kinds.into_iter().enumerate() {
        let mut matrix = |rows: usize, columns: usize| -> Vec<u64> {
            (0..rows * columns).map(|_| random.next() >> 20 & ((1 << bits) - 1)).collect()
        };
        let (a, b, c) = (matrix(m, k), matrix(k, 8), matrix(m, 8));
        let per = 32 / bits;
        let pack = |entry: &dyn Fn(usize) -> u64| (0..per).fold(0, |word, i| word | entry(i) << (bits * i));
        let mut input = vec![0u64; 32 * 16];
        for lane in 0..32 {
            let (group, member) = (lane / 4, lane % 4);
            let words = &mut input[lane * 16..];
            let mut slot = 0;
            for n in 0..m / 4 {
                words[slot] = c[(group + n / 2 * 8) * 8 + member * 2 + n % 2];
                slot += 1;
            }
            for n in 0..m * k * bits / 1024 {
                let (row, chunk) = if m == 16 { (group + n % 2 * 8, n / 2) } else { (group, n) };
                words[slot] = pack(&|i| a[row * k + chunk * 4 * per + member * per + i]);
                slot += 1;
            }
            for n in 0..8 * k * bits / 1024 {
                words[slot] = pack(&|i| b[(n * 4 * per + member * per + i) * 8 + group]);
                slot += 1;
            }
        }
        let number = |value: u64, ty: &str| match ty {
            "s8" => i64::from(value as i8),
            "s4" => (value << 60) as i64 >> 60,
            _ => value as i64,
        };
        let mut want = vec![0i32; m * 8];
        for row in 0..m {
            for column in 0..8 {
                let terms = (0..k).map(|x| {
                    let (p, q) = (number(a[row * k + x], left), number(b[x * 8 + column], right));
                    if name.contains("xor") { p ^ q } else { p * q }
                });
                want[row * 8 + column] = (terms.sum::<i64>() + c[row * 8 + column] as i64) as i32;
            }
        }
        let bytes: Vec<u8> = input.iter().flat_map(|word| word.to_le_bytes()).collect();
        let [ptx, machine] =
            both.run(&format!("m{at}"), 32, &bytes, 32 * 64).unwrap_or_else(|why| panic!("{name}: {why}"));
        for (way, out) in [("PTX", ptx), ("machine code", machine)] {
            let mut got = vec![0i32; m * 8];
            for lane in 0..32 {
                for n in 0..m / 4 {
                    let word = i32::from_le_bytes(out[lane * 64 + n * 8..][..4].try_into().unwrap());
                    got[(lane / 4 + n / 2 * 8) * 8 + lane % 4 * 2 + n % 2] = word;
                }
            }
            assert_eq!(got, want, "{name} as {way}");
        }
    }
}

/// Matrices of doubles against plain products, with the places of entries as PTX's manual gives
/// them: the shape of sm_80, and those that sm_90 adds.
#[test]
fn matrices_of_doubles() {
    let mut random = Random(0x1357_9bdf_0246_8ace);
    for (arch, m, k) in [("sm_80", 8, 4), ("sm_90", 8, 4), ("sm_90", 16, 4), ("sm_90", 16, 8), ("sm_90", 16, 16)] {
        let mut text = format!(".version 8.7\n.target {arch}\n.address_size 64\n");
        let name = format!("mma.sync.aligned.m{m}n8k{k}.row.col.f64.f64.f64.f64");
        mma(&mut text, 0, &name, ("f64", m / 4), m * k / 32, k / 4, "f64");
        // Sums of small numbers are exact whatever their order.
        let mut matrix = |entries: usize| -> Vec<f64> {
            (0..entries).map(|_| f64::from((random.next() >> 20) as i8) / 8.0).collect()
        };
        let (a, b, c) = (matrix(m * k), matrix(k * 8), matrix(m * 8));
        let mut input = vec![0f64; 32 * 16];
        for lane in 0..32 {
            let (group, member) = (lane / 4, lane % 4);
            let ofc = (0..m / 4).map(|n| c[(group + n / 2 * 8) * 8 + member * 2 + n % 2]);
            let high = m / 8;
            let ofa = (0..m * k / 32).map(|n| a[(group + n % high * 8) * k + n / high * 4 + member]);
            let ofb = (0..k / 4).map(|n| b[(n * 4 + member) * 8 + group]);
            for (slot, value) in ofc.chain(ofa).chain(ofb).enumerate() {
                input[lane * 16 + slot] = value;
            }
        }
        let sum = |row: usize, column: usize| {
            c[row * 8 + column] + (0..k).map(|x| a[row * k + x] * b[x * 8 + column]).sum::<f64>()
        };
        let bytes: Vec<u8> = input.iter().flat_map(|value| value.to_le_bytes()).collect();
        let outputs = Both::on(&text, arch).run("m0", 32, &bytes, 32 * 64);
        let [ptx, machine] = outputs.unwrap_or_else(|why| panic!("{name} on {arch}: {why}"));
        for (way, out) in [("PTX", ptx), ("machine code", machine)] {
            for (lane, n) in (0..32).flat_map(|lane| (0..m / 4).map(move |n| (lane, n))) {
                let got = f64::from_le_bytes(out[lane * 64 + n * 8..][..8].try_into().unwrap());
                let (row, column) = (lane / 4 + n / 2 * 8, lane % 4 * 2 + n % 2);
                assert_eq!(got, sum(row, column), "{name} on {arch} as {way}: row {row}, column {column}");
            }
        }
    }
}
