"""Recordings in segments (`streamsan record --segment-mib`): a folder that is one trace.

Owns which files of a listing belong to one, what a saved folder (`--keep-last`) belongs to, and how a recording is fetched. Reads
no more of a segment than its header, and that only where nothing else tells.
"""

import hashlib
import os
import re

# As in the crate `trace`: the first bytes of every trace, and the versions behind them that segments have.
MAGIC, VERSIONS = b"StrmTrc\n", (2, 4)
SHARED = "shared"
NAMED = re.compile(r"/(\d{6,})\.(?:trace|part)$")
SAVED = re.compile(r"/saved-\d+-[^/]+$")


def number(path):
    """The number of the segment that a file is named as; None: it is not named so."""
    match = NAMED.search(path)
    return int(match[1]) if match else None


def of(folder):
    """The folder of the recording that a folder with segments belongs to: itself, or where it was saved."""
    return SAVED.sub("", folder)


def folders(fs, found):
    """The recordings among these files: folder -> its segments, and what these share. A folder whose segments are gone has none."""
    segments, beside = {}, {}
    for name in found:
        folder, _, file = name.rpartition("/")
        if number(name) is not None:
            segments.setdefault(folder, []).append(name)
        elif folder.endswith(f"/{SHARED}") and file.endswith((".code", ".late")):
            beside.setdefault(folder.rpartition("/")[0], []).append(name)
    held = {folder: (names, beside.get(folder) or beside.get(of(folder), [])) for folder, names in segments.items()
            if folder in beside or of(folder) in beside or is_segment(fs, names[0])}
    return {**{folder: ([], names) for folder, names in beside.items()}, **held}


def is_segment(fs, path):
    """Whether the header is that of a segment: ranks may have numbers for names, too."""
    try:
        with fs.open(path, "rb") as file:
            head = file.read(16)
    except OSError:
        return False
    return head[:8] == MAGIC and int.from_bytes(head[8:12], "little") in VERSIONS


def is_copy(folder, held):
    """Whether all that was saved in a folder is still in that of the recording, which is checked anyway."""
    names = lambda of: {number(name) for name in held.get(of, ((), ()))[0]}
    return of(folder) != folder and names(folder) <= names(of(folder))


def digest(folder, sizes):
    """Stands for the files of a recording (name -> size): another one if any of them is another."""
    seen = sorted((name[len(of(folder)):], size) for name, size in sizes.items())
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:20]


def fetch(fs, folder, to):
    """Copies a recording to this machine. Files that go away meanwhile (`--keep-last` deletes) are left out: the analyzer names what
    is missing."""
    os.mkdir(to)
    fs.invalidate_cache(folder)
    wanted = [(name, to) for name in fs.find(folder, maxdepth=1) if number(name) is not None]
    beside = next((place for place in (f"{folder}/{SHARED}", f"{of(folder)}/{SHARED}") if fs.isdir(place)), None)
    if beside:
        os.mkdir(f"{to}/{SHARED}")
        wanted += [(name, f"{to}/{SHARED}") for name in fs.find(beside, maxdepth=1)]
    for name, place in wanted:
        file = f"{place}/{name.rsplit('/', 1)[-1]}"
        try:
            fs.get_file(name, file)
        except FileNotFoundError:
            if os.path.exists(file):
                os.unlink(file)
