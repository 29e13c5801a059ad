//! The project of `examples/`, wired into everything that its files name, racy and not. Runs on the
//! simulated GPU.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tests::run::{Ended, PATIENCE, command, end_within};
use tests::{build, product};

use super::{release, steps, text, tools};

/// A copy of the examples, with CUDA's compiler in `PATH`; none without it.
struct Project {
    bin: PathBuf,
    folder: PathBuf,
    variables: Vec<(String, String)>,
}

impl Project {
    fn new(name: &str) -> Option<Self> {
        let bin = tools()?;
        let toolkit = build::toolkit().ok()?;
        let folder = build::scratch(name);
        copy(&product::root().join("examples"), &folder);
        let path = std::env::var("PATH").unwrap_or_default();
        let (cuda, ours) = (toolkit.display(), product::bin().display());
        let variables = [
            ("PATH", format!("{ours}:{cuda}/bin:{}:{path}", bin.display())),
            ("STREAMSAN_BIN", ours.to_string()),
            ("CUDA_PATH", cuda.to_string()),
            // Packages of PyPI have the runtime where nvcc does not look for it.
            ("NVCC_APPEND_FLAGS", format!("-L{cuda}/lib")),
            ("LIBRARY_PATH", format!("{cuda}/lib")),
            ("PYTHONPATH", product::root().join("python").display().to_string()),
        ];
        Some(Self { bin, folder, variables: variables.map(|(name, value)| (name.to_owned(), value)).into() })
    }

    fn run(&self, tool: &str, words: &[&str]) -> Ended {
        let mut run = command(if self.bin.join(tool).exists() { self.bin.join(tool) } else { tool.into() });
        run.envs(self.variables.iter().cloned()).env_remove("LD_LIBRARY_PATH").args(words).current_dir(&self.folder);
        end_within(&mut run, 4 * PATIENCE)
    }

    /// The program with its race: what a change of the source would do.
    fn make_racy(&self) {
        let file = self.folder.join("pipeline.cu");
        let source = fs::read_to_string(&file).expect("the source");
        fs::write(&file, format!("#define RACY\n{source}")).expect("written");
    }
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("a copy");
        }
    }
}

#[test]
fn the_workflow_of_github() {
    let Some(project) = Project::new("example_workflow") else { return };
    let archive = release(&project.folder);
    let variables: Vec<(&str, &str)> = project.variables.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    let action = product::root().join("action.yml");
    let inputs = json!({ "archive": archive.to_str() }).to_string();
    // The example, and the job that `streamsan init` writes.
    let build = "nvcc -O2 -g -lineinfo -arch=sm_80 pipeline.cu -o pipeline";
    let init = project.run("streamsan", &["init", "--build", build, "--command", "./pipeline"]);
    assert_eq!(init.code(), Some(0), "{}", init.err);
    for code in [0, 66] {
        for file in ["races.yml", "streamsan.yml"] {
            let file = format!(".github/workflows/{file}");
            let words = ["workflow", &file, action.to_str().expect("text"), &inputs];
            let told = steps(&project.bin, &project.folder, &words, &variables);
            assert_eq!(told["code"], code, "{file}: {told:#}");
            let used = told["uses"].as_array().expect("a list").iter().map(|used| text(&used["uses"]));
            let used: Vec<&str> = used.collect();
            assert!(used[0].starts_with("actions/checkout@") && used[1].contains("upload-sarif@"), "{used:?}");
        }
        project.make_racy();
    }
}

#[test]
fn cmake_and_ctest() {
    let Some(project) = Project::new("example_cmake") else { return };
    let package = format!("-DStreamSan_DIR={}", product::root().join("cmake").display());
    for (racy, code) in [("-DRACY=OFF", 0), ("-DRACY=ON", 8)] {
        let made = project.run("cmake", &["-S", ".", "-B", "build", "-G", "Ninja", &package, racy]);
        assert_eq!(made.code(), Some(0), "{}{}", made.out, made.err);
        let built = project.run("cmake", &["--build", "build"]);
        assert_eq!(built.code(), Some(0), "{}{}", built.out, built.err);
        let ended = project.run("ctest", &["--test-dir", "build", "-LE", "gpu"]);
        assert_eq!(ended.code(), Some(code), "{}{}", ended.out, ended.err);
        assert!(ended.out.contains("out of 1"), "{}", ended.out);
    }
    let ended = project.run("ctest", &["--test-dir", "build", "-T", "memcheck"]);
    assert!(ended.out.contains("Race reported - 2"), "{}{}", ended.out, ended.err);
}

#[test]
fn pytest_and_meson() {
    let Some(project) = Project::new("example_pytest") else { return };
    for code in [0, 1] {
        let library =
            ["-O2", "-g", "-arch=sm_80", "-shared", "-Xcompiler", "-fPIC", "pipeline.cu", "-o", "libpipeline.so"];
        let built = project.run("nvcc", &library);
        assert_eq!(built.code(), Some(0), "{}", built.err);
        let words = ["-m", "pytest", "-q", "-p", "streamsan", "--streamsan-sim"];
        let ended = project.run("python", &words);
        assert_eq!(ended.code(), Some(code), "{}{}", ended.out, ended.err);
        assert_eq!(ended.out.contains("FAILED test_pipeline.py::test_pipeline"), code == 1, "{}", ended.out);
        project.make_racy();
    }
    let made = project.run("meson", &["setup", "build-meson"]);
    assert_eq!(made.code(), Some(0), "{}{}", made.out, made.err);
    assert_eq!(project.run("meson", &["compile", "-C", "build-meson"]).code(), Some(0));
    let words = ["test", "-C", "build-meson", "--wrapper", "streamsan run --sim --require-cuda --"];
    let ended = project.run("meson", &words);
    assert_eq!(ended.code(), Some(1), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("exit status 66"), "{}", ended.out);
}

#[test]
fn the_first_steps_of_the_guide() {
    let Some(project) = Project::new("example_guide") else { return };
    let guide = fs::read_to_string(product::root().join("docs/guide/getting-started.md")).expect("the guide");
    let (_, first) = guide.split_once("```cuda\n").expect("a program");
    let (source, rest) = first.split_once("\n```\n").expect("its end");
    fs::write(project.folder.join("race.cu"), source).expect("written");
    // The lines for a machine without a CUDA installation, one after the other.
    let (_, lines) = rest.split_once("    CU=$(scripts/toolkit)\n").expect("the lines");
    let lines: Vec<&str> = lines.lines().map_while(|line| line.strip_prefix("    ")).collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let toolkit = build::toolkit().expect("there");
    let script = format!("CU={}\n{}\n{}", toolkit.display(), lines[0], lines[1].replace("target/release/", ""));
    let mut run = command("bash");
    run.env("PATH", &project.variables[0].1).env_remove("LD_LIBRARY_PATH").args(["-ec", &script]);
    let ended = end_within(run.current_dir(&project.folder), 2 * PATIENCE);
    assert_eq!(ended.code(), Some(66), "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("DATA RACE: read-after-write (certain)"), "{}", ended.err);
}
