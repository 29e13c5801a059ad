//! Tensor maps: the checks of their arguments, as `cuda.h` lists them. Their form is in
//! [`crate::interp::exec::tensor::map`].
//!
//! Maps of images (`Im2col`), interleaved channels, fills with NaN and packed types are refused.

use ::device_code::tensor_map::{Tensor, Tile};
use cuda_sys::*;

use crate::api::*;
use crate::interp::exec::tensor::map::TensorMap;

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
        let swizzle = match swizzle {
            CU_TENSOR_MAP_SWIZZLE_NONE => 0,
            CU_TENSOR_MAP_SWIZZLE_32B => 32,
            CU_TENSOR_MAP_SWIZZLE_64B => 64,
            CU_TENSOR_MAP_SWIZZLE_128B => 128,
            _ => return Err(CUresult::ERROR_NOT_SUPPORTED),
        };
        if interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE {
            return Err(CUresult::ERROR_NOT_SUPPORTED);
        }
        let sizes: [u64; 5] = axes(sizes, rank, 1)?;
        let strides: [u64; 4] = axes(strides, rank - 1, 0)?;
        let (extent, mut step): ([u32; 5], [u32; 5]) = (axes(tile, rank, 1)?, axes(step, rank, 1)?);
        let inner = u64::from(extent[0]) * element;
        let fits = address as u64 != 0
            && (address as u64).is_multiple_of(16)
            && sizes.iter().all(|size| (1..=1 << 32).contains(size))
            && strides.iter().all(|stride| stride.is_multiple_of(16) && *stride < 1 << 40)
            && extent.iter().all(|extent| (1..=256).contains(extent))
            && step.iter().all(|step| (1..=8).contains(step))
            && inner.is_multiple_of(16)
            && (swizzle == 0 || inner <= swizzle);
        if !fits {
            return Err(INVALID);
        }
        // Without interleaving the first step is ignored (cuda.h, `elementStrides`).
        step[0] = 1;
        let tile = Tile { extent, step };
        let tensor = Tensor { address: address as u64, element, sizes, strides, tile: Some(tile) };
        hand_out(to, &TensorMap { tensor, tile, kind, rank, swizzle: swizzle as u32 })
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
