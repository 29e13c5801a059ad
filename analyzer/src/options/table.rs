//! The rows: every option there is, in the groups that the help shows them in.
//!
//! To add an option: one field of [`Options`](super::Options) with its default, one row here.

use super::{Color, FailOn, Format, Kind, Spec};
use order::Policy;

/// The groups of the help, with their rows.
pub const GROUPS: &[(&str, &[Spec])] = &[
    ("What is run and recorded", RUN),
    ("The simulated GPU", SIM),
    ("What counts", JUDGE),
    ("What fails the run", GATE),
    ("What is written", OUTPUT),
    ("Exact mode", EXACT),
];

/// All rows.
pub fn all() -> impl Iterator<Item = &'static Spec> + Clone {
    GROUPS.iter().flat_map(|(_, rows)| rows.iter())
}

const SCHEDULES: &[&str] = &["eager", "random", "late-first", "in-order"];

const SIM: &[Spec] = &[
    Spec {
        name: "sim-schedule",
        letter: None,
        kind: Kind::Choice {
            words: SCHEDULES,
            set: |o, i| {
                o.sim = true;
                o.sim_options.schedule = Some(SCHEDULES[i]);
            },
        },
        default: "",
        help: "which order, of those that CUDA allows, work runs in [default: eager]",
    },
    Spec {
        name: "sim-seed",
        letter: None,
        kind: Kind::Number {
            max: u64::MAX,
            set: |o, n| {
                o.sim = true;
                o.sim_options.seed = Some(n);
            },
        },
        default: "",
        help: "choose among random schedules; with one host thread a seed repeats its schedule",
    },
    Spec {
        name: "sim-addresses",
        letter: None,
        kind: Kind::File(|o| {
            o.sim = true;
            &mut o.sim_options.addresses
        }),
        default: "",
        help: "list the bytes that each launch really touches in FILE, a line of JSON for each",
    },
    Spec {
        name: "sim-results",
        letter: None,
        kind: Kind::File(|o| {
            o.sim = true;
            &mut o.sim_options.results
        }),
        default: "",
        help: "list digests of what the program computed in FILE, to compare schedules",
    },
];

const RUN: &[Spec] = &[
    Spec {
        name: "output",
        letter: Some('o'),
        kind: Kind::File(|o| &mut o.output),
        default: "",
        help: "write the trace to FILE (with 'run': as well)",
    },
    Spec {
        name: "sim",
        letter: None,
        kind: Kind::Flag(|o| &mut o.sim),
        default: "no",
        help: "run on the simulated GPU (docs/simulator.md); the options --sim-... imply it",
    },
    Spec {
        name: "stacks",
        letter: None,
        kind: Kind::Flag(|o| &mut o.stacks),
        default: "yes",
        help: "record call stacks; '--no-stacks' is faster, but reports name no lines",
    },
    Spec {
        name: "soname",
        letter: None,
        kind: Kind::Flag(|o| &mut o.soname),
        default: "no",
        help: "load the shim under the driver's name, which libraries opened with RTLD_DEEPBIND need",
    },
    Spec {
        name: "host-writes",
        letter: None,
        kind: Kind::Flag(|o| &mut o.shim.host_writes),
        default: "yes",
        help: "do not compare what pending copies read with what it was: early refills are missed",
    },
    Spec {
        name: "host-accesses",
        letter: None,
        kind: Kind::Flag(|o| &mut o.shim.host_accesses),
        default: "no",
        help: "see the host touch memory that pending copies use: takes its pages away meanwhile",
    },
    Spec {
        name: "host-sample",
        letter: None,
        kind: Kind::Number { max: 1 << 20, set: |o, n| o.shim.host_sample = n },
        default: "64",
        help: "KiB of a copy's source always compared in full; of more, a sample",
    },
    Spec {
        name: "ring-mib",
        letter: None,
        kind: Kind::Number { max: 4096, set: |o, n| o.shim.ring_mib = n },
        default: "32",
        help: "megabytes of shared memory between program and analyzer",
    },
    Spec {
        name: "analyzer",
        letter: None,
        kind: Kind::File(|o| &mut o.shim.analyzer),
        default: "",
        help: "under plain LD_PRELOAD: the streamsan program to start (beside the library)",
    },
    Spec {
        name: "launch-blocking",
        letter: None,
        kind: Kind::Flag(|o| &mut o.shim.launch_blocking),
        default: "no",
        help: "wait for every launch, and name the one that failed (illegal address, assert)",
    },
    Spec {
        name: "torch-allocator",
        letter: None,
        kind: Kind::Choice { words: &["native", "async"], set: |o, i| o.torch_async = i == 1 },
        default: "native",
        help: "'async': PyTorch on cudaMallocAsync, unless its variable is set",
    },
    Spec {
        name: "count-calls",
        letter: None,
        kind: Kind::Flag(|o| &mut o.shim.count_calls),
        default: "no",
        help: "write how often each driver function was called into the trace (for 'record' and 'dump')",
    },
    Spec {
        name: "off",
        letter: None,
        kind: Kind::Flag(|o| &mut o.shim.off),
        default: "no",
        help: "stay out of the program altogether",
    },
    Spec {
        name: "cache",
        letter: None,
        kind: Kind::List("FOLDER|off", |o| &mut o.cache),
        default: "",
        help: "keep what is known of kernels there [default: $STREAMSAN_CACHE or ~/.cache/streamsan]",
    },
];

const JUDGE: &[Spec] = &[
    Spec {
        name: "pedantic",
        letter: None,
        kind: Kind::Flag(|o| &mut o.pedantic),
        default: "no",
        help: "count and show weak findings too ('possible')",
    },
    Spec {
        name: "policy",
        letter: None,
        kind: Kind::Choice {
            words: &["observed", "documented"],
            set: |o, i| o.policy = [Policy::Observed, Policy::Documented][i],
        },
        default: "observed",
        help: "what synchronises: what drivers do, or what CUDA promises",
    },
    Spec {
        name: "latent",
        letter: None,
        kind: Kind::Flag(|o| &mut o.latent),
        default: "no",
        help: "also show pairs that only unpromised synchronisation orders; see --fail-on",
    },
    Spec {
        name: "host-order",
        letter: None,
        kind: Kind::Choice { words: &["merged", "threads"], set: |o, i| o.host_threads = i == 1 },
        default: "merged",
        help: "'threads': follow what pthreads hand over (not with --latent)",
    },
    Spec {
        name: "hints",
        letter: None,
        kind: Kind::Flag(|o| &mut o.hints),
        default: "no",
        help: "also list what is no race, but probably not meant; hints fail no run",
    },
    Spec {
        name: "only-kernel",
        letter: None,
        kind: Kind::List("PATTERN", |o| &mut o.filters.only_kernel),
        default: "",
        help: "keep only findings of which a side is such a kernel ('*' is any text)",
    },
    Spec {
        name: "ignore-kernel",
        letter: None,
        kind: Kind::List("PATTERN", |o| &mut o.filters.ignore_kernel),
        default: "",
        help: "leave out findings of which a side is such a kernel",
    },
    Spec {
        name: "only-stream",
        letter: None,
        kind: Kind::List("PATTERN", |o| &mut o.filters.only_stream),
        default: "",
        help: "keep only findings of which a side is on such a stream, as reports name it",
    },
    Spec {
        name: "ignore-stream",
        letter: None,
        kind: Kind::List("PATTERN", |o| &mut o.filters.ignore_stream),
        default: "",
        help: "leave out findings of which a side is on such a stream",
    },
    Spec {
        name: "only-module",
        letter: None,
        kind: Kind::List("PATTERN", |o| &mut o.filters.only_module),
        default: "",
        help: "keep only findings with this file (program, library, source) in a stack",
    },
    Spec {
        name: "ignore-module",
        letter: None,
        kind: Kind::List("PATTERN", |o| &mut o.filters.ignore_module),
        default: "",
        help: "leave out findings of which a side was called from such a file",
    },
    Spec {
        name: "symbol-path",
        letter: None,
        kind: Kind::List("FOLDER", |o| &mut o.symbol_path),
        default: "",
        help: "folder with debug information, by build id or name; may be repeated",
    },
];

const GATE: &[Spec] = &[
    Spec {
        name: "error-exitcode",
        letter: None,
        kind: Kind::Number {
            max: 255,
            set: |o, n| {
                o.error_exitcode = n as i32;
                o.error_exitcode_set = true;
            },
        },
        default: "66",
        help: "exit code when there are findings; 0 keeps the program's own",
    },
    Spec {
        name: "fail-on",
        letter: None,
        kind: Kind::Choice {
            words: &["certain", "likely", "possible", "latent"],
            set: |o, i| {
                o.fail_on = Some([FailOn::Certain, FailOn::Likely, FailOn::Possible, FailOn::Latent][i]);
                // What is to fail the run has to be looked for and shown.
                o.pedantic |= o.fail_on == Some(FailOn::Possible);
                o.latent |= o.fail_on == Some(FailOn::Latent);
            },
        },
        default: "",
        help: "the weakest finding that fails the run (likely); 'latent' adds latent ones",
    },
    Spec {
        name: "suppressions",
        letter: None,
        kind: Kind::List("FILE", |o| &mut o.suppressions),
        default: "",
        help: "set findings aside that FILE names ('race:PATTERN' lines); may be repeated",
    },
    Spec {
        name: "gen-suppressions",
        letter: None,
        kind: Kind::File(|o| &mut o.gen_suppressions),
        default: "",
        help: "write suppressions for what fails this run to FILE",
    },
    Spec {
        name: "baseline",
        letter: None,
        kind: Kind::File(|o| &mut o.baseline),
        default: "",
        help: "only findings that are not in FILE fail (from --write-baseline or --json)",
    },
    Spec {
        name: "write-baseline",
        letter: None,
        kind: Kind::File(|o| &mut o.write_baseline),
        default: "",
        help: "write the baseline of this run to FILE",
    },
    Spec {
        name: "require-cuda",
        letter: None,
        kind: Kind::Flag(|o| &mut o.require_cuda),
        default: "no",
        help: "fail with exit code 4 when the program makes no use of CUDA",
    },
];

const OUTPUT: &[Spec] = &[
    Spec {
        name: "format",
        letter: None,
        kind: Kind::Choice {
            words: &["text", "github", "csan"],
            set: |o, i| o.format = [Format::Text, Format::Github, Format::Csan][i],
        },
        default: "text",
        help: "form of the report; on GitHub, annotations too; 'csan': as PyTorch's",
    },
    Spec {
        name: "log-file",
        letter: None,
        kind: Kind::File(|o| &mut o.log_file),
        default: "",
        help: "write the report to FILE instead of stderr",
    },
    Spec {
        name: "json",
        letter: None,
        kind: Kind::File(|o| &mut o.json),
        default: "",
        help: "write findings, summary and coverage to FILE as JSON",
    },
    Spec {
        name: "sarif",
        letter: None,
        kind: Kind::File(|o| &mut o.sarif),
        default: "",
        help: "write the findings to FILE as SARIF 2.1.0, for code scanning",
    },
    Spec {
        name: "html",
        letter: None,
        kind: Kind::File(|o| &mut o.html),
        default: "",
        help: "write the report to FILE as one page for a browser",
    },
    Spec {
        name: "junit",
        letter: None,
        kind: Kind::File(|o| &mut o.junit),
        default: "",
        help: "write the findings to FILE as JUnit XML, each a failed test",
    },
    Spec {
        name: "parquet",
        letter: None,
        kind: Kind::File(|o| &mut o.parquet),
        default: "",
        help: "write the findings to FILE as Parquet, for DuckDB and its like",
    },
    Spec {
        name: "snapshot",
        letter: None,
        kind: Kind::File(|o| &mut o.snapshot),
        default: "",
        help: "with 'memory': write FILE for PyTorch's memory viewer",
    },
    Spec {
        name: "max-findings",
        letter: None,
        kind: Kind::Number { max: u32::MAX as u64, set: |o, n| o.max_findings = n },
        default: "50",
        help: "print this many findings in full; all are counted",
    },
    Spec {
        name: "color",
        letter: None,
        kind: Kind::Choice {
            words: &["auto", "always", "never"],
            set: |o, i| o.color = [Color::Auto, Color::Always, Color::Never][i],
        },
        default: "auto",
        help: "colours in the report; 'auto' follows the terminal and NO_COLOR",
    },
];

const EXACT: &[Spec] = &[
    Spec {
        name: "exact",
        letter: None,
        kind: Kind::Word(|o| &mut o.exact.kernels),
        default: "",
        help: "measure what kernels touch: all, those so named, or those in doubt; see docs/exact.md",
    },
    Spec {
        name: "confirm",
        letter: None,
        kind: Kind::Flag(|o| &mut o.exact.confirm),
        default: "",
        help: "measure kernels of findings that are not certain, and withdraw what that refutes",
    },
    Spec {
        name: "learned",
        letter: None,
        kind: Kind::File(|o| &mut o.exact.learned),
        default: "",
        help: "ranges that no data decides: use those in FILE, add what --exact or --confirm measures",
    },
    Spec {
        name: "sanitizer-library",
        letter: None,
        kind: Kind::File(|o| &mut o.exact.library),
        default: "",
        help: "with --exact, --confirm: NVIDIA's libsanitizer-public.so, if it is not found by itself",
    },
    Spec {
        name: "exact-patch",
        letter: None,
        kind: Kind::File(|o| &mut o.exact.patch),
        default: "",
        help: "with --exact, --confirm: what scripts/patch made (exact.fatbin beside the library)",
    },
    Spec {
        name: "exact-compare",
        letter: None,
        kind: Kind::File(|o| &mut o.exact.compare),
        default: "",
        help: "judge what was predicted of each launch by what --exact measured; write FILE as JSON",
    },
];
