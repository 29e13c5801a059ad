"""A backward pass under ZeRO 2 with overlapped reduction, of more gradients than fit the two buckets."""
import autograd_worker
import deepspeed_alone  # before DeepSpeed
import torch_alone  # before DeepSpeed
import deepspeed
import torch

n = 1 << 16


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.ones(n)) for _ in range(6))

    def forward(self, x):
        for weight in self.weights:
            x = x * weight
        return x.sum()


net = Net().cuda()
deepspeed.init_distributed("gloo")
engine, *_ = deepspeed.initialize(
    model=net,
    optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
    config={
        "train_micro_batch_size_per_gpu": 1,
        "zero_allow_untested_optimizer": True,
        "zero_optimization": {
            "stage": 2,
            "overlap_comm": True,
            "contiguous_gradients": True,
            "reduce_bucket_size": 2 * n,
        },
    },
)
for _ in range(2):
    engine.backward(engine(torch.ones(n, device="cuda")))
    engine.step()
torch.cuda.synchronize()
autograd_worker.settle()
