//! What the lanes of a warp do together (shuffles, votes, matrix products, textures), inside a
//! region whose packs are whole warps: all lanes are there, so nobody has to wait. What has no
//! vectors here the interpreter executes, in one call for the warp.

use cranelift_codegen::ir::{InstBuilder, Value, types};

use super::lanes::{Lanes, Pack, each};
use super::uniformity::{Class, Classes};
use crate::context::at;
use crate::decode;
use crate::effects;
use crate::flow::ValueForm;
use crate::values::{Held, plain};
use sim_exec::exec::warp_sync::source_of;
use sim_exec::operations::Whole;
use sim_exec::operations::operands;
use sim_exec::program::{Inst, LANES, Operation, Pred, Program, Slot};

/// The ways in which an instruction of a warp is executed here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Nothing is left to do when all lanes are there.
    Nothing,
    Fence,
    /// All lanes: row `d`.
    Everybody,
    /// Each lane's source is known.
    Shuffle {
        mode: u32,
        distance: u32,
        clamp: u32,
    },
    /// All lanes get what one lane has, which one is in a row.
    Broadcast,
    Vote,
    /// By the interpreter.
    Call,
}

fn way(program: &Program, classes: &Classes<'_>, i: &Inst) -> Way {
    let constant = |slot: Slot| classes.flow().constant(program, slot);
    match i.op.whole() {
        Whole::Nothing => Way::Nothing,
        Whole::Fence => Way::Fence,
        Whole::Everybody => Way::Everybody,
        Whole::Shuffle => {
            let i = operands::Shuffle::of(i);
            let clamp = constant(i.clamp()).map(|clamp| clamp as u32);
            let aside = i.mode() == 3 && i.inside() == Pred::ALWAYS && classes.slot(i.lane()) == Class::Uniform;
            match (constant(i.lane()), clamp) {
                _ if !classes.is_narrow(i.value()) || !classes.is_narrow(i.d()) => Way::Call,
                (Some(b), Some(clamp)) => Way::Shuffle { mode: i.mode(), distance: b as u32 & 31, clamp },
                (None, Some(31)) if aside => Way::Broadcast,
                _ => Way::Call,
            }
        }
        Whole::Vote => {
            let i = operands::Vote::of(i);
            let members = i.members();
            let all = members == Slot::NONE || constant(members).is_some_and(|members| members as u32 == u32::MAX);
            if all && (i.mode() != 3 || classes.is_narrow(i.d())) { Way::Vote } else { Way::Call }
        }
        _ => Way::Call,
    }
}

/// How what such an instruction writes differs between the lanes.
pub(super) fn class(program: &Program, classes: &Classes<'_>, i: &Inst) -> Class {
    match way(program, classes, i) {
        Way::Nothing | Way::Fence | Way::Everybody | Way::Broadcast | Way::Vote => Class::Uniform,
        Way::Shuffle { .. } | Way::Call => Class::Varying,
    }
}

impl Classes<'_> {
    /// Whether a row holds words.
    fn is_narrow(&self, slot: Slot) -> bool {
        slot.0 & Slot::CONSTANT != 0 || matches!(self.form(slot), ValueForm::Word | ValueForm::Single)
    }
}

/// Compiles such an instruction, for all lanes.
pub(super) fn together(i: &Inst, pc: u32, p: &mut Pack<'_, '_>) {
    debug_assert_eq!(p.width.lanes(), LANES);
    let way = way(p.e.v.program, &p.classes, i);
    let after = {
        let mut after = p.classes.clone();
        after.together(i);
        after
    };
    p.e.v.guard = None;
    match way {
        Way::Nothing => {}
        Way::Fence => {
            p.e.v.b.ins().fence();
        }
        Way::Everybody => {
            let all = p.e.v.int(types::I32, u64::from(u32::MAX));
            let d =
                if let Operation::Begin = i.op { operands::Begin::of(i).d() } else { operands::ActiveMask::of(i).d() };
            p.e.v.define(d, Held::word(all));
        }
        Way::Shuffle { mode, distance, clamp } => shuffled(operands::Shuffle::of(i), (mode, distance, clamp), p),
        Way::Broadcast => {
            let i = operands::Shuffle::of(i);
            put_aside(i.value(), p);
            let lane = p.e.v.word(i.lane());
            let lane = p.e.v.b.ins().band_imm_u(lane, 31);
            let lane = p.e.v.b.ins().uextend(types::I64, lane);
            let offset = p.e.v.b.ins().ishl_imm_u(lane, 2);
            let context = p.e.v.context;
            let from = p.e.v.b.ins().iadd(context, offset);
            let value = p.e.v.b.ins().load(types::I32, plain(), from, at!(aside));
            p.e.v.define(i.d(), Held::word(value));
        }
        Way::Vote => voted(i, p),
        Way::Call => p.foreign(i, pc),
    }
    p.classes = after;
}

/// Puts a row's words into the context.
pub(super) fn put_aside(slot: Slot, p: &mut Pack<'_, '_>) {
    let words = p.words(slot);
    let context = p.e.v.context;
    for (part, value) in words.into_iter().enumerate() {
        p.e.v.b.ins().store(plain(), value, context, at!(aside) + 16 * part as i32);
    }
}

/// `shfl` where each lane's source is known.
fn shuffled(i: operands::Shuffle<'_>, (mode, distance, clamp): (u32, u32, u32), p: &mut Pack<'_, '_>) {
    let sources: [(u32, bool); LANES] = std::array::from_fn(|lane| source_of(mode, lane as u32, distance, clamp));
    let from = |lane: usize| sources[lane].0 as usize & (LANES - 1);
    // The vectors that each vector's lanes come from. From two they come without memory: a load
    // across two stores would wait for both.
    let homes = |part: usize| {
        let mut homes: Vec<usize> = (0..4).map(|lane| from(4 * part + lane) / 4).collect();
        homes.sort_unstable();
        homes.dedup();
        homes
    };
    let words = p.words(i.value());
    let context = p.e.v.context;
    if (0..words.len()).any(|part| homes(part).len() > 2) {
        for (part, value) in words.into_iter().enumerate() {
            p.e.v.b.ins().store(plain(), value, context, at!(aside) + 16 * part as i32);
        }
    }
    let result = each(p.width, |part| {
        let homes = homes(part);
        if homes.len() <= 2 {
            let (first, last) = (homes[0], homes[homes.len() - 1]);
            if first == last && (0..4).all(|lane| from(4 * part + lane) % 4 == lane) {
                return words[first];
            }
            let picks = std::array::from_fn(|lane| {
                let source = from(4 * part + lane);
                (source % 4 + if source / 4 == first { 0 } else { 4 }) as u8
            });
            return p.picked(types::I32X4, words[first], words[last], picks);
        }
        let load = |this: &mut Pack<'_, '_>, lane: usize| {
            let offset = at!(aside) + 4 * from(4 * part + lane) as i32;
            this.e.v.b.ins().load(types::I32, plain(), context, offset)
        };
        let one = load(p, 0);
        let mut vector = p.e.v.b.ins().scalar_to_vector(types::I32X4, one);
        for lane in 1..4 {
            let one = load(p, lane);
            vector = p.e.v.b.ins().insertlane(vector, one, lane as u8);
        }
        vector
    });
    p.define(i.d(), Lanes::Words(result));
    if i.inside() != Pred::ALWAYS {
        let inside = each(p.width, |part| {
            let bytes = (0..4).flat_map(|lane| {
                let inside = sources[4 * part + lane].1;
                (if inside { u32::MAX } else { 0 }).to_le_bytes()
            });
            p.vector(types::I32X4, bytes.collect())
        });
        p.set(i.inside().0, inside);
    }
}

/// `vote` of all lanes.
fn voted(i: &Inst, p: &mut Pack<'_, '_>) {
    let i = operands::Vote::of(i);
    let bits: Value = if p.classes.pred(i.truth().0).differs() {
        let masks = p.masks(i.truth().0);
        p.bits(masks)
    } else {
        let truth = p.e.v.truth(i.truth().0);
        let word = p.e.v.b.ins().uextend(types::I32, truth);
        p.e.v.b.ins().ineg(word)
    };
    use cranelift_codegen::ir::condcodes::IntCC;
    let ins = p.e.v.b.ins();
    let truth = match i.mode() {
        0 => ins.icmp_imm_s(IntCC::Equal, bits, -1),
        1 => ins.icmp_imm_s(IntCC::NotEqual, bits, 0),
        2 => {
            // Neither none nor all.
            let next = ins.iadd_imm_s(bits, 1);
            p.e.v.b.ins().icmp_imm_u(IntCC::UnsignedLessThanOrEqual, next, 1)
        }
        _ => {
            p.e.v.define(i.d(), Held::word(bits));
            return;
        }
    };
    p.e.v.set(i.p().0, truth);
}

impl Classes<'_> {
    /// Executes an instruction of all lanes.
    pub(super) fn together(&mut self, i: &Inst) {
        let class = class(self.program(), self, i);
        for register in effects::effects(self.program(), i).writes {
            self.set(register, class);
        }
    }
}

/// Whether a region of whole warps goes on behind an instruction that stops others.
pub(super) fn goes_on(i: &Inst) -> bool {
    decode::is_volatile_access(i) || !matches!(i.op.whole(), Whole::Stops | Whole::Interpreted)
}
