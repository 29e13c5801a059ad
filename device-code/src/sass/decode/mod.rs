//! From instruction words to instructions: dispatch on operation number, form and generation.
//!
//! Owns the dispatch. The families are in `integer`, `logic`, `floating`, `conversion`, `tensor`,
//! `warp_group`,
//! `cross_lane`, `load_store`, `bulk` and `control_flow`; `effects_only` knows what the other
//! instructions write. All of them read fields by `instruction_word`, and some share the decoding
//! of operands with a sibling.

mod bulk;
mod control_flow;
mod conversion;
mod cross_lane;
mod effects_only;
mod floating;
mod instruction_word;
mod integer;
mod load_store;
mod logic;
mod tensor;
mod warp_group;

use super::inst::MachineInst;
use super::opcode::Opcode;
use super::operand::{File, Pred, PredSrc};
use crate::arch::Generation;
use crate::sass::decode::instruction_word::{Word, run};

/// See [`super::decode`].
pub(super) fn decode(arch: Generation, word: u128, pc: u32) -> MachineInst {
    let w = Word::new(arch, word, pc);
    let mut inst = MachineInst::new(pc, w.opcode, Opcode::Unknown);
    inst.uniform = uniform_guard(&w);
    inst.guard = w.ps(12, inst.uniform);
    if w.opcode == 0x886 {
        // VOTEU: a uniform result under a per-thread guard.
        inst.uniform = true;
    }
    if let Some(op) = family(&w, &mut inst) {
        inst.op = op;
        return inst;
    }
    unknown(&w)
}

/// An instruction of which nothing is known. Measured on 670,000 instructions: whatever is defined
/// starts at bits 16..24, and the widest results of ordinary instructions are 8 registers.
fn unknown(w: &Word) -> MachineInst {
    let mut inst = MachineInst::new(w.pc, w.opcode, Opcode::Unknown);
    // The guard may be of either file: unknown means maybe not executed, so the guard is not
    // trusted to be PT.
    inst.guard = PredSrc { pred: Pred { num: w.b(12, 15) as u8, uniform: uniform_guard(w) }, not: w.bit(15) };
    inst.dst = Some(run(File::R, w.r(16).0, u8::MAX));
    inst.dst2 = Some(run(File::UR, w.ur(16).0, u8::MAX));
    inst
}

/// Instructions whose guard is a uniform predicate.
fn uniform_guard(w: &Word) -> bool {
    let base = w.base();
    ((0x80..=0xbf).contains(&base) && w.opcode != 0x886)
        || (w.arch >= Generation::BlackwellConsumer && matches!(base, 0x4a | 0x51..=0x5e))
        || matches!(
            w.opcode,
            0x3ba
                | 0x3bb
                | 0x3bc
                | 0x3b4
                | 0x5b4
                | 0x3b5
                | 0x3b6
                | 0x5b8
                | 0x9b9
                | 0x5b2
                | 0x3ca
                | 0x7ac
                | 0xbac
                | 0xab9
                | 0xabb
                | 0x9c3
                | 0x8cb
                | 0x3e9
                | 0x9e7
                | 0x9ed
                | 0x9ee
                | 0x883
                | 0x9b1
        )
}

/// True when the word's form is one of the listed ones, as a bit mask, and exists on this
/// generation: constants as sources ended with sm_90, uniform sources began with sm_75.
fn forms(w: &Word, mask: u8) -> bool {
    let form = w.form();
    mask >> form & 1 != 0
        && match form {
            3 | 5 => w.arch < Generation::Hopper,
            6 | 7 => w.arch > Generation::Volta,
            _ => true,
        }
}

/// Register, immediate, constant, uniform in slot X.
const UNARY: u8 = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 6;
/// The same, and with the roles of B and C swapped.
const TERNARY: u8 = 0b1111_1110;
/// The forms of the uniform datapath.
const U_BINARY: u8 = 1 << 1 | 1 << 4;
const U_TERNARY: u8 = 1 << 1 | 1 << 2 | 1 << 4;

fn family(w: &Word, i: &mut MachineInst) -> Option<Opcode> {
    use Generation::{Blackwell, BlackwellConsumer, Hopper, Turing, Volta};
    let at_least = |g| w.arch >= g;
    if (0x80..=0xbf).contains(&w.base()) && w.arch == Volta && w.form() < 8 && !matches!(w.opcode, 0x980..=0x9bf) {
        // No uniform datapath. Base 180 to 1bf is memory, so this cannot hide anything else.
        if w.base() < 0x100 {
            return None;
        }
    }
    match w.base() {
        // Moves and selects.
        0x002 if forms(w, UNARY) => integer::mov(w, i, false),
        0x002 if w.opcode == 0x402 && at_least(BlackwellConsumer) => integer::mov_imm64(w, i, false),
        0x007 if forms(w, UNARY) => integer::sel(w, i, false),
        0x007 if matches!(w.opcode, 0x407 | 0x607 | 0xe07) && at_least(BlackwellConsumer) => {
            integer::sel64(w, i, false)
        }
        0x082 if matches!(w.opcode, 0x882 | 0xc82) => integer::mov(w, i, true),
        0x082 if w.opcode == 0x482 && at_least(BlackwellConsumer) => integer::mov_imm64(w, i, true),
        0x087 if forms(w, U_BINARY) => integer::sel(w, i, true),
        0x087 if matches!(w.opcode, 0x487 | 0xc87) && at_least(BlackwellConsumer) => integer::sel64(w, i, true),
        // Integer arithmetic.
        0x010 if forms(w, UNARY) => integer::iadd3(w, i, false, false),
        0x090 if forms(w, U_BINARY) => integer::iadd3(w, i, true, false),
        0x097 if forms(w, U_BINARY) && at_least(Hopper) => integer::iadd3(w, i, true, true),
        0x035 if forms(w, UNARY) && at_least(BlackwellConsumer) => integer::iadd(w, i),
        0x036 if forms(w, UNARY) && at_least(Hopper) => integer::viadd(w, i),
        0x011 if forms(w, TERNARY) => integer::lea(w, i, false),
        0x091 if forms(w, U_TERNARY) => integer::lea(w, i, true),
        0x024 | 0x025 | 0x027 if forms(w, TERNARY) => integer::imad(w, i, false),
        0x0a4..=0x0a6 if forms(w, U_TERNARY) => integer::imad(w, i, true),
        0x013 if forms(w, UNARY) => integer::unary(w, i, false, Opcode::Iabs),
        0x017 if forms(w, UNARY) && w.arch != Hopper => integer::imnmx(w, i, false),
        0x085 if forms(w, U_BINARY) && at_least(BlackwellConsumer) => integer::imnmx(w, i, true),
        0x048 if forms(w, UNARY) && at_least(Hopper) => integer::vimnmx(w, i, false),
        0x04a if forms(w, U_BINARY) && at_least(BlackwellConsumer) => integer::vimnmx(w, i, true),
        0x00f if forms(w, TERNARY) && at_least(Hopper) => integer::vimnmx3(w, i),
        0x046 if forms(w, TERNARY) && at_least(Hopper) => integer::viaddmnmx(w, i),
        // Logic, shifts, bit fields.
        0x012 if forms(w, UNARY) => logic::lop3(w, i, false),
        0x092 if forms(w, U_BINARY) => logic::lop3(w, i, true),
        0x019 if forms(w, TERNARY) => logic::shf(w, i, false),
        0x099 if forms(w, U_TERNARY) => logic::shf(w, i, true),
        0x016 if forms(w, TERNARY) => logic::prmt(w, i, false),
        0x096 if forms(w, U_TERNARY) => logic::prmt(w, i, true),
        0x01a if forms(w, UNARY) => logic::sgxt(w, i, false),
        0x09a if forms(w, U_BINARY) => logic::sgxt(w, i, true),
        0x01b if forms(w, UNARY) => logic::bmsk(w, i, false),
        0x09b if forms(w, U_BINARY) => logic::bmsk(w, i, true),
        0x100 if forms(w, UNARY) => logic::flo(w, i, false),
        0x101 if forms(w, UNARY) => integer::unary(w, i, false, Opcode::Brev),
        0x109 if forms(w, UNARY) => integer::unary_inv(w, i, false, Opcode::Popc),
        0x0bd if w.opcode == 0x2bd => logic::flo(w, i, true),
        0x0be if w.opcode == 0x2be => integer::unary(w, i, true, Opcode::Brev),
        0x0bf if w.opcode == 0x2bf => integer::unary_inv(w, i, true, Opcode::Popc),
        // Predicates.
        0x00c if forms(w, UNARY) => logic::isetp(w, i, false),
        0x00b | 0x02a if forms(w, 0b1111_1110) => logic::fsetp(w, i, w.base() == 0x02a),
        0x08c if forms(w, U_BINARY) => logic::isetp(w, i, true),
        0x01c if w.opcode == 0x81c => logic::plop3(w, i, false),
        0x09c if w.opcode == 0x89c => logic::plop3(w, i, true),
        0x003 if forms(w, UNARY) => logic::p2r(w, i, false),
        0x083 if w.opcode == 0x883 => logic::p2r(w, i, true),
        0x004 if forms(w, UNARY) => logic::r2p(w, i),
        // Lanes, special registers, moves between the files.
        0x006 if w.opcode == 0x806 => crate::sass::decode::cross_lane::vote(w, i, false),
        0x086 if w.opcode == 0x886 => crate::sass::decode::cross_lane::vote(w, i, true),
        0x189 if matches!(w.opcode, 0x389 | 0x589 | 0x989) => crate::sass::decode::cross_lane::shfl(w, i),
        0x189 if w.opcode == 0xf89 => crate::sass::decode::cross_lane::shfl(w, i),
        0x1a1 if w.opcode == 0x3a1 => crate::sass::decode::cross_lane::match_(w, i),
        0x1c4 if w.opcode == 0x3c4 => crate::sass::decode::cross_lane::redux(w, i),
        0x02f if w.opcode == 0x82f && at_least(Hopper) => crate::sass::decode::cross_lane::elect(w, i),
        0x1c2 if w.opcode == 0x3c2 && w.arch < Hopper && at_least(Turing) => {
            crate::sass::decode::cross_lane::r2ur(w, i)
        }
        0x0ca if w.opcode == 0x2ca && at_least(Hopper) => crate::sass::decode::cross_lane::r2ur(w, i),
        0x119 if w.opcode == 0x919 => crate::sass::decode::cross_lane::s2r(w, i, false, false),
        0x1c3 if w.opcode == 0x9c3 => crate::sass::decode::cross_lane::s2r(w, i, true, false),
        0x005 if w.opcode == 0x805 => crate::sass::decode::cross_lane::s2r(w, i, false, true),
        0x0cb if w.opcode == 0x8cb && at_least(Blackwell) => crate::sass::decode::cross_lane::s2r(w, i, true, true),
        0x14e if matches!(w.opcode, 0x34e | 0x94e) => crate::sass::decode::cross_lane::lepc(w, i),
        0x031 | 0x035 if matches!(w.opcode, 0x431 | 0x435) => crate::sass::decode::cross_lane::half_constant(w, i)
            .or_else(|| crate::sass::decode::effects_only::decode(w, i)),
        0x105 | 0x106 | 0x111 | 0x112 if forms(w, UNARY) => conversion::convert(w, i),
        0x108 if forms(w, UNARY) => conversion::mufu(w, i),
        0x1f0..=0x1f3 if w.arch == Hopper => {
            warp_group::decode(w, i).map(Opcode::Arithmetic).or_else(|| crate::sass::decode::effects_only::decode(w, i))
        }
        // Constants.
        0x182 if w.opcode == 0xb82 => crate::sass::decode::load_store::ldc(w, i),
        0x0b9 | 0x0bb if matches!(w.opcode, 0xab9 | 0xabb) && w.arch < Blackwell => {
            crate::sass::decode::load_store::uldc(w, i)
        }
        0x1ac if w.opcode == 0x7ac && at_least(Blackwell) => crate::sass::decode::load_store::ldcu(w, i),
        // Memory.
        0x181 if matches!(w.opcode, 0x381 | 0x981) => crate::sass::decode::load_store::load_global(w, i),
        0x180 if w.opcode == 0x980 => crate::sass::decode::load_store::load_global(w, i),
        0x17e if w.opcode == 0x97e && at_least(Blackwell) => crate::sass::decode::load_store::load_256(w, i),
        0x186 if matches!(w.opcode, 0x386 | 0x986) => crate::sass::decode::load_store::store_global(w, i),
        0x185 if matches!(w.opcode, 0x385 | 0x985) => crate::sass::decode::load_store::store_global(w, i),
        0x17f if w.opcode == 0x97f && at_least(Blackwell) => crate::sass::decode::load_store::store_256(w, i),
        0x183 if w.opcode == 0x983 => crate::sass::decode::load_store::load_near(w, i),
        0x184 if w.opcode == 0x984 => crate::sass::decode::load_store::load_near(w, i),
        0x187 if matches!(w.opcode, 0x387 | 0x987) => crate::sass::decode::load_store::store_near(w, i),
        0x188 if matches!(w.opcode, 0x388 | 0x988) => crate::sass::decode::load_store::store_near(w, i),
        0x18a | 0x1a8 | 0x1a2 | 0x1a3 => crate::sass::decode::load_store::atom(w, i),
        0x18b | 0x1a9 if matches!(w.opcode, 0x38b | 0x3a9) => crate::sass::decode::load_store::atom_cas(w, i),
        0x18e | 0x1a6 if matches!(w.opcode, 0x98e | 0x9a6) => crate::sass::decode::load_store::red(w, i),
        0x18c if matches!(w.opcode, 0x38c | 0x98c | 0xf8c) => crate::sass::decode::load_store::atoms(w, i),
        0x18d if matches!(w.opcode, 0x38d | 0x58d) => crate::sass::decode::load_store::atoms_cas(w, i),
        0x1a4 | 0x1a5 if matches!(w.opcode, 0x9a4 | 0x9a5) && at_least(Hopper) => {
            crate::sass::decode::load_store::multicast(w, i)
        }
        0x1aa if matches!(w.opcode, 0x3aa | 0x9aa) => crate::sass::decode::load_store::qspc(w, i),
        0x18f if w.opcode == 0x98f => crate::sass::decode::load_store::cctl(w, i),
        0x140 if w.opcode == 0x540 && at_least(Blackwell) => crate::sass::decode::load_store::cctl_uniform(w, i),
        0x03b if w.opcode == 0x83b => crate::sass::decode::load_store::matrix(w, i, false),
        0x044 if w.opcode == 0x844 => crate::sass::decode::load_store::matrix(w, i, true),
        0x1ae if matches!(w.opcode, 0xdae | 0xfae) && at_least(Generation::Ampere) => {
            crate::sass::decode::load_store::copy_async(w, i)
        }
        0x1ba..=0x1bc if w.form() == 1 && at_least(Hopper) => bulk::bulk(w, i),
        0x1b4..=0x1b6 | 0x1b8 | 0x1b9 if at_least(Hopper) => bulk::tensor(w, i),
        0x1a7 | 0x1b0 | 0x1b1 | 0x1b2 if at_least(Generation::Ampere) => bulk::mbarrier(w, i),
        0x1bd | 0x1be if matches!(w.opcode, 0xdbd | 0xdbe) && at_least(Hopper) => bulk::remote_shared(w, i),
        0x160 | 0x161 | 0x163 | 0x164 | 0x166 | 0x167 | 0x16c | 0x16d | 0x16f | 0x170 => bulk::texture(w, i),
        0x199 | 0x19b | 0x19d | 0x19f => bulk::surface(w, i),
        0x19a | 0x19c | 0x19e | 0x1a0 if matches!(w.form(), 1 | 4) => bulk::surface(w, i),
        // Control flow.
        0x147 if matches!(w.opcode, 0x947 | 0x547) => crate::sass::decode::control_flow::bra(w, i),
        0x149 | 0x158 if matches!(w.opcode, 0x949 | 0x958) => crate::sass::decode::control_flow::brx(w, i),
        0x14a | 0x14c => crate::sass::decode::control_flow::jump(w, i),
        0x143 | 0x144 if matches!(w.opcode, 0x343 | 0x344 | 0x943 | 0x944) => {
            crate::sass::decode::control_flow::call(w, i)
        }
        0x150 if w.opcode == 0x950 => crate::sass::decode::control_flow::ret(w, i),
        0x14d if w.opcode == 0x94d => crate::sass::decode::control_flow::exit(w, i),
        0x141 | 0x142 | 0x145 | 0x146 if w.form() == 4 => crate::sass::decode::control_flow::converge(w, i),
        0x148 if matches!(w.opcode, 0x348 | 0x948) => crate::sass::decode::control_flow::warpsync(w, i),
        0x155 | 0x156 if w.form() == 1 => crate::sass::decode::control_flow::bmov(w, i),
        0x02d | 0x02e if w.form() == 4 => crate::sass::decode::control_flow::dependent_launch(w),
        _ => crate::sass::decode::effects_only::decode(w, i),
    }
}
