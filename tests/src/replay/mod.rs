//! Recorded launches, made ready to run by themselves on the simulated GPU, over fresh memory.
//!
//! Owns which launches of a trace are different ones, and which of their parameter's words point
//! into memory. Their code is found by [`code`]. A choice of them without the trace is a [`list`].
//! `tests/programs/exact/replay.py` runs them, and `--exact-compare` holds what they touch against
//! what was predicted. This is how kernels of libraries are judged whose host code only runs with
//! NVIDIA's driver.
//!
//! Memory is zeroed, so what a launch touches because of data may be other bytes than it touched
//! when it was recorded. A prediction has to hold for both.

mod choice;
mod code;
mod list;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use trace::file::Reader;
use trace::{ImageId, KernelId, LaunchShape, MemoryKind, Op, ParamSlot, Record, launch_flags};

use crate::product;
use code::Images;

pub use choice::{Choice, write as lists};
pub use list::{Counts, LaunchList, all, fetch};

/// What can be run of a trace.
#[derive(Debug, Default)]
pub struct Replayable {
    /// For each architecture the folder that `replay.py` takes, and how many launches are in it.
    pub folders: Vec<(u32, PathBuf, usize)>,
    /// How many recorded launches they stand for.
    pub launches: u64,
    /// Launches that can not be run by themselves, by the reason.
    pub left_out: BTreeMap<String, u64>,
}

/// Reads a trace, and writes what is needed to run its launches into folders under `out`.
///
/// `code` are folders with the libraries that the trace names by their paths on another machine.
///
/// # Errors
/// The trace can not be read, a folder of code is not there, or `out` can not be written.
pub fn prepare(trace: &Path, code: &[PathBuf], out: &Path) -> Result<Replayable, String> {
    if let Some(missing) = code.iter().find(|folder| !folder.is_dir()) {
        return Err(format!("{}: no such folder", missing.display()));
    }
    let said = |e: &dyn std::fmt::Display| format!("{}: {e}", trace.display());
    let file = File::open(trace).map_err(|e| said(&e))?;
    let mut reader = Reader::new(BufReader::new(file)).map_err(|e| said(&e))?;
    let mut processes = BTreeMap::<u32, Process>::new();
    let mut damaged = 0;
    while reader
        .frame(|process, bytes| match Record::decode(bytes) {
            Ok(record) => processes.entry(process).or_default().apply(&record.op),
            Err(_) => damaged += 1,
        })
        .map_err(|e| said(&e))?
    {}
    if damaged > 0 {
        return Err(said(&format!("{damaged} records can not be read")));
    }
    let mut replayable = Replayable::default();
    for (number, process) in processes {
        process.write(code, &out.join(format!("process-{number}")), &mut replayable)?;
    }
    Ok(replayable)
}

impl Replayable {
    /// What `streamsan` is to run for the launches in a folder of [`Replayable::folders`].
    ///
    /// It prints a line for each, which [`failures`] reads, and leaves `compared.json` there, which
    /// [`crate::oracle`] reads. `STREAMSAN_SIM` has to say `arch=N`.
    pub fn arguments(folder: &Path) -> Vec<String> {
        let file = |path: PathBuf| path.display().to_string();
        let player = file(product::root().join("tests/programs/exact/replay.py"));
        let options = ["run", "--sim", "--exact=all", "--no-stacks", "--error-exitcode", "0", "--exact-compare"];
        let mut all: Vec<String> = options.map(str::to_owned).to_vec();
        all.extend([
            file(folder.join("compared.json")),
            "--".into(),
            "python3".into(),
            player,
            file(folder.to_owned()),
        ]);
        all
    }
}

/// How one launch of a folder went.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Played {
    /// Its number in the folder's list, from 0.
    pub launch: usize,
    /// Its kernel's mangled name.
    pub kernel: String,
    /// Why it could not be run.
    pub failure: Option<String>,
    /// Seconds that it took; 0 for what ended its process.
    #[serde(default)]
    pub seconds: f64,
}

/// What `replay.py` printed.
pub fn played(printed: &str) -> Vec<Played> {
    printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Why launches failed, of what `replay.py` printed.
pub fn failures(printed: &str) -> Vec<String> {
    played(printed).into_iter().filter_map(|launch| launch.failure).collect()
}

/// What one process had.
#[derive(Default)]
struct Process {
    arch: u32,
    images: Images,
    kernels: BTreeMap<KernelId, Kernel>,
    /// Size by first address.
    allocations: BTreeMap<u64, u64>,
    /// What allocators of the program carved out of them.
    blocks: BTreeMap<u64, u64>,
    /// Texture and surface objects.
    objects: BTreeSet<u64>,
    launches: BTreeMap<Launch, u64>,
    left_out: BTreeMap<String, u64>,
}

struct Kernel {
    name: String,
    image: ImageId,
    params: Vec<ParamSlot>,
}

/// One launch. Two that differ in nothing but where their memory lies are equal.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Launch {
    kernel: KernelId,
    /// Of its flags only [`launch_flags::COOPERATIVE`].
    shape: LaunchShape,
    /// Zero where a pointer is.
    params: Vec<u8>,
    pointers: Vec<Pointer>,
    /// Sizes of what they point into.
    memory: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pointer {
    /// Byte offset in the parameters.
    at: usize,
    /// Index into [`Launch::memory`].
    into: usize,
    /// Byte offset there.
    offset: u64,
}

impl Process {
    fn apply(&mut self, op: &Op<'_>) {
        match *op {
            Op::Device { ordinal: 0, arch, .. } => self.arch = arch,
            Op::Module { path, build_id, .. } => self.images.module(&path.lossy(), build_id),
            Op::Image { .. } => self.images.image(op),
            Op::Kernel { id, name, image, params, .. } => {
                let kernel = Kernel { name: name.lossy().into_owned(), image, params: params.iter().collect() };
                self.kernels.insert(id, kernel);
            }
            Op::Alloc { ptr, size, kind: MemoryKind::Block, .. } => {
                self.blocks.insert(ptr, size);
            }
            Op::Alloc { ptr, size, .. } | Op::Global { ptr, size, .. } => {
                self.allocations.insert(ptr, size);
            }
            Op::Free { ptr, kind: trace::FreeKind::Block, .. } => drop(self.blocks.remove(&ptr)),
            Op::Free { ptr, .. } => drop(self.allocations.remove(&ptr)),
            Op::ObjectCreate { object, .. } => drop(self.objects.insert(object)),
            Op::ObjectDestroy { object } => drop(self.objects.remove(&object)),
            Op::Launch { .. } => match self.launch(op) {
                Ok(launch) => *self.launches.entry(launch).or_default() += 1,
                Err(why) => *self.left_out.entry(why).or_default() += 1,
            },
            Op::GraphLaunch { .. } => *self.left_out.entry("launches of graphs".into()).or_default() += 1,
            _ => {}
        }
    }

    fn launch(&self, op: &Op<'_>) -> Result<Launch, String> {
        let Op::Launch { kernel, shape, params, .. } = *op else { unreachable!() };
        if shape.flags & launch_flags::PARAMS_UNKNOWN != 0 {
            return Err("parameters are not known".into());
        }
        let mut launch = Launch {
            kernel,
            shape: shape.with_flags(shape.flags & launch_flags::COOPERATIVE),
            params: params.to_vec(),
            pointers: Vec::new(),
            memory: Vec::new(),
        };
        let mut first_addresses = Vec::new();
        for at in (0..params.len().saturating_sub(7)).step_by(8) {
            let word = u64::from_le_bytes(params[at..at + 8].try_into().expect("eight bytes"));
            if self.objects.contains(&word) {
                return Err("takes a texture or surface object".into());
            }
            let Some((start, size)) = self.memory_at(word) else { continue };
            let into = first_addresses.iter().position(|known| *known == start).unwrap_or_else(|| {
                first_addresses.push(start);
                launch.memory.push(size);
                launch.memory.len() - 1
            });
            launch.pointers.push(Pointer { at, into, offset: word - start });
            launch.params[at..at + 8].fill(0);
        }
        Ok(launch)
    }

    /// The innermost memory that holds an address, or ends there.
    fn memory_at(&self, address: u64) -> Option<(u64, u64)> {
        let in_map = |map: &BTreeMap<u64, u64>| {
            let (start, size) = map.range(..=address).next_back()?;
            (address - start <= *size && *start != 0).then_some((*start, *size))
        };
        in_map(&self.blocks).or_else(|| in_map(&self.allocations))
    }

    fn write(self, code: &[PathBuf], folder: &Path, to: &mut Replayable) -> Result<(), String> {
        let mut left_out = self.left_out;
        let mut launches = Vec::<Value>::new();
        let mut images = self.images.into_files(code, folder);
        for (launch, count) in self.launches {
            let found = self.kernels.get(&launch.kernel).ok_or_else(|| "kernels are not known".to_owned());
            match found.and_then(|kernel| Ok((kernel, images.file(kernel.image)?))) {
                Ok((kernel, image)) => {
                    let mut written = launch.json(kernel, &image);
                    if let Some((place, build_id)) = images.place(kernel.image) {
                        written["code"] = json!(place);
                        written["build_id"] = build_id.map(hex).into();
                    }
                    launches.push(written);
                    to.launches += count;
                }
                Err(why) => *left_out.entry(why).or_default() += count,
            }
        }
        for (why, count) in left_out {
            *to.left_out.entry(why).or_default() += count;
        }
        if launches.is_empty() {
            return Ok(());
        }
        let (file, count) = (folder.join("launches.json"), launches.len());
        std::fs::write(&file, Value::from(launches).to_string()).map_err(|e| format!("{}: {e}", file.display()))?;
        to.folders.push((self.arch, folder.to_owned(), count));
        Ok(())
    }
}

impl Launch {
    fn json(&self, kernel: &Kernel, image: &str) -> Value {
        let pointers: Vec<_> = self.pointers.iter().map(|p| (p.at, p.into, p.offset)).collect();
        let slots: Vec<_> = kernel.params.iter().map(|slot| (slot.offset, slot.size)).collect();
        let LaunchShape { grid, block, cluster, shared, flags } = self.shape;
        json!({
            "kernel": kernel.name, "image": image, "grid": grid, "block": block,
            "cluster": cluster, "shared": shared, "cooperative": flags != 0,
            "params": hex(&self.params), "slots": slots, "pointers": pointers, "memory": self.memory,
        })
    }
}

/// Bytes as text.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
