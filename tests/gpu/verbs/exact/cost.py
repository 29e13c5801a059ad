"""What each mode costs, beside NVIDIA's own tool. Alone on the machine, or it says nothing."""

import re
import sys

from harness import cuda
from harness.medians import median

from .check import PROGRAMS, notes

STEP = PROGRAMS / "confirm_step.py"


def ways(check, command):
    """The same command bare, in every mode, and under compute-sanitizer."""
    yield "bare", command
    for words in ([], ["--confirm"], ["--exact"], ["--exact=all"]):
        yield (
            "".join(words).strip("-") or "summaries",
            [*check.streamsan(*words, "--no-stacks", "--error-exitcode", "0", "--"), *command],
        )
    if sanitizer := cuda.tool("compute-sanitizer"):
        yield "memcheck", [sanitizer, "--tool", "memcheck", *command]


def cost(check):
    program = check.compile(PROGRAMS / "over.cu")
    for name, command in ways(check, [program]) if program else ():
        ran = check.run(f"cost_{name}", command)
        times = " ".join(" ".join(line.split()[1:4]) for line in ran.text.splitlines() if line.startswith("TIME"))
        check.judged(ran.code == 0, name, f"exit {ran.code}: {times}; {notes(ran)}")


def step_times(ran):
    return [float(t) for line in re.findall(r"STEP (.*)", ran.errors) for t in line.split()]


def step(check):
    """A training step in every mode; its losses must stay the same."""
    bare = None
    for name, command in ways(check, [sys.executable, STEP, "clean", "7"]):
        ran = check.run(f"step_{name}", command, 90)
        middle = median(step_times(ran)[2:])
        bare = bare or (middle, ran.text)
        same = re.findall("loss.*", ran.text) == re.findall("loss.*", bare[1])
        check.judged(
            same and not ran.code,
            name,
            f"exit {ran.code}: {middle:.1f} ms, {middle / bare[0]:.1f}x; {' '.join(ran.text.split()[:2])} {notes(ran)}",
        )
    # Once the kernels have been analysed, most are left out.
    under = check.streamsan("--exact", "--no-stacks", "--error-exitcode", "0", "--")
    ran = check.run("step_later", [*under, sys.executable, STEP, "clean", "50", "0.2"], 90)
    times = step_times(ran)
    marks = " ".join(f"{median(times[at : at + 5]):.0f}" for at in range(0, len(times) - 4, 5))
    check.judged(
        ran.code == 0,
        "exact, a job of 50",
        f"exit {ran.code}: medians of five steps each: {marks} ms; {notes(ran)}; "
        f"{' '.join(re.findall('COVERAGE.*', ran.errors))}",
    )
