//! Makes functions of the host of regions, and puts them into memory. `relocations` has what code
//! names there, `code_memory` is where it lies.

mod code_memory;
pub(super) mod relocations;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use cranelift_codegen::Context as Compilation;
use cranelift_codegen::FinalizedRelocTarget;
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{
    AbiParam, ExtFuncData, ExternalName, Function, InstBuilder, Signature, UserFuncName, types,
};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};

use super::context::{self, RegionContext};
use super::flow::Flow;
use super::pack::uniformity::{Class, Exit};
use super::pack::{self, Supposed};
use super::region::{self, Built};
use code_memory::CodeMemory;
use relocations::{Keeper, Outside, function_at};
use sim_exec::program::Program;

/// Sites that a program may have.
const MOST_SITES: u32 = 1 << 16;

/// Instructions of Cranelift from which on registers are chosen in one pass: the other way takes
/// time that grows with their square, and there are spills anyway.
const LONG: usize = 8000;

/// The same in tests, so that they have both.
const LONG_IN_TESTS: usize = 1200;

/// A compiled region. Its arguments: the context, and the lanes.
pub(super) type RegionFn = unsafe extern "C" fn(*mut RegionContext, u32) -> u64;

/// Code of a region, as it is wherever it lies: what it names outside is not filled in.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub(crate) code: Vec<u8>,
    /// Where 8 bytes of it are to hold an address, and of what.
    pub(crate) places: Vec<(u32, Outside)>,
    /// Sites that it has.
    pub(crate) sites: u32,
    /// Whether it uses local memory.
    pub(crate) local: bool,
    /// Its ways out: what is known there of registers.
    pub(crate) exits: Vec<HashMap<usize, Class>>,
    /// What it checks of registers, unless it is told that they are so.
    pub(crate) supposed: Vec<(usize, Class)>,
}

/// Code of a region that can run.
pub(super) struct Installed {
    pub(crate) code: RegionFn,
    /// Its sites among those of a warp.
    pub(crate) sites: std::ops::Range<u32>,
    /// Whether it uses local memory.
    pub(crate) local: bool,
    /// What code has the addresses of: they stay where they are.
    _exits: Vec<Exit>,
    _memory: CodeMemory,
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

/// What code is made with, in this process.
pub(super) struct Tools {
    isa: OwnedTargetIsa,
    /// The same, for long functions: registers are chosen in one pass.
    quick: OwnedTargetIsa,
    long: usize,
    /// Addresses of the functions that keep all registers.
    keepers: [u64; Keeper::ALL.len()],
    _memory: Vec<CodeMemory>,
}

/// What makes code for one program.
pub(super) struct RegionCompiler {
    tools: &'static Tools,
    frontend: FunctionBuilderContext,
    sites: u32,
    /// By the first instruction of a function; None for what is too large.
    flows: HashMap<u32, Option<Flow>>,
    /// Tiers point to them.
    #[allow(clippy::vec_box, reason = "tiers point to them")]
    installed: Vec<Box<Installed>>,
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

impl Tools {
    /// Those of the process. `verify`: whether Cranelift looks at what it is given. None where it
    /// makes no code for this processor.
    pub(super) fn get(verify: bool) -> Option<&'static Tools> {
        static TOOLS: [OnceLock<Option<Tools>>; 2] = [OnceLock::new(), OnceLock::new()];
        TOOLS[usize::from(verify)].get_or_init(|| Tools::new(verify)).as_ref()
    }

    fn new(verify: bool) -> Option<Tools> {
        let mut tools = Tools {
            isa: isa("backtracking", verify)?,
            quick: isa("single_pass", verify)?,
            long: if verify { LONG_IN_TESTS } else { LONG },
            keepers: [0; Keeper::ALL.len()],
            _memory: Vec::new(),
        };
        let mut frontend = FunctionBuilderContext::new();
        for keeper in Keeper::ALL {
            let piece = tools.keeper(keeper, &mut frontend)?;
            let memory = CodeMemory::new(&piece.linked(|outside| match outside {
                Outside::Function(distance) => function_at(distance),
                _ => None,
            })?)?;
            tools.keepers[keeper as usize] = memory.address();
            tools._memory.push(memory);
        }
        Some(tools)
    }

    /// A function that calls one of the host with five numbers and keeps all registers.
    fn keeper(&self, keeper: Keeper, frontend: &mut FunctionBuilderContext) -> Option<Piece> {
        let function_of_host = match keeper {
            Keeper::Find => context::find as *const () as usize,
            Keeper::FindPack => context::find_pack as *const () as usize,
            Keeper::Call => context::call as *const () as usize,
        };
        let mut signature = Signature::new(CallConv::PreserveAll);
        signature.params.extend([AbiParam::new(types::I64); 5]);
        let mut function = Function::with_name_signature(UserFuncName::default(), signature.clone());
        let name = Outside::function(function_of_host).name(&mut function);
        let mut b = FunctionBuilder::new(&mut function, frontend);
        let block = b.create_block();
        b.append_block_params_for_function_params(block);
        b.switch_to_block(block);
        let arguments = b.block_params(block).to_vec();
        signature.call_conv = self.isa.default_call_conv();
        let signature = b.import_signature(signature);
        let callee = b.import_function(ExtFuncData { name, signature, colocated: false, patchable: false });
        b.ins().call(callee, &arguments);
        b.ins().return_(&[]);
        b.seal_all_blocks();
        b.finalize(self.isa.frontend_config());
        self.emit(function)
    }

    /// Makes code of a function.
    fn emit(&self, function: Function) -> Option<Piece> {
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
        let bytes = code.code_buffer().to_vec();
        let mut names = Vec::new();
        for reloc in code.buffer.relocs() {
            let FinalizedRelocTarget::ExternalName(name) = &reloc.target else { return None };
            if reloc.kind != Reloc::Abs8 || reloc.addend != 0 {
                return None;
            }
            names.push((reloc.offset, name.clone()));
        }
        let name = |(at, name): (u32, ExternalName)| Some((at, Outside::of_name(&compilation.func, &name)?));
        let places = names.into_iter().map(name).collect::<Option<_>>()?;
        Some(Piece { code: bytes, places, sites: 0, local: false, exits: Vec::new(), supposed: Vec::new() })
    }
}

impl Piece {
    /// The code with addresses filled in.
    fn linked(&self, address: impl Fn(Outside) -> Option<u64>) -> Option<Vec<u8>> {
        let mut code = self.code.clone();
        for &(at, outside) in &self.places {
            let place = code.get_mut(at as usize..)?.first_chunk_mut::<8>()?;
            *place = address(outside)?.to_le_bytes();
        }
        Some(code)
    }
}

impl RegionCompiler {
    pub(super) fn new(tools: &'static Tools) -> RegionCompiler {
        let frontend = FunctionBuilderContext::new();
        RegionCompiler { tools, frontend, sites: 0, flows: HashMap::new(), installed: Vec::new() }
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
    pub(super) fn compile(&mut self, program: &Program, pc: u32, wanted: Wanted<'_>) -> Option<Piece> {
        let compiled = catch_unwind(AssertUnwindSafe(|| self.compiled(program, pc, wanted)));
        debug_assert!(compiled.is_ok(), "no native code from instruction {pc} on");
        compiled.ok().flatten()
    }

    fn compiled(&mut self, program: &Program, pc: u32, wanted: Wanted<'_>) -> Option<Piece> {
        let convention = self.tools.isa.default_call_conv();
        let mut signature = Signature::new(convention);
        signature.params.extend([AbiParam::new(types::I64), AbiParam::new(types::I32)]);
        signature.returns.push(AbiParam::new(types::I64));
        let mut function = Function::with_name_signature(UserFuncName::default(), signature);
        let config = self.tools.isa.frontend_config();
        let mut frontend = std::mem::take(&mut self.frontend);
        let flow = self.flow(program, pc)?;
        flow.split(program, pc);
        let built = match wanted {
            Wanted::Packs(supposed) => {
                pack::build(program, flow, pc, (&mut function, &mut frontend), convention, config, supposed)
            }
            _ => {
                let joining = matches!(wanted, Wanted::UpToJoin);
                region::build(program, flow, pc, &mut function, &mut frontend, convention, config, joining)
            }
        };
        self.frontend = frontend;
        let Built { sites, local, exits, supposed } = built?;
        Some(Piece { sites, local, exits, supposed, ..self.tools.emit(function)? })
    }

    /// Puts code into memory, so that it can run. `name` is for profilers. None where the program
    /// has too many sites, or the system no memory; and for a piece that is none.
    pub(super) fn install(&mut self, piece: &Piece, name: impl FnOnce() -> String) -> Option<*const Installed> {
        let sites = self.sites..self.sites.checked_add(piece.sites).filter(|&sites| sites <= MOST_SITES)?;
        let exits: Vec<Exit> = piece.exits.iter().map(|exit| Exit::new(exit.clone())).collect();
        let code = piece.linked(|outside| match outside {
            Outside::Function(distance) => function_at(distance),
            Outside::Keeper(keeper) => Some(self.tools.keepers[keeper as usize]),
            Outside::Exit(number) => Some(&raw const *exits.get(number as usize)? as u64),
        })?;
        let memory = CodeMemory::new(&code)?;
        memory.name(name);
        self.sites = sites.end;
        // SAFETY: the code at this address was made for that signature.
        let code = unsafe { std::mem::transmute::<*const (), RegionFn>(memory.address() as *const ()) };
        let installed = Box::new(Installed { code, sites, local: piece.local, _exits: exits, _memory: memory });
        let at: *const Installed = &raw const *installed;
        self.installed.push(installed);
        Some(at)
    }
}
