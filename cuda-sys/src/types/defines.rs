//! What `cuda.h` defines by `#define`: special handles, markers, flags, limits.

use super::*;

/// The legacy default stream, whichever symbol the call came through.
pub const CU_STREAM_LEGACY: CUstream = CUstream::from_bits(1);
/// The calling thread's default stream, whichever symbol the call came through.
pub const CU_STREAM_PER_THREAD: CUstream = CUstream::from_bits(2);

/// Ends the list `extra` of a launch.
pub const CU_LAUNCH_PARAM_END: *mut c_void = core::ptr::null_mut();
/// The next element of `extra` points to the packed parameters.
pub const CU_LAUNCH_PARAM_BUFFER_POINTER: *mut c_void = core::ptr::without_provenance_mut(1);
/// The next element of `extra` points to a `size_t`: the size of the packed parameters in bytes.
pub const CU_LAUNCH_PARAM_BUFFER_SIZE: *mut c_void = core::ptr::without_provenance_mut(2);

pub const CU_IPC_HANDLE_SIZE: usize = 64;
pub const CU_TENSOR_MAP_NUM_QWORDS: usize = 16;

pub const CU_MEMHOSTALLOC_PORTABLE: c_uint = 0x01;
pub const CU_MEMHOSTALLOC_DEVICEMAP: c_uint = 0x02;
pub const CU_MEMHOSTALLOC_WRITECOMBINED: c_uint = 0x04;
pub const CU_MEMHOSTREGISTER_PORTABLE: c_uint = 0x01;
pub const CU_MEMHOSTREGISTER_DEVICEMAP: c_uint = 0x02;
pub const CU_MEMHOSTREGISTER_IOMEMORY: c_uint = 0x04;
pub const CU_MEMHOSTREGISTER_READ_ONLY: c_uint = 0x08;

pub const CUDA_ARRAY3D_LAYERED: c_uint = 0x01;
pub const CUDA_ARRAY3D_2DARRAY: c_uint = 0x01;
pub const CUDA_ARRAY3D_SURFACE_LDST: c_uint = 0x02;
pub const CUDA_ARRAY3D_CUBEMAP: c_uint = 0x04;
pub const CUDA_ARRAY3D_TEXTURE_GATHER: c_uint = 0x08;
pub const CUDA_ARRAY3D_DEPTH_TEXTURE: c_uint = 0x10;
pub const CUDA_ARRAY3D_COLOR_ATTACHMENT: c_uint = 0x20;
pub const CUDA_ARRAY3D_SPARSE: c_uint = 0x40;
pub const CUDA_ARRAY3D_DEFERRED_MAPPING: c_uint = 0x80;

pub const CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC: c_uint = 0x01;
pub const CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC: c_uint = 0x02;

pub const CUDA_EXTERNAL_MEMORY_DEDICATED: c_uint = 0x1;
pub const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_SKIP_NVSCIBUF_MEMSYNC: c_uint = 0x01;
pub const CUDA_EXTERNAL_SEMAPHORE_WAIT_SKIP_NVSCIBUF_MEMSYNC: c_uint = 0x02;

pub const CU_TRSA_OVERRIDE_FORMAT: c_uint = 0x01;
pub const CU_TRSF_READ_AS_INTEGER: c_uint = 0x01;
pub const CU_TRSF_NORMALIZED_COORDINATES: c_uint = 0x02;
pub const CU_TRSF_SRGB: c_uint = 0x10;
pub const CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION: c_uint = 0x20;
pub const CU_TRSF_SEAMLESS_CUBEMAP: c_uint = 0x40;
pub const CU_PARAM_TR_DEFAULT: c_int = -1;

pub const CU_DEVICE_CPU: CUdevice = -1;
pub const CU_DEVICE_INVALID: CUdevice = -2;

pub const CU_GRAPH_COND_ASSIGN_DEFAULT: c_uint = 0x1;
/// The edge begins when the kernel has finished and its writes are visible.
pub const CU_GRAPH_KERNEL_NODE_PORT_DEFAULT: u8 = 0;
/// The edge begins when all blocks have triggered or exited.
pub const CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC: u8 = 1;
/// The edge begins when all blocks have started.
pub const CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER: u8 = 2;
