//! Python's frameworks on the simulated GPU, their kernels executed: operators against the CPU's
//! results, and programs that train or solve, whose results are the CPU's (`tests/frameworks`).
//! `cargo xtask operators` has the whole list of operators, `cargo xtask frameworks` all programs.
//!
//! Needs PyPI the first time. `STREAMSAN_NO_TORCH=1` skips them: 1.3 GB are fetched.

use libtest_mimic::Trial;
use tests::frameworks::{self, EXAMPLES, FOUND, PATIENCE, Packages, TWINS};
use tests::{build, field, oracle, product, run};

use crate::trial;

/// From each family of operators a few, and the kinds of their kernels: element by element, with
/// reductions, sorting, indexed, through shared memory.
const OPERATORS: [&str; 24] = [
    "add",
    "div",
    "remainder",
    "exp",
    "sin",
    "where",
    "isnan",
    "sum",
    "argmax",
    "cumsum",
    "std",
    "logsumexp",
    "gather",
    "scatter_add",
    "index_put",
    "sort",
    "nonzero",
    "cat",
    "tril",
    "softmax",
    "nn.functional.gelu",
    "nn.functional.layer_norm",
    "nn.functional.embedding",
    "nn.functional.cross_entropy",
];

/// One from each class of kernels, whose predictions are compared with what they touch. (`cargo
/// xtask oracle` has all.)
const MEASURED: [&str; 10] = [
    "add",
    "sum",
    "gather",
    "index_put",
    "cat",
    "cumsum",
    "softmax",
    "nn.functional.layer_norm",
    "nn.functional.unfold",
    "nn.functional.avg_pool2d",
];

/// What streams share in `shared_tables.py`, each with a twin that races.
const SHARED: [&str; 4] = ["cache", "pages", "embedding", "workspace"];

/// What ranks do wrong in `symmetric_memory.py`.
const MISTAKES: [&str; 3] = ["early", "reused", "reduced"];

/// A test for the operators, and two of each example. Programs with several cases run them in one
/// process, because an import of PyTorch takes longer than a case.
pub fn trials() -> Vec<Trial> {
    let no_torch = std::env::var_os("STREAMSAN_NO_TORCH").is_some_and(|value| value == "1");
    let mut trials = vec![
        trial("frameworks", "operators", || program("operators", &OPERATORS, 0, &[])),
        trial("frameworks", "operators::measured", measured),
    ];
    for (name, packages) in EXAMPLES {
        for (twin, code) in TWINS {
            trials.push(trial("frameworks", &format!("{name}::{twin}"), move || {
                frameworks::ends(&mut frameworks::command(name, packages, &[twin], &[])?, name, code).map(drop)
            }));
        }
    }
    for (twin, code) in TWINS {
        let run = move || {
            let arguments = [&[twin][..], &SHARED].concat();
            let mut command = frameworks::command("shared_tables", Packages::Torch, &arguments, &[])?;
            lines_found(&frameworks::ends(&mut command, "shared_tables", code)?, "shared_tables", code, SHARED.len())
        };
        trials.push(trial("frameworks", &format!("shared_tables::{twin}"), run));
    }
    for code in ["machine", "ptx"] {
        trials.push(trial("frameworks", &format!("triton_hopper::{code}"), move || hopper(code)));
    }
    for (name, mistakes, code) in [("clean", &[][..], 0), ("mistakes", &MISTAKES, FOUND)] {
        let run = move || {
            let ended = on_two_devices("symmetric_memory", mistakes, code)?;
            lines_found(&ended, "symmetric_memory", code, MISTAKES.len())
        };
        trials.push(trial("frameworks", &format!("symmetric_memory::{name}"), run));
    }
    for how in ["fsdp", "tensor"] {
        let run = move || on_two_devices("two_devices", &[how], 0).map(drop);
        trials.push(trial("frameworks", &format!("two_devices::{how}"), run));
    }
    for (form, code) in [(None, 0), (Some("generators"), FOUND)] {
        let name = format!("graph_shapes::{}", form.unwrap_or("clean"));
        let run = move || program("graph_shapes", &Vec::from_iter(form), code, &[]);
        trials.push(trial("frameworks", &name, run));
    }
    trials.push(trial("frameworks", "needless_sync", excess));
    trials.into_iter().map(|trial| trial.with_ignored_flag(no_torch)).collect()
}

/// Runs a program on PyTorch.
fn program(name: &str, arguments: &[&str], code: i32, options: &[&str]) -> Result<(), String> {
    frameworks::ends(&mut frameworks::command(name, Packages::Torch, arguments, options)?, name, code).map(drop)
}

/// Two processes, on two devices.
fn on_two_devices(name: &str, how: &[&str], code: i32) -> Result<run::Ended, String> {
    let mut command = frameworks::command(name, Packages::Torch, how, &[])?;
    frameworks::ends(command.env("STREAMSAN_SIM", "devices=2"), name, code)
}

/// Whether the report of a program that races names each of its lines `# races`, of which there are
/// so many.
fn lines_found(ended: &run::Ended, name: &str, code: i32, count: usize) -> Result<(), String> {
    let file = product::root().join(format!("tests/frameworks/{name}.py"));
    let source = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let marked = (1..).zip(source.lines()).filter(|(_, line)| line.contains("# races"));
    let places: Vec<String> = marked.map(|(number, _)| format!("{name}.py:{number}")).collect();
    let named = |at: &&String| {
        let follows = |text: &str| !text.starts_with(|c: char| c.is_ascii_digit());
        [&ended.out, &ended.err].iter().any(|text| text.split(at.as_str()).skip(1).any(follows))
    };
    let wanted = if code == FOUND { count } else { 0 };
    match (places.len() == count, places.iter().filter(named).count() == wanted) {
        (true, true) => Ok(()),
        _ => Err(format!("not {wanted} of {places:?} are named\n{}{}", ended.out, ended.err)),
    }
}

/// Triton's kernels for compute capability 9.0: results of the CPU, and no race inside.
fn hopper(code: &str) -> Result<(), String> {
    let kernels = ["described", "persistent", "device", "attention", code];
    let options = ["--inside"];
    let mut command = frameworks::command("triton_hopper", Packages::Triton, &kernels, &options)?;
    let ended = run::end_within(command.env("STREAMSAN_SIM", "arch=90"), PATIENCE);
    let right = ended.out.lines().filter(|line| line.ends_with(": right")).count();
    match (ended.code(), right) {
        (Some(0), 7) => Ok(()),
        (code, _) => Err(format!("{code:?}, {right} of 7 right: {}{}", ended.out, ended.err)),
    }
}

/// Measures every launch of some operators: no byte may be touched that was ruled out.
fn measured() -> Result<(), String> {
    let compared = build::scratch("operators-measured").join("compared.json");
    let arguments = [&MEASURED[..], &["--dtype", "float32", "--samples", "2"]].concat();
    program("operators", &arguments, 0, &["--exact=all", "--exact-compare", &compared.to_string_lossy()])?;
    let launches = oracle::judge(&compared)?;
    if launches > 40 { Ok(()) } else { Err(format!("only {launches} launches were compared")) }
}

/// `excess` on a recorded training: the wait for a batch is needed, and the download is the host's.
/// The synchronisation at the end of each step stands for `record_stream`, which does the same
/// without holding the host: the first can go.
fn excess() -> Result<(), String> {
    let torch = field::torch()?;
    let trace = std::env::temp_dir().join(format!("needless_sync.{}.trace", std::process::id()));
    let mut record = run::streamsan(["record", "--sim", "-o"]);
    record.arg(&trace).arg("--").arg(torch.python());
    record.arg(product::root().join("tests/frameworks/needless_sync.py"));
    build::keep_bytecode(record.env_remove("STREAMSAN_SIM").env_remove("LD_LIBRARY_PATH"));
    let recorded = run::end_within(&mut record, PATIENCE);
    let mut judge = run::streamsan(["excess", "--json", "-"]);
    let judged = run::end_within(judge.arg(&trace), PATIENCE);
    drop(std::fs::remove_file(&trace));
    let report: serde_json::Value = serde_json::from_str(&judged.out)
        .map_err(|error| format!("{error}\n{}\n{}\n{}", recorded.err, judged.out, judged.err))?;
    let sites = report["processes"][0]["sites"].as_array().ok_or("no sites")?;
    let verdict_of = |call: &str, line: &str| {
        let at = format!("needless_sync.py:{line}");
        let site = sites.iter().find(|site| site["call"] == call && site["at"] == at.as_str());
        site.map(|site| (site["verdict"].as_str().unwrap_or_default(), site["can_go"] == true, site["count"].as_u64()))
    };
    let expected = [
        ("cudaStreamWaitEvent", "23", ("needed", false, Some(4))),
        ("cudaDeviceSynchronize", "30", ("together", true, Some(4))),
        ("record_stream", "22", ("together", false, Some(3))),
        ("cudaStreamSynchronize", "31", ("host", false, Some(1))),
    ];
    for (call, line, wanted) in expected {
        let got = verdict_of(call, line);
        if got != Some(wanted) {
            return Err(format!("{call} in line {line}: {got:?} instead of {wanted:?}\n{report:#}"));
        }
    }
    Ok(())
}
