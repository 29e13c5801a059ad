"""Owns what a case is: a program, and what the first lines of its source say it must show.

tests/corpus/README.md and tests/samples/README.md describe these lines; tests/src/cases reads
them for the end-to-end tests. Whether a report shows what is expected is judged by the verbs.
"""

import re

from .places import CORPUS, SAMPLES, SHARED

HAZARDS = {"RAW": "read-after-write", "WAW": "write-after-write", "WAR": "write-after-read"}
FIELDS = re.compile(r"(?://|#)\s*(expect|pair|needs|why|csan|racy):\s*(.*)")


class Case:
    """One program and what it is expected to show."""

    def __init__(self, path, group, racy=False):
        self.path, self.group, self.name, self.racy = path, group, path.stem + ("-racy" if racy else ""), racy
        self.args = ["racy"] if racy else []
        head = {}
        for line in path.read_text().splitlines()[:8]:
            if found := FIELDS.match(line):
                head.setdefault(found[1], found[2].strip())
        self.has_racy = "racy" in head
        self.expect = head.get("racy" if racy else "expect", "clean").split()
        self.needs = head.get("needs", head.get("csan", ""))
        self.races, self.host = self.expect[0] == "race", "host" in self.expect
        # Where the CPU's own accesses to pinned memory matter, a case is checked with
        # --host-accesses too.
        self.sees_host = self.host or "host" in self.needs.split() or re.search("pinned|d2h", path.stem) is not None
        self.kind = HAZARDS.get(self.expect[-1])
        pair = head.get("pair", "") if group in ("cuda", "sample") else ""
        self.pair = (pair.split(" / ") + ["", ""])[:2]
        self.output = (
            (SAMPLES / "expected" / f"{path.stem}.txt").read_bytes() if group == "sample" and not racy else None
        )
        if self.races and not self.kind:
            raise ValueError(f"{path}: cannot read 'expect: {' '.join(self.expect)}'")

    def twin(self):
        """The same program, run so that it races; None where it has no such way."""
        return Case(self.path, self.group, racy=True) if self.has_racy and not self.racy else None

    def build_flags(self, runtime, arch):
        """nvcc's flags: the code for one GPU, the lines of the source, one of the two runtimes."""
        arch = "sm_90" if "sm_90" in self.needs else arch
        flags = ["-O2", "-g", "-lineinfo", f"-arch={arch}", "-cudart", runtime]
        return flags + (["-lcuda"] if "driver-api" in self.needs else [])


def _all(folder, pattern, group):
    return [Case(path, group) for path in sorted(folder.glob(pattern))]


def cuda_corpus():
    return _all(CORPUS / "cuda", "*.cu", "cuda")


def torch_corpus():
    return _all(CORPUS / "torch", "*.py", "torch")


def samples():
    return _all(SAMPLES, "*.cu", "sample")


def python_loops():
    return _all(SHARED / "python", "*.py", "loop")


def with_twins(cases):
    return cases + [twin for case in cases if (twin := case.twin())]


def known_failures():
    """Cases that do not get the right verdict yet, with the reason."""
    known = {}
    for file in (folder / "known_failures.txt" for folder in (CORPUS, CORPUS / "torch", SAMPLES)):
        for line in file.read_text().splitlines() if file.exists() else []:
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.partition(":")
                known[name.strip()] = reason.strip()
    return known
