//! Modules, libraries, kernels and functions: code that programs loaded, and its variables.
//! `kernel_exec` runs it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use cuda_sys::CUresult;
use device_code::ptx::{self, Linkage, Parameter, Space};

use crate::handles::{Handles, handle_of};
use crate::interp::{self, Linker, MachineKernel, MachineModule, MachineVariable};
use crate::memory::{self, AllocationKind};
use crate::objects::context::Context;
use crate::objects::kernel_exec::Compiled;
use crate::objects::kernel_parts::native_kernel::NativeKernels;
use crate::sched::ContextId;

/// Modules that programs loaded.
pub(crate) static MODULES: Handles<Module> = Handles::new();
/// Libraries that programs loaded.
pub(crate) static LIBRARIES: Handles<Library> = Handles::new();
/// Kernels of libraries.
pub(crate) static LIBRARY_KERNELS: Handles<LibraryKernel> = Handles::new();
/// Functions of modules.
pub(crate) static FUNCTIONS: Handles<Function> = Handles::new();

/// What a module consists of.
pub(crate) enum CodeForm {
    /// A parsed PTX text.
    Ptx {
        /// What it says.
        ast: ptx::Module,
        /// Variables marked `.attribute(.managed)`.
        managed: Vec<String>,
    },
    /// A cubin.
    Machine(MachineModule),
}

/// Code that a program loaded.
pub(crate) struct Code {
    /// What it is.
    pub(crate) form: CodeForm,
    /// Stands in for machine code: running it does nothing.
    pub(crate) stand_in: bool,
    /// Kernels that native functions run in place of the PTX.
    pub(crate) natives: NativeKernels,
    /// More belongs to it, of which there is machine code only.
    incomplete: bool,
}

/// One parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Param {
    /// Bytes from the start of the parameter block.
    pub offset: usize,
    /// Bytes.
    pub size: usize,
}

impl Code {
    /// Parses a text.
    pub(crate) fn new(text: String) -> Result<Arc<Code>, CUresult> {
        let ast = ptx::parse(&text).map_err(|error| {
            crate::status::complain(&format!("PTX: {error}"));
            CUresult::ERROR_INVALID_PTX
        })?;
        crate::loader::ptx_limits::check(&ast)?;
        let managed = find_managed(&text);
        let stand_in = text.starts_with(crate::loader::stand_in::MARK);
        let incomplete = text.starts_with(crate::loader::fatbin::INCOMPLETE);
        let natives = NativeKernels::default();
        Ok(Arc::new(Code { form: CodeForm::Ptx { ast, managed }, stand_in, natives, incomplete }))
    }

    /// Reads machine code.
    pub(crate) fn machine(cubin: Vec<u8>) -> Result<Arc<Code>, CUresult> {
        let module = MachineModule::parse(cubin).map_err(|error| {
            crate::status::complain(&format!("machine code: {error}"));
            CUresult::ERROR_INVALID_IMAGE
        })?;
        let natives = NativeKernels::default();
        Ok(Arc::new(Code { form: CodeForm::Machine(module), stand_in: false, natives, incomplete: false }))
    }

    /// The status for a name that is not in it.
    pub(crate) fn not_found(&self, name: &str) -> CUresult {
        if self.incomplete {
            crate::status::complain(&format!("`{name}` is not in the PTX of the program, some of which is missing"));
        }
        CUresult::ERROR_NOT_FOUND
    }

    /// Names of the kernels, in the order of the text.
    pub(crate) fn kernels(&self) -> Vec<&str> {
        match &self.form {
            CodeForm::Ptx { ast, .. } => {
                let defined = ast.functions.iter().filter(|f| f.kernel && f.body.is_some());
                defined.map(|f| ast.name(f.name)).collect()
            }
            CodeForm::Machine(module) => module.kernels().iter().map(|kernel| kernel.name.as_str()).collect(),
        }
    }

    /// The parameters of a kernel and what can be asked about it.
    fn kernel(&self, name: &str) -> Option<(Vec<Param>, FunctionLimits)> {
        match &self.form {
            CodeForm::Ptx { ast, .. } => {
                let name = ast.find_name(name)?;
                let found = ast.function(name).filter(|f| f.kernel && f.body.is_some())?;
                Some((params(found), facts(ast, found)))
            }
            CodeForm::Machine(module) => {
                let kernel = module.kernel(name)?;
                let param = |p: &interp::ParamInfo| Param { offset: p.offset as usize, size: p.size as usize };
                Some((kernel.params.iter().map(param).collect(), machine_facts(module, kernel)))
            }
        }
    }

    fn has_kernel(&self, name: &str) -> bool {
        match &self.form {
            CodeForm::Ptx { ast, .. } => {
                ast.find_name(name).and_then(|name| ast.function(name)).is_some_and(|f| f.kernel && f.body.is_some())
            }
            CodeForm::Machine(module) => module.kernel(name).is_some(),
        }
    }
}

fn params(function: &ptx::Function) -> Vec<Param> {
    let mut offset = 0usize;
    let mut params = Vec::new();
    for parameter in &function.parameters {
        if let Parameter::Space(variable, _) = parameter {
            let (size, align) = (variable.size() as usize, variable.align.max(1) as usize);
            offset = offset.next_multiple_of(align);
            params.push(Param { offset, size });
            offset += size;
        }
    }
    params
}

/// The names of managed variables: the parser does not keep their attribute.
fn find_managed(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains(".managed"));
    let name = |line: &str| {
        let head = line.split(['=', ';']).next()?.split('[').next()?;
        head.split_whitespace().last().map(str::to_owned)
    };
    lines.filter_map(name).collect()
}

/// A variable of a loaded module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Global {
    /// Where it lies.
    pub(crate) at: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// Whether the host may use it too.
    pub(crate) managed: bool,
}

/// Memory of a module's variables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariableMemory {
    /// Where it lies.
    pub(crate) at: u64,
    /// Whether the host may use it too.
    pub(crate) managed: bool,
}

/// Code loaded into a context.
pub(crate) struct Module {
    /// What was loaded.
    pub(crate) code: Arc<Code>,
    /// Where.
    pub(crate) ctx: Arc<Context>,
    /// Its variables.
    pub globals: HashMap<String, Global>,
    /// The memory that holds them.
    pub(crate) blocks: Vec<VariableMemory>,
    functions: Mutex<HashMap<String, Arc<Function>>>,
    compiled: OnceLock<Compiled>,
}

/// A kernel in a context.
pub(crate) struct Function {
    /// Its number, unlike its handle never given again.
    pub(crate) number: u64,
    /// Its name.
    pub name: String,
    /// Where its code is; a function handle does not keep its module loaded.
    pub(crate) module: Weak<Module>,
    /// The kernel of a library that it comes from.
    pub kernel: Option<Weak<LibraryKernel>>,
    /// Its parameters.
    pub(crate) params: Vec<Param>,
    /// Bytes of all parameters.
    pub(crate) param_bytes: usize,
    /// What can be asked and set about it.
    pub(crate) facts: FunctionLimits,
    /// Its machine code, compiled for the interpreter.
    pub(super) compiled: OnceLock<Compiled>,
}

/// Attributes of a kernel.
#[derive(Debug, Default)]
pub(crate) struct FunctionLimits {
    /// Static shared memory, in bytes.
    pub(crate) shared: u32,
    /// Constant memory of the module, in bytes.
    pub(crate) constant: u32,
    /// Most threads of a block.
    pub(crate) max_threads: u32,
    /// The virtual architecture that the PTX was made for: 80 for `sm_80`.
    pub(crate) ptx: u32,
    /// Cluster that the code requires; zeros for none.
    pub(crate) cluster: [u32; 3],
    /// Most dynamic shared memory that a launch may ask for, in bytes.
    pub(crate) max_dynamic: AtomicU32,
    /// `CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`, remembered.
    pub(crate) carveout: AtomicU32,
    /// `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`, remembered.
    pub(crate) non_portable: AtomicU32,
}

impl Module {
    /// Loads code into a context: its variables get memory and their initial values.
    pub(crate) fn load(ctx: &Arc<Context>, code: Arc<Code>) -> Result<Arc<Module>, CUresult> {
        let (globals, blocks) = match &code.form {
            CodeForm::Ptx { ast, managed } => place_ptx(ctx, ast, managed)?,
            CodeForm::Machine(module) => place_machine(ctx, module)?,
        };
        let (functions, compiled) = Default::default();
        Ok(Arc::new(Module { code, ctx: ctx.clone(), globals, blocks, functions, compiled }))
    }

    /// A kernel by name.
    pub(crate) fn function(
        self: &Arc<Module>,
        name: &str,
        kernel: Option<&Arc<LibraryKernel>>,
    ) -> Result<Arc<Function>, CUresult> {
        let mut functions = self.functions.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(function) = functions.get(name) {
            return Ok(function.clone());
        }
        let (params, facts) = self.code.kernel(name).ok_or_else(|| self.code.not_found(name))?;
        let param_bytes = params.last().map_or(0, |last| last.offset + last.size);
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let function = Arc::new(Function {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            name: name.to_owned(),
            module: Arc::downgrade(self),
            kernel: kernel.map(Arc::downgrade),
            params,
            param_bytes,
            facts,
            compiled: OnceLock::new(),
        });
        FUNCTIONS.insert(function.clone());
        functions.insert(name.to_owned(), function.clone());
        Ok(function)
    }

    /// The PTX, compiled for the interpreter at the first launch (lazy loading).
    pub(super) fn compiled(&self, ast: &ptx::Module) -> &Compiled {
        self.compiled.get_or_init(|| Compiled::new(self, ast))
    }

    /// Gives back what the module holds. The caller has waited for work that may use it.
    pub(crate) fn unload(&self) {
        let memory = memory::get();
        for block in &self.blocks {
            let _ = if block.managed { memory.free_host(block.at, true) } else { memory.free_device(block.at) };
        }
        for function in self.functions.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).drain() {
            let _ = FUNCTIONS.remove(handle_of(&function.1));
        }
    }
}

fn facts(ast: &ptx::Module, function: &ptx::Function) -> FunctionLimits {
    let static_shared = crate::interp::static_shared(ast, function);
    let constant: u64 = ast.globals.iter().filter(|v| v.space == Space::Const).map(|v| v.size()).sum();
    let threads = function.tuned(ast, "reqntid").or_else(|| function.tuned(ast, "maxntid"));
    // Three factors of 32 bits do not fit 64 bits.
    let most = |values: [u32; 3]| values.iter().fold(1_u64, |all, &n| all.saturating_mul(u64::from(n)));
    let max_threads = threads.map_or(1024, most).clamp(1, 1024) as u32;
    let cluster = function.cluster(ast).unwrap_or([0; 3]);
    FunctionLimits {
        shared: static_shared,
        constant: constant as u32,
        max_threads,
        ptx: ast.target.trim_start_matches("sm_").trim_end_matches(char::is_alphabetic).parse().unwrap_or(0),
        cluster,
        max_dynamic: AtomicU32::new((48u32 << 10).saturating_sub(static_shared)),
        carveout: AtomicU32::new(u32::MAX),
        non_portable: AtomicU32::new(0),
    }
}

fn machine_facts(module: &MachineModule, kernel: &MachineKernel) -> FunctionLimits {
    // Three factors of 32 bits do not fit 64 bits.
    let product = |block: [u32; 3]| block.iter().fold(1_u64, |all, &n| all.saturating_mul(u64::from(n)));
    let threads = kernel.max_threads.map_or(1024, product);
    // From 9.0 on each section of shared memory begins with what is reserved for the system. The
    // driver does not count it as the kernel's (measured: H200, driver 580).
    let reserved = if module.arch.sm >= 90 { 1024 } else { 0 };
    let shared = kernel.shared.saturating_sub(reserved);
    FunctionLimits {
        shared,
        constant: module.constant_bytes() as u32,
        max_threads: threads.clamp(1, 1024) as u32,
        ptx: u32::from(module.arch.sm),
        cluster: kernel.cluster.unwrap_or([0; 3]),
        max_dynamic: AtomicU32::new((48u32 << 10).saturating_sub(shared)),
        carveout: AtomicU32::new(u32::MAX),
        non_portable: AtomicU32::new(0),
    }
}

type Placed = (HashMap<String, Global>, Vec<VariableMemory>);

fn allocate(ctx: &Context, size: u64, align: u64, managed: bool) -> Result<u64, CUresult> {
    let memory = memory::get();
    if managed {
        return memory.alloc_host(ctx.owner().id, ctx.device, size, AllocationKind::Managed(1));
    }
    memory.alloc_device(ctx.owner().id, ctx.device, size, align.max(256), AllocationKind::Global)
}

/// Gives each variable of a PTX text memory of its own, and its initial value.
fn place_ptx(ctx: &Context, ast: &ptx::Module, managed: &[String]) -> Result<Placed, CUresult> {
    let memory = memory::get();
    let (mut globals, mut blocks) = (HashMap::new(), Vec::new());
    let variables = interp::globals(ast);
    for variable in variables.iter().filter(|variable| variable.linkage != Linkage::Extern) {
        let managed = managed.contains(&variable.name);
        let at = allocate(ctx, variable.size.max(1), u64::from(variable.align), managed)?;
        blocks.push(VariableMemory { at, managed });
        globals.insert(variable.name.clone(), Global { at, size: variable.size, managed });
    }
    let known = ModuleSymbols(&globals);
    for variable in variables.iter().filter(|variable| variable.linkage != Linkage::Extern) {
        let bytes = interp::initial_bytes(ast, variable, &known).map_err(|name| {
            crate::status::complain(&format!("PTX: symbol `{name}` is defined nowhere"));
            CUresult::ERROR_INVALID_PTX
        })?;
        // Fresh memory may hold what an earlier owner left there, so zeros are written too.
        memory.space.write(globals[&variable.name].at, &bytes).map_err(|_| CUresult::ERROR_UNKNOWN)?;
    }
    Ok((globals, blocks))
}

/// The same of machine code, whose variables were laid out by the compiler.
fn place_machine(ctx: &Context, module: &MachineModule) -> Result<Placed, CUresult> {
    let memory = memory::get();
    let mut blocks = Vec::new();
    for block in module.blocks() {
        let at = allocate(ctx, block.size, 256, block.managed)?;
        blocks.push(VariableMemory { at, managed: block.managed });
    }
    let addresses: Vec<u64> = blocks.iter().map(|block| block.at).collect();
    let initial = module.initial(&addresses).map_err(|why| {
        crate::status::complain(&format!("machine code: {why}"));
        CUresult::ERROR_INVALID_IMAGE
    })?;
    for (block, bytes) in blocks.iter().zip(initial) {
        memory.space.write(block.at, &bytes).map_err(|_| CUresult::ERROR_UNKNOWN)?;
    }
    let global = |variable: MachineVariable| {
        let VariableMemory { at, managed } = blocks[variable.block];
        (variable.name, Global { at: at + variable.offset, size: variable.size, managed })
    };
    let globals = module.variables().into_iter().map(global).collect();
    Ok((globals, blocks))
}

/// The variables of a module, for relocations among them.
struct ModuleSymbols<'a>(&'a HashMap<String, Global>);

impl Linker for ModuleSymbols<'_> {
    fn symbol(&self, name: &str, _space: Space) -> Option<u64> {
        self.0.get(name).map(|global| global.at)
    }
}

/// Code loaded for all contexts; it gets into a context when a kernel or variable is used there.
pub(crate) struct Library {
    /// What was loaded.
    pub(crate) code: Arc<Code>,
    modules: Mutex<HashMap<ContextId, Arc<Module>>>,
    kernels: Mutex<HashMap<String, Arc<LibraryKernel>>>,
}

/// A kernel of a library.
pub(crate) struct LibraryKernel {
    /// Its name.
    pub(crate) name: String,
    /// Where it is from.
    pub(crate) library: Weak<Library>,
}

impl Library {
    /// Makes code known as a library.
    pub(crate) fn load(code: Arc<Code>) -> Arc<Library> {
        let library = Arc::new(Library { code, modules: Mutex::default(), kernels: Mutex::default() });
        LIBRARIES.insert(library.clone());
        library
    }

    /// The library's code in a context.
    pub(crate) fn module(&self, ctx: &Arc<Context>) -> Result<Arc<Module>, CUresult> {
        let mut modules = self.modules.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // A green context has the variables of the whole.
        let ctx = ctx.whole.as_ref().unwrap_or(ctx);
        if let Some(module) = modules.get(&ctx.id) {
            return Ok(module.clone());
        }
        let module = Module::load(ctx, self.code.clone())?;
        modules.insert(ctx.id, module.clone());
        MODULES.insert(module.clone());
        Ok(module)
    }

    /// A kernel by name.
    pub(crate) fn kernel(self: &Arc<Library>, name: &str) -> Result<Arc<LibraryKernel>, CUresult> {
        if !self.code.has_kernel(name) {
            return Err(self.code.not_found(name));
        }
        let mut kernels = self.kernels.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let kernel = kernels.entry(name.to_owned()).or_insert_with(|| {
            let kernel = Arc::new(LibraryKernel { name: name.to_owned(), library: Arc::downgrade(self) });
            LIBRARY_KERNELS.insert(kernel.clone());
            kernel
        });
        Ok(kernel.clone())
    }

    /// Takes the library out of all contexts.
    pub(crate) fn unload(&self) {
        for (_, module) in self.modules.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).drain() {
            if !module.ctx.is_destroyed() {
                module.unload();
            }
            let _ = MODULES.remove(handle_of(&module));
        }
        for (_, kernel) in self.kernels.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).drain() {
            let _ = LIBRARY_KERNELS.remove(handle_of(&kernel));
        }
    }
}

impl LibraryKernel {
    /// The kernel in a context.
    pub(crate) fn function(self: &Arc<LibraryKernel>, ctx: &Arc<Context>) -> Result<Arc<Function>, CUresult> {
        let library = self.library.upgrade().ok_or(CUresult::ERROR_INVALID_HANDLE)?;
        library.module(ctx)?.function(&self.name, Some(self))
    }
}

/// The function that a handle means: of a function, or of a kernel in the given context.
pub(crate) fn function_of(handle: usize, ctx: &Arc<Context>) -> Result<Arc<Function>, CUresult> {
    match FUNCTIONS.find(handle) {
        Some(function) => Ok(function),
        None => LIBRARY_KERNELS.get(handle)?.function(ctx),
    }
}

impl Function {
    /// Its module, unless that was unloaded.
    pub(crate) fn module(&self) -> Result<Arc<Module>, CUresult> {
        self.module.upgrade().ok_or(CUresult::ERROR_INVALID_HANDLE)
    }

    /// Most dynamic shared memory that a launch may ask for, in bytes.
    pub(crate) fn max_dynamic(&self) -> u32 {
        self.facts.max_dynamic.load(Ordering::Relaxed)
    }
}
