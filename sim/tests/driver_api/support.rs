//! What the tests of the driver share: its functions as a program links them, kernels in PTX, and
//! small conveniences.
#![allow(dead_code, non_snake_case, missing_docs, reason = "each test uses a part")]

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use cuda_sys::*;
use streamsan_sim as _;

macro_rules! declare {
    ($($when:ident fn $name:ident $(($($arg:ident: $ty:ty),* $(,)?))?
       [$($zero:ident $symbol:ident),+ $(,)?] $($effect:ident $($missing:literal)?)?;)*) => {
        $( declare! { @row $(($($arg: $ty),*))? [$($symbol),+] } )*
    };
    (@row [$($symbol:ident),+]) => {};
    (@row $args:tt [$($symbol:ident),+]) => { $( declare! { @symbol $args $symbol } )+ };
    (@symbol ($($arg:ident: $ty:ty),*) $symbol:ident) => {
        // SAFETY: the table's signature of a function that the simulator defines.
        unsafe extern "C" { pub fn $symbol($($arg: $ty),*) -> CUresult; }
    };
}
pub mod cuda {
    use super::*;
    driver_api!(declare);
    // Functions whose rows have no signature.
    // SAFETY: the signatures of `cuda.h`.
    unsafe extern "C" {
        pub fn cuDeviceGetGraphMemAttribute(
            device: CUdevice,
            a: CUgraphMem_attribute,
            v: *mut std::ffi::c_void,
        ) -> CUresult;
        pub fn cuPointerGetAttribute(
            data: *mut std::ffi::c_void,
            attribute: CUpointer_attribute,
            ptr: CUdeviceptr,
        ) -> CUresult;
        pub fn cuPointerGetAttributes(
            count: u32,
            attributes: *mut CUpointer_attribute,
            data: *mut *mut std::ffi::c_void,
            ptr: CUdeviceptr,
        ) -> CUresult;
        pub fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> CUresult;
        pub fn cuGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) -> CUresult;
        pub fn cuKernelGetParamInfo(k: CUkernel, index: usize, offset: *mut usize, size: *mut usize) -> CUresult;
        pub fn cuFuncGetParamInfo(f: CUfunction, index: usize, offset: *mut usize, size: *mut usize) -> CUresult;
    }
}

/// Calls a function of the driver.
#[macro_export]
macro_rules! cu {
    ($name:ident($($arg:expr),* $(,)?)) => {
        // SAFETY: the tests pass what the interface asks for, or what it must refuse.
        unsafe { $crate::support::cuda::$name($($arg),*) }
    };
}

/// Calls a function of the driver that must succeed.
#[macro_export]
macro_rules! ok {
    ($name:ident($($arg:expr),* $(,)?)) => {
        assert_eq!($crate::cu!($name($($arg),*)), cuda_sys::CUresult::SUCCESS, stringify!($name))
    };
}

/// `put` writes a value to every element, `twice` doubles into another buffer, `spin` runs until a
/// flag is set.
pub const PTX: &std::ffi::CStr = c"
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 counter = 7;
.visible .entry put(.param .u64 dst, .param .u32 value) {
    .reg .u32 %r<6>; .reg .u64 %d<4>;
    ld.param.u64 %d1, [dst];        cvta.to.global.u64 %d1, %d1;
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %ctaid.x;  mov.u32 %r3, %ntid.x;  mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    mad.wide.u32 %d2, %r5, 4, %d1;
    st.global.u32 [%d2], %r1;
    ret;
}
.visible .entry twice(.param .u64 src, .param .u64 dst) {
    .reg .u32 %r<7>; .reg .u64 %d<5>;
    ld.param.u64 %d1, [src];        cvta.to.global.u64 %d1, %d1;
    ld.param.u64 %d2, [dst];        cvta.to.global.u64 %d2, %d2;
    mov.u32 %r2, %ctaid.x;  mov.u32 %r3, %ntid.x;  mov.u32 %r4, %tid.x;
    mad.lo.u32 %r5, %r2, %r3, %r4;
    mad.wide.u32 %d3, %r5, 4, %d1;
    mad.wide.u32 %d4, %r5, 4, %d2;
    ld.global.u32 %r1, [%d3];
    shl.b32 %r6, %r1, 1;
    st.global.u32 [%d4], %r6;
    ret;
}
.visible .entry spin(.param .u64 flag) {
    .reg .u32 %r<3>; .reg .u64 %d<2>; .reg .pred %p<2>;
    ld.param.u64 %d1, [flag];        cvta.to.global.u64 %d1, %d1;
again:
    ld.volatile.global.u32 %r1, [%d1];
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra again;
    ret;
}
";

/// A device, its primary context (current), and the kernels.
pub struct Gpu {
    pub ctx: CUcontext,
    pub module: CUmodule,
    _alone: std::sync::MutexGuard<'static, ()>,
}

/// Tests share the process, so the primary context and what its calls wait for: they take turns.
pub fn gpu() -> Gpu {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    ok!(cuInit(0));
    let mut ctx = CUcontext::NULL;
    ok!(cuDevicePrimaryCtxRetain(&mut ctx, 0));
    ok!(cuCtxSetCurrent(ctx));
    let mut module = CUmodule::NULL;
    ok!(cuModuleLoadData(&mut module, PTX.as_ptr().cast()));
    Gpu { ctx, module, _alone: alone }
}

impl Gpu {
    pub fn function(&self, name: &std::ffi::CStr) -> CUfunction {
        let mut f = CUfunction::NULL;
        ok!(cuModuleGetFunction(&mut f, self.module, name.as_ptr()));
        f
    }

    /// Writes `value` to 64 words.
    pub fn put(&self, dst: u64, value: u32, stream: CUstream) {
        let (mut dst, mut value) = (dst, value);
        let mut params = [(&raw mut dst).cast(), (&raw mut value).cast()];
        let none = std::ptr::null_mut();
        ok!(cuLaunchKernel(self.function(c"put"), 2, 1, 1, 32, 1, 1, 0, stream, params.as_mut_ptr(), none));
    }

    /// Doubles 64 words.
    pub fn twice(&self, src: u64, dst: u64, stream: CUstream) {
        let (mut src, mut dst) = (src, dst);
        let mut params = [(&raw mut src).cast(), (&raw mut dst).cast()];
        let none = std::ptr::null_mut();
        ok!(cuLaunchKernel(self.function(c"twice"), 2, 1, 1, 32, 1, 1, 0, stream, params.as_mut_ptr(), none));
    }

    /// Keeps a stream busy until the flag in pinned memory is set.
    pub fn spin(&self, flag: u64, stream: CUstream) {
        let mut flag = flag;
        let mut params = [(&raw mut flag).cast()];
        let none = std::ptr::null_mut();
        ok!(cuLaunchKernel(self.function(c"spin"), 1, 1, 1, 1, 1, 1, 0, stream, params.as_mut_ptr(), none));
    }
}

pub fn alloc(bytes: usize) -> u64 {
    let mut at = 0;
    ok!(cuMemAlloc_v2(&mut at, bytes));
    at
}

pub fn stream(flags: u32) -> CUstream {
    let mut s = CUstream::NULL;
    ok!(cuStreamCreate(&mut s, flags));
    s
}

/// Pinned memory for words, as a device address and as a host slice.
pub fn pinned(words: usize) -> (u64, &'static mut [u32]) {
    let mut p = std::ptr::null_mut();
    ok!(cuMemHostAlloc(&mut p, words * 4, 0));
    // SAFETY: fresh memory of that size, never freed by the tests that use this.
    (p as u64, unsafe { std::slice::from_raw_parts_mut(p.cast(), words) })
}

/// The words at a device address.
pub fn read(at: u64, words: usize) -> Vec<u32> {
    let mut out = vec![0u32; words];
    ok!(cuMemcpyDtoH_v2(out.as_mut_ptr().cast(), at, words * 4));
    out
}

/// Starts work that ends when the returned value is dropped or released. What a call waits for
/// shows by whether it returns.
pub struct Busy(&'static AtomicU32);

pub fn busy(gpu: &Gpu, stream: CUstream) -> Busy {
    let (at, words) = pinned(1);
    // SAFETY: four aligned bytes that live for ever.
    let flag = unsafe { &*(words.as_ptr() as *const AtomicU32) };
    flag.store(0, Ordering::SeqCst);
    gpu.spin(at, stream);
    Busy(flag)
}

impl Busy {
    pub fn end(&self) {
        self.0.store(1, Ordering::SeqCst);
    }
}

/// Whether the call returns while the stream is busy.
pub fn returns_at_once(gpu: &Gpu, busy_stream: CUstream, call: impl FnOnce() + Send) -> bool {
    let work = busy(gpu, busy_stream);
    let done = AtomicU32::new(0);
    let ctx = gpu.ctx;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            ok!(cuCtxSetCurrent(ctx));
            call();
            done.store(1, Ordering::SeqCst);
        });
        for _ in 0..40 {
            std::thread::sleep(Duration::from_millis(5));
            if done.load(Ordering::SeqCst) == 1 {
                break;
            }
        }
        let at_once = done.load(Ordering::SeqCst) == 1;
        work.end();
        at_once
    })
}
