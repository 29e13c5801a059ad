//! CUDA's types for streams, events, captures and stream memory operations. Names, values and
//! layouts are those of `cuda.h`; the shared rules are in [`super`].

use super::*;

/// The legacy default stream, whichever symbol the call came through.
pub const CU_STREAM_LEGACY: CUstream = CUstream::from_bits(1);
/// The calling thread's default stream, whichever symbol the call came through.
pub const CU_STREAM_PER_THREAD: CUstream = CUstream::from_bits(2);

c_consts! { c_uint; // CUevent_sched_flags
    CU_EVENT_SCHED_AUTO = 0x0,
    CU_EVENT_SCHED_SPIN = 0x1,
    CU_EVENT_SCHED_YIELD = 0x2,
    CU_EVENT_SCHED_BLOCKING_SYNC = 0x4,
}

c_consts! { c_uint; // cl_event_flags
    NVCL_EVENT_SCHED_AUTO = 0x0,
    NVCL_EVENT_SCHED_SPIN = 0x1,
    NVCL_EVENT_SCHED_YIELD = 0x2,
    NVCL_EVENT_SCHED_BLOCKING_SYNC = 0x4,
}

c_consts! { c_uint; // CUhostTaskSyncMode
    CU_HOST_TASK_BLOCKING = 0,
    CU_HOST_TASK_SPINWAIT = 1,
}

c_consts! { c_uint; // CUstream_flags
    CU_STREAM_DEFAULT = 0x0,
    CU_STREAM_NON_BLOCKING = 0x1,
}

c_consts! { c_uint; // CUevent_flags
    CU_EVENT_DEFAULT = 0x0,
    CU_EVENT_BLOCKING_SYNC = 0x1,
    CU_EVENT_DISABLE_TIMING = 0x2,
    CU_EVENT_INTERPROCESS = 0x4,
}

c_consts! { c_uint; // CUevent_record_flags
    CU_EVENT_RECORD_DEFAULT = 0x0,
    CU_EVENT_RECORD_EXTERNAL = 0x1,
}

c_consts! { c_uint; // CUevent_wait_flags
    CU_EVENT_WAIT_DEFAULT = 0x0,
    CU_EVENT_WAIT_EXTERNAL = 0x1,
}

c_consts! { c_uint; // CUstreamWaitValue_flags
    CU_STREAM_WAIT_VALUE_GEQ = 0x0,
    CU_STREAM_WAIT_VALUE_EQ = 0x1,
    CU_STREAM_WAIT_VALUE_AND = 0x2,
    CU_STREAM_WAIT_VALUE_NOR = 0x3,
    CU_STREAM_WAIT_VALUE_FLUSH = 0x40000000,
}

c_consts! { c_uint; // CUstreamWriteValue_flags
    CU_STREAM_WRITE_VALUE_DEFAULT = 0x0,
    CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER = 0x1,
}

c_enum! { CUstreamBatchMemOpType(c_uint)
    CU_STREAM_MEM_OP_WAIT_VALUE_32 = 1,
    CU_STREAM_MEM_OP_WRITE_VALUE_32 = 2,
    CU_STREAM_MEM_OP_WAIT_VALUE_64 = 4,
    CU_STREAM_MEM_OP_WRITE_VALUE_64 = 5,
    CU_STREAM_MEM_OP_BARRIER = 6,
    CU_STREAM_MEM_OP_ATOMIC_REDUCTION = 8,
    CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES = 3,
}

c_consts! { c_uint; // CUstreamMemoryBarrier_flags
    CU_STREAM_MEMORY_BARRIER_TYPE_SYS = 0x0,
    CU_STREAM_MEMORY_BARRIER_TYPE_GPU = 0x1,
}

c_enum! { CUstreamAtomicReductionOpType(c_uint)
    CU_STREAM_ATOMIC_REDUCTION_OP_OR = 6,
    CU_STREAM_ATOMIC_REDUCTION_OP_AND = 5,
    CU_STREAM_ATOMIC_REDUCTION_OP_ADD = 0,
}

c_enum! { CUstreamAtomicReductionDataType(c_uint)
    CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_32 = 14,
    CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_64 = 22,
}

c_enum! { CUstreamCaptureStatus(c_uint)
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
    CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
}

c_enum! { CUstreamCaptureMode(c_uint)
    CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
}

c_enum! { CUstreamCigDataType(c_uint)
    STREAM_CIG_DATA_TYPE_D3D12_COMMAND_LIST = 1,
    STREAM_CIG_DATA_TYPE_VULKAN_COMMAND_BUFFER_HANDLE_NV = 2,
}

pub type CUstreamBatchMemOpParams = CUstreamBatchMemOpParams_v1;
pub type CUhostFn = Option<unsafe extern "C" fn(*mut c_void)>;
pub type CUstreamCallback = Option<unsafe extern "C" fn(CUstream, CUresult, *mut c_void)>;

c_structs! { STREAM_LAYOUTS
    union CUstreamBatchMemOpParams_v1_waitValue_anon1 {
        value: u32,
        value64: u64,
    }
    struct CUstreamBatchMemOpParams_v1_waitValue {
        operation: CUstreamBatchMemOpType,
        address: CUdeviceptr,
        anon1: CUstreamBatchMemOpParams_v1_waitValue_anon1,
        flags: c_uint,
        alias: CUdeviceptr,
    }
    union CUstreamBatchMemOpParams_v1_writeValue_anon1 {
        value: u32,
        value64: u64,
    }
    struct CUstreamBatchMemOpParams_v1_writeValue {
        operation: CUstreamBatchMemOpType,
        address: CUdeviceptr,
        anon1: CUstreamBatchMemOpParams_v1_writeValue_anon1,
        flags: c_uint,
        alias: CUdeviceptr,
    }
    struct CUstreamBatchMemOpParams_v1_flushRemoteWrites {
        operation: CUstreamBatchMemOpType,
        flags: c_uint,
    }
    struct CUstreamBatchMemOpParams_v1_memoryBarrier {
        operation: CUstreamBatchMemOpType,
        flags: c_uint,
    }
    struct CUstreamBatchMemOpParams_v1_atomicReduction {
        operation: CUstreamBatchMemOpType,
        flags: c_uint,
        reductionOp: CUstreamAtomicReductionOpType,
        dataType: CUstreamAtomicReductionDataType,
        address: CUdeviceptr,
        value: u64,
        alias: CUdeviceptr,
    }
    union CUstreamBatchMemOpParams_v1 {
        operation: CUstreamBatchMemOpType,
        waitValue: CUstreamBatchMemOpParams_v1_waitValue,
        writeValue: CUstreamBatchMemOpParams_v1_writeValue,
        flushRemoteWrites: CUstreamBatchMemOpParams_v1_flushRemoteWrites,
        memoryBarrier: CUstreamBatchMemOpParams_v1_memoryBarrier,
        atomicReduction: CUstreamBatchMemOpParams_v1_atomicReduction,
        pad: [u64; 6],
    }
    struct CUstreamCigParam {
        streamSharedDataType: CUstreamCigDataType,
        streamSharedData: *mut c_void,
    }
    struct CUstreamCigCaptureParams {
        streamCigParams: *mut CUstreamCigParam,
    }
}
