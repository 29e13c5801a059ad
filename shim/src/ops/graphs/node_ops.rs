//! What one node of a graph does, as an encoded op.
//!
//! Owns the ops of all kinds of nodes, read from the driver or from parameters that a call has just
//! accepted. Which nodes a graph has is read in [`super::flatten`].

use cuda_sys::*;
use trace::{
    ContextId, Encoder, EventMode, FreeKind, HostFuncId, LaunchShape, MemoryKind, Op, PoolId, Region, StreamId,
};

use crate::ids::events::event_id;
use crate::observe::Cx;
use crate::ops::copies::strided::pair_3d;
use crate::ops::launches::with_launch;
use crate::ops::modules::function_of_kernel;
use crate::ops::stream_memops::{BatchMember, batch_member};
use crate::real::driver::real;

/// The tag and the fields of an op; tag 0: none.
pub(crate) type EncodedOp = (u16, Vec<u8>);

/// Encodes an op as part of another.
pub(crate) fn encode(op: &Op<'_>) -> EncodedOp {
    let params = if let Op::Launch { params, .. } = op { params.len() } else { 0 };
    let mut body = vec![0; 256 + params];
    let mut to = Encoder::new(&mut body);
    op.encode(&mut to);
    let len = to.finish().unwrap_or(0);
    body.truncate(len);
    (op.tag(), body)
}

/// The memory operations of a node, in the order in which they run.
pub(crate) fn memory_operations(cx: &mut Cx<'_>, node: CUgraphNode) -> Vec<EncodedOp> {
    let mut p = CUDA_BATCH_MEM_OP_NODE_PARAMS::zeroed();
    let got = real!(cuGraphBatchMemOpNodeGetParams(
        node => CUgraphNode, &raw mut p => *mut CUDA_BATCH_MEM_OP_NODE_PARAMS
    ));
    if got != CUresult::SUCCESS || p.paramArray.is_null() {
        cx.define(&not_modelled("graph node: stream memory operations"));
        return Vec::new();
    }
    // SAFETY: the driver answered count operations.
    unsafe { encode_memory_operations(cx, p.paramArray, p.count) }
}

/// Encodes memory operations, one op each.
///
/// # Safety
/// `params` points to `count` descriptors that the driver has given or accepted.
pub(crate) unsafe fn encode_memory_operations(
    cx: &mut Cx<'_>,
    params: *const CUstreamBatchMemOpParams,
    count: c_uint,
) -> Vec<EncodedOp> {
    let mut ops = Vec::new();
    for index in 0..count as usize {
        // SAFETY: forwarded from the caller.
        match unsafe { batch_member(params, index, StreamId::NONE) } {
            BatchMember::Op(op) => ops.push(encode(&op)),
            BatchMember::Nothing => {}
            BatchMember::Unknown => cx.define(&not_modelled("graph node: a stream memory operation of another kind")),
        }
    }
    ops
}

fn not_modelled(text: &'static str) -> Op<'static> {
    Op::Note { kind: trace::NoteKind::NotModelled, text: text.into(), count: 1 }
}

/// What a node does, encoded; tag 0 for nothing.
pub(crate) fn node_op(cx: &mut Cx<'_>, node: CUgraphNode, kind: CUgraphNodeType) -> EncodedOp {
    let nothing = (0, Vec::new());
    let stream = StreamId::NONE;
    match kind {
        CU_GRAPH_NODE_TYPE_KERNEL => {
            let mut p = CUDA_KERNEL_NODE_PARAMS::zeroed();
            let got = real!(cuGraphKernelNodeGetParams_v2(
                node => CUgraphNode, &raw mut p => *mut CUDA_KERNEL_NODE_PARAMS
            ));
            if got != CUresult::SUCCESS {
                return nothing;
            }
            function_of_kernel(cx, p.func.0, p.kern.0);
            kernel_op(cx, &p)
        }
        CU_GRAPH_NODE_TYPE_MEMCPY => {
            let mut p = CUDA_MEMCPY3D::zeroed();
            let got = real!(cuGraphMemcpyNodeGetParams(node => CUgraphNode, &raw mut p => *mut CUDA_MEMCPY3D));
            if got != CUresult::SUCCESS { nothing } else { copy_op(cx, &p) }
        }
        CU_GRAPH_NODE_TYPE_MEMSET => {
            let mut p = CUDA_MEMSET_NODE_PARAMS::zeroed();
            let got = real!(cuGraphMemsetNodeGetParams(
                node => CUgraphNode, &raw mut p => *mut CUDA_MEMSET_NODE_PARAMS
            ));
            if got != CUresult::SUCCESS { nothing } else { set_op(&p) }
        }
        CU_GRAPH_NODE_TYPE_HOST => {
            let func = HostFuncId(cx.core().map_or(0, |core| core.handles.fresh()));
            encode(&Op::HostFunc { stream, func, address: 0 })
        }
        CU_GRAPH_NODE_TYPE_WAIT_EVENT | CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
            let mut event = CUevent::NULL;
            let waits = kind == CU_GRAPH_NODE_TYPE_WAIT_EVENT;
            let _ = if waits {
                real!(cuGraphEventWaitNodeGetEvent(node => CUgraphNode, &raw mut event => *mut CUevent))
            } else {
                real!(cuGraphEventRecordNodeGetEvent(node => CUgraphNode, &raw mut event => *mut CUevent))
            };
            event_op(cx, event, waits)
        }
        CU_GRAPH_NODE_TYPE_MEM_ALLOC => {
            let mut p = CUDA_MEM_ALLOC_NODE_PARAMS::zeroed();
            let _ = real!(cuGraphMemAllocNodeGetParams(
                node => CUgraphNode, &raw mut p => *mut CUDA_MEM_ALLOC_NODE_PARAMS
            ));
            let (kind, context, pool) = (MemoryKind::GraphNode, ContextId::NONE, PoolId::NONE);
            encode(&Op::Alloc { ptr: p.dptr, size: p.bytesize as u64, kind, context, stream, pool, flags: 0 })
        }
        CU_GRAPH_NODE_TYPE_MEM_FREE => {
            let mut ptr: CUdeviceptr = 0;
            let _ = real!(cuGraphMemFreeNodeGetParams(node => CUgraphNode, &raw mut ptr => *mut CUdeviceptr));
            encode(&Op::Free { ptr, kind: FreeKind::Async, stream })
        }
        CU_GRAPH_NODE_TYPE_EMPTY => nothing,
        _ => {
            // They order as nodes do, but the driver does not say what they do.
            cx.define(&not_modelled(match kind {
                CU_GRAPH_NODE_TYPE_CONDITIONAL => "graph node: conditional",
                CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL | CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => {
                    "graph node: external semaphores"
                }
                CU_GRAPH_NODE_TYPE_MEMCPY_BATCH => "graph node: batch of copies",
                _ => "graph node of another kind",
            }));
            nothing
        }
    }
}

/// What an event node does.
pub(crate) fn event_op(cx: &mut Cx<'_>, event: CUevent, waits: bool) -> EncodedOp {
    let (event, stream, mode) = (event_id(cx, event), StreamId::NONE, EventMode::Plain);
    encode(&if waits { Op::StreamWait { stream, event, mode } } else { Op::EventRecord { event, stream, mode } })
}

pub(crate) fn kernel_op(cx: &mut Cx<'_>, p: &CUDA_KERNEL_NODE_PARAMS) -> EncodedOp {
    let function = if p.func.is_null() { CUfunction(p.kern.0) } else { p.func };
    let shape = LaunchShape {
        grid: [p.gridDimX, p.gridDimY, p.gridDimZ],
        block: [p.blockDimX, p.blockDimY, p.blockDimZ],
        shared: p.sharedMemBytes,
        ..LaunchShape::default()
    };
    let mut encoded = (0, Vec::new());
    // SAFETY: the driver has answered or accepted these parameters.
    unsafe {
        with_launch(cx, function, StreamId::NONE, shape, p.kernelParams, p.extra, |_, op| encoded = encode(op));
    }
    encoded
}

pub(crate) fn copy_op(cx: &mut Cx<'_>, p: &CUDA_MEMCPY3D) -> EncodedOp {
    let (dst, src) = pair_3d(cx, p);
    encode(&Op::Copy {
        stream: StreamId::NONE,
        dst: dst.region,
        src: src.region,
        dst_space: dst.space,
        src_space: src.space,
        asynchronous: true,
        batch: 0,
    })
}

pub(crate) fn set_op(p: &CUDA_MEMSET_NODE_PARAMS) -> EncodedOp {
    let width = p.width as u64 * u64::from(p.elementSize);
    let dst = if p.height <= 1 {
        Region::linear(p.dst, width)
    } else {
        Region::pitched(p.dst, width, p.height as u32, p.pitch as u64)
    };
    encode(&Op::Set { stream: StreamId::NONE, dst, asynchronous: true })
}
