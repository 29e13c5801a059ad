//! Rows of [`driver_api!`](crate::driver_api!): plain, pooled and host memory.
//! How to read a row, and how to add one: see the parent module.

#[doc(hidden)]
#[macro_export]
macro_rules! __driver_api_memory {
    ({$($to:tt)*} {$($rows:tt)*}) => { $crate::__driver_api_virtual_memory! { {$($to)*} { $($rows)*

    after  fn cuDeviceSetMemPool(dev: CUdevice, pool: CUmemoryPool) [plain cuDeviceSetMemPool] no_effect;
    after  fn cuMemAlloc(ptr: *mut CUdeviceptr_v1, byte_size: c_uint) [plain cuMemAlloc];
    after  fn cuMemAlloc_v2(ptr: *mut CUdeviceptr, byte_size: usize) [plain cuMemAlloc_v2];
    after  fn cuMemAllocPitch(
        ptr: *mut CUdeviceptr_v1, pitch: *mut c_uint, width_in_bytes: c_uint, height: c_uint,
        element_size_bytes: c_uint
    ) [plain cuMemAllocPitch];
    after  fn cuMemAllocPitch_v2(
        ptr: *mut CUdeviceptr, pitch: *mut usize, width_in_bytes: usize, height: usize, element_size_bytes: c_uint
    ) [plain cuMemAllocPitch_v2];
    both   fn cuMemFree(ptr: CUdeviceptr_v1) [plain cuMemFree];
    both   fn cuMemFree_v2(ptr: CUdeviceptr) [plain cuMemFree_v2];
    after  fn cuMemAllocHost(pointer_out: *mut *mut c_void, byte_size: c_uint) [plain cuMemAllocHost];
    after  fn cuMemAllocHost_v2(pointer_out: *mut *mut c_void, byte_size: usize) [plain cuMemAllocHost_v2];
    both   fn cuMemFreeHost(pointer: *mut c_void) [plain cuMemFreeHost];
    after  fn cuMemHostAlloc(pointer_out: *mut *mut c_void, byte_size: usize, flags: c_uint) [plain cuMemHostAlloc];
    after  fn cuMemHostGetDevicePointer(dptr: *mut CUdeviceptr_v1, pointer: *mut c_void, flags: c_uint)
        [plain cuMemHostGetDevicePointer];
    after  fn cuMemHostGetDevicePointer_v2(dptr: *mut CUdeviceptr, pointer: *mut c_void, flags: c_uint)
        [plain cuMemHostGetDevicePointer_v2];
    after  fn cuMemAllocManaged(ptr: *mut CUdeviceptr, byte_size: usize, flags: c_uint) [plain cuMemAllocManaged];
    after  fn cuMemHostRegister_v2(pointer: *mut c_void, byte_size: usize, flags: c_uint)
        [plain cuMemHostRegister, plain cuMemHostRegister_v2];
    both   fn cuMemHostUnregister(pointer: *mut c_void) [plain cuMemHostUnregister];
    both   fn cuMemFreeAsync(ptr: CUdeviceptr, stream: CUstream)
        [legacy cuMemFreeAsync, per_thread cuMemFreeAsync_ptsz];
    after  fn cuMemAllocAsync(ptr: *mut CUdeviceptr, byte_size: usize, stream: CUstream)
        [legacy cuMemAllocAsync, per_thread cuMemAllocAsync_ptsz];
    after  fn cuMemPoolTrimTo(pool: CUmemoryPool, min_bytes_to_keep: usize) [plain cuMemPoolTrimTo] no_effect;
    after  fn cuMemPoolSetAttribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void)
        [plain cuMemPoolSetAttribute] no_effect;
    after  fn cuMemPoolSetAccess(pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize)
        [plain cuMemPoolSetAccess] no_effect;
    after  fn cuMemPoolCreate(pool: *mut CUmemoryPool, pool_props: *const CUmemPoolProps) [plain cuMemPoolCreate] no_effect;
    before fn cuMemPoolDestroy(pool: CUmemoryPool) [plain cuMemPoolDestroy];
    after  fn cuMemSetMemPool(location: *mut CUmemLocation, kind: CUmemAllocationType, pool: CUmemoryPool)
        [plain cuMemSetMemPool] no_effect;
    after  fn cuMemAllocFromPoolAsync(ptr: *mut CUdeviceptr, byte_size: usize, pool: CUmemoryPool, stream: CUstream)
        [legacy cuMemAllocFromPoolAsync, per_thread cuMemAllocFromPoolAsync_ptsz];
    after  fn cuMemPoolExportToShareableHandle(
        handle_out: *mut c_void, pool: CUmemoryPool, handle_type: CUmemAllocationHandleType, flags: u64
    ) [plain cuMemPoolExportToShareableHandle]
        partly "matched between processes by POSIX descriptors; other handles are counted";
    after  fn cuMemPoolImportFromShareableHandle(
        pool_out: *mut CUmemoryPool, handle: *mut c_void, handle_type: CUmemAllocationHandleType, flags: u64
    ) [plain cuMemPoolImportFromShareableHandle]
        partly "matched between processes by POSIX descriptors; other handles are counted";
    after  fn cuMemPoolExportPointer(share_data_out: *mut CUmemPoolPtrExportData, ptr: CUdeviceptr)
        [plain cuMemPoolExportPointer]
        partly "matched between processes if the pool's descriptor is";
    after  fn cuMemPoolImportPointer(
        ptr_out: *mut CUdeviceptr, pool: CUmemoryPool, share_data: *mut CUmemPoolPtrExportData
    ) [plain cuMemPoolImportPointer]
        partly "matched between processes if the pool's descriptor is";
    after  fn cuPointerSetAttribute(value: *const c_void, attribute: CUpointer_attribute, ptr: CUdeviceptr)
        [plain cuPointerSetAttribute];

    } } };
}
