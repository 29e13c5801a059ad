#!/usr/bin/env python3
"""Checks StreamSan on a machine with a GPU. Some verbs run on the simulated GPU too (--sim).

Needs neither cargo nor network: prebuilt binaries (see --bin) and this repository's files. Each
verb says what else it needs. Exit code: 0 all as expected, 1 something was not or was not reached
in time, 2 nothing could be checked here.
"""

import argparse
import importlib
import sys

sys.dont_write_bytecode = True

from harness.errors import CannotRun  # noqa: E402
from harness.options import add_shared  # noqa: E402
from harness.process import end_children_on_signals  # noqa: E402
from harness.session import Session  # noqa: E402

VERBS = (
    "all",
    "check",
    "order",
    "in_place",
    "descriptors",
    "transparency",
    "semantics",
    "torch",
    "offline",
    "tools",
    "csan",
    "racecheck",
    "exact",
    "results",
    "instructions",
    "digests",
    "random_kernels",
    "recordings",
    "tiles",
    "dependents",
    "public",
    "cost",
    "calls",
)


def wide(prog):
    return argparse.RawDescriptionHelpFormatter(prog, width=100, max_help_position=28)


def main():
    modules = {name: importlib.import_module(f"verbs.{name}") for name in VERBS}
    listed = "".join(f"  {name:16}{module.__doc__.splitlines()[0]}\n" for name, module in modules.items())
    parser = argparse.ArgumentParser(
        prog="tests/gpu", description=__doc__, epilog=f"verbs (each has --help):\n{listed}", formatter_class=wide
    )
    verbs = parser.add_subparsers(metavar="VERB", dest="verb", required=True)
    for name, module in modules.items():
        of = verbs.add_parser(name, description=module.__doc__, formatter_class=wide)
        add_shared(of, module.DEFAULTS)
        module.add_options(of)
    args = parser.parse_args()
    end_children_on_signals()
    try:
        with Session(args.verb, args) as session:
            return modules[args.verb].run(session)
    except CannotRun as reason:
        print(f"tests/gpu {args.verb}: {reason}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
