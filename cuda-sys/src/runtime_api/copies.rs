//! Rows of [`runtime_api!`](crate::runtime_api!): copies, sets, prefetches and advice.
//! How to read a row: see the parent module.

#[doc(hidden)]
#[macro_export]
macro_rules! __runtime_api_copies {
    ({$($to:tt)*} {$($rows:tt)*}) => { $crate::__runtime_api_streams! { {$($to)*} { $($rows)*

    name fn cudaMemAdvise(
        ptr: *const c_void, count: usize, advice: cudaMemoryAdvise, location: cudaMemLocation
    ) -> cudaError_t [plain cudaMemAdvise];
    name fn cudaMemAdvise_v2(
        ptr: *const c_void, count: usize, advice: cudaMemoryAdvise, location: cudaMemLocation
    ) -> cudaError_t [plain cudaMemAdvise_v2];
    name fn cudaMemDiscardAndPrefetchBatchAsync(
        dptrs: *mut *mut c_void, sizes: *mut usize, count: usize, prefetch_locs: *mut cudaMemLocation,
        prefetch_loc_idxs: *mut usize, num_prefetch_locs: usize, flags: u64, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemDiscardAndPrefetchBatchAsync, per_thread cudaMemDiscardAndPrefetchBatchAsync_ptsz];
    name fn cudaMemDiscardBatchAsync(
        dptrs: *mut *mut c_void, sizes: *mut usize, count: usize, flags: u64, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemDiscardBatchAsync, per_thread cudaMemDiscardBatchAsync_ptsz];
    // Majors differ: this is the longest form; the words of the shorter ones pass through it
    // unchanged.
    name fn cudaMemPrefetchAsync(
        ptr: *const c_void, count: usize, location: cudaMemLocation, flags_or_stream: u64, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemPrefetchAsync, per_thread cudaMemPrefetchAsync_ptsz];
    name fn cudaMemPrefetchAsync_v2(
        ptr: *const c_void, count: usize, location: cudaMemLocation, flags: c_uint, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemPrefetchAsync_v2, per_thread cudaMemPrefetchAsync_v2_ptsz];
    name fn cudaMemPrefetchBatchAsync(
        dptrs: *mut *mut c_void, sizes: *mut usize, count: usize, prefetch_locs: *mut cudaMemLocation,
        prefetch_loc_idxs: *mut usize, num_prefetch_locs: usize, flags: u64, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemPrefetchBatchAsync, per_thread cudaMemPrefetchBatchAsync_ptsz];
    name fn cudaMemcpy(dst: *mut c_void, src: *const c_void, count: usize, kind: cudaMemcpyKind) -> cudaError_t
        [legacy cudaMemcpy, per_thread cudaMemcpy_ptds];
    name fn cudaMemcpy2D(
        dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize,
        kind: cudaMemcpyKind
    ) -> cudaError_t [legacy cudaMemcpy2D, per_thread cudaMemcpy2D_ptds];
    name fn cudaMemcpy2DArrayToArray(
        dst: cudaArray_t, w_offset_dst: usize, offset_dst: usize, src: cudaArray_const_t, w_offset_src: usize,
        offset_src: usize, width: usize, height: usize, kind: cudaMemcpyKind
    ) -> cudaError_t [legacy cudaMemcpy2DArrayToArray, per_thread cudaMemcpy2DArrayToArray_ptds];
    name fn cudaMemcpy2DAsync(
        dst: *mut c_void, dpitch: usize, src: *const c_void, spitch: usize, width: usize, height: usize,
        kind: cudaMemcpyKind, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemcpy2DAsync, per_thread cudaMemcpy2DAsync_ptsz];
    name fn cudaMemcpy2DFromArray(
        dst: *mut c_void, dpitch: usize, src: cudaArray_const_t, w_offset: usize, offset: usize, width: usize,
        height: usize, kind: cudaMemcpyKind
    ) -> cudaError_t [legacy cudaMemcpy2DFromArray, per_thread cudaMemcpy2DFromArray_ptds];
    name fn cudaMemcpy2DFromArrayAsync(
        dst: *mut c_void, dpitch: usize, src: cudaArray_const_t, w_offset: usize, offset: usize, width: usize,
        height: usize, kind: cudaMemcpyKind, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemcpy2DFromArrayAsync, per_thread cudaMemcpy2DFromArrayAsync_ptsz];
    name fn cudaMemcpy2DToArray(
        dst: cudaArray_t, w_offset: usize, offset: usize, src: *const c_void, spitch: usize, width: usize,
        height: usize, kind: cudaMemcpyKind
    ) -> cudaError_t [legacy cudaMemcpy2DToArray, per_thread cudaMemcpy2DToArray_ptds];
    name fn cudaMemcpy2DToArrayAsync(
        dst: cudaArray_t, w_offset: usize, offset: usize, src: *const c_void, spitch: usize, width: usize,
        height: usize, kind: cudaMemcpyKind, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemcpy2DToArrayAsync, per_thread cudaMemcpy2DToArrayAsync_ptsz];
    name fn cudaMemcpy3D(p: *const cudaMemcpy3DParms) -> cudaError_t
        [legacy cudaMemcpy3D, per_thread cudaMemcpy3D_ptds];
    name fn cudaMemcpy3DAsync(p: *const cudaMemcpy3DParms, stream: cudaStream_t) -> cudaError_t
        [legacy cudaMemcpy3DAsync, per_thread cudaMemcpy3DAsync_ptsz];
    // Majors differ: this is the longest form; the words of the shorter ones pass through it
    // unchanged.
    name fn cudaMemcpy3DBatchAsync(
        num_ops: usize, op_list: *mut cudaMemcpy3DBatchOp, fail_idx: *mut usize, flags: u64, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemcpy3DBatchAsync, per_thread cudaMemcpy3DBatchAsync_ptsz];
    name fn cudaMemcpy3DPeer(p: *const cudaMemcpy3DPeerParms) -> cudaError_t
        [legacy cudaMemcpy3DPeer, per_thread cudaMemcpy3DPeer_ptds];
    name fn cudaMemcpy3DPeerAsync(p: *const cudaMemcpy3DPeerParms, stream: cudaStream_t) -> cudaError_t
        [legacy cudaMemcpy3DPeerAsync, per_thread cudaMemcpy3DPeerAsync_ptsz];
    name fn cudaMemcpy3DWithAttributesAsync(
        op: *mut cudaMemcpy3DBatchOp, flags: u64, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemcpy3DWithAttributesAsync, per_thread cudaMemcpy3DWithAttributesAsync_ptsz];
    name fn cudaMemcpyArrayToArray(
        dst: cudaArray_t, w_offset_dst: usize, offset_dst: usize, src: cudaArray_const_t, w_offset_src: usize,
        offset_src: usize, count: usize, kind: cudaMemcpyKind
    ) -> cudaError_t [legacy cudaMemcpyArrayToArray, per_thread cudaMemcpyArrayToArray_ptds];
    name fn cudaMemcpyAsync(
        dst: *mut c_void, src: *const c_void, count: usize, kind: cudaMemcpyKind, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemcpyAsync, per_thread cudaMemcpyAsync_ptsz];
    // Majors differ: this is the longest form; the words of the shorter ones pass through it
    // unchanged.
    name fn cudaMemcpyBatchAsync(
        dsts: *mut *mut c_void, srcs: *mut *mut c_void, sizes: *mut usize, count: usize,
        attrs: *mut cudaMemcpyAttributes, attrs_idxs: *mut usize, num_attrs: usize, fail_idx: *mut usize,
        stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemcpyBatchAsync, per_thread cudaMemcpyBatchAsync_ptsz];
    name fn cudaMemcpyFromArray(
        dst: *mut c_void, src: cudaArray_const_t, w_offset: usize, offset: usize, count: usize, kind: cudaMemcpyKind
    ) -> cudaError_t [legacy cudaMemcpyFromArray, per_thread cudaMemcpyFromArray_ptds];
    name fn cudaMemcpyFromArrayAsync(
        dst: *mut c_void, src: cudaArray_const_t, w_offset: usize, offset: usize, count: usize, kind: cudaMemcpyKind,
        stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemcpyFromArrayAsync, per_thread cudaMemcpyFromArrayAsync_ptsz];
    name fn cudaMemcpyFromSymbol(
        dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize, kind: cudaMemcpyKind
    ) -> cudaError_t [legacy cudaMemcpyFromSymbol, per_thread cudaMemcpyFromSymbol_ptds];
    name fn cudaMemcpyFromSymbolAsync(
        dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize, kind: cudaMemcpyKind,
        stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemcpyFromSymbolAsync, per_thread cudaMemcpyFromSymbolAsync_ptsz];
    name fn cudaMemcpyPeer(
        dst: *mut c_void, dst_device: c_int, src: *const c_void, src_device: c_int, count: usize
    ) -> cudaError_t [legacy cudaMemcpyPeer];
    name fn cudaMemcpyPeerAsync(
        dst: *mut c_void, dst_device: c_int, src: *const c_void, src_device: c_int, count: usize, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemcpyPeerAsync];
    name fn cudaMemcpyToArray(
        dst: cudaArray_t, w_offset: usize, offset: usize, src: *const c_void, count: usize, kind: cudaMemcpyKind
    ) -> cudaError_t [legacy cudaMemcpyToArray, per_thread cudaMemcpyToArray_ptds];
    name fn cudaMemcpyToArrayAsync(
        dst: cudaArray_t, w_offset: usize, offset: usize, src: *const c_void, count: usize, kind: cudaMemcpyKind,
        stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemcpyToArrayAsync, per_thread cudaMemcpyToArrayAsync_ptsz];
    name fn cudaMemcpyToSymbol(
        symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: cudaMemcpyKind
    ) -> cudaError_t [legacy cudaMemcpyToSymbol, per_thread cudaMemcpyToSymbol_ptds];
    name fn cudaMemcpyToSymbolAsync(
        symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: cudaMemcpyKind,
        stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemcpyToSymbolAsync, per_thread cudaMemcpyToSymbolAsync_ptsz];
    name fn cudaMemcpyWithAttributesAsync(
        dst: *mut c_void, src: *const c_void, size: usize, attr: *mut cudaMemcpyAttributes, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemcpyWithAttributesAsync, per_thread cudaMemcpyWithAttributesAsync_ptsz];
    name fn cudaMemset(ptr: *mut c_void, value: c_int, count: usize) -> cudaError_t
        [legacy cudaMemset, per_thread cudaMemset_ptds];
    name fn cudaMemset2D(ptr: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) -> cudaError_t
        [legacy cudaMemset2D, per_thread cudaMemset2D_ptds];
    name fn cudaMemset2DAsync(
        ptr: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemset2DAsync, per_thread cudaMemset2DAsync_ptsz];
    name fn cudaMemset3D(pitched_dev_ptr: cudaPitchedPtr, value: c_int, extent: cudaExtent) -> cudaError_t
        [legacy cudaMemset3D, per_thread cudaMemset3D_ptds];
    name fn cudaMemset3DAsync(
        pitched_dev_ptr: cudaPitchedPtr, value: c_int, extent: cudaExtent, stream: cudaStream_t
    ) -> cudaError_t [legacy cudaMemset3DAsync, per_thread cudaMemset3DAsync_ptsz];
    name fn cudaMemsetAsync(ptr: *mut c_void, value: c_int, count: usize, stream: cudaStream_t) -> cudaError_t
        [legacy cudaMemsetAsync, per_thread cudaMemsetAsync_ptsz];

    } } };
}
