//! clap's errors in one line each.
//!
//! Owns the wording of what is wrong with a command line. Scripts read one line that begins with
//! `streamsan: `, so clap's own pages are not printed.

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

use settings::nearest;

/// The line, without `streamsan: ` before it. `command`: the name of the command, or of the tool.
pub(crate) fn line(error: &Error, command: &str) -> String {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(list)) => list.join(" "),
        _ => String::new(),
    };
    let argument = text(ContextKind::InvalidArg);
    // `--json <FILE>` is named without what it takes.
    let name = argument.split([' ', '=', '[']).next().unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument if argument.starts_with('-') => match super::commands::with(&argument) {
            None => format!("unknown option '{argument}'{}", nearest::hint(&argument)),
            Some(names) => format!("{command} does not take '{argument}'; {names}"),
        },
        ErrorKind::UnknownArgument => format!("{command} does not take '{argument}'"),
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand);
            let near = super::commands::meant(&word);
            let near = near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
            format!("there is no command '{word}'{near}")
        }
        ErrorKind::InvalidValue | ErrorKind::NoEquals | ErrorKind::TooFewValues | ErrorKind::WrongNumberOfValues
            if text(ContextKind::InvalidValue).is_empty() =>
        {
            format!("option '{name}' needs a value")
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let valid = text(ContextKind::ValidValue).replace(' ', ", ");
            let valid = match std::error::Error::source(error) {
                _ if !valid.is_empty() => format!("; there are {valid}"),
                // What the parser of the value said.
                Some(why) => format!(": {}", reason(&why.to_string())),
                None => String::new(),
            };
            let name = name.trim_matches(['<', '>']);
            format!("'{}' is no value of '{name}'{valid}", text(ContextKind::InvalidValue))
        }
        ErrorKind::TooManyValues => format!("option '{name}' takes no value"),
        ErrorKind::MissingRequiredArgument => {
            let missing = argument.replace(['<', '>'], "");
            format!("{command} needs {missing}; try 'streamsan help {command}'")
        }
        // The first line of clap's own text says it.
        _ => error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned(),
    }
}

/// What is wrong with a value, in our words where they are not clap's own parser's.
fn reason(why: &str) -> String {
    let is_no_number = ["invalid digit", "cannot parse integer", "number too"].iter().any(|text| why.starts_with(text));
    match why.split_once(" is not in ").and_then(|(_, range)| range.split_once("..=")) {
        _ if is_no_number => "a whole number is wanted".to_owned(),
        Some((least, most)) => format!("a number from {least} to {most} is wanted"),
        None => why.to_owned(),
    }
}
