"""`streamsan fleet report`: the answers as text, JSON and a page.

Owns how DuckDB sees a dataset, and the words. The questions are the files in `queries/`.

A dataset may be anybody's. What it holds, the names of its folders among it, reaches DuckDB as data and never as SQL; DuckDB
reads that folder and nothing else; and nothing of it moves a terminal's cursor or begins a line of its own.
"""

import datetime
import json
import os
import shlex
import sys

from . import dataset, page, sources

QUESTIONS = ("findings", "causes", "jobs", "unread")

# What the queries ask of findings, for a dataset in which every task failed: there is no file then.
NUMBERS = ("pid", "occurrences", "access_from", "previous_from", "access_line", "previous_line", "memory_line", "memory_size")
TEXTS = (
    "date job machine rank trace program arguments fingerprint hazard kind confidence standing cause cause_kind cause_missing cause_after "
    "cause_before cause_mend access_call access_kernel access_operator access_stream access_function access_file previous_call "
    "previous_kernel previous_operator previous_stream previous_function previous_file memory_kind memory_call memory_file missing "
    "mend_cuda mend_torch doubts rule rule_text"
).split()


def query(name):
    """The text of a question."""
    with open(os.path.join(os.path.dirname(__file__), "queries", f"{name}.sql"), encoding="utf-8") as file:
        return file.read()


def literal(text):
    """A text in SQL, for statements that take no parameters."""
    return "'" + text.replace("'", "''") + "'"


def opened(url):
    """A connection to DuckDB with the views `findings` and `traces`.

    To be closed (`with`): DuckDB's threads call a file system of Python, and one that still does when Python ends aborts the process.
    """
    import duckdb

    fs, root = dataset.file_system(url)
    root = root.rstrip("/")
    if not fs.exists(f"{root}/traces"):
        raise sources.Wrong(f"{url}: no dataset of 'streamsan fleet check'")
    base = root
    connection = duckdb.connect()
    protocols = (fs.protocol,) if isinstance(fs.protocol, str) else fs.protocol
    if "file" not in protocols:
        connection.register_filesystem(fs)
        base = fs.unstrip_protocol(root)
    for table in ("findings", "traces"):
        place = literal(f"{base}/{table}/*/*/*.parquet")
        there = bool(fs.glob(f"{root}/{table}/*/*/*.parquet"))
        # Columns are added from version to version; names of partitions are text, '007' too.
        text = f"SELECT * FROM read_parquet({place}, union_by_name = true, hive_partitioning = true, hive_types_autocast = false)"
        if not there and table == "findings":
            columns = [f"CAST(NULL AS STRING) AS {name}" for name in TEXTS] + [f"CAST(NULL AS BIGINT) AS {name}" for name in NUMBERS]
            text = f"SELECT {', '.join(columns)}, false AS cause_tried WHERE false"
        elif not there:
            raise sources.Wrong(f"{url}: the dataset is empty")
        connection.execute(f"CREATE VIEW {table} AS {text}")
    # From here on it reads the dataset and nothing else, whatever it is asked.
    connection.execute(f"SET allowed_directories = [{literal(f'{base}/')}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def asked(connection, since):
    """Makes the view `asked`; without a day, of the last one on which something was checked. Returns the day."""
    since = sources.day_of(since or connection.execute("SELECT MAX(date) FROM traces").fetchone()[0])
    connection.execute("CREATE OR REPLACE TABLE asked (since VARCHAR)")
    connection.execute("INSERT INTO asked VALUES (?)", [since])
    return since


def answers(url, since=None):
    """All answers: a list of rows (name -> value) by question, and the day."""
    with opened(url) as connection:
        day = asked(connection, since)
        found = {"dataset": url, "since": day, "made": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")}
        for name in QUESTIONS:
            cursor = connection.execute(query(name))
            names = [column[0] for column in cursor.description]
            found[name] = [dict(zip(names, row)) for row in cursor.fetchall()]
        return found


def main(given):
    found = answers(given.dataset, given.since)
    if given.html:
        with open(given.html, "w", encoding="utf-8") as file:
            file.write(page.page(found))
    if given.json == "-":
        print(json.dumps(found, indent=2))
        return 0
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=2)
    sys.stdout.write(text(found))
    return 0


def where(row, side):
    """One side of a finding in a line."""
    what = row[f"{side}_kernel"] and f"kernel {row[f'{side}_kernel']}" or row[f"{side}_call"] or "?"
    if row[f"{side}_operator"]:
        what += f" of {row[f'{side}_operator']}"
    at = row[f"{side}_function"] or ""
    if row[f"{side}_file"]:
        at += f" {row[f'{side}_file']}" + (f":{row[f'{side}_line']}" if row[f"{side}_line"] else "")
    on = f" on {row[f'{side}_stream']}" if row[f"{side}_stream"] else ""
    return plain(what + on + (f"  {at.strip()}" if at.strip() else ""))


def plain(value):
    """Text of others as one line, without what moves a terminal's cursor or turns the direction of text."""
    return "".join(c if c.isprintable() else "?" for c in str(value))


def many(number, word):
    return f"{number} {word}" + ("" if number == 1 else "s")


def in_full(row):
    """How to see the finding with its stacks: the analyzer takes files, not URLs."""
    trace = row["trace"] or "?"
    if "://" in trace or not trace.isprintable():
        return f"the trace {trace}"
    # A name that begins with a dash would be an option.
    return f"streamsan check {shlex.quote(f'./{trace}' if trace.startswith('-') else trace)}"


def spread(row):
    seen = row["first_seen"] if row["first_seen"] == row["last_seen"] else f"{row['first_seen']} to {row['last_seen']}"
    return f"{many(row['ranks'], 'rank')}, {many(row['hosts'], 'host')}, {seen}"


def counted(rows):
    return ", ".join(f"{sum(row['state'] == state for row in rows)} {state}" for state in ("new", "known", "gone", "unchecked"))


def text(found):
    lines = []
    for row in found["causes"]:
        lines.append(f"{row['state'].upper()} CAUSE {plain(row['cause'])}: {plain(row['cause_kind'])}, explains {many(row['findings'], 'finding')}")
        lines.append(f"  {plain(spread(row))}")
        for word in ("missing", "after", "before"):
            if row[f"cause_{word}"]:
                lines.append(f"  {word}: {plain(row[f'cause_{word}'])}")
        if row["cause_mend"]:
            lines += [f"      {plain(line)}" for line in row["cause_mend"].splitlines()]
    for row in found["findings"]:
        lines += ["", f"{row['state'].upper()} " + plain(f"{row['hazard']} ({row['confidence']}) [{row['fingerprint']}]"),
                  f"  {plain(spread(row))}"]
        if row["rule"]:
            lines.append(f"  rule {plain(row['rule'])}: {plain(row['rule_text'])}")
        lines.append(f"  access:   {where(row, 'access')}")
        if row["previous_call"] or row["previous_kernel"]:
            lines.append(f"  previous: {where(row, 'previous')}")
        if row["memory_size"] is not None:
            lines.append(f"  memory:   {row['memory_size']} bytes of {plain(row['memory_kind'])}, from {plain(row['memory_call'])}")
        if row["cause"]:
            lines.append(f"  cause:    {plain(row['cause'])}")
        lines.append(f"  in full:  {plain(in_full(row))}")
    for row in found["unread"]:
        lines += ["", f"NOT READ WHOLE: {plain(row['trace'])} ({plain(row['status'])}): {plain(row['error'])}"]
    total, whole, part = (sum(row[name] for row in found["jobs"]) for name in ("traces", "read_whole", "in_part"))
    lines += ["", f"since {found['since']}: findings {counted(found['findings'])}; causes {counted(found['causes'])}; "
              f"{whole} of {total} traces read whole" + (f", {part} in part" if part else "")]
    return "\n".join(lines).lstrip("\n") + "\n"
