//! Compares the tables with CUDA's headers and libraries: every name, every signature.

use crate::common::{self, Headers, Prototype, prototypes};
use cuda_sys::{DRIVER_FUNCTIONS, FnId, RUNTIME_FUNCTIONS, When, driver_api, driver_signatures, runtime_api};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The newest version the tables cover.
const COVERED: u32 = 13050;

/// A row that has a signature.
struct Row {
    name: &'static str,
    /// As written, or empty where the table implies it.
    result: &'static str,
    /// Rust's spelling, without the space that `stringify!` may put after a `*`.
    parameters: Vec<String>,
    symbols: Vec<&'static str>,
}

macro_rules! rows {
    ($($word:ident fn $name:ident $(($($arg:ident: $ty:ty),* $(,)?))? $(-> $result:ty)?
       [$($zero:ident $symbol:ident),+ $(,)?] $($effect:ident $($missing:literal)?)?;)*) => {
        vec![$(rows!(@row $name $(($($ty),*))? $(-> $result)? [$($symbol),+])),*]
    };
    (@row $name:ident [$($symbol:ident),+]) => { None };
    (@row $name:ident ($($ty:ty),*) $(-> $result:ty)? [$($symbol:ident),+]) => {
        Some(Row {
            name: stringify!($name),
            result: concat!($(stringify!($result))?),
            parameters: vec![$(stringify!($ty).replace("* ", "*")),*],
            symbols: vec![$(stringify!($symbol)),+],
        })
    };
}

fn driver_rows() -> Vec<Row> {
    let rows: Vec<Option<Row>> = driver_api!(rows);
    rows.into_iter().flatten().collect()
}

fn runtime_rows() -> Vec<Row> {
    let rows: Vec<Option<Row>> = runtime_api!(rows);
    rows.into_iter().flatten().collect()
}

fn driver_prototypes(headers: &Headers) -> Vec<Prototype> {
    let found = prototypes(&headers.preprocess("cuda.h"), "CUresult", "cu");
    assert!(found.len() >= 508, "CUDA {}: only {} functions found", headers.version, found.len());
    found
}

/// A table row for a function the table lacks, to be pasted and classified.
fn suggestion(prototype: &Prototype) -> String {
    let arguments: Vec<String> = prototype.parameters.iter().map(|ty| format!("?: {ty}")).collect();
    format!("?????? fn {}({}) [????? {}];", prototype.name, arguments.join(", "), prototype.name)
}

#[test]
fn every_driver_function_has_a_row_and_every_row_a_function() {
    let table: BTreeSet<&str> = DRIVER_FUNCTIONS.iter().map(|f| f.name).collect();
    assert_eq!(table.len(), DRIVER_FUNCTIONS.len(), "a symbol is listed twice");
    let mut known: BTreeSet<String> = BTreeSet::new();
    let all = common::headers();
    for headers in &all {
        let mut found = driver_prototypes(headers);
        if headers.include.join("cudaProfiler.h").exists() {
            found.extend(prototypes(&headers.preprocess("cudaProfiler.h"), "CUresult", "cu"));
        }
        let missing: Vec<String> = found.iter().filter(|p| !table.contains(p.name.as_str())).map(suggestion).collect();
        assert!(missing.is_empty(), "CUDA {} has more:\n{}", headers.version, missing.join("\n"));
        known.extend(found.into_iter().map(|p| p.name));
        println!("CUDA {}: all of its functions have rows", headers.version);
    }
    if all.iter().any(|headers| headers.version >= COVERED) {
        let profiler = ["cuProfilerInitialize", "cuProfilerStart", "cuProfilerStop"];
        let unknown: Vec<&str> = DRIVER_FUNCTIONS
            .iter()
            .filter(|f| !FnId(f.index).is_interop() && !profiler.contains(&f.name) && !known.contains(f.name))
            .map(|f| f.name)
            .collect();
        assert!(unknown.is_empty(), "no header has {unknown:?}");
        assert_eq!(known.iter().filter(|name| !profiler.contains(&name.as_str())).count(), 685);
    } else if !all.is_empty() {
        println!("SKIPPED: names that no header has (cargo xtask cuda-headers fetches CUDA 13.5's)");
    }
}

#[test]
fn interop_rows_are_those_of_the_gl_egl_and_vdpau_headers() {
    let table: BTreeSet<&str> =
        DRIVER_FUNCTIONS.iter().filter(|f| FnId(f.index).is_interop()).map(|f| f.name).collect();
    for headers in common::headers() {
        let mut text = String::new();
        for header in ["cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"] {
            text.push_str(&std::fs::read_to_string(headers.include.join(header)).expect("the toolkit has it"));
        }
        let words: BTreeSet<&str> =
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| w.starts_with("cu")).collect();
        let declared: BTreeSet<&str> = text
            .match_indices("CUDAAPI cu")
            .filter_map(|(at, _)| text[at + 8..].split('(').next())
            .filter(|name| !name.starts_with("cuWGL")) // Windows only.
            .collect();
        assert!(declared.len() > 20, "{declared:?}");
        let missing: Vec<_> = declared.difference(&table).collect();
        assert!(missing.is_empty(), "CUDA {}: {missing:?}", headers.version);
        for name in &table {
            // `cuGLMapBufferObject_v2_ptds` is written `__CUDA_API_PTDS(cuGLMapBufferObject_v2)`.
            let macro_form = name.strip_suffix("_ptds").map(|base| format!("__CUDA_API_PTDS({base})"));
            let macro_form =
                macro_form.or_else(|| name.strip_suffix("_ptsz").map(|base| format!("__CUDA_API_PTSZ({base})")));
            let there = macro_form.is_some_and(|form| text.contains(&form)) || words.contains(name);
            assert!(there, "CUDA {}: no {name}", headers.version);
        }
    }
}

#[test]
fn driver_signatures_are_those_of_cuda_h() {
    let rows = driver_rows();
    let by_symbol: BTreeMap<&str, &Row> =
        rows.iter().flat_map(|row| row.symbols.iter().map(move |s| (*s, row))).collect();
    for headers in common::headers() {
        let mut compared = 0;
        for prototype in driver_prototypes(&headers) {
            let Some(row) = by_symbol.get(prototype.name.as_str()) else { continue };
            // Before CUDA 12 the unversioned struct was the first version.
            let first = |ty: &str| ty.replace("CUDA_KERNEL_NODE_PARAMS_v1", "CUDA_KERNEL_NODE_PARAMS");
            let table: Vec<String> =
                row.parameters.iter().map(|ty| if headers.version < 12000 { first(ty) } else { ty.clone() }).collect();
            assert_eq!(table, prototype.parameters, "{} in CUDA {}", prototype.name, headers.version);
            compared += 1;
        }
        println!("CUDA {}: {compared} signatures agree", headers.version);
        assert!(compared > 350, "CUDA {}: only {compared} compared", headers.version);
    }
}

macro_rules! signatures {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {
        vec![$((stringify!($name), vec![$(stringify!($ty).replace("* ", "*")),*])),*]
    };
}

#[test]
fn skipped_functions_have_the_signatures_of_cuda_h() {
    let signatures: Vec<(&str, Vec<String>)> = driver_signatures!(signatures);
    let by_name: BTreeMap<&str, &Vec<String>> = signatures.iter().map(|(name, types)| (*name, types)).collect();
    assert_eq!(by_name.len(), signatures.len(), "a function is listed twice");
    let base = |name: &'static str| name.strip_suffix("_ptsz").or(name.strip_suffix("_ptds")).unwrap_or(name);
    let skipped: BTreeSet<&str> = DRIVER_FUNCTIONS
        .iter()
        .filter(|f| f.when == When::Skip && !FnId(f.index).is_interop() && !f.name.starts_with("cuProfiler"))
        .map(|f| base(f.name))
        .collect();
    assert_eq!(by_name.keys().copied().collect::<BTreeSet<_>>(), skipped);
    for headers in common::headers() {
        let mut compared = 0;
        for prototype in driver_prototypes(&headers) {
            let name = prototype.name.trim_end_matches("_ptsz").trim_end_matches("_ptds");
            let Some(types) = by_name.get(name) else { continue };
            // The only struct that was renamed: see above.
            let first = |ty: &String| ty.replace("CUDA_KERNEL_NODE_PARAMS_v1", "CUDA_KERNEL_NODE_PARAMS");
            let table: Vec<String> =
                types.iter().map(|ty| if headers.version < 12000 { first(ty) } else { ty.clone() }).collect();
            assert_eq!(table, prototype.parameters, "{name} in CUDA {}", headers.version);
            compared += 1;
        }
        println!("CUDA {}: {compared} signatures of skipped functions agree", headers.version);
        assert!(compared > 120, "CUDA {}: only {compared} compared", headers.version);
    }
}

/// Functions whose parameters differ between major versions: their rows are in the longest form.
const DIFFER: &[&str] = &[
    "cudaGetDriverEntryPoint",
    "cudaGraphExecUpdate",
    "cudaGraphInstantiate",
    "cudaMemAdvise",
    "cudaMemPrefetchAsync",
    "cudaMemcpy3DBatchAsync",
    "cudaMemcpyBatchAsync",
];

/// Functions of the compiler's own header, which is C++: written down by hand.
fn private(name: &str) -> bool {
    name.starts_with("__cuda")
}

#[test]
fn runtime_signatures_are_those_of_the_runtime_headers() {
    let rows = runtime_rows();
    let mut unseen: BTreeSet<&str> = rows.iter().map(|row| row.name).filter(|name| !private(name)).collect();
    let all: Vec<Headers> = common::headers().into_iter().filter(|h| h.version >= 12090).collect();
    for headers in &all {
        let found = prototypes(&headers.preprocess("cuda_runtime_api.h"), "cudaError_t", "cuda");
        assert!(found.len() > 280, "CUDA {}: only {} functions found", headers.version, found.len());
        let mut compared = 0;
        for prototype in &found {
            let Some(row) = rows.iter().find(|row| row.name == prototype.name) else { continue };
            unseen.remove(row.name);
            assert_eq!(row.result, "cudaError_t", "{}", row.name);
            let (ours, theirs) = (row.parameters.len(), prototype.parameters.len());
            if DIFFER.contains(&row.name) {
                assert!(ours >= theirs, "{} in CUDA {}: {ours} < {theirs}", row.name, headers.version);
            } else {
                // CUDA 12 calls the first version of a struct by its number when it declares all
                // versions.
                let theirs: Vec<String> =
                    prototype.parameters.iter().map(|ty| ty.replace("Params_v1", "Params")).collect();
                assert_eq!(row.parameters, theirs, "{} in CUDA {}", row.name, headers.version);
                compared += 1;
            }
        }
        println!("CUDA {}: {compared} signatures agree", headers.version);
        assert!(compared > 85, "CUDA {}: only {compared} compared", headers.version);
    }
    if all.len() >= 3 {
        assert!(unseen.is_empty(), "no header has {unseen:?}");
    }
}

#[test]
fn every_symbol_of_the_shared_runtime_has_a_row() {
    let table: BTreeSet<&str> = RUNTIME_FUNCTIONS.iter().map(|f| f.name).collect();
    assert_eq!(table.len(), RUNTIME_FUNCTIONS.len(), "a symbol is listed twice");
    for headers in common::headers() {
        let library = headers.include.with_file_name("lib").join("libcudart.so.13");
        if !library.exists() {
            continue; // Headers alone.
        }
        let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output().expect("nm runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let exported: BTreeSet<&str> = text
            .lines()
            .filter_map(|line| line.split_whitespace().last())
            .map(|name| name.split('@').next().unwrap_or(name))
            .filter(|name| name.starts_with("cuda") || name.starts_with("__cuda"))
            .collect();
        assert!(exported.len() > 400, "only {} symbols found", exported.len());
        let missing: Vec<_> = exported.difference(&table).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
