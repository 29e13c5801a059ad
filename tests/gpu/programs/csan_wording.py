"""Holds what `--format csan` prints against the error classes of PyTorch's own CUDA Sanitizer: every error is read back into the fields of
those classes, which then print it. Needs no GPU.

  csan_wording.py STREAMSAN TRACE... [--sanitizer FILE]      FILE: torch/cuda/_sanitizer.py (default: that of the installed PyTorch)
"""
import argparse
import ast
import enum
import io
import pathlib
import re
import subprocess
import sys
import textwrap
import traceback
from dataclasses import dataclass, field

WANTED = {"AccessType", "Access", "SynchronizationError", "UnsynchronizedAccessError", "CUDASanitizerErrors"}
ERROR = re.compile(
    r"={28}\nCSAN detected a possible data race on tensor with data pointer (?P<pointer>\d+)\n"
    r"Access by stream (?P<s1>\d+) during kernel:\n(?P<a1>.*?)\n\n"
    r"Previous access by stream (?P<s2>\d+) during kernel:\n(?P<a2>.*?)\n\n"
    r"(?:Tensor was allocated with stack trace:\n(?P<made>(?:  [^\n]*\n)+)|Trace for tensor allocation not found\.\n)", re.S)


def classes(path):
    """The classes alone: the module around them wants a whole PyTorch."""
    tree = ast.parse(path.read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name in WANTED]
    names = {"enum": enum, "io": io, "textwrap": textwrap, "traceback": traceback, "dataclass": dataclass, "field": field,
             "DataPtr": int, "StreamId": int, "SeqNum": int, "__name__": "csan"}
    sys.modules.setdefault("csan", type(sys)("csan"))
    exec(compile(tree, str(path), "exec"), names)
    return names


def stack(text):
    frames = re.findall(r'  File "(.*)", line (\d+), in (.*)\n(?:    (.*)\n)?', text)
    return traceback.StackSummary.from_list([(file, int(line), name, source or "") for file, line, name, source in frames])


def access(theirs, stream, text):
    operator, does, title, *lines = text.split("\n")
    assert title == "With stack trace:", title
    match = re.fullmatch(r"(reading from|writing to)(?: argument\(s\) (.*?))?(,? ?(?:and to)? the output)?( memory)?", does)
    assert match, does
    kind = theirs["AccessType"].READ if match[1] == "reading from" else theirs["AccessType"].WRITE
    made = theirs["Access"](kind, 0, int(stream), operator, (match[2] or "").split(", ") if match[2] else [], bool(match[3]),
                            stack("\n".join(lines) + "\n"))
    return made, bool(match[4])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streamsan")
    parser.add_argument("traces", nargs="+")
    parser.add_argument("--sanitizer", type=pathlib.Path)
    args = parser.parse_args()
    if args.sanitizer is None:
        import importlib.util
        args.sanitizer = pathlib.Path(importlib.util.find_spec("torch").origin).parent / "cuda/_sanitizer.py"
    theirs, seen = classes(args.sanitizer), 0
    for trace in args.traces:
        text = subprocess.run([args.streamsan, "check", "--format", "csan", trace], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        errors = list(ERROR.finditer(text))
        assert len(errors) == text.count("CSAN detected"), f"{trace}: an error that can not be read\n{text}"
        for error in errors:
            (now, memory), (before, memory2) = access(theirs, error["s1"], error["a1"]), access(theirs, error["s2"], error["a2"])
            told = str(theirs["UnsynchronizedAccessError"](int(error["pointer"]), stack(error["made"]) if error["made"] else None, now, before))
            if memory or memory2:  # what that tool does not know: a copy or another library's kernel has no arguments and no output
                told = re.sub(r"^(reading from|writing to)$", r"\1 memory", told, flags=re.M)
            ours = error[0].rstrip("\n")
            if told.rstrip("\n") != ours:
                sys.exit(f"{trace}: not the sanitizer's words\n--- theirs\n{told}\n--- ours\n{ours}")
            seen += 1
        if errors:
            assert f"{theirs['CUDASanitizerErrors'](errors)}\n" in text, "the count"
    print(f"{seen} errors in the sanitizer's words")


if __name__ == "__main__":
    main()
