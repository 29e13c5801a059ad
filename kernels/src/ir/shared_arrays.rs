//! Which array in shared memory an address of machine code lies in, by the constant that the
//! address begins at.
//!
//! Owns the way back from an address to that constant. From Hopper on, code adds the rank of the
//! block, shifted by 24 bits, to the place of an array (seen in code of `nvcc` 13.0 for 9.0), and
//! an index to that. A constant index is a part of the place. So two addresses with one place are
//! of one array, and those with two mostly of two arrays, which is enough for hints.

use super::{BlockId, Inst, KernelIr, Op, Prefix, Src, SrcOperand, Var};
use std::cell::Cell;

/// Most steps for one address.
const STEPS: usize = 2048;
/// Most instructions between an address and the place.
const DEPTH: usize = 24;

/// What a value says about an array.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A number.
    Constant(u32),
    /// An address in the array at this place.
    Array(u32),
    /// An index, or not known.
    Other,
}

impl Place {
    fn plus(self, more: Place) -> Place {
        match (self, more) {
            (Place::Constant(a), Place::Constant(b)) => Place::Constant(a.wrapping_add(b)),
            (Place::Array(a), Place::Constant(b)) | (Place::Constant(b), Place::Array(a)) => {
                Place::Array(a.wrapping_add(b))
            }
            (Place::Array(a), Place::Other) | (Place::Other, Place::Array(a)) => Place::Array(a),
            _ => Place::Other,
        }
    }
}

/// A kernel, and from which blocks each of its blocks is come to.
pub(super) struct Arrays<'a> {
    f: &'a KernelIr,
    before: &'a [Vec<BlockId>],
    steps: Cell<usize>,
}

impl<'a> Arrays<'a> {
    pub(super) fn new(f: &'a KernelIr, before: &'a [Vec<BlockId>]) -> Self {
        Arrays { f, before, steps: Cell::new(0) }
    }

    /// The place of the array that the sum of these operands lies in, in front of an instruction.
    pub(super) fn of(&self, address: &[SrcOperand], block: BlockId, at: usize) -> Option<u32> {
        self.steps.set(0);
        let parts = address.iter().map(|part| self.operand(part, block, at, DEPTH));
        match parts.fold(Place::Constant(0), Place::plus) {
            Place::Array(place) => Some(place),
            _ => None,
        }
    }

    fn operand(&self, operand: &SrcOperand, block: BlockId, at: usize, depth: usize) -> Place {
        match (operand.src, operand.prefix) {
            (Src::Imm(number), Prefix::None) => Place::Constant(number as u32),
            (Src::Var(v), Prefix::None) => self.variable(v, block, at, depth),
            _ => Place::Other,
        }
    }

    /// What all definitions say that come to an instruction.
    fn variable(&self, v: Var, block: BlockId, at: usize, depth: usize) -> Place {
        if depth == 0 {
            return Place::Other;
        }
        let mut said = None;
        let mut seen = vec![false; self.f.blocks.len()];
        let mut open = vec![(block, at)];
        while let Some((block, upto)) = open.pop() {
            self.steps.set(self.steps.get() + 1);
            if self.steps.get() > STEPS {
                return Place::Other;
            }
            let insts = &self.f.blocks[block.0 as usize].insts[..upto];
            let defines = |inst: &Inst| inst.dsts.contains(&v) || matches!(inst.op, Op::ClobberAll);
            let mut is_over = false;
            for (k, inst) in insts.iter().enumerate().rev().filter(|(_, inst)| defines(inst)) {
                let place = self.result(inst, v, block, k, depth - 1);
                if place == Place::Other || said.is_some_and(|said| said != place) {
                    return Place::Other;
                }
                said = Some(place);
                is_over = inst.guard.is_none();
                if is_over {
                    break;
                }
            }
            for from in self.before[block.0 as usize].iter().filter(|_| !is_over) {
                if !std::mem::replace(&mut seen[from.0 as usize], true) {
                    open.push((*from, self.f.blocks[from.0 as usize].insts.len()));
                }
            }
        }
        said.unwrap_or(Place::Other)
    }

    /// What an instruction computes.
    fn result(&self, inst: &Inst, v: Var, block: BlockId, at: usize, depth: usize) -> Place {
        let source = |n: usize| inst.srcs.get(n).map_or(Place::Constant(0), |s| self.operand(s, block, at, depth));
        if inst.dsts.first() != Some(&v) {
            return Place::Other;
        }
        match (&inst.op, source(0), inst.srcs.len()) {
            (Op::Mov, place, 1) => place,
            (Op::Add, first, 1..) => (1..inst.srcs.len()).fold(first, |sum, n| sum.plus(source(n))),
            (Op::Lea { shift: 24 }, _, 2) => match source(1) {
                Place::Constant(place) => Place::Array(place),
                place => place,
            },
            (Op::Lea { shift }, Place::Constant(number), 2) => Place::Constant(number << shift).plus(source(1)),
            (Op::Lea { .. }, _, 2) => Place::Other.plus(source(1)),
            (Op::Mad, _, 3) => Place::Other.plus(source(2)),
            _ => Place::Other,
        }
    }
}
