//! Reports what the simulated GPU could not do, because the program itself may swallow the error.
//!
//! `STREAMSAN_SIM_STATUS=FILE` asks for one line for each reason, appended: the call, kernel or
//! image that was refused, and why. `streamsan --sim` names the file, reads it, and does not let
//! the run look clean. So a line is for what a real device would have done and the simulator did
//! not. What a driver refuses as well is the program's affair and only said ([`say`]).
//!
//! The file also has a line for each form of code that ran, PTX or machine code ([`runs`]).
//!
//! A reason is said once in a process, for refusals stand in loops too.

use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::{CStr, OsStr, c_void};
use std::fs::File;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use launcher_link::{Key, Subject};

/// Different reasons that a process says.
const MOST: usize = 500;

/// A kernel was refused: from then on calls answer with its status, which is no refusal of theirs.
static KERNEL_REFUSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Refusals that this thread has had a reason for.
    static EXPLAINED: Cell<u64> = const { Cell::new(0) };
}

/// Says on standard error what could not be done, and takes note of it.
pub(crate) fn complain(why: &str) {
    excuse();
    if is_new(why) {
        signal_free::say!("streamsan-sim: {why}");
        note(why);
    }
}

/// The same of a kernel, whose error other calls will return.
pub(crate) fn complain_of_kernel(why: &str) {
    KERNEL_REFUSED.store(true, Ordering::Relaxed);
    complain(why);
}

/// Says something on standard error that any driver would have refused.
pub(crate) fn say(why: &str) {
    excuse();
    if is_new(why) {
        signal_free::say!("streamsan-sim: {why}");
    }
}

/// A driver may refuse this call as well, and nothing needs to be said of it.
pub(crate) fn excuse() {
    EXPLAINED.set(EXPLAINED.get() + 1);
}

/// To be asked before a call, for [`complain_unexplained`].
pub(crate) fn explained() -> u64 {
    EXPLAINED.get()
}

/// A call was refused, and nothing has been said of it since `before`.
pub(crate) fn complain_unexplained(call: &str, before: u64) {
    if explained() == before && !KERNEL_REFUSED.load(Ordering::Relaxed) {
        complain(&format!("{call} was called in a way that is not simulated"));
    }
}

fn is_new(why: &str) -> bool {
    static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    // Another thread may have held the lock when this process was forked. Saying it twice is better
    // than waiting forever.
    let Ok(mut said) = SAID.try_lock() else { return true };
    let said = said.get_or_insert_default();
    said.len() < MOST && said.insert(why.to_owned())
}

fn note(why: &str) {
    let Some(path) = crate::config::variable("STREAMSAN_SIM_STATUS") else { return };
    let why = why.replace('\n', " ");
    if append(&path, &why).is_err() {
        tell_launcher(&why);
    }
}

fn append(path: &OsStr, line: &str) -> std::io::Result<()> {
    let mut file = File::options().create(true).append(true).open(path)?;
    signal_free::held(|| file.write_all(format!("{line}\n").as_bytes()))
}

/// Takes note that a kernel of the program runs as PTX or as machine code, once each: reports name
/// the code that ran. A process that may not write the file goes without.
pub(crate) fn runs(form: Ran) {
    static NOTED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
    if !NOTED[form as usize].load(Ordering::Relaxed)
        && !NOTED[form as usize].swap(true, Ordering::Relaxed)
        && let Some(path) = crate::config::variable("STREAMSAN_SIM_STATUS")
    {
        let _ = append(&path, &format!("{RAN}{}", form.name()));
    }
}

/// What such a line begins with. `streamsan` knows it, too (`launcher::simulator`).
const RAN: &str = "ran: ";

/// What a kernel ran as.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ran {
    /// PTX.
    Ptx,
    /// Machine code.
    Machine,
    /// It did nothing: machine code that is skipped (`sass=skip`).
    Nothing,
}

impl Ran {
    fn name(self) -> &'static str {
        match self {
            Self::Ptx => "PTX",
            Self::Machine => "machine code",
            Self::Nothing => "nothing",
        }
    }
}

/// Tells the launcher by itself: this process may have become a user who can not write the file, or
/// have a root without it. Where no way is left, its exit code has to tell it.
fn tell_launcher(why: &str) {
    let variable = |name: &CStr| crate::config::variable(name.to_str().ok()?);
    let Some(socket) = variable(launcher_link::SOCKET) else { return };
    let key = variable(launcher_link::KEY).unwrap_or_default();
    let key = Key::parse(key.as_encoded_bytes());
    // A name for each link of this process.
    static LEFT: AtomicU64 = AtomicU64::new(0);
    let number = u64::from(std::process::id()) << 32 | LEFT.fetch_add(1, Ordering::Relaxed);
    let told = launcher_link::tell(&socket, key, Subject::NotSimulated, why.as_bytes(), None).is_ok()
        || launcher_link::leave_link(&socket, key, "refused", number, why.as_bytes());
    if !told {
        // SAFETY: a string that ends in NUL. The shim's function of this name has this type.
        unsafe {
            let shim = libc::dlsym(libc::RTLD_DEFAULT, c"streamsan_could_tell_nobody".as_ptr());
            if !shim.is_null() {
                std::mem::transmute::<*mut c_void, extern "C" fn()>(shim)();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_new_once() {
        assert!(is_new("one reason") && is_new("another"));
        assert!(!is_new("one reason") && !is_new("another"));
    }

    #[test]
    fn what_was_explained_is_not_explained_again() {
        let before = explained();
        say("said in a test");
        assert_eq!(explained(), before + 1);
        complain_unexplained("cuNothing", before);
        assert_eq!(explained(), before + 1, "there was a reason already");
        complain_unexplained("cuNothing", explained());
        assert_eq!(explained(), before + 2);
    }
}
