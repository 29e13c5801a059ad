//! What all segments of a recording share: code images and symbols, once, named by their content.
//!
//! Owns the folder beside the segments, and the thread that resolves symbols while the program
//! runs: resolving takes seconds for large libraries, and whoever reads the ring must not wait.
//! What is resolved is [`crate::trailer`]'s.
//!
//! Where old segments are deleted, symbols that no kept segment refers to go as well. Those that
//! are still needed are written anew before the old files go, so that nothing is lost whenever the
//! writer dies. Code stays: a kernel that was loaded once may be launched at any time. So does all
//! that was there when something was saved.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use sha2::{Digest, Sha256};
use trace::segment::{CODE, SHARED, SYMBOLS};
use trace::{ImageId, ImageSource, Op, Record};

use crate::trailer::Late;
use detect::launches::images::ImageFile;
use system::private_file;

/// Digits of a name: half of a SHA-256.
const DIGITS: usize = 32;

enum Message {
    Definition(u32, Vec<u8>),
    Resolve,
    Pin,
    Keep(Vec<(u32, Vec<u8>)>),
}

/// The folder.
pub(crate) struct SharedFiles {
    folder: PathBuf,
    send: Option<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
    is_much: Arc<AtomicBool>,
}

impl SharedFiles {
    /// Makes the folder in that of the recording. `most`: bytes of symbols at which it pays to look
    /// for those that nobody needs (0: always); later, twice of what was needed then.
    pub(crate) fn create(recording: &Path, most: u64) -> io::Result<Self> {
        let folder = recording.join(SHARED);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let (send, receive) = channel();
        let is_much = Arc::new(AtomicBool::new(false));
        let symbols = SymbolFiles { folder: folder.clone(), files: Vec::new(), most, is_much: Arc::clone(&is_much) };
        let thread = std::thread::Builder::new().name("symbols".into()).stack_size(crate::STACK);
        let thread = thread.spawn(move || resolve(&receive, symbols))?;
        Ok(Self { folder, send: Some(send), thread: Some(thread), is_much })
    }

    /// Keeps the code of an image. Answers the name of its file.
    pub(crate) fn code(&self, bytes: &[u8]) -> io::Result<String> {
        write_once(&self.folder, CODE, bytes).map(|(name, _)| name)
    }

    /// Takes a definition that symbols may follow from; one that is known already does nothing.
    pub(crate) fn define(&self, process: u32, bytes: &[u8]) {
        self.send(Message::Definition(process, bytes.to_vec()));
    }

    /// Writes the symbols of what was defined so far, some time later.
    pub(crate) fn resolve(&self) {
        self.send(Message::Resolve);
    }

    /// What was defined so far stays, whatever is deleted later.
    pub(crate) fn pin(&self) {
        self.send(Message::Pin);
    }

    /// Whether there are so many symbols that [`SharedFiles::keep`] pays.
    pub(crate) fn are_many(&self) -> bool {
        self.is_much.load(Ordering::Relaxed)
    }

    /// Deletes, some time later, the symbols that none of these stacks needs. One that is defined
    /// again gets its symbols again.
    pub(crate) fn keep(&self, stacks: Vec<(u32, Vec<u8>)>) {
        self.is_much.store(false, Ordering::Relaxed);
        self.send(Message::Keep(stacks));
    }

    fn send(&self, message: Message) {
        if let Some(send) = &self.send {
            // The thread ends when the channel closes, not before.
            let _ = send.send(message);
        }
    }

    /// Waits until everything is written.
    pub(crate) fn finish(&mut self) {
        self.resolve();
        self.send = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Writes a file under the name of its content, unless it is there. Answers the name, and whether
/// it was written.
fn write_once(folder: &Path, ending: &str, bytes: &[u8]) -> io::Result<(String, bool)> {
    let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("{}.{ending}", &digits[..DIGITS]);
    let path = folder.join(&name);
    if path.exists() {
        return Ok((name, false));
    }
    // Whoever takes finished files must not meet half of one.
    let unfinished = folder.join(format!("{name}.part"));
    let mut to = private_file::create(&unfinished)?;
    to.write_all(bytes)?;
    fs::rename(unfinished, path)?;
    Ok((name, true))
}

/// The hash of a record.
type Hash = [u8; 32];

/// The definitions of one process.
#[derive(Default)]
struct Definitions {
    /// All but stacks and images, which every resolution needs, in their order.
    lasting: Vec<Vec<u8>>,
    images: BTreeMap<ImageId, Vec<u8>>,
    /// The definitions of their files, which are held from the moment that they are named.
    files: BTreeMap<ImageId, (Vec<u8>, ImageFile)>,
    /// Stacks without symbols, each with the number of lasting definitions before it: an address
    /// may belong to another library later.
    stacks: Vec<(usize, Vec<u8>)>,
    /// Of each stack that was ever defined, this number.
    places: HashMap<u32, usize>,
    /// Stacks with symbols.
    resolved: HashSet<u32>,
    fresh_kernels: bool,
    /// Records that are in some file.
    written: HashSet<Hash>,
}

/// Records of one process that are in no file yet.
#[derive(Default)]
struct Fresh {
    symbols: Vec<Vec<u8>>,
    code: Vec<Vec<u8>>,
    hashes: Vec<Hash>,
}

impl Definitions {
    fn take(&mut self, bytes: Vec<u8>) {
        match Record::decode(&bytes).map(|record| record.op) {
            Ok(Op::Stack { id, .. }) => {
                let place = *self.places.entry(id.0).or_insert(self.lasting.len());
                if self.resolved.insert(id.0) {
                    self.stacks.push((place, bytes));
                }
            }
            Ok(Op::Image { id, source: ImageSource::File, .. }) => drop(self.images.insert(id, bytes)),
            Ok(op @ Op::ImageFile { id, path, .. }) => {
                let mut file = ImageFile::named(path.path());
                file.identify(&op);
                self.files.insert(id, (bytes.clone(), file));
            }
            Ok(Op::Kernel { .. }) => {
                self.fresh_kernels = true;
                self.lasting.push(bytes);
            }
            Ok(Op::Process { .. } | Op::Module { .. } | Op::PyCode { .. } | Op::Device { .. }) => {
                self.lasting.push(bytes);
            }
            _ => {}
        }
    }

    /// What follows from the definitions since the last call.
    fn resolve(&mut self) -> Fresh {
        if self.stacks.is_empty() && !std::mem::take(&mut self.fresh_kernels) {
            return Fresh::default();
        }
        let mut late = Late::default();
        let mut stacks = std::mem::take(&mut self.stacks);
        stacks.sort_by_key(|(place, _)| *place);
        let mut stacks = stacks.iter().peekable();
        for (place, bytes) in self.lasting.iter().enumerate() {
            while let Some((_, stack)) = stacks.next_if(|(before, _)| *before <= place) {
                late.observe(stack);
            }
            late.observe(bytes);
        }
        let files = self.files.values().map(|(bytes, _)| bytes);
        let images = self.images.values().chain(files);
        stacks.map(|(_, stack)| stack).chain(images).for_each(|bytes| late.observe(bytes));
        let mut fresh = Fresh::default();
        for bytes in late.records() {
            let hash = Sha256::digest(&bytes).into();
            if !self.written.insert(hash) {
                continue;
            }
            if let Ok(Record { op: Op::Image { id, .. }, .. }) = Record::decode(&bytes) {
                self.images.remove(&id);
                self.files.remove(&id);
                fresh.code.push(bytes);
            } else {
                fresh.hashes.push(hash);
                fresh.symbols.push(bytes);
            }
        }
        fresh
    }

    /// Forgets these records, and that any stack has symbols. Only `stacks` are resolved again.
    fn forget(&mut self, records: &HashSet<Hash>, stacks: Vec<Vec<u8>>) {
        self.written.retain(|hash| !records.contains(hash));
        self.resolved.clear();
        self.stacks.clear();
        stacks.into_iter().for_each(|bytes| self.take(bytes));
    }
}

/// A file with symbols of one process.
struct SymbolFile {
    name: String,
    bytes: u64,
    process: u32,
    records: Vec<Hash>,
}

/// The files with symbols that may be deleted.
struct SymbolFiles {
    folder: PathBuf,
    files: Vec<SymbolFile>,
    /// Bytes of them at which it pays to look for what nobody needs.
    most: u64,
    is_much: Arc<AtomicBool>,
}

impl SymbolFiles {
    fn write(&mut self, process: u32, fresh: Fresh) -> io::Result<()> {
        write(&self.folder, process, fresh.code)?;
        if let Some((name, bytes)) = write(&self.folder, process, fresh.symbols)? {
            self.files.push(SymbolFile { name, bytes, process, records: fresh.hashes });
        }
        self.is_much.store(self.bytes() >= self.most, Ordering::Relaxed);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Writes the symbols of these stacks anew, and deletes the files of before.
    fn keep(&mut self, processes: &mut BTreeMap<u32, Definitions>, stacks: Vec<(u32, Vec<u8>)>) -> io::Result<()> {
        let old = std::mem::take(&mut self.files);
        let mut by_process: BTreeMap<u32, Vec<Vec<u8>>> = BTreeMap::new();
        stacks.into_iter().for_each(|(process, bytes)| by_process.entry(process).or_default().push(bytes));
        for (process, definitions) in processes {
            let mine = old.iter().filter(|file| file.process == *process);
            let records: HashSet<Hash> = mine.flat_map(|file| file.records.iter().copied()).collect();
            definitions.forget(&records, by_process.remove(process).unwrap_or_default());
            self.write(*process, definitions.resolve())?;
        }
        for file in old.iter().filter(|old| self.files.iter().all(|new| new.name != old.name)) {
            // Nobody needs what is gone already.
            let _ = fs::remove_file(self.folder.join(&file.name));
        }
        // What is needed now will be needed for a while.
        if self.most > 0 {
            self.most = self.most.max(2 * self.bytes());
        }
        self.is_much.store(self.bytes() >= self.most, Ordering::Relaxed);
        Ok(())
    }
}

fn resolve(from: &Receiver<Message>, mut to: SymbolFiles) {
    let mut processes: BTreeMap<u32, Definitions> = BTreeMap::new();
    let said = |ended: io::Result<()>| {
        if let Err(error) = ended {
            system::say!("symbols can not be written beside the segments: {error}");
        }
    };
    for message in from {
        match message {
            Message::Definition(process, bytes) => processes.entry(process).or_default().take(bytes),
            Message::Resolve => {
                for (process, definitions) in &mut processes {
                    said(to.write(*process, definitions.resolve()));
                }
            }
            Message::Pin => to.files.clear(),
            Message::Keep(stacks) => said(to.keep(&mut processes, stacks)),
        }
    }
}

/// Writes late definitions as a file, if there are any. Answers its name and size.
fn write(folder: &Path, process: u32, records: Vec<Vec<u8>>) -> io::Result<Option<(String, u64)>> {
    if records.is_empty() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let mut writer = trace::file::Writer::new(BufWriter::new(&mut bytes))?;
    writer.late(process, records)?;
    writer.finish()?;
    drop(writer);
    let (name, _) = write_once(folder, SYMBOLS, &bytes)?;
    Ok(Some((name, bytes.len() as u64)))
}
