//! Copies to and from variables of the program.

use cuda_sys::*;

use crate::kernels::registration::variable;
use crate::memory::copies::{inside, linear};
use crate::thread_state::Res;

fn to(
    pt: bool,
    symbol: *const c_void,
    src: *const c_void,
    n: usize,
    offset: usize,
    kind: cudaMemcpyKind,
    stream: Option<CUstream>,
) -> Res {
    let (at, size) = variable(symbol)?;
    linear(pt, inside(at, size, offset, n)?, src as u64, n, kind, stream)
}

fn from(
    pt: bool,
    dst: *mut c_void,
    symbol: *const c_void,
    n: usize,
    offset: usize,
    kind: cudaMemcpyKind,
    stream: Option<CUstream>,
) -> Res {
    let (at, size) = variable(symbol)?;
    linear(pt, dst as u64, inside(at, size, offset, n)?, n, kind, stream)
}

rt! {
    ctx fn [cudaMemcpyToSymbol legacy, cudaMemcpyToSymbol_ptds per_thread](
        pt, symbol: *const c_void, src: *const c_void, n: usize, offset: usize, kind: cudaMemcpyKind
    ) {
        to(pt, symbol, src, n, offset, kind, None)
    }
    ctx fn [cudaMemcpyToSymbolAsync legacy, cudaMemcpyToSymbolAsync_ptsz per_thread](
        pt, symbol: *const c_void, src: *const c_void, n: usize, offset: usize, kind: cudaMemcpyKind, stream: CUstream
    ) {
        to(pt, symbol, src, n, offset, kind, Some(stream))
    }
    ctx fn [cudaMemcpyFromSymbol legacy, cudaMemcpyFromSymbol_ptds per_thread](
        pt, dst: *mut c_void, symbol: *const c_void, n: usize, offset: usize, kind: cudaMemcpyKind
    ) {
        from(pt, dst, symbol, n, offset, kind, None)
    }
    ctx fn [cudaMemcpyFromSymbolAsync legacy, cudaMemcpyFromSymbolAsync_ptsz per_thread](
        pt, dst: *mut c_void, symbol: *const c_void, n: usize, offset: usize, kind: cudaMemcpyKind, stream: CUstream
    ) {
        from(pt, dst, symbol, n, offset, kind, Some(stream))
    }
}
