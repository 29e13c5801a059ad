//! PyTorch and JAX on the simulated GPU, their kernels executed: operators against the CPU's
//! results, and trainings whose losses are the CPU's (`tests/frameworks`). `cargo xtask operators`
//! has the whole list of operators.
//!
//! Needs PyPI the first time. `STREAMSAN_NO_TORCH=1` skips them: 850 MB are fetched.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use libtest_mimic::Trial;
use tests::{build, field, oracle, product, run};

use crate::trial;

/// How long a program may take: an import of PyTorch is part of it, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// The exit code of a run with findings.
const FOUND: i32 = 66;

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

/// One from each class of kernels, whose predictions are held against what they touch. (`cargo
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

/// The programs that train, each with a twin that races.
const TRAININGS: [&str; 2] = ["train_two_layers", "train_transformer"];

/// What streams share in `shared_tables.py`, each with a twin that races.
const SHARED: [&str; 4] = ["cache", "pages", "embedding", "workspace"];

/// JAX for CUDA 13, without NVIDIA's libraries: the simulator has what XLA asks them for.
const JAX: [&str; 7] = [
    "jax==0.10.2",
    "jaxlib==0.10.2",
    "jax-cuda13-plugin==0.10.2",
    "jax-cuda13-pjrt==0.10.2",
    "ml_dtypes==0.6.0",
    "opt_einsum==3.4.0",
    "scipy==1.17.1",
];

/// A test for the operators, and two of each training and each thing that streams share.
pub fn trials() -> Vec<Trial> {
    let no_torch = std::env::var_os("STREAMSAN_NO_TORCH").is_some_and(|value| value == "1");
    let mut trials = vec![
        trial("frameworks", "operators", || program("operators", &OPERATORS, 0, &[])),
        trial("frameworks", "operators::measured", measured),
    ];
    for training in TRAININGS {
        for (twin, code) in [("wait", 0), ("race", FOUND)] {
            let name = format!("{training}::{twin}");
            trials.push(trial("frameworks", &name, move || program(training, &[twin], code, &[])));
        }
    }
    for shared in SHARED {
        for (twin, code) in [("wait", 0), ("race", FOUND)] {
            let name = format!("shared_tables::{shared}::{twin}");
            trials.push(trial("frameworks", &name, move || program("shared_tables", &[shared, twin], code, &[])));
        }
    }
    for (twin, code) in [("wait", 0), ("race", FOUND)] {
        trials.push(trial("frameworks", &format!("jax_training::{twin}"), move || jax(twin, code)));
    }
    trials.push(trial("frameworks", "needless_sync", excess));
    trials.into_iter().map(|trial| trial.with_ignored_flag(no_torch)).collect()
}

/// Runs a program of `tests/frameworks` under StreamSan. The error says what is not as it should
/// be.
fn program(name: &str, arguments: &[&str], code: i32, options: &[&str]) -> Result<(), String> {
    ended(&mut python(name, arguments, options)?, name, code)
}

/// The same for a program that JAX runs. Its compiler needs CUDA's assembler, and the functions of
/// CUDA's device library.
fn jax(twin: &str, code: i32) -> Result<(), String> {
    let cuda = build::toolkit()?;
    let packages: Vec<PathBuf> = JAX.iter().map(|package| field::package(package)).collect::<Result<_, _>>()?;
    let mut command = python("jax_training", &[twin], &[])?;
    let before = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(cuda.join("bin")).chain(std::env::split_paths(&before)));
    command.env("PATH", path.map_err(|error| error.to_string())?);
    command.env("PYTHONPATH", std::env::join_paths(packages).map_err(|error| error.to_string())?);
    command.env("XLA_FLAGS", format!("--xla_gpu_cuda_data_dir={}", cuda.display()));
    ended(&mut command, "jax_training", code)
}

/// A program of `tests/frameworks` under StreamSan.
fn python(name: &str, arguments: &[&str], options: &[&str]) -> Result<Command, String> {
    let torch = field::torch()?;
    let mut command = run::streamsan(["run", "--sim", "--require-cuda", "--error-exitcode"]);
    command.arg(FOUND.to_string()).args(options).arg("--").arg(torch.python());
    command.arg(product::root().join(format!("tests/frameworks/{name}.py"))).args(arguments);
    command.env_remove("STREAMSAN_SIM").env_remove("LD_LIBRARY_PATH").env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}

fn ended(command: &mut Command, name: &str, code: i32) -> Result<(), String> {
    let ended = run::end_within(command, PATIENCE);
    match (ended.hung, ended.status.code()) {
        (false, Some(got)) if got == code => Ok(()),
        (hung, _) => {
            let how = if hung { "hangs".to_owned() } else { format!("ends with {} instead of {code}", ended.status) };
            Err(format!("{name} {how}\n{}\n{}", ended.out, ended.err))
        }
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
    record.env_remove("STREAMSAN_SIM").env_remove("LD_LIBRARY_PATH").env("PYTHONDONTWRITEBYTECODE", "1");
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
