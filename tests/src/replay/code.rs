//! The code of recorded kernels, as files that a driver can load.
//!
//! Owns how a library that a recording names by its path on another machine is found here, and that
//! it is the same build. Does not look into images: that is the driver's work.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use object::Object;
use object::read::ReadCache;
use serde::{Deserialize, Serialize};
use trace::{ImageId, ImageSource, Op};

/// What a trace says of its images.
#[derive(Default)]
pub(super) struct Images {
    sources: BTreeMap<ImageId, Source>,
    /// Build ids of libraries, by path.
    build_ids: BTreeMap<String, Vec<u8>>,
}

enum Source {
    Inline(Vec<u8>),
    File(ImagePlace),
    /// In a file beside a segment.
    Beside,
}

impl Images {
    pub(super) fn module(&mut self, path: &str, build_id: &[u8]) {
        self.build_ids.insert(resolved(path), build_id.to_vec());
    }

    pub(super) fn image(&mut self, op: &Op<'_>) {
        let Op::Image { id, source, path, offset, size, bytes } = *op else { return };
        let source = match source {
            ImageSource::Inline => Source::Inline(bytes.to_vec()),
            ImageSource::File => Source::File(ImagePlace { library: path.lossy().into_owned(), offset, size }),
            ImageSource::Beside => Source::Beside,
        };
        self.sources.insert(id, source);
    }

    /// Ready to write images into `folder`.
    pub(super) fn into_files(self, code: &[PathBuf], folder: &Path) -> ImageFiles {
        let here = Libraries::below(code);
        ImageFiles { images: self, here, folder: folder.to_owned(), written: BTreeMap::new() }
    }
}

/// The files below some folders, by name.
pub(super) struct Libraries(BTreeMap<String, Vec<PathBuf>>);

impl Libraries {
    pub(super) fn below(folders: &[PathBuf]) -> Self {
        let mut here = BTreeMap::new();
        folders.iter().for_each(|root| list(root, &mut here));
        Self(here)
    }

    /// The build of a library that has this id, or any where none is known: under `own`, its own
    /// path, or in the folders.
    pub(super) fn find(&self, name: &str, own: &Path, id: Option<&[u8]>) -> Result<PathBuf, String> {
        let own = own.is_file().then(|| own.to_owned());
        let mut others = 0;
        for candidate in self.0.get(name).into_iter().flatten().cloned().chain(own) {
            match id {
                Some(id) if build_id(&candidate).as_deref() != Some(id) => others += 1,
                _ => return Ok(candidate),
            }
        }
        Err(if others > 0 { format!("{name} is another build here") } else { format!("{name} is not here") })
    }
}

/// Where an image lies in a library.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct ImagePlace {
    /// The library's path as it was recorded; its last part in a list.
    pub library: String,
    /// First byte in the file.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

impl ImagePlace {
    /// The library's name.
    pub(super) fn name(&self) -> &str {
        self.library.rsplit('/').next().unwrap_or(&self.library)
    }

    /// The image, out of this file.
    pub(super) fn read(&self, file: &Path) -> Result<Vec<u8>, String> {
        read(file, self.offset, self.size).map_err(|e| format!("{}: {e}", file.display()))
    }
}

/// Images, written when they are first asked for.
pub(super) struct ImageFiles {
    images: Images,
    here: Libraries,
    folder: PathBuf,
    written: BTreeMap<ImageId, Result<String, String>>,
}

impl ImageFiles {
    /// The name of an image's file in the folder, or why there is none.
    pub(super) fn file(&mut self, id: ImageId) -> Result<String, String> {
        if let Some(known) = self.written.get(&id) {
            return known.clone();
        }
        let made = self.bytes(id).and_then(|bytes| {
            let name = format!("image-{}", id.0);
            let said = |e: std::io::Error| format!("{}: {e}", self.folder.display());
            std::fs::create_dir_all(&self.folder).map_err(said)?;
            std::fs::write(self.folder.join(&name), bytes).map_err(said)?;
            Ok(name)
        });
        self.written.insert(id, made.clone());
        made
    }

    fn bytes(&self, id: ImageId) -> Result<Vec<u8>, String> {
        match self.images.sources.get(&id) {
            None => Err("code images are not known".into()),
            Some(Source::Beside) => Err("code lies beside a segment: take a trace of one file".into()),
            Some(Source::Inline(bytes)) => Ok(bytes.clone()),
            Some(Source::File(place)) => {
                let id = self.images.build_ids.get(&resolved(&place.library)).filter(|id| !id.is_empty());
                place.read(&self.here.find(place.name(), Path::new(&place.library), id.map(Vec::as_slice))?)
            }
        }
    }

    /// Where an image lies, and the build of the library it lies in; nothing for what a trace has
    /// in itself.
    pub(super) fn place(&self, id: ImageId) -> Option<(&ImagePlace, Option<&[u8]>)> {
        match self.images.sources.get(&id) {
            Some(Source::File(place)) => {
                Some((place, self.images.build_ids.get(&resolved(&place.library)).map(Vec::as_slice)))
            }
            _ => None,
        }
    }
}

/// A path without the steps up in it: maps and loaders spell one file in two ways.
fn resolved(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn list(folder: &Path, to: &mut BTreeMap<String, Vec<PathBuf>>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => list(&path, to),
            Ok(_) => to.entry(entry.file_name().to_string_lossy().into_owned()).or_default().push(path),
            Err(_) => {}
        }
    }
}

/// A fatbin's first bytes.
const FATBIN_MAGIC: u32 = 0xba55_ed50;

/// Part of a file; with size 0 an image that tells its own size, or all the rest.
fn read(path: &Path, offset: u64, size: u64) -> std::io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let left = file.metadata()?.len().saturating_sub(offset);
    let mut size = if size == 0 { left } else { left.min(size) };
    let mut header = [0; 16];
    if file.read_exact_at(&mut header, offset).is_ok() && header[..4] == FATBIN_MAGIC.to_le_bytes() {
        let own = u64::from(u16::from_le_bytes([header[6], header[7]]));
        let of_entries = u64::from_le_bytes(header[8..].try_into().expect("eight bytes"));
        size = size.min(own.saturating_add(of_entries));
    }
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}

/// The GNU build id of a library.
pub(super) fn build_id(path: &Path) -> Option<Vec<u8>> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    file.build_id().ok()?.map(<[u8]>::to_vec)
}
