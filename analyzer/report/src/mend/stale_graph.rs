//! A graph that names memory which has ended: the finding made of a raw one, and the sentences of
//! its advice.
//!
//! Owns both. How sure it is was decided in `detect/stale_graphs/judge.rs`.

use crate::call_site::site;
use crate::doubt::{Doubt, of_stale_memory};
use crate::elaborate::Elaborator;
use crate::fingerprint;
use crate::model::{Actor, Finding, MendingLines, Side, StaleMemory, Synchronisation};
use crate::words::{Api, DoubtSide, Established, FindingKind, MemoryWord};
use detect::memory::{Access, AccessKind, Cause, Exclusion, Extent, Site};
use detect::race::Hazard;
use detect::stale_graphs::{NodePlace, RawStale};

/// Resolves a launch of a graph that names memory which has ended.
pub fn finding(elaborator: &mut Elaborator<'_>, raw: &RawStale) -> Finding {
    let memory = &raw.ended.memory;
    let free = Access {
        epoch: raw.ended.epoch,
        kind: AccessKind::Write,
        extent: Extent::exact(memory.ptr, memory.end()),
        allocation: memory.id,
        site: Site { cause: Cause::Free, ..raw.ended.site },
        exclusion: Exclusion::NONE,
    };
    let [previous, access] = [&free, &raw.access].map(|access| elaborator.side(access, memory.ptr));
    let place = match raw.place {
        NodePlace::Param(_) if access.through.is_empty() => "a parameter".to_owned(),
        NodePlace::Param(_) => access.through.clone(),
        NodePlace::Target => "its target".to_owned(),
        NodePlace::Source => "its source".to_owned(),
        NodePlace::Value => "its address".to_owned(),
    };
    let stale = StaleMemory {
        place,
        now: raw.now.as_ref().map(|now| elaborator.memory(now)),
        instantiated: elaborator.frames(raw.instantiated).to_vec(),
    };
    let mut allocation = elaborator.memory(memory);
    allocation.freed = previous.stack.clone();
    let is_kernel = raw.access.site.cause == Cause::Kernel;
    let mut doubts = Vec::from_iter(of_stale_memory(raw));
    // Measurements of the node say nothing here: it touches memory that is not there.
    let of_bytes = elaborator.doubt_of(DoubtSide::Access, &raw.access, raw.count > 1);
    doubts.extend(of_bytes.map(|doubt| Doubt { settle: Vec::new(), ..doubt }));
    let hazard = if raw.access.kind.writes() { Hazard::WriteAfterWrite } else { Hazard::ReadAfterWrite };
    let synchronisation = advice(raw, (&access, &previous), &stale, allocation.kind);
    let mut finding = Finding {
        weakness: raw.weakness,
        established: if is_kernel { Established::Code } else { Established::Call },
        doubts,
        count: raw.count,
        pid: elaborator.names.process.pid,
        origin: elaborator.names.process.name(),
        allocation: Some(allocation),
        stale: Some(stale),
        ..Finding::new(FindingKind::StaleGraphMemory, hazard, raw.confidence, [access, previous], synchronisation)
    };
    finding.identity = fingerprint::stale_graph(&finding);
    finding
}

/// What the node does to whatever is there now, and what would mend it.
fn advice(raw: &RawStale, (access, free): (&Side, &Side), stale: &StaleMemory, was: MemoryWord) -> Synchronisation {
    let at = |stack: &[symbols::frame::Frame]| site(stack).map_or_else(String::new, |at| format!(" at {at}"));
    let node = access.node.unwrap_or_default();
    let mut facts = vec![format!(
        "The node names that memory by {}; the graph was instantiated{}.",
        stale.place,
        at(&stale.instantiated)
    )];
    if let Some(now) = &stale.now {
        let does = if access.guessed {
            "may use"
        } else if raw.access.kind.writes() {
            "writes to"
        } else {
            "reads"
        };
        facts.push(format!(
            "It lies in other memory now, {} bytes of {} that were allocated{}: the node {does} that.",
            now.size,
            now.what(),
            at(&now.stack)
        ));
    }
    let missing =
        format!("Nothing gives node {node} another address between the free{} and the launch.", at(&free.stack));
    let update = match access.actor {
        Actor::Kernel => "cudaGraphExecKernelNodeSetParams",
        Actor::Copy => "cudaGraphExecMemcpyNodeSetParams",
        Actor::Set => "cudaGraphExecMemsetNodeSetParams",
        _ => "cudaGraphExecNodeSetParams",
    };
    let call = if free.call.is_empty() { "cudaFree" } else { &free.call };
    let lines = vec![
        format!("{call}(...);  // behind the last launch of the graph, not{}", at(&free.stack)),
        format!(
            "{update}(exec, node, &params);  // or, with memory that lives, before the launch{}",
            at(&access.launched)
        ),
    ];
    let mut mend = vec![MendingLines { api: Api::Runtime, lines }];
    if matches!(was, MemoryWord::Tensor | MemoryWord::Segment | MemoryWord::SegmentOfUnseenBlocks) {
        let line = "static.copy_(new)  # keep the tensors that the graph was captured with, and refill them".to_owned();
        mend.insert(0, MendingLines { api: Api::Torch, lines: vec![line] });
    }
    Synchronisation { facts, missing, mend }
}
