//! Matrices of which a part is stored, triangular systems, and what goes element by element.

use super::handle::{Entered, Res, Status, operation};
use crate::model::block::Part;
use crate::numerics::algebra::solve::Triangular;
use crate::numerics::elementwise::{ElementOp, Elementwise};
use crate::numerics::matrix::{Fill, Matrix, Scalar};
use crate::numerics::number::Type;
use crate::numerics::product::Product;

/// A `cublasFillMode_t`.
pub(crate) fn part(uplo: i32) -> Result<Part, Status> {
    match uplo {
        0 => Ok(Part::Lower),
        1 => Ok(Part::Upper),
        _ => Err(Status::INVALID_VALUE),
    }
}

/// A matrix of which a `cublasFillMode_t` says what half is there: symmetric or Hermitian.
pub(crate) fn whole<const HERMITIAN: bool>(uplo: i32) -> Result<Fill, Status> {
    let part = part(uplo)?;
    Ok(if HERMITIAN { Fill::Hermitian(part) } else { Fill::Symmetric(part) })
}

fn enqueue(call: &mut Entered<'_>, product: &Product) -> Res {
    if product.d.size.contains(&0) {
        return Ok(());
    }
    let mut blocks = product.blocks();
    blocks.push(call.scratch());
    call.enqueue(&blocks, product)
}

/// `symm`, `hemm`: a filled matrix on one side.
fn sided(
    call: &mut Entered<'_>,
    fill: Fill,
    kind: Type,
    side: i32,
    m: i64,
    n: i64,
    alpha: u64,
    a: u64,
    lda: i64,
    b: u64,
    ldb: i64,
    beta: u64,
    c: u64,
    ldc: i64,
) -> Res {
    let (alpha, beta) = (call.scalar(alpha, kind)?, call.scalar(beta, kind)?);
    let size = if side == 0 { m } else { n };
    let a = Matrix::new(a, kind, size, size, lda).filled(fill);
    let (b, c) = (Matrix::new(b, kind, m, n, ldb), Matrix::new(c, kind, m, n, ldc));
    let (left, right) = if side == 0 { (a, b) } else { (b, a) };
    enqueue(call, &Product::new(alpha, left, right, beta, c))
}

fn symm<const HERMITIAN: bool>(
    call: &mut Entered<'_>,
    kind: Type,
    side: i32,
    uplo: i32,
    m: i64,
    n: i64,
    alpha: u64,
    a: u64,
    lda: i64,
    b: u64,
    ldb: i64,
    beta: u64,
    c: u64,
    ldc: i64,
) -> Res {
    sided(call, whole::<HERMITIAN>(uplo)?, kind, side, m, n, alpha, a, lda, b, ldb, beta, c, ldc)
}

/// What `syrk` and its relatives have in common: `trans` of one or two matrices with `k` columns.
struct Update {
    trans: i32,
    /// What turns the right side: 1, or 2 for Hermitian ones.
    turn: i32,
    operands: [(u64, i64); 2],
    /// Also the other way round.
    twice: bool,
    scalars: [u64; 2],
    types: [Type; 2],
    size: [i64; 2],
}

fn update(call: &mut Entered<'_>, kind: Type, uplo: i32, with: &Update, c: u64, ldc: i64) -> Res {
    let [n, k] = with.size;
    let operand = |(at, ld): (u64, i64)| match with.trans {
        0 => Matrix::new(at, kind, n, k, ld),
        _ => Matrix::new(at, kind, k, n, ld).operated(with.turn),
    };
    let [a, b] = with.operands.map(operand);
    let fill = if with.turn == 2 { Fill::Hermitian(part(uplo)?) } else { Fill::Symmetric(part(uplo)?) };
    let c = Matrix::new(c, kind, n, n, ldc).filled(fill);
    let (alpha, beta) = (call.scalar(with.scalars[0], with.types[0])?, call.scalar(with.scalars[1], with.types[1])?);
    let second = with.twice.then(|| [b, a.operated(with.turn)]);
    let product = Product::new(alpha, a, b.operated(with.turn), beta, c);
    enqueue(call, &Product { second, second_conjugate: with.turn == 2, ..product })
}

fn syrk(
    call: &mut Entered<'_>,
    kind: Type,
    uplo: i32,
    trans: i32,
    n: i64,
    k: i64,
    alpha: u64,
    a: u64,
    lda: i64,
    beta: u64,
    c: u64,
    ldc: i64,
) -> Res {
    let (operands, scalars) = ([(a, lda), (a, lda)], [alpha, beta]);
    let with = Update { trans, turn: 1, operands, twice: false, scalars, types: [kind; 2], size: [n, k] };
    update(call, kind, uplo, &with, c, ldc)
}

fn herk(
    call: &mut Entered<'_>,
    kind: Type,
    uplo: i32,
    trans: i32,
    n: i64,
    k: i64,
    alpha: u64,
    a: u64,
    lda: i64,
    beta: u64,
    c: u64,
    ldc: i64,
) -> Res {
    let (operands, scalars) = ([(a, lda), (a, lda)], [alpha, beta]);
    let with = Update { trans, turn: 2, operands, twice: false, scalars, types: [kind.real(); 2], size: [n, k] };
    update(call, kind, uplo, &with, c, ldc)
}

fn syr2k(
    call: &mut Entered<'_>,
    kind: Type,
    uplo: i32,
    trans: i32,
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
    let (operands, scalars) = ([(a, lda), (b, ldb)], [alpha, beta]);
    let with = Update { trans, turn: 1, operands, twice: true, scalars, types: [kind; 2], size: [n, k] };
    update(call, kind, uplo, &with, c, ldc)
}

fn her2k(
    call: &mut Entered<'_>,
    kind: Type,
    uplo: i32,
    trans: i32,
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
    let (operands, scalars) = ([(a, lda), (b, ldb)], [alpha, beta]);
    let with = Update { trans, turn: 2, operands, twice: true, scalars, types: [kind, kind.real()], size: [n, k] };
    update(call, kind, uplo, &with, c, ldc)
}

fn trmm(
    call: &mut Entered<'_>,
    kind: Type,
    side: i32,
    uplo: i32,
    trans: i32,
    diag: i32,
    m: i64,
    n: i64,
    alpha: u64,
    a: u64,
    lda: i64,
    b: u64,
    ldb: i64,
    c: u64,
    ldc: i64,
) -> Res {
    let alpha = call.scalar(alpha, kind)?;
    let size = if side == 0 { m } else { n };
    let a = Matrix::new(a, kind, size, size, lda).filled(Fill::Triangular(part(uplo)?, diag == 1));
    let a = a.operated(operation(call.name, trans)?);
    let (b, c) = (Matrix::new(b, kind, m, n, ldb), Matrix::new(c, kind, m, n, ldc));
    let (left, right) = if side == 0 { (a, b) } else { (b, a) };
    enqueue(call, &Product::new(alpha, left, right, Scalar::known(0.0, 0.0), c))
}

/// Enqueues a triangular system.
pub(crate) fn triangular(
    call: &mut Entered<'_>,
    left: bool,
    a: Matrix,
    trans: i32,
    alpha: Scalar,
    b: Matrix,
    batch: i64,
) -> Res {
    let a = a.operated(operation(call.name, trans)?);
    let Fill::Triangular(part, _) = a.fill else { return Err(Status::INVALID_VALUE) };
    if b.size.contains(&0) || batch == 0 {
        return Ok(());
    }
    let system = Triangular { a, b, left, alpha, part, batch: batch as usize, compute: b.kind.compute() };
    call.enqueue(&system.blocks(), &system)
}

fn trsm(
    call: &mut Entered<'_>,
    kind: Type,
    side: i32,
    uplo: i32,
    trans: i32,
    diag: i32,
    m: i64,
    n: i64,
    alpha: u64,
    a: u64,
    lda: i64,
    b: u64,
    ldb: i64,
) -> Res {
    let alpha = call.scalar(alpha, kind)?;
    let size = if side == 0 { m } else { n };
    let a = Matrix::new(a, kind, size, size, lda).filled(Fill::Triangular(part(uplo)?, diag == 1));
    triangular(call, side == 0, a, trans, alpha, Matrix::new(b, kind, m, n, ldb), 1)
}

fn trsm_batched(
    call: &mut Entered<'_>,
    kind: Type,
    side: i32,
    uplo: i32,
    trans: i32,
    diag: i32,
    m: i64,
    n: i64,
    alpha: u64,
    a: u64,
    lda: i64,
    b: u64,
    ldb: i64,
    batch: i64,
) -> Res {
    let alpha = call.scalar(alpha, kind)?;
    let size = if side == 0 { m } else { n };
    let a = Matrix::new(a, kind, size, size, lda).filled(Fill::Triangular(part(uplo)?, diag == 1));
    triangular(call, side == 0, a.pointers(), trans, alpha, Matrix::new(b, kind, m, n, ldb).pointers(), batch)
}

fn geam(
    call: &mut Entered<'_>,
    kind: Type,
    ta: i32,
    tb: i32,
    m: i64,
    n: i64,
    alpha: u64,
    a: u64,
    lda: i64,
    beta: u64,
    b: u64,
    ldb: i64,
    c: u64,
    ldc: i64,
) -> Res {
    let (alpha, beta) = (call.scalar(alpha, kind)?, call.scalar(beta, kind)?);
    let operand = |at: u64, ld: i64, operation: i32| {
        let (rows, columns) = if operation == 0 { (m, n) } else { (n, m) };
        Matrix::new(at, kind, rows, columns, ld).operated(operation)
    };
    let (a, b) = (operand(a, lda, operation(call.name, ta)?), operand(b, ldb, operation(call.name, tb)?));
    combine(call, ElementOp::Sum(alpha, beta), a, b, Matrix::new(c, kind, m, n, ldc))
}

fn dgmm(
    call: &mut Entered<'_>,
    kind: Type,
    mode: i32,
    m: i64,
    n: i64,
    a: u64,
    lda: i64,
    x: u64,
    incx: i64,
    c: u64,
    ldc: i64,
) -> Res {
    let left = mode == 0;
    let x = Matrix::vector(x, kind, if left { m } else { n }, incx);
    combine(call, ElementOp::Diagonal(left), Matrix::new(a, kind, m, n, lda), x, Matrix::new(c, kind, m, n, ldc))
}

fn combine(call: &mut Entered<'_>, op: ElementOp, a: Matrix, b: Matrix, c: Matrix) -> Res {
    if c.size.contains(&0) {
        return Ok(());
    }
    let both = Elementwise { op, a, b, c, compute: c.kind.compute() };
    call.enqueue(&both.blocks(), &both)
}

api! { symm::<false>; (side: E, uplo: E, m: I, n: I, alpha: P, a: P, lda: I, b: P, ldb: I, beta: P, c: P, ldc: I)
    cublasSsymm_v2 / cublasSsymm_v2_64 = F32, cublasDsymm_v2 / cublasDsymm_v2_64 = F64,
    cublasCsymm_v2 / cublasCsymm_v2_64 = C32, cublasZsymm_v2 / cublasZsymm_v2_64 = C64,
}
api! { symm::<true>; (side: E, uplo: E, m: I, n: I, alpha: P, a: P, lda: I, b: P, ldb: I, beta: P, c: P, ldc: I)
    cublasChemm_v2 / cublasChemm_v2_64 = C32, cublasZhemm_v2 / cublasZhemm_v2_64 = C64,
}
api! { syrk; (uplo: E, trans: E, n: I, k: I, alpha: P, a: P, lda: I, beta: P, c: P, ldc: I)
    cublasSsyrk_v2 / cublasSsyrk_v2_64 = F32, cublasDsyrk_v2 / cublasDsyrk_v2_64 = F64,
    cublasCsyrk_v2 / cublasCsyrk_v2_64 = C32, cublasZsyrk_v2 / cublasZsyrk_v2_64 = C64,
}
api! { herk; (uplo: E, trans: E, n: I, k: I, alpha: P, a: P, lda: I, beta: P, c: P, ldc: I)
    cublasCherk_v2 / cublasCherk_v2_64 = C32, cublasZherk_v2 / cublasZherk_v2_64 = C64,
}
api! { syr2k; (uplo: E, trans: E, n: I, k: I, alpha: P, a: P, lda: I, b: P, ldb: I, beta: P, c: P, ldc: I)
    cublasSsyr2k_v2 / cublasSsyr2k_v2_64 = F32, cublasDsyr2k_v2 / cublasDsyr2k_v2_64 = F64,
    cublasCsyr2k_v2 / cublasCsyr2k_v2_64 = C32, cublasZsyr2k_v2 / cublasZsyr2k_v2_64 = C64,
}
api! { her2k; (uplo: E, trans: E, n: I, k: I, alpha: P, a: P, lda: I, b: P, ldb: I, beta: P, c: P, ldc: I)
    cublasCher2k_v2 / cublasCher2k_v2_64 = C32, cublasZher2k_v2 / cublasZher2k_v2_64 = C64,
}
api! { trmm;
    (side: E, uplo: E, trans: E, diag: E, m: I, n: I, alpha: P, a: P, lda: I, b: P, ldb: I, c: P, ldc: I)
    cublasStrmm_v2 / cublasStrmm_v2_64 = F32, cublasDtrmm_v2 / cublasDtrmm_v2_64 = F64,
    cublasCtrmm_v2 / cublasCtrmm_v2_64 = C32, cublasZtrmm_v2 / cublasZtrmm_v2_64 = C64,
}
api! { trsm; (side: E, uplo: E, trans: E, diag: E, m: I, n: I, alpha: P, a: P, lda: I, b: P, ldb: I)
    cublasStrsm_v2 / cublasStrsm_v2_64 = F32, cublasDtrsm_v2 / cublasDtrsm_v2_64 = F64,
    cublasCtrsm_v2 / cublasCtrsm_v2_64 = C32, cublasZtrsm_v2 / cublasZtrsm_v2_64 = C64,
}
api! { trsm_batched;
    (side: E, uplo: E, trans: E, diag: E, m: I, n: I, alpha: P, a: P, lda: I, b: P, ldb: I, batch: I)
    cublasStrsmBatched / cublasStrsmBatched_64 = F32, cublasDtrsmBatched / cublasDtrsmBatched_64 = F64,
    cublasCtrsmBatched / cublasCtrsmBatched_64 = C32, cublasZtrsmBatched / cublasZtrsmBatched_64 = C64,
}
api! { geam;
    (ta: E, tb: E, m: I, n: I, alpha: P, a: P, lda: I, beta: P, b: P, ldb: I, c: P, ldc: I)
    cublasSgeam / cublasSgeam_64 = F32, cublasDgeam / cublasDgeam_64 = F64, cublasCgeam / cublasCgeam_64 = C32,
    cublasZgeam / cublasZgeam_64 = C64,
}
api! { dgmm; (mode: E, m: I, n: I, a: P, lda: I, x: P, incx: I, c: P, ldc: I)
    cublasSdgmm / cublasSdgmm_64 = F32, cublasDdgmm / cublasDdgmm_64 = F64, cublasCdgmm / cublasCdgmm_64 = C32,
    cublasZdgmm / cublasZdgmm_64 = C64,
}
