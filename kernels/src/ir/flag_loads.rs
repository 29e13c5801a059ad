//! Flags that a kernel polls: loads in loops that nothing but their own value ends.
//!
//! Owns which loads those are, and whether what is read behind such a loop is ordered behind it: by
//! an acquire, or by a fence between the loop and the first data (PTX ISA, "Memory Consistency
//! Model", "Release and acquire patterns"). Does not know whose memory a flag lies in.
//!
//! A loop that stores or updates memory is a lock or a queue and is left alone, and so is one whose
//! end depends on anything else that changes in it. Where the code is not followed (calls), what is
//! behind counts as ordered: this is for hints.

use super::cfg::{Cfg, Loop};
use super::{Addr, BlockId, Inst, KernelIr, Mem, MemSpace, Op, Src, SrcOperand, Term, Var};
use device_code::ptx::{Body, Module};
use device_code::sass::{AddressSpace, MachineInst, MemEffect, Strength};
use serde::{Deserialize, Serialize};
use std::cell::Cell;

/// How far a load reaches: with whose stores it may be one half of a protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub enum LoadScope {
    /// It has no scope: a plain load.
    #[default]
    Weak,
    /// The block, or the cluster.
    Block,
    /// The device.
    Device,
    /// The host and other devices too.
    System,
}

/// A load that polls a flag.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct FlagLoad {
    /// The instruction, as accesses count.
    pub at: u32,
    /// Its scope.
    pub scope: LoadScope,
    /// The first data that a thread touches behind the loop without an acquire in between, if it
    /// does.
    pub data: Option<u32>,
}

/// The scopes of a kernel's loads, by instruction. One that is not listed is a plain load.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadScopes(Vec<(u32, LoadScope)>);

impl LoadScopes {
    /// Adds an instruction of machine code.
    pub(crate) fn add_sass(&mut self, i: &MachineInst) {
        let is_global = |space| matches!(space, AddressSpace::Global | AddressSpace::Generic);
        if let Some(m) = i.mem.iter().find(|m| m.access == MemEffect::Read && is_global(m.space)) {
            let scope = match m.strength {
                Strength::Weak => return,
                Strength::Block => LoadScope::Block,
                Strength::Device => LoadScope::Device,
                Strength::System => LoadScope::System,
            };
            self.0.push((i.pc, scope));
        }
    }

    /// Adds a PTX function. `.volatile` has the semantics of `.relaxed.sys` (PTX ISA,
    /// "ld.volatile").
    pub(crate) fn add_ptx(&mut self, module: &Module, body: &Body) {
        for i in &body.code {
            let parts = &module.opcode(i.opcode).parts;
            let is = |names: &[&str]| parts.iter().any(|part| names.contains(&part.as_str()));
            if parts[0] != "ld" || is(&["shared", "local", "param", "const"]) {
                continue;
            }
            if is(&["volatile", "sys"]) {
                self.0.push((i.line, LoadScope::System));
            } else if is(&["gpu"]) {
                self.0.push((i.line, LoadScope::Device));
            } else if is(&["cluster", "cta"]) {
                self.0.push((i.line, LoadScope::Block));
            }
        }
    }

    /// Several instructions of one line count as the widest of them.
    fn of(&self, at: u32) -> LoadScope {
        self.0.iter().filter(|(line, _)| *line == at).map(|(_, scope)| *scope).max().unwrap_or_default()
    }
}

/// Most instructions of a loop that polls: it does little else.
const LARGEST: usize = 128;
/// Most steps that the values of one loop are followed through.
const STEPS: usize = 4096;

/// The instructions of one loop.
struct LoopBody<'a> {
    insts: Vec<&'a Inst>,
    steps: Cell<usize>,
}

/// What a value that is computed in a loop comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueOrigin {
    /// Only from what the loop does not change.
    Outside,
    /// From the load, and from such values.
    Load,
    /// From something else that changes in the loop.
    Elsewhere,
}

/// The flags that a kernel polls.
pub(crate) fn find(f: &KernelIr, cfg: &Cfg) -> Vec<FlagLoad> {
    let mut found: Vec<(u32, &Loop)> = Vec::new();
    for l in &cfg.loops {
        found.extend(polls(f, l).map(|at| (at, l)));
    }
    let polled: Vec<u32> = found.iter().map(|(at, _)| *at).collect();
    let of =
        |(at, l): &(u32, &Loop)| FlagLoad { at: *at, scope: f.load_scopes.of(*at), data: data_behind(f, l, &polled) };
    let mut flags: Vec<FlagLoad> = found.iter().map(of).collect();
    flags.sort_unstable_by_key(|flag| flag.at);
    flags.dedup_by_key(|flag| flag.at);
    flags
}

fn members(l: &Loop) -> impl Iterator<Item = BlockId> + '_ {
    (0_u32..).zip(&l.members).filter(|(_, member)| **member).map(|(block, _)| BlockId(block))
}

fn global(inst: &Inst) -> Option<&Mem> {
    match &inst.op {
        Op::Mem(mem) if mem.space == MemSpace::Global => Some(mem),
        _ => None,
    }
}

/// The load that alone ends a loop.
fn polls(f: &KernelIr, l: &Loop) -> Option<u32> {
    let insts: Vec<&Inst> = members(l).flat_map(|block| &f.blocks[block.0 as usize].insts).collect();
    if insts.len() > LARGEST {
        return None;
    }
    let mut loads = Vec::new();
    for inst in &insts {
        match global(inst) {
            Some(mem) if mem.kind.writes() => return None,
            Some(_) => loads.push(*inst),
            None if matches!(inst.op, Op::ClobberAll) => return None,
            None => {}
        }
    }
    let body = LoopBody { insts, steps: Cell::new(0) };
    loads.into_iter().find_map(|load| {
        let Op::Mem(Mem { addr: Addr::Sum(parts, _), .. }) = &load.op else { return None };
        let stays = |part: &SrcOperand| body.source(part, load.at, &mut Vec::new()) == ValueOrigin::Outside;
        let ends = |block: BlockId| match &f.blocks[block.0 as usize].term {
            Term::Branch { cond, taken, fall } => {
                let leaves = |to: &Option<BlockId>| to.is_none_or(|to| !l.members[to.0 as usize]);
                let is_exit = leaves(taken) != leaves(fall);
                is_exit && body.source(cond, load.at, &mut Vec::new()) == ValueOrigin::Load
            }
            _ => false,
        };
        (parts.iter().all(stays) && members(l).any(ends)).then_some(load.at)
    })
}

impl LoopBody<'_> {
    fn source(&self, operand: &SrcOperand, load: u32, path: &mut Vec<Var>) -> ValueOrigin {
        match operand.src {
            Src::Var(v) | Src::Zext(v) => self.value(v, load, path),
            Src::Pair(low, high) => {
                let parts = [low, high].map(|v| self.value(v, load, path));
                joined(parts)
            }
            _ => ValueOrigin::Outside,
        }
    }

    /// What a variable comes from. `path`: variables that are being followed; one that comes from
    /// itself changes from one iteration to the next.
    fn value(&self, v: Var, load: u32, path: &mut Vec<Var>) -> ValueOrigin {
        self.steps.set(self.steps.get() + 1);
        if path.contains(&v) || self.steps.get() > STEPS {
            return ValueOrigin::Elsewhere;
        }
        path.push(v);
        let mut comes = ValueOrigin::Outside;
        for inst in self.insts.iter().filter(|inst| inst.dsts.contains(&v)) {
            let of = match &inst.op {
                _ if inst.at == load => ValueOrigin::Load,
                Op::Mem(_) | Op::Loaded(_) | Op::Unknown(_) | Op::ClobberAll | Op::Shuffle { .. } => {
                    ValueOrigin::Elsewhere
                }
                _ => joined(inst.srcs.iter().map(|src| self.source(src, load, path))),
            };
            let guard = inst.guard.as_ref().map_or(ValueOrigin::Outside, |guard| self.source(guard, load, path));
            comes = joined([comes, of, guard]);
        }
        path.pop();
        comes
    }
}

/// What comes from several values.
fn joined(of: impl IntoIterator<Item = ValueOrigin>) -> ValueOrigin {
    of.into_iter().fold(ValueOrigin::Outside, |all, one| match (all, one) {
        (ValueOrigin::Elsewhere, _) | (_, ValueOrigin::Elsewhere) => ValueOrigin::Elsewhere,
        (ValueOrigin::Load, _) | (_, ValueOrigin::Load) => ValueOrigin::Load,
        _ => ValueOrigin::Outside,
    })
}

/// The first data that is touched behind a loop without an acquire in between. Other flags, and
/// atomic accesses at all, are no data.
fn data_behind(f: &KernelIr, l: &Loop, polled: &[u32]) -> Option<u32> {
    let acquires = |inst: &Inst| matches!(inst.op, Op::Sync(sync) if sync.acquires());
    if members(l).any(|block| f.blocks[block.0 as usize].insts.iter().any(acquires)) {
        return None;
    }
    let mut seen = l.members.clone();
    let mut open: Vec<BlockId> =
        members(l).flat_map(|block| super::cfg::targets(&f.blocks[block.0 as usize].term)).collect();
    let mut first: Option<u32> = None;
    while let Some(block) = open.pop() {
        if std::mem::replace(&mut seen[block.0 as usize], true) {
            continue;
        }
        let block = &f.blocks[block.0 as usize];
        let is_data = |inst: &Inst| global(inst).is_some_and(|mem| !mem.kind.is_atomic()) && !polled.contains(&inst.at);
        let stop = block.insts.iter().find(|inst| acquires(inst) || matches!(inst.op, Op::ClobberAll) || is_data(inst));
        match stop {
            Some(inst) if is_data(inst) => first = Some(first.map_or(inst.at, |at| at.min(inst.at))),
            Some(_) => {}
            None => open.extend(super::cfg::targets(&block.term)),
        }
    }
    first
}
