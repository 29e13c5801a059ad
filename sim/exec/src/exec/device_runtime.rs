//! The functions of CUDA's device runtime that kernels call to launch work (dynamic parallelism):
//! stand-ins for those that `cuda_device_runtime_api.h` declares.
//!
//! Owns how their arguments are read and what they answer. What is launched goes to
//! [`Device::enqueue`](crate::interface::Device::enqueue): the driver runs it when this
//! grid has ended. Streams and events of kernels are numbers only, because what kernels launch runs
//! in the order in which they launched it.

use crate::device_work::{PARAMETERS, WorkShape};
use crate::exec::call::{Caller, part};
use crate::exec::load_store::GENERIC;
use crate::interface::{AccessKind, Accesses, DeviceStream, DeviceWork};
use crate::observed_order::AccessOrder;
use crate::program::{LANES, Next, RuntimeCall};
use crate::warp::Warp;
use sim_races::{Stream, ThreadOf};

/// Statuses of the runtime.
const INVALID_VALUE: u32 = 1;
const INVALID_CONFIGURATION: u32 = 9;
const INVALID_DEVICE_FUNCTION: u32 = 98;
const UNSUPPORTED_LIMIT: u32 = 215;
/// `cudaStreamTailLaunch`, `cudaStreamFireAndForget`, `cudaStreamNonBlocking`.
const TAIL_LAUNCH: u64 = 3;
const FIRE_AND_FORGET: u64 = 4;
const NON_BLOCKING: u32 = 1;
/// Handles of streams and events: no memory is there.
const STREAM: u64 = 0x00f5_0000_0000_0000;
const EVENT: u64 = 0x00f6_0000_0000_0000;

/// The arguments of one call of one lane.
struct Arguments<'w, 'b, 'c> {
    w: &'w mut Warp<'b>,
    caller: &'c Caller<'c>,
    lane: usize,
}

impl Arguments<'_, '_, '_> {
    /// 32 bits of argument `at` from `byte` on; in machine code they are in that register.
    fn word(&mut self, at: usize, byte: u32, register: u32) -> u32 {
        part(self.w, self.caller, (at, byte), register, self.lane)
    }

    /// Argument `at`, of 64 bits.
    fn pair(&mut self, at: usize, register: u32) -> u64 {
        u64::from(self.word(at, 0, register)) | u64::from(self.word(at, 4, register + 1)) << 32
    }

    /// Argument `at`, a `dim3`.
    fn shape(&mut self, at: usize, register: u32) -> [u32; 3] {
        [0, 1, 2].map(|n| self.word(at, 4 * n, register + n))
    }

    fn thread(&mut self) -> ([u32; 3], [u32; 3]) {
        (self.w.block().index, [0, 1, 2].map(|axis| self.w.tid[axis][self.lane]))
    }

    /// Writes what a pointer argument is to receive.
    fn put(&mut self, address: u64, bytes: &[u8]) -> Result<u32, Next> {
        let size = bytes.len() as u32;
        if address == 0 {
            return Ok(INVALID_VALUE);
        }
        match self.w.resolve(GENERIC, address, size, AccessKind::Write, self.lane) {
            Ok(to) => {
                let device = self.w.env.device;
                if self.w.env.observing && device.allocation(address).is_some() {
                    let lanes = [(address, self.w.index * LANES as u32 + self.lane as u32)];
                    let (kind, block) = (AccessKind::Write, self.w.block().index);
                    let order = AccessOrder::default();
                    device.observe(&Accesses { kind, size, lanes: &lanes, block, line: 0, source: None, order });
                }
                // SAFETY: `resolve` vouches for the bytes.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) };
                Ok(0)
            }
            Err(kind) => Err(self.w.fail(kind, 1 << self.lane)),
        }
    }

    /// Launches what the parameters in a buffer are for.
    fn launch(&mut self, shape: Option<WorkShape>, buffer: u64, stream: u64) -> u32 {
        let Some((asked, mut params)) = self.w.env.device_work.take(buffer) else { return INVALID_VALUE };
        let Some(WorkShape { function, grid, block, shared }) = shape.or(asked) else { return INVALID_VALUE };
        let Some(size) = self.w.env.device.parameters(function) else { return INVALID_DEVICE_FUNCTION };
        let threads = block.iter().try_fold(1u32, |a, &b| a.checked_mul(b));
        if grid.contains(&0) || !threads.is_some_and(|n| (1..=1024).contains(&n)) {
            return INVALID_CONFIGURATION;
        }
        params.truncate(size as usize);
        if let Some(events) = self.w.env.events {
            events.launches(self.thread_of(), into(stream));
        }
        self.w.env.device.enqueue(DeviceWork::Kernel { function, grid, block, shared, params }, kind_of(stream))
    }

    /// The thread as those know it who look for races.
    fn thread_of(&mut self) -> ThreadOf {
        let thread = self.w.index * LANES as u32 + self.lane as u32;
        ThreadOf { block: self.w.block().linear as u32, thread }
    }

    fn enqueue(&mut self, work: DeviceWork, stream: u64) -> u32 {
        self.w.env.device.enqueue(work, kind_of(stream))
    }
}

fn kind_of(stream: u64) -> DeviceStream {
    match stream {
        TAIL_LAUNCH => DeviceStream::Tail,
        FIRE_AND_FORGET => DeviceStream::Detached,
        _ => DeviceStream::Ordered,
    }
}

/// The same for those who look for races. The other handles without a name are those of the host's
/// streams, which stand for the block's own.
fn into(stream: u64) -> Stream {
    match stream {
        TAIL_LAUNCH => Stream::Tail,
        FIRE_AND_FORGET => Stream::Detached,
        STREAM.. => Stream::Named(stream),
        _ => Stream::OfBlock,
    }
}

/// What one lane's call does. The value is the function's result.
pub(crate) fn run(w: &mut Warp<'_>, call: RuntimeCall, caller: &Caller<'_>, lane: usize) -> Result<u64, Next> {
    let mut a = Arguments { w, caller, lane };
    let thread = a.thread();
    let status = match call {
        RuntimeCall::GetParameterBuffer => {
            let fits = a.pair(1, 2) <= PARAMETERS;
            return Ok(fits.then(|| a.w.env.device_work.buffer(None)).flatten().unwrap_or(0));
        }
        RuntimeCall::GetParameterBufferV2 => {
            let (function, grid, block, shared) = (a.pair(0, 0), a.shape(1, 2), a.shape(2, 5), a.word(3, 0, 8));
            let shape = WorkShape { function, grid, block, shared };
            return match a.w.env.device.parameters(function) {
                Some(size) if u64::from(size) <= PARAMETERS => Ok(a.w.env.device_work.buffer(Some(shape)).unwrap_or(0)),
                _ => {
                    a.w.env.device_work.failed(thread, INVALID_DEVICE_FUNCTION);
                    Ok(0)
                }
            };
        }
        RuntimeCall::LaunchDevice => {
            let (function, buffer, grid, block) = (a.pair(0, 0), a.pair(1, 2), a.shape(2, 4), a.shape(3, 7));
            let (shared, stream) = (a.word(4, 0, 10), a.pair(5, 12));
            a.launch(Some(WorkShape { function, grid, block, shared }), buffer, stream)
        }
        RuntimeCall::LaunchDeviceV2 => {
            let (buffer, stream) = (a.pair(0, 0), a.pair(1, 2));
            a.launch(None, buffer, stream)
        }
        RuntimeCall::MemcpyAsync => {
            let (to, from, bytes, stream) = (a.pair(0, 0), a.pair(1, 2), a.pair(2, 4), a.pair(4, 8));
            a.enqueue(DeviceWork::Copy { to, from, bytes }, stream)
        }
        RuntimeCall::MemsetAsync => {
            let (to, value, bytes, stream) = (a.pair(0, 0), a.word(1, 0, 2) as u8, a.pair(2, 4), a.pair(3, 6));
            a.enqueue(DeviceWork::Fill { to, value, bytes }, stream)
        }
        // The manual asks for `cudaStreamNonBlocking`; a device takes `cudaStreamDefault` too
        // (measured on an H100, driver 580).
        RuntimeCall::StreamCreate if a.word(1, 0, 2) > NON_BLOCKING => INVALID_VALUE,
        RuntimeCall::StreamCreate | RuntimeCall::EventCreate => {
            if let (Some(events), RuntimeCall::EventCreate) = (a.w.env.events, call) {
                events.makes_event(a.thread_of().block);
            }
            let base = if call == RuntimeCall::StreamCreate { STREAM } else { EVENT };
            let (to, handle) = (a.pair(0, 0), base + a.w.env.device_work.handle());
            a.put(to, &handle.to_le_bytes())?
        }
        RuntimeCall::Nothing => 0,
        RuntimeCall::GetLimit => {
            let (to, limit) = (a.pair(0, 0), a.word(1, 0, 2));
            match a.w.env.device.limit(limit) {
                Some(value) => a.put(to, &value.to_le_bytes())?,
                None => UNSUPPORTED_LIMIT,
            }
        }
        RuntimeCall::Malloc => {
            let (to, size) = (a.pair(0, 0), a.pair(1, 2));
            let at = a.w.env.device.malloc(size);
            if let Some(events) = a.w.env.events {
                events.allocated(at, size);
            }
            let put = a.put(to, &at.to_le_bytes())?;
            // `cudaErrorMemoryAllocation`
            if put == 0 && at == 0 { 2 } else { put }
        }
        RuntimeCall::GetLastError => return Ok(u64::from(a.w.env.device_work.last_error(thread, true))),
        RuntimeCall::PeekAtLastError => return Ok(u64::from(a.w.env.device_work.last_error(thread, false))),
        RuntimeCall::GetErrorString | RuntimeCall::GetErrorName => {
            let text = a.w.env.device.error_text(a.word(0, 0, 0), call == RuntimeCall::GetErrorName);
            return Ok(a.w.env.device_work.text(&text));
        }
    };
    w.env.device_work.failed(thread, status);
    Ok(u64::from(status))
}
