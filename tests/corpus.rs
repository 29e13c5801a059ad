//! Every program of `tests/corpus/cuda` on the simulated GPU: does `streamsan --sim` say what the program's header says?
//!
//! A harness of its own, so that each program is a test: `cargo test -p tests --test corpus stencil`. What is known not to work
//! yet stands in `known_failures.txt`, and a program there that gets the right verdict fails.
//!
//! Needs CUDA's compiler (`scripts/toolkit`). `STREAMSAN_NO_TOOLKIT=1` says that there is none, and skips all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use tests::{build, fake, product, run};

/// What a program's header promises.
struct Case {
    name: String,
    file: PathBuf,
    /// The kind of hazard; `None`: clean.
    hazard: Option<&'static str>,
    host: bool,
    /// Both sides, as the header words them.
    pair: (String, String),
    driver_api: bool,
}

impl Case {
    fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).expect("the corpus can be read");
        let field = |name: &str| {
            let start = format!("// {name}: ");
            let line = text.lines().find_map(|line| line.strip_prefix(&start));
            line.unwrap_or_else(|| panic!("{}: no '{name}'", file.display())).to_owned()
        };
        let expect = field("expect");
        let words: Vec<&str> = expect.split_whitespace().collect();
        let hazard = match (words[0], words.last().copied()) {
            ("clean", _) => None,
            ("race", Some("RAW")) => Some("read-after-write"),
            ("race", Some("WAW")) => Some("write-after-write"),
            ("race", Some("WAR")) => Some("write-after-read"),
            _ => panic!("{}: cannot read 'expect: {expect}'", file.display()),
        };
        let pair = field("pair");
        let (first, second) = pair.split_once(" / ").unwrap_or((&pair, ""));
        Self {
            name: file.file_stem().expect("a name").to_string_lossy().into_owned(),
            file: file.to_path_buf(),
            hazard,
            host: words.contains(&"host"),
            pair: (first.to_owned(), second.to_owned()),
            driver_api: field("needs").contains("driver-api"),
        }
    }

    /// Compiles and runs the program. The error says what is not as it should be.
    fn check(&self) -> Result<(), String> {
        let link = [format!("-L{}", fake::folder().display()), "-lcuda".to_owned()];
        let link: Vec<&str> = link.iter().map(String::as_str).collect();
        let extra = if self.driver_api { link.as_slice() } else { &[] };
        let program = build::cuda_program(&self.file, "shared", extra)?;
        let folder = build::scratch(&format!("corpus-{}", self.name));
        let json = folder.join("report.json");
        let mut command = run::streamsan(["run", "--sim", "--error-exitcode", "0", "--json"]);
        command.arg(&json).arg("--").arg(&program).env_remove("LD_LIBRARY_PATH");
        let ended = run::end(&mut command);
        if ended.hung {
            return Err(format!("hangs\n{}\n{}", ended.out, ended.err));
        }
        if ended.status.code() != Some(0) {
            return Err(format!("ends with {}\n{}\n{}", ended.status, ended.out, ended.err));
        }
        let text = std::fs::read_to_string(&json).map_err(|e| format!("no JSON: {e}\n{}", ended.err))?;
        let report: Value = serde_json::from_str(&text).map_err(|e| format!("JSON: {e}"))?;
        self.judge(&report).map_err(|why| format!("{why}\n{}", ended.err))
    }

    fn judge(&self, report: &Value) -> Result<(), String> {
        let found = report["summary"]["findings"].as_u64().ok_or("no summary.findings")?;
        if report["coverage"]["ops"].as_u64().unwrap_or(0) == 0 {
            return Err("no CUDA was seen".to_owned());
        }
        let Some(hazard) = self.hazard else {
            return if found == 0 { Ok(()) } else { Err(format!("false alarm: {found} findings in a clean program")) };
        };
        if found == 0 {
            return Err(format!("missed: {hazard}"));
        }
        let findings = report["findings"].as_array().ok_or("no findings")?;
        let right = findings.iter().any(|finding| {
            finding["hazard"] == hazard
                && finding["host"] == self.host
                && is_side(&finding["previous"], &self.pair.0)
                && is_side(&finding["access"], &self.pair.1)
        });
        if right { Ok(()) } else { Err(format!("another pair than {} / {} ({hazard})", self.pair.0, self.pair.1)) }
    }
}

/// Whether a side of a finding is what the header's words name.
fn is_side(side: &Value, words: &str) -> bool {
    let operation = side["operation"].as_str().unwrap_or_default();
    let word = words.split_whitespace().next().unwrap_or_default();
    match word {
        "kernel" => {
            let name = words.split_whitespace().skip(1).find(|word| *word != "node").unwrap_or_default();
            side["kernel"].as_str().is_some_and(|kernel| kernel.contains(name))
        }
        "host" => operation == "host",
        "memcpy" => operation == "copy",
        _ if word.starts_with("cudaMemcpy") => operation == "copy",
        _ if word.starts_with("cudaMemset") => operation == "set",
        _ if word.starts_with("cudaMalloc") => operation == "alloc",
        _ if word.starts_with("cudaFree") => operation == "free",
        _ => true,
    }
}

fn known_failures(corpus: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(corpus.join("known_failures.txt")).expect("known_failures.txt");
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, reason) = line.split_once(':').unwrap_or_else(|| panic!("'{line}' has no reason"));
            (name.trim().to_owned(), reason.trim().to_owned())
        })
        .collect()
}

fn main() {
    let arguments = Arguments::from_args();
    let corpus = product::root().join("tests/corpus");
    let known = known_failures(&corpus);
    let mut files: Vec<PathBuf> = std::fs::read_dir(corpus.join("cuda"))
        .expect("tests/corpus/cuda")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "cu"))
        .collect();
    files.sort();
    let names: Vec<String> = files.iter().map(|f| Case::read(f).name).collect();
    for name in known.keys() {
        assert!(names.contains(name), "known_failures.txt names '{name}', which is not in the corpus");
    }
    let skip = std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1");
    let trials = files.into_iter().map(|file| {
        let case = Case::read(&file);
        let reason = known.get(&case.name).cloned();
        Trial::test(case.name.clone(), move || match (case.check(), reason) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(_)) => Err(Failed::from("right now: take it off known_failures.txt")),
            (Err(_), Some(_)) => Ok(()),
            (Err(why), None) => Err(Failed::from(why)),
        })
        .with_ignored_flag(skip)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
