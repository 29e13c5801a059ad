//! What the user may set for the shim, read once from `STREAMSAN_OPTIONS` (`key=value:key=value`).
//!
//! Keys that belong to the analyzer are passed on untouched (the analyzer reads the same variable
//! and refuses what neither knows), so an unknown key is never an error here.

use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The shim's options with their defaults.
pub struct Options {
    /// `stacks`: record call stacks (on).
    pub stacks: bool,
    /// `host-writes`: look for writes of the host to memory that pending copies read (on).
    pub host_writes: bool,
    /// `host-accesses`: keep the CPU off the pages that pending copies use, to see it touch them
    /// (off).
    pub host_accesses: bool,
    /// `host-sample`: sources of copies up to this many bytes are always compared in full; given in
    /// KiB (64).
    pub host_sample: u64,
    /// `ring-mib`: data bytes of the ring in MiB (32).
    pub ring_mib: usize,
    /// `analyzer`: path of the `streamsan` program to start under plain `LD_PRELOAD` (beside the
    /// library).
    pub analyzer: Option<OsString>,
    /// `error-exitcode`: exit code when there are findings, under plain `LD_PRELOAD` (the program's
    /// own).
    pub error_exitcode: Option<i32>,
    /// `host-order=threads`: the library beside this one tells how host threads synchronise.
    pub host_threads: bool,
    /// `launch-blocking`: wait for every launch.
    pub launch_blocking: bool,
    /// `off`: stay out of this process altogether.
    pub off: bool,
}

impl Options {
    /// Reads the environment.
    pub fn from_environment() -> Self {
        Self::parse(variable(c"STREAMSAN_OPTIONS").unwrap_or_default())
    }

    fn parse(text: &[u8]) -> Self {
        let mut options = Self {
            stacks: true,
            host_writes: true,
            host_accesses: false,
            host_sample: 64 << 10,
            ring_mib: 32,
            analyzer: None,
            error_exitcode: None,
            host_threads: false,
            launch_blocking: false,
            off: false,
        };
        for pair in text.split(|b| *b == b':') {
            let at = pair.iter().position(|b| *b == b'=').unwrap_or(pair.len());
            let (key, value) = (&pair[..at], pair.get(at + 1..).unwrap_or(b"1"));
            let number = std::str::from_utf8(value).ok().and_then(|v| v.parse::<i32>().ok());
            let on = !matches!(value, b"0" | b"no" | b"off" | b"false");
            match key {
                b"stacks" => options.stacks = on,
                b"host-accesses" => options.host_accesses = on,
                b"host-writes" => options.host_writes = on,
                b"host-sample" => {
                    options.host_sample = number.and_then(|n| u64::try_from(n).ok()).unwrap_or(64).max(1) << 10;
                }
                b"ring-mib" => {
                    options.ring_mib = number.and_then(|n| usize::try_from(n).ok()).unwrap_or(32).clamp(1, 4096)
                }
                b"analyzer" => options.analyzer = Some(OsString::from_vec(value.to_vec())),
                b"error-exitcode" => options.error_exitcode = number.filter(|n| *n != 0),
                b"host-order" => options.host_threads = value == b"threads",
                b"launch-blocking" => options.launch_blocking = on,
                b"off" => options.off = on,
                _ => {}
            }
        }
        options
    }
}

/// Whether this value of `STREAMSAN_OPTIONS` asks for `host-accesses`. Allocates nothing.
pub fn asks_for_host_accesses(text: &[u8]) -> bool {
    let value = |pair: &[u8]| match pair.strip_prefix(b"host-accesses") {
        Some(b"" | b"=1" | b"=yes" | b"=on" | b"=true") => Some(true),
        Some(rest) if rest.starts_with(b"=") => Some(false),
        _ => None,
    };
    text.split(|b| *b == b':').filter_map(value).next_back().unwrap_or(false)
}

/// The value of a key in `STREAMSAN_OPTIONS`, the last one if there are several; empty for a key
/// alone.
pub fn value<'a>(text: &'a [u8], key: &[u8]) -> Option<&'a [u8]> {
    let of = |pair: &'a [u8]| match pair.strip_prefix(key)? {
        [] => Some(&[][..]),
        [b'=', value @ ..] => Some(value),
        // A longer key.
        _ => None,
    };
    text.split(|b| *b == b':').filter_map(of).next_back()
}

/// A variable of the environment. Read through libc because the program may have changed it with
/// `setenv`, and without std's lock because another thread may be in the middle of that.
pub fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: the name is a C string; the result points into the environment, which we only read at
    // start-up.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv answers C strings.
    Some(unsafe { CStr::from_ptr(value) }.to_bytes())
}

/// As [`variable`], as a path or other system string.
pub fn os_variable(name: &CStr) -> Option<&'static OsStr> {
    variable(name).map(OsStr::from_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_the_beginning_of_another() {
        let text = b"exact=sort:confirm:exact-patch=/x:exact-compare=";
        assert_eq!(value(text, b"exact"), Some(&b"sort"[..]));
        assert_eq!(value(text, b"exact-patch"), Some(&b"/x"[..]));
        assert_eq!((value(text, b"confirm"), value(text, b"exact-compare")), (Some(&b""[..]), Some(&b""[..])));
        assert_eq!((value(text, b"exac"), value(b"exact-patch=/x", b"exact")), (None, None));
    }

    #[test]
    fn known_keys_are_read_and_others_left_alone() {
        let options = Options::parse(b"stacks=0:json=/tmp/x:error-exitcode=66:ring-mib=8");
        assert!(!options.stacks);
        assert_eq!(options.error_exitcode, Some(66));
        assert_eq!(options.ring_mib, 8);
        assert!(Options::parse(b"").stacks);
        assert_eq!(Options::parse(b"error-exitcode=0").error_exitcode, None);
        assert_eq!(Options::parse(b"ring-mib=nonsense").ring_mib, 32);
    }
}
