//! Registers of products of warp groups (`wgmma`), for those who look for races: who touches one
//! while a product uses it, and what a product uses without a fence (PTX ISA, "wgmma.fence",
//! "wgmma.wait_group"). Owns what each register holds; products and their groups are carried out
//! elsewhere.
//!
//! What PTX says of registers is not what a source says. Compilers copy values between registers
//! for their own reasons, so a copy is no use: it makes the target hold what the source holds. They
//! also move pure instructions to where a value is used, past a fence that the source has between
//! the two. So a fence counts wherever it is behind the last product before the write. Machine code
//! has its registers more than once, and is not looked at.

use std::collections::HashSet;

use sim_races::{Kind as AccessKind, RegisterUse};

use crate::exec::bulk::thread_of;
use crate::exec::matrix::group_product::GroupForm;
use crate::operations::Role;
use crate::operations::operands::MultiplyGroup;
use crate::program::{Inst, Kind, LANES, Operation, Program, Sem, Slot};
use crate::warp::Warp;

/// The rows that an instruction touches and products may use.
#[derive(Debug, Default)]
struct Touched {
    reads: Vec<u32>,
    writes: Vec<u32>,
    /// It copies these, one to the other. Without a source it is a constant.
    copies: Vec<(Option<u32>, u32)>,
}

/// What each instruction of a program does to the rows of products.
#[derive(Debug)]
pub(crate) struct ProductRows(Vec<Option<Box<Touched>>>);

fn row(slot: Slot) -> Option<u32> {
    (slot != Slot::NONE && slot.0 & Slot::CONSTANT == 0).then_some(slot.0)
}

/// The rows of the sums and of the first factor of a product.
fn rows_of<'p>(program: &'p Program, inst: &Inst) -> (GroupForm, &'p [Slot], &'p [Slot]) {
    let i = MultiplyGroup::of(inst);
    let form = GroupForm::unpack(i.form());
    let (sums, rest) = program.slots[i.slots() as usize..].split_at(form.sums());
    (form, sums, if form.registers { &rest[..4] } else { &[] })
}

/// The copies that an instruction makes, if it does nothing else.
fn copies_of(program: &Program, inst: &Inst) -> Option<Vec<(Option<u32>, u32)>> {
    let is_copy = match inst.op.kind() {
        Kind::Lane(op) => matches!(op.sem, Sem::Move),
        kind => matches!(kind, Kind::Repack),
    };
    if !is_copy {
        return None;
    }
    let of = |role: Role| -> Vec<Option<u32>> {
        let operands = inst.op.operands().iter().filter(|operand| operand.role == role);
        operands
            .flat_map(|operand| operand.registers(program, inst).unwrap_or_default())
            .map(|number| row(Slot(number)))
            .collect()
    };
    let (from, into) = (of(Role::Read), of(Role::Write));
    let mut copies = Vec::new();
    for into in into.iter().flatten() {
        copies.extend(from.iter().map(|&from| (from, *into)));
    }
    Some(copies)
}

impl ProductRows {
    /// Of a program; None where it has no such product.
    pub(crate) fn of(program: &Program) -> Option<ProductRows> {
        if program.machine.is_some() {
            return None;
        }
        let mut rows = HashSet::new();
        for inst in program.code.iter().filter(|inst| matches!(inst.op, Operation::MultiplyGroup)) {
            let (_, sums, factor) = rows_of(program, inst);
            rows.extend(sums.iter().chain(factor).filter_map(|&slot| row(slot)));
        }
        if rows.is_empty() {
            return None;
        }
        let copies: Vec<Option<Vec<_>>> = program.code.iter().map(|inst| copies_of(program, inst)).collect();
        // What is copied from and to such rows may hold the same.
        loop {
            let before = rows.len();
            for &(from, into) in copies.iter().flatten().flatten() {
                if let Some(from) = from
                    && (rows.contains(&from) || rows.contains(&into))
                {
                    rows.extend([from, into]);
                }
            }
            if rows.len() == before {
                break;
            }
        }
        let touched = |(inst, copies): (&Inst, Option<Vec<(Option<u32>, u32)>>)| {
            if matches!(inst.op, Operation::MultiplyGroup) {
                return None;
            }
            let of = |role: Role| -> Vec<u32> {
                let operands = inst.op.operands().iter().filter(|operand| operand.role == role);
                let all = operands.flat_map(|operand| operand.registers(program, inst).unwrap_or_default());
                all.filter_map(|number| row(Slot(number))).filter(|row| rows.contains(row)).collect()
            };
            let touched = match copies {
                Some(mut copies) => {
                    copies.retain(|(_, into)| rows.contains(into));
                    Touched { copies, ..Touched::default() }
                }
                None => Touched { reads: of(Role::Read), writes: of(Role::Write), ..Touched::default() },
            };
            let none = touched.reads.is_empty() && touched.writes.is_empty() && touched.copies.is_empty();
            (!none).then(|| Box::new(touched))
        };
        Some(ProductRows(program.code.iter().zip(copies).map(touched).collect()))
    }
}

/// Where a value was written that no product has made.
#[derive(Debug, Clone, Copy)]
struct Written {
    site: u32,
    lane: u32,
    /// Fences before the last product that was issued before.
    fences: u64,
}

/// A product that may still use a register.
#[derive(Debug, Clone, Copy)]
struct Used {
    site: u32,
    group: u64,
    /// It is one of its sums.
    sum: bool,
}

/// What a row holds.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    written: Option<Written>,
    used: Option<Used>,
}

/// Of a warp.
#[derive(Debug, Default)]
pub(crate) struct GroupRegisters {
    held: Vec<Held>,
    fences: u64,
    /// Fences before the last product.
    before_last: u64,
    /// The group that is open.
    group: u64,
}

impl GroupRegisters {
    fn at(&mut self, row: u32) -> &mut Held {
        if self.held.len() <= row as usize {
            self.held.resize(row as usize + 1, Held::default());
        }
        &mut self.held[row as usize]
    }

    /// `wgmma.fence`
    pub(crate) fn fence(&mut self) {
        self.fences += 1;
    }

    /// `wgmma.commit_group`
    pub(crate) fn commit(&mut self) {
        self.group += 1;
    }

    /// `wgmma.wait_group`
    pub(crate) fn wait(&mut self, pending: u32) {
        let done = self.group.saturating_sub(u64::from(pending));
        for held in &mut self.held {
            held.used = held.used.filter(|used| used.group >= done);
        }
    }
}

/// An instruction is about to be executed.
#[inline(never)]
pub(crate) fn touch(w: &mut Warp<'_>, inst: &Inst, mask: u32) {
    let Some(touched) = w.env.product_rows.as_ref().and_then(|rows| rows.0[w.pc as usize].as_deref()) else { return };
    let Some(mut registers) = w.registers.take() else { return };
    let (base, site, lane) = (w.rbase, w.pc, mask.trailing_zeros());
    for &(from, into) in &touched.copies {
        let mut held = from.map_or_else(Held::default, |from| *registers.at(base + from));
        // What a product only reads is as good in another register.
        held.used = held.used.filter(|used| used.sum);
        let target = registers.at(base + into);
        // A constant for what a product may still read is a write, if it is another value.
        if let (None, Some(used)) = (from, target.used)
            && !used.sum
            && changes(w, inst, into, mask)
        {
            tell(w, used, site, lane, AccessKind::Write);
        }
        *registers.at(base + into) = held;
    }
    for &row in &touched.reads {
        if let Some(used) = registers.at(base + row).used.filter(|used| used.sum) {
            tell(w, used, site, lane, AccessKind::Read);
        }
    }
    for &row in &touched.writes {
        if let Some(used) = registers.at(base + row).used {
            tell(w, used, site, lane, AccessKind::Write);
        }
        let written = Some(Written { site, lane, fences: registers.before_last });
        *registers.at(base + row) = Held { written, used: None };
    }
    w.registers = Some(registers);
}

/// Whether a copy of a constant changes a row.
fn changes(w: &Warp<'_>, inst: &Inst, into: u32, mask: u32) -> bool {
    let source = inst.op.operands().iter().filter(|operand| operand.role == Role::Read);
    let mut source = source.flat_map(|operand| operand.registers(w.env.program, inst).unwrap_or_default());
    let Some(source) = source.next() else { return false };
    let differs = |lane: &usize| w.get(Slot(source), *lane) != w.get(Slot(into), *lane);
    (0..LANES).filter(|lane| mask >> lane & 1 != 0).any(|lane| differs(&lane))
}

fn tell(w: &mut Warp<'_>, used: Used, site: u32, lane: u32, kind: AccessKind) {
    let thread = thread_of(w, lane as usize);
    let product = (used.site, if used.sum { AccessKind::Write } else { AccessKind::Read });
    if let Some(events) = w.env.events {
        events.uses_register(&RegisterUse { thread, product, other: (site, kind), fence: false });
    }
}

/// A product is issued. `keep`: it reads its sums.
pub(crate) fn issue(w: &mut Warp<'_>, inst: &Inst, keep: bool) {
    let Some(mut registers) = w.registers.take() else { return };
    let (base, site) = (w.rbase, w.pc);
    let (_, sums, factor) = rows_of(w.env.program, inst);
    let parts = sums.iter().map(|&slot| (slot, true)).chain(factor.iter().map(|&slot| (slot, false)));
    let mut unfenced: Option<Written> = None;
    for (slot, sum) in parts {
        let Some(row) = row(slot) else { continue };
        let fences = registers.fences;
        let group = registers.group;
        let held = registers.at(base + row);
        let written = held.written.filter(|written| written.fences == fences && (keep || !sum));
        unfenced = unfenced.or(written);
        if sum {
            held.written = None;
        }
        held.used = Some(Used { site, group, sum });
    }
    registers.before_last = registers.fences;
    w.registers = Some(registers);
    if let Some(written) = unfenced {
        let thread = thread_of(w, written.lane as usize);
        if let Some(events) = w.env.events {
            let (product, other) = ((site, AccessKind::Read), (written.site, AccessKind::Write));
            events.uses_register(&RegisterUse { thread, product, other, fence: true });
        }
    }
}
