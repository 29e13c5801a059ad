//! From what broke a rule to report data: ids become names, lines and a sentence.
//!
//! Owns the sentences.

use super::watch::{RawBreach, innermost_module};
use detect::confidence::Confidence;
use detect::memory::{Precision, SeenRegions};
use report::elaborate::{Elaborator, called};
use report::fingerprint::of_call;
use report::model::RuleKind;
use report::model::{Breach, GateStatus, Side};
use report::words::Verb;
use symbols::torch::Operator;

/// What a raw breach of a rule stands for.
pub(crate) fn breach(raw: &RawBreach, regions: &SeenRegions, elaborator: &mut Elaborator<'_>) -> Breach {
    let rule = raw.forbidden;
    let side = side(raw, elaborator);
    let stream = &side.stream.long;
    let what = match &side.kernel {
        Some(kernel) => format!("kernel {}", symbols::stack_text::shortened(kernel, 120)),
        None => side.call.clone(),
    };
    let confidence = match raw.waiting {
        Some(waiting) if rule.kind == RuleKind::Sync && !waiting.is_sure() => Confidence::Likely,
        _ => Confidence::Certain,
    };
    let text = match rule.kind {
        RuleKind::DefaultStream => {
            let module = innermost_module(&side.stack).filter(|_| rule.only.is_some());
            let by = module.map_or_else(String::new, |module| format!(", submitted by {module}"));
            format!("{what} is on {stream}{by}")
        }
        RuleKind::Sync => {
            let (does, why) = raw.waiting.map_or(("makes the host wait", ""), |w| (w.words(), w.reason()));
            match &rule.only {
                Some(_) => format!("{what} {does}, in {}{why}", side.regions.join(" > ")),
                None => format!("{what} {does}, again after its first time{why}"),
            }
        }
        RuleKind::UnnamedStream => format!("{what} is on {stream}, which the program has not named"),
    };
    let mut letters = text.chars();
    let text = letters.next().map_or_else(String::new, |first| match what.starts_with("kernel ") {
        true => first.to_uppercase().chain(letters).collect(),
        false => std::iter::once(first).chain(letters).collect(),
    });
    let made = if rule.kind == RuleKind::UnnamedStream { &side.stream.stack[..] } else { &[] };
    Breach {
        kind: rule.kind,
        rule: rule.text.clone(),
        text,
        confidence,
        identity: of_call(rule.kind.name(), &side, made),
        fingerprint: String::new(),
        standing: GateStatus::New,
        count: raw.count,
        pid: elaborator.names.process.pid,
        origin: elaborator.names.process.name(),
        processes: Vec::new(),
        occurrences: Vec::new(),
        ranges: elaborator.ranges(regions.as_slice()),
        programs: Vec::new(),
        side,
    }
}

fn side(raw: &RawBreach, elaborator: &mut Elaborator<'_>) -> Side {
    let stack = elaborator.stacks.resolve(raw.origin.stack);
    let operator = Operator::of(&stack).filter(|_| elaborator.names.has_torch_blocks());
    let kernel = elaborator.kernel_name(raw.kernel);
    Side {
        actor: raw.actor,
        verb: Verb::Calls,
        does_both: false,
        arguments: Vec::new(),
        to_output: false,
        guessed: false,
        call: called(&stack, elaborator.names.call(raw.origin.call)),
        seen_by: String::new(),
        kernel: Some(kernel).filter(|name| !name.is_empty()),
        symbol: String::new(),
        operator: operator.map(|operator| elaborator.schemas.of(&operator)),
        stream: elaborator.stream(raw.stream),
        thread: elaborator.names.thread(raw.origin.thread).map(|(tid, name)| (tid, name.to_string())),
        node: None,
        param: None,
        through: String::new(),
        from: 0,
        to: 0,
        precision: Precision::Unknown,
        gaps: String::new(),
        stack,
        launched: Vec::new(),
        started: Vec::new(),
        regions: elaborator.regions.names(raw.region),
        process: None,
        encoded: Vec::new(),
        inside: None,
    }
}
