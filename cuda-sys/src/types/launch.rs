//! CUDA's types for launches: configuration, attributes, function attributes. Names, values and
//! layouts are those of `cuda.h`; the shared rules are in [`super`].

use super::*;

/// Ends the list `extra` of a launch.
pub const CU_LAUNCH_PARAM_END: *mut c_void = core::ptr::null_mut();
/// The next element of `extra` points to the packed parameters.
pub const CU_LAUNCH_PARAM_BUFFER_POINTER: *mut c_void = core::ptr::without_provenance_mut(1);
/// The next element of `extra` points to a `size_t`: the size of the packed parameters in bytes.
pub const CU_LAUNCH_PARAM_BUFFER_SIZE: *mut c_void = core::ptr::without_provenance_mut(2);

pub const CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC: c_uint = 0x01;
pub const CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC: c_uint = 0x02;

c_consts! { c_uint; // CUoccupancy_flags
    CU_OCCUPANCY_DEFAULT = 0x0,
    CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE = 0x1,
}

c_enum! { CUfunction_attribute(c_uint)
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
    CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
    CU_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
    CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET = 10,
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH = 11,
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT = 12,
    CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH = 13,
    CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
    CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
    CU_FUNC_ATTRIBUTE_DEVICE_NODE_UPDATE_SUPPORTED = 16,
    CU_FUNC_ATTRIBUTE_SHARED_MEMORY_MODE = 17,
    CU_FUNC_ATTRIBUTE_MAX = 18,
}

c_enum! { CUfunc_cache(c_uint)
    CU_FUNC_CACHE_PREFER_NONE = 0,
    CU_FUNC_CACHE_PREFER_SHARED = 1,
    CU_FUNC_CACHE_PREFER_L1 = 2,
    CU_FUNC_CACHE_PREFER_EQUAL = 3,
}

c_enum! { CUsharedconfig(c_uint)
    CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE = 0,
    CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE = 1,
    CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE = 2,
}

c_consts! { c_int; // CUshared_carveout
    CU_SHAREDMEM_CARVEOUT_DEFAULT = -1,
    CU_SHAREDMEM_CARVEOUT_MAX_SHARED = 100,
    CU_SHAREDMEM_CARVEOUT_MAX_L1 = 0,
}

c_enum! { CUaccessProperty(c_uint)
    CU_ACCESS_PROPERTY_NORMAL = 0,
    CU_ACCESS_PROPERTY_STREAMING = 1,
    CU_ACCESS_PROPERTY_PERSISTING = 2,
}

c_enum! { CUsynchronizationPolicy(c_uint)
    CU_SYNC_POLICY_AUTO = 1,
    CU_SYNC_POLICY_SPIN = 2,
    CU_SYNC_POLICY_YIELD = 3,
    CU_SYNC_POLICY_BLOCKING_SYNC = 4,
}

c_enum! { CUclusterSchedulingPolicy(c_uint)
    CU_CLUSTER_SCHEDULING_POLICY_DEFAULT = 0,
    CU_CLUSTER_SCHEDULING_POLICY_SPREAD = 1,
    CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING = 2,
    CU_CLUSTER_SCHEDULING_POLICY_RUBIN_DSMEM_LOCALITY = 3,
}

c_enum! { CUlaunchMemSyncDomain(c_uint)
    CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT = 0,
    CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE = 1,
}

c_enum! { CUlaunchAttributePortableClusterMode(c_uint)
    CU_LAUNCH_PORTABLE_CLUSTER_MODE_DEFAULT = 0,
    CU_LAUNCH_PORTABLE_CLUSTER_MODE_REQUIRE_PORTABLE = 1,
    CU_LAUNCH_PORTABLE_CLUSTER_MODE_ALLOW_NON_PORTABLE = 2,
}

c_enum! { CUsharedMemoryMode(c_uint)
    CU_SHARED_MEMORY_MODE_DEFAULT = 0,
    CU_SHARED_MEMORY_MODE_REQUIRE_PORTABLE = 1,
    CU_SHARED_MEMORY_MODE_ALLOW_NON_PORTABLE = 2,
    CU_SHARED_MEMORY_MODE_ALLOW_OVERSIZED_SHARED_MEMORY = 3,
    CU_SHARED_MEMORY_MODE_PREFER_OVERSIZED_SHARED_MEMORY = 4,
}

c_enum! { CUlaunchAttributeID(c_uint)
    CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
    CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW = 1,
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
    CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY = 3,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
    CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = 9,
    CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN = 10,
    CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION = 11,
    CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,
    CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE = 13,
    CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 14,
    CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING = 16,
    CU_LAUNCH_ATTRIBUTE_PORTABLE_CLUSTER_SIZE_MODE = 17,
    CU_LAUNCH_ATTRIBUTE_SHARED_MEMORY_MODE = 18,
    CU_LAUNCH_ATTRIBUTE_MAX = 19,
}

c_enum! { CUfunctionLoadingState(c_uint)
    CU_FUNCTION_LOADING_STATE_UNLOADED = 0,
    CU_FUNCTION_LOADING_STATE_LOADED = 1,
    CU_FUNCTION_LOADING_STATE_MAX = 2,
}

pub type CUaccessPolicyWindow = CUaccessPolicyWindow_v1;
pub type CUkernelNodeAttrID = CUlaunchAttributeID;
pub type CUkernelNodeAttrValue_v1 = CUlaunchAttributeValue;
pub type CUkernelNodeAttrValue = CUkernelNodeAttrValue_v1;
pub type CUstreamAttrID = CUlaunchAttributeID;
pub type CUstreamAttrValue_v1 = CUlaunchAttributeValue;
pub type CUstreamAttrValue = CUstreamAttrValue_v1;
pub type CUoccupancyB2DSize = Option<unsafe extern "C" fn(c_int) -> usize>;
pub type CUDA_LAUNCH_PARAMS = CUDA_LAUNCH_PARAMS_v1;

c_structs! { LAUNCH_LAYOUTS
    struct CUaccessPolicyWindow_v1 {
        base_ptr: *mut c_void,
        num_bytes: usize,
        hitRatio: f32,
        hitProp: CUaccessProperty,
        missProp: CUaccessProperty,
    }
    struct CUlaunchMemSyncDomainMap {
        default_: u8,
        remote: u8,
    }
    struct CUlaunchAttributeValue_clusterDim {
        x: c_uint,
        y: c_uint,
        z: c_uint,
    }
    struct CUlaunchAttributeValue_programmaticEvent {
        event: CUevent,
        flags: c_int,
        triggerAtBlockStart: c_int,
    }
    struct CUlaunchAttributeValue_launchCompletionEvent {
        event: CUevent,
        flags: c_int,
    }
    struct CUlaunchAttributeValue_preferredClusterDim {
        x: c_uint,
        y: c_uint,
        z: c_uint,
    }
    struct CUlaunchAttributeValue_deviceUpdatableKernelNode {
        deviceUpdatable: c_int,
        devNode: CUgraphDeviceNode,
    }
    union CUlaunchAttributeValue {
        pad: [c_char; 64],
        accessPolicyWindow: CUaccessPolicyWindow,
        cooperative: c_int,
        syncPolicy: CUsynchronizationPolicy,
        clusterDim: CUlaunchAttributeValue_clusterDim,
        clusterSchedulingPolicyPreference: CUclusterSchedulingPolicy,
        programmaticStreamSerializationAllowed: c_int,
        programmaticEvent: CUlaunchAttributeValue_programmaticEvent,
        launchCompletionEvent: CUlaunchAttributeValue_launchCompletionEvent,
        priority: c_int,
        memSyncDomainMap: CUlaunchMemSyncDomainMap,
        memSyncDomain: CUlaunchMemSyncDomain,
        preferredClusterDim: CUlaunchAttributeValue_preferredClusterDim,
        deviceUpdatableKernelNode: CUlaunchAttributeValue_deviceUpdatableKernelNode,
        sharedMemCarveout: c_uint,
        nvlinkUtilCentricScheduling: c_uint,
        portableClusterSizeMode: CUlaunchAttributePortableClusterMode,
        sharedMemoryMode: CUsharedMemoryMode,
    }
    struct CUlaunchAttribute {
        id: CUlaunchAttributeID,
        pad: [c_char; 8 - size_of::<CUlaunchAttributeID>()],
        value: CUlaunchAttributeValue,
    }
    struct CUlaunchConfig {
        gridDimX: c_uint,
        gridDimY: c_uint,
        gridDimZ: c_uint,
        blockDimX: c_uint,
        blockDimY: c_uint,
        blockDimZ: c_uint,
        sharedMemBytes: c_uint,
        hStream: CUstream,
        attrs: *mut CUlaunchAttribute,
        numAttrs: c_uint,
    }
    struct CUDA_LAUNCH_PARAMS_v1 {
        function: CUfunction,
        gridDimX: c_uint,
        gridDimY: c_uint,
        gridDimZ: c_uint,
        blockDimX: c_uint,
        blockDimY: c_uint,
        blockDimZ: c_uint,
        sharedMemBytes: c_uint,
        hStream: CUstream,
        kernelParams: *mut *mut c_void,
    }
}
