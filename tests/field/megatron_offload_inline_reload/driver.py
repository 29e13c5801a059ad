"""A layer's input is offloaded to the CPU and needed at once, in the backward pass. With `ordered` that pass waits
for the copy to the CPU."""
import sys

import autograd_worker
import stand_in

stand_in.rest_of("megatron")
import megatron.core.transformer.cuda_graphs
import torch

megatron.core.transformer.cuda_graphs.is_graph_capturing = lambda: False
from megatron.core.pipeline_parallel.fine_grained_activation_offload import (
    FineGrainedActivationOffloadingInterface as Offloading,
    PipelineOffloadManager,
)

n = 1 << 20
weight = torch.nn.Parameter(torch.ones(n, device="cuda"))
state = torch.ones(n, device="cuda", requires_grad=True)
torch.cuda.synchronize()
Offloading.init_chunk_handler(
    pp_rank=0,
    vp_size=None,
    vp_stage=None,
    min_offloaded_tensor_size=1,
    delta_offload_bytes_across_pp_ranks=0,
    activation_offload_fraction=1.0,
)
layer = Offloading(True, state + 1, "layer")
with layer as x:
    y = x * weight
y = layer.group_offload(y)
if "ordered" in sys.argv:
    torch.cuda.current_stream().wait_stream(PipelineOffloadManager.get_instance().d2h_stream)
y.backward(torch.ones_like(y))
torch.cuda.synchronize()
autograd_worker.settle()
