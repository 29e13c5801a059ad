//! The printed reports, word by word: `tests/expected/NAME.txt` holds what each program must make
//! StreamSan say.
//!
//! `cargo xtask bless` accepts what is printed now. What differs between runs and machines is
//! replaced first (`tests::compare`).

use std::path::{Path, PathBuf};

use tests::compare::{Context, compare, normalised};
use tests::{build, fake, product, run};

fn assert_report(name: &str, program: &Path, options: &[&str]) {
    let mut command = run::streamsan(["run", "--color", "never"]);
    command.args(options);
    if options.contains(&"--sim") {
        command.env_remove("LD_LIBRARY_PATH");
    }
    let ended = run::end(command.arg("--").arg(program));
    assert!(matches!(ended.code(), Some(0 | 66)), "{name}: {:?}\n{}", ended.status, ended.err);
    let toolkit = build::toolkit().map(|path| path.display().to_string()).unwrap_or_default();
    let context =
        Context { root: product::root().display().to_string(), scratch: build::cache().display().to_string(), toolkit };
    let got = normalised(&context, &ended.err);
    let expected = product::root().join("tests/expected").join(format!("{name}.txt"));
    if let Err(why) = compare(&expected, &got) {
        panic!("{why}");
    }
}

/// A program of the corpus on the simulated GPU, with the host's part compiled without
/// optimisation.
fn cuda(file: &str) {
    let file = product::root().join("tests").join(file);
    let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return;
    }
    let program = build::cuda_program(&file, "shared", &["-Xcompiler", "-O0"]).unwrap_or_else(|e| panic!("{e}"));
    assert_report(&name, &program, &["--sim"]);
}

/// The same with line tables in the kernels, racing and (with a word) mended.
fn twins(file: &str) {
    let Some((program, name)) = compiled(file) else { return };
    assert_report(&name, &program, &["--sim"]);
    silent_when_mended(&name, &program);
}

/// A program of `tests/programs/report`, and its name; nothing without CUDA's compiler.
fn compiled(file: &str) -> Option<(PathBuf, String)> {
    let file = product::root().join("tests/programs/report").join(file);
    let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
    if std::env::var_os("STREAMSAN_NO_TOOLKIT").is_some_and(|v| v == "1") {
        return None;
    }
    let options = ["-lineinfo", "-Xcompiler", "-O0"];
    let header = product::root().join("tests/programs/report/cub/launcher.cuh");
    let program = build::cuda_program_with(&file, &[&header], "shared", &options).unwrap_or_else(|e| panic!("{e}"));
    Some((program, name))
}

fn silent_when_mended(name: &str, program: &Path) {
    let mut mended = run::streamsan(["run", "--sim", "--"]);
    let ended = run::end(mended.env_remove("LD_LIBRARY_PATH").arg(program).arg("waits"));
    assert_eq!(ended.code(), Some(0), "{name}: {}", ended.err);
    assert!(ended.err.contains("SUMMARY: 0 findings"), "{name}: {}", ended.err);
}

/// A trace from a real GPU (`tests/recorded`), where there is neither a GPU nor PyTorch.
fn assert_recorded(name: &str, code: i32) {
    let trace = product::root().join("tests/recorded").join(format!("{name}.trace"));
    let ended = run::end(run::streamsan(["check", "--color", "never"]).arg(trace));
    assert_eq!(ended.code(), Some(code), "{name}: {}", ended.err);
    let expected = product::root().join("tests/expected").join(format!("{name}.txt"));
    // Whatever machine checks it: it is compared as it is.
    if let Err(why) = compare(&expected, &ended.err) {
        panic!("{why}");
    }
}

#[test]
fn a_recorded_run_of_pytorch_and_its_mended_twin() {
    assert_recorded("triton_step", 66);
    assert_recorded("triton_step_waited", 0);
}

/// The gallery of the guide has the first finding of ten reports, without the line for machines.
/// With `BLESS` it gets what is expected now.
#[test]
fn the_gallery_shows_reports_as_they_are() {
    let place = product::root().join("docs/guide/gallery.md");
    let text = std::fs::read_to_string(&place).expect("the page");
    let mut parts = text.split("<!-- report: ");
    let mut made = parts.next().expect("its head").to_owned();
    for part in parts {
        let (name, _) = part.split_once(" -->\n```text\n").expect("a name and a block");
        let (_, rest) = part.split_once("\n```\n").expect("the block's end");
        let expected = product::root().join("tests/expected").join(format!("{name}.txt"));
        let report = std::fs::read_to_string(&expected).unwrap_or_else(|error| panic!("{name}: {error}"));
        let finding = report.split(&format!("{}\n", "=".repeat(80))).nth(1).expect("a finding");
        let (finding, _) = finding.split_once("\n[streamsan ").expect("a line for machines");
        made += &format!("<!-- report: {name} -->\n```text\n{}\n```\n{rest}", finding.trim_end());
    }
    assert_eq!(text.matches("<!-- report: ").count(), 10);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&place, &made).expect("written");
    }
    assert!(made == text, "{} is not what the reports say: cargo xtask bless", place.display());
}

#[test]
fn two_fills_of_the_same_bytes() {
    assert_report("racy_fills", &build::c_program("racy.c", &["-L", &fake::folder().to_string_lossy(), "-lcuda"]), &[]);
}

#[test]
fn the_demo() {
    cuda("programs/demo/racy.cu");
}

#[test]
fn an_event_recorded_too_early() {
    cuda("corpus/cuda/event_recorded_early.cu");
}

#[test]
fn an_event_never_recorded() {
    cuda("corpus/cuda/event_never_recorded.cu");
}

#[test]
fn a_free_while_another_stream_reads() {
    cuda("corpus/cuda/free_async_while_read.cu");
}

#[test]
fn the_legacy_stream_and_a_non_blocking_one() {
    cuda("corpus/cuda/legacy_vs_nonblocking.cu");
}

#[test]
fn nodes_of_a_graph_without_an_edge() {
    cuda("corpus/cuda/graph_kernel_nodes_no_edge.cu");
}

#[test]
fn a_clean_program() {
    cuda("corpus/cuda/stream_pair_event.cu");
}

#[test]
fn an_index_that_is_loaded_keeps_a_finding_from_being_certain() {
    let Some((program, name)) = compiled("scattered_update.cu") else { return };
    assert_report(&name, &program, &["--sim", "--sim-predict"]);
    silent_when_mended(&name, &program);
}

#[test]
fn frames_of_a_library_are_folded_and_the_lines_are_the_program_s() {
    twins("behind_library.cu");
}

#[test]
fn a_wait_for_an_event_of_the_wrong_stream_is_named() {
    twins("wrong_event.cu");
}

#[test]
fn a_query_that_answers_for_nothing_is_named_with_its_place() {
    twins("query_for_nothing.cu");
}

#[test]
fn a_copy_that_may_be_on_its_way_says_by_which_rule() {
    twins("staged_copy.cu");
}

#[test]
fn a_capture_that_was_not_joined_is_told_as_cuda_does() {
    twins("unjoined_capture.cu");
}

#[test]
fn two_per_thread_streams_are_told_apart() {
    let Some((program, _)) = compiled("per_thread_pair.cu") else { return };
    let ended = run::end(run::streamsan(["run", "--sim", "--"]).env_remove("LD_LIBRARY_PATH").arg(&program));
    assert_eq!(ended.code(), Some(66), "{}", ended.err);
    // In the sentences and in the lines that mend it: whose streams these are.
    for before in ["the per-thread default stream of thread ", "cudaStreamPerThread /* of thread "] {
        let mut threads: Vec<&str> = ended
            .err
            .split(before)
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next())
            .collect();
        threads.sort_unstable();
        threads.dedup();
        assert_eq!(threads.len(), 2, "{before}: {}", ended.err);
    }
    silent_when_mended("per_thread_pair", &program);
}
