//! The configuration file: `streamsan.toml`, found from the working directory upwards.
//!
//! Owns its search and its shape. Keys are the names of options; a table with the name of a command
//! holds what is meant for that command only. The file comes first, `STREAMSAN_OPTIONS` overrides
//! it, the command line overrides both. Names of files are relative to the file that names them.
//!
//! ```toml
//! suppressions = ["races.supp"]
//! stacks = true
//!
//! [check]
//! fail-on = "certain"
//! ```
//!
//! A key outside of the tables may be one that the command does not take, for the file serves all
//! commands. A file of another user is not read unbidden: it could name programs to start.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use options::{Command, Error, Id, Kind, Row};
use toml::de::DeTable;
use toml::{Table, Value};

use settings::{Options, refusal};

/// The name that is looked for.
pub(crate) const NAME: &str = "streamsan.toml";

/// Reads the file that is named, or the one that is found, unless that is switched off. Answers
/// which one it was. The error is a line for the user.
pub(crate) fn read(named: Option<&OsStr>, command: Command, to: &mut Options) -> Result<Option<PathBuf>, String> {
    let path = match named {
        Some(word) if word == "off" => return Ok(None),
        Some(word) if word.is_empty() => return Err("option '--config' needs a value".to_owned()),
        Some(path) => regular(PathBuf::from(path))?,
        None => match std::env::current_dir().ok().and_then(|folder| find(&folder)) {
            Some(path) => regular(trusted(path)?)?,
            None => return Ok(None),
        },
    };
    let shown = path.display();
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}"))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    apply(&text, folder, command, to).map_err(|error| format!("{shown}: {error}"))?;
    Ok(Some(path))
}

/// The nearest file from this folder upwards. A link that leads to nothing counts: it was meant.
fn find(folder: &Path) -> Option<PathBuf> {
    folder.ancestors().map(|folder| folder.join(NAME)).find(|path| std::fs::symlink_metadata(path).is_ok())
}

/// Refuses anything but a regular file: a pipe would be waited for, and passing the file over would
/// drop its settings.
fn regular(path: PathBuf) -> Result<PathBuf, String> {
    match std::fs::metadata(&path) {
        Ok(meta) if meta.is_file() => Ok(path),
        Ok(_) => Err(format!("{} is no regular file: pass it over with '--config off'", path.display())),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Refuses a file of another user.
fn trusted(path: PathBuf) -> Result<PathBuf, String> {
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    // A link of another user may lead to a file of this one's.
    let owners = [std::fs::symlink_metadata(&path), std::fs::metadata(&path)];
    let is_anothers = |meta: &std::fs::Metadata| meta.uid() != user && meta.uid() != 0;
    match owners.into_iter().flatten().any(|meta| is_anothers(&meta)) {
        true => Err(format!(
            "{0} belongs to another user: name it with '--config {0}', or pass it over with '--config off'",
            path.display()
        )),
        false => Ok(path),
    }
}

/// Where the keys are, for messages.
struct Lines<'t> {
    text: &'t str,
    keys: DeTable<'t>,
}

impl Lines<'_> {
    /// A mistake in the value of a key, or in a table of this name.
    fn at(&self, table: Option<&str>, key: &str, error: &str) -> String {
        let keys = match table {
            None => Some(&self.keys),
            Some(name) => self.keys.get(name).and_then(|table| table.get_ref().as_table()),
        };
        match keys.and_then(|keys| keys.get_key_value(key)) {
            Some((key, _)) => format!("line {}: {error}", line(self.text, key.span().start)),
            None => error.to_owned(),
        }
    }
}

/// The number of the line that this byte is in.
fn line(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

fn apply(text: &str, folder: &Path, command: Command, to: &mut Options) -> Result<(), String> {
    let mistake = |error: toml::de::Error| {
        let line = error.span().map_or(1, |span| line(text, span.start));
        format!("line {line}: {}", error.message().lines().next().unwrap_or_default())
    };
    let file: Table = text.parse().map_err(mistake)?;
    let lines = Lines { text, keys: DeTable::parse(text).map_err(mistake)?.into_inner() };
    let (tables, keys): (Vec<_>, Vec<_>) = file.iter().partition(|(_, value)| value.is_table());
    for (name, value) in keys {
        row(name).and_then(|row| set(row, value, folder, to)).map_err(|error| lines.at(None, name, &error))?;
    }
    let mut own = None;
    for (name, value) in tables {
        let Some(of) = Command::ALL.into_iter().find(|c| c.name() == name) else {
            let names: Vec<&str> = Command::ALL.iter().map(|c| c.name()).collect();
            let error = format!("there is no table [{name}]; there are {}", names.join(", "));
            return Err(lines.at(None, name, &error));
        };
        // Mistakes in the tables of other commands are named too.
        let mut aside = Options::default();
        for (key, value) in value.as_table().into_iter().flatten() {
            let mut tried = || {
                let row = row(key)?;
                super::takes(row, &format!("[{name}]"), Some(of))?;
                set(row, value, folder, &mut aside)
            };
            tried().map_err(|error| lines.at(Some(name), key, &error))?;
        }
        own = if of == command { value.as_table() } else { own };
    }
    for (key, value) in own.into_iter().flatten() {
        set(row(key)?, value, folder, to)?;
    }
    Ok(())
}

fn row(name: &str) -> Result<&'static Row, String> {
    let row = options::named(name.as_bytes()).ok_or_else(|| match super::commands::with(&format!("--{name}")) {
        Some(_) => format!("'{name}' belongs on the command line"),
        None => refusal(&Error::Unknown(name.as_bytes())),
    })?;
    match row.id {
        Id::Config => Err("'config' belongs on the command line".to_owned()),
        Id::Analyzer => super::takes(row, "this file", None).map(|()| row),
        _ => Ok(row),
    }
}

fn set(row: &'static Row, value: &Value, folder: &Path, to: &mut Options) -> Result<(), String> {
    let text = match value {
        Value::Boolean(on) if row.is_switch() => on.to_string().into(),
        Value::Integer(number) if matches!(row.kind, Kind::Number { .. }) => number.to_string().into(),
        Value::String(text) if !matches!(row.kind, Kind::Flag | Kind::Number { .. }) => placed(row, text, folder),
        Value::Array(list) if matches!(row.kind, Kind::Patterns | Kind::Rules(_) | Kind::Files | Kind::Folders) => {
            return list.iter().try_for_each(|value| match value {
                Value::String(_) => set(row, value, folder, to),
                other => Err(wrong(row, other)),
            });
        }
        other => return Err(wrong(row, other)),
    };
    let value = row.value(text.as_bytes()).map_err(|error| refusal(&error))?;
    to.set(row.id, value);
    Ok(())
}

fn wrong(row: &Row, value: &Value) -> String {
    let expected = match row.kind {
        Kind::Flag => "true or false".to_owned(),
        Kind::Number { min, max } => format!("a number from {min} to {max}"),
        Kind::Choice(words) => words.join(" or "),
        Kind::Patterns | Kind::Rules(_) | Kind::Files | Kind::Folders => "a string or a list of strings".to_owned(),
        Kind::Word(_) => "true, false or a string".to_owned(),
        Kind::File | Kind::PathOrOff(_) | Kind::Amount(_) => "a string".to_owned(),
    };
    format!("option '{}' takes {expected}, not {value}", row.name)
}

/// A name of a file, relative to the configuration file; what is no such name stays.
fn placed(row: &Row, text: &str, folder: &Path) -> OsString {
    let is_path = match row.kind {
        Kind::File | Kind::Files | Kind::Folders => text != system::output::STANDARD,
        Kind::PathOrOff(_) => text != "off",
        _ => false,
    };
    if !is_path || text.is_empty() {
        return text.into();
    }
    folder.join(text).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, command: Command) -> Result<Options, String> {
        let mut options = Options::default();
        apply(text, Path::new("/conf"), command, &mut options).map(|()| options)
    }

    #[test]
    fn keys_are_options_and_tables_are_commands() {
        let text = "stacks = false\nring-mib = 8\nsuppressions = ['a', '/b']\nexact = 'sort'\njson = '-'\n\
            [check]\nfail-on = 'certain'\n[run]\nexact = false\ncache = 'off'\n";
        let run = read(text, Command::Run).expect("right");
        assert_eq!((run.stacks, run.shim.ring_mib, run.fail_on), (false, 8, None));
        assert_eq!((run.exact.kernels.as_deref(), run.cache), (None, Some("off".into())));
        assert_eq!((run.suppressions, run.reports.json), (vec!["/conf/a".into(), "/b".into()], Some("-".into())));
        let check = read(text, Command::Check).expect("right");
        assert_eq!(check.fail_on.map(|f| f.name()), Some("certain"));
        assert_eq!(check.exact.kernels.as_deref(), Some("sort"));
    }

    #[test]
    fn mistakes_are_named_in_one_line() {
        for (text, error) in [
            ("jsn = 'x'", "unknown option 'jsn'; did you mean 'json'?"),
            ("stacks = 'no'", "option 'stacks' takes true or false, not \"no\""),
            ("ring-mib = 0", "option 'ring-mib' takes a number from 1 to 4096, not '0'"),
            ("policy = 'strict'", "option 'policy' takes observed or documented, not 'strict'"),
            ("suppressions = [1]", "option 'suppressions' takes a string or a list of strings, not 1"),
            ("config = 'x'", "'config' belongs on the command line"),
            ("[hunt]\njobs = 2", "'jobs' belongs on the command line"),
            (
                "[chek]",
                "there is no table [chek]; there are run, hunt, record, check, diff, excess, explain, timeline, memory",
            ),
            ("[check]\nsim = true", "[check] does not take '--sim'; run, hunt and record do"),
            ("[memory]\nsnapshot = 1", "option 'snapshot' takes a string, not 1"),
        ] {
            let own = 1 + text.bytes().filter(|byte| *byte == b'\n').count();
            for before in ["", "\n\n", "# a\r\nquiet = true\n", "library = [\n'a',\n'b']\n", "json = \"größe\"\n"] {
                let at = own + before.bytes().filter(|byte| *byte == b'\n').count();
                let said = read(&format!("{before}{text}"), Command::Run).err();
                assert_eq!(said, Some(format!("line {at}: {error}")), "{before}{text}");
            }
        }
        let error = read("stacks = true\nquiet = = 1", Command::Run).expect_err("no TOML");
        assert!(error.starts_with("line 2: ") && error.lines().count() == 1, "{error}");
        assert!(read("analyzer = 'x'", Command::Run).expect_err("refused").contains("STREAMSAN_OPTIONS"));
    }
}
