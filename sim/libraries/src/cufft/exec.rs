//! The functions that transform.

use std::ffi::{c_int, c_void};

use cuda_sys::CUresult;
use sim_driver_link::refused;

use super::plan::{self, Kind};
use super::{Res, Status, answer};
use crate::model::block::Block;
use crate::model::launch::launch;
use crate::numerics::fourier::Transform;

const FORWARD: c_int = -1;
const INVERSE: c_int = 1;

/// Enqueues a plan's transform on its stream. `kind`: what the function is for, if it is for one.
fn exec(name: &'static str, plan: c_int, input: u64, output: u64, direction: c_int, kind: Option<Kind>) -> Res {
    let (plan, made) = plan::with(plan, |plan| Ok((*plan, plan.made.ok_or(Status::INVALID_PLAN)?)))?;
    if kind.is_some_and(|kind| kind != made.kind) {
        return Err(Status::INVALID_PLAN);
    }
    if input == 0 || output == 0 || !matches!(direction, FORWARD | INVERSE) {
        return Err(Status::INVALID_VALUE);
    }
    let in_place = input == output;
    let transform = Transform {
        size: made.size,
        input: made.side(input, true, in_place),
        output: made.side(output, false, in_place),
        batch: made.batch,
        inverse: direction == INVERSE,
        // "Out-of-place complex-to-real FFT will always overwrite input buffer" (cuFFT's manual,
        // `cufftExecC2R`).
        destroys: made.kind == Kind::ComplexToReal,
    };
    let too_large = || {
        refused(&format!("{name}: a transform of this shape is not simulated"));
        Status::NOT_SUPPORTED
    };
    let mut blocks = transform.blocks().ok_or_else(too_large)?;
    let (at, bytes) = plan.work;
    blocks.push(Block::scratch(at, bytes));
    blocks.retain(|block| !block.is_empty());
    launch(plan.stream, name, &blocks, &transform).map_err(|error| match error {
        CUresult::ERROR_NOT_SUPPORTED => too_large(),
        error => error.into(),
    })
}

macro_rules! execs {
    ($($name:ident $kind:ident $($direction:ident)?;)*) => { $(
        // SAFETY: cuFFT's name and signature.
        #[unsafe(no_mangle)]
        extern "C" fn $name(plan: c_int, input: *mut c_void, output: *mut c_void $(, $direction: c_int)?) -> c_int {
            let direction = match Kind::$kind {
                Kind::RealToComplex => FORWARD,
                _ => INVERSE,
            };
            $( let direction = { let _ = direction; $direction }; )?
            answer(exec(stringify!($name), plan, input as u64, output as u64, direction, Some(Kind::$kind)))
        }
    )* };
}

execs! {
    cufftExecC2C Complex given;
    cufftExecZ2Z Complex given;
    cufftExecR2C RealToComplex;
    cufftExecD2Z RealToComplex;
    cufftExecC2R ComplexToReal;
    cufftExecZ2D ComplexToReal;
}

// SAFETY: cuFFT's name and signature.
#[unsafe(no_mangle)]
extern "C" fn cufftXtExec(plan: c_int, input: *mut c_void, output: *mut c_void, direction: c_int) -> c_int {
    answer(exec("cufftXtExec", plan, input as u64, output as u64, direction, None))
}
