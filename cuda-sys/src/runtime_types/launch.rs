//! The runtime's structs for launches, graph nodes, textures and external semaphores.

use super::*;

c_structs! { RUNTIME_LAUNCH_LAYOUTS
    struct cudaGraphInstantiateParams_st {
        flags: u64,
        uploadStream: cudaStream_t,
        errNode_out: cudaGraphNode_t,
        result_out: cudaGraphInstantiateResult,
    }
    struct cudaIpcEventHandle_st {
        reserved: [c_char; 64],
    }
    struct cudaIpcMemHandle_st {
        reserved: [c_char; 64],
    }
    struct dim3 {
        x: c_uint,
        y: c_uint,
        z: c_uint,
    }
    struct cudaAccessPolicyWindow {
        base_ptr: *mut c_void,
        num_bytes: usize,
        hitRatio: f32,
        hitProp: cudaAccessProperty,
        missProp: cudaAccessProperty,
    }
    struct cudaLaunchAttributeValue_clusterDim {
        x: c_uint,
        y: c_uint,
        z: c_uint,
    }
    struct cudaLaunchAttributeValue_programmaticEvent {
        event: cudaEvent_t,
        flags: c_int,
        triggerAtBlockStart: c_int,
    }
    struct cudaLaunchMemSyncDomainMap_st {
        default_: u8,
        remote: u8,
    }
    struct cudaLaunchAttributeValue_preferredClusterDim {
        x: c_uint,
        y: c_uint,
        z: c_uint,
    }
    struct cudaLaunchAttributeValue_launchCompletionEvent {
        event: cudaEvent_t,
        flags: c_int,
    }
    struct cudaLaunchAttributeValue_deviceUpdatableKernelNode {
        deviceUpdatable: c_int,
        devNode: cudaGraphDeviceNode_t,
    }
    union cudaLaunchAttributeValue {
        pad: [c_char; 64],
        accessPolicyWindow: cudaAccessPolicyWindow,
        cooperative: c_int,
        syncPolicy: cudaSynchronizationPolicy,
        clusterDim: cudaLaunchAttributeValue_clusterDim,
        clusterSchedulingPolicyPreference: cudaClusterSchedulingPolicy,
        programmaticStreamSerializationAllowed: c_int,
        programmaticEvent: cudaLaunchAttributeValue_programmaticEvent,
        priority: c_int,
        memSyncDomainMap: cudaLaunchMemSyncDomainMap,
        memSyncDomain: cudaLaunchMemSyncDomain,
        preferredClusterDim: cudaLaunchAttributeValue_preferredClusterDim,
        launchCompletionEvent: cudaLaunchAttributeValue_launchCompletionEvent,
        deviceUpdatableKernelNode: cudaLaunchAttributeValue_deviceUpdatableKernelNode,
        sharedMemCarveout: c_uint,
        nvlinkUtilCentricScheduling: c_uint,
        portableClusterSizeMode: cudaLaunchAttributePortableClusterMode,
        sharedMemoryMode: cudaSharedMemoryMode,
    }
    struct cudaLaunchAttribute_st {
        id: cudaLaunchAttributeID,
        pad: [c_char; 8 - size_of::<cudaLaunchAttributeID>()],
        val: cudaLaunchAttributeValue,
    }
    struct cudaLaunchConfig_st {
        gridDim: dim3,
        blockDim: dim3,
        dynamicSmemBytes: usize,
        stream: cudaStream_t,
        attrs: *mut cudaLaunchAttribute,
        numAttrs: c_uint,
    }
    struct cudaExternalSemaphoreSignalParams_params_fence {
        value: u64,
    }
    union cudaExternalSemaphoreSignalParams_params_nvSciSync {
        fence: *mut c_void,
        reserved: u64,
    }
    struct cudaExternalSemaphoreSignalParams_params_keyedMutex {
        key: u64,
    }
    struct cudaExternalSemaphoreSignalParams_params {
        fence: cudaExternalSemaphoreSignalParams_params_fence,
        nvSciSync: cudaExternalSemaphoreSignalParams_params_nvSciSync,
        keyedMutex: cudaExternalSemaphoreSignalParams_params_keyedMutex,
        reserved: [c_uint; 12],
    }
    struct cudaExternalSemaphoreSignalParams {
        params: cudaExternalSemaphoreSignalParams_params,
        flags: c_uint,
        reserved: [c_uint; 16],
    }
    struct cudaGraphEdgeData_st {
        from_port: u8,
        to_port: u8,
        type_: u8,
        reserved: [u8; 5],
    }
    struct cudaExternalSemaphoreWaitParams_params_fence {
        value: u64,
    }
    union cudaExternalSemaphoreWaitParams_params_nvSciSync {
        fence: *mut c_void,
        reserved: u64,
    }
    struct cudaExternalSemaphoreWaitParams_params_keyedMutex {
        key: u64,
        timeoutMs: c_uint,
    }
    struct cudaExternalSemaphoreWaitParams_params {
        fence: cudaExternalSemaphoreWaitParams_params_fence,
        nvSciSync: cudaExternalSemaphoreWaitParams_params_nvSciSync,
        keyedMutex: cudaExternalSemaphoreWaitParams_params_keyedMutex,
        reserved: [c_uint; 10],
    }
    struct cudaExternalSemaphoreWaitParams {
        params: cudaExternalSemaphoreWaitParams_params,
        flags: c_uint,
        reserved: [c_uint; 16],
    }
    struct cudaFuncAttributes {
        sharedSizeBytes: usize,
        constSizeBytes: usize,
        localSizeBytes: usize,
        maxThreadsPerBlock: c_int,
        numRegs: c_int,
        ptxVersion: c_int,
        binaryVersion: c_int,
        cacheModeCA: c_int,
        maxDynamicSharedSizeBytes: c_int,
        preferredShmemCarveout: c_int,
        clusterDimMustBeSet: c_int,
        requiredClusterWidth: c_int,
        requiredClusterHeight: c_int,
        requiredClusterDepth: c_int,
        clusterSchedulingPolicyPreference: c_int,
        nonPortableClusterSizeAllowed: c_int,
        deviceNodeUpdateStatus: c_int,
        sharedMemoryMode: cudaSharedMemoryMode,
        reserved: [c_int; 14],
    }
    struct cudaResourceDesc_res_array {
        array: cudaArray_t,
    }
    struct cudaResourceDesc_res_mipmap {
        mipmap: cudaMipmappedArray_t,
    }
    struct cudaResourceDesc_res_linear {
        devPtr: *mut c_void,
        desc: cudaChannelFormatDesc,
        sizeInBytes: usize,
    }
    struct cudaResourceDesc_res_pitch2D {
        devPtr: *mut c_void,
        desc: cudaChannelFormatDesc,
        width: usize,
        height: usize,
        pitchInBytes: usize,
    }
    struct cudaResourceDesc_res_reserved {
        reserved: [c_int; 32],
    }
    union cudaResourceDesc_res {
        array: cudaResourceDesc_res_array,
        mipmap: cudaResourceDesc_res_mipmap,
        linear: cudaResourceDesc_res_linear,
        pitch2D: cudaResourceDesc_res_pitch2D,
        reserved: cudaResourceDesc_res_reserved,
    }
    struct cudaResourceDesc {
        resType: cudaResourceType,
        res: cudaResourceDesc_res,
        flags: c_uint,
    }
    struct cudaTextureDesc {
        addressMode: [cudaTextureAddressMode; 3],
        filterMode: cudaTextureFilterMode,
        readMode: cudaTextureReadMode,
        sRGB: c_int,
        borderColor: [f32; 4],
        normalizedCoords: c_int,
        maxAnisotropy: c_uint,
        mipmapFilterMode: cudaTextureFilterMode,
        mipmapLevelBias: f32,
        minMipmapLevelClamp: f32,
        maxMipmapLevelClamp: f32,
        disableTrilinearOptimization: c_int,
        seamlessCubemap: c_int,
    }
    struct cudaResourceViewDesc {
        format: cudaResourceViewFormat,
        width: usize,
        height: usize,
        depth: usize,
        firstMipmapLevel: c_uint,
        lastMipmapLevel: c_uint,
        firstLayer: c_uint,
        lastLayer: c_uint,
        reserved: [c_uint; 16],
    }
    struct cudaHostNodeParams {
        fn_: cudaHostFn_t,
        userData: *mut c_void,
    }
    struct cudaKernelNodeParams {
        func: *mut c_void,
        gridDim: dim3,
        blockDim: dim3,
        sharedMemBytes: c_uint,
        kernelParams: *mut *mut c_void,
        extra: *mut *mut c_void,
    }
    struct cudaMemsetParams {
        dst: *mut c_void,
        pitch: usize,
        value: c_uint,
        elementSize: c_uint,
        width: usize,
        height: usize,
    }
    struct uint3 {
        x: c_uint,
        y: c_uint,
        z: c_uint,
    }
}
