//! The few functions and structures of NVIDIA's Sanitizer API that exact mode uses, declared here
//! and loaded at run time.
//!
//! Owns the ABI, as the headers of CUDA 12.3 to 13.x state it. The library belongs to NVIDIA and is
//! never shipped: it comes from the user's toolkit or from PyPI's nvidia-cuda-sanitizer-api. Does
//! not act on callbacks: see [`super::callbacks`].

use std::ffi::{OsStr, c_char, c_void};

use cuda_sys::{CUcontext, CUfunction, CUstream};
use libloading::os::unix::Library;

/// What the API answers; 0 is success.
pub(super) type Answer = u32;

/// The API's own handle of a stream.
pub(super) type StreamHandle = *mut c_void;

/// The API's handle of a launch.
pub(super) type LaunchHandle = *mut c_void;

/// `Sanitizer_CallbackFunc`: user data, domain, callback id, data of the callback.
pub(super) type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const c_void);

/// Callback domains.
pub(super) mod domain {
    /// `SANITIZER_CB_DOMAIN_RESOURCE`.
    pub(crate) const RESOURCE: u32 = 3;
    /// `SANITIZER_CB_DOMAIN_LAUNCH`.
    pub(crate) const LAUNCH: u32 = 5;
    /// `SANITIZER_CB_DOMAIN_GRAPHS`.
    pub(crate) const GRAPHS: u32 = 10;
}

/// Callback ids, each within its domain.
pub(super) mod event {
    /// `SANITIZER_CBID_RESOURCE_CONTEXT_DESTROY_STARTING`.
    pub(crate) const CONTEXT_DESTROY: u32 = 4;
    /// `SANITIZER_CBID_RESOURCE_MODULE_LOADED`.
    pub(crate) const MODULE_LOADED: u32 = 9;
    /// `SANITIZER_CBID_RESOURCE_MODULE_UNLOAD_STARTING`.
    pub(crate) const MODULE_UNLOAD: u32 = 10;
    /// `SANITIZER_CBID_LAUNCH_BEGIN`.
    pub(crate) const LAUNCH_BEGIN: u32 = 1;
    /// `SANITIZER_CBID_LAUNCH_AFTER_SYSCALL_SETUP`.
    pub(crate) const LAUNCH_SET_UP: u32 = 2;
    /// `SANITIZER_CBID_GRAPHS_GRAPHEXEC_CREATING`.
    pub(crate) const EXEC_CREATING: u32 = 1;
    /// `SANITIZER_CBID_GRAPHS_GRAPHEXEC_CREATED`.
    pub(crate) const EXEC_CREATED: u32 = 2;
    /// `SANITIZER_CBID_GRAPHS_NODE_LAUNCH_BEGIN`.
    pub(crate) const NODE_LAUNCH_BEGIN: u32 = 4;
    /// `SANITIZER_CBID_GRAPHS_LAUNCH_BEGIN`.
    pub(crate) const GRAPH_LAUNCH_BEGIN: u32 = 6;
}

/// What is patched, and by which function of `shim/patch/exact.cu`. The names end in the version of
/// the table, so that patches of another one are not found.
pub(super) const PATCHES: [(u32, &std::ffi::CStr); 5] = [
    // SANITIZER_INSTRUCTION_GLOBAL_MEMORY_ACCESS
    (3, c"streamsan_global_2"),
    // SANITIZER_INSTRUCTION_MEMCPY_ASYNC
    (14, c"streamsan_copy_2"),
    // SANITIZER_INSTRUCTION_BULK_COPY_GLOBAL_TO_SHARED
    (30, c"streamsan_bulk_load_2"),
    // SANITIZER_INSTRUCTION_BULK_COPY_SHARED_TO_GLOBAL
    (35, c"streamsan_bulk_store_2"),
    // SANITIZER_INSTRUCTION_BULK_REDUCTION_SHARED_TO_GLOBAL
    (37, c"streamsan_bulk_reduce_2"),
];

/// `Sanitizer_ResourceContextData`.
#[repr(C)]
pub(super) struct ContextData {
    /// The context.
    pub context: CUcontext,
    /// Its device.
    pub device: i32,
}

/// `Sanitizer_ResourceModuleData`, its beginning.
#[repr(C)]
pub(super) struct ModuleData {
    /// Context of the module.
    pub context: CUcontext,
    /// The module.
    pub module: *mut c_void,
}

/// `Sanitizer_LaunchData`, its beginning.
#[repr(C)]
pub(super) struct LaunchData {
    /// Context of the launch.
    pub context: CUcontext,
    /// The stream.
    pub stream: CUstream,
    /// The API's handle of it.
    pub stream_handle: StreamHandle,
    /// Module of the kernel.
    pub module: *mut c_void,
    /// The kernel.
    pub function: CUfunction,
    /// Its mangled name.
    pub name: *const c_char,
    /// Blocks, threads a block, blocks a cluster.
    pub shape: [u32; 9],
    /// Number of the grid.
    pub grid: u64,
    /// The launch.
    pub launch: LaunchHandle,
}

/// `Sanitizer_GraphNodeLaunchData`, its beginning.
#[repr(C)]
pub(super) struct NodeData {
    /// The executable graph.
    pub exec: *mut c_void,
    /// Number of the launch.
    pub number: u32,
    /// The node.
    pub node: *mut c_void,
    /// `CUgraphNodeType`: 0 is a kernel.
    pub kind: u32,
    /// Of a kernel: its launch. (Other kinds have other structures here.)
    pub launch: LaunchData,
}

/// `Sanitizer_GraphLaunchData`.
#[repr(C)]
pub(super) struct GraphData {
    /// Context of the launch.
    pub context: CUcontext,
    /// The stream.
    pub stream: CUstream,
    /// The API's handle of it.
    pub stream_handle: StreamHandle,
    /// The executable graph.
    pub exec: *mut c_void,
    /// Whether it is only uploaded.
    pub upload: u32,
}

const _: () = assert!(std::mem::offset_of!(GraphData, upload) == 32);
const _: () = assert!(std::mem::offset_of!(NodeData, launch) == 32 && std::mem::offset_of!(LaunchData, launch) == 96);

macro_rules! functions {
    ($($field:ident = $symbol:literal ($($arg:ty),*);)*) => {
        /// The functions of the library.
        #[allow(missing_docs, dead_code, reason = "named as in NVIDIA's headers; one is looked up to check the version")]
        pub struct SanitizerApi { $(pub $field: unsafe extern "C" fn($($arg),*) -> Answer,)* }

        impl SanitizerApi {
            /// Loads the library, for the life of the process.
            pub fn load(path: &OsStr) -> Result<Self, String> {
                // SAFETY: the user has named this library; its constructors do nothing until it is
                // subscribed to.
                let library = unsafe { Library::open(Some(path), libc::RTLD_NOW | libc::RTLD_LOCAL) }.map_err(|e| e.to_string())?;
                let api = Self { $($field: {
                    // SAFETY: the library's headers give the function of this name this type.
                    let found = unsafe { library.get::<unsafe extern "C" fn($($arg),*) -> Answer>($symbol) };
                    *found.map_err(|_| {
                        let name = String::from_utf8_lossy($symbol).into_owned();
                        format!("{} has no {name}: too old", path.to_string_lossy())
                    })?
                },)* };
                let _ = library.into_raw();
                Ok(api)
            }
        }
    };
}

functions! {
    subscribe = b"sanitizerSubscribe" (*mut *mut c_void, Callback, *mut c_void);
    enable_domain = b"sanitizerEnableDomain" (u32, *mut c_void, u32);
    add_patches = b"sanitizerAddPatches" (*const c_void, CUcontext);
    patch_instructions = b"sanitizerPatchInstructions" (u32, *mut c_void, *const c_char);
    patch_module = b"sanitizerPatchModule" (*mut c_void);
    set_launch_data = b"sanitizerSetLaunchCallbackData" (LaunchHandle, CUfunction, StreamHandle, *const c_void);
    alloc = b"sanitizerAlloc" (CUcontext, *mut *mut c_void, usize);
    alloc_host = b"sanitizerAllocHost" (CUcontext, *mut *mut c_void, usize);
    memset = b"sanitizerMemset" (*mut c_void, i32, usize, StreamHandle);
    download = b"sanitizerMemcpyDeviceToHost" (*mut c_void, *const c_void, usize, StreamHandle);
    finish = b"sanitizerStreamSynchronize" (StreamHandle);
    stream_handle = b"sanitizerGetStreamHandle" (CUcontext, CUstream, *mut StreamHandle);
    // Not called; it is there since CUDA 12.3, and so are the fields of LaunchData.
    since_12_3 = b"sanitizerSetDeviceGraphData" (*mut c_void, StreamHandle, *const c_void);
}
