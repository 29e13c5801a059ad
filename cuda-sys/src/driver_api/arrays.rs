//! Rows of [`driver_api!`](crate::driver_api!): arrays, textures, surfaces, tensor maps and
//! graphics resources. How to read a row, and how to add one: see the parent module.

#[doc(hidden)]
#[macro_export]
macro_rules! __driver_api_arrays {
    ({$($to:tt)*} {$($rows:tt)*}) => { $crate::__driver_api_launches! { {$($to)*} { $($rows)*

    after  fn cuArrayCreate(handle: *mut CUarray, allocate_array: *const CUDA_ARRAY_DESCRIPTOR_v1)
        [plain cuArrayCreate];
    after  fn cuArrayCreate_v2(handle: *mut CUarray, allocate_array: *const CUDA_ARRAY_DESCRIPTOR)
        [plain cuArrayCreate_v2];
    after  fn cuArrayGetPlane(plane_array: *mut CUarray, array: CUarray, plane_idx: c_uint) [plain cuArrayGetPlane] not_modelled;
    both   fn cuArrayDestroy(array: CUarray) [plain cuArrayDestroy];
    after  fn cuArray3DCreate(handle: *mut CUarray, allocate_array: *const CUDA_ARRAY3D_DESCRIPTOR_v1)
        [plain cuArray3DCreate];
    after  fn cuArray3DCreate_v2(handle: *mut CUarray, allocate_array: *const CUDA_ARRAY3D_DESCRIPTOR)
        [plain cuArray3DCreate_v2];
    after  fn cuMipmappedArrayCreate(
        handle: *mut CUmipmappedArray, mipmapped_array_desc: *const CUDA_ARRAY3D_DESCRIPTOR, num_mipmap_levels: c_uint
    ) [plain cuMipmappedArrayCreate];
    after  fn cuMipmappedArrayGetLevel(level_array: *mut CUarray, mipmapped_array: CUmipmappedArray, level: c_uint)
        [plain cuMipmappedArrayGetLevel];
    both   fn cuMipmappedArrayDestroy(mipmapped_array: CUmipmappedArray) [plain cuMipmappedArrayDestroy];
    after  fn cuTexRefSetArray(tex_ref: CUtexref, array: CUarray, flags: c_uint) [plain cuTexRefSetArray] not_modelled;
    after  fn cuTexRefSetMipmappedArray(tex_ref: CUtexref, mipmapped_array: CUmipmappedArray, flags: c_uint)
        [plain cuTexRefSetMipmappedArray] not_modelled;
    after  fn cuTexRefSetAddress(byte_offset: *mut c_uint, tex_ref: CUtexref, ptr: CUdeviceptr_v1, bytes: c_uint)
        [plain cuTexRefSetAddress] not_modelled;
    after  fn cuTexRefSetAddress_v2(byte_offset: *mut usize, tex_ref: CUtexref, ptr: CUdeviceptr, bytes: usize)
        [plain cuTexRefSetAddress_v2] not_modelled;
    after  fn cuTexRefSetAddress2D(
        tex_ref: CUtexref, desc: *const CUDA_ARRAY_DESCRIPTOR_v1, ptr: CUdeviceptr_v1, pitch: c_uint
    ) [plain cuTexRefSetAddress2D] not_modelled;
    after  fn cuTexRefSetAddress2D_v3(
        tex_ref: CUtexref, desc: *const CUDA_ARRAY_DESCRIPTOR, ptr: CUdeviceptr, pitch: usize
    ) [plain cuTexRefSetAddress2D_v2, plain cuTexRefSetAddress2D_v3] not_modelled;
    after  fn cuTexRefCreate(tex_ref: *mut CUtexref) [plain cuTexRefCreate] no_effect;
    before fn cuTexRefDestroy(tex_ref: CUtexref) [plain cuTexRefDestroy] no_effect;
    after  fn cuSurfRefSetArray(surf_ref: CUsurfref, array: CUarray, flags: c_uint) [plain cuSurfRefSetArray] not_modelled;
    after  fn cuTexObjectCreate(
        tex_object: *mut CUtexObject, res_desc: *const CUDA_RESOURCE_DESC, tex_desc: *const CUDA_TEXTURE_DESC,
        res_view_desc: *const CUDA_RESOURCE_VIEW_DESC
    ) [plain cuTexObjectCreate];
    both   fn cuTexObjectDestroy(tex_object: CUtexObject) [plain cuTexObjectDestroy];
    after  fn cuSurfObjectCreate(surf_object: *mut CUsurfObject, res_desc: *const CUDA_RESOURCE_DESC)
        [plain cuSurfObjectCreate];
    both   fn cuSurfObjectDestroy(surf_object: CUsurfObject) [plain cuSurfObjectDestroy];
    after  fn cuTensorMapEncodeTiled(
        tensor_map: *mut CUtensorMap, tensor_data_type: CUtensorMapDataType, tensor_rank: u32,
        global_address: *mut c_void, global_dim: *const u64, global_strides: *const u64, box_dim: *const u32,
        element_strides: *const u32, interleave: CUtensorMapInterleave, swizzle: CUtensorMapSwizzle,
        l2_promotion: CUtensorMapL2promotion, oob_fill: CUtensorMapFloatOOBfill
    ) [plain cuTensorMapEncodeTiled];
    after  fn cuTensorMapEncodeIm2col(
        tensor_map: *mut CUtensorMap, tensor_data_type: CUtensorMapDataType, tensor_rank: u32,
        global_address: *mut c_void, global_dim: *const u64, global_strides: *const u64,
        pixel_box_lower_corner: *const c_int, pixel_box_upper_corner: *const c_int, channels_per_pixel: u32,
        pixels_per_column: u32, element_strides: *const u32, interleave: CUtensorMapInterleave,
        swizzle: CUtensorMapSwizzle, l2_promotion: CUtensorMapL2promotion, oob_fill: CUtensorMapFloatOOBfill
    ) [plain cuTensorMapEncodeIm2col];
    after  fn cuTensorMapEncodeIm2colWide(
        tensor_map: *mut CUtensorMap, tensor_data_type: CUtensorMapDataType, tensor_rank: u32,
        global_address: *mut c_void, global_dim: *const u64, global_strides: *const u64,
        pixel_box_lower_corner_width: c_int, pixel_box_upper_corner_width: c_int, channels_per_pixel: u32,
        pixels_per_column: u32, element_strides: *const u32, interleave: CUtensorMapInterleave,
        mode: CUtensorMapIm2ColWideMode, swizzle: CUtensorMapSwizzle, l2_promotion: CUtensorMapL2promotion,
        oob_fill: CUtensorMapFloatOOBfill
    ) [plain cuTensorMapEncodeIm2colWide];
    both   fn cuTensorMapReplaceAddress(tensor_map: *mut CUtensorMap, global_address: *mut c_void)
        [plain cuTensorMapReplaceAddress];
    before fn cuGraphicsUnregisterResource(resource: CUgraphicsResource) [plain cuGraphicsUnregisterResource] no_effect;
    after  fn cuGraphicsSubResourceGetMappedArray(
        array: *mut CUarray, resource: CUgraphicsResource, array_index: c_uint, mip_level: c_uint
    ) [plain cuGraphicsSubResourceGetMappedArray] not_modelled;
    after  fn cuGraphicsResourceGetMappedMipmappedArray(
        mipmapped_array: *mut CUmipmappedArray, resource: CUgraphicsResource
    ) [plain cuGraphicsResourceGetMappedMipmappedArray] not_modelled;
    after  fn cuGraphicsResourceGetMappedPointer(
        dev_ptr: *mut CUdeviceptr_v1, size: *mut c_uint, resource: CUgraphicsResource
    ) [plain cuGraphicsResourceGetMappedPointer] not_modelled;
    after  fn cuGraphicsResourceGetMappedPointer_v2(
        dev_ptr: *mut CUdeviceptr, size: *mut usize, resource: CUgraphicsResource
    ) [plain cuGraphicsResourceGetMappedPointer_v2];
    after  fn cuGraphicsMapResources(count: c_uint, resources: *mut CUgraphicsResource, stream: CUstream)
        [legacy cuGraphicsMapResources, per_thread cuGraphicsMapResources_ptsz]
        partly "ordered in its stream; the other API's work is not seen";
    both   fn cuGraphicsUnmapResources(count: c_uint, resources: *mut CUgraphicsResource, stream: CUstream)
        [legacy cuGraphicsUnmapResources, per_thread cuGraphicsUnmapResources_ptsz]
        partly "ordered in its stream; the other API's work is not seen";

    } } };
}
