//! One decoded instruction, and the questions that an analysis asks of it.
//!
//! Owns what an instruction reads, writes and jumps to. Operations are in `opcode`, operands in
//! `operand`. Does not know control-flow graphs or values.

use super::opcode::{Opcode, OtherKind};
use super::operand::{AddressSpace, Bank, ConstRef, File, Index, InstOperand, MemOperand, Pred, PredSrc, Run, Value};
use smallvec::SmallVec;

/// Bytes of an instruction, on every supported architecture.
pub const INST_BYTES: u32 = 16;

/// A decoded instruction.
///
/// Operands are in the fixed places that [`Opcode`] documents for each operation. Unused places are
/// empty (`src`, `mem`), PT (`pdst`) or the constant true (`psrc`).
#[derive(Clone, Debug, PartialEq)]
pub struct MachineInst {
    /// Byte offset from the start of the section.
    pub pc: u32,
    /// The low 12 bits of the word: operation and operand form, for messages.
    pub opcode: u16,
    /// The operation, with the modifiers that change its result.
    pub op: Opcode,
    /// It runs on the uniform datapath: destinations are UR and UP.
    pub uniform: bool,
    /// The guard: without it nothing is done. A guarded write keeps the old value where the guard
    /// is false.
    pub guard: PredSrc,
    /// Registers written. For `Opcode::Unknown` this is every register that could be hit.
    pub dst: Option<Run>,
    /// A second run: the other half of LDG.256 and TEX; uniform registers of `Opcode::Unknown`.
    pub dst2: Option<Run>,
    /// Predicates written (PT: none). See also [`MachineInst::pred_writes`] for R2P, which writes
    /// several.
    pub pdst: [Pred; 2],
    /// Source operands.
    pub src: SmallVec<[InstOperand; 3]>,
    /// Constant operand of an instruction whose sources are not decoded otherwise
    /// ([`Opcode::Other`](crate::sass::Opcode::Other)).
    pub constant: Option<ConstRef>,
    /// Predicate sources.
    pub psrc: [PredSrc; 3],
    /// Memory operands. LDGSTS has two: `[0]` is the shared destination, `[1]` the global source;
    /// bulk copies too.
    pub mem: SmallVec<[MemOperand; 1]>,
    /// Target of a direct branch, call, BSSY or collective, as a byte offset in the section
    /// (absolute forms: the raw address, which a relocation fills in). For indirect ones: what is
    /// added to the register.
    pub target: Option<i64>,
}

/// How control leaves an instruction. A condition (guard or predicate sources) applies to all but
/// `Next`: where it is false, control falls through; see [`MachineInst::is_conditional`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To the target.
    Branch(i64),
    /// To a computed address: the value of the operand plus a constant (`BRX`, `JMX`).
    Indirect(Value, i64),
    /// A call; `None` for the target when it is computed. Afterwards the next instruction runs.
    Call(Option<i64>),
    /// Back to the caller.
    Return,
    /// The thread ends.
    Exit,
    /// The thread is killed by an error (BPT trap is not: it may go on).
    Trap,
}

impl MachineInst {
    /// An instruction with no operands, as the decoder starts it.
    pub(super) fn new(pc: u32, opcode: u16, op: Opcode) -> MachineInst {
        MachineInst {
            pc,
            opcode,
            op,
            uniform: false,
            guard: PredSrc::TRUE,
            dst: None,
            dst2: None,
            pdst: [Pred::PT; 2],
            src: SmallVec::new(),
            psrc: [PredSrc::TRUE; 3],
            constant: None,
            mem: SmallVec::new(),
            target: None,
        }
    }

    /// The runs of registers that may be written (dropped results left out).
    pub fn defs(&self) -> impl Iterator<Item = Run> {
        [self.dst, self.dst2].into_iter().flatten().filter(|r| !r.is_dropped())
    }

    /// True when this register may be written. A CALL may write anything; see
    /// [`MachineInst::clobbers_all`].
    #[must_use]
    pub fn may_write(&self, file: File, number: u8) -> bool {
        self.defs().any(|r| r.contains(file, number)) || self.clobbers_all()
    }

    /// The runs of registers that are read, for instructions whose operands are all decoded
    /// ([`MachineInst::is_full`]): sources, address registers, descriptors, indexes. Zero registers
    /// are left out; a run may be named twice.
    pub fn uses(&self) -> impl Iterator<Item = Run> {
        let run = |file, first: u8, count| Run { file, first, count };
        let sources = self.src.iter().flat_map(move |s| match s.value {
            Value::Reg(r) => [Some(run(File::R, r.0, s.regs)), None],
            Value::UReg(r) => [Some(run(File::UR, r.0, s.regs)), None],
            Value::Imm(_) => [None, None],
            Value::Const(c) => {
                let bank = match c.bank {
                    Bank::Bindless(u) => Some(run(File::UR, u.0, 2)),
                    Bank::Number(_) => None,
                };
                let index = match c.index {
                    Index::None => None,
                    Index::Reg(r) => Some(run(File::R, r.0, 1)),
                    Index::UReg(u) => Some(run(File::UR, u.0, 1)),
                };
                [bank, index]
            }
        });
        let memory = self.mem.iter().flat_map(move |m| {
            let pair = |wide| if wide { 2 } else { 1 };
            // Near memory has 32-bit addresses; the uniform term of other memory is a pair.
            let near = matches!(m.space, AddressSpace::Shared | AddressSpace::Local | AddressSpace::RemoteShared);
            [
                Some(run(File::R, m.base.0, pair(m.base64))),
                m.ubase.map(|u| run(File::UR, u.0, pair(!near))),
                m.desc.map(|u| run(File::UR, u.0, 2)),
            ]
        });
        sources.chain(memory.flatten().map(Some)).flatten().filter(|r| !r.is_dropped())
    }

    /// Predicates that are read, as [`MachineInst::pred_writes`] counts them; P2R reads what its
    /// mask says.
    #[must_use]
    pub fn pred_reads(&self) -> (u8, u8) {
        let (mut p, mut up) = (0u8, 0u8);
        if let Opcode::P2r { .. } = self.op {
            let mask = self.src.get(1).and_then(InstOperand::as_imm).map_or(0x7f, |v| v as u8 & 0x7f);
            if self.uniform { up |= mask } else { p |= mask }
        }
        for s in self.psrc.iter().chain([&self.guard]).filter(|s| !s.pred.is_true()) {
            let bit = 1 << s.pred.num;
            if s.pred.uniform { up |= bit } else { p |= bit }
        }
        (p, up)
    }

    /// True when every register and predicate may have another value afterwards (calls).
    #[must_use]
    pub fn clobbers_all(&self) -> bool {
        matches!(self.op, Opcode::Call { .. })
    }

    /// Predicates that may be written: bit n of the first mask for Pn, of the second for UPn.
    #[must_use]
    pub fn pred_writes(&self) -> (u8, u8) {
        if self.clobbers_all() {
            return (0x7f, 0x7f);
        }
        let (mut p, mut up) = (0u8, 0u8);
        match self.op {
            Opcode::R2p { .. } => {
                let mask = match self.src.get(1).map(|s| s.value) {
                    Some(Value::Imm(v)) => v as u8 & 0x7f,
                    _ => 0x7f,
                };
                if self.uniform { up |= mask } else { p |= mask }
            }
            Opcode::Unknown => (p, up) = (0x7f, 0x7f),
            _ => {}
        }
        for d in self.pdst.iter().filter(|d| !d.is_true()) {
            let bit = 1 << d.num;
            if d.uniform { up |= bit } else { p |= bit }
        }
        (p, up)
    }

    /// True when the guard or a predicate source may keep the instruction from doing anything.
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        !self.guard.always()
            || match self.op {
                Opcode::Bra { .. } => !self.psrc[0].always() || !self.psrc[1].always() || !self.src.is_empty(),
                Opcode::Brx | Opcode::Jmp | Opcode::Jmx | Opcode::Call { .. } | Opcode::Ret { .. } | Opcode::Exit => {
                    !self.psrc[0].always()
                }
                Opcode::Other(OtherKind::Kill) => !self.psrc[0].always(),
                _ => false,
            }
    }

    /// Where control goes. BSYNC, BREAK, YIELD, WARPSYNC and BSSY are `Next`: reconvergence adds no
    /// edge (the block behind BSSY's target is reached by BSYNC falling through or by BRA).
    #[must_use]
    pub fn flow(&self) -> Flow {
        match self.op {
            // A collective runs a helper that comes back behind this instruction.
            Opcode::Bra { .. } | Opcode::Jmp => Flow::Branch(self.target.unwrap_or(0)),
            Opcode::Brx | Opcode::Jmx => {
                let v = self.src.first().map_or(Value::Imm(0), |s| s.value);
                Flow::Indirect(v, self.target.unwrap_or(0))
            }
            Opcode::Call { .. } => Flow::Call(if self.src.is_empty() { self.target } else { None }),
            Opcode::Ret { .. } => Flow::Return,
            Opcode::Exit => Flow::Exit,
            Opcode::Other(OtherKind::Kill) => Flow::Trap,
            _ => Flow::Next,
        }
    }

    /// True for instructions whose operands are all decoded; false when only the effects (registers
    /// written) are known.
    #[must_use]
    pub fn is_full(&self) -> bool {
        !matches!(self.op, Opcode::Other(_) | Opcode::Unknown)
    }
}
