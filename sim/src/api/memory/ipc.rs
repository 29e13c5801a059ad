//! Memory and events shared with other processes.

use cuda_sys::*;

use crate::api::*;
use crate::objects::event::{EVENTS, Event, IpcEventState};
use crate::{memory, sched};

fn bytes_of(text: [c_char; 64]) -> [u8; 64] {
    text.map(|c| c as u8)
}

fn text_of(bytes: [u8; 64]) -> [c_char; 64] {
    bytes.map(|b| b as c_char)
}

abi! {
    call fn [cuIpcGetMemHandle plain](_z, handle: *mut CUipcMemHandle, dptr: CUdeviceptr) {
        thread::context()?;
        put(handle, CUipcMemHandle { reserved: text_of(memory::get().export(dptr)?) })
    }
    uncaptured fn [cuIpcOpenMemHandle plain, cuIpcOpenMemHandle_v2 plain](
        _z, dptr: *mut CUdeviceptr, handle: CUipcMemHandle, flags: c_uint
    ) {
        let ctx = thread::context()?;
        if flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || dptr.is_null() {
            return Err(INVALID);
        }
        put(dptr, memory::get().import(ctx.owner().id, ctx.device, &bytes_of(handle.reserved))?)
    }
    uncaptured fn [cuIpcCloseMemHandle plain](_z, dptr: CUdeviceptr) {
        thread::context()?;
        if !memory::get().find(dptr).is_some_and(|block| block.kind == memory::AllocationKind::Ipc) {
            return Err(INVALID);
        }
        sched::get().wait(&sched::get().all_tails());
        memory::get().close(dptr)
    }
    call fn [cuIpcGetEventHandle plain](_z, handle: *mut CUipcEventHandle, event: CUevent) {
        let event = EVENTS.get(event.bits())?;
        let shared = event.shared.as_ref().ok_or(CUresult::ERROR_INVALID_HANDLE)?;
        put(handle, CUipcEventHandle { reserved: text_of(shared.export()?) })
    }
    call fn [cuIpcOpenEventHandle plain](_z, event: *mut CUevent, handle: CUipcEventHandle) {
        let ctx = thread::context()?;
        put(event, CUevent::from_bits(Event::open(&ctx, IpcEventState::import(&bytes_of(handle.reserved))?)))
    }
}
