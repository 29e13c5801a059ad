//! The product, and the choice of an algorithm for it, of which there is one.

use std::ffi::{c_int, c_void};

use cuda_sys::CUstream;

use super::descriptors::{Description, Layout, Preference};
use crate::cublas::handle::{Status, enqueue, not_simulated, operation};
use crate::model::block::Block;
use crate::numerics::matrix::{Matrix, Scalar};
use crate::numerics::number::Type;
use crate::numerics::product::{Activation, Epilogue, Product, SumsOf};

const NAME: &str = "cublasLtMatmul";

/// Parts of a `cublasLtEpilogue_t`.
const RELU: u32 = 2;
const BIAS: u32 = 4;
const RELU_GRADIENT: u32 = 8;
const BIAS_GRADIENT: u32 = 16;
const GELU: u32 = 32;
const GELU_GRADIENT: u32 = 64;
const AUX: u32 = 128;
const BIAS_GRADIENT_A: u32 = 256;
const BIAS_GRADIENT_B: u32 = 512;

fn kind(number: i32) -> Result<Type, Status> {
    Type::of_cuda(number).ok_or_else(|| not_simulated(NAME, &format!("cudaDataType {number}")))
}

fn matrix(at: u64, layout: &Layout) -> Result<Matrix, Status> {
    let (rows, columns) = (layout.rows as i64, layout.columns as i64);
    let mut matrix = Matrix::new(at, kind(layout.kind)?, rows, columns, layout.ld);
    match layout.order {
        0 if layout.ld >= rows.max(1) => {}
        1 if layout.ld >= columns.max(1) => matrix.strides.reverse(),
        0 | 1 => return Err(Status::INVALID_VALUE),
        order => return Err(not_simulated(NAME, &format!("cublasLtOrder_t {order}"))),
    }
    Ok(if layout.batch_mode == 1 { matrix.pointers() } else { matrix.batched(layout.batch_stride) })
}

/// What the description asks for beside the product.
fn epilogue(with: &Description, d: &Matrix) -> Result<Option<Epilogue>, Status> {
    let asked = if with.epilogue == 1 { 0 } else { with.epilogue };
    if asked == 0 {
        return Ok(None);
    }
    let [rows, columns] = d.size.map(|count| count as i64);
    let vector = |n: i64| {
        let kind = if with.bias_kind < 0 { d.kind } else { kind(with.bias_kind)? };
        if with.bias == 0 {
            return Err(Status::INVALID_VALUE);
        }
        Ok(Matrix::vector(with.bias, kind, n, 1).batched(with.bias_stride))
    };
    let activation = match asked & (RELU | RELU_GRADIENT | GELU | GELU_GRADIENT) {
        0 => Activation::None,
        RELU => Activation::Relu,
        GELU => Activation::Gelu,
        RELU_GRADIENT => Activation::ReluGradient,
        GELU_GRADIENT => Activation::GeluGradient,
        _ => return Err(not_simulated(NAME, &format!("cublasLtEpilogue_t {asked}"))),
    };
    let is_bits = asked & (RELU | RELU_GRADIENT) != 0;
    let aux = match asked & AUX != 0 {
        false => None,
        true if with.aux == 0 => return Err(Status::INVALID_VALUE),
        true if is_bits => {
            let bits = Matrix::new(with.aux, Type::I8, (rows + 7) / 8, columns, with.aux_ld / 8);
            Some(bits.batched(with.aux_stride / 8))
        }
        true => {
            let kind = if with.aux_kind < 0 { d.kind } else { kind(with.aux_kind)? };
            Some(Matrix::new(with.aux, kind, rows, columns, with.aux_ld).batched(with.aux_stride))
        }
    };
    let sums = match asked & (BIAS_GRADIENT | BIAS_GRADIENT_A | BIAS_GRADIENT_B) {
        0 => None,
        BIAS_GRADIENT => Some((SumsOf::Result, vector(rows)?)),
        BIAS_GRADIENT_A => Some((SumsOf::A, vector(rows)?)),
        BIAS_GRADIENT_B => Some((SumsOf::B, vector(columns)?)),
        _ => return Err(not_simulated(NAME, &format!("cublasLtEpilogue_t {asked}"))),
    };
    let bias = if asked & BIAS != 0 { Some(vector(rows)?) } else { None };
    Ok(Some(Epilogue { bias, activation, aux, sums }))
}

/// What is asked for but not simulated.
fn refuse(with: &Description) -> Result<(), Status> {
    let beside = [with.greatest, with.aux_scale, with.aux_greatest, with.out_scale];
    let what = match with {
        _ if with.scales.iter().chain(&beside).any(|&at| at != 0) => "a scale of a matrix (8-bit floating point)",
        _ if with.pointer_mode > 1 => "a vector of factors",
        _ if with.fill != 2 => "a result of which a part counts",
        _ if with.operations[2] != 0 => "a transposed C",
        _ => return Ok(()),
    };
    Err(not_simulated(NAME, what))
}

/// The product of matrices that lie at these addresses.
fn product(with: &Description, at: [u64; 4], layouts: [&Layout; 4], factors: [u64; 2]) -> Result<Product, Status> {
    refuse(with)?;
    let (ta, tb) = (operation(NAME, with.operations[0])?, operation(NAME, with.operations[1])?);
    let a = matrix(at[0], layouts[0])?.operated(ta);
    let b = matrix(at[1], layouts[1])?.operated(tb);
    let (c, d) = (matrix(at[2], layouts[2])?, matrix(at[3], layouts[3])?);
    if a.size[0] != d.size[0] || b.size[1] != d.size[1] || a.size[1] != b.size[0] || c.size != d.size {
        return Err(Status::INVALID_VALUE);
    }
    let scale = kind(with.scale)?;
    let scalar = |at: u64| match (at, with.pointer_mode) {
        (0, _) => Err(Status::INVALID_VALUE),
        // SAFETY: in this mode the program's pointer is to a number on the host.
        (_, 0) => Ok(unsafe { Scalar::host(at as *const u8, scale) }),
        _ => Ok(Scalar::device(at, scale)),
    };
    let (alpha, beta) = (scalar(factors[0])?, scalar(factors[1])?);
    let c = if at[2] == 0 && beta.is_zero() { d } else { c };
    let batch = layouts[3].batch_count.max(0) as usize;
    let epilogue = epilogue(with, &d)?;
    Ok(Product { c, d, batch, epilogue, ..Product::new(alpha, a, b, beta, d) })
}

/// # Safety
/// Descriptions and layouts are the library's, or null; the factors lie where the pointer mode
/// says.
// SAFETY: the name and signature of cuBLASLt.
#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmul(
    handle: *const c_void,
    with: *const Description,
    alpha: u64,
    a: u64,
    la: *const Layout,
    b: u64,
    lb: *const Layout,
    beta: u64,
    c: u64,
    lc: *const Layout,
    d: u64,
    ld: *const Layout,
    _algo: *const c_void,
    workspace: u64,
    workspace_size: usize,
    stream: usize,
) -> c_int {
    if handle.is_null() {
        return Status::NOT_INITIALIZED.0;
    }
    // SAFETY: the caller's promise.
    let given = unsafe { (with.as_ref(), la.as_ref(), lb.as_ref(), lc.as_ref(), ld.as_ref()) };
    let (Some(with), Some(la), Some(lb), Some(lc), Some(ld)) = given else { return Status::INVALID_VALUE.0 };
    let run = || {
        let product = product(with, [a, b, c, d], [la, lb, lc, ld], [alpha, beta])?;
        if product.d.size.contains(&0) || product.batch == 0 {
            return Ok(());
        }
        let mut blocks = product.blocks();
        blocks.push(Block::scratch(workspace, if workspace == 0 { 0 } else { workspace_size as u64 }));
        enqueue(NAME, CUstream::from_bits(stream), &blocks, &product)
    };
    run().map_or_else(|status: Status| status.0, |()| 0)
}

/// A `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
struct Found {
    algorithm: [u64; 8],
    workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// Whether a product of these types is simulated. Pointers are not known yet.
fn check(with: &Description, layouts: [&Layout; 4]) -> Result<(), Status> {
    let mut with = *with;
    // Any address: what matters is that there is one. The true ones may come later.
    let some = 256;
    (with.pointer_mode, with.bias, with.aux) = (1.max(with.pointer_mode), some, some);
    product(&with, [some; 4], layouts, [some; 2]).map(|_| ())
}

/// # Safety
/// As for [`cublasLtMatmul`]; the results have room for as many as asked for.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulAlgoGetHeuristic(
    handle: *const c_void,
    with: *const Description,
    la: *const Layout,
    lb: *const Layout,
    lc: *const Layout,
    ld: *const Layout,
    _preference: *const Preference,
    asked: c_int,
    found: *mut Found,
    count: *mut c_int,
) -> c_int {
    if handle.is_null() {
        return Status::NOT_INITIALIZED.0;
    }
    // SAFETY: the caller's promise.
    let given = unsafe { (with.as_ref(), la.as_ref(), lb.as_ref(), lc.as_ref(), ld.as_ref()) };
    let (Some(with), Some(la), Some(lb), Some(lc), Some(ld)) = given else { return Status::INVALID_VALUE.0 };
    if asked < 1 || found.is_null() || count.is_null() {
        return Status::INVALID_VALUE.0;
    }
    let checked = check(with, [la, lb, lc, ld]);
    // SAFETY: the caller's promise.
    unsafe { count.write(c_int::from(checked.is_ok())) };
    match checked {
        Ok(()) => {
            let one = Found { algorithm: [0; 8], workspace: 0, state: 0, waves: 1.0, reserved: [0; 4] };
            // SAFETY: as above.
            unsafe { found.write(one) };
            0
        }
        Err(status) => status.0,
    }
}

/// # Safety
/// The results have room for as many as asked for.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulAlgoGetIds(
    _handle: *const c_void,
    _compute: c_int,
    _scale: c_int,
    _a: c_int,
    _b: c_int,
    _c: c_int,
    _d: c_int,
    asked: c_int,
    ids: *mut c_int,
    count: *mut c_int,
) -> c_int {
    if asked < 1 || ids.is_null() || count.is_null() {
        return Status::INVALID_VALUE.0;
    }
    // SAFETY: the caller's promise.
    unsafe {
        ids.write(0);
        count.write(1);
    }
    0
}

/// # Safety
/// `algorithm` is writable, or null.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulAlgoInit(
    _handle: *const c_void,
    _compute: c_int,
    _scale: c_int,
    _a: c_int,
    _b: c_int,
    _c: c_int,
    _d: c_int,
    id: c_int,
    algorithm: *mut [u64; 8],
) -> c_int {
    if id != 0 || algorithm.is_null() {
        return Status::INVALID_VALUE.0;
    }
    // SAFETY: the caller's promise.
    unsafe { algorithm.write([0; 8]) };
    0
}

/// # Safety
/// As for [`cublasLtMatmulAlgoGetHeuristic`], for one result.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn cublasLtMatmulAlgoCheck(
    handle: *const c_void,
    with: *const Description,
    la: *const Layout,
    lb: *const Layout,
    lc: *const Layout,
    ld: *const Layout,
    _algorithm: *const [u64; 8],
    found: *mut Found,
) -> c_int {
    let mut count = 0;
    // SAFETY: the caller's promise.
    unsafe { cublasLtMatmulAlgoGetHeuristic(handle, with, la, lb, lc, ld, std::ptr::null(), 1, found, &mut count) }
}
