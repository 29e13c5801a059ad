//! What a run with `--exact-compare` says of its predictions.
//!
//! Owns the rule: no byte may be touched that was ruled out, none left alone that was claimed. The
//! rest is precision.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// What is wrong about a prediction, by its verdicts.
const WRONG: [&str; 2] = ["unsound", "overclaimed"];

/// The launches of one kernel, by verdict.
#[derive(Clone, Debug, Default)]
pub struct JudgedKernel {
    /// Its mangled name.
    pub name: String,
    /// Launches.
    pub counts: BTreeMap<String, u64>,
    /// Launches that were not predicted to the byte, by verdict, by whether data decide about an
    /// access, and by what the accesses lost.
    pub reasons: BTreeMap<(String, bool, String), u64>,
    /// What is wrong, as text: the launch, what was predicted, what was touched.
    pub wrong: Vec<String>,
}

/// Reads the file that `--exact-compare` wrote.
///
/// # Errors
/// The file can not be read.
pub fn read(file: &Path) -> Result<Vec<JudgedKernel>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let all: Value = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
    let kernels = all["kernels"].as_array().ok_or_else(|| format!("{}: no kernels", file.display()))?;
    let judged = |kernel: &Value| {
        let counts = kernel["counts"].as_object().into_iter().flatten();
        let reasons = kernel["reasons"].as_array().into_iter().flatten();
        let text = |of: &Value| of.as_str().unwrap_or_default().to_owned();
        let wrong = kernel["examples"].as_array().into_iter().flatten();
        let wrong = wrong.filter(|example| WRONG.iter().any(|verdict| example["verdict"] == *verdict));
        JudgedKernel {
            name: kernel["kernel"].as_str().unwrap_or_default().to_owned(),
            counts: counts.map(|(verdict, n)| (verdict.clone(), n.as_u64().unwrap_or(0))).collect(),
            reasons: reasons
                .map(|why| {
                    let data = why["data"].as_bool().unwrap_or(false);
                    ((text(&why["verdict"]), data, text(&why["words"])), why["launches"].as_u64().unwrap_or(0))
                })
                .collect(),
            wrong: wrong.map(|example| format!("{example:#}")).collect(),
        }
    };
    Ok(kernels.iter().map(judged).collect())
}

/// Whether nothing was predicted wrongly; answers how many launches were compared.
///
/// # Errors
/// The kernels with wrong predictions, each with examples; or the file can not be read.
pub fn judge(file: &Path) -> Result<u64, String> {
    let kernels = read(file)?;
    let is_wrong = |kernel: &&JudgedKernel| WRONG.iter().any(|verdict| kernel.counts.contains_key(*verdict));
    let wrong: Vec<String> = kernels
        .iter()
        .filter(is_wrong)
        .map(|kernel| format!("{} {:?}\n{}", kernel.name, kernel.counts, kernel.wrong.join("\n")))
        .collect();
    if wrong.is_empty() {
        Ok(kernels.iter().flat_map(|kernel| kernel.counts.values()).sum())
    } else {
        Err(format!("predicted wrongly:\n{}", wrong.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_predictions_are_errors_and_loose_ones_are_not() {
        let folder = crate::build::scratch("oracle-file");
        let write = |verdict: &str| {
            let file = folder.join(verdict);
            let example = serde_json::json!({ "verdict": verdict, "grid": [7, 1, 1] });
            let kernel =
                serde_json::json!({ "kernel": "k", "counts": { verdict: 2, "tight": 1 }, "examples": [example] });
            std::fs::write(&file, serde_json::json!({ "kernels": [kernel] }).to_string()).expect("a file");
            judge(&file)
        };
        assert_eq!((write("loose"), write("open")), (Ok(3), Ok(3)));
        for verdict in WRONG {
            let error = write(verdict).expect_err("wrong");
            assert!(error.contains("k {") && error.contains("\"grid\""), "{error}");
        }
        assert!(judge(&folder.join("nothing")).is_err());
    }
}
