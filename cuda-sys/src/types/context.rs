//! CUDA's types for contexts, limits and entry points, and for green contexts and the device
//! resources that they are cut from. Names, values and layouts are those of `cuda.h`; the shared
//! rules are in [`super`].

use super::*;

c_consts! { c_uint; // CUctx_flags
    CU_CTX_SCHED_AUTO = 0x0,
    CU_CTX_SCHED_SPIN = 0x1,
    CU_CTX_SCHED_YIELD = 0x2,
    CU_CTX_SCHED_BLOCKING_SYNC = 0x4,
    CU_CTX_BLOCKING_SYNC = 0x4,
    CU_CTX_SCHED_MASK = 0x7,
    CU_CTX_MAP_HOST = 0x8,
    CU_CTX_LMEM_RESIZE_TO_MAX = 0x10,
    CU_CTX_COREDUMP_ENABLE = 0x20,
    CU_CTX_USER_COREDUMP_ENABLE = 0x40,
    CU_CTX_SYNC_MEMOPS = 0x80,
    CU_CTX_FLAGS_MASK = 0xff,
}

c_consts! { c_uint; // cl_context_flags
    NVCL_CTX_SCHED_AUTO = 0x0,
    NVCL_CTX_SCHED_SPIN = 0x1,
    NVCL_CTX_SCHED_YIELD = 0x2,
    NVCL_CTX_SCHED_BLOCKING_SYNC = 0x4,
}

c_enum! { CUlimit(c_uint)
    CU_LIMIT_STACK_SIZE = 0,
    CU_LIMIT_PRINTF_FIFO_SIZE = 1,
    CU_LIMIT_MALLOC_HEAP_SIZE = 2,
    CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH = 3,
    CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4,
    CU_LIMIT_MAX_L2_FETCH_GRANULARITY = 5,
    CU_LIMIT_PERSISTING_L2_CACHE_SIZE = 6,
    CU_LIMIT_SHMEM_SIZE = 7,
    CU_LIMIT_CIG_ENABLED = 8,
    CU_LIMIT_CIG_SHMEM_FALLBACK_ENABLED = 9,
    CU_LIMIT_PER_BLOCK_MEMORY_SIZE = 10,
    CU_LIMIT_MAX = 11,
}

c_consts! { c_uint; // CUdriverProcAddress_flags
    CU_GET_PROC_ADDRESS_DEFAULT = 0x0,
    CU_GET_PROC_ADDRESS_LEGACY_STREAM = 0x1,
    CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 0x2,
}

c_enum! { CUdriverProcAddressQueryResult(c_uint)
    CU_GET_PROC_ADDRESS_SUCCESS = 0,
    CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
    CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
}

c_enum! { CUexecAffinityType(c_uint)
    CU_EXEC_AFFINITY_TYPE_SM_COUNT = 0,
    CU_EXEC_AFFINITY_TYPE_MAX = 1,
}

c_enum! { CUcigDataType(c_uint)
    CIG_DATA_TYPE_D3D12_COMMAND_QUEUE = 1,
    CIG_DATA_TYPE_NV_BLOB = 2,
}

pub type CUdevice = CUdevice_v1;
pub type CUexecAffinitySmCount = CUexecAffinitySmCount_v1;
pub type CUexecAffinityParam = CUexecAffinityParam_v1;

c_structs! { CONTEXT_LAYOUTS
    struct CUexecAffinitySmCount_v1 {
        val: c_uint,
    }
    union CUexecAffinityParam_v1_param {
        smCount: CUexecAffinitySmCount,
    }
    struct CUexecAffinityParam_v1 {
        type_: CUexecAffinityType,
        param: CUexecAffinityParam_v1_param,
    }
    struct CUctxCigParam {
        sharedDataType: CUcigDataType,
        sharedData: *mut c_void,
    }
    struct CUctxCreateParams {
        execAffinityParams: *mut CUexecAffinityParam,
        numExecAffinityParams: c_int,
        cigParams: *mut CUctxCigParam,
    }
}

c_consts! { c_uint; // CUgreenCtxCreate_flags
    CU_GREEN_CTX_NONE = 0x0,
    CU_GREEN_CTX_DEFAULT_STREAM = 0x1,
}

c_consts! { c_uint; // CUdevSmResourceGroup_flags
    CU_DEV_SM_RESOURCE_GROUP_DEFAULT = 0x0,
    CU_DEV_SM_RESOURCE_GROUP_BACKFILL = 0x1,
    CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_ID = 0x2,
    CU_DEV_SM_RESOURCE_GROUP_LOCALITY_DOMAIN_SUPPLEMENTAL_SMS = 0x4,
}

c_consts! { c_uint; // CUdevSmResourceSplitByCount_flags
    CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING = 0x1,
    CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE = 0x2,
}

c_enum! { CUdevResourceType(c_uint)
    CU_DEV_RESOURCE_TYPE_INVALID = 0,
    CU_DEV_RESOURCE_TYPE_SM = 1,
    CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG = 1000,
    CU_DEV_RESOURCE_TYPE_WORKQUEUE = 10000,
}

c_enum! { CUdevWorkqueueConfigScope(c_uint)
    CU_WORKQUEUE_SCOPE_DEVICE_CTX = 0,
    CU_WORKQUEUE_SCOPE_GREEN_CTX_BALANCED = 1,
}

pub type CUdevResource = CUdevResource_v1;

c_structs! { GREEN_LAYOUTS
    struct CUdevSmResource {
        smCount: c_uint,
        minSmPartitionSize: c_uint,
        smCoscheduledAlignment: c_uint,
        flags: c_uint,
        localityDomainId: c_uint,
    }
    struct CUdevWorkqueueConfigResource {
        device: CUdevice,
        wqConcurrencyLimit: c_uint,
        sharingScope: CUdevWorkqueueConfigScope,
    }
    struct CUdevWorkqueueResource {
        reserved: [u8; 40],
    }
    struct CU_DEV_SM_RESOURCE_GROUP_PARAMS {
        smCount: c_uint,
        coscheduledSmCount: c_uint,
        preferredCoscheduledSmCount: c_uint,
        flags: c_uint,
        localityDomainId: c_uint,
        reserved: [c_uint; 11],
    }
    union CUdevResource_v1_anon1 {
        sm: CUdevSmResource,
        wqConfig: CUdevWorkqueueConfigResource,
        wq: CUdevWorkqueueResource,
        _oversize: [u8; 40],
    }
    struct CUdevResource_v1 {
        type_: CUdevResourceType,
        _internal_padding: [u8; 92],
        anon1: CUdevResource_v1_anon1,
        nextResource: *mut CUdevResource_v1,
    }
}
