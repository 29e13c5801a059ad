//! What the report found, as JSON: races and broken rules, with their sides, their memory and their
//! stacks.
//!
//! Owns the fields of `findings[]`; the file above lists them.

use super::mend;
use crate::doubt::Doubt;
use crate::model::{
    Actor, AllocationInfo, Breach, Finding, GateStatus, InKernel, SharedArray, Side, StaleMemory, ThreadPlace,
};
use crate::words::Verb;
use detect::confidence::Weakness;
use serde_json::{Value, json};
use symbols::frame::{Frame, FrameKind};
use symbols::library::library;

/// One finding.
pub(crate) fn finding(f: &Finding) -> Value {
    let s = &f.synchronisation;
    json!({
        "fingerprint": f.fingerprint,
        "cause": f.cause,
        "hazard": f.hazard.name(),
        "kind": f.kind,
        "host": f.host,
        "library_internal": f.internal,
        "confidence": f.confidence.name(),
        "weakness": f.weakness.map_or("", Weakness::name),
        "established": f.established,
        "doubts": f.doubts.iter().map(doubt).collect::<Vec<_>>(),
        "latent": f.latent,
        "count": f.count,
        "pid": f.pid,
        "processes": f.processes,
        "occurrences": f.occurrences,
        "ranges": f.ranges,
        "programs": f.programs,
        "bytes": { "from": f.from, "to": f.to },
        "access": side(&f.access),
        "previous": side(&f.previous),
        "allocation": f.allocation.as_ref().map(memory),
        "previous_allocation": f.previous_allocation.as_ref().map(memory),
        "standing": standing(f.standing),
        "synchronisation": {
            "facts": s.facts, "missing": s.missing, "mend": s.mend.iter().map(mend).collect::<Vec<_>>(),
            "cuda": s.cuda(), "torch": s.torch(),
        },
        "in_kernel": f.in_kernel.as_ref().map(in_kernel),
        "stale": f.stale.as_ref().map(stale),
        "around": f.scene.json(),
    })
}

/// What a graph that names memory which has ended has beside races.
fn stale(s: &StaleMemory) -> Value {
    json!({ "place": s.place, "now": s.now.as_ref().map(memory), "instantiated": stack(&s.instantiated) })
}

/// What a race of two threads of one kernel has beside other races.
fn in_kernel(k: &InKernel) -> Value {
    let thread = |t: &ThreadPlace| json!({ "block": t.block, "thread": t.thread, "scope": t.scope, "asynchronous": t.asynchronous, "ends": t.ends });
    let [previous, access] = k.threads.each_ref().map(thread);
    let shared = |s: &SharedArray| json!({ "name": s.name, "offset": s.offset, "size": s.size, "byte": s.byte });
    json!({
        "grade": k.grade,
        "code": k.code,
        "access": access,
        "previous": previous,
        "shared": k.shared.as_ref().map(shared),
        "variable": k.variable.as_ref().map(|v| json!({ "name": v.name, "size": v.size, "byte": v.byte })),
        "address": format!("{:#x}", k.address),
        "grid": k.grid,
        "block": k.block,
        "launches": k.launches,
        "graph": stack(&k.graph),
        "two_grids": k.two_grids,
        "registers": k.registers,
    })
}

/// One broken rule: a finding with one side, and no bytes.
pub(super) fn breach(b: &Breach) -> Value {
    let mut access = side(&b.side);
    for nothing in ["kind", "bytes", "param", "inside"] {
        access[nothing] = Value::Null;
    }
    json!({
        "fingerprint": b.fingerprint,
        "cause": Value::Null,
        "hazard": b.kind,
        "kind": "forbidden",
        "rule": b.rule,
        "text": b.text,
        "host": b.side.actor == Actor::Host,
        "library_internal": false,
        "confidence": b.confidence.name(),
        "established": "call",
        "doubts": [],
        "latent": false,
        "count": b.count,
        "pid": b.pid,
        "processes": b.processes,
        "occurrences": b.occurrences,
        "ranges": b.ranges,
        "programs": b.programs,
        "bytes": Value::Null,
        "access": access,
        "previous": Value::Null,
        "allocation": Value::Null,
        "previous_allocation": Value::Null,
        "standing": standing(b.standing),
        "synchronisation": Value::Null,
        "around": Value::Null,
    })
}

fn standing(standing: GateStatus) -> &'static str {
    match standing {
        GateStatus::New => "new",
        GateStatus::Known => "known",
        GateStatus::Suppressed(_) => "suppressed",
    }
}

fn doubt(d: &Doubt) -> Value {
    json!({
        "side": d.side,
        "known": d.known,
        "reason": d.reason,
        "at": d.at,
        "file": d.line.as_ref().map(|l| &l.file),
        "line": d.line.as_ref().map(|l| l.line),
        "source": d.line.as_ref().and_then(|l| l.source.as_ref()),
        "settle": d.settle,
    })
}

fn side(s: &Side) -> Value {
    json!({
        "operation": s.actor.name(),
        "kind": match s.verb {
            Verb::Reads => "read",
            Verb::UpdatesAtomically => "atomic",
            Verb::ReadsAtomically => "atomic_read",
            Verb::WritesAtomically => "atomic_write",
            _ => "write",
        },
        "reads_and_writes": s.does_both,
        "guessed": s.guessed,
        "call": s.call,
        "seen_by": s.seen_by,
        "kernel": s.kernel,
        "operator": s.operator,
        "stream": {
            "id": s.stream.id,
            "kind": s.stream.kind,
            "name": s.stream.long,
            "stack": stack(&s.stream.stack),
        },
        "thread": s.thread.as_ref().map(|(tid, name)| json!({ "tid": tid, "name": name })),
        "node": s.node,
        "param": s.param,
        "through": s.through,
        "bytes": { "from": s.from, "to": s.to, "extent": s.precision, "gaps": s.gaps },
        "stack": stack(&s.stack),
        "launched": stack(&s.launched),
        "started": stack(&s.started),
        "regions": s.regions,
        "encoded": s.encoded,
        "pid": s.process,
        "inside": s.inside.as_ref().map(|i| json!({ "file": i.file, "line": i.line, "source": i.source })),
    })
}

fn memory(m: &AllocationInfo) -> Value {
    json!({
        "kind": m.kind,
        "name": m.name,
        "address": format!("{:#x}", m.address),
        "size": m.size,
        "levels": m.levels,
        "call": m.call,
        "stack": stack(&m.stack),
        "freed": stack(&m.freed),
    })
}

/// A stack.
pub fn stack(frames: &[Frame]) -> Value {
    frames
        .iter()
        .map(|f| {
            json!({
                "kind": match f.kind {
                    FrameKind::Native => "native",
                    FrameKind::Python => "python",
                    FrameKind::Folded => "folded",
                },
                "function": f.function,
                "file": f.file,
                "line": f.line,
                "module": f.module,
                "address": format!("{:#x}", f.address),
                "inlined": f.inlined,
                "library": library(f),
                "source": f.source,
            })
        })
        .collect()
}
