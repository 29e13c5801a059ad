//! Instructions of system scope: what a kernel needs to exchange messages with the host or with
//! other devices.
//!
//! Owns whether a kernel loads what these may store while it runs, which of its instructions store
//! what they may load, and how the fences of a kernel go with its atomic accesses. With a fence it
//! can say that something is over. A release (`st.release.sys`, a `cuda::atomic` store) is a fence
//! and an atomic access behind it under the same condition, so a launch that makes no such access
//! has not reached the fence either. Other fences (`__threadfence_system()`) tell nothing of the
//! store that the program means.

use super::AccessKind;
use device_code::ptx::{Body, Module};
use device_code::sass::{
    AddressSpace, Flow, INST_BYTES, MachineInst, MemEffect, MemOperand, Opcode, PredSrc, Strength,
};
use serde::{Deserialize, Serialize};

/// The fences of system scope of one kernel.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum SystemFences {
    /// There are none.
    #[default]
    None,
    /// Where one of them is reached, so is an atomic access of one of these kinds.
    Releases(Vec<AccessKind>),
    /// Any store behind one may be a message.
    Free,
}

impl SystemFences {
    /// Adds a fence that goes with an access of this kind; without, with none.
    fn add(&mut self, kind: Option<AccessKind>) {
        match (&mut *self, kind) {
            (SystemFences::Free, _) => {}
            (_, None) => *self = SystemFences::Free,
            (SystemFences::None, Some(kind)) => *self = SystemFences::Releases(vec![kind]),
            (SystemFences::Releases(kinds), Some(kind)) if kinds.contains(&kind) => {}
            (SystemFences::Releases(kinds), Some(kind)) => kinds.push(kind),
        }
    }
}

/// Adds those of a piece of machine code, whose instructions these are.
pub(crate) fn add_sass(fences: &mut SystemFences, stores: &mut SystemStores, code: &[u8], insts: &[MachineInst]) {
    for (at, bytes) in code.chunks_exact(INST_BYTES as usize).enumerate() {
        if is_fence(bytes) {
            let behind = insts.get(at).and_then(|fence| access_behind(fence, &insts[at + 1..]));
            fences.add(behind.map(|(kind, _)| kind));
            stores.apart |= behind.is_none_or(|(_, strength)| strength != Strength::System);
        }
    }
}

/// A `MEMBAR` of system scope: opcode 0x992, scope 3 in bits 76 and 77 (sm_75 to sm_120, from
/// `nvdisasm`).
fn is_fence(i: &[u8]) -> bool {
    i[0] == 0x92 && i[1] & 0xf == 0x9 && i[9] & 0x30 == 0x30
}

/// The atomic access that runs whenever this fence does, and its scope.
fn access_behind(fence: &MachineInst, behind: &[MachineInst]) -> Option<(AccessKind, Strength)> {
    for i in behind {
        if i.flow() != Flow::Next {
            return None;
        }
        let touches = |space| matches!(space, AddressSpace::Global | AddressSpace::Generic);
        if let Some(m) = i.mem.iter().find(|m| m.access != MemEffect::Hint && touches(m.space)) {
            let goes_with = i.guard == fence.guard || i.guard == PredSrc::TRUE;
            return match m.access {
                _ if !goes_with => None,
                _ if m.strength < Strength::Device => None,
                MemEffect::Read => Some((AccessKind::AtomicRead, m.strength)),
                MemEffect::Write => Some((AccessKind::AtomicWrite, m.strength)),
                MemEffect::Atomic => Some((AccessKind::Atomic, m.strength)),
                MemEffect::Hint => None,
            };
        }
        if i.pred_writes() != (0, 0) {
            return None;
        }
    }
    None
}

/// How a kernel loads what the host or other devices may store while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SystemLoads {
    /// It has atomic loads with the scope of the system.
    pub(crate) some: bool,
    /// It has an acquire, or a fence, which is one: what it loads so may be a message.
    pub(crate) acquires: bool,
}

impl SystemLoads {
    /// Adds an instruction of machine code.
    pub(crate) fn add_sass(&mut self, i: &MachineInst) {
        let is_global = |space| matches!(space, AddressSpace::Global | AddressSpace::Generic);
        let is_load = |m: &MemOperand| m.access == MemEffect::Read && m.strength == Strength::System;
        self.some |= i.mem.iter().any(|m| is_load(m) && is_global(m.space));
        // Behind an acquire, the first-level cache forgets what it held (`CCTL.IVALL`).
        self.acquires |= i.op == Opcode::CacheCtl && i.mem.is_empty();
    }

    /// Adds a PTX function. `.volatile` has the semantics of `.relaxed.sys`.
    pub(crate) fn add_ptx(&mut self, module: &Module, body: &Body) {
        for i in &body.code {
            let parts = &module.opcode(i.opcode).parts;
            let is = |name: &str| parts.iter().any(|part| part == name);
            self.some |= parts[0] == "ld" && (is("volatile") || is("sys")) && !is("shared") && !is("local");
            self.acquires |= is("acquire") || is("acq_rel") || matches!(parts[0].as_str(), "fence" | "membar");
        }
    }
}

/// How a kernel stores what the host or other devices may load while it runs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SystemStores {
    /// It has atomic stores with the scope of the system.
    pub(crate) writes: bool,
    /// It has updates with that scope.
    pub(crate) updates: bool,
    /// It has a fence with that scope that goes with no access of that scope: an atomic store of a
    /// narrower scope behind it may be the message that the program means.
    apart: bool,
    /// These stores and updates, as accesses count: byte offsets, or lines of PTX.
    at: Vec<u32>,
    /// Updates of any scope that answer nothing (`red`), and those that do, counted likewise.
    mute: Vec<u32>,
    answering: Vec<u32>,
}

impl SystemStores {
    /// Adds an instruction of machine code.
    pub(crate) fn add_sass(&mut self, i: &MachineInst) {
        let is_global = |space| matches!(space, AddressSpace::Global | AddressSpace::Generic);
        for m in i.mem.iter().filter(|m| m.strength == Strength::System && is_global(m.space)) {
            let (writes, updates) = (m.access == MemEffect::Write, m.access == MemEffect::Atomic);
            self.writes |= writes;
            self.updates |= updates;
            self.at.extend((writes || updates).then_some(i.pc));
        }
        if i.mem.iter().any(|m| m.access == MemEffect::Atomic && is_global(m.space)) {
            let is_mute = matches!(i.op, Opcode::Red { .. });
            if is_mute { &mut self.mute } else { &mut self.answering }.push(i.pc);
        }
    }

    /// Adds a PTX function.
    pub(crate) fn add_ptx(&mut self, module: &Module, body: &Body) {
        for i in &body.code {
            let parts = &module.opcode(i.opcode).parts;
            let is = |name: &str| parts.iter().any(|part| part == name);
            let reaches_host = (is("volatile") || is("sys")) && !is("shared") && !is("local");
            let several = parts[0] == "multimem";
            let writes = parts[0] == "st" || several && is("st");
            let updates = matches!(parts[0].as_str(), "atom" | "red") || several && !is("st");
            self.writes |= writes && reaches_host;
            self.updates |= updates && reaches_host;
            self.at.extend(((writes || updates) && reaches_host).then_some(i.line));
            if updates {
                let is_mute = parts[0] == "red" || several && is("red");
                if is_mute { &mut self.mute } else { &mut self.answering }.push(i.line);
            }
        }
    }

    /// Whether the update that is this instruction answers nothing: no thread can wait by it. A
    /// line with others counts as these.
    pub(crate) fn is_mute(&self, at: u32) -> bool {
        self.mute.contains(&at) && !self.answering.contains(&at)
    }

    /// Whether none of its stores and updates reaches beyond its device.
    pub(crate) fn is_none(&self) -> bool {
        !self.apart && self.at.is_empty()
    }

    /// Whether the host takes an atomic store by this instruction for a plain one, though the
    /// kernel has others that reach it. Several instructions of one line count as the widest.
    pub(crate) fn is_narrow(&self, at: u32) -> bool {
        !self.apart && !self.at.is_empty() && !self.at.contains(&at)
    }
}

/// Adds those of a PTX function.
pub(crate) fn add_ptx(fences: &mut SystemFences, stores: &mut SystemStores, module: &Module, body: &Body) {
    for (at, fence) in body.code.iter().enumerate() {
        let part = |at: usize, name: &str| {
            let parts = &module.opcode(body.code[at].opcode).parts;
            parts.iter().any(|part| part == name)
        };
        if !part(at, "sys") {
            continue;
        }
        // An access that is a release by itself, or the one behind a fence.
        let is_fence = ["fence", "membar"].iter().any(|name| module.opcode(fence.opcode).parts[0] == *name);
        let access = at + usize::from(is_fence);
        let goes_with = body.code.get(access).is_some_and(|i| i.guard == fence.guard || i.guard.is_none());
        let ordered = || ["relaxed", "acquire", "release", "volatile"].iter().any(|order| part(access, order));
        let beyond_cluster = || !part(access, "cta") && !part(access, "cluster") && !part(access, "shared");
        let kind = match body.code.get(access).map(|i| module.opcode(i.opcode).parts[0].as_str()) {
            _ if !goes_with || !beyond_cluster() => None,
            Some("st") if ordered() => Some(AccessKind::AtomicWrite),
            Some("ld") if ordered() => Some(AccessKind::AtomicRead),
            Some("atom" | "red") => Some(AccessKind::Atomic),
            _ => None,
        };
        fences.add(kind);
        let reaches_host = || part(access, "sys") || part(access, "volatile");
        stores.apart |= kind.is_none() || !reaches_host();
    }
}
