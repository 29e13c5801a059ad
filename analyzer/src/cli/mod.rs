//! The command line: which command, which options, which program.
//!
//! Owns the grammar, the help text and the way from the words to a command. Each command has a file
//! of its own with its arguments and what it does; options come from the table of the crate
//! `options`.
//!
//! Everything behind the program's name belongs to the program, whatever it looks like.

pub(crate) mod arguments;
mod attach_ring;
mod check;
mod common;
mod coverage;
mod diff;
mod doctor;
mod dump;
mod excess;
mod explain;
mod grammar;
mod hunt;
mod init;
mod memory;
mod outputs;
mod record;
mod run;
mod timeline;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use arguments::{Given, Takes, commands, config, error, lenient};
use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};
use grammar::{completions, man, version};

use settings::Options;
use settings::exit_code::{Ending, Reason};

const RUN: u16 = options::Command::Run as u16;

/// Finds data races between CUDA streams in programs that were not built for it.
#[derive(Parser, Debug)]
#[command(
    name = "streamsan",
    version,
    propagate_version = true,
    override_usage = "streamsan [run] [OPTIONS] [--] PROGRAM [ARGS]...\n       streamsan COMMAND [OPTIONS] ...",
    after_help = AFTER,
    term_width = 100,
    disable_help_subcommand = false,
    subcommand_value_name = "COMMAND",
)]
struct Cli {
    /// What to run under the checker, with its arguments
    #[arg(value_name = "PROGRAM", trailing_var_arg = true)]
    program: Vec<OsString>,
    #[command(flatten)]
    _options: Takes<RUN>,
    #[command(subcommand)]
    command: Option<Command>,
}

/// The commands, in the order of the help.
#[derive(clap::Subcommand, Debug)]
enum Command {
    Run(run::RunArgs),
    Hunt(hunt::HuntArgs),
    Record(record::RecordArgs),
    Check(check::CheckArgs),
    Fleet(check::fleet::FleetArgs),
    Diff(diff::DiffArgs),
    Excess(excess::ExcessArgs),
    Explain(explain::ExplainArgs),
    Timeline(timeline::TimelineArgs),
    Memory(memory::MemoryArgs),
    Dump(dump::DumpArgs),
    Coverage(coverage::CoverageArgs),
    Init(init::InitArgs),
    Doctor(doctor::DoctorArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    AttachRing(attach_ring::AttachRingArgs),
}

const AFTER: &str = "\
Options come before PROGRAM; what follows PROGRAM belongs to it. Behind '--' PROGRAM may have the
name of a command. 'streamsan help COMMAND' lists the options of a command.

FILE as '-' is standard output, for one file, where no program writes there. In names of files that
are written, %p is the process ID, %h the host, %q{VAR} an environment variable, %% a percent sign.

The same options can be given as STREAMSAN_OPTIONS=key=value:key=value, also to a program that is
started with LD_PRELOAD=libstreamsan.so and without this command, and in a file streamsan.toml in
the working directory or above. The file comes first, then the variable, then the command line.

Exit codes:
  the program's own when nothing is found; 66 with findings (see --error-exitcode); 2 for wrong
  usage; 70 when StreamSan itself failed or the simulated GPU could not run the program; 4 when no
  CUDA was used (see --require-cuda); 1 when a program of a hunt failed. A program that dies
  of a signal dies of it here.";

/// The grammar as help, man pages and completions show it.
fn shown() -> clap::Command {
    Cli::command()
}

/// The grammar that is parsed. Only what these words can reach is made in full: each start of the
/// tool pays for it.
fn parsed(args: &[OsString]) -> clap::Command {
    let asks = |word: &OsString| matches!(word.as_bytes(), b"-h" | b"--help" | b"help");
    let helps = args.iter().any(asks).then(shown);
    let text = |name: Option<&str>| {
        let mut command = helps.clone()?;
        command.build();
        let command = match name {
            Some(name) => command.find_subcommand_mut(name)?,
            None => &mut command,
        };
        Some(command.render_help())
    };
    let mut command = lenient(shown());
    if let Some(text) = text(None) {
        command = command.override_help(text);
    }
    command.mut_subcommands(|sub| {
        if !args.iter().any(|word| word.as_bytes() == sub.get_name().as_bytes()) {
            return sub;
        }
        let help = text(Some(sub.get_name()));
        let sub = lenient(sub);
        help.map_or(sub.clone(), |help| sub.override_help(help))
    })
}

/// A command line, understood.
struct Line {
    command: Command,
    /// What was given, in its order.
    given: Given,
}

/// What a command line comes to instead of a command.
enum Ended {
    /// A text for standard output.
    Print(String),
    /// A line for the user.
    Wrong(String),
}

fn parse(args: &[OsString]) -> Result<Line, Ended> {
    let command = parsed(args).no_binary_name(true);
    let matches = command.try_get_matches_from(args).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => Ended::Print(error.to_string()),
        ErrorKind::DisplayVersion => Ended::Print(version::of(args)),
        _ => Ended::Wrong(error::line(&error, name_of(args))),
    })?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| Ended::Wrong(error::line(&error, name_of(args))))?;
    let command = match cli.command {
        Some(command) => command,
        None if cli.program.is_empty() => {
            return Err(Ended::Wrong("streamsan needs a program to run; try 'streamsan --help'".to_owned()));
        }
        None => Command::Run(run::RunArgs::of(cli.program)),
    };
    let own = matches.subcommand().map_or_else(Given::default, |(_, words)| Given::of(words));
    let given = Given::of(&matches).then(own);
    Ok(Line { command, given })
}

/// The command that the words name, for messages.
fn name_of(args: &[OsString]) -> &'static str {
    let is = |word: &OsString| commands::NAMES.iter().find(|name| word.as_bytes() == name.as_bytes());
    args.iter().take_while(|word| *word != "--").find_map(is).copied().unwrap_or("streamsan")
}

impl Command {
    /// Its word, and the command of the table of options if it takes options.
    fn kind(&self) -> (&'static str, Option<options::Command>) {
        use options::Command as Of;
        let of = match self {
            Self::Run(_) => Of::Run,
            Self::Hunt(_) => Of::Hunt,
            Self::Record(_) => Of::Record,
            Self::Check(_) => Of::Check,
            Self::Diff(_) => Of::Diff,
            Self::Excess(_) => Of::Excess,
            Self::Explain(_) => Of::Explain,
            Self::Timeline(_) => Of::Timeline,
            Self::Memory(_) => Of::Memory,
            Self::Fleet(_) => return ("fleet", None),
            Self::Dump(_) => return ("dump", None),
            Self::Coverage(_) => return ("coverage", None),
            Self::Init(_) => return ("init", None),
            Self::Doctor(_) => return ("doctor", None),
            Self::Completions(_) => return ("completions", None),
            Self::Man(_) => return ("man", None),
            Self::AttachRing(_) => return ("attach-ring", None),
        };
        (of.name(), Some(of))
    }
}

/// All options of a command line: the file's, the environment's, its own. The error is a line for
/// the user.
fn resolve(line: &Line, environment: &[u8]) -> Result<Options, String> {
    let (name, of) = line.command.kind();
    let mut options = Options::default();
    if let Some(of) = of {
        let mut asked = Options::default();
        let wrong = asked.read_env(environment);
        if let Some(first) = wrong.first() {
            return Err(format!("in STREAMSAN_OPTIONS: {first}"));
        }
        let named = line.given.config().map(OsString::from).or_else(|| asked.config.as_ref().map(OsString::from));
        config::read(named.as_deref(), of, &mut options)?;
        options.read_env(environment);
    }
    line.given.apply(&mut options, name, of)?;
    options.consistent()?;
    Ok(options)
}

/// Does what the words say (without the name of the tool) and answers the exit code.
pub fn main(args: &[OsString]) -> i32 {
    let ending = perform(args);
    match ending.signal() {
        // So that the parent sees the same status as without the tool.
        Some(signal) => crate::launcher::process::die_of(signal),
        None => ending.code(),
    }
}

fn perform(args: &[OsString]) -> Ending {
    // The help on the help is the help.
    let args = match args {
        [help, more] if help == "help" && (more == "--help" || more == "-h") => &args[..1],
        args => args,
    };
    let line = match parse(args) {
        Ok(line) => line,
        Err(Ended::Print(text)) => return common::print(&text),
        Err(Ended::Wrong(error)) => return common::wrong(&error),
    };
    let environment = std::env::var_os("STREAMSAN_OPTIONS").unwrap_or_default();
    // The program runs already: what is wrong is named, the rest holds.
    if let Command::AttachRing(args) = &line.command {
        return attach_ring::main(args, environment.as_bytes());
    }
    // A program that runs here names its own files; a trace may be anybody's.
    if !matches!(line.command, Command::Run(_) | Command::Hunt(_) | Command::Record(_)) {
        system::local_files::named_by_traces();
    }
    let options = match resolve(&line, environment.as_bytes()) {
        Ok(options) => options,
        Err(error) => return common::wrong(&error),
    };
    match line.command {
        Command::Run(run) => run::main(run, args, environment.as_bytes(), options),
        Command::Hunt(args) => hunt::main(&args, options),
        Command::Record(record) => record::main(record, args, environment.as_bytes(), options),
        Command::Check(args) => check::main(&args, options),
        Command::Fleet(args) => check::fleet::main(&args),
        Command::Diff(args) => diff::main(&args, &options),
        Command::Excess(args) => excess::main(&args, options),
        Command::Explain(args) => explain::main(&args, &options),
        Command::Timeline(args) => timeline::main(&args, options),
        Command::Memory(args) => memory::main(&args, options),
        Command::Dump(args) => dump::main(&args),
        Command::Coverage(args) => coverage::main(&args),
        Command::Init(args) => init::main(&args),
        Command::Doctor(args) => doctor::main(&args),
        Command::Completions(args) => completions::main(&args, shown()),
        Command::Man(args) => man::main(&args, shown()),
        Command::AttachRing(_) => Reason::Failed.into(),
    }
}

#[cfg(test)]
mod tests;
