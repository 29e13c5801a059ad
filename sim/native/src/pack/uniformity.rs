//! Which values are the same in all lanes of a pack, or grow by the same step from lane to lane.
//! Such a value is computed once for the pack.
//!
//! All lanes of a pack go the same way through a region, so a value that is made of such values is
//! one, whatever the control around it. What is supposed of values at a region's entry is checked
//! there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::width::Width;
use crate::decode::{self, Kind};
use crate::effects::{self, Register};
use crate::flow::{Flow, ValueForm, constant};
use crate::instruction::simple_special;
use sim_exec::exec::control::Special;
use sim_exec::exec::load_store::{FRAME, GENERIC, LOCAL};
use sim_exec::operations::operands;
use sim_exec::program::{Inst, LANES, LaneOp, LaneTy, Pred, Program, ResultUse, Sem, Slot};

/// How the values of a register differ between the lanes of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Class {
    /// No value is there yet.
    #[default]
    Unknown,
    Uniform,
    /// The first lane's value plus this for each lane behind it.
    Affine(i64),
    /// The same within each half of a whole warp: two rows of a block.
    Halves(i64),
    Varying,
}

impl Class {
    pub(super) fn join(self, other: Class) -> Class {
        match (self, other) {
            (Class::Unknown, known) | (known, Class::Unknown) => known,
            (a, b) if a == b => a,
            (Class::Uniform, Class::Halves(0)) | (Class::Halves(0), Class::Uniform) => Class::Halves(0),
            (Class::Affine(a), Class::Halves(b)) | (Class::Halves(a), Class::Affine(b)) if a == b => Class::Halves(a),
            _ => Class::Varying,
        }
    }

    /// Whether there is more than one value or step of them in a pack.
    pub(super) fn differs(self) -> bool {
        matches!(self, Class::Varying | Class::Halves(_))
    }
}

/// How an instruction is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By all lanes.
    Plain,
    /// By all lanes although only some need what comes of it.
    Aside,
    /// By some lanes.
    Masked,
}

/// What is known of the values at one place.
#[derive(Clone)]
pub(super) struct Classes<'p> {
    program: &'p Program,
    flow: &'p Flow,
    /// Of `%tid`.
    tid: [Class; 3],
    state: Vec<Class>,
}

/// An operand of 32 bits that grows from lane to lane and is extended: it must not wrap.
pub(super) struct Extension {
    pub(crate) slot: Slot,
    pub(crate) signed: bool,
    pub(crate) step: i64,
}

fn width(ty: LaneTy) -> u32 {
    match ty {
        LaneTy::U32 | LaneTy::I32 => 32,
        LaneTy::U64 | LaneTy::I64 => 64,
        _ => 0,
    }
}

fn signed(ty: LaneTy) -> bool {
    matches!(ty, LaneTy::I32 | LaneTy::I64)
}

impl<'p> Classes<'p> {
    pub(super) fn new(program: &'p Program, flow: &'p Flow, tid: [Class; 3]) -> Self {
        Classes { program, flow, tid, state: vec![Class::Unknown; flow.registers()] }
    }

    pub(super) fn flow(&self) -> &'p Flow {
        self.flow
    }

    pub(super) fn program(&self) -> &'p Program {
        self.program
    }

    pub(super) fn of(&self, register: Register) -> Class {
        self.state.get(self.flow.index(register)).copied().unwrap_or(Class::Varying)
    }

    pub(super) fn set(&mut self, register: Register, class: Class) {
        let at = self.flow.index(register);
        if let Some(known) = self.state.get_mut(at) {
            *known = class;
        }
    }

    /// Returns true when that changed it.
    pub(super) fn join(&mut self, other: &Classes<'_>) -> bool {
        let mut changed = false;
        for (mine, &theirs) in self.state.iter_mut().zip(&other.state) {
            let joined = mine.join(theirs);
            changed |= joined != *mine;
            *mine = joined;
        }
        changed
    }

    /// Of an operand.
    pub(super) fn slot(&self, slot: Slot) -> Class {
        if slot == Slot::NONE || slot.0 & Slot::CONSTANT != 0 {
            return Class::Uniform;
        }
        self.of(Register::Row(slot.0))
    }

    /// Of a predicate as instructions name it.
    pub(super) fn pred(&self, pred: u32) -> Class {
        let number = pred & !Pred::NEGATED;
        if number == Pred::ALWAYS.0 { Class::Uniform } else { self.of(Register::Pred(number)) }
    }

    /// What is supposed of a component of `%tid`.
    pub(super) fn tid(&self, axis: u32) -> Class {
        self.tid.get(axis as usize).copied().unwrap_or(Class::Varying)
    }

    /// Executes an instruction. Returns how: once for the pack, or for each lane.
    pub(super) fn step(&mut self, i: &Inst, way: Way) -> Class {
        let kind = decode::kind_of_warp(i);
        let effects = effects::effects(self.program, i);
        let mut how = if way == Way::Masked { Class::Varying } else { self.unguarded(i, kind, &effects) };
        // Nobody could leave in front of it.
        if let (Way::Aside, Kind::Lane(op)) = (way, kind)
            && !self.extensions(operands::Lane::of(i), &op).is_empty()
        {
            how = Class::Varying;
        }
        if i.guard != Pred::ALWAYS {
            let differs =
                |&register: &Register| !matches!(self.of(register), Class::Unknown) && self.of(register) != how;
            if self.pred(i.guard.0) != Class::Uniform || effects.writes.iter().any(differs) {
                how = Class::Varying;
            }
        }
        for &register in &effects.writes {
            self.set(register, how);
        }
        how
    }

    fn unguarded(&self, i: &Inst, kind: Kind, effects: &effects::Effects) -> Class {
        let guard = i.guard.0 & !Pred::NEGATED;
        let same = |&register: &Register| {
            register == Register::Pred(guard) && i.guard != Pred::ALWAYS || self.of(register) == Class::Uniform
        };
        let uniform = !effects.all && effects.reads.iter().all(same);
        let one = |&register: &Register| same(&register) || self.of(register) == Class::Halves(0);
        let halves = !effects.all && !uniform && effects.reads.iter().all(one);
        let or_varying = |is: bool| if is { Class::Uniform } else { Class::Varying };
        let or_halves = |is: bool| if is && halves { Class::Halves(0) } else { or_varying(is && uniform) };
        // Where each lane finds something else at the same address.
        let own = |space: u32| matches!(space, LOCAL | FRAME) || space == GENERIC && self.program.machine.is_some();
        match kind {
            Kind::Nothing | Kind::Branch | Kind::Stop => Class::Uniform,
            Kind::Atom { .. } => Class::Varying,
            Kind::Load { .. } => or_halves(!own(operands::Load::of(i).space())),
            Kind::Store { .. } => or_halves(!own(operands::Store::of(i).space())),
            Kind::Foreign => or_varying(uniform && decode::is_pure(i)),
            Kind::Special => self.special(i),
            Kind::ConvertAddress => {
                let i = operands::ConvertAddress::of(i);
                match (self.slot(i.a()), self.form(i.a()), self.form(i.d())) {
                    _ if i.space() == LOCAL => Class::Varying,
                    (class @ (Class::Affine(_) | Class::Halves(_)), ValueForm::Double, ValueForm::Double) => class,
                    (class, ..) => or_varying(class == Class::Uniform),
                }
            }
            _ if uniform => Class::Uniform,
            _ if halves => Class::Halves(0),
            Kind::Lane(op) => self.affine(operands::Lane::of(i), &op).unwrap_or(Class::Varying),
            _ => Class::Varying,
        }
    }

    pub(super) fn form(&self, slot: Slot) -> ValueForm {
        if slot.0 & Slot::CONSTANT != 0 { ValueForm::Double } else { self.flow.form(slot.0) }
    }

    fn special(&self, i: &Inst) -> Class {
        let i = operands::Special::of(i);
        let class = match i.number() {
            axis if axis < Special::NtidX as u32 => self.tid(axis),
            y if y == Special::Laneid as u32 => Class::Affine(1),
            y if y <= Special::NctaidZ as u32 || y == Special::Warpid as u32 => Class::Uniform,
            _ => Class::Varying,
        };
        let plain = simple_special(i.number()) && (class == Class::Uniform || self.form(i.d()) == ValueForm::Word);
        if plain { class } else { Class::Varying }
    }

    /// By how much an operand of that type grows from lane to lane.
    fn step_of(&self, slot: Slot, ty: LaneTy) -> Option<i64> {
        match (self.slot(slot), width(ty)) {
            (Class::Uniform | Class::Halves(0), _) => Some(0),
            (Class::Affine(step) | Class::Halves(step), 64) if self.form(slot) == ValueForm::Double => Some(step),
            (Class::Affine(step) | Class::Halves(step), 32) => Some(i64::from(step as i32)),
            _ => None,
        }
    }

    /// The value of a constant operand.
    fn factor(&self, slot: Slot, ty: LaneTy) -> Option<i64> {
        let value = constant(self.program, slot)?;
        match (width(ty), signed(ty)) {
            (64, _) => Some(value as i64),
            (32, true) => Some(i64::from(value as i32)),
            (32, false) => Some(i64::from(value as u32)),
            _ => None,
        }
    }

    /// By how much a product grows from lane to lane.
    fn product(&self, i: operands::Lane<'_>, op: &LaneOp) -> Option<i64> {
        let [ta, tb, ..] = op.types;
        match (self.step_of(i.a(), ta)?, self.step_of(i.b(), tb)?) {
            (0, 0) => Some(0),
            (step, 0) => Some(step.wrapping_mul(self.factor(i.b(), tb)?)),
            (0, step) => Some(step.wrapping_mul(self.factor(i.a(), ta)?)),
            _ => None,
        }
    }

    fn affine(&self, i: operands::Lane<'_>, op: &LaneOp) -> Option<Class> {
        if op.outcome != ResultUse::Value {
            return None;
        }
        let [ta, tb, tc, tr] = op.types;
        let form = self.form(i.d());
        let operands = i.sources();
        let halves = operands.clone().any(|slot| matches!(self.slot(slot), Class::Halves(_)));
        // A word stays one, whatever the move is said to be of.
        if op.sem == Sem::Move
            && form == ValueForm::Word
            && self.form(i.a()) == ValueForm::Word
            && let (class @ (Class::Affine(_) | Class::Halves(_)), 32 | 64, 32 | 64) =
                (self.slot(i.a()), width(ta), width(tr))
        {
            return Some(class);
        }
        let narrow_mask = op.sem == Sem::MoveMasked && i.constant() == 0xffff_ffff;
        let result = if narrow_mask { 32 } else { width(tr) };
        match (result, form) {
            (32, ValueForm::Word) | (64, ValueForm::Double) => {}
            _ => return None,
        }
        let step = match op.sem {
            Sem::Move => self.step_of(i.a(), ta)?,
            Sem::MoveMasked if narrow_mask || i.constant() == u64::MAX => self.step_of(i.a(), ta)?,
            Sem::Add => self.step_of(i.a(), ta)?.wrapping_add(self.step_of(i.b(), tb)?),
            Sem::Sub => self.step_of(i.a(), ta)?.wrapping_sub(self.step_of(i.b(), tb)?),
            Sem::Add3 => {
                let first = self.step_of(i.a(), ta)?.wrapping_add(self.step_of(i.b(), tb)?);
                first.wrapping_add(self.step_of(i.c(), tc)?)
            }
            Sem::Mul | Sem::MulWide => self.product(i, op)?,
            Sem::MulAdd | Sem::MulAddWide => self.product(i, op)?.wrapping_add(self.step_of(i.c(), tc)?),
            Sem::Shl if width(ta) == result => {
                let count = constant(self.program, i.b())? & 0xffff_ffff;
                let step = self.step_of(i.a(), ta)?;
                if count >= u64::from(result) { 0 } else { step.wrapping_shl(count as u32) }
            }
            _ => return None,
        };
        // Far from what wraps within a pack.
        let fits = |extension: &Extension| extension.step.unsigned_abs() < 1 << 24;
        if !self.extensions(i, op).iter().all(fits) {
            return None;
        }
        let step = if result == 32 { i64::from(step as i32) } else { step };
        Some(match step {
            step if halves => Class::Halves(step),
            0 => Class::Uniform,
            step => Class::Affine(step),
        })
    }

    /// The operands of an instruction, executed once, that are extended.
    pub(super) fn extensions(&self, i: operands::Lane<'_>, op: &LaneOp) -> Vec<Extension> {
        let wide = match op.sem {
            Sem::Move => width(op.types[3]) == 64 && self.form(i.d()) != ValueForm::Word,
            Sem::MoveMasked => i.constant() == u64::MAX,
            Sem::MulWide | Sem::MulAddWide => true,
            _ => false,
        };
        let mut found = Vec::new();
        for (slot, ty) in i.sources().zip(op.types) {
            if let Class::Affine(step) | Class::Halves(step) = self.slot(slot)
                && wide
                && step != 0
                && width(ty) == 32
            {
                found.push(Extension { slot, signed: signed(ty), step: i64::from(step as i32) });
            }
        }
        found
    }
}

/// How a register's values differ between the lanes of every pack of a mask. `halves`: they may
/// grow within each half of a whole warp.
pub(crate) fn observed(
    width: Width,
    mask: u32,
    form: Option<ValueForm>,
    halves: bool,
    value: impl Fn(usize) -> u64,
) -> Class {
    let mut class = Class::Unknown;
    for first in (0..32).step_by(width.lanes()) {
        if (mask >> first) & width.full() != width.full() {
            continue;
        }
        let step = value(first + 1).wrapping_sub(value(first)) as i64;
        let grows = |lane: usize| value(first).wrapping_add(step.wrapping_mul(lane as i64) as u64);
        let is = (1..width.lanes()).all(|lane| value(first + lane) == grows(lane));
        let integer = matches!(form, Some(ValueForm::Word | ValueForm::Double));
        let small = integer && step.unsigned_abs() < 1 << 24;
        let half = width.lanes() / 2;
        let in_half = |lane: usize| {
            value(first + lane / half * half).wrapping_add(step.wrapping_mul((lane % half) as i64) as u64)
        };
        let by_halves = halves && width.lanes() == LANES && (1..LANES).all(|lane| value(first + lane) == in_half(lane));
        class = class.join(match (is, step) {
            (true, 0) => Class::Uniform,
            (true, step) if small => Class::Affine(step),
            (false, step) if by_halves && (small || step == 0) => Class::Halves(step),
            _ => Class::Varying,
        });
    }
    if class == Class::Unknown { Class::Varying } else { class }
}

/// One way out of a region of whole warps: what is known of the registers that are still wanted.
/// Its code names it to the host. So the next region need not look at them again.
pub(crate) struct Exit {
    /// By the registers' numbers; what is not here is not known.
    classes: HashMap<usize, Class>,
    /// Code that supposes nothing else, and code that does.
    agrees: AtomicPtr<()>,
    differs: AtomicPtr<()>,
}

impl Exit {
    pub(crate) fn new(classes: HashMap<usize, Class>) -> Exit {
        Exit { classes, agrees: AtomicPtr::default(), differs: AtomicPtr::default() }
    }

    /// Whether code supposes of registers what is known here. `supposed` says what it supposes,
    /// when nobody has asked for this code yet.
    #[inline]
    pub(crate) fn has(&self, code: *mut (), supposed: impl FnOnce() -> Option<Vec<(usize, Class)>>) -> bool {
        if self.agrees.load(Ordering::Relaxed) == code {
            return !code.is_null();
        }
        self.differs.load(Ordering::Relaxed) != code && self.finds_out(code, supposed())
    }

    #[cold]
    fn finds_out(&self, code: *mut (), supposed: Option<Vec<(usize, Class)>>) -> bool {
        let Some(supposed) = supposed else { return false };
        let agrees = supposed.iter().all(|(register, class)| self.classes.get(register) == Some(class));
        let answer = if agrees { &self.agrees } else { &self.differs };
        answer.store(code, Ordering::Relaxed);
        agrees
    }
}
