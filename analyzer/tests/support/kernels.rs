//! Kernels without code: a list of what each does with its parameters.

use detect::launches::effects::{Effect, EffectBase, EffectExtent, Launch, PointerTable, VariableTable};
use detect::launches::kernel_code::{CodeReader, KernelCode};
use detect::memory::{AccessKind, Dim};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use trace::*;

/// What a test kernel does with one parameter word.
#[derive(Clone)]
pub struct Does {
    pub param: u32,
    pub kind: AccessKind,
    pub bytes: Shape,
}

#[derive(Clone)]
pub enum Shape {
    /// Bytes from lo to hi, relative to the pointer.
    Exact(u64, u64),
    Bound(u64, u64),
    /// Runs of `width` bytes from `lo` on.
    Strided {
        lo: u64,
        width: u64,
        stride: u64,
        count: u64,
    },
    Unknown,
    /// Unknown, because the index is data.
    Scattered,
    /// The word is a texture or surface handle.
    Object,
    /// The word points to a table of that many pointers; these bytes behind each.
    PointerTable(u64, u64, u64),
    /// The variable `table` holds them; the word says nothing.
    VariableTable(u64, u64, u64),
    /// The evaluation fails.
    Failed,
}

pub fn reads(param: u32, bytes: Shape) -> Does {
    Does { param, kind: AccessKind::Read, bytes }
}
pub fn writes(param: u32, bytes: Shape) -> Does {
    Does { param, kind: AccessKind::Write, bytes }
}
pub fn atomics(param: u32, bytes: Shape) -> Does {
    Does { param, kind: AccessKind::Atomic, bytes }
}

/// What the kernels of a program do, by name; whether through addresses out of memory.
pub type Kernels = Arc<Mutex<HashMap<String, (Vec<Does>, bool)>>>;

/// Finds kernels among those of a program.
pub struct Reader(pub Kernels);

impl CodeReader for Reader {
    fn read(&mut self, _: ImageId, kernel: &str, _: u32) -> Result<Box<dyn KernelCode>, String> {
        let found = self.0.lock().unwrap().get(kernel).cloned();
        let (does, indirect) = found.ok_or("no code")?;
        let identity = kernel.starts_with("fixed").then_some(does.len() as u64);
        let dependence = Dependence::named(kernel);
        Ok(Box::new(TestKernel(does, indirect, identity, dependence)))
    }
    fn image(&mut self, _: &Op<'_>) {}
    fn outer_line(&mut self, _: ImageId, kernel: &str, _: u32, at: u32) -> Option<(String, u32)> {
        kernel.starts_with("dependent").then(|| ("src/dep.cu".to_owned(), at))
    }
}

/// What a kernel does about the one in front of it, and the one behind.
struct Dependence {
    waits: bool,
    triggers: kernels::Triggers,
    last: bool,
}

impl Dependence {
    /// A kernel triggers at once and does not wait, unless its name begins with `dependent`: then
    /// what it does is in the name.
    fn named(kernel: &str) -> Self {
        let has = |what: &str| kernel.contains(what);
        let waits = has("waits");
        let triggers = match kernel.starts_with("dependent") {
            true if !has("triggers") => kernels::Triggers::Never,
            true if waits => kernels::Triggers::AfterWait,
            _ => kernels::Triggers::AtOnce,
        };
        Self { waits: kernel.starts_with("dependent") && waits, triggers, last: has("triggers_last") }
    }
}

/// A kernel whose name begins with `fixed` touches the same bytes in equal launches. It has another
/// code hash when it does more.
struct TestKernel(Vec<Does>, bool, Option<u64>, Dependence);

impl KernelCode for TestKernel {
    fn evaluate(&self, launch: &Launch<'_>, effects: &mut Vec<Effect>) {
        for does in &self.0 {
            let at = does.param as usize;
            let value = u64::from_le_bytes(launch.params[at..at + 8].try_into().unwrap());
            let known = |lo: u64, hi: u64, width, dims, exact| EffectExtent::Bounded {
                lo: value.wrapping_add(lo),
                hi: value.wrapping_add(hi),
                width,
                dims,
                exact,
            };
            let bytes = match does.bytes {
                Shape::Exact(lo, hi) => known(lo, hi, hi.wrapping_sub(lo), vec![], true),
                Shape::Bound(lo, hi) => known(lo, hi, hi.wrapping_sub(lo), vec![], false),
                Shape::Strided { lo, width, stride, count } => {
                    known(lo, lo + stride * (count - 1) + width, width, vec![Dim { stride, count }], true)
                }
                Shape::Failed => {
                    effects.push(Effect::failed());
                    continue;
                }
                Shape::Scattered => EffectExtent::Scattered,
                Shape::Unknown | Shape::Object => EffectExtent::Unknown,
                Shape::PointerTable(_, lo, hi) | Shape::VariableTable(_, lo, hi) => {
                    EffectExtent::Bounded { lo, hi, width: hi - lo, dims: vec![], exact: true }
                }
            };
            let base = match does.bytes {
                Shape::PointerTable(count, ..) => {
                    EffectBase::PointerTable(PointerTable { param: does.param, value, first: value, stride: 8, count })
                }
                Shape::VariableTable(count, ..) => {
                    EffectBase::VariableTable(VariableTable { name: "table".into(), first: 0, stride: 8, count })
                }
                Shape::Object => EffectBase::Handle(does.param, value),
                _ => EffectBase::Param(does.param, value),
            };
            effects.push(Effect::new(base, does.kind, bytes));
        }
    }
    fn indirect(&self) -> bool {
        self.1
    }
    fn identity(&self) -> Option<u64> {
        self.2
    }
    fn dependency(&self) -> kernels::Dependency {
        kernels::Dependency { waits: self.3.waits, triggers: self.3.triggers, ..Default::default() }
    }
    fn waits(&self) -> Vec<u32> {
        self.3.waits.then_some(3).into_iter().collect()
    }
    fn triggers_at(&self) -> Vec<u32> {
        (self.3.triggers != kernels::Triggers::Never).then_some(5).into_iter().collect()
    }
    fn triggers_last(&self) -> bool {
        self.3.last
    }
    fn signals(&self) -> bool {
        self.0.iter().any(|does| matches!(does.kind, AccessKind::Atomic))
    }
    // Their scope is the system. (Real kernels have others: `update_scopes` among the e2e tests.)
    fn stores_for_host(&self, kind: AccessKind) -> bool {
        kind.is_atomic() && self.0.iter().any(|does| does.kind == kind)
    }
}
