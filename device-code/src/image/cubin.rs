//! Cubins: ELF files with one code section per kernel.
//!
//! Owns the reading of kernels, their parameters, constants, symbols and relocations. What the
//! compiler noted about a kernel is read by `nv_info`.

use super::ImageError;
use super::size::has_no_bytes;
use crate::arch::Arch;
use crate::image::nv_info;
use crate::image::nv_info::{Record, attr};
use object::LittleEndian as LE;
use object::elf::{FileHeader64, SHT_REL, SHT_RELA, SHT_SYMTAB};
use object::read::elf::{FileHeader, SectionHeader, SectionTable, Sym};
use std::collections::HashMap;

/// What a kernel states whose calls recur.
const STACK_UNKNOWN: u32 = u32::MAX;

/// A parsed cubin. Borrows the file.
#[derive(Clone, Debug)]
pub struct Cubin<'d> {
    /// The architecture in the ELF header. It has no variant: `sm_90a` reads as `sm_90`.
    pub arch: Arch,
    kernels: Vec<KernelCode<'d>>,
    symbols: Vec<Symbol>,
    sections: Vec<SectionInfo<'d>>,
    relocs: HashMap<usize, Vec<Reloc>>,
}

/// A section of the file.
#[derive(Clone, Debug)]
pub struct SectionInfo<'d> {
    /// Its name, e.g. `.text.kernel`.
    pub name: &'d str,
    /// Its bytes (empty when it has none in the file, like `.nv.shared.*`).
    pub data: &'d [u8],
    /// Its size in memory.
    pub size: u64,
    /// It holds instructions.
    pub executable: bool,
}

/// Where `__constant__` variables are: constant bank 3, shared by all kernels of the file.
const CONSTANTS: &str = ".nv.constant3";

/// What a symbol stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// A kernel.
    Kernel,
    /// A device function inside a code section.
    Function,
    /// A variable: `__device__`, `__constant__`, `__shared__`, a string.
    Object,
    /// Anything else: sections, and names that are defined elsewhere.
    Other,
}

/// A symbol of the file.
#[derive(Clone, Debug)]
pub struct Symbol {
    /// Mangled name.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// Its section's index, or `None` when it is defined elsewhere.
    pub section: Option<usize>,
    /// Byte offset in the section.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// A `__managed__` variable.
    pub managed: bool,
    /// Bytes of its own frame in local memory, of a function or kernel (0 when not stated).
    pub frame_bytes: u32,
}

/// A place that the loader fills in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reloc {
    /// Byte offset in the section.
    pub offset: u64,
    /// Index of the symbol whose address is written.
    pub symbol: usize,
    /// `R_CUDA_*` number.
    pub kind: u32,
    /// Added to the address.
    pub addend: i64,
}

/// A kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// Position, from 0.
    pub ordinal: u16,
    /// Byte offset in the parameter block. Its address in constant bank 0 is
    /// [`KernelCode::param_base`] plus this.
    pub offset: u32,
    /// Bytes.
    pub size: u32,
    /// The compiler says that this is a pointer (sm_100 and later only; false means nothing).
    pub marked_pointer: bool,
}

/// An indirect branch and where it may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchTargets {
    /// Byte offset of the branch.
    pub pc: u32,
    /// Byte offsets of its targets.
    pub targets: Vec<u32>,
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct KernelCode<'d> {
    /// Mangled name.
    pub name: String,
    /// Index of its code section.
    pub section: usize,
    /// The whole code section: the kernel starts at offset `entry`, functions that it calls may
    /// follow.
    pub code: &'d [u8],
    /// Byte offset of the first instruction.
    pub entry: u32,
    /// Parameters by ordinal.
    pub params: Vec<ParamInfo>,
    /// Where the parameters start in constant bank 0.
    pub param_base: u32,
    /// Bytes of all parameters.
    pub param_size: u32,
    /// Registers per thread (0 when not stated).
    pub registers: u32,
    /// Static shared memory in bytes, with the 1 KiB that is reserved for the system from sm_90 on.
    pub shared_bytes: u64,
    /// Local memory of the kernel's own frame in bytes.
    pub frame_bytes: u32,
    /// Local memory for its calls too, in bytes (0 when not stated); `None` when the compiler could
    /// not tell.
    pub stack_bytes: Option<u32>,
    /// Offsets of EXIT instructions.
    pub exits: Vec<u32>,
    /// Indirect branches.
    pub indirect: Vec<BranchTargets>,
    /// Offsets of calls into the driver (`printf`, `malloc`, assertions).
    pub syscalls: Vec<u32>,
    /// Offsets of instructions made by cooperative-group operations.
    pub(crate) coop_group: Vec<u32>,
    /// Required block dimensions.
    pub required_block: Option<[u32; 3]>,
    /// Largest block dimensions that the code allows.
    pub max_block: Option<[u32; 3]>,
    /// Blocks per cluster, when fixed by the code.
    pub cluster: Option<[u32; 3]>,
    /// Names of functions that other modules define (`vprintf`, `__assertfail`).
    pub externs: Vec<String>,
}

/// A constant bank as the file gives it; a loader fills `relocs` in.
#[derive(Clone, Copy, Debug)]
pub struct ConstData<'a, 'd> {
    /// Contents. Bank 0 holds zeros: the driver fills it per launch.
    pub data: &'d [u8],
    /// Places filled in by the loader.
    pub relocs: &'a [Reloc],
}

fn elf_error(e: object::Error) -> ImageError {
    ImageError::Elf(e.to_string())
}

impl<'d> Cubin<'d> {
    /// Reads a cubin's headers, symbols and notes.
    pub fn parse(bytes: &'d [u8]) -> Result<Cubin<'d>, ImageError> {
        let header = FileHeader64::<LE>::parse(bytes).map_err(elf_error)?;
        const EM_CUDA: u16 = 190;
        let machine = header.e_machine.get(LE).0;
        if machine != EM_CUDA {
            return Err(ImageError::Unknown { what: "ELF machine", value: u64::from(machine) });
        }
        let arch = arch_of(header.e_ident.os_abi.0, header.e_ident.abi_version, header.e_flags.get(LE).0)?;
        let table = header.sections(LE, bytes).map_err(elf_error)?;
        let sections = sections(&table, bytes)?;
        let (symbols, relocs) = symbols_and_relocs(&table, bytes)?;
        let mut cubin = Cubin { arch, kernels: Vec::new(), symbols, sections, relocs };
        cubin.kernels = cubin.find_kernels()?;
        cubin.note_frames()?;
        Ok(cubin)
    }

    /// The kernels, in the order of the symbol table.
    #[must_use]
    pub fn kernels(&self) -> &[KernelCode<'d>] {
        &self.kernels
    }

    /// A kernel by its mangled name.
    #[must_use]
    pub fn kernel(&self, name: &str) -> Option<&KernelCode<'d>> {
        self.kernels.iter().find(|k| k.name == name)
    }

    /// All symbols; [`Reloc::symbol`] is an index into this.
    #[must_use]
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// The variables that the program can ask the driver for: `__device__` and `__constant__` ones.
    pub fn variables(&self) -> impl Iterator<Item = &Symbol> {
        self.objects(|section| section.starts_with(".nv.global") || section == CONSTANTS)
    }

    /// The `__constant__` variables: offsets are those in constant bank 3.
    pub fn constants(&self) -> impl Iterator<Item = &Symbol> {
        self.objects(|section| section == CONSTANTS)
    }

    fn objects(&self, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = &Symbol> {
        self.symbols.iter().filter(move |symbol| {
            let section = symbol.section.and_then(|index| self.sections.get(index)).map_or("", |section| section.name);
            symbol.kind == SymbolKind::Object && symbol.size > 0 && wanted(section)
        })
    }

    /// All sections, by index (0 is empty, as in every ELF file).
    #[must_use]
    pub fn sections(&self) -> &[SectionInfo<'d>] {
        &self.sections
    }

    /// Relocations of a section, sorted by offset.
    #[must_use]
    pub fn relocs(&self, section: usize) -> &[Reloc] {
        self.relocs.get(&section).map_or(&[], Vec::as_slice)
    }

    /// Functions and kernels of a code section, sorted by offset.
    #[must_use]
    pub fn functions(&self, section: usize) -> Vec<&Symbol> {
        let mut list: Vec<&Symbol> = self
            .symbols
            .iter()
            .filter(|s| s.section == Some(section) && matches!(s.kind, SymbolKind::Kernel | SymbolKind::Function))
            .collect();
        list.sort_by_key(|s| s.offset);
        list
    }

    /// The function of a code section that holds this offset.
    #[must_use]
    pub fn function_at(&self, section: usize, pc: u32) -> Option<&Symbol> {
        self.symbols
            .iter()
            .filter(|s| s.section == Some(section) && matches!(s.kind, SymbolKind::Kernel | SymbolKind::Function))
            .filter(|s| s.offset <= u64::from(pc) && u64::from(pc) < s.offset.saturating_add(s.size))
            .max_by_key(|s| s.offset)
    }

    /// A constant bank of a kernel: its own section, else the one that all kernels share.
    #[must_use]
    pub fn const_bank(&self, kernel: &KernelCode<'_>, bank: u8) -> Option<ConstData<'_, 'd>> {
        let own = format!(".nv.constant{bank}.{}", kernel.name);
        let shared = format!(".nv.constant{bank}");
        let index = self
            .sections
            .iter()
            .position(|s| s.name == own)
            .or_else(|| self.sections.iter().position(|s| s.name == shared))?;
        Some(ConstData { data: self.sections[index].data, relocs: self.relocs(index) })
    }

    /// The symbol whose address the loader writes at this offset of a constant bank.
    #[must_use]
    pub fn const_symbol(&self, kernel: &KernelCode<'_>, bank: u8, offset: u32) -> Option<(&Symbol, i64)> {
        let data = self.const_bank(kernel, bank)?;
        let r = data.relocs.iter().find(|r| r.offset == u64::from(offset))?;
        Some((self.symbols.get(r.symbol)?, r.addend))
    }

    fn find_kernels(&self) -> Result<Vec<KernelCode<'d>>, ImageError> {
        let by_name: HashMap<&str, usize> = self.sections.iter().enumerate().map(|(n, s)| (s.name, n)).collect();
        let shared_info = match by_name.get(".nv.info") {
            Some(&n) => read_info(".nv.info", self.sections[n].data)?,
            None => Vec::new(),
        };
        let mut kernels = Vec::new();
        for (index, symbol) in self.symbols.iter().enumerate() {
            let (SymbolKind::Kernel, Some(section)) = (symbol.kind, symbol.section) else { continue };
            let name = format!(".nv.info.{}", symbol.name);
            let own = match by_name.get(name.as_str()) {
                Some(&n) => read_info(&name, self.sections[n].data)?,
                None => Vec::new(),
            };
            let shared = by_name.get(format!(".nv.shared.{}", symbol.name).as_str());
            let base = self.arch.generation().map_or(0, |g| g.param_base());
            let mut k = KernelCode {
                name: symbol.name.clone(),
                section,
                code: self.sections[section].data,
                entry: u32::try_from(symbol.offset).unwrap_or(u32::MAX),
                params: Vec::new(),
                param_base: base,
                param_size: 0,
                registers: 0,
                shared_bytes: shared.map_or(0, |&n| self.sections[n].size),
                frame_bytes: 0,
                stack_bytes: Some(0),
                exits: Vec::new(),
                indirect: Vec::new(),
                syscalls: Vec::new(),
                coop_group: Vec::new(),
                required_block: None,
                max_block: None,
                cluster: None,
                externs: Vec::new(),
            };
            for r in shared_info.iter().filter(|r| r.word(0) == Some(index as u32)) {
                match r.attribute {
                    attr::REGCOUNT => k.registers = r.word(1).unwrap_or(0),
                    attr::FRAME_SIZE => k.frame_bytes = r.word(1).unwrap_or(0),
                    attr::MIN_STACK_SIZE => k.stack_bytes = r.word(1).filter(|&bytes| bytes != STACK_UNKNOWN),
                    _ => {}
                }
            }
            for r in &own {
                self.note(&mut k, r);
            }
            k.params.sort_by_key(|p| p.ordinal);
            kernels.push(k);
        }
        Ok(kernels)
    }

    /// Takes the sizes of frames into the symbols of functions.
    fn note_frames(&mut self) -> Result<(), ImageError> {
        let Some(section) = self.sections.iter().find(|section| section.name == ".nv.info") else { return Ok(()) };
        for record in read_info(".nv.info", section.data)?.iter().filter(|r| r.attribute == attr::FRAME_SIZE) {
            let symbol = record.word(0).and_then(|index| self.symbols.get_mut(index as usize));
            if let (Some(symbol), Some(bytes)) = (symbol, record.word(1)) {
                symbol.frame_bytes = bytes;
            }
        }
        Ok(())
    }

    /// Takes one record into the kernel's description.
    fn note(&self, k: &mut KernelCode<'d>, r: &Record<'_>) {
        let three = || Some([r.word(0)?, r.word(1)?, r.word(2)?]);
        match r.attribute {
            attr::KPARAM_INFO | attr::KPARAM_INFO_V2 => k.params.extend(r.param()),
            attr::PARAM_CBANK => {
                if let Some(w) = r.word(1) {
                    (k.param_base, k.param_size) = (w & 0xffff, w >> 16);
                }
            }
            attr::CBANK_PARAM_SIZE => k.param_size = u32::from(r.value),
            attr::REGCOUNT => k.registers = r.word(1).unwrap_or(k.registers),
            attr::EXIT_INSTR_OFFSETS => k.exits = r.words().collect(),
            attr::INDIRECT_BRANCH_TARGETS => k.indirect.extend(r.branch_targets()),
            attr::SYSCALL_OFFSETS => k.syscalls = r.words().collect(),
            attr::COOP_GROUP_INSTR_OFFSETS => k.coop_group = r.words().collect(),
            attr::REQNTID => k.required_block = three(),
            attr::MAX_THREADS => k.max_block = three(),
            attr::CTA_PER_CLUSTER | attr::EXPLICIT_CLUSTER if r.data.len() >= 12 => k.cluster = three(),
            attr::EXTERNS => {
                k.externs = r.words().filter_map(|n| Some(self.symbols.get(n as usize)?.name.clone())).collect();
            }
            _ => {}
        }
    }
}

fn read_info<'d>(name: &str, data: &'d [u8]) -> Result<Vec<Record<'d>>, ImageError> {
    nv_info::records(data).map_err(|at| ImageError::Elf(format!("{name} has a damaged record at {at:#x}")))
}

/// The architecture in the ELF header: ABI 0x41/8 keeps it in bits 8..24 of the flags, the older
/// 0x33/7 in bits 0..8.
fn arch_of(os_abi: u8, version: u8, flags: u32) -> Result<Arch, ImageError> {
    let sm = match (os_abi, version) {
        (0x41, _) => flags >> 8 & 0xffff,
        (0x33, _) => flags & 0xff,
        _ => return Err(ImageError::Unknown { what: "cubin ABI", value: u64::from(os_abi) << 8 | u64::from(version) }),
    };
    Ok(Arch::new(sm as u16))
}

fn sections<'d>(
    table: &SectionTable<'d, FileHeader64<LE>>,
    bytes: &'d [u8],
) -> Result<Vec<SectionInfo<'d>>, ImageError> {
    const SHF_EXECINSTR: u64 = 4;
    table
        .iter()
        .map(|s| {
            let name = table.section_name(LE, s).map_err(elf_error)?;
            let data = if has_no_bytes(s.sh_type.get(LE).0) { &[] } else { s.data(LE, bytes).map_err(elf_error)? };
            Ok(SectionInfo {
                name: std::str::from_utf8(name).map_err(|_| ImageError::Elf("a section name is not text".into()))?,
                data,
                size: s.sh_size.get(LE),
                executable: s.sh_flags.get(LE).0 & SHF_EXECINSTR != 0 && s.sh_type.get(LE).0 == 1,
            })
        })
        .collect()
}

type SymbolsAndRelocs = (Vec<Symbol>, HashMap<usize, Vec<Reloc>>);

fn symbols_and_relocs<'d>(
    table: &SectionTable<'d, FileHeader64<LE>>,
    bytes: &'d [u8],
) -> Result<SymbolsAndRelocs, ImageError> {
    const STO_ENTRY: u8 = 0x10;
    const STO_MANAGED: u8 = 0x4;
    const STT_OBJECT: u8 = 1;
    const STT_FUNC: u8 = 2;
    let elf_symbols = table.symbols(LE, bytes, SHT_SYMTAB).map_err(elf_error)?;
    let mut symbols = Vec::with_capacity(elf_symbols.len());
    for s in elf_symbols.iter() {
        let name = s.name(LE, elf_symbols.strings()).map_err(elf_error)?;
        let section = usize::from(s.st_shndx.get(LE).0);
        let section = (section != 0 && section < table.len()).then_some(section);
        symbols.push(Symbol {
            name: String::from_utf8_lossy(name).into_owned(),
            kind: match s.st_type().0 {
                STT_FUNC if s.st_other.0 & STO_ENTRY != 0 => SymbolKind::Kernel,
                STT_FUNC => SymbolKind::Function,
                STT_OBJECT => SymbolKind::Object,
                _ => SymbolKind::Other,
            },
            section,
            offset: s.st_value.get(LE),
            size: s.st_size.get(LE),
            managed: s.st_type().0 == STT_OBJECT && s.st_other.0 & STO_MANAGED != 0,
            frame_bytes: 0,
        });
    }
    let mut relocs: HashMap<usize, Vec<Reloc>> = HashMap::new();
    for s in table.iter() {
        let with_addend = match s.sh_type.get(LE) {
            SHT_RELA => true,
            SHT_REL => false,
            _ => continue,
        };
        let data = s.data(LE, bytes).map_err(elf_error)?;
        let target = s.sh_info.get(LE) as usize;
        let list = relocs.entry(target).or_default();
        for r in data.chunks_exact(if with_addend { 24 } else { 16 }) {
            let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| r[at + n]));
            let info = word(8);
            list.push(Reloc {
                offset: word(0),
                symbol: (info >> 32) as usize,
                kind: info as u32,
                addend: if with_addend { word(16) as i64 } else { 0 },
            });
        }
    }
    for list in relocs.values_mut() {
        list.sort_by_key(|r| r.offset);
    }
    Ok((symbols, relocs))
}
