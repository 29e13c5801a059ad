"""Models of torchvision, transformers and PyTorch, small, with random weights: a training step or some steps of generation each. Nothing was tuned
to these: what they show is how well predictions hold elsewhere. A package that is not here is left out, and named."""
import contextlib

import torch
import torch.nn.functional as F

torch.manual_seed(0)
dev = "cuda"


def train(model, x, loss=lambda y: y.float().square().mean(), steps=2, **options):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, **options)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(model(x)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def vision(name, size=64, **options):
    import torchvision

    return lambda: train(getattr(torchvision.models, name)(num_classes=10, **options).to(dev), torch.randn(4, 3, size, size, device=dev))


def vision_amp(name, size=64):
    import torchvision

    def run():
        model = getattr(torchvision.models, name)(num_classes=10).to(dev, memory_format=torch.channels_last)
        x = torch.randn(4, 3, size, size, device=dev).to(memory_format=torch.channels_last)
        scaler, optimizer = torch.amp.GradScaler(), torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
        for _ in range(2):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.float16):
                loss = F.cross_entropy(model(x), torch.tensor([0, 1, 2, 3], device=dev))
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()

    return run


def boxes():
    from torchvision import ops

    b = torch.rand(200, 4, device=dev) * 40
    b[:, 2:] += b[:, :2] + 1
    x = torch.randn(2, 8, 50, 60, device=dev, requires_grad=True)
    kept = ops.nms(b, torch.rand(200, device=dev), 0.5)
    rois = torch.cat([torch.zeros(20, 1, device=dev), b[:20]], 1)
    (ops.roi_align(x, rois, 7).sum() + ops.roi_pool(x, rois, 5).sum() + ops.ps_roi_align(x, rois, 2).sum()).backward()
    weight, offset = torch.randn(4, 8, 3, 3, device=dev, requires_grad=True), torch.randn(2, 18, 48, 58, device=dev, requires_grad=True)
    ops.deform_conv2d(x, offset, weight).sum().backward()
    return kept, ops.box_iou(b, b)


def detector():
    import torchvision

    model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None, num_classes=5).to(dev)
    image, box = torch.rand(3, 120, 160, device=dev), torch.tensor([[5.0, 5, 60, 60], [20, 30, 100, 110]], device=dev)
    sum(model([image], [{"boxes": box, "labels": torch.tensor([1, 2], device=dev)}]).values()).backward()
    model.eval()([image])


def language(kind, dtype=torch.float32, **config):
    import transformers

    def run():
        made = transformers.AutoConfig.for_model(kind, **config)
        model = transformers.AutoModelForCausalLM.from_config(made, dtype=dtype).to(dev)
        ids = torch.randint(0, made.vocab_size, (2, 33), device=dev)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        for _ in range(2):
            optimizer.zero_grad()
            model(input_ids=ids, labels=ids).loss.backward()
            optimizer.step()
        mask = torch.ones_like(ids[:, :9])
        mask[1, :4] = 0
        model.eval().generate(input_ids=ids[:, :9], attention_mask=mask, max_new_tokens=6, do_sample=True, top_k=20, top_p=0.9, pad_token_id=0)

    return run


def sequence(kind, **config):
    import transformers

    def run():
        made = transformers.AutoConfig.for_model(kind, **config)
        model = transformers.AutoModelForSeq2SeqLM.from_config(made).to(dev)
        ids = torch.randint(2, made.vocab_size, (2, 21), device=dev)
        model(input_ids=ids, labels=ids).loss.backward()
        model.eval().generate(input_ids=ids, max_new_tokens=5, num_beams=3)

    return run


def recurrent(kind, **options):
    def run():
        model = kind(48, 64, num_layers=2, **options).to(dev)
        train(model, torch.randn(17, 6, 48, device=dev), lambda y: y[0].square().mean())

    return run


def transformer(**options):
    def run():
        layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, **options)
        model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).to(dev)
        train(model, torch.randn(3, 40, 64, device=dev), fused=True)
        with torch.inference_mode():
            model.eval()(torch.randn(3, 40, 64, device=dev), src_key_padding_mask=torch.arange(40, device=dev) > torch.tensor([[39], [20], [7]], device=dev))

    return run


def attention(backend, dtype, **options):
    def run():
        from torch.nn.attention import sdpa_kernel

        for heads, groups, length, size in ((4, 4, 64, 64), (8, 2, 77, 32), (6, 6, 130, 128)):
            q = torch.randn(2, heads, length, size, device=dev, dtype=dtype, requires_grad=True)
            k, v = (torch.randn(2, groups, length, size, device=dev, dtype=dtype, requires_grad=True) for _ in range(2))
            with sdpa_kernel(backend), contextlib.suppress(RuntimeError):
                F.scaled_dot_product_attention(q, k, v, enable_gqa=heads != groups, **options).float().sum().backward()

    return run


def graph_network():
    from torch_geometric.nn import GATConv, GCNConv, SAGEConv

    edges = torch.randint(0, 100, (2, 600), device=dev)
    for kind in (GCNConv, SAGEConv, GATConv):
        train(torch.nn.ModuleList([kind(16, 8)]).to(dev)[0], torch.randn(100, 16, device=dev), lambda y: y.sum(), 0)
        kind(16, 8).to(dev)(torch.randn(100, 16, device=dev), edges).sum().backward()


def optimizers():
    for kind, options in ((torch.optim.SGD, {"momentum": 0.9}), (torch.optim.Adam, {"amsgrad": True}), (torch.optim.Adagrad, {}), (torch.optim.RMSprop, {}),
                          (torch.optim.NAdam, {}), (torch.optim.Adadelta, {}), (torch.optim.LBFGS, {"max_iter": 3}), (torch.optim.Rprop, {})):
        model = torch.nn.Sequential(torch.nn.Linear(33, 65), torch.nn.Tanh(), torch.nn.Linear(65, 3)).to(dev)
        optimizer, x = kind(model.parameters(), **options), torch.randn(16, 33, device=dev)

        def closure():
            optimizer.zero_grad()
            loss = model(x).square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)


B = torch.nn.attention.SDPBackend
LLAMA = dict(vocab_size=301, hidden_size=128, intermediate_size=192, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=2)
CASES = {
    "mobilenet_v3": lambda: vision("mobilenet_v3_small")(), "efficientnet": lambda: vision("efficientnet_b0")(), "densenet": lambda: vision("densenet121")(),
    "shufflenet": lambda: vision("shufflenet_v2_x0_5")(), "convnext": lambda: vision("convnext_tiny")(), "swin": lambda: vision("swin_t")(),
    "vit": lambda: vision("vit_b_32", 224)(), "inception": lambda: vision("googlenet", 96, aux_logits=False, init_weights=False)(),
    "resnet18_amp": lambda: vision_amp("resnet18")(), "regnet_amp": lambda: vision_amp("regnet_y_400mf")(), "boxes": boxes, "detector": detector,
    "gpt2": lambda: language("gpt2", vocab_size=301, n_embd=128, n_layer=2, n_head=4)(), "llama": lambda: language("llama", torch.bfloat16, **LLAMA)(),
    "qwen3": lambda: language("qwen3", torch.bfloat16, head_dim=32, **LLAMA)(), "mixtral": lambda: language("mixtral", num_local_experts=4, **LLAMA)(),
    "gemma2": lambda: language("gemma2", head_dim=32, **LLAMA)(), "mamba": lambda: language("mamba", vocab_size=301, hidden_size=64, num_hidden_layers=2, state_size=8)(),
    "t5": lambda: sequence("t5", vocab_size=301, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4, decoder_start_token_id=0)(),
    "lstm": recurrent(torch.nn.LSTM, bidirectional=True, dropout=0.1), "gru": recurrent(torch.nn.GRU), "rnn": recurrent(torch.nn.RNN),
    "lstm_projected": recurrent(torch.nn.LSTM, proj_size=32), "transformer": transformer(), "transformer_gelu": transformer(activation="gelu", norm_first=True),
    "flash": attention(B.FLASH_ATTENTION, torch.float16, is_causal=True), "flash_dropout": attention(B.FLASH_ATTENTION, torch.bfloat16, dropout_p=0.1),
    "efficient": attention(B.EFFICIENT_ATTENTION, torch.float32), "efficient_causal": attention(B.EFFICIENT_ATTENTION, torch.float32, is_causal=True),
    "efficient_half": attention(B.EFFICIENT_ATTENTION, torch.float16, is_causal=True), "cudnn_attention": attention(B.CUDNN_ATTENTION, torch.bfloat16, is_causal=True),
    "math": attention(B.MATH, torch.float32, is_causal=True), "graph_network": graph_network, "optimizers": optimizers,
}

ran, failed = 0, []
for name, case in CASES.items():
    try:
        case()
        torch.cuda.synchronize()
        ran += 1
    except Exception as error:
        failed.append(f"{name} ({type(error).__name__} {(str(error) or '-').splitlines()[0][:80]})")
print(f"MODELS {ran} of {len(CASES)}; not here: {', '.join(failed)}")
