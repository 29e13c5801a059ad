//! Byte ranges of a kernel's memory accesses.
mod build;
mod division;
mod form;
pub(crate) mod node;
mod origin;
mod pair;
mod ssa;

use crate::access::{Base, Extent, KernelAccess, LaunchArgs, Param, SymbolRef};
use crate::ir::cfg::Cfg;
use crate::ir::{AccessKind, Function, Reason};
use node::Graph;
use origin::Origins;

/// A kernel, prepared.
#[derive(Debug)]
pub(crate) struct Analysis {
    graph: Graph,
    #[allow(dead_code)]
    cfg: Cfg,
    origins: Vec<Origins>,
}

/// Prepares a kernel.
pub(crate) fn analyse(f: &Function, cfg: Cfg) -> Analysis {
    let graph = build::build(f, &cfg);
    let origins = graph.accesses.iter().map(|a| origin::origins(&graph, &f.params, &a.target)).collect();
    Analysis { graph, cfg, origins }
}

impl Analysis {
    pub(crate) fn access_count(&self) -> usize {
        self.graph.accesses.len()
    }

    pub(crate) fn origins(&self) -> impl Iterator<Item = (AccessKind, &Origins)> {
        self.graph.accesses.iter().zip(&self.origins).map(|(a, o)| (a.kind, o))
    }

    /// For each access: is its extent bounded in made-up launches?
    pub(crate) fn trial(&self, _params: &[Param]) -> Vec<bool> {
        vec![false; self.graph.accesses.len()]
    }

    pub(crate) fn evaluate(&self, launch: &LaunchArgs<'_>, out: &mut Vec<KernelAccess>) {
        for (kind, o) in self.origins() {
            let several = o.words.len() + o.symbols.len() > 1;
            let extent = Extent::Unknown { reason: o.unknown.unwrap_or(Reason::Budget) };
            let mut put = |base| out.push(KernelAccess { base, kind, several, extent: extent.clone() });
            for w in &o.words {
                let value = word(launch.params, *w);
                put(Base::Word { offset: *w, value });
            }
            for s in &o.symbols {
                put(Base::Global(SymbolRef(*s)));
            }
            if !o.has_base() && !o.window {
                put(Base::Unknown);
            }
        }
    }
}

/// The 8-byte word at a parameter offset (bytes beyond the end are zero).
fn word(params: &[u8], off: u16) -> u64 {
    let mut b = [0u8; 8];
    for (k, x) in b.iter_mut().enumerate() {
        *x = params.get(usize::from(off) + k).copied().unwrap_or(0);
    }
    u64::from_le_bytes(b)
}
