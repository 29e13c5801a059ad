//! What the user can choose about the simulated GPU, read once from the environment.
//!
//! `STREAMSAN_SIM=key=value:key=value...`:
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `arch` | see below | compute capability of every device: `90` is 9.0, `120` is 12.0 |
//! | `devices` | `1` | how many devices there are, 0 to 8 |
//! | `mem` | `8G` | memory of each device; `K`, `M` and `G` multiply by powers of 1024 |
//! | `schedule` | `eager` | how ready work is picked, see below |
//! | `seed` | `0` | chooses among the schedules of `random`, see below |
//! | `workers` | `8` | most threads that execute work at the same time (`eager` only) |
//! | `hold` | `150` | milliseconds without a call after which held work runs, see below |
//! | `code` | `auto` | which code runs where there is PTX and machine code, see below |
//! | `compile` | `on` | `on`: what runs often becomes native code; `always`: all; `off`: nothing |
//! | `sass` | `run` | `skip`: kernels of machine code without PTX do nothing |
//!
//! A build without the feature `native` interprets everything and refuses `compile=always`.
//!
//! Without `arch` a device is of 8.0, or of what the program was built for where its code images do
//! not run on 8.0 (`loader::program_images`).
//!
//! `code=ptx` runs PTX and refuses machine code. `code=sass` chooses as a driver does: machine code
//! that fits the device, else PTX. `code=auto` runs PTX where all of it is there, else machine
//! code.
//!
//! No schedule ever runs an operation before one that CUDA orders before it.
//!
//! - `eager`: work runs as soon as it may, on several threads: like a real device, not repeatable.
//!   Host functions come late, by `hold` at most (`sched::late_host`).
//! - `random`: work is held until a host thread waits (or polls), then runs one operation at a
//!   time, picked by `seed`: see `sched::policy`. A seed repeats its schedule for a program with
//!   one host thread.
//! - `late-first`: like `random`, but the operation enqueued last goes first, so that an order that
//!   only timing gave is turned round: the schedule in which most missing synchronisation shows in
//!   the results.
//! - `in-order`: one operation at a time in the order of enqueueing. Each is finished before the
//!   call that asked for it returns: the schedule in which no race shows.
//!
//! With `eager`, threads start when first needed. `random` and `late-first` let work that no thread
//! waits for run when the program has made no call for `hold` milliseconds. A kernel that `skip`
//! leaves out returns at once.
//!
//! In all but `eager`, memory has a content that no program expects when it comes into being in
//! stream order, and after it was freed in stream order.
//!
//! Three files can be asked for as well: `STREAMSAN_SIM_ADDRESSES` (see `access_log`),
//! `STREAMSAN_SIM_RESULTS` (see `memory::result_digests`) and `STREAMSAN_SIM_STATUS` (see
//! `status`).
//!
//! `CUDA_VISIBLE_DEVICES` hides and reorders devices as on a real system (`visible_devices`).
//!
//! An unknown key or a bad value is named on stderr and makes `cuInit` fail. A mistyped option must
//! not silently give another run than the one asked for.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;

use signal_free::environment;

use crate::interp::Compile;
use crate::loader::program_images;
use crate::visible_devices::Visible;

/// How the next operation is picked among those that may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// As soon as possible, several at a time.
    Eager,
    /// One at a time, picked by the seed, when a thread waits.
    Random,
    /// One at a time, the one enqueued last first, when a thread waits.
    LateFirst,
    /// One at a time in the order of enqueueing, before the call returns.
    InOrder,
}

/// Which code of a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeChoice {
    /// PTX where all of it is there, else machine code.
    Auto,
    /// PTX only.
    Ptx,
    /// As a driver chooses: machine code first.
    Sass,
}

/// The choices of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// Compute capability times ten.
    pub(crate) arch: u32,
    /// Somebody named it.
    pub(crate) arch_is_given: bool,
    /// Number of devices that programs see.
    pub(crate) devices: u32,
    /// Which devices those are.
    pub(crate) visible: Visible,
    /// Bytes of memory per device.
    pub(crate) mem: u64,
    /// How work is picked.
    pub(crate) schedule: Schedule,
    /// Chooses among schedules.
    pub(crate) seed: u64,
    /// Most threads that execute work at once.
    pub(crate) workers: usize,
    /// Milliseconds without a call after which work is no longer held.
    pub(crate) hold_ms: u64,
    /// Which code runs where there are both kinds.
    pub(crate) code: CodeChoice,
    /// When kernels are compiled to native code.
    pub(crate) compile: Compile,
    /// Kernels of machine code do nothing instead of being refused.
    pub(crate) skip_sass: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            arch: 80,
            arch_is_given: false,
            devices: 1,
            visible: Visible::all(1),
            mem: 8 << 30,
            schedule: Schedule::Eager,
            seed: 0,
            workers: 8,
            hold_ms: 150,
            code: CodeChoice::Auto,
            compile: Compile::On,
            skip_sass: false,
        }
    }
}

/// Why an option string was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigError {
    /// No option of this name.
    #[error("unknown option `{0}` (options: arch, devices, mem, schedule, seed, workers, hold, code, compile, sass)")]
    UnknownKey(String),
    /// The value does not fit the option.
    #[error("option `{0}` cannot be `{1}`")]
    BadValue(String, String),
}

impl Config {
    /// Reads an option string such as `arch=90:schedule=random:seed=7`.
    pub(crate) fn parse(text: &str) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        for item in text.split(':').filter(|item| !item.trim().is_empty()) {
            let (key, value) = item.split_once('=').unwrap_or((item, ""));
            let (key, value) = (key.trim(), value.trim());
            let bad = || ConfigError::BadValue(key.to_owned(), value.to_owned());
            let number =
                |low: u64, high: u64| value.parse::<u64>().ok().filter(|n| (low..=high).contains(n)).ok_or_else(bad);
            match key {
                "arch" => {
                    let digits = value.trim_start_matches("sm_").trim_end_matches(['a', 'f']);
                    config.arch = digits.parse().ok().filter(|n| program_images::ARCHES.contains(n)).ok_or_else(bad)?;
                    config.arch_is_given = true;
                }
                "devices" => {
                    config.devices = number(0, 8)? as u32;
                    config.visible = Visible::all(config.devices);
                }
                "mem" => config.mem = parse_size(value).filter(|n| *n >= 1 << 20).ok_or_else(bad)?,
                "schedule" => {
                    config.schedule = match value {
                        "eager" => Schedule::Eager,
                        "random" => Schedule::Random,
                        "late-first" => Schedule::LateFirst,
                        "in-order" => Schedule::InOrder,
                        _ => return Err(bad()),
                    }
                }
                "seed" => config.seed = number(0, u64::MAX)?,
                "workers" => config.workers = number(1, 256)? as usize,
                "code" => {
                    config.code = match value {
                        "auto" => CodeChoice::Auto,
                        "ptx" => CodeChoice::Ptx,
                        "sass" => CodeChoice::Sass,
                        _ => return Err(bad()),
                    }
                }
                "compile" => {
                    config.compile = match value {
                        "off" => Compile::Off,
                        "on" => Compile::On,
                        // A build without native code has nothing that could do it.
                        "always" if cfg!(feature = "native") => Compile::Always,
                        _ => return Err(bad()),
                    }
                }
                "sass" => {
                    config.skip_sass = match value {
                        "run" | "refuse" => false,
                        "skip" => true,
                        _ => return Err(bad()),
                    }
                }
                "hold" => config.hold_ms = number(0, 60_000)?,
                _ => return Err(ConfigError::UnknownKey(key.to_owned())),
            }
        }
        Ok(config)
    }
}

fn parse_size(text: &str) -> Option<u64> {
    let (digits, shift) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 10),
        b'M' | b'm' => (&text[..text.len() - 1], 20),
        b'G' | b'g' => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// The process's configuration; the error is reported once on stderr.
pub(crate) fn get() -> Result<&'static Config, &'static ConfigError> {
    static CONFIG: OnceLock<Result<Config, ConfigError>> = OnceLock::new();
    CONFIG
        .get_or_init(|| {
            let text = variable("STREAMSAN_SIM").unwrap_or_default();
            let parsed = Config::parse(&text.to_string_lossy()).map(|mut config| {
                if !config.arch_is_given {
                    config.arch = program_images::arch(config.arch);
                }
                if let Some(asked) = std::env::var_os("CUDA_VISIBLE_DEVICES") {
                    config.visible = Visible::chosen(&asked.to_string_lossy(), config.devices);
                    config.devices = config.visible.count();
                }
                config
            });
            if let Err(error) = &parsed {
                crate::status::complain(&format!("STREAMSAN_SIM: {error}"));
            }
            parsed
        })
        .as_ref()
}

/// A variable of the environment, even if the program has cleared its own since it was started, or
/// answers for it (`getenv`). Empty counts as unset.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    // A driver that is loaded late has no copy of its own.
    let initial = || {
        let all = std::fs::read(signal_free::descriptors::own_proc("environ")).ok()?;
        let value =
            all.split(|&byte| byte == 0).find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
        value.map(|value| OsStr::from_bytes(value).to_os_string())
    };
    let kept = CString::new(name).ok().and_then(|name| environment::variable(&name));
    kept.map(|value| OsStr::from_bytes(value).to_os_string()).or_else(initial).filter(|value| !value.is_empty())
}

/// The configuration, or the default one where the given one was refused (`cuInit` has failed
/// then).
pub(crate) fn get_or_default() -> Config {
    get().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_key() {
        let config = Config::parse(
            "arch=sm_90a:devices=2:mem=512M:schedule=late-first:seed=9:workers=3:hold=5:code=sass:compile=on",
        )
        .unwrap();
        assert_eq!(config.arch, 90);
        assert_eq!(config.devices, 2);
        assert_eq!(config.mem, 512 << 20);
        assert_eq!(config.schedule, Schedule::LateFirst);
        assert_eq!((config.seed, config.workers, config.hold_ms), (9, 3, 5));
        assert_eq!((config.code, config.compile), (CodeChoice::Sass, Compile::On));
        assert_eq!(Config::parse("").unwrap(), Config::default());
        assert_eq!(Config::parse("compile=always").is_ok(), cfg!(feature = "native"));
    }

    #[test]
    fn names_what_is_wrong() {
        assert_eq!(Config::parse("sched=x"), Err(ConfigError::UnknownKey("sched".into())));
        for bad in [
            "arch=8",
            "arch=",
            "devices=9",
            "mem=1",
            "mem=G",
            "schedule=fast",
            "seed=-1",
            "workers=0",
            "code=x",
            "compile=x",
        ] {
            assert!(matches!(Config::parse(bad), Err(ConfigError::BadValue(..))), "{bad}");
        }
    }
}
