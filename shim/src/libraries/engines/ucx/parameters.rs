//! UCX's structures, as far as they are read or replaced: `ucp/api/ucp.h`.
//!
//! Owns `ucp_request_param_t`, the bytes that a datatype describes, and the callbacks that stand
//! before the program's.
//!
//! The structure grows with UCX's versions, and a mask says which fields there are. A copy holds
//! the fields that the mask names; one with fields that are not known here is not made.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;

use trace::Region;

use crate::libraries::engines::calls::outside;

/// `ucp_request_param_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Parameters {
    mask: u32,
    flags: u32,
    request: *mut c_void,
    callback: usize,
    datatype: u64,
    user_data: *mut c_void,
    reply_buffer: u64,
    memory_type: u32,
    received: *mut c_void,
    memory: *mut c_void,
}

// What a C compiler says of the header of UCX 1.13.
const _: () = assert!(offset_of!(Parameters, callback) == 16 && offset_of!(Parameters, user_data) == 32);
const _: () = assert!(offset_of!(Parameters, memory_type) == 48 && offset_of!(Parameters, received) == 56);
const _: () = assert!(size_of::<Parameters>() == 72 && size_of::<Handler>() == 32);

/// `UCP_OP_ATTR_FIELD_...`.
mod field {
    pub(super) const CALLBACK: u32 = 1 << 1;
    pub(super) const USER_DATA: u32 = 1 << 2;
    pub(super) const DATATYPE: u32 = 1 << 3;
    pub(super) const REPLY_BUFFER: u32 = 1 << 5;
    pub(super) const MEMORY_TYPE: u32 = 1 << 6;
    pub(super) const RECEIVED: u32 = 1 << 7;
    pub(super) const MEMORY: u32 = 1 << 8;
    /// Fields of later versions; flags begin at bit 16.
    pub(super) const LATER: u32 = 0xfe00;
}

/// Which callback an operation has.
#[derive(Clone, Copy)]
pub(super) enum CallbackKind {
    Sent,
    TagReceived,
    /// Of a stream or of an active message's data.
    Received,
}

/// What a callback of ours needs to know.
struct Carried {
    callback: usize,
    user_data: *mut c_void,
    finished: Box<dyn FnOnce()>,
}

/// `ucp_dt_iov_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Piece {
    start: u64,
    length: usize,
}

impl Parameters {
    /// The address of the buffer for an answer, if there is one.
    pub(super) fn reply_buffer(&self) -> Option<u64> {
        (self.mask & field::REPLY_BUFFER != 0).then_some(self.reply_buffer)
    }

    /// The bytes of `count` elements in a buffer; `None`: the program packs them by functions of
    /// its own, or in a way that is not known.
    ///
    /// # Safety
    /// As for UCX's function that gets this buffer.
    pub(super) unsafe fn bytes(&self, buffer: u64, count: usize) -> Option<Vec<Region>> {
        /// `ucp_dt_make_contig(1)`.
        const BYTES: u64 = 1 << 3;
        const CONTIGUOUS: u64 = 0;
        const LIST: u64 = 2;
        let datatype = if self.mask & field::DATATYPE == 0 { BYTES } else { self.datatype };
        let mut regions = match datatype & 7 {
            CONTIGUOUS => vec![Region::linear(buffer, (count as u64).checked_mul(datatype >> 3)?)],
            LIST if count == 0 => Vec::new(),
            LIST => {
                let first: *const Piece = std::ptr::with_exposed_provenance(buffer as usize);
                // SAFETY: forwarded from the caller: there are so many.
                let pieces = unsafe { std::slice::from_raw_parts(first, count) };
                pieces.iter().map(|piece| Region::linear(piece.start, piece.length as u64)).collect()
            }
            _ => return None,
        };
        regions.retain(|region| !region.is_empty());
        Some(regions)
    }
}

/// The parameters of a call, with our callback in the place of the program's.
pub(super) struct Replaced {
    copy: Parameters,
    carried: *mut Carried,
}

/// Whether the program has a callback that cannot be replaced.
pub(super) fn is_beyond(parameters: &Parameters) -> bool {
    parameters.mask & field::CALLBACK != 0 && parameters.mask & field::LATER != 0
}

/// The fields of the program's parameters that its mask names.
///
/// # Safety
/// Null or the program's parameters.
pub(super) unsafe fn read(from: *const Parameters) -> Parameters {
    let mut copy = Parameters {
        mask: 0,
        flags: 0,
        request: std::ptr::null_mut(),
        callback: 0,
        datatype: 0,
        user_data: std::ptr::null_mut(),
        reply_buffer: 0,
        memory_type: 0,
        received: std::ptr::null_mut(),
        memory: std::ptr::null_mut(),
    };
    if from.is_null() {
        return copy;
    }
    // SAFETY: the mask is there in each version.
    let mask = unsafe { (*from).mask };
    let has = |fields: u32| mask & fields != 0;
    let length = if has(field::MEMORY) {
        size_of::<Parameters>()
    } else if has(field::RECEIVED) {
        offset_of!(Parameters, memory)
    } else if has(field::MEMORY_TYPE) {
        offset_of!(Parameters, memory_type) + size_of::<u32>()
    } else if has(field::REPLY_BUFFER) {
        offset_of!(Parameters, memory_type)
    } else {
        offset_of!(Parameters, reply_buffer)
    };
    // SAFETY: the program's structure has the fields that its mask names, and those before them.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut copy).cast::<u8>(), length) };
    copy
}

/// Puts our callback before the program's, if it has one: `finished` runs first.
pub(super) fn replace(
    parameters: &Parameters,
    callback: CallbackKind,
    finished: Box<dyn FnOnce()>,
) -> Option<Replaced> {
    if parameters.mask & field::CALLBACK == 0 || parameters.callback == 0 {
        return None;
    }
    let has_data = parameters.mask & field::USER_DATA != 0;
    let user_data = if has_data { parameters.user_data } else { std::ptr::null_mut() };
    let carried = Box::into_raw(Box::new(Carried { callback: parameters.callback, user_data, finished }));
    let ours = match callback {
        CallbackKind::Sent => sent as *const () as usize,
        CallbackKind::TagReceived => tag_received as *const () as usize,
        CallbackKind::Received => received as *const () as usize,
    };
    let mask = parameters.mask | field::USER_DATA;
    Some(Replaced { copy: Parameters { mask, callback: ours, user_data: carried.cast(), ..*parameters }, carried })
}

impl Replaced {
    pub(super) fn parameters(&self) -> *const Parameters {
        &raw const self.copy
    }

    /// The call has answered that no callback comes.
    pub(super) fn discard(self) {
        // SAFETY: made by `replace`, and UCX calls nothing back for an operation that was over, or
        // failed, at once (`ucp_tag_send_nbx`, "Return").
        drop(unsafe { Box::from_raw(self.carried) });
    }
}

/// An operation is over: what is to be called back, and with what.
///
/// # Safety
/// UCX's user data of a replaced callback, called once.
unsafe fn finish(user_data: *mut c_void) -> (usize, *mut c_void) {
    // SAFETY: forwarded from the caller.
    let carried = unsafe { Box::from_raw(user_data.cast::<Carried>()) };
    (carried.finished)();
    (carried.callback, carried.user_data)
}

unsafe extern "C" fn sent(request: *mut c_void, status: c_int, user_data: *mut c_void) {
    type Theirs = unsafe extern "C" fn(*mut c_void, c_int, *mut c_void);
    outside(|| {
        // SAFETY: UCX calls back once, with the data that it was given.
        let (theirs, user_data) = unsafe { finish(user_data) };
        // SAFETY: the program's callback, for the operation that it gave it to.
        unsafe { std::mem::transmute::<usize, Theirs>(theirs)(request, status, user_data) };
    });
}

unsafe extern "C" fn tag_received(request: *mut c_void, status: c_int, info: *const c_void, user_data: *mut c_void) {
    type Theirs = unsafe extern "C" fn(*mut c_void, c_int, *const c_void, *mut c_void);
    outside(|| {
        // SAFETY: as in `sent`.
        let (theirs, user_data) = unsafe { finish(user_data) };
        // SAFETY: as in `sent`.
        unsafe { std::mem::transmute::<usize, Theirs>(theirs)(request, status, info, user_data) };
    });
}

unsafe extern "C" fn received(request: *mut c_void, status: c_int, length: usize, user_data: *mut c_void) {
    type Theirs = unsafe extern "C" fn(*mut c_void, c_int, usize, *mut c_void);
    outside(|| {
        // SAFETY: as in `sent`.
        let (theirs, user_data) = unsafe { finish(user_data) };
        // SAFETY: as in `sent`.
        unsafe { std::mem::transmute::<usize, Theirs>(theirs)(request, status, length, user_data) };
    });
}

/// `ucp_am_handler_param_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Handler {
    mask: u64,
    id: u32,
    flags: u32,
    callback: usize,
    argument: *mut c_void,
}

/// `UCP_AM_HANDLER_PARAM_FIELD_CB`, `..._ARG`.
const HANDLER_CALLBACK: u64 = 1 << 2;
const HANDLER_ARGUMENT: u64 = 1 << 3;

struct Handling {
    callback: usize,
    argument: *mut c_void,
}

/// A handler of active messages with ours before it: what it does is the program's. Handlers live
/// as long as their worker at least, and there are few: ours are never freed.
///
/// # Safety
/// The program's handler.
pub(super) unsafe fn replace_handler(theirs: *const Handler) -> Option<Handler> {
    // SAFETY: forwarded from the caller.
    let theirs = unsafe { theirs.as_ref() }?;
    if theirs.mask & HANDLER_CALLBACK == 0 || theirs.callback == 0 {
        return None;
    }
    let has_argument = theirs.mask & HANDLER_ARGUMENT != 0;
    let argument = if has_argument { theirs.argument } else { std::ptr::null_mut() };
    let handling = Box::leak(Box::new(Handling { callback: theirs.callback, argument }));
    Some(Handler {
        mask: theirs.mask | HANDLER_ARGUMENT,
        callback: handle as *const () as usize,
        argument: std::ptr::from_mut(handling).cast(),
        ..*theirs
    })
}

unsafe extern "C" fn handle(
    argument: *mut c_void,
    header: *const c_void,
    header_length: usize,
    data: *mut c_void,
    length: usize,
    parameters: *const c_void,
) -> c_int {
    type Theirs = unsafe extern "C" fn(*mut c_void, *const c_void, usize, *mut c_void, usize, *const c_void) -> c_int;
    // SAFETY: our own, which is never freed.
    let handling = unsafe { &*argument.cast::<Handling>() };
    // SAFETY: the program's handler.
    let theirs = unsafe { std::mem::transmute::<usize, Theirs>(handling.callback) };
    // SAFETY: arguments are passed on as they came.
    outside(|| unsafe { theirs(handling.argument, header, header_length, data, length, parameters) })
}
