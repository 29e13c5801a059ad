//! CUDA's types for checkpoints, core dumps, logs and notifications. Names, values and layouts are
//! those of `cuda.h`; the shared rules are in [`super`].

use super::*;

c_enum! { CUasyncNotificationType(c_uint)
    CU_ASYNC_NOTIFICATION_TYPE_OVER_BUDGET = 1,
}

c_enum! { CUprocessState(c_uint)
    CU_PROCESS_STATE_RUNNING = 0,
    CU_PROCESS_STATE_LOCKED = 1,
    CU_PROCESS_STATE_CHECKPOINTED = 2,
    CU_PROCESS_STATE_FAILED = 3,
    CU_PROCESS_STATE_CHECKPOINTING = 4,
    CU_PROCESS_STATE_RESTORING = 5,
}

c_enum! { CUcoredumpSettings(c_uint)
    CU_COREDUMP_ENABLE_ON_EXCEPTION = 1,
    CU_COREDUMP_TRIGGER_HOST = 2,
    CU_COREDUMP_LIGHTWEIGHT = 3,
    CU_COREDUMP_ENABLE_USER_TRIGGER = 4,
    CU_COREDUMP_FILE = 5,
    CU_COREDUMP_PIPE = 6,
    CU_COREDUMP_GENERATION_FLAGS = 7,
    CU_COREDUMP_MAX = 8,
}

c_consts! { c_int; // CUCoredumpGenerationFlags
    CU_COREDUMP_DEFAULT_FLAGS = 0,
    CU_COREDUMP_SKIP_NONRELOCATED_ELF_IMAGES = 1,
    CU_COREDUMP_SKIP_GLOBAL_MEMORY = 2,
    CU_COREDUMP_SKIP_SHARED_MEMORY = 4,
    CU_COREDUMP_SKIP_LOCAL_MEMORY = 8,
    CU_COREDUMP_SKIP_ABORT = 16,
    CU_COREDUMP_SKIP_CONSTBANK_MEMORY = 32,
    CU_COREDUMP_GZIP_COMPRESS = 64,
    CU_COREDUMP_FAULTED_CONTEXTS_ONLY = 128,
    CU_COREDUMP_SKIP_TENSOR_MEMORY = 256,
    CU_COREDUMP_NO_ERRBAR_AT_EXIT = 0x40000000,
    CU_COREDUMP_LOG_ONLY = -2147483648,
    CU_COREDUMP_LIGHTWEIGHT_FLAGS = 303,
}

c_enum! { CUlogLevel(c_uint)
    CU_LOG_LEVEL_ERROR = 0,
    CU_LOG_LEVEL_WARNING = 1,
}

pub type CUasyncCallback =
    Option<unsafe extern "C" fn(*mut CUasyncNotificationInfo, *mut c_void, CUasyncCallbackHandle)>;
pub type CUcoredumpStatusCallback = Option<unsafe extern "C" fn(*mut c_void, c_int, CUdevice)>;
pub type CUlogsCallback = Option<unsafe extern "C" fn(*mut c_void, CUlogLevel, *mut c_char, usize)>;
pub type CUlogIterator = c_uint;

c_structs! { CHECKPOINT_LAYOUTS
    struct CUasyncNotificationInfo_info_overBudget {
        bytesOverBudget: u64,
    }
    union CUasyncNotificationInfo_info {
        overBudget: CUasyncNotificationInfo_info_overBudget,
    }
    struct CUasyncNotificationInfo {
        type_: CUasyncNotificationType,
        info: CUasyncNotificationInfo_info,
    }
    struct CUcheckpointCustomStoragePerDeviceData {
        devPtr: CUdeviceptr,
        size: usize,
        stream: CUstream,
    }
    struct CUcheckpointCustomStorageInfo {
        handle: CUcheckpointOperationHandle,
        perDeviceData: *mut CUcheckpointCustomStoragePerDeviceData,
        deviceCount: c_uint,
    }
    struct CUcheckpointLockArgs {
        timeoutMs: c_uint,
        reserved0: c_uint,
        reserved1: [u64; 7],
    }
    struct CUcheckpointCheckpointArgs {
        customStorageInfo_out: *mut *mut CUcheckpointCustomStorageInfo,
        reserved: [c_char; 64 - size_of::<*mut CUcheckpointCustomStorageInfo>()],
    }
    struct CUcheckpointGpuPair {
        oldUuid: CUuuid,
        newUuid: CUuuid,
    }
    struct CUcheckpointRestoreArgs {
        gpuPairs: *mut CUcheckpointGpuPair,
        gpuPairsCount: c_uint,
        padding0: c_uint,
        customStorageInfo_out: *mut *mut CUcheckpointCustomStorageInfo,
        reserved: [c_char; 64 - size_of::<*mut CUcheckpointGpuPair>() - 2 * size_of::<c_uint>() - size_of::<*mut *mut CUcheckpointCustomStorageInfo>()],
    }
    struct CUcheckpointUnlockArgs {
        reserved: [u64; 8],
    }
}
