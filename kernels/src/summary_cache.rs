//! Summaries on disk, so that a kernel is analysed once and not once a process, with the results of
//! its launches.
//!
//! Owns the files of a cache folder. Does not know code images.
//!
//! Entries are content-addressed. The name of an entry is a hash of everything that its summary was
//! made of: the whole piece of code that holds the kernel, the architecture, the name of the
//! kernel, and the sources of this crate (all of `src/` with its paths, hashed by `build.rs`). So
//! an entry is never out of date; at worst it is never asked for again. It is written to a file of
//! its own and renamed, so that other processes see all of it or nothing. What can not be read,
//! written or understood counts as missing, without a message: the kernel is analysed.

use crate::summary::Summary;
use device_code::arch::Arch;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use twox_hash::XxHash3_128;

/// Bytes that all entries together may take by default.
const LIMIT: u64 = 256 << 20;

/// Larger files are no entries: the largest of real kernels have a few MiB.
const MAX_ENTRY: u64 = 64 << 20;

/// More results of one kernel are not kept: to read them would take as long as to find them again.
const MAX_RESULTS: usize = 1 << 20;

/// What an entry holds: the end of its name, and its first bytes. Behind them are its key, a hash
/// of the rest, and the rest.
struct Content(&'static str, &'static [u8; 8]);

const SUMMARY: Content = Content("kernel", b"SSKERNL1");
const RESULTS: Content = Content("results", b"SSRESLT1");

/// Entries that were used since are not marked as used again.
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// A temporary file this old belongs to a process that died.
const STALE: Duration = Duration::from_secs(3600);

/// The name of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EntryKey(u128);

impl EntryKey {
    /// Of a kernel in a piece of code with this hash (see [`hash`]).
    pub(crate) fn new(code: u128, ptx: bool, arch: Arch, kernel: &str) -> EntryKey {
        let text =
            format!("{} {} {code:032x} {ptx} {arch:?} {kernel}", env!("CARGO_PKG_VERSION"), env!("KERNELS_SOURCES"));
        EntryKey(hash(text.as_bytes()))
    }
}

/// A hash that is wide enough that no two pieces of code share it by chance.
pub(crate) fn hash(bytes: &[u8]) -> u128 {
    XxHash3_128::oneshot(bytes)
}

/// A folder with summaries. Thread-safe, and safe to share with other processes.
#[derive(Debug)]
pub struct Cache {
    folder: PathBuf,
    limit: u64,
    /// Bytes that may be written before the folder is measured again.
    left: AtomicU64,
    /// Something could not be written: nothing is tried again.
    closed: AtomicBool,
    written: AtomicU32,
    /// Whether the folder is there: threads that keep the first entries wait for it.
    is_made: OnceLock<bool>,
}

impl Cache {
    /// Keeps summaries in a folder, which is made when the first one is written.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Cache {
        Cache::limited(folder, LIMIT)
    }

    /// The same with a bound on the size of the folder, in bytes.
    #[must_use]
    pub fn limited(folder: impl Into<PathBuf>, limit: u64) -> Cache {
        let (left, written) = (AtomicU64::new(0), AtomicU32::new(0));
        Cache { folder: folder.into(), limit, left, closed: AtomicBool::new(false), written, is_made: OnceLock::new() }
    }

    /// Where summaries are kept by default: `$XDG_CACHE_HOME/streamsan`, or `~/.cache/streamsan`
    /// (XDG Base Directory Specification: relative paths do not count). `None`: there is no such
    /// place.
    #[must_use]
    pub fn default_folder() -> Option<PathBuf> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(base.join("streamsan"))
    }

    /// Entries that were written through this value.
    #[must_use]
    pub fn written(&self) -> u32 {
        self.written.load(Ordering::Relaxed)
    }

    fn path(&self, key: EntryKey, content: &Content) -> PathBuf {
        self.folder.join(format!("{:032x}.{}", key.0, content.0))
    }

    /// The summary of the kernel of this name that was kept under a key.
    pub(crate) fn load(&self, key: EntryKey, kernel: &str) -> Option<Summary> {
        Summary::unpacked(&self.read(key, &SUMMARY)?).filter(|summary| summary.name() == kernel)
    }

    fn read(&self, key: EntryKey, content: &Content) -> Option<Vec<u8>> {
        let path = self.path(key, content);
        // Whatever else stands there under this name (a pipe, say) is not opened.
        let about = std::fs::metadata(&path).ok().filter(|m| m.is_file() && m.len() <= MAX_ENTRY)?;
        let mut bytes = std::fs::read(&path).ok()?;
        let rest = bytes.strip_prefix(content.1)?.strip_prefix(&key.0.to_le_bytes())?;
        let (sum, payload) = rest.split_first_chunk()?;
        let (whole, head) = (hash(payload) == u128::from_le_bytes(*sum), bytes.len() - payload.len());
        if about.modified().ok().and_then(|t| t.elapsed().ok()).is_some_and(|age| age > FRESH) {
            let touched = File::open(&path).and_then(|f| f.set_modified(SystemTime::now()));
            // When the file belongs to another user this fails, and the entry keeps its age.
            drop(touched);
        }
        bytes.drain(..head);
        whole.then_some(bytes)
    }

    /// Keeps a summary.
    pub(crate) fn store(&self, key: EntryKey, summary: &Summary) {
        if self.closed.load(Ordering::Relaxed) {
            return;
        }
        let Some(payload) = summary.packed().filter(|p| p.len() as u64 <= MAX_ENTRY / 2) else { return };
        self.put(key, &SUMMARY, &payload);
    }

    fn put(&self, key: EntryKey, content: &Content, payload: &[u8]) {
        if !self.closed.load(Ordering::Relaxed) && self.write(key, content, payload).is_err() {
            self.closed.store(true, Ordering::Relaxed);
        }
    }

    fn write(&self, key: EntryKey, content: &Content, payload: &[u8]) -> std::io::Result<()> {
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        if !self.is_made.get_or_init(|| private(&self.folder).is_ok()) {
            return Err(std::io::ErrorKind::NotFound.into());
        }
        let temporary = self.folder.join(format!("{:032x}.{}-{number}.tmp", key.0, std::process::id()));
        let parts = [content.1, &key.0.to_le_bytes()[..], &hash(payload).to_le_bytes(), payload];
        let write = || File::options().write(true).create_new(true).open(&temporary)?.write_all(&parts.concat());
        write().and_then(|()| std::fs::rename(&temporary, self.path(key, content))).inspect_err(|_| {
            let _ = std::fs::remove_file(&temporary);
        })?;
        self.grown(payload.len() as u64);
        Ok(())
    }

    /// So many bytes of entries were written: now and then entries that were not used for longest
    /// are removed.
    fn grown(&self, bytes: u64) {
        let took = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        if took.is_err() {
            self.trim();
        }
    }

    /// Removes the entries that were not used for longest, when all together are too many. Other
    /// files are left alone.
    fn trim(&self) {
        let now = SystemTime::now();
        let mut entries: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let (path, Ok(about)) = (entry.path(), entry.metadata()) else { continue };
            let (Some(kind), Ok(used)) = (kind(&path).filter(|_| about.is_file()), about.modified()) else { continue };
            match kind {
                Kind::Entry => entries.push((used, about.len(), path)),
                Kind::Temporary if now.duration_since(used).is_ok_and(|age| age > STALE) => {
                    let _ = std::fs::remove_file(path);
                }
                Kind::Temporary => {}
            }
        }
        let mut size: u64 = entries.iter().map(|e| e.1).sum();
        if size > self.limit {
            entries.sort();
            for (_, bytes, path) in entries {
                // Room for a while, so that the next process does not begin with this.
                if size <= self.limit / 4 * 3 {
                    break;
                }
                let _ = std::fs::remove_file(path);
                size -= bytes;
            }
        }
        self.left.store((self.limit.saturating_sub(size) / 2).min(self.limit / 16), Ordering::Relaxed);
    }
}

/// The entry that holds the results of one kernel.
#[derive(Debug)]
pub(crate) struct ResultsEntry {
    cache: Arc<Cache>,
    key: EntryKey,
}

impl ResultsEntry {
    pub(crate) fn new(cache: Arc<Cache>, key: EntryKey) -> ResultsEntry {
        ResultsEntry { cache, key }
    }

    /// What was stored last.
    pub(crate) fn load(&self) -> Option<Vec<u8>> {
        self.cache.read(self.key, &RESULTS)
    }

    /// Keeps results in place of what was there.
    pub(crate) fn store(&self, results: &[u8]) {
        if results.len() <= MAX_RESULTS {
            self.cache.put(self.key, &RESULTS, results);
        }
    }
}

enum Kind {
    Entry,
    Temporary,
}

/// Whether a file is one of ours, by its name.
fn kind(path: &Path) -> Option<Kind> {
    let (key, rest) = path.file_name()?.to_str()?.split_once('.')?;
    let ours = key.len() == 32 && key.bytes().all(|b| b.is_ascii_hexdigit());
    match rest {
        _ if !ours => None,
        _ if [SUMMARY.0, RESULTS.0].contains(&rest) => Some(Kind::Entry),
        rest => rest.ends_with(".tmp").then_some(Kind::Temporary),
    }
}

/// Makes a folder that only its owner reads, as the specification asks for.
fn private(folder: &Path) -> std::io::Result<()> {
    let mut maker = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut maker, 0o700);
    maker.recursive(true).create(folder)
}
