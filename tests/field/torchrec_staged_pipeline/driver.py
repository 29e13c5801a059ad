"""Batches go through a pipeline with one stage, a copy to the GPU on a stream of its own, and into a model."""
import stand_in

stand_in.packages("fbgemm_gpu", "torchmetrics", "iopath", "pyre_extensions", "tensordict")
import torch
import torch_alone  # before TorchRec
from torchrec.distributed.train_pipeline import StagedTrainPipeline
from torchrec.distributed.train_pipeline.utils import PipelineStage

n = 1 << 20


def upload(batch):
    return batch.to("cuda", non_blocking=True)


weight = torch.ones(n, device="cuda")
torch.cuda.synchronize()
stage = PipelineStage(name="upload", runnable=upload, stream=torch.cuda.Stream())
pipeline = StagedTrainPipeline([stage])
batches = iter([torch.ones(n).pin_memory() for _ in range(4)])
while (batch := pipeline.progress(batches)) is not None:
    result = batch * weight
torch.cuda.synchronize()
