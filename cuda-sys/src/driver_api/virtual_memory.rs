//! Rows of [`driver_api!`](crate::driver_api!): virtual memory, multicast, logical endpoints, IPC
//! and external memory. How to read a row, and how to add one: see the parent module.

#[doc(hidden)]
#[macro_export]
macro_rules! __driver_api_virtual_memory {
    ({$($to:tt)*} {$($rows:tt)*}) => { $crate::__driver_api_arrays! { {$($to)*} { $($rows)*

    after  fn cuIpcGetMemHandle(handle: *mut CUipcMemHandle, ptr: CUdeviceptr) [plain cuIpcGetMemHandle];
    after  fn cuIpcOpenMemHandle_v2(dptr: *mut CUdeviceptr, handle: CUipcMemHandle, flags: c_uint)
        [plain cuIpcOpenMemHandle, plain cuIpcOpenMemHandle_v2];
    both   fn cuIpcCloseMemHandle(ptr: CUdeviceptr) [plain cuIpcCloseMemHandle];
    after  fn cuMemGetHandleForAddressRange(
        handle: *mut c_void, ptr: CUdeviceptr, size: usize, handle_type: CUmemRangeHandleType, flags: u64
    ) [plain cuMemGetHandleForAddressRange] no_effect;
    after  fn cuMemAddressReserve(ptr: *mut CUdeviceptr, size: usize, alignment: usize, addr: CUdeviceptr, flags: u64)
        [plain cuMemAddressReserve] no_effect;
    before fn cuMemAddressFree(ptr: CUdeviceptr, size: usize) [plain cuMemAddressFree] no_effect;
    after  fn cuMemCreate(
        handle: *mut CUmemGenericAllocationHandle, size: usize, prop: *const CUmemAllocationProp, flags: u64
    ) [plain cuMemCreate];
    before fn cuMemRelease(handle: CUmemGenericAllocationHandle) [plain cuMemRelease] no_effect;
    after  fn cuMemMap(ptr: CUdeviceptr, size: usize, offset: usize, handle: CUmemGenericAllocationHandle, flags: u64)
        [plain cuMemMap];
    after  fn cuMemMapArrayAsync(map_info_list: *mut CUarrayMapInfo, count: c_uint, stream: CUstream)
        [legacy cuMemMapArrayAsync, per_thread cuMemMapArrayAsync_ptsz]
        partly "ordered in its stream; its bytes are not known";
    both   fn cuMemUnmap(ptr: CUdeviceptr, size: usize) [plain cuMemUnmap];
    both   fn cuMemSetAccess(ptr: CUdeviceptr, size: usize, desc: *const CUmemAccessDesc, count: usize)
        [plain cuMemSetAccess] no_effect;
    after  fn cuMemExportToShareableHandle(
        shareable_handle: *mut c_void, handle: CUmemGenericAllocationHandle, handle_type: CUmemAllocationHandleType,
        flags: u64
    ) [plain cuMemExportToShareableHandle]
        partly "matched between processes by POSIX descriptors and fabric handles; others are counted";
    after  fn cuMemImportFromShareableHandle(
        handle: *mut CUmemGenericAllocationHandle, os_handle: *mut c_void, sh_handle_type: CUmemAllocationHandleType
    ) [plain cuMemImportFromShareableHandle]
        partly "matched between processes by POSIX descriptors and fabric handles; others are counted";
    after  fn cuMemRetainAllocationHandle(handle: *mut CUmemGenericAllocationHandle, addr: *mut c_void)
        [plain cuMemRetainAllocationHandle];
    after  fn cuMulticastCreate(mc_handle: *mut CUmemGenericAllocationHandle, prop: *const CUmulticastObjectProp)
        [plain cuMulticastCreate];
    after  fn cuMulticastAddDevice(mc_handle: CUmemGenericAllocationHandle, dev: CUdevice) [plain cuMulticastAddDevice] no_effect;
    after  fn cuMulticastBindMem(
        mc_handle: CUmemGenericAllocationHandle, mc_offset: usize, mem_handle: CUmemGenericAllocationHandle,
        mem_offset: usize, size: usize, flags: u64
    ) [plain cuMulticastBindMem] not_modelled;
    after  fn cuMulticastBindMem_v2(
        mc_handle: CUmemGenericAllocationHandle, dev: CUdevice, mc_offset: usize,
        mem_handle: CUmemGenericAllocationHandle, mem_offset: usize, size: usize, flags: u64
    ) [plain cuMulticastBindMem_v2] not_modelled;
    after  fn cuMulticastBindAddr(
        mc_handle: CUmemGenericAllocationHandle, mc_offset: usize, memptr: CUdeviceptr, size: usize, flags: u64
    ) [plain cuMulticastBindAddr] not_modelled;
    after  fn cuMulticastBindAddr_v2(
        mc_handle: CUmemGenericAllocationHandle, dev: CUdevice, mc_offset: usize, memptr: CUdeviceptr, size: usize,
        flags: u64
    ) [plain cuMulticastBindAddr_v2] not_modelled;
    before fn cuMulticastUnbind(mc_handle: CUmemGenericAllocationHandle, dev: CUdevice, mc_offset: usize, size: usize)
        [plain cuMulticastUnbind] no_effect;
    after  fn cuLogicalEndpointIdReserve(base_le_id: *mut CUlogicalEndpointId, count: u32)
        [plain cuLogicalEndpointIdReserve] no_effect;
    before fn cuLogicalEndpointIdRelease(base_le_id: CUlogicalEndpointId, count: u32)
        [plain cuLogicalEndpointIdRelease] no_effect;
    after  fn cuLogicalEndpointCreate(le_id: CUlogicalEndpointId, prop: *const CUlogicalEndpointProp)
        [plain cuLogicalEndpointCreate] no_effect;
    after  fn cuLogicalEndpointAddDevice(le_id: CUlogicalEndpointId, dev: CUdevice) [plain cuLogicalEndpointAddDevice] no_effect;
    before fn cuLogicalEndpointDestroy(le_id: CUlogicalEndpointId) [plain cuLogicalEndpointDestroy] no_effect;
    after  fn cuLogicalEndpointBindAddr(
        le_id: CUlogicalEndpointId, dev: CUdevice, offset: u64, ptr: *mut c_void, size: u64, flags: u64
    ) [plain cuLogicalEndpointBindAddr] not_modelled;
    after  fn cuLogicalEndpointBindMem(
        le_id: CUlogicalEndpointId, dev: CUdevice, offset: u64, mem_handle: CUmemGenericAllocationHandle,
        mem_offset: u64, size: u64, flags: u64
    ) [plain cuLogicalEndpointBindMem] not_modelled;
    before fn cuLogicalEndpointUnbind(le_id: CUlogicalEndpointId, dev: CUdevice, offset: u64, size: u64)
        [plain cuLogicalEndpointUnbind] no_effect;
    after  fn cuLogicalEndpointExport(
        handle: *mut c_void, le_id: CUlogicalEndpointId, handle_type: CUlogicalEndpointIpcHandleType
    ) [plain cuLogicalEndpointExport] no_effect;
    after  fn cuLogicalEndpointImport(
        le_id: CUlogicalEndpointId, handle: *const c_void, handle_type: CUlogicalEndpointIpcHandleType
    ) [plain cuLogicalEndpointImport] not_modelled;
    after  fn cuImportExternalMemory(
        ext_mem_out: *mut CUexternalMemory, mem_handle_desc: *const CUDA_EXTERNAL_MEMORY_HANDLE_DESC
    ) [plain cuImportExternalMemory] no_effect;
    after  fn cuExternalMemoryGetMappedBuffer(
        dev_ptr: *mut CUdeviceptr, ext_mem: CUexternalMemory, buffer_desc: *const CUDA_EXTERNAL_MEMORY_BUFFER_DESC
    ) [plain cuExternalMemoryGetMappedBuffer];
    after  fn cuExternalMemoryGetMappedMipmappedArray(
        mipmap: *mut CUmipmappedArray, ext_mem: CUexternalMemory,
        mipmap_desc: *const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC
    ) [plain cuExternalMemoryGetMappedMipmappedArray] not_modelled;
    before fn cuDestroyExternalMemory(ext_mem: CUexternalMemory) [plain cuDestroyExternalMemory] no_effect;

    } } };
}
