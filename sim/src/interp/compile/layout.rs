//! Memory layouts: kernel parameters, shared memory, stack depth.

use std::collections::{HashMap, HashSet};

use kernels::ptx::{AddressBase, Function, Linkage, Module, Name, Operand, Parameter, Space, Variable};

use crate::interp::interface::ParamInfo;
use crate::interp::program::Kernel;

/// Where the shared variables of a module are. Those that device functions use have one place in
/// all kernels; those that only kernels use overlap those of other kernels.
pub(crate) struct SharedLayout {
    /// Offset of each variable of the module: for all kernels.
    common: HashMap<Name, u32>,
    common_end: u32,
    /// Offset of each variable of the module in one kernel.
    own: HashMap<(usize, Name), u32>,
    /// Where each kernel's own variables end, by its number.
    ends: HashMap<usize, u32>,
    align: u32,
}

/// True for dynamic shared memory.
pub(crate) fn is_dynamic(variable: &Variable) -> bool {
    variable.space == Space::Shared && (variable.count == 0 || variable.linkage == Linkage::Extern)
}

fn place(end: &mut u32, variable: &Variable) -> u32 {
    let at = end.checked_next_multiple_of(variable.align.max(1)).unwrap_or(u32::MAX);
    *end = at.saturating_add(variable.size().min(u64::from(u32::MAX)) as u32);
    at
}

impl SharedLayout {
    pub(crate) fn new(module: &Module) -> Self {
        let shared: HashMap<Name, &Variable> =
            module.globals.iter().filter(|v| v.space == Space::Shared).map(|v| (v.name, v)).collect();
        let mut layout = SharedLayout {
            common: HashMap::new(),
            common_end: 0,
            own: HashMap::new(),
            ends: HashMap::new(),
            align: shared.values().map(|v| v.align).max().unwrap_or(16),
        };
        let uses: Vec<HashSet<Name>> = module.functions.iter().map(|f| symbols(f, &shared)).collect();
        for (function, uses) in module.functions.iter().zip(&uses) {
            if !function.kernel {
                // In the order of the module, for layouts must not depend on hashing.
                for variable in module.globals.iter().filter(|v| uses.contains(&v.name) && !is_dynamic(v)) {
                    if !layout.common.contains_key(&variable.name) {
                        let at = place(&mut layout.common_end, variable);
                        layout.common.insert(variable.name, at);
                    }
                }
                for variable in function.body.iter().flat_map(|body| &body.variables) {
                    layout.align = layout.align.max(if variable.space == Space::Shared { variable.align } else { 1 });
                }
            }
        }
        // Shared variables inside device functions come after, one place for each function.
        for (number, function) in module.functions.iter().enumerate().filter(|(_, f)| !f.kernel) {
            let mut end = layout.common_end;
            for variable in function.body.iter().flat_map(|b| &b.variables) {
                if variable.space == Space::Shared && !is_dynamic(variable) {
                    let at = place(&mut end, variable);
                    layout.own.insert((number, variable.name), at);
                }
            }
            layout.common_end = end;
        }
        for (number, (function, uses)) in module.functions.iter().zip(&uses).enumerate() {
            if !function.kernel {
                continue;
            }
            let mut end = layout.common_end;
            let locals = function.body.iter().flat_map(|body| &body.variables);
            let globals =
                module.globals.iter().filter(|v| uses.contains(&v.name) && !layout.common.contains_key(&v.name));
            for variable in globals.chain(locals.filter(|v| v.space == Space::Shared)) {
                if !is_dynamic(variable) {
                    let at = place(&mut end, variable);
                    layout.own.insert((number, variable.name), at);
                    layout.align = layout.align.max(variable.align);
                }
            }
            layout.ends.insert(number, end);
        }
        layout
    }

    /// Offset of a variable as a function sees it.
    pub(crate) fn offset(&self, function: usize, name: Name) -> Option<u32> {
        self.own.get(&(function, name)).or_else(|| self.common.get(&name)).copied()
    }
}

/// The shared variables of the module that a function refers to.
fn symbols(function: &Function, shared: &HashMap<Name, &Variable>) -> HashSet<Name> {
    let mut found = HashSet::new();
    for instruction in function.body.iter().flat_map(|body| &body.code) {
        let mut todo: Vec<&Operand> = instruction.operands.iter().collect();
        while let Some(operand) = todo.pop() {
            match operand {
                Operand::Symbol(name, _) | Operand::Memory(AddressBase::Symbol(name), _)
                    if shared.contains_key(name) =>
                {
                    found.insert(*name);
                }
                Operand::MemoryList(list) => {
                    if let AddressBase::Symbol(name) = list.0
                        && shared.contains_key(&name)
                    {
                        found.insert(name);
                    }
                    todo.extend(&list.2);
                }
                Operand::Vector(list) | Operand::List(list) => todo.extend(list),
                Operand::Pair(pair) => todo.extend([&pair.0, &pair.1]),
                _ => {}
            }
        }
    }
    found
}

/// Bytes of local memory on the deepest path of calls, or None when that is not known.
pub(crate) fn stack_depth(root: u32, callees: &[Vec<Option<u32>>], local: &dyn Fn(u32) -> u32) -> Option<u32> {
    // Depth-first with an explicit stack: 1 marks functions on the path, 2 those that are done.
    let mut state: HashMap<u32, u8> = HashMap::new();
    let mut depth: HashMap<u32, u32> = HashMap::new();
    let mut todo = vec![(root, false)];
    while let Some((number, leaving)) = todo.pop() {
        let below = callees.get(number as usize)?;
        if leaving {
            let mut deepest = 0;
            for callee in below {
                deepest = deepest.max(*depth.get(&(*callee)?)?);
            }
            depth.insert(number, local(number).checked_add(deepest)?);
            state.insert(number, 2);
            continue;
        }
        match state.get(&number) {
            Some(2) => continue,
            Some(_) => return None,
            None => {}
        }
        state.insert(number, 1);
        todo.push((number, true));
        for callee in below {
            let callee = (*callee)?;
            match state.get(&callee) {
                Some(2) => {}
                Some(_) => return None,
                None => todo.push((callee, false)),
            }
        }
    }
    depth.get(&root).copied()
}

/// The head of a kernel.
pub(crate) fn kernel(
    module: &Module,
    function: &Function,
    number: u32,
    shared: &SharedLayout,
    local: u32,
    depth: Option<u32>,
) -> Kernel {
    let mut params = Vec::new();
    let mut end = 0u32;
    for parameter in &function.parameters {
        if let Parameter::Space(variable, _) = parameter {
            let (align, size) = (variable.align, variable.size().min(1 << 20) as u32);
            let offset = end.next_multiple_of(align.max(1));
            params.push(ParamInfo { offset, size, align });
            end = offset + size;
        }
    }
    let three = |name: &str| {
        let tuning = function.tuning.iter().find(|tuning| module.name(tuning.name) == name)?;
        let value = |at: usize| tuning.values.get(at).map_or(1, |&n| n.min(u64::from(u32::MAX)) as u32);
        Some([value(0), value(1), value(2)])
    };
    Kernel {
        name: module.name(function.name).to_owned(),
        function: number,
        params,
        static_shared: shared.ends.get(&(number as usize)).copied().unwrap_or(0),
        shared_align: shared.align,
        local,
        nested: depth.is_none(),
        max_threads: three("reqntid").or_else(|| three("maxntid")),
        cluster: three("reqnctapercluster"),
        error: None,
    }
}
