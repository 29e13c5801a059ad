"""Traces of programs whose kernels lie in closed libraries, to replay them without a GPU.

cuBLAS, cuBLASLt and cuDNN run only with NVIDIA's driver. What they launch is recorded here, one
trace a program (or pieces of it), in the results folder. `cargo xtask replay TRACE --code
SITE-PACKAGES` runs each launch again on the simulated GPU, with the code of the same packages from
PyPI. Needs PyTorch, and nvcc for cuBLAS by itself; about 90 s.
"""

import importlib.util
import pathlib
import sys

from harness.options import Defaults
from harness.places import TESTS
from harness.process import environment
from harness.table import ABSENT, LATE, OK, WRONG, Table

DEFAULTS = Defaults(budget=200, timeout=80)
# What comes home is limited: traces are cut into pieces, which `cat` puts together.
PIECE = 15 << 20
PYTHON = [
    ("transformer", "programs/precision/torch_transformer.py", []),
    ("resnet", "programs/precision/torch_resnet.py", []),
    ("zoo", "programs/precision/torch_zoo.py", []),
    ("operators", "programs/precision/torch_operators.py", []),
    ("attention", "frameworks/attention_forms.py", []),
]


def add_options(_):
    pass


def run(session):
    session.need_gpu()
    table = Table({"program": "14", "": "8", "MiB": ">6", "note": ""})
    commands = [(name, [sys.executable, TESTS / file, *words], "torch") for name, file, words in PYTHON]
    commands.append(("cublas", TESTS / "programs/precision/cublas.cu", None))
    for name, command, package in session.pick(commands, lambda c: c[0]):
        if session.left() < 5:
            table.row(LATE, name, LATE)
        elif package and importlib.util.find_spec(package) is None:
            table.row(ABSENT, name, ABSENT, "", f"this Python has no {package}")
        else:
            record(session, table, name, command)
    return session.finish(table)


def record(session, table, name, command):
    env = environment()
    if not isinstance(command, list):
        built = session.compiler.compile(command, "-O2", "-std=c++17", "-arch=native", "-lcublas")
        if built.path is None:
            return table.row(ABSENT, name, ABSENT, "", built.error[-200:])
        # The packages' build: the toolkit's own is on no other machine.
        command, env = [built.path], environment(LD_LIBRARY_PATH=":".join(map(str, libraries())))
    trace = session.out / f"{name}.trace"
    ran = session.run(session.streamsan("record", "-o", trace, "--", *command), env=env)
    size = trace.stat().st_size if trace.exists() else 0
    if ran.code != 0 or size == 0:
        return table.row(WRONG, name, WRONG, "", f"exit code {ran.code}: {ran.last_words()}")
    if size > PIECE:
        data = trace.read_bytes()
        for number, at in enumerate(range(0, size, PIECE)):
            (session.out / f"{name}.trace.{number:02}").write_bytes(data[at : at + PIECE])
        trace.unlink()
    return table.row(OK, name, OK, f"{size / (1 << 20):.1f}")


def libraries():
    """Where pip has put NVIDIA's libraries."""
    spec = importlib.util.find_spec("nvidia")
    roots = map(pathlib.Path, spec.submodule_search_locations if spec else [])
    return sorted({library.parent for root in roots for library in root.glob("**/libcublas.so.*")})
