"""Owns what one call of a verb shares: its clock, its folders, its selection, its time limits.

It runs programs under StreamSan; what they should have shown is the verb's to judge.
"""

import concurrent.futures
import importlib.util
import os
import pathlib
import shutil
import tempfile
import threading
import time

from . import cuda
from .binaries import Binaries, find
from .compiler import Compiler
from .errors import CannotRun
from .process import TEMPORARY, environment, execute


class Session:
    """One call of a verb."""

    def __init__(self, verb, args):
        self.verb, self.args, self.began = verb, args, time.monotonic()
        self.lock, self._compiler = threading.Lock(), None
        found = find(args.bin)
        self.out = pathlib.Path(args.out or os.environ.get("OUT") or tempfile.mkdtemp(prefix=f"streamsan-{verb}-"))
        self.out.mkdir(parents=True, exist_ok=True)
        self.out = self.out.resolve()
        self.work = pathlib.Path(tempfile.mkdtemp(prefix=f"streamsan-{verb}-work-"))
        TEMPORARY.add(self.work)
        self.binaries = Binaries(found, self.work)
        self.cores = os.cpu_count() or 2

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.work, ignore_errors=True)

    @property
    def compiler(self):
        with self.lock:
            self._compiler = self._compiler or Compiler(self.work)
            return self._compiler

    # ---- time

    def elapsed(self):
        return time.monotonic() - self.began

    def left(self):
        return self.args.budget - self.elapsed()

    def limit(self, factor=1.0):
        """The time limit of one program, within what is left of the budget."""
        return max(1.0, min(self.args.timeout * factor, self.left()))

    def say(self, text):
        """A line of progress, with the time."""
        with self.lock:
            print(f"[{self.elapsed():6.1f}] {text}", flush=True)

    # ---- selection

    def wanted(self, name):
        return not self.args.only or any(word in name for word in self.args.only)

    def pick(self, cases, name):
        """The cases that --only asks for."""
        return [case for case in cases if self.wanted(name(case))]

    # ---- running

    def jobs(self, usual=None):
        """How many programs run at a time, as a pool. `usual`: where there is no default."""
        return concurrent.futures.ThreadPoolExecutor(self.args.jobs or usual)

    def streamsan(self, *words):
        return [self.binaries.streamsan, *map(str, words)]

    def run(self, command, factor=1.0, env=None, cwd=None):
        """Runs a command within its time limit and the budget."""
        return execute(command, self.limit(factor), environment() if env is None else env, cwd)

    def simulated(self, arch):
        """Variables by which the driver is a simulated GPU of an architecture, with --sim."""
        place = {"LD_LIBRARY_PATH": f"{self.binaries.folder}/sim", "STREAMSAN_SIM": f"arch={arch}"}
        return place if self.args.sim else {}

    def need_gpu(self):
        """Names the GPUs, or ends the verb where there is none."""
        if not cuda.devices():
            hint = "; --sim runs on the simulated GPU" if self.args.sim is False else ""
            raise CannotRun(f"no GPU here: nvidia-smi -L lists none{hint}")
        self.say("; ".join(cuda.devices()))
        return cuda.devices()

    @staticmethod
    def need_python(package):
        if importlib.util.find_spec(package) is None:
            raise CannotRun(f"this Python has no {package}")

    # ---- ending

    def finish(self, table, strict=False):
        """Writes the results and gives the verb's exit code."""
        with self.lock:
            print(f"{self.verb}: {table.summary()}; {self.elapsed():.0f} s; results in {self.out}", flush=True)
        table.write(self.out, self.verb, self.elapsed(), strict)
        return table.exit_code(strict)
