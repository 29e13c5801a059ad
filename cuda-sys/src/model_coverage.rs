//! How much of each function's meaning is modelled, for the listing of `streamsan coverage`.
//!
//! Owns four lists of row names. Rows that are `skip` in the table have no effect on order or
//! memory. Of all other rows, those named here have no effect that matters, are modelled in part,
//! or are not modelled at all. The rest is modelled. The shim's tests compare the lists with what
//! the shim does.

use crate::driver_functions::{FnId, When};

/// How much of a function is modelled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Effect {
    /// What it does to order and memory is modelled.
    Modelled,
    /// It has no effect on order or memory, or one that another function's row covers.
    None,
    /// Modelled in part: what is missing.
    Partly(&'static str),
    /// It has an effect that is not modelled. Calls are counted and named.
    NotModelled,
}

impl FnId {
    /// How much of this function is modelled.
    pub fn effect(self) -> Effect {
        let info = self.info();
        if self.is_interop() || NOT_MODELLED.contains(&info.row) {
            return Effect::NotModelled;
        }
        if let Some((_, missing)) = PARTLY_MODELLED.iter().find(|(row, _)| *row == info.row) {
            return Effect::Partly(missing);
        }
        if info.when == When::Skip || NO_EFFECT.contains(&info.row) { Effect::None } else { Effect::Modelled }
    }
}

/// Rows with an effect that is not modelled.
pub const NOT_MODELLED: &[&str] = &[
    "cuArrayGetPlane",
    "cuMipmappedArrayCreate",
    "cuMipmappedArrayGetLevel",
    "cuTexRefSetArray",
    "cuTexRefSetMipmappedArray",
    "cuTexRefSetAddress",
    "cuTexRefSetAddress_v2",
    "cuTexRefSetAddress2D",
    "cuTexRefSetAddress2D_v3",
    "cuSurfRefSetArray",
    "cuTensorMapEncodeIm2colWide",
    "cuGraphicsSubResourceGetMappedArray",
    "cuGraphicsResourceGetMappedMipmappedArray",
    "cuGraphicsResourceGetMappedPointer",
    "cuLibraryGetUnifiedFunction",
    "cuGraphExecExternalSemaphoresSignalNodeSetParams",
    "cuGraphExecExternalSemaphoresWaitNodeSetParams",
    "cuLaunch",
    "cuLaunchGrid",
    "cuMemImportFromShareableHandle",
    "cuMulticastBindMem",
    "cuMulticastBindMem_v2",
    "cuMulticastBindAddr",
    "cuMulticastBindAddr_v2",
    "cuLogicalEndpointBindAddr",
    "cuLogicalEndpointBindMem",
    "cuLogicalEndpointImport",
    "cuExternalMemoryGetMappedMipmappedArray",
];

/// Rows that are modelled in part, and what is missing.
pub const PARTLY_MODELLED: &[(&str, &str)] = &[
    (
        "cuIpcOpenEventHandle",
        "ordered with the other processes of one `streamsan run`; within this process a wait waits for all that was enqueued here",
    ),
    ("cuStreamBeginCaptureToCig", "captured for another API"),
    ("cuGraphicsMapResources", "ordered in its stream; the other API's work is not seen"),
    ("cuGraphicsUnmapResources", "ordered in its stream; the other API's work is not seen"),
    ("cuSignalExternalSemaphoresAsync", "ordered with waits of this process; other APIs are not seen"),
    ("cuWaitExternalSemaphoresAsync", "ordered with signals of this process; other APIs are not seen"),
    ("cuMemBatchDecompressAsync", "ordered in its stream; its bytes are not known"),
    ("cuFabricCpyBatchAsync", "ordered in its stream; its bytes are not known"),
    ("cuMemMapArrayAsync", "ordered in its stream; its bytes are not known"),
    ("cuLaunchGridAsync", "ordered in its stream; its parameters are not known"),
];

/// Rows that have an op function and no effect that matters.
pub const NO_EFFECT: &[&str] = &[
    "cuTexRefCreate",
    "cuTexRefDestroy",
    "cuTensorMapEncodeTiled",
    "cuTensorMapEncodeIm2col",
    "cuTensorMapReplaceAddress",
    "cuGraphicsUnregisterResource",
    "cuLinkCreate_v2",
    "cuGraphConditionalHandleCreate",
    "cuLinkAddData_v2",
    "cuLinkAddFile_v2",
    "cuLinkComplete",
    "cuLinkDestroy",
    "cuModuleGetTexRef",
    "cuModuleGetSurfRef",
    "cuFuncGetModule",
    "cuInit",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuCtxSetCurrent",
    "cuCtxAttach",
    "cuCtxDetach",
    "cuGraphCreate",
    "cuGraphKernelNodeSetParams",
    "cuGraphKernelNodeSetParams_v2",
    "cuGraphMemcpyNodeSetParams",
    "cuGraphMemsetNodeSetParams",
    "cuGraphHostNodeGetParams",
    "cuGraphHostNodeSetParams",
    "cuGraphEventRecordNodeSetEvent",
    "cuGraphEventWaitNodeSetEvent",
    "cuGraphExternalSemaphoresSignalNodeSetParams",
    "cuGraphExternalSemaphoresWaitNodeSetParams",
    "cuGraphBatchMemOpNodeSetParams",
    "cuDeviceGraphMemTrim",
    "cuDeviceSetGraphMemAttribute",
    "cuGraphNodeFindInClone",
    "cuGraphAddDependencies",
    "cuGraphAddDependencies_v2",
    "cuGraphRemoveDependencies",
    "cuGraphRemoveDependencies_v2",
    "cuGraphUpload",
    "cuGraphKernelNodeCopyAttributes",
    "cuGraphKernelNodeSetAttribute",
    "cuUserObjectCreate",
    "cuUserObjectRetain",
    "cuUserObjectRelease",
    "cuGraphRetainUserObject",
    "cuGraphReleaseUserObject",
    "cuGraphNodeSetParams_v2",
    "cuGraphNodeGetParams",
    "cuFuncSetBlockShape",
    "cuFuncSetSharedSize",
    "cuParamSetSize",
    "cuParamSeti",
    "cuParamSetf",
    "cuParamSetv",
    "cuParamSetTexRef",
    "cuThreadExchangeStreamCaptureMode",
    "cuStreamIsCapturing",
    "cuStreamGetCaptureInfo",
    "cuStreamGetCaptureInfo_v2",
    "cuStreamGetCaptureInfo_v3",
    "cuStreamUpdateCaptureDependencies",
    "cuStreamUpdateCaptureDependencies_v2",
    "cuMemGetHandleForAddressRange",
    "cuMemAddressReserve",
    "cuMemAddressFree",
    "cuMemRelease",
    "cuMemExportToShareableHandle",
    "cuMemRetainAllocationHandle",
    "cuMulticastCreate",
    "cuMulticastAddDevice",
    "cuMulticastUnbind",
    "cuLogicalEndpointIdReserve",
    "cuLogicalEndpointIdRelease",
    "cuLogicalEndpointCreate",
    "cuLogicalEndpointAddDevice",
    "cuLogicalEndpointDestroy",
    "cuLogicalEndpointUnbind",
    "cuLogicalEndpointExport",
    "cuImportExternalMemory",
    "cuDestroyExternalMemory",
    "cuDeviceSetMemPool",
    "cuMemPoolTrimTo",
    "cuMemPoolSetAttribute",
    "cuMemPoolSetAccess",
    "cuMemPoolCreate",
    "cuMemSetMemPool",
    "cuMemPoolExportToShareableHandle",
    "cuMemPoolImportFromShareableHandle",
    "cuMemSetAccess",
    "cuFlushGPUDirectRDMAWrites",
    "cuStreamCopyAttributes",
    "cuStreamSetAttribute",
    "cuGraphExecHostNodeSetParams",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver_functions::DRIVER_FUNCTIONS;

    #[test]
    fn every_name_is_a_row_and_stands_in_one_list() {
        let partly = PARTLY_MODELLED.iter().map(|(row, _)| row);
        let mut names: Vec<&str> = NOT_MODELLED.iter().chain(partly).chain(NO_EFFECT).copied().collect();
        for name in &names {
            let row = DRIVER_FUNCTIONS.iter().find(|f| f.row == *name);
            assert!(row.is_some_and(|f| f.when != When::Skip), "{name} is no row with an op function");
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a name stands in two lists");
    }
}
