"""A block of the cache of keys and values is stored on the CPU after the step that computes it."""
import logging
import types

import stand_in

stand_in.rest_of("vllm")
import torch
import vllm.logger
import vllm.platforms

vllm.logger.init_logger = logging.getLogger
vllm.platforms.current_platform.is_rocm = lambda: False
vllm.platforms.current_platform.set_device = torch.cuda.set_device
from vllm.v1.simple_kv_offload.metadata import SimpleCPUOffloadMetadata
from vllm.v1.simple_kv_offload.worker import SimpleCPUOffloadWorker

cache = torch.zeros(8, 2, 16, 8, 256, device="cuda")
worker = SimpleCPUOffloadWorker(None, types.SimpleNamespace(num_blocks=8), cache.nbytes)
worker.register_kv_caches({"layer": cache})
torch.cuda.synchronize()
cache[1].add_(1)
worker.bind_connector_metadata(SimpleCPUOffloadMetadata(store_event=0, store_gpu_blocks=[1], store_cpu_blocks=[0]))
worker.get_finished(set())
# Copies are issued by a thread of the worker.
worker._backend.shutdown()
worker._backend._thread.join()
torch.cuda.synchronize()
