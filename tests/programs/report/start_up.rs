//! Two fills of the same bytes on two streams, by the driver's API: racing, or with an event
//! between them (`waits`); in `main` or (`thread`) in a thread.

use std::ffi::{CStr, c_char, c_void};

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: i32) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

struct Driver(*mut c_void);

impl Driver {
    fn function<F: Copy>(&self, name: &CStr) -> F {
        // SAFETY: the library is open, and each caller names a function of the type that it asks
        // for.
        unsafe {
            let function = dlsym(self.0, name.as_ptr());
            assert!(!function.is_null(), "{name:?}");
            std::mem::transmute_copy(&function)
        }
    }
}

type Pointer = *mut c_void;

#[inline(never)]
fn two_fills(waits: bool) {
    // SAFETY: the name ends with a zero.
    let driver = Driver(unsafe { dlopen(c"libcuda.so.1".as_ptr(), 2) });
    let init: extern "C" fn(u32) -> i32 = driver.function(c"cuInit");
    let retain: extern "C" fn(&mut Pointer, i32) -> i32 = driver.function(c"cuDevicePrimaryCtxRetain");
    let make_current: extern "C" fn(Pointer) -> i32 = driver.function(c"cuCtxSetCurrent");
    let stream: extern "C" fn(&mut Pointer, u32) -> i32 = driver.function(c"cuStreamCreate");
    let event: extern "C" fn(&mut Pointer, u32) -> i32 = driver.function(c"cuEventCreate");
    let record: extern "C" fn(Pointer, Pointer) -> i32 = driver.function(c"cuEventRecord");
    let wait: extern "C" fn(Pointer, Pointer, u32) -> i32 = driver.function(c"cuStreamWaitEvent");
    let allocate: extern "C" fn(&mut u64, usize) -> i32 = driver.function(c"cuMemAlloc_v2");
    let fill: extern "C" fn(u64, u8, usize, Pointer) -> i32 = driver.function(c"cuMemsetD8Async");
    let finish: extern "C" fn() -> i32 = driver.function(c"cuCtxSynchronize");
    let null = std::ptr::null_mut();
    let (mut context, mut first, mut second, mut done, mut bytes) = (null, null, null, null, 0);
    let made = [init(0), retain(&mut context, 0), make_current(context), stream(&mut first, 1)];
    assert_eq!(made, [0; 4]);
    assert_eq!([stream(&mut second, 1), event(&mut done, 0), allocate(&mut bytes, 4096)], [0; 3]);
    fill(bytes, 1, 4096, first);
    if waits {
        record(done, first);
        wait(second, done, 0);
    }
    fill(bytes, 2, 4096, second);
    assert_eq!(finish(), 0);
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let has = |word: &str| words.iter().any(|other| other == word);
    let waits = has("waits");
    if has("thread") {
        std::thread::spawn(move || two_fills(waits)).join().expect("the thread ends");
    } else {
        two_fills(waits);
    }
}
