//! Nodes that are added to a graph explicitly, one row for each kind.
//!
//! Owns no more than the rows: where a node was added is kept in [`super::origins`], and what it
//! does is read when the graph is instantiated ([`super::flatten`]).

use cuda_sys::*;

use crate::observe::Cx;
use crate::ops::graphs::origins::node_added;

macro_rules! node_added {
    ($(fn $name:ident($node:ident: *mut CUgraphNode $(, $arg:ident: $ty:ty)* $(,)?);)*) => {$(
        pub(crate) unsafe fn $name(cx: &mut Cx<'_>, $node: *mut CUgraphNode $(, $arg: $ty)*) {
            let _ = ($($arg,)*);
            node_added(cx, $node);
        }
    )*};
}

node_added! {
    fn cuGraphAddKernelNode(graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        num_dependencies: usize, node_params: *const CUDA_KERNEL_NODE_PARAMS_v1);
    fn cuGraphAddKernelNode_v2(graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        num_dependencies: usize, node_params: *const CUDA_KERNEL_NODE_PARAMS);
    fn cuGraphAddMemcpyNode(graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        num_dependencies: usize, copy_params: *const CUDA_MEMCPY3D, ctx: CUcontext);
    fn cuGraphAddMemsetNode(graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        num_dependencies: usize, memset_params: *const CUDA_MEMSET_NODE_PARAMS, ctx: CUcontext);
    fn cuGraphAddHostNode(graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        num_dependencies: usize, node_params: *const CUDA_HOST_NODE_PARAMS);
    fn cuGraphAddEmptyNode(graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        num_dependencies: usize);
    fn cuGraphAddEventRecordNode(graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        num_dependencies: usize, event: CUevent);
    fn cuGraphAddEventWaitNode(graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        num_dependencies: usize, event: CUevent);
    fn cuGraphAddExternalSemaphoresSignalNode(graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const
        CUgraphNode, num_dependencies: usize, node_params: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS);
    fn cuGraphAddExternalSemaphoresWaitNode(graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const
        CUgraphNode, num_dependencies: usize, node_params: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS);
    fn cuGraphAddBatchMemOpNode(graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        num_dependencies: usize, node_params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS);
    fn cuGraphAddMemAllocNode(graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        num_dependencies: usize, node_params: *mut CUDA_MEM_ALLOC_NODE_PARAMS);
    fn cuGraphAddMemFreeNode(graph_node: *mut CUgraphNode, graph: CUgraph, dependencies: *const CUgraphNode,
        num_dependencies: usize, ptr: CUdeviceptr);
}
