//! The options of the table as arguments of clap.
//!
//! Owns how a row becomes an argument ([`Takes`]), what was given of it ([`Given`]), the wider
//! grammar that the parser accepts ([`lenient`]), and the order in which options from several
//! places are applied. Which options there are is the table's, what a value means is the crate
//! `options`'.
//!
//! Help, man page and completions show the arguments as [`Takes`] declares them: a switch has one
//! name, a command has only what it takes. The parser accepts more, so that `--stacks=no`,
//! `--no-sim` and an option of another command are understood before they are refused.

pub(crate) mod as_json;
pub(crate) mod commands;
pub(crate) mod config;
pub(crate) mod error;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, FromArgMatches, ValueHint};
use options::{Command, Kind, ROWS, Row};

use settings::{Options, refusal};

/// An option as it was written.
#[derive(Clone, Debug, PartialEq)]
enum Written {
    On,
    Off,
    Value(OsString),
}

/// Declares the options that a command takes: the parameter. What was given is read by
/// [`Given::of`], as the parser accepts more.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Takes<const COMMAND: u16>;

/// Options of a command line, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Given(Vec<(&'static Row, Written)>);

impl Given {
    /// Those behind the word of one command, or before it.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let mut found: Vec<(usize, &'static Row, Written)> = Vec::new();
        for row in ROWS {
            // Only the wider grammar has these; an argument of the command's own has another id.
            let values = matches.try_get_raw(&id(row)).ok().flatten().into_iter().flatten();
            let places = || matches.try_contains_id(&id(row)).unwrap_or(false).then(|| matches.indices_of(&id(row)));
            for (place, value) in places().flatten().into_iter().flatten().zip(values) {
                let written = if value == ABSENT { Written::On } else { Written::Value(value.to_owned()) };
                found.push((place, row, written));
            }
            if matches.try_contains_id(&no(row)).unwrap_or(false) {
                let places = matches.indices_of(&no(row)).into_iter().flatten();
                found.extend(places.map(|place| (place, row, Written::Off)));
            }
        }
        found.sort_by_key(|(place, ..)| *place);
        Self(found.into_iter().map(|(_, row, written)| (row, written)).collect())
    }

    /// These, then those.
    pub(crate) fn then(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    /// Stores them. `command`: its name and, if it takes options, the command. The error is a line
    /// for the user.
    pub(crate) fn apply(&self, to: &mut Options, name: &str, command: Option<Command>) -> Result<(), String> {
        for (row, written) in &self.0 {
            takes(row, name, command)?;
            let value = match written {
                Written::On => row.bare(true),
                Written::Off => row.bare(false),
                Written::Value(text) => row.value(text.as_bytes()),
            };
            to.set(row.id, value.map_err(|error| refusal(&error))?);
        }
        Ok(())
    }

    /// The file that `--config` names.
    pub(crate) fn config(&self) -> Option<&OsStr> {
        let is_config = |(row, _): &&(&Row, Written)| row.id == options::Id::Config;
        self.0.iter().rfind(is_config).and_then(|(_, written)| match written {
            Written::Value(text) => Some(text.as_os_str()),
            _ => None,
        })
    }
}

/// Whether a command takes an option; otherwise a line for the user that names those that do.
pub(crate) fn takes(row: &Row, name: &str, command: Option<Command>) -> Result<(), String> {
    if command.is_some_and(|command| row.commands.has(command)) {
        return Ok(());
    }
    let names: Vec<&str> = row.commands.iter().map(Command::name).collect();
    // As the help writes it.
    let option = if row.default == "yes" { format!("no-{}", row.name) } else { row.name.to_owned() };
    Err(match names[..] {
        [] => format!(
            "'--{0}' belongs in STREAMSAN_OPTIONS ({0}=VALUE), for programs that are started with LD_PRELOAD alone",
            row.name
        ),
        [only] => format!("{name} does not take '--{option}'; {only} does"),
        [ref others @ .., last] => {
            let value = if matches!(row.kind, Kind::File | Kind::Files) { "file" } else { "value" };
            let switches = match row.switch_of {
                [] => String::new(),
                [only] => format!("; {only} takes it without a {value}"),
                [others @ .., last] => format!("; {} and {last} take it without a {value}", others.join(", ")),
            };
            format!("{name} does not take '--{option}'; {} and {last} do{switches}", others.join(", "))
        }
    })
}

impl<const COMMAND: u16> clap::Args for Takes<COMMAND> {
    fn augment_args(command: clap::Command) -> clap::Command {
        let takes = |row: &&Row| Command::ALL.iter().any(|c| *c as u16 & COMMAND != 0 && row.commands.has(*c));
        command.args(ROWS.iter().filter(takes).map(declared))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<const COMMAND: u16> FromArgMatches for Takes<COMMAND> {
    fn from_arg_matches(_matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self)
    }

    fn update_from_arg_matches(&mut self, _matches: &ArgMatches) -> Result<(), clap::Error> {
        Ok(())
    }
}

/// Stands for the value of an option that was written without one.
const ABSENT: &str = "\u{1}";

fn id(row: &Row) -> String {
    format!("option-{}", row.name)
}

fn no(row: &Row) -> String {
    format!("option-no-{}", row.name)
}

/// How the help writes the value of an option.
fn value_name(kind: Kind) -> Option<String> {
    Some(match kind {
        Kind::Flag => return None,
        Kind::Number { .. } => "N".to_owned(),
        Kind::Choice(words) => words.join("|"),
        Kind::File | Kind::Files => "FILE".to_owned(),
        Kind::Folders => "FOLDER".to_owned(),
        Kind::Patterns => "PATTERN".to_owned(),
        Kind::Rules(_) => "RULE".to_owned(),
        Kind::PathOrOff(name) | Kind::Word(name) | Kind::Amount(name) => name.to_owned(),
    })
}

/// A row as the help, the man page and the completions show it.
fn declared(row: &'static Row) -> Arg {
    let default = match (row.kind, row.default) {
        (Kind::Flag, _) | (_, "") => String::new(),
        (_, default) => format!(" [default: {default}]"),
    };
    let help = format!("{}{default}", row.help);
    if row.kind == Kind::Flag {
        let (id, name) =
            if row.default == "yes" { (no(row), format!("no-{}", row.name)) } else { (id(row), row.name.to_owned()) };
        return Arg::new(id).long(name).help(help).help_heading(row.group.title()).action(ArgAction::SetTrue);
    }
    let arg = taking(row).help(help).help_heading(row.group.title()).hide_possible_values(true);
    match row.kind {
        Kind::Choice(words) => arg.value_parser(PossibleValuesParser::new(words)),
        Kind::File | Kind::Files | Kind::PathOrOff(_) => arg.value_hint(ValueHint::AnyPath),
        Kind::Folders => arg.value_hint(ValueHint::DirPath),
        _ => arg,
    }
}

/// An option with a value, if only at times.
fn taking(row: &'static Row) -> Arg {
    let arg = Arg::new(id(row)).long(row.name).action(ArgAction::Append).value_parser(clap::value_parser!(OsString));
    let arg = row.letter.map_or(arg.clone(), |letter| arg.short(letter));
    let arg = value_name(row.kind).map_or(arg.clone(), |name| arg.value_name(name));
    if row.is_switch() {
        return arg.num_args(0..=1).require_equals(true).default_missing_value(ABSENT);
    }
    arg
}

/// The grammar that the parser accepts: every option may be repeated (the last one holds), switches
/// take a value behind `=`, all negations are there, and so are the options of other commands,
/// which [`Given::apply`] refuses by name.
pub(crate) fn lenient(command: clap::Command) -> clap::Command {
    let own: Vec<String> = command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect();
    let command = command.mut_args(|arg| {
        let row = ROWS.iter().find(|row| arg.get_id().as_str() == id(row));
        row.map_or(arg, |row| taking(row).hide(true))
    });
    let mut more = Vec::new();
    for row in ROWS {
        // A command may have an argument of its own by this name.
        if !own.iter().any(|name| name == row.name) {
            more.push(taking(row).hide(true));
        }
        if row.is_switch() && !own.contains(&format!("no-{}", row.name)) {
            let name = format!("no-{}", row.name);
            more.push(Arg::new(no(row)).long(name).hide(true));
        }
    }
    command.args(more).mut_args(|arg| match ROWS.iter().find(|row| arg.get_id().as_str() == no(row)) {
        Some(_) => arg.action(ArgAction::Append).num_args(0).default_missing_value(ABSENT),
        None => arg,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use options::Id;

    fn given(words: &str) -> Result<Given, clap::Error> {
        type Run = Takes<{ Command::Run as u16 }>;
        let command = lenient(<Run as clap::Args>::augment_args(clap::Command::new("run"))).no_binary_name(true);
        Ok(Given::of(&command.try_get_matches_from(words.split_whitespace())?))
    }

    fn options(words: &str) -> Options {
        let mut options = Options::default();
        given(words).expect("words").apply(&mut options, "run", Some(Command::Run)).expect("options");
        options
    }

    fn refused(words: &str, name: &str, command: Option<Command>) -> String {
        given(words).expect("words").apply(&mut Options::default(), name, command).expect_err("refused")
    }

    #[test]
    fn both_spellings_of_a_value() {
        assert_eq!(options("--error-exitcode=7").error_exitcode, 7);
        assert_eq!(options("--error-exitcode 7").error_exitcode, 7);
        assert_eq!(options("-o x").output, Some("x".into()));
        assert_eq!(options("--json -").reports.json, Some("-".into()));
    }

    #[test]
    fn switches_and_their_negations_in_any_order() {
        assert!(options("--pedantic").judging.pedantic);
        assert!(!options("--pedantic --no-pedantic").judging.pedantic);
        assert!(options("--no-pedantic --pedantic").judging.pedantic);
        assert!(!options("--no-stacks").stacks && !options("--stacks=no").stacks);
        assert!(options("--no-stacks --stacks").stacks);
        assert_eq!(options("--exact").exact.kernels.as_deref(), Some(""));
        assert_eq!(options("--exact=sort").exact.kernels.as_deref(), Some("sort"));
        assert_eq!(options("--exact=off").exact.kernels, None);
        assert_eq!(options("--exact --no-exact").exact.kernels, None);
    }

    #[test]
    fn the_last_value_holds_and_lists_grow() {
        assert_eq!(options("--ring-mib 4 --ring-mib 8").shim.ring_mib, 8);
        assert_eq!(options("--suppressions a --suppressions b").suppressions, ["a".into(), "b".into()]);
    }

    #[test]
    fn an_option_of_another_command_is_refused_with_that_command() {
        let check = Some(Command::Check);
        assert_eq!(refused("--sim", "check", check), "check does not take '--sim'; run, hunt and record do");
        assert_eq!(
            refused("--no-stacks", "check", check),
            "check does not take '--no-stacks'; run, hunt and record do"
        );
        assert_eq!(refused("--snapshot x", "run", Some(Command::Run)), "run does not take '--snapshot'; memory does");
        assert_eq!(refused("--output x", "dump", None), "dump does not take '--output'; run, record and timeline do");
        assert!(refused("--analyzer x", "run", Some(Command::Run)).contains("STREAMSAN_OPTIONS (analyzer=VALUE)"));
        let wrong = refused("--ring-mib=0", "run", Some(Command::Run));
        assert_eq!(wrong, "option 'ring-mib' takes a number from 1 to 4096, not '0'");
        assert_eq!(refused("--json=", "run", Some(Command::Run)), "option 'json' needs a value");
    }

    #[test]
    fn every_command_declares_what_it_takes() {
        let check = <Takes<{ Command::Check as u16 }> as clap::Args>::augment_args(clap::Command::new("check"));
        let names: Vec<&str> = check.get_arguments().filter_map(Arg::get_long).collect();
        assert!(names.contains(&"junit") && !names.contains(&"sim") && !names.contains(&"no-stacks"), "{names:?}");
        assert_eq!(options::find(Id::Json).commands.iter().count(), 5);
    }
}
