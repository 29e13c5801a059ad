//! Kernels out of code images, by the crate `kernels`.
//!
//! Owns the source of an image's bytes (the trace, or a file that is read when first needed), the
//! process-wide cache folder, and the translation of that crate's answers into effects. Does not
//! fail: every error becomes a short reason that the coverage line counts.

use crate::launches::held_files::{self, HeldFile};
use crate::launches::kernel_code::{CodeReader, KernelCode};
use crate::launches::known_kernel::KnownKernel;
use device_code::arch::Arch;
use device_code::image::{CodeRef, Image};
use kernels::{Cache, CodeBytes, CodeImage, LoadError};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use system::file_name::FileName;
use system::local_files::{self, RecordedFiles};
use trace::{FileIdentity, ImageId, ImageSource, Op};

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
    Inline(CodeBytes),
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
        self.define(op, |bytes| bytes.to_vec().into());
    }

    fn image_within(&mut self, op: &Op<'_>, whole: &Arc<Vec<u8>>) {
        self.define(op, |bytes| CodeBytes::within(whole, bytes));
    }

    fn read(&mut self, image: ImageId, kernel: &str, arch: u32) -> Result<Box<dyn KernelCode>, String> {
        let code = self.code(image, arch)?;
        // The analysis of code has the most unusual inputs. If it panics, only this kernel stays
        // unknown.
        let summary = catch_unwind(AssertUnwindSafe(|| code.summary(kernel)))
            .map_err(|_| "the analysis of the kernel failed".to_string())?
            .map_err(|error| reason(&error, kernel))?;
        Ok(Box::new(KnownKernel::new(summary, arch, code)))
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

    /// Takes the definition of an image, whose bytes `keep` keeps, or of its file.
    fn define(&mut self, op: &Op<'_>, keep: impl FnOnce(&[u8]) -> CodeBytes) {
        if let Op::ImageFile { id, .. } = *op
            && let Some(Source::File { file, .. }) = self.sources.get_mut(&id)
        {
            file.identify(op);
        }
        let Op::Image { id, source, path, offset, size, bytes } = *op else { return };
        let source = match source {
            ImageSource::Inline => Source::Inline(keep(bytes)),
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
    let bytes: CodeBytes = match source {
        None => return Err("the code image is not in the trace".into()),
        Some(Source::Inline(bytes)) => bytes.clone(),
        Some(Source::File { file, .. }) if !files.may_read(&file.path) => {
            return Err(
                "the code image is in a file that is not known to be the recorded one (see --symbol-path)".into()
            );
        }
        Some(Source::Beside(path)) => {
            read_file(path, 0, 0).map_err(|e| format!("the code image cannot be read: {}", e.kind()))?.into()
        }
        Some(Source::File { file, offset, size }) => {
            file.read(*offset, *size).map_err(|e| format!("the code image cannot be read: {}", e.kind()))?.into()
        }
    };
    let failed = |_| "the code image cannot be analysed".to_string();
    let image = match catch_unwind(|| CodeImage::load_shared(&bytes, arch)).map_err(failed)? {
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
