//! Kernels out of code images, by the crate `kernels`.
//!
//! Owns which code counts (a file that was replaced is none), the process-wide cache folder, and
//! the reasons why code was not read. Does not fail: every error becomes a short reason that the
//! coverage line counts. Where the bytes of an image are is in [`super::images`].

use crate::launches::images::{ImageFile, Images, SharedImages, Source, compiled_separately};
use crate::launches::kernel_code::{CodeReader, KernelCode};
use crate::launches::known_kernel::KnownKernel;
use device_code::arch::Arch;
use device_code::image::{CodeRef, Image};
use kernels::{Cache, CodeBytes, CodeImage};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use system::file_name::FileName;
use trace::{ImageId, Op};

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

/// Images that are kept unpacked.
const MAX_LOADED: usize = 256;

/// Reads images and analyses kernels.
#[derive(Default)]
pub struct ImageReader {
    images: Images,
    loaded: FxHashMap<(ImageId, u32), Result<Arc<CodeImage>, String>>,
    /// Files whose code was wanted and that are others by now.
    replaced: BTreeSet<PathBuf>,
}

impl CodeReader for ImageReader {
    fn image(&mut self, op: &Op<'_>) {
        self.images.define(op, |bytes| bytes.to_vec().into());
    }

    fn image_within(&mut self, op: &Op<'_>, whole: &Arc<Vec<u8>>) {
        self.images.define(op, |bytes| CodeBytes::within(whole, bytes));
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
    /// One that shares what it reads with those that work ahead of it.
    pub fn new(shared: SharedImages) -> Self {
        Self { images: Images::of(shared), ..Self::default() }
    }

    fn code(&mut self, image: ImageId, arch: u32) -> Result<Arc<CodeImage>, String> {
        if self.loaded.len() > MAX_LOADED {
            self.loaded.clear();
            self.images.shared().forget_code();
        }
        let (images, replaced) = (&self.images, &mut self.replaced);
        let load = || {
            let known = images.get(image).ok_or("the code image is not in the trace")?;
            if let Source::File { file, .. } = &known.source
                && file.is_replaced()
            {
                replaced.insert(file.path().to_path_buf());
                return Err("the code image was in a file that was replaced while the program ran".into());
            }
            known.load(arch, images.shared().files())
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
