//! The flow of control and the life of registers in one function, as far as native code needs them:
//! which registers hold values that are still wanted where it is left, and how wide values are.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::decode::{self, AtomKind, Kind};
use super::effects::{self, Register};
use sim_exec::operations::operands;
use sim_exec::program::{ArgumentHome, Inst, LaneOp, LaneTy, Pred, Program, ResultUse, Sem, Slot};

/// Bits that the sets of live registers of one function may take.
const MOST_BITS: usize = 1 << 28;

/// Instructions that a block has at most. Regions end between blocks, and code without branches can
/// be longer than a region may be.
const LONGEST: usize = 200;

/// A set of registers: rows, then predicates.
#[derive(Clone, PartialEq, Eq, Default)]
pub(super) struct Registers {
    words: Vec<u64>,
}

impl Registers {
    fn new(bits: usize) -> Self {
        Registers { words: vec![0; bits.div_ceil(64)] }
    }

    fn full(bits: usize) -> Self {
        Registers { words: vec![u64::MAX; bits.div_ceil(64)] }
    }

    pub(super) fn has(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }

    pub(super) fn add(&mut self, at: usize) {
        if let Some(word) = self.words.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    fn remove(&mut self, at: usize) {
        if let Some(word) = self.words.get_mut(at / 64) {
            *word &= !(1 << (at % 64));
        }
    }

    /// Returns true when that changed it.
    pub(super) fn join(&mut self, other: &Registers) -> bool {
        let mut changed = false;
        for (word, &more) in self.words.iter_mut().zip(&other.words) {
            changed |= more & !*word != 0;
            *word |= more;
        }
        changed
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.words
            .iter()
            .enumerate()
            .flat_map(|(at, &word)| (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| at * 64 + bit))
    }
}

/// Instructions that are entered at the first and left behind the last. An instruction that stops
/// native code is a block by itself.
#[derive(Debug, Clone)]
pub(super) struct BasicBlock {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// None: control may go anywhere.
    pub(crate) next: Vec<u32>,
    pub(crate) stop: bool,
}

/// How the values of a row are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueForm {
    Word,
    Double,
    Single,
    LongFloat,
}

/// One function.
pub(super) struct Flow {
    pub(crate) blocks: Vec<BasicBlock>,
    /// BasicBlock that begins at an instruction.
    pub(crate) at: HashMap<u32, usize>,
    live_in: Vec<Registers>,
    pub(crate) rows: u32,
    preds: u32,
    forms: Vec<ValueForm>,
    /// Rows that only ever hold results of arithmetic on singles: a NaN among them may be any NaN
    /// until somebody looks at its bits.
    pub(crate) loose: Registers,
    /// Rows that one instruction gives a constant, and no other anything.
    constants: HashMap<u32, u64>,
}

impl Flow {
    /// The function that an instruction belongs to. None when it is too large.
    pub(super) fn of(program: &Program, pc: u32) -> Option<Flow> {
        let mut start = 0;
        let mut end = program.code.len() as u32;
        let (mut rows, mut preds) = (0, 0);
        for function in &program.functions {
            if program.machine.is_some() {
                (rows, preds) = (rows.max(function.rows), preds.max(function.preds));
            } else if function.entry != u32::MAX && function.entry <= pc && function.entry >= start {
                start = function.entry;
                (rows, preds) = (function.rows, function.preds);
            } else if function.entry != u32::MAX && function.entry > pc {
                end = end.min(function.entry);
            }
        }
        let mut flow = Flow {
            blocks: Vec::new(),
            at: HashMap::new(),
            live_in: Vec::new(),
            rows,
            preds,
            forms: Vec::new(),
            loose: Registers::default(),
            constants: HashMap::new(),
        };
        flow.cut(program, start, end);
        if flow.blocks.len() * flow.bits() > MOST_BITS {
            return None;
        }
        flow.lives(program);
        flow.kinds(program, start, end);
        Some(flow)
    }

    fn bits(&self) -> usize {
        (self.rows + self.preds) as usize
    }

    /// The number of a register in sets.
    pub(super) fn index(&self, register: Register) -> usize {
        match register {
            Register::Row(row) => row as usize,
            Register::Pred(pred) => (self.rows + pred) as usize,
        }
    }

    /// The register of a number.
    pub(super) fn register(&self, index: usize) -> Register {
        match (index as u32).checked_sub(self.rows) {
            None => Register::Row(index as u32),
            Some(pred) => Register::Pred(pred),
        }
    }

    fn cut(&mut self, program: &Program, start: u32, end: u32) {
        let code = &program.code;
        let mut heads = BTreeSet::from([start]);
        for pc in start..end {
            let inst = &code[pc as usize];
            match decode::kind(inst) {
                Kind::Branch => {
                    heads.insert(operands::Branch::of(inst).target());
                    heads.insert(pc + 1);
                }
                Kind::Stop => {
                    heads.insert(pc);
                    heads.extend(decode::continues(program, inst, pc));
                    heads.insert(pc + 1);
                }
                _ => {}
            }
        }
        let mut heads: Vec<u32> = heads.into_iter().filter(|&pc| (start..end).contains(&pc)).collect();
        for at in (0..heads.len()).rev() {
            let tail = heads.get(at + 1).copied().unwrap_or(end);
            heads.splice(at..=at, (heads[at]..tail).step_by(LONGEST));
        }
        for (at, &head) in heads.iter().enumerate() {
            let tail = heads.get(at + 1).copied().unwrap_or(end);
            let last = &code[tail as usize - 1];
            let stop = matches!(decode::kind(last), Kind::Stop);
            let next = match decode::kind(last) {
                Kind::Branch if last.guard == Pred::ALWAYS => vec![operands::Branch::of(last).target()],
                Kind::Branch => vec![operands::Branch::of(last).target(), tail],
                Kind::Stop => decode::continues(program, last, tail - 1),
                _ => vec![tail],
            };
            self.at.insert(head, self.blocks.len());
            self.blocks.push(BasicBlock { start: head, end: tail, next, stop });
        }
    }

    fn live_out(&self, program: &Program, block: &BasicBlock) -> Registers {
        let mut live = Registers::new(self.bits());
        for next in &block.next {
            match self.at.get(next) {
                Some(&next) => {
                    live.join(&self.live_in[next]);
                }
                None => live = Registers::full(self.bits()),
            }
        }
        let last = &program.code[block.end as usize - 1];
        if block.next.is_empty() && program.machine.is_some() && !decode::ends(last) {
            live = Registers::full(self.bits());
        }
        live
    }

    fn before(&self, program: &Program, inst: &Inst, live: &mut Registers) {
        let effects = effects::effects(program, inst);
        if effects.all {
            *live = Registers::full(self.bits());
            return;
        }
        if inst.guard == Pred::ALWAYS {
            effects.writes.iter().for_each(|&register| live.remove(self.index(register)));
        }
        effects.reads.iter().for_each(|&register| live.add(self.index(register)));
    }

    fn lives(&mut self, program: &Program) {
        self.live_in = vec![Registers::new(self.bits()); self.blocks.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for at in (0..self.blocks.len()).rev() {
                let block = &self.blocks[at];
                let mut live = self.live_out(program, block);
                for pc in (block.start..block.end).rev() {
                    self.before(program, &program.code[pc as usize], &mut live);
                }
                changed |= self.live_in[at].join(&live);
            }
        }
    }

    /// Makes a block begin at an instruction.
    pub(super) fn split(&mut self, program: &Program, pc: u32) {
        if self.at.contains_key(&pc) {
            return;
        }
        let Some(live) = self.live_before(program, pc) else { return };
        let Some(block) = self.blocks.iter_mut().find(|block| (block.start..block.end).contains(&pc)) else { return };
        let second = BasicBlock { start: pc, ..block.clone() };
        (block.end, block.next) = (pc, vec![pc]);
        self.at.insert(pc, self.blocks.len());
        self.blocks.push(second);
        self.live_in.push(live);
    }

    /// How many registers there are.
    pub(super) fn registers(&self) -> usize {
        self.bits()
    }

    /// The empty set.
    pub(super) fn none(&self) -> Registers {
        Registers::new(self.bits())
    }

    /// The registers that are live in front of an instruction.
    pub(super) fn live_before(&self, program: &Program, pc: u32) -> Option<Registers> {
        if let Some(live) = self.live_at(pc) {
            return Some(live.clone());
        }
        let block = self.blocks.iter().find(|block| (block.start..block.end).contains(&pc))?;
        let mut live = self.live_out(program, block);
        for at in (pc..block.end).rev() {
            self.before(program, &program.code[at as usize], &mut live);
        }
        Some(live)
    }

    /// The registers that are live where a block begins.
    pub(super) fn live_at(&self, pc: u32) -> Option<&Registers> {
        self.at.get(&pc).map(|&block| &self.live_in[block])
    }

    /// The value of an operand that is the same whenever it is read.
    pub(super) fn constant(&self, program: &Program, slot: Slot) -> Option<u64> {
        constant(program, slot).or_else(|| self.constants.get(&slot.0).copied())
    }

    /// How the values of a row are kept.
    pub(super) fn form(&self, row: u32) -> ValueForm {
        self.forms.get(row as usize).copied().unwrap_or(ValueForm::Double)
    }

    /// Decides how each row is kept: by what is ever written to it, and how it is used.
    fn kinds(&mut self, program: &Program, start: u32, end: u32) {
        let rows = self.rows as usize;
        let mut wide = vec![false; rows];
        let mut votes = vec![0i32; rows];
        let mut loose = vec![true; rows];
        let mut moves: Vec<(u32, u32)> = Vec::new();
        for function in &program.functions {
            for home in function.params.iter().chain(&function.returns) {
                if let ArgumentHome::Row(slot) = home
                    && let Some(wide) = wide.get_mut(slot.0 as usize)
                {
                    *wide = true;
                    loose[slot.0 as usize] = false;
                }
            }
        }
        if let Some(wide) = wide.first_mut() {
            *wide = true;
        }
        let mut seen = HashSet::new();
        let mut varied = HashSet::new();
        for pc in start..end {
            let inst = &program.code[pc as usize];
            let kind = decode::kind_of_warp(inst);
            let effects = effects::effects(program, inst);
            for register in &effects.writes {
                let Register::Row(row) = *register else { continue };
                let at = row as usize;
                if at >= rows {
                    continue;
                }
                if let Kind::Lane(LaneOp { sem: Sem::Move, .. }) = kind
                    && inst.guard == Pred::ALWAYS
                    && !seen.contains(&row)
                    && let Some(value) = constant(program, operands::Lane::of(inst).a())
                {
                    self.constants.insert(row, value);
                } else {
                    varied.insert(row);
                }
                seen.insert(row);
                let (mut is_wide, mut is_loose, mut vote) = (true, false, 0);
                match kind {
                    Kind::Lane(op) if op.outcome == ResultUse::Value => {
                        is_wide = matches!(op.types[3], LaneTy::U64 | LaneTy::I64 | LaneTy::F64);
                        let float = matches!(op.types[3], LaneTy::F32 | LaneTy::F64);
                        vote = if float { 1 } else { -1 };
                        is_loose = op.types[3] == LaneTy::F32 && decode::gives_hardware_nan(&op);
                        match op.sem {
                            Sem::Move | Sem::MoveMasked => {
                                let (source, mask) =
                                    (operands::Lane::of(inst).a(), operands::Lane::of(inst).constant());
                                vote = 0;
                                if let Some(value) = constant(program, source) {
                                    is_wide = value >> 32 != 0;
                                    is_loose = !f32::from_bits(value as u32).is_nan();
                                } else if source.0 & Slot::CONSTANT == 0 && op.sem == Sem::Move {
                                    // As wide as what is moved.
                                    is_wide = false;
                                    is_loose = true;
                                    moves.push((source.0, row));
                                } else if op.sem == Sem::MoveMasked {
                                    is_wide = mask >> 32 != 0;
                                }
                            }
                            _ => {}
                        }
                    }
                    Kind::Lane(_) => {
                        is_wide = operands::Lane::of(inst).constant() >> 32 != 0;
                        vote = -1;
                    }
                    Kind::Select => {
                        is_wide = false;
                        is_loose = true;
                        let i = operands::Select::of(inst);
                        for source in [i.a(), i.b()] {
                            match constant(program, source) {
                                Some(value) => {
                                    is_wide |= value >> 32 != 0;
                                    is_loose &= !f32::from_bits(value as u32).is_nan();
                                }
                                None if source.0 & Slot::CONSTANT != 0 => {
                                    is_wide = true;
                                    is_loose = false;
                                }
                                None => moves.push((source.0, row)),
                            }
                        }
                    }
                    Kind::Load { size, signed } => {
                        is_wide = if signed { operands::Load::of(inst).bits() > 32 } else { size == 8 };
                    }
                    Kind::LoadParam { size, signed } => {
                        is_wide = if signed { operands::LoadParam::of(inst).bits() > 32 } else { size == 8 };
                    }
                    Kind::Atom { size, .. } => is_wide = size == 8,
                    Kind::Add3 => (is_wide, vote) = (false, -1),
                    Kind::WithCarry => {
                        let i = operands::WithCarry::of(inst);
                        is_wide = i.how() >> 6 & 1 != 0 && row == i.d().0;
                    }
                    Kind::Repack => is_wide = operands::Repack::of(inst).into_bits() > 32,
                    Kind::Stop | Kind::Foreign => is_wide = decode::may_be_wide(inst),
                    Kind::Special => is_wide = decode::wide_special(inst),
                    _ => {}
                }
                wide[at] |= is_wide;
                loose[at] &= is_loose;
                votes[at] += vote * 2;
            }
            if let Kind::Lane(op) = kind {
                for (source, ty) in operands::Lane::of(inst).sources().zip(op.types) {
                    if let Some(vote) = votes.get_mut(source.0 as usize) {
                        *vote += if matches!(ty, LaneTy::F32 | LaneTy::F64) {
                            2
                        } else if matches!(op.sem, Sem::Move) {
                            0
                        } else {
                            -2
                        };
                    }
                }
            }
            if let Kind::Atom { kind, .. } = kind
                && let Some(vote) = votes.get_mut(operands::Atomic::of(inst).b().0 as usize)
            {
                *vote += if matches!(kind, AtomKind::AddSingle | AtomKind::AddDouble) { 1 } else { -1 };
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for &(from, to) in &moves {
                let (from, to) = (from as usize, to as usize);
                if from >= rows || to >= rows {
                    continue;
                }
                if wide[from] && !wide[to] {
                    wide[to] = true;
                    changed = true;
                }
                if !loose[from] && loose[to] {
                    loose[to] = false;
                    changed = true;
                }
            }
        }
        for _ in 0..2 {
            for &(from, to) in &moves {
                let (from, to) = (from as usize, to as usize);
                if from < rows && to < rows {
                    if votes[to] == 0 {
                        votes[to] = votes[from].signum();
                    } else if votes[from] == 0 {
                        votes[from] = votes[to].signum();
                    }
                }
            }
        }
        self.forms = (0..rows)
            .map(|at| match (wide[at], votes[at] > 0) {
                (true, false) => ValueForm::Double,
                (true, true) => ValueForm::LongFloat,
                (false, false) => ValueForm::Word,
                (false, true) => ValueForm::Single,
            })
            .collect();
        self.constants.retain(|row, _| !varied.contains(row));
        self.loose = Registers::new(self.bits());
        for (at, &form) in self.forms.iter().enumerate() {
            if loose[at] && form == ValueForm::Single && seen.contains(&(at as u32)) {
                self.loose.add(at);
            }
        }
    }
}

/// The value of a constant that is the same in every launch.
pub(super) fn constant(program: &Program, slot: Slot) -> Option<u64> {
    if slot == Slot::NONE || slot.0 & Slot::CONSTANT == 0 {
        return None;
    }
    let number = slot.0 & !Slot::CONSTANT;
    let filled = program.machine.as_ref().is_some_and(|m| m.launch_words.iter().any(|word| word.constant == number));
    if filled { None } else { program.constants.get(number as usize).map(|row| row.0[0]) }
}
