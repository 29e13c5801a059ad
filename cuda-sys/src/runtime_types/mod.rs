//! The types of the runtime API (`cudart`), as of CUDA 13 unless a name ends in `_v12`: what the
//! noted functions take, and what a simulated `libcudart` has to fill in.
//!
//! The rules are those of [`crate::types`]. Where the runtime's handle is the driver's by
//! definition, it is an alias here. Only types that [`runtime_api!`](crate::runtime_api!) or the
//! simulation need are listed; `tests/layout.rs` compares them with `cuda_runtime_api.h`.
#![allow(missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals)]

mod enums;
mod launch;
mod memory;
mod properties;
mod status;

pub use enums::*;
pub use launch::*;
pub use memory::*;
pub use properties::*;
pub use status::*;

use crate::types::*;
use core::mem::size_of;

/// The layouts of all runtime structs of CUDA 13; [`RUNTIME_12_LAYOUTS`] are those of CUDA 12.
pub const RUNTIME_LAYOUTS: &[&[Layout]] = &[RUNTIME_LAUNCH_LAYOUTS, RUNTIME_MEMORY_LAYOUTS, RUNTIME_PROPERTIES_LAYOUTS];

c_handles! {
    cudaExecutionContext_t,
}

pub type cudaArray_const_t = CUarray;
pub type cudaArray_t = CUarray;
pub type cudaDeviceAttr = CUdevice_attribute;
pub type cudaError_t = cudaError;
pub type cudaEvent_t = CUevent;
pub type cudaExternalMemory_t = CUexternalMemory;
pub type cudaExternalSemaphore_t = CUexternalSemaphore;
pub type cudaFunction_t = CUfunction;
pub type cudaGraphDeviceNode_t = CUgraphDeviceNode;
pub type cudaGraphEdgeData = cudaGraphEdgeData_st;
pub type cudaGraphExec_t = CUgraphExec;
pub type cudaGraphInstantiateParams = cudaGraphInstantiateParams_st;
pub type cudaGraphNode_t = CUgraphNode;
pub type cudaGraph_t = CUgraph;
pub type cudaGraphicsResource_t = CUgraphicsResource;
pub type cudaHostFn_t = CUhostFn;
pub type cudaIpcEventHandle_t = cudaIpcEventHandle_st;
pub type cudaIpcMemHandle_t = cudaIpcMemHandle_st;
pub type cudaKernel_t = CUkernel;
pub type cudaLaunchAttribute = cudaLaunchAttribute_st;
pub type cudaLaunchConfig_t = cudaLaunchConfig_st;
pub type cudaLaunchMemSyncDomainMap = cudaLaunchMemSyncDomainMap_st;
pub type cudaLibrary_t = CUlibrary;
pub type cudaMemPool_t = CUmemoryPool;
pub type cudaMipmappedArray_const_t = CUmipmappedArray;
pub type cudaMipmappedArray_t = CUmipmappedArray;
pub type cudaStreamCallback_t = Option<unsafe extern "C" fn(cudaStream_t, cudaError_t, *mut c_void)>;
pub type cudaStream_t = CUstream;
pub type cudaSurfaceObject_t = CUsurfObject;
pub type cudaTextureObject_t = CUtexObject;
pub type cudaUserObject_t = CUuserObject;
