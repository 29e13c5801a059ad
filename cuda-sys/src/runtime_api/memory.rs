//! Rows of [`runtime_api!`](crate::runtime_api!): allocations and frees.
//! How to read a row: see the parent module.

#[doc(hidden)]
#[macro_export]
macro_rules! __runtime_api_memory {
    ({$($to:tt)*} {$($rows:tt)*}) => { $crate::__runtime_api_copies! { {$($to)*} { $($rows)*

    name fn cudaFree(ptr: *mut c_void) -> cudaError_t [plain cudaFree];
    name fn cudaFreeArray(array: cudaArray_t) -> cudaError_t [plain cudaFreeArray];
    name fn cudaFreeAsync(ptr: *mut c_void, stream: cudaStream_t) -> cudaError_t
        [legacy cudaFreeAsync, per_thread cudaFreeAsync_ptsz];
    name fn cudaFreeHost(ptr: *mut c_void) -> cudaError_t [plain cudaFreeHost];
    name fn cudaFreeMipmappedArray(mipmapped_array: cudaMipmappedArray_t) -> cudaError_t [plain cudaFreeMipmappedArray];
    name fn cudaHostAlloc(host: *mut *mut c_void, size: usize, flags: c_uint) -> cudaError_t [plain cudaHostAlloc];
    name fn cudaHostRegister(ptr: *mut c_void, size: usize, flags: c_uint) -> cudaError_t [plain cudaHostRegister];
    name fn cudaHostUnregister(ptr: *mut c_void) -> cudaError_t [plain cudaHostUnregister];
    name fn cudaIpcCloseMemHandle(ptr: *mut c_void) -> cudaError_t [plain cudaIpcCloseMemHandle];
    name fn cudaIpcOpenMemHandle(ptr: *mut *mut c_void, handle: cudaIpcMemHandle_t, flags: c_uint) -> cudaError_t
        [plain cudaIpcOpenMemHandle];
    name fn cudaMalloc(ptr: *mut *mut c_void, size: usize) -> cudaError_t [plain cudaMalloc];
    name fn cudaMalloc3D(pitched_dev_ptr: *mut cudaPitchedPtr, extent: cudaExtent) -> cudaError_t [plain cudaMalloc3D];
    name fn cudaMalloc3DArray(
        array: *mut cudaArray_t, desc: *const cudaChannelFormatDesc, extent: cudaExtent, flags: c_uint
    ) -> cudaError_t [plain cudaMalloc3DArray];
    name fn cudaMallocArray(
        array: *mut cudaArray_t, desc: *const cudaChannelFormatDesc, width: usize, height: usize, flags: c_uint
    ) -> cudaError_t [plain cudaMallocArray];
    name fn cudaMallocAsync(ptr: *mut *mut c_void, size: usize, stream: cudaStream_t) -> cudaError_t
        [legacy cudaMallocAsync, per_thread cudaMallocAsync_ptsz];
    name fn cudaMallocFromPoolAsync(
        ptr: *mut *mut c_void, size: usize, mem_pool: cudaMemPool_t, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMallocFromPoolAsync, per_thread cudaMallocFromPoolAsync_ptsz];
    name fn cudaMallocHost(ptr: *mut *mut c_void, size: usize) -> cudaError_t [plain cudaMallocHost];
    name fn cudaMallocManaged(ptr: *mut *mut c_void, size: usize, flags: c_uint) -> cudaError_t
        [plain cudaMallocManaged];
    name fn cudaMallocMipmappedArray(
        mipmapped_array: *mut cudaMipmappedArray_t, desc: *const cudaChannelFormatDesc, extent: cudaExtent,
        num_levels: c_uint, flags: c_uint
    ) -> cudaError_t [plain cudaMallocMipmappedArray];
    name fn cudaMallocPitch(ptr: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize) -> cudaError_t
        [plain cudaMallocPitch];
    name fn cudaMemPoolCreate(mem_pool: *mut cudaMemPool_t, pool_props: *const cudaMemPoolProps) -> cudaError_t
        [plain cudaMemPoolCreate];
    name fn cudaMemPoolDestroy(mem_pool: cudaMemPool_t) -> cudaError_t [plain cudaMemPoolDestroy];
    name fn cudaMemPoolTrimTo(mem_pool: cudaMemPool_t, min_bytes_to_keep: usize) -> cudaError_t
        [plain cudaMemPoolTrimTo];

    } } };
}
