//! Products of general matrices: by address, by stride and by arrays of addresses, of one type and
//! of mixed types.

use super::handle::{Entered, Res, Status, not_simulated, operation};
use crate::numerics::matrix::Matrix;
use crate::numerics::number::Type;
use crate::numerics::product::Product;

/// A matrix as calls name it.
#[derive(Clone, Copy)]
struct Operand {
    at: u64,
    kind: Type,
    ld: i64,
    stride: i64,
}

/// What is multiplied.
struct Gemm {
    operations: [i32; 2],
    size: [i64; 3],
    scalars: [u64; 2],
    scale: Type,
    operands: [Operand; 3],
    batch: i64,
    by_pointer: bool,
}

fn run(call: &mut Entered<'_>, gemm: &Gemm) -> Res {
    let [m, n, k] = gemm.size;
    let [a, b, c] = gemm.operands;
    let [ta, tb] = gemm.operations;
    let (ta, tb) = (operation(call.name, ta)?, operation(call.name, tb)?);
    let matrix = |operand: Operand, operation: i32, rows: i64, columns: i64| {
        let (rows, columns) = if operation == 0 { (rows, columns) } else { (columns, rows) };
        if operand.ld < rows.max(1) {
            return Err(Status::INVALID_VALUE);
        }
        let matrix = Matrix::new(operand.at, operand.kind, rows, columns, operand.ld);
        let matrix = if gemm.by_pointer { matrix.pointers() } else { matrix.batched(operand.stride) };
        Ok(matrix.operated(operation))
    };
    if m < 0 || n < 0 || k < 0 || gemm.batch < 0 {
        return Err(Status::INVALID_VALUE);
    }
    let (a, b, c) = (matrix(a, ta, m, k)?, matrix(b, tb, k, n)?, matrix(c, 0, m, n)?);
    if m == 0 || n == 0 || gemm.batch == 0 {
        return Ok(());
    }
    let [alpha, beta] = gemm.scalars;
    let (alpha, beta) = (call.scalar(alpha, gemm.scale)?, call.scalar(beta, gemm.scale)?);
    let product = Product { batch: gemm.batch as usize, ..Product::new(alpha, a, b, beta, c) };
    let mut blocks = product.blocks();
    blocks.push(call.scratch());
    call.enqueue(&blocks, &product)
}

fn gemm(
    call: &mut Entered<'_>,
    kind: Type,
    ta: i32,
    tb: i32,
    m: i64,
    n: i64,
    k: i64,
    alpha: u64,
    a: u64,
    lda: i64,
    b: u64,
    ldb: i64,
    beta: u64,
    c: u64,
    ldc: i64,
) -> Res {
    strided(call, kind, ta, tb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1)
}

fn strided(
    call: &mut Entered<'_>,
    kind: Type,
    ta: i32,
    tb: i32,
    m: i64,
    n: i64,
    k: i64,
    alpha: u64,
    a: u64,
    lda: i64,
    sa: i64,
    b: u64,
    ldb: i64,
    sb: i64,
    beta: u64,
    c: u64,
    ldc: i64,
    sc: i64,
    batch: i64,
) -> Res {
    let operand = |at, ld, stride| Operand { at, kind, ld, stride };
    let operands = [operand(a, lda, sa), operand(b, ldb, sb), operand(c, ldc, sc)];
    let (operations, size, scalars) = ([ta, tb], [m, n, k], [alpha, beta]);
    run(call, &Gemm { operations, size, scalars, scale: kind, operands, batch, by_pointer: false })
}

fn batched(
    call: &mut Entered<'_>,
    kind: Type,
    ta: i32,
    tb: i32,
    m: i64,
    n: i64,
    k: i64,
    alpha: u64,
    a: u64,
    lda: i64,
    b: u64,
    ldb: i64,
    beta: u64,
    c: u64,
    ldc: i64,
    batch: i64,
) -> Res {
    let operand = |at, ld| Operand { at, kind, ld, stride: 0 };
    let operands = [operand(a, lda), operand(b, ldb), operand(c, ldc)];
    let (operations, size, scalars) = ([ta, tb], [m, n, k], [alpha, beta]);
    run(call, &Gemm { operations, size, scalars, scale: kind, operands, batch, by_pointer: true })
}

/// The type of the factors for a `cublasComputeType_t`.
pub(crate) fn scale_type(name: &str, compute: i32, complex: bool) -> Result<Type, Status> {
    Ok(match (compute, complex) {
        (64 | 65, false) => Type::F16,
        (68 | 69 | 74 | 75 | 77 | 78, false) => Type::F32,
        (68 | 69 | 74 | 75 | 77 | 78, true) => Type::C32,
        (70 | 71 | 79, false) => Type::F64,
        (70 | 71 | 79, true) => Type::C64,
        (72 | 73, false) => Type::I32,
        _ => return Err(not_simulated(name, &format!("cublasComputeType_t {compute}"))),
    })
}

fn is_complex(kind: Type) -> bool {
    matches!(kind, Type::C32 | Type::C64)
}

fn ex(
    call: &mut Entered<'_>,
    ta: i32,
    tb: i32,
    m: i64,
    n: i64,
    k: i64,
    alpha: u64,
    a: u64,
    at: i32,
    lda: i64,
    b: u64,
    bt: i32,
    ldb: i64,
    beta: u64,
    c: u64,
    ct: i32,
    ldc: i64,
    compute: i32,
    algo: i32,
) -> Res {
    strided_ex(call, ta, tb, m, n, k, alpha, a, at, lda, 0, b, bt, ldb, 0, beta, c, ct, ldc, 0, 1, compute, algo)
}

fn strided_ex(
    call: &mut Entered<'_>,
    ta: i32,
    tb: i32,
    m: i64,
    n: i64,
    k: i64,
    alpha: u64,
    a: u64,
    at: i32,
    lda: i64,
    sa: i64,
    b: u64,
    bt: i32,
    ldb: i64,
    sb: i64,
    beta: u64,
    c: u64,
    ct: i32,
    ldc: i64,
    sc: i64,
    batch: i64,
    compute: i32,
    _algo: i32,
) -> Res {
    let operand = |at, kind, ld, stride| Ok::<_, Status>(Operand { at, kind: call.kind(kind)?, ld, stride });
    let operands = [operand(a, at, lda, sa)?, operand(b, bt, ldb, sb)?, operand(c, ct, ldc, sc)?];
    let scale = scale_type(call.name, compute, is_complex(operands[2].kind))?;
    let (operations, size, scalars) = ([ta, tb], [m, n, k], [alpha, beta]);
    run(call, &Gemm { operations, size, scalars, scale, operands, batch, by_pointer: false })
}

fn batched_ex(
    call: &mut Entered<'_>,
    ta: i32,
    tb: i32,
    m: i64,
    n: i64,
    k: i64,
    alpha: u64,
    a: u64,
    at: i32,
    lda: i64,
    b: u64,
    bt: i32,
    ldb: i64,
    beta: u64,
    c: u64,
    ct: i32,
    ldc: i64,
    batch: i64,
    compute: i32,
    _algo: i32,
) -> Res {
    let operand = |at, kind, ld| Ok::<_, Status>(Operand { at, kind: call.kind(kind)?, ld, stride: 0 });
    let operands = [operand(a, at, lda)?, operand(b, bt, ldb)?, operand(c, ct, ldc)?];
    let scale = scale_type(call.name, compute, is_complex(operands[2].kind))?;
    let (operations, size, scalars) = ([ta, tb], [m, n, k], [alpha, beta]);
    run(call, &Gemm { operations, size, scalars, scale, operands, batch, by_pointer: true })
}

/// `cublasSgemmEx`, `cublasCgemmEx`: the factors have the function's own type.
fn typed_ex(
    call: &mut Entered<'_>,
    kind: Type,
    ta: i32,
    tb: i32,
    m: i64,
    n: i64,
    k: i64,
    alpha: u64,
    a: u64,
    at: i32,
    lda: i64,
    b: u64,
    bt: i32,
    ldb: i64,
    beta: u64,
    c: u64,
    ct: i32,
    ldc: i64,
) -> Res {
    let compute = 68;
    debug_assert!(matches!(kind, Type::F32 | Type::C32));
    ex(call, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, ct, ldc, compute, 0)
}

api! { gemm; (ta: E, tb: E, m: I, n: I, k: I, alpha: P, a: P, lda: I, b: P, ldb: I, beta: P, c: P, ldc: I)
    cublasSgemm_v2 / cublasSgemm_v2_64 = F32, cublasDgemm_v2 / cublasDgemm_v2_64 = F64,
    cublasCgemm_v2 / cublasCgemm_v2_64 = C32, cublasZgemm_v2 / cublasZgemm_v2_64 = C64,
    cublasHgemm / cublasHgemm_64 = F16, cublasCgemm3m / cublasCgemm3m_64 = C32,
    cublasZgemm3m / cublasZgemm3m_64 = C64,
}
api! { strided;
    (ta: E, tb: E, m: I, n: I, k: I, alpha: P, a: P, lda: I, sa: L, b: P, ldb: I, sb: L, beta: P, c: P, ldc: I, sc: L,
     batch: I)
    cublasSgemmStridedBatched / cublasSgemmStridedBatched_64 = F32,
    cublasDgemmStridedBatched / cublasDgemmStridedBatched_64 = F64,
    cublasCgemmStridedBatched / cublasCgemmStridedBatched_64 = C32,
    cublasZgemmStridedBatched / cublasZgemmStridedBatched_64 = C64,
    cublasHgemmStridedBatched / cublasHgemmStridedBatched_64 = F16,
    cublasCgemm3mStridedBatched / cublasCgemm3mStridedBatched_64 = C32,
}
api! { batched;
    (ta: E, tb: E, m: I, n: I, k: I, alpha: P, a: P, lda: I, b: P, ldb: I, beta: P, c: P, ldc: I, batch: I)
    cublasSgemmBatched / cublasSgemmBatched_64 = F32, cublasDgemmBatched / cublasDgemmBatched_64 = F64,
    cublasCgemmBatched / cublasCgemmBatched_64 = C32, cublasZgemmBatched / cublasZgemmBatched_64 = C64,
    cublasHgemmBatched / cublasHgemmBatched_64 = F16, cublasCgemm3mBatched / cublasCgemm3mBatched_64 = C32,
}
api! { ex;
    (ta: E, tb: E, m: I, n: I, k: I, alpha: P, a: P, at: E, lda: I, b: P, bt: E, ldb: I, beta: P, c: P, ct: E, ldc: I,
     compute: E, algo: E)
    cublasGemmEx / cublasGemmEx_64,
}
api! { strided_ex;
    (ta: E, tb: E, m: I, n: I, k: I, alpha: P, a: P, at: E, lda: I, sa: L, b: P, bt: E, ldb: I, sb: L, beta: P, c: P,
     ct: E, ldc: I, sc: L, batch: I, compute: E, algo: E)
    cublasGemmStridedBatchedEx / cublasGemmStridedBatchedEx_64,
}
api! { batched_ex;
    (ta: E, tb: E, m: I, n: I, k: I, alpha: P, a: P, at: E, lda: I, b: P, bt: E, ldb: I, beta: P, c: P, ct: E, ldc: I,
     batch: I, compute: E, algo: E)
    cublasGemmBatchedEx / cublasGemmBatchedEx_64,
}
api! { typed_ex;
    (ta: E, tb: E, m: I, n: I, k: I, alpha: P, a: P, at: E, lda: I, b: P, bt: E, ldb: I, beta: P, c: P, ct: E, ldc: I)
    cublasSgemmEx / cublasSgemmEx_64 = F32, cublasCgemmEx / cublasCgemmEx_64 = C32,
    cublasCgemm3mEx / cublasCgemm3mEx_64 = C32,
}
