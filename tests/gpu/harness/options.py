"""Owns the options that every verb takes, and what each means. A verb's own options are its own."""

import argparse
import dataclasses


@dataclasses.dataclass(frozen=True)
class Defaults:
    """What a verb does unless it is asked for something else."""

    # All of it, in seconds.
    budget: float
    # One program, in seconds; None: the verb runs no program itself.
    timeout: float | None
    # Programs at a time; 0: the verb works it out; None: always one.
    jobs: int | None = 0
    # Whether the verb can do something without a GPU.
    sim: bool = False


def add_shared(parser, defaults):
    """Adds the options of every verb to a verb's parser."""
    if defaults.sim:
        parser.add_argument("--sim", action="store_true", help="on the simulated GPU")
    else:
        parser.set_defaults(sim=None)
    parser.add_argument(
        "--bin",
        metavar="FOLDER",
        help="the folder with streamsan and libstreamsan.so (default: STREAMSAN_BIN, .gpu, .gpu/bin, target/release)",
    )
    parser.add_argument(
        "--only", metavar="WORD[,WORD]", type=words, default=[], help="only what has one of these words in its name"
    )
    if defaults.jobs is not None:
        usual = defaults.jobs or "from the number of cores"
        parser.add_argument(
            "--jobs", metavar="N", type=count, default=defaults.jobs, help=f"programs at a time (default: {usual})"
        )
    parser.add_argument(
        "--budget",
        metavar="SECONDS",
        type=seconds,
        default=defaults.budget,
        help="for all of it; what is not reached counts as not checked (default: %(default)g)",
    )
    if defaults.timeout is not None:
        parser.add_argument(
            "--timeout",
            metavar="SECONDS",
            type=seconds,
            default=defaults.timeout,
            help="for one program (default: %(default)g)",
        )
    parser.add_argument(
        "--out",
        metavar="FOLDER",
        help="where table.txt, results.json and reports go "
        "(default: OUT, else a new folder in the system's temporary one)",
    )


def words(text):
    return [word for word in text.split(",") if word]


def count(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: a number above 0 is needed")
    return number


def seconds(text):
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError(f"{text}: a time above 0 is needed")
    return number
