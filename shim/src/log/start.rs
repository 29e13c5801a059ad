//! The log's start at the first op of a process, and its end.
//!
//! Owns the pointer to the running [`Core`], which every op reads. A forked child that uses CUDA
//! gets a core of its own; the parent's is left alone. The state of the process itself is in
//! [`crate::runtime::lifecycle`].

use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use ::options::Id;
use trace::ring::{Header, owner};

use super::call_counts;
use super::core::Core;
use crate::host::touches;
use crate::runtime::lifecycle::{self, StartTurn};
use crate::runtime::options::{self, Options};
use crate::runtime::{attach, handle_cache, stderr, untold};

#[unsafe(link_section = "streamsan_state")]
static CORE: AtomicPtr<Core> = AtomicPtr::new(std::ptr::null_mut());
/// The process that uses CUDA, under plain `LD_PRELOAD`, and could not be connected to an analyzer.
/// A child that it forks has another number.
static UNCHECKED: AtomicU32 = AtomicU32::new(0);

/// What the shim works on, started now if this is the first op of the process. `None`: stay out.
#[inline]
pub fn core() -> Option<&'static Core> {
    let core = CORE.load(Ordering::Acquire);
    if !core.is_null() && lifecycle::is_running() {
        // SAFETY: a published core is never freed.
        return Some(unsafe { &*core });
    }
    core_slow()
}

#[cold]
fn core_slow() -> Option<&'static Core> {
    if lifecycle::is_forked() {
        // The parent's core is left alone: its lock may be held by a thread that does not exist
        // here, and its ring is not mapped.
        handle_cache::invalidate_all();
        crate::stack::after_fork_in_child();
        CORE.store(std::ptr::null_mut(), Ordering::Relaxed);
        lifecycle::start_anew_in_child();
    }
    match lifecycle::begin_start() {
        StartTurn::Now => start(),
        StartTurn::Done => core(),
        StartTurn::Running => {
            // SAFETY: a published core is never freed.
            unsafe { CORE.load(Ordering::Acquire).as_ref() }
        }
        StartTurn::No => None,
    }
}

fn start() -> Option<&'static Core> {
    lifecycle::quiet_panics();
    let options = Options::from_environment();
    if options.off {
        lifecycle::stay_out();
        return None;
    }
    let attached = match attach::attach(&options) {
        Ok(attached) => attached,
        Err(error) => {
            lifecycle::switch_off(format_args!("can not check this process: {error}"));
            if !options::has_launcher() {
                UNCHECKED.store(std::process::id(), Ordering::Relaxed);
            }
            return None;
        }
    };
    lifecycle::watch_for_forks();
    lifecycle::attached(attached.producer.ring().header());
    let core = Box::leak(Box::new(Core::new(options, attached)));
    core.introduce();
    touches::look_for_library();
    CORE.store(core, Ordering::Release);
    lifecycle::running();
    Some(core)
}

/// The program ends: under plain `LD_PRELOAD`, waits until the analyzer has printed its report, as
/// long as that one lives; then the exit code is replaced if the user asked for it.
pub fn at_exit() {
    #[cfg(feature = "cycles")]
    crate::runtime::cycles::write(super::call_names::name_of);
    end_checked();
    if untold::is_left_to_tell() {
        end_with(UNCHECKED_RUN);
    }
}

fn end_checked() {
    let core = CORE.load(Ordering::Acquire);
    if core.is_null() {
        let unchecked = UNCHECKED.load(Ordering::Relaxed);
        // A sandbox may end who asks for the number.
        if unchecked != 0 && unchecked == std::process::id() {
            end_unchecked(&Options::from_environment());
        }
        without_cuda();
        return;
    }
    if lifecycle::is_forked() {
        return;
    }
    // SAFETY: a published core is never freed.
    let core = unsafe { &*core };
    call_counts::log(core);
    core.say_goodbye();
    let header = core.header();
    if !core.own_analyzer {
        if !lifecycle::is_off() && is_abandoned(header) {
            stderr::say(format_args!("the streamsan command has died: this process was not checked"));
        }
        return;
    }
    header.producer_done.store(1, Ordering::Release);
    let mut beat = (header.heartbeat.load(Ordering::Relaxed), Instant::now());
    while header.consumer_done.load(Ordering::Acquire) == 0 {
        std::thread::sleep(Duration::from_millis(1));
        let now = header.heartbeat.load(Ordering::Relaxed);
        if now != beat.0 {
            beat = (now, Instant::now());
        } else if beat.1.elapsed() > Duration::from_secs(5) {
            lifecycle::switch_off(format_args!("the analyzer has died: this run was not checked"));
            end_unchecked(&core.options);
            return;
        }
    }
    lifecycle::stay_out();
    let code = header.exit_code.load(Ordering::Relaxed) as i32;
    if core.options.error_exitcode.is_some() && code != 0 {
        end_with(code);
    }
}

/// The program ends with the code of a run that was not checked, if the user asked for exit codes.
fn end_unchecked(options: &Options) {
    if options.error_exitcode.is_some() {
        end_with(UNCHECKED_RUN);
    }
}

/// The program ends with another exit code than its own, as the user asked.
fn end_with(code: i32) -> ! {
    // SAFETY: everything else has run (we are among the last destructors); what stdio still holds
    // is written first.
    unsafe {
        libc::fflush(std::ptr::null_mut());
        libc::_exit(code)
    }
}

/// Exit code of `require-cuda` when no CUDA was used: as the streamsan command's.
const NO_CUDA: i32 = 4;
/// Exit code of a run that was not checked: as the streamsan command's.
const UNCHECKED_RUN: i32 = 70;

/// A process ends that made no call of CUDA. Under plain `LD_PRELOAD` nothing else tells its user:
/// no analyzer was started.
fn without_cuda() {
    let is_first = lifecycle::is_dormant() && !options::has_launcher();
    if !is_first || options::text().is_empty() {
        return;
    }
    for wrong in ::options::parse(options::text()).filter_map(Result::err) {
        stderr::say(format_args!("in STREAMSAN_OPTIONS: {wrong}"));
    }
    if options::is_on(Id::RequireCuda) && !options::is_on(Id::Off) {
        stderr::say(format_args!("require-cuda: this process made no use of CUDA, so nothing was checked"));
        if Options::from_environment().error_exitcode.is_some() {
            end_with(NO_CUDA);
        }
    }
}

/// Whether the launcher that was given the ring lives no more. Its death is marked in the ring by
/// the kernel. Only while nobody has taken the ring yet, or where deaths are not marked, its
/// heartbeat is waited for.
fn is_abandoned(header: &Header) -> bool {
    let beat = header.heartbeat.load(Ordering::Relaxed);
    let began = Instant::now();
    loop {
        let owner = header.owner.load(Ordering::Acquire);
        let is_known = !matches!(owner, owner::NONE | owner::UNMARKED);
        if is_known || header.heartbeat.load(Ordering::Relaxed) != beat {
            return owner & owner::DIED != 0;
        }
        if header.consumer_done.load(Ordering::Acquire) != 0 {
            return false;
        }
        if began.elapsed() > Duration::from_secs(5) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
