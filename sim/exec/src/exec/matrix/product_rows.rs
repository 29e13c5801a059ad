//! Which rows products of warp groups (`wgmma`) of a program may use, and which instructions touch
//! them: looked up once for a launch that somebody looks for races in.

use std::collections::HashSet;

use crate::exec::matrix::group_product::GroupForm;
use crate::exec::matrix::held_registers::{Copied, ProductRows, Touched};
use crate::operations::Role;
use crate::operations::operands::MultiplyGroup;
use crate::program::{Inst, Kind, Operation, Program, Sem, Slot};

fn row(slot: Slot) -> Option<u32> {
    (slot != Slot::NONE && slot.0 & Slot::CONSTANT == 0).then_some(slot.0)
}

/// The rows of the sums and of the first factor of a product.
fn rows_of<'p>(program: &'p Program, inst: &Inst) -> (&'p [Slot], &'p [Slot]) {
    let i = MultiplyGroup::of(inst);
    let form = GroupForm::unpack(i.form());
    let (sums, rest) = program.slots[i.slots() as usize..].split_at(form.sums());
    (sums, if form.registers { &rest[..4] } else { &[] })
}

/// The copies that an instruction makes, if it does nothing else.
fn copies_of(program: &Program, inst: &Inst) -> Option<Vec<Copied>> {
    let is_copy = match inst.op.kind() {
        Kind::Lane(op) => matches!(op.sem, Sem::Move),
        kind => matches!(kind, Kind::Repack),
    };
    if !is_copy {
        return None;
    }
    let of = |role: Role| -> Vec<u32> {
        let operands = inst.op.operands().iter().filter(|operand| operand.role == role);
        operands.flat_map(|operand| operand.registers(program, inst).unwrap_or_default()).collect()
    };
    let (sources, targets) = (of(Role::Read), of(Role::Write));
    let mut copies = Vec::new();
    for into in targets.into_iter().filter_map(|target| row(Slot(target))) {
        copies.extend(sources.iter().map(|&source| Copied { source, from: row(Slot(source)), into }));
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
            let (sums, factor) = rows_of(program, inst);
            rows.extend(sums.iter().chain(factor).filter_map(|&slot| row(slot)));
        }
        if rows.is_empty() {
            return None;
        }
        let copies: Vec<Option<Vec<_>>> = program.code.iter().map(|inst| copies_of(program, inst)).collect();
        // What is copied from and to such rows may hold the same.
        loop {
            let before = rows.len();
            for &Copied { from, into, .. } in copies.iter().flatten().flatten() {
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
        let touched = |(inst, copies): (&Inst, Option<Vec<Copied>>)| {
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
                    copies.retain(|copy| rows.contains(&copy.into));
                    Touched { copies, ..Touched::default() }
                }
                None => Touched { reads: of(Role::Read), writes: of(Role::Write), ..Touched::default() },
            };
            let none = touched.reads.is_empty() && touched.writes.is_empty() && touched.copies.is_empty();
            (!none).then(|| Box::new(touched))
        };
        let by_instruction = program.code.iter().zip(copies).map(touched).collect();
        Some(ProductRows { by_instruction })
    }
}
