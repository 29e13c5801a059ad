//! Finds functions by name: `cuGetProcAddress`, the driver's version, private tables.
//!
//! There is one private table only, for the simulator's own runtime; NVIDIA's private tables do not
//! exist here.

use std::ffi::c_void;

use cuda_sys::{CUdriverProcAddressQueryResult, CUresult, Stream0, c_char, c_int};

use crate::api::*;

/// The CUDA version that the simulated driver speaks.
pub(crate) const VERSION: c_int = 13000;

macro_rules! symbols {
    ($($when:ident fn $name:ident $(($($arg:ident: $ty:ty),* $(,)?))?
       [$($zero:ident $symbol:ident),+ $(,)?] $($effect:ident $($missing:literal)?)?;)*) => {
        #[cfg(feature = "driver")]
        mod exported {
            // SAFETY: declared only to take their addresses; every one is defined in this crate (or
            // it does not link).
            unsafe extern "C" { $($(pub(super) fn $symbol();)+)* }
        }

        /// The address of every symbol, in the table's order.
        #[cfg(feature = "driver")]
        static ADDRESSES: &[unsafe extern "C" fn()] = &[$($(exported::$symbol,)+)*];
        #[cfg(not(feature = "driver"))]
        static ADDRESSES: &[unsafe extern "C" fn()] = &[];
    };
}
cuda_sys::driver_api!(symbols);

/// The version of CUDA in which a symbol with a version suffix came, where programs that ask for
/// less must get the one before. Names not listed: any caller gets the newest form that has the
/// asked-for stream meaning.
const NEWER: &[(&str, c_int)] = &[
    ("cuGetProcAddress_v2", 12000),
    ("cuGraphInstantiateWithParams", 12000),
    ("cuMemPrefetchAsync_v2", 12020),
    ("cuMemAdvise_v2", 12020),
    ("cuGraphAddKernelNode_v2", 12000),
    ("cuGraphKernelNodeGetParams_v2", 12000),
    ("cuGraphKernelNodeSetParams_v2", 12000),
    ("cuGraphExecKernelNodeSetParams_v2", 12000),
    ("cuGraphExecUpdate_v2", 12000),
    ("cuStreamBeginCapture_v2", 10010),
    ("cuStreamGetCaptureInfo_v2", 11030),
    ("cuStreamGetCaptureInfo_v3", 12030),
    ("cuStreamUpdateCaptureDependencies_v2", 12030),
    ("cuGraphAddDependencies_v2", 12030),
    ("cuGraphRemoveDependencies_v2", 12030),
    ("cuGraphGetEdges_v2", 12030),
    ("cuGraphNodeGetDependencies_v2", 12030),
    ("cuGraphNodeGetDependentNodes_v2", 12030),
    ("cuGraphAddNode_v2", 12030),
    ("cuGraphAddNode_v3", 13040),
    ("cuGraphNodeSetParams_v2", 13040),
    ("cuCtxCreate_v2", 3020),
    ("cuCtxCreate_v3", 11040),
    ("cuCtxCreate_v4", 12050),
    ("cuStreamGetCtx_v2", 12050),
    ("cuMemcpyBatchAsync_v2", 13000),
    ("cuMemcpy3DBatchAsync_v2", 13000),
    ("cuEventElapsedTime_v2", 12080),
    ("cuCtxSynchronize_v2", 13000),
    ("cuCtxGetDevice_v2", 13000),
    ("cuLaunchHostFunc_v2", 13010),
    ("cuMulticastBindMem_v2", 13010),
    ("cuMulticastBindAddr_v2", 13010),
    ("cuDeviceGetUuid_v2", 11040),
    ("cuStreamBatchMemOp_v2", 11070),
    ("cuStreamWaitValue32_v2", 11070),
    ("cuStreamWriteValue32_v2", 11070),
    ("cuStreamWaitValue64_v2", 11070),
    ("cuStreamWriteValue64_v2", 11070),
];

fn since(symbol: &str) -> c_int {
    let base = symbol.strip_suffix("_ptsz").or_else(|| symbol.strip_suffix("_ptds")).unwrap_or(symbol);
    NEWER.iter().find(|(name, _)| *name == base).map_or(if base.contains("_v2") { 3020 } else { 2000 }, |(_, v)| *v)
}

fn version_number(symbol: &str) -> u32 {
    let base = symbol.strip_suffix("_ptsz").or_else(|| symbol.strip_suffix("_ptds")).unwrap_or(symbol);
    base.rsplit_once("_v").and_then(|(_, n)| n.parse().ok()).unwrap_or(1)
}

/// The symbol that a base name means for a version and a kind of default stream.
fn find(name: &str, version: c_int, per_thread: bool) -> Result<*mut c_void, CUdriverProcAddressQueryResult> {
    // A full name means exactly that symbol; a base name the newest one that suits.
    let exact = cuda_sys::DRIVER_FUNCTIONS.iter().find(|f| f.name == name && f.family != name);
    if let Some(f) = exact {
        return ADDRESSES.get(f.index as usize).map(|&f| f as *mut c_void).ok_or(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    }
    let candidates = cuda_sys::DRIVER_FUNCTIONS.iter().filter(|f| f.family == name);
    let fits = |f: &&cuda_sys::FunctionInfo| since(f.name) <= version;
    let mut known = false;
    let best = candidates
        .inspect(|_| known = true)
        .filter(fits)
        .filter(|f| f.stream0 != Stream0::PerThread || per_thread)
        .max_by_key(|f| (version_number(f.name), f.stream0 == Stream0::PerThread));
    match best {
        Some(f) => {
            ADDRESSES.get(f.index as usize).map(|&f| f as *mut c_void).ok_or(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)
        }
        None if known => Err(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
        None => Err(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
    }
}

fn proc_address(
    symbol: *const c_char,
    pfn: *mut *mut c_void,
    version: c_int,
    flags: u64,
    status: *mut CUdriverProcAddressQueryResult,
) -> Res {
    let name = text(symbol)?;
    if pfn.is_null() || flags & !3 != 0 {
        return Err(INVALID);
    }
    match find(&name, version, flags & 2 != 0) {
        Ok(address) => {
            put_if(status, CU_GET_PROC_ADDRESS_SUCCESS);
            put(pfn, address)
        }
        Err(why) => {
            put(pfn, std::ptr::null_mut())?;
            put_if(status, why);
            // The newer form reports through the status alone.
            if status.is_null() { Err(CUresult::ERROR_NOT_FOUND) } else { Ok(()) }
        }
    }
}

/// The table through which NVIDIA's runtime reaches into the driver.
const CUDART_TABLE: [u8; 4] = [0x6b, 0xd5, 0xfb, 0x6c];

/// What the simulator's own libraries get for [`cuda_sys::SIM_TABLE`]: NVIDIA's takes the addresses
/// of variables from a private table of the driver, past every tool, and programs must look the
/// same to tools here.
#[cfg(feature = "driver")]
static PRIVATE: cuda_sys::SimTable = cuda_sys::SimTable {
    // SAFETY: the function below has this type; the list of exported symbols leaves the types out.
    library_get_global: unsafe {
        std::mem::transmute::<unsafe extern "C" fn(), cuda_sys::pfn::cuLibraryGetGlobal>(exported::cuLibraryGetGlobal)
    },
    refused: runtime_refused,
    native,
    wait,
    device: super::devices::describe,
};

/// # Safety
/// The counter stays where it is as long as the stream may wait.
#[cfg(feature = "driver")]
unsafe extern "C" fn wait(stream: CUstream, counter: *const u32, value: u32) -> CUresult {
    use crate::objects::stream::{DefaultStream, resolve};
    use crate::objects::task::{MemOp, Task, enqueue};
    let op = MemOp::Wait(counter as u64, u64::from(value), 4, CU_STREAM_WAIT_VALUE_GEQ);
    let enqueued = resolve(stream.bits(), DefaultStream::Legacy)
        .and_then(|stream| enqueue(&stream, Task::Memory(vec![op])).map(|_| ()));
    enqueued.map_or_else(|error| error, |()| CUresult::SUCCESS)
}

/// # Safety
/// `name` is a C string.
#[cfg(feature = "driver")]
unsafe extern "C" fn native(library: CUlibrary, name: *const c_char, run: cuda_sys::NativeKernel) -> CUresult {
    // SAFETY: the caller's promise.
    let name = unsafe { std::ffi::CStr::from_ptr(name) }.to_string_lossy();
    match crate::objects::module::LIBRARIES.get(library.bits()) {
        Ok(library) => {
            library.code.natives.add(&name, run);
            CUresult::SUCCESS
        }
        Err(error) => error,
    }
}

/// # Safety
/// `why` is a C string.
#[cfg(feature = "driver")]
unsafe extern "C" fn runtime_refused(why: *const c_char) {
    // SAFETY: the caller's promise.
    crate::status::complain(&unsafe { std::ffi::CStr::from_ptr(why) }.to_string_lossy());
}

/// What a tool gets for [`cuda_sys::SIM_MEASURE_TABLE`].
#[cfg(feature = "driver")]
static MEASURE: cuda_sys::SimMeasureTable = cuda_sys::SimMeasureTable { observe, array, drain, keep_written };

#[cfg(feature = "driver")]
unsafe extern "C" fn array(array: cuda_sys::CUarray) -> u64 {
    use crate::memory::array::{ARRAYS, MIPMAPPED};
    let mipmapped = || MIPMAPPED.find(array.bits()).map(|array| array.at());
    ARRAYS.find(array.bits()).map(|array| array.at).or_else(mipmapped).unwrap_or(0)
}

/// # Safety
/// The observer lives as long as the process.
#[cfg(feature = "driver")]
unsafe extern "C" fn observe(observer: *const cuda_sys::LaunchObserver) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { observer.as_ref() }.is_some_and(crate::touched::observe).into()
}

#[cfg(feature = "driver")]
unsafe extern "C" fn drain(milliseconds: c_uint) {
    crate::sched::get().drain(std::time::Duration::from_millis(milliseconds.into()));
}

#[cfg(feature = "driver")]
unsafe extern "C" fn keep_written() {
    crate::memory::unwritten::keep();
}

abi! {
    free fn [cuDriverGetVersion plain](_z, version: *mut c_int) {
        put(version, VERSION)
    }
    free fn [cuGetProcAddress plain](_z, symbol: *const c_char, pfn: *mut *mut c_void, version: c_int, flags: u64) {
        proc_address(symbol, pfn, version, flags, std::ptr::null_mut())
    }
    free fn [cuGetProcAddress_v2 plain](
        _z, symbol: *const c_char, pfn: *mut *mut c_void, version: c_int, flags: u64,
        status: *mut CUdriverProcAddressQueryResult
    ) {
        proc_address(symbol, pfn, version, flags, status)
    }
    free fn [cuGetExportTable plain](_z, table: *mut *const c_void, id: *const CUuuid) {
        put_if(table, std::ptr::null());
        #[cfg(feature = "driver")]
        if get(id.cast::<[u8; 16]>())? == cuda_sys::SIM_TABLE {
            return put(table, (&raw const PRIVATE).cast());
        }
        #[cfg(feature = "driver")]
        if get(id.cast::<[u8; 16]>())? == cuda_sys::SIM_MEASURE_TABLE {
            return put(table, (&raw const MEASURE).cast());
        }
        let id = get(id.cast::<[u8; 4]>())?;
        if id == CUDART_TABLE {
            crate::api::startup::foreign_runtime::refuse();
        } else {
            // Tools ask for tables that not every driver has, and can do without.
            crate::status::excuse();
        }
        Err(CUresult::ERROR_NOT_SUPPORTED)
    }
    call fn [cuModuleGetLoadingMode plain](_z, mode: *mut CUmoduleLoadingMode) {
        put(mode, CU_MODULE_LAZY_LOADING)
    }
    call fn [cuFlushGPUDirectRDMAWrites plain](
        _z, target: CUflushGPUDirectRDMAWritesTarget, scope: CUflushGPUDirectRDMAWritesScope
    ) {
        thread::context().map(|_| ())
    }
}
