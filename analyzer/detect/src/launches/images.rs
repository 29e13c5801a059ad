//! The code images of one process: where their bytes are, and their code once it was read.
//!
//! Owns the definitions of images, and what the pass over the records shares with those that work
//! ahead of it ([`super::ahead`]): one code image for each definition, whoever reads it first.
//! Does not decide whether a file is still the one that ran ([`super::image_reader`]).

use crate::launches::held_files::{self, HeldFile};
use device_code::arch::Arch;
use device_code::image::CodeRef;
use kernels::{CodeBytes, CodeImage, LoadError, Promised};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use system::local_files::{self, RecordedFiles};
use trace::{FileIdentity, ImageId, ImageSource, Op};

/// Larger images are not read: no driver loads one at once, so the record must be damaged.
const MAX_IMAGE: u64 = 1 << 30;

/// Definitions of one image that are shared: an image is defined again where a recording goes on,
/// and once more when its file is known.
const MAX_SHARED: usize = 4;

pub(super) enum Source {
    Inline(CodeBytes),
    Beside(PathBuf),
    File { file: ImageFile, offset: u64, size: u64 },
}

impl Source {
    fn is(&self, other: &Source) -> bool {
        match (self, other) {
            (Self::Inline(one), Self::Inline(other)) => **one == **other,
            (Self::Beside(one), Self::Beside(other)) => one == other,
            (Self::File { file, offset, size }, Self::File { file: other, offset: from, size: bytes }) => {
                (offset, size) == (from, bytes) && file.is(other)
            }
            _ => false,
        }
    }
}

/// A file with images, which stays itself where the process is alive.
#[derive(Clone, Debug)]
pub struct ImageFile {
    pub(super) path: PathBuf,
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
    pub(super) fn is_replaced(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.file(&self.path).is_none())
    }

    /// Whether both surely are one file.
    fn is(&self, other: &ImageFile) -> bool {
        let held = match (&self.held, &other.held) {
            (None, None) => true,
            (Some(one), Some(other)) => one.is(other),
            _ => false,
        };
        held && self.path == other.path
    }

    /// Bytes of it; of size 0, all from the offset on.
    pub(super) fn read(&self, offset: u64, size: u64) -> std::io::Result<Vec<u8>> {
        match &self.held {
            None => read_file(&self.path, offset, size),
            Some(held) => {
                let file = held.file(&self.path).ok_or(std::io::ErrorKind::NotFound)?;
                read_open(&file, offset, size)
            }
        }
    }
}

/// Code that was read, or why it was not.
type Loaded = Result<Arc<CodeImage>, String>;

/// A definition of an image.
pub(super) struct DefinedImage {
    pub(super) source: Source,
    loaded: Mutex<FxHashMap<u32, Arc<Promised<Loaded>>>>,
}

impl DefinedImage {
    fn new(source: Source) -> Arc<Self> {
        Arc::new(Self { source, loaded: Mutex::default() })
    }

    /// The code for a device.
    pub(super) fn load(&self, arch: u32, files: &RecordedFiles) -> Loaded {
        let promised = Arc::clone(lock(&self.loaded).entry(arch).or_default());
        let mut is_own = false;
        let loaded = promised.get_or_make(|| {
            is_own = true;
            load(&self.source, arch, files)
        });
        // What one that works ahead lacked may be known by now.
        if loaded.is_err() && !is_own { load(&self.source, arch, files) } else { loaded }
    }

    fn forget(&self) {
        lock(&self.loaded).clear();
    }
}

/// What all that read the images of one process share.
#[derive(Clone, Default)]
pub struct SharedImages(Arc<Shared>);

/// [`SharedImages`], as long as a pass or its scout uses them.
pub(super) struct WeakImages(Weak<Shared>);

impl WeakImages {
    pub(super) fn upgrade(&self) -> Option<SharedImages> {
        self.0.upgrade().map(SharedImages)
    }
}

#[derive(Default)]
struct Shared {
    /// Where the code is that lies beside segments.
    beside: Option<PathBuf>,
    files: RecordedFiles,
    by_id: Mutex<FxHashMap<ImageId, Vec<Arc<DefinedImage>>>>,
}

impl SharedImages {
    /// Code beside the segments of a recording, and in files that may be read.
    pub fn new(beside: Option<PathBuf>, files: RecordedFiles) -> Self {
        Self(Arc::new(Shared { beside, files, by_id: Mutex::default() }))
    }

    /// The same, for as long as others use it.
    pub(super) fn downgrade(&self) -> WeakImages {
        WeakImages(Arc::downgrade(&self.0))
    }

    /// Which files may be read.
    pub fn files(&self) -> &RecordedFiles {
        &self.0.files
    }

    /// The definition that is shared, if there is one like this.
    fn find(&self, id: ImageId, is: impl Fn(&Source) -> bool) -> Option<Arc<DefinedImage>> {
        lock(&self.0.by_id).get(&id)?.iter().rev().find(|known| is(&known.source)).cloned()
    }

    fn share(&self, id: ImageId, source: Source) -> Arc<DefinedImage> {
        let mut all = lock(&self.0.by_id);
        let known = all.entry(id).or_default();
        if let Some(same) = known.iter().find(|known| known.source.is(&source)) {
            return Arc::clone(same);
        }
        if known.len() >= MAX_SHARED {
            known.remove(0);
        }
        known.push(DefinedImage::new(source));
        Arc::clone(&known[known.len() - 1])
    }

    /// Keeps no code any longer that was read.
    pub(super) fn forget_code(&self) {
        lock(&self.0.by_id).values().flatten().for_each(|known| known.forget());
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The definitions of images as one reader of the records knows them.
#[derive(Default)]
pub(super) struct Images {
    shared: SharedImages,
    own: FxHashMap<ImageId, Arc<DefinedImage>>,
}

impl Images {
    pub(super) fn of(shared: SharedImages) -> Self {
        Self { shared, own: FxHashMap::default() }
    }

    pub(super) fn shared(&self) -> &SharedImages {
        &self.shared
    }

    pub(super) fn get(&self, id: ImageId) -> Option<&Arc<DefinedImage>> {
        self.own.get(&id)
    }

    /// The same, or one that another reader knows whose code is in the trace.
    pub(super) fn find(&self, id: ImageId) -> Option<Arc<DefinedImage>> {
        let own = self.get(id);
        if own.is_some_and(|own| matches!(own.source, Source::Inline(_))) {
            return own.cloned();
        }
        self.shared.find(id, |source| matches!(source, Source::Inline(_))).or_else(|| own.cloned())
    }

    /// Takes the definition of an image, whose bytes `keep` keeps, or of its file.
    pub(super) fn define(&mut self, op: &Op<'_>, keep: impl FnOnce(&[u8]) -> CodeBytes) {
        if let Op::ImageFile { id, .. } = *op
            && let Some(known) = self.own.get(&id)
            && let Source::File { file, offset, size } = &known.source
        {
            let mut file = file.clone();
            file.identify(op);
            let source = Source::File { file, offset: *offset, size: *size };
            self.own.insert(id, self.shared.share(id, source));
        }
        let Op::Image { id, source, path, offset, size, bytes } = *op else { return };
        // Code in the trace is the code that ran. The file may have been replaced since.
        let is_known = matches!(self.own.get(&id).map(|known| &known.source), Some(Source::Inline(_)));
        if is_known && source != ImageSource::Inline {
            return;
        }
        let defined = match source {
            ImageSource::Inline => {
                let known = self.shared.find(id, |source| matches!(source, Source::Inline(known) if **known == *bytes));
                known.unwrap_or_else(|| self.shared.share(id, Source::Inline(keep(bytes))))
            }
            ImageSource::Beside => {
                let Some(folder) = &self.shared.0.beside else { return };
                // A name and no way: the trace may be anybody's.
                let Some(name) = path.path().file_name().map(|name| folder.join(name)) else { return };
                self.shared.share(id, Source::Beside(name))
            }
            ImageSource::File => {
                self.shared.share(id, Source::File { file: ImageFile::named(path.path()), offset, size })
            }
        };
        self.own.insert(id, defined);
    }
}

fn load(source: &Source, arch: u32, files: &RecordedFiles) -> Loaded {
    let arch = Arch::new(u16::try_from(arch).map_err(|_| "the device is not known".to_string())?);
    let bytes: CodeBytes = match source {
        Source::Inline(bytes) => bytes.clone(),
        Source::File { file, .. } if !files.may_read(&file.path) => {
            return Err(
                "the code image is in a file that is not known to be the recorded one (see --symbol-path)".into()
            );
        }
        Source::Beside(path) => {
            read_file(path, 0, 0).map_err(|e| format!("the code image cannot be read: {}", e.kind()))?.into()
        }
        Source::File { file, offset, size } => {
            file.read(*offset, *size).map_err(|e| format!("the code image cannot be read: {}", e.kind()))?.into()
        }
    };
    let failed = |_| "the code image cannot be analysed".to_string();
    let image = match catch_unwind(|| CodeImage::load_shared(&bytes, arch)).map_err(failed)? {
        Err(none @ LoadError::NoCode(_)) => match source {
            Source::File { file, .. } => {
                let text = catch_unwind(|| compiled_separately(file, arch)).map_err(failed)?;
                text.map_or(Err(none), |text| CodeImage::from_code(CodeRef::Ptx(text.into()), arch))
            }
            _ => Err(none),
        },
        loaded => loaded,
    };
    image.map(|code| Arc::new(code.with_cache(super::image_reader::cache().cloned()))).map_err(|e| e.to_string())
}

/// What a driver links when a program's linked code does not run on the device: separate
/// compilation leaves the PTX of each source in the program's file.
pub(super) fn compiled_separately(file: &ImageFile, arch: Arch) -> Option<String> {
    let bytes = file.read(0, 0).ok()?;
    let parts = device_code::image::find_in_host(&bytes).ok()?;
    let parts: Vec<_> = parts.into_iter().filter(|part| part.relocatable).filter_map(|part| part.image.ok()).collect();
    CodeImage::link(&parts, arch).ok()
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
