"""What the drivers of DeepSpeed's bugs share: one process is the whole group, over Gloo.

A source release has no file that says which kernels were compiled at its set-up: a stand-in says
none."""
import os
import socket
import sys
import types

with socket.socket() as port:
    port.bind(("127.0.0.1", 0))
    os.environ["MASTER_PORT"] = str(port.getsockname()[1])
os.environ.update(DS_ACCELERATOR="cuda", MASTER_ADDR="127.0.0.1", RANK="0", LOCAL_RANK="0", WORLD_SIZE="1")
versions = {"version": "0.0", "bf16_support": False, "cuda_version": "0.0", "nccl_version": "0.0", "hip_version": "0.0"}
sys.modules["deepspeed.git_version_info"] = types.SimpleNamespace(
    version="0.0.0", git_hash="", git_branch="", installed_ops={}, compatible_ops={}, accelerator_name="", torch_info=versions
)
