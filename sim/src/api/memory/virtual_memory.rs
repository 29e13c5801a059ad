//! Virtual memory management: reserve, create, map, set access.

use cuda_sys::*;

use crate::api::*;
use crate::config;
use crate::memory;
use crate::memory::address_space::Page;
use crate::memory::virtual_memory::STEP;
use crate::sched;

fn wait_for_all() {
    let scheduler = sched::get();
    scheduler.wait(&scheduler.all_tails());
}

abi! {
    call fn [cuMemAddressReserve plain](
        _z, ptr: *mut CUdeviceptr, size: usize, alignment: usize, addr: CUdeviceptr, flags: u64
    ) {
        put(ptr, memory::get().reserve(size as u64, alignment as u64, addr)?)
    }
    call fn [cuMemAddressFree plain](_z, ptr: CUdeviceptr, size: usize) {
        memory::get().unreserve(ptr, size as u64)
    }
    call fn [cuMemCreate plain](
        _z, handle: *mut CUmemGenericAllocationHandle, size: usize, prop: *const CUmemAllocationProp, flags: u64
    ) {
        let prop = get(prop)?;
        if prop.type_ != CU_MEM_ALLOCATION_TYPE_PINNED || flags != 0 {
            return Err(INVALID);
        }
        let device = match prop.location.type_ {
            CU_MEM_LOCATION_TYPE_DEVICE => {
                let id = u32::try_from(prop.location.id).map_err(|_| CUresult::ERROR_INVALID_DEVICE)?;
                if id >= config::get_or_default().devices {
                    return Err(CUresult::ERROR_INVALID_DEVICE);
                }
                Some(id)
            }
            CU_MEM_LOCATION_TYPE_HOST | CU_MEM_LOCATION_TYPE_HOST_NUMA | CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT => None,
            _ => return Err(INVALID),
        };
        let types = prop.requestedHandleTypes.0;
        if types & !memory::shareable::TYPES != 0 {
            return Err(CUresult::ERROR_NOT_SUPPORTED);
        }
        put(handle, memory::get().create_physical(size as u64, device, types)?)
    }
    call fn [cuMemRelease plain](_z, handle: CUmemGenericAllocationHandle) {
        memory::get().release_physical(handle)
    }
    call fn [cuMemMap plain](
        _z, ptr: CUdeviceptr, size: usize, offset: usize, handle: CUmemGenericAllocationHandle, flags: u64
    ) {
        let owner = thread::current().contexts.borrow().last().map_or(sched::ContextId(0), |ctx| ctx.id);
        memory::get().map(owner, ptr, size as u64, offset as u64, handle)
    }
    call fn [cuMemUnmap plain](_z, ptr: CUdeviceptr, size: usize) {
        wait_for_all();
        memory::get().unmap(ptr, size as u64)
    }
    call fn [cuMemSetAccess plain](_z, ptr: CUdeviceptr, size: usize, desc: *const CUmemAccessDesc, count: usize) {
        wait_for_all();
        for access in list(desc, count)? {
            let page = match access.flags {
                CU_MEM_ACCESS_FLAGS_PROT_NONE => Page::None,
                CU_MEM_ACCESS_FLAGS_PROT_READ => Page::ReadOnly,
                CU_MEM_ACCESS_FLAGS_PROT_READWRITE => Page::ReadWrite,
                _ => return Err(INVALID),
            };
            if access.location.type_ == CU_MEM_LOCATION_TYPE_DEVICE {
                memory::get().set_access(ptr, size as u64, page)?;
            }
        }
        Ok(())
    }
    call fn [cuMemGetAccess plain](_z, flags: *mut u64, location: *const CUmemLocation, ptr: CUdeviceptr) {
        get(location)?;
        let space = memory::get().space;
        memory::get().find(ptr).ok_or(INVALID)?;
        let access = if space.view(ptr, 1, true).is_ok() {
            CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        } else if space.view(ptr, 1, false).is_ok() {
            CU_MEM_ACCESS_FLAGS_PROT_READ
        } else {
            CU_MEM_ACCESS_FLAGS_PROT_NONE
        };
        put(flags, u64::from(access.0))
    }
    call fn [cuMemGetAllocationGranularity plain](
        _z, granularity: *mut usize, prop: *const CUmemAllocationProp, option: CUmemAllocationGranularity_flags
    ) {
        get(prop)?;
        put(granularity, STEP as usize)
    }
    call fn [cuMemGetAllocationPropertiesFromHandle plain](
        _z, prop: *mut CUmemAllocationProp, handle: CUmemGenericAllocationHandle
    ) {
        let physical = memory::get().physical(handle)?;
        let (type_, id) = match physical.device {
            Some(device) => (CU_MEM_LOCATION_TYPE_DEVICE, device as c_int),
            None => (CU_MEM_LOCATION_TYPE_HOST, 0),
        };
        put(prop, CUmemAllocationProp {
            type_: CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: CUmemAllocationHandleType(physical.handle_types),
            location: CUmemLocation { type_, id },
            ..CUmemAllocationProp::zeroed()
        })
    }
    call fn [cuMemExportToShareableHandle plain](
        _z, shareable: *mut c_void, handle: CUmemGenericAllocationHandle, kind: CUmemAllocationHandleType, flags: u64
    ) {
        if flags != 0 || shareable.is_null() {
            return Err(INVALID);
        }
        let memory = memory::get();
        match kind {
            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => put(shareable.cast(), memory.export_descriptor(handle)?),
            CU_MEM_HANDLE_TYPE_FABRIC => put(shareable.cast(), CUmemFabricHandle { data: memory.export_fabric(handle)? }),
            _ => Err(CUresult::ERROR_NOT_SUPPORTED),
        }
    }
    call fn [cuMemImportFromShareableHandle plain](
        _z, handle: *mut CUmemGenericAllocationHandle, os_handle: *mut c_void, kind: CUmemAllocationHandleType
    ) {
        if handle.is_null() {
            return Err(INVALID);
        }
        let imported = match kind {
            // The descriptor is passed in the pointer's place.
            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR => {
                memory::get().import_descriptor(c_int::try_from(os_handle as usize).map_err(|_| INVALID)?)
            }
            CU_MEM_HANDLE_TYPE_FABRIC => memory::get().import_fabric(&get(os_handle.cast::<CUmemFabricHandle>())?.data),
            _ => Err(CUresult::ERROR_NOT_SUPPORTED),
        };
        put(handle, imported?)
    }
    call fn [cuMemRetainAllocationHandle plain](_z, handle: *mut CUmemGenericAllocationHandle, addr: *mut c_void) {
        put(handle, memory::get().retain_physical(addr as u64)?)
    }
}
