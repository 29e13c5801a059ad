"""A backward pass under ZeRO 2 whose gradients come from two streams, as compiled code makes them."""
import autograd_worker
import deepspeed_alone  # before DeepSpeed
import torch_alone  # before DeepSpeed
import deepspeed
import torch

n = 1 << 16


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.ones(n)) for _ in range(6))

    def forward(self, x):
        for even, odd in zip(self.weights[0::2], self.weights[1::2]):
            x = x * even
            self.side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.side):
                x = x * odd
            torch.cuda.current_stream().wait_stream(self.side)
        return x.sum()


net = Net().cuda()
# Where the node that accumulates a gradient was made is where its gradient is accumulated.
with torch.cuda.stream(net.side):
    nodes = [weight.expand_as(weight).grad_fn.next_functions[0][0] for weight in net.weights[1::2]]
torch.cuda.synchronize()
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
