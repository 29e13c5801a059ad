//! A cubin as the interpreter keeps it: sections, symbols, relocations and kernels, owned; and
//! where its parts are in the address space.
//!
//! Owns the layout: variables are placed section by section as the compiler laid them out (managed
//! ones apart), code sections get addresses where no memory can be, and so do functions that are
//! defined nowhere. Does not decode instructions (`compile_sass`).

use std::collections::HashMap;
use std::ops::Range;

use device_code::arch::Arch;
use device_code::image::cubin::{KernelCode, Reloc, Symbol, SymbolKind};
use device_code::image::{Cubin, ImageError};
use device_code::line_table::LineTable;

use crate::compile::layout::SharedVariable;
use crate::interface::ParamInfo;
use crate::program::{Builtin, Program};

/// Code addresses begin here: each section has 4 GiB of them. Function pointers of PTX lie below.
const CODE: u64 = 0x00f1_0000_0000_0000;
/// Generic addresses of shared memory. Compilers put their high word before a 32-bit address.
pub const SHARED_WINDOW: u64 = 0x00f2_0000_0000_0000;
/// Generic addresses of local memory.
pub(crate) const LOCAL_WINDOW: u64 = 0x00f3_0000_0000_0000;
/// Functions that the module only declares.
const EXTERNS: u64 = 0x00f4_0000_0000_0000;
/// A section of code or constants has its bytes in the file; one that has none must not claim more.
/// (A constant bank has 64 KiB.)
const LARGEST_WITHOUT_BYTES: u64 = 1 << 20;
/// Of a relocation's number: an address of 64 bits; the last is that of a function.
const ADDRESS_64: [u32; 3] = [2, 4, 35];
/// An address of 32 bits.
const ADDRESS_32: [u32; 2] = [1, 3];

/// A section of the module.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) name: String,
    bytes: Range<usize>,
    pub(crate) size: u64,
    pub(crate) executable: bool,
}

/// What the compiler noted about a kernel.
#[derive(Debug, Clone)]
pub struct MachineKernel {
    /// Mangled name.
    pub name: String,
    /// Its parameters in order.
    pub params: Vec<ParamInfo>,
    /// Static shared memory in bytes.
    pub shared: u32,
    /// Largest (or the required) block.
    pub max_threads: Option<[u32; 3]>,
    /// Blocks of a cluster that the code requires.
    pub cluster: Option<[u32; 3]>,
    pub(crate) section: usize,
    pub(crate) entry: u32,
    /// Registers of a thread at the start.
    pub(crate) registers: u32,
    pub(crate) stack: u32,
    pub(crate) is_stack_known: bool,
    pub(crate) param_base: u32,
    pub(crate) param_size: u32,
}

/// Memory that a module needs when it is loaded.
#[derive(Debug, Clone)]
pub struct MachineBlock {
    /// Bytes.
    pub size: u64,
    /// The host may use it too.
    pub managed: bool,
    section: usize,
    start: u64,
}

/// Where a variable is: in which block, at which offset.
#[derive(Debug, Clone)]
pub struct MachineVariable {
    /// Its mangled name.
    pub name: String,
    /// Index into [`MachineModule::blocks`].
    pub block: usize,
    /// Bytes from the start of the block.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// Machine code of a module.
pub struct MachineModule {
    /// What it was compiled for.
    pub arch: Arch,
    bytes: Box<[u8]>,
    pub(crate) sections: Vec<Section>,
    pub(crate) symbols: Vec<Symbol>,
    relocs: HashMap<usize, Vec<Reloc>>,
    kernels: Vec<MachineKernel>,
    blocks: Vec<MachineBlock>,
    pub(crate) lines: LineTable,
}

impl std::fmt::Debug for MachineModule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MachineModule").field("arch", &self.arch).field("kernels", &self.kernels.len()).finish()
    }
}

impl MachineModule {
    /// Reads a cubin.
    ///
    /// # Errors
    /// [`ImageError`] when it is damaged.
    pub fn parse(bytes: Vec<u8>) -> Result<MachineModule, ImageError> {
        let bytes = bytes.into_boxed_slice();
        let cubin = Cubin::parse(&bytes)?;
        let start = bytes.as_ptr() as usize;
        let sections: Vec<Section> = cubin
            .sections()
            .iter()
            .map(|section| {
                let from = (section.data.as_ptr() as usize).wrapping_sub(start);
                let empty = section.data.is_empty();
                Section {
                    name: section.name.to_owned(),
                    bytes: if empty { 0..0 } else { from..from + section.data.len() },
                    size: section.size,
                    executable: section.executable,
                }
            })
            .collect();
        let relocs = (0..sections.len())
            .filter(|&at| !cubin.relocs(at).is_empty())
            .map(|at| (at, cubin.relocs(at).to_vec()))
            .collect();
        let mut module = MachineModule {
            arch: cubin.arch,
            kernels: cubin.kernels().iter().map(kernel).collect(),
            symbols: cubin.symbols().iter().map(symbol).collect(),
            lines: LineTable::of(&cubin),
            sections,
            relocs,
            blocks: Vec::new(),
            bytes: Box::default(),
        };
        module.bytes = bytes;
        module.place();
        module.check_sizes()?;
        Ok(module)
    }

    /// The kernels, in the order of the symbol table.
    pub fn kernels(&self) -> &[MachineKernel] {
        &self.kernels
    }

    /// A kernel by its mangled name.
    pub fn kernel(&self, name: &str) -> Option<&MachineKernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// The kernel that an address of code is the entry of.
    pub fn kernel_at(&self, address: u64) -> Option<&MachineKernel> {
        let place = code_place(address)?;
        self.kernels.iter().find(|kernel| (kernel.section, kernel.entry) == place)
    }

    /// The memory that its variables need: to be allocated in this order.
    pub fn blocks(&self) -> &[MachineBlock] {
        &self.blocks
    }

    /// Bytes of `__constant__` variables.
    pub fn constant_bytes(&self) -> u64 {
        self.sections
            .iter()
            .filter(|section| section.name == ".nv.constant3")
            .fold(0, |all, section| section.size.saturating_add(all))
    }

    /// The variables that a program can ask for by name.
    pub fn variables(&self) -> Vec<MachineVariable> {
        let objects = self.symbols.iter().filter(|s| s.kind == SymbolKind::Object && s.size > 0);
        objects
            .filter_map(|symbol| {
                let (block, offset) = self.place_of(symbol)?;
                Some(MachineVariable { name: symbol.name.clone(), block, offset, size: symbol.size })
            })
            .collect()
    }

    fn place(&mut self) {
        for (section, info) in self.sections.iter().enumerate() {
            if info.size > 0 && (info.name.starts_with(".nv.global") || info.name == ".nv.constant3") {
                self.blocks.push(MachineBlock { size: info.size, managed: false, section, start: 0 });
            }
        }
        for symbol in &self.symbols {
            if let (true, Some(section)) = (symbol.managed, symbol.section) {
                let size = symbol.size.max(1);
                self.blocks.push(MachineBlock { size, managed: true, section, start: symbol.offset });
            }
        }
    }

    /// Refuses sizes that no compiler writes: memory is allocated by what they say.
    fn check_sizes(&self) -> Result<(), ImageError> {
        for (at, section) in self.sections.iter().enumerate() {
            let is_code = section.executable || section.name.starts_with(".nv.constant");
            if is_code && section.size > self.data(at).len() as u64 && section.size > LARGEST_WITHOUT_BYTES {
                return Err(ImageError::TooLarge(section.size));
            }
        }
        for symbol in self.symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Object) {
            let Some((block, offset)) = self.place_of(symbol) else { continue };
            let end = symbol.offset.checked_add(symbol.size);
            let size = self.sections.get(self.blocks[block].section).map_or(0, |section| section.size);
            if offset > size || end.is_none_or(|end| end > size) {
                return Err(ImageError::Elf(format!("variable `{}` lies outside its section", symbol.name)));
            }
        }
        Ok(())
    }

    fn place_of(&self, symbol: &Symbol) -> Option<(usize, u64)> {
        let section = symbol.section?;
        let here = |block: &MachineBlock| {
            block.section == section
                && block.managed == symbol.managed
                && (!block.managed || block.start == symbol.offset)
        };
        let block = self.blocks.iter().position(here)?;
        Some((block, symbol.offset - self.blocks[block].start))
    }

    /// The bytes of a section in the file; empty for those that have none.
    pub(crate) fn data(&self, section: usize) -> &[u8] {
        self.sections.get(section).and_then(|section| self.bytes.get(section.bytes.clone())).unwrap_or(&[])
    }

    pub(crate) fn relocations(&self, section: usize) -> &[Reloc] {
        self.relocs.get(&section).map_or(&[], Vec::as_slice)
    }

    /// The section of a kernel's constant bank, or of the one that all kernels share.
    pub(crate) fn bank(&self, kernel: &str, bank: u8) -> Option<usize> {
        let own = format!(".nv.constant{bank}.{kernel}");
        let shared = format!(".nv.constant{bank}");
        let named = |name: &str| self.sections.iter().position(|section| section.name == name);
        named(&own).or_else(|| named(&shared))
    }

    /// The address that a symbol stands for, when the blocks are at `blocks`.
    pub(crate) fn address(&self, symbol: usize, blocks: &[u64]) -> Option<u64> {
        let found = self.symbols.get(symbol)?;
        let Some(section) = found.section else {
            return Some(EXTERNS + symbol as u64 * 16);
        };
        let info = self.sections.get(section)?;
        if info.executable {
            return Some(code_address(section, found.offset));
        }
        if info.name.starts_with(".nv.shared") {
            return Some(found.offset);
        }
        let (block, offset) = self.place_of(found)?;
        Some(blocks.get(block)? + offset)
    }

    /// A section's bytes with all addresses filled in.
    ///
    /// # Errors
    /// What stands in the way, as text.
    pub(crate) fn relocated(&self, section: usize, blocks: &[u64]) -> Result<Vec<u8>, String> {
        let mut bytes = self.data(section).to_vec();
        bytes.resize(self.sections.get(section).map_or(0, |info| info.size as usize), 0);
        for reloc in self.relocations(section) {
            let name = self.symbols.get(reloc.symbol).map_or("", |symbol| symbol.name.as_str());
            let address = self
                .address(reloc.symbol, blocks)
                .ok_or_else(|| format!("symbol `{name}` is in no section that is loaded"))?
                .wrapping_add_signed(reloc.addend);
            let width = match reloc.kind {
                kind if ADDRESS_64.contains(&kind) => 8,
                kind if ADDRESS_32.contains(&kind) => 4,
                kind => return Err(format!("relocation {kind} of `{name}` is not known")),
            };
            let at = reloc.offset as usize;
            let place = at.checked_add(width).and_then(|end| bytes.get_mut(at..end));
            let Some(place) = place else {
                return Err(format!("relocation of `{name}` is outside its section"));
            };
            let mut old = [0; 8];
            old[..width].copy_from_slice(place);
            let value = address.wrapping_add(u64::from_le_bytes(old));
            place.copy_from_slice(&value.to_le_bytes()[..width]);
        }
        Ok(bytes)
    }

    /// What each block holds at first.
    ///
    /// # Errors
    /// What stands in the way, as text.
    pub fn initial(&self, blocks: &[u64]) -> Result<Vec<Vec<u8>>, String> {
        let mut out = Vec::new();
        for block in &self.blocks {
            let bytes = self.relocated(block.section, blocks)?;
            let start = (block.start as usize).min(bytes.len());
            out.push(bytes[start..start.saturating_add(block.size as usize).min(bytes.len())].to_vec());
        }
        Ok(out)
    }

    /// The symbol that is declared only, of an address that stands for one.
    pub(crate) fn declared(&self, address: u64) -> Option<&Symbol> {
        let offset = address.checked_sub(EXTERNS)?;
        self.symbols.get((offset / 16) as usize).filter(|symbol| symbol.section.is_none())
    }

    /// The static shared variables of a kernel that the symbol table names.
    pub fn shared_variables(&self, kernel: &str) -> Vec<SharedVariable> {
        let name = format!(".nv.shared.{kernel}");
        let Some(section) = self.sections.iter().position(|section| section.name == name) else { return Vec::new() };
        let variables = self.symbols.iter().filter(|s| s.section == Some(section) && s.kind == SymbolKind::Object);
        let variable = |s: &Symbol| SharedVariable { name: s.name.clone(), offset: s.offset, size: s.size };
        variables.map(variable).collect()
    }

    /// The name of the kernel or function that the instruction of a compiled kernel is in.
    pub fn function_of(&self, program: &Program, pc: u32) -> &str {
        program.function_of(pc).map_or("?", |section| self.function_at(section, program.line(pc)))
    }

    /// The kernel or function at a place of a section, for messages.
    pub(crate) fn function_at(&self, section: usize, offset: u32) -> &str {
        let code =
            |s: &&Symbol| s.section == Some(section) && matches!(s.kind, SymbolKind::Kernel | SymbolKind::Function);
        let before = self.symbols.iter().filter(code).filter(|symbol| symbol.offset <= u64::from(offset));
        before.max_by_key(|symbol| symbol.offset).map_or("?", |symbol| symbol.name.as_str())
    }
}

/// The address of an instruction.
pub(crate) fn code_address(section: usize, offset: u64) -> u64 {
    CODE + ((section as u64) << 32) + (offset & 0xffff_ffff)
}

/// Section and offset of an address of code.
pub(crate) fn code_place(address: u64) -> Option<(usize, u32)> {
    let offset = address.checked_sub(CODE)?;
    (address < SHARED_WINDOW).then_some(((offset >> 32) as usize, offset as u32))
}

/// A symbol; a function that the interpreter provides counts as defined elsewhere, though the
/// device runtime's library was linked in.
fn symbol(found: &Symbol) -> Symbol {
    let provided = found.kind == SymbolKind::Function && Builtin::replaces(&found.name);
    Symbol { section: found.section.filter(|_| !provided), ..found.clone() }
}

fn kernel(code: &KernelCode<'_>) -> MachineKernel {
    let params = code.params.iter().map(|param| ParamInfo { offset: param.offset, size: param.size, align: 1 });
    MachineKernel {
        name: code.name.clone(),
        params: params.collect(),
        shared: u32::try_from(code.shared_bytes).unwrap_or(u32::MAX),
        max_threads: code.required_block.or(code.max_block),
        cluster: code.cluster,
        section: code.section,
        entry: code.entry,
        stack: code.stack_bytes.unwrap_or(0).max(code.frame_bytes),
        is_stack_known: code.stack_bytes.is_some(),
        registers: code.registers,
        param_base: code.param_base,
        param_size: code.param_size,
    }
}

impl MachineBlock {
    /// True for the block of all variables of a section that are not managed.
    pub(crate) fn is_section(&self, section: usize) -> bool {
        self.section == section && !self.managed
    }
}
