//! Which blocks of a launch let dependent grids begin.
//!
//! Owns a small kernel that stores a byte for each block that triggers, and nothing else: what the
//! analysis of ranges finds of these stores in a launch is which blocks do. A block that ends
//! counts as one that has triggered (PTX ISA, `griddepcontrol.launch_dependents`), and is not asked
//! for.

use crate::ir::cfg::Cfg;
use crate::ir::{
    AccessKind, Addr, BlockId, Class, Inst, KernelIr, Mem, MemSpace, Op, Reason, Special, Src, SrcOperand, Sync, Var,
};
use smallvec::smallvec;

/// When the blocks of a kernel trigger.
pub(crate) enum Blocks {
    /// None does.
    None,
    /// All do, in each launch.
    All,
    /// Those that this kernel stores a byte for, in a variable.
    Some(Box<KernelIr>),
}

/// Which blocks of a kernel trigger.
pub(crate) fn blocks(f: &KernelIr, cfg: &Cfg) -> Blocks {
    let is_trigger = |i: &Inst| i.op == Op::Sync(Sync::GridTrigger);
    let known = || (0_u32..).zip(&f.blocks).filter(|(b, _)| cfg.order[*b as usize] != u32::MAX);
    if !known().any(|(_, block)| block.insts.iter().any(is_trigger)) {
        return Blocks::None;
    }
    let surely = |i: &Inst| is_trigger(i) && i.guard.is_none();
    let comes = |b: u32| b == 0 || cfg.post_dominates(BlockId(b), BlockId(0));
    if known().any(|(b, block)| comes(b) && block.insts.iter().any(surely)) {
        return Blocks::All;
    }
    let mut stores = f.clone();
    let variable = stores.symbol("");
    let (row, number) = (stores.var(Class::W32), stores.var(Class::W32));
    let special = |of: Special| SrcOperand::new(Src::Special(of));
    let make = |op, srcs: [SrcOperand; 3], to: Var, at| Inst {
        guard: None,
        op,
        srcs: srcs.into_iter().collect(),
        dsts: smallvec![to],
        at,
    };
    let place = smallvec![SrcOperand::new(Src::Symbol(variable)), SrcOperand::new(Src::Zext(number))];
    let byte = Mem { space: MemSpace::Global, kind: AccessKind::Write, bytes: 1, addr: Addr::Sum(place, 0) };
    for block in &mut stores.blocks {
        let mut insts = Vec::with_capacity(block.insts.len());
        for i in block.insts.drain(..) {
            match i.op {
                Op::Sync(Sync::GridTrigger) => {
                    let [x, y, z] = [0, 1, 2].map(|axis| special(Special::Ctaid(axis)));
                    let [width, height] = [0, 1].map(|axis| special(Special::Nctaid(axis)));
                    insts.push(make(Op::Mad, [z, height, y], row, i.at));
                    insts.push(make(Op::Mad, [SrcOperand::var(row), width, x], number, i.at));
                    insts.push(Inst { op: Op::Mem(byte.clone()), srcs: smallvec![], dsts: smallvec![], ..i });
                }
                // What is loaded is not known.
                Op::Mem(_) | Op::Loaded(_) => {
                    let op = Op::Unknown(Reason::Loaded);
                    insts.extend((!i.dsts.is_empty()).then_some(Inst { op, srcs: smallvec![], ..i }));
                }
                Op::Sync(_) => {}
                _ => insts.push(i),
            }
        }
        block.insts = insts;
    }
    Blocks::Some(Box::new(stores))
}
