//! What compiled code names outside of itself, and how these names become addresses: relocations.
//! They are resolved when code is put into memory.
//!
//! Does not know where code lies (`code_memory`).

use std::sync::OnceLock;

use cranelift_codegen::ir::{ExternalName, Function, UserExternalName};

/// Something outside of a region's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outside {
    /// A function of this library, by its distance from [`anchor`]: the same wherever the library
    /// is loaded.
    Function(i32),
    /// One of the functions that keep all registers.
    Keeper(Keeper),
    /// One of the region's own ways out, by its number.
    Exit(u32),
}

/// A function of the host that is called through one that keeps all registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeper {
    /// Finds memory.
    Find,
    /// The same for a pack.
    FindPack,
    /// Calls one of a lane's values.
    Call,
}

impl Keeper {
    pub(crate) const ALL: [Keeper; 3] = [Keeper::Find, Keeper::FindPack, Keeper::Call];
}

/// A function of this library, from which others are counted.
fn anchor() -> usize {
    own_code as *const () as usize
}

impl Outside {
    /// A function of this library.
    pub(crate) fn function(address: usize) -> Outside {
        let distance = address.wrapping_sub(anchor()) as isize;
        Outside::Function(i32::try_from(distance).expect("a function of this library"))
    }

    /// As two numbers, in Cranelift and in files.
    pub(crate) fn numbers(self) -> (u32, u32) {
        match self {
            Outside::Function(distance) => (0, distance as u32),
            Outside::Keeper(keeper) => (1, keeper as u32),
            Outside::Exit(number) => (2, number),
        }
    }

    /// What two numbers stand for.
    pub(crate) fn of_numbers(kind: u32, index: u32) -> Option<Outside> {
        Some(match kind {
            0 => Outside::Function(index as i32),
            1 => Outside::Keeper(*Keeper::ALL.get(index as usize)?),
            2 => Outside::Exit(index),
            _ => return None,
        })
    }

    /// As a function that is compiled calls it.
    pub(crate) fn name(self, function: &mut Function) -> ExternalName {
        let (namespace, index) = self.numbers();
        ExternalName::user(function.declare_imported_user_function(UserExternalName { namespace, index }))
    }

    /// What a name in a compiled function stands for.
    pub(crate) fn of_name(function: &Function, name: &ExternalName) -> Option<Outside> {
        let ExternalName::User(reference) = name else { return None };
        let name = function.params.user_named_funcs().get(*reference)?;
        Outside::of_numbers(name.namespace, name.index)
    }
}

/// The address of the function at a distance. None where this library has no code.
pub(crate) fn function_at(distance: i32) -> Option<u64> {
    let address = anchor().wrapping_add_signed(distance as isize);
    own_code().contains(&address).then_some(address as u64)
}

/// A function's distance, for what calls it by that: see [`Outside::Function`].
pub(crate) fn distance_of(address: usize) -> u64 {
    address.wrapping_sub(anchor()) as u64
}

/// The function at a distance that code passes.
#[inline]
pub(crate) fn address_at(distance: u64) -> usize {
    anchor().wrapping_add(distance as usize)
}

/// Where the code of this library lies.
pub(crate) fn own_code() -> std::ops::Range<usize> {
    own_library().code.clone()
}

/// What the loader knows of the library that this code is part of.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnLibrary {
    /// The part with this code that is executable.
    pub(crate) code: std::ops::Range<usize>,
}

/// This library. Nothing is known of it where the system does not tell.
pub(crate) fn own_library() -> &'static OwnLibrary {
    static OWN: OnceLock<OwnLibrary> = OnceLock::new();
    OWN.get_or_init(|| {
        let mut own = OwnLibrary::default();
        // SAFETY: the function takes what it is given as that, and is called before this returns.
        unsafe { libc::dl_iterate_phdr(Some(look_at), (&raw mut own).cast()) };
        own
    })
}

unsafe extern "C" fn look_at(info: *mut libc::dl_phdr_info, _: usize, own: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the loader's promise; `own` is what `own_library` has passed.
    let (info, own) = unsafe { (&*info, &mut *own.cast::<OwnLibrary>()) };
    // SAFETY: the loader's promise: there are so many.
    let parts = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let place = |part: &libc::Elf64_Phdr| {
        let start = (info.dlpi_addr as usize).wrapping_add(part.p_vaddr as usize);
        start..start.wrapping_add(part.p_memsz as usize)
    };
    let loaded = || parts.iter().filter(|part| part.p_type == libc::PT_LOAD);
    let with_code = |part: &&libc::Elf64_Phdr| part.p_flags & libc::PF_X != 0 && place(part).contains(&anchor());
    let Some(code) = loaded().find(with_code) else { return 0 };
    own.code = place(code);
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_its_own_library() {
        let own = own_library();
        assert!(own.code.contains(&(finds_its_own_library as *const () as usize)));
    }

    #[test]
    fn functions_are_found_again() {
        let address = finds_its_own_library as *const () as usize;
        let Outside::Function(distance) = Outside::function(address) else { unreachable!() };
        assert_eq!(function_at(distance), Some(address as u64));
        assert_eq!(address_at(distance_of(address)), address);
        assert_eq!(function_at(i32::MAX), None);
        for outside in [Outside::Function(-5), Outside::Keeper(Keeper::Call), Outside::Exit(7)] {
            let (kind, index) = outside.numbers();
            assert_eq!(Outside::of_numbers(kind, index), Some(outside));
        }
        assert_eq!(Outside::of_numbers(1, 3), None);
    }
}
