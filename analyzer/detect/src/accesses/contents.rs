//! What launches find in memory whose content is known: tables of pointers, and tensor maps.
//!
//! Owns which words copies teach, and which of them a launch may rest on: those that it does not
//! write itself. What it then touches is found in `kernels`.

use super::Work;
use crate::launches::effects::{Effect, EffectBase, MapInMemory};
use crate::launches::map_copies::MapLayout;
use crate::memory::allocations::Home;
use crate::memory::tensor_maps;
use crate::memory::{AccessKind, Allocations};
use device_code::tensor_map::{self, Tensor};
use trace::{ImageId, MemoryKind};

/// Maximum number of words of a pointer table that are looked up for one access.
const MAX_TABLE: u64 = 1024;

impl Work<'_, '_> {
    /// The contents of a launch's pointer tables: only tables whose words are all known and point
    /// into allocations, and which the launch itself does not change.
    pub(super) fn tables<'e>(&mut self, effects: &'e [Effect], image: ImageId) -> Vec<(&'e Effect, Vec<u64>)> {
        let unknown_writes = effects.iter().any(|e| e.kind.writes() && e.base == EffectBase::Unknown);
        if self.memory.contents.is_empty() || unknown_writes {
            return Vec::new();
        }
        let written = self.written(effects, image);
        let mut found = Vec::new();
        for effect in effects {
            // Where the table lies, its first word, distance and number of its words.
            let (at, first, stride, count) = match &effect.base {
                EffectBase::PointerTable(t) => (t.value, t.first, t.stride, t.count),
                EffectBase::VariableTable(t) => match self.memory.global(image, &t.name) {
                    Some((ptr, _)) => (ptr, ptr.wrapping_add(t.first), t.stride, t.count),
                    None => continue,
                },
                _ => continue,
            };
            if count > MAX_TABLE || written.contains(&self.memory.locate(at).map(|p| p.home)) {
                continue;
            }
            let pointers: Option<Vec<u64>> = (0..count)
                .map(|i| {
                    let place = self.memory.locate(first.wrapping_add(i.wrapping_mul(stride)))?;
                    let word = self.memory.contents.word(place.address)?;
                    self.memory.locate(word).filter(|p| p.home != place.home).map(|_| word)
                })
                .collect();
            if let Some(mut pointers) = pointers {
                pointers.sort_unstable();
                pointers.dedup();
                found.push((effect, pointers));
            }
        }
        found
    }

    /// The allocations that effects write to through pointers and variables.
    fn written(&mut self, effects: &[Effect], image: ImageId) -> Vec<Option<Home>> {
        let mut written: Vec<Option<Home>> = Vec::new();
        for e in effects.iter().filter(|e| e.kind.writes()) {
            let at = match &e.base {
                EffectBase::Param(_, value) | EffectBase::Maybe(_, value) | EffectBase::Absolute(value) => *value,
                EffectBase::Global(name) => match self.memory.global(image, name) {
                    Some((ptr, _)) => ptr,
                    None => continue,
                },
                _ => continue,
            };
            written.push(self.memory.locate(at).map(|p| p.home));
        }
        written
    }

    /// What a launch copies by tensor maps in memory, of those whose content is known, and which it
    /// does not change itself.
    pub(super) fn tensors<'e>(&mut self, effects: &'e [Effect], image: ImageId) -> Vec<(&'e Effect, Vec<Effect>)> {
        let unknown_writes = effects.iter().any(|e| e.kind.writes() && e.base == EffectBase::Unknown);
        if self.memory.contents.is_empty() || unknown_writes {
            return Vec::new();
        }
        let written = self.written(effects, image);
        let kernel = self.site.kernel;
        let tiles = |effect: &'e Effect| {
            let EffectBase::MapInMemory(map) = &effect.base else { return None };
            let MapInMemory { base, at, tiles, arch } = &**map;
            let layout = MapLayout::of(*arch);
            let (start, param) = match base {
                EffectBase::Param(offset, value) => (*value, Some(*offset)),
                EffectBase::Global(name) => (self.memory.global(image, name)?.0, None),
                _ => return None,
            };
            let place = self.memory.locate(start.wrapping_add_signed(*at))?;
            if written.contains(&Some(place.home)) {
                return None;
            }
            let word = |at: usize| Some(self.memory.contents.word(place.address + at as u64)?.to_le_bytes());
            let words: Vec<[u8; 8]> = (0..tensor_maps::WHOLE).step_by(8).map_while(word).collect();
            let known = layout.read(words.as_flattened(), &self.memory.tensor_maps)?;
            self.memory.tensor_maps.note_copy(kernel, param.unwrap_or(u32::MAX), words.as_flattened());
            let base = |address| param.map_or(EffectBase::Absolute(address), |at| EffectBase::Tensor(at, address));
            let kind = match effect.kind {
                AccessKind::Read => kernels::AccessKind::Read,
                _ => kernels::AccessKind::Write,
            };
            Some((effect, layout.effects(&known, (effect, kind), tiles, base)?))
        };
        effects.iter().filter_map(tiles).collect()
    }

    /// Learns the words that the last copy stored, when its source is certain: pageable memory,
    /// which has been read by now. Or those of pinned memory, for the next launch.
    pub fn learn(memory: &mut Allocations, bytes: &[u8], ptr: u64) {
        let kinds = [MemoryKind::Device, MemoryKind::Pool, MemoryKind::Mapped, MemoryKind::ModuleGlobal];
        // Maps are aligned (cuda.h, `cuTensorMapEncodeTiled`). Of what may be one, all words are
        // kept.
        let first = ptr.next_multiple_of(tensor_map::SIZE as u64).saturating_sub(ptr) as usize;
        for at in (first..bytes.len()).step_by(tensor_map::SIZE) {
            let map = &bytes[at..];
            let place = memory.locate(ptr.wrapping_add(at as u64));
            let Some(place) = place.filter(|p| p.address.is_multiple_of(8)) else { break };
            let length = if memory.tensor_maps.get(map).is_some() {
                tensor_maps::WHOLE
            } else if Tensor::decode(map).is_some_and(|tensor| memory.locate(tensor.address).is_some()) {
                tensor_map::SIZE
            } else {
                continue;
            };
            let map = &map[..length];
            if !memory.root_kind(place.address).is_some_and(|kind| kinds.contains(&kind)) {
                continue;
            }
            for (word, at) in map.chunks_exact(8).zip((place.address..).step_by(8)) {
                memory.contents.put(at, u64::from_le_bytes(word.try_into().unwrap_or_default()));
            }
        }
        for (i, word) in bytes.chunks_exact(8).enumerate() {
            let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
            let Some(place) = memory.locate(ptr.wrapping_add(8 * i as u64)) else { return };
            let kind = memory.root_kind(place.address);
            if !place.address.is_multiple_of(8) || memory.locate(word).is_none() {
                continue;
            }
            if kind.is_some_and(|k| kinds.contains(&k)) {
                memory.contents.put(place.address, word);
            } else if matches!(kind, Some(MemoryKind::PinnedHost | MemoryKind::RegisteredHost)) {
                memory.contents.put_fleeting(place.address, word);
            }
        }
    }
}
