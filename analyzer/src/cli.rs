//! The command line: which command, which options, which program.
//!
//! Owns the grammar and the help text. Options come from the one table in `options`. Does nothing:
//! `main` acts on the [`Command`].
//!
//! Everything behind the program's name belongs to the program, whatever it looks like.

use crate::options::{OptionError, Options, help as options_help, nearest};

/// What to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// Run a program and check it.
    Run {
        /// Program and arguments, at least one.
        program: Vec<String>,
    },
    /// Run a program and write a trace.
    Record {
        /// Program and arguments, at least one.
        program: Vec<String>,
    },
    /// Analyse traces.
    Check {
        /// Trace files, at least one.
        files: Vec<String>,
    },
    /// Show what is known of the kernels of a trace or of a code file.
    Explain {
        /// A trace, or a file with code.
        file: String,
        /// Only kernels whose name contains this.
        kernel: Option<String>,
    },
    /// Print the ops of a trace.
    Dump {
        /// A trace.
        file: String,
    },
    /// Draw the ops of a trace for a viewer.
    Timeline {
        /// A trace.
        file: String,
    },
    /// Tell the allocations of a trace.
    Memory {
        /// A trace.
        file: String,
    },
    /// List which functions of the driver are modelled, and which a trace has.
    Coverage {
        /// A trace.
        file: Option<String>,
    },
    /// Print the help text.
    Help,
    /// Print the version.
    Version,
}

/// A whole command line, understood.
#[derive(Clone, PartialEq, Debug)]
pub struct CommandLine {
    /// What to do.
    pub command: Command,
    /// How. `STREAMSAN_OPTIONS` comes first, the command line overrides it.
    pub options: Options,
}

/// Why a command line was refused. The text is one line, ready for stderr.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UsageError {
    /// An option is wrong.
    #[error("{0}")]
    Option(#[from] OptionError),
    /// An option in the environment is wrong.
    #[error("in STREAMSAN_OPTIONS: {0}")]
    Environment(OptionError),
    /// A word is missing.
    #[error("{command} needs {what}")]
    Missing {
        /// The command.
        command: &'static str,
        /// What it needs.
        what: &'static str,
    },
    /// Two options exclude each other.
    #[error("{0} and {1} exclude each other")]
    Together(&'static str, &'static str),
    /// A word too many.
    #[error("{command} does not take '{word}'")]
    Extra {
        /// The command.
        command: &'static str,
        /// The word.
        word: String,
    },
}

const COMMANDS: [&str; 8] = ["run", "record", "check", "explain", "dump", "timeline", "memory", "coverage"];

/// Understands a command line (without the name of the tool) and the value of `STREAMSAN_OPTIONS`.
pub fn parse(args: &[String], environment: Option<&str>) -> Result<CommandLine, UsageError> {
    let mut options = Options::default();
    if let Some(text) = environment {
        options.read_env(text).map_err(UsageError::Environment)?;
    }
    let mut words = args.iter().peekable();
    let mut name = "run";
    if let Some(first) = words.peek().and_then(|w| COMMANDS.iter().find(|c| **c == w.as_str())) {
        name = first;
        words.next();
    }
    let takes_program = matches!(name, "run" | "record");
    let mut rest: Vec<String> = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--" => {
                rest.extend(words.by_ref().cloned());
                break;
            }
            "--help" | "-h" => return Ok(CommandLine { command: Command::Help, options }),
            "--version" | "-V" => return Ok(CommandLine { command: Command::Version, options }),
            option if option.len() > 1 && option.starts_with('-') => {
                options.read_word(option, || words.next().cloned())?;
            }
            _ => {
                rest.push(word.clone());
                if takes_program {
                    rest.extend(words.by_ref().cloned());
                    break;
                }
            }
        }
    }
    if options.latent && options.host_threads {
        return Err(UsageError::Together("--latent", "--host-order threads"));
    }
    let missing = |command, what| UsageError::Missing { command, what };
    let command = match name {
        "record" if rest.is_empty() => return Err(missing("record", "a program to run")),
        "record" if options.output.is_none() => return Err(missing("record", "'-o FILE' for the trace")),
        "record" => Command::Record { program: rest },
        "check" if rest.is_empty() => return Err(missing("check", "at least one trace file")),
        "check" => Command::Check { files: rest },
        "explain" => {
            let mut rest = rest.into_iter();
            let file = rest.next().ok_or_else(|| missing("explain", "a trace or a file with code"))?;
            let kernel = rest.next();
            no_more("explain", rest)?;
            Command::Explain { file, kernel }
        }
        "coverage" => {
            let mut rest = rest.into_iter();
            let file = rest.next();
            no_more("coverage", rest)?;
            Command::Coverage { file }
        }
        "dump" => {
            let mut rest = rest.into_iter();
            let file = rest.next().ok_or_else(|| missing("dump", "a trace file"))?;
            no_more("dump", rest)?;
            Command::Dump { file }
        }
        "timeline" if options.output.is_none() => return Err(missing("timeline", "'-o FILE' for the picture")),
        "timeline" => {
            let mut rest = rest.into_iter();
            let file = rest.next().ok_or_else(|| missing("timeline", "a trace file"))?;
            no_more("timeline", rest)?;
            Command::Timeline { file }
        }
        "memory" => {
            let mut rest = rest.into_iter();
            let file = rest.next().ok_or_else(|| missing("memory", "a trace file"))?;
            no_more("memory", rest)?;
            Command::Memory { file }
        }
        _ if rest.is_empty() => return Err(missing("streamsan", "a program to run; try 'streamsan --help'")),
        _ => Command::Run { program: rest },
    };
    Ok(CommandLine { command, options })
}

fn no_more(command: &'static str, mut rest: impl Iterator<Item = String>) -> Result<(), UsageError> {
    rest.next().map_or(Ok(()), |word| Err(UsageError::Extra { command, word }))
}

/// The command that a word was perhaps meant to be, for a program that was not found.
pub fn meant(word: &str) -> Option<String> {
    nearest(word, COMMANDS.iter().map(|c| c.to_string()))
}

/// The help text.
pub fn help() -> String {
    format!(
        "\
StreamSan finds data races between CUDA streams in programs that nobody rebuilt.

Usage:
  streamsan [run] [OPTIONS] [--] PROGRAM [ARGS...]    check a program while it runs
  streamsan record -o FILE [OPTIONS] [--] PROGRAM [ARGS...]
                                                      write a trace, check it later
  streamsan check [OPTIONS] FILE...                   check traces, or folders of them (one for each rank, say)
  streamsan timeline FILE -o OUT.json                 draw a trace for Perfetto: streams as tracks, in logical time
  streamsan memory [--json FILE] [--snapshot FILE] FILE
                                                      tell the allocations of a trace: peak, who held it, leaks
  streamsan explain [--json] FILE [KERNEL]            show what kernels touch, as far as it is known
  streamsan dump FILE                                 print the ops of a trace
  streamsan coverage [TRACE]                          list what is modelled of CUDA, and what a trace has of it

Options (options come before PROGRAM; what follows it belongs to the program):
{}  -h, --help                  print this text
  -V, --version               print the version

FILE as '-' is standard output, for one of the files that are written. In names of such files %p is the process id, %h
the host, %q{{VAR}} a variable of the environment.

The same options can be given as STREAMSAN_OPTIONS=key=value:key=value, also to a program that is started with
LD_PRELOAD=libstreamsan.so and without this command.

Exit codes:
  the program's own when nothing is found; {} with findings (see --error-exitcode); {} for wrong usage; {} when
  StreamSan itself failed or the simulated GPU could not run the program; {} with --require-cuda when no CUDA was used.
  A program that dies of a signal dies of it here.
",
        options_help(),
        crate::exit_code::FINDINGS,
        crate::exit_code::USAGE,
        crate::exit_code::INTERNAL,
        crate::exit_code::NO_CUDA,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<CommandLine, UsageError> {
        let args: Vec<String> = text.split_whitespace().map(String::from).collect();
        parse(&args, None)
    }

    fn program(text: &str) -> Vec<String> {
        match line(text).unwrap().command {
            Command::Run { program } | Command::Record { program } => program,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn words_behind_the_program_are_its_own() {
        assert_eq!(program("./app --pedantic -- x"), ["./app", "--pedantic", "--", "x"]);
        assert!(!line("./app --pedantic").unwrap().options.pedantic);
        assert!(line("--pedantic ./app").unwrap().options.pedantic);
        assert_eq!(program("run -- run record"), ["run", "record"]);
        assert_eq!(program("record -o t -- -x"), ["-x"]);
        assert_eq!(program("--json r.json ./app --json y"), ["./app", "--json", "y"]);
    }

    #[test]
    fn commands_with_files_take_options_anywhere() {
        let c = line("check a.trace --pedantic b.trace").unwrap();
        assert_eq!(c.command, Command::Check { files: vec!["a.trace".into(), "b.trace".into()] });
        assert!(c.options.pedantic);
        assert_eq!(line("coverage").unwrap().command, Command::Coverage { file: None });
        assert_eq!(line("coverage t").unwrap().command, Command::Coverage { file: Some("t".into()) });
        let c = line("explain t saxpy").unwrap().command;
        assert_eq!(c, Command::Explain { file: "t".into(), kernel: Some("saxpy".into()) });
    }

    #[test]
    fn what_is_missing_is_said() {
        let say = |t: &str| line(t).unwrap_err().to_string();
        assert_eq!(say("record ./app"), "record needs '-o FILE' for the trace");
        assert_eq!(say("check"), "check needs at least one trace file");
        assert_eq!(say("dump a b"), "dump does not take 'b'");
        assert_eq!(say("coverage a b"), "coverage does not take 'b'");
        let both = "--latent --host-order threads ./a";
        assert_eq!(say(both), "--latent and --host-order threads exclude each other");
        assert_eq!(say(""), "streamsan needs a program to run; try 'streamsan --help'");
        assert_eq!(say("--pedntic ./app"), "unknown option '--pedntic'; did you mean '--pedantic'?");
        assert_eq!(meant("chek").as_deref(), Some("check"));
    }

    #[test]
    fn the_command_line_overrides_the_environment() {
        let args = ["--error-exitcode=3".to_string(), "./a".to_string()];
        let c = parse(&args, Some("error-exitcode=9:sim=1")).unwrap();
        assert_eq!((c.options.error_exitcode, c.options.sim), (3, true));
        let e = parse(&args, Some("bogus=1")).unwrap_err().to_string();
        assert_eq!(e, "in STREAMSAN_OPTIONS: unknown option 'bogus'");
    }

    #[test]
    fn help_fits_a_terminal() {
        let help = help();
        assert!(help.lines().all(|l| l.len() <= 120), "{help}");
        assert!(help.contains("--error-exitcode N"));
    }
}
