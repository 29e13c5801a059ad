//! The functions that kernels call and the interpreter answers itself.
//!
//! Owns their names. What they do is in `exec`.

/// Functions of CUDA's device runtime that have no body in PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Builtin {
    Vprintf,
    Assertfail,
    Malloc,
    Free,
    SetConditional,
    /// What `cudaCGSynchronize` is given.
    GridHandle,
    /// The barrier of a cooperative launch.
    GridBarrier,
    /// `cudaCGGetSize`, and `cudaCGGetRank`.
    GridSize,
    GridRank,
    /// One that launches work, or has to do with that.
    Runtime(RuntimeCall),
}

impl Builtin {
    /// The function of that name.
    pub(crate) fn by_name(name: &str) -> Option<Builtin> {
        Some(match name {
            "vprintf" => Builtin::Vprintf,
            "__assertfail" => Builtin::Assertfail,
            "malloc" => Builtin::Malloc,
            "free" | "cudaFree" | "__cudaCDP2Free" => Builtin::Free,
            "cudaGraphSetConditional" => Builtin::SetConditional,
            "cudaCGGetIntrinsicHandle" => Builtin::GridHandle,
            "cudaCGSynchronize" | "cudaCGSynchronizeGrid" => Builtin::GridBarrier,
            "cudaCGGetSize" => Builtin::GridSize,
            "cudaCGGetRank" => Builtin::GridRank,
            _ => return RuntimeCall::by_name(name).map(Builtin::Runtime),
        })
    }

    /// Whether it takes the place of a definition, too: the device runtime's library has some.
    pub(crate) fn replaces(name: &str) -> bool {
        !matches!(name, "vprintf" | "__assertfail" | "malloc" | "free") && Builtin::by_name(name).is_some()
    }
}

/// Functions by which kernels launch work (`cuda_device_runtime_api.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuntimeCall {
    GetParameterBuffer,
    GetParameterBufferV2,
    LaunchDevice,
    LaunchDeviceV2,
    MemcpyAsync,
    MemsetAsync,
    StreamCreate,
    EventCreate,
    /// Work runs in the order in which it was launched: waits and records have nothing to do.
    Nothing,
    GetLimit,
    Malloc,
    GetLastError,
    PeekAtLastError,
    GetErrorString,
    GetErrorName,
}

impl RuntimeCall {
    /// The function of that name. The header leads CUDA's names to those with the prefix.
    pub(crate) fn by_name(name: &str) -> Option<RuntimeCall> {
        let name = name.strip_prefix("__cudaCDP2").or_else(|| name.strip_prefix("cuda"))?;
        Some(match name.strip_suffix("_ptsz").unwrap_or(name) {
            "GetParameterBuffer" => RuntimeCall::GetParameterBuffer,
            "GetParameterBufferV2" => RuntimeCall::GetParameterBufferV2,
            "LaunchDevice" => RuntimeCall::LaunchDevice,
            "LaunchDeviceV2" => RuntimeCall::LaunchDeviceV2,
            "MemcpyAsync" => RuntimeCall::MemcpyAsync,
            "MemsetAsync" => RuntimeCall::MemsetAsync,
            "StreamCreateWithFlags" => RuntimeCall::StreamCreate,
            "EventCreateWithFlags" => RuntimeCall::EventCreate,
            "StreamDestroy" | "StreamWaitEvent" | "EventRecord" | "EventRecordWithFlags" | "EventDestroy" => {
                RuntimeCall::Nothing
            }
            "DeviceGetLimit" => RuntimeCall::GetLimit,
            "Malloc" => RuntimeCall::Malloc,
            "GetLastError" => RuntimeCall::GetLastError,
            "PeekAtLastError" => RuntimeCall::PeekAtLastError,
            "GetErrorString" => RuntimeCall::GetErrorString,
            "GetErrorName" => RuntimeCall::GetErrorName,
            _ => return None,
        })
    }
}
