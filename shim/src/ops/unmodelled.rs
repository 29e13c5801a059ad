//! Rows that need no op.
//!
//! Owns two lists: functions whose effect another row covers (a graph is read when it is
//! instantiated, a handle is defined when it is first used) or that have none that matters; and
//! functions whose effect is not modelled yet, which the coverage names.

use cuda_sys::*;

use crate::observe::Cx;

macro_rules! no_effect {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {
        #[cfg(test)]
        const NO_EFFECT: &[&str] = &[$(stringify!($name)),*];
        $(
        pub(crate) unsafe fn $name(cx: &mut Cx<'_>, $($arg: $ty),*) {
            let _ = (cx, $($arg),*);
        }
        )*
    };
}

macro_rules! not_modelled {
    ($(fn $name:ident($($arg:ident: $ty:ty),* $(,)?);)*) => {
        #[cfg(test)]
        const NOT_MODELLED: &[&str] = &[$(stringify!($name)),*];
        $(
        pub(crate) unsafe fn $name(cx: &mut Cx<'_>, $($arg: $ty),*) {
            let _ = ($($arg,)*);
            cx.not_modelled();
        }
        )*
    };
}

not_modelled! {
    fn cuArrayGetPlane(plane_array: *mut CUarray, array: CUarray, plane_idx: c_uint);
    fn cuTexRefSetArray(tex_ref: CUtexref, array: CUarray, flags: c_uint);
    fn cuTexRefSetMipmappedArray(tex_ref: CUtexref, mipmapped_array: CUmipmappedArray, flags: c_uint);
    fn cuTexRefSetAddress(byte_offset: *mut c_uint, tex_ref: CUtexref, ptr: CUdeviceptr_v1, bytes: c_uint);
    fn cuTexRefSetAddress_v2(byte_offset: *mut usize, tex_ref: CUtexref, ptr: CUdeviceptr, bytes: usize);
    fn cuTexRefSetAddress2D(tex_ref: CUtexref, desc: *const CUDA_ARRAY_DESCRIPTOR_v1, ptr: CUdeviceptr_v1, pitch:
        c_uint);
    fn cuTexRefSetAddress2D_v3(tex_ref: CUtexref, desc: *const CUDA_ARRAY_DESCRIPTOR, ptr: CUdeviceptr, pitch:
        usize);
    fn cuSurfRefSetArray(surf_ref: CUsurfref, array: CUarray, flags: c_uint);
    fn cuGraphicsSubResourceGetMappedArray(array: *mut CUarray, resource: CUgraphicsResource, array_index: c_uint,
        mip_level: c_uint);
    fn cuGraphicsResourceGetMappedMipmappedArray(mipmapped_array: *mut CUmipmappedArray, resource:
        CUgraphicsResource);
    fn cuGraphicsResourceGetMappedPointer(dev_ptr: *mut CUdeviceptr_v1, size: *mut c_uint, resource:
        CUgraphicsResource);
    fn cuLibraryGetUnifiedFunction(fptr: *mut *mut c_void, library: CUlibrary, symbol: *const c_char);
    fn cuGraphExecExternalSemaphoresSignalNodeSetParams(graph_exec: CUgraphExec, node: CUgraphNode, node_params:
        *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS);
    fn cuGraphExecExternalSemaphoresWaitNodeSetParams(graph_exec: CUgraphExec, node: CUgraphNode, node_params:
        *const CUDA_EXT_SEM_WAIT_NODE_PARAMS);
    fn cuLaunch(function: CUfunction);
    fn cuLaunchGrid(function: CUfunction, grid_width: c_int, grid_height: c_int);
    fn cuMulticastBindMem(mc_handle: CUmemGenericAllocationHandle, mc_offset: usize, mem_handle:
        CUmemGenericAllocationHandle, mem_offset: usize, size: usize, flags: u64);
    fn cuMulticastBindMem_v2(mc_handle: CUmemGenericAllocationHandle, dev: CUdevice, mc_offset: usize, mem_handle:
        CUmemGenericAllocationHandle, mem_offset: usize, size: usize, flags: u64);
    fn cuMulticastBindAddr(mc_handle: CUmemGenericAllocationHandle, mc_offset: usize, memptr: CUdeviceptr, size:
        usize, flags: u64);
    fn cuMulticastBindAddr_v2(mc_handle: CUmemGenericAllocationHandle, dev: CUdevice, mc_offset: usize, memptr:
        CUdeviceptr, size: usize, flags: u64);
    fn cuLogicalEndpointBindAddr(le_id: CUlogicalEndpointId, dev: CUdevice, offset: u64, ptr: *mut c_void, size:
        u64, flags: u64);
    fn cuLogicalEndpointBindMem(le_id: CUlogicalEndpointId, dev: CUdevice, offset: u64, mem_handle:
        CUmemGenericAllocationHandle, mem_offset: u64, size: u64, flags: u64);
    fn cuLogicalEndpointImport(le_id: CUlogicalEndpointId, handle: *const c_void, handle_type:
        CUlogicalEndpointIpcHandleType);
    fn cuExternalMemoryGetMappedMipmappedArray(mipmap: *mut CUmipmappedArray, ext_mem: CUexternalMemory,
        mipmap_desc: *const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC);
}

no_effect! {
    fn cuTexRefCreate(tex_ref: *mut CUtexref);
    fn cuTexRefDestroy(tex_ref: CUtexref);
    fn cuGraphicsUnregisterResource(resource: CUgraphicsResource);
    fn cuLinkCreate_v2(num_options: c_uint, options: *mut CUjit_option, option_values: *mut *mut c_void,
        state_out: *mut CUlinkState);
    fn cuLinkAddData_v2(state: CUlinkState, kind: CUjitInputType, data: *mut c_void, size: usize, name: *const
        c_char, num_options: c_uint, options: *mut CUjit_option, option_values: *mut *mut c_void);
    fn cuLinkAddFile_v2(state: CUlinkState, kind: CUjitInputType, path: *const c_char, num_options: c_uint,
        options: *mut CUjit_option, option_values: *mut *mut c_void);
    fn cuLinkComplete(state: CUlinkState, cubin_out: *mut *mut c_void, size_out: *mut usize);
    fn cuLinkDestroy(state: CUlinkState);
    fn cuModuleGetTexRef(tex_ref: *mut CUtexref, module: CUmodule, name: *const c_char);
    fn cuModuleGetSurfRef(surf_ref: *mut CUsurfref, module: CUmodule, name: *const c_char);
    fn cuFuncGetModule(module: *mut CUmodule, function: CUfunction);
    fn cuCtxPushCurrent_v2(ctx: CUcontext);
    fn cuCtxPopCurrent_v2(ctx: *mut CUcontext);
    fn cuCtxSetCurrent(ctx: CUcontext);
    fn cuCtxAttach(ctx: *mut CUcontext, flags: c_uint);
    fn cuCtxDetach(ctx: CUcontext);
    fn cuGraphCreate(graph: *mut CUgraph, flags: c_uint);
    fn cuGraphKernelNodeSetParams(node: CUgraphNode, node_params: *const CUDA_KERNEL_NODE_PARAMS_v1);
    fn cuGraphKernelNodeSetParams_v2(node: CUgraphNode, node_params: *const CUDA_KERNEL_NODE_PARAMS);
    fn cuGraphMemcpyNodeSetParams(node: CUgraphNode, node_params: *const CUDA_MEMCPY3D);
    fn cuGraphMemsetNodeSetParams(node: CUgraphNode, node_params: *const CUDA_MEMSET_NODE_PARAMS);
    fn cuGraphHostNodeGetParams(node: CUgraphNode, node_params: *mut CUDA_HOST_NODE_PARAMS);
    fn cuGraphHostNodeSetParams(node: CUgraphNode, node_params: *const CUDA_HOST_NODE_PARAMS);
    fn cuGraphEventRecordNodeSetEvent(node: CUgraphNode, event: CUevent);
    fn cuGraphEventWaitNodeSetEvent(node: CUgraphNode, event: CUevent);
    fn cuGraphExternalSemaphoresSignalNodeSetParams(node: CUgraphNode, node_params: *const
        CUDA_EXT_SEM_SIGNAL_NODE_PARAMS);
    fn cuGraphExternalSemaphoresWaitNodeSetParams(node: CUgraphNode, node_params: *const
        CUDA_EXT_SEM_WAIT_NODE_PARAMS);
    fn cuGraphBatchMemOpNodeSetParams(node: CUgraphNode, node_params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS);
    fn cuDeviceGraphMemTrim(device: CUdevice);
    fn cuDeviceSetGraphMemAttribute(device: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void);
    fn cuGraphNodeFindInClone(node: *mut CUgraphNode, original_node: CUgraphNode, cloned_graph: CUgraph);
    fn cuGraphAddDependencies(graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, num_dependencies:
        usize);
    fn cuGraphAddDependencies_v2(graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, edge_data:
        *const CUgraphEdgeData, num_dependencies: usize);
    fn cuGraphRemoveDependencies(graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode,
        num_dependencies: usize);
    fn cuGraphRemoveDependencies_v2(graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, edge_data:
        *const CUgraphEdgeData, num_dependencies: usize);
    fn cuGraphUpload(graph_exec: CUgraphExec, stream: CUstream);
    fn cuGraphKernelNodeCopyAttributes(dst: CUgraphNode, src: CUgraphNode);
    fn cuGraphKernelNodeSetAttribute(node: CUgraphNode, attr: CUkernelNodeAttrID, value: *const
        CUkernelNodeAttrValue);
    fn cuUserObjectCreate(object_out: *mut CUuserObject, ptr: *mut c_void, destroy: CUhostFn, initial_refcount:
        c_uint, flags: c_uint);
    fn cuUserObjectRetain(object: CUuserObject, count: c_uint);
    fn cuUserObjectRelease(object: CUuserObject, count: c_uint);
    fn cuGraphRetainUserObject(graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint);
    fn cuGraphReleaseUserObject(graph: CUgraph, object: CUuserObject, count: c_uint);
    fn cuGraphNodeSetParams_v2(node: CUgraphNode, node_params: *mut CUgraphNodeParams);
    fn cuGraphNodeGetParams(node: CUgraphNode, node_params: *mut CUgraphNodeParams);
    fn cuFuncSetBlockShape(function: CUfunction, x: c_int, y: c_int, z: c_int);
    fn cuFuncSetSharedSize(function: CUfunction, bytes: c_uint);
    fn cuParamSetSize(function: CUfunction, byte_count: c_uint);
    fn cuParamSeti(function: CUfunction, offset: c_int, value: c_uint);
    fn cuParamSetf(function: CUfunction, offset: c_int, value: f32);
    fn cuParamSetv(function: CUfunction, offset: c_int, ptr: *mut c_void, byte_count: c_uint);
    fn cuParamSetTexRef(function: CUfunction, tex_unit: c_int, tex_ref: CUtexref);
    fn cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode);
    fn cuStreamIsCapturing(stream: CUstream, capture_status: *mut CUstreamCaptureStatus);
    fn cuStreamGetCaptureInfo(stream: CUstream, capture_status_out: *mut CUstreamCaptureStatus, id_out: *mut u64);
    fn cuStreamGetCaptureInfo_v2(stream: CUstream, capture_status_out: *mut CUstreamCaptureStatus, id_out: *mut
        u64, graph_out: *mut CUgraph, dependencies_out: *mut *const CUgraphNode, num_dependencies_out: *mut usize);
    fn cuStreamGetCaptureInfo_v3(stream: CUstream, capture_status_out: *mut CUstreamCaptureStatus, id_out: *mut
        u64, graph_out: *mut CUgraph, dependencies_out: *mut *const CUgraphNode, edge_data_out: *mut *const
        CUgraphEdgeData, num_dependencies_out: *mut usize);
    fn cuMemGetHandleForAddressRange(handle: *mut c_void, ptr: CUdeviceptr, size: usize, handle_type:
        CUmemRangeHandleType, flags: u64);
    fn cuMemAddressReserve(ptr: *mut CUdeviceptr, size: usize, alignment: usize, addr: CUdeviceptr, flags: u64);
    fn cuMemAddressFree(ptr: CUdeviceptr, size: usize);
    fn cuMemRelease(handle: CUmemGenericAllocationHandle);
    fn cuMulticastAddDevice(mc_handle: CUmemGenericAllocationHandle, dev: CUdevice);
    fn cuMulticastUnbind(mc_handle: CUmemGenericAllocationHandle, dev: CUdevice, mc_offset: usize, size: usize);
    fn cuLogicalEndpointIdReserve(base_le_id: *mut CUlogicalEndpointId, count: u32);
    fn cuLogicalEndpointIdRelease(base_le_id: CUlogicalEndpointId, count: u32);
    fn cuLogicalEndpointCreate(le_id: CUlogicalEndpointId, prop: *const CUlogicalEndpointProp);
    fn cuLogicalEndpointAddDevice(le_id: CUlogicalEndpointId, dev: CUdevice);
    fn cuLogicalEndpointDestroy(le_id: CUlogicalEndpointId);
    fn cuLogicalEndpointUnbind(le_id: CUlogicalEndpointId, dev: CUdevice, offset: u64, size: u64);
    fn cuLogicalEndpointExport(handle: *mut c_void, le_id: CUlogicalEndpointId, handle_type:
        CUlogicalEndpointIpcHandleType);
    fn cuImportExternalMemory(ext_mem_out: *mut CUexternalMemory, mem_handle_desc: *const
        CUDA_EXTERNAL_MEMORY_HANDLE_DESC);
    fn cuDestroyExternalMemory(ext_mem: CUexternalMemory);
}

/// Tools must attach before the driver starts.
pub(crate) unsafe fn cuInit(cx: &mut Cx<'_>, _flags: c_uint) {
    if cx.is_before() {
        crate::exact::prepare();
    }
}

#[cfg(test)]
mod tests {
    use cuda_sys::model_coverage::Effect;
    use cuda_sys::{DRIVER_FUNCTIONS, FnId};

    /// What the table says of these functions is what is done with them here.
    #[test]
    fn the_table_says_the_same() {
        for function in DRIVER_FUNCTIONS {
            let (row, effect) = (function.row, FnId(function.index).effect());
            let interop = FnId(function.index).is_interop();
            assert_eq!(effect == Effect::NotModelled && !interop, super::NOT_MODELLED.contains(&row), "{row}");
            assert!(effect == Effect::None || !super::NO_EFFECT.contains(&row), "{row}: the table says {effect:?}");
        }
    }
}
