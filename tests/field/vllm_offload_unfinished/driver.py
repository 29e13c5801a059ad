"""A block of the cache of keys and values is offloaded to the CPU in the step that computes it."""
import logging

import stand_in

stand_in.rest_of("vllm")
import numpy as np
import torch
import vllm._custom_ops
import vllm.logger
import vllm.utils.platform_utils


def swap_blocks(source, target, pairs):
    """As vLLM's C++ function of this name: copies blocks in the order of the current stream."""
    for origin, destination in pairs.tolist():
        target[destination].copy_(source[origin], non_blocking=True)


vllm._custom_ops.swap_blocks = swap_blocks
vllm.logger.init_logger = logging.getLogger
vllm.utils.platform_utils.is_pin_memory_available = lambda: True
from vllm.v1.kv_offload.mediums import CPULoadStoreSpec, GPULoadStoreSpec
from vllm.v1.kv_offload.worker.cpu_gpu import CpuGpuOffloadingHandlers


class Attention:
    @staticmethod
    def get_kv_cache_shape(num_blocks, block_size, num_kv_heads, head_size):
        return num_blocks, 2, block_size, num_kv_heads, head_size


cache = torch.zeros(Attention.get_kv_cache_shape(8, 16, 8, 256), device="cuda")
handlers = CpuGpuOffloadingHandlers(
    gpu_block_size=16,
    cpu_block_size=16,
    num_cpu_blocks=8,
    gpu_caches={"layer": cache},
    attn_backends={"layer": Attention},
)
torch.cuda.synchronize()
cache[1].add_(1)
blocks = GPULoadStoreSpec([1]), CPULoadStoreSpec([0])
handlers.gpu_to_cpu_handler.transfer_async(0, blocks)
torch.cuda.synchronize()
