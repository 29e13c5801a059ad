//! The report as SARIF 2.1.0, which code scanning services and editors read.
//!
//! Owns the mapping: hazards, and what `--forbid` forbids, are rules, findings are results, the two
//! stacks and the allocation's are `stacks`, and suppressions and the baseline use SARIF's own
//! fields.

use super::workspace::Workspace;
use crate::breach::RuleKind;
use crate::call_site::site_frame;
use crate::cause::RootCause;
use crate::escape::percent_encoded;
use crate::format::finding_pages::{Documentation, page};
use crate::format::json::fidelity;
use crate::format::{Event, Reporter, Verdict, closing, text};
use crate::model::{Breach, Finding, GateStatus, Inside, Report, Side};
use crate::words::FindingKind;
use detect::race::Hazard;
use serde_json::{Map, Value, json};
use symbols::frame::{Frame, FrameKind};

/// A rule as SARIF describes it.
struct Rule {
    /// What findings name it by.
    id: &'static str,
    name: &'static str,
    short: &'static str,
    full: &'static str,
    help: &'static str,
    tags: &'static [&'static str],
    precision: &'static str,
}

const RACE_TAGS: &[&str] = &["concurrency", "cuda", "data-race"];
const CONVENTION_TAGS: &[&str] = &["cuda", "convention"];
const WAIT: &str =
    "Order the two operations: record an event after the first one and let the other stream wait for it.";

/// All rules: races between streams, what `--forbid` forbids, races inside kernels, and graphs
/// whose memory has ended.
const RULES: [Rule; 9] = [
    Rule {
        id: Hazard::ReadAfterWrite.name(),
        name: "StreamRaceReadAfterWrite",
        short: "Data race between CUDA streams: read-after-write",
        full: "An operation reads memory that an earlier, unfinished operation of another stream may still be writing.",
        help: WAIT,
        tags: RACE_TAGS,
        precision: "high",
    },
    Rule {
        id: Hazard::WriteAfterWrite.name(),
        name: "StreamRaceWriteAfterWrite",
        short: "Data race between CUDA streams: write-after-write",
        full: "An operation writes memory that an earlier, unfinished operation of another stream may still be writing.",
        help: WAIT,
        tags: RACE_TAGS,
        precision: "high",
    },
    Rule {
        id: Hazard::WriteAfterRead.name(),
        name: "StreamRaceWriteAfterRead",
        short: "Data race between CUDA streams: write-after-read",
        full: "An operation overwrites memory that an earlier, unfinished operation of another stream may still be reading.",
        help: WAIT,
        tags: RACE_TAGS,
        precision: "high",
    },
    Rule {
        id: RuleKind::DefaultStream.name(),
        name: "ForbiddenDefaultStream",
        short: "Forbidden by a rule of the project: default-stream",
        full: "An operation is on the legacy default stream, which --forbid default-stream forbids.",
        help: "Pass the stream that the work belongs to.",
        tags: CONVENTION_TAGS,
        precision: "very-high",
    },
    Rule {
        id: RuleKind::Sync.name(),
        name: "ForbiddenSync",
        short: "Forbidden by a rule of the project: sync",
        full: "A call makes the host wait, or may make it wait, where --forbid sync forbids it.",
        help: "Let a stream wait for an event instead, keep allocations for later steps, and copy from pinned memory.",
        tags: CONVENTION_TAGS,
        precision: "very-high",
    },
    Rule {
        id: RuleKind::UnnamedStream.name(),
        name: "ForbiddenUnnamedStream",
        short: "Forbidden by a rule of the project: unnamed-stream",
        full: "Work is on a stream that the program has made and not named, which --forbid unnamed-stream forbids.",
        help: "Name the stream where it is made, with nvtxNameCudaStreamA or nvtxNameCuStreamA.",
        tags: CONVENTION_TAGS,
        precision: "very-high",
    },
    Rule {
        id: FindingKind::RaceInsideKernel.name(),
        name: "RaceInsideKernel",
        short: "Data race between threads of one kernel",
        full: "Two threads of one kernel access the same bytes, one of them writes, and nothing orders the two.",
        help: "Order the two threads: with a barrier of the warp, the block or the grid, or with a release and an acquire.",
        tags: RACE_TAGS,
        precision: "very-high",
    },
    Rule {
        id: FindingKind::StaleGraphMemory.name(),
        name: "StaleGraphMemory",
        short: "Graph that uses freed memory",
        full: "A launched graph reads or writes memory that was freed after the graph was made.",
        help: "Keep the memory as long as the graph is launched, or give the node other memory before the launch.",
        tags: &["cuda", "use-after-free"],
        precision: "high",
    },
    Rule {
        id: FindingKind::UninitializedRead.name(),
        name: "UninitializedRead",
        short: "Kernel that reads memory which nothing wrote",
        full: "A thread of a kernel reads bytes of device or shared memory that nothing has written since they were allocated.",
        help: "Write the bytes before the kernel reads them, or do not read them.",
        tags: &["cuda", "uninitialized"],
        precision: "high",
    },
];

/// The place of a rule in the list, for results.
fn index_of(id: &str) -> usize {
    RULES.iter().position(|rule| rule.id == id).unwrap_or_default()
}

impl Rule {
    fn described(&self, documentation: Option<Documentation>) -> Value {
        let mut rule = json!({
            "id": self.id,
            "name": self.name,
            "shortDescription": { "text": self.short },
            "fullDescription": { "text": self.full },
            "help": { "text": self.help, "markdown": help_page(self.id) },
            "defaultConfiguration": { "level": "error" },
            "properties": { "tags": self.tags, "precision": self.precision },
        });
        if let Some(documentation) = documentation {
            rule["helpUri"] = documentation.page(self.id).into();
        }
        rule
    }
}

/// Frames of a stack that are written.
const MAX_FRAMES: usize = 100;

/// Writes SARIF.
pub struct Sarif {
    workspace: Workspace,
    results: Vec<Value>,
    causes: Vec<RootCause>,
    log: Value,
}

impl Sarif {
    /// A log with paths relative to this workspace.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace, results: Vec::new(), causes: Vec::new(), log: Value::Null }
    }

    fn result(&self, f: &Finding, verdict: Verdict) -> Value {
        let memory = f.allocation.as_ref().map_or(&[][..], |m| &m.stack);
        let place = [&f.access.stack[..], &f.previous.stack, memory].into_iter().find_map(at);
        let locations: Vec<Value> = place.map(|frame| self.location(frame)).into_iter().collect();
        let mut related = Vec::new();
        // A read of unwritten memory has no other side.
        let previous = if f.kind == FindingKind::UninitializedRead { &[][..] } else { &f.previous.stack };
        for (stack, what) in [(previous, "previous access"), (memory, "allocation")] {
            if let Some(frame) = at(stack) {
                related.push(self.related(frame, related.len() + 1, what));
            }
        }
        if f.in_kernel.is_some()
            && let Some(frame) = at(&f.access.launched)
        {
            related.push(self.related(frame, related.len() + 1, "the kernel was launched here"));
        }
        if let Some(stale) = &f.stale {
            let now = stale.now.as_ref().map_or(&[][..], |now| &now.stack);
            for (stack, what) in [
                (&f.access.launched[..], "the graph was launched here"),
                (&stale.instantiated, "the graph was instantiated here"),
                (now, "what is at the address now was allocated here"),
            ] {
                if let Some(frame) = at(stack) {
                    related.push(self.related(frame, related.len() + 1, what));
                }
            }
        }
        for (side, what) in [(&f.access, "the access"), (&f.previous, "the previous access")] {
            if let Some(inside) = &side.inside {
                related.push(self.inside(side, inside, related.len() + 1, what));
            }
        }
        // The two places that the missing wait joins, which may be those of other findings.
        let cause = self.causes.iter().find(|cause| cause.fingerprint == f.cause);
        let ends = cause.map(|c| [(&c.after, "cause: this has to come first"), (&c.before, "cause: this has to wait")]);
        for (point, what) in ends.into_iter().flatten() {
            if let Some(frame) = at(&point.stack) {
                related.push(self.related(frame, related.len() + 1, what));
            }
        }
        let mut stacks = vec![
            self.stack(&f.access.stack, &said(&f.access)),
            self.stack(&f.previous.stack, &format!("before: {}", said(&f.previous))),
        ];
        if let Some(memory) = &f.allocation {
            stacks.push(
                self.stack(&memory.stack, &format!("{} bytes of {}, from {}", memory.size, memory.what(), memory.call)),
            );
        }
        stacks.retain(|stack| stack["frames"].as_array().is_some_and(|frames| !frames.is_empty()));
        let s = &f.synchronisation;
        let mut advice = s.facts.clone();
        advice.push(s.missing.clone());
        for mend in s.mend.iter().filter(|mend| !mend.lines.is_empty()) {
            let how = if mend.api.is_cuda() { String::new() } else { format!(" (in {})", mend.api) };
            let does = if f.stale.is_some() { "mend it" } else { "order them" };
            advice.push(format!("This would {does}{how}: {}", mend.lines.join(" ")));
        }
        advice.extend(f.doubts.iter().map(|doubt| format!("Not certain: {}.", doubt.sentence())));
        let mut result = json!({
            "ruleId": f.rule(),
            "ruleIndex": index_of(f.rule()),
            "kind": "fail",
            "level": if verdict == Verdict::Passes { "warning" } else { "error" },
            "message": { "text": format!("{}. {}", text::headline(f), advice.join(" ")) },
            "locations": locations,
            "relatedLocations": related,
            "stacks": stacks,
            "partialFingerprints": { "streamsan/v1": f.fingerprint },
            "occurrenceCount": f.count,
            "rank": match f.confidence.name() { "certain" => 100.0, "likely" => 70.0, _ => 20.0 },
            "properties": {
                "confidence": f.confidence.name(),
                "doubts": f.doubts.iter().map(crate::doubt::Doubt::sentence).collect::<Vec<_>>(),
                "latent": f.latent,
                "host": f.host,
                "pid": f.pid,
                "access": f.access.stream.long,
                "previous": f.previous.stream.long,
                "cause": f.cause,
                "causeKind": cause.map(|c| c.kind),
                "causeText": cause.map(|c| c.missing.as_str()),
            },
        });
        stand(&mut result, f.standing);
        result
    }

    fn breach(&self, b: &Breach, verdict: Verdict) -> Value {
        let locations: Vec<Value> = at(&b.side.stack).map(|frame| self.location(frame)).into_iter().collect();
        let mut related = Vec::new();
        let made = &b.side.stream.stack[..];
        if let Some(frame) = at(made).filter(|_| b.kind == RuleKind::UnnamedStream) {
            related.push(self.related(frame, 1, "the stream was made here"));
        }
        let mut stacks = vec![self.stack(&b.side.stack, &b.text)];
        stacks.retain(|stack| stack["frames"].as_array().is_some_and(|frames| !frames.is_empty()));
        let mut result = json!({
            "ruleId": b.kind,
            "ruleIndex": index_of(b.kind.name()),
            "kind": "fail",
            "level": if verdict == Verdict::Passes { "warning" } else { "error" },
            "message": { "text": format!("{}. Forbidden by --forbid {}.", b.text, b.rule) },
            "locations": locations,
            "relatedLocations": related,
            "stacks": stacks,
            "partialFingerprints": { "streamsan/v1": b.fingerprint },
            "occurrenceCount": b.count,
            "rank": if b.confidence.name() == "certain" { 100.0 } else { 70.0 },
            "properties": {
                "confidence": b.confidence.name(),
                "rule": b.rule,
                "pid": b.pid,
                "access": b.side.stream.long,
                "ranges": b.side.regions,
            },
        });
        stand(&mut result, b.standing);
        result
    }

    fn location(&self, frame: &Frame) -> Value {
        let mut location = Map::new();
        let mut physical = Map::new();
        if let Some(file) = frame.file.as_ref().filter(|file| !file.starts_with('<')).or(frame.module.as_ref()) {
            physical.insert("artifactLocation".into(), self.artifact(file));
            if let Some(line) = frame.line.filter(|line| *line > 0 && frame.file.is_some()) {
                let mut region = json!({ "startLine": line });
                if let Some(source) = &frame.source {
                    region["snippet"] = json!({ "text": source });
                }
                physical.insert("region".into(), region);
            }
        }
        if !physical.is_empty() {
            location.insert("physicalLocation".into(), physical.into());
        }
        if !frame.function.is_empty() {
            let logical = json!([{ "fullyQualifiedName": frame.function, "kind": "function" }]);
            location.insert("logicalLocations".into(), logical);
        }
        location.into()
    }

    /// Another place of a result, and what it is.
    fn related(&self, frame: &Frame, id: usize, what: &str) -> Value {
        let mut location = self.location(frame);
        location["id"] = id.into();
        location["message"] = json!({ "text": what });
        location
    }

    /// The line inside a kernel that touches the bytes first.
    fn inside(&self, side: &Side, inside: &Inside, id: usize, what: &str) -> Value {
        let mut region = json!({ "startLine": inside.line });
        if let Some(source) = &inside.source {
            region["snippet"] = json!({ "text": source });
        }
        let mut location = json!({
            "id": id,
            "message": { "text": format!("{what}, in the kernel: first at this line") },
            "physicalLocation": { "artifactLocation": self.artifact(&inside.file), "region": region },
        });
        if let Some(kernel) = &side.kernel {
            location["logicalLocations"] = json!([{ "fullyQualifiedName": kernel, "kind": "function" }]);
        }
        location
    }

    fn artifact(&self, file: &str) -> Value {
        match self.workspace.relative(file) {
            Some(inside) => json!({ "uri": percent_encoded(&inside), "uriBaseId": "SRCROOT" }),
            None => json!({ "uri": format!("file://{}", percent_encoded(file)) }),
        }
    }

    fn stack(&self, frames: &[Frame], message: &str) -> Value {
        let frame = |f: &Frame| {
            let mut frame = json!({ "location": self.location(f) });
            if let Some(module) = &f.module {
                frame["module"] = module.as_str().into();
            }
            frame
        };
        let shown = frames.iter().filter(|f| f.kind != FrameKind::Folded).take(MAX_FRAMES);
        json!({ "message": { "text": message }, "frames": shown.map(frame).collect::<Vec<_>>() })
    }

    fn whole(&mut self, report: &Report) -> Value {
        let nothing = report.cuda_required && !report.coverage.any_work();
        let mut notes: Vec<Value> = Vec::new();
        for line in closing::coverage(report).lines() {
            let level = if line.contains(": ERROR:") { "error" } else { "note" };
            notes.push(json!({ "level": level, "message": { "text": line.trim_start_matches("streamsan: ") } }));
        }
        let mut run = json!({
            "tool": { "driver": driver(Documentation::of_build()) },
            "columnKind": "unicodeCodePoints",
            "invocations": [{
                "executionSuccessful": !nothing && closing::incomplete(&report.coverage).is_empty() && report.programs.iter().all(|p| p.error().is_none()),
                "toolExecutionNotifications": notes,
            }],
            "results": std::mem::take(&mut self.results),
            "properties": { "fidelity": fidelity::value(&report.coverage) },
        });
        if report.judgement.absent.is_some() {
            let results = run["results"].as_array_mut();
            for result in results.into_iter().flatten().filter(|r| r["baselineState"].is_null()) {
                result["baselineState"] = "new".into();
            }
        }
        if let Some(root) = self.workspace.folder() {
            let root = format!("file://{}/", percent_encoded(root.to_string_lossy().trim_end_matches('/')));
            run["originalUriBaseIds"] = json!({ "SRCROOT": { "uri": root } });
        }
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [run],
        })
    }
}

impl Reporter for Sarif {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Begin(report) => self.causes.clone_from(&report.causes),
            Event::Finding(f, verdict) => self.results.push(self.result(f, verdict)),
            Event::Breach(b, verdict) => self.results.push(self.breach(b, verdict)),
            Event::End(report) => self.log = self.whole(report),
        }
    }

    fn finish(&mut self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(&self.log).unwrap_or_default();
        bytes.push(b'\n');
        bytes
    }
}

/// What the gate makes of a result.
fn stand(result: &mut Value, standing: GateStatus) {
    match standing {
        GateStatus::Suppressed(_) => result["suppressions"] = json!([{ "kind": "external", "status": "accepted" }]),
        GateStatus::Known => result["baselineState"] = "unchanged".into(),
        GateStatus::New => {}
    }
}

/// The line to show; without lines, the file that holds the machine code.
fn at(stack: &[Frame]) -> Option<&Frame> {
    site_frame(stack).or_else(|| stack.iter().find(|f| f.module.is_some()))
}

fn said(s: &Side) -> String {
    let what = s.kernel.as_deref().map_or_else(|| s.call.clone(), |kernel| format!("kernel {kernel}"));
    format!("{what} {} on {}", s.verb, s.stream.long)
}

/// The page of a rule without its links to other pages, which lead nowhere from a report.
fn help_page(rule: &str) -> &'static str {
    page(rule).unwrap_or_default().split("\n## See also").next().unwrap_or_default().trim_end()
}

/// The tool with its rules.
fn driver(documentation: Option<Documentation>) -> Value {
    let mut driver = json!({
        "name": "StreamSan",
        "version": env!("CARGO_PKG_VERSION"),
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "rules": RULES.iter().map(|rule| rule.described(documentation)).collect::<Vec<_>>(),
    });
    if let Some(documentation) = documentation {
        driver["informationUri"] = documentation.home().into();
    }
    driver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hazard_and_each_rule_of_the_user_has_its_own() {
        let hazards = [Hazard::ReadAfterWrite, Hazard::WriteAfterWrite, Hazard::WriteAfterRead];
        let races = hazards.map(|hazard| (hazard.name(), "Data race between CUDA streams", hazard.name()));
        let kinds = [RuleKind::DefaultStream, RuleKind::Sync, RuleKind::UnnamedStream];
        let forbidden = kinds.map(|kind| (kind.name(), "Forbidden by a rule of the project", kind.word()));
        for (at, (id, what, which)) in races.into_iter().chain(forbidden).enumerate() {
            assert_eq!((RULES[at].id, index_of(id)), (id, at));
            assert_eq!(RULES[at].short, format!("{what}: {which}"));
        }
        let inside = [FindingKind::RaceInsideKernel, FindingKind::StaleGraphMemory, FindingKind::UninitializedRead]
            .map(|kind| index_of(kind.name()));
        assert_eq!(inside, [6, 7, 8]);
    }

    #[test]
    fn each_rule_has_a_page() {
        for rule in RULES.iter().map(|rule| rule.id) {
            let page = help_page(rule);
            assert!(page.starts_with(&format!("# {rule}\n")) && page.contains("## Mend it"), "{rule}: {page}");
            assert!(!page.contains("../") && !page.contains("## See also"), "{rule}: {page}");
        }
    }

    #[test]
    fn tool_and_rules_name_their_address_if_there_is_one() {
        let told = driver(Some(Documentation::Repository("acme/tools")));
        assert_eq!(told["informationUri"], "https://github.com/acme/tools");
        let rules = told["rules"].as_array().expect("rules");
        let has_page = |rule: &&Value| {
            let page = format!("/docs/findings/{}.md", rule["id"].as_str().unwrap_or_default());
            rule["helpUri"].as_str().is_some_and(|uri| uri.starts_with("https://github.com/") && uri.ends_with(&page))
        };
        assert_eq!(rules.iter().filter(has_page).count(), RULES.len(), "{told:#}");
        let untold = driver(None).to_string();
        assert!(!untold.contains("informationUri") && !untold.contains("helpUri"), "{untold}");
    }
}
