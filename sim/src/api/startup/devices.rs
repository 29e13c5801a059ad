//! Devices: their properties, attributes and peers.

use cuda_sys::*;

use crate::api::*;
use crate::config::{self, Config};
use crate::visible_devices::{self, pci_bus};

fn device(dev: CUdevice) -> Result<u32, CUresult> {
    let dev = u32::try_from(dev).map_err(|_| CUresult::ERROR_INVALID_DEVICE)?;
    if dev < config::get_or_default().devices { Ok(dev) } else { Err(CUresult::ERROR_INVALID_DEVICE) }
}

/// Shared memory of a multiprocessor and the most that a block may ask for, in bytes.
pub(crate) fn shared_memory(arch: u32) -> (i32, i32) {
    let kib = match arch {
        ..=69 => (64, 48),
        70..=74 => (96, 96),
        75..=79 => (64, 64),
        80 | 87 => (164, 163),
        81..=89 | 120.. => (100, 99),
        _ => (228, 227),
    };
    (kib.0 << 10, kib.1 << 10)
}

/// Most threads that live on a multiprocessor at once.
pub(crate) fn threads_per_multiprocessor(arch: u32) -> i32 {
    match arch {
        75..=79 => 1024,
        86..=89 | 120.. => 1536,
        _ => 2048,
    }
}

/// Most blocks that live on a multiprocessor at once.
pub(crate) fn blocks_per_multiprocessor(arch: u32) -> i32 {
    match arch {
        75..=79 | 86 | 87 => 16,
        89 | 120.. => 24,
        _ => 32,
    }
}

/// How many multiprocessors the device pretends to have.
pub(crate) const MULTIPROCESSORS: i32 = 16;

fn attribute(config: &Config, dev: u32, attr: CUdevice_attribute) -> Result<c_int, CUresult> {
    let arch = config.arch;
    let (shared, shared_optin) = shared_memory(arch);
    Ok(match attr {
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK
        | CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X
        | CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y => 1024,
        CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z => 64,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X => c_int::MAX,
        CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y | CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z => 65535,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK => 48 << 10,
        CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY => 64 << 10,
        CU_DEVICE_ATTRIBUTE_WARP_SIZE => 32,
        CU_DEVICE_ATTRIBUTE_MAX_PITCH => c_int::MAX,
        CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK | CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR => 65536,
        CU_DEVICE_ATTRIBUTE_CLOCK_RATE | CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE => 1_000_000,
        CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT | CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT => 512,
        CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT => 32,
        CU_DEVICE_ATTRIBUTE_GPU_OVERLAP
        | CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY
        | CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS
        | CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING
        | CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED
        | CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED
        | CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED
        | CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY
        | CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS
        | CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED
        | CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
        | CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH
        | CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED
        | CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST
        | CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
        | CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
        | CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
        | CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS
        | CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
        | CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1
        | CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1
        | CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1
        | CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS
        | CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR
        | CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED
        | CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED => 1,
        CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES => CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.0 as c_int,
        CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT => MULTIPROCESSORS,
        CU_DEVICE_ATTRIBUTE_PCI_BUS_ID => pci_bus(config.visible.system(dev)) as c_int,
        CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID | CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID => 0,
        CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH => 256,
        CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE => 4 << 20,
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR => threads_per_multiprocessor(arch),
        CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR => blocks_per_multiprocessor(arch),
        CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT => 2,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => (arch / 10) as c_int,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => (arch % 10) as c_int,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR => shared,
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN => shared_optin,
        CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK => {
            if arch >= 80 {
                1024
            } else {
                0
            }
        }
        CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO => 2,
        CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH => c_int::from(arch >= 90),
        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH | CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH => 131_072,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT | CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT => 65_536,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH | CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH => 131_072,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH | CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH => 16_384,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH
        | CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH
        | CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH
        | CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH
        | CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH => 32_768,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS | CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS => {
            2048
        }
        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH => 2_097_120,
        CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH => 1 << 28,
        // Everything else that a device may or may not have: this one does not.
        CUdevice_attribute(1..=160) => 0,
        _ => return Err(INVALID),
    })
}

fn name_of(arch: u32) -> String {
    format!("StreamSan simulated GPU (sm_{arch})")
}

fn pci_address(dev: u32) -> String {
    format!("0000:{:02x}:00.0", pci_bus(config::get_or_default().visible.system(dev)))
}

/// Describes a device of the system, for [`SimTable::device`]. Does not start CUDA.
///
/// # Safety
/// `to` is writable.
#[cfg(feature = "driver")]
pub(crate) unsafe extern "C" fn describe(device: c_uint, to: *mut SimDevice) -> CUresult {
    let Ok(config) = config::get() else { return CUresult::ERROR_UNKNOWN };
    if device >= config.visible.present {
        return CUresult::ERROR_INVALID_DEVICE;
    }
    let mut name = [0; 64];
    let text = name_of(config.arch);
    name[..text.len()].copy_from_slice(text.as_bytes());
    // Only a process that has started CUDA has memory.
    let seen = (0..config.devices).find(|&seen| config.visible.system(seen) == device);
    let started = INITIALISED.load(std::sync::atomic::Ordering::Acquire);
    let free = seen.filter(|_| started).map_or(config.mem, |seen| crate::memory::get().info(seen).0);
    let described = SimDevice {
        arch: config.arch,
        bus: pci_bus(device),
        uuid: visible_devices::uuid(device),
        name,
        memory: config.mem,
        allocated: config.mem - free,
    };
    // SAFETY: the caller's promise.
    unsafe { to.write(described) };
    CUresult::SUCCESS
}

abi! {
    call fn [cuDeviceGetCount plain](_z, count: *mut c_int) {
        put(count, config::get_or_default().devices as c_int)
    }
    call fn [cuDeviceGet plain](_z, dev: *mut CUdevice, ordinal: c_int) {
        put(dev, device(ordinal)? as CUdevice)
    }
    call fn [cuDeviceGetName plain](_z, name: *mut c_char, len: c_int, dev: CUdevice) {
        device(dev)?;
        put_text(name, len.max(0) as usize, &name_of(config::get_or_default().arch))
    }
    call fn [cuDeviceGetAttribute plain](_z, value: *mut c_int, attr: CUdevice_attribute, dev: CUdevice) {
        let dev = device(dev)?;
        put(value, attribute(&config::get_or_default(), dev, attr)?)
    }
    call fn [cuDeviceComputeCapability plain](_z, major: *mut c_int, minor: *mut c_int, dev: CUdevice) {
        device(dev)?;
        let arch = config::get_or_default().arch as c_int;
        put(major, arch / 10)?;
        put(minor, arch % 10)
    }
    call fn [cuDeviceTotalMem_v2 plain](_z, bytes: *mut usize, dev: CUdevice) {
        device(dev)?;
        put(bytes, config::get_or_default().mem as usize)
    }
    call fn [cuDeviceGetUuid plain, cuDeviceGetUuid_v2 plain](_z, uuid: *mut CUuuid, dev: CUdevice) {
        let dev = device(dev)?;
        put(uuid.cast(), visible_devices::uuid(config::get_or_default().visible.system(dev)))
    }
    call fn [cuDeviceGetPCIBusId plain](_z, text: *mut c_char, len: c_int, dev: CUdevice) {
        let id = pci_address(device(dev)?);
        if (len.max(0) as usize) <= id.len() {
            return Err(INVALID);
        }
        put_text(text, len as usize, &id)
    }
    call fn [cuDeviceGetByPCIBusId plain](_z, dev: *mut CUdevice, id: *const c_char) {
        let wanted = text(id)?;
        let all = 0..config::get_or_default().devices;
        let found = all.into_iter().find(|&dev| wanted.eq_ignore_ascii_case(&pci_address(dev)));
        put(dev, found.ok_or(CUresult::ERROR_INVALID_DEVICE)? as CUdevice)
    }
    call fn [cuDeviceCanAccessPeer plain](_z, can: *mut c_int, dev: CUdevice, peer: CUdevice) {
        put(can, c_int::from(device(dev)? != device(peer)?))
    }
    call fn [cuDeviceGetP2PAttribute plain](
        _z, value: *mut c_int, attr: CUdevice_P2PAttribute, src: CUdevice, dst: CUdevice
    ) {
        if device(src)? == device(dst)? {
            return Err(CUresult::ERROR_INVALID_DEVICE);
        }
        put(value, c_int::from(attr.0 != 1))
    }
    call fn [cuDeviceGetTexture1DLinearMaxWidth plain](
        _z, max: *mut usize, format: CUarray_format, channels: c_uint, dev: CUdevice
    ) {
        device(dev)?;
        put(max, 1 << 28)
    }
    call fn [cuDeviceGetExecAffinitySupport plain](_z, supported: *mut c_int, kind: CUexecAffinityType, dev: CUdevice) {
        device(dev)?;
        put(supported, 0)
    }
    call fn [cuDeviceGetProperties plain](_z, prop: *mut CUdevprop, dev: CUdevice) {
        device(dev)?;
        let config = config::get_or_default();
        let ask = |attr| attribute(&config, 0, attr);
        put(prop, CUdevprop {
            maxThreadsPerBlock: 1024,
            maxThreadsDim: [1024, 1024, 64],
            maxGridSize: [c_int::MAX, 65535, 65535],
            sharedMemPerBlock: 48 << 10,
            totalConstantMemory: 64 << 10,
            SIMDWidth: 32,
            memPitch: c_int::MAX,
            regsPerBlock: 65536,
            clockRate: ask(CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?,
            textureAlign: ask(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT)?,
        })
    }
}
