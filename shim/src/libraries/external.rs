//! Engines that CUDA does not see, in the program's own words (`include/streamsan.h`): a network
//! card or a disk that reads or writes memory from one call on until another one says that it is
//! done.
//!
//! Owns these exports, and which accesses a key stands for. What an access is in the trace is
//! [`super::requests`]'.

use cuda_sys::FnId;
use trace::Region;

use super::requests::{self, Access};
use crate::log::call_names::library_call;
use crate::log::start;
use crate::runtime::lifecycle;

const READS: u32 = 1;
const WRITES: u32 = 2;

const BEGIN: FnId = library_call("STREAMSAN_EXTERNAL_BEGIN");
const END: FnId = library_call("STREAMSAN_EXTERNAL_END");

/// An engine begins to read or write these bytes. `key`: any number of the program's, under which
/// it says later that the engine is done. Several accesses may have one.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_external_begin(access: u32, ptr: u64, bytes: u64, key: u64) {
    let (reads, writes) = (access & READS != 0, access & WRITES != 0);
    if ptr == 0 || bytes == 0 || !(reads || writes) || !lifecycle::is_running() {
        return;
    }
    let access = Access { region: Region::linear(ptr, bytes), reads, writes, exact: true };
    let request = requests::begin(BEGIN, &[access]);
    if request != 0
        && let Some(core) = start::core()
    {
        core.handles.engines.entry(key).or_default().push(request);
    }
}

/// The host has seen that all accesses with this key are over.
#[cfg_attr(not(test), unsafe(no_mangle))]
extern "C" fn streamsan_external_end(key: u64) {
    if !lifecycle::is_running() {
        return;
    }
    let begun = start::core().and_then(|core| core.handles.engines.remove(&key));
    for request in begun.into_iter().flat_map(|(_, begun)| begun) {
        requests::end(END, request);
    }
}
