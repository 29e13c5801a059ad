//! Kernels out of code images, by the crate `kernels`.
//!
//! Owns the source of an image's bytes (the trace, or a file that is read when first needed), the
//! process-wide cache folder, and the translation of that crate's answers into effects. Does not
//! fail: every error becomes a short reason that the coverage line counts.

use crate::launches::effects::{
    Effect, EffectBase, EffectExtent, HeldLock, Launch, MapInMemory, PointerTable, VariableTable,
};
use crate::launches::held_files::{self, HeldFile};
use crate::launches::kernel_code::{CodeReader, KernelCode};
use crate::launches::param_layout::ParamLayout;
use crate::launches::param_mask::ParamUse;
use crate::memory::AccessKind;
use device_code::arch::Arch;
use device_code::image::{CodeRef, Image};
use device_code::tensor_map::{self, Tensor};
use kernels::{Cache, CodeImage, Extent, KernelAccess, LaunchArgs, LoadError, Summary};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use system::file_name::FileName;
use system::local_files::{self, RecordedFiles};
use trace::{FileIdentity, ImageId, ImageSource, LaunchShape, Op, ParamSlot};

static CACHE: OnceLock<Option<Arc<Cache>>> = OnceLock::new();

/// Sets where summaries of kernels are kept from one run to the next: a folder, `off`, or (`None`)
/// the environment's `STREAMSAN_CACHE`, else [`Cache::default_folder`]. Call it once, before any
/// code is read. Without this call nothing is kept.
pub fn set_cache(word: Option<&FileName>) {
    let _ = CACHE.set(cache_folder(word).map(|f| Arc::new(Cache::new(f))));
}

/// The folder that [`set_cache`] takes for a word; `None`: nothing is kept.
pub fn cache_folder(word: Option<&FileName>) -> Option<PathBuf> {
    let named =
        word.cloned().or_else(|| std::env::var_os("STREAMSAN_CACHE").filter(|w| !w.is_empty()).map(FileName::from));
    match named {
        Some(word) if word.is("off") => None,
        Some(folder) => Some(folder.to_path_buf()),
        None => Cache::default_folder(),
    }
}

/// Where summaries are kept.
pub fn cache() -> Option<&'static Arc<Cache>> {
    CACHE.get()?.as_ref()
}

/// Larger images are not read: no driver loads one at once, so the record must be damaged.
const MAX_IMAGE: u64 = 1 << 30;

/// Images that are kept unpacked.
const MAX_LOADED: usize = 256;

enum Source {
    Inline(Vec<u8>),
    Beside(PathBuf),
    File { file: ImageFile, offset: u64, size: u64 },
}

/// A file with images, which stays itself where the process is alive.
#[derive(Clone, Debug)]
pub struct ImageFile {
    path: PathBuf,
    held: Option<HeldFile>,
}

impl ImageFile {
    /// The file that an [`Op::Image`] names.
    pub fn named(path: &Path) -> Self {
        Self { path: path.to_path_buf(), held: None }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes an [`Op::ImageFile`].
    pub fn identify(&mut self, op: &Op<'_>) {
        let (Some(identity), Op::ImageFile { path, .. }) = (FileIdentity::recorded(op), op) else { return };
        self.held = held_files::hold(path.path(), identity);
    }

    /// Whether it is another file by now, or none.
    fn is_replaced(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.file(&self.path).is_none())
    }

    /// Bytes of it; of size 0, all from the offset on.
    fn read(&self, offset: u64, size: u64) -> std::io::Result<Vec<u8>> {
        match &self.held {
            None => read_file(&self.path, offset, size),
            Some(held) => {
                let file = held.file(&self.path).ok_or(std::io::ErrorKind::NotFound)?;
                read_open(&file, offset, size)
            }
        }
    }
}

/// Reads images and analyses kernels.
#[derive(Default)]
pub struct ImageReader {
    /// Where the code is that lies beside segments.
    beside: Option<PathBuf>,
    files: RecordedFiles,
    sources: FxHashMap<ImageId, Source>,
    loaded: FxHashMap<(ImageId, u32), Result<Arc<CodeImage>, String>>,
    /// Files whose code was wanted and that are others by now.
    replaced: BTreeSet<PathBuf>,
}

impl CodeReader for ImageReader {
    fn image(&mut self, op: &Op<'_>) {
        if let Op::ImageFile { id, .. } = *op
            && let Some(Source::File { file, .. }) = self.sources.get_mut(&id)
        {
            file.identify(op);
        }
        let Op::Image { id, source, path, offset, size, bytes } = *op else { return };
        let source = match source {
            ImageSource::Inline => Source::Inline(bytes.to_vec()),
            ImageSource::Beside => {
                let Some(folder) = &self.beside else { return };
                // A name and no way: the trace may be anybody's.
                let Some(name) = path.path().file_name().map(|name| folder.join(name)) else { return };
                Source::Beside(name)
            }
            ImageSource::File => Source::File { file: ImageFile::named(path.path()), offset, size },
        };
        // Code in the trace is the code that ran. The file may have been replaced since.
        let better = !matches!(source, Source::Inline(_)) && matches!(self.sources.get(&id), Some(Source::Inline(_)));
        if !better {
            self.sources.insert(id, source);
        }
    }

    fn read(&mut self, image: ImageId, kernel: &str, arch: u32) -> Result<Box<dyn KernelCode>, String> {
        let code = self.code(image, arch)?;
        // The analysis of code has the most unusual inputs. If it panics, only this kernel stays
        // unknown.
        let summary = catch_unwind(AssertUnwindSafe(|| code.summary(kernel)))
            .map_err(|_| "the analysis of the kernel failed".to_string())?
            .map_err(|error| reason(&error, kernel))?;
        Ok(Box::new(Known { summary, arch, code, layout: ParamLayout::default(), fixed: OnceLock::new() }))
    }

    fn replaced(&self) -> Vec<String> {
        self.replaced.iter().map(system::file_name::shown).collect()
    }

    fn outer_line(&mut self, image: ImageId, kernel: &str, arch: u32, at: u32) -> Option<(String, u32)> {
        let code = self.code(image, arch).ok()?;
        let lines = catch_unwind(AssertUnwindSafe(|| code.lines(kernel, at))).ok()?;
        lines.last().map(|l| (l.file.clone(), l.line))
    }

    fn line(&mut self, image: ImageId, kernel: &str, arch: u32, at: u32) -> Option<(String, u32)> {
        let code = self.code(image, arch).ok()?;
        let lines = catch_unwind(AssertUnwindSafe(|| code.lines(kernel, at))).ok()?;
        device_code::line_table::user_line(&lines).map(|l| (l.file.clone(), l.line))
    }
}

impl ImageReader {
    /// One that finds code beside the segments of a recording, and in files that it may read.
    pub fn new(beside: Option<PathBuf>, files: RecordedFiles) -> Self {
        Self { beside, files, ..Self::default() }
    }

    fn code(&mut self, image: ImageId, arch: u32) -> Result<Arc<CodeImage>, String> {
        if self.loaded.len() > MAX_LOADED {
            self.loaded.clear();
        }
        let source = self.sources.get(&image);
        let (files, replaced) = (&self.files, &mut self.replaced);
        let load = || {
            if let Some(Source::File { file, .. }) = source
                && file.is_replaced()
            {
                replaced.insert(file.path.clone());
                return Err("the code image was in a file that was replaced while the program ran".into());
            }
            load(source, arch, files)
        };
        self.loaded.entry((image, arch)).or_insert_with(load).clone()
    }
}

/// The reason without the kernel's name, because equal reasons are counted together.
fn reason(error: &kernels::SummaryError, kernel: &str) -> String {
    match error {
        kernels::SummaryError::NoKernel(_) => "the kernel is not in its image".to_string(),
        other => other.to_string().replace(kernel, "the kernel"),
    }
}

fn load(source: Option<&Source>, arch: u32, files: &RecordedFiles) -> Result<Arc<CodeImage>, String> {
    let arch = Arch::new(u16::try_from(arch).map_err(|_| "the device is not known".to_string())?);
    let read;
    let bytes = match source {
        None => return Err("the code image is not in the trace".into()),
        Some(Source::Inline(bytes)) => bytes,
        Some(Source::File { file, .. }) if !files.may_read(&file.path) => {
            return Err(
                "the code image is in a file that is not known to be the recorded one (see --symbol-path)".into()
            );
        }
        Some(Source::Beside(path)) => {
            read = read_file(path, 0, 0).map_err(|e| format!("the code image cannot be read: {}", e.kind()))?;
            &read
        }
        Some(Source::File { file, offset, size }) => {
            read = file.read(*offset, *size).map_err(|e| format!("the code image cannot be read: {}", e.kind()))?;
            &read
        }
    };
    let failed = |_| "the code image cannot be analysed".to_string();
    let image = match catch_unwind(|| CodeImage::load(bytes, arch)).map_err(failed)? {
        Err(none @ LoadError::NoCode(_)) => match source {
            Some(Source::File { file, .. }) => {
                let text = catch_unwind(|| compiled_separately(file, arch)).map_err(failed)?;
                text.map_or(Err(none), |text| CodeImage::from_code(CodeRef::Ptx(text.into()), arch))
            }
            _ => Err(none),
        },
        loaded => loaded,
    };
    image.map(|code| Arc::new(code.with_cache(cache().cloned()))).map_err(|e| e.to_string())
}

/// What a driver links when a program's linked code does not run on the device: separate
/// compilation leaves the PTX of each source in the program's file.
fn compiled_separately(file: &ImageFile, arch: Arch) -> Option<String> {
    let bytes = file.read(0, 0).ok()?;
    let parts = device_code::image::find_in_host(&bytes).ok()?;
    let parts: Vec<_> = parts.into_iter().filter(|part| part.relocatable).filter_map(|part| part.image.ok()).collect();
    CodeImage::link(&parts, arch).ok()
}

/// The code in an image file that the driver would run on a device, small enough to go into a
/// trace. `None` when there is none.
pub fn selected(file: &ImageFile, offset: u64, size: u64, arch: u32) -> Option<Vec<u8>> {
    let arch = Arch::new(u16::try_from(arch).ok()?);
    let bytes = file.read(offset, size).ok()?;
    let code = catch_unwind(|| match Image::parse(&bytes).ok()?.select(arch).ok()? {
        Some(CodeRef::Cubin(code)) => Some(code.into_owned()),
        Some(CodeRef::Ptx(text)) => Some(text.into_owned().into_bytes()),
        None => compiled_separately(file, arch).map(String::into_bytes),
    });
    code.ok().flatten()
}

/// Bytes of a regular file; of size 0, all from the offset on.
pub fn read_file(path: &Path, offset: u64, size: u64) -> std::io::Result<Vec<u8>> {
    read_open(&local_files::open(path)?, offset, size)
}

fn read_open(file: &File, offset: u64, size: u64) -> std::io::Result<Vec<u8>> {
    let left = file.metadata()?.len().saturating_sub(offset);
    let size = if size == 0 { left } else { size.min(left) };
    if size > MAX_IMAGE {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// A kernel that was read.
struct Known {
    summary: Arc<Summary>,
    /// Compute capability (major * 10 + minor) of the device.
    arch: u32,
    code: Arc<CodeImage>,
    layout: ParamLayout,
    /// [`CodeImage::is_launch_invariant`], computed on first use.
    fixed: OnceLock<bool>,
}

impl KernelCode for Known {
    fn evaluate(&self, l: &Launch<'_>, effects: &mut Vec<Effect>) {
        self.evaluate_noting_use(l, effects, &mut ParamUse::default());
    }

    fn evaluate_noting_use(&self, l: &Launch<'_>, effects: &mut Vec<Effect>, usage: &mut ParamUse) {
        let Some(params) = self.layout.for_code(l.params) else { return self.evaluate_code(l, effects, usage) };
        let (first, mut used) = (effects.len(), ParamUse::default());
        self.evaluate_code(&Launch { params: &params, ..*l }, effects, &mut used);
        effects[first..].iter_mut().for_each(|effect| self.layout.name(effect));
        usage.also(&used, |bytes| self.layout.in_trace(bytes));
    }

    fn waits(&self) -> Vec<u32> {
        self.summary.waits().to_vec()
    }

    fn recorded_as(&mut self, params: &[ParamSlot]) {
        self.layout = ParamLayout::new(self.summary.params(), params);
    }

    fn indirect(&self) -> bool {
        self.summary.indirect().any()
    }

    fn indirect_in(&self, effects: &[Effect]) -> bool {
        // Of a sum of a parameter word and a number out of memory, the word is the pointer if it
        // can be one. Device memory began above 4 GiB on every driver seen.
        let pointer = |e: &Effect| matches!(e.base, EffectBase::Maybe(_, value) if value > u64::from(u32::MAX));
        let stands_for = |e: &Effect| effects.iter().any(|o| (o.at, o.kind) == (e.at, e.kind) && pointer(o));
        let lost = |e: &Effect| match e.base {
            EffectBase::Unknown => self.indirect() || !stands_for(e),
            EffectBase::SomeHandle(_) => self.indirect(),
            _ => false,
        };
        effects.iter().any(lost)
    }

    fn indirect_gap(&self) -> Option<kernels::Gap> {
        self.summary.indirect().why
    }

    fn loss(&self, kind: AccessKind, param: Option<u32>, at: u32) -> Option<kernels::Loss> {
        let kind = match kind {
            AccessKind::Read => kernels::AccessKind::Read,
            AccessKind::Write => kernels::AccessKind::Write,
            AccessKind::Atomic => kernels::AccessKind::Atomic,
            AccessKind::AtomicRead => kernels::AccessKind::AtomicRead,
            AccessKind::AtomicWrite => kernels::AccessKind::AtomicWrite,
        };
        let word = param.and_then(|offset| u16::try_from(self.layout.in_code(offset)).ok());
        catch_unwind(AssertUnwindSafe(|| self.summary.loss(kind, word, at))).ok()?
    }

    fn identity(&self) -> Option<u64> {
        let fixed = self.fixed.get_or_init(|| {
            catch_unwind(AssertUnwindSafe(|| self.code.is_launch_invariant(self.summary.name()))).unwrap_or(false)
        });
        fixed.then(|| self.code.hash())
    }

    fn dependency(&self) -> kernels::Dependency {
        self.summary.dependency()
    }

    fn signals(&self) -> bool {
        self.summary.has_system_fence()
    }

    fn signals_by(&self) -> Option<Vec<AccessKind>> {
        match self.summary.system_fences() {
            kernels::SystemFences::None => Some(Vec::new()),
            kernels::SystemFences::Releases(kinds) => Some(kinds.iter().map(|kind| kind_of(*kind)).collect()),
            kernels::SystemFences::Free => None,
        }
    }

    fn loads_from_host(&self, bytes: u64) -> bool {
        self.summary.has_system_loads() && (bytes <= 8 || self.summary.acquires())
    }

    fn listens(&self) -> bool {
        let loads = self.summary.instructions().any(|(kind, ..)| kind == kernels::AccessKind::AtomicRead);
        loads || self.summary.indirect().any()
    }

    fn copies_in_part(&self) -> bool {
        self.summary.has_partial_copies()
    }

    fn relocated(&self) -> u64 {
        self.summary.relocated()
    }

    fn keep(&self) {
        self.summary.keep();
    }
}

/// A kind of access, as detection names it.
fn kind_of(kind: kernels::AccessKind) -> AccessKind {
    match kind {
        kernels::AccessKind::Read => AccessKind::Read,
        kernels::AccessKind::Write => AccessKind::Write,
        kernels::AccessKind::Atomic => AccessKind::Atomic,
        kernels::AccessKind::AtomicRead => AccessKind::AtomicRead,
        kernels::AccessKind::AtomicWrite => AccessKind::AtomicWrite,
    }
}

impl Known {
    /// Evaluates a launch whose parameters lie where the code has them.
    fn evaluate_code(&self, l: &Launch<'_>, effects: &mut Vec<Effect>, usage: &mut ParamUse) {
        let LaunchShape { grid, block, cluster, shared, .. } = l.shape;
        let cluster = if cluster == [0; 3] { [1; 3] } else { cluster };
        let args = LaunchArgs { grid, block, cluster, shared, params: l.params };
        let mut accesses = Vec::new();
        let evaluated = AssertUnwindSafe(|| self.summary.evaluate_with_inputs(&args, &mut accesses, usage.bytes()));
        if catch_unwind(evaluated).is_err() {
            accesses.clear();
            usage.use_everything();
            // The evaluation panicked, so nothing is known of this launch.
            effects.push(Effect::failed());
        }
        for access in &accesses {
            self.translate(access, l.params, effects);
            let (at, bytes) = match access.base {
                kernels::Base::Word { offset, .. }
                | kernels::Base::Handle { offset, .. }
                | kernels::Base::Table { offset, .. } => (usize::from(offset), 8),
                kernels::Base::TensorMap { offset } => (usize::from(offset), tensor_map::SIZE),
                // Any word may be a handle.
                kernels::Base::Unknown if is_descriptor(&access.extent) => (0, l.params.len()),
                kernels::Base::Unknown
                | kernels::Base::Global(_)
                | kernels::Base::VariableTable { .. }
                | kernels::Base::Absolute { .. } => (0, 0),
            };
            usage.on(at..at + bytes);
        }
    }

    /// A word of a lock.
    fn word(&self, (base, extent): &(kernels::Base, Extent)) -> (EffectBase, EffectExtent) {
        let (base, origin) = match *base {
            kernels::Base::Word { offset, value } => (EffectBase::Param(u32::from(offset), value), value),
            kernels::Base::Absolute { value } => (EffectBase::Absolute(value), value),
            kernels::Base::Global(symbol) => (EffectBase::Global(self.summary.symbol(symbol).into()), 0),
            _ => (EffectBase::Unknown, 0),
        };
        (base, EffectExtent::of(extent, origin))
    }

    /// The tensor of a map. The layout of maps is known for this GPU generation only.
    fn tensor(&self, map: &[u8]) -> Option<Tensor> {
        if self.arch / 10 == 9 { Tensor::decode(map) } else { None }
    }

    fn translate(&self, a: &KernelAccess, params: &[u8], effects: &mut Vec<Effect>) {
        let kind = kind_of(a.kind);
        if let Some(tiles) = a.tiles.as_deref().filter(|_| !matches!(a.base, kernels::Base::TensorMap { .. })) {
            // A map in memory: its content is asked for where memory is known.
            let base = match a.base {
                kernels::Base::Word { offset, value } => EffectBase::Param(u32::from(offset), value),
                kernels::Base::Global(symbol) => EffectBase::Global(self.summary.symbol(symbol).into()),
                _ => EffectBase::Object,
            };
            let base = match base {
                base @ (EffectBase::Param(..) | EffectBase::Global(_)) if self.arch / 10 == 9 && !a.several => {
                    EffectBase::MapInMemory(Box::new(MapInMemory { base, at: tiles.at, tiles: tiles.clone() }))
                }
                _ => EffectBase::Object,
            };
            let why = Some(kernels::Reason::Descriptor);
            let of_map = Effect::new(base, kind, EffectExtent::Unknown);
            return effects.push(Effect { at: a.at, early: a.early, why, ..of_map });
        }
        let (base, origin) = match a.base {
            kernels::Base::Word { offset, value } if a.several => (EffectBase::Maybe(u32::from(offset), value), value),
            kernels::Base::Word { offset, value } => (EffectBase::Param(u32::from(offset), value), value),
            kernels::Base::Absolute { value } => (EffectBase::Absolute(value), value),
            kernels::Base::Global(symbol) => (EffectBase::Global(self.summary.symbol(symbol).into()), 0),
            kernels::Base::Handle { offset, value, .. } => (EffectBase::Handle(u32::from(offset), value), 0),
            kernels::Base::Unknown if is_descriptor(&a.extent) => {
                // Machine code splits a handle into halves, so the analysis does not name its word.
                // The handle is still among the parameters, because objects are passed by value.
                let words = params.chunks_exact(8).enumerate();
                let word =
                    |(i, w): (usize, &[u8])| (i as u32 * 8, u64::from_le_bytes(w.try_into().unwrap_or_default()));
                (EffectBase::SomeHandle(words.map(word).collect()), 0)
            }
            kernels::Base::Unknown => (EffectBase::Unknown, 0),
            kernels::Base::Table { offset, value, lo, stride, count } => {
                let first = value.wrapping_add_signed(lo);
                (EffectBase::PointerTable(PointerTable { param: u32::from(offset), value, first, stride, count }), 0)
            }
            kernels::Base::VariableTable { symbol, lo, stride, count } => {
                let (name, first) = (self.summary.symbol(symbol).into(), lo.cast_unsigned());
                (EffectBase::VariableTable(VariableTable { name, first, stride, count }), 0)
            }
            kernels::Base::TensorMap { offset } => {
                // The map holds the address of its tensor among other fields. The word that points
                // into an allocation is the address.
                let from = usize::from(offset);
                let words = params.get(from..from.saturating_add(tensor_map::SIZE)).unwrap_or_default();
                let of_tiles = |t: Tensor| Some((t, kernels::Extent::of_tiles(&t, a.tiles.as_deref()?, a.kind)?));
                if let Some((tensor, extents)) = self.tensor(words).and_then(of_tiles) {
                    let base = EffectBase::Tensor(u32::from(offset), tensor.address);
                    let whole = |extent| Effect::new(base.clone(), kind, EffectExtent::of(extent, tensor.address));
                    effects.extend(extents.iter().map(|e| Effect { at: a.at, early: a.early, ..whole(e) }));
                    return;
                }
                for (i, word) in words.chunks_exact(8).enumerate() {
                    let value = u64::from_le_bytes(word.try_into().unwrap_or_default());
                    let base = EffectBase::Tensor(u32::from(offset) + i as u32 * 8, value);
                    let effect = Effect::new(base, kind, EffectExtent::Unknown);
                    let why = Some(kernels::Reason::Descriptor);
                    effects.push(Effect { at: a.at, early: a.early, why, ..effect });
                }
                return;
            }
        };
        let bytes = EffectExtent::of(&a.extent, origin);
        let why = if let Extent::Unknown { reason } = a.extent { Some(reason) } else { None };
        let constant = matches!(a.base, kernels::Base::Global(symbol) if self.summary.is_constant(symbol));
        let of = |lock: &kernels::Lock| HeldLock(lock.words.iter().map(|word| self.word(word)).collect(), lock.role);
        let (lock, if_fenced) = (a.lock.as_ref().map(of), a.if_fenced.as_ref().map(of));
        let &KernelAccess { at, voted, looked_up, selection, early, .. } = a;
        effects.push(Effect {
            at,
            why,
            constant,
            voted,
            looked_up,
            lock,
            if_fenced,
            selection,
            early,
            ..Effect::new(base, kind, bytes)
        });
    }
}

/// Whether an access goes through an unknown descriptor.
fn is_descriptor(extent: &Extent) -> bool {
    matches!(extent, Extent::Unknown { reason: kernels::Reason::Descriptor })
}
