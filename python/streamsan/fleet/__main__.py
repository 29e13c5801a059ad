"""``python -m streamsan.fleet``, which ``streamsan fleet`` becomes: the command line.

Owns the words and the exit codes: 66 with findings, 70 when a trace was not read and there are none, 2 for wrong usage.
"""

import argparse
import os
import sys

from .sources import Wrong

USAGE, FAILED = 2, 70


def parser():
    top = argparse.ArgumentParser(prog="streamsan fleet", description="Check the traces of many machines, and ask the results.")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    check = verbs.add_parser("check", help="check traces, write a dataset", epilog="Words behind '--' go to 'streamsan check'.")
    check.add_argument("sources", nargs="+", metavar="SOURCE", help="a trace, a folder or a pattern, as a path or a URL of fsspec")
    check.add_argument("--out", required=True, metavar="DATASET", help="the folder of the dataset, a path or a URL")
    check.add_argument("--engine", choices=("local", "ray"), default="local", help="where tasks run [default: local]")
    check.add_argument("--jobs", type=number, metavar="N", help="tasks at a time [default: cores; with ray twice the cluster's]")
    check.add_argument("--layout", metavar="PATTERN", help="the end of a path: {job}, {host}, {rank}, {date}, *")
    check.add_argument("--date", metavar="YYYY-MM-DD", help="the day of the partition [default: of a task's first trace]")
    check.add_argument("--retries", type=int, default=2, metavar="N", help="tries after a failed one [default: 2]")
    check.add_argument("--timeout", type=number, metavar="SECONDS", help="the longest that one analyzer may take")
    check.add_argument("--again", action="store_true", help="check what was checked with the same options as well")
    check.add_argument("--quiet", action="store_true", help="print nothing but errors")
    report = verbs.add_parser("report", help="what is new, known and gone")
    report.add_argument("dataset", metavar="DATASET")
    report.add_argument("--since", metavar="YYYY-MM-DD", help="what first came up on this day or later is new [default: the last day]")
    report.add_argument("--json", nargs="?", const="-", metavar="FILE", help="write JSON, to standard output without FILE")
    report.add_argument("--html", metavar="FILE", help="write a page")
    verbs.add_parser("queries", help="print the folder of the SQL files")
    return top


def number(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("a number from 1 on")
    return value


def main(words):
    words, more = (words[: words.index("--")], words[words.index("--") + 1:]) if "--" in words else (words, [])
    given = parser().parse_args(words)
    given.analyzer = more
    try:
        missing = lacking()
        if given.verb == "queries":
            print(os.path.join(os.path.dirname(os.path.abspath(__file__)), "queries"))
            return 0
        if missing:
            raise Wrong(f"no module {', '.join(missing)}: pip install {' '.join(missing)}")
        if given.verb == "check":
            from . import check

            return check.main(given)
        if more:
            raise Wrong("only 'fleet check' takes words behind '--'")
        from . import report

        return report.main(given)
    except Wrong as error:
        complain(error)
        return USAGE
    except Exception as error:
        # A source cannot be listed, or the dataset not be written or read: each file system has errors of its own.
        if not isinstance(error, OSError) and type(error).__module__ == "builtins":
            raise
        complain(f"{type(error).__name__}: {error}")
        return FAILED
    except KeyboardInterrupt:
        return 130


def complain(error):
    """One line, whatever names an error holds: a terminal obeys control characters, and GitHub a line that begins with `::`."""
    from .report import plain

    print(f"streamsan: {plain(' | '.join(str(error).splitlines()))}", file=sys.stderr)


def lacking():
    """Dependencies that are not installed."""
    import importlib.util

    return [name for name in ("fsspec", "pyarrow", "duckdb", "tqdm") if importlib.util.find_spec(name) is None]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
