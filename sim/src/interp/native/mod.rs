//! Kernels as native code. What the interpreter executes often is compiled, a region at a time: the
//! instructions from an entry on up to those that lanes execute together (barriers, shuffles,
//! votes, matrix products, calls) or that are not known here. Those the interpreter executes as
//! ever. So every kernel runs, and what is not compiled is only slower.
//!
//! A region is a function that runs it for one lane after the other, with registers in the host's
//! registers. Between regions registers are in the warp's rows and predicates: the interpreter and
//! regions take over from each other at any instruction.
//!
//! `decode` knows the instructions, `flow` the flow of control and the life of registers, `region`
//! makes the code of one region with `values`, `arithmetic` and `memory`; `context` is what code
//! finds when it runs, `code_memory` where it lies. This file decides what is compiled and when.
//!
//! Does not record addresses, and does not run clusters of several blocks: such launches are
//! interpreted.

mod arithmetic;
mod code_memory;
mod context;
mod decode;
mod flow;
mod instruction;
mod memory;
mod plan;
mod region;
mod values;

use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use cranelift_codegen::Context as Compilation;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, Function, InstBuilder, Signature, UserFuncName, types};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use code_memory::CodeMemory;
use context::{RegionContext, Site};
use decode::Kind;
use flow::Flow;

use crate::interp::program::{Entered, LANES, NativeCode, NativeEntries, Pred, Program};
use crate::interp::warp::Warp;

/// Entries of a warp into a region before it is compiled.
const OFTEN: u32 = 96;

/// Sites that a program may have.
const MOST_SITES: u32 = 1 << 16;

/// A region that is compiled.
struct Region {
    code: unsafe extern "C" fn(*mut RegionContext, u32) -> u64,
    /// Sites that a warp needs for it.
    pub sites: u32,
    /// Whether it uses local memory.
    pub local: bool,
}

impl Region {
    /// Runs it for the lanes of a mask that is not empty.
    ///
    /// # Safety
    /// The context is complete and of a warp whose frame is that of the region's function.
    unsafe fn run(&self, context: *mut RegionContext, mask: u32) -> Left {
        // SAFETY: the caller's promise.
        match unsafe { (self.code)(context, mask) } {
            region::FAULT => Left::Fault,
            region::APART => Left::Apart,
            pc => Left::At(pc as u32),
        }
    }
}

/// How lanes have left a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// All at this instruction.
    At(u32),
    /// Each as the context says.
    Apart,
    /// One is at fault.
    Fault,
}

/// Marks an entry that is not compiled yet.
fn candidate() -> *mut () {
    std::ptr::dangling_mut()
}

/// The native code of one program.
struct Native {
    /// For each instruction: null where no region begins, [`candidate`], or the region.
    entries: Arc<[AtomicPtr<()>]>,
    counts: Box<[AtomicU32]>,
    often: u32,
    compiler: Mutex<Compiler>,
}

struct Compiler {
    isa: OwnedTargetIsa,
    frontend: FunctionBuilderContext,
    finder: u64,
    caller: u64,
    sites: u32,
    /// By the first instruction of a function; None for what is too large.
    flows: HashMap<u32, Option<Flow>>,
    #[allow(clippy::vec_box, reason = "entries point to them")]
    regions: Vec<Box<Region>>,
    memory: Vec<CodeMemory>,
}

/// What is kept for a warp.
struct OfWarp {
    context: RegionContext,
    /// Where its accesses found memory.
    sites: Vec<Site>,
}

/// Native code for a program; none is there yet. None where the host has none.
pub(crate) fn of(program: &Program, always: bool) -> Option<NativeEntries> {
    let native = Native::new(program, always)?;
    Some(NativeEntries { entries: native.entries.clone(), code: Box::new(native) })
}

impl NativeCode for Native {
    fn enter(&self, warp: &mut Warp<'_>, fuel: u32) -> Entered {
        let Some(region) = self.region(warp.env.program, warp.pc) else { return Entered::Nothing };
        let kept = warp.native.take().and_then(|kept| kept.downcast::<OfWarp>().ok());
        let fresh = kept.is_none();
        let mut kept = kept.unwrap_or_else(|| Box::new(OfWarp { context: RegionContext::new(), sites: Vec::new() }));
        let OfWarp { context, sites } = &mut *kept;
        if sites.len() < region.sites as usize {
            sites.resize(region.sites as usize, Site::default());
        }
        if fresh || !warp.native_known {
            context.fill(warp);
            warp.native_known = true;
        }
        let local = if region.local { warp.local() } else { std::ptr::null_mut() };
        (context.frame, context.preds) = warp.frame_and_preds();
        (context.local, context.local_base) = (local, u64::from(warp.lbase));
        (context.fuel, context.spent) = (u64::from(fuel.max(1)), 0);
        (context.tid, context.sites) = (&raw const warp.tid, sites.as_mut_ptr());
        context.warp = std::ptr::from_mut(warp).cast();
        let mask = warp.active;
        // SAFETY: the context was filled for this warp, whose frame is the function's.
        let left = unsafe { region.run(context, mask) };
        let spent = context.spent != 0;
        match left {
            Left::Fault => {}
            Left::At(pc) => {
                self.left_at(warp.env.program, pc);
                warp.pc = pc;
            }
            Left::Apart => self.part(warp, mask, &context.exits),
        }
        warp.native = Some(kept);
        if left == Left::Fault { Entered::Fault } else { Entered::Ran { spent } }
    }
}

impl Native {
    /// Makes groups of the lanes that have left a region at different instructions.
    fn part(&self, warp: &mut Warp<'_>, mask: u32, exits: &[u32; LANES]) {
        let mut left = mask;
        while left != 0 {
            let pc = exits[left.trailing_zeros() as usize & (LANES - 1)];
            let mut lanes = 0;
            for (lane, &exit) in exits.iter().enumerate() {
                lanes |= u32::from(exit == pc) << lane;
            }
            lanes &= left;
            self.left_at(warp.env.program, pc);
            let group = warp.here(pc);
            warp.send(lanes, group);
            left &= !lanes;
        }
    }

    fn new(program: &Program, always: bool) -> Option<Native> {
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        let compiler = Compiler::new()?;
        let code = &program.code;
        let entries: Arc<[AtomicPtr<()>]> = (0..=code.len()).map(|_| AtomicPtr::default()).collect();
        let mark = |pc: u32| {
            if let Some(entry) = entries.get(pc as usize) {
                entry.store(candidate(), Ordering::Relaxed);
            }
        };
        for function in &program.functions {
            mark(function.entry);
        }
        for (pc, inst) in code.iter().enumerate() {
            let pc = pc as u32;
            match decode::kind(inst) {
                Kind::Stop => {
                    decode::continues(program, inst, pc).into_iter().for_each(mark);
                }
                Kind::Branch if inst.x as u32 <= pc => mark(inst.x as u32),
                _ => {}
            }
        }
        // Nothing begins at what stops it.
        for (pc, inst) in code.iter().enumerate() {
            let ends = pc + 1 == code.len() && inst.guard != Pred::ALWAYS;
            if matches!(decode::kind(inst), Kind::Stop) || ends {
                entries[pc].store(std::ptr::null_mut(), Ordering::Relaxed);
            }
        }
        entries[code.len()].store(std::ptr::null_mut(), Ordering::Relaxed);
        let counts = (0..=code.len()).map(|_| AtomicU32::new(0)).collect();
        Some(Native { entries, counts, often: if always { 0 } else { OFTEN }, compiler: Mutex::new(compiler) })
    }

    /// The region that begins at an instruction, if it is compiled; compiles it when it is entered
    /// often.
    #[inline]
    fn region(&self, program: &Program, pc: u32) -> Option<&Region> {
        let entry = self.entries[pc as usize].load(Ordering::Acquire);
        if entry.is_null() {
            return None;
        }
        if entry == candidate() {
            return self.compile_if_due(program, pc);
        }
        // SAFETY: regions live as long as `self`.
        Some(unsafe { &*entry.cast::<Region>() })
    }

    /// A place where lanes have left a region: the next one begins there.
    #[inline]
    fn left_at(&self, program: &Program, pc: u32) {
        let count = &self.counts[pc as usize];
        if count.load(Ordering::Relaxed) == 0 && count.fetch_add(1, Ordering::Relaxed) == 0 {
            let inst = program.code.get(pc as usize);
            if inst.is_some_and(|inst| !matches!(decode::kind(inst), Kind::Stop)) {
                let (null, new) = (std::ptr::null_mut(), candidate());
                let _ = self.entries[pc as usize].compare_exchange(null, new, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    #[cold]
    fn compile_if_due(&self, program: &Program, pc: u32) -> Option<&Region> {
        let count = self.counts[pc as usize].fetch_add(1, Ordering::Relaxed);
        if count < self.often {
            return None;
        }
        let mut compiler = if self.often == 0 { self.compiler.lock().ok()? } else { self.compiler.try_lock().ok()? };
        let entry = &self.entries[pc as usize];
        if entry.load(Ordering::Acquire) == candidate() {
            let region = compiler.compile(program, pc);
            self.counts[pc as usize].store(1, Ordering::Relaxed);
            let pointer = match region {
                Some(region) => {
                    compiler.regions.push(Box::new(region));
                    match compiler.regions.last_mut() {
                        Some(region) => (&raw mut **region).cast(),
                        None => std::ptr::null_mut(),
                    }
                }
                None => std::ptr::null_mut(),
            };
            entry.store(pointer, Ordering::Release);
        }
        let now = entry.load(Ordering::Acquire);
        // SAFETY: as in `region`.
        if now.is_null() || now == candidate() { None } else { Some(unsafe { &*now.cast::<Region>() }) }
    }
}

impl Compiler {
    fn new() -> Option<Compiler> {
        let mut flags = settings::builder();
        flags.set("opt_level", "speed").ok()?;
        // Other threads write what is loaded.
        flags.set("enable_alias_analysis", "false").ok()?;
        flags.set("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }).ok()?;
        let isa = cranelift_native::builder().ok()?.finish(settings::Flags::new(flags)).ok()?;
        let mut compiler = Compiler {
            isa,
            frontend: FunctionBuilderContext::new(),
            finder: 0,
            caller: 0,
            sites: 0,
            flows: HashMap::new(),
            regions: Vec::new(),
            memory: Vec::new(),
        };
        compiler.finder = compiler.apart(context::find as *const () as u64)?;
        compiler.caller = compiler.apart(context::call as *const () as u64)?;
        Some(compiler)
    }

    /// A function that calls one of the host with five numbers and keeps all registers.
    fn apart(&mut self, function_of_host: u64) -> Option<u64> {
        let mut signature = Signature::new(CallConv::PreserveAll);
        signature.params.extend([AbiParam::new(types::I64); 5]);
        let mut function = Function::with_name_signature(UserFuncName::default(), signature.clone());
        let mut b = FunctionBuilder::new(&mut function, &mut self.frontend);
        let block = b.create_block();
        b.append_block_params_for_function_params(block);
        b.switch_to_block(block);
        let arguments = b.block_params(block).to_vec();
        signature.call_conv = self.isa.default_call_conv();
        let signature = b.import_signature(signature);
        let callee = b.ins().iconst(types::I64, function_of_host as i64);
        b.ins().call_indirect(signature, callee, &arguments);
        b.ins().return_(&[]);
        b.seal_all_blocks();
        b.finalize(self.isa.frontend_config());
        self.emit(function)
    }

    /// Puts a function into memory. Returns its address.
    fn emit(&mut self, function: Function) -> Option<u64> {
        let mut compilation = Compilation::for_function(function);
        let code = match compilation.compile(&*self.isa, &mut ControlPlane::default()) {
            Ok(code) => code,
            Err(error) => {
                debug_assert!(false, "{error:?}");
                return None;
            }
        };
        if !code.buffer.relocs().is_empty() {
            return None;
        }
        let memory = CodeMemory::new(code.code_buffer())?;
        let address = memory.address();
        self.memory.push(memory);
        Some(address)
    }

    fn compile(&mut self, program: &Program, pc: u32) -> Option<Region> {
        let entries = program.functions.iter().map(|function| function.entry).filter(|&entry| entry <= pc);
        let start = if program.machine.is_some() { 0 } else { entries.max().unwrap_or(0) };
        let known = self.flows.remove(&start);
        let mut flow = known.unwrap_or_else(|| Flow::of(program, pc));
        let region = flow.as_mut().and_then(|flow| {
            flow.split(program, pc);
            self.compile_in(program, flow, pc)
        });
        self.flows.insert(start, flow);
        region
    }

    fn compile_in(&mut self, program: &Program, flow: &Flow, pc: u32) -> Option<Region> {
        let mut signature = Signature::new(self.isa.default_call_conv());
        signature.params.extend([AbiParam::new(types::I64), AbiParam::new(types::I32)]);
        signature.returns.push(AbiParam::new(types::I64));
        let mut function = Function::with_name_signature(UserFuncName::default(), signature);
        let convention = self.isa.default_call_conv();
        let place = region::Place { finder: self.finder, caller: self.caller, first_site: self.sites, convention };
        let config = self.isa.frontend_config();
        let shape = region::build(program, flow, pc, &mut function, &mut self.frontend, place, config)?;
        if self.sites + shape.sites > MOST_SITES {
            return None;
        }
        let address = self.emit(function)?;
        self.sites += shape.sites;
        // SAFETY: the code at this address was made for that signature.
        let code = unsafe {
            std::mem::transmute::<*const (), unsafe extern "C" fn(*mut RegionContext, u32) -> u64>(address as *const ())
        };
        Some(Region { code, sites: self.sites, local: shape.local })
    }
}
