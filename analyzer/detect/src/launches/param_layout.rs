//! Where a kernel's parameters lie for its code, and where the trace has them.
//!
//! Owns the way between the two. PTX counts from the first parameter. Machine code counts from the
//! constant bank's first word for parameters, and leaves a gap where the first one needs a larger
//! alignment (a `CUtensorMap`). The driver says the offsets of the code that it runs, which may be
//! another form than the one that is analysed.

use crate::launches::effects::{Effect, EffectBase, HeldLock};
use kernels::Param;
use std::ops::Range;
use trace::ParamSlot;

/// One parameter: where the code has it, where the trace has it, and its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Moved {
    code: u32,
    trace: u32,
    size: u32,
}

/// The parameters of a kernel, if they lie elsewhere for its code than in the trace.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ParamLayout(Vec<Moved>);

impl ParamLayout {
    /// Compares the two. Parameters that differ in more than their places say nothing.
    pub(crate) fn new(code: &[Param], trace: &[ParamSlot]) -> Self {
        let is_same = |(code, trace): (&Param, &ParamSlot)| u32::from(code.size) == trace.size;
        if code.len() != trace.len() || !code.iter().zip(trace).all(is_same) {
            return Self::default();
        }
        let moved = |(code, trace): (&Param, &ParamSlot)| Moved {
            code: u32::from(code.offset),
            trace: trace.offset,
            size: trace.size,
        };
        let all: Vec<Moved> = code.iter().zip(trace).map(moved).collect();
        if all.iter().all(|one| one.code == one.trace) { Self::default() } else { Self(all) }
    }

    /// The parameters as the code has them; `None`: as they are.
    pub(crate) fn for_code(&self, params: &[u8]) -> Option<Vec<u8>> {
        let length = self.0.iter().map(|one| (one.code + one.size) as usize).max()?;
        let mut bytes = vec![0; length];
        for one in &self.0 {
            let (from, to, size) = (one.trace as usize, one.code as usize, one.size as usize);
            let given = params.get(from..).unwrap_or_default();
            let given = &given[..given.len().min(size)];
            bytes[to..to + given.len()].copy_from_slice(given);
        }
        Some(bytes)
    }

    /// Bytes that the code uses, as the trace has them.
    pub(crate) fn in_trace(&self, used: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        self.0.iter().filter_map(move |one| {
            let (code, trace, size) = (one.code as usize, one.trace as usize, one.size as usize);
            let (start, end) = (used.start.max(code), used.end.min(code + size));
            (start < end).then(|| start - code + trace..end - code + trace)
        })
    }

    /// Where the code has a word of the parameters.
    pub(crate) fn in_code(&self, offset: u32) -> u32 {
        let own = |one: &&Moved| (one.trace..one.trace + one.size.max(1)).contains(&offset);
        self.0.iter().find(own).map_or(offset, |one| offset - one.trace + one.code)
    }

    fn place(&self, offset: &mut u32) {
        let own = |one: &&Moved| (one.code..one.code + one.size.max(1)).contains(offset);
        if let Some(one) = self.0.iter().find(own) {
            *offset = *offset - one.code + one.trace;
        }
    }

    fn base(&self, base: &mut EffectBase) {
        match base {
            EffectBase::Param(offset, _)
            | EffectBase::Maybe(offset, _)
            | EffectBase::Handle(offset, _)
            | EffectBase::Tensor(offset, _) => self.place(offset),
            EffectBase::SomeHandle(words) => words.iter_mut().for_each(|(offset, _)| self.place(offset)),
            EffectBase::PointerTable(table) => self.place(&mut table.param),
            EffectBase::MapInMemory(map) => self.base(&mut map.base),
            EffectBase::Global(_)
            | EffectBase::Object
            | EffectBase::Absolute(_)
            | EffectBase::VariableTable(_)
            | EffectBase::Unknown => {}
        }
    }

    /// Names the parameters of an effect as the trace does.
    pub(crate) fn name(&self, effect: &mut Effect) {
        self.base(&mut effect.base);
        for HeldLock(words, _) in effect.lock.iter_mut().chain(&mut effect.if_fenced) {
            words.iter_mut().for_each(|(base, _)| self.base(base));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launches::effects::EffectExtent;
    use crate::memory::AccessKind;

    fn layout() -> ParamLayout {
        let code = [Param { offset: 112, size: 8 }, Param { offset: 240, size: 4 }];
        ParamLayout::new(&code, &[ParamSlot { offset: 0, size: 8 }, ParamSlot { offset: 128, size: 4 }])
    }

    #[test]
    fn parameters_move_to_where_the_code_has_them() {
        let layout = layout();
        let mut params = vec![0; 132];
        (params[0], params[128]) = (7, 9);
        let moved = layout.for_code(&params).expect("they lie elsewhere");
        assert_eq!((moved.len(), moved[112], moved[240]), (244, 7, 9));
        // Fewer bytes than the kernel has are no fault.
        assert_eq!(layout.for_code(&[7]).expect("moved")[112], 7);
        let used: Vec<_> = layout.in_trace(116..242).collect();
        assert_eq!(used, [4..8, 128..130]);
        let mut effect = Effect::new(EffectBase::Param(240, 9), AccessKind::Read, EffectExtent::Unknown);
        layout.name(&mut effect);
        assert_eq!(effect.base, EffectBase::Param(128, 9));
        assert_eq!((layout.in_code(4), layout.in_code(128), layout.in_code(8)), (116, 240, 8));
    }

    #[test]
    fn equal_layouts_and_other_parameters_stay() {
        let code = [Param { offset: 0, size: 8 }];
        assert_eq!(ParamLayout::new(&code, &[ParamSlot { offset: 0, size: 8 }]), ParamLayout::default());
        assert_eq!(ParamLayout::new(&code, &[ParamSlot { offset: 16, size: 4 }]), ParamLayout::default());
        assert_eq!(ParamLayout::new(&code, &[]), ParamLayout::default());
        assert_eq!(ParamLayout::default().for_code(&[1, 2]), None);
    }
}
