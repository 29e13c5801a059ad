//! The code of a trace's kernels, as files that a driver can load.
//!
//! Owns how a library that a trace names by its path on another machine is found here, and that it
//! is the same build. Does not look into images: that is the driver's work.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use object::Object;
use object::read::ReadCache;
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
    File {
        path: String,
        offset: u64,
        size: u64,
    },
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
            ImageSource::File => Source::File { path: path.lossy().into_owned(), offset, size },
            ImageSource::Beside => Source::Beside,
        };
        self.sources.insert(id, source);
    }

    /// Ready to write images into `folder`.
    pub(super) fn into_files(self, code: &[PathBuf], folder: &Path) -> ImageFiles {
        let mut here = BTreeMap::<String, Vec<PathBuf>>::new();
        code.iter().for_each(|root| list(root, &mut here));
        ImageFiles { images: self, here, folder: folder.to_owned(), written: BTreeMap::new() }
    }
}

/// Images, written when they are first asked for.
pub(super) struct ImageFiles {
    images: Images,
    /// Files of the folders with code, by name.
    here: BTreeMap<String, Vec<PathBuf>>,
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
            Some(Source::File { path, offset, size }) => {
                let file = self.library(path)?;
                read(&file, *offset, *size).map_err(|e| format!("{}: {e}", file.display()))
            }
        }
    }

    /// The same build of a library: under its own path, or in the folders with code.
    fn library(&self, path: &str) -> Result<PathBuf, String> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let wanted = self.images.build_ids.get(&resolved(path)).filter(|id| !id.is_empty());
        let own = PathBuf::from(path);
        let candidates = self.here.get(name).into_iter().flatten().cloned().chain(own.is_file().then_some(own));
        let mut others = 0;
        for candidate in candidates {
            match wanted {
                Some(wanted) if build_id(&candidate).as_ref() != Some(wanted) => others += 1,
                _ => return Ok(candidate),
            }
        }
        Err(if others > 0 { format!("{name} is another build here") } else { format!("{name} is not here") })
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
fn build_id(path: &Path) -> Option<Vec<u8>> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = object::File::parse(&cache).ok()?;
    file.build_id().ok()?.map(<[u8]>::to_vec)
}
