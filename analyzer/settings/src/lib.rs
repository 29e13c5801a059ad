//! What the analyzer makes of the options.
//!
//! Owns the struct [`Options`], where each row of the table is stored in it, what the launcher
//! passes on to the shim, which options exclude each other, and the numbers that a command ends
//! with ([`exit_code`]). The table and the language of values are the crate `options`.
//!
//! To add an option: one row in that table, one field here with its default, one arm in
//! [`Options::set`]. The field of a report's file is a row of [`report_files`].

#![warn(unreachable_pub)]

mod assumptions;
mod choices;
mod cuda_required;
pub mod exit_code;
mod filters;
mod judging;
pub mod nearest;
pub mod report_files;

pub use assumptions::{Assumptions, DefaultStream};
pub use choices::{Color, FailOn, Format};
pub use cuda_required::CudaRequired;
pub use filters::Filters;
pub use judging::Judging;
use report_files::ReportFiles;

use options::{Amount, Error, Id, Kind, ROWS, Value, Word};
use order::Policy;
use system::file_name::FileName;

/// What the user asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Exit code when there are findings; 0 keeps the program's own.
    pub error_exitcode: i32,
    /// What counts as order, and what is looked for.
    pub judging: Judging,
    /// Where to write the reports.
    pub reports: ReportFiles,
    /// Where to write the text report instead of stderr.
    pub log_file: Option<FileName>,
    /// Fail when the program makes no use of CUDA. `None`: see [`Options::cuda_required`].
    pub require_cuda: Option<bool>,
    /// Stop at the first finding that fails the run.
    pub fail_fast: bool,
    /// Findings that are printed in full.
    pub max_findings: u64,
    /// Findings of one cause that are printed in full; 0: all.
    pub per_cause: u64,
    /// Use the simulated GPU.
    pub sim: bool,
    /// Settings of the simulated GPU.
    pub sim_options: SimOptions,
    /// Kernels inside which races are looked for, by mangled name; empty: all. `None`: none.
    pub inside: Option<String>,
    /// Reads of memory that nothing wrote are looked for, too, in all kernels.
    pub initcheck: bool,
    /// Give the shim the driver's SONAME.
    pub soname: bool,
    /// Record call stacks.
    pub stacks: bool,
    /// Colours.
    pub color: Color,
    /// Where `record` writes the trace.
    pub output: Option<FileName>,
    /// MiB of its segments, when it is a folder of them; 0: as fits `keep_last`, or no segments.
    pub segment_mib: u64,
    /// How much of its end is kept.
    pub keep_last: Option<Amount>,
    /// The weakest finding that fails the run; by default `likely`, with `pedantic` `possible`.
    pub fail_on: Option<FailOn>,
    /// Suppression files.
    pub suppressions: Vec<FileName>,
    /// Files with waits to add to a recorded order.
    pub with: Vec<FileName>,
    /// Where to write suppressions for what fails this run.
    pub gen_suppressions: Option<FileName>,
    /// The baseline: what is in it fails no run.
    pub baseline: Option<FileName>,
    /// Where to write the baseline of this run.
    pub write_baseline: Option<FileName>,
    /// Where `memory` writes a snapshot for PyTorch's viewer.
    pub snapshot: Option<FileName>,
    /// How the report is written.
    pub format: Format,
    /// Print findings and errors only.
    pub quiet: bool,
    /// Which findings are wanted.
    pub filters: Filters,
    /// Folders with debug information.
    pub symbol_path: Vec<FileName>,
    /// Patterns of what is a library besides those that are known.
    pub library: Vec<String>,
    /// Where summaries of kernels are kept; `off`: nowhere.
    pub cache: Option<FileName>,
    /// The configuration file; `off`: none.
    pub config: Option<FileName>,
    /// Whether PyTorch is to use CUDA's stream-ordered allocator.
    pub torch_async: bool,
    /// What is assumed of the program.
    pub assumptions: Assumptions,
    /// What the program must not do: rules as they were given.
    pub forbid: Vec<String>,
    /// Exact mode.
    pub exact: ExactOptions,
    /// What the shim acts on; the launcher passes it on.
    pub shim: ShimOptions,
    /// The first option of words, not of files, whose text is not UTF-8.
    pub not_utf8: Option<&'static str>,
}

/// Options of the simulated GPU. Each of them implies `sim`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SimOptions {
    /// How ready work is picked.
    pub schedule: Option<&'static str>,
    /// Chooses among random schedules.
    pub seed: Option<u64>,
    /// Predict what kernels touch, though it could be measured.
    pub predict: bool,
    /// Where to list the bytes that each launch touches.
    pub addresses: Option<FileName>,
    /// Where to list digests of what the program computed.
    pub results: Option<FileName>,
}

/// Exact mode: what kernels really touch, as NVIDIA's Sanitizer API measures it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExactOptions {
    /// Which kernels, by mangled name; empty: all. `None`: no exact mode.
    pub kernels: Option<String>,
    /// NVIDIA's library.
    pub library: Option<FileName>,
    /// The code that is patched in.
    pub patch: Option<FileName>,
    /// How many percent of the run the simulated GPU may spend on measuring. `None`: it is not
    /// limited.
    pub share: Option<u64>,
    /// Measure kernels of findings that are not certain.
    pub confirm: bool,
    /// `--no-confirm` was said: a hunt runs no program a second time.
    pub once: bool,
    /// Ranges that earlier runs have measured, and where this run's are added.
    pub learned: Option<FileName>,
    /// Where to write what the summaries said of each launch, and what it really touched.
    pub compare: Option<FileName>,
}

/// Options that the shim inside the program acts on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShimOptions {
    /// Look for writes of the host to memory that pending copies read.
    pub host_writes: bool,
    /// Protect the pages that pending copies use.
    pub host_accesses: bool,
    /// With them, watch memory that kernels use in place.
    pub host_in_place: bool,
    /// Kibibytes of a copy's source that are always compared in full.
    pub host_sample: u64,
    /// MiB of the ring.
    pub ring_mib: u64,
    /// The analyzer to start under plain `LD_PRELOAD`.
    pub(crate) analyzer: Option<FileName>,
    /// Wait for every launch.
    pub launch_blocking: bool,
    /// Count calls by function.
    pub(crate) count_calls: bool,
    /// Stay out of the program.
    pub off: bool,
}

impl Default for ShimOptions {
    fn default() -> Self {
        Self {
            host_writes: true,
            host_accesses: false,
            host_in_place: true,
            host_sample: 64,
            ring_mib: 128,
            analyzer: None,
            launch_blocking: false,
            count_calls: false,
            off: false,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            error_exitcode: crate::exit_code::FINDINGS,
            judging: Judging::default(),
            reports: ReportFiles::default(),
            log_file: None,
            require_cuda: None,
            fail_fast: false,
            max_findings: 50,
            per_cause: 3,
            sim: false,
            sim_options: SimOptions::default(),
            inside: None,
            initcheck: false,
            soname: false,
            stacks: true,
            color: Color::Auto,
            output: None,
            segment_mib: 0,
            keep_last: None,
            fail_on: None,
            suppressions: Vec::new(),
            with: Vec::new(),
            gen_suppressions: None,
            baseline: None,
            write_baseline: None,
            snapshot: None,
            format: Format::Text,
            quiet: false,
            filters: Filters::default(),
            symbol_path: Vec::new(),
            library: Vec::new(),
            cache: None,
            config: None,
            torch_async: false,
            assumptions: Assumptions::default(),
            forbid: Vec::new(),
            exact: ExactOptions::default(),
            shim: ShimOptions::default(),
            not_utf8: None,
        }
    }
}

impl Options {
    /// Stores the value of an option.
    pub fn set(&mut self, id: Id, value: Value<'_>) {
        let on = value == Value::Flag(true);
        let (number, choice) = match value {
            Value::Number(number) => (number, 0),
            Value::Choice(choice) => (0, choice),
            _ => (0, 0),
        };
        let text = match value {
            Value::Text(text) => std::str::from_utf8(text).ok().map(str::to_owned),
            _ => None,
        };
        let name = match value {
            Value::Text(bytes) if options::find(id).is_path() => Some(FileName::of_bytes(bytes)),
            _ => None,
        };
        if matches!(value, Value::Text(_)) && name.is_none() && text.is_none() {
            self.not_utf8.get_or_insert(options::find(id).name);
        }
        match id {
            Id::Output => self.output = name,
            Id::SegmentMib => self.segment_mib = number,
            Id::KeepLast => {
                self.keep_last = match value {
                    Value::Amount(amount) => Some(amount),
                    _ => None,
                };
            }
            Id::Stacks => self.stacks = on,
            Id::Soname => self.soname = on,
            Id::HostWrites => self.shim.host_writes = on,
            Id::HostAccesses => self.shim.host_accesses = on,
            Id::HostInPlace => self.shim.host_in_place = on,
            Id::HostSample => self.shim.host_sample = number,
            Id::RingMib => self.shim.ring_mib = number,
            Id::Analyzer => self.shim.analyzer = name,
            Id::LaunchBlocking => self.shim.launch_blocking = on,
            Id::TorchAllocator => self.torch_async = choice == 1,
            Id::CountCalls => self.shim.count_calls = on,
            Id::Off => self.shim.off = on,
            Id::Cache => self.cache = name,
            Id::Config => self.config = name,
            Id::Sim => self.sim = on,
            Id::SimSchedule => {
                self.sim = true;
                self.sim_options.schedule = match options::find(id).kind {
                    Kind::Choice(words) => Some(words[choice]),
                    _ => None,
                };
            }
            Id::SimSeed => {
                self.sim = true;
                self.sim_options.seed = Some(number);
            }
            Id::SimPredict => {
                self.sim |= on;
                self.sim_options.predict = on;
            }
            Id::SimAddresses => {
                self.sim = true;
                self.sim_options.addresses = name;
            }
            Id::SimResults => {
                self.sim = true;
                self.sim_options.results = name;
            }
            Id::Inside => {
                self.inside = match value {
                    Value::Word(Word::On) => Some(String::new()),
                    Value::Word(Word::Named(word)) => Some(String::from_utf8_lossy(word).into_owned()),
                    _ => None,
                };
            }
            Id::Initcheck => self.initcheck = on,
            Id::Pedantic => self.judging.pedantic = on,
            Id::Policy => self.judging.policy = [Policy::Observed, Policy::Documented][choice],
            Id::Latent => self.judging.latent = on,
            Id::PageableCopies => self.judging.pageable_copies = on,
            Id::HostOrder => self.judging.host_threads = choice == 1,
            Id::Hints => self.judging.hints = on,
            Id::DefaultStream => self.assumptions.default_stream = Some(DefaultStream::ALL[choice]),
            Id::Without => self.assumptions.without.extend(text),
            Id::OnlyKernel => self.filters.only_kernel.extend(text),
            Id::IgnoreKernel => self.filters.ignore_kernel.extend(text),
            Id::OnlyStream => self.filters.only_stream.extend(text),
            Id::IgnoreStream => self.filters.ignore_stream.extend(text),
            Id::OnlyModule => self.filters.only_module.extend(text),
            Id::IgnoreModule => self.filters.ignore_module.extend(text),
            Id::SymbolPath => self.symbol_path.extend(name),
            Id::Library => self.library.extend(text),
            Id::ErrorExitcode => self.error_exitcode = number as i32,
            Id::FailOn => {
                let fail_on = [FailOn::Certain, FailOn::Likely, FailOn::Possible, FailOn::Latent][choice];
                // What is to fail the run has to be looked for and shown.
                self.judging.pedantic |= fail_on == FailOn::Possible;
                self.judging.latent |= fail_on == FailOn::Latent;
                self.fail_on = Some(fail_on);
            }
            Id::Suppressions => self.suppressions.extend(name),
            Id::Forbid => self.forbid.extend(text),
            Id::With => self.with.extend(name),
            Id::GenSuppressions => self.gen_suppressions = name,
            Id::Baseline => self.baseline = name,
            Id::WriteBaseline => self.write_baseline = name,
            Id::RequireCuda => self.require_cuda = Some(on),
            Id::FailFast => self.fail_fast = on,
            Id::Quiet => self.quiet = on,
            Id::Format => {
                self.format = [Format::Text, Format::Short, Format::Github, Format::Csan][choice];
            }
            Id::LogFile => self.log_file = name,
            Id::Json => self.reports.json = name,
            Id::Sarif => self.reports.sarif = name,
            Id::Html => self.reports.html = name,
            Id::Junit => self.reports.junit = name,
            Id::CodeQuality => self.reports.code_quality = name,
            Id::Markdown => self.reports.markdown = name,
            Id::Parquet => self.reports.parquet = name,
            Id::Snapshot => self.snapshot = name,
            Id::MaxFindings => self.max_findings = number,
            Id::PerCause => self.per_cause = number,
            Id::Color => self.color = [Color::Auto, Color::Always, Color::Never][choice],
            Id::Exact => {
                self.exact.kernels = match value {
                    Value::Word(Word::On) => Some(String::new()),
                    Value::Word(Word::Named(word)) => Some(String::from_utf8_lossy(word).into_owned()),
                    _ => None,
                };
            }
            Id::Confirm => (self.exact.confirm, self.exact.once) = (on, !on),
            Id::ExactShare => self.exact.share = Some(number),
            Id::Learned => self.exact.learned = name,
            Id::SanitizerLibrary => self.exact.library = name,
            Id::ExactPatch => self.exact.patch = name,
            Id::ExactCompare => self.exact.compare = name,
        }
    }

    /// Reads a value of `STREAMSAN_OPTIONS`. A wrong option does not hide those behind it; each is
    /// a line for the user.
    pub fn read_env(&mut self, text: &[u8]) -> Vec<String> {
        let mut wrong = Vec::new();
        for found in options::parse(text) {
            match found {
                Ok((id, value)) => self.set(id, value),
                Err(error) => wrong.push(refusal(&error)),
            }
        }
        wrong
    }

    /// What the shim is to be set to, of what the launcher passes on; `None` where that is done
    /// elsewhere (exact mode completes its paths first) or by the launcher itself.
    fn passed_on(&self, id: Id) -> Option<String> {
        let flag = |on: bool| Some(if on { "yes" } else { "no" }.to_owned());
        match id {
            Id::Stacks => flag(self.stacks),
            Id::HostWrites => flag(self.shim.host_writes),
            Id::HostAccesses => flag(self.shim.host_accesses),
            Id::HostInPlace => flag(self.shim.host_in_place),
            Id::HostSample => Some(self.shim.host_sample.to_string()),
            Id::RingMib => Some(self.shim.ring_mib.to_string()),
            Id::HostOrder => Some(if self.judging.host_threads { "threads" } else { "merged" }.to_owned()),
            Id::LaunchBlocking => flag(self.shim.launch_blocking),
            Id::CountCalls => flag(self.shim.count_calls),
            Id::Off => flag(self.shim.off),
            Id::Inside => Some(match self.inside.as_deref() {
                None => "no".to_owned(),
                Some("") => "yes".to_owned(),
                Some(kernels) => kernels.to_owned(),
            }),
            Id::Initcheck => flag(self.initcheck),
            Id::Hints => flag(self.judging.hints),
            Id::Exact => flag(self.exact.kernels.is_some()),
            Id::Confirm => flag(self.exact.confirm),
            _ => None,
        }
    }

    /// `STREAMSAN_OPTIONS` for the program: what the environment says, then what the configuration
    /// file and the command line changed of it, then `more`.
    pub fn for_shim(&self, environment: &[u8], more: Vec<Vec<u8>>) -> Vec<u8> {
        let mut there = Self::default();
        there.read_env(environment);
        let mut text = environment.to_vec();
        let mut add = |word: &[u8]| {
            if !text.is_empty() {
                text.push(b':');
            }
            text.extend_from_slice(word);
        };
        for row in ROWS.iter().filter(|row| row.reader.is_shim()) {
            if let Some(value) = self.passed_on(row.id).filter(|value| there.passed_on(row.id).as_ref() != Some(value))
            {
                add(format!("{}={value}", row.name).as_bytes());
            }
        }
        more.iter().for_each(|word| add(word));
        text
    }

    /// Whether the simulated GPU measures what kernels touch without being asked to.
    pub fn measures_by_itself(&self) -> bool {
        self.sim && !self.sim_options.predict && self.exact.kernels.is_none() && !self.exact.confirm
    }

    /// Whether the options go together. The error is a line for the user.
    pub fn consistent(&self) -> Result<(), String> {
        if let Some(name) = self.not_utf8 {
            return Err(format!("option '{name}' takes words in UTF-8 only: choose another"));
        }
        if self.judging.latent && self.judging.host_threads {
            return Err("--latent and --host-order threads exclude each other".to_owned());
        }
        if self.shim.off && self.require_cuda == Some(true) {
            return Err("--off and --require-cuda exclude each other: a run that is off checks nothing".to_owned());
        }
        // What a program starts inherits the simulated GPU, and the options.
        let simulated = || self.sim || std::env::var_os("STREAMSAN_SIM_STATUS").is_some();
        if self.initcheck && !simulated() {
            return Err("--initcheck needs the simulated GPU: add --sim".to_owned());
        }
        if let Some(kernels) = &self.inside {
            if !simulated() {
                return Err("--inside needs the simulated GPU: add --sim".to_owned());
            }
            if kernels.contains(':') {
                return Err(format!("--inside can not pass on '{kernels}': it contains a colon"));
            }
        }
        let segments = [("--segment-mib", self.segment_mib > 0), ("--keep-last", self.keep_last.is_some())];
        if let Some((option, _)) = segments.iter().find(|(_, given)| *given && self.output.is_none()) {
            return Err(format!("{option} needs '-o FOLDER' for the segments"));
        }
        match self.symbol_path.iter().find(|folder| !folder.is_dir()) {
            Some(folder) => Err(format!("--symbol-path: there is no folder '{folder}'")),
            None => Ok(()),
        }
    }
}

/// Why an option was refused, with the name that was perhaps meant.
pub fn refusal(error: &Error<'_>) -> String {
    match error {
        Error::Unknown(name) => format!("{error}{}", nearest::hint(&String::from_utf8_lossy(name))),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
