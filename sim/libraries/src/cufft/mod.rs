//! cuFFT: plans, and the transforms that they describe, by `numerics::fourier`.
//!
//! - `plan`: what a plan is, and the functions that make and change plans
//! - `exec`: the functions that transform
//!
//! Callbacks, transforms on several devices and cuFFT's device library are refused.

mod exec;
mod plan;

use std::ffi::c_int;

use cuda_sys::CUresult;

/// A status of cuFFT other than success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Status(c_int);

impl Status {
    const INVALID_PLAN: Status = Status(1);
    const ALLOC_FAILED: Status = Status(2);
    const INVALID_TYPE: Status = Status(3);
    const INVALID_VALUE: Status = Status(4);
    const EXEC_FAILED: Status = Status(6);
    const SETUP_FAILED: Status = Status(7);
    const INVALID_SIZE: Status = Status(8);
    const NOT_SUPPORTED: Status = Status(16);
}

impl From<CUresult> for Status {
    fn from(error: CUresult) -> Status {
        match error {
            CUresult::ERROR_OUT_OF_MEMORY => Status::ALLOC_FAILED,
            CUresult::ERROR_NOT_SUPPORTED => Status::NOT_SUPPORTED,
            CUresult::ERROR_NOT_INITIALIZED => Status::SETUP_FAILED,
            _ => Status::EXEC_FAILED,
        }
    }
}

/// The outcome of a call.
type Res = Result<(), Status>;

fn answer(done: Res) -> c_int {
    done.map_or_else(|status| status.0, |()| 0)
}
