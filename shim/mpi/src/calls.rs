//! The way of a call: what it touches before it runs, what has completed afterwards.
//!
//! Owns the fence around MPI's own work and the order of the steps. What a function touches is in
//! `effects` and `collectives`; which function does what, in `exports`.

use std::ffi::c_int;

use super::abi::{self, HandleKind};
use super::arguments::{Arguments, Language};
use super::effects;
use super::link::{self, inside_mpi};
use super::names::CallNumber;
use super::requests;
use super::transfers::Transfers;

/// Adds what a call touches. Numbers of arguments are those in C.
pub type Effect = fn(&Arguments<'_>, &mut Transfers);

/// How long a call touches its buffers. Numbers are arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// Until it returns.
    Return,
    /// Until the request that it answers completes.
    Request(usize),
    /// From each start of the request that it answers until that completes.
    Started(usize),
    /// Until one-sided calls of the window to the target complete: target, window.
    Epoch(usize, usize),
    /// Until the second half of the call for this file.
    Split(usize),
}

/// What a call says of requests. Numbers are arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Says {
    /// This request is complete.
    Complete(usize),
    /// This request is complete if the flag is set; it is gone then.
    CompleteIf(usize, usize),
    /// The request of this handle is complete if the flag is set; it stays.
    SeenIf(usize, usize),
    /// All of an array are complete: how many, the array.
    All(usize, usize),
    /// The same if the flag is set.
    AllIf(usize, usize, usize),
    /// One of an array is complete: how many, the array, which one.
    Any(usize, usize, usize),
    /// The same if the flag is set.
    AnyIf(usize, usize, usize, usize),
    /// Some of an array are complete: how many, the array, how many of them, which ones.
    Some(usize, usize, usize, usize),
    /// This request is given away.
    Freed(usize),
    /// This persistent request is started.
    Starts(usize),
    /// Persistent requests are started: how many, the array.
    StartsAll(usize, usize),
    /// One-sided calls of this window are complete.
    Window(usize),
    /// Those to this target: the rank, the window.
    Target(usize, usize),
    /// One-sided calls of the window at this address are complete.
    WindowAt(usize),
    /// The requests of an array are complete if the flag is set; they stay: how many, the array.
    SeenAllIf(usize, usize, usize),
    /// The same of one of them: how many, the array, which one, the flag.
    SeenAnyIf(usize, usize, usize, usize),
    /// The same of some: how many, the array, how many of them, which ones.
    SeenSome(usize, usize, usize, usize),
    /// A partition may be sent: which, of this request.
    Ready(usize, usize),
    /// All partitions between two, both included, of this request.
    ReadyRange(usize, usize, usize),
    /// The partitions of a list: how many, the list, the request.
    ReadyList(usize, usize, usize),
    /// A partition has come if the flag is set: the request, which, the flag.
    ArrivedIf(usize, usize, usize),
    /// The second half of a call for this file is over.
    Second(usize),
}

/// What a function does.
pub enum Meaning {
    /// It touches memory.
    Touches(Effect, Until),
    /// It makes a request whose partitions touch memory of their own. Whether it writes them; the
    /// request.
    Partitions(bool, usize),
    /// It says something of what was begun before.
    Tells(Says),
    /// Neither; it may use CUDA inside.
    Nothing,
}

/// `MPI_ERR_OTHER`, about: what a call answers when there is no MPI behind us.
pub fn absent(language: Language, words: &[usize]) -> c_int {
    const OTHER: c_int = 16;
    if language == Language::Fortran
        && let Some(error) = words.last().filter(|word| **word != 0)
    {
        // SAFETY: Fortran's last argument is the place of the error code.
        unsafe { (*error as *mut c_int).write_unaligned(OTHER) };
    }
    OTHER
}

/// Whether a call has succeeded.
fn succeeded(language: Language, words: &[usize], result: c_int) -> bool {
    match (language, words.last()) {
        // Left out (`use mpi_f08`): an error ends the program, unless it has a handler.
        (Language::Fortran, Some(0) | None) => true,
        // SAFETY: Fortran's last argument is the place of the error code, which the call has set.
        (Language::Fortran, Some(error)) => unsafe { (*error as *const c_int).read_unaligned() == 0 },
        _ => result == 0,
    }
}

/// A call of MPI's own function. Not generic: of code for each closure there would be 720 copies.
type Real<'r> = &'r mut dyn FnMut() -> c_int;

/// MPI's own work: its CUDA calls are no calls of the program. An error handler of the program may
/// leave by an exception.
fn within(real: Real<'_>) -> c_int {
    inside_mpi(real)
}

/// A call of the program.
///
/// # Safety
/// `words` are the arguments of a call of the function that `meaning` belongs to.
pub unsafe fn run(call: CallNumber, language: Language, words: &[usize], meaning: &Meaning, real: Real<'_>) -> c_int {
    if !link::is_outermost() {
        return real();
    }
    let Some(abi) = abi::abi() else { return within(real) };
    // SAFETY: forwarded from the caller.
    let arguments = unsafe { Arguments::new(abi, language, words) };
    match *meaning {
        Meaning::Nothing => within(real),
        Meaning::Touches(effect, until) => {
            let mut transfers = Transfers::default();
            effect(&arguments, &mut transfers);
            touches(call, &arguments, words, transfers, until, real)
        }
        Meaning::Partitions(writes, at) => {
            let parts = effects::partitions(&arguments, writes);
            let result = within(real);
            if !parts.is_empty() && succeeded(language, words, result) {
                let handle = arguments.handle_in(at, 0, HandleKind::Request);
                requests::add_partitioned(handle, call, parts, writes);
            }
            result
        }
        Meaning::Tells(says) => tells(call, &arguments, words, says, real),
    }
}

/// Where a file's half-done call stands among one-sided calls: no window has such a handle.
fn file_key(arguments: &Arguments<'_>, at: usize) -> usize {
    arguments.raw_handle(at) | 1 << (usize::BITS - 1)
}

fn touches(
    call: CallNumber,
    arguments: &Arguments<'_>,
    words: &[usize],
    transfers: Transfers,
    until: Until,
    real: Real<'_>,
) -> c_int {
    if transfers.all.is_empty() {
        return within(real);
    }
    let ok = |result| succeeded(arguments.language, words, result);
    match until {
        Until::Return => requests::during_call(call, &transfers.all, || within(real)),
        Until::Request(at) => {
            let request = requests::begin(call, &transfers.all);
            let result = within(real);
            if let Some(request) = request {
                if ok(result) {
                    requests::add(arguments.handle_in(at, 0, HandleKind::Request), call, request);
                } else {
                    requests::end(call, request);
                }
            }
            result
        }
        Until::Started(at) => {
            let result = within(real);
            if ok(result) {
                requests::add_persistent(arguments.handle_in(at, 0, HandleKind::Request), call, transfers.all);
            }
            result
        }
        Until::Epoch(target, window) => {
            let request = requests::begin(call, &transfers.all);
            let result = within(real);
            if let Some(request) = request {
                let window = arguments.handle(window, HandleKind::Window);
                requests::add_one_sided(window, arguments.int(target), request);
            }
            result
        }
        Until::Split(file) => {
            let request = requests::begin(call, &transfers.all);
            let result = within(real);
            if let Some(request) = request {
                requests::add_one_sided(file_key(arguments, file), 0, request);
            }
            result
        }
    }
}

fn tells(call: CallNumber, arguments: &Arguments<'_>, words: &[usize], says: Says, real: Real<'_>) -> c_int {
    let ok = |result| succeeded(arguments.language, words, result);
    let window = match says {
        Says::Window(at) => Some((arguments.handle(at, HandleKind::Window), None)),
        Says::Target(rank, at) => Some((arguments.handle(at, HandleKind::Window), Some(arguments.int(rank)))),
        Says::WindowAt(at) => Some((arguments.handle_in(at, 0, HandleKind::Window), None)),
        Says::Second(at) => Some((file_key(arguments, at), None)),
        _ => None,
    };
    if let Some((window, target)) = window {
        let result = within(real);
        if ok(result) {
            requests::complete_one_sided(window, target, call);
        }
        return result;
    }
    if !requests::any() {
        return within(real);
    }
    if let Says::Ready(..) | Says::ReadyRange(..) | Says::ReadyList(..) | Says::ArrivedIf(..) = says {
        return partitions(call, arguments, words, says, real);
    }
    // The call sets handles to null: they are read before.
    let array = |count: usize, at: usize| -> Vec<usize> {
        (0..arguments.int(count).max(0) as usize).map(|i| arguments.handle_in(at, i, HandleKind::Request)).collect()
    };
    let handles = match says {
        Says::SeenIf(at, _) => vec![arguments.handle(at, HandleKind::Request)],
        Says::Complete(at) | Says::CompleteIf(at, _) | Says::Freed(at) | Says::Starts(at) => {
            vec![arguments.handle_in(at, 0, HandleKind::Request)]
        }
        Says::All(count, at)
        | Says::AllIf(count, at, _)
        | Says::Any(count, at, _)
        | Says::AnyIf(count, at, _, _)
        | Says::Some(count, at, _, _)
        | Says::SeenAllIf(count, at, _)
        | Says::SeenAnyIf(count, at, _, _)
        | Says::SeenSome(count, at, _, _)
        | Says::StartsAll(count, at) => array(count, at),
        _ => Vec::new(),
    };
    match says {
        Says::Starts(_) | Says::StartsAll(..) => handles.iter().for_each(|handle| requests::start(*handle)),
        Says::Freed(_) => handles.iter().for_each(|handle| requests::forget(*handle)),
        _ => {}
    }
    let result = within(real);
    if !ok(result) {
        return result;
    }
    let stays = matches!(says, Says::SeenIf(..) | Says::SeenAllIf(..) | Says::SeenAnyIf(..) | Says::SeenSome(..));
    let freed = !stays;
    let one = |index: c_int| usize::try_from(index).ok().and_then(|at| handles.get(at).copied());
    let complete = |handle: usize| requests::complete(handle, call, freed);
    let flagged = |flag| arguments.filled(flag) != 0;
    match says {
        Says::Complete(_) | Says::All(..) => handles.iter().copied().for_each(complete),
        Says::CompleteIf(_, flag) | Says::SeenIf(_, flag) | Says::AllIf(_, _, flag) | Says::SeenAllIf(_, _, flag)
            if flagged(flag) =>
        {
            handles.iter().copied().for_each(complete);
        }
        Says::Any(_, _, which) => one(arguments.index_in(which, 0)).into_iter().for_each(complete),
        Says::AnyIf(_, _, which, flag) | Says::SeenAnyIf(_, _, which, flag) if flagged(flag) => {
            one(arguments.index_in(which, 0)).into_iter().for_each(complete);
        }
        Says::Some(_, _, number, which) | Says::SeenSome(_, _, number, which) => {
            let some = (0..arguments.filled(number).max(0) as usize).map(|i| arguments.index_in(which, i));
            some.filter_map(one).for_each(complete);
        }
        _ => {}
    }
    result
}

/// What is said of partitions.
fn partitions(call: CallNumber, arguments: &Arguments<'_>, words: &[usize], says: Says, real: Real<'_>) -> c_int {
    let request = |at| arguments.handle(at, HandleKind::Request);
    let ready = |request, partition: c_int| requests::partition_ready(request, usize::try_from(partition).ok());
    match says {
        Says::Ready(which, at) => ready(request(at), arguments.int(which)),
        Says::ReadyRange(first, last, at) => {
            (arguments.int(first)..=arguments.int(last)).for_each(|which| ready(request(at), which));
        }
        Says::ReadyList(count, list, at) => {
            let all = 0..usize::try_from(arguments.int(count)).unwrap_or(0);
            all.for_each(|which| ready(request(at), arguments.displacement_in(list, which) as c_int));
        }
        _ => {}
    }
    let result = within(real);
    if let Says::ArrivedIf(at, which, flag) = says
        && succeeded(arguments.language, words, result)
        && arguments.filled(flag) != 0
    {
        requests::partition_arrived(request(at), usize::try_from(arguments.int(which)).ok(), call);
    }
    result
}
