"""Owns how a command is run: its time limit, its process group, what it printed.

A command that takes too long is killed with everything it started. So is everything that still
runs when the verb itself is ended by a signal.
"""

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import threading
import time

# The exit code of a command that took too long.
TOO_LONG = 124
# Process groups that run, and for each how many seconds it may take to end by itself.
_RUNNING = {}
# Folders that go when this process is ended by a signal.
TEMPORARY = set()
_LOCK = threading.Lock()


@dataclasses.dataclass
class Ran:
    """How a command ended."""

    code: int
    out: bytes
    err: bytes
    wall: float
    hung: bool = False

    @property
    def text(self):
        return self.out.decode(errors="replace")

    @property
    def errors(self):
        return self.err.decode(errors="replace")

    @property
    def missing(self):
        """The Python package whose absence ended the program, or None."""
        found = re.search(rb"No module named '([\w.]+)'", self.err) if self.code else None
        return found[1].decode() if found else None

    def last_words(self, room=300):
        """The end of what it said, for a row that explains a failure."""
        return self.errors.strip()[-room:]


def environment(**more):
    """The environment of a program under test: this one's, without what would change StreamSan."""
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD" and not k.startswith("STREAMSAN_OPTIONS")}
    return env | {k: str(v) for k, v in more.items()}


def execute(command, timeout, env=None, cwd=None):
    """Runs a command without standard input. One that cannot be started ends with 127."""
    began = time.monotonic()
    try:
        child = subprocess.Popen(
            [str(c) for c in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment() if env is None else env,
            cwd=cwd,
            start_new_session=True,
        )
    except OSError as error:
        return Ran(127, b"", str(error).encode(), 0.0)
    with watched(child.pid):
        try:
            out, err = child.communicate(timeout=timeout)
            return Ran(child.returncode, out, err, time.monotonic() - began)
        except subprocess.TimeoutExpired:
            kill_group(child.pid)
        try:
            out, err = child.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            out, err = b"", b""
        return Ran(TOO_LONG, out, err, time.monotonic() - began, hung=True)


@contextlib.contextmanager
def watched(pid, grace=0.0):
    """Meanwhile, a signal that ends this process ends that group first."""
    with _LOCK:
        _RUNNING[pid] = grace
    try:
        yield
    finally:
        with _LOCK:
            _RUNNING.pop(pid, None)


def kill_group(pid, number=signal.SIGKILL):
    try:
        os.killpg(pid, number)
    except OSError:
        pass


def _is_over(pid):
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except OSError:
        return True


def end_children_on_signals():
    """Makes SIGTERM, SIGHUP and SIGINT end what runs before they end this process."""

    def ended(number, _):
        for pid, grace in list(_RUNNING.items()):
            kill_group(pid, signal.SIGTERM if grace else signal.SIGKILL)
        until = time.monotonic() + max(_RUNNING.values(), default=0.0)
        while any(grace and not _is_over(pid) for pid, grace in list(_RUNNING.items())) and time.monotonic() < until:
            time.sleep(0.1)
        for pid in list(_RUNNING):
            kill_group(pid)
        for folder in TEMPORARY:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, ended)
