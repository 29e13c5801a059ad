//! Memory layouts: kernel parameters, shared memory, stack depth.

use std::collections::{HashMap, HashSet};

use device_code::ptx::{AddressBase, Function, Linkage, Module, Name, Operand, Parameter, Space, Variable};

use crate::exec::registers::at_start;
use crate::interface::ParamInfo;
use crate::program::Kernel;

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
        let uses: Vec<HashSet<Name>> =
            module.functions.iter().map(|f| symbols(f, |name| shared.contains_key(&name))).collect();
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
        let calls = Calls::new(module);
        for (number, (function, uses)) in module.functions.iter().zip(&uses).enumerate() {
            if !function.kernel {
                continue;
            }
            let mut end = layout.end_of_common(module, &calls.reached(function));
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

    /// Where the last of the variables with one place in all kernels ends that these functions use.
    /// A kernel among them may use one itself, without calling the device function that also does.
    fn end_of_common(&self, module: &Module, reached: &[usize]) -> u32 {
        let mut end = 0;
        for &number in reached {
            let function = &module.functions[number];
            for variable in shared_variables(module, function) {
                let at = self.own.get(&(number, variable.name)).or_else(|| self.common.get(&variable.name));
                end = end.max(at.map_or(0, |at| at.saturating_add(variable.size().min(1 << 30) as u32)));
            }
        }
        end
    }

    /// Offset of a variable as a function sees it.
    pub(crate) fn offset(&self, function: usize, name: Name) -> Option<u32> {
        self.own.get(&(function, name)).or_else(|| self.common.get(&name)).copied()
    }
}

/// Which functions a kernel can reach, by the names of functions in its code and in theirs. A call
/// through a pointer may reach every device function.
struct Calls<'m> {
    module: &'m Module,
    numbers: HashMap<Name, usize>,
}

impl<'m> Calls<'m> {
    fn new(module: &'m Module) -> Self {
        Calls { module, numbers: module.functions.iter().enumerate().map(|(number, f)| (f.name, number)).collect() }
    }

    /// The numbers of the functions that are reached, the first one's among them, sorted.
    fn reached(&self, from: &Function) -> Vec<usize> {
        let mut todo: Vec<usize> = self.numbers.get(&from.name).copied().into_iter().collect();
        let mut reached: HashSet<usize> = todo.iter().copied().collect();
        while let Some(number) = todo.pop() {
            let function = &self.module.functions[number];
            let named = symbols(function, |name| self.numbers.contains_key(&name));
            let any = calls_a_pointer(function);
            let all = self.module.functions.iter().enumerate().filter(|(_, f)| any && !f.kernel);
            for callee in named.into_iter().map(|name| self.numbers[&name]).chain(all.map(|(number, _)| number)) {
                if reached.insert(callee) {
                    todo.push(callee);
                }
            }
        }
        let mut reached: Vec<usize> = reached.into_iter().collect();
        reached.sort_unstable();
        reached
    }
}

/// Such a call names a prototype instead of a function.
fn calls_a_pointer(function: &Function) -> bool {
    let code = function.body.iter().flat_map(|body| &body.code);
    code.flat_map(|instruction| &instruction.operands).any(|operand| matches!(operand, Operand::Prototype(_)))
}

/// A shared variable of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedVariable {
    /// Its mangled name.
    pub name: String,
    /// Bytes from the start of the block's shared memory.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}

/// The static shared variables of a kernel and of all functions that it can reach, where the
/// compiled kernel has them.
pub fn shared_variables_of(module: &Module, kernel: &str) -> Vec<SharedVariable> {
    let Some(function) = module.functions.iter().find(|f| f.kernel && module.name(f.name) == kernel) else {
        return Vec::new();
    };
    let layout = SharedLayout::new(module);
    let mut found = Vec::new();
    let mut add = |number: usize, function| {
        for variable in shared_variables(module, function) {
            if let Some(at) = layout.offset(number, variable.name) {
                let name = module.name(variable.name).to_owned();
                found.push(SharedVariable { name, offset: at.into(), size: variable.size() });
            }
        }
    };
    let own = module.functions.iter().position(|f| std::ptr::eq(f, function)).unwrap_or_default();
    add(own, function);
    for number in Calls::new(module).reached(function).into_iter().filter(|&number| number != own) {
        add(number, &module.functions[number]);
    }
    found
}

/// The shared variables that one function uses, its own and the module's, dynamic ones apart.
fn shared_variables<'m>(module: &'m Module, function: &'m Function) -> impl Iterator<Item = &'m Variable> {
    let used = symbols(function, |_| true);
    let of_module = module.globals.iter().filter(move |v| used.contains(&v.name));
    let own = function.body.iter().flat_map(|body| &body.variables);
    of_module.chain(own).filter(|v| v.space == Space::Shared && !is_dynamic(v))
}

/// Bytes of static shared memory that a kernel needs: its variables and those of all functions that
/// it can reach, not those of other kernels of the module.
pub fn static_shared(module: &Module, kernel: &Function) -> u32 {
    let mut end = 0;
    let mut placed = HashSet::new();
    for number in Calls::new(module).reached(kernel) {
        let function = &module.functions[number];
        let is_own =
            |variable: &Variable| function.body.iter().flat_map(|b| &b.variables).any(|v| v.name == variable.name);
        for variable in shared_variables(module, function) {
            if placed.insert((is_own(variable).then_some(number), variable.name)) {
                place(&mut end, variable);
            }
        }
    }
    end
}

/// The names that a function's code refers to and that are wanted.
fn symbols(function: &Function, wanted: impl Fn(Name) -> bool) -> HashSet<Name> {
    let mut found = HashSet::new();
    for instruction in function.body.iter().flat_map(|body| &body.code) {
        let mut todo: Vec<&Operand> = instruction.operands.iter().collect();
        while let Some(operand) = todo.pop() {
            match operand {
                Operand::Symbol(name, _) | Operand::Memory(AddressBase::Symbol(name), _) if wanted(*name) => {
                    found.insert(*name);
                }
                Operand::MemoryList(list) => {
                    if let AddressBase::Symbol(name) = list.0
                        && wanted(name)
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
    let three = |name: &str| function.tuned(module, name);
    Kernel {
        name: module.name(function.name).to_owned(),
        function: number,
        params,
        static_shared: shared.ends.get(&(number as usize)).copied().unwrap_or(0),
        shared_align: shared.align,
        local,
        nested: depth.is_none(),
        cluster: function.cluster(module),
        registers: at_start(
            three("maxnreg").map(|[most, ..]| most),
            three("reqntid").or_else(|| three("maxntid")).map(|[x, y, z]| x.saturating_mul(y).saturating_mul(z)),
            three("minnctapersm").map(|[blocks, ..]| blocks),
            counts(module, function),
        ),
        error: None,
    }
}

/// The largest count of registers that a function asks for itself (`setmaxnreg`).
fn counts(module: &Module, function: &Function) -> Option<u32> {
    let code = function.body.iter().flat_map(|body| &body.code);
    let asks = code.filter(|instruction| module.opcode(instruction.opcode).parts[0] == "setmaxnreg");
    let count = |operand: Option<&Operand>| match operand {
        Some(&Operand::Int(count)) => u32::try_from(count).ok(),
        _ => None,
    };
    asks.filter_map(|instruction| count(instruction.operands.first())).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_needs_the_shared_memory_of_what_it_reaches_and_of_nothing_else() {
        let text = "
            .version 8.0
            .target sm_80
            .address_size 64
            .shared .align 4 .b8 first[30000];
            .shared .align 4 .b8 second[30000];
            .shared .align 4 .b8 third[1000];
            .func deep() { .reg .b32 %r<2>; ld.shared.u32 %r1, [third]; ret; }
            .func outer() { .shared .align 8 .b8 own[500]; .reg .b32 %r<2>; ld.shared.u32 %r1, [own]; call deep; ret; }
            .func never_called() { .reg .b32 %r<2>; ld.shared.u32 %r1, [first]; ld.shared.u32 %r1, [third]; ret; }
            .func lonely() { .reg .b32 %r<2>; ld.shared.u32 %r1, [second]; ret; }
            .visible .entry one() { .reg .b32 %r<2>; ld.shared.u32 %r1, [first]; ret; }
            .visible .entry two() { .reg .b32 %r<2>; ld.shared.u32 %r1, [second]; call lonely; ret; }
            .visible .entry three() { call outer; call deep; ret; }
            .visible .entry direct() { .reg .b32 %r<2>; ld.shared.u32 %r1, [third]; ret; }
            .visible .entry pointer() {
                .reg .b64 %rd<2>;
                mov.u64 %rd1, 0;
                prototype_0: .callprototype _ ();
                call %rd1, (), prototype_0;
                ret;
            }
            .visible .entry none() { ret; }
        ";
        let module = device_code::ptx::parse(text).expect("a module");
        let of = |name: &str| {
            let kernel = module.functions.iter().find(|f| module.name(f.name) == name).expect(name);
            static_shared(&module, kernel)
        };
        assert!(of("pointer") >= 61_500, "every device function may be called: {}", of("pointer"));
        assert_eq!(["one", "two", "three", "direct", "none"].map(of), [30000, 30000, 1500, 1000, 0]);
        // What runs may have gaps, for a device function knows one place of its variables. It has
        // none of the variables that only other kernels use.
        let layout = SharedLayout::new(&module);
        let end = |name: &str| {
            let number = module.functions.iter().position(|f| module.name(f.name) == name).expect(name);
            layout.ends[&number]
        };
        assert_eq!(end("none"), 0);
        assert!(end("one") >= 30000 && end("two") >= 30000 && end("three") >= 1500);
        // A variable that a device function uses too, which this kernel does not call.
        let place = |name: &str| layout.common.iter().find(|(at, _)| module.name(**at) == name).expect(name).1;
        assert!(end("direct") >= place("third") + 1000 && end("one") >= place("first") + 30000);
    }
}
