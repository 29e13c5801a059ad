//! External semaphores: signals and waits of streams, matched within this process.
//!
//! Owns the number of each signal and wait. A fence or a timeline semaphore has a value that
//! signals raise and waits compare with; of any other semaphore each wait takes one signal. Signals
//! of another API or process are not seen. A stream that waits for one is not judged until the host
//! sees it get past the wait, and the calls stay named as not modelled.

use cuda_sys::*;
use trace::Op;

use super::interop::opaque_work;
use crate::handles::tables::ExternalSemaphore;
use crate::ids::destroyed::handle_destroyed;
use crate::ids::streams::working_stream;
use crate::observe::Cx;

pub(crate) unsafe fn cuImportExternalSemaphore(
    cx: &mut Cx<'_>,
    ext_sem_out: *mut CUexternalSemaphore,
    sem_handle_desc: *const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
) {
    const WITH_VALUES: [CUexternalSemaphoreHandleType; 4] = [
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_FENCE,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32,
    ];
    // What a wait waits for is said in a structure of theirs.
    const OPAQUE: [CUexternalSemaphoreHandleType; 3] = [
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX,
        CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX_KMT,
    ];
    // SAFETY: the call succeeded: it has read the descriptor and written the handle.
    let (handle, kind) = unsafe { (*ext_sem_out, (*sem_handle_desc).type_) };
    if let Some(core) = cx.core()
        && !OPAQUE.contains(&kind)
    {
        let has_values = WITH_VALUES.contains(&kind);
        let semaphore = ExternalSemaphore { id: core.handles.fresh(), has_values, signals: 0, waits: 0 };
        core.handles.semaphores.insert(handle.0 as u64, semaphore);
    }
}

pub(crate) unsafe fn cuDestroyExternalSemaphore(cx: &mut Cx<'_>, ext_sem: CUexternalSemaphore) {
    handle_destroyed(cx, |handles| &handles.semaphores, ext_sem.0 as u64, |semaphore| semaphore.id);
}

/// Its number, and the value of this signal or wait.
fn next(cx: &Cx<'_>, handle: CUexternalSemaphore, value: u64, signal: bool) -> Option<(u32, u64)> {
    let mut semaphore = cx.core()?.handles.semaphores.get_mut(&(handle.0 as u64))?;
    let counter = if signal { &mut semaphore.signals } else { &mut semaphore.waits };
    *counter += 1;
    let count = *counter;
    Some((semaphore.id, if semaphore.has_values { value } else { count }))
}

pub(crate) unsafe fn cuSignalExternalSemaphoresAsync(
    cx: &mut Cx<'_>,
    ext_sem_array: *const CUexternalSemaphore,
    params_array: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    num_ext_sems: c_uint,
    stream: CUstream,
) {
    opaque_work(cx, stream);
    let Some(stream) = working_stream(cx, stream) else { return };
    for index in 0..num_ext_sems as usize {
        // SAFETY: the call has accepted both arrays; the fence's value is valid for semaphores that
        // have one.
        let (handle, value) = unsafe { (*ext_sem_array.add(index), (*params_array.add(index)).params.fence.value) };
        if let Some((semaphore, value)) = next(cx, handle, value, true) {
            cx.log(&Op::SemaphoreSignal { stream, semaphore, value });
        }
    }
}

pub(crate) unsafe fn cuWaitExternalSemaphoresAsync(
    cx: &mut Cx<'_>,
    ext_sem_array: *const CUexternalSemaphore,
    params_array: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
    num_ext_sems: c_uint,
    stream: CUstream,
) {
    opaque_work(cx, stream);
    let Some(stream) = working_stream(cx, stream) else { return };
    for index in 0..num_ext_sems as usize {
        // SAFETY: as above.
        let (handle, value) = unsafe { (*ext_sem_array.add(index), (*params_array.add(index)).params.fence.value) };
        if let Some((semaphore, value)) = next(cx, handle, value, false) {
            cx.log(&Op::SemaphoreWait { stream, semaphore, value });
        }
    }
}
