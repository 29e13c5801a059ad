//! The options: one table for the command line, for `STREAMSAN_OPTIONS` and for the help text.
//!
//! Owns names, types, defaults and help of all options. Which command takes which words besides options is the business
//! of `cli`.
//!
//! To add an option: one field of [`Options`] with its default, one row of [`TABLE`].

use order::Policy;
use std::fmt::Write as _;

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
    /// Whether `error_exitcode` was named by the user (under plain `LD_PRELOAD` only then it is used).
    pub error_exitcode_set: bool,
    /// Which synchronisations count.
    pub policy: Policy,
    /// Show pairs that only an unpromised synchronisation orders.
    pub latent: bool,
    /// Show all findings, weak ones too.
    pub pedantic: bool,
    /// Also say what is no race, but probably not meant.
    pub hints: bool,
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
    /// Give the shim the driver's SONAME.
    pub soname: bool,
    /// Record call stacks.
    pub stacks: bool,
    /// Colours.
    pub color: Color,
    /// Where `record` writes the trace.
    pub output: Option<String>,
    /// What the shim reads for itself (see its own `options`): known here so that the help names it and a wrong key is found.
    pub shim: ShimOptions,
}

/// Options that the shim inside the program acts on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShimOptions {
    /// Megabytes of the ring; 0 leaves it to the shim.
    pub ring_mib: u64,
    /// The analyzer to start under plain `LD_PRELOAD`.
    pub analyzer: Option<String>,
    /// Count calls by function.
    pub count_calls: bool,
    /// Stay out of the program.
    pub off: bool,
}

impl Default for ShimOptions {
    fn default() -> Self {
        Self { ring_mib: 32, analyzer: None, count_calls: false, off: false }
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
            json: None,
            log_file: None,
            require_cuda: false,
            max_findings: 50,
            sim: false,
            soname: false,
            stacks: true,
            color: Color::Auto,
            output: None,
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

/// All options.
pub const TABLE: &[Spec] = &[
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
        name: "json",
        letter: None,
        kind: Kind::File(|o| &mut o.json),
        default: "",
        help: "write findings, summary and coverage to FILE as JSON",
    },
    Spec {
        name: "log-file",
        letter: None,
        kind: Kind::File(|o| &mut o.log_file),
        default: "",
        help: "write the report to FILE instead of stderr",
    },
    Spec {
        name: "output",
        letter: Some('o'),
        kind: Kind::File(|o| &mut o.output),
        default: "",
        help: "write the trace to FILE (with 'run': as well)",
    },
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
        help: "also show pairs ordered by unpromised synchronisation only; they fail no run",
    },
    Spec {
        name: "hints",
        letter: None,
        kind: Kind::Flag(|o| &mut o.hints),
        default: "no",
        help: "also list what is no race, but probably not meant; hints fail no run",
    },
    Spec {
        name: "max-findings",
        letter: None,
        kind: Kind::Number { max: u32::MAX as u64, set: |o, n| o.max_findings = n },
        default: "50",
        help: "print this many findings in full; all are counted",
    },
    Spec {
        name: "require-cuda",
        letter: None,
        kind: Kind::Flag(|o| &mut o.require_cuda),
        default: "no",
        help: "fail with exit code 4 when the program makes no use of CUDA",
    },
    Spec {
        name: "sim",
        letter: None,
        kind: Kind::Flag(|o| &mut o.sim),
        default: "no",
        help: "run on the simulated GPU",
    },
    Spec {
        name: "stacks",
        letter: None,
        kind: Kind::Flag(|o| &mut o.stacks),
        default: "yes",
        help: "record call stacks; '--no-stacks' is faster, but reports name no lines",
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
    Spec {
        name: "soname",
        letter: None,
        kind: Kind::Flag(|o| &mut o.soname),
        default: "no",
        help: "load the shim under the driver's name, which libraries opened with RTLD_DEEPBIND need",
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
];

impl Options {
    /// Reads the value of `STREAMSAN_OPTIONS`: `key=value` pairs with colons between them; a key alone switches on.
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

    /// Reads one option of the command line. `word` begins with a dash; `next` is asked for the word behind it when the
    /// option needs one.
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
            TABLE
                .iter()
                .find(|s| s.letter.is_some_and(|l| spelled.strip_prefix('-').is_some_and(|n| n == l.to_string())))
        };
        let spec = spec.ok_or_else(|| unknown(spelled))?;
        let value = value.or_else(next).ok_or_else(|| OptionError::Missing(spelled.to_string()))?;
        self.store(spec, &value)
    }

    /// Sets a flag by its bare name, or clears it by `no-name`.
    fn switch(&mut self, name: &str) -> Option<()> {
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
            Kind::File(_) if value.is_empty() => return Err(OptionError::Missing(spec.name.into())),
            Kind::File(place) => *place(self) = Some(value.to_string()),
        }
        Ok(())
    }
}

fn find(name: &str) -> Option<&'static Spec> {
    TABLE.iter().find(|s| s.name == name)
}

fn unknown(spelled: &str) -> OptionError {
    let bare = spelled.trim_start_matches('-');
    let names = TABLE.iter().flat_map(|s| {
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
    for spec in TABLE {
        let value = match spec.kind {
            Kind::Flag(_) => String::new(),
            Kind::Number { .. } => " N".into(),
            Kind::Choice { words, .. } => format!(" {}", words.join("|")),
            Kind::File(_) => " FILE".into(),
        };
        let shown = match (&spec.kind, spec.default) {
            (Kind::Flag(_), "yes") => format!("--no-{}", spec.name),
            _ => format!("--{}{value}", spec.name),
        };
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
    text
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
        assert_eq!(say("--no-json", None), "unknown option '--no-json'; did you mean '--json'?");
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
        for spec in TABLE {
            assert!(help.contains(spec.name), "{}", spec.name);
            let lines: Vec<&str> = help.lines().filter(|l| l.len() > 118).collect();
            assert!(lines.is_empty(), "{lines:?}");
        }
        // The table's defaults are prose; they must be true.
        let mut o = Options::default();
        for spec in TABLE.iter().filter(|s| !s.default.is_empty()) {
            o.store(spec, spec.default).unwrap();
        }
        assert_eq!(Options { error_exitcode_set: false, ..o }, Options::default());
    }
}
