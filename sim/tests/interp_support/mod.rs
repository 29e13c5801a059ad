//! What the tests of the interpreter share: compiling CUDA C++ to PTX with the toolkit's nvcc, a
//! device of plain host memory, and launches with typed arguments.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod both;

use std::collections::BTreeMap;
use std::sync::Mutex;

use device_code::ptx::{Module, Space, parse};
use sim_races::{Detector, MemoryEvents, Reading};
use streamsan_sim::interp::{
    AccessKind, Accesses, Compile, Device, Extent, Fault, Kernel, Launch, Linker, MachineModule, Program,
    TextureRequest, globals, initial_bytes, run,
};
pub use tests::build::installed_toolkit as toolkit;

/// What machine code is made for: `INTERP_ARCH`, else `sm_80`.
pub fn arch() -> String {
    std::env::var("INTERP_ARCH").unwrap_or_else(|_| "sm_80".into())
}

/// PTX of a CUDA source.
pub fn ptx(source: &str, arch: &str, extra: &[&str]) -> String {
    String::from_utf8(compile(source, &["-ptx", &format!("-arch={arch}")], extra)).unwrap()
}

/// What nvcc makes of a CUDA source.
pub fn compile(source: &str, form: &[&str], extra: &[&str]) -> Vec<u8> {
    let input = tests::build::generated("a.cu", source);
    let mut args: Vec<String> = form.iter().map(|word| (*word).to_owned()).collect();
    args.extend(["-O2", "-lineinfo"].map(String::from));
    args.extend(extra.iter().map(|word| (*word).to_owned()));
    args.extend(["-o".to_owned(), "{out}".to_owned(), input.display().to_string()]);
    let compiled = tests::build::cached("a.out", &toolkit().join("bin/nvcc"), &args, &[&input]);
    std::fs::read(compiled.unwrap_or_else(|said| panic!("{said}"))).unwrap()
}

/// One access that a launch made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub kind: AccessKind,
    pub address: u64,
    pub size: u32,
    pub line: u32,
}

/// A device whose memory is boxes on the host's heap.
#[derive(Default)]
pub struct TestDevice {
    memory: Mutex<BTreeMap<u64, Box<[u128]>>>,
    sizes: Mutex<BTreeMap<u64, u64>>,
    pub printed: Mutex<Vec<u8>>,
    pub seen: Mutex<Vec<Seen>>,
    pub observe: bool,
    /// Who is told of everything that matters for races.
    detector: Mutex<Option<&'static Detector>>,
}

impl TestDevice {
    pub fn alloc(&self, size: u64) -> u64 {
        let block = vec![0u128; (size as usize).div_ceil(16).max(1)].into_boxed_slice();
        let address = block.as_ptr() as u64;
        self.memory.lock().unwrap().insert(address, block);
        self.sizes.lock().unwrap().insert(address, size);
        address
    }
}

impl Device for TestDevice {
    fn allocation(&self, address: u64) -> Option<Extent> {
        let sizes = self.sizes.lock().unwrap();
        let (&start, &size) = sizes.range(..=address).next_back()?;
        (address < start + size).then_some(Extent { start, end: start + size, writable: true })
    }
    fn print(&self, text: &[u8]) {
        self.printed.lock().unwrap().extend(text);
    }
    fn malloc(&self, size: u64) -> u64 {
        self.alloc(size)
    }
    fn free(&self, address: u64) {
        self.sizes.lock().unwrap().remove(&address);
    }
    fn texture(&self, request: &TextureRequest<'_>) -> Result<[u64; 4], String> {
        Ok([request.object, u64::from(request.coordinates[0]), request.coordinates.len() as u64, 4])
    }
    fn observing(&self) -> bool {
        self.observe
    }
    fn memory_events(&self) -> Option<&dyn MemoryEvents> {
        self.detector.lock().unwrap().map(|detector| detector as &dyn MemoryEvents)
    }
    fn observe(&self, accesses: &Accesses<'_>) {
        let mut seen = self.seen.lock().unwrap();
        for &(address, _) in accesses.lanes {
            seen.push(Seen { kind: accesses.kind, address, size: accesses.size, line: accesses.line });
        }
    }
}

struct Symbols(BTreeMap<String, u64>);

impl Linker for Symbols {
    fn symbol(&self, name: &str, _: Space) -> Option<u64> {
        self.0.get(name).copied()
    }
}

/// A module on a device.
pub struct Gpu {
    pub module: Module,
    pub program: Program,
    pub device: TestDevice,
    symbols: BTreeMap<String, u64>,
    /// The kernels of machine code, each by itself; without, the program is the PTX's.
    machine: Option<BTreeMap<String, Program>>,
    pub workers: usize,
}

/// A kernel argument.
pub enum Arg {
    Bytes(Vec<u8>),
}

macro_rules! arg {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Arg {
            fn from(value: $ty) -> Arg {
                Arg::Bytes(value.to_le_bytes().to_vec())
            }
        }
    )*};
}
arg!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl From<&Buffer> for Arg {
    fn from(value: &Buffer) -> Arg {
        value.address.into()
    }
}

/// Device memory.
#[derive(Clone, Copy)]
pub struct Buffer {
    pub address: u64,
    pub size: u64,
}

impl Buffer {
    pub fn read<T: Copy>(&self) -> Vec<T> {
        let count = self.size as usize / size_of::<T>();
        // SAFETY: the device's memory lives as long as the test; no launch runs now.
        unsafe { std::slice::from_raw_parts(self.address as *const T, count) }.to_vec()
    }
}

impl Gpu {
    pub fn new(source: &str) -> Gpu {
        Gpu::with(source, "compute_80", &[])
    }

    pub fn with(source: &str, arch: &str, extra: &[&str]) -> Gpu {
        if std::env::var_os("INTERP_CODE").is_some_and(|code| code == "sass") {
            return Gpu::machine(source, extra);
        }
        Gpu::from_ptx(&ptx(source, arch, extra))
    }

    pub fn from_ptx(text: &str) -> Gpu {
        let module = parse(text).unwrap_or_else(|error| panic!("{error}"));
        let device = TestDevice::default();
        let variables = globals(&module);
        let mut symbols = BTreeMap::new();
        for variable in &variables {
            symbols.insert(variable.name.clone(), device.alloc(variable.size));
        }
        let linker = Symbols(symbols.clone());
        for variable in &variables {
            let bytes = initial_bytes(&module, variable, &linker).unwrap();
            // SAFETY: just allocated with that size.
            unsafe { std::ptr::copy(bytes.as_ptr(), symbols[&variable.name] as *mut u8, bytes.len()) };
        }
        let program = Program::compile(&module, &linker);
        for kernel in program.kernels() {
            assert!(kernel.error().is_none(), "{}", kernel.error().unwrap());
        }
        Gpu { module, program, device, symbols, machine: None, workers: 2 }
    }

    /// The same source as machine code. Kernels that use what is not executed are left to
    /// their launches.
    pub fn machine(source: &str, extra: &[&str]) -> Gpu {
        Gpu::from_cubin(compile(source, &["-cubin", &format!("-arch={}", arch())], extra))
    }

    pub fn from_cubin(cubin: Vec<u8>) -> Gpu {
        let code = MachineModule::parse(cubin).unwrap_or_else(|error| panic!("{error}"));
        let device = TestDevice::default();
        let blocks: Vec<u64> = code.blocks().iter().map(|block| device.alloc(block.size)).collect();
        for (&at, bytes) in blocks.iter().zip(code.initial(&blocks).unwrap()) {
            // SAFETY: just allocated with that size.
            unsafe { std::ptr::copy(bytes.as_ptr(), at as *mut u8, bytes.len()) };
        }
        let symbols = code.variables().into_iter().map(|v| (v.name, blocks[v.block] + v.offset)).collect();
        let compiled = |name: &str| Program::compile_machine(&code, &blocks, name).unwrap();
        let programs = code.kernels().iter().map(|kernel| (kernel.name.clone(), compiled(&kernel.name))).collect();
        // Where tests look at PTX there is none.
        let module = parse(".version 8.0\n.target sm_80\n.address_size 64\n").unwrap();
        let program = Program::compile(&module, &Symbols(BTreeMap::new()));
        Gpu { module, program, device, symbols, machine: Some(programs), workers: 2 }
    }

    /// The source as PTX and as machine code.
    pub fn both(source: &str) -> [Gpu; 2] {
        [Gpu::new(source), Gpu::machine(source, &[])]
    }

    /// The kernels, each with the program that it is in.
    pub fn kernels(&self) -> Vec<(&Program, &Kernel)> {
        match &self.machine {
            None => self.program.kernels().iter().map(|kernel| (&self.program, kernel)).collect(),
            Some(all) => all.values().flat_map(|p| p.kernels().iter().map(move |kernel| (p, kernel))).collect(),
        }
    }

    pub fn buffer<T: Copy>(&self, data: &[T]) -> Buffer {
        let size = size_of_val(data) as u64;
        let address = self.device.alloc(size);
        // SAFETY: just allocated with that size.
        unsafe { std::ptr::copy(data.as_ptr(), address as *mut T, data.len()) };
        Buffer { address, size }
    }

    pub fn zeros<T: Copy + Default>(&self, count: usize) -> Buffer {
        self.buffer(&vec![T::default(); count])
    }

    pub fn symbol(&self, name: &str) -> u64 {
        self.symbols[name]
    }

    /// The mangled name that contains `name`.
    pub fn kernel(&self, name: &str) -> String {
        let length = format!("{}{name}", name.len());
        let found = self.kernels().into_iter().map(|(_, kernel)| kernel.name());
        let mut found = found.filter(|k| *k == name || k.contains(&length));
        found.next().unwrap_or_else(|| panic!("no kernel {name}")).to_owned()
    }

    /// Whether the kernels are machine code.
    pub fn is_machine(&self) -> bool {
        self.machine.is_some()
    }

    /// Has the next launches tell a new detector of races.
    pub fn detect(&self) -> &'static Detector {
        let detector: &Detector = Box::leak(Box::new(Detector::new(Reading { machine: self.is_machine() })));
        *self.device.detector.lock().unwrap() = Some(detector);
        detector
    }

    /// Has the next launches tell nobody.
    pub fn watch_nothing(&self) {
        *self.device.detector.lock().unwrap() = None;
    }

    pub fn try_launch(&self, name: &str, launch: Launch, args: &[Arg]) -> Result<(), Fault> {
        let full = self.kernel(name);
        let (program, kernel) = self.kernels().into_iter().find(|(_, kernel)| kernel.name() == full).unwrap();
        let mut params = vec![0; kernel.params_size() as usize];
        assert_eq!(kernel.params().len(), args.len(), "arguments of {name}");
        for (param, Arg::Bytes(bytes)) in kernel.params().iter().zip(args) {
            assert_eq!(param.size as usize, bytes.len(), "size of an argument of {name}");
            params[param.offset as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        // With SIM_TEST_INSIDE, every test is one of the detector, too: what it finds is printed.
        let inside = std::env::var_os("SIM_TEST_INSIDE").map(|_| self.detect());
        let ended = run(
            program,
            kernel,
            &Launch { params, compile: compile_choice(), native: streamsan_sim::NATIVE, ..launch },
            &self.device,
            self.workers,
        );
        for race in inside.iter().flat_map(|detector| detector.races()) {
            let lines = race.sides.map(|side| program.source(side.site).map(|(_, line)| *line));
            eprintln!("inside `{name}`, lines {lines:?}: {race:?}");
        }
        ended
    }

    pub fn launch(&self, name: &str, grid: u32, block: u32, args: &[Arg]) {
        let launch = Launch { grid: [grid, 1, 1], block: [block, 1, 1], ..Launch::default() };
        self.try_launch(name, launch, args).unwrap_or_else(|fault| panic!("{fault}"));
    }

    pub fn launch_with(&self, name: &str, launch: Launch, args: &[Arg]) {
        self.try_launch(name, launch, args).unwrap_or_else(|fault| panic!("{fault}"));
    }

    pub fn printed(&self) -> String {
        String::from_utf8(self.device.printed.lock().unwrap().clone()).unwrap()
    }
}

/// Whether kernels run as native code: tests of the interpreter are tests of that as well, with
/// `SIM_TEST_COMPILE=always`.
pub fn compile_choice() -> Compile {
    match std::env::var_os("SIM_TEST_COMPILE") {
        Some(value) if value == "always" => Compile::Always,
        _ => Compile::Off,
    }
}
