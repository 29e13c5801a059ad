//! Lowers the SASS of one kernel to the intermediate representation: control flow with calls
//! inlined, registers as variables, and spill slots as variables where nothing else reaches them.
//!
//! Owns what a SASS operation computes ([`arithmetic`], [`predicate_words`]), touches
//! ([`memory_access`], [`made_maps`], [`constant_bank`]) and where it leads ([`control_flow`]).
//! These files are parts of one `Lower` and call each other. Decoding is done by `sass`; values are
//! found by `ranges`.
//!
//! Calls are followed by cloning the callee at each call site, to a depth of four. A call that is
//! not followed defines every variable and may touch any memory, except for the few runtime
//! functions known by name ([`known_call`]).

mod arithmetic;
mod constant_bank;
mod control_flow;
mod jump_tables;
mod made_maps;
mod memory_access;
mod predicate_words;
mod pure;

use crate::ir::{Callees, Class, KernelIr, Op, Prefix, ProxyStep, Reason, Special, Src, SrcOperand, Var, proxy_paths};
use crate::lower_sass::constant_bank::{bank_address, cluster_constant, note_constants};
use crate::lower_sass::control_flow::blocks;
use crate::lower_sass::made_maps::LoadedWords;
use device_code::arch::Generation;
use device_code::sass::{self, Bank, Flow, INST_BYTES, MachineInst, PredSrc, Run, Value};
use smallvec::SmallVec;
use std::collections::HashMap;

/// A kernel's code and what the container says about it.
pub(crate) struct Code<'a> {
    /// Mangled name.
    pub(crate) name: &'a str,
    /// Encoding.
    pub(crate) generation: Generation,
    /// All instructions of the section the kernel is in, and behind them those of the sections of
    /// functions that it calls.
    pub(crate) insts: &'a [MachineInst],
    /// Index of the kernel's first instruction.
    pub(crate) entry: usize,
    /// Byte offset in bank 0 where parameters start.
    pub(crate) param_base: u32,
    /// Parameter layout: (offset, size).
    pub(crate) params: Vec<(u16, u16)>,
    /// What relocations and tables say.
    pub(crate) links: &'a Links,
}

impl Code<'_> {
    fn index_of(&self, pc: i64) -> Option<usize> {
        let first = i64::from(self.insts.first()?.pc);
        let off = pc.checked_sub(first)?;
        let i = usize::try_from(off / i64::from(INST_BYTES)).ok()?;
        (off >= 0 && off % i64::from(INST_BYTES) == 0 && i < self.insts.len()).then_some(i)
    }

    /// Where a direct call or branch leads, by its relocation where it has one. `None`: it is
    /// computed, or leads to what is not here.
    fn target(&self, i: &MachineInst) -> Option<usize> {
        if let Some(linked) = self.links.targets.get(&i.pc) {
            return self.index_of(i64::from(*linked));
        }
        match i.flow() {
            Flow::Branch(t) => self.index_of(t),
            Flow::Call(t) => {
                let named = self.links.calls.contains_key(&i.pc);
                t.filter(|_| !named && i.op != sass::Opcode::Call { abs: true }).and_then(|t| self.index_of(t))
            }
            _ => None,
        }
    }

    /// What a call that leads to nothing here does, when its name tells it: see [`known_call`].
    fn known_call(&self, i: &MachineInst) -> Option<bool> {
        match self.links.calls.get(&i.pc) {
            Some(name) => known_call(name),
            // A computed call into the driver means one of the externals.
            None if self.links.syscalls.contains(&i.pc) && !self.links.externals.is_empty() => {
                let all: SmallVec<[Option<bool>; 4]> = self.links.externals.iter().map(|n| known_call(n)).collect();
                if all.iter().any(Option::is_none) { None } else { Some(all.contains(&Some(true))) }
            }
            None => None,
        }
    }
}

/// Link-time facts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    /// Symbol whose 64-bit address is at an offset of constant bank 4.
    pub(crate) bank4: HashMap<u32, String>,
    /// Contents of constant bank 2: numbers that the compiler put there. Empty where a loader fills
    /// any of it in.
    pub(crate) literals: Vec<u8>,
    /// `__constant__` variables: first and last (exclusive) offset in constant bank 3, and the
    /// name; in order.
    pub(crate) bank3: Vec<(u32, u32, String)>,
    /// Instruction (pc) whose 32-bit immediate is the low (false) or high (true) word of a symbol's
    /// address.
    pub(crate) immediates: HashMap<u32, (String, bool)>,
    /// Call (pc) to a symbol.
    pub(crate) calls: HashMap<u32, String>,
    /// The same, to a place (pc) that is among the instructions.
    pub(crate) targets: HashMap<u32, u32>,
    /// Indirect branch (pc): its targets (pc).
    pub(crate) branches: HashMap<u32, Vec<u32>>,
    /// Calls (pc) into the driver.
    pub(crate) syscalls: Vec<u32>,
    /// Functions that those could mean.
    pub(crate) externals: Vec<String>,
    /// The functions that a pointer may lead to.
    pub(crate) callees: Callees,
}

/// The kernel is too large or empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SassLowerError {
    /// Inlining calls made more instructions than [`MAX_INSTS`].
    #[error("kernel grows beyond {MAX_INSTS} instructions when calls are inlined")]
    TooLarge,
    /// No code at the entry.
    #[error("kernel has no code")]
    Empty,
}

/// Instructions after inlining that are still analysed.
pub(crate) const MAX_INSTS: usize = 200_000;

/// What a call to a runtime function does, by name: `Some(returns)`. None of them touches memory
/// that a kernel parameter points to, apart from `vprintf`, which reads its format and the argument
/// block in local memory.
#[must_use]
pub(crate) fn known_call(name: &str) -> Option<bool> {
    match name {
        "__assertfail" | "__trap" => Some(false),
        "vprintf" | "malloc" | "free" | "__nv_aligned_device_malloc" => Some(true),
        // Defined by the device runtime's library, where they only call the driver.
        "cudaCGGetIntrinsicHandle" | "cudaCGSynchronize" | "cudaCGSynchronizeGrid" => Some(true),
        _ => None,
    }
}

const UR: u32 = 256;
const P: u32 = 512;
const UP: u32 = 520;
const FIRST_FREE: u32 = 528;

/// How the instructions of a kernel reach local memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LocalMemory {
    /// At constant offsets from an R1 that is set once.
    OneFrame,
    /// At constant offsets from R1, which the functions that are called lower and raise by
    /// constants.
    Frames,
    /// In other ways.
    Unknown,
}

impl LocalMemory {
    /// Whether slots are variables.
    fn is_slots(self) -> bool {
        self != LocalMemory::Unknown
    }
}

/// State of lowering one kernel.
struct Lower<'a> {
    code: &'a Code<'a>,
    f: KernelIr,
    out: Vec<crate::ir::Inst>,
    /// Variable of a local slot, by byte offset from R1 as it is set at the start.
    slots: HashMap<i64, Var>,
    /// How local memory is reached.
    local: LocalMemory,
    /// Where R1 is now, from where it is set at the start; 0 unless functions have frames.
    stack: i64,
    /// Two ways to a block leave R1 at different places.
    stack_is_lost: bool,
    /// It waits for the grids that it depends on.
    waits_for_grids: bool,
    /// Loads from shared memory can be told from the stores that they see.
    shared_ok: bool,
    /// It makes tensor maps, and has loaded these words of them.
    makes_maps: bool,
    loaded: LoadedWords,
    /// The words of these maps are followed.
    follows_words: bool,
    /// Bulk operations read its shared memory.
    copies_shared: bool,
    /// Whether what is called at an instruction comes back.
    returning: HashMap<usize, bool>,
}

/// Lowers a kernel.
///
/// # Errors
///
/// [`SassLowerError`] when it is empty or grows too large.
pub(crate) fn lower(code: &Code<'_>) -> Result<KernelIr, SassLowerError> {
    if code.entry >= code.insts.len() {
        return Err(SassLowerError::Empty);
    }
    let local = memory_access::local_memory(code);
    match lower_with(code, local)? {
        Some(f) => Ok(f),
        None => lower_with(code, LocalMemory::Unknown).map(Option::unwrap_or_default),
    }
}

/// `None`: local memory is not reached like this.
fn lower_with(code: &Code<'_>, local: LocalMemory) -> Result<Option<KernelIr>, SassLowerError> {
    let mut f = KernelIr { name: code.name.to_owned(), params: code.params.clone(), ..KernelIr::default() };
    for n in 0..FIRST_FREE {
        f.vars.push(if n < P { Class::W32 } else { Class::Pred });
    }
    let mut lower = Lower {
        code,
        f,
        out: Vec::new(),
        slots: HashMap::new(),
        local,
        stack: 0,
        stack_is_lost: false,
        waits_for_grids: code.insts.iter().any(|i| i.op == sass::Opcode::AcqBulk),
        shared_ok: memory_access::shared_is_simple(code),
        makes_maps: made_maps::makes_maps(code),
        follows_words: made_maps::follows_words(code),
        copies_shared: code.insts.iter().any(|i| memory_access::proxy_step(i) == Some(ProxyStep::Bulk)),
        loaded: LoadedWords::default(),
        returning: HashMap::new(),
    };
    note_constants(&mut lower);
    blocks(&mut lower)?;
    if lower.copies_shared {
        lower.f.unfenced = proxy_paths::find(&mut lower.f);
    }
    Ok((!lower.stack_is_lost).then_some(lower.f))
}

impl Lower<'_> {
    fn reg(n: u8) -> Option<Var> {
        (n != 255).then_some(Var(u32::from(n)))
    }
    fn ureg(n: u8) -> Option<Var> {
        (n != 255).then_some(Var(UR + u32::from(n)))
    }
    fn pred_var(p: sass::Pred) -> Var {
        if p.is_true() { Var::NONE } else { Var(if p.uniform { UP } else { P } + u32::from(p.num)) }
    }

    fn pred(p: PredSrc) -> SrcOperand {
        if p.pred.is_true() {
            SrcOperand::imm(u64::from(!p.not))
        } else {
            SrcOperand::pred(Self::pred_var(p.pred), p.not)
        }
    }

    /// Registers of a run, in order.
    fn run(r: Run) -> SmallVec<[Var; 2]> {
        r.numbers()
            .map(|n| match r.file {
                sass::File::R => Var(u32::from(n)),
                sass::File::UR => Var(UR + u32::from(n)),
            })
            .collect()
    }

    /// Destination word `k` of an instruction.
    fn dst(&self, i: &MachineInst, k: u8) -> Var {
        match i.dst {
            Some(r) if !r.is_dropped() && k < r.count => match r.file {
                sass::File::R => Var(u32::from(r.first) + u32::from(k)),
                sass::File::UR => Var(UR + u32::from(r.first) + u32::from(k)),
            },
            _ => Var::NONE,
        }
    }

    fn emit(&mut self, i: &MachineInst, op: Op, srcs: &[SrcOperand], dsts: &[Var]) {
        let guard = (!i.guard.always()).then(|| Self::pred(i.guard));
        self.out.push(crate::ir::Inst { guard, op, srcs: srcs.into(), dsts: dsts.into(), at: i.pc });
    }

    /// An instruction that computes a temporary: read only by what carries the guard.
    fn emit_always(&mut self, i: &MachineInst, op: Op, srcs: &[SrcOperand], dsts: &[Var]) {
        self.out.push(crate::ir::Inst { guard: None, op, srcs: srcs.into(), dsts: dsts.into(), at: i.pc });
    }

    /// A fresh variable that holds something unknown.
    fn unknown(&mut self, i: &MachineInst, class: Class, why: Reason) -> SrcOperand {
        let v = self.f.var(class);
        self.emit_always(i, Op::Unknown(why), &[], &[v]);
        SrcOperand::var(v)
    }

    /// Everything the instruction writes becomes unknown.
    fn give_up(&mut self, i: &MachineInst, why: Reason) {
        let mut d: SmallVec<[Var; 2]> = SmallVec::new();
        for r in i.defs() {
            d.extend(Self::run(r));
        }
        let (p, up) = i.pred_writes();
        for n in 0..7 {
            if p >> n & 1 == 1 {
                d.push(Var(P + n));
            }
            if up >> n & 1 == 1 {
                d.push(Var(UP + n));
            }
        }
        if !d.is_empty() {
            self.emit(i, Op::Unknown(why), &[], &d);
        }
    }

    /// A 4- or 8-byte constant as an operand; `None` when nothing is known of it.
    fn constant(&mut self, c: sass::ConstRef, bytes: u8) -> Option<Src> {
        let Bank::Number(bank) = c.bank else { return None };
        let off = c.place()?;
        match bank {
            2 => {
                let from = usize::try_from(off).ok()?;
                let word = self.code.links.literals.get(from..from.checked_add(usize::from(bytes))?)?;
                Some(Src::Imm(word.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))))
            }
            0 => {
                if off >= self.code.param_base {
                    let off = u16::try_from(off - self.code.param_base).ok()?;
                    return Some(Src::Param { off, bytes });
                }
                // The address of the bank itself, and of the first parameter, for tensor maps among
                // the parameters. (Seen in cuBLAS's kernels, and in those of `nvcc` 13.0 and
                // Triton, with the parameters of their launches; where later generations keep them
                // is not known.)
                let (word, high) = (off & !4, off & 4 != 0);
                if self.code.generation == Generation::Hopper && matches!(word, 0xc0 | 0x198) && (!high || bytes == 4) {
                    let base = if word == 0x198 { 0 } else { u16::try_from(self.code.param_base).ok()? };
                    let base = 0u16.wrapping_sub(base);
                    return Some(match bytes {
                        8 => Src::ParamAddress(base),
                        _ => Src::ParamAddressHalf(base, high),
                    });
                }
                if let Some(address) = bank_address(self, off, bytes) {
                    return Some(address);
                }
                if bytes != 4 {
                    return (bytes == 8).then(|| u16::try_from(off).ok().map(Src::Driver)).flatten();
                }
                let b = self.code.generation.bank0();
                let axis = |base: u32| {
                    (off >= base && off < base + 12 && (off - base).is_multiple_of(4)).then(|| ((off - base) / 4) as u8)
                };
                if let Some(d) = axis(b.block_dim) {
                    return Some(Src::Special(Special::Ntid(d)));
                }
                if let Some(d) = axis(b.grid_dim) {
                    return Some(Src::Special(Special::Nctaid(d)));
                }
                if off == b.stack_pointer {
                    return Some(Src::Special(Special::LocalBase));
                }
                if self.code.generation == Generation::Hopper
                    && let Some(special) = cluster_constant(off, axis)
                {
                    return Some(Src::Special(special));
                }
                u16::try_from(off).ok().map(Src::Driver)
            }
            4 => {
                let links = self.code.links;
                if let Some(name) = links.bank4.get(&off) {
                    let s = self.f.symbol(name);
                    return Some(if bytes == 8 { Src::Symbol(s) } else { Src::SymbolHalf(s, false) });
                }
                let name = links.bank4.get(&off.checked_sub(4)?)?;
                (bytes == 4).then(|| Src::SymbolHalf(self.f.symbol(name), true))
            }
            3 if bytes >= 4 && self.f.constant_bank.is_some() => Some(Src::Constant(off)),
            _ => None,
        }
    }

    /// A source of `s.regs` registers; 64-bit ones are pairs.
    fn src(&mut self, i: &MachineInst, s: &sass::InstOperand) -> SrcOperand {
        let wide = s.regs >= 2;
        let prefix = if s.inv {
            Prefix::Not
        } else if s.neg {
            Prefix::Neg
        } else {
            Prefix::None
        };
        let pair = |a: Option<Var>, b: Option<Var>| match (a, b) {
            (Some(a), Some(b)) => Src::Pair(a, b),
            (Some(a), None) => Src::Zext(a),
            _ => Src::Imm(0),
        };
        let src = match s.value {
            Value::Reg(r) if wide => pair(Self::reg(r.0), if r.0 == 255 { None } else { Self::reg(r.0 + 1) }),
            Value::UReg(r) if wide => pair(Self::ureg(r.0), if r.0 == 255 { None } else { Self::ureg(r.0 + 1) }),
            Value::Reg(r) => Self::reg(r.0).map_or(Src::Imm(0), Src::Var),
            Value::UReg(r) => Self::ureg(r.0).map_or(Src::Imm(0), Src::Var),
            Value::Imm(v) => match self.code.links.immediates.get(&i.pc) {
                Some((name, high)) if !wide => {
                    let high = *high;
                    Src::SymbolHalf(self.f.symbol(name), high)
                }
                _ => Src::Imm(if wide { v as u64 } else { v as u64 & 0xffff_ffff }),
            },
            Value::Const(c) => match self.constant(c, if wide { 8 } else { 4 }) {
                Some(s) => s,
                None => self.unknown(i, if wide { Class::W64 } else { Class::W32 }, Reason::Constant).src,
            },
        };
        SrcOperand { src, prefix }
    }

    /// Source `k`, or zero.
    fn arg(&mut self, i: &MachineInst, k: usize) -> SrcOperand {
        match i.src.get(k) {
            Some(s) => self.src(i, s),
            None => SrcOperand::imm(0),
        }
    }

    /// Source `k` read as a 64-bit value even when the decoder lists one register.
    fn arg64(&mut self, i: &MachineInst, k: usize) -> SrcOperand {
        match i.src.get(k) {
            Some(s) => {
                let s = sass::InstOperand { regs: 2, ..*s };
                self.src(i, &s)
            }
            None => SrcOperand::imm(0),
        }
    }

    /// Word `w` of a source of several registers.
    fn word(&mut self, i: &MachineInst, s: &sass::InstOperand, w: u8) -> SrcOperand {
        let value = match s.value {
            Value::Reg(r) if r.0 != 255 => Value::Reg(sass::Reg(r.0.saturating_add(w))),
            Value::UReg(r) if r.0 != 255 => Value::UReg(sass::UReg(r.0.saturating_add(w))),
            Value::Imm(v) => Value::Imm((v >> (32 * i64::from(w.min(1)))) & 0xffff_ffff),
            Value::Const(c) => Value::Const(sass::ConstRef { offset: c.offset + 4 * i32::from(w), ..c }),
            v => v,
        };
        self.src(i, &sass::InstOperand { value, regs: 1, ..*s })
    }

    /// Emits a 64-bit operation whose result goes to the pair `dst`; carries or predicates may
    /// follow.
    fn emit64(&mut self, i: &MachineInst, op: Op, srcs: &[SrcOperand]) {
        let t = self.f.var(Class::W64);
        self.emit_always(i, op, srcs, &[t]);
        let d = [self.dst(i, 0), self.dst(i, 1)];
        self.emit(i, Op::Unpack, &[SrcOperand::var(t)], &d);
    }
}
