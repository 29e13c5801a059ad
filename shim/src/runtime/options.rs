//! What the user may set for the shim, read once from `STREAMSAN_OPTIONS`.
//!
//! Owns the shim's values and the reading of environment variables. The language and the names are
//! the crate `options`, which the analyzer uses too. A wrong option is passed over here: the
//! analyzer reads the same variable and names it.

use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use ::options::{Id, Value};
use launcher_link::Key;
use signal_free::environment;

/// The shim's options with their defaults.
pub struct Options {
    /// `stacks`: record call stacks (on).
    pub stacks: bool,
    /// `host-writes`: look for writes of the host to memory that pending copies read (on).
    pub host_writes: bool,
    /// `host-accesses`: keep the CPU off the pages that pending copies use, to see it touch them
    /// (off).
    pub host_accesses: bool,
    /// `host-in-place`: with `host-accesses`, also those to memory that kernels use in place (yes).
    pub host_in_place: bool,
    /// `host-sample`: sources of copies up to this many bytes are always compared in full; given in
    /// KiB (64).
    pub host_sample: u64,
    /// `ring-mib`: data bytes of the ring in MiB (128). Beyond the first they are touched only
    /// while the analyzer is behind: a run with new kernels can be 70,000 launches ahead of it
    /// (docs/measurements/costs.md).
    pub ring_mib: usize,
    /// `analyzer`: path of the `streamsan` program to start under plain `LD_PRELOAD` (beside the
    /// library).
    pub analyzer: Option<OsString>,
    /// `error-exitcode`: exit code when there are findings, under plain `LD_PRELOAD` (the program's
    /// own).
    pub error_exitcode: Option<i32>,
    /// `host-order=threads`: the library beside this one reports how host threads synchronise.
    pub host_threads: bool,
    /// `launch-blocking`: wait for every launch.
    pub launch_blocking: bool,
    /// `off`: stay out of this process altogether.
    pub off: bool,
}

impl Options {
    /// Reads the environment.
    pub fn from_environment() -> Self {
        Self::parse(text())
    }

    fn parse(text: &[u8]) -> Self {
        let mut options = Self {
            stacks: true,
            host_writes: true,
            host_accesses: false,
            host_in_place: true,
            host_sample: 64 << 10,
            ring_mib: 128,
            analyzer: None,
            error_exitcode: None,
            host_threads: false,
            launch_blocking: false,
            off: false,
        };
        for (id, value) in ::options::parse(text).flatten() {
            match (id, value) {
                (Id::Stacks, Value::Flag(on)) => options.stacks = on,
                (Id::HostAccesses, Value::Flag(on)) => options.host_accesses = on,
                (Id::HostInPlace, Value::Flag(on)) => options.host_in_place = on,
                (Id::HostWrites, Value::Flag(on)) => options.host_writes = on,
                (Id::HostSample, Value::Number(kib)) => options.host_sample = kib.max(1) << 10,
                (Id::RingMib, Value::Number(mib)) => options.ring_mib = mib as usize,
                (Id::Analyzer, Value::Text(path)) => options.analyzer = Some(OsString::from_vec(path.to_vec())),
                (Id::ErrorExitcode, Value::Number(code)) => {
                    options.error_exitcode = Some(code as i32).filter(|code| *code != 0);
                }
                (Id::HostOrder, Value::Choice(word)) => options.host_threads = word == THREADS,
                (Id::LaunchBlocking, Value::Flag(on)) => options.launch_blocking = on,
                (Id::Off, Value::Flag(on)) => options.off = on,
                _ => {}
            }
        }
        options
    }
}

/// The place of `threads` among the words of `host-order`.
const THREADS: usize = 1;

/// The value of `STREAMSAN_OPTIONS`.
pub fn text() -> &'static [u8] {
    variable(c"STREAMSAN_OPTIONS").unwrap_or_default()
}

/// Whether a launcher waits for the ring of this process.
pub fn has_launcher() -> bool {
    socket().is_some()
}

/// Whether the environment switches this flag on. Allocates nothing.
pub fn is_on(flag: Id) -> bool {
    matches!(::options::last(text(), flag), Some(Value::Flag(true)))
}

/// A variable of the environment. The program may have changed it with `setenv`; what it removed is
/// as it was at the start. Without std's lock, because another thread may be in the middle of that.
pub fn variable(name: &CStr) -> Option<&'static [u8]> {
    environment::variable(name)
}

/// The part of a program that this process was started in: who started it has said so. What the
/// program itself puts into its environment is for its children.
pub fn region() -> Option<&'static [u8]> {
    environment::first(c"STREAMSAN_REGION")
}

/// Where the launcher waits for this process: the program's own start says it, before what the
/// program sets.
pub fn socket() -> Option<&'static OsStr> {
    let path = environment::first(launcher_link::SOCKET).or_else(|| variable(launcher_link::SOCKET))?;
    (!path.is_empty()).then(|| OsStr::from_bytes(path))
}

/// What opens the launcher's second socket.
pub fn key() -> Option<Key<'static>> {
    environment::first(launcher_link::KEY).or_else(|| variable(launcher_link::KEY)).and_then(Key::parse)
}

/// As [`variable`], as a path or other system string.
pub fn os_variable(name: &CStr) -> Option<&'static OsStr> {
    variable(name).map(OsStr::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_keys_are_read_and_others_left_alone() {
        let options = Options::parse(b"stacks=0:json=/tmp/x:error-exitcode=66:ring-mib=8");
        assert!(!options.stacks);
        assert_eq!(options.error_exitcode, Some(66));
        assert_eq!(options.ring_mib, 8);
        assert!(Options::parse(b"").stacks);
        assert_eq!(Options::parse(b"error-exitcode=0").error_exitcode, None);
        assert_eq!(Options::parse(b"ring-mib=nonsense").ring_mib, 128);
        assert_eq!(Options::parse(b"ring-mib=0").ring_mib, 128);
    }

    #[test]
    fn defaults_are_those_of_the_table() {
        let options = Options::parse(b"");
        let written = |id| ::options::find(id).default;
        assert_eq!(written(Id::RingMib), options.ring_mib.to_string());
        assert_eq!(written(Id::HostSample), (options.host_sample >> 10).to_string());
    }

    #[test]
    fn switches_mean_what_they_mean_to_the_analyzer() {
        let options = Options::parse(b"no-stacks:host_writes=off:launch-blocking:off=0:host-order=threads");
        assert!(!options.stacks && !options.host_writes && options.launch_blocking && !options.off);
        assert!(options.host_threads);
        assert!(Options::parse(b"stacks=maybe").stacks, "the analyzer names it");
        assert_eq!(::options::find(Id::HostOrder).value(b"threads"), Ok(Value::Choice(THREADS)));
    }
}
