//! The CUDA part of Indigo, as HiRace's artifact has it: many kernels of one pattern on graphs. The
//! kernels of a folder become one program, which runs them all on a graph of a file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::tests::build;
use anyhow::{Context, Result, bail};

use super::sources::Source;
use super::table::Shown;
use super::trial::{self, Code, Made};
use crate::workspace;

/// The commit of the artifact.
pub const SOURCE: Source = Source {
    repository: "JohnJacobsonIII/HiRace-Artifact-SC24",
    commit: "44a935f90acfe43c6178b2187ea84c9ab0c01450",
    paths: &["indigo/indigo_sources", "indigo/input"],
};

/// Graphs of the artifact, and one of so many vertices with all edges: on sparse graphs some
/// members write the values that were there.
const GRAPHS: [&str; 3] = ["DAG_100n_200e", "counterDAG_200n_1000e", "power_law_200n_1000e"];
const DENSE: u32 = 70;

/// Threads of a block.
const THREADS: u32 = 64;

/// Whether a test of this name has a bug, by the words of the suite.
pub fn is_racy(name: &str) -> bool {
    ["atomicBug", "guardBug", "syncBug", "raceBug"].iter().any(|bug| name.contains(bug))
}

/// The folders of the suite and the names of their tests.
pub fn folders(unpacked: &Path) -> Result<BTreeMap<String, Vec<String>>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in std::fs::read_dir(unpacked.join("indigo/indigo_sources"))? {
        let folder = folder?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for file in std::fs::read_dir(&folder)? {
            let file = file?.path();
            if file.extension().is_some_and(|extension| extension == "cu") {
                found.entry(name.clone()).or_default().push(workspace::stem(&file));
            }
        }
    }
    found.values_mut().for_each(|names| names.sort());
    Ok(found)
}

/// What all graphs together have shown of a folder's tests.
pub fn run(unpacked: &Path, folder: &str, names: &[String], limit: Duration) -> Result<BTreeMap<String, Shown>> {
    let file = compile(unpacked, folder, names, Code::Simulated)?;
    let mut shown: BTreeMap<String, Shown> = names.iter().map(|name| (name.clone(), Shown::Silent)).collect();
    for arguments in graphs(unpacked, folder)? {
        let program = Made { file: file.clone(), arguments: arguments.into() };
        let trial = trial::try_out(&program, limit)?;
        if matches!(trial.shown, Shown::Endless) || !trial.said.contains("done") {
            bail!("{folder} on {} did not end as it should: {}", program.arguments[0], trial.said);
        }
        for (kernel, worst) in trial.kernels {
            let name = kernel.split("::").next().and_then(|space| space.strip_prefix("t_"));
            let known = name.and_then(|name| shown.get_mut(name));
            let known = known.with_context(|| format!("{folder}: what is {kernel}?"))?;
            if *known != Shown::Race {
                *known = worst;
            }
        }
    }
    Ok(shown)
}

/// Each of a folder's tests by itself, on all graphs in one process.
pub fn tests(unpacked: &Path, folder: &str, names: &[String], code: Code) -> Result<BTreeMap<String, Made>> {
    let file = compile(unpacked, folder, names, code)?;
    let graphs = graphs(unpacked, folder)?.into_iter().flatten().collect::<Vec<_>>();
    let program = |name: &String| {
        let arguments = std::iter::once(name.clone()).chain(graphs.iter().cloned()).collect();
        (name.clone(), Made { file: file.clone(), arguments })
    };
    Ok(names.iter().map(program).collect())
}

/// The graphs, each with the blocks and threads that a folder's kernels want for it.
fn graphs(unpacked: &Path, folder: &str) -> Result<Vec<[String; 3]>> {
    let mut graphs: Vec<(PathBuf, u32)> = Vec::new();
    for graph in GRAPHS {
        let file = unpacked.join("indigo/input").join(format!("{graph}.egr"));
        let vertices = std::fs::read(&file).ok().and_then(|bytes| bytes.first_chunk().copied().map(u32::from_le_bytes));
        graphs.push((file, vertices.with_context(|| format!("{graph} is no graph"))?));
    }
    graphs.push((dense(unpacked)?, DENSE));
    let words = |(file, vertices): (PathBuf, u32)| {
        [file.display().to_string(), blocks(folder, vertices).to_string(), THREADS.to_string()]
    };
    Ok(graphs.into_iter().map(words).collect())
}

/// How many blocks give each vertex its thread, warp or block.
fn blocks(folder: &str, vertices: u32) -> u32 {
    match folder.rsplit('_').next() {
        Some("block") => vertices,
        Some("warp") => (vertices * 32).div_ceil(THREADS),
        _ => vertices.div_ceil(THREADS),
    }
}

/// A graph with all edges, in the suite's form: counts, starts of lists, lists.
fn dense(unpacked: &Path) -> Result<PathBuf> {
    let file = unpacked.join(format!("dense_{DENSE}n.egr"));
    let mut words = vec![DENSE, DENSE * (DENSE - 1)];
    words.extend((0..=DENSE).map(|vertex| vertex * (DENSE - 1)));
    words.extend((0..DENSE).flat_map(|from| (0..DENSE).filter(move |to| *to != from)));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    std::fs::write(&file, bytes)?;
    Ok(file)
}

/// One program of a folder: each test in a namespace of its own. The header that they want is
/// empty: the host's part is ours.
fn compile(unpacked: &Path, folder: &str, names: &[String], code: Code) -> Result<PathBuf> {
    let mut text = String::from("#include \"indigo.cuh\"\n");
    for name in names {
        let file = unpacked.join("indigo/indigo_sources").join(folder).join(format!("{name}.cu"));
        writeln!(text, "namespace t_{name} {{\n#include \"{}\"\n}}", file.display())?;
    }
    text.push_str("static const suite::Kernel KERNELS[] = {\n");
    for name in names {
        writeln!(text, "    {{\"{name}\", (const void*)t_{name}::test_kernel, sizeof(t_{name}::data_t)}},")?;
    }
    text.push_str("};\nint main(int count, char** words) { return suite::run(KERNELS, count, words); }\n");
    let source = build::generated("indigo.cu", &text);
    let empty = build::generated("indigo_cuda.h", "");
    let harness = workspace::root().join("tests/inside_suites/indigo.cuh");
    let include = |file: &Path| format!("-I{}", file.parent().unwrap_or(Path::new(".")).display());
    let options =
        ["-O2".to_owned(), "-lineinfo".to_owned(), "-std=c++17".to_owned(), include(&harness), include(&empty)];
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    trial::compile_including("indigo", code, &options, &[&source], &[&harness])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_vertex_has_what_works_on_it() {
        assert_eq!(blocks("push_node_neighbors_block", 70), 70);
        assert_eq!(blocks("push_node_neighbors_warp", 71), 36);
        assert_eq!(blocks("push_node_neighbors", 65), 2);
    }

    #[test]
    fn bugs_of_races_are_in_names_and_other_bugs_are_none() {
        assert!(is_racy("push_node_neighbor_atomicBug_cond"));
        assert!(is_racy("path_compression_raceBug"));
        assert!(!is_racy("push_node_neighbor_boundsBug"));
        assert!(!is_racy("push_node_neighbor"));
    }
}
