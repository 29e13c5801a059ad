//! What programs say to ThreadSanitizer by hand: order that it cannot see, and what to leave out.
//!
//! Owns these names. Order between host threads is passed on; the rest is about races among them,
//! and says nothing here.

use core::ffi::{c_char, c_int, c_uint, c_void};

use crate::gate::{READ, WRITE, order, touch};

/// Defines functions that acquire an object, or release it.
macro_rules! edges {
    ($($name:ident($($before:ident: $ty:ty,)* @ $(, $after:ident: $late:ty)*) $acquires:literal;)*) => {$(
        /// Order between host threads, by this object.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name($($before: $ty,)* object: *const c_void $(, $after: $late)*) {
            order(object as u64, $acquires);
        }
    )*};
}

edges! {
    __tsan_acquire(@) true;
    __tsan_release(@) false;
    __tsan_mutex_post_lock(@, _flags: c_uint, _recursion: c_int) true;
    AnnotateHappensAfter(_file: *const c_char, _line: c_int, @) true;
    AnnotateHappensBefore(_file: *const c_char, _line: c_int, @) false;
    WTFAnnotateHappensAfter(_file: *const c_char, _line: c_int, @) true;
    WTFAnnotateHappensBefore(_file: *const c_char, _line: c_int, @) false;
    AnnotateRWLockAcquired(_file: *const c_char, _line: c_int, @, _writes: c_int) true;
    AnnotateRWLockReleased(_file: *const c_char, _line: c_int, @, _writes: c_int) false;
    AnnotateCondVarSignal(_file: *const c_char, _line: c_int, @) false;
    AnnotateCondVarSignalAll(_file: *const c_char, _line: c_int, @) false;
    AnnotateCondVarWait(_file: *const c_char, _line: c_int, @, _mutex: *const c_void) true;
}

/// A mutex is about to be given up. Answers how often it was held: the program passes that back.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __tsan_mutex_pre_unlock(object: *const c_void, _flags: c_uint) -> c_int {
    order(object as u64, false);
    1
}

/// A library's object is read: one byte of it stands for all.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __tsan_external_read(object: *const c_void, pc: *const c_void, _tag: *const c_void) {
    touch(object as u64, 1, READ, pc as u64);
}

/// A library's object is written: one byte of it stands for all.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __tsan_external_write(object: *const c_void, pc: *const c_void, _tag: *const c_void) {
    touch(object as u64, 1, WRITE, pc as u64);
}

/// Functions that say nothing of interest here. They answer null, or 0, where they answer anything.
macro_rules! silent {
    ($($name:ident)*) => {$(
        /// Nothing to note.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name() -> *const c_void {
            core::ptr::null()
        }
    )*};
}

silent! {
    __tsan_mutex_create __tsan_mutex_destroy __tsan_mutex_pre_lock __tsan_mutex_post_unlock __tsan_mutex_pre_signal
    __tsan_mutex_post_signal __tsan_mutex_pre_divert __tsan_mutex_post_divert
    __tsan_ignore_thread_begin __tsan_ignore_thread_end __tsan_flush_memory
    __tsan_external_register_tag __tsan_external_register_header __tsan_external_assign_tag
    __tsan_get_current_fiber __tsan_create_fiber __tsan_destroy_fiber __tsan_switch_to_fiber __tsan_set_fiber_name
    AnnotateBenignRace AnnotateBenignRaceSized AnnotateEnableRaceDetection AnnotateExpectRace
    AnnotateFlushExpectedRaces AnnotateFlushState AnnotateIgnoreReadsBegin AnnotateIgnoreReadsEnd
    AnnotateIgnoreSyncBegin AnnotateIgnoreSyncEnd AnnotateIgnoreWritesBegin AnnotateIgnoreWritesEnd
    AnnotateMemoryIsInitialized AnnotateMemoryIsUninitialized AnnotateMutexIsNotPHB AnnotateMutexIsUsedAsCondVar
    AnnotateNewMemory AnnotateNoOp AnnotatePCQCreate AnnotatePCQDestroy AnnotatePCQGet AnnotatePCQPut
    AnnotatePublishMemoryRange AnnotateRWLockCreate AnnotateRWLockCreateStatic AnnotateRWLockDestroy
    AnnotateThreadName AnnotateTraceMemory AnnotateUnpublishMemoryRange WTFAnnotateBenignRaceSized
}
