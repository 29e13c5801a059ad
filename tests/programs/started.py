"""Runs ctypes_race.py where Python's launchers would: in a process of multiprocessing (spawn, forkserver, fork), or, as a notebook's kernel
does, from a cell that is no file in a process started with an environment of its own making. Ends with that process's exit code."""
import multiprocessing
import os
import pathlib
import runpy
import subprocess
import sys

RACE = pathlib.Path(__file__).with_name("ctypes_race.py")
CELL = "exec(compile(open({!r}).read(), '/tmp/ipykernel_1/2.py', 'exec'))"


def work():
    runpy.run_path(str(RACE))


if __name__ == "__main__":
    how = sys.argv[1]
    if how in ("cell", "cleared"):
        # Launchers make the environment anew out of their own, or out of nothing.
        env = dict(os.environ) if how == "cell" else {"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
        sys.exit(subprocess.run([sys.executable, "-c", CELL.format(str(RACE))], env=env).returncode)
    process = multiprocessing.get_context(how).Process(target=work)
    process.start()
    process.join()
    sys.exit(process.exitcode)
