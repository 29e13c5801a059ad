//! The code of one image for one device: kernels by name, summarised when first asked for.
//!
//! Owns the way from a container (`image`) by a front end (`sass`, `ptx`) and a lowering to a
//! [`Summary`], with the cache in between. Thread-safe. Does not know what instructions mean.

use crate::code_bytes::CodeBytes;
use crate::ir::cfg::Cfg;
use crate::ir::{Callees, KernelIr, Reason, system_fences};
use crate::launch_invariant;
use crate::lower_ptx;
use crate::lower_sass::{self, Code, Links, SassLowerError, known_call};
use crate::promised::Promised;
use crate::summary::Summary;
use crate::summary_cache;
use crate::summary_cache::{Cache, EntryKey, ResultsEntry};
use device_code::arch::{Arch, Generation};
use device_code::image::cubin::{KernelCode, Symbol, SymbolKind};
use device_code::image::{CodeRef, Cubin, Image, ImageError};
use device_code::line_table::{LineTable, SourceLine};
use device_code::sass::{self, AddressSpace, MemOperand};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

/// An image could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Container damaged or unknown.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// Nothing in the image runs on the device.
    #[error("no code for {0} in this image")]
    NoCode(Arch),
    /// PTX text that does not parse.
    #[error("PTX: {0}")]
    Ptx(#[from] device_code::ptx::ParseError),
    /// PTX texts that do not link.
    #[error("linking: {0}")]
    Link(#[from] device_code::ptx::LinkError),
}

/// A kernel could not be summarised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SummaryError {
    /// No such kernel in this image.
    #[error("no kernel named {0}")]
    NoKernel(String),
    /// The architecture has no decoder.
    #[error("no decoder for {0}")]
    NoDecoder(Arch),
    /// Lowering gave up.
    #[error(transparent)]
    Lower(#[from] SassLowerError),
    /// Lowering PTX gave up.
    #[error(transparent)]
    Ptx(#[from] lower_ptx::PtxLowerError),
}

/// Instructions up to which a kernel is analysed on the caller's stack.
const SMALL_KERNEL: usize = 250;

/// Instructions from which on a summary is kept on disk: smaller kernels are analysed in the time
/// that it takes to find a file.
const WORTH_KEEPING: usize = 100;

type Slot = Arc<Promised<Result<Arc<Summary>, SummaryError>>>;

enum Unpacked {
    Cubin(CodeBytes),
    Ptx(Box<device_code::ptx::Module>),
}

/// Kernels of one image.
pub struct CodeImage {
    arch: Arch,
    code: Unpacked,
    /// Names of kernels, and how many instructions each has by itself.
    names: Vec<(String, usize)>,
    cache: Option<Arc<Cache>>,
    /// What the cache knows the code by.
    content: OnceLock<u128>,
    /// See [`callees`].
    callees: OnceLock<Callees>,
    slots: Mutex<BTreeMap<String, Slot>>,
    hash: OnceLock<u64>,
    lines: OnceLock<LineTable>,
}

impl std::fmt::Debug for CodeImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CodeImage").field("arch", &self.arch).field("kernels", &self.names.len()).finish()
    }
}

impl CodeImage {
    /// Takes what the driver would run on `arch` out of a fatbin, cubin or PTX text.
    ///
    /// # Errors
    ///
    /// [`LoadError`] for damaged images and images without code for the device.
    pub fn load(bytes: &[u8], arch: Arch) -> Result<CodeImage, LoadError> {
        let image = Image::parse(bytes)?;
        let code = image.select(arch)?.ok_or(LoadError::NoCode(arch))?;
        Self::from_code(code, arch)
    }

    /// As [`CodeImage::load`]. A cubin that is not compressed stays where it is.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn load_shared(bytes: &CodeBytes, arch: Arch) -> Result<CodeImage, LoadError> {
        let image = Image::parse(bytes)?;
        let code = image.select(arch)?.ok_or(LoadError::NoCode(arch))?;
        Self::of(code, arch, |cubin| bytes.part(cubin))
    }

    /// Links the PTX of several images, as a driver does with separately compiled code when nothing
    /// that was linked before runs on the device. Images without PTX for it are left out.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when none has any, when one is damaged, and when they do not fit together.
    pub fn link(images: &[Image<'_>], arch: Arch) -> Result<String, LoadError> {
        let mut texts = Vec::new();
        for image in images {
            if let Some(CodeRef::Ptx(text)) = image.select_ptx(arch)? {
                texts.push(text.into_owned());
            }
        }
        if texts.is_empty() {
            return Err(LoadError::NoCode(arch));
        }
        Ok(device_code::ptx::link(&texts.iter().map(String::as_str).collect::<Vec<_>>())?)
    }

    /// Takes one unpacked piece of code.
    ///
    /// # Errors
    ///
    /// [`LoadError`] when it is damaged.
    pub fn from_code(code: CodeRef<'_>, arch: Arch) -> Result<CodeImage, LoadError> {
        Self::of(code, arch, |cubin| cubin.to_vec().into())
    }

    /// `keep` keeps the bytes of a cubin that are not its own.
    fn of(code: CodeRef<'_>, arch: Arch, keep: impl FnOnce(&[u8]) -> CodeBytes) -> Result<CodeImage, LoadError> {
        let (hash, content) = (OnceLock::new(), OnceLock::new());
        let (code, names, arch) = match code {
            CodeRef::Cubin(bytes) => {
                let cubin = Cubin::parse(&bytes)?;
                let names = cubin
                    .kernels()
                    .iter()
                    .map(|k| (k.name.clone(), k.code.len() / sass::INST_BYTES as usize))
                    .collect();
                let arch = cubin.arch;
                let bytes = match bytes {
                    Cow::Borrowed(bytes) => keep(bytes),
                    Cow::Owned(bytes) => bytes.into(),
                };
                (Unpacked::Cubin(bytes), names, arch)
            }
            CodeRef::Ptx(text) => {
                let module = device_code::ptx::parse(&text)?;
                let names = lower_ptx::kernel_sizes(&module).map(|(n, size)| (n.to_owned(), size)).collect();
                // Now, for the text is not kept.
                let _ = hash.set(hash_of(text.as_bytes()));
                let _ = content.set(summary_cache::hash(text.as_bytes()));
                (Unpacked::Ptx(Box::new(module)), names, arch)
            }
        };
        let (slots, lines) = (Mutex::new(BTreeMap::new()), OnceLock::new());
        let callees = OnceLock::new();
        Ok(CodeImage { arch, code, names, cache: None, content, callees, slots, hash, lines })
    }

    /// The same, but summaries are looked up in a cache first, and kept there.
    #[must_use]
    pub fn with_cache(self, cache: Option<Arc<Cache>>) -> CodeImage {
        CodeImage { cache, ..self }
    }

    /// Mangled names of the kernels.
    pub fn kernel_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.names.iter().map(|n| n.0.as_str())
    }

    /// A hash of the whole code (of all kernels of the image). Files depend on it: it does not
    /// change between versions of this crate.
    #[must_use]
    pub fn hash(&self) -> u64 {
        *self.hash.get_or_init(|| match &self.code {
            Unpacked::Cubin(bytes) => hash_of(bytes),
            // Set when it was loaded.
            Unpacked::Ptx(_) => 0,
        })
    }

    /// Whether the code is PTX, not machine code.
    #[must_use]
    pub fn is_ptx(&self) -> bool {
        matches!(self.code, Unpacked::Ptx(_))
    }

    /// The summary of a kernel, made when first asked for.
    ///
    /// # Errors
    ///
    /// [`SummaryError`]; the same for every later call with that name.
    pub fn summary(&self, name: &str) -> Result<Arc<Summary>, SummaryError> {
        let Some((_, size)) = self.names.iter().find(|n| n.0 == name) else {
            return Err(SummaryError::NoKernel(name.to_owned()));
        };
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            slots.entry(name.to_owned()).or_default().clone()
        };
        slot.get_or_make(|| self.find(name, *size, &slot).map(Arc::new))
    }

    /// The source lines of an instruction of a kernel, as accesses and gaps name it (`at`): its
    /// own, then those of the calls that were inlined, outwards. Empty when the code has no line
    /// table (`nvcc -lineinfo`) or the instruction no line.
    #[must_use]
    pub fn lines(&self, kernel: &str, at: u32) -> Vec<SourceLine> {
        match &self.code {
            Unpacked::Cubin(bytes) => {
                let Ok(cubin) = Cubin::parse(bytes) else { return Vec::new() };
                let Some(kernel) = cubin.kernel(kernel) else { return Vec::new() };
                let parts = called_sections(&cubin, kernel);
                let Some(part) = parts.iter().rev().find(|part| part.base <= at) else { return Vec::new() };
                self.lines.get_or_init(|| LineTable::of(&cubin)).lines(part.section, at - part.base)
            }
            // Lines of the text are unique, whichever function an access was inlined from.
            Unpacked::Ptx(module) => {
                let bodies = module.functions.iter().filter_map(|f| f.body.as_ref());
                let found = bodies.flat_map(|b| b.code.iter().map(move |i| (b, i))).find(|(_, i)| i.line == at);
                let Some((body, place)) = found.and_then(|(b, i)| Some((b, b.locations.get(i.location? as usize)?)))
                else {
                    return Vec::new();
                };
                // A call has a `.loc` of its own, which says where it was inlined in turn.
                let mut places = vec![(place.file, place.line)];
                let mut outer = place.inlined_at;
                while let Some(call) = outer.filter(|c| !places.contains(c)) {
                    places.push(call);
                    let own = body.locations.iter().find(|l| (l.file, l.line) == call);
                    outer = own.and_then(|l| l.inlined_at);
                }
                let line = |(file, line)| Some(SourceLine { file: module.file(file)?.to_owned(), line });
                places.into_iter().filter_map(line).collect()
            }
        }
    }

    /// Whether all launches of a kernel that agree in shape and parameters touch the same bytes
    /// (relative to their pointers), whatever lies in memory. "No" when the code does not show it.
    /// Computed at each call, because few callers need it.
    #[must_use]
    pub fn is_launch_invariant(&self, kernel: &str) -> bool {
        self.lower(kernel).is_ok_and(|f| launch_invariant::is_launch_invariant(&f, &Cfg::new(&f)))
    }

    /// The summary from the cache, if there is one and the kernel is worth looking for, else a new
    /// one.
    fn find(&self, name: &str, size: usize, slot: &Slot) -> Result<Summary, SummaryError> {
        let Some(cache) = self.cache.as_ref().filter(|_| size >= WORTH_KEEPING) else { return self.summarise(name) };
        let content = *self.content.get_or_init(|| match &self.code {
            Unpacked::Cubin(bytes) => summary_cache::hash(bytes),
            Unpacked::Ptx(_) => 0,
        });
        let key = EntryKey::new(content, matches!(self.code, Unpacked::Ptx(_)), self.arch, name);
        let keeper = ResultsEntry::new(cache.clone(), key);
        if let Some(summary) = cache.load(key, name) {
            return Ok(summary.kept_by(keeper));
        }
        let summary = self.summarise(name)?;
        // Another thread may have been faster, and this process be at its end.
        if !slot.is_made() {
            cache.store(key, &summary);
        }
        Ok(summary.kept_by(keeper))
    }

    fn summarise(&self, name: &str) -> Result<Summary, SummaryError> {
        self.lower(name).map(|f| prepare(&f))
    }

    fn lower(&self, name: &str) -> Result<KernelIr, SummaryError> {
        let bytes = match &self.code {
            Unpacked::Cubin(bytes) => bytes,
            Unpacked::Ptx(module) => return Ok(lower_ptx::lower(module, name)?),
        };
        let missing = || SummaryError::NoKernel(name.to_owned());
        let cubin = Cubin::parse(bytes).map_err(|_| missing())?;
        let kernel = cubin.kernel(name).ok_or_else(missing)?;
        let generation = cubin.arch.generation().ok_or(SummaryError::NoDecoder(cubin.arch))?;
        let parts = called_sections(&cubin, kernel);
        let code_of = |part: &CodePart| cubin.sections()[part.section].data;
        let insts: Vec<sass::MachineInst> =
            parts.iter().flat_map(|part| sass::decode_all(generation, code_of(part), part.base)).collect();
        let mut links = links(&cubin, kernel, &parts);
        if insts.iter().any(|i| i.flow() == sass::Flow::Call(None)) {
            links.callees = *self.callees.get_or_init(|| callees(&cubin, generation));
        }
        let code = Code {
            name,
            generation,
            insts: &insts,
            entry: (kernel.entry / sass::INST_BYTES) as usize,
            param_base: kernel.param_base,
            params: kernel
                .params
                .iter()
                .filter_map(|p| Some((u16::try_from(p.offset).ok()?, u16::try_from(p.size).ok()?)))
                .collect(),
            links: &links,
        };
        let mut f = lower_sass::lower(&code)?;
        f.cluster = kernel.cluster;
        for part in &parts {
            let first = insts.partition_point(|i| i.pc < part.base);
            system_fences::add_sass(&mut f.system_fences, &mut f.system_stores, code_of(part), &insts[first..]);
        }
        insts.iter().for_each(|i| f.system_loads.add_sass(i));
        insts.iter().for_each(|i| f.system_stores.add_sass(i));
        insts.iter().for_each(|i| f.load_scopes.add_sass(i));
        f.partial_copies = insts.iter().any(|i| matches!(i.op, sass::Opcode::CopyAsync { zfill: true, .. }));
        Ok(f)
    }
}

/// Eight bytes at a time: images have megabytes.
fn hash_of(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let mixed = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 29
    })
}

/// Recursion follows chains of values: short ones fit on any stack.
fn prepare(f: &KernelIr) -> Summary {
    let size: usize = f.blocks.iter().map(|b| b.insts.len()).sum();
    if size < SMALL_KERNEL { Summary::new(f) } else { on_large_stack(|| Summary::new(f)) }
}

/// Runs deep recursion over a kernel's values on a stack of its own: callers may be on small ones.
fn on_large_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|s| {
        match std::thread::Builder::new().stack_size(256 << 20).spawn_scoped(s, f) {
            Ok(h) => h.join().unwrap_or_else(|e| std::panic::resume_unwind(e)),
            // The closure is gone with the failed spawn: without memory for a stack nothing
            // sensible is left to do.
            Err(e) => panic!("no thread for kernel analysis: {e}"),
        }
    })
}

/// A code section of a kernel, and where it counts as lying behind the kernel's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CodePart {
    section: usize,
    base: u32,
}

/// Whether a call of this symbol is followed into its code. Of some functions more is known by
/// their names.
fn is_followed(symbol: &Symbol) -> bool {
    symbol.kind == SymbolKind::Function
        && known_call(&symbol.name).is_none()
        && Reason::of_call(&symbol.name) == Reason::Call
}

/// The section of a kernel, and behind it those of the functions that relocations say it calls, and
/// that these call. (Separate compilation gives each function one of its own.)
fn called_sections(cubin: &Cubin<'_>, kernel: &KernelCode<'_>) -> Vec<CodePart> {
    let whole = |section: usize| {
        let bytes = cubin.sections()[section].data.len();
        u32::try_from(bytes).ok().map(|bytes| bytes / sass::INST_BYTES * sass::INST_BYTES)
    };
    let mut parts = vec![CodePart { section: kernel.section, base: 0 }];
    let Some(mut end) = whole(kernel.section) else { return parts };
    let mut next = 0;
    while let Some(part) = parts.get(next).copied() {
        for r in cubin.relocs(part.section) {
            let Some(Symbol { section: Some(called), .. }) = cubin.symbols().get(r.symbol).filter(|s| is_followed(s))
            else {
                continue;
            };
            let is_new = parts.iter().all(|known| known.section != *called);
            if is_new && cubin.sections()[*called].executable {
                let Some(behind) = whole(*called).and_then(|bytes| end.checked_add(bytes)) else { return parts };
                parts.push(CodePart { section: *called, base: end });
                end = behind;
            }
        }
        next += 1;
    }
    parts
}

/// What relocations and notes say about a kernel's code.
fn links(cubin: &Cubin<'_>, kernel: &KernelCode<'_>, parts: &[CodePart]) -> Links {
    const R_CUDA_ABS32_LO: [u32; 4] = [0x25, 0x38, 0x3b, 0x45];
    const R_CUDA_ABS32_HI: [u32; 4] = [0x26, 0x39, 0x3c, 0x46];
    let mut l = Links { syscalls: kernel.syscalls.clone(), externals: kernel.externs.clone(), ..Links::default() };
    if let Some(bank) = cubin.const_bank(kernel, 4) {
        for r in bank.relocs {
            if let (Ok(off), Some(s)) = (u32::try_from(r.offset), cubin.symbols().get(r.symbol))
                && r.addend == 0
            {
                l.bank4.insert(off, s.name.clone());
            }
        }
    }
    // Another function may mean another bank.
    if let Some(bank) = cubin.const_bank(kernel, 2).filter(|bank| bank.relocs.is_empty() && parts.len() == 1) {
        l.literals = bank.data.to_vec();
    }
    l.bank3 = cubin
        .constants()
        .filter(|s| !s.name.starts_with("__cudart_"))
        .filter_map(|s| Some((u32::try_from(s.offset).ok()?, u32::try_from(s.offset + s.size).ok()?, s.name.clone())))
        .collect();
    l.bank3.sort_unstable();
    let relocs = parts.iter().flat_map(|part| cubin.relocs(part.section).iter().map(move |r| (part.base, r)));
    for (base, r) in relocs {
        let (Ok(off), Some(s)) = (u32::try_from(r.offset), cubin.symbols().get(r.symbol)) else { continue };
        let pc = base + off / sass::INST_BYTES * sass::INST_BYTES;
        if r.addend == 0 && R_CUDA_ABS32_LO.contains(&r.kind) {
            l.immediates.insert(pc, (s.name.clone(), false));
        } else if r.addend == 0 && R_CUDA_ABS32_HI.contains(&r.kind) {
            l.immediates.insert(pc, (s.name.clone(), true));
        } else {
            l.calls.insert(pc, s.name.clone());
            let called = parts.iter().find(|part| s.section == Some(part.section));
            let place = u32::try_from(s.offset.saturating_add_signed(r.addend)).ok();
            if let (true, Some(part), Some(place)) = (is_followed(s), called, place) {
                l.targets.insert(pc, part.base + place);
            }
        }
    }
    for b in &kernel.indirect {
        l.branches.insert(b.pc, b.targets.clone());
    }
    l
}

/// What the functions of the image do to memory: see [`Callees`].
fn callees(cubin: &Cubin<'_>, generation: Generation) -> Callees {
    let code_of = |s: &Symbol| {
        let section = cubin.sections().get(s.section?).filter(|section| section.executable)?;
        let (start, end) = (usize::try_from(s.offset).ok()?, usize::try_from(s.offset.checked_add(s.size)?).ok()?);
        section.data.get(start..end)
    };
    let of_instruction = |i: &sass::MachineInst| {
        let own = |m: &MemOperand| m.access == sass::MemEffect::Hint || m.space == AddressSpace::Local;
        if i.op == sass::Opcode::Unknown || i.mem.iter().any(|m| m.access == sass::MemEffect::Atomic) {
            Callees::Unknown
        } else if i.mem.iter().all(own) && !matches!(i.flow(), sass::Flow::Call(_)) {
            Callees::NoAccesses
        } else {
            Callees::NoUpdates
        }
    };
    let of_code = |code: &[u8]| sass::decode_all(generation, code, 0).iter().map(of_instruction).min();
    let functions = cubin.symbols().iter().filter(|s| s.kind == SymbolKind::Function && s.section.is_some());
    functions.map(|s| code_of(s).and_then(of_code).unwrap_or_default()).min().unwrap_or_default()
}
