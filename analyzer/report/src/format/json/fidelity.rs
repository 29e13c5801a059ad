//! How near a run was to the program as a device would run it: which code was read and ran, what
//! ran on the simulator's stand-ins, what was refused and what was not understood.
//!
//! Owns the counts that every machine format has, and their line. The lines of the text report are
//! [`crate::format::closing`]'s.

use detect::coverage::{Coverage, stand_in_of};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Calls of libraries that stand-ins of the simulator answered, by library.
pub(crate) fn stand_ins(c: &Coverage) -> BTreeMap<&'static str, u64> {
    let mut calls = BTreeMap::new();
    for (name, kernel) in &c.kernels {
        if let Some(library) = stand_in_of(name) {
            *calls.entry(library).or_default() += kernel.launches;
        }
    }
    calls
}

/// All of it as a line of fixed form, which says "none" where there is nothing.
pub(crate) fn line(c: &Coverage) -> String {
    let counts = [(c.code.ptx, "PTX"), (c.code.machine, "machine code"), (c.code.unread, "unread")];
    let code = joined(counts.iter().filter(|(n, _)| *n > 0).map(|(n, form)| format!("{n} {form}")));
    let simulated = match c.simulated_as.names().next() {
        None => String::new(),
        Some(_) => format!("; simulated as {}", joined(c.simulated_as.names().map(str::to_owned))),
    };
    let stand_ins = joined(stand_ins(c).iter().map(|(library, calls)| format!("{calls} {library}")));
    let refused = c.not_simulated.len();
    let calls: u64 = c.not_modelled.values().sum();
    let unknown = [(c.launches_unknown, "launch", "launches"), (calls, "call", "calls")];
    let unknown = unknown.iter().filter(|(n, ..)| *n > 0);
    let unknown = joined(unknown.map(|(n, one, many)| crate::words::counted(*n, one, many)));
    format!(
        "code: {code}{simulated}; stand-ins: {stand_ins}; refused: {}; not understood: {unknown}",
        if refused == 0 { "none".to_owned() } else { refused.to_string() }
    )
}

/// All of it for programs, with the line.
pub(crate) fn value(c: &Coverage) -> Value {
    json!({
        "line": line(c),
        "code": { "ptx": c.code.ptx, "machine_code": c.code.machine, "unread": c.code.unread },
        "simulated_as": c.simulated_as.names().collect::<Vec<_>>(),
        "stand_ins": stand_ins(c),
        "refused": c.not_simulated,
        "not_understood": { "launches": c.launches_unknown, "calls": c.not_modelled.values().sum::<u64>() },
    })
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use detect::coverage::KernelCoverage;

    #[test]
    fn nothing_is_said_to_be_none() {
        let c = Coverage::default();
        assert_eq!(line(&c), "code: none; stand-ins: none; refused: none; not understood: none");
        assert_eq!(value(&c)["stand_ins"], json!({}));
    }

    #[test]
    fn everything_is_counted_once() {
        let mut c = Coverage::default();
        for (name, is_ptx, launches) in [
            ("_Z4fillPf", Some(true), 5),
            ("_Z5scalePf", Some(false), 3),
            ("lost", None, 1),
            ("streamsan_cublas_gemm_f32", Some(true), 2),
            ("streamsan_cublas_axpy", Some(true), 1),
            ("streamsan_cufft_pass", Some(true), 1),
        ] {
            c.count_code(name, is_ptx, launches);
            c.kernels.insert(name.to_owned(), KernelCoverage { launches, ..KernelCoverage::default() });
        }
        c.simulated_as.add("PTX");
        c.simulated_as.add("\u{1b}[31m");
        c.not_simulated.push("cuFoo was called".to_owned());
        (c.launches_unknown, c.not_modelled) = (1, [("cuBar".to_owned(), 2)].into());
        let said = "code: 5 PTX, 3 machine code, 1 unread; simulated as PTX; stand-ins: 3 cuBLAS, 1 cuFFT; refused: 1; \
                    not understood: 1 launch, 2 calls";
        assert_eq!(line(&c), said);
        let told = value(&c);
        assert_eq!(told["line"], said);
        assert_eq!(told["code"], json!({ "ptx": 5, "machine_code": 3, "unread": 1 }));
        assert_eq!(told["stand_ins"], json!({ "cuBLAS": 3, "cuFFT": 1 }));
        assert_eq!(told["refused"], json!(["cuFoo was called"]));
        assert_eq!(told["not_understood"], json!({ "launches": 1, "calls": 2 }));
        assert_eq!(told["simulated_as"], json!(["PTX"]));
        // Another process adds to it.
        let mut both = c.clone();
        both.merge(&c);
        assert_eq!(value(&both)["code"], json!({ "ptx": 10, "machine_code": 6, "unread": 2 }));
        assert_eq!(value(&both)["simulated_as"], json!(["PTX"]));
    }
}
