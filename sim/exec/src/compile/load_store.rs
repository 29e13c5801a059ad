//! Instruction families of memory: loads, stores, atomics, address conversions, asynchronous
//! copies.

use device_code::ptx::{AddressBase, Operand, Type};

use sim_races as races;

use super::{Op, bits};
use crate::compile::function::{Result, SCRATCH, Scope, VariableHome};
use crate::exec::atomic::{after_arrival, atom, atom_by_place, atom_vector, refused};
use crate::exec::bulk::mbarrier;
use crate::exec::load_store::{ALL_COPIES, GENERIC, GLOBAL, LOCAL, PARAM, SHARED};
use crate::exec::per_lane::op2;
use crate::exec::told::strength::{PLAIN, VOLATILE, of_swap, of_system, strong};
use crate::float;
use crate::float::float16::{Brain, Half, Small};
use crate::operations::build::{self, Elements};
use crate::program::{InstFn, LaneTy, Slot, Update, UpdateOp, WideAccess};

/// The state space that an opcode names.
pub(super) fn space_of(op: Op<'_>) -> u32 {
    for part in &op.parts[1..] {
        match part.as_str() {
            "global" | "const" => return GLOBAL,
            "shared" | "shared::cta" | "shared::cluster" => return SHARED,
            "local" => return LOCAL,
            "param" | "param::entry" | "param::func" => return PARAM,
            _ => {}
        }
    }
    GENERIC
}

/// What a load or a store is towards other threads.
fn strength_of(op: Op<'_>) -> u32 {
    if op.has("volatile") {
        VOLATILE
    } else if ["relaxed", "acquire", "release", "mmio"].iter().any(|order| op.has(order)) {
        strong_of(op)
    } else {
        PLAIN
    }
}

/// What an atomic operation is: relaxed and of all threads, if it says nothing.
fn atomic_strength(op: Op<'_>) -> u32 {
    let strength = strong_of(op);
    if op.has("cas") { of_swap(strength) } else { strength }
}

fn strong_of(op: Op<'_>) -> u32 {
    let strength = strong(order_of(op), named_scope(op).unwrap_or(races::Scope::Device));
    if op.has("sys") { of_system(strength) } else { strength }
}

fn order_of(op: Op<'_>) -> races::Order {
    let both = op.has("acq_rel");
    races::Order { acquire: both || op.has("acquire"), release: both || op.has("release") }
}

/// The scope that an access or a fence names.
pub(super) fn named_scope(op: Op<'_>) -> Option<races::Scope> {
    op.parts[1..].iter().find_map(|part| {
        Some(match part.as_str() {
            "cta" => races::Scope::Block,
            "cluster" => races::Scope::Cluster,
            "gpu" | "gl" | "sys" => races::Scope::Device,
            _ => return None,
        })
    })
}

impl<'m> Scope<'_, 'm> {
    /// Returns false when the instruction is of another family.
    pub(super) fn memory(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<bool> {
        match op.name() {
            "ld" | "ldu" => self.load(op, operands)?,
            "st" => self.store(op, operands)?,
            "atom" => self.atom(op, operands)?,
            "red" if op.has("async") => {
                let Some(ty) = op.ty() else { return self.unsupported(op) };
                self.atom(op, operands)?;
                let bytes = self.c.constant(u64::from(ty.size()));
                self.complete(operands.get(2), bytes)?;
            }
            "red" => self.atom(op, operands)?,
            "cvta" => {
                let back = op.has("to");
                let d = self.dst(operands.first())?;
                let a = self.src(operands.get(1), Type::U64)?;
                if space_of(op) == PARAM && !back {
                    // A parameter's address may have been cut to 32 bits (Triton 3.9 does so).
                    let base = self.temporary();
                    self.emit(build::ParamAddress { d: base, offset: 0 });
                    let whole = |address: u64, base: u64| match address >> 32 {
                        0 => base.wrapping_add(u64::from((address as u32).wrapping_sub(base as u32))),
                        _ => address,
                    };
                    self.emit(op2(whole).of([a, base]).to(d));
                    return Ok(true);
                }
                let inst = build::ConvertAddress { a, d, space: space_of(op), back: u32::from(back) };
                self.emit(inst);
            }
            "isspacep" => {
                let p = self.dst_pred(operands.first())?;
                let a = self.src(operands.get(1), Type::U64)?;
                let y = u32::from(op.has("shared::cluster"));
                self.emit(build::IsSpace { address: a, p, space: space_of(op), cluster: y });
            }
            "mapa" | "getctarank" => {
                let window = op.has("shared::cluster");
                let d = self.dst(operands.first())?;
                let ty = if window { Type::B32 } else { Type::B64 };
                let a = self.src(operands.get(1), ty)?;
                let shared = u32::from(window);
                if op.name() == "mapa" {
                    let rank = self.src(operands.get(2), Type::B32)?;
                    self.emit(build::MapToBlock { address: a, rank, d, shared });
                } else {
                    self.emit(build::RankOf { address: a, d, shared });
                }
            }
            // Hints, and promises about memory that caches nothing here.
            "prefetch" | "prefetchu" | "applypriority" | "discard" => self.emit(build::Nothing {}),
            "createpolicy" => {
                let d = self.dst(operands.first())?;
                let a = self.c.constant(0);
                self.emit(crate::exec::per_lane::op1(|a: u64| a).of([a]).to(d));
            }
            "cp" => self.copy(op, operands)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Elements of a vector access.
    fn count(&self, op: Op<'m>) -> u32 {
        if op.has("v8") {
            8
        } else if op.has("v4") {
            4
        } else if op.has("v2") {
            2
        } else {
            1
        }
    }

    fn load(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let Some(ty) = op.ty() else { return self.unsupported(op) };
        if ty == Type::B128 {
            return self.wide_access(op, operands.get(1), WideAccess::Load, [operands.first(), None, None]);
        }
        let count = self.count(op);
        let elements = self.elements(operands.first());
        if elements.len() != count as usize {
            return self.misfit();
        }
        let mut slots = Vec::new();
        let mut width = bits(ty);
        for element in elements {
            slots.push(self.dst(Some(element))?);
            // A signed value fills the register it goes to.
            if let Some(register) = self.register_type(element) {
                width = width.max(bits(register));
            }
        }
        let (ty, bits) = (cell_of(ty), width.min(64));
        let Elements { one: d, all, count } = Elements::new(slots);
        if let Some(Operand::Memory(AddressBase::Local(local), offset)) = operands.get(1)
            && let VariableHome::Param(at) = self.variables[local.index()]
        {
            let from = u64::from(at).wrapping_add(*offset as u64);
            let size = u64::from(ty.size() * count);
            let variable = &self.body.variables[local.index()];
            if *offset < 0 || *offset as u64 + size > variable.size() || from % u64::from(ty.size()) != 0 {
                return self.misfit();
            }
            self.emit(build::LoadParam { ty, d, all, offset: from, count, bits });
            return Ok(());
        }
        let (address, offset, space) = self.address(operands.get(1), space_of(op))?;
        let strength = strength_of(op);
        self.emit(build::Load { ty, address, d, all, offset, space, count, bits, strength });
        Ok(())
    }

    fn store(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        if op.has("bulk") || op.has("async") && !op.has("mbarrier::complete_tx::bytes") {
            return self.unsupported(op);
        }
        let Some(ty) = op.ty() else { return self.unsupported(op) };
        if ty == Type::B128 {
            return self.wide_access(op, operands.first(), WideAccess::Store, [None, operands.get(1), None]);
        }
        let count = self.count(op);
        let (address, offset, space) = self.address(operands.first(), space_of(op))?;
        let elements = self.elements(operands.get(1));
        if elements.len() != count as usize {
            return self.misfit();
        }
        let mut slots = Vec::new();
        for element in elements {
            slots.push(self.src(Some(element), ty)?);
        }
        let Elements { one: value, all, count } = Elements::new(slots);
        let strength = strength_of(op);
        self.emit(build::Store { ty: cell_of(ty), address, value, all, offset, space, count, strength });
        if op.has("async") {
            // `st.async`: done at once, and the barrier learns how many bytes came.
            let bytes = self.c.constant(u64::from(ty.size() * count));
            self.complete(operands.get(2), bytes)?;
        }
        Ok(())
    }

    /// Makes bytes arrive at the barrier at an address.
    fn complete(&mut self, barrier: Option<&'m Operand>, bytes: Slot) -> Result<()> {
        let (address, offset, space) = self.address(barrier, SHARED)?;
        let what = mbarrier::COMPLETE;
        self.emit(build::MbarrierOperate { address, number: bytes, d: SCRATCH, offset, space, what });
        Ok(())
    }

    /// An access to 16 bytes: its result, and its operands.
    fn wide_access(
        &mut self,
        op: Op<'m>,
        address: Option<&'m Operand>,
        access: WideAccess,
        values: [Option<&'m Operand>; 3],
    ) -> Result<()> {
        if self.count(op) > 1 || op.has("async") {
            return self.unsupported(op);
        }
        let (address, offset, space) = self.address(address, space_of(op))?;
        if !matches!(space, GLOBAL | SHARED | GENERIC) {
            return self.unsupported(op);
        }
        let mut halves = [const { Vec::new() }; 3];
        for (at, value) in values.into_iter().enumerate() {
            halves[at] = match value {
                Some(value) => self.wide(Some(value), Type::B128, at == 0)?.0,
                None => vec![SCRATCH; 2],
            };
        }
        let [old, value, other] = halves;
        let strength = match access {
            WideAccess::Load | WideAccess::Store => strength_of(op),
            WideAccess::Exchange | WideAccess::CompareAndSwap => atomic_strength(op),
        };
        self.emit(build::Wide { access, address, old, value, other, offset, space, strength });
        Ok(())
    }

    /// `atom` and `red`.
    fn atom(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        let Some(ty) = op.ty() else { return self.unsupported(op) };
        let count = self.count(op);
        let returns = op.name() == "atom";
        let rest = if returns { operands.get(1..).unwrap_or(&[]) } else { operands };
        if ty == Type::B128 && returns {
            let access = match (op.has("exch"), op.has("cas")) {
                (true, _) => WideAccess::Exchange,
                (_, true) => WideAccess::CompareAndSwap,
                _ => return self.unsupported(op),
            };
            let other = rest.get(2).filter(|_| op.has("cas"));
            return self.wide_access(op, rest.first(), access, [operands.first(), rest.get(1), other]);
        }
        let (address, offset, space) = self.address(rest.first(), space_of(op))?;
        let Some(update) = atomic(op, ty) else { return self.unsupported(op) };
        if count > 1 {
            if !update.has_vectors() {
                return self.unsupported(op);
            }
            let sources = self.elements(rest.get(1));
            let (mut d, mut b) = (Vec::new(), Vec::new());
            for at in 0..count as usize {
                d.push(match operands.first() {
                    Some(Operand::Vector(list)) if returns => self.dst(list.get(at))?,
                    _ => SCRATCH,
                });
            }
            for at in 0..count as usize {
                b.push(self.src(sources.get(at).copied(), ty)?);
            }
            let strength = atomic_strength(op);
            self.emit(build::AtomicVector { update, address, d, b, offset, space, strength });
            return Ok(());
        }
        let d = if returns { self.dst(operands.first())? } else { SCRATCH };
        let b = self.src(rest.get(1), ty)?;
        let c = if op.has("cas") { self.src(rest.get(2), ty)? } else { b };
        let strength = atomic_strength(op);
        self.emit(build::Atomic { update, address, b, c, d, offset, space, strength });
        Ok(())
    }

    fn copy(&mut self, op: Op<'m>, operands: &'m [Operand]) -> Result<()> {
        if op.has("bulk") || op.has("mbarrier") {
            return self.bulk(op, operands);
        }
        if op.part(1) != "async" {
            return self.unsupported(op);
        }
        if op.has("commit_group") {
            self.emit(build::CommitCopies {});
            return Ok(());
        }
        if op.has("wait_group") || op.has("wait_all") {
            let pending = match operands.first() {
                Some(Operand::Int(groups)) if op.has("wait_group") => *groups as u32,
                _ => ALL_COPIES,
            };
            self.emit(build::AwaitCopies { pending });
            return Ok(());
        }
        let Some(Operand::Int(bytes)) = operands.get(2) else { return self.misfit() };
        let (to, to_offset, space) = self.address(operands.first(), SHARED)?;
        let (from, from_offset, _) = self.address(operands.get(1), GLOBAL)?;
        let size = match operands.get(3) {
            Some(operand @ (Operand::Int(_) | Operand::Register(_)))
                if self.register_type(operand) != Some(Type::Pred) =>
            {
                self.src(Some(operand), Type::U32)?
            }
            None => self.c.constant(*bytes),
            Some(_) => return self.unsupported(op),
        };
        let Ok(from_offset) = u32::try_from(from_offset) else { return self.unsupported(op) };
        if !matches!(bytes, 4 | 8 | 16) {
            return self.unsupported(op);
        }
        let bytes = *bytes as u32;
        self.emit(build::CopyAsync { to, from, size, to_offset, from_offset, bytes, space });
        Ok(())
    }
}

/// What memory holds of a value of a type: only integers below 64 bits have a sign to extend.
fn cell_of(ty: Type) -> LaneTy {
    match (ty, ty.size()) {
        (Type::S8, _) => LaneTy::I8,
        (Type::S16, _) => LaneTy::I16,
        (Type::S32, _) => LaneTy::I32,
        (_, 1) => LaneTy::U8,
        (_, 2) => LaneTy::U16,
        (_, 4) => LaneTy::U32,
        _ => LaneTy::U64,
    }
}

/// The atomic operation that an opcode names.
pub(super) fn atomic(op: Op<'_>, ty: Type) -> Option<Update> {
    let kind = op.parts[1..].iter().find_map(|part| {
        Some(match part.as_str() {
            "add" => UpdateOp::Add,
            "min" => UpdateOp::Min,
            "max" => UpdateOp::Max,
            "inc" => UpdateOp::Inc,
            "dec" => UpdateOp::Dec,
            "and" => UpdateOp::And,
            "or" => UpdateOp::Or,
            "xor" => UpdateOp::Xor,
            "exch" => UpdateOp::Exchange,
            "cas" => UpdateOp::Compare,
            _ => return None,
        })
    })?;
    Some(Update { op: kind, ty }).filter(|update| update.exists())
}

impl Update {
    /// Whether there is such an operation on scalars.
    pub(crate) fn exists(self) -> bool {
        functions(self).is_some()
    }

    /// Whether PTX has it on vectors.
    pub(crate) fn has_vectors(self) -> bool {
        matches!(functions(self), Some((_, Some(_))))
    }
}

/// The function of an atomic operation on scalars.
pub(crate) fn update_function(update: Update) -> InstFn {
    functions(update).map_or(refused, |(scalar, _)| scalar)
}

/// The function of an atomic operation on vectors.
pub(crate) fn update_vector_function(update: Update) -> InstFn {
    functions(update).and_then(|(_, vector)| vector).unwrap_or(refused)
}

/// The functions of an atomic operation: on scalars, and on vectors where PTX has it.
fn functions(Update { op, ty }: Update) -> Option<(InstFn, Option<InstFn>)> {
    macro_rules! both {
        ($word:ty, |$old:ident, $b:ident, $c:ident| $e:expr) => {
            Some((
                atom(|$old: $word, $b: $word, $c: $word| -> $word {
                    let _ = ($b, $c);
                    $e
                }),
                Some(atom_vector(|$old: $word, $b: $word, $c: $word| -> $word {
                    let _ = ($b, $c);
                    $e
                })),
            ))
        };
    }
    macro_rules! ints {
        (|$old:ident, $b:ident, $c:ident| $e:expr) => {
            match ty.size() {
                2 => both!(u16, |$old, $b, $c| $e),
                4 => both!(u32, |$old, $b, $c| $e),
                _ => both!(u64, |$old, $b, $c| $e),
            }
        };
    }
    let signed = matches!(ty, Type::S32 | Type::S64);
    if ty == Type::B128 || ty.size() == 1 {
        return None;
    }
    match (op, ty) {
        (UpdateOp::AddEverywhere, Type::F32) => {
            let run = atom(|old: u32, b, _| float::output(f32::from_bits(old) + f32::from_bits(b), 0).to_bits());
            Some((run, None))
        }
        (UpdateOp::Arrive, Type::U64) => Some((atom(|old: u64, _, _| after_arrival(old)), None)),
        (UpdateOp::Exchange, _) => ints!(|_old, b, c| b),
        (UpdateOp::Compare, _) => ints!(|old, b, c| if old == b { c } else { old }),
        (UpdateOp::And, _) => ints!(|old, b, c| old & b),
        (UpdateOp::Or, _) => ints!(|old, b, c| old | b),
        (UpdateOp::Xor, _) => ints!(|old, b, c| old ^ b),
        (UpdateOp::Inc, Type::U32) => both!(u32, |old, b, c| if old >= b { 0 } else { old + 1 }),
        (UpdateOp::Dec, Type::U32) => both!(u32, |old, b, c| if old == 0 || old > b { b } else { old - 1 }),
        (UpdateOp::Add, Type::F32) => {
            let global = |old: u32, b: u32| float::add_in_global(f32::from_bits(old), f32::from_bits(b)).to_bits();
            let shared = |old: u32, b: u32| float::output(f32::from_bits(old) + f32::from_bits(b), 0).to_bits();
            let vector = atom_by_place::<u32, _, _, true>(global, shared);
            Some((atom_by_place::<u32, _, _, false>(global, shared), Some(vector)))
        }
        (UpdateOp::Add, Type::F64) => {
            let run = atom_by_place::<u64, _, _, false>(
                |old: u64, b: u64| float::add_double_in_global(f64::from_bits(old), f64::from_bits(b)).to_bits(),
                // A loop around DADD, which has the old value second.
                |old: u64, b: u64| float::add_doubles(f64::from_bits(b), f64::from_bits(old)).to_bits(),
            );
            Some((run, None))
        }
        (UpdateOp::Add, Type::F16) => both!(u16, |old, b, c| small::<Half>(old, b, |a, b| a + b)),
        (UpdateOp::Add, Type::Bf16) => both!(u16, |old, b, c| small::<Brain>(old, b, |a, b| a + b)),
        (UpdateOp::Add, Type::F16x2) => both!(u32, |old, b, c| packed::<Half>(old, b, |a, b| a + b)),
        (UpdateOp::Add, Type::Bf16x2) => both!(u32, |old, b, c| packed::<Brain>(old, b, |a, b| a + b)),
        (UpdateOp::Min, Type::F16) => both!(u16, |old, b, c| small::<Half>(old, b, least)),
        (UpdateOp::Max, Type::F16) => both!(u16, |old, b, c| small::<Half>(old, b, most)),
        (UpdateOp::Min, Type::Bf16) => both!(u16, |old, b, c| small::<Brain>(old, b, least)),
        (UpdateOp::Max, Type::Bf16) => both!(u16, |old, b, c| small::<Brain>(old, b, most)),
        (UpdateOp::Min, Type::F16x2) => both!(u32, |old, b, c| packed::<Half>(old, b, least)),
        (UpdateOp::Max, Type::F16x2) => both!(u32, |old, b, c| packed::<Half>(old, b, most)),
        (UpdateOp::Min, Type::Bf16x2) => both!(u32, |old, b, c| packed::<Brain>(old, b, least)),
        (UpdateOp::Max, Type::Bf16x2) => both!(u32, |old, b, c| packed::<Brain>(old, b, most)),
        (UpdateOp::Add, _) => ints!(|old, b, c| old.wrapping_add(b)),
        (UpdateOp::Min, Type::S32) => both!(u32, |old, b, c| (old as i32).min(b as i32) as u32),
        (UpdateOp::Max, Type::S32) => both!(u32, |old, b, c| (old as i32).max(b as i32) as u32),
        (UpdateOp::Min, Type::S64) => both!(u64, |old, b, c| (old as i64).min(b as i64) as u64),
        (UpdateOp::Max, Type::S64) => both!(u64, |old, b, c| (old as i64).max(b as i64) as u64),
        (UpdateOp::Min, Type::F32) => {
            both!(u32, |old, b, c| float::min32(f32::from_bits(old), f32::from_bits(b)).to_bits())
        }
        (UpdateOp::Max, Type::F32) => {
            both!(u32, |old, b, c| float::max32(f32::from_bits(old), f32::from_bits(b)).to_bits())
        }
        (UpdateOp::Min, Type::U32 | Type::U64) if !signed => ints!(|old, b, c| old.min(b)),
        (UpdateOp::Max, Type::U32 | Type::U64) if !signed => ints!(|old, b, c| old.max(b)),
        _ => None,
    }
}

fn least(a: f64, b: f64) -> f64 {
    float::min64(a, b)
}

fn most(a: f64, b: f64) -> f64 {
    float::max64(a, b)
}

fn small<S: Small>(a: u16, b: u16, f: impl Fn(f64, f64) -> f64) -> u16 {
    S::cut(f(f64::from(S::widen(a)), f64::from(S::widen(b))), float::Rounding::Nearest)
}

fn packed<S: Small>(a: u32, b: u32, f: impl Fn(f64, f64) -> f64) -> u32 {
    let low = small::<S>(a as u16, b as u16, &f);
    let high = small::<S>((a >> 16) as u16, (b >> 16) as u16, &f);
    u32::from(low) | u32::from(high) << 16
}
