//! Device properties: one struct in version 13, another in version 12, the beginning of that in 11.

use cuda_sys::*;

use crate::thread_state::{Res, put, put_start};

fn ask(device: c_int, attribute: CUdevice_attribute) -> Result<c_int, cudaError> {
    let mut value = 0;
    cu!(cuDeviceGetAttribute(&mut value, attribute, device))?;
    Ok(value)
}

/// Fills the fields that both versions have: `fill!(struct, device, field = ATTRIBUTE as type,
/// ...)`.
macro_rules! fill {
    ($to:ident, $device:expr; $($field:ident = $attribute:ident as $ty:ty),* $(,)?) => {
        $( $to.$field = ask($device, $attribute)? as $ty; )*
    };
}

macro_rules! properties {
    ($name:ident, $ty:ty) => {
        fn $name(device: c_int) -> Result<$ty, cudaError> {
            let mut p = <$ty>::zeroed();
            cu!(cuDeviceGetName(p.name.as_mut_ptr(), 256, device))?;
            cu!(cuDeviceGetUuid_v2(&mut p.uuid, device))?;
            cu!(cuDeviceTotalMem_v2(&mut p.totalGlobalMem, device))?;
            fill! { p, device;
                sharedMemPerBlock = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK as usize,
                regsPerBlock = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK as c_int,
                warpSize = CU_DEVICE_ATTRIBUTE_WARP_SIZE as c_int,
                memPitch = CU_DEVICE_ATTRIBUTE_MAX_PITCH as usize,
                maxThreadsPerBlock = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK as c_int,
                totalConstMem = CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY as usize,
                major = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as c_int,
                minor = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as c_int,
                textureAlignment = CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT as usize,
                texturePitchAlignment = CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT as usize,
                multiProcessorCount = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as c_int,
                integrated = CU_DEVICE_ATTRIBUTE_INTEGRATED as c_int,
                canMapHostMemory = CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY as c_int,
                maxTexture1D = CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH as c_int,
                surfaceAlignment = CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT as usize,
                concurrentKernels = CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS as c_int,
                ECCEnabled = CU_DEVICE_ATTRIBUTE_ECC_ENABLED as c_int,
                pciBusID = CU_DEVICE_ATTRIBUTE_PCI_BUS_ID as c_int,
                pciDeviceID = CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID as c_int,
                pciDomainID = CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID as c_int,
                asyncEngineCount = CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT as c_int,
                unifiedAddressing = CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING as c_int,
                memoryBusWidth = CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH as c_int,
                l2CacheSize = CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE as c_int,
                maxThreadsPerMultiProcessor = CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR as c_int,
                streamPrioritiesSupported = CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED as c_int,
                globalL1CacheSupported = CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED as c_int,
                localL1CacheSupported = CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED as c_int,
                sharedMemPerMultiprocessor = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR as usize,
                regsPerMultiprocessor = CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR as c_int,
                managedMemory = CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY as c_int,
                pageableMemoryAccess = CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS as c_int,
                concurrentManagedAccess = CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS as c_int,
                computePreemptionSupported = CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED as c_int,
                canUseHostPointerForRegisteredMem = CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM as c_int,
                cooperativeLaunch = CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH as c_int,
                sharedMemPerBlockOptin = CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN as usize,
                maxBlocksPerMultiProcessor = CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR as c_int,
                reservedSharedMemPerBlock = CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK as usize,
                hostRegisterSupported = CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED as c_int,
                memoryPoolsSupported = CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED as c_int,
                clusterLaunch = CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH as c_int,
                unifiedFunctionPointers = CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS as c_int,
            }
            p.maxThreadsDim = [
                ask(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
                ask(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
                ask(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
            ];
            p.maxGridSize = [
                ask(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                ask(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                ask(device, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ];
            p.maxTexture2D = [
                ask(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH)?,
                ask(device, CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT)?,
            ];
            Ok(p)
        }
    };
}

properties!(properties_13, cudaDeviceProp);
properties!(properties_12, cudaDeviceProp_v12);

/// `is_short`: the struct of version 11, with which the one of version 12 begins.
fn answer(out: *mut c_void, device: c_int, is_short: bool) -> Res {
    if crate::version::major() >= 13 {
        return put(out.cast(), properties_13(device)?);
    }
    let mut p = properties_12(device)?;
    p.clockRate = ask(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?;
    p.memoryClockRate = ask(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
    p.deviceOverlap = ask(device, CU_DEVICE_ATTRIBUTE_GPU_OVERLAP)?;
    if is_short {
        return put_start(out, &p, std::mem::offset_of!(cudaDeviceProp_v12, hostRegisterSupported));
    }
    put(out.cast(), p)
}

rt! {
    // In version 12 the struct grew, and with it the name.
    bare fn [cudaGetDeviceProperties plain](_pt, out: *mut c_void, device: c_int) { answer(out, device, true) }
    bare fn [cudaGetDeviceProperties_v2 plain](_pt, out: *mut c_void, device: c_int) { answer(out, device, false) }
}
