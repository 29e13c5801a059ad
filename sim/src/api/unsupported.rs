//! Every symbol of the driver that is not simulated. Each returns an error and says so once.
//!
//! A program that calls one of [`missing`] was not run as a device would run it, and `status` keeps
//! that. The functions of [`absent`] belong to what the simulated device says it has not got (by
//! its attributes, or as a machine without a display): a driver refuses them there as well.

use cuda_sys::CUresult;

macro_rules! refused {
    ($note:ident: $($symbol:ident)*) => { $(
        const _: () = {
            // SAFETY: the table's name. It takes no arguments that it looks at, so any caller's are
            // fine under the C ABI.
            #[cfg_attr(feature = "driver", unsafe(no_mangle))]
            #[allow(dead_code)]
            extern "C" fn $symbol() -> CUresult {
                $note(stringify!($symbol));
                CUresult::ERROR_NOT_SUPPORTED
            }
        };
    )* };
}

fn missing(name: &str) {
    crate::status::complain(&format!("{name} is not simulated"));
}

fn absent(name: &str) {
    crate::status::say(&format!("{name}: the simulated device has not got what this is for"));
}

refused! { absent:
    cuDeviceGetCliqueCount cuDeviceGetCliqueInfo cuDeviceGetFabricClusterUuid cuDeviceGetLuid
    cuDeviceGetNvSciSyncAttributes cuFabricCpyBatchAsync cuFabricCpyBatchAsync_ptsz cuGLGetDevices cuGLGetDevices_v2
    cuMulticastAddDevice cuMulticastBindAddr cuMulticastBindAddr_v2 cuMulticastBindMem cuMulticastBindMem_v2
    cuMulticastCreate cuMulticastGetGranularity cuMulticastUnbind cuProfilerInitialize cuVDPAUGetDevice
    cuMemGetHandleForAddressRange
}

refused! { missing:
    cuArray3DCreate cuArray3DGetDescriptor cuArrayCreate cuArrayGetDescriptor cuArrayGetMemoryRequirements
    cuArrayGetPlane cuArrayGetSparseProperties cuCheckpointOperationComplete cuCheckpointProcessCheckpoint
    cuCheckpointProcessGetRestoreThreadId cuCheckpointProcessGetState cuCheckpointProcessLock
    cuCheckpointProcessRestore cuCheckpointProcessUnlock cuCoredumpDeregisterCompleteCallback
    cuCoredumpDeregisterStartCallback cuCoredumpGetAttribute cuCoredumpGetAttributeGlobal
    cuCoredumpRegisterCompleteCallback cuCoredumpRegisterStartCallback cuCoredumpSetAttribute
    cuCoredumpSetAttributeGlobal cuCtxAttach cuCtxDetach cuCtxGetExecAffinity
    cuDestroyExternalMemory cuDestroyExternalSemaphore
    cuDeviceGetHostAtomicCapabilities
    cuDeviceGetP2PAtomicCapabilities cuDeviceRegisterAsyncNotification
    cuDeviceTotalMem cuDeviceUnregisterAsyncNotification cuEGLStreamConsumerAcquireFrame
    cuEGLStreamConsumerConnect cuEGLStreamConsumerConnectWithFlags cuEGLStreamConsumerDisconnect
    cuEGLStreamConsumerReleaseFrame cuEGLStreamProducerConnect cuEGLStreamProducerDisconnect
    cuEGLStreamProducerPresentFrame cuEGLStreamProducerReturnFrame cuEventCreateFromEGLSync
    cuExternalMemoryGetMappedBuffer cuExternalMemoryGetMappedMipmappedArray cuFuncSetBlockShape cuFuncSetSharedSize
    cuGLCtxCreate cuGLCtxCreate_v2 cuGLInit cuGLMapBufferObject cuGLMapBufferObjectAsync cuGLMapBufferObjectAsync_v2
    cuGLMapBufferObjectAsync_v2_ptsz cuGLMapBufferObject_v2 cuGLMapBufferObject_v2_ptds cuGLRegisterBufferObject
    cuGLSetBufferObjectMapFlags cuGLUnmapBufferObject cuGLUnmapBufferObjectAsync cuGLUnregisterBufferObject
    cuGraphAddExternalSemaphoresSignalNode cuGraphAddExternalSemaphoresWaitNode cuGraphBatchMemOpNodeGetParams
    cuGraphBatchMemOpNodeSetParams cuGraphDebugDotPrint cuGraphExecExternalSemaphoresSignalNodeSetParams
    cuGraphExecExternalSemaphoresWaitNodeSetParams cuGraphExecGetId cuGraphExternalSemaphoresSignalNodeGetParams
    cuGraphExternalSemaphoresSignalNodeSetParams cuGraphExternalSemaphoresWaitNodeGetParams
    cuGraphExternalSemaphoresWaitNodeSetParams cuGraphGetId cuGraphKernelNodeCopyAttributes
    cuGraphNodeGetContainingGraph cuGraphNodeGetLocalId cuGraphNodeGetParams cuGraphNodeGetToolsId
    cuGraphicsEGLRegisterImage cuGraphicsGLRegisterBuffer cuGraphicsGLRegisterImage cuGraphicsMapResources
    cuGraphicsMapResources_ptsz cuGraphicsResourceGetMappedEglFrame cuGraphicsResourceGetMappedMipmappedArray
    cuGraphicsResourceGetMappedPointer cuGraphicsResourceGetMappedPointer_v2 cuGraphicsResourceSetMapFlags
    cuGraphicsResourceSetMapFlags_v2 cuGraphicsSubResourceGetMappedArray cuGraphicsUnmapResources
    cuGraphicsUnmapResources_ptsz cuGraphicsUnregisterResource cuGraphicsVDPAURegisterOutputSurface
    cuGraphicsVDPAURegisterVideoSurface
    cuImportExternalMemory cuImportExternalSemaphore
    cuLaunch cuLaunchCooperativeKernelMultiDevice cuLaunchGrid cuLaunchGridAsync cuLibraryGetUnifiedFunction
    cuLogicalEndpointAddDevice cuLogicalEndpointBindAddr cuLogicalEndpointBindMem cuLogicalEndpointCreate
    cuLogicalEndpointDestroy cuLogicalEndpointExport cuLogicalEndpointGetLimits cuLogicalEndpointIdRelease
    cuLogicalEndpointIdReserve cuLogicalEndpointImport cuLogicalEndpointQuery cuLogicalEndpointUnbind
    cuMemAlloc cuMemAllocHost
    cuMemAllocPitch cuMemBatchDecompressAsync cuMemBatchDecompressAsync_ptsz
    cuMemFree cuMemGetAddressRange cuMemGetDefaultMemPool cuMemGetLocationInfo
    cuMemGetMemPool cuMemHostGetDevicePointer cuMemMapArrayAsync
    cuMemMapArrayAsync_ptsz cuMemRangeGetAttribute cuMemRangeGetAttributes cuMemSetMemPool cuMemcpy2D cuMemcpy2DAsync
    cuMemcpy2DUnaligned cuMemcpy3D cuMemcpy3DAsync cuMemcpy3DWithAttributesAsync cuMemcpy3DWithAttributesAsync_ptsz
    cuMemcpyAtoA cuMemcpyAtoD cuMemcpyAtoH cuMemcpyAtoHAsync cuMemcpyDtoA cuMemcpyDtoD cuMemcpyDtoDAsync cuMemcpyDtoH
    cuMemcpyDtoHAsync cuMemcpyHtoA cuMemcpyHtoAAsync cuMemcpyHtoD cuMemcpyHtoDAsync cuMemsetD16 cuMemsetD2D16
    cuMemsetD2D32 cuMemsetD2D8 cuMemsetD32 cuMemsetD8 cuMipmappedArrayGetMemoryRequirements cuMipmappedArrayGetSparseProperties
    cuModuleGetGlobal cuModuleGetSurfRef cuModuleGetTexRef cuParamSetSize cuParamSetTexRef cuParamSetf cuParamSeti
    cuParamSetv cuSignalExternalSemaphoresAsync cuSignalExternalSemaphoresAsync_ptsz cuStreamBeginCaptureToCig
    cuStreamBeginCaptureToCig_ptsz cuStreamBeginRecaptureToGraph cuStreamBeginRecaptureToGraph_ptsz
    cuStreamEndCaptureToCig cuStreamEndCaptureToCig_ptsz
    cuSurfRefGetArray cuSurfRefSetArray cuTensorMapEncodeIm2colWide
    cuTensorMapSetAllocationClass cuTexObjectGetResourceViewDesc
    cuTexRefCreate cuTexRefDestroy cuTexRefGetAddress cuTexRefGetAddressMode cuTexRefGetAddress_v2 cuTexRefGetArray
    cuTexRefGetBorderColor cuTexRefGetFilterMode cuTexRefGetFlags cuTexRefGetFormat cuTexRefGetMaxAnisotropy
    cuTexRefGetMipmapFilterMode cuTexRefGetMipmapLevelBias cuTexRefGetMipmapLevelClamp cuTexRefGetMipmappedArray
    cuTexRefSetAddress cuTexRefSetAddress2D cuTexRefSetAddress2D_v2 cuTexRefSetAddress2D_v3 cuTexRefSetAddressMode
    cuTexRefSetAddress_v2 cuTexRefSetArray cuTexRefSetBorderColor cuTexRefSetFilterMode cuTexRefSetFlags
    cuTexRefSetFormat cuTexRefSetMaxAnisotropy cuTexRefSetMipmapFilterMode cuTexRefSetMipmapLevelBias
    cuTexRefSetMipmapLevelClamp cuTexRefSetMipmappedArray cuVDPAUCtxCreate cuVDPAUCtxCreate_v2
    cuWaitExternalSemaphoresAsync cuWaitExternalSemaphoresAsync_ptsz
}
