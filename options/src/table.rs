//! The table: every option there is, one row each, in the order of the help.
//!
//! Columns: number, name, letter, type, default, commands, reader, group, help; where other
//! commands have a switch of that name, these behind `switch_of`.

use crate::row::Command::{Check, Diff, Excess, Explain, Hunt, Memory, Record, Run, Timeline};
use crate::row::{Command, Commands, Group, Kind, Reader, Row};

macro_rules! table {
    ($($id:ident $name:literal $letter:expr, $kind:expr, $default:literal, $commands:expr, $reader:ident, $group:ident, $help:literal
        $(, switch_of $switch_of:expr)?;)*) => {
        /// The number of an option: its place in [`ROWS`].
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Id {
            $(#[doc = $help] $id,)*
        }

        /// All rows.
        pub static ROWS: &[Row] = &[
            $(Row {
                id: Id::$id,
                name: $name,
                letter: $letter,
                kind: $kind,
                default: $default,
                commands: Commands::of($commands),
                reader: Reader::$reader,
                group: Group::$group,
                help: $help,
                switch_of: table!(@switch_of $($switch_of)?),
            },)*
        ];
    };
    (@switch_of) => { &[] };
    (@switch_of $commands:expr) => { $commands };
}

const FLAG: Kind = Kind::Flag;

const fn number(min: u64, max: u64) -> Kind {
    Kind::Number { min, max }
}

/// Commands that start programs.
const RUNS: &[Command] = &[Run, Hunt, Record];
/// Commands that start one program, which may write a file of its own.
const RUNS_ONE: &[Command] = &[Run, Record];
/// Commands that judge findings.
const JUDGES: &[Command] = &[Run, Hunt, Check];
/// Commands that keep a file about the launches of one run.
const KEEPS: &[Command] = &[Run, Check];
/// Commands that resolve stacks.
const RESOLVES: &[Command] = &[Run, Hunt, Record, Check, Excess, Timeline, Memory];
const ALL: &[Command] = &[Run, Hunt, Record, Check, Diff, Excess, Explain, Timeline, Memory];

table! {
    Output "output" Some('o'), Kind::File, "", &[Run, Record, Timeline], Analyzer, Run,
        "write the trace ('timeline': the picture) to FILE";
    SegmentMib "segment-mib" None, number(1, 1 << 20), "", RUNS_ONE, Analyzer, Run,
        "make the trace a folder of segments of N MiB, each of which can be checked";
    KeepLast "keep-last" None, Kind::Amount("10GiB|30min"), "", RUNS_ONE, Analyzer, Run,
        "keep so much of the end of the trace, until a signal, a fault or a finding saves it";
    Stacks "stacks" None, FLAG, "yes", RUNS, Shim, Run,
        "do not record call stacks: faster, but reports name no lines";
    Soname "soname" None, FLAG, "no", RUNS, Launcher, Run,
        "load the shim under the driver's name, which libraries opened with RTLD_DEEPBIND need";
    HostWrites "host-writes" None, FLAG, "yes", RUNS, Shim, Run,
        "do not look for host writes to memory that pending copies read";
    HostAccesses "host-accesses" None, FLAG, "no", RUNS, Shim, Run,
        "see the host touch memory that pending work uses, by protecting its pages";
    HostInPlace "host-in-place" None, FLAG, "yes", RUNS, Shim, Run,
        "with --host-accesses, watch the memory of copies only, not what kernels use in place";
    HostSample "host-sample" None, number(0, 1 << 20), "64", RUNS, Shim, Run,
        "compare sources of copies up to N KiB in full; of larger ones, a sample";
    RingMib "ring-mib" None, number(1, 4096), "128", RUNS, Shim, Run,
        "size of the shared memory between program and analyzer, in MiB";
    Analyzer "analyzer" None, Kind::File, "", &[], Shim, Run,
        "under plain LD_PRELOAD: the streamsan program to start (beside the library)";
    LaunchBlocking "launch-blocking" None, FLAG, "no", RUNS, Shim, Run,
        "wait for each launch, to name the one that fails (illegal address, assert)";
    TorchAllocator "torch-allocator" None, Kind::Choice(&["native", "async"]), "native", RUNS, Launcher, Run,
        "'async': run PyTorch on cudaMallocAsync, unless its own variable is set";
    CountCalls "count-calls" None, FLAG, "no", RUNS_ONE, Shim, Run,
        "write to the trace how often each driver function was called";
    Off "off" None, FLAG, "no", RUNS_ONE, Shim, Run,
        "stay out of the program altogether";
    Cache "cache" None, Kind::PathOrOff("FOLDER|off"), "", &[Run, Hunt, Check, Excess, Explain], Analyzer, Run,
        "keep kernel summaries there [default: $STREAMSAN_CACHE or ~/.cache/streamsan]";
    Config "config" None, Kind::PathOrOff("FILE|off"), "", ALL, Launcher, Run,
        "read FILE [default: the first streamsan.toml from the working directory upwards]";

    Sim "sim" None, FLAG, "no", RUNS, Launcher, Sim,
        "run on the simulated GPU; the options --sim-... imply it";
    SimSchedule "sim-schedule" None, Kind::Choice(&["eager", "random", "late-first", "in-order"]), "", RUNS, Launcher, Sim,
        "order in which ready work runs, among those that CUDA allows [default: eager]";
    SimSeed "sim-seed" None, number(0, u64::MAX), "", RUNS, Launcher, Sim,
        "choose a random schedule; with one host thread a seed repeats its schedule";
    SimPredict "sim-predict" None, FLAG, "no", RUNS, Launcher, Sim,
        "predict what kernels touch, and measure nothing unless --exact or --confirm asks";
    SimAddresses "sim-addresses" None, Kind::File, "", RUNS_ONE, Launcher, Sim,
        "list the bytes that each launch touches in FILE, as lines of JSON";
    SimResults "sim-results" None, Kind::File, "", RUNS_ONE, Launcher, Sim,
        "list digests of what the program computed in FILE, to compare schedules";
    Inside "inside" None, Kind::Word("KERNEL"), "", RUNS, Both, Sim,
        "with --sim, also find races inside kernels: of all, or those so named (a,b,...)";
    Initcheck "initcheck" None, FLAG, "no", RUNS, Both, Sim,
        "with --sim, also find reads of memory that nothing wrote, and races inside all kernels";

    Pedantic "pedantic" None, FLAG, "no", JUDGES, Analyzer, Detection,
        "count and show weak findings too ('possible')";
    Policy "policy" None, Kind::Choice(&["observed", "documented"]), "observed", &[Run, Hunt, Check, Excess], Analyzer, Detection,
        "what synchronises: what drivers do, or only what CUDA promises";
    Latent "latent" None, FLAG, "no", JUDGES, Analyzer, Detection,
        "also show pairs that only unpromised synchronisation orders; see --fail-on";
    PageableCopies "pageable-copies" None, FLAG, "yes", JUDGES, Analyzer, Detection,
        "take a cudaMemcpy from pageable memory to be over when it returns";
    HostOrder "host-order" None, Kind::Choice(&["merged", "threads"]), "merged", &[Run, Hunt, Record, Check, Excess], Both, Detection,
        "'threads': order host threads by pthread synchronisation only";
    Hints "hints" None, FLAG, "no", JUDGES, Both, Detection,
        "also list what is no race but probably a mistake; hints fail no run";
    DefaultStream "default-stream" None, Kind::Choice(&["legacy", "per-thread", "non-blocking"]), "", JUDGES, Analyzer, Detection,
        "check as if the default stream were of this kind [default: as it is]";
    Without "without" None, Kind::Patterns, "", JUDGES, Analyzer, Detection,
        "check without a synchronisation: FILE:LINE, function or kind; repeatable";
    Forbid "forbid" None, Kind::Rules(&["default-stream", "sync", "unnamed-stream"]), "", JUDGES, Analyzer, Detection,
        "fail on default-stream[=MODULE], sync[=NVTX RANGE], unnamed-stream; repeatable";
    With "with" None, Kind::Files, "", &[Check], Analyzer, Detection,
        "check the trace with the waits that FILE adds ('a.cu:22 -> a.cu:30'); repeatable";
    OnlyKernel "only-kernel" None, Kind::Patterns, "", JUDGES, Analyzer, Detection,
        "keep only findings with such a kernel on a side ('*' matches any text)";
    IgnoreKernel "ignore-kernel" None, Kind::Patterns, "", JUDGES, Analyzer, Detection,
        "leave out findings with such a kernel on a side";
    OnlyStream "only-stream" None, Kind::Patterns, "", JUDGES, Analyzer, Detection,
        "keep only findings with such a stream on a side, as reports name it";
    IgnoreStream "ignore-stream" None, Kind::Patterns, "", JUDGES, Analyzer, Detection,
        "leave out findings with such a stream on a side";
    OnlyModule "only-module" None, Kind::Patterns, "", JUDGES, Analyzer, Detection,
        "keep only findings with this file (program, library, source) in a stack";
    IgnoreModule "ignore-module" None, Kind::Patterns, "", JUDGES, Analyzer, Detection,
        "leave out findings with a side that was called from such a file";
    SymbolPath "symbol-path" None, Kind::Folders, "", RESOLVES, Analyzer, Detection,
        "look for debug information there, by build ID or name; repeatable";
    Library "library" None, Kind::Patterns, "", JUDGES, Analyzer, Detection,
        "fold frames of such functions, source or object files as a library's";

    ErrorExitcode "error-exitcode" None, number(0, 255), "66", &[Run, Hunt, Check, Diff], Both, Gate,
        "exit code when there are findings; 0 keeps the program's own";
    FailOn "fail-on" None, Kind::Choice(&["certain", "likely", "possible", "latent"]), "", JUDGES, Analyzer, Gate,
        "weakest finding that fails the run; 'latent' adds latent ones [default: likely]";
    Suppressions "suppressions" None, Kind::Files, "", JUDGES, Analyzer, Gate,
        "set aside findings that FILE names ('race:PATTERN' lines); repeatable";
    GenSuppressions "gen-suppressions" None, Kind::File, "", JUDGES, Analyzer, Gate,
        "write suppressions for what fails this run to FILE";
    Baseline "baseline" None, Kind::File, "", JUDGES, Analyzer, Gate,
        "fail only on findings that are not in FILE (from --write-baseline or --json)";
    WriteBaseline "write-baseline" None, Kind::File, "", JUDGES, Analyzer, Gate,
        "write the baseline of this run to FILE";
    RequireCuda "require-cuda" None, FLAG, "", JUDGES, Analyzer, Gate,
        "fail with exit code 4 when the program makes no use of CUDA [default: yes in CI and with report files]";

    FailFast "fail-fast" None, FLAG, "no", &[Run, Hunt], Analyzer, Gate,
        "stop at the first finding that fails the run: the program, or the programs of a hunt";

    Quiet "quiet" None, FLAG, "no", &[Run, Hunt, Record, Check, Diff], Analyzer, Output,
        "print findings and errors only: nothing at all when the run is clean";
    Format "format" None, Kind::Choice(&["text", "short", "github", "csan"]), "text", JUDGES, Analyzer, Output,
        "form of the report: in full, one line a finding, annotations, or PyTorch's wording";
    LogFile "log-file" None, Kind::File, "", JUDGES, Analyzer, Output,
        "write the report to FILE instead of stderr";
    Json "json" None, Kind::File, "", &[Run, Hunt, Check, Excess, Memory], Analyzer, Output,
        "write findings, summary, coverage ('memory', 'excess': theirs) to FILE as JSON",
        switch_of &["diff", "dump", "explain"];
    Sarif "sarif" None, Kind::File, "", JUDGES, Analyzer, Output,
        "write the findings to FILE as SARIF 2.1.0, for code scanning";
    Html "html" None, Kind::File, "", &[Run, Hunt, Check, Excess], Analyzer, Output,
        "write the report to FILE as one page for a browser";
    Junit "junit" None, Kind::File, "", JUDGES, Analyzer, Output,
        "write the findings to FILE as JUnit XML, each a failed test";
    CodeQuality "code-quality" None, Kind::File, "", JUDGES, Analyzer, Output,
        "write the findings to FILE as GitLab's Code Quality JSON";
    Markdown "markdown" None, Kind::File, "", JUDGES, Analyzer, Output,
        "write the findings to FILE as a table of Markdown, for a job's summary";
    Parquet "parquet" None, Kind::File, "", JUDGES, Analyzer, Output,
        "write the findings to FILE as Parquet, for DuckDB and the like";
    Snapshot "snapshot" None, Kind::File, "", &[Memory], Analyzer, Output,
        "write FILE for PyTorch's memory viewer";
    MaxFindings "max-findings" None, number(0, u32::MAX as u64), "50", JUDGES, Analyzer, Output,
        "print this many findings; all are counted";
    PerCause "findings-per-cause" None, number(0, u32::MAX as u64), "3", JUDGES, Analyzer, Output,
        "of each cause, print this many findings in full and the others in one line (0: all in full)";
    Color "color" None, Kind::Choice(&["auto", "always", "never"]), "auto", JUDGES, Analyzer, Output,
        "colours in the report; 'auto' follows the terminal and NO_COLOR";

    Exact "exact" None, Kind::Word("KERNEL"), "", RUNS, Both, Exact,
        "measure what kernels touch: those in doubt, 'all', or those so named (a,b,...)";
    ExactShare "exact-share" None, number(1, 100), "", &[], Shim, Exact,
        "with exact=yes on the simulated GPU: the percentage of the run that measuring may take";
    Confirm "confirm" None, FLAG, "no", JUDGES, Both, Exact,
        "measure kernels of uncertain findings, and withdraw what that refutes; hunts do, unless --no-confirm";
    Learned "learned" None, Kind::File, "", KEEPS, Analyzer, Exact,
        "use the measured ranges in FILE, and add those of this run";
    SanitizerLibrary "sanitizer-library" None, Kind::File, "", RUNS, Shim, Exact,
        "NVIDIA's libsanitizer-public.so, where it is not found by itself";
    ExactPatch "exact-patch" None, Kind::File, "", RUNS, Shim, Exact,
        "what scripts/patch made [default: exact.fatbin beside the library]";
    ExactCompare "exact-compare" None, Kind::File, "", KEEPS, Analyzer, Exact,
        "compare what was predicted of each launch with what --exact measured; write FILE as JSON";
}
