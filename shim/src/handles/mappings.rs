//! Mappings of physical memory into virtual addresses (`cuMemMap`).
//!
//! Owns by which address the trace knows each piece of physical memory, however often and wherever
//! it is mapped: that of its first mapping, for as long as any mapping of it is left. If another
//! piece, still mapped elsewhere, is known by that address, or if only a part of the piece is
//! mapped, it gets a substitute ([`trace::SUBSTITUTE`]), and the mapping is an alias of that. Does
//! not log: the op functions do.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trace::SUBSTITUTE;

/// A piece of physical memory that is mapped.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// Its handle; 0: the handle was released and given out again.
    handle: u64,
    /// The part of it that is known: from here on, so many bytes.
    offset: u64,
    size: u64,
    /// The address that the trace knows its first byte by.
    name: u64,
}

/// A mapping.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    ptr: u64,
    /// The name of the memory.
    name: u64,
    /// The address by which the trace knows the first byte of the mapping.
    at: u64,
    /// The call that is unmapping it; 0: none.
    going: u64,
}

/// What a new mapping means in the trace, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Mapped {
    /// The memory gets known: its name and size.
    pub begins: Option<(u64, u64)>,
    /// The mapping is an alias of this address.
    pub alias_of: Option<u64>,
}

/// What a mapping that goes means in the trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unmapped {
    /// An alias goes.
    Alias(u64),
    /// The memory goes that is known by this address.
    Memory(u64),
}

#[derive(Debug, Default)]
struct Tables {
    memory: Vec<Memory>,
    mappings: Vec<Mapping>,
    /// Bytes behind the handles that the program made.
    sizes: HashMap<u64, u64>,
    substitutes: u64,
}

/// All mappings.
#[derive(Debug, Default)]
pub struct Mappings(Mutex<Tables>);

impl Mappings {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Physical memory was made. Its handle may have been that of other memory, which lives on
    /// while it is mapped.
    pub fn created(&self, handle: u64, size: u64) {
        let mut tables = self.tables();
        tables.memory.iter_mut().filter(|memory| memory.handle == handle).for_each(|memory| memory.handle = 0);
        tables.sizes.insert(handle, size);
    }

    /// Remembers a mapping of physical memory.
    pub fn map(&self, handle: u64, offset: u64, ptr: u64, size: u64) -> Mapped {
        let mut tables = self.tables();
        let end = offset.saturating_add(size);
        let known = |m: &&Memory| m.handle == handle && m.offset <= offset && end <= m.offset + m.size;
        let (memory, begins) = match tables.memory.iter().find(known) {
            Some(memory) => (*memory, None),
            None => {
                let whole = tables.sizes.get(&handle).copied().unwrap_or(end).max(end);
                let is_whole = offset == 0 && whole == size;
                let taken = |m: &Memory| m.name < ptr.saturating_add(size) && ptr < m.name + m.size;
                let memory = if is_whole && !tables.memory.iter().any(taken) {
                    Memory { handle, offset, size, name: ptr }
                } else {
                    tables.substitutes += 1;
                    let name = SUBSTITUTE | (tables.substitutes % 1024) << 52 | ptr;
                    Memory { handle, offset: 0, size: whole, name }
                };
                tables.memory.push(memory);
                (memory, Some((memory.name, memory.size)))
            }
        };
        let at = memory.name + (offset - memory.offset);
        tables.mappings.push(Mapping { ptr, name: memory.name, at, going: 0 });
        Mapped { begins, alias_of: (at != ptr).then_some(at) }
    }

    /// A call is about to unmap a range: what ends if it succeeds. `call`: its number.
    pub fn unmap(&self, ptr: u64, size: u64, call: u64) -> Vec<Unmapped> {
        let mut tables = self.tables();
        let mut ended = Vec::new();
        for index in 0..tables.mappings.len() {
            let gone = tables.mappings[index];
            if gone.going != 0 || !(ptr..ptr.saturating_add(size)).contains(&gone.ptr) {
                continue;
            }
            tables.mappings[index].going = call;
            if gone.at != gone.ptr {
                ended.push(Unmapped::Alias(gone.ptr));
            }
            if !tables.mappings.iter().any(|m| m.name == gone.name && m.going == 0) {
                ended.push(Unmapped::Memory(gone.name));
            }
        }
        ended
    }

    /// The call has returned.
    pub fn unmapped(&self, call: u64, succeeded: bool) {
        let mut tables = self.tables();
        if !succeeded {
            return tables.mappings.iter_mut().filter(|m| m.going == call).for_each(|m| m.going = 0);
        }
        tables.mappings.retain(|m| m.going != call);
        let Tables { memory, mappings, .. } = &mut *tables;
        memory.retain(|memory| mappings.iter().any(|m| m.name == memory.name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// THE MODEL: which byte of which memory lies at each mapped page, said outright.
    #[derive(Default)]
    struct Pages(BTreeMap<u64, (u64, u64)>);

    /// What the trace makes of it: names and aliases, as the analyzer keeps them.
    #[derive(Default)]
    struct Trace {
        roots: BTreeMap<u64, u64>,
        aliases: BTreeMap<u64, (u64, u64)>,
    }

    impl Trace {
        fn map(&mut self, ptr: u64, size: u64, mapped: Mapped) {
            if let Some((name, size)) = mapped.begins {
                assert!(self.roots.range(..name + size).next_back().is_none_or(|(at, len)| at + len <= name));
                self.roots.insert(name, size);
            }
            if let Some(target) = mapped.alias_of {
                self.aliases.insert(ptr, (ptr + size, target));
            }
        }

        fn unmap(&mut self, ended: &[Unmapped]) {
            for gone in ended {
                match *gone {
                    Unmapped::Alias(ptr) => assert!(self.aliases.remove(&ptr).is_some()),
                    Unmapped::Memory(name) => assert!(self.roots.remove(&name).is_some()),
                }
            }
        }

        /// The address after aliases were followed, and the name that it belongs to.
        fn locate(&self, address: u64) -> Option<(u64, u64)> {
            let alias = self.aliases.range(..=address).next_back().filter(|(_, (end, _))| address < *end);
            let address = alias.map_or(address, |(from, (_, target))| target + (address - from));
            let (name, size) = self.roots.range(..=address).next_back()?;
            (address < name + size).then_some((*name, address - name))
        }
    }

    /// Maps and unmaps at random, with handles that come back, unmappings that fail and parts of
    /// memory; after each step two addresses are the same memory in the trace if and only if they
    /// are in the model.
    #[test]
    fn two_addresses_are_one_memory_if_and_only_if_they_are_mapped_to_it() {
        const PAGE: u64 = 0x1000;
        let mut state = 0x5eed_0007_u64;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % below
        };
        let (mut steps, mut aliased) = (0, 0);
        for _ in 0..60 {
            let (h, mut pages, mut trace) = (Mappings::default(), Pages::default(), Trace::default());
            // Which physical memory a handle stands for now, and how large it is, in pages.
            let (mut behind, mut made) = (BTreeMap::new(), 0);
            let mut mapped: Vec<(u64, u64)> = Vec::new();
            for call in 1..60 {
                steps += 1;
                match random(5) {
                    0 => {
                        let (handle, size) = (1 + random(3), 1 + random(3));
                        made += 1;
                        behind.insert(handle, (made, size));
                        h.created(handle, size * PAGE);
                    }
                    1 if !mapped.is_empty() => {
                        let at = random(mapped.len() as u64) as usize;
                        let (ptr, size) = mapped[at];
                        let ended = h.unmap(ptr, size, call);
                        let succeeds = random(4) != 0;
                        h.unmapped(call, succeeds);
                        if succeeds {
                            trace.unmap(&ended);
                            pages.0.retain(|page, _| !(ptr..ptr + size).contains(page));
                            mapped.remove(at);
                        }
                    }
                    _ => {
                        let handle = 1 + random(3);
                        let Some(&(memory, pages_of)) = behind.get(&handle) else { continue };
                        let offset = if random(3) == 0 { random(pages_of) } else { 0 };
                        let count = if random(3) == 0 { 1 + random(pages_of - offset) } else { pages_of - offset };
                        let (ptr, size) = (0x10_0000 + random(8) * PAGE, count * PAGE);
                        if mapped.iter().any(|(p, s)| *p < ptr + size && ptr < p + s) {
                            continue;
                        }
                        trace.map(ptr, size, h.map(handle, offset * PAGE, ptr, size));
                        mapped.push((ptr, size));
                        pages.0.extend((0..count).map(|i| (ptr + i * PAGE, (memory, offset + i))));
                    }
                }
                let located: Vec<_> = pages.0.iter().map(|(page, of)| (trace.locate(*page), of)).collect();
                for (index, (place, of)) in located.iter().enumerate() {
                    assert!(place.is_some(), "mapped memory is known");
                    for (other, of_other) in &located[..index] {
                        assert_eq!(place == other, of == of_other, "{place:?} {other:?} {of:?} {of_other:?}");
                        aliased += u32::from(of == of_other);
                    }
                }
            }
        }
        assert!(steps > 3000 && aliased > 1000, "{steps} {aliased}");
    }

    #[test]
    fn the_name_stays_while_any_mapping_is_left() {
        let h = Mappings::default();
        let first = |name| Mapped { begins: Some((name, 0x100)), alias_of: None };
        assert_eq!(h.map(7, 0, 0x1000, 0x100), first(0x1000));
        assert_eq!(h.map(7, 0, 0x2000, 0x100), Mapped { begins: None, alias_of: Some(0x1000) });
        assert!(h.unmap(0x1000, 0x100, 1).is_empty(), "what is left is the same memory");
        h.unmapped(1, true);
        let substitute = SUBSTITUTE | 1 << 52 | 0x1000;
        let other = Mapped { begins: Some((substitute, 0x100)), alias_of: Some(substitute) };
        assert_eq!(h.map(8, 0, 0x1000, 0x100), other, "the address is other memory now");
        assert_eq!(h.unmap(0x2000, 0x100, 2), [Unmapped::Alias(0x2000), Unmapped::Memory(0x1000)]);
        h.unmapped(2, true);
        assert_eq!(h.unmap(0x1000, 0x100, 3), [Unmapped::Alias(0x1000), Unmapped::Memory(substitute)]);
    }
}
