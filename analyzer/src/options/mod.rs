//! The options: one table for the command line, for `STREAMSAN_OPTIONS` and for the help text.
//!
//! Owns names, types, defaults and help of all options. Which command takes which words besides
//! options is the business of `cli`.
//!
//! To add an option: one field of [`Options`] with its default, one row of [`table`].

pub mod table;

use crate::gate::filter::Filters;
use order::Policy;
use std::fmt::Write as _;

/// The weakest finding that fails a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum FailOn {
    /// Only certain ones.
    Certain,
    /// Certain and likely ones.
    #[default]
    Likely,
    /// All that are not latent.
    Possible,
    /// Certain and likely ones, latent ones too (with `--pedantic`: all).
    Latent,
}

impl FailOn {
    /// The word of the option.
    pub fn name(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Likely => "likely",
            Self::Possible => "possible",
            Self::Latent => "latent",
        }
    }
}

/// How the report on stderr, or in `--log-file`, is written. Files of other formats have an option
/// each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// For people; under GitHub Actions followed by annotations.
    Text,
    /// GitHub's annotations, coverage and summary.
    Github,
    /// As PyTorch's CUDA Sanitizer words it.
    Csan,
}

/// When to colour text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What the user asked for.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// Exit code when there are findings; 0 keeps the program's own.
    pub error_exitcode: i32,
    /// Whether `error_exitcode` was named by the user (under plain `LD_PRELOAD` only then it is
    /// used).
    pub error_exitcode_set: bool,
    /// Which synchronisations count.
    pub policy: Policy,
    /// Show pairs that only an unpromised synchronisation orders.
    pub latent: bool,
    /// Show all findings, weak ones too.
    pub pedantic: bool,
    /// Also say what is no race, but probably not meant.
    pub hints: bool,
    /// Give host threads timelines of their own.
    pub host_threads: bool,
    /// Where to write the JSON report.
    pub json: Option<String>,
    /// Where to write the text report instead of stderr.
    pub log_file: Option<String>,
    /// Fail when the program makes no use of CUDA.
    pub require_cuda: bool,
    /// Findings that are printed in full.
    pub max_findings: u64,
    /// Use the simulated GPU.
    pub sim: bool,
    /// What the simulated GPU is told.
    pub sim_options: SimOptions,
    /// Give the shim the driver's SONAME.
    pub soname: bool,
    /// Record call stacks.
    pub stacks: bool,
    /// Colours.
    pub color: Color,
    /// Where `record` writes the trace.
    pub output: Option<String>,
    /// The weakest finding that fails the run; by default `likely`, with `pedantic` `possible`.
    pub fail_on: Option<FailOn>,
    /// Suppression files.
    pub suppressions: Vec<String>,
    /// Where to write suppressions for what fails this run.
    pub gen_suppressions: Option<String>,
    /// The baseline: what is in it fails no run.
    pub baseline: Option<String>,
    /// Where to write the baseline of this run.
    pub write_baseline: Option<String>,
    /// Where to write SARIF.
    pub sarif: Option<String>,
    /// Where to write the page.
    pub html: Option<String>,
    /// Where to write JUnit XML.
    pub junit: Option<String>,
    /// Where to write the findings as Parquet.
    pub parquet: Option<String>,
    /// Where `memory` writes a snapshot for PyTorch's viewer.
    pub snapshot: Option<String>,
    /// How the report is written.
    pub format: Format,
    /// Which findings are wanted.
    pub filters: Filters,
    /// Folders with debug information.
    pub symbol_path: Vec<String>,
    /// Where summaries of kernels are kept (the last word counts); `off`: nowhere.
    pub cache: Vec<String>,
    /// Whether PyTorch is to use CUDA's stream-ordered allocator.
    pub torch_async: bool,
    /// Exact mode.
    pub exact: ExactOptions,
    /// What the shim reads for itself (see its own `options`): known here so that the help names it
    /// and a wrong key is found.
    pub shim: ShimOptions,
}

/// Options of the simulated GPU. Each of them implies `sim`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SimOptions {
    /// How ready work is picked.
    pub schedule: Option<&'static str>,
    /// Chooses among random schedules.
    pub seed: Option<u64>,
    /// Where to list the bytes that each launch touches.
    pub addresses: Option<String>,
    /// Where to list digests of what the program computed.
    pub results: Option<String>,
}

/// Exact mode: what kernels really touch, told by NVIDIA's Sanitizer API.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ExactOptions {
    /// Which kernels, by mangled name; empty: all. `None`: no exact mode.
    pub kernels: Option<String>,
    /// NVIDIA's library.
    pub library: Option<String>,
    /// The code that is patched in.
    pub patch: Option<String>,
    /// Measure kernels of findings that are not certain.
    pub confirm: bool,
    /// Ranges that earlier runs have measured, and where this run's are added.
    pub learned: Option<String>,
    /// Where to write what the summaries said of each launch, and what it really touched.
    pub compare: Option<String>,
}

/// Options that the shim inside the program acts on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShimOptions {
    /// Look for writes of the host to memory that pending copies read.
    pub host_writes: bool,
    /// Protect the pages that pending copies use.
    pub host_accesses: bool,
    /// Kibibytes of a copy's source that are always compared in full.
    pub host_sample: u64,
    /// Megabytes of the ring; 0 leaves it to the shim.
    pub ring_mib: u64,
    /// The analyzer to start under plain `LD_PRELOAD`.
    pub analyzer: Option<String>,
    /// Wait for every launch.
    pub launch_blocking: bool,
    /// Count calls by function.
    pub count_calls: bool,
    /// Stay out of the program.
    pub off: bool,
}

impl Default for ShimOptions {
    fn default() -> Self {
        Self {
            host_writes: true,
            host_accesses: false,
            host_sample: 64,
            ring_mib: 32,
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
            error_exitcode_set: false,
            policy: Policy::Observed,
            latent: false,
            pedantic: false,
            hints: false,
            host_threads: false,
            json: None,
            log_file: None,
            require_cuda: false,
            max_findings: 50,
            sim: false,
            sim_options: SimOptions::default(),
            soname: false,
            stacks: true,
            color: Color::Auto,
            output: None,
            fail_on: None,
            suppressions: Vec::new(),
            gen_suppressions: None,
            baseline: None,
            write_baseline: None,
            sarif: None,
            html: None,
            junit: None,
            parquet: None,
            snapshot: None,
            format: Format::Text,
            filters: Filters::default(),
            symbol_path: Vec::new(),
            cache: Vec::new(),
            torch_async: false,
            exact: ExactOptions::default(),
            shim: ShimOptions::default(),
        }
    }
}

/// Why an option was refused. The text is complete: one line, ready for stderr.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OptionError {
    /// No option has this name.
    #[error("unknown option '{name}'{}", nearest.as_ref().map_or_else(String::new, |n| format!("; did you mean '{n}'?")))]
    Unknown {
        /// As it was written.
        name: String,
        /// The option it looks most like.
        nearest: Option<String>,
    },
    /// The option needs a value.
    #[error("option '{0}' needs a value")]
    Missing(String),
    /// The value is none that the option takes.
    #[error("option '{name}' takes {expected}, not '{value}'")]
    Value {
        /// The option.
        name: String,
        /// What was given.
        value: String,
        /// What it takes.
        expected: String,
    },
}

/// The type of an option, with the place it is stored.
#[derive(Clone, Copy)]
pub enum Kind {
    /// On or off.
    Flag(fn(&mut Options) -> &mut bool),
    /// A number from 0 to `max`.
    Number {
        /// The highest value.
        max: u64,
        /// Stores it.
        set: fn(&mut Options, u64),
    },
    /// One of some words.
    Choice {
        /// The words.
        words: &'static [&'static str],
        /// Stores the word of this index.
        set: fn(&mut Options, usize),
    },
    /// A file name.
    File(fn(&mut Options) -> &mut Option<String>),
    /// Words that may be given several times, and what the help calls one.
    List(&'static str, fn(&mut Options) -> &mut Vec<String>),
    /// On with a word or without one, or off.
    Word(fn(&mut Options) -> &mut Option<String>),
}

/// One row of the table.
pub struct Spec {
    /// The name, without dashes.
    pub name: &'static str,
    /// A letter for the command line.
    pub letter: Option<char>,
    /// Its type.
    pub kind: Kind,
    /// The default, as shown by the help.
    pub default: &'static str,
    /// What it does, in a line or two.
    pub help: &'static str,
}

impl Options {
    /// Reads the value of `STREAMSAN_OPTIONS`: `key=value` pairs with colons between them; a key
    /// alone switches on.
    pub fn read_env(&mut self, text: &str) -> Result<(), OptionError> {
        for part in text.split(':').filter(|p| !p.is_empty()) {
            let (name, value) = part.split_once('=').map_or((part, None), |(n, v)| (n, Some(v)));
            let name = name.trim().trim_start_matches("--").replace('_', "-");
            match value {
                None => self.switch(&name).ok_or_else(|| {
                    if find(&name).is_some() { OptionError::Missing(name.clone()) } else { unknown(part) }
                })?,
                Some(value) => {
                    let spec = find(&name).ok_or_else(|| unknown(&name))?;
                    self.store(spec, value)?;
                }
            }
        }
        Ok(())
    }

    /// Reads one option of the command line. `word` begins with a dash; `next` is asked for the
    /// word behind it when the option needs one.
    pub fn read_word(&mut self, word: &str, next: impl FnOnce() -> Option<String>) -> Result<(), OptionError> {
        let (spelled, value) = match word.split_once('=') {
            Some((name, value)) if word.starts_with("--") => (name, Some(value.to_string())),
            _ => (word, None),
        };
        let spec = if let Some(name) = spelled.strip_prefix("--") {
            if value.is_none() && self.switch(name).is_some() {
                return Ok(());
            }
            find(name)
        } else {
            table::all()
                .find(|s| s.letter.is_some_and(|l| spelled.strip_prefix('-').is_some_and(|n| n == l.to_string())))
        };
        let spec = spec.ok_or_else(|| unknown(spelled))?;
        let value = value.or_else(next).ok_or_else(|| OptionError::Missing(spelled.to_string()))?;
        self.store(spec, &value)
    }

    /// Sets a flag by its bare name, or clears it by `no-name`.
    fn switch(&mut self, name: &str) -> Option<()> {
        if let Some(spec) = find(name.strip_prefix("no-").unwrap_or(name))
            && let Kind::Word(place) = spec.kind
        {
            *place(self) = (!name.starts_with("no-")).then(String::new);
            return Some(());
        }
        let flag = |name: &str| {
            find(name).and_then(|s| match s.kind {
                Kind::Flag(place) => Some(place),
                _ => None,
            })
        };
        if let Some(place) = flag(name) {
            *place(self) = true;
        } else {
            *flag(name.strip_prefix("no-")?)?(self) = false;
        }
        Some(())
    }

    fn store(&mut self, spec: &Spec, value: &str) -> Result<(), OptionError> {
        let wrong = |expected: String| OptionError::Value { name: spec.name.into(), value: value.into(), expected };
        match spec.kind {
            Kind::Flag(place) => {
                *place(self) = match value {
                    "1" | "yes" | "true" | "on" => true,
                    "0" | "no" | "false" | "off" => false,
                    _ => return Err(wrong("yes or no".into())),
                }
            }
            Kind::Number { max, set } => match value.parse::<u64>() {
                Ok(n) if n <= max => set(self, n),
                _ => return Err(wrong(format!("a number from 0 to {max}"))),
            },
            Kind::Choice { words, set } => match words.iter().position(|w| *w == value) {
                Some(i) => set(self, i),
                None => return Err(wrong(words.join(" or "))),
            },
            Kind::File(_) | Kind::List(..) if value.is_empty() => return Err(OptionError::Missing(spec.name.into())),
            Kind::Word(place) => {
                *place(self) = match value {
                    "0" | "no" | "false" | "off" => None,
                    "1" | "yes" | "true" | "on" => Some(String::new()),
                    word => Some(word.to_string()),
                }
            }
            Kind::File(_) if value.is_empty() => return Err(OptionError::Missing(spec.name.into())),
            Kind::File(place) => *place(self) = Some(value.to_string()),
            Kind::List(_, place) => place(self).push(value.to_string()),
        }
        Ok(())
    }
}

fn find(name: &str) -> Option<&'static Spec> {
    table::all().find(|s| s.name == name)
}

fn unknown(spelled: &str) -> OptionError {
    let bare = spelled.trim_start_matches('-');
    let names = table::all().flat_map(|s| {
        let negated = matches!(s.kind, Kind::Flag(_)).then(|| format!("no-{}", s.name));
        [Some(s.name.to_string()), negated].into_iter().flatten()
    });
    let nearest = nearest(bare, names.chain(["help".into(), "version".into()]));
    let dashes = if spelled.starts_with('-') { "--" } else { "" };
    OptionError::Unknown { name: spelled.to_string(), nearest: nearest.map(|n| format!("{dashes}{n}")) }
}

/// The word that differs least from `word`, if it is near enough to be meant.
pub fn nearest(word: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let limit = (word.len() / 3).max(1) + 1;
    let ranked = names.map(|n| (distance(word, &n), n)).min_by_key(|(d, _)| *d)?;
    (ranked.0 <= limit && ranked.0 < ranked.1.len()).then_some(ranked.1)
}

/// Edits between two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let kept = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = kept.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

/// The options part of the help text.
pub fn help() -> String {
    let mut text = String::new();
    for (title, rows) in table::GROUPS {
        let _ = writeln!(text, "{title}:");
        for spec in *rows {
            help_of(spec, &mut text);
        }
    }
    text
}

/// Name and value of an option, as the help writes them: `--json FILE`.
pub fn shown(spec: &Spec) -> String {
    let value = match spec.kind {
        Kind::Flag(_) => String::new(),
        Kind::Number { .. } => " N".into(),
        Kind::Choice { words, .. } => format!(" {}", words.join("|")),
        Kind::File(_) => " FILE".into(),
        Kind::List(what, _) => format!(" {what}"),
        Kind::Word(_) => "[=KERNEL]".into(),
    };
    match (&spec.kind, spec.default) {
        (Kind::Flag(_), "yes") => format!("--no-{}", spec.name),
        _ => format!("--{}{value}", spec.name),
    }
}

fn help_of(spec: &Spec, text: &mut String) {
    let shown = shown(spec);
    let shown = spec.letter.map_or_else(|| format!("    {shown}"), |l| format!("-{l}, {shown}"));
    let default = match (&spec.kind, spec.default) {
        (Kind::Flag(_), _) | (_, "") => String::new(),
        (_, default) => format!(" [default: {default}]"),
    };
    let line = format!("{}{default}", spec.help);
    if shown.len() <= 26 {
        let _ = writeln!(text, "  {shown:<26}  {line}");
    } else {
        let _ = writeln!(text, "  {shown}\n  {:<26}  {line}", "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(word: &str, next: Option<&str>) -> Result<Options, OptionError> {
        let mut options = Options::default();
        options.read_word(word, || next.map(String::from)).map(|()| options)
    }

    #[test]
    fn both_spellings_of_a_value() {
        assert_eq!(word("--error-exitcode=7", None).unwrap().error_exitcode, 7);
        assert_eq!(word("--error-exitcode", Some("7")).unwrap().error_exitcode, 7);
        assert_eq!(word("-o", Some("x")).unwrap().output.as_deref(), Some("x"));
    }

    #[test]
    fn flags_take_no_word() {
        assert!(word("--pedantic", Some("prog")).unwrap().pedantic);
        assert!(!word("--no-stacks", None).unwrap().stacks);
        assert!(!word("--stacks=no", None).unwrap().stacks);
        assert_eq!(word("--exact", Some("prog")).unwrap().exact.kernels.as_deref(), Some(""));
        assert_eq!(word("--exact=sort", Some("prog")).unwrap().exact.kernels.as_deref(), Some("sort"));
        assert_eq!(word("--no-exact", None).unwrap().exact.kernels, None);
    }

    #[test]
    fn mistakes_are_named() {
        let say = |w: &str, n| word(w, n).unwrap_err().to_string();
        assert_eq!(say("--pedantik", None), "unknown option '--pedantik'; did you mean '--pedantic'?");
        assert_eq!(say("--no-stack", None), "unknown option '--no-stack'; did you mean '--no-stacks'?");
        assert_eq!(say("--zzzzzzzz", None), "unknown option '--zzzzzzzz'");
        assert_eq!(say("-x", None), "unknown option '-x'");
        assert_eq!(say("--json", None), "option '--json' needs a value");
        assert_eq!(say("--json=", None), "option 'json' needs a value");
        assert_eq!(say("--policy", Some("strict")), "option 'policy' takes observed or documented, not 'strict'");
        assert_eq!(
            say("--error-exitcode=256", None),
            "option 'error-exitcode' takes a number from 0 to 255, not '256'"
        );
        assert_eq!(say("--jsno", None), "unknown option '--jsno'; did you mean '--json'?");
    }

    #[test]
    fn environment_has_the_same_options() {
        let mut o = Options::default();
        o.read_env("error-exitcode=0:pedantic=1:json=/tmp/x.json:no-stacks::policy=documented").unwrap();
        assert_eq!((o.error_exitcode, o.error_exitcode_set, o.pedantic, o.stacks), (0, true, true, false));
        assert_eq!(o.policy, Policy::Documented);
        assert!(o.read_env("jsn=x").unwrap_err().to_string().contains("did you mean 'json'?"));
        assert_eq!(o.read_env("json").unwrap_err(), OptionError::Missing("json".into()));
    }

    #[test]
    fn help_names_every_option_and_its_default() {
        let help = help();
        for spec in table::all() {
            assert!(help.contains(spec.name), "{}", spec.name);
            let lines: Vec<&str> = help.lines().filter(|l| l.len() > 118).collect();
            assert!(lines.is_empty(), "{lines:?}");
        }
        // The table's defaults are prose; they must be true.
        let mut o = Options::default();
        for spec in table::all().filter(|s| !s.default.is_empty()) {
            o.store(spec, spec.default).unwrap();
        }
        assert_eq!(Options { error_exitcode_set: false, ..o }, Options::default());
    }
}
