//! Every function of the runtime that is not simulated. Each returns an error and says so once.
//!
//! `missing` and `absent` are told apart as in the crate `sim`: the second a driver refuses too on
//! a device like the simulated one.

use cuda_sys::{cudaError, cudaErrorNotSupported};

macro_rules! refused {
    ($note:ident: $($symbol:ident)*) => { $(
        const _: () = {
            // SAFETY: the runtime's name. It looks at no arguments, so any caller's are fine under
            // the C ABI.
            #[unsafe(no_mangle)]
            extern "C" fn $symbol() -> cudaError {
                crate::thread_state::bare(|| Err($note(stringify!($symbol))))
            }
        };
    )* };
}

fn missing(name: &str) -> cudaError {
    sim_driver_link::refused(&format!("{name} is not simulated"));
    cudaErrorNotSupported
}

/// Refuses a function of the static runtime in a program that this library has not heard of. Called
/// in that function's place by the library that diverts static runtimes (`sim-divert`).
///
/// # Safety
/// `name` is a C string.
// SAFETY: a name of our own.
#[unsafe(no_mangle)]
unsafe extern "C" fn streamsan_cudart_refuse(name: *const std::ffi::c_char) -> cudaError {
    // SAFETY: the caller's promise.
    let name = unsafe { std::ffi::CStr::from_ptr(name) }.to_string_lossy();
    crate::thread_state::bare(|| Err(missing(&name)))
}

fn absent(_name: &str) -> cudaError {
    cudaErrorNotSupported
}

refused! { absent:
    cudaDeviceGetNvSciSyncAttributes cudaGLGetDevices cudaProfilerInitialize cudaVDPAUGetDevice
}

refused! { missing:
    __cudaGetProcAddress __cudaRegisterUnifiedTable cudaArrayGetMemoryRequirements cudaArrayGetPlane
    cudaArrayGetSparseProperties cudaBindSurfaceToArray cudaBindTexture cudaBindTexture2D cudaBindTextureToArray
    cudaBindTextureToMipmappedArray cudaCreateTextureObject_v2 cudaDestroyExternalMemory cudaDestroyExternalSemaphore

    cudaDeviceFlushGPUDirectRDMAWrites
    cudaDeviceGetHostAtomicCapabilities cudaDeviceGetP2PAtomicCapabilities
    cudaDeviceGetTexture1DLinearMaxWidth cudaDeviceRegisterAsyncNotification
    cudaDeviceUnregisterAsyncNotification cudaEGLStreamConsumerAcquireFrame
    cudaEGLStreamConsumerConnect cudaEGLStreamConsumerConnectWithFlags cudaEGLStreamConsumerDisconnect
    cudaEGLStreamConsumerReleaseFrame cudaEGLStreamProducerConnect cudaEGLStreamProducerDisconnect
    cudaEGLStreamProducerPresentFrame cudaEGLStreamProducerReturnFrame cudaEventCreateFromEGLSync


    cudaExternalMemoryGetMappedBuffer cudaExternalMemoryGetMappedMipmappedArray
    cudaFuncSetSharedMemConfig cudaGLMapBufferObject cudaGLMapBufferObjectAsync cudaGLRegisterBufferObject
    cudaGLSetBufferObjectMapFlags cudaGLSetGLDevice cudaGLUnmapBufferObject cudaGLUnmapBufferObjectAsync
    cudaGLUnregisterBufferObject cudaGetExportTable cudaGetSurfaceObjectResourceDesc
    cudaGetSurfaceReference cudaGetTextureAlignmentOffset cudaGetTextureObjectResourceDesc
    cudaGetTextureObjectResourceViewDesc cudaGetTextureObjectTextureDesc cudaGetTextureObjectTextureDesc_v2
    cudaGetTextureReference cudaGraphAddExternalSemaphoresSignalNode cudaGraphAddExternalSemaphoresWaitNode
    cudaGraphDebugDotPrint cudaGraphExecExternalSemaphoresSignalNodeSetParams
    cudaGraphExecExternalSemaphoresWaitNodeSetParams cudaGraphExecGetId cudaGraphExecMemcpyNodeSetParamsFromSymbol
    cudaGraphExecMemcpyNodeSetParamsToSymbol cudaGraphExternalSemaphoresSignalNodeGetParams
    cudaGraphExternalSemaphoresSignalNodeSetParams cudaGraphExternalSemaphoresWaitNodeGetParams
    cudaGraphExternalSemaphoresWaitNodeSetParams cudaGraphGetId cudaGraphKernelNodeCopyAttributes
    cudaGraphMemcpyNodeGetParams cudaGraphMemcpyNodeSetParamsFromSymbol cudaGraphMemcpyNodeSetParamsToSymbol
    cudaGraphNodeGetContainingGraph cudaGraphNodeGetLocalId cudaGraphNodeGetParams cudaGraphNodeGetToolsId
    cudaGraphRemoveDependencies_v2 cudaGraphicsEGLRegisterImage cudaGraphicsGLRegisterBuffer
    cudaGraphicsGLRegisterImage cudaGraphicsMapResources cudaGraphicsResourceGetMappedEglFrame
    cudaGraphicsResourceGetMappedMipmappedArray cudaGraphicsResourceGetMappedPointer cudaGraphicsResourceSetMapFlags
    cudaGraphicsSubResourceGetMappedArray cudaGraphicsUnmapResources cudaGraphicsUnregisterResource
    cudaGraphicsVDPAURegisterOutputSurface cudaGraphicsVDPAURegisterVideoSurface
    cudaImportExternalMemory cudaImportExternalSemaphore cudaLaunchCooperativeKernelMultiDevice cudaLaunchHostFunc_v2
    cudaLaunchHostFunc_v2_ptsz cudaLibraryGetUnifiedFunction
    cudaMemAdvise_v2
    cudaMemGetDefaultMemPool cudaMemGetLocationInfo cudaMemGetMemPool
    cudaMemPrefetchAsync_v2 cudaMemPrefetchAsync_v2_ptsz
    cudaMemRangeGetAttribute cudaMemRangeGetAttributes cudaMemSetMemPool
    cudaMemcpy2DArrayToArray cudaMemcpy2DArrayToArray_ptds
    cudaMemcpy3DPeer cudaMemcpy3DPeerAsync cudaMemcpy3DPeerAsync_ptsz cudaMemcpy3DPeer_ptds
    cudaMemcpy3DWithAttributesAsync cudaMemcpy3DWithAttributesAsync_ptsz cudaMemcpyArrayToArray
    cudaMemcpyArrayToArray_ptds cudaMemcpyFromArrayAsync cudaMemcpyFromArrayAsync_ptsz cudaMemcpyToArrayAsync
    cudaMemcpyToArrayAsync_ptsz
    cudaMipmappedArrayGetMemoryRequirements cudaMipmappedArrayGetSparseProperties cudaSetDoubleForDevice
    cudaSetDoubleForHost cudaSignalExternalSemaphoresAsync cudaSignalExternalSemaphoresAsync_ptsz
    cudaSignalExternalSemaphoresAsync_v2 cudaSignalExternalSemaphoresAsync_v2_ptsz cudaStreamBeginRecaptureToGraph
    cudaStreamBeginRecaptureToGraph_ptsz
    cudaSubgridCreate
    cudaSubgridWorkerGridCreate cudaSubgridWorksetCreate cudaThreadExit cudaThreadGetCacheConfig cudaThreadGetLimit
    cudaThreadSetCacheConfig cudaThreadSetLimit cudaThreadSynchronize cudaUnbindTexture cudaVDPAUSetVDPAUDevice
    cudaWaitExternalSemaphoresAsync cudaWaitExternalSemaphoresAsync_ptsz cudaWaitExternalSemaphoresAsync_v2
    cudaWaitExternalSemaphoresAsync_v2_ptsz
}
