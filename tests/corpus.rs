//! Every program of `tests/corpus/cuda` on the simulated GPU: does `streamsan --sim` say what the
//! program's header says?
//!
//! A harness of its own, so that each program is a test: `cargo test -p tests --test corpus
//! stencil`. What is known not to work yet stands in `known_failures.txt`, and a program there that
//! gets the right verdict fails. It must also show what it shows on a real GPU (`on_gpu.txt`): the
//! same pairs, or the same output; exceptions stand, with the reason, in `differs_from_gpu.txt`.
//!
//! Needs CUDA's compiler (`scripts/toolkit`). `STREAMSAN_NO_TOOLKIT=1` says that there is none, and
//! skips all.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use tests::verdict::{self, OnGpu, Verdict};
use tests::{build, fake, product, run};

/// What a program's header promises.
struct Case {
    name: String,
    file: PathBuf,
    verdict: Verdict,
    driver_api: bool,
    /// Being right takes seeing accesses of the CPU.
    sees_host: bool,
}

impl Case {
    fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).expect("the corpus can be read");
        let field = |name: &str| verdict::needed_field(file, &text, name);
        Self {
            name: file.file_stem().expect("a name").to_string_lossy().into_owned(),
            file: file.to_path_buf(),
            verdict: Verdict::read(file, &field("expect"), &field("pair")),
            driver_api: field("needs").contains("driver-api"),
            sees_host: field("needs").split_whitespace().any(|word| word == "host"),
        }
    }

    /// Compiles and runs the program. The error says what is not as it should be.
    fn check(&self, options: &[&str], on_gpu: &OnGpu) -> Result<(), String> {
        let link = [format!("-L{}", fake::folder().display()), "-lcuda".to_owned()];
        let link: Vec<&str> = link.iter().map(String::as_str).collect();
        let extra = if self.driver_api { link.as_slice() } else { &[] };
        let program = build::cuda_program(&self.file, "shared", extra)?;
        let folder = build::scratch(&format!("corpus-{}{}", self.name, options.concat()));
        let json = folder.join("report.json");
        let mut command = run::streamsan(["run", "--sim", "--error-exitcode", "0"]);
        command.args(options).arg("--json").arg(&json).arg("--").arg(&program).env_remove("LD_LIBRARY_PATH");
        let ended = run::end(&mut command);
        if ended.hung {
            return Err(format!("hangs\n{}\n{}", ended.out, ended.err));
        }
        if ended.status.code() != Some(0) {
            return Err(format!("ends with {}\n{}\n{}", ended.status, ended.out, ended.err));
        }
        let text = std::fs::read_to_string(&json).map_err(|e| format!("no JSON: {e}\n{}", ended.err))?;
        let report: Value = serde_json::from_str(&text).map_err(|e| format!("JSON: {e}"))?;
        self.verdict.judge(&report).map_err(|why| format!("{why}\n{}", ended.err))?;
        // With more options it may show more.
        if options.is_empty() { on_gpu.judge(&format!("cuda/{}", self.name), &report, &ended.out) } else { Ok(()) }
    }
}

fn main() {
    let arguments = Arguments::from_args();
    let corpus = product::root().join("tests/corpus");
    let known = verdict::known_failures(&corpus);
    let on_gpu = Arc::new(OnGpu::read(&corpus));
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
    let mut trials = Vec::new();
    for file in files {
        let case = Case::read(&file);
        let reason = known.get(&case.name).cloned();
        let name = case.name.clone();
        if case.sees_host {
            // What is known not to be seen by default is seen with this.
            let case = Case::read(&file);
            let on_gpu = on_gpu.clone();
            let test = move || case.check(&["--host-accesses"], &on_gpu).map_err(Failed::from);
            trials.push(Trial::test(format!("{name} --host-accesses"), test).with_ignored_flag(skip));
        }
        let on_gpu = on_gpu.clone();
        let test = move || match (case.check(&[], &on_gpu), reason) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(_)) => Err(Failed::from("right now: take it off known_failures.txt")),
            (Err(_), Some(_)) => Ok(()),
            (Err(why), None) => Err(Failed::from(why)),
        };
        trials.push(Trial::test(name, test).with_ignored_flag(skip));
    }
    libtest_mimic::run(&arguments, trials).exit();
}
