//! Suites of whole programs: ScoR's microbenchmarks and HeCBench.

use std::path::{Path, PathBuf};

use ::tests::build;
use anyhow::{Context, Result};

use super::sources::Source;
use super::table::Row;
use super::trial::{self, Code, Made};

/// The commit of ScoR.
pub const SCOR: Source = Source {
    repository: "csl-iisc/ScoR",
    commit: "6dc3507ecc419aac6ea3a49ec746b610d5029219",
    paths: &["microbenchmarks/src"],
};

/// HeCBench: the commit with the bugs that were open, and what a pair's names end in: the commit of
/// the fix, and the one before it.
pub const HECBENCH: [(&str, Source); 3] = [
    (
        "",
        of_hecbench(
            "49175104c89af65ae66e8eeec3be815f8458833b",
            &[
                "src/surfel-cuda",
                "src/morphology-cuda",
                "src/floydwarshall2-cuda",
                "src/cc-cuda",
                "src/mis-cuda",
                "src/sssp-cuda",
                "src/sosfil-cuda",
                "src/marchingCubes-cuda",
                "src/rsmt-cuda",
            ],
        ),
    ),
    ("before-5e7005d5a", of_hecbench("63753bfd48cab35e77859d9261e1465e94cd6d28", &["src/aidw-cuda"])),
    ("5e7005d5a", of_hecbench("5e7005d5a22d6ba7698c704b4b52a8902009063c", &["src/aidw-cuda"])),
];

const fn of_hecbench(commit: &'static str, paths: &'static [&'static str]) -> Source {
    Source { repository: "ORNL/HeCBench", commit, paths }
}

/// A microbenchmark of ScoR. `plain/NAME` is the same without the word `volatile` at its data:
/// the suite takes such data for plain.
pub fn scor(unpacked: &Path, row: &Row, code: Code) -> Result<Made> {
    let (name, plain) = row.name.strip_prefix("plain/").map_or((row.name.as_str(), false), |name| (name, true));
    let mut file = unpacked.join("microbenchmarks/src").join(format!("{name}.cu"));
    if plain {
        let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        file = build::generated("plain.cu", &text.replace("volatile unsigned int *data", "unsigned int *data"));
    }
    let file = trial::compile("scor", code, &["-O2", "-lineinfo", "-include", "cstdlib"], &[&file])?;
    Ok(Made { file, arguments: row.arguments.clone() })
}

/// A program of HeCBench: `NAME`, or `NAME@COMMIT` of a pair. An argument `{graph:N}` is a
/// file with a random graph of N vertices, `{roads:N}` the same as text with costs, `{nets:N}` one
/// with N nets of pins. `-D...` is the compiler's, for sizes that the source has fixed, and so is
/// `-G`, where the optimiser hides the race.
pub fn hecbench(unpacked: impl Fn(&Source) -> Result<PathBuf>, row: &Row, code: Code) -> Result<Made> {
    let (name, at) = row.name.split_once('@').unwrap_or((&row.name, ""));
    let source = HECBENCH.iter().find(|(commit, _)| *commit == at).with_context(|| format!("no commit {at}"))?;
    let root = unpacked(&source.1)?;
    let folder = root.join(format!("src/{name}-cuda"));
    let mut sources = Vec::new();
    for file in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let file = file?.path();
        if file.extension().is_some_and(|extension| extension == "cu" || extension == "cpp") {
            sources.push(file);
        }
    }
    sources.sort();
    let include = |folder: &Path| format!("-I{}", folder.display());
    let (own, graphs) = (include(&folder), include(&root.join("src/mis-cuda")));
    let is_compilers = |word: &&String| word.starts_with("-D") || *word == "-G";
    let (defines, words): (Vec<&String>, Vec<&String>) = row.arguments.iter().partition(is_compilers);
    let mut options = vec!["-O2", "-lineinfo", "-std=c++17", &own, &graphs];
    options.extend(defines.into_iter().map(String::as_str));
    let program = trial::compile(name, code, &options, &sources.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    let beside = program.parent().context("a program lies in a folder")?;
    let mut arguments = Vec::new();
    for argument in words {
        let inner =
            argument.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).and_then(|inner| inner.split_once(':'));
        let Some((kind, count)) = inner else {
            arguments.push(argument.clone());
            continue;
        };
        let file = beside.join(format!("{kind}.{count}"));
        let count = count.parse()?;
        let content = match kind {
            "roads" => Graph::random(count).as_text().into_bytes(),
            "nets" => nets(count).into_bytes(),
            _ => Graph::random(count).as_words(),
        };
        std::fs::write(&file, content)?;
        arguments.push(file.display().to_string());
    }
    Ok(Made { file: program, arguments })
}

/// Numbers that look random, below a limit; the same in each run.
fn numbers() -> impl FnMut(u32) -> u32 {
    let mut state = 1u64;
    move |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(below.max(1))) as u32
    }
}

/// Nets in the format of the routing contest of ISPD 2008: a grid of two layers, then for each net
/// its name, number, pins and width, and the place of each pin.
fn nets(count: u32) -> String {
    let mut text = String::from("grid 100 100 2\n");
    for head in ["vertical capacity", "horizontal capacity", "minimum width", "minimum spacing", "via spacing"] {
        text.push_str(&format!("{head} 1 1\n"));
    }
    text.push_str(&format!("0 0 10 10\n\nnum net {count}\n"));
    let mut number = numbers();
    for net in 0..count {
        // From two pins to 31.
        let pins = 2 + net % 30;
        text.push_str(&format!("n{net} {net} {pins} 1\n"));
        for _ in 0..pins {
            text.push_str(&format!("{} {} 1\n", number(1000), number(1000)));
        }
    }
    text.push_str("0\n");
    text
}

/// A graph without loops, the same for each number of vertices, each edge in both directions.
struct Graph {
    neighbours: Vec<Vec<u32>>,
}

impl Graph {
    fn random(vertices: u32) -> Self {
        let mut neighbours = vec![Vec::new(); vertices as usize];
        let mut number = numbers();
        for from in 0..vertices {
            for _ in 0..3 {
                let to = number(vertices);
                if to != from && !neighbours[from as usize].contains(&to) {
                    neighbours[from as usize].push(to);
                    neighbours[to as usize].push(from);
                }
            }
        }
        neighbours.iter_mut().for_each(|list| list.sort_unstable());
        Self { neighbours }
    }

    fn edges(&self) -> u32 {
        self.neighbours.iter().map(Vec::len).sum::<usize>() as u32
    }

    fn cost(from: usize, to: u32) -> u32 {
        1 + (from as u32 * 7 + to) % 13
    }

    /// The binary form of the ECL programs: counts, starts of lists, lists, costs.
    fn as_words(&self) -> Vec<u8> {
        let mut words = vec![self.neighbours.len() as u32, self.edges()];
        let mut start = 0;
        words.push(start);
        for list in &self.neighbours {
            start += list.len() as u32;
            words.push(start);
        }
        words.extend(self.neighbours.iter().flatten());
        for (from, list) in self.neighbours.iter().enumerate() {
            words.extend(list.iter().map(|to| Self::cost(from, *to)));
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    /// Text: counts and the source, a start and a length for each vertex, an end and a cost for
    /// each edge.
    fn as_text(&self) -> String {
        let mut text = format!("{} {} 0\n", self.neighbours.len(), self.edges());
        let mut start = 0;
        for list in &self.neighbours {
            text.push_str(&format!("{start} {}\n", list.len()));
            start += list.len();
        }
        for (from, list) in self.neighbours.iter().enumerate() {
            list.iter().for_each(|to| text.push_str(&format!("{to} {}\n", Self::cost(from, *to))));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_has_each_edge_in_both_directions_and_no_loop() {
        let graph = Graph::random(96);
        for (from, list) in graph.neighbours.iter().enumerate() {
            assert!(!list.contains(&(from as u32)));
            assert!(list.iter().all(|to| graph.neighbours[*to as usize].contains(&(from as u32))), "{from}");
        }
        assert_eq!(graph.as_words().len(), 4 * (2 + 97 + 2 * graph.edges() as usize));
        assert_eq!(graph.as_text().lines().count(), 1 + 96 + graph.edges() as usize);
        assert_eq!(graph.neighbours, Graph::random(96).neighbours);
    }

    #[test]
    fn nets_have_as_many_pins_as_they_say() {
        let text = nets(40);
        let mut lines = text.lines().skip_while(|line| !line.starts_with("num net")).skip(1);
        for net in 0..40 {
            let head: Vec<&str> = lines.next().expect("a net").split(' ').collect();
            assert_eq!(head[0], format!("n{net}"));
            let pins: usize = head[2].parse().expect("a number");
            assert!((0..pins).all(|_| lines.next().is_some_and(|pin| pin.split(' ').count() == 3)));
        }
        assert_eq!(lines.collect::<Vec<_>>(), ["0"]);
    }
}
