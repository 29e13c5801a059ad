//! Makes functions of the host of regions, and keeps them.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cranelift_codegen::Context as Compilation;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, Function, InstBuilder, Signature, UserFuncName, types};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use super::code_memory::CodeMemory;
use super::context::{self, RegionContext};
use super::flow::Flow;
use super::pack::class::{Class, Exit};
use super::pack::{self, Supposed};
use super::region::{self, Built};
use crate::interp::program::Program;

/// Sites that a program may have.
const MOST_SITES: u32 = 1 << 16;

/// Instructions of Cranelift from which on registers are chosen in one pass: the other way takes
/// time that grows with their square, and there are spills anyway.
const LONG: usize = 8000;

/// The same in tests, so that they have both.
const LONG_IN_TESTS: usize = 1200;

/// A compiled region. Its arguments: the context, and the lanes.
pub(super) type RegionFn = unsafe extern "C" fn(*mut RegionContext, u32) -> u64;

/// A region that was compiled.
pub(super) struct RegionCode {
    pub code: RegionFn,
    /// Sites that a warp needs for it.
    pub sites: u32,
    /// Whether it uses local memory.
    pub local: bool,
    /// What it checks of registers, unless it is told that they are so.
    pub supposed: Vec<(usize, Class)>,
}

/// For whom a region is compiled.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'s> {
    /// For lanes one by one, as far as native code can go on.
    Lanes,
    /// The same, from a branch up to where its ways meet again.
    UpToJoin,
    /// For packs, where something is supposed of what they find.
    Packs(&'s Supposed),
}

/// What makes code for one program.
pub(super) struct RegionCompiler {
    isa: OwnedTargetIsa,
    /// The same, for long functions: registers are chosen in one pass.
    quick: OwnedTargetIsa,
    long: usize,
    frontend: FunctionBuilderContext,
    finder: u64,
    pack_finder: u64,
    caller: u64,
    sites: u32,
    /// By the first instruction of a function; None for what is too large.
    flows: HashMap<u32, Option<Flow>>,
    memory: Vec<CodeMemory>,
    /// Code has their addresses.
    #[allow(clippy::vec_box, reason = "code has their addresses")]
    exits: Vec<Box<Exit>>,
}

/// The host, as code is made for it with one way of choosing registers.
fn isa(registers: &str, verify: bool) -> Option<OwnedTargetIsa> {
    let mut flags = settings::builder();
    flags.set("opt_level", "speed").ok()?;
    flags.set("regalloc_algorithm", registers).ok()?;
    // Other threads write what is loaded.
    flags.set("enable_alias_analysis", "false").ok()?;
    flags.set("enable_verifier", if verify { "true" } else { "false" }).ok()?;
    cranelift_native::builder().ok()?.finish(settings::Flags::new(flags)).ok()
}

impl RegionCompiler {
    /// `verify`: whether Cranelift looks at what it is given.
    pub(super) fn new(verify: bool) -> Option<RegionCompiler> {
        let mut compiler = RegionCompiler {
            isa: isa("backtracking", verify)?,
            quick: isa("single_pass", verify)?,
            long: if verify { LONG_IN_TESTS } else { LONG },
            frontend: FunctionBuilderContext::new(),
            finder: 0,
            pack_finder: 0,
            caller: 0,
            sites: 0,
            flows: HashMap::new(),
            memory: Vec::new(),
            exits: Vec::new(),
        };
        compiler.finder = compiler.apart(context::find as *const () as u64)?;
        compiler.pack_finder = compiler.apart(context::find_pack as *const () as u64)?;
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
        let long = compilation.func.dfg.num_insts() > self.long;
        let isa = if long { &self.quick } else { &self.isa };
        let code = match compilation.compile(&**isa, &mut ControlPlane::default()) {
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

    /// What is known of the function that an instruction belongs to. None when it is too large.
    pub(super) fn flow(&mut self, program: &Program, pc: u32) -> Option<&mut Flow> {
        let entries = program.functions.iter().map(|function| function.entry).filter(|&entry| entry <= pc);
        let start = if program.machine.is_some() { 0 } else { entries.max().unwrap_or(0) };
        self.flows.entry(start).or_insert_with(|| Flow::of(program, pc)).as_mut()
    }

    /// Compiles the region that begins at an instruction.
    ///
    /// None when that is not possible. A code generator that panics is not the program's trouble.
    pub(super) fn compile(&mut self, program: &Program, pc: u32, wanted: Wanted<'_>) -> Option<RegionCode> {
        let compiled = catch_unwind(AssertUnwindSafe(|| self.compiled(program, pc, wanted)));
        debug_assert!(compiled.is_ok(), "no native code from instruction {pc} on");
        compiled.ok().flatten()
    }

    fn compiled(&mut self, program: &Program, pc: u32, wanted: Wanted<'_>) -> Option<RegionCode> {
        let place = region::Place {
            finder: self.finder,
            pack_finder: self.pack_finder,
            caller: self.caller,
            first_site: self.sites,
            convention: self.isa.default_call_conv(),
        };
        let mut signature = Signature::new(self.isa.default_call_conv());
        signature.params.extend([AbiParam::new(types::I64), AbiParam::new(types::I32)]);
        signature.returns.push(AbiParam::new(types::I64));
        let mut function = Function::with_name_signature(UserFuncName::default(), signature);
        let config = self.isa.frontend_config();
        let mut frontend = std::mem::take(&mut self.frontend);
        let flow = self.flow(program, pc)?;
        flow.split(program, pc);
        let built = match wanted {
            Wanted::Packs(supposed) => {
                pack::build(program, flow, pc, (&mut function, &mut frontend), place, config, supposed)
            }
            _ => {
                let joining = matches!(wanted, Wanted::UpToJoin);
                region::build(program, flow, pc, &mut function, &mut frontend, place, config, joining)
            }
        };
        self.frontend = frontend;
        let Built { sites, local, exits, supposed } = built?;
        self.exits.extend(exits);
        if self.sites + sites > MOST_SITES {
            return None;
        }
        let address = self.emit(function)?;
        if let Some(memory) = self.memory.last() {
            let line = program.code[pc as usize].line;
            memory.name(|| match wanted {
                Wanted::Lanes => format!("lanes from {pc} line {line}"),
                Wanted::UpToJoin => format!("lanes up to join from {pc} line {line}"),
                Wanted::Packs(supposed) => format!("packs of {} from {pc} line {line}", supposed.width.lanes()),
            });
        }
        self.sites += sites;
        // SAFETY: the code at this address was made for that signature.
        let code = unsafe { std::mem::transmute::<*const (), RegionFn>(address as *const ()) };
        Some(RegionCode { code, sites: self.sites, local, supposed })
    }
}
