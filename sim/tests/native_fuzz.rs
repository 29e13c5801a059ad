//! Random kernels, interpreted and as native code: all that they leave in memory must be the same,
//! bit by bit. `NATIVE_FUZZ` is how many kernels are tried (default: a few), `NATIVE_FUZZ_SEED` the
//! first seed. Kernels that differ are left in the folder for temporary files; `NATIVE_FUZZ_FILE`
//! tries such a file with the seed's input. `INTERP_CODE=sass` tries the machine code that the
//! assembler makes of the kernels.

mod interp_support;

use std::fmt::Write;
use std::process::Command;

use interp_support::both::Random;
use interp_support::{Gpu, arch, toolkit};
use streamsan_sim::interp::{Compile, FaultKind, Launch, run};

/// Threads of a block: one warp is not full.
const THREADS: u32 = 80;
const BLOCKS: u32 = 2;
/// Registers of each kind.
const WORDS: u64 = 10;
const LONGS: u64 = 6;
const SINGLES: u64 = 8;
const DOUBLES: u64 = 4;
const SHORTS: u64 = 4;
const PREDS: u64 = 5;
/// Words of input and output of a thread.
const INPUT: u32 = 64;
const OUTPUT: u32 = 64;

/// Instructions: `r` a word, `l` a long, `f` a single, `d` a double, `h` a short, `p` a predicate,
/// `q` one that is read, `i` a small number; a capital is written.
const TEMPLATES: &[&str] = &[
    "add.s32 R, r, r",
    "sub.u32 R, r, r",
    "mul.lo.s32 R, r, r",
    "mul.hi.s32 R, r, r",
    "mul.hi.u32 R, r, r",
    "mad.lo.s32 R, r, r, r",
    "mul.wide.s32 L, r, r",
    "mul.wide.u32 L, r, r",
    "mad.wide.s32 L, r, r, l",
    "mad.wide.u32 L, r, r, l",
    "and.b32 R, r, r",
    "or.b32 R, r, r",
    "xor.b32 R, r, r",
    "not.b32 R, r",
    "neg.s32 R, r",
    "abs.s32 R, r",
    "min.s32 R, r, r",
    "max.u32 R, r, r",
    "min.u32 R, r, r",
    "max.s32 R, r, r",
    "shl.b32 R, r, i",
    "shr.u32 R, r, i",
    "shr.s32 R, r, i",
    "shl.b32 R, r, r",
    "shr.u32 R, r, r",
    "shr.s32 R, r, r",
    "shf.l.wrap.b32 R, r, r, r",
    "shf.r.wrap.b32 R, r, r, i",
    "shf.l.clamp.b32 R, r, r, r",
    "div.u32 R, r, r",
    "rem.s32 R, r, r",
    "div.s32 R, r, r",
    "popc.b32 R, r",
    "clz.b32 R, r",
    "brev.b32 R, r",
    "bfind.u32 R, r",
    "bfe.u32 R, r, i, i",
    "bfe.s32 R, r, r, r",
    "bfi.b32 R, r, r, i, i",
    "prmt.b32 R, r, r, r",
    "sad.s32 R, r, r, r",
    "lop3.b32 R, r, r, r, 0x96",
    "lop3.b32 R, r, r, r, 0xe8",
    "lop3.b32 R, r, r, r, 0x1b",
    "lop3.b32 R, r, r, r, 0x6c",
    "mul24.lo.s32 R, r, r",
    "dp4a.s32.u32 R, r, r, r",
    "cnot.b32 R, r",
    "fns.b32 R, r, i, 2",
    "add.s64 L, l, l",
    "sub.s64 L, l, l",
    "mul.lo.s64 L, l, l",
    "mul.hi.u64 L, l, l",
    "mul.hi.s64 L, l, l",
    "mad.lo.s64 L, l, l, l",
    "and.b64 L, l, l",
    "xor.b64 L, l, l",
    "not.b64 L, l",
    "neg.s64 L, l",
    "abs.s64 L, l",
    "min.s64 L, l, l",
    "max.u64 L, l, l",
    "shl.b64 L, l, i",
    "shr.u64 L, l, r",
    "shr.s64 L, l, r",
    "shl.b64 L, l, r",
    "div.s64 L, l, l",
    "rem.u64 L, l, l",
    "popc.b64 R, l",
    "clz.b64 R, l",
    "add.cc.u32 R, r, r; addc.u32 R, r, r",
    "sub.cc.u32 R, r, r; subc.cc.u32 R, r, r; subc.u32 R, r, r",
    "mad.lo.cc.u32 R, r, r, r; madc.hi.u32 R, r, r, r",
    "add.cc.u64 L, l, l; addc.u64 L, l, l",
    "add.u16 H, h, h",
    "sub.s16 H, h, h",
    "mul.lo.u16 H, h, h",
    "mul.hi.s16 H, h, h",
    "mul.wide.s16 R, h, h",
    "mad.lo.u16 H, h, h, h",
    "min.s16 H, h, h",
    "max.u16 H, h, h",
    "shl.b16 H, h, i",
    "shr.s16 H, h, i",
    "shr.u16 H, h, r",
    "neg.s16 H, h",
    "abs.s16 H, h",
    "not.b16 H, h",
    "and.b16 H, h, h",
    "add.f32 F, f, f",
    "sub.f32 F, f, f",
    "mul.f32 F, f, f",
    "fma.rn.f32 F, f, f, f",
    "add.ftz.f32 F, f, f",
    "mul.ftz.f32 F, f, f",
    "fma.rn.ftz.f32 F, f, f, f",
    "add.sat.f32 F, f, f",
    "mul.ftz.sat.f32 F, f, f",
    "fma.rn.sat.f32 F, f, f, f",
    "add.rz.f32 F, f, f",
    "mul.rm.f32 F, f, f",
    "fma.rp.f32 F, f, f, f",
    "div.rn.f32 F, f, f",
    "sqrt.rn.f32 F, f",
    "rcp.rn.f32 F, f",
    "rsqrt.approx.f32 F, f",
    "ex2.approx.f32 F, f",
    "lg2.approx.ftz.f32 F, f",
    "min.f32 F, f, f",
    "max.f32 F, f, f",
    "min.ftz.f32 F, f, f",
    "max.NaN.f32 F, f, f",
    "neg.f32 F, f",
    "abs.f32 F, f",
    "neg.ftz.f32 F, f",
    "copysign.f32 F, f, f",
    "tanh.approx.f32 F, f",
    "add.f64 D, d, d",
    "mul.f64 D, d, d",
    "fma.rn.f64 D, d, d, d",
    "sub.f64 D, d, d",
    "neg.f64 D, d",
    "abs.f64 D, d",
    "min.f64 D, d, d",
    "div.rn.f64 D, d, d",
    "sqrt.rn.f64 D, d",
    "add.rz.f64 D, d, d",
    "cvt.f64.f32 D, f",
    "cvt.rn.f32.f64 F, d",
    "cvt.rn.f32.s32 F, r",
    "cvt.rn.f32.u32 F, r",
    "cvt.rn.f64.s32 D, r",
    "cvt.rn.f64.u32 D, r",
    "cvt.rzi.s32.f32 R, f",
    "cvt.rzi.u32.f32 R, f",
    "cvt.rni.s32.f32 R, f",
    "cvt.rzi.s64.f32 L, f",
    "cvt.rn.f32.s64 F, l",
    "cvt.rzi.s32.f64 R, d",
    "cvt.s64.s32 L, r",
    "cvt.u64.u32 L, r",
    "cvt.u32.u64 R, l",
    "cvt.s32.s8 R, r",
    "cvt.u32.u8 R, r",
    "cvt.s16.s8 H, h",
    "cvt.u16.u32 H, r",
    "cvt.s32.s16 R, h",
    "cvt.u32.u16 R, h",
    "cvt.s64.s16 L, h",
    "cvt.sat.u8.s32 R, r",
    "cvt.rmi.f32.f32 F, f",
    "cvt.rn.f16.f32 H, f",
    "cvt.f32.f16 F, h",
    "cvt.sat.f32.f32 F, f",
    "cvt.ftz.f32.f32 F, f",
    "mov.b32 R, f",
    "mov.b32 F, r",
    "mov.b64 L, d",
    "mov.b64 D, l",
    "mov.b32 R, r",
    "mov.f32 F, f",
    "mov.b64 L, l",
    "mov.b64 L, {r, r}",
    "mov.b64 {R, R}, l",
    "mov.b32 R, {h, h}",
    "mov.b32 {H, H}, r",
    "mov.b64 {R, R}, d",
    "mov.f32 F, 0f3f800000",
    "mov.f32 F, 0f7fc00000",
    "mov.f32 F, 0f00000001",
    "mov.u32 R, 0xffffffff",
    "mov.u32 R, i",
    "mov.u32 R, %laneid",
    "mov.u32 R, %lanemask_lt",
    "mov.u32 R, %ntid.x",
    "mov.u32 R, %nctaid.x",
    "selp.b32 R, r, r, q",
    "selp.f32 F, f, f, q",
    "selp.b64 L, l, l, q",
    "selp.f64 D, d, d, q",
    "slct.s32.s32 R, r, r, r",
    "setp.lt.s32 P, r, r",
    "setp.ge.u32 P, r, r",
    "setp.eq.s32 P, r, i",
    "setp.ne.s64 P, l, l",
    "setp.lt.u64 P, l, l",
    "setp.gt.s16 P, h, h",
    "setp.lt.f32 P, f, f",
    "setp.geu.f32 P, f, f",
    "setp.neu.f32 P, f, f",
    "setp.ne.f32 P, f, f",
    "setp.nan.f32 P, f, f",
    "setp.num.f32 P, f, f",
    "setp.equ.f64 P, d, d",
    "setp.le.ftz.f32 P, f, f",
    "setp.lt.and.s32 P|P, r, r, q",
    "setp.eq.or.f32 P, f, f, q",
    "setp.ne.xor.u32 P|P, r, r, q",
    "set.lt.u32.s32 R, r, r",
    "set.gt.f32.f32 F, f, f",
    "testp.infinite.f32 P, f",
    "testp.subnormal.f32 P, f",
    "and.pred P, q, q",
    "or.pred P, q, q",
    "xor.pred P, q, q",
    "not.pred P, q",
    "add.rn.f16 H, h, h",
    "fma.rn.f16x2 R, r, r, r",
    "mul.rn.f16x2 R, r, r",
    "min.s16 H, h, h",
    // Memory: what is a thread's own.
    "st.global.u32 [%mine+I4], r",
    "ld.global.u32 R, [%mine+I4]",
    "st.global.f32 [%mine+I4], f",
    "ld.global.f32 F, [%mine+I4]",
    "st.global.u64 [%mine+I8], l",
    "ld.global.u64 L, [%mine+I8]",
    "st.global.u8 [%mine+I4], r",
    "ld.global.s8 R, [%mine+I4]",
    "ld.global.u16 H, [%mine+I4]",
    "st.global.v2.u32 [%mine+I8], {r, r}",
    "ld.global.v2.u32 {R, R}, [%mine+I8]",
    "st.global.v4.f32 [%mine+I16], {f, f, f, f}",
    "ld.global.v4.f32 {F, F, F, F}, [%mine+I16]",
    "ld.global.v4.u8 {R, R, R, R}, [%mine+I4]",
    "st.global.v2.u8 [%mine+I4], {r, r}",
    "ld.global.v2.u64 {L, L}, [%mine+I16]",
    "st.v2.f64 [%mine+I16], {d, d}",
    "ld.f64 D, [%mine+I8]",
    "ld.global.s16 R, [%mine+I4]",
    "st.shared.u32 [%own+I4], r",
    "ld.shared.u32 R, [%own+I4]",
    "st.shared.f64 [%own+I8], d",
    "ld.shared.f32 F, [%own+I4]",
    "ld.shared.v2.f32 {F, F}, [%own+I8]",
    "st.local.u32 [stack+I4], r",
    "ld.local.f32 F, [stack+I4]",
    "st.local.u64 [stack+I8], l",
    "ld.local.s16 R, [stack+I4]",
    "ld.volatile.shared.u32 R, [%own+I4]",
    "st.volatile.global.u32 [%mine+I4], r",
    "atom.global.add.u32 R, [%mine+I4], r",
    "atom.global.max.s32 R, [%mine+I4], r",
    "atom.shared.add.u32 R, [%own+I4], r",
    "atom.global.cas.b32 R, [%mine+I4], r, r",
    "atom.shared.cas.b32 R, [%own+I4], r, r",
    "atom.global.exch.b64 L, [%mine+I8], l",
    "atom.global.add.f32 F, [%mine+I4], f",
    "atom.shared.add.f32 F, [%own+I4], f",
    "atom.shared.min.u32 R, [%own+I4], r",
    "atom.global.and.b32 R, [%mine+I4], r",
    "atom.global.inc.u32 R, [%mine+I4], r",
    "red.shared.xor.b32 [%own+I4], r",
    "atom.global.add.u64 L, [%mine+I8], l",
    "atom.add.f64 D, [%mine+I8], d",
    // What is the same in all lanes, or grows with the lane.
    "mov.u32 R, %tid.x",
    "mov.u32 R, %tid.y",
    "mov.u32 R, %ctaid.x",
    "mul.wide.s32 L, r, 12",
    "mul.wide.u32 L, r, 4",
    "mad.wide.s32 L, r, 8, l",
    "add.s32 R, r, i",
    "add.s32 R, r, -3",
    "mad.lo.s32 R, r, 5, r",
    "shl.b32 R, r, 2",
    "sub.s32 R, r, i",
    "ld.global.u32 R, [%first+I4]",
    "ld.global.f32 F, [%first+I4]",
    "ld.global.v2.u32 {R, R}, [%first+I8]",
    // Side by side with those of other threads.
    "st.global.u32 [%thin+A640], r",
    "ld.global.u32 R, [%thin+A640]",
    "ld.global.f32 F, [%thin+A640]",
    "st.global.f32 [%thin+A640], f",
    "st.global.f64 [%wide+A1280], d",
    "ld.global.u64 L, [%wide+A1280]",
    "ld.global.v2.f32 {F, F}, [%wide+A1280]",
    "st.global.v2.u32 [%wide+A1280], {r, r}",
    "st.global.v4.f32 [%fat+A2560], {f, f, f, f}",
    "ld.global.v4.f32 {F, F, F, F}, [%fat+A2560]",
    "ld.global.v2.f64 {D, D}, [%fat+A2560]",
    "st.global.v2.u64 [%fat+A2560], {l, l}",
    "ld.global.s16 R, [%tiny+A320]",
    "ld.global.u16 H, [%tiny+A320]",
    "st.global.u16 [%tiny+A320], r",
    "st.shared.u32 [%slim+A512], r",
    "ld.shared.f32 F, [%slim+A512]",
    "ld.shared.u32 R, [%slim+A512]",
    // Wherever a register says.
    "and.b32 %t, r, 63; mul.wide.u32 %a, %t, 4; add.u64 %a, %first, %a; ld.global.u32 R, [%a]",
    "and.b32 %t, r, 31; mul.wide.u32 %a, %t, 8; add.u64 %a, %first, %a; ld.global.v2.f32 {F, F}, [%a]",
    "and.b32 %t, r, 252; add.u32 %t, %t, %lookup; ld.shared.u32 R, [%t]",
    "and.b32 %t, r, 240; add.u32 %t, %t, %lookup; ld.shared.v4.f32 {F, F, F, F}, [%t]",
    "and.b32 %t, r, 28; add.u32 %t, %t, %own; ld.shared.u32 R, [%t]",
    "and.b32 %t, r, 28; add.u32 %t, %t, %own; st.shared.u32 [%t], r",
    "and.b32 %t, r, 28; cvt.u64.u32 %a, %t; add.u64 %a, %a, %mine; st.global.u32 [%a], r",
];

/// Instructions of a whole warp; only where its lanes are together. Not `activemask`: which lanes
/// execute it together behind a loop that they left at different times is nobody's promise.
const TOGETHER: &[&str] = &[
    "shfl.sync.bfly.b32 R, r, i, 31, -1",
    "shfl.sync.up.b32 R|P, r, i, 0, -1",
    "shfl.sync.idx.b32 R, r, r, 31, -1",
    "shfl.sync.down.b32 R, r, 3, 31, -1",
    "vote.sync.ballot.b32 R, q, -1",
    "vote.sync.any.pred P, q, -1",
    "match.any.sync.b32 R, r, -1",
    "redux.sync.add.s32 R, r, -1",
    "bar.sync 0",
    "bar.warp.sync -1",
    "membar.cta",
    "bar.red.popc.u32 R, 0, q",
    // What a lane of the same warp has stored just before, as programs of old have it.
    "bar.warp.sync -1; st.volatile.shared.u32 [%slim], r; xor.b32 %t, %slim, 4; ld.volatile.shared.u32 R, [%t]",
    "bar.warp.sync -1; st.volatile.shared.f32 [%slim], f; xor.b32 %t, %slim, 64; ld.volatile.shared.f32 F, [%t]",
];

struct Writer {
    random: Random,
    text: String,
    labels: u32,
}

impl Writer {
    fn below(&mut self, n: u64) -> u64 {
        (self.random.next() >> 11) % n
    }

    fn fill(&mut self, template: &str) -> String {
        let mut out = String::new();
        let mut word = String::new();
        for c in template.chars().chain(['\n']) {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '%' | '_') {
                word.push(c);
                continue;
            }
            let (kind, rest) = word.split_at(word.len().min(1));
            match (kind, rest) {
                ("r" | "R", "") => write!(out, "%r{}", self.below(WORDS)),
                ("l" | "L", "") => write!(out, "%l{}", self.below(LONGS)),
                ("f" | "F", "") => write!(out, "%f{}", self.below(SINGLES)),
                ("d" | "D", "") => write!(out, "%d{}", self.below(DOUBLES)),
                ("h" | "H", "") => write!(out, "%h{}", self.below(SHORTS)),
                ("p" | "P" | "q", "") => write!(out, "%p{}", self.below(PREDS)),
                ("i", "") => write!(out, "{}", self.below(36)),
                ("A", step) if step.parse::<u64>().is_ok() => {
                    write!(out, "{}", self.below(4) * step.parse::<u64>().unwrap())
                }
                ("I", step @ ("4" | "8" | "16")) => {
                    let step: u64 = step.parse().unwrap();
                    write!(out, "{}", self.below(32 / step) * step)
                }
                _ => write!(out, "{word}"),
            }
            .unwrap();
            word.clear();
            if c != '\n' {
                out.push(c);
            }
        }
        out
    }

    fn one(&mut self, together: bool) {
        let warp = together && self.below(12) == 0;
        let list = if warp { TOGETHER } else { TEMPLATES };
        let template = list[self.below(list.len() as u64) as usize];
        let guard = if !warp && ![".cc", "%t,"].iter().any(|own| template.contains(own)) && self.below(5) == 0 {
            format!("@{}%p{} ", if self.below(2) == 0 { "!" } else { "" }, self.below(PREDS))
        } else {
            String::new()
        };
        let mut text = self.fill(template);
        // Two results of one instruction must be two registers.
        for _ in 0..50 {
            if !repeats(&text) {
                break;
            }
            text = self.fill(template);
        }
        if !repeats(&text) {
            writeln!(self.text, "{guard}{text};").unwrap();
        }
    }

    fn statements(&mut self, count: u64, depth: u32, together: bool) {
        for _ in 0..count {
            match self.below(12) {
                0 if depth > 0 => {
                    let label = self.labels;
                    self.labels += 1;
                    let (pred, both) = (self.below(PREDS), self.below(2) == 0);
                    writeln!(self.text, "@%p{pred} bra L{label}_else;").unwrap();
                    let count = 1 + self.below(6);
                    self.statements(count, depth - 1, false);
                    if both {
                        writeln!(self.text, "bra L{label}_end;").unwrap();
                    }
                    writeln!(self.text, "L{label}_else:").unwrap();
                    if both {
                        self.statements(count, depth - 1, false);
                        writeln!(self.text, "L{label}_end:").unwrap();
                    }
                }
                1 if depth > 0 => {
                    let label = self.labels;
                    self.labels += 1;
                    let uniform = self.below(2) == 0;
                    let trips = if uniform {
                        "mov.u32".into()
                    } else {
                        format!("and.b32 %n{label}, %r{}, 7; //", self.below(WORDS))
                    };
                    let trips = if uniform { format!("{trips} %n{label}, {};", 1 + self.below(5)) } else { trips };
                    writeln!(self.text, "{trips}\nL{label}_loop:").unwrap();
                    let count = 1 + self.below(7);
                    self.statements(count, depth - 1, together && uniform);
                    writeln!(self.text, "sub.s32 %n{label}, %n{label}, 1;\nsetp.gt.s32 %again, %n{label}, 0;").unwrap();
                    writeln!(self.text, "@%again bra L{label}_loop;").unwrap();
                }
                _ => self.one(together),
            }
        }
    }
}

/// Whether an instruction names a register twice among its results.
fn repeats(text: &str) -> bool {
    text.split(';').any(|text| {
        let results = match text.find('{') {
            Some(open)
                if text.starts_with("ld")
                    || text[..open].trim_end().ends_with("b64")
                    || text[..open].trim_end().ends_with("b32") =>
            {
                text[open..].split('}').next().unwrap_or("")
            }
            _ => match text.find('|') {
                Some(_) => text.split(',').next().unwrap_or(""),
                None => return false,
            },
        };
        let names: Vec<&str> = results.split(['{', ',', '|', ' ']).filter(|name| name.starts_with('%')).collect();
        names.iter().enumerate().any(|(at, name)| names[..at].contains(name))
    })
}

fn kernel(seed: u64) -> String {
    let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut w = Writer { random, text: String::new(), labels: 0 };
    for _ in 0..8 {
        w.random.next();
    }
    let length = 20 + w.below(60);
    w.statements(length, 3, true);
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

/// Machine code of a kernel.
fn assembled(text: &str) -> Vec<u8> {
    let place = |name: &str| std::env::temp_dir().join(format!("native-fuzz-{}.{name}", std::process::id()));
    let (from, to) = (place("ptx"), place("cubin"));
    std::fs::write(&from, text).unwrap();
    let ptxas = toolkit().join("bin/ptxas");
    let done = Command::new(ptxas).arg(format!("-arch={}", arch())).arg("-o").args([&to, &from]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let made = std::fs::read(&to).unwrap();
    let _ = (std::fs::remove_file(from), std::fs::remove_file(to));
    made
}

#[test]
fn random_kernels_do_the_same_as_native_code() {
    let number = |name: &str, default: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (count, first) = (number("NATIVE_FUZZ", 32), number("NATIVE_FUZZ_SEED", 1));
    let machine = std::env::var_os("INTERP_CODE").is_some_and(|code| code == "sass");
    let (mut differ, mut refused) = (0, 0);
    for seed in first..first + count {
        // A kernel that was written down, to make it smaller.
        let text =
            std::env::var("NATIVE_FUZZ_FILE").map_or_else(|_| kernel(seed), |f| std::fs::read_to_string(f).unwrap());
        let mut random = Random(seed | 1 << 40);
        let data = input(&mut random);
        let block = [[THREADS, 1, 1], [16, 5, 1], [THREADS, 1, 1], [8, 5, 2]][seed as usize % 4];
        let outputs = [Compile::Off, Compile::Always].map(|compile| {
            let gpu = if machine { Gpu::from_cubin(assembled(&text)) } else { Gpu::from_ptx(&text) };
            let words = (OUTPUT + 4 * (16 + 8 + 4 + 2) / 4) * THREADS * BLOCKS;
            let (from, to) = (gpu.buffer(&data), gpu.zeros::<u32>(words as usize));
            let params = [from.address.to_le_bytes(), to.address.to_le_bytes()].concat();
            let launch = Launch { grid: [BLOCKS, 1, 1], block, params, compile, ..Launch::default() };
            let kernels = gpu.kernels();
            let (program, kernel) = kernels[0];
            match run(program, kernel, &launch, &gpu.device, 1) {
                Ok(()) => Some(to.read::<u32>()),
                // The assembler uses instructions that are not executed.
                Err(fault) if machine && matches!(fault.kind, FaultKind::Unsupported(_)) => None,
                Err(fault) => panic!("seed {seed}: {fault}"),
            }
        });
        let [Some(interpreted), Some(native)] = outputs else {
            refused += 1;
            continue;
        };
        if let Some(at) = (0..native.len()).find(|&at| interpreted[at] != native[at]) {
            differ += 1;
            // Behind all threads' own output it is the place.
            let (thread, word) = (at as u32 / OUTPUT, at as u32 % OUTPUT);
            eprintln!(
                "seed {seed}: thread {thread}, output {word}: {:#x} interpreted, {:#x} native",
                interpreted[at], native[at]
            );
            let _ = std::fs::write(std::env::temp_dir().join(format!("native-fuzz-{seed}.ptx")), &text);
        }
    }
    assert_eq!(differ, 0, "of {count} kernels");
    assert!(refused * 2 <= count, "{refused} of {count} kernels were refused");
}
