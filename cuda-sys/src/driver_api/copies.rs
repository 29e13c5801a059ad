//! Rows of [`driver_api!`](crate::driver_api!): copies, prefetches, discards and advice.
//! How to read a row, and how to add one: see the parent module.

#[doc(hidden)]
#[macro_export]
macro_rules! __driver_api_copies {
    ({$($to:tt)*} {$($rows:tt)*}) => { $crate::__driver_api_sets! { {$($to)*} { $($rows)*

    both   fn cuMemcpy(dst: CUdeviceptr, src: CUdeviceptr, byte_count: usize)
        [legacy cuMemcpy, per_thread cuMemcpy_ptds];
    both   fn cuMemcpyPeer(
        dst_device: CUdeviceptr, dst_context: CUcontext, src_device: CUdeviceptr, src_context: CUcontext,
        byte_count: usize
    ) [legacy cuMemcpyPeer, per_thread cuMemcpyPeer_ptds];
    both   fn cuMemcpyHtoD(dst_device: CUdeviceptr_v1, src_host: *const c_void, byte_count: c_uint)
        [legacy cuMemcpyHtoD];
    both   fn cuMemcpyHtoD_v2(dst_device: CUdeviceptr, src_host: *const c_void, byte_count: usize)
        [legacy cuMemcpyHtoD_v2, per_thread cuMemcpyHtoD_v2_ptds];
    both   fn cuMemcpyDtoH(dst_host: *mut c_void, src_device: CUdeviceptr_v1, byte_count: c_uint) [legacy cuMemcpyDtoH];
    both   fn cuMemcpyDtoH_v2(dst_host: *mut c_void, src_device: CUdeviceptr, byte_count: usize)
        [legacy cuMemcpyDtoH_v2, per_thread cuMemcpyDtoH_v2_ptds];
    both   fn cuMemcpyDtoD(dst_device: CUdeviceptr_v1, src_device: CUdeviceptr_v1, byte_count: c_uint)
        [legacy cuMemcpyDtoD];
    both   fn cuMemcpyDtoD_v2(dst_device: CUdeviceptr, src_device: CUdeviceptr, byte_count: usize)
        [legacy cuMemcpyDtoD_v2, per_thread cuMemcpyDtoD_v2_ptds];
    both   fn cuMemcpyDtoA(dst_array: CUarray, dst_offset: c_uint, src_device: CUdeviceptr_v1, byte_count: c_uint)
        [legacy cuMemcpyDtoA];
    both   fn cuMemcpyDtoA_v2(dst_array: CUarray, dst_offset: usize, src_device: CUdeviceptr, byte_count: usize)
        [legacy cuMemcpyDtoA_v2, per_thread cuMemcpyDtoA_v2_ptds];
    both   fn cuMemcpyAtoD(dst_device: CUdeviceptr_v1, src_array: CUarray, src_offset: c_uint, byte_count: c_uint)
        [legacy cuMemcpyAtoD];
    both   fn cuMemcpyAtoD_v2(dst_device: CUdeviceptr, src_array: CUarray, src_offset: usize, byte_count: usize)
        [legacy cuMemcpyAtoD_v2, per_thread cuMemcpyAtoD_v2_ptds];
    both   fn cuMemcpyHtoA(dst_array: CUarray, dst_offset: c_uint, src_host: *const c_void, byte_count: c_uint)
        [legacy cuMemcpyHtoA];
    both   fn cuMemcpyHtoA_v2(dst_array: CUarray, dst_offset: usize, src_host: *const c_void, byte_count: usize)
        [legacy cuMemcpyHtoA_v2, per_thread cuMemcpyHtoA_v2_ptds];
    both   fn cuMemcpyAtoH(dst_host: *mut c_void, src_array: CUarray, src_offset: c_uint, byte_count: c_uint)
        [legacy cuMemcpyAtoH];
    both   fn cuMemcpyAtoH_v2(dst_host: *mut c_void, src_array: CUarray, src_offset: usize, byte_count: usize)
        [legacy cuMemcpyAtoH_v2, per_thread cuMemcpyAtoH_v2_ptds];
    both   fn cuMemcpyAtoA(
        dst_array: CUarray, dst_offset: c_uint, src_array: CUarray, src_offset: c_uint, byte_count: c_uint
    ) [legacy cuMemcpyAtoA];
    both   fn cuMemcpyAtoA_v2(
        dst_array: CUarray, dst_offset: usize, src_array: CUarray, src_offset: usize, byte_count: usize
    ) [legacy cuMemcpyAtoA_v2, per_thread cuMemcpyAtoA_v2_ptds];
    both   fn cuMemcpy2D(copy: *const CUDA_MEMCPY2D_v1) [legacy cuMemcpy2D];
    both   fn cuMemcpy2D_v2(copy: *const CUDA_MEMCPY2D) [legacy cuMemcpy2D_v2, per_thread cuMemcpy2D_v2_ptds];
    both   fn cuMemcpy2DUnaligned(copy: *const CUDA_MEMCPY2D_v1) [legacy cuMemcpy2DUnaligned];
    both   fn cuMemcpy2DUnaligned_v2(copy: *const CUDA_MEMCPY2D)
        [legacy cuMemcpy2DUnaligned_v2, per_thread cuMemcpy2DUnaligned_v2_ptds];
    both   fn cuMemcpy3D(copy: *const CUDA_MEMCPY3D_v1) [legacy cuMemcpy3D];
    both   fn cuMemcpy3D_v2(copy: *const CUDA_MEMCPY3D) [legacy cuMemcpy3D_v2, per_thread cuMemcpy3D_v2_ptds];
    both   fn cuMemcpy3DPeer(copy: *const CUDA_MEMCPY3D_PEER) [legacy cuMemcpy3DPeer, per_thread cuMemcpy3DPeer_ptds];
    both   fn cuMemcpyAsync(dst: CUdeviceptr, src: CUdeviceptr, byte_count: usize, stream: CUstream)
        [legacy cuMemcpyAsync, per_thread cuMemcpyAsync_ptsz];
    after  fn cuMemcpyPeerAsync(
        dst_device: CUdeviceptr, dst_context: CUcontext, src_device: CUdeviceptr, src_context: CUcontext,
        byte_count: usize, stream: CUstream
    ) [legacy cuMemcpyPeerAsync, per_thread cuMemcpyPeerAsync_ptsz];
    both   fn cuMemcpyHtoDAsync(
        dst_device: CUdeviceptr_v1, src_host: *const c_void, byte_count: c_uint, stream: CUstream
    ) [legacy cuMemcpyHtoDAsync];
    both   fn cuMemcpyHtoDAsync_v2(
        dst_device: CUdeviceptr, src_host: *const c_void, byte_count: usize, stream: CUstream
    ) [legacy cuMemcpyHtoDAsync_v2, per_thread cuMemcpyHtoDAsync_v2_ptsz];
    both   fn cuMemcpyDtoHAsync(dst_host: *mut c_void, src_device: CUdeviceptr_v1, byte_count: c_uint, stream: CUstream)
        [legacy cuMemcpyDtoHAsync];
    both   fn cuMemcpyDtoHAsync_v2(dst_host: *mut c_void, src_device: CUdeviceptr, byte_count: usize, stream: CUstream)
        [legacy cuMemcpyDtoHAsync_v2, per_thread cuMemcpyDtoHAsync_v2_ptsz];
    after  fn cuMemcpyDtoDAsync(
        dst_device: CUdeviceptr_v1, src_device: CUdeviceptr_v1, byte_count: c_uint, stream: CUstream
    ) [legacy cuMemcpyDtoDAsync];
    after  fn cuMemcpyDtoDAsync_v2(
        dst_device: CUdeviceptr, src_device: CUdeviceptr, byte_count: usize, stream: CUstream
    ) [legacy cuMemcpyDtoDAsync_v2, per_thread cuMemcpyDtoDAsync_v2_ptsz];
    both   fn cuMemcpyHtoAAsync(
        dst_array: CUarray, dst_offset: c_uint, src_host: *const c_void, byte_count: c_uint, stream: CUstream
    ) [legacy cuMemcpyHtoAAsync];
    both   fn cuMemcpyHtoAAsync_v2(
        dst_array: CUarray, dst_offset: usize, src_host: *const c_void, byte_count: usize, stream: CUstream
    ) [legacy cuMemcpyHtoAAsync_v2, per_thread cuMemcpyHtoAAsync_v2_ptsz];
    both   fn cuMemcpyAtoHAsync(
        dst_host: *mut c_void, src_array: CUarray, src_offset: c_uint, byte_count: c_uint, stream: CUstream
    ) [legacy cuMemcpyAtoHAsync];
    both   fn cuMemcpyAtoHAsync_v2(
        dst_host: *mut c_void, src_array: CUarray, src_offset: usize, byte_count: usize, stream: CUstream
    ) [legacy cuMemcpyAtoHAsync_v2, per_thread cuMemcpyAtoHAsync_v2_ptsz];
    both   fn cuMemcpy2DAsync(copy: *const CUDA_MEMCPY2D_v1, stream: CUstream) [legacy cuMemcpy2DAsync];
    both   fn cuMemcpy2DAsync_v2(copy: *const CUDA_MEMCPY2D, stream: CUstream)
        [legacy cuMemcpy2DAsync_v2, per_thread cuMemcpy2DAsync_v2_ptsz];
    both   fn cuMemcpy3DAsync(copy: *const CUDA_MEMCPY3D_v1, stream: CUstream) [legacy cuMemcpy3DAsync];
    both   fn cuMemcpy3DAsync_v2(copy: *const CUDA_MEMCPY3D, stream: CUstream)
        [legacy cuMemcpy3DAsync_v2, per_thread cuMemcpy3DAsync_v2_ptsz];
    after  fn cuMemcpy3DPeerAsync(copy: *const CUDA_MEMCPY3D_PEER, stream: CUstream)
        [legacy cuMemcpy3DPeerAsync, per_thread cuMemcpy3DPeerAsync_ptsz];
    both   fn cuMemcpyBatchAsync(
        dsts: *mut CUdeviceptr, srcs: *mut CUdeviceptr, sizes: *mut usize, count: usize, attrs: *mut CUmemcpyAttributes,
        attrs_idxs: *mut usize, num_attrs: usize, fail_idx: *mut usize, stream: CUstream
    ) [legacy cuMemcpyBatchAsync, per_thread cuMemcpyBatchAsync_ptsz];
    both   fn cuMemcpyBatchAsync_v2(
        dsts: *mut CUdeviceptr, srcs: *mut CUdeviceptr, sizes: *mut usize, count: usize, attrs: *mut CUmemcpyAttributes,
        attrs_idxs: *mut usize, num_attrs: usize, stream: CUstream
    ) [legacy cuMemcpyBatchAsync_v2, per_thread cuMemcpyBatchAsync_v2_ptsz];
    both   fn cuMemcpy3DBatchAsync(
        num_ops: usize, op_list: *mut CUDA_MEMCPY3D_BATCH_OP, fail_idx: *mut usize, flags: u64, stream: CUstream
    ) [legacy cuMemcpy3DBatchAsync, per_thread cuMemcpy3DBatchAsync_ptsz];
    both   fn cuMemcpy3DBatchAsync_v2(
        num_ops: usize, op_list: *mut CUDA_MEMCPY3D_BATCH_OP, flags: u64, stream: CUstream
    ) [legacy cuMemcpy3DBatchAsync_v2, per_thread cuMemcpy3DBatchAsync_v2_ptsz];
    both   fn cuMemcpyWithAttributesAsync(
        dst: CUdeviceptr, src: CUdeviceptr, size: usize, attr: *mut CUmemcpyAttributes, stream: CUstream
    ) [legacy cuMemcpyWithAttributesAsync, per_thread cuMemcpyWithAttributesAsync_ptsz];
    both   fn cuMemcpy3DWithAttributesAsync(op: *mut CUDA_MEMCPY3D_BATCH_OP, flags: u64, stream: CUstream)
        [legacy cuMemcpy3DWithAttributesAsync, per_thread cuMemcpy3DWithAttributesAsync_ptsz];
    after  fn cuMemBatchDecompressAsync(
        params_array: *mut CUmemDecompressParams, count: usize, flags: c_uint, error_index: *mut usize,
        stream: CUstream
    ) [legacy cuMemBatchDecompressAsync, per_thread cuMemBatchDecompressAsync_ptsz]
        partly "ordered in its stream; its bytes are not known";
    after  fn cuFabricCpyBatchAsync(
        num_ops: usize, op_list: *mut CUDA_FABRIC_COPY_BATCH_OP, flags: u64, stream: CUstream
    ) [legacy cuFabricCpyBatchAsync, per_thread cuFabricCpyBatchAsync_ptsz]
        partly "ordered in its stream; its bytes are not known";
    after  fn cuMemPrefetchAsync(dev_ptr: CUdeviceptr, count: usize, dst_device: CUdevice, stream: CUstream)
        [legacy cuMemPrefetchAsync, per_thread cuMemPrefetchAsync_ptsz];
    after  fn cuMemPrefetchAsync_v2(
        dev_ptr: CUdeviceptr, count: usize, location: CUmemLocation, flags: c_uint, stream: CUstream
    ) [legacy cuMemPrefetchAsync_v2, per_thread cuMemPrefetchAsync_v2_ptsz];
    after  fn cuMemAdvise(dev_ptr: CUdeviceptr, count: usize, advice: CUmem_advise, device: CUdevice)
        [plain cuMemAdvise];
    after  fn cuMemAdvise_v2(dev_ptr: CUdeviceptr, count: usize, advice: CUmem_advise, location: CUmemLocation)
        [plain cuMemAdvise_v2];
    after  fn cuMemPrefetchBatchAsync(
        dptrs: *mut CUdeviceptr, sizes: *mut usize, count: usize, prefetch_locs: *mut CUmemLocation,
        prefetch_loc_idxs: *mut usize, num_prefetch_locs: usize, flags: u64, stream: CUstream
    ) [legacy cuMemPrefetchBatchAsync, per_thread cuMemPrefetchBatchAsync_ptsz];
    after  fn cuMemDiscardBatchAsync(
        dptrs: *mut CUdeviceptr, sizes: *mut usize, count: usize, flags: u64, stream: CUstream
    ) [legacy cuMemDiscardBatchAsync, per_thread cuMemDiscardBatchAsync_ptsz];
    after  fn cuMemDiscardAndPrefetchBatchAsync(
        dptrs: *mut CUdeviceptr, sizes: *mut usize, count: usize, prefetch_locs: *mut CUmemLocation,
        prefetch_loc_idxs: *mut usize, num_prefetch_locs: usize, flags: u64, stream: CUstream
    ) [legacy cuMemDiscardAndPrefetchBatchAsync, per_thread cuMemDiscardAndPrefetchBatchAsync_ptsz];

    } } };
}
