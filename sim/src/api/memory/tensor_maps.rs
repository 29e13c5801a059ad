//! Tensor maps: the checks of their arguments, as `cuda.h` lists them. Their form is in
//! [`crate::interp::exec::tensor::map`].
//!
//! Interleaved channels, fills with NaN, packed types and wide maps of images (`Im2colWide`) are
//! refused.

use ::device_code::tensor_map::{Tensor, Tile};
use cuda_sys::*;

use crate::api::*;
use crate::interp::exec::tensor::map::{Image, TensorMap};

/// The hardware's number of a type, and the bytes of an element.
fn kind_of(kind: CUtensorMapDataType) -> Result<(u8, u64), CUresult> {
    Ok(match kind {
        CU_TENSOR_MAP_DATA_TYPE_UINT8 => (0, 1),
        CU_TENSOR_MAP_DATA_TYPE_UINT16 => (1, 2),
        CU_TENSOR_MAP_DATA_TYPE_UINT32 => (2, 4),
        CU_TENSOR_MAP_DATA_TYPE_INT32 => (3, 4),
        CU_TENSOR_MAP_DATA_TYPE_UINT64 => (4, 8),
        CU_TENSOR_MAP_DATA_TYPE_INT64 => (5, 8),
        CU_TENSOR_MAP_DATA_TYPE_FLOAT16 => (6, 2),
        CU_TENSOR_MAP_DATA_TYPE_FLOAT32 | CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 => (7, 4),
        CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ | CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ => (8, 4),
        CU_TENSOR_MAP_DATA_TYPE_FLOAT64 => (9, 8),
        CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 => (10, 2),
        CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B
        | CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B
        | CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B => return Err(CUresult::ERROR_NOT_SUPPORTED),
        _ => return Err(INVALID),
    })
}

/// A list with a value for each axis, filled up.
fn axes<T: Copy, const N: usize>(from: *const T, count: usize, rest: T) -> Result<[T; N], CUresult> {
    let mut out = [rest; N];
    out[..count].copy_from_slice(&list(from, count)?);
    Ok(out)
}

fn hand_out(to: *mut CUtensorMap, map: &TensorMap) -> Res {
    put(to.cast::<[u8; crate::interp::exec::tensor::map::SIZE]>(), map.encode())
}

/// The bytes of the rows in which units change places; what is not executed is refused.
fn swizzle_of(
    swizzle: CUtensorMapSwizzle,
    interleave: CUtensorMapInterleave,
    fill: CUtensorMapFloatOOBfill,
) -> Result<u32, CUresult> {
    if interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE {
        return Err(CUresult::ERROR_NOT_SUPPORTED);
    }
    Ok(match swizzle {
        CU_TENSOR_MAP_SWIZZLE_NONE => 0,
        CU_TENSOR_MAP_SWIZZLE_32B => 32,
        CU_TENSOR_MAP_SWIZZLE_64B => 64,
        CU_TENSOR_MAP_SWIZZLE_128B => 128,
        _ => return Err(CUresult::ERROR_NOT_SUPPORTED),
    })
}

/// Whether a tensor is one that maps can have, and copies of so many elements of its first axis.
fn fits(tensor: &Tensor, step: &[u32; 5], inner: u32, swizzle: u32) -> bool {
    let row = u64::from(inner) * tensor.element;
    tensor.address != 0
        && tensor.address.is_multiple_of(16)
        && tensor.sizes.iter().all(|size| (1..=1 << 32).contains(size))
        && tensor.strides.iter().all(|stride| stride.is_multiple_of(16) && *stride < 1 << 40)
        && step.iter().all(|step| (1..=8).contains(step))
        && (1..=256).contains(&inner)
        && row.is_multiple_of(16)
        && (swizzle == 0 || row <= u64::from(swizzle))
}

abi! {
    free fn [cuTensorMapEncodeTiled plain](
        _z, to: *mut CUtensorMap, kind: CUtensorMapDataType, rank: u32, address: *mut c_void, sizes: *const u64,
        strides: *const u64, tile: *const u32, step: *const u32, interleave: CUtensorMapInterleave,
        swizzle: CUtensorMapSwizzle, promotion: CUtensorMapL2promotion, fill: CUtensorMapFloatOOBfill
    ) {
        let rank = rank as usize;
        let (kind, element) = kind_of(kind)?;
        if !(1..=5).contains(&rank) || to.is_null() || !(to as usize).is_multiple_of(64) {
            return Err(INVALID);
        }
        let swizzle = swizzle_of(swizzle, interleave, fill)?;
        let (sizes, strides): ([u64; 5], [u64; 4]) = (axes(sizes, rank, 1)?, axes(strides, rank - 1, 0)?);
        let (extent, mut step): ([u32; 5], [u32; 5]) = (axes(tile, rank, 1)?, axes(step, rank, 1)?);
        let mut tensor = Tensor { address: address as u64, element, sizes, strides, tile: None };
        if !fits(&tensor, &step, extent[0], swizzle) || !extent.iter().all(|extent| (1..=256).contains(extent)) {
            return Err(INVALID);
        }
        // Without interleaving the first step is ignored (cuda.h, `elementStrides`).
        step[0] = 1;
        let tile = Tile { extent, step };
        tensor.tile = Some(tile);
        hand_out(to, &TensorMap { tensor, tile, image: None, kind, rank, swizzle })
    }
    free fn [cuTensorMapEncodeIm2col plain](
        _z, to: *mut CUtensorMap, kind: CUtensorMapDataType, rank: u32, address: *mut c_void, sizes: *const u64,
        strides: *const u64, lower: *const c_int, upper: *const c_int, channels: u32, pixels: u32, step: *const u32,
        interleave: CUtensorMapInterleave, swizzle: CUtensorMapSwizzle, promotion: CUtensorMapL2promotion,
        fill: CUtensorMapFloatOOBfill
    ) {
        let rank = rank as usize;
        let (kind, element) = kind_of(kind)?;
        if !(3..=5).contains(&rank) || to.is_null() || !(to as usize).is_multiple_of(64) {
            return Err(INVALID);
        }
        let swizzle = swizzle_of(swizzle, interleave, fill)?;
        let (sizes, strides): ([u64; 5], [u64; 4]) = (axes(sizes, rank, 1)?, axes(strides, rank - 1, 0)?);
        let mut step: [u32; 5] = axes(step, rank, 1)?;
        // The more axes, the fewer bits a corner has (cuda.h, `pixelBoxLowerCorner`).
        let most = [1 << 15, 1 << 7, 1 << 4][rank - 3];
        let corner = |from: *const c_int| {
            let corner: [c_int; 3] = axes(from, rank - 2, 0)?;
            let fits = corner.iter().all(|offset| (-most..most).contains(offset));
            if fits { Ok(corner.map(|offset| offset as i16)) } else { Err(INVALID) }
        };
        let (lower, upper) = (corner(lower)?, corner(upper)?);
        let tensor = Tensor { address: address as u64, element, sizes, strides, tile: None };
        if !fits(&tensor, &step, channels, swizzle) || !(1..=1024).contains(&pixels) {
            return Err(INVALID);
        }
        step[0] = 1;
        let image = Image { lower, upper, channels: channels as u16, pixels: pixels as u16 };
        let tile = Tile { extent: [1; 5], step };
        hand_out(to, &TensorMap { tensor, tile, image: Some(image), kind, rank, swizzle })
    }
    free fn [cuTensorMapReplaceAddress plain](_z, map: *mut CUtensorMap, address: *mut c_void) {
        let bytes = get(map.cast::<[u8; crate::interp::exec::tensor::map::SIZE]>().cast_const())?;
        let mut found = TensorMap::decode(&bytes).ok_or(INVALID)?;
        if address.is_null() || !(address as u64).is_multiple_of(16) {
            return Err(INVALID);
        }
        found.tensor.address = address as u64;
        hand_out(map, &found)
    }
}
