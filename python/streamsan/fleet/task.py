"""One task on a worker: fetch its traces, run the analyzer, write its rows.

Owns what a trace's status means, and that nothing a trace holds can end more than its own check. Runs in a thread of the driver,
in a process of Ray's on another machine, or twice: the outcome is the same files.
"""

import datetime
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time

from . import dataset, recordings

FINDINGS, INTERNAL = 66, 70


class Broken(Exception):
    """The analyzer died or did not end: worth another try."""


def run_all(calls):
    """Runs tasks one after the other, and answers for each its summary, or its error in one line."""
    ended = []
    for arguments in calls:
        try:
            ended.append(run(**arguments))
        except Exception as error:  # one task must not cost the others their rows
            ended.append(one_line(error))
    return ended


def one_line(error):
    """The error in one line. Ray puts where it happened behind the first one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:500]


def run(task, out, options, attempt=1, errors=(), timeout=None, last=False, again=False):
    """Checks a task and writes its rows. `errors`: what went wrong in attempts before. With `last`, what fails again becomes rows
    instead of an error. Returns a summary of a few numbers."""
    fs, root = dataset.file_system(out)
    root = root.rstrip("/")
    version = task.version(options)
    place = dataset.part(root, "traces", task)
    kept = None if again else dataset.done(fs, place, version)
    if kept is not None:
        return {**json.loads(kept[dataset.SUM]), "kept": True}
    began = time.monotonic()
    clear_left()
    with tempfile.TemporaryDirectory(prefix=f"streamsan-fleet-{os.getpid()}-") as folder:
        local, failed = fetched(task, folder)
        try:
            checks = [check(list(local), folder, options, timeout)] if local else []
        except Broken as error:
            if not last:
                raise
            # One trace must not cost its neighbours their rows.
            errors = [*errors, str(error)]
            checks = alone(local, folder, options, timeout, failed)
        table = dataset.findings([c["parquet"] for c in checks if c["parquet"]], task, local)
        rows = described(task, local, failed, checks, table, attempt, errors, time.monotonic() - began)
        about = {dataset.VERSION: version.encode()}
        if table is not None:
            dataset.publish(fs, dataset.part(root, "findings", task), table.replace_schema_metadata(about))
        elif fs.exists(dataset.part(root, "findings", task)):
            fs.rm(dataset.part(root, "findings", task))
        summary = {
            "traces": len(rows), "bad": sum(row["status"] not in ("ok", "part") for row in rows), "findings": table.num_rows if table else 0,
            "fails": any(c["code"] == FINDINGS for c in checks),
        }
        about[dataset.SUM] = json.dumps(summary).encode()
        dataset.publish(fs, place, dataset.traces(rows).replace_schema_metadata(about))
    return summary


def clear_left():
    """Removes the folders of workers that were killed on this machine."""
    place = tempfile.gettempdir()
    for name in os.listdir(place):
        owner = name.removeprefix("streamsan-fleet-").partition("-")[0]
        if name.startswith("streamsan-fleet-") and owner.isdigit() and not os.path.exists(f"/proc/{owner}"):
            shutil.rmtree(f"{place}/{name}", ignore_errors=True)


def fetched(task, folder):
    """The traces as files of this machine (path -> trace), and those that could not be had (URL -> error)."""
    local, failed = {}, {}
    for number, trace in enumerate(task.traces):
        fs, path = dataset.file_system(trace.url)
        protocols = (fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol
        try:
            if "file" not in protocols:
                to = f"{folder}/{number}-{path.rsplit('/', 1)[-1]}"
                fs.get_file(path, to) if trace.segments is None else recordings.fetch(fs, path, to)
                path = to
            if trace.segments is None:
                with open(path, "rb"):
                    pass
            else:
                os.listdir(path)
            local[path] = trace
        except Exception as error:  # each file system has errors of its own
            failed[trace.url] = f"{type(error).__name__}: {error}"
    return local, failed


def check(files, folder, options, timeout):
    """Runs the analyzer once. Its exit code, its Parquet file, and what it says of files that it could not read."""
    from .. import binary

    program = binary()
    if program is None:
        raise Broken(f"no streamsan program on {socket.gethostname()}: install the package there, or set STREAMSAN_BIN to its folder")
    to = tempfile.mkdtemp(dir=folder)
    outputs = ["--quiet", "--parquet", f"{to}/findings.parquet", "--json", f"{to}/report.json", "--log-file", f"{to}/log"]
    environment = {name: value for name, value in os.environ.items() if name != "STREAMSAN_OPTIONS"}
    command = [program, "check", "--no-require-cuda", *options, *outputs, "--", *files]
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                               timeout=timeout, env=environment)
    except subprocess.TimeoutExpired:
        raise Broken(f"the analyzer did not end within {timeout} s") from None
    except OSError as error:
        raise Broken(f"{program}: {error}") from error
    said = ended.stderr.strip().splitlines()
    if ended.returncode not in (0, 4, FINDINGS, INTERNAL) or (ended.returncode == INTERNAL and "panicked at" in ended.stderr):
        how = f"signal {-ended.returncode}" if ended.returncode < 0 else f"code {ended.returncode}"
        raise Broken(f"the analyzer ended with {how}: {' | '.join(said[-3:]) or 'no message'}")
    unread = {}
    for line in said:
        for file in files:
            if line.startswith(f"streamsan: {file}: "):
                unread[file] = line[len(f"streamsan: {file}: "):]
    parquet = f"{to}/findings.parquet"
    programs, partial = report_of(f"{to}/report.json", files)
    return {"code": ended.returncode, "parquet": parquet if os.path.exists(parquet) else None, "files": list(files),
            "unread": unread, "programs": programs, "partial": partial}


def report_of(path, files):
    """The first program of each trace that was read at all (file -> program), and why it is not the whole of its run (file -> text)."""
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    except (OSError, ValueError):
        return {}, {}
    programs, partial = {}, {}
    for process in report.get("processes", []):
        programs.setdefault(process.get("trace") or files[0], process.get("exe") or "")
    for line in report.get("coverage", {}).get("partial", []):
        file = next((file for file in files if line.startswith(f"{file}: ")), None)
        if file:
            partial.setdefault(file, []).append(line[len(file) + 2:])
    return programs, {file: "; ".join(lines) for file, lines in partial.items()}


def alone(local, folder, options, timeout, failed):
    """Each trace by itself. Those that the analyzer does not survive go to `failed`."""
    checks = []
    for file, trace in local.items():
        try:
            checks.append(check([file], folder, options, timeout))
        except Broken as error:
            failed[trace.url] = str(error)
    for one in checks:
        # Of several traces each row must name its own; the analyzer does so only where it is given several.
        if one["parquet"] and len(local) > 1:
            named(one["parquet"], one["files"][0])
    return checks


def named(file, trace):
    import pyarrow
    import pyarrow.parquet

    table = dataset.read(file)
    column = pyarrow.array([trace] * table.num_rows, type=pyarrow.string())
    pyarrow.parquet.write_table(table.set_column(table.schema.get_field_index("trace"), "trace", column), file)


def described(task, local, failed, checks, table, attempt, errors, seconds):
    """A row for each trace of the task."""
    # Where it lies, not where it was copied to.
    named = lambda texts: {file: text.replace(file, local[file].url) for file, text in texts.items()}
    unread = {file: text for one in checks for file, text in named(one["unread"]).items()}
    programs = {file: program for one in checks for file, program in one["programs"].items()}
    partial = {file: text for one in checks for file, text in named(one["partial"]).items()}
    counts = {}
    for url in table.column("trace").to_pylist() if table is not None else []:
        counts[url] = counts.get(url, 0) + 1
    paths = {trace.url: path for path, trace in local.items()}
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    rows = []
    for trace in task.traces:
        path = paths.get(trace.url)
        if trace.url in failed:
            status, error = "failed", failed[trace.url]
        elif path in unread:
            # Analysed as far as it is there and readable, or not at all.
            some = "missing" if trace.segments is not None and "missing" in unread[path] else "damaged"
            status, error = (some if path in programs else "unreadable"), unread[path]
        elif path not in programs:
            status, error = "unreadable", "the trace holds no process"
        elif path in partial:
            # No mistake, but not the whole run either.
            status, error = "part", partial[path]
        else:
            status, error = "ok", None
        before = "; ".join(f"attempt {n + 1}: {text}" for n, text in enumerate(errors))
        error = "; ".join(text for text in (error, before) if text) or None
        rows.append({
            "task": task.name, "machine": task.host, "rank": trace.rank, "trace": trace.url, "program": programs.get(path),
            "bytes": trace.size, "segments": trace.segments, "status": status, "error": error, "findings": counts.get(trace.url, 0), "attempts": attempt,
            "seconds": seconds, "checked_at": now,
        })
    return rows


def lost(task, out, options, attempt, errors):
    """The rows of a task whose workers all died: no finding, each trace with the errors."""
    fs, root = dataset.file_system(out)
    root = root.rstrip("/")
    failed = {trace.url: "no worker survived it" for trace in task.traces}
    rows = described(task, {}, failed, [], None, attempt, errors, 0.0)
    if fs.exists(dataset.part(root, "findings", task)):
        fs.rm(dataset.part(root, "findings", task))
    summary = {"traces": len(rows), "bad": len(rows), "findings": 0, "fails": False}
    # Without a version: the next run tries it again.
    about = {dataset.SUM: json.dumps(summary).encode()}
    dataset.publish(fs, dataset.part(root, "traces", task), dataset.traces(rows).replace_schema_metadata(about))
    return summary
