//! CUDA's types for copies: parameters and attributes. Names, values and layouts are those of
//! `cuda.h`; the shared rules are in [`super`].

use super::*;

c_consts! { c_uint; // CUmemcpyFlags
    CU_MEMCPY_FLAG_DEFAULT = 0,
    CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE = 1,
}

c_enum! { CUmemcpySrcAccessOrder(c_uint)
    CU_MEMCPY_SRC_ACCESS_ORDER_INVALID = 0,
    CU_MEMCPY_SRC_ACCESS_ORDER_STREAM = 1,
    CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL = 2,
    CU_MEMCPY_SRC_ACCESS_ORDER_ANY = 3,
    CU_MEMCPY_SRC_ACCESS_ORDER_MAX = 0x7fffffff,
}

c_enum! { CUmemcpy3DOperandType(c_uint)
    CU_MEMCPY_OPERAND_TYPE_POINTER = 1,
    CU_MEMCPY_OPERAND_TYPE_ARRAY = 2,
    CU_MEMCPY_OPERAND_TYPE_MAX = 0x7fffffff,
}

c_enum! { CUmemDecompressAlgorithm(c_uint)
    CU_MEM_DECOMPRESS_UNSUPPORTED = 0,
    CU_MEM_DECOMPRESS_ALGORITHM_DEFLATE = 1,
    CU_MEM_DECOMPRESS_ALGORITHM_SNAPPY = 2,
    CU_MEM_DECOMPRESS_ALGORITHM_LZ4 = 4,
}

c_enum! { CUfabricCpyOperandType(c_uint)
    CU_FABRIC_COPY_OPERAND_TYPE_POINTER = 1,
    CU_FABRIC_COPY_OPERAND_TYPE_LOGICAL_ENDPOINT = 2,
    CU_FABRIC_COPY_OPERAND_TYPE_MAX = 0x7fffffff,
}

pub type CUDA_MEMCPY2D = CUDA_MEMCPY2D_v2;
pub type CUDA_MEMCPY3D = CUDA_MEMCPY3D_v2;
pub type CUDA_MEMCPY3D_PEER = CUDA_MEMCPY3D_PEER_v1;
pub type CUmemcpyAttributes = CUmemcpyAttributes_v1;
pub type CUoffset3D = CUoffset3D_v1;
pub type CUextent3D = CUextent3D_v1;
pub type CUmemcpy3DOperand = CUmemcpy3DOperand_v1;
pub type CUDA_MEMCPY3D_BATCH_OP = CUDA_MEMCPY3D_BATCH_OP_v1;
pub type CUDA_MEMCPY_BATCH_NODE_PARAMS = CUDA_MEMCPY_BATCH_NODE_PARAMS_V1;
pub type CUDA_FABRIC_COPY_BATCH_OP = CUDA_FABRIC_COPY_BATCH_OP_v1;
pub type CUDA_FABRIC_CPY_BATCH_NODE_PARAMS = CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1;

c_structs! { COPY_LAYOUTS
    struct CUDA_MEMCPY2D_v2 {
        srcXInBytes: usize,
        srcY: usize,
        srcMemoryType: CUmemorytype,
        srcHost: *const c_void,
        srcDevice: CUdeviceptr,
        srcArray: CUarray,
        srcPitch: usize,
        dstXInBytes: usize,
        dstY: usize,
        dstMemoryType: CUmemorytype,
        dstHost: *mut c_void,
        dstDevice: CUdeviceptr,
        dstArray: CUarray,
        dstPitch: usize,
        WidthInBytes: usize,
        Height: usize,
    }
    struct CUDA_MEMCPY3D_v2 {
        srcXInBytes: usize,
        srcY: usize,
        srcZ: usize,
        srcLOD: usize,
        srcMemoryType: CUmemorytype,
        srcHost: *const c_void,
        srcDevice: CUdeviceptr,
        srcArray: CUarray,
        reserved0: *mut c_void,
        srcPitch: usize,
        srcHeight: usize,
        dstXInBytes: usize,
        dstY: usize,
        dstZ: usize,
        dstLOD: usize,
        dstMemoryType: CUmemorytype,
        dstHost: *mut c_void,
        dstDevice: CUdeviceptr,
        dstArray: CUarray,
        reserved1: *mut c_void,
        dstPitch: usize,
        dstHeight: usize,
        WidthInBytes: usize,
        Height: usize,
        Depth: usize,
    }
    struct CUDA_MEMCPY3D_PEER_v1 {
        srcXInBytes: usize,
        srcY: usize,
        srcZ: usize,
        srcLOD: usize,
        srcMemoryType: CUmemorytype,
        srcHost: *const c_void,
        srcDevice: CUdeviceptr,
        srcArray: CUarray,
        srcContext: CUcontext,
        srcPitch: usize,
        srcHeight: usize,
        dstXInBytes: usize,
        dstY: usize,
        dstZ: usize,
        dstLOD: usize,
        dstMemoryType: CUmemorytype,
        dstHost: *mut c_void,
        dstDevice: CUdeviceptr,
        dstArray: CUarray,
        dstContext: CUcontext,
        dstPitch: usize,
        dstHeight: usize,
        WidthInBytes: usize,
        Height: usize,
        Depth: usize,
    }
    struct CUDA_MEMCPY_NODE_PARAMS {
        flags: c_int,
        reserved: c_int,
        copyCtx: CUcontext,
        copyParams: CUDA_MEMCPY3D,
    }
    struct CUmemcpyAttributes_v1 {
        srcAccessOrder: CUmemcpySrcAccessOrder,
        srcLocHint: CUmemLocation,
        dstLocHint: CUmemLocation,
        flags: c_uint,
    }
    struct CUoffset3D_v1 {
        x: usize,
        y: usize,
        z: usize,
    }
    struct CUextent3D_v1 {
        width: usize,
        height: usize,
        depth: usize,
    }
    struct CUmemcpy3DOperand_v1_op_ptr {
        ptr: CUdeviceptr,
        rowLength: usize,
        layerHeight: usize,
        locHint: CUmemLocation,
    }
    struct CUmemcpy3DOperand_v1_op_array {
        array: CUarray,
        offset: CUoffset3D,
    }
    union CUmemcpy3DOperand_v1_op {
        ptr: CUmemcpy3DOperand_v1_op_ptr,
        array: CUmemcpy3DOperand_v1_op_array,
    }
    struct CUmemcpy3DOperand_v1 {
        type_: CUmemcpy3DOperandType,
        op: CUmemcpy3DOperand_v1_op,
    }
    struct CUDA_MEMCPY3D_BATCH_OP_v1 {
        src: CUmemcpy3DOperand,
        dst: CUmemcpy3DOperand,
        extent: CUextent3D,
        srcAccessOrder: CUmemcpySrcAccessOrder,
        flags: c_uint,
    }
    union CUDA_MEMCPY_BATCH_NODE_PARAMS_V1_anon1 {
        ctx: CUcontext,
        gCtx: CUgreenCtx,
    }
    struct CUDA_MEMCPY_BATCH_NODE_PARAMS_V1 {
        count: usize,
        dsts: *mut CUdeviceptr,
        srcs: *mut CUdeviceptr,
        sizes: *mut usize,
        attrs: *mut CUmemcpyAttributes,
        attrsIdxs: *mut usize,
        numAttrs: usize,
        anon1: CUDA_MEMCPY_BATCH_NODE_PARAMS_V1_anon1,
    }
    struct CUDA_FABRIC_COPY_BATCH_OP_v1 {
        src: CUfabricCpyOperand,
        dst: CUfabricCpyOperand,
        size: usize,
        flags: c_uint,
    }
    union CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1_anon1 {
        ctx: CUcontext,
        gCtx: CUgreenCtx,
    }
    struct CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1 {
        numOps: usize,
        opList: *mut CUDA_FABRIC_COPY_BATCH_OP,
        flags: u64,
        anon1: CUDA_FABRIC_CPY_BATCH_NODE_PARAMS_V1_anon1,
    }
    struct CUmemDecompressParams {
        srcNumBytes: usize,
        dstNumBytes: usize,
        dstActBytes: *mut u32,
        src: *const c_void,
        dst: *mut c_void,
        algo: CUmemDecompressAlgorithm,
        padding: [u8; 20],
    }
    struct CUfabricCpyOperand_op_ptr {
        ptr: CUdeviceptr,
        locHint: CUmemLocation,
    }
    struct CUfabricCpyOperand_op_le {
        id: CUlogicalEndpointId,
        offset: u64,
    }
    union CUfabricCpyOperand_op {
        ptr: CUfabricCpyOperand_op_ptr,
        le: CUfabricCpyOperand_op_le,
    }
    struct CUfabricCpyOperand {
        type_: CUfabricCpyOperandType,
        op: CUfabricCpyOperand_op,
    }
    struct CUDA_MEMCPY2D_v1 {
        srcXInBytes: c_uint,
        srcY: c_uint,
        srcMemoryType: CUmemorytype,
        srcHost: *const c_void,
        srcDevice: CUdeviceptr_v1,
        srcArray: CUarray,
        srcPitch: c_uint,
        dstXInBytes: c_uint,
        dstY: c_uint,
        dstMemoryType: CUmemorytype,
        dstHost: *mut c_void,
        dstDevice: CUdeviceptr_v1,
        dstArray: CUarray,
        dstPitch: c_uint,
        WidthInBytes: c_uint,
        Height: c_uint,
    }
    struct CUDA_MEMCPY3D_v1 {
        srcXInBytes: c_uint,
        srcY: c_uint,
        srcZ: c_uint,
        srcLOD: c_uint,
        srcMemoryType: CUmemorytype,
        srcHost: *const c_void,
        srcDevice: CUdeviceptr_v1,
        srcArray: CUarray,
        reserved0: *mut c_void,
        srcPitch: c_uint,
        srcHeight: c_uint,
        dstXInBytes: c_uint,
        dstY: c_uint,
        dstZ: c_uint,
        dstLOD: c_uint,
        dstMemoryType: CUmemorytype,
        dstHost: *mut c_void,
        dstDevice: CUdeviceptr_v1,
        dstArray: CUarray,
        reserved1: *mut c_void,
        dstPitch: c_uint,
        dstHeight: c_uint,
        WidthInBytes: c_uint,
        Height: c_uint,
        Depth: c_uint,
    }
}
