//! The variables of a module: what memory the driver must provide for them, and their initial
//! content.

use device_code::ptx::{Initial, Linkage, Module, Space, Variable};

use crate::interface::Linker;
use crate::program::function_address;

/// A `.global` or `.const` variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GlobalInfo {
    /// Its name.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Bytes.
    pub align: u32,
    /// True for `.const`.
    pub(crate) constant: bool,
    /// Who can see it; `Extern` means that another module defines it.
    pub linkage: Linkage,
    index: usize,
}

/// The variables of a module that live in device memory, without those that it declares twice.
pub fn globals(module: &Module) -> Vec<GlobalInfo> {
    let mut out: Vec<GlobalInfo> = Vec::new();
    for (index, variable) in module.globals.iter().enumerate() {
        if !matches!(variable.space, Space::Global | Space::Const) {
            continue;
        }
        let name = module.name(variable.name);
        let info = GlobalInfo {
            name: name.to_owned(),
            size: variable.size(),
            align: variable.align,
            constant: variable.space == Space::Const,
            linkage: variable.linkage,
            index,
        };
        match out.iter_mut().find(|known| known.name == name) {
            // A definition replaces the declaration before it.
            Some(known) if known.linkage == Linkage::Extern => *known = info,
            Some(_) => {}
            None => out.push(info),
        }
    }
    out
}

/// What a variable holds at first. Addresses of other variables come from `linker`, those of
/// functions from the interpreter; `Err` names a symbol that neither knows.
///
/// # Errors
/// The name of the unknown symbol.
pub fn initial_bytes(module: &Module, info: &GlobalInfo, linker: &dyn Linker) -> Result<Vec<u8>, String> {
    let variable: &Variable = &module.globals[info.index];
    let mut bytes = vec![0; info.size as usize];
    let element = variable.ty.size() as usize;
    for &(at, initial) in &variable.initial {
        let value = match initial {
            Initial::Bits(bits) => bits,
            Initial::Symbol { name, offset, mask, .. } => {
                let address = symbol_address(module, module.name(name), linker)
                    .ok_or_else(|| module.name(name).to_owned())?
                    .wrapping_add(offset as u64);
                match mask {
                    Some(mask) if mask != 0 => (address & mask) >> mask.trailing_zeros(),
                    _ => address,
                }
            }
        };
        let start = at as usize * element;
        for (to, from) in bytes.iter_mut().skip(start).take(element).zip(value.to_le_bytes()) {
            *to = from;
        }
    }
    Ok(bytes)
}

/// The address of a function or variable of the module.
pub(crate) fn symbol_address(module: &Module, name: &str, linker: &dyn Linker) -> Option<u64> {
    if let Some(number) = function_index(module, name) {
        return Some(function_address(number));
    }
    let id = module.find_name(name)?;
    let space = module.globals.iter().find(|variable| variable.name == id).map_or(Space::Global, |v| v.space);
    linker.symbol(name, space)
}

/// The number of a function: the place of its definition (or else declaration) among the module's
/// functions.
pub(crate) fn function_index(module: &Module, name: &str) -> Option<u32> {
    let id = module.find_name(name)?;
    let id = module.aliases.iter().find(|(new, _)| *new == id).map_or(id, |&(_, old)| old);
    let mut found = None;
    for (at, function) in module.functions.iter().enumerate().filter(|(_, function)| function.name == id) {
        if function.body.is_some() {
            return Some(at as u32);
        }
        found = Some(at as u32);
    }
    found
}
