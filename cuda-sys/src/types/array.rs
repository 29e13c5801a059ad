//! CUDA's types for arrays, their formats and sparse mappings. Names, values and layouts are those
//! of `cuda.h`; the shared rules are in [`super`].

use super::*;

pub const CUDA_ARRAY3D_LAYERED: c_uint = 0x01;
pub const CUDA_ARRAY3D_2DARRAY: c_uint = 0x01;
pub const CUDA_ARRAY3D_SURFACE_LDST: c_uint = 0x02;
pub const CUDA_ARRAY3D_CUBEMAP: c_uint = 0x04;
pub const CUDA_ARRAY3D_TEXTURE_GATHER: c_uint = 0x08;
pub const CUDA_ARRAY3D_DEPTH_TEXTURE: c_uint = 0x10;
pub const CUDA_ARRAY3D_COLOR_ATTACHMENT: c_uint = 0x20;
pub const CUDA_ARRAY3D_SPARSE: c_uint = 0x40;
pub const CUDA_ARRAY3D_DEFERRED_MAPPING: c_uint = 0x80;

c_enum! { CUarray_format(c_uint)
    CU_AD_FORMAT_UNSIGNED_INT8 = 1,
    CU_AD_FORMAT_UNSIGNED_INT16 = 2,
    CU_AD_FORMAT_UNSIGNED_INT32 = 3,
    CU_AD_FORMAT_SIGNED_INT8 = 8,
    CU_AD_FORMAT_SIGNED_INT16 = 9,
    CU_AD_FORMAT_SIGNED_INT32 = 10,
    CU_AD_FORMAT_HALF = 16,
    CU_AD_FORMAT_FLOAT = 32,
    CU_AD_FORMAT_NV12 = 176,
    CU_AD_FORMAT_UNORM_INT8X1 = 192,
    CU_AD_FORMAT_UNORM_INT8X2 = 193,
    CU_AD_FORMAT_UNORM_INT8X4 = 194,
    CU_AD_FORMAT_UNORM_INT16X1 = 195,
    CU_AD_FORMAT_UNORM_INT16X2 = 196,
    CU_AD_FORMAT_UNORM_INT16X4 = 197,
    CU_AD_FORMAT_SNORM_INT8X1 = 198,
    CU_AD_FORMAT_SNORM_INT8X2 = 199,
    CU_AD_FORMAT_SNORM_INT8X4 = 200,
    CU_AD_FORMAT_SNORM_INT16X1 = 201,
    CU_AD_FORMAT_SNORM_INT16X2 = 202,
    CU_AD_FORMAT_SNORM_INT16X4 = 203,
    CU_AD_FORMAT_BC1_UNORM = 145,
    CU_AD_FORMAT_BC1_UNORM_SRGB = 146,
    CU_AD_FORMAT_BC2_UNORM = 147,
    CU_AD_FORMAT_BC2_UNORM_SRGB = 148,
    CU_AD_FORMAT_BC3_UNORM = 149,
    CU_AD_FORMAT_BC3_UNORM_SRGB = 150,
    CU_AD_FORMAT_BC4_UNORM = 151,
    CU_AD_FORMAT_BC4_SNORM = 152,
    CU_AD_FORMAT_BC5_UNORM = 153,
    CU_AD_FORMAT_BC5_SNORM = 154,
    CU_AD_FORMAT_BC6H_UF16 = 155,
    CU_AD_FORMAT_BC6H_SF16 = 156,
    CU_AD_FORMAT_BC7_UNORM = 157,
    CU_AD_FORMAT_BC7_UNORM_SRGB = 158,
    CU_AD_FORMAT_P010 = 159,
    CU_AD_FORMAT_P016 = 161,
    CU_AD_FORMAT_NV16 = 162,
    CU_AD_FORMAT_P210 = 163,
    CU_AD_FORMAT_P216 = 164,
    CU_AD_FORMAT_YUY2 = 165,
    CU_AD_FORMAT_Y210 = 166,
    CU_AD_FORMAT_Y216 = 167,
    CU_AD_FORMAT_AYUV = 168,
    CU_AD_FORMAT_Y410 = 169,
    CU_AD_FORMAT_Y416 = 177,
    CU_AD_FORMAT_Y444_PLANAR8 = 178,
    CU_AD_FORMAT_Y444_PLANAR10 = 179,
    CU_AD_FORMAT_YUV444_8bit_SemiPlanar = 180,
    CU_AD_FORMAT_YUV444_16bit_SemiPlanar = 181,
    CU_AD_FORMAT_UNORM_INT_101010_2 = 80,
    CU_AD_FORMAT_UINT8_PACKED_422 = 81,
    CU_AD_FORMAT_UINT8_PACKED_444 = 82,
    CU_AD_FORMAT_UINT8_SEMIPLANAR_420 = 83,
    CU_AD_FORMAT_UINT16_SEMIPLANAR_420 = 84,
    CU_AD_FORMAT_UINT8_SEMIPLANAR_422 = 85,
    CU_AD_FORMAT_UINT16_SEMIPLANAR_422 = 86,
    CU_AD_FORMAT_UINT8_SEMIPLANAR_444 = 87,
    CU_AD_FORMAT_UINT16_SEMIPLANAR_444 = 88,
    CU_AD_FORMAT_UINT8_PLANAR_420 = 89,
    CU_AD_FORMAT_UINT16_PLANAR_420 = 90,
    CU_AD_FORMAT_UINT8_PLANAR_422 = 91,
    CU_AD_FORMAT_UINT16_PLANAR_422 = 92,
    CU_AD_FORMAT_UINT8_PLANAR_444 = 93,
    CU_AD_FORMAT_UINT16_PLANAR_444 = 94,
    CU_AD_FORMAT_MAX = 0x7fffffff,
}

c_consts! { c_uint; // CUarray_cubemap_face
    CU_CUBEMAP_FACE_POSITIVE_X = 0,
    CU_CUBEMAP_FACE_NEGATIVE_X = 1,
    CU_CUBEMAP_FACE_POSITIVE_Y = 2,
    CU_CUBEMAP_FACE_NEGATIVE_Y = 3,
    CU_CUBEMAP_FACE_POSITIVE_Z = 4,
    CU_CUBEMAP_FACE_NEGATIVE_Z = 5,
}

c_enum! { CUarraySparseSubresourceType(c_uint)
    CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL = 0,
    CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL = 1,
}

pub type CUDA_ARRAY_DESCRIPTOR = CUDA_ARRAY_DESCRIPTOR_v2;
pub type CUDA_ARRAY3D_DESCRIPTOR = CUDA_ARRAY3D_DESCRIPTOR_v2;
pub type CUDA_ARRAY_SPARSE_PROPERTIES = CUDA_ARRAY_SPARSE_PROPERTIES_v1;
pub type CUDA_ARRAY_MEMORY_REQUIREMENTS = CUDA_ARRAY_MEMORY_REQUIREMENTS_v1;
pub type CUarrayMapInfo = CUarrayMapInfo_v1;

c_structs! { ARRAY_LAYOUTS
    struct CUDA_ARRAY_DESCRIPTOR_v2 {
        Width: usize,
        Height: usize,
        Format: CUarray_format,
        NumChannels: c_uint,
    }
    struct CUDA_ARRAY3D_DESCRIPTOR_v2 {
        Width: usize,
        Height: usize,
        Depth: usize,
        Format: CUarray_format,
        NumChannels: c_uint,
        Flags: c_uint,
    }
    struct CUDA_ARRAY_SPARSE_PROPERTIES_v1_tileExtent {
        width: c_uint,
        height: c_uint,
        depth: c_uint,
    }
    struct CUDA_ARRAY_SPARSE_PROPERTIES_v1 {
        tileExtent: CUDA_ARRAY_SPARSE_PROPERTIES_v1_tileExtent,
        miptailFirstLevel: c_uint,
        miptailSize: u64,
        flags: c_uint,
        reserved: [c_uint; 4],
    }
    struct CUDA_ARRAY_MEMORY_REQUIREMENTS_v1 {
        size: usize,
        alignment: usize,
        reserved: [c_uint; 4],
    }
    union CUarrayMapInfo_v1_resource {
        mipmap: CUmipmappedArray,
        array: CUarray,
    }
    struct CUarrayMapInfo_v1_subresource_sparseLevel {
        level: c_uint,
        layer: c_uint,
        offsetX: c_uint,
        offsetY: c_uint,
        offsetZ: c_uint,
        extentWidth: c_uint,
        extentHeight: c_uint,
        extentDepth: c_uint,
    }
    struct CUarrayMapInfo_v1_subresource_miptail {
        layer: c_uint,
        offset: u64,
        size: u64,
    }
    union CUarrayMapInfo_v1_subresource {
        sparseLevel: CUarrayMapInfo_v1_subresource_sparseLevel,
        miptail: CUarrayMapInfo_v1_subresource_miptail,
    }
    union CUarrayMapInfo_v1_memHandle {
        memHandle: CUmemGenericAllocationHandle,
    }
    struct CUarrayMapInfo_v1 {
        resourceType: CUresourcetype,
        resource: CUarrayMapInfo_v1_resource,
        subresourceType: CUarraySparseSubresourceType,
        subresource: CUarrayMapInfo_v1_subresource,
        memOperationType: CUmemOperationType,
        memHandleType: CUmemHandleType,
        memHandle: CUarrayMapInfo_v1_memHandle,
        offset: u64,
        deviceBitMask: c_uint,
        flags: c_uint,
        reserved: [c_uint; 2],
    }
    struct CUDA_ARRAY_DESCRIPTOR_v1 {
        Width: c_uint,
        Height: c_uint,
        Format: CUarray_format,
        NumChannels: c_uint,
    }
    struct CUDA_ARRAY3D_DESCRIPTOR_v1 {
        Width: c_uint,
        Height: c_uint,
        Depth: c_uint,
        Format: CUarray_format,
        NumChannels: c_uint,
        Flags: c_uint,
    }
}
