//! The definitions of a trace: what the ids of calls, threads, devices and kernels stand for.
//!
//! Owns those names, and the description of the process. Does not own stacks and modules
//! ([`symbols`]) or code images ([`crate::launches::image_reader`]).

use rustc_hash::{FxHashMap, FxHasher};
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;
use trace::{CallId, ContextId, ImageId, KernelId, Op, ParamSlot, ThreadId};

/// A kernel as loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelDef {
    /// Mangled name.
    pub name: String,
    /// Its image.
    pub image: ImageId,
    /// Parameter layout as the driver reports it; empty when it does not.
    pub params: Vec<ParamSlot>,
}

/// The process under test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Process id.
    pub pid: u32,
    /// Process id of the parent.
    pub parent: u32,
    /// Path of the executable.
    pub exe: String,
    /// Arguments.
    pub args: Vec<String>,
    /// Driver version as CUDA encodes it (13000 is 13.0).
    pub driver: u32,
    /// The trace file, when several are analysed together.
    pub trace: Option<String>,
    /// The program of a hunt that it belongs to.
    pub program: Option<String>,
}

impl Process {
    /// Its name in reports.
    pub fn name(&self) -> String {
        let trace = self.trace.as_deref().map(|t| t.rsplit('/').next().unwrap_or(t));
        let of = trace.or(self.program.as_deref());
        of.map_or_else(|| format!("process {}", self.pid), |trace| format!("process {} of {trace}", self.pid))
    }
}

/// What was seen of PyTorch in a process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum TorchUse {
    /// Nothing.
    #[default]
    None,
    /// Its libraries are loaded.
    Loaded,
    /// Its allocator hands memory out.
    Allocates,
}

/// The definitions of one process.
#[derive(Default)]
pub struct Names {
    /// The process.
    pub process: Process,
    calls: FxHashMap<CallId, String>,
    threads: FxHashMap<ThreadId, (u32, String)>,
    kernels: FxHashMap<KernelId, KernelDef>,
    /// Compute capability by device ordinal.
    devices: FxHashMap<u32, u32>,
    /// The same number for a device in each process, by ordinal.
    device_numbers: FxHashMap<u32, NonZeroU32>,
    contexts: FxHashMap<ContextId, u32>,
    /// Whether the program runs Python code.
    pub python: bool,
    /// What was seen of PyTorch.
    pub torch: TorchUse,
}

impl Names {
    /// Takes a definition, or the creation of a context. False: it is of another kind.
    pub fn define(&mut self, op: &Op<'_>) -> bool {
        match *op {
            Op::Process { pid, parent, exe, args, driver, .. } => {
                let args = args.lossy().split('\0').filter(|a| !a.is_empty()).map(String::from).collect();
                self.process =
                    Process { pid, parent, exe: exe.lossy().into_owned(), args, driver, ..Process::default() };
            }
            Op::CallName { id, name } => {
                if name.0.starts_with(b"c10::") {
                    self.torch = TorchUse::Allocates;
                }
                self.calls.insert(id, name.lossy().into_owned());
            }
            Op::Thread { id, tid, name } => {
                self.threads.insert(id, (tid, name.lossy().into_owned()));
            }
            Op::Device { ordinal, arch, .. } => {
                self.devices.insert(ordinal, arch);
            }
            Op::DeviceUuid { ordinal, first, second } => {
                let mut hasher = FxHasher::default();
                (first, second).hash(&mut hasher);
                let number = hasher.finish();
                let number = NonZeroU32::new((number ^ number >> 32) as u32).unwrap_or(NonZeroU32::MIN);
                self.device_numbers.insert(ordinal, number);
            }
            Op::ContextCreate { context, device, .. } => {
                self.contexts.insert(context, device);
                return false;
            }
            Op::Module { path, .. } => {
                if is_torch(&path.lossy()) {
                    self.torch = self.torch.max(TorchUse::Loaded);
                }
                return false;
            }
            Op::Kernel { id, name, image, params, .. } => {
                let def = KernelDef { name: name.lossy().into_owned(), image, params: params.iter().collect() };
                self.kernels.insert(id, def);
            }
            _ => return false,
        }
        true
    }

    /// Whether PyTorch's allocator was seen.
    pub fn has_torch_blocks(&self) -> bool {
        self.torch == TorchUse::Allocates
    }

    /// All devices: their ordinals and compute capabilities.
    pub fn devices(&self) -> Vec<(u32, u32)> {
        self.devices.iter().map(|(ordinal, arch)| (*ordinal, *arch)).collect()
    }

    /// The device of a context, when the program uses more than one.
    pub fn device_of(&self, context: ContextId) -> Option<u32> {
        let device = *self.contexts.get(&context)?;
        self.contexts.values().any(|d| *d != device).then_some(device)
    }

    /// A number for the device of a context that is the same in each process.
    pub fn device_number(&self, context: ContextId) -> Option<NonZeroU32> {
        self.device_numbers.get(self.contexts.get(&context)?).copied()
    }

    /// How many contexts there have been.
    pub fn contexts(&self) -> usize {
        self.contexts.len()
    }

    /// The name of an API function.
    pub fn call(&self, id: CallId) -> &str {
        self.calls.get(&id).map_or("", String::as_str)
    }

    /// A host thread: its kernel thread id and name.
    pub fn thread(&self, id: ThreadId) -> Option<(u32, &str)> {
        self.threads.get(&id).map(|(tid, name)| (*tid, name.as_str()))
    }

    /// A kernel.
    pub fn kernel(&self, id: KernelId) -> Option<&KernelDef> {
        self.kernels.get(&id)
    }

    /// Compute capability of the device of a context. For an unknown context: that of all devices,
    /// if they are alike.
    pub fn arch(&self, context: ContextId) -> Option<u32> {
        match self.contexts.get(&context).and_then(|d| self.devices.get(d)) {
            Some(arch) => Some(*arch),
            None => {
                let mut all = self.devices.values();
                let first = all.next().copied();
                first.filter(|first| all.all(|arch| arch == first))
            }
        }
    }
}

/// Whether an object file is one of PyTorch's libraries.
fn is_torch(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or(path);
    ["libtorch.", "libtorch_", "libc10."].iter().any(|begin| file.starts_with(begin))
        || file.starts_with("libc10_cuda.")
}
