"""`streamsan fleet check`: the driver.

Owns the order of tasks, retries with their errors, progress, and the exit code. Holds the list of traces and a few numbers; rows
go from the workers to the dataset.
"""

import dataclasses
import sys

from . import dataset, engines, sources, task

INTERNAL, FINDINGS = 70, 66


@dataclasses.dataclass
class State:
    attempt: int = 1
    errors: list = dataclasses.field(default_factory=list)


def main(given):
    made, aside = sources.tasks(given.sources, given.layout, given.date)
    if not made:
        raise sources.Wrong(f"--layout '{given.layout}' fits none of {len(aside)} files, such as {aside[0]}")
    fs, root = dataset.file_system(given.out)
    there = dataset.settled(fs, root.rstrip("/"))
    for one in made:
        one.date = there.get(one.name, one.date)
    say(given, f"{sum(len(t.traces) for t in made)} traces in {len(made)} tasks"
        + (f"; {len(aside)} files that do not fit the layout are left out" if aside else ""))
    engine = engines.of(given.engine, given.jobs)
    try:
        total = drive(given, made, engine)
    finally:
        engine.close()
    say(given, f"{total['traces']} traces checked, {total['bad']} not read whole, {total['findings']} rows of findings"
        + (f", {total['kept']} tasks were there already" if total["kept"] else "")
        + (f", {total['retries']} retries" if total["retries"] else ""))
    if total["bad"]:
        say(given, f"'streamsan fleet report {given.out}' names the traces that were not read")
    return FINDINGS if total["fails"] else INTERNAL if total["bad"] else 0


def drive(given, made, engine):
    """Runs all tasks. Each of them ends in rows: of its findings, or of its errors."""
    waiting = list(range(len(made)))[::-1]
    states = {}
    total = dict.fromkeys(("traces", "bad", "findings", "kept", "retries", "fails"), 0)
    with progress(given, sum(t.size for t in made)) as bar:
        while waiting or engine.flying:
            while waiting and len(engine.flying) < engine.slots:
                index = waiting.pop()
                state = states.get(index) or State()
                arguments = {"task": made[index], "out": given.out, "options": given.analyzer, "attempt": state.attempt,
                             "errors": state.errors, "timeout": given.timeout, "last": state.attempt > given.retries,
                             "again": given.again}
                engine.start(index, task.run, arguments)
            index, ended = engine.wait()
            if isinstance(ended, Exception):
                state = states.setdefault(index, State())
                state.errors.append(one_line(ended))
                if state.attempt <= given.retries:
                    state.attempt += 1
                    total["retries"] += 1
                    waiting.append(index)
                    continue
                ended = task.lost(made[index], given.out, given.analyzer, state.attempt, state.errors)
            states.pop(index, None)
            for name in ("traces", "bad", "findings", "kept", "fails"):
                total[name] += int(ended.get(name, 0))
            bar.update(made[index].size)
    return total


def one_line(error):
    """The error in one line. Ray puts where it happened behind the first one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:500]


def progress(given, size):
    from tqdm import tqdm

    return tqdm(total=size, unit="B", unit_scale=True, desc="traces", disable=given.quiet or None, file=sys.stderr)


def say(given, text):
    if not given.quiet:
        print(f"streamsan: {text}", file=sys.stderr)
