//! Mappings of physical memory into virtual addresses (`cuMemMap`).
//!
//! Owns which physical memory a handle stands for, what other processes know it by, and by which
//! address the trace knows each piece of it, however often and wherever it is mapped: that of its
//! first mapping, for as long as any mapping of it is left. If another piece, still mapped
//! elsewhere, is known by that address, or if only a part of the piece is mapped, it gets a
//! substitute ([`trace::SUBSTITUTE`]), and the mapping is an alias of that. Does not log: the op
//! functions do.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use trace::SUBSTITUTE;

use super::descriptor_marks::Mark;

/// Physical memory, mapped or not.
#[derive(Clone, Debug, Default)]
struct Physical {
    /// Bytes; 0: not known.
    size: u64,
    /// By which descriptors show it.
    mark: Option<Mark>,
    /// What other processes know it by.
    keys: Vec<Vec<u8>>,
    /// Whether another process made it.
    imported: bool,
}

/// A piece of physical memory that is mapped.
#[derive(Clone, Copy, Debug)]
struct Memory {
    /// Which physical memory.
    physical: u64,
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
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Mapped {
    /// The memory gets known: its name and size.
    pub begins: Option<(u64, u64)>,
    /// Whether that is memory of another process.
    pub imported: bool,
    /// What other processes know the memory by that gets known.
    pub keys: Vec<Vec<u8>>,
    /// The mapping is an alias of this address.
    pub alias_of: Option<u64>,
}

/// What an export means in the trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Exported {
    /// The name of the memory, if it is mapped and the key is new.
    pub name: Option<u64>,
    /// The mark to put on the descriptor.
    pub mark: Option<Mark>,
    /// What other processes know it by.
    pub key: Vec<u8>,
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
    /// The physical memory behind handles.
    behind: HashMap<u64, u64>,
    physical: HashMap<u64, Physical>,
    next: u64,
    substitutes: u64,
}

impl Tables {
    /// A handle stands for this memory from now on. It may have been that of other memory, which
    /// lives on while it is mapped.
    fn stands_for(&mut self, handle: u64, physical: u64) {
        let before = self.behind.insert(handle, physical);
        let held = |id| self.behind.values().any(|p| *p == id) || self.memory.iter().any(|m| m.physical == id);
        if let Some(gone) = before.filter(|before| !held(*before)) {
            self.physical.remove(&gone);
        }
    }

    fn add(&mut self, handle: u64, physical: Physical) -> u64 {
        self.next += 1;
        let id = self.next;
        self.physical.insert(id, physical);
        self.stands_for(handle, id);
        id
    }

    /// Memory gets a key.
    fn export(&mut self, id: u64, key: Vec<u8>) -> Exported {
        let name = self.memory.iter().find(|memory| memory.physical == id).map(|memory| memory.name);
        let Some(physical) = self.physical.get_mut(&id) else { return Exported::default() };
        let is_new = !physical.keys.contains(&key);
        if is_new {
            physical.keys.push(key.clone());
        }
        Exported { name: name.filter(|_| is_new), mark: None, key }
    }

    /// The memory behind a handle, known or not.
    fn of(&mut self, handle: u64) -> u64 {
        self.behind.get(&handle).copied().unwrap_or_else(|| self.add(handle, Physical::default()))
    }
}

/// All mappings.
#[derive(Debug, Default)]
pub struct Mappings(Mutex<Tables>);

impl Mappings {
    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Physical memory was made.
    pub fn created(&self, handle: u64, size: u64) {
        self.tables().add(handle, Physical { size, ..Physical::default() });
    }

    /// A handle stands for the memory that is mapped at an address.
    pub fn retained(&self, handle: u64, address: u64) {
        let mut tables = self.tables();
        let mapped = tables.mappings.iter().filter(|m| m.ptr <= address).max_by_key(|m| m.ptr).map(|m| m.name);
        let memory = tables.memory.iter().find(|memory| Some(memory.name) == mapped).map(|memory| memory.physical);
        match memory {
            Some(physical) => tables.stands_for(handle, physical),
            None => {
                tables.add(handle, Physical::default());
            }
        }
    }

    /// A handle came from what a process has exported: by this key, with this mark if it came as a
    /// descriptor. This process may have made the memory itself.
    pub fn imported(&self, handle: u64, key: Vec<u8>, mark: Option<Mark>) {
        let mut tables = self.tables();
        let own = tables.physical.iter().find(|(_, physical)| physical.keys.contains(&key)).map(|(id, _)| *id);
        match own {
            Some(id) => tables.stands_for(handle, id),
            None => {
                let size = mark.map_or(0, Mark::size);
                tables.add(handle, Physical { size, mark, keys: vec![key], imported: true });
            }
        }
    }

    /// A handle came from what no process is known to have exported.
    pub fn unmatched(&self, handle: u64) {
        self.tables().add(handle, Physical { imported: true, ..Physical::default() });
    }

    /// Physical memory is exported as a descriptor: by the mark that it has, or gets now.
    pub fn exported(&self, handle: u64) -> Option<Exported> {
        let mut tables = self.tables();
        let id = tables.of(handle);
        let physical = tables.physical.get_mut(&id)?;
        let mark = physical.mark.or_else(|| Mark::fresh(physical.size))?;
        physical.mark = Some(mark);
        Some(Exported { mark: Some(mark), ..tables.export(id, mark.key()) })
    }

    /// Physical memory is exported by bytes that are its name everywhere.
    pub fn exported_by(&self, handle: u64, key: Vec<u8>) -> Exported {
        let mut tables = self.tables();
        let id = tables.of(handle);
        tables.export(id, key)
    }

    /// Remembers a mapping of physical memory.
    pub fn map(&self, handle: u64, offset: u64, ptr: u64, size: u64) -> Mapped {
        let mut tables = self.tables();
        let end = offset.saturating_add(size);
        let physical = tables.of(handle);
        let known = |m: &&Memory| m.physical == physical && m.offset <= offset && end <= m.offset + m.size;
        let (memory, begins) = match tables.memory.iter().find(known) {
            Some(memory) => (*memory, None),
            None => {
                let whole = tables.physical.get(&physical).map_or(0, |physical| physical.size).max(end);
                let is_whole = offset == 0 && whole == size;
                let taken = |m: &Memory| m.name < ptr.saturating_add(size) && ptr < m.name + m.size;
                let memory = if is_whole && !tables.memory.iter().any(taken) {
                    Memory { physical, offset, size, name: ptr }
                } else {
                    tables.substitutes += 1;
                    let name = SUBSTITUTE | (tables.substitutes % 1024) << 52 | ptr;
                    Memory { physical, offset: 0, size: whole, name }
                };
                tables.memory.push(memory);
                (memory, Some((memory.name, memory.size)))
            }
        };
        let at = memory.name + (offset - memory.offset);
        tables.mappings.push(Mapping { ptr, name: memory.name, at, going: 0 });
        let of = tables.physical.get(&physical).filter(|_| begins.is_some());
        Mapped {
            begins,
            imported: of.is_some_and(|physical| physical.imported),
            keys: of.map_or_else(Vec::new, |physical| physical.keys.clone()),
            alias_of: (at != ptr).then_some(at),
        }
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
        let first = |name| Mapped { begins: Some((name, 0x100)), ..Mapped::default() };
        assert_eq!(h.map(7, 0, 0x1000, 0x100), first(0x1000));
        assert_eq!(h.map(7, 0, 0x2000, 0x100), Mapped { alias_of: Some(0x1000), ..Mapped::default() });
        assert!(h.unmap(0x1000, 0x100, 1).is_empty(), "what is left is the same memory");
        h.unmapped(1, true);
        let substitute = SUBSTITUTE | 1 << 52 | 0x1000;
        let other = Mapped { begins: Some((substitute, 0x100)), alias_of: Some(substitute), ..Mapped::default() };
        assert_eq!(h.map(8, 0, 0x1000, 0x100), other, "the address is other memory now");
        assert_eq!(h.unmap(0x2000, 0x100, 2), [Unmapped::Alias(0x2000), Unmapped::Memory(0x1000)]);
        h.unmapped(2, true);
        assert_eq!(h.unmap(0x1000, 0x100, 3), [Unmapped::Alias(0x1000), Unmapped::Memory(substitute)]);
    }

    #[test]
    fn exported_memory_is_named_once_and_again_when_it_is_mapped_again() {
        let h = Mappings::default();
        h.created(7, 0x100);
        let exported = h.exported(7).expect("a mark");
        assert_eq!(exported.name, None, "it is not mapped yet");
        let mapped = h.map(7, 0, 0x1000, 0x100);
        assert_eq!((mapped.keys.as_slice(), mapped.imported), (&[exported.key.clone()][..], false));
        let again = h.exported(7).expect("a mark");
        assert_eq!((again.mark, again.name), (exported.mark, None), "the same key says nothing new");
        assert_eq!(h.exported_by(7, b"fabric".to_vec()).name, Some(0x1000));
        assert_eq!(h.unmap(0x1000, 0x100, 1), [Unmapped::Memory(0x1000)]);
        h.unmapped(1, true);
        assert_eq!(h.map(7, 0, 0x3000, 0x100).keys, [exported.key.clone(), b"fabric".to_vec()]);
        // What this process has made itself is the same memory by any handle.
        h.imported(8, exported.key.clone(), exported.mark);
        assert_eq!(h.map(8, 0, 0x4000, 0x100), Mapped { alias_of: Some(0x3000), ..Mapped::default() });
        h.retained(9, 0x4010);
        assert_eq!(h.map(9, 0, 0x6000, 0x100), Mapped { alias_of: Some(0x3000), ..Mapped::default() });
        // That of a multicast object, of which nothing is known, is not exported.
        h.created(9, 0);
        assert!(h.exported(9).is_none());
        // A handle that comes back is other memory.
        h.created(7, 0x100);
        let other = h.map(7, 0, 0x5000, 0x100);
        assert_eq!((other.begins, other.keys.len()), (Some((0x5000, 0x100)), 0));
    }

    #[test]
    fn memory_of_another_process_has_its_size_from_the_mark() {
        let h = Mappings::default();
        let mark = Mark::fresh(0x400);
        h.imported(9, b"key".to_vec(), mark);
        let part = h.map(9, 0x100, 0x1000, 0x100);
        assert!(part.imported && part.keys == [b"key".to_vec()], "{part:?}");
        let (name, size) = part.begins.expect("it gets known");
        assert_eq!((size, part.alias_of), (0x400, Some(name + 0x100)), "a part of a larger memory");
        h.unmatched(10);
        let unknown = h.map(10, 0, 0x2000, 0x100);
        assert!(unknown.imported && unknown.keys.is_empty() && unknown.begins == Some((0x2000, 0x100)));
    }
}
