//! `streamsan coverage`: which functions of the driver are modelled, and which of them a recorded
//! run called.
//!
//! Owns that listing. The table of functions is in `cuda-sys`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cuda_sys::model_coverage::Effect;
use cuda_sys::{DRIVER_FUNCTIONS, FnId};
use report::escape::harmless;
use report::words::counted;
use trace::file::FileError;
use trace::{NoteKind, Op, Record};

/// Widest name of a function in the listing.
const NAME: usize = 48;

/// The calls of one function in a run.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct CalledFunctions {
    /// Ops in the trace.
    pub(crate) ops: u64,
    /// Calls that were counted: those that are not modelled, and all with `count-calls`.
    pub(crate) calls: u64,
}

/// The calls of a trace by function: those of the driver, and others (allocators, host functions,
/// notes).
pub(crate) fn seen(path: &std::path::Path) -> Result<BTreeMap<String, CalledFunctions>, FileError> {
    let mut names: BTreeMap<(u32, u16), String> = BTreeMap::new();
    let mut seen: BTreeMap<String, CalledFunctions> = BTreeMap::new();
    ingest::recorded::each_record(path, |process, bytes| {
        let process = process & !trace::file::LATE;
        let Ok(record) = Record::decode(bytes) else { return };
        match record.op {
            Op::CallName { id, name } => {
                names.insert((process, id.0), name.lossy().into_owned());
            }
            Op::Note { kind: NoteKind::Info, text, .. }
                if [trace::SYSTEM_MEMORY, trace::SIM_MEASURES].map(str::as_bytes).contains(&text.0) => {}
            Op::Note { kind: NoteKind::NotModelled | NoteKind::Info, text, count } => {
                seen.entry(text.lossy().into_owned()).or_default().calls += count.max(1);
            }
            op if !op.is_definition() => {
                if let Some(name) = names.get(&(process, record.origin.call.0)) {
                    match seen.get_mut(name) {
                        Some(seen) => seen.ops += 1,
                        None => drop(seen.insert(name.clone(), CalledFunctions { ops: 1, calls: 0 })),
                    }
                }
            }
            _ => {}
        }
    })?;
    Ok(seen)
}

/// Rows of the table: the first symbol of each stands for all of them.
fn rows() -> impl Iterator<Item = FnId> {
    let first = |i: &usize| *i == 0 || DRIVER_FUNCTIONS[*i - 1].row != DRIVER_FUNCTIONS[*i].row;
    (0..FnId::COUNT).filter(first).map(|i| FnId(i as u16))
}

/// The listing; `seen`: what a run called.
pub(crate) fn listing(seen: Option<&BTreeMap<String, CalledFunctions>>) -> String {
    let mut out = String::new();
    let counts = |effect: fn(&Effect) -> bool| rows().filter(|id| effect(&id.effect())).count();
    let _ = writeln!(
        out,
        "Functions of the driver API (CUDA 11.8 to 13.5; versions of one meaning count once): {}\n  {:>4} modelled\n  {:>4} known \
         without effect on order or memory\n  {:>4} modelled in part\n  {:>4} not modelled",
        rows().count(),
        counts(|e| *e == Effect::Modelled),
        counts(|e| *e == Effect::None),
        counts(|e| matches!(e, Effect::Partly(_))),
        counts(|e| *e == Effect::NotModelled),
    );
    match seen {
        None => {
            list(&mut out, "Modelled in part", rows().filter(|id| matches!(id.effect(), Effect::Partly(_))));
            list(&mut out, "Not modelled", rows().filter(|id| id.effect() == Effect::NotModelled));
        }
        Some(seen) => run(&mut out, seen),
    }
    out
}

fn list(out: &mut String, title: &str, functions: impl Iterator<Item = FnId>) {
    let _ = writeln!(out, "\n{title}:");
    for id in functions {
        match id.effect() {
            Effect::Partly(missing) => {
                let _ = writeln!(out, "  {:NAME$}  {missing}", id.info().row);
            }
            _ => {
                let _ = writeln!(out, "  {}", id.info().row);
            }
        }
    }
}

fn run(out: &mut String, seen: &BTreeMap<String, CalledFunctions>) {
    let _ = writeln!(out, "\nSeen in this run (ops in the trace; calls where they were counted):");
    // Calls are named by symbols, and by rows where many symbols share one.
    let of = |name: &str| DRIVER_FUNCTIONS.iter().position(|f| f.name == name || f.row == name).map(|i| FnId(i as u16));
    let mut groups: BTreeMap<u8, Vec<(&String, &CalledFunctions, &'static str)>> = BTreeMap::new();
    for (name, seen) in seen {
        let (group, note) = match of(name).map(FnId::effect) {
            Some(Effect::Modelled) => (0, ""),
            Some(Effect::Partly(missing)) => (1, missing),
            Some(Effect::NotModelled) => (2, ""),
            Some(Effect::None) => (3, ""),
            None => (4, ""),
        };
        groups.entry(group).or_default().push((name, seen, note));
    }
    const TITLES: [&str; 5] = [
        "modelled",
        "modelled in part",
        "not modelled",
        "without effect",
        "other (libraries, host functions, parts of calls that are not modelled)",
    ];
    for (group, mut list) in groups {
        list.sort_by_key(|(name, seen, _)| (std::cmp::Reverse(seen.ops.max(seen.calls)), *name));
        let _ = writeln!(out, "  {} ({}):", TITLES[usize::from(group)], list.len());
        for (name, seen, note) in list {
            let mut numbers = counted(seen.ops, "op", "ops");
            if seen.calls > 0 {
                let _ = write!(numbers, ", {}", counted(seen.calls, "call", "calls"));
            }
            let note = if note.is_empty() { String::new() } else { format!("  ({note})") };
            let _ = writeln!(out, "    {:NAME$}  {numbers}{note}", harmless(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listing_adds_up_and_names_what_is_missing() {
        let all = listing(None);
        let numbers: Vec<usize> =
            all.lines().skip(1).take(4).filter_map(|l| l.split_whitespace().find_map(|w| w.parse().ok())).collect();
        let total = rows().count();
        assert_eq!(numbers.iter().sum::<usize>(), total, "{all}");
        assert!(all.lines().next().is_some_and(|l| l.ends_with(&total.to_string())));
        assert!(all.contains("\n  cuMulticastBindMem\n"), "{all}");
        assert!(all.contains("cuMemBatchDecompressAsync"), "{all}");
        assert!(!all.contains("cuLaunchKernel\n"), "{all}");
    }

    #[test]
    fn a_run_is_sorted_by_what_is_known() {
        let mut seen = BTreeMap::new();
        seen.insert("cuLaunchKernel".to_string(), CalledFunctions { ops: 7, calls: 0 });
        seen.insert("cuMulticastBindMem".to_string(), CalledFunctions { ops: 0, calls: 2 });
        seen.insert("host function".to_string(), CalledFunctions { ops: 1, calls: 1 });
        let text = listing(Some(&seen));
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what} is missing:\n{text}"));
        assert!(at("modelled (1):") < at("cuLaunchKernel") && at("cuLaunchKernel") < at("not modelled (1):"));
        assert!(at("0 ops, 2 calls") < at("other (libraries"));
        assert!(text.ends_with(" 1 op, 1 call\n"), "{text}");
    }
}
