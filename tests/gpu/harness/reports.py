"""Owns how StreamSan's JSON reports are read: findings, their sides, their lines.

What a side's words mean, and how a finding is written in a line, follows the same rules as in
tests/src (the end-to-end tests hold the simulated GPU against what a GPU showed).
"""

import json
import os
import re

from .cases import HAZARDS

SHORT = {hazard: word for word, hazard in HAZARDS.items()}
CALLS = (
    ("host", "host"),
    ("memcpy", "copy"),
    ("cudaMemcpy", "copy"),
    ("cuMemcpy", "copy"),
    ("cudaMemset", "set"),
    ("cudaMalloc", "alloc"),
    ("cudaFree", "free"),
)


def load(path):
    """A JSON report, or None where there is none that can be read."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def findings(report):
    """The findings that count: latent ones are left out."""
    return [f for f in report.get("findings", []) if not f.get("latent")]


def kinds(found):
    """The hazards of findings in short: `RAW, host WAR`."""
    return ", ".join(sorted({("host " if f["host"] else "") + SHORT.get(f["hazard"], f["hazard"]) for f in found}))


def is_side(side, words):
    """Whether a side of a finding is what the words of a case's `pair` name."""
    parts = words.split()
    if not parts:
        return True
    if parts[0] == "kernel":
        return next(p for p in parts[1:] if p != "node") in (side.get("kernel") or "")
    for start, operation in CALLS:
        if parts[0].startswith(start):
            return side.get("operation") == operation
    return True


def name(side):
    return side.get("kernel") or side.get("call") or side.get("operation")


def side(of):
    """A side in words: what it is, how it touches the memory, on which stream."""
    return f"{name(of)} [{of.get('kind')}] on {of.get('stream', {}).get('name')}"


def shown(found, output):
    """What a program showed, in one line: hazards with pairs, or what a clean one printed."""
    if not found:
        digest = 0xCBF29CE484222325
        for byte in output:
            digest = (digest ^ byte) * 0x100000001B3 % (1 << 64)
        return f"clean, prints {digest:016x}"

    def plain(of):
        return (name(of) or "?").partition("(")[0].strip()

    return "; ".join(
        sorted(
            {
                f"{'host ' if f['host'] else ''}{SHORT[f['hazard']]} {plain(f['previous'])} / {plain(f['access'])}"
                for f in found
            }
        )
    )


def inner_line(stack):
    """The innermost frame with a file: `file.py:12` and the line itself."""
    for frame in stack or []:
        if frame.get("file") and frame.get("line"):
            source = f" `{frame['source'].strip()}`" if frame.get("source") else ""
            return f"{os.path.basename(frame['file'])}:{frame['line']}{source}"
    return "?"


def line_in(stack, file):
    """The innermost line of one file in a stack, or `?`."""
    return next((str(f["line"]) for f in stack or [] if (f.get("file") or "").endswith(file)), "?")


def python_frame(stack):
    """The innermost frame of Python: `file.py:12`."""
    return next(
        (f"{os.path.basename(f['file'])}:{f['line']}" for f in stack if f["kind"] == "python" and f["file"]), "?"
    )


def numbers_hidden(text):
    """Output with each number made the same: for programs that print times or random values."""
    return re.sub(rb"[-+]?\d[\d.]*(?:e[-+]?\d+)?|nan|inf|0x[0-9a-f]+", b"#", text)
