//! The report as JSON: a contract for scripts.
//!
//! Owns names and shape of the fields. Fields are added, never renamed or removed; [`VERSION`]
//! counts changes of meaning.
//!
//! ```text
//! version, tool
//! summary   { findings, causes, certain, likely, possible, latent, occurrences, forbidden,
//!             processes, suppressed, known }
//! findings[] { fingerprint, cause, hazard, host, confidence, established, latent, verdict,
//!              standing, count, pid, processes[], occurrences[], programs[] (of a hunt),
//!              bytes { from, to },
//!              doubts[] { side, known, reason, at, file, line, source, settle[] },
//!              access, previous    { operation, kind, call, kernel, stream {...}, thread, node,
//!                                    param, bytes, stack[], inside },
//!              allocation          { kind, name, address, size, levels[], call, stack[],
//!                                    freed[] } or null,
//!              previous_allocation (the same),
//!              synchronisation     { facts[], missing, mend[] { api, lines[] }, cuda[], torch[] },
//!              in_kernel { grade, code, access { block, thread, scope, asynchronous },
//!                          previous (the same), shared { name, offset, size, byte } or null,
//!                          variable { name, size, byte } or null, address, grid, block,
//!                          launches, graph[], two_grids, registers } or null,
//!              stale { place, now (as allocation), instantiated[] } or null,
//!              around { lanes[] { id, kind, name },
//!                       steps[] { lane, operation, label, at, source, role, after[], skipped } } }
//!           of a broken rule (--forbid), kind "forbidden": hazard names the rule, rule is as it
//!           was given, text says what happens; cause, bytes, previous, allocation,
//!           previous_allocation, synchronisation and around are null
//! causes[]  { fingerprint, kind, missing, after { at, streams[], stack[] }, before (the same),
//!             mend[] { api, lines[] }, tried, findings[] (fingerprints), occurrences }
//! with[]    { text, place, records, waits, idle, blocked }    (of check --with)
//! tried     { waits, findings, remain, fresh, blocked, smallest, skipped } or null
//! set_aside[] as findings[]: what suppressions and the baseline cover
//! judgement { fail_on, filters[] { filter, left_out },
//!             suppressions[] { text, place, findings, occurrences }, baseline_absent }
//! coverage  { ops, launches { total, ranges, kinds_only, unknown, indirect, reasons },
//!             kernels[] { name, kernel, launches, exact, ranges, kinds_only, unknown, indirect,
//!                         several, gaps[] { reason, at, launches },
//!                         indirect_gap { reason, at } or null },
//!             inexact[] { reason, launches, kernels[] }   (unknown extents, most launches first),
//!             memory_ops, host_touches, graph_launches,
//!             not_modelled {name: count}, unobserved {name: count},
//!             fidelity { line, code { ptx, machine_code, unread }, simulated_as[],
//!                        stand_ins {library: calls}, refused[],
//!                        not_understood { launches, calls } },
//!             ... }
//! hints[]   { kind, text, count, pid, stack[], other[] }    (empty without --hints)
//! processes[] { pid, parent, exe, args[], driver, trace (of several files: which),
//!               program (of a hunt: which) }
//! programs[] { name, kind, command[], folder, outcome, why, launches, findings, seconds, output,
//!              second_run (null: none was wanted) { made, confirmed, withdrawn, new, not_settled,
//!              why (some are not settled), launches, measured, seconds, output } }
//!            (of a hunt)
//! ```
//!
//! `summary.findings` counts what fails the run; `findings[]` may also hold latent ones, and with
//! `--pedantic` all. A finding's `processes` are indices into `processes[]`; `occurrences` counts
//! by process.

pub(crate) mod fidelity;
mod finding;

use finding::breach;
pub(crate) use finding::finding;
pub use finding::stack;

use crate::cause::{CausePoint, GivenWait, RootCause, SetCheck};
use crate::format::unproven::lost_exactness;
use crate::format::{Event, Reporter, Verdict, feed};
use crate::model::{AppliedSuppression, Fault, FaultSite, Finding, GateStatus, Hint, MendingLines, Report, Running};
use crate::program::{Program, SecondRun};
use detect::coverage::KernelCoverage;
use kernels::Gap;
use serde_json::{Value, json};
use symbols::demangle;

/// Version of the contract.
pub(crate) const VERSION: u32 = crate::gate::baseline::VERSION;

/// The whole report.
pub fn report(report: &Report) -> Value {
    String::from_utf8(feed(report, &mut Json::default()))
        .ok()
        .and_then(|t| serde_json::from_str(&t).ok())
        .unwrap_or_default()
}

/// The report as JSON.
#[derive(Default)]
pub struct Json {
    findings: Vec<Value>,
    set_aside: Vec<Value>,
    whole: Value,
}

impl Reporter for Json {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Begin(_) => {}
            Event::Finding(f, verdict) => {
                let mut value = finding(f);
                value["verdict"] = verdict.name().into();
                if verdict == Verdict::SetAside { &mut self.set_aside } else { &mut self.findings }.push(value);
            }
            Event::Breach(b, verdict) => {
                let mut value = breach(b);
                value["verdict"] = verdict.name().into();
                if verdict == Verdict::SetAside { &mut self.set_aside } else { &mut self.findings }.push(value);
            }
            Event::End(report) => {
                let (shown, aside) = (std::mem::take(&mut self.findings), std::mem::take(&mut self.set_aside));
                self.whole = whole(report, shown, aside);
            }
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(&self.whole).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

fn whole(report: &Report, shown: Vec<Value>, aside: Vec<Value>) -> Value {
    let [certain, likely, possible, latent] = report.counts();
    let c = &report.coverage;
    let processes: Vec<Value> = report
        .processes
        .iter()
        .map(|p| json!({ "pid": p.pid, "parent": p.parent, "exe": p.exe, "args": p.args, "driver": p.driver, "trace": p.trace, "program": p.program }))
        .collect();
    let known = report.set_aside().filter(|f| f.standing == GateStatus::Known).count();
    let breaches = |is: fn(GateStatus) -> bool| report.breaches.iter().filter(|b| is(b.standing)).count();
    json!({
        "version": VERSION,
        "tool": { "name": "streamsan", "version": env!("CARGO_PKG_VERSION") },
        "summary": {
            "findings": certain + likely + possible,
            "causes": report.causes_of(report.failures()).len(),
            "certain": certain,
            "likely": likely,
            "possible": possible,
            "latent": latent,
            "occurrences": report.occurrences(),
            "forbidden": report.failing_breaches().count(),
            "processes": report.processes.len(),
            "withdrawn": report.withdrawn().count(),
            "suppressed": report.set_aside().count() - known + breaches(|s| matches!(s, GateStatus::Suppressed(_))),
            "known": known + breaches(|s| s == GateStatus::Known),
        },
        "causes": report.causes.iter().map(|c| cause(report, c)).collect::<Vec<_>>(),
        "tried": report.mended.as_ref().map(trial),
        "with": report.with.iter().map(given).collect::<Vec<_>>(),
        "findings": shown,
        "set_aside": aside,
        "withdrawn": report.withdrawn().map(finding).collect::<Vec<_>>(),
        "judgement": judgement(report),
        "coverage": {
            "ops": c.ops,
            "launches": {
                "total": c.launches,
                "ranges": c.launches_exact,
                "kinds_only": c.launches_kinds_only,
                "unknown": c.launches_unknown,
                "indirect": c.launches_indirect,
                "measured": c.launches_measured,
                "in_part": c.launches_in_part,
                "learned": c.launches_learned,
                "unmeasured": c.launches_unmeasured,
                "reasons": c.reasons,
            },
            "kernels": c.kernels.iter().map(|(name, kernel)| coverage_of(name, kernel)).collect::<Vec<_>>(),
            "inexact": lost_exactness(c).iter().map(|(reason, launches, kernels)| {
                json!({ "reason": reason, "launches": launches, "kernels": kernels })
            }).collect::<Vec<_>>(),
            "inside": { "launches": c.launches_inside, "left": c.inside_left },
            "memory_ops": c.memory_ops,
            "host_touches": c.host_touches,
            "graph_launches": c.graph_launches,
            "not_modelled": c.not_modelled,
            "unobserved": c.unobserved,
            "lost": c.lost,
            "unknown_memory": c.unknown_memory,
            "host_unwatched": {
                "managed": c.unwatched_managed,
                "pinned": c.unwatched_pinned,
                "system_launches": c.launches_system,
                "option": c.watching_option(),
            },
            "forgotten": c.forgotten,
            "paused": c.paused,
            "findings_dropped": c.findings_dropped,
            "damaged_records": c.damaged,
            "unchecked": c.unchecked,
            "disabled": c.disabled,
            "mispredicted": c.mispredicted,
            "escaped": c.escaped,
            "assumed": c.assumed,
            "unjudged": c.unjudged,
            "rules_unmet": c.rules_unmet.keys().collect::<Vec<_>>(),
            "names_unmet": report.unmet_names,
            "unread": c.unread,
            "partial": c.partial,
            "gaps": c.gaps,
            "not_simulated": c.not_simulated,
            "fidelity": fidelity::value(c),
        },
        "hints": report.hints.iter().map(hint).collect::<Vec<_>>(),
        "faults": report.faults.iter().map(fault).collect::<Vec<_>>(),
        "processes": processes,
        "programs": report.programs.iter().map(program).collect::<Vec<_>>(),
    })
}

fn cause(report: &Report, c: &RootCause) -> Value {
    let point = |p: &CausePoint| json!({ "at": p.at, "streams": p.streams, "stack": stack(&p.stack) });
    let mine: Vec<&Finding> = report.findings.iter().filter(|f| f.cause == c.fingerprint).collect();
    json!({
        "fingerprint": c.fingerprint,
        "kind": c.kind,
        "missing": c.missing,
        "after": point(&c.after),
        "before": point(&c.before),
        "mend": c.mend.iter().map(mend).collect::<Vec<_>>(),
        "tried": c.tried,
        "findings": mine.iter().map(|f| f.fingerprint.as_str()).collect::<Vec<_>>(),
        "occurrences": mine.iter().map(|f| f.count).sum::<u64>(),
    })
}

fn mend(m: &MendingLines) -> Value {
    json!({ "api": m.api, "lines": m.lines })
}

fn given(w: &GivenWait) -> Value {
    json!({
        "text": w.text,
        "place": w.place,
        "records": w.records,
        "waits": w.waits,
        "idle": w.idle,
        "blocked": w.blocked,
        "captured": w.captured,
    })
}

fn trial(t: &SetCheck) -> Value {
    json!({
        "waits": t.waits,
        "findings": t.findings,
        "remain": t.remain,
        "fresh": t.fresh,
        "blocked": t.blocked,
        "smallest": t.smallest,
        "skipped": t.skipped,
    })
}

fn program(p: &Program) -> Value {
    json!({
        "name": p.name,
        "kind": p.kind,
        "command": p.command,
        "folder": p.folder,
        "outcome": p.outcome().name(),
        "why": p.why,
        "launches": p.launches,
        "findings": p.findings,
        "seconds": p.took.as_secs_f64(),
        "output": p.output,
        "second_run": p.second.as_ref().map(second_run),
    })
}

fn second_run(s: &SecondRun) -> Value {
    json!({
        "made": s.made,
        "confirmed": s.confirmed,
        "withdrawn": s.withdrawn,
        "new": s.fresh,
        "not_settled": s.stay,
        "why": s.why,
        "launches": s.launches,
        "measured": s.measured,
        "seconds": s.took.as_secs_f64(),
        "output": s.output,
    })
}

fn fault(f: &Fault) -> Value {
    let site = |s: &FaultSite| json!({ "kernel": s.kernel, "count": s.count, "stack": stack(&s.stack) });
    let running = |r: &Running| {
        let oldest: Vec<Value> = r.oldest.iter().map(site).collect();
        json!({ "stream": r.stream, "launches": r.total, "places": r.places, "oldest": oldest })
    };
    json!({
        "pid": f.pid,
        "error": crate::fault::error_name(f.result),
        "code": f.result,
        "call": f.call,
        "text": f.explained().map(|(said, _)| said),
        "mend": f.explained().map_or_else(Vec::new, |(_, lines)| lines),
        "stack": stack(&f.stack),
        "culprit": f.culprit.as_ref().map(site),
        "stream": f.stream,
        "running": f.running.iter().map(running).collect::<Vec<_>>(),
        "unjoined": f.unjoined.iter().map(|of| json!({
            "stream": of.stream,
            "drawn_in": of.drawn_in,
            "last": of.last,
        })).collect::<Vec<_>>(),
    })
}

fn hint(h: &Hint) -> Value {
    json!({
        "kind": h.kind,
        "text": h.text,
        "count": h.count,
        "pid": h.pid,
        "stack": stack(&h.stack),
        "other": stack(&h.other),
    })
}

fn coverage_of(name: &str, k: &KernelCoverage) -> Value {
    let gap = |g: &Gap| json!({ "reason": g.reason.words(), "at": g.at });
    let gaps = k.gaps.iter().map(|(g, count)| json!({ "reason": g.reason.words(), "at": g.at, "launches": count }));
    json!({
        "name": name,
        "kernel": demangle(name),
        "launches": k.launches,
        "exact": k.exact,
        "ranges": k.ranges,
        "kinds_only": k.kinds_only,
        "unknown": k.unknown,
        "indirect": k.indirect,
        "several": k.several,
        "gaps": gaps.collect::<Vec<_>>(),
        "indirect_gap": k.indirect_gap.as_ref().map(gap),
    })
}

fn judgement(report: &Report) -> Value {
    let j = &report.judgement;
    let filters: Vec<Value> = j.filters.iter().map(|f| json!({ "filter": f.text, "left_out": f.left_out })).collect();
    let suppression = |s: &AppliedSuppression| json!({ "text": s.text, "place": s.place, "findings": s.findings, "occurrences": s.hits });
    let suppressions: Vec<Value> = j.suppressions.iter().map(suppression).collect();
    json!({ "fail_on": report.fail_on.name(), "filters": filters, "suppressions": suppressions, "baseline_absent": j.absent })
}
