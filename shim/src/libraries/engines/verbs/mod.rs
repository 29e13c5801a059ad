//! ibverbs (`libibverbs.so.1`): RDMA cards that read and write memory beside CUDA.
//!
//! Owns our exports of its functions and our operations of opened devices. Posting and polling are
//! inline functions of the header that call through the table of operations in `struct
//! ibv_context`; the entries of a device that the program opens lead to ours, and these to the
//! provider's. Devices that another library opens for itself are left alone: UCX and MPI, which
//! open them inside their own calls, NCCL and NVSHMEM, which look the functions up by name, and
//! plugins of NCCL.
//!
//! A work request is a request from when it is posted until its completion is polled
//! (`ibv_post_send(3)`: its buffers can be reused only after that). Inline data is copied while it
//! is posted. Completions that are read otherwise (`ibv_start_poll`) are not seen, so work that
//! would complete there is counted and left out; so is what `ibv_wr_post(3)` describes.

mod layout;
mod objects;
mod state;
mod work;

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;

use cuda_sys::FnId;

use self::layout::{Context, op};
use self::state::Operations;
use super::calls::{is_of_others, is_own, real, real_functions};
use super::work_queue::Posted;
use crate::libraries::requests;
use crate::log::call_names::library_call;

real_functions! {
    c"libibverbs.so.1":
    ibv_open_device,
    ibv_import_device,
    ibv_close_device,
    ibv_reg_mr,
    ibv_reg_mr_iova,
    ibv_reg_mr_iova2,
    ibv_reg_dmabuf_mr,
    ibv_rereg_mr,
    ibv_dereg_mr,
    ibv_create_cq,
    ibv_destroy_cq,
    ibv_create_qp,
    ibv_destroy_qp,
    ibv_modify_qp,
    ibv_destroy_srq,
    ibv_qp_to_qp_ex,
}

const END: FnId = library_call("ibv_destroy_qp");

fn ends(call: FnId, over: &[Posted]) {
    over.iter().filter(|posted| posted.request != 0).for_each(|posted| requests::end(call, posted.request));
}

/// The answer of a function that cannot be reached, which cannot be: a caller was linked to it.
fn absent() -> c_int {
    libc::ENOSYS
}

/// A device was opened: ours stand before its operations from here on.
fn observe_device(context: *mut Context) {
    if context.is_null() || !is_own() {
        return;
    }
    // SAFETY: libibverbs has just answered it, and no one else has it yet.
    let ops = unsafe { &(*context).ops };
    let real = |at: usize| ops[at].load(Ordering::Relaxed);
    let operations = Operations {
        poll_cq: real(op::POLL_CQ),
        post_srq_recv: real(op::POST_SRQ_RECV),
        post_send: real(op::POST_SEND),
        post_recv: real(op::POST_RECV),
    };
    let ours = [work::poll_cq as *const () as usize, work::post_send as *const () as usize];
    // A second handle to one context (an import) has ours already.
    if ours.contains(&operations.poll_cq) || !state::opened(context as usize, operations) {
        return;
    }
    let replace = |at: usize, by: usize| {
        if real(at) != 0 {
            ops[at].store(by, Ordering::Release);
        }
    };
    replace(op::POLL_CQ, ours[0]);
    replace(op::POST_SEND, ours[1]);
    replace(op::POST_RECV, work::post_recv as *const () as usize);
    replace(op::POST_SRQ_RECV, work::post_srq_recv as *const () as usize);
}

/// `ibv_open_device`.
///
/// # Safety
/// As for ibverbs' function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_open_device(device: *mut c_void) -> *mut Context {
    let real = real!(ibv_open_device: unsafe extern "C" fn(*mut c_void) -> *mut Context);
    let Some(real) = real else { return std::ptr::null_mut() };
    // SAFETY: arguments are passed on as they came.
    let context = unsafe { real(device) };
    if !is_of_others() {
        observe_device(context);
    }
    context
}

/// `ibv_import_device`.
///
/// # Safety
/// As for ibverbs' function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_import_device(descriptor: c_int) -> *mut Context {
    let real = real!(ibv_import_device: unsafe extern "C" fn(c_int) -> *mut Context);
    let Some(real) = real else { return std::ptr::null_mut() };
    // SAFETY: arguments are passed on as they came.
    let context = unsafe { real(descriptor) };
    if !is_of_others() {
        observe_device(context);
    }
    context
}

/// `ibv_close_device`.
///
/// # Safety
/// As for ibverbs' function.
#[unsafe(no_mangle)]
unsafe extern "C" fn ibv_close_device(context: *mut Context) -> c_int {
    let Some(real) = real!(ibv_close_device: unsafe extern "C" fn(*mut Context) -> c_int) else { return absent() };
    if let Some(operations) = state::operations(context as usize) {
        // SAFETY: the program's device, which is not in use any more.
        let ops = unsafe { &(*context).ops };
        ops[op::POLL_CQ].store(operations.poll_cq, Ordering::Relaxed);
        ops[op::POST_SEND].store(operations.post_send, Ordering::Relaxed);
        ops[op::POST_RECV].store(operations.post_recv, Ordering::Relaxed);
        ops[op::POST_SRQ_RECV].store(operations.post_srq_recv, Ordering::Relaxed);
        state::closed(context as usize);
        let over = state::lock().end_device(context as usize);
        ends(END, &over);
    }
    // SAFETY: arguments are passed on as they came.
    unsafe { real(context) }
}
