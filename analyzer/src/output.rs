//! Names of the files that a run writes: what stands for what in them.
//!
//! Owns the placeholders, which mean what they mean in Valgrind, standard output, and the checks
//! that a file can be written and that no output overwrites another.

use crate::file_name::{self, FileName};
use crate::options::Options;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write};
use std::os::fd::FromRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The name of this machine.
pub fn host() -> String {
    let mut name = [0_u8; 256];
    // SAFETY: the buffer has room for its length; the last byte stays 0.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

/// Replaces `%p` by the process id, `%h` by the host, `%q{VAR}` by a variable of the environment
/// and `%%` by a percent sign. The error is a line for the user.
pub fn expand(name: &FileName, pid: u32, variable: impl Fn(&OsStr) -> Option<OsString>) -> Result<FileName, String> {
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

/// The name that stands for standard output, as it does elsewhere. A file of that name is `./-`.
pub const STANDARD: &str = "-";

/// Writes a file, or to standard output. A regular file is replaced as a whole: a process that is
/// killed meanwhile leaves the old one.
pub fn write(name: &FileName, bytes: &[u8]) -> std::io::Result<()> {
    if !name.is(STANDARD) {
        return match replaceable(name).and_then(|file| replace(&file, bytes)) {
            Some(()) => Ok(()),
            None => std::fs::write(name, bytes),
        };
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        // A reader that has seen enough (head) closes the pipe: no error of ours.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// The file behind a name that another file may take the place of: a regular one of this user with
/// this name only, which is not reached through a descriptor and is no stream of this process.
pub fn replaceable(name: &Path) -> Option<PathBuf> {
    // `/dev/stdout` leads through `/proc` to a file that somebody else writes on.
    let mut place = std::path::absolute(name).ok()?;
    for _ in 0..LINKS {
        if is_special(&place) {
            return None;
        }
        let Ok(next) = std::fs::read_link(&place) else { break };
        place = place.parent()?.join(next);
    }
    let file = place.canonicalize().ok()?;
    let meta = std::fs::symlink_metadata(&file).ok()?;
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    let is_plain = meta.is_file() && meta.nlink() == 1 && meta.uid() == user;
    let is_stream = (0..3).any(|fd| {
        // SAFETY: all-zero is a valid stat to be filled; a closed descriptor is an error.
        let (filled, stat) = unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            (libc::fstat(fd, &raw mut stat) == 0, stat)
        };
        filled && (stat.st_dev, stat.st_ino) == (meta.dev(), meta.ino())
    });
    (is_plain && !is_stream && !is_special(&file)).then_some(file)
}

/// Whether a path leads to devices or descriptors.
fn is_special(path: &Path) -> bool {
    path.starts_with("/proc") || path.starts_with("/dev") && !path.starts_with("/dev/shm")
}

/// Links that are followed, as the kernel does.
const LINKS: usize = 40;

/// Puts a new file into the place of another one, with its mode. `None`: that can not be done, and
/// the old one is as it was.
fn replace(file: &Path, bytes: &[u8]) -> Option<()> {
    let mode = std::fs::metadata(file).ok()?.mode() & 0o7777;
    let mut template = file.parent()?.join(".streamsan-XXXXXX").into_os_string().into_vec();
    template.push(0);
    // SAFETY: template is a writable C string that ends in six X; the descriptor is nobody else's.
    let mut made = unsafe {
        let fd = libc::mkostemp(template.as_mut_ptr().cast(), libc::O_CLOEXEC);
        (fd >= 0).then(|| std::fs::File::from_raw_fd(fd))?
    };
    template.pop();
    let temporary = PathBuf::from(OsString::from_vec(template));
    let written = made
        .write_all(bytes)
        .and_then(|()| made.set_permissions(std::fs::Permissions::from_mode(mode)))
        .and_then(|()| std::fs::rename(&temporary, file));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written.ok()
}

/// Whose standard output is ours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StandardOutput {
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
pub fn expand_all(options: &mut Options, pid: u32, out: StandardOutput, inputs: &[FileName]) -> Result<(), String> {
    let mut named: Vec<(&'static str, FileName)> = Vec::new();
    for (option, name) in files(options) {
        let Some(name) = name else { continue };
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
            return Err(format!("{option} would overwrite {name}, which is read"));
        }
    }
    Ok(())
}

/// Whether this option can write to standard output, which `before` writes to already.
fn dash(option: &'static str, out: StandardOutput, before: Option<&str>) -> Result<(), String> {
    let unreadable = matches!(option, "--parquet" | "--snapshot");
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

/// Whether two names lead to one file, which may not be there yet. Devices and pipes can take
/// several outputs.
fn same_file(one: &Path, other: &Path) -> bool {
    let place = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        path.canonicalize().ok().or_else(|| Some(folder.canonicalize().ok()?.join(path.file_name()?)))
    };
    let special = |path: &Path| std::fs::metadata(path).is_ok_and(|meta| !meta.is_file());
    let same_inode = || match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    };
    !special(one)
        && (one.as_os_str() == other.as_os_str()
            || place(one).is_some_and(|one| Some(one) == place(other))
            || same_inode())
}

/// All files that a run writes besides the trace. The error says which can not be written; it comes
/// before the program runs, not after an hour.
pub fn check_writable(options: &mut Options) -> Result<(), String> {
    for (_, name) in files(options).into_iter().filter(|(option, _)| *option != TRACE) {
        let Some(path) = name.filter(|name| !name.is(STANDARD)) else { continue };
        let opened = std::fs::OpenOptions::new().append(true).create(true).open(&*path);
        opened.map_err(|error| format!("{path} can not be written: {error}"))?;
    }
    Ok(())
}

/// The option that names the trace.
const TRACE: &str = "--output";

fn files(o: &mut Options) -> [(&'static str, Option<&mut FileName>); 13] {
    [
        ("--log-file", o.log_file.as_mut()),
        ("--json", o.json.as_mut()),
        ("--sarif", o.sarif.as_mut()),
        ("--html", o.html.as_mut()),
        ("--junit", o.junit.as_mut()),
        ("--parquet", o.parquet.as_mut()),
        ("--gen-suppressions", o.gen_suppressions.as_mut()),
        ("--write-baseline", o.write_baseline.as_mut()),
        ("--snapshot", o.snapshot.as_mut()),
        ("--exact-compare", o.exact.compare.as_mut()),
        (TRACE, o.output.as_mut()),
        ("--sim-addresses", o.sim_options.addresses.as_mut()),
        ("--sim-results", o.sim_options.results.as_mut()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(json: &str, sarif: &str, out: StandardOutput, inputs: &[&str]) -> Result<(), String> {
        let (json, sarif) = (Some(json.into()), Some(sarif.into()));
        let inputs: Vec<FileName> = inputs.iter().map(FileName::from).collect();
        expand_all(&mut Options { json, sarif, ..Options::default() }, 42, out, &inputs)
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
        assert_eq!(read, Err("--json would overwrite ./t, which is read".to_owned()));
    }

    #[test]
    fn only_a_plain_file_of_ones_own_is_replaced() {
        let folder = std::env::temp_dir().join(format!("streamsan-output-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let at = |name: &[u8]| FileName::from(folder.join(OsStr::from_bytes(name)));
        let pipe = std::ffi::CString::new(at(b"pipe").bytes()).expect("a path");
        // SAFETY: a C string.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        for name in [&b"plain"[..], b"by\xfftes", b"twice"] {
            std::fs::write(at(name), "old").expect("writable");
            std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(0o640)).expect("ours");
        }
        std::fs::hard_link(at(b"twice"), at(b"again")).expect("a link");
        std::os::unix::fs::symlink("plain", at(b"link")).expect("a link");
        std::os::unix::fs::symlink("/dev/stdout", at(b"out")).expect("a link");
        let open = std::fs::File::create(at(b"open")).expect("a file");
        let fd = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&open));
        let is = |name: &[u8]| replaceable(&at(name)).is_some();
        assert!(is(b"plain") && is(b"by\xfftes") && is(b"link"));
        assert!(!is(b"pipe") && !is(b"again") && !is(b"out") && !is(b"none") && !is(b""));
        assert!(["/dev/null", "/dev/stdout", &fd].iter().all(|name| replaceable(Path::new(name)).is_none()));
        let inode = |name: &[u8]| std::fs::metadata(at(name)).expect("there").ino();
        for (name, replaced) in [(&b"plain"[..], true), (b"by\xfftes", true), (b"link", true), (b"again", false)] {
            let before = inode(name);
            write(&at(name), b"new").expect("written");
            assert_eq!(std::fs::read(at(name)).expect("there"), b"new");
            assert_eq!(inode(name) != before, replaced, "{}", at(name));
        }
        assert_eq!(std::fs::metadata(at(b"plain")).expect("there").mode() & 0o777, 0o640);
        assert!(std::fs::symlink_metadata(at(b"link")).expect("there").is_symlink(), "what it leads to was replaced");
        assert_eq!(std::fs::read(at(b"twice")).expect("there"), b"new", "under both names");
        write(&FileName::from(&fd), b"descriptor").expect("written");
        assert_eq!(std::fs::read(at(b"open")).expect("there"), b"descriptor");
        let names = std::fs::read_dir(&folder).expect("there").flatten().map(|entry| entry.file_name());
        assert!(names.into_iter().all(|name| !name.as_bytes().starts_with(b".")), "nothing temporary is left");
        std::fs::remove_dir_all(folder).expect("ours");
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
