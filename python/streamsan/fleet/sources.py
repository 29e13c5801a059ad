"""Which traces there are, and which of them belong together.

Owns the listing of sources (anything that fsspec reaches), the layout of paths, and the grouping into tasks: the traces of one
job on one host may share memory, so they are one task. A recording in segments is one trace (`recordings`). Reads no trace.
"""

import collections
import dataclasses
import datetime
import hashlib
import re

from . import recordings

# Files beside traces that are none: what streamsan and its users write there.
OTHERS = (".json", ".html", ".parquet", ".sarif", ".xml", ".log", ".txt", ".tmp", ".md")

FIELDS = ("job", "host", "rank", "date")


class Wrong(Exception):
    """A line for the user, who has to change something."""


@dataclasses.dataclass
class Trace:
    """A trace: where it is, its size in bytes, when it was changed (seconds, 0: not known), and its rank if the layout has one.
    Of a recording in segments, the folder: `segments` is how many there are, and `seen` stands for all files of it."""

    url: str
    size: int
    changed: float
    rank: str = None
    segments: int = None
    seen: str = None


@dataclasses.dataclass
class Task:
    """Traces that are checked together. `name` depends on job and host alone: a task that runs again writes the same files of its
    day. `guessed`: the day is that of a file, which may change while the job runs."""

    job: str
    host: str
    date: str
    traces: list
    guessed: bool = False

    @property
    def name(self):
        return hashlib.sha256(f"{self.job}\0{self.host}".encode()).hexdigest()[:20]

    @property
    def size(self):
        return sum(trace.size for trace in self.traces)

    def version(self, options):
        """Changes when a trace of the task, or an option of the analysis, does."""
        seen = [(t.url, t.size, t.changed, t.seen) if t.seen else (t.url, t.size, t.changed) for t in self.traces]
        return hashlib.sha256(repr((seen, list(options))).encode()).hexdigest()[:20]


def pattern(layout):
    """The layout as a regular expression over the end of a path. `{field}` matches within one part of the path."""
    text, known = "", set()
    for piece in re.split(r"(\{[a-z]*\}|\*)", layout):
        if piece == "*":
            text += "[^/]*"
        elif piece.startswith("{"):
            field = piece[1:-1]
            if field not in FIELDS:
                raise Wrong(f"--layout knows {', '.join('{%s}' % f for f in FIELDS)} and *, not '{piece}'")
            if field in known:
                raise Wrong(f"--layout has '{piece}' twice")
            known.add(field)
            text += f"(?P<{field}>[^/]+?)"
        else:
            text += re.escape(piece)
    return re.compile(f"(?:^|/){text}$")


def guessed(source, relative):
    """Job and host by folders: JOB/HOST/FILE, or HOST/FILE or FILE in a source that is the job."""
    folders = relative.split("/")[:-1]
    job = folders[-2] if len(folders) > 1 else source.rstrip("/").rsplit("/", 1)[-1] or "job"
    return {"job": job, "host": folders[-1] if folders else ""}


def listed(source):
    """Each trace of a source (a file, a folder, a pattern with *): the root of the source, path below it, the trace."""
    import fsspec

    try:
        fs, path = fsspec.core.url_to_fs(source)
    except (ImportError, ValueError) as error:
        raise Wrong(f"{source}: {error}") from error
    whole = fs.unstrip_protocol if "://" in source else str
    if "*" in path:
        root = path[: path.index("*")].rsplit("/", 1)[0]
        found = fs.glob(path, detail=True)
        for folder in [name for name, about in found.items() if about.get("type") == "directory"]:
            found.update(fs.find(folder, detail=True))
    else:
        root = path.rstrip("/")
        found = fs.find(path, detail=True) if fs.isdir(path) else ({path: fs.info(path)} if fs.exists(path) else {})
        if list(found) == [path]:
            root = path.rsplit("/", 1)[0]
    found = {name: about for name, about in found.items() if about.get("type") != "directory" and not hidden(name[len(root):].lstrip("/"))}
    if not found:
        raise Wrong(f"{source}: there is nothing there")
    # A segment that is named by itself is a trace by itself.
    held = recordings.folders(fs, found) if list(found) != [path] else {}
    if root in held or recordings.of(root) in held:
        # The source is a recording: its name counts.
        root = recordings.of(root).rsplit("/", 1)[0]
    size = lambda name: found[name].get("size") or 0
    for folder, (segments, beside) in sorted(held.items()):
        if segments and not recordings.is_copy(folder, held):
            yield root, recordings.of(folder)[len(root):].lstrip("/"), Trace(
                whole(folder), sum(map(size, segments)), max(changed(found[name]) for name in segments), segments=len(segments),
                seen=recordings.digest(folder, {name: size(name) for name in (*segments, *beside)}))
    for segments, beside in held.values():
        for name in (*segments, *beside):
            found.pop(name, None)
    for name, about in sorted(found.items()):
        yield root, name[len(root):].lstrip("/"), Trace(whole(name), about.get("size") or 0, changed(about))


def hidden(relative):
    parts = relative.split("/")
    return any(part.startswith((".", "_")) for part in parts) or relative.lower().endswith(OTHERS)


def changed(about):
    """When a file was last changed, in seconds. File systems name it differently."""
    for key in ("mtime", "LastModified", "last_modified", "updated", "modificationTime", "created"):
        value = about.get(key)
        if isinstance(value, datetime.datetime):
            return value.timestamp()
        if isinstance(value, str):
            try:
                return datetime.datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
            except ValueError:
                continue
        if isinstance(value, (int, float)):
            # HDFS counts milliseconds.
            return value / 1000 if value > 1e11 else float(value)
    return 0.0


def tasks(sources, layout=None, date=None):
    """The tasks, largest first. `date`: of all of them; otherwise the layout's, or the day on which a task's first trace was written."""
    wanted = pattern(layout) if layout else None
    groups, dates, aside, seen = collections.defaultdict(list), {}, [], set()
    for source in sources:
        for root, relative, trace in listed(source):
            if trace.url in seen:
                continue
            seen.add(trace.url)
            fields = guessed(root, relative)
            if wanted:
                match = wanted.search(f"{root}/{relative}")
                if match is None:
                    aside.append(trace.url)
                    continue
                fields.update(match.groupdict())
                if "host" not in match.groupdict():
                    fields["host"] = ""
            key = (fields["job"], fields["host"])
            trace.rank = fields.get("rank")
            groups[key].append(trace)
            if fields.get("date"):
                dates[key] = fields["date"]
    made = []
    for key, traces in groups.items():
        first = min(trace.changed for trace in traces) or datetime.datetime.now().timestamp()
        day = datetime.datetime.fromtimestamp(first, datetime.timezone.utc).strftime("%Y-%m-%d")
        said = date or dates.get(key)
        made.append(Task(*key, day_of(said or day), traces, not said))
    made.sort(key=lambda task: (-task.size, task.job, task.host))
    return made, aside


def day_of(text):
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise Wrong(f"'{text}' is no date: YYYY-MM-DD") from None
