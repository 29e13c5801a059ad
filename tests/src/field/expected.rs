//! What a bug's run must report: pairs of operations, each by what it is and by a function on its
//! stack, and nothing else.

use serde::Deserialize;
use serde_json::Value;

/// A race that must be reported. Every finding must be one of the listed, and each of these must be
/// there.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Race {
    hazard: String,
    /// The earlier operation.
    previous: Operation,
    /// The later one, at which the race is found.
    access: Operation,
    /// The kind of the memory.
    memory: String,
    #[serde(default = "certain")]
    confidence: String,
}

fn certain() -> String {
    "certain".to_owned()
}

/// One side of a race.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Operation {
    /// A part of the kernel's name, or the call.
    what: String,
    /// A part of the name of a function on its stack.
    within: String,
}

impl Operation {
    fn is(&self, side: &Value) -> bool {
        let text = |key: &str| side[key].as_str().unwrap_or_default();
        let what = if text("kernel").is_empty() {
            text("call") == self.what || text("operation") == self.what
        } else {
            text("kernel").contains(&self.what)
        };
        let frames = side["stack"].as_array().map(Vec::as_slice).unwrap_or_default();
        let within = |frame: &Value| frame["function"].as_str().is_some_and(|name| name.contains(&self.within));
        what && frames.iter().any(within)
    }
}

impl Race {
    fn is(&self, finding: &Value) -> bool {
        finding["hazard"] == self.hazard
            && finding["confidence"] == self.confidence
            && finding["allocation"]["kind"] == self.memory
            && self.previous.is(&finding["previous"])
            && self.access.is(&finding["access"])
    }
}

/// Holds a report against the races that must be in it. With none it must be of a run that was
/// checked, and empty.
pub fn judge(races: &[Race], report: &Value) -> Result<(), String> {
    let coverage = &report["coverage"];
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    if count(&coverage["launches"]["total"]) + count(&coverage["memory_ops"]) < 2 {
        return Err("fewer than two operations were checked".to_owned());
    }
    if coverage["not_modelled"].as_object().is_none_or(|names| !names.is_empty()) {
        return Err(format!("calls are not modelled: {}", coverage["not_modelled"]));
    }
    if count(&coverage["launches"]["unknown"]) > 0 {
        return Err("kernels are unknown".to_owned());
    }
    let findings = report["findings"].as_array().ok_or("no findings")?;
    if let Some(finding) = findings.iter().find(|finding| !races.iter().any(|race| race.is(finding))) {
        return Err(format!("not expected: {}", described(finding)));
    }
    match races.iter().find(|race| !findings.iter().any(|finding| race.is(finding))) {
        Some(race) => Err(format!("missed: {race:?}")),
        None => Ok(()),
    }
}

/// A finding in one line.
fn described(finding: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let side = |side: &Value| format!("{} {}", text(&side["call"]), text(&side["kernel"]));
    format!(
        "{} {}: {} / {} on {}",
        text(&finding["confidence"]),
        text(&finding["hazard"]),
        side(&finding["previous"]),
        side(&finding["access"]),
        text(&finding["allocation"]["kind"]),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn race() -> Race {
        toml::from_str(
            "hazard = 'read-after-write'\nmemory = 'device memory'\n\
             previous = { what = 'cudaMemcpyAsync', within = 'load' }\n\
             access = { what = 'sum', within = 'step' }",
        )
        .expect("a race")
    }

    fn report(kernel: &str, function: &str) -> Value {
        let coverage = json!({ "launches": { "total": 1, "unknown": 0 }, "memory_ops": 1, "not_modelled": {} });
        let previous = json!({ "call": "cudaMemcpyAsync", "kernel": null, "stack": [{ "function": "load()" }] });
        let access = json!({ "call": "cuLaunchKernel", "kernel": kernel, "stack": [{ "function": function }] });
        let finding = json!({ "hazard": "read-after-write", "confidence": "certain", "previous": previous,
                              "access": access, "allocation": { "kind": "device memory" } });
        json!({ "coverage": coverage, "findings": [finding] })
    }

    #[test]
    fn the_expected_pair_and_no_other() {
        assert_eq!(judge(&[race()], &report("sum<float>", "step(int)")), Ok(()));
        assert!(judge(&[race()], &report("other", "step(int)")).unwrap_err().contains("not expected"));
        assert!(judge(&[race()], &report("sum<float>", "elsewhere")).unwrap_err().contains("not expected"));
        assert!(judge(&[], &report("sum<float>", "step(int)")).unwrap_err().contains("not expected"));
    }

    #[test]
    fn silence_is_a_run_that_was_checked() {
        let mut report = report("sum<float>", "step(int)");
        report["findings"] = json!([]);
        assert_eq!(judge(&[], &report), Ok(()));
        assert!(judge(&[race()], &report).unwrap_err().contains("missed"));
        report["coverage"]["not_modelled"] = json!({ "cuFoo": 1 });
        assert!(judge(&[], &report).unwrap_err().contains("not modelled"));
        report["coverage"] = json!({ "launches": { "total": 0 }, "memory_ops": 0, "not_modelled": {} });
        assert!(judge(&[], &report).unwrap_err().contains("fewer than two"));
    }
}
