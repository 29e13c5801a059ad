//! Names of the files that a run writes: what stands for what in them.
//!
//! Owns the placeholders, which mean what they mean in Valgrind, and the checks that a file can be
//! written and that no output overwrites another.

use settings::Options;
use std::ffi::{CString, OsStr, OsString};
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use system::file_name::{self, FileName};
use system::output::{STANDARD, host};
use system::same_file::same_file;

/// Replaces `%p` by the process id, `%h` by the host, `%q{VAR}` by a variable of the environment
/// and `%%` by a percent sign. The error is a line for the user.
pub(crate) fn expand(
    name: &FileName,
    pid: u32,
    variable: impl Fn(&OsStr) -> Option<OsString>,
) -> Result<FileName, String> {
    let mut out = Vec::new();
    let mut rest = name.bytes();
    while let Some(at) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..at]);
        let after = &rest[at + 1..];
        rest = after.get(1..).unwrap_or_default();
        match after.first() {
            Some(b'%') => out.push(b'%'),
            Some(b'p') => out.extend_from_slice(pid.to_string().as_bytes()),
            Some(b'h') => out.extend_from_slice(host().as_bytes()),
            Some(b'q') => {
                let inner = rest.strip_prefix(b"{");
                let Some((inner, end)) = inner.and_then(|text| Some((text, memchr::memchr(b'}', text)?))) else {
                    return Err(format!("in '{name}': '%q' needs a variable: '%q{{NAME}}'"));
                };
                let key = OsStr::from_bytes(&inner[..end]);
                let value = variable(key)
                    .ok_or_else(|| format!("in '{name}': the environment has no '{}'", file_name::shown(key)))?;
                out.extend_from_slice(value.as_bytes());
                rest = &inner[end + 1..];
            }
            _ => {
                let other = after.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
                let other = other.map_or_else(String::new, String::from);
                return Err(format!("in '{name}': '%{other}' is none of %p, %h, %q{{VAR}}, %%"));
            }
        }
    }
    out.extend_from_slice(rest);
    Ok(FileName::of_bytes(&out))
}

/// Whose standard output is ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StandardOutput {
    /// The command's own.
    Free,
    /// The program under test writes there.
    Program,
    /// Nothing reads it: the analyzer of a program that was started without the command.
    Closed,
}

/// Expands the names of all files that the options say to write, and refuses those that would be
/// lost: two outputs in one file, an output in a file of `inputs`, a file on a standard output that
/// is not ours. The error is a line for the user.
pub(crate) fn expand_all(
    options: &mut Options,
    pid: u32,
    out: StandardOutput,
    inputs: &[FileName],
) -> Result<(), String> {
    let mut named: Vec<(&'static str, FileName)> = Vec::new();
    for (option, name) in files(options) {
        let Some(name) = name else { continue };
        if option == PARQUET && !cfg!(feature = "parquet") {
            return Err(format!("{PARQUET}: this build has no Parquet writer: use scripts/build --dist, or a package"));
        }
        *name = expand(name, pid, |key| std::env::var_os(key))?;
        named.push((option, name.clone()));
    }
    let mut standard = None;
    for (index, (option, name)) in named.iter().enumerate() {
        if name.is(STANDARD) {
            dash(option, out, standard.replace(*option))?;
            continue;
        }
        if let Some((other, _)) = named[..index].iter().find(|(_, other)| same_file(other, name)) {
            return Err(format!("{other} and {option} both name {name}: name two files"));
        }
        if inputs.iter().any(|input| same_file(input, name)) {
            return Err(format!("{option} would overwrite {name}, which the command reads"));
        }
    }
    Ok(())
}

/// Whether this option can write to standard output, which `before` writes to already.
fn dash(option: &'static str, out: StandardOutput, before: Option<&str>) -> Result<(), String> {
    let unreadable = matches!(option, PARQUET | "--snapshot");
    let refused = |why: &str| Err(format!("{option} can not go to standard output ('-'){why}: name a file"));
    match (before, out) {
        (Some(before), _) => {
            Err(format!("{before} and {option} can not both go to standard output ('-'): name a file"))
        }
        // Written by the program under test, which has its own standard output.
        (None, _) if matches!(option, "--sim-addresses" | "--sim-results") => refused(""),
        (None, _) if option == TRACE && out != StandardOutput::Free => {
            Err("a trace can not go to standard output ('-'): name a file".to_owned())
        }
        (None, StandardOutput::Program) => refused(", where the program writes"),
        (None, StandardOutput::Closed) => refused(" of a program that was started without this command"),
        (None, StandardOutput::Free) if unreadable && std::io::stdout().is_terminal() => {
            Err(format!("{option} is nothing to read, and standard output ('-') is a terminal: name a file"))
        }
        (None, StandardOutput::Free) => Ok(()),
    }
}

/// All files that a run writes besides the trace. The error says which can not be written; it comes
/// before the program runs, not after an hour.
pub(crate) fn check_writable(options: &mut Options) -> Result<(), String> {
    for (_, name) in files(options).into_iter().filter(|(option, _)| *option != TRACE) {
        let Some(path) = name.filter(|name| !name.is(STANDARD)) else { continue };
        let is_pipe = std::fs::metadata(&*path).is_ok_and(|meta| meta.file_type().is_fifo());
        let tried = match is_pipe {
            // Its reader would take the closing for the end of the report.
            true => may_write(path),
            false => std::fs::OpenOptions::new().append(true).create(true).open(&*path).map(drop),
        };
        tried.map_err(|error| format!("{path} can not be written: {error}"))?;
    }
    Ok(())
}

/// Whether this user may write to an existing file, found out without opening it.
fn may_write(path: &Path) -> std::io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: a C string.
    match unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, libc::AT_EACCESS) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// The option that names the Parquet file.
const PARQUET: &str = "--parquet";
/// The option that names the trace.
const TRACE: &str = "--output";

/// The files that a run writes, each with the option that names it.
fn files(o: &mut Options) -> Vec<(&'static str, Option<&mut FileName>)> {
    let log = [("--log-file", o.log_file.as_mut())];
    let others = [
        ("--gen-suppressions", o.gen_suppressions.as_mut()),
        ("--write-baseline", o.write_baseline.as_mut()),
        ("--snapshot", o.snapshot.as_mut()),
        ("--exact-compare", o.exact.compare.as_mut()),
        (TRACE, o.output.as_mut()),
        ("--sim-addresses", o.sim_options.addresses.as_mut()),
        ("--sim-results", o.sim_options.results.as_mut()),
    ];
    log.into_iter().chain(o.reports.all_mut()).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use settings::report_files::ReportFiles;
    use std::os::unix::ffi::OsStringExt;

    fn named(json: &str, sarif: &str, out: StandardOutput, inputs: &[&str]) -> Result<(), String> {
        let (json, sarif) = (Some(json.into()), Some(sarif.into()));
        let inputs: Vec<FileName> = inputs.iter().map(FileName::from).collect();
        let reports = ReportFiles { json, sarif, ..ReportFiles::default() };
        expand_all(&mut Options { reports, ..Options::default() }, 42, out, &inputs)
    }

    #[test]
    fn one_of_them_can_go_to_standard_output() {
        let free = |json, sarif| named(json, sarif, StandardOutput::Free, &[]);
        assert_eq!(free("-", "a.sarif"), Ok(()));
        assert_eq!(free("./-", "-"), Ok(()));
        let both = "--json and --sarif can not both go to standard output ('-'): name a file";
        assert_eq!(free("-", "-"), Err(both.to_owned()));
        let taken = "--json can not go to standard output ('-'), where the program writes: name a file";
        assert_eq!(named("-", "a.sarif", StandardOutput::Program, &[]), Err(taken.to_owned()));
        assert!(named("-", "a.sarif", StandardOutput::Closed, &[]).is_err());
    }

    #[test]
    fn no_output_overwrites_another() {
        let free = |json, sarif| named(json, sarif, StandardOutput::Free, &[]);
        let both = |name: &str| Err(format!("--json and --sarif both name {name}: name two files"));
        assert_eq!(free("/nosuch/r", "/nosuch/r"), both("/nosuch/r"));
        assert_eq!(free("r.%p", "r.42"), both("r.42"));
        assert_eq!(free("./r", "r"), both("r"));
        assert_eq!(free("r.json", "r.sarif"), Ok(()));
        assert_eq!(free("/dev/null", "/dev/null"), Ok(()));
        let read = named("./t", "r", StandardOutput::Free, &["t"]);
        assert_eq!(read, Err("--json would overwrite ./t, which the command reads".to_owned()));
    }

    #[test]
    fn placeholders() {
        let e = |name: &str| {
            let made = expand(&name.into(), 42, |key| (key == "RANK").then(|| OsString::from_vec(b"7\xff".into())));
            made.map(|name| name.bytes().to_vec())
        };
        assert_eq!(e("a.%p.%q{RANK}.%%.json").unwrap(), b"a.42.7\xff.%.json");
        assert_eq!(e("plain").unwrap(), b"plain");
        assert_eq!(e("%h").unwrap(), host().as_bytes());
        assert!(e("%q{NONE}").unwrap_err().contains("no 'NONE'"));
        assert!(e("%q").unwrap_err().contains("%q{NAME}"));
        assert!(e("%x").unwrap_err().contains("'%x' is none of"));
        assert!(e("50%").unwrap_err().contains("'%' is none of"));
    }
}
