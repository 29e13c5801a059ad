//! One PTX text run in both ways: as PTX, and as the machine code that `ptxas` makes of it. The
//! memory after a launch must be the same.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use streamsan_sim::interp::{Launch, MachineModule, Program, run};

use super::{Gpu, TestDevice, toolkit};

/// Machine code of a PTX text, for the device that tests are asked to use.
pub fn assemble(ptx: &str) -> Vec<u8> {
    assemble_for(ptx, &super::arch())
}

fn assemble_for(ptx: &str, arch: &str) -> Vec<u8> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("both-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (input, output) = (folder.join("a.ptx"), folder.join("a.cubin"));
    std::fs::write(&input, ptx).unwrap();
    let tool: &Path = &toolkit().join("bin/ptxas");
    let done =
        Command::new(tool).args([&format!("-arch={arch}"), "-o"]).args([&output, &input]).output().expect("ptxas");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let bytes = std::fs::read(&output).unwrap();
    let _ = std::fs::remove_dir_all(&folder);
    bytes
}

/// Both forms of a module.
pub struct Both {
    ptx: Gpu,
    machine: MachineModule,
    device: TestDevice,
    blocks: Vec<u64>,
}

impl Both {
    pub fn new(ptx: &str) -> Both {
        Both::on(ptx, &super::arch())
    }

    /// For a device of one architecture.
    pub fn on(ptx: &str, arch: &str) -> Both {
        let machine = MachineModule::parse(assemble_for(ptx, arch)).expect("a cubin");
        let device = TestDevice::default();
        let blocks: Vec<u64> = machine.blocks().iter().map(|block| device.alloc(block.size)).collect();
        let initial = machine.initial(&blocks).expect("variables");
        for (at, bytes) in blocks.iter().zip(initial) {
            // SAFETY: just allocated with that size.
            unsafe { std::ptr::copy(bytes.as_ptr(), *at as *mut u8, bytes.len()) };
        }
        Both { ptx: Gpu::from_ptx(ptx), machine, device, blocks }
    }

    /// The kernels' names.
    pub fn kernels(&self) -> Vec<String> {
        self.ptx.program.kernels().iter().map(|kernel| kernel.name().to_owned()).collect()
    }

    /// Runs a kernel whose only arguments are pointers to an input and to an output of that many
    /// bytes, in both ways. Returns both outputs, or why the machine code cannot run.
    pub fn run(&self, kernel: &str, threads: u32, input: &[u8], output: usize) -> Result<[Vec<u8>; 2], String> {
        let (from, to) = (self.ptx.buffer(input), self.ptx.zeros::<u8>(output));
        self.ptx.launch(kernel, 1, threads, &[(&from).into(), (&to).into()]);
        let program = Program::compile_machine(&self.machine, &self.blocks, kernel).expect("the kernel is there");
        let compiled = program.kernel(kernel).expect("the kernel is there");
        if let Some(error) = compiled.error() {
            return Err(error.to_string());
        }
        let place = self.device.alloc(output as u64);
        let source = self.device.alloc(input.len() as u64);
        // SAFETY: just allocated with those sizes.
        unsafe {
            std::ptr::write_bytes(place as *mut u8, 0, output);
            std::ptr::copy(input.as_ptr(), source as *mut u8, input.len());
        }
        let params = [source.to_le_bytes(), place.to_le_bytes()].concat();
        let launch = Launch {
            grid: [1, 1, 1],
            block: [threads, 1, 1],
            params,
            compile: super::compile_choice(),
            ..Launch::default()
        };
        run(&program, compiled, &launch, &self.device, 1).map_err(|fault| fault.to_string())?;
        // SAFETY: as above; the launch is over.
        let machine = unsafe { std::slice::from_raw_parts(place as *const u8, output) }.to_vec();
        Ok([to.read::<u8>(), machine])
    }
}

/// Random numbers (xorshift).
pub struct Random(pub u64);

impl Random {
    /// The next one, all 64 bits of it.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
