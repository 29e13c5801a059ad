"""The rows of a task as files of a dataset, each written once.

Owns the layout (`findings/` and `traces/`, partitioned by date and job), the columns of the table of traces, and how a file
appears whole or not at all. A task's files have names that follow from its job and host, so that a task that runs twice replaces
its rows. The part of `traces` is written last: a task without it is done again.
"""

import os
import uuid
from urllib.parse import quote

from .sources import Wrong

# Metadata of a part: what it was made of.
VERSION = b"streamsan.version"
CODE = b"streamsan.code"
SUM = b"streamsan.summary"

TRACES = [
    ("task", "string"), ("machine", "string"), ("rank", "string"), ("trace", "string"), ("program", "string"), ("bytes", "int64"),
    ("segments", "int64"),
    ("status", "string"), ("error", "string"), ("findings", "int64"), ("attempts", "int64"), ("seconds", "float64"),
    ("checked_at", "string"),
]
# What fleet adds to the analyzer's columns, where `host` is taken already: a side that is the host.
ADDED = ("task", "machine", "rank")


def file_system(url):
    """The file system of a URL, and the path in it. A protocol whose package is missing is a line for the user."""
    import fsspec

    try:
        return fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise Wrong(f"{url}: {error}") from error


def part(root, table, task):
    """Where a task's rows of a table are."""
    return f"{root}/{table}/date={task.date}/job={quote(task.job, safe='')}/{task.name}.parquet"


def settled(fs, root):
    """The last date under which each task is there already, by its name: one whose day is guessed stays where it is."""
    dates = {}
    if fs.exists(f"{root}/traces"):
        for path in sorted(fs.glob(f"{root}/traces/date=*/job=*/*.parquet")):
            date, _, file = path.rsplit("/", 3)[-3:]
            dates[file.removesuffix(".parquet")] = date.removeprefix("date=")
    return dates


def done(fs, path, version):
    """The metadata of a part that was made of the same traces with the same options; otherwise None."""
    import pyarrow.parquet

    if not fs.exists(path):
        return None
    try:
        with fs.open(path, "rb") as file:
            about = pyarrow.parquet.read_metadata(file).metadata or {}
    except (OSError, pyarrow.ArrowException):
        return None
    return about if about.get(VERSION) == version.encode() else None


def publish(fs, path, table):
    """Writes a table as one file: under another name first where files can be renamed; object stores show whole files only."""
    import pyarrow
    import pyarrow.parquet

    buffer = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, buffer, compression="zstd")
    data = buffer.getvalue().to_pybytes()
    folder, name = path.rsplit("/", 1)
    protocols = (fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol
    if "file" in protocols:
        os.makedirs(folder, exist_ok=True)
        mine = f".{name}.{uuid.uuid4().hex}.tmp"
        # What a worker left that was killed here.
        for left in os.listdir(folder):
            if left.startswith(f".{name}.") and left.endswith(".tmp"):
                try:
                    os.unlink(f"{folder}/{left}")
                except FileNotFoundError:
                    pass
        with open(f"{folder}/{mine}", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(f"{folder}/{mine}", path)
    elif "hdfs" in protocols:
        fs.makedirs(folder, exist_ok=True)
        mine = f"{folder}/.{name}.{uuid.uuid4().hex}.tmp"
        fs.pipe_file(mine, data)
        if fs.exists(path):
            fs.rm(path)
        fs.mv(mine, path)
    else:
        # There are no folders in object stores, and making one would make a bucket that was misspelt.
        if not {"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "adl", "oss"} & set(protocols):
            fs.makedirs(folder, exist_ok=True)
        fs.pipe_file(path, data)


def read(file):
    """A Parquet file of the analyzer as a table, without threads of Arrow's.

    One of them may outlive the read and abort the process when Python ends (Arrow's issue 34314). The files are small.
    """
    import pyarrow.parquet

    return pyarrow.parquet.read_table(file, use_threads=False, pre_buffer=False)


def findings(files, task, urls):
    """The analyzer's rows (its Parquet files) with the task, the machine, the rank and the URL of the trace. None where there is no file."""
    import pyarrow

    tables = [read(file) for file in files]
    if not tables:
        return None
    table = pyarrow.concat_tables(tables, promote_options="default")
    # The analyzer names the file where it checked several.
    only = next(iter(urls.values())) if len(urls) == 1 else None
    found = [only if len(urls) == 1 else urls.get(name) for name in table.column("trace").to_pylist()]
    text = pyarrow.string()
    column = lambda values: pyarrow.array(values, type=text)
    table = table.set_column(table.schema.get_field_index("trace"), "trace", column([t and t.url for t in found]))
    values = {"task": task.name, "machine": task.host}
    for name in ADDED:
        filled = [t and t.rank for t in found] if name == "rank" else [values[name]] * table.num_rows
        table = table.append_column(name, column(filled))
    return table


def traces(rows):
    import pyarrow

    schema = pyarrow.schema([(name, getattr(pyarrow, kind)()) for name, kind in TRACES])
    return pyarrow.Table.from_pylist(rows, schema=schema)
