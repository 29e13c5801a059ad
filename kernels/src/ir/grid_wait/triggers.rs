//! Which blocks of a launch let dependent grids begin.
//!
//! Owns a small kernel that stores a byte for each block that triggers, and nothing else: what the
//! analysis of ranges finds of these stores in a launch is which blocks do. A block that ends
//! counts as one that has triggered (PTX ISA, `griddepcontrol.launch_dependents`), and is not asked
//! for. Owns also whether blocks have more to do behind their triggers.

use crate::ir::cfg::Cfg;
use crate::ir::{
    AccessKind, Addr, BlockId, Class, Inst, KernelIr, Mem, MemSpace, Op, Prefix, Reason, Special, Src, SrcOperand,
    Sync, Var,
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

/// Whether all triggers come behind the last work of their block: none of its threads touches
/// memory or meets others once one has triggered.
///
/// Behind a barrier of the whole block that each thread comes to no other thread has anything left
/// but what is behind that barrier, too. Without one, a thread may trigger for the block while
/// others work.
pub(crate) fn are_last(f: &KernelIr, cfg: &Cfg) -> bool {
    let is_trigger = |i: &Inst| i.op == Op::Sync(Sync::GridTrigger);
    let known = |b: u32| cfg.order[b as usize] != u32::MAX;
    let triggers = |b: u32| known(b) && f.blocks[b as usize].insts.iter().any(is_trigger);
    let all = 0..f.blocks.len() as u32;
    if !all.clone().any(triggers) {
        return false;
    }
    let is_barrier = |i: &Inst| {
        let of_all = match &i.srcs[..] {
            [] => true,
            [number] => matches!(number, SrcOperand { src: Src::Imm(0), prefix: Prefix::None }),
            // With a number of threads.
            _ => false,
        };
        i.op == Op::Sync(Sync::Barrier) && i.guard.is_none() && of_all
    };
    let is_idle = |i: &Inst| match &i.op {
        Op::Sync(sync) => matches!(sync, Sync::GridTrigger | Sync::Join | Sync::WarpBarrier),
        Op::Mem(_) | Op::Loaded(_) | Op::Unknown(_) | Op::ClobberAll => false,
        _ => true,
    };
    all.clone().filter(|b| known(*b) && (*b == 0 || cfg.post_dominates(BlockId(*b), BlockId(0)))).any(|b| {
        let Some(at) = f.blocks[b as usize].insts.iter().rposition(is_barrier) else { return false };
        let mut behind = vec![false; f.blocks.len()];
        let mut work = cfg.succs[b as usize].to_vec();
        while let Some(next) = work.pop() {
            if !std::mem::replace(&mut behind[next.0 as usize], true) {
                work.extend(cfg.succs[next.0 as usize].iter().copied());
            }
        }
        let rest = &f.blocks[b as usize].insts[at + 1..];
        let before = &f.blocks[b as usize].insts[..at];
        // (No loop leads back to the barrier.)
        !behind[b as usize]
            && rest.iter().all(is_idle)
            && !before.iter().any(is_trigger)
            && all.clone().filter(|next| known(*next) && *next != b).all(|next| {
                let insts = &f.blocks[next as usize].insts;
                if behind[next as usize] { insts.iter().all(is_idle) } else { !insts.iter().any(is_trigger) }
            })
    })
}
