//! Attributes of addresses. A boolean one is an `int`, as a driver writes it (580, on an H200).

use cuda_sys::*;

use crate::api::*;
use crate::handles::handle_of;
use crate::memory::{self, Allocation, AllocationKind};
use crate::objects::context::CONTEXTS;

fn attribute(block: &Allocation, ptr: u64, attr: CUpointer_attribute, data: *mut c_void) -> Res {
    let host = block.is_host();
    match attr {
        CU_POINTER_ATTRIBUTE_CONTEXT => {
            let ctx = CONTEXTS.all().into_iter().find(|ctx| ctx.id == block.ctx).ok_or(INVALID)?;
            put(data.cast(), CUcontext::from_bits(handle_of(&ctx)))
        }
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE => {
            put(data.cast(), if host { CU_MEMORYTYPE_HOST } else { CU_MEMORYTYPE_DEVICE })
        }
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER => put(data.cast(), ptr),
        CU_POINTER_ATTRIBUTE_HOST_POINTER => {
            if !host && !matches!(block.kind, AllocationKind::Managed(_)) {
                return Err(INVALID);
            }
            put(data.cast(), ptr)
        }
        CU_POINTER_ATTRIBUTE_SYNC_MEMOPS => {
            put(data.cast(), c_int::from(block.sync_memops || matches!(block.kind, AllocationKind::Managed(_))))
        }
        CU_POINTER_ATTRIBUTE_BUFFER_ID | CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID => put(data.cast(), block.id),
        CU_POINTER_ATTRIBUTE_IS_MANAGED => {
            put(data.cast(), c_int::from(matches!(block.kind, AllocationKind::Managed(_))))
        }
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => put(data.cast(), block.device as c_int),
        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE => {
            put(data.cast(), c_int::from(block.kind == AllocationKind::Device))
        }
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR | CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR => put(data.cast(), block.at),
        CU_POINTER_ATTRIBUTE_RANGE_SIZE | CU_POINTER_ATTRIBUTE_MAPPING_SIZE => put(data.cast(), block.size as usize),
        CU_POINTER_ATTRIBUTE_MAPPED => put(data.cast(), c_int::from(true)),
        CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES => put(data.cast(), 0u64),
        CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE => put(data.cast(), c_int::from(false)),
        CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE => put(data.cast(), c_int::from(false)),
        CU_POINTER_ATTRIBUTE_ACCESS_FLAGS => put(data.cast(), CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE),
        CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => {
            let pool = if let AllocationKind::Pool(handle) = block.kind { handle } else { 0 };
            put(data.cast(), CUmemoryPool::from_bits(pool))
        }
        _ => Err(INVALID),
    }
}

abi! {
    call fn [cuPointerGetAttribute plain](_z, data: *mut c_void, attr: CUpointer_attribute, ptr: CUdeviceptr) {
        attribute(&memory::get().find(ptr).ok_or(INVALID)?, ptr, attr, data)
    }
    call fn [cuPointerGetAttributes plain](
        _z, count: c_uint, attrs: *mut CUpointer_attribute, data: *mut *mut c_void, ptr: CUdeviceptr
    ) {
        let block = memory::get().find(ptr);
        for (attr, data) in list(attrs, count as usize)?.into_iter().zip(list(data, count as usize)?) {
            // Unknown memory, and attributes that do not apply, read as zero: this call does not
            // fail for them.
            let answered = block.as_ref().is_some_and(|block| attribute(block, ptr, attr, data).is_ok());
            if !answered {
                match attr {
                    CU_POINTER_ATTRIBUTE_MEMORY_TYPE
                    | CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
                    | CU_POINTER_ATTRIBUTE_ACCESS_FLAGS
                    | CU_POINTER_ATTRIBUTE_IS_MANAGED
                    | CU_POINTER_ATTRIBUTE_MAPPED
                    | CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
                    | CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE
                    | CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE => put(data.cast(), 0u32)?,
                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => put(data.cast(), -2i32)?,
                    _ => put(data.cast(), 0u64)?,
                }
            }
        }
        Ok(())
    }
    call fn [cuPointerSetAttribute plain](_z, value: *const c_void, attr: CUpointer_attribute, ptr: CUdeviceptr) {
        if attr != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS {
            return Err(INVALID);
        }
        memory::get().set_sync_memops(ptr, get(value.cast::<c_uint>())? != 0)
    }
    call fn [cuMemGetAddressRange_v2 plain](_z, base: *mut CUdeviceptr, size: *mut usize, ptr: CUdeviceptr) {
        let block = memory::get().find(ptr).ok_or(CUresult::ERROR_NOT_FOUND)?;
        put_if(base, block.at);
        put_if(size, block.size as usize);
        Ok(())
    }
}
