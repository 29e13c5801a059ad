"""A backward pass under ZeRO 3 of a model that computes on a stream of its own."""
import autograd_worker
import deepspeed_alone  # before DeepSpeed
import torch_alone  # before DeepSpeed
import deepspeed
import torch

n = 1 << 16


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stream = torch.cuda.Stream()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.ones(n)) for _ in range(6))

    def forward(self, x):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for weight in self.weights:
                x = x * weight
        torch.cuda.current_stream().wait_stream(self.stream)
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
            "stage": 3,
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
