//! The runtime's structs for memory and copies.

use super::*;

c_structs! { RUNTIME_MEMORY_LAYOUTS
    struct cudaPitchedPtr {
        ptr: *mut c_void,
        pitch: usize,
        xsize: usize,
        ysize: usize,
    }
    struct cudaExtent {
        width: usize,
        height: usize,
        depth: usize,
    }
    struct cudaChannelFormatDesc {
        x: c_int,
        y: c_int,
        z: c_int,
        w: c_int,
        f: cudaChannelFormatKind,
    }
    struct cudaMemLocation {
        type_: cudaMemLocationType,
        id: c_int,
    }
    struct cudaMemPoolProps {
        allocType: cudaMemAllocationType,
        handleTypes: cudaMemAllocationHandleType,
        location: cudaMemLocation,
        win32SecurityAttributes: *mut c_void,
        maxSize: usize,
        usage: u16,
        reserved: [u8; 53],
        reserved1: u8,
    }
    struct cudaPos {
        x: usize,
        y: usize,
        z: usize,
    }
    struct cudaMemcpy3DParms {
        srcArray: cudaArray_t,
        srcPos: cudaPos,
        srcPtr: cudaPitchedPtr,
        dstArray: cudaArray_t,
        dstPos: cudaPos,
        dstPtr: cudaPitchedPtr,
        extent: cudaExtent,
        kind: cudaMemcpyKind,
    }
    struct cudaMemcpy3DOperand_op_ptr {
        ptr: *mut c_void,
        rowLength: usize,
        layerHeight: usize,
        locHint: cudaMemLocation,
    }
    struct cudaOffset3D {
        x: usize,
        y: usize,
        z: usize,
    }
    struct cudaMemcpy3DOperand_op_array {
        array: cudaArray_t,
        offset: cudaOffset3D,
    }
    union cudaMemcpy3DOperand_op {
        ptr: cudaMemcpy3DOperand_op_ptr,
        array: cudaMemcpy3DOperand_op_array,
    }
    struct cudaMemcpy3DOperand {
        type_: cudaMemcpy3DOperandType,
        op: cudaMemcpy3DOperand_op,
    }
    struct cudaMemcpy3DBatchOp {
        src: cudaMemcpy3DOperand,
        dst: cudaMemcpy3DOperand,
        extent: cudaExtent,
        srcAccessOrder: cudaMemcpySrcAccessOrder,
        flags: c_uint,
    }
    struct cudaMemcpy3DPeerParms {
        srcArray: cudaArray_t,
        srcPos: cudaPos,
        srcPtr: cudaPitchedPtr,
        srcDevice: c_int,
        dstArray: cudaArray_t,
        dstPos: cudaPos,
        dstPtr: cudaPitchedPtr,
        dstDevice: c_int,
        extent: cudaExtent,
    }
    struct cudaMemcpyAttributes {
        srcAccessOrder: cudaMemcpySrcAccessOrder,
        srcLocHint: cudaMemLocation,
        dstLocHint: cudaMemLocation,
        flags: c_uint,
    }
    union cudaPointerAttributes_anon1 {
        localityDomainOrdinal: c_int,
        unused: i64,
    }
    struct cudaPointerAttributes {
        type_: cudaMemoryType,
        device: c_int,
        devicePointer: *mut c_void,
        hostPointer: *mut c_void,
        anon1: cudaPointerAttributes_anon1,
        reserved: [i64; 7],
    }
    struct cudaMemAccessDesc {
        location: cudaMemLocation,
        flags: cudaMemAccessFlags,
    }
}
