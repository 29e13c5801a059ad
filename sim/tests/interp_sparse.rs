//! Products with a sparse factor (`mma.sp`; HMMA.SP, IMMA.SP) in PTX and in machine code, against
//! plain products: places of entries and of metadata as PTX's manual gives them.

use std::fmt::Write as _;

use crate::interp_support::both::{Both, Random};

/// One kind of product.
#[derive(Clone, Copy)]
struct Kind {
    /// Types of the sums, of the first and of the second factor.
    types: [&'static str; 3],
    k: usize,
    /// Lanes of each four that hold metadata.
    holders: usize,
    tail: &'static str,
}

fn kinds() -> Vec<Kind> {
    let mut kinds = Vec::new();
    let mut add = |types, k, holders, tail| kinds.push(Kind { types, k, holders, tail });
    for types in [["f16", "f16", "f16"], ["f32", "f16", "f16"], ["f32", "bf16", "bf16"]] {
        add(types, 16, 1, "");
        add(types, 32, 2, "");
    }
    add(["f32", "tf32", "tf32"], 8, 1, "");
    add(["f32", "tf32", "tf32"], 16, 2, "");
    for (a, b, tail) in [("s8", "u8", ""), ("u8", "s8", ".satfinite"), ("s8", "s8", ""), ("u8", "u8", "")] {
        add(["s32", a, b], 32, 2, tail);
        add(["s32", a, b], 64, 4, tail);
    }
    for (a, b) in [("s4", "u4"), ("u4", "s4"), ("s4", "s4")] {
        add(["s32", a, b], 64, 2, "");
        add(["s32", a, b], 128, 4, "");
    }
    kinds
}

fn bits(ty: &str) -> usize {
    ty.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap()
}

/// Of how many neighbours how many are there.
fn chunk(ty: &str) -> (usize, usize) {
    match bits(ty) {
        32 => (2, 1),
        4 => (8, 4),
        _ => (4, 2),
    }
}

/// A small number as an element, and the number.
fn number(ty: &str, random: u64) -> (u64, i64) {
    let small = (random >> 20) as i64 % 13 - 6;
    let float = (small as f32).to_bits();
    match ty {
        "f32" | "tf32" => (u64::from(float), small),
        "bf16" => (u64::from(float >> 16), small),
        "f16" if small == 0 => (0, 0),
        "f16" => (u64::from((float >> 16 & 0x8000) | ((float >> 23 & 255) - 112) << 10 | (float >> 13 & 0x3ff)), small),
        "u8" | "u4" => (small.unsigned_abs(), small.abs()),
        _ => (small as u64 & (u64::MAX >> (64 - bits(ty))), small),
    }
}

/// Registers of a lane for so many elements.
fn registers(ty: &str, elements: usize) -> usize {
    elements * bits(ty) / 1024
}

fn kernel(text: &mut String, name: &str, kind: Kind, selector: usize) {
    let Kind { types: [sum, a, b], k, tail, .. } = kind;
    let sum_register = if sum == "f32" { "f32" } else { "b32" };
    let (sums, first, second) = (registers(sum, 128), registers(a, 8 * k), registers(b, 8 * k));
    let list =
        |p: &str, n: usize| format!("{{{}}}", (0..n).map(|at| format!("%{p}{at}")).collect::<Vec<_>>().join(", "));
    let _ = writeln!(
        text,
        ".visible .entry {name}(.param .u64 pin, .param .u64 pout) {{\n.reg .b64 %in, %out, %t; .reg .b32 %i, %m;\n\
         .reg .{sum_register} %d<4>, %c<4>; .reg .b32 %a<4>, %b<4>;\n\
         ld.param.u64 %in, [pin]; ld.param.u64 %out, [pout]; mov.u32 %i, %tid.x;\n\
         mul.wide.u32 %t, %i, 64; add.u64 %in, %in, %t; mul.wide.u32 %t, %i, 16; add.u64 %out, %out, %t;"
    );
    for (at, (prefix, ty, count)) in
        [("c", sum_register, sums), ("a", "b32", first), ("b", "b32", second)].into_iter().enumerate()
    {
        for n in 0..count {
            let _ = writeln!(text, "ld.global.{ty} %{prefix}{n}, [%in+{}];", 16 * at + 4 * n);
        }
    }
    let _ = writeln!(
        text,
        "ld.global.b32 %m, [%in+48];\n\
         mma.sp::ordered_metadata.sync.aligned.m16n8k{k}.row.col{tail}.{sum}.{a}.{b}.{sum} {}, {}, {}, {}, %m, {selector};",
        list("d", sums),
        list("a", first),
        list("b", second),
        list("c", sums)
    );
    for n in 0..sums {
        let _ = writeln!(text, "st.global.{sum_register} [%out+{}], %d{n};", 4 * n);
    }
    text.push_str("ret;\n}\n");
}

/// The positions, in a chunk, of what is there, and the chunk's four bits of metadata.
fn pattern(ty: &str, random: u64) -> (Vec<usize>, u32) {
    const PAIRS: [(usize, usize); 6] = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    let (low, high) = PAIRS[(random >> 13) as usize % 6];
    match bits(ty) {
        32 if random >> 33 & 1 == 0 => (vec![0], 0b0100),
        32 => (vec![1], 0b1110),
        4 => (vec![2 * low, 2 * low + 1, 2 * high, 2 * high + 1], (high << 2 | low) as u32),
        _ => (vec![low, high], (high << 2 | low) as u32),
    }
}

/// A chunk whose metadata four bits of a lane's word are, by PTX's manual: row and number.
fn described(ty: &str, group: usize, holder: usize, nibble: usize) -> (usize, usize) {
    match bits(ty) {
        16 | 32 => (group + nibble / 4 * 8, 4 * holder + nibble % 4),
        _ => (group + holder % 2 * 8, holder / 2 * 8 + nibble),
    }
}

#[test]
fn sparse_products_are_plain_products() {
    let mut text = String::from(".version 8.7\n.target sm_80\n.address_size 64\n");
    let mut all = Vec::new();
    for kind in kinds() {
        for selector in 0..4 / kind.holders {
            let name = format!("m{}", all.len());
            kernel(&mut text, &name, kind, selector);
            all.push((name, kind, selector));
        }
    }
    let both = Both::new(&text);
    let mut random = Random(0x1357_9bdf_0246_8ace);
    let mut wrong = String::new();
    for (name, kind, selector) in all {
        let Kind { types: [sum, a, b], k, holders, .. } = kind;
        let (width, there) = chunk(a);
        let chunks = k / width;
        // The first factor as it is and as it is stored, and each chunk's metadata.
        let mut dense = vec![0i64; 16 * k];
        let mut stored = Vec::new();
        let mut metadata = Vec::new();
        for row in 0..16 {
            for number_of in 0..chunks {
                let (places, nibble) = pattern(a, random.next());
                metadata.push(nibble);
                for place in places {
                    let (element, value) = number(a, random.next());
                    stored.push(element);
                    dense[row * k + number_of * width + place] = value;
                }
            }
        }
        assert_eq!(stored.len(), 16 * chunks * there);
        let mut matrix =
            |ty: &str, count: usize| -> Vec<(u64, i64)> { (0..count).map(|_| number(ty, random.next())).collect() };
        let (second, before) = (matrix(b, 8 * k), matrix(sum, 128));
        // Words of each lane: sums, factors, metadata; 16 bytes each.
        let mut words = vec![[0u32; 16]; 32];
        for (lane, words) in words.iter_mut().enumerate() {
            let (group, member) = (lane / 4, lane % 4);
            let mut put = |base: usize, ty: &str, at: usize, element: u64| {
                words[base + at * bits(ty) / 32] |= (element as u32) << (at * bits(ty) % 32);
            };
            for at in 0..4 {
                put(0, sum, at, before[(group + at / 2 * 8) * 8 + member * 2 + at % 2].0);
            }
            let per = 32 / bits(a);
            for at in 0..8 * k / 32 {
                let (register, within) = (at / per, at % per);
                let row = group + register % 2 * 8;
                let column = register / 2 * 4 * per + member * per + within;
                put(4, a, at, stored[row * chunks * there + column]);
                put(8, b, at, second[(register * 4 * per + member * per + within) * 8 + group].0);
            }
            // Lanes that are not chosen hold anything.
            words[12] = 0x4e94_e9e4u32.rotate_left(lane as u32 % 3 * 4);
            if let Some(holder) = member.checked_sub(selector * holders).filter(|&holder| holder < holders) {
                words[12] = (0..8).fold(0, |word, nibble| {
                    let (row, number) = described(a, group, holder, nibble);
                    word | metadata[row * chunks + number] << (4 * nibble)
                });
            }
        }
        let input: Vec<u8> = words.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
        let what = format!("m16n8k{k}.{sum}.{a}.{b}, selector {selector}");
        let [ptx, machine] = match both.run(&name, 32, &input, 32 * 16) {
            Ok(outputs) => outputs,
            Err(why) => {
                let _ = writeln!(wrong, "{what}: {why}");
                continue;
            }
        };
        if ptx != machine {
            let _ = writeln!(wrong, "{what}: PTX and machine code differ");
        }
        let word = |lane: usize, at: usize| u32::from_le_bytes(ptx[lane * 16 + 4 * at..][..4].try_into().unwrap());
        for row in 0..16 {
            for column in 0..8 {
                let inner = (0..k).map(|inner| dense[row * k + inner] * second[inner * 8 + column].1);
                let want = before[row * 8 + column].1 + inner.sum::<i64>();
                let (lane, at) = (row % 8 * 4 + column / 2, row / 8 * 2 + column % 2);
                let got = match sum {
                    "f32" => f32::from_bits(word(lane, at)) as i64,
                    "f16" => {
                        let half = word(lane, at / 2) >> (16 * (at % 2)) & 0xffff;
                        let magnitude = f32::from_bits((half & 0x7fff) << 13) * 2f32.powi(112);
                        (if half & 0x8000 != 0 { -magnitude } else { magnitude }) as i64
                    }
                    _ => i64::from(word(lane, at) as i32),
                };
                if got != want {
                    let _ = writeln!(wrong, "{what}: row {row}, column {column}: {got}, not {want}");
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.lines().take(40).collect::<Vec<_>>().join("\n"));
}
