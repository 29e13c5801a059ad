//! CUDA's types for memory and semaphores shared with other processes and other APIs. Names, values
//! and layouts are those of `cuda.h`; the shared rules are in [`super`].

use super::*;

pub const CU_IPC_HANDLE_SIZE: usize = 64;

pub const CUDA_EXTERNAL_MEMORY_DEDICATED: c_uint = 0x1;
pub const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_SKIP_NVSCIBUF_MEMSYNC: c_uint = 0x01;
pub const CUDA_EXTERNAL_SEMAPHORE_WAIT_SKIP_NVSCIBUF_MEMSYNC: c_uint = 0x02;

c_consts! { c_uint; // CUipcMem_flags
    CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 0x1,
}

c_consts! { c_uint; // CUgraphicsRegisterFlags
    CU_GRAPHICS_REGISTER_FLAGS_NONE = 0,
    CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY = 1,
    CU_GRAPHICS_REGISTER_FLAGS_WRITE_DISCARD = 2,
    CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST = 4,
    CU_GRAPHICS_REGISTER_FLAGS_TEXTURE_GATHER = 8,
}

c_consts! { c_uint; // CUgraphicsMapResourceFlags
    CU_GRAPHICS_MAP_RESOURCE_FLAGS_NONE = 0,
    CU_GRAPHICS_MAP_RESOURCE_FLAGS_READ_ONLY = 1,
    CU_GRAPHICS_MAP_RESOURCE_FLAGS_WRITE_DISCARD = 2,
}

c_enum! { CUexternalMemoryHandleType(c_uint)
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD = 1,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32 = 2,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_WIN32_KMT = 3,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP = 4,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_RESOURCE = 5,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE = 6,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_D3D11_RESOURCE_KMT = 7,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_NVSCIBUF = 8,
    CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD = 9,
}

c_enum! { CUexternalSemaphoreHandleType(c_uint)
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD = 1,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32 = 2,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT = 3,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE = 4,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_FENCE = 5,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC = 6,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX = 7,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX_KMT = 8,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD = 9,
    CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32 = 10,
}

pub type CUipcEventHandle = CUipcEventHandle_v1;
pub type CUipcMemHandle = CUipcMemHandle_v1;
pub type CUDA_EXTERNAL_MEMORY_HANDLE_DESC = CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1;
pub type CUDA_EXTERNAL_MEMORY_BUFFER_DESC = CUDA_EXTERNAL_MEMORY_BUFFER_DESC_v1;
pub type CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC = CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_v1;
pub type CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_v1;
pub type CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1;
pub type CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1;
pub type CUDA_EXT_SEM_SIGNAL_NODE_PARAMS = CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1;
pub type CUDA_EXT_SEM_WAIT_NODE_PARAMS = CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1;

c_structs! { EXTERNAL_LAYOUTS
    struct CUipcEventHandle_v1 {
        reserved: [c_char; 64],
    }
    struct CUipcMemHandle_v1 {
        reserved: [c_char; 64],
    }
    struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1_handle_win32 {
        handle: *mut c_void,
        name: *const c_void,
    }
    union CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1_handle {
        fd: c_int,
        win32: CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1_handle_win32,
        nvSciBufObject: *const c_void,
    }
    struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1 {
        type_: CUexternalMemoryHandleType,
        handle: CUDA_EXTERNAL_MEMORY_HANDLE_DESC_v1_handle,
        size: u64,
        flags: c_uint,
        reserved: [c_uint; 16],
    }
    struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC_v1 {
        offset: u64,
        size: u64,
        flags: c_uint,
        reserved: [c_uint; 16],
    }
    struct CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_v1 {
        offset: u64,
        arrayDesc: CUDA_ARRAY3D_DESCRIPTOR,
        numLevels: c_uint,
        reserved: [c_uint; 16],
    }
    struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_v1_handle_win32 {
        handle: *mut c_void,
        name: *const c_void,
    }
    union CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_v1_handle {
        fd: c_int,
        win32: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_v1_handle_win32,
        nvSciSyncObj: *const c_void,
    }
    struct CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_v1 {
        type_: CUexternalSemaphoreHandleType,
        handle: CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC_v1_handle,
        flags: c_uint,
        reserved: [c_uint; 16],
    }
    struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1_params_fence {
        value: u64,
    }
    union CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1_params_nvSciSync {
        fence: *mut c_void,
        reserved: u64,
    }
    struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1_params_keyedMutex {
        key: u64,
    }
    struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1_params {
        fence: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1_params_fence,
        nvSciSync: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1_params_nvSciSync,
        keyedMutex: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1_params_keyedMutex,
        reserved: [c_uint; 12],
    }
    struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1 {
        params: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_v1_params,
        flags: c_uint,
        reserved: [c_uint; 16],
    }
    struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1_params_fence {
        value: u64,
    }
    union CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1_params_nvSciSync {
        fence: *mut c_void,
        reserved: u64,
    }
    struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1_params_keyedMutex {
        key: u64,
        timeoutMs: c_uint,
    }
    struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1_params {
        fence: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1_params_fence,
        nvSciSync: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1_params_nvSciSync,
        keyedMutex: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1_params_keyedMutex,
        reserved: [c_uint; 10],
    }
    struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1 {
        params: CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_v1_params,
        flags: c_uint,
        reserved: [c_uint; 16],
    }
    struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v1 {
        extSemArray: *mut CUexternalSemaphore,
        paramsArray: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
        numExtSems: c_uint,
    }
    union CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_anon1 {
        ctx: CUcontext,
        gCtx: CUgreenCtx,
    }
    struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2 {
        extSemArray: *mut CUexternalSemaphore,
        paramsArray: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
        numExtSems: c_uint,
        anon1: CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_anon1,
    }
    struct CUDA_EXT_SEM_WAIT_NODE_PARAMS_v1 {
        extSemArray: *mut CUexternalSemaphore,
        paramsArray: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
        numExtSems: c_uint,
    }
    union CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_anon1 {
        ctx: CUcontext,
        gCtx: CUgreenCtx,
    }
    struct CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2 {
        extSemArray: *mut CUexternalSemaphore,
        paramsArray: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
        numExtSems: c_uint,
        anon1: CUDA_EXT_SEM_WAIT_NODE_PARAMS_v2_anon1,
    }
}
