//! CUDA's types for green contexts and the device resources they are cut from. Names, values and
//! layouts are those of `cuda.h`; the shared rules are in [`super`].

use super::*;

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
