//! Copies of vectors and matrices between host and device.

use std::ffi::{c_int, c_void};

use cuda_sys::{CUDA_MEMCPY2D_v2, CUstream};

use super::handle::{Res, Status};

/// Rows of `width` bytes: how many, and from one to the next on both sides.
struct Rows {
    width: i64,
    count: i64,
    from: (u64, i64),
    to: (u64, i64),
    to_device: bool,
}

/// Copies; without a stream of the program's the call waits.
fn copy(rows: &Rows, stream: Option<CUstream>) -> Res {
    if rows.width <= 0 || rows.count < 0 || rows.from.1 < rows.width || rows.to.1 < rows.width {
        return Err(Status::INVALID_VALUE);
    }
    if rows.count == 0 {
        return Ok(());
    }
    // SAFETY: a structure of numbers and pointers, all of which may be zero.
    let mut copy: CUDA_MEMCPY2D_v2 = unsafe { std::mem::zeroed() };
    (copy.WidthInBytes, copy.Height) = (rows.width as usize, rows.count as usize);
    (copy.srcPitch, copy.dstPitch) = (rows.from.1 as usize, rows.to.1 as usize);
    if rows.to_device {
        (copy.srcMemoryType, copy.srcHost) = (cuda_sys::CU_MEMORYTYPE_HOST, rows.from.0 as *const c_void);
        (copy.dstMemoryType, copy.dstDevice) = (cuda_sys::CU_MEMORYTYPE_DEVICE, rows.to.0);
    } else {
        (copy.srcMemoryType, copy.srcDevice) = (cuda_sys::CU_MEMORYTYPE_DEVICE, rows.from.0);
        (copy.dstMemoryType, copy.dstHost) = (cuda_sys::CU_MEMORYTYPE_HOST, rows.to.0 as *mut c_void);
    }
    match stream {
        Some(stream) => cu!(cuMemcpy2DAsync_v2(&copy, stream))?,
        None => cu!(cuMemcpy2DUnaligned_v2(&copy))?,
    }
    Ok(())
}

fn vector(n: i64, size: i64, from: (u64, i64), to: (u64, i64), to_device: bool, stream: Option<CUstream>) -> c_int {
    let (from, to) = ((from.0, from.1 * size), (to.0, to.1 * size));
    let whole = n * size;
    let is_dense = from.1 == size && to.1 == size && n > 0;
    let rows = match is_dense {
        true => Rows { width: whole, count: 1, from: (from.0, whole), to: (to.0, whole), to_device },
        false => Rows { width: size, count: n, from, to, to_device },
    };
    copy(&rows, stream).map_or_else(|status| status.0, |()| 0)
}

fn matrix(
    rows: i64,
    columns: i64,
    size: i64,
    from: (u64, i64),
    to: (u64, i64),
    to_device: bool,
    stream: Option<CUstream>,
) -> c_int {
    let (from, to) = ((from.0, from.1 * size), (to.0, to.1 * size));
    if rows == 0 {
        return 0;
    }
    let rows = Rows { width: rows * size, count: columns, from, to, to_device };
    copy(&rows, stream).map_or_else(|status| status.0, |()| 0)
}

macro_rules! transfers {
    ($Int:ty: $($vector:ident $matrix:ident $vector_async:ident $matrix_async:ident $to_device:literal)*) => { $(
        // SAFETY: the names and signatures of cuBLAS.
        #[unsafe(no_mangle)]
        extern "C" fn $vector(n: $Int, size: $Int, x: u64, incx: $Int, y: u64, incy: $Int) -> c_int {
            vector(n as i64, size as i64, (x, incx as i64), (y, incy as i64), $to_device, None)
        }
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $matrix(rows: $Int, columns: $Int, size: $Int, a: u64, lda: $Int, b: u64, ldb: $Int) -> c_int {
            matrix(rows as i64, columns as i64, size as i64, (a, lda as i64), (b, ldb as i64), $to_device, None)
        }
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $vector_async(
            n: $Int, size: $Int, x: u64, incx: $Int, y: u64, incy: $Int, stream: usize,
        ) -> c_int {
            let stream = Some(CUstream::from_bits(stream));
            vector(n as i64, size as i64, (x, incx as i64), (y, incy as i64), $to_device, stream)
        }
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $matrix_async(
            rows: $Int, columns: $Int, size: $Int, a: u64, lda: $Int, b: u64, ldb: $Int, stream: usize,
        ) -> c_int {
            let stream = Some(CUstream::from_bits(stream));
            matrix(rows as i64, columns as i64, size as i64, (a, lda as i64), (b, ldb as i64), $to_device, stream)
        }
    )* };
}

transfers! { c_int:
    cublasSetVector cublasSetMatrix cublasSetVectorAsync cublasSetMatrixAsync true
    cublasGetVector cublasGetMatrix cublasGetVectorAsync cublasGetMatrixAsync false
}
transfers! { i64:
    cublasSetVector_64 cublasSetMatrix_64 cublasSetVectorAsync_64 cublasSetMatrixAsync_64 true
    cublasGetVector_64 cublasGetMatrix_64 cublasGetVectorAsync_64 cublasGetMatrixAsync_64 false
}
