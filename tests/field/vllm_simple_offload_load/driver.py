"""A block of the cache of keys and values is loaded from the CPU over one that the step before reads. With
`ordered` the loads' stream waits for that step."""
import logging
import sys
import types

import stand_in

stand_in.rest_of("vllm")
import torch
import vllm.envs
import vllm.logger
import vllm.platforms

vllm.envs.VLLM_KV_OFFLOAD_MAX_BATCH_DESCRIPTORS = 0
vllm.logger.init_logger = logging.getLogger
vllm.platforms.current_platform.is_rocm = lambda: False
vllm.platforms.current_platform.set_device = torch.cuda.set_device
from vllm.v1.simple_kv_offload.metadata import SimpleCPUOffloadMetadata
from vllm.v1.simple_kv_offload.worker import SimpleCPUOffloadWorker

cache = torch.zeros(8, 2, 16, 8, 256, device="cuda")
placed = types.SimpleNamespace(layers=["layer"], block_stride=cache[0].nbytes, layer_stride=cache.nbytes, offset=0)
config = types.SimpleNamespace(num_blocks=8, kv_cache_tensors=[placed])
worker = SimpleCPUOffloadWorker(None, config, cache.nbytes, num_cpu_blocks=8)
worker.register_kv_caches({"layer": cache})
torch.cuda.synchronize()
attended = cache[1] * 2
if "ordered" in sys.argv:
    worker.load_stream.wait_stream(torch.cuda.current_stream())
worker.bind_connector_metadata(SimpleCPUOffloadMetadata(load_event=0, load_cpu_blocks=[0], load_gpu_blocks=[1]))
worker.start_load_kv()
# Copies are issued by a thread of the worker.
worker._backend.shutdown()
worker._backend._thread.join()
torch.cuda.synchronize()
