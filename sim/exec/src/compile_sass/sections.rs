//! The code sections of a kernel: their order, relocations in instructions, targets of jumps.

use device_code::image::cubin::SymbolKind;
use device_code::sass::{INST_BYTES, MachineInst, Value, decode};

use super::families::instruction;
use super::memory::shared_flags;
use super::operands::PREDS;
use super::translation::Translation;
use crate::compile::function::Result;
use crate::interface::CompileError;
use crate::machine_module::code_place;
use crate::operations::build;
use crate::program::{Builtin, CompiledSection, FunctionCode, Pred, Program, SourcePosition};

/// Relocations of an immediate operand by the low word of an address. 0x3e and 0x3f are those of a
/// kernel that another one launches.
const LOW: [u32; 5] = [0x25, 0x38, 0x3b, 0x3e, 0x45];
/// The same by the high word.
const HIGH: [u32; 5] = [0x26, 0x39, 0x3c, 0x3f, 0x46];

impl Translation<'_> {
    /// Compiles the kernel's section and those of device functions.
    pub(super) fn run(mut self) -> Result<Program> {
        let own = self.kernel.section;
        let functions: Vec<usize> = (0..self.module.sections.len())
            .filter(|&at| at != own && self.module.sections[at].executable && !self.has_kernel(at))
            .collect();
        for section in std::iter::once(own).chain(functions.iter().copied()) {
            let polled = shared_flags::polled(self.generation, self.module.data(section));
            self.polled.extend(polled.into_iter().map(|pc| (section, pc)));
        }
        self.compile_section(own)?;
        for section in functions {
            let (code, jumps) = (self.program.code.len(), self.jumps.len());
            if let Err(error) = self.compile_section(section) {
                // One function that cannot be executed leaves the others usable.
                self.program.code.truncate(code);
                self.jumps.truncate(jumps);
                self.machine.sections.push(CompiledSection { number: section, starts: Vec::new(), error: Some(error) });
            }
        }
        for (at, section, offset) in std::mem::take(&mut self.jumps) {
            let found = self.machine.sections.iter().find(|known| known.number == section);
            let target = match found {
                Some(CompiledSection { error: Some(error), .. }) => return Err(error.clone()),
                Some(known) => known.starts.get((offset / INST_BYTES) as usize).copied().unwrap_or(u32::MAX),
                None => u32::MAX,
            };
            if target == u32::MAX {
                return self.wrong(format!("a jump leads to {offset:#x} of section {section}, where no code is"));
            }
            self.program.code[at as usize].lead_to(target);
        }
        let entry = self.machine.sections[0].starts.get((self.kernel.entry / INST_BYTES) as usize).copied();
        let Some(entry) = entry.filter(|&entry| entry != u32::MAX) else { return self.wrong("no code at its entry") };
        self.program.functions[0] = FunctionCode {
            entry,
            rows: self.rows(),
            preds: PREDS,
            local: self.kernel.stack,
            ..FunctionCode::default()
        };
        self.machine.externs = self.externs();
        self.program.machine = Some(Box::new(self.machine));
        Ok(self.program)
    }

    fn has_kernel(&self, section: usize) -> bool {
        self.module.symbols.iter().any(|s| s.section == Some(section) && s.kind == SymbolKind::Kernel)
    }

    fn externs(&self) -> Vec<(u64, String, Option<Builtin>)> {
        let declared =
            self.module.symbols.iter().enumerate().filter(|(_, s)| s.section.is_none() && !s.name.is_empty());
        declared
            .filter_map(|(at, symbol)| {
                let address = self.module.address(at, self.blocks)?;
                Some((address, symbol.name.clone(), Builtin::by_name(&symbol.name)))
            })
            .collect()
    }

    fn compile_section(&mut self, section: usize) -> Result<()> {
        self.section = section;
        let module = self.module;
        let mut starts = Vec::new();
        for (at, chunk) in module.data(section).chunks_exact(INST_BYTES as usize).enumerate() {
            let mut bytes = [0; 16];
            bytes.copy_from_slice(chunk);
            (self.word, self.pc) = (u128::from_le_bytes(bytes), at as u32 * INST_BYTES);
            let mut i = decode(self.generation, self.word, self.pc);
            self.relocate(&mut i)?;
            self.locate();
            starts.push(self.program.code.len() as u32);
            let guard = self.psrc(i.guard);
            self.begin(guard);
            if guard != Pred::NEVER {
                instruction(&i, self)?;
            }
        }
        // Nothing may run past the end.
        self.begin(Pred::ALWAYS);
        self.emit(build::Trap {});
        self.machine.sections.push(CompiledSection { number: section, starts, error: None });
        Ok(())
    }

    /// The opcodes of the section, from an offset on.
    fn opcodes(&self, from: u32) -> impl Iterator<Item = u16> {
        let code = self.module.data(self.section).get(from as usize..).unwrap_or(&[]);
        code.chunks_exact(INST_BYTES as usize).map(|word| u16::from_le_bytes([word[0], word[1]]) & 0xfff)
    }

    /// Whether the section has an instruction with that opcode.
    pub(super) fn has_instruction(&self, opcode: u16) -> bool {
        self.opcodes(0).any(|found| found == opcode)
    }

    /// The opcode of the next instruction.
    pub(super) fn next_opcode(&self) -> u16 {
        self.opcodes(self.pc + INST_BYTES).next().unwrap_or(0)
    }

    /// The source line of the instruction.
    fn locate(&mut self) {
        self.location = u32::MAX;
        if self.module.lines.is_empty() {
            return;
        }
        // From the outermost call inwards.
        let mut caller = None;
        for line in self.module.lines.lines(self.section, self.pc).into_iter().rev() {
            let next = self.program.locations.len() as u32;
            let number = *self.locations.entry((line.file.clone(), line.line, caller)).or_insert(next);
            if number == next {
                self.program.locations.push(SourcePosition { place: (line.file, line.line), caller });
            }
            caller = Some(number);
        }
        self.location = caller.unwrap_or(u32::MAX);
    }

    /// The address that a relocation puts into the instruction, with the relocation's number.
    pub(super) fn linked(&self) -> Option<(u64, u32)> {
        let here = u64::from(self.pc)..u64::from(self.pc + INST_BYTES);
        let reloc = self.module.relocations(self.section).iter().find(|reloc| here.contains(&reloc.offset))?;
        let address = self.module.address(reloc.symbol, self.blocks)?;
        Some((address.wrapping_add_signed(reloc.addend), reloc.kind))
    }

    fn relocate(&self, i: &mut MachineInst) -> Result<()> {
        let Some((address, kind)) = self.linked() else { return Ok(()) };
        let shift = match kind {
            kind if LOW.contains(&kind) => 0,
            kind if HIGH.contains(&kind) => 32,
            // Of a jump: `target_of` asks again.
            _ if i.target.is_some() => return Ok(()),
            kind => {
                return Err(CompileError::UnsupportedMachine {
                    instruction: format!("relocation {kind:#x} of {i}"),
                    function: self.module.function_at(self.section, self.pc).to_owned(),
                    offset: self.pc,
                });
            }
        };
        for source in &mut i.src {
            if let Value::Imm(addend) = source.value {
                source.value = Value::Imm((address.wrapping_add(addend as u64) >> shift & 0xffff_ffff) as i64);
                return Ok(());
            }
        }
        self.wrong("a relocation of an instruction without an immediate operand")
    }

    /// Section and offset that a direct jump or call leads to.
    pub(super) fn target_of(&self, i: &MachineInst) -> Result<(usize, u32)> {
        if let Some((address, _)) = self.linked() {
            return match code_place(address) {
                Some(place) => Ok(place),
                None => self.wrong("a jump to what is no code of the module"),
            };
        }
        match i.target.and_then(|target| u32::try_from(target).ok()) {
            Some(offset) => Ok((self.section, offset)),
            None => self.wrong("a jump out of its section"),
        }
    }

    /// Takes note that the next instruction's `x` is the program counter of a place in the code.
    pub(super) fn jump_to(&mut self, place: (usize, u32)) {
        self.jumps.push((self.program.code.len() as u32, place.0, place.1));
    }
}
