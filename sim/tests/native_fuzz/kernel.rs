//! Writes a random kernel: what it loads and stores stands around a random body.

use std::fmt::Write;

use super::writer::{DOUBLES, LONGS, PREDS, SHORTS, SINGLES, WORDS, Writer};
use crate::interp_support::both::Random;

/// Threads of a block: one warp is not full.
pub(crate) const THREADS: u32 = 80;
pub(crate) const BLOCKS: u32 = 2;
/// Words of input and output of a thread.
pub(crate) const INPUT: u32 = 64;
pub(crate) const OUTPUT: u32 = 64;

/// What a kernel consists of.
#[derive(Clone, Copy, Default)]
pub(crate) struct Body {
    /// Without what PTX leaves open.
    pub exact: bool,
    /// One instruction only, which the seed chooses, several times in a row.
    pub one_form: bool,
}

/// The PTX of kernel `k` for a seed.
pub(crate) fn kernel(seed: u64, body: Body) -> String {
    let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut w = Writer { random, exact: body.exact, text: String::new(), labels: 0 };
    for _ in 0..8 {
        w.random.next();
    }
    if body.one_form {
        w.one_form(seed);
    } else {
        let length = 20 + w.below(60);
        w.statements(length, 3, true, None);
    }
    let mut head = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to) {\n\
         .local .align 16 .b8 stack[64];\n.shared .align 16 .b8 tile[4096];\n\
         .shared .align 16 .b8 line[2048];\n.shared .align 16 .b8 table[512];\n",
    );
    writeln!(head, ".reg .b32 %r<{WORDS}>, %n<{}>, %own, %t, %u, %slim, %lookup;", w.labels + 1).unwrap();
    writeln!(
        head,
        ".reg .b64 %l<{LONGS}>, %from, %to, %mine, %a, %first, %thin, %wide, %fat, %tiny;\n.reg .f32 %f<{SINGLES}>;"
    )
    .unwrap();
    writeln!(head, ".reg .f64 %d<{DOUBLES}>;\n.reg .b16 %h<{SHORTS}>;\n.reg .pred %p<{PREDS}>, %again;").unwrap();
    writeln!(head, "mov.u32 %t, %tid.z; mov.u32 %u, %ntid.y; mul.lo.u32 %t, %t, %u; mov.u32 %u, %tid.y;").unwrap();
    writeln!(head, "add.u32 %t, %t, %u; mov.u32 %u, %ntid.x; mul.lo.u32 %t, %t, %u; mov.u32 %u, %tid.x;").unwrap();
    writeln!(head, "add.u32 %t, %t, %u; mov.u32 %u, %ctaid.x; mad.lo.u32 %u, %u, {THREADS}, %t;").unwrap();
    writeln!(head, "ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; mov.b64 %first, %from;").unwrap();
    let mut behind = OUTPUT * THREADS * BLOCKS * 4;
    for (name, bytes) in [("fat", 16), ("wide", 8), ("thin", 4), ("tiny", 2)] {
        writeln!(head, "mul.wide.u32 %a, %u, {bytes}; add.u64 %a, %a, %to; add.u64 %{name}, %a, {behind};").unwrap();
        behind += bytes * THREADS * BLOCKS * 4;
    }
    writeln!(head, "mov.u32 %slim, line; mad.lo.u32 %slim, %t, 4, %slim; mov.u32 %lookup, table;").unwrap();
    writeln!(head, "mad.lo.u32 %own, %t, 4, %lookup; st.shared.u32 [%own], %u;").unwrap();
    for plane in 0..4 {
        writeln!(head, "st.shared.u32 [%slim+{}], %u;", plane * 512).unwrap();
    }
    writeln!(head, "bar.sync 0;").unwrap();
    writeln!(head, "mul.wide.u32 %a, %u, {}; add.u64 %from, %from, %a;", INPUT * 4).unwrap();
    writeln!(head, "mul.wide.u32 %a, %u, {}; add.u64 %mine, %to, %a;", OUTPUT * 4).unwrap();
    writeln!(head, "mov.u32 %own, tile; mad.lo.u32 %own, %t, 32, %own;").unwrap();
    for at in 0..8 {
        writeln!(head, "st.shared.u32 [%own+{}], %t; st.local.u32 [stack+{}], %u;", at * 4, at * 4).unwrap();
        writeln!(head, "st.local.u32 [stack+{}], %t; st.global.u32 [%mine+{}], %u;", at * 4 + 32, at * 4).unwrap();
    }
    let mut at = 0;
    let mut load = |head: &mut String, register: String, ty: &str, size: u32| {
        writeln!(head, "ld.global.{ty} {register}, [%from+{at}];").unwrap();
        at += size.max(4);
    };
    (0..LONGS).for_each(|n| load(&mut head, format!("%l{n}"), "u64", 8));
    (0..DOUBLES).for_each(|n| load(&mut head, format!("%d{n}"), "f64", 8));
    (0..WORDS).for_each(|n| load(&mut head, format!("%r{n}"), "u32", 4));
    (0..SINGLES).for_each(|n| load(&mut head, format!("%f{n}"), "f32", 4));
    (0..SHORTS).for_each(|n| load(&mut head, format!("%h{n}"), "u16", 2));
    // Some are the same in all lanes, or grow with the lane.
    for n in 0..WORDS {
        match w.below(10) {
            0 => writeln!(head, "mov.u32 %r{n}, %ctaid.x;").unwrap(),
            1 => writeln!(head, "mov.u32 %r{n}, %t;").unwrap(),
            2 => writeln!(head, "mov.u32 %r{n}, %tid.x;").unwrap(),
            3 => writeln!(head, "mad.lo.s32 %r{n}, %t, {}, -8;", n + 1).unwrap(),
            4 => writeln!(head, "mov.u32 %r{n}, {};", n * 7).unwrap(),
            _ => {}
        }
    }
    for n in 0..LONGS {
        match w.below(6) {
            0 => writeln!(head, "mul.wide.u32 %l{n}, %t, {};", 4 * n + 1).unwrap(),
            1 => writeln!(head, "mov.b64 %l{n}, {n};").unwrap(),
            _ => {}
        }
    }
    for n in 0..SINGLES {
        if w.below(4) == 0 {
            writeln!(head, "mov.f32 %f{n}, 0f40490fdb;").unwrap();
        }
    }
    for n in 0..PREDS {
        match w.below(4) {
            0 => writeln!(head, "setp.lt.u32 %p{n}, %t, {};", 8 * n + 4).unwrap(),
            1 => writeln!(head, "mov.u32 %own, %ctaid.x; setp.eq.u32 %p{n}, %own, 0;").unwrap(),
            _ => writeln!(head, "setp.lt.s32 %p{n}, %r{n}, %r{};", n + 1).unwrap(),
        }
    }
    writeln!(head, "mov.u32 %own, tile; mad.lo.u32 %own, %t, 32, %own;").unwrap();
    let mut tail = String::new();
    let mut at = 32;
    let mut store = |tail: &mut String, register: String, ty: &str, size: u32| {
        writeln!(tail, "st.global.{ty} [%mine+{at}], {register};").unwrap();
        at += size.max(4);
    };
    (0..LONGS).for_each(|n| store(&mut tail, format!("%l{n}"), "u64", 8));
    (0..DOUBLES).for_each(|n| store(&mut tail, format!("%d{n}"), "f64", 8));
    (0..WORDS).for_each(|n| store(&mut tail, format!("%r{n}"), "u32", 4));
    (0..SINGLES).for_each(|n| store(&mut tail, format!("%f{n}"), "f32", 4));
    (0..SHORTS).for_each(|n| store(&mut tail, format!("%h{n}"), "u16", 2));
    (0..PREDS).for_each(|n| {
        writeln!(tail, "selp.u32 %t, 1, 0, %p{n};").unwrap();
        store(&mut tail, "%t".into(), "u32", 4);
    });
    for n in 0..8 {
        writeln!(tail, "ld.shared.u32 %t, [%own+{}];", n * 4).unwrap();
        store(&mut tail, "%t".into(), "u32", 4);
    }
    format!("{head}\n{}\n{tail}\nret;\n}}\n", w.text)
}
