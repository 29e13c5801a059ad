//! What all segments of a recording share: code images and symbols, once, named by their content.
//!
//! Owns the folder beside the segments, and the thread that resolves symbols while the program
//! runs: resolving takes seconds for large libraries, and whoever reads the ring must not wait.
//! What is resolved is [`crate::ingest::trailer`]'s.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use sha2::{Digest, Sha256};
use trace::segment::{CODE, SHARED, SYMBOLS};
use trace::{ImageId, ImageSource, Op, Record};

use crate::ingest::trailer::Late;
use crate::private_file;

/// Digits of a name: half of a SHA-256.
const DIGITS: usize = 32;

enum Message {
    Definition(u32, Vec<u8>),
    Resolve,
}

/// The folder.
pub struct SharedFiles {
    folder: PathBuf,
    send: Option<Sender<Message>>,
    thread: Option<JoinHandle<()>>,
}

impl SharedFiles {
    /// Makes the folder in that of the recording.
    pub fn create(recording: &Path) -> io::Result<Self> {
        let folder = recording.join(SHARED);
        fs::create_dir_all(&folder)?;
        let (send, receive) = channel();
        let to = folder.clone();
        let thread = std::thread::Builder::new().name("symbols".into()).stack_size(crate::ingest::STACK);
        let thread = thread.spawn(move || resolve(&receive, &to))?;
        Ok(Self { folder, send: Some(send), thread: Some(thread) })
    }

    /// Keeps the code of an image. Answers the name of its file.
    pub fn code(&self, bytes: &[u8]) -> io::Result<String> {
        write_once(&self.folder, CODE, bytes)
    }

    /// Takes a definition that symbols may follow from.
    pub fn define(&self, process: u32, bytes: &[u8]) {
        self.send(Message::Definition(process, bytes.to_vec()));
    }

    /// Writes the symbols of what was defined so far, some time later.
    pub fn resolve(&self) {
        self.send(Message::Resolve);
    }

    fn send(&self, message: Message) {
        if let Some(send) = &self.send {
            // The thread ends when the channel closes, not before.
            let _ = send.send(message);
        }
    }

    /// Waits until everything is written.
    pub fn finish(&mut self) {
        self.resolve();
        self.send = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Writes a file under the name of its content, unless it is there. Answers the name.
fn write_once(folder: &Path, ending: &str, bytes: &[u8]) -> io::Result<String> {
    let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!("{}.{ending}", &digits[..DIGITS]);
    let path = folder.join(&name);
    if !path.exists() {
        // Whoever takes finished files must not meet half of one.
        let unfinished = folder.join(format!("{name}.part"));
        let mut to = private_file::create(&unfinished)?;
        to.write_all(bytes)?;
        fs::rename(unfinished, path)?;
    }
    Ok(name)
}

/// The definitions of one process.
#[derive(Default)]
struct Definitions {
    /// All but stacks and images, which every resolution needs.
    lasting: Vec<Vec<u8>>,
    images: BTreeMap<ImageId, Vec<u8>>,
    stacks: Vec<Vec<u8>>,
    fresh_kernels: bool,
    written: HashSet<[u8; 32]>,
}

impl Definitions {
    fn take(&mut self, bytes: Vec<u8>) {
        match Record::decode(&bytes).map(|record| record.op) {
            Ok(Op::Stack { .. }) => self.stacks.push(bytes),
            Ok(Op::Image { id, source: ImageSource::File, .. }) => drop(self.images.insert(id, bytes)),
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
    fn resolve(&mut self) -> Vec<Vec<u8>> {
        if self.stacks.is_empty() && !std::mem::take(&mut self.fresh_kernels) {
            return Vec::new();
        }
        let mut late = Late::default();
        let stacks = std::mem::take(&mut self.stacks);
        for bytes in self.lasting.iter().chain(self.images.values()).chain(&stacks) {
            late.observe(bytes);
        }
        let mut done = BTreeSet::new();
        let mut fresh = late.records();
        fresh.retain(|bytes| self.written.insert(Sha256::digest(bytes).into()));
        for bytes in &fresh {
            if let Ok(Record { op: Op::Image { id, .. }, .. }) = Record::decode(bytes) {
                done.insert(id);
            }
        }
        self.images.retain(|id, _| !done.contains(id));
        fresh
    }
}

fn resolve(from: &Receiver<Message>, folder: &Path) {
    let mut processes: BTreeMap<u32, Definitions> = BTreeMap::new();
    for message in from {
        match message {
            Message::Definition(process, bytes) => processes.entry(process).or_default().take(bytes),
            Message::Resolve => {
                for (process, definitions) in &mut processes {
                    let records = definitions.resolve();
                    if !records.is_empty()
                        && let Err(error) = write(folder, *process, records)
                    {
                        eprintln!("streamsan: symbols can not be written beside the segments: {error}");
                    }
                }
            }
        }
    }
}

fn write(folder: &Path, process: u32, records: Vec<Vec<u8>>) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut writer = trace::file::Writer::new(BufWriter::new(&mut bytes))?;
    writer.late(process, records)?;
    writer.flush()?;
    drop(writer);
    write_once(folder, SYMBOLS, &bytes).map(drop)
}
