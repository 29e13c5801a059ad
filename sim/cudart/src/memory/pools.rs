//! Stream-ordered memory.

use cuda_sys::*;

rt! {
    ctx fn [cudaMallocAsync legacy, cudaMallocAsync_ptsz per_thread](
        pt, out: *mut *mut c_void, size: usize, stream: CUstream
    ) {
        cu!(cuMemAllocAsync, pt; (out.cast(), size, stream))
    }
    ctx fn [cudaMallocFromPoolAsync legacy, cudaMallocFromPoolAsync_ptsz per_thread](
        pt, out: *mut *mut c_void, size: usize, pool: CUmemoryPool, stream: CUstream
    ) {
        cu!(cuMemAllocFromPoolAsync, pt; (out.cast(), size, pool, stream))
    }
    ctx fn [cudaFreeAsync legacy, cudaFreeAsync_ptsz per_thread](pt, at: *mut c_void, stream: CUstream) {
        cu!(cuMemFreeAsync, pt; (at as u64, stream))
    }
    bare fn [cudaDeviceGetDefaultMemPool plain](_pt, pool: *mut CUmemoryPool, device: c_int) {
        cu!(cuDeviceGetDefaultMemPool(pool, device))
    }
    bare fn [cudaDeviceGetMemPool plain](_pt, pool: *mut CUmemoryPool, device: c_int) {
        cu!(cuDeviceGetMemPool(pool, device))
    }
    bare fn [cudaDeviceSetMemPool plain](_pt, device: c_int, pool: CUmemoryPool) {
        cu!(cuDeviceSetMemPool(device, pool))
    }
    bare fn [cudaDeviceGetGraphMemAttribute plain](
        _pt, device: c_int, attr: CUgraphMem_attribute, value: *mut c_void
    ) {
        cu!(cuDeviceGetGraphMemAttribute(device, attr, value))
    }
    bare fn [cudaDeviceSetGraphMemAttribute plain](
        _pt, device: c_int, attr: CUgraphMem_attribute, value: *mut c_void
    ) {
        cu!(cuDeviceSetGraphMemAttribute(device, attr, value))
    }
    bare fn [cudaDeviceGraphMemTrim plain](_pt, device: c_int) { cu!(cuDeviceGraphMemTrim(device)) }
    bare fn [cudaMemPoolCreate plain](_pt, pool: *mut CUmemoryPool, props: *const CUmemPoolProps) {
        cu!(cuMemPoolCreate(pool, props))
    }
    bare fn [cudaMemPoolDestroy plain](_pt, pool: CUmemoryPool) { cu!(cuMemPoolDestroy(pool)) }
    bare fn [cudaMemPoolTrimTo plain](_pt, pool: CUmemoryPool, keep: usize) { cu!(cuMemPoolTrimTo(pool, keep)) }
    bare fn [cudaMemPoolSetAttribute plain](_pt, pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void) {
        cu!(cuMemPoolSetAttribute(pool, attr, value))
    }
    bare fn [cudaMemPoolGetAttribute plain](_pt, pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void) {
        cu!(cuMemPoolGetAttribute(pool, attr, value))
    }
    bare fn [cudaMemPoolSetAccess plain](_pt, pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize) {
        cu!(cuMemPoolSetAccess(pool, map, count))
    }
    bare fn [cudaMemPoolGetAccess plain](
        _pt, flags: *mut CUmemAccess_flags, pool: CUmemoryPool, location: *mut CUmemLocation
    ) {
        cu!(cuMemPoolGetAccess(flags, pool, location))
    }
    bare fn [cudaMemPoolExportToShareableHandle plain](
        _pt, handle: *mut c_void, pool: CUmemoryPool, kind: CUmemAllocationHandleType, flags: c_uint
    ) {
        cu!(cuMemPoolExportToShareableHandle(handle, pool, kind, u64::from(flags)))
    }
    ctx fn [cudaMemPoolImportFromShareableHandle plain](
        _pt, pool: *mut CUmemoryPool, handle: *mut c_void, kind: CUmemAllocationHandleType, flags: c_uint
    ) {
        cu!(cuMemPoolImportFromShareableHandle(pool, handle, kind, u64::from(flags)))
    }
    bare fn [cudaMemPoolExportPointer plain](_pt, data: *mut CUmemPoolPtrExportData, at: *mut c_void) {
        cu!(cuMemPoolExportPointer(data, at as u64))
    }
    bare fn [cudaMemPoolImportPointer plain](
        _pt, out: *mut *mut c_void, pool: CUmemoryPool, data: *mut CUmemPoolPtrExportData
    ) {
        cu!(cuMemPoolImportPointer(out.cast(), pool, data))
    }
}
