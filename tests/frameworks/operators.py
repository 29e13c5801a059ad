"""PyTorch's operators on the GPU against the same operators on the CPU.

Each operator runs, forward and backward, on inputs out of PyTorch's own table, for several types.
Each pair of operator and type is a process with a time limit, so that one that fails, hangs or dies
says nothing of the others. Prints a table, and what is missing by count. Exit code 0: no result was
wrong and none is missing.

Needs a process that finds a GPU (a real or a simulated one) and the package `expecttest`.

A result is `ok` within the tolerances of `torch.testing.assert_close`, else `near` within 1e-3 of
each element (what PyTorch's own comparison with the CPU allows) or of the tensor's largest one
(half precision: within four of its steps), else `wrong`. Half precision is held against the CPU in
half and in single precision: the CPU rounds in other places.
"""

import argparse
import collections
import json
import os
import re
import select
import signal
import sys
import tempfile
import time

import torch
import torch.utils._triton

import operator_list

DTYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int64": torch.int64,
    "bool": torch.bool,
}
# Best first: a pair is as good as its worst sample.
VERDICTS = ["ok", "near", "wrong", "error", "refused", "late", "died"]
LOOSE = 1e-3
STEPS = {torch.float16: 4 * 2.0**-10, torch.bfloat16: 4 * 2.0**-7}
# Where equal inputs may come in any order, or in any number of ways.
ORDERS_EQUALS = {"sort", "argsort", "msort", "topk", "kthvalue", "median"}


def table():
    """PyTorch's table by name. Reading it must not start CUDA: the processes are forked later."""
    answers = [
        (torch.cuda, "is_available", lambda: True),
        (torch.cuda, "device_count", lambda: 1),
        (torch.cuda, "get_device_capability", lambda *_: (8, 0)),
        (torch.utils._triton, "has_triton", lambda: False),
    ]
    kept = [(module, name, getattr(module, name)) for module, name, _ in answers]
    for module, name, answer in answers:
        setattr(module, name, answer)
    try:
        from torch.testing._internal.common_methods_invocations import op_db
    finally:
        for module, name, value in kept:
            setattr(module, name, value)
    assert not torch.cuda.is_initialized()
    ops = {}
    for op in op_db:
        # Variants (such as rounding modes of a division) stand beside each other under one name.
        ops.setdefault(op.name, []).append(op)
    return ops


def convert(value, leaf):
    """The same structure with other leaves."""
    if isinstance(value, (list, tuple)):
        made = [convert(item, leaf) for item in value]
        return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)
    if isinstance(value, dict):
        return {key: convert(item, leaf) for key, item in value.items()}
    return leaf(value)


def on_gpu(value):
    if isinstance(value, torch.Tensor):
        return value.detach().to("cuda").requires_grad_(value.requires_grad)
    if isinstance(value, torch.device) or value == "cpu":
        return "cuda"
    return value


def single(value):
    """Half precision as single precision."""
    half = (torch.float16, torch.bfloat16)
    if isinstance(value, torch.Tensor):
        made = value.detach().to(torch.float32) if value.dtype in half else value.detach().clone()
        return made.requires_grad_(value.requires_grad)
    return torch.float32 if value in half else value


def tensors(value):
    found = []
    convert(value, lambda leaf: found.append(leaf) if isinstance(leaf, torch.Tensor) else None)
    return found


def results(op, sample, leaf, seed_type):
    """What an operator returns, and its gradients, on the CPU."""
    arguments = convert((sample.input, list(sample.args), sample.kwargs), leaf)
    torch.manual_seed(1)
    out = op(arguments[0], *arguments[1], **arguments[2])
    out = sample.output_process_fn_grad(out)
    values = tensors(list(out) if isinstance(out, (list, tuple)) else [out])
    if not values and isinstance(out, (bool, int, float)):
        values = [torch.tensor(out)]
    through = [value for value in values if value.requires_grad]
    into = [value for value in tensors(list(arguments)) if value.requires_grad]
    gradients = []
    if through and into:
        generator = torch.Generator().manual_seed(2)
        draw = lambda value: torch.randn(value.shape, generator=generator).to(seed_type or value.dtype)
        cotangents = [draw(value).to(value.dtype).to(value.device) for value in through]
        gradients = torch.autograd.grad(through, into, cotangents, allow_unused=True)
    back = lambda value: value.detach().cpu() if value is not None else None
    return [back(value) for value in values], [back(value) for value in gradients]


def is_near(mine, wanted):
    """Whether two tensors agree as far as the tensor's largest element lets one expect."""
    if mine.shape != wanted.shape or not mine.dtype.is_floating_point or not mine.numel():
        return False
    mine, wanted, step = mine.double(), wanted.double(), STEPS.get(mine.dtype, LOOSE)
    finite = wanted.isfinite()
    if not torch.equal(mine[~finite].nan_to_num(), wanted[~finite].nan_to_num()) or not finite.any():
        return False
    return bool(((mine - wanted)[finite].abs() <= step * wanted[finite].abs().max()).all())


def compared(ours, references):
    """`ok`, `near` or `wrong`, and why."""

    def closeness(reference):
        found = ("ok", "")
        if len(ours) != len(reference):
            return "wrong", f"{len(ours)} tensors instead of {len(reference)}"
        for mine, other in zip(ours, reference):
            if (mine is None) != (other is None):
                return "wrong", "one has no gradient"
            if mine is None:
                continue
            # The tolerance is that of the narrower type.
            wanted = other.to(mine.dtype)
            for tolerance, verdict in (({}, "ok"), ({"rtol": LOOSE, "atol": LOOSE}, "near")):
                try:
                    torch.testing.assert_close(mine, wanted, equal_nan=True, check_stride=False, **tolerance)
                    break
                except (AssertionError, ValueError) as error:
                    why = " ".join(str(error).split())[:300]
            else:
                verdict = "near" if is_near(mine, wanted) else "wrong"
            found = max(found, (verdict, why if verdict == "wrong" else ""), key=lambda of: VERDICTS.index(of[0]))
        return found

    return min((closeness(reference) for reference in references), key=lambda found: VERDICTS.index(found[0]))


def is_defined(op, sample):
    """Whether only one result is right: nothing is drawn, and no equal inputs are put in order."""
    drawn = sample.kwargs.get("training") and "attention" in op.name
    stable = sample.kwargs.get("stable", False)
    equals = op.name in ORDERS_EQUALS and not stable and len(sample.input.unique()) < sample.input.numel()
    return not drawn and not equals


def worse(one, other):
    return max(one, other, key=VERDICTS.index)


def check(ops, dtype, most):
    """Runs all variants of an operator for one type, and says how they came out."""
    told = {"forward": None, "backward": None, "samples": 0, "why": []}
    for op in ops:
        if dtype not in op.supported_dtypes("cuda") or dtype not in op.supported_dtypes("cpu"):
            continue
        grad = op.supports_autograd and dtype.is_floating_point
        grad = grad and dtype in op.supported_backward_dtypes("cuda") and dtype in op.supported_backward_dtypes("cpu")
        torch.manual_seed(0)
        samples = [one for one in op.sample_inputs("cpu", dtype, requires_grad=grad) if is_defined(op, one)]
        step = max(1, len(samples) // most)
        for sample in samples[::step][:most]:
            references = []
            for leaf in [lambda value: value] + [single] * (dtype in (torch.float16, torch.bfloat16)):
                try:
                    references.append(results(op, sample, leaf, dtype if dtype.is_floating_point else None))
                except Exception:
                    continue
            if not references:
                continue
            told["samples"] += 1
            try:
                out, gradients = results(op, sample, on_gpu, dtype if dtype.is_floating_point else None)
            except Exception as error:
                text = " ".join(str(error).split())
                told["why"].append(f"{type(error).__name__}: {text[-400:]}")
                told["forward"] = worse(told["forward"] or "ok", "error")
                return told
            parts = [("forward", out, [made for made, _ in references])]
            if gradients:
                parts.append(("backward", gradients, [made for _, made in references]))
            for part, mine, theirs in parts:
                verdict, why = compared(mine, theirs)
                told[part] = worse(told[part] or "ok", verdict)
                if verdict == "wrong":
                    told["why"].append(f"{part}, {op.variant_test_name or op.name}: {why}")
    return told


def run_here(ops, dtype, most, out, status, log):
    """In the forked process: never returns."""
    os.environ["STREAMSAN_SIM_STATUS"] = status
    with open(log, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        torch.set_num_threads(1)
        told = check(ops, dtype, most)
    except BaseException as error:
        told = {"forward": "error", "backward": None, "samples": 0, "why": [f"{type(error).__name__}: {error}"]}
    os.write(out, json.dumps(told).encode())
    # No handlers: the process is a copy.
    os._exit(0)


class Running:
    """A pair that runs."""

    def __init__(self, name, ops, dtype, args, folder):
        self.name, self.dtype = name, dtype
        self.status, self.log = (os.path.join(folder, f"{name}.{dtype}.{end}") for end in ("status", "log"))
        self.begin = time.monotonic()
        self.reader, writer = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            run_here(ops, DTYPES[dtype], args.samples, writer, self.status, self.log)
        os.close(writer)
        self.text = b""

    def finish(self, late):
        """The verdict."""
        if late:
            os.kill(self.process, signal.SIGKILL)
        os.close(self.reader)
        _, ended = os.waitpid(self.process, 0)
        told = {"forward": None, "backward": None, "samples": 0, "why": []}
        if self.text:
            told = json.loads(self.text)
        elif late:
            told["forward"] = "late"
        else:
            told["forward"] = "died"
            told["why"] = [f"signal {os.WTERMSIG(ended)}" if os.WIFSIGNALED(ended) else f"exit {ended >> 8}"]
        refused = []
        if os.path.exists(self.status):
            with open(self.status, encoding="utf-8", errors="replace") as file:
                # Which code ran is told there, too.
                lines = (line.strip() for line in file if not line.startswith("ran: "))
                refused = list(dict.fromkeys(line for line in lines if line))
        if refused and told["forward"] in ("error", "wrong", "died", "late", "near", "ok"):
            told.update(forward="refused", refused=refused)
        told.update(name=self.name, dtype=self.dtype, seconds=round(time.monotonic() - self.begin, 2))
        return told


def sweep(pairs, args, folder, show):
    waiting, running, done = list(reversed(pairs)), [], []
    while waiting or running:
        while waiting and len(running) < args.jobs:
            running.append(Running(*waiting.pop(), args, folder))
        ready, _, _ = select.select([one.reader for one in running], [], [], 0.2)
        for one in list(running):
            late = time.monotonic() - one.begin > args.limit
            ended = False
            if one.reader in ready:
                piece = os.read(one.reader, 1 << 16)
                one.text += piece
                ended = not piece
            if ended or late:
                running.remove(one)
                done.append(one.finish(late and not ended))
                show(done[-1])
    return done


def cell(told):
    if told is None or told["forward"] is None:
        return "-"
    parts = [told["forward"]]
    if told["backward"] and told["forward"] in ("ok", "near", "wrong"):
        parts.append(told["backward"])
    return parts[0] if len(set(parts)) == 1 else "/".join(parts)


def short(reason):
    """A reason without what differs from kernel to kernel: of an instruction its name."""
    instruction = re.search(r"was refused: .*?(?:@!?U?P\d+ )?\b([A-Z][A-Z0-9]*[A-Z0-9.]+)\b", reason)
    if reason.startswith("kernel ") and instruction:
        return f"instruction {instruction[1]}"
    # What a compiler at run time says ends with the cause.
    return reason if len(reason) < 200 else f"{reason[:80]} ... {reason[-110:]}"


def summary(done):
    by_name = collections.defaultdict(dict)
    for told in done:
        by_name[told["name"]][told["dtype"]] = told
    width = max((len(name) for name in by_name), default=8)
    dtypes = [dtype for dtype in DTYPES if any(dtype in row for row in by_name.values())]
    print(f"{'operator':{width}}  " + "  ".join(f"{dtype:10}" for dtype in dtypes))
    for name, row in by_name.items():
        print(f"{name:{width}}  " + "  ".join(f"{cell(row.get(dtype)):10}" for dtype in dtypes).rstrip())
    ran = [told for told in done if told["forward"] is not None]
    for dtype in dtypes:
        counts = collections.Counter(
            worse(told["forward"], told["backward"] or "ok") for told in ran if told["dtype"] == dtype
        )
        print(f"{dtype}: {sum(counts.values())} operators: "
              + ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]))
    missing = collections.defaultdict(list)
    for told in ran:
        for reason in told.get("refused") or (told["why"][:1] if told["forward"] in ("error", "died") else []):
            missing[short(reason)].append(f"{told['name']}:{told['dtype']}")
    if missing:
        print("\nMissing, by the number of operators and types that stop at it:")
        for reason, pairs in sorted(missing.items(), key=lambda item: -len(item[1])):
            print(f"{len(pairs):5}  {reason}  ({', '.join(pairs[:3])}{', ...' if len(pairs) > 3 else ''})")
    wrong = [told for told in ran if "wrong" in (told["forward"], told["backward"])]
    if wrong:
        print("\nWrong:")
        for told in wrong:
            print(f"  {told['name']} {told['dtype']}: {'; '.join(told['why'][:2])[:400]}")
    return all(told["forward"] in ("ok", "near") and told["backward"] in (None, "ok", "near") for told in ran)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="operators (default: the list in operator_list.py)")
    parser.add_argument("--family", action="append", choices=operator_list.FAMILIES, help="all of a family")
    parser.add_argument("--dtype", action="append", choices=DTYPES, help="default: all five")
    parser.add_argument("--samples", type=int, default=3, help="inputs of each variant of an operator")
    parser.add_argument("--limit", type=float, default=60, help="seconds for an operator and type")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", help="write all verdicts to a file")
    parser.add_argument("--verbose", action="store_true", help="say each verdict when it is there")
    args = parser.parse_args()
    ops = table()
    chosen = args.names or operator_list.names(args.family)
    unknown = [name for name in chosen if name not in ops]
    if unknown:
        parser.error(f"PyTorch's table has no {', '.join(unknown)}")
    pairs = [(name, ops[name], dtype) for name in chosen for dtype in args.dtype or DTYPES]

    def show(told):
        if args.verbose and told["forward"]:
            reason = (told.get("refused") or told["why"] or [""])[0]
            print(f"{told['name']} {told['dtype']}: {cell(told)} {told['seconds']} s {reason[:200]}", flush=True)

    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="operators-") as folder:
        done = sweep(pairs, args, folder, show)
    order = {pair[0::2]: at for at, pair in enumerate(pairs)}
    done.sort(key=lambda told: order[(told["name"], told["dtype"])])
    good = summary(done)
    print(f"{len({told['name'] for told in done})} operators, {time.monotonic() - begin:.0f} s")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(done, file, indent=1)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
