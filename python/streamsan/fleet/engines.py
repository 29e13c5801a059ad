"""Who runs tasks: this machine, or a Ray cluster.

Owns starting a task and waiting for one to end; tries again nothing (the driver does). At most `slots` tasks are in flight, so the
driver holds neither a queue nor results of a size that grows with the fleet.
"""

import concurrent.futures
import os

from .sources import Wrong


class Local:
    """An analyzer process each on this machine. A thread of ours does nothing but wait for it."""

    # Whether a task costs something to hand over.
    far = False

    def __init__(self, jobs):
        self.slots = jobs or os.cpu_count() or 1
        self.pool = concurrent.futures.ThreadPoolExecutor(self.slots)
        self.flying = {}

    def start(self, keys, function, calls):
        self.flying[self.pool.submit(function, calls)] = keys

    def wait(self):
        """The keys of tasks that have ended, and what the function has answered or raised."""
        done, _ = concurrent.futures.wait(self.flying, return_when=concurrent.futures.FIRST_COMPLETED)
        future = done.pop()
        key, error = self.flying.pop(future), future.exception()
        return key, error or future.result()

    def close(self):
        self.pool.shutdown(cancel_futures=True)


class Ray:
    """Calls of a function on the cluster, each on one core."""

    far = True

    def __init__(self, jobs):
        try:
            import ray
        except ImportError as error:
            raise Wrong(f"--engine ray: {error}: pip install ray, or --engine local") from error
        self.ray = ray
        # What a worker of this machine needs to find the package and the analyzer; on others they are installed.
        handed = {name: os.environ[name] for name in ("STREAMSAN_BIN", "PYTHONPATH", "STREAMSAN_CACHE") if os.environ.get(name)}
        self.ours = not ray.is_initialized()
        if self.ours:
            try:
                # Not the last cluster that was started on this machine: it may be another's, or gone.
                ray.init(address=os.environ.get("RAY_ADDRESS") or "local", runtime_env={"env_vars": handed} if handed else None,
                         log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise Wrong(f"--engine ray: no cluster: {error}") from error
        cores = int(ray.cluster_resources().get("CPU", 1)) or 1
        # Twice the cores: a worker that ends finds the next task there.
        self.slots = jobs or 2 * cores
        self.flying = {}
        # Made once: each remote function is a function that every worker has to fetch. Retries are the driver's, which keeps the
        # error of each.
        self.remote = ray.remote(num_cpus=1, max_retries=0)(call)

    def start(self, keys, function, calls):
        self.flying[self.remote.remote(function.__module__, function.__name__, calls)] = keys

    def wait(self):
        (reference,), _ = self.ray.wait(list(self.flying), num_returns=1)
        key = self.flying.pop(reference)
        try:
            return key, self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            return key, error.cause if isinstance(error.cause, Exception) else error
        except self.ray.exceptions.RayError as error:
            return key, error

    def close(self):
        if self.ours:
            self.ray.shutdown()


def call(module, name, calls):
    """On a worker: the function by name, so that nothing but names and arguments travels."""
    import importlib

    return getattr(importlib.import_module(module), name)(calls)


def of(name, jobs):
    return {"local": Local, "ray": Ray}[name](jobs)
