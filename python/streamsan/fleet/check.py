"""`streamsan fleet check`: the driver.

Owns the order of tasks, retries with their errors, progress, and the exit code. Holds the list of traces and a few numbers; rows
go from the workers to the dataset.
"""

import dataclasses
import sys

from . import dataset, engines, report, sources, task

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
        if one.guessed:
            one.date = there.get(one.name, one.date)
    say(given, f"{count(sum(len(t.traces) for t in made), 'trace')} in {count(len(made), 'task')}"
        + ("; " + count(len(aside), "file that does not fit the layout is left out", "files that do not fit the layout are left out") if aside else ""))
    engine = engines.of(given.engine, given.jobs)
    try:
        total = drive(given, made, engine)
    finally:
        engine.close()
    say(given, f"{count(total['traces'], 'trace')} checked, {total['bad']} not read whole, {count(total['findings'], 'row')} of findings"
        + (f", {count(total['kept'], 'task was', 'tasks were')} there already" if total["kept"] else "")
        + (f", {count(total['retries'], 'retry', 'retries')}" if total["retries"] else ""))
    if total["bad"]:
        say(given, f"'streamsan fleet report {given.out}' names the traces that were not read")
    return FINDINGS if total["fails"] else INTERNAL if total["bad"] else 0


# The most tasks, and bytes of traces, that a worker is handed at once.
TOGETHER, BYTES = 8, 64 << 20


def drive(given, made, engine):
    """Runs all tasks. Each of them ends in rows: of its findings, or of its errors."""
    waiting = list(range(len(made)))[::-1]
    states = {}
    total = dict.fromkeys(("traces", "bad", "findings", "kept", "retries", "fails"), 0)
    # Handing over costs a few milliseconds: small tasks go together where there are plenty.
    most = max(1, min(TOGETHER, len(made) // (4 * engine.slots))) if engine.far else 1
    with progress(given, sum(t.size for t in made)) as bar:
        while waiting or engine.flying:
            while waiting and len(engine.flying) < engine.slots:
                indexes = taken(waiting, made, states, most)
                engine.start(indexes, task.run_all, [arguments(given, made[i], states.get(i) or State()) for i in indexes])
            indexes, ended = engine.wait()
            if isinstance(ended, Exception):
                # The worker died: what it had done is written already.
                ended = [task.one_line(ended)] * len(indexes)
            for index, outcome in zip(indexes, ended):
                state = states.setdefault(index, State())
                if isinstance(outcome, str):
                    state.errors.append(outcome)
                    if state.attempt <= given.retries:
                        state.attempt += 1
                        total["retries"] += 1
                        waiting.append(index)
                        continue
                    outcome = task.lost(made[index], given.out, given.analyzer, state.attempt, state.errors)
                # What a worker had written before it died was not there already.
                outcome = {**outcome, "kept": outcome.get("kept") and state.attempt == 1}
                states.pop(index)
                for name in ("traces", "bad", "findings", "kept", "fails"):
                    total[name] += int(outcome[name] or 0)
                bar.update(made[index].size)
    return total


def taken(waiting, made, states, most):
    """Takes the next tasks for a worker. One that has failed before goes alone."""
    first = waiting.pop()
    indexes, size = [first], made[first].size
    while waiting and len(indexes) < most and not {first, waiting[-1]} & states.keys() and size + made[waiting[-1]].size <= BYTES:
        indexes.append(waiting.pop())
        size += made[indexes[-1]].size
    return indexes


def arguments(given, one, state):
    return {"task": one, "out": given.out, "options": given.analyzer, "attempt": state.attempt, "errors": state.errors,
            "timeout": given.timeout, "last": state.attempt > given.retries, "again": given.again}


def progress(given, size):
    from tqdm import tqdm

    return tqdm(total=size, unit="B", unit_scale=True, desc="traces", disable=given.quiet or None, file=sys.stderr)


def count(number, noun, several=None):
    """A number with its noun."""
    return f"{number} {noun if number == 1 else several or noun + 's'}"


def say(given, text):
    if not given.quiet:
        print(f"streamsan: {report.plain(text)}", file=sys.stderr)
