//! Rows of [`runtime_api!`](crate::runtime_api): functions whose name need not be noted.
//! How to read a row: see the parent module.

#[doc(hidden)]
#[macro_export]
macro_rules! __runtime_api_neutral {
    ({$callback:ident {$($extra:tt)*}} {$($rows:tt)*}) => { $callback! { $($extra)* $($rows)*

    skip fn __cudaGetProcAddress [plain __cudaGetProcAddress];
    skip fn __cudaRegisterHostVar [plain __cudaRegisterHostVar];
    skip fn __cudaRegisterSurface [plain __cudaRegisterSurface];
    skip fn __cudaRegisterTexture [plain __cudaRegisterTexture];
    skip fn __cudaRegisterUnifiedTable [plain __cudaRegisterUnifiedTable];
    skip fn cudaArrayGetInfo [plain cudaArrayGetInfo];
    skip fn cudaArrayGetMemoryRequirements [plain cudaArrayGetMemoryRequirements];
    skip fn cudaArrayGetPlane [plain cudaArrayGetPlane];
    skip fn cudaArrayGetSparseProperties [plain cudaArrayGetSparseProperties];
    skip fn cudaBindSurfaceToArray [plain cudaBindSurfaceToArray];
    skip fn cudaBindTexture [plain cudaBindTexture];
    skip fn cudaBindTexture2D [plain cudaBindTexture2D];
    skip fn cudaBindTextureToArray [plain cudaBindTextureToArray];
    skip fn cudaBindTextureToMipmappedArray [plain cudaBindTextureToMipmappedArray];
    skip fn cudaChooseDevice [plain cudaChooseDevice];
    skip fn cudaCreateChannelDesc [plain cudaCreateChannelDesc];
    skip fn cudaCreateSurfaceObject [plain cudaCreateSurfaceObject];
    skip fn cudaCreateTextureObject [plain cudaCreateTextureObject];
    skip fn cudaCreateTextureObject_v2 [plain cudaCreateTextureObject_v2];
    skip fn cudaCtxResetPersistingL2Cache [plain cudaCtxResetPersistingL2Cache];
    skip fn cudaDestroyExternalMemory [plain cudaDestroyExternalMemory];
    skip fn cudaDestroyExternalSemaphore [plain cudaDestroyExternalSemaphore];
    skip fn cudaDestroySurfaceObject [plain cudaDestroySurfaceObject];
    skip fn cudaDestroyTextureObject [plain cudaDestroyTextureObject];
    skip fn cudaDevResourceGenerateDesc [plain cudaDevResourceGenerateDesc];
    skip fn cudaDevSmResourceSplit [plain cudaDevSmResourceSplit];
    skip fn cudaDevSmResourceSplitByCount [plain cudaDevSmResourceSplitByCount];
    skip fn cudaDeviceCanAccessPeer [plain cudaDeviceCanAccessPeer];
    skip fn cudaDeviceDisablePeerAccess [plain cudaDeviceDisablePeerAccess];
    skip fn cudaDeviceEnablePeerAccess [plain cudaDeviceEnablePeerAccess];
    skip fn cudaDeviceFlushGPUDirectRDMAWrites [plain cudaDeviceFlushGPUDirectRDMAWrites];
    skip fn cudaDeviceGetAttribute [plain cudaDeviceGetAttribute];
    skip fn cudaDeviceGetByPCIBusId [plain cudaDeviceGetByPCIBusId];
    skip fn cudaDeviceGetCacheConfig [plain cudaDeviceGetCacheConfig];
    skip fn cudaDeviceGetDefaultMemPool [plain cudaDeviceGetDefaultMemPool];
    skip fn cudaDeviceGetDevResource [plain cudaDeviceGetDevResource];
    skip fn cudaDeviceGetExecutionCtx [plain cudaDeviceGetExecutionCtx];
    skip fn cudaDeviceGetGraphMemAttribute [plain cudaDeviceGetGraphMemAttribute];
    skip fn cudaDeviceGetHostAtomicCapabilities [plain cudaDeviceGetHostAtomicCapabilities];
    skip fn cudaDeviceGetLimit [plain cudaDeviceGetLimit];
    skip fn cudaDeviceGetMemPool [plain cudaDeviceGetMemPool];
    skip fn cudaDeviceGetNvSciSyncAttributes [plain cudaDeviceGetNvSciSyncAttributes];
    skip fn cudaDeviceGetP2PAtomicCapabilities [plain cudaDeviceGetP2PAtomicCapabilities];
    skip fn cudaDeviceGetP2PAttribute [plain cudaDeviceGetP2PAttribute];
    skip fn cudaDeviceGetPCIBusId [plain cudaDeviceGetPCIBusId];
    skip fn cudaDeviceGetSharedMemConfig [plain cudaDeviceGetSharedMemConfig];
    skip fn cudaDeviceGetStreamPriorityRange [plain cudaDeviceGetStreamPriorityRange];
    skip fn cudaDeviceGetTexture1DLinearMaxWidth [plain cudaDeviceGetTexture1DLinearMaxWidth];
    skip fn cudaDeviceGraphMemTrim [plain cudaDeviceGraphMemTrim];
    skip fn cudaDeviceRegisterAsyncNotification [plain cudaDeviceRegisterAsyncNotification];
    skip fn cudaDeviceSetCacheConfig [plain cudaDeviceSetCacheConfig];
    skip fn cudaDeviceSetGraphMemAttribute [plain cudaDeviceSetGraphMemAttribute];
    skip fn cudaDeviceSetMemPool [plain cudaDeviceSetMemPool];
    skip fn cudaDeviceSetSharedMemConfig [plain cudaDeviceSetSharedMemConfig];
    skip fn cudaDeviceUnregisterAsyncNotification [plain cudaDeviceUnregisterAsyncNotification];
    skip fn cudaDriverGetVersion [plain cudaDriverGetVersion];
    skip fn cudaEGLStreamConsumerAcquireFrame [plain cudaEGLStreamConsumerAcquireFrame];
    skip fn cudaEGLStreamConsumerConnect [plain cudaEGLStreamConsumerConnect];
    skip fn cudaEGLStreamConsumerConnectWithFlags [plain cudaEGLStreamConsumerConnectWithFlags];
    skip fn cudaEGLStreamConsumerDisconnect [plain cudaEGLStreamConsumerDisconnect];
    skip fn cudaEGLStreamConsumerReleaseFrame [plain cudaEGLStreamConsumerReleaseFrame];
    skip fn cudaEGLStreamProducerConnect [plain cudaEGLStreamProducerConnect];
    skip fn cudaEGLStreamProducerDisconnect [plain cudaEGLStreamProducerDisconnect];
    skip fn cudaEGLStreamProducerPresentFrame [plain cudaEGLStreamProducerPresentFrame];
    skip fn cudaEGLStreamProducerReturnFrame [plain cudaEGLStreamProducerReturnFrame];
    skip fn cudaEventCreateFromEGLSync [plain cudaEventCreateFromEGLSync];
    skip fn cudaEventElapsedTime_v2 [plain cudaEventElapsedTime_v2];
    skip fn cudaExecutionCtxDestroy [plain cudaExecutionCtxDestroy];
    skip fn cudaExecutionCtxGetDevResource [plain cudaExecutionCtxGetDevResource];
    skip fn cudaExecutionCtxGetDevice [plain cudaExecutionCtxGetDevice];
    skip fn cudaExecutionCtxGetId [plain cudaExecutionCtxGetId];
    skip fn cudaExternalMemoryGetMappedBuffer [plain cudaExternalMemoryGetMappedBuffer];
    skip fn cudaExternalMemoryGetMappedMipmappedArray [plain cudaExternalMemoryGetMappedMipmappedArray];
    skip fn cudaFuncGetAttributes [plain cudaFuncGetAttributes];
    skip fn cudaFuncGetName [plain cudaFuncGetName];
    skip fn cudaFuncGetParamCount [plain cudaFuncGetParamCount];
    skip fn cudaFuncGetParamInfo [plain cudaFuncGetParamInfo];
    skip fn cudaFuncSetAttribute [plain cudaFuncSetAttribute];
    skip fn cudaFuncSetCacheConfig [plain cudaFuncSetCacheConfig];
    skip fn cudaFuncSetSharedMemConfig [plain cudaFuncSetSharedMemConfig];
    skip fn cudaGLGetDevices [plain cudaGLGetDevices];
    skip fn cudaGLMapBufferObject [plain cudaGLMapBufferObject];
    skip fn cudaGLMapBufferObjectAsync [plain cudaGLMapBufferObjectAsync];
    skip fn cudaGLRegisterBufferObject [plain cudaGLRegisterBufferObject];
    skip fn cudaGLSetBufferObjectMapFlags [plain cudaGLSetBufferObjectMapFlags];
    skip fn cudaGLSetGLDevice [plain cudaGLSetGLDevice];
    skip fn cudaGLUnmapBufferObject [plain cudaGLUnmapBufferObject];
    skip fn cudaGLUnmapBufferObjectAsync [plain cudaGLUnmapBufferObjectAsync];
    skip fn cudaGLUnregisterBufferObject [plain cudaGLUnregisterBufferObject];
    skip fn cudaGetChannelDesc [plain cudaGetChannelDesc];
    skip fn cudaGetDevice [plain cudaGetDevice];
    skip fn cudaGetDeviceCount [plain cudaGetDeviceCount];
    skip fn cudaGetDeviceFlags [plain cudaGetDeviceFlags];
    skip fn cudaGetDeviceProperties [plain cudaGetDeviceProperties];
    skip fn cudaGetDeviceProperties_v2 [plain cudaGetDeviceProperties_v2];
    skip fn cudaGetErrorName [plain cudaGetErrorName];
    skip fn cudaGetErrorString [plain cudaGetErrorString];
    skip fn cudaGetExportTable [plain cudaGetExportTable];
    skip fn cudaGetFuncBySymbol [plain cudaGetFuncBySymbol];
    skip fn cudaGetKernel [plain cudaGetKernel];
    skip fn cudaGetLastError [plain cudaGetLastError];
    skip fn cudaGetMipmappedArrayLevel [plain cudaGetMipmappedArrayLevel];
    skip fn cudaGetSurfaceObjectResourceDesc [plain cudaGetSurfaceObjectResourceDesc];
    skip fn cudaGetSurfaceReference [plain cudaGetSurfaceReference];
    skip fn cudaGetSymbolAddress [plain cudaGetSymbolAddress];
    skip fn cudaGetSymbolSize [plain cudaGetSymbolSize];
    skip fn cudaGetTextureAlignmentOffset [plain cudaGetTextureAlignmentOffset];
    skip fn cudaGetTextureObjectResourceDesc [plain cudaGetTextureObjectResourceDesc];
    skip fn cudaGetTextureObjectResourceViewDesc [plain cudaGetTextureObjectResourceViewDesc];
    skip fn cudaGetTextureObjectTextureDesc [plain cudaGetTextureObjectTextureDesc];
    skip fn cudaGetTextureObjectTextureDesc_v2 [plain cudaGetTextureObjectTextureDesc_v2];
    skip fn cudaGetTextureReference [plain cudaGetTextureReference];
    skip fn cudaGraphAddChildGraphNode [plain cudaGraphAddChildGraphNode];
    skip fn cudaGraphAddDependencies [plain cudaGraphAddDependencies];
    skip fn cudaGraphAddDependencies_v2 [plain cudaGraphAddDependencies_v2];
    skip fn cudaGraphAddEmptyNode [plain cudaGraphAddEmptyNode];
    skip fn cudaGraphAddEventRecordNode [plain cudaGraphAddEventRecordNode];
    skip fn cudaGraphAddEventWaitNode [plain cudaGraphAddEventWaitNode];
    skip fn cudaGraphAddExternalSemaphoresSignalNode [plain cudaGraphAddExternalSemaphoresSignalNode];
    skip fn cudaGraphAddExternalSemaphoresWaitNode [plain cudaGraphAddExternalSemaphoresWaitNode];
    skip fn cudaGraphAddHostNode [plain cudaGraphAddHostNode];
    skip fn cudaGraphAddKernelNode [plain cudaGraphAddKernelNode];
    skip fn cudaGraphAddMemAllocNode [plain cudaGraphAddMemAllocNode];
    skip fn cudaGraphAddMemFreeNode [plain cudaGraphAddMemFreeNode];
    skip fn cudaGraphAddMemcpyNode [plain cudaGraphAddMemcpyNode];
    skip fn cudaGraphAddMemcpyNode1D [plain cudaGraphAddMemcpyNode1D];
    skip fn cudaGraphAddMemcpyNodeFromSymbol [plain cudaGraphAddMemcpyNodeFromSymbol];
    skip fn cudaGraphAddMemcpyNodeToSymbol [plain cudaGraphAddMemcpyNodeToSymbol];
    skip fn cudaGraphAddMemsetNode [plain cudaGraphAddMemsetNode];
    skip fn cudaGraphAddNode [plain cudaGraphAddNode];
    skip fn cudaGraphAddNode_v2 [plain cudaGraphAddNode_v2];
    skip fn cudaGraphChildGraphNodeGetGraph [plain cudaGraphChildGraphNodeGetGraph];
    skip fn cudaGraphClone [plain cudaGraphClone];
    skip fn cudaGraphConditionalHandleCreate [plain cudaGraphConditionalHandleCreate];
    skip fn cudaGraphConditionalHandleCreate_v2 [plain cudaGraphConditionalHandleCreate_v2];
    skip fn cudaGraphCreate [plain cudaGraphCreate];
    skip fn cudaGraphDebugDotPrint [plain cudaGraphDebugDotPrint];
    skip fn cudaGraphDestroy [plain cudaGraphDestroy];
    skip fn cudaGraphDestroyNode [plain cudaGraphDestroyNode];
    skip fn cudaGraphEventRecordNodeGetEvent [plain cudaGraphEventRecordNodeGetEvent];
    skip fn cudaGraphEventRecordNodeSetEvent [plain cudaGraphEventRecordNodeSetEvent];
    skip fn cudaGraphEventWaitNodeGetEvent [plain cudaGraphEventWaitNodeGetEvent];
    skip fn cudaGraphEventWaitNodeSetEvent [plain cudaGraphEventWaitNodeSetEvent];
    skip fn cudaGraphExecChildGraphNodeSetParams [plain cudaGraphExecChildGraphNodeSetParams];
    skip fn cudaGraphExecEventRecordNodeSetEvent [plain cudaGraphExecEventRecordNodeSetEvent];
    skip fn cudaGraphExecEventWaitNodeSetEvent [plain cudaGraphExecEventWaitNodeSetEvent];
    skip fn cudaGraphExecExternalSemaphoresSignalNodeSetParams [
        plain cudaGraphExecExternalSemaphoresSignalNodeSetParams
    ];
    skip fn cudaGraphExecExternalSemaphoresWaitNodeSetParams [plain cudaGraphExecExternalSemaphoresWaitNodeSetParams];
    skip fn cudaGraphExecGetFlags [plain cudaGraphExecGetFlags];
    skip fn cudaGraphExecGetId [plain cudaGraphExecGetId];
    skip fn cudaGraphExecHostNodeSetParams [plain cudaGraphExecHostNodeSetParams];
    skip fn cudaGraphExecKernelNodeSetParams [plain cudaGraphExecKernelNodeSetParams];
    skip fn cudaGraphExecMemcpyNodeSetParams [plain cudaGraphExecMemcpyNodeSetParams];
    skip fn cudaGraphExecMemcpyNodeSetParams1D [plain cudaGraphExecMemcpyNodeSetParams1D];
    skip fn cudaGraphExecMemcpyNodeSetParamsFromSymbol [plain cudaGraphExecMemcpyNodeSetParamsFromSymbol];
    skip fn cudaGraphExecMemcpyNodeSetParamsToSymbol [plain cudaGraphExecMemcpyNodeSetParamsToSymbol];
    skip fn cudaGraphExecMemsetNodeSetParams [plain cudaGraphExecMemsetNodeSetParams];
    skip fn cudaGraphExecNodeSetParams [plain cudaGraphExecNodeSetParams];
    skip fn cudaGraphExternalSemaphoresSignalNodeGetParams [plain cudaGraphExternalSemaphoresSignalNodeGetParams];
    skip fn cudaGraphExternalSemaphoresSignalNodeSetParams [plain cudaGraphExternalSemaphoresSignalNodeSetParams];
    skip fn cudaGraphExternalSemaphoresWaitNodeGetParams [plain cudaGraphExternalSemaphoresWaitNodeGetParams];
    skip fn cudaGraphExternalSemaphoresWaitNodeSetParams [plain cudaGraphExternalSemaphoresWaitNodeSetParams];
    skip fn cudaGraphGetEdges [plain cudaGraphGetEdges];
    skip fn cudaGraphGetEdges_v2 [plain cudaGraphGetEdges_v2];
    skip fn cudaGraphGetId [plain cudaGraphGetId];
    skip fn cudaGraphGetNodes [plain cudaGraphGetNodes];
    skip fn cudaGraphGetRootNodes [plain cudaGraphGetRootNodes];
    skip fn cudaGraphHostNodeGetParams [plain cudaGraphHostNodeGetParams];
    skip fn cudaGraphHostNodeSetParams [plain cudaGraphHostNodeSetParams];
    skip fn cudaGraphKernelNodeCopyAttributes [plain cudaGraphKernelNodeCopyAttributes];
    skip fn cudaGraphKernelNodeGetAttribute [plain cudaGraphKernelNodeGetAttribute];
    skip fn cudaGraphKernelNodeGetParams [plain cudaGraphKernelNodeGetParams];
    skip fn cudaGraphKernelNodeSetAttribute [plain cudaGraphKernelNodeSetAttribute];
    skip fn cudaGraphKernelNodeSetParams [plain cudaGraphKernelNodeSetParams];
    skip fn cudaGraphMemAllocNodeGetParams [plain cudaGraphMemAllocNodeGetParams];
    skip fn cudaGraphMemFreeNodeGetParams [plain cudaGraphMemFreeNodeGetParams];
    skip fn cudaGraphMemcpyNodeGetParams [plain cudaGraphMemcpyNodeGetParams];
    skip fn cudaGraphMemcpyNodeSetParams [plain cudaGraphMemcpyNodeSetParams];
    skip fn cudaGraphMemcpyNodeSetParams1D [plain cudaGraphMemcpyNodeSetParams1D];
    skip fn cudaGraphMemcpyNodeSetParamsFromSymbol [plain cudaGraphMemcpyNodeSetParamsFromSymbol];
    skip fn cudaGraphMemcpyNodeSetParamsToSymbol [plain cudaGraphMemcpyNodeSetParamsToSymbol];
    skip fn cudaGraphMemsetNodeGetParams [plain cudaGraphMemsetNodeGetParams];
    skip fn cudaGraphMemsetNodeSetParams [plain cudaGraphMemsetNodeSetParams];
    skip fn cudaGraphNodeFindInClone [plain cudaGraphNodeFindInClone];
    skip fn cudaGraphNodeGetContainingGraph [plain cudaGraphNodeGetContainingGraph];
    skip fn cudaGraphNodeGetDependencies [plain cudaGraphNodeGetDependencies];
    skip fn cudaGraphNodeGetDependencies_v2 [plain cudaGraphNodeGetDependencies_v2];
    skip fn cudaGraphNodeGetDependentNodes [plain cudaGraphNodeGetDependentNodes];
    skip fn cudaGraphNodeGetDependentNodes_v2 [plain cudaGraphNodeGetDependentNodes_v2];
    skip fn cudaGraphNodeGetEnabled [plain cudaGraphNodeGetEnabled];
    skip fn cudaGraphNodeGetLocalId [plain cudaGraphNodeGetLocalId];
    skip fn cudaGraphNodeGetParams [plain cudaGraphNodeGetParams];
    skip fn cudaGraphNodeGetToolsId [plain cudaGraphNodeGetToolsId];
    skip fn cudaGraphNodeGetType [plain cudaGraphNodeGetType];
    skip fn cudaGraphNodeSetEnabled [plain cudaGraphNodeSetEnabled];
    skip fn cudaGraphNodeSetParams [plain cudaGraphNodeSetParams];
    skip fn cudaGraphReleaseUserObject [plain cudaGraphReleaseUserObject];
    skip fn cudaGraphRemoveDependencies [plain cudaGraphRemoveDependencies];
    skip fn cudaGraphRemoveDependencies_v2 [plain cudaGraphRemoveDependencies_v2];
    skip fn cudaGraphRetainUserObject [plain cudaGraphRetainUserObject];
    skip fn cudaGraphicsEGLRegisterImage [plain cudaGraphicsEGLRegisterImage];
    skip fn cudaGraphicsGLRegisterBuffer [plain cudaGraphicsGLRegisterBuffer];
    skip fn cudaGraphicsGLRegisterImage [plain cudaGraphicsGLRegisterImage];
    skip fn cudaGraphicsMapResources [legacy cudaGraphicsMapResources];
    skip fn cudaGraphicsResourceGetMappedEglFrame [plain cudaGraphicsResourceGetMappedEglFrame];
    skip fn cudaGraphicsResourceGetMappedMipmappedArray [plain cudaGraphicsResourceGetMappedMipmappedArray];
    skip fn cudaGraphicsResourceGetMappedPointer [plain cudaGraphicsResourceGetMappedPointer];
    skip fn cudaGraphicsResourceSetMapFlags [plain cudaGraphicsResourceSetMapFlags];
    skip fn cudaGraphicsSubResourceGetMappedArray [plain cudaGraphicsSubResourceGetMappedArray];
    skip fn cudaGraphicsUnmapResources [legacy cudaGraphicsUnmapResources];
    skip fn cudaGraphicsUnregisterResource [plain cudaGraphicsUnregisterResource];
    skip fn cudaGraphicsVDPAURegisterOutputSurface [plain cudaGraphicsVDPAURegisterOutputSurface];
    skip fn cudaGraphicsVDPAURegisterVideoSurface [plain cudaGraphicsVDPAURegisterVideoSurface];
    skip fn cudaGreenCtxCreate [plain cudaGreenCtxCreate];
    skip fn cudaHostGetDevicePointer [plain cudaHostGetDevicePointer];
    skip fn cudaHostGetFlags [plain cudaHostGetFlags];
    skip fn cudaImportExternalMemory [plain cudaImportExternalMemory];
    skip fn cudaImportExternalSemaphore [plain cudaImportExternalSemaphore];
    skip fn cudaInitDevice [plain cudaInitDevice];
    skip fn cudaIpcGetEventHandle [plain cudaIpcGetEventHandle];
    skip fn cudaIpcGetMemHandle [plain cudaIpcGetMemHandle];
    skip fn cudaKernelSetAttributeForDevice [plain cudaKernelSetAttributeForDevice];
    skip fn cudaLibraryEnumerateKernels [plain cudaLibraryEnumerateKernels];
    skip fn cudaLibraryGetGlobal [plain cudaLibraryGetGlobal];
    skip fn cudaLibraryGetKernel [plain cudaLibraryGetKernel];
    skip fn cudaLibraryGetKernelCount [plain cudaLibraryGetKernelCount];
    skip fn cudaLibraryGetManaged [plain cudaLibraryGetManaged];
    skip fn cudaLibraryGetUnifiedFunction [plain cudaLibraryGetUnifiedFunction];
    skip fn cudaLibraryLoadData [plain cudaLibraryLoadData];
    skip fn cudaLibraryLoadFromFile [plain cudaLibraryLoadFromFile];
    skip fn cudaLibraryUnload [plain cudaLibraryUnload];
    skip fn cudaLogsCurrent [plain cudaLogsCurrent];
    skip fn cudaLogsDumpToFile [plain cudaLogsDumpToFile];
    skip fn cudaLogsDumpToMemory [plain cudaLogsDumpToMemory];
    skip fn cudaLogsRegisterCallback [plain cudaLogsRegisterCallback];
    skip fn cudaLogsUnregisterCallback [plain cudaLogsUnregisterCallback];
    skip fn cudaMemGetDefaultMemPool [plain cudaMemGetDefaultMemPool];
    skip fn cudaMemGetInfo [plain cudaMemGetInfo];
    skip fn cudaMemGetLocationInfo [plain cudaMemGetLocationInfo];
    skip fn cudaMemGetMemPool [plain cudaMemGetMemPool];
    skip fn cudaMemPoolExportPointer [plain cudaMemPoolExportPointer];
    skip fn cudaMemPoolExportToShareableHandle [plain cudaMemPoolExportToShareableHandle];
    skip fn cudaMemPoolGetAccess [plain cudaMemPoolGetAccess];
    skip fn cudaMemPoolGetAttribute [plain cudaMemPoolGetAttribute];
    skip fn cudaMemPoolImportFromShareableHandle [plain cudaMemPoolImportFromShareableHandle];
    skip fn cudaMemPoolImportPointer [plain cudaMemPoolImportPointer];
    skip fn cudaMemPoolSetAccess [plain cudaMemPoolSetAccess];
    skip fn cudaMemPoolSetAttribute [plain cudaMemPoolSetAttribute];
    skip fn cudaMemRangeGetAttribute [plain cudaMemRangeGetAttribute];
    skip fn cudaMemRangeGetAttributes [plain cudaMemRangeGetAttributes];
    skip fn cudaMemSetMemPool [plain cudaMemSetMemPool];
    skip fn cudaMipmappedArrayGetMemoryRequirements [plain cudaMipmappedArrayGetMemoryRequirements];
    skip fn cudaMipmappedArrayGetSparseProperties [plain cudaMipmappedArrayGetSparseProperties];
    skip fn cudaOccupancyAvailableDynamicSMemPerBlock [plain cudaOccupancyAvailableDynamicSMemPerBlock];
    skip fn cudaOccupancyMaxActiveBlocksPerMultiprocessor [plain cudaOccupancyMaxActiveBlocksPerMultiprocessor];
    skip fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags [
        plain cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags
    ];
    skip fn cudaOccupancyMaxActiveClusters [plain cudaOccupancyMaxActiveClusters];
    skip fn cudaOccupancyMaxPotentialClusterSize [plain cudaOccupancyMaxPotentialClusterSize];
    skip fn cudaPeekAtLastError [plain cudaPeekAtLastError];
    skip fn cudaPointerGetAttributes [plain cudaPointerGetAttributes];
    skip fn cudaProfilerInitialize [plain cudaProfilerInitialize];
    skip fn cudaProfilerStart [plain cudaProfilerStart];
    skip fn cudaProfilerStop [plain cudaProfilerStop];
    skip fn cudaRuntimeGetVersion [plain cudaRuntimeGetVersion];
    skip fn cudaSetDevice [plain cudaSetDevice];
    skip fn cudaSetDeviceFlags [plain cudaSetDeviceFlags];
    skip fn cudaSetDoubleForDevice [plain cudaSetDoubleForDevice];
    skip fn cudaSetDoubleForHost [plain cudaSetDoubleForHost];
    skip fn cudaSetValidDevices [plain cudaSetValidDevices];
    skip fn cudaSignalExternalSemaphoresAsync_v2 [
        legacy cudaSignalExternalSemaphoresAsync_v2,
        per_thread cudaSignalExternalSemaphoresAsync_v2_ptsz
    ];
    skip fn cudaStreamBeginRecaptureToGraph [
        legacy cudaStreamBeginRecaptureToGraph,
        per_thread cudaStreamBeginRecaptureToGraph_ptsz
    ];
    skip fn cudaStreamCopyAttributes [legacy cudaStreamCopyAttributes, per_thread cudaStreamCopyAttributes_ptsz];
    skip fn cudaStreamGetAttribute [legacy cudaStreamGetAttribute, per_thread cudaStreamGetAttribute_ptsz];
    skip fn cudaStreamGetCaptureInfo [legacy cudaStreamGetCaptureInfo, per_thread cudaStreamGetCaptureInfo_ptsz];
    skip fn cudaStreamGetCaptureInfo_v2 [
        legacy cudaStreamGetCaptureInfo_v2,
        per_thread cudaStreamGetCaptureInfo_v2_ptsz
    ];
    skip fn cudaStreamGetCaptureInfo_v3 [
        legacy cudaStreamGetCaptureInfo_v3,
        per_thread cudaStreamGetCaptureInfo_v3_ptsz
    ];
    skip fn cudaStreamGetDevResource [legacy cudaStreamGetDevResource, per_thread cudaStreamGetDevResource_ptsz];
    skip fn cudaStreamGetDevice [legacy cudaStreamGetDevice, per_thread cudaStreamGetDevice_ptsz];
    skip fn cudaStreamGetFlags [legacy cudaStreamGetFlags, per_thread cudaStreamGetFlags_ptsz];
    skip fn cudaStreamGetId [legacy cudaStreamGetId, per_thread cudaStreamGetId_ptsz];
    skip fn cudaStreamGetPriority [legacy cudaStreamGetPriority, per_thread cudaStreamGetPriority_ptsz];
    skip fn cudaStreamIsCapturing [legacy cudaStreamIsCapturing, per_thread cudaStreamIsCapturing_ptsz];
    skip fn cudaStreamSetAttribute [legacy cudaStreamSetAttribute, per_thread cudaStreamSetAttribute_ptsz];
    skip fn cudaStreamUpdateCaptureDependencies [
        legacy cudaStreamUpdateCaptureDependencies,
        per_thread cudaStreamUpdateCaptureDependencies_ptsz
    ];
    skip fn cudaStreamUpdateCaptureDependencies_v2 [
        legacy cudaStreamUpdateCaptureDependencies_v2,
        per_thread cudaStreamUpdateCaptureDependencies_v2_ptsz
    ];
    skip fn cudaSubgridCreate [plain cudaSubgridCreate];
    skip fn cudaSubgridWorkerGridCreate [plain cudaSubgridWorkerGridCreate];
    skip fn cudaSubgridWorksetCreate [plain cudaSubgridWorksetCreate];
    skip fn cudaThreadExchangeStreamCaptureMode [plain cudaThreadExchangeStreamCaptureMode];
    skip fn cudaThreadExit [plain cudaThreadExit];
    skip fn cudaThreadGetCacheConfig [plain cudaThreadGetCacheConfig];
    skip fn cudaThreadGetLimit [plain cudaThreadGetLimit];
    skip fn cudaThreadSetCacheConfig [plain cudaThreadSetCacheConfig];
    skip fn cudaThreadSetLimit [plain cudaThreadSetLimit];
    skip fn cudaUnbindTexture [plain cudaUnbindTexture];
    skip fn cudaUserObjectCreate [plain cudaUserObjectCreate];
    skip fn cudaUserObjectRelease [plain cudaUserObjectRelease];
    skip fn cudaUserObjectRetain [plain cudaUserObjectRetain];
    skip fn cudaVDPAUGetDevice [plain cudaVDPAUGetDevice];
    skip fn cudaVDPAUSetVDPAUDevice [plain cudaVDPAUSetVDPAUDevice];
    skip fn cudaWaitExternalSemaphoresAsync_v2 [
        legacy cudaWaitExternalSemaphoresAsync_v2,
        per_thread cudaWaitExternalSemaphoresAsync_v2_ptsz
    ];

    } };
}
