"""Fetches the files below PATH of NAME==VERSION into FOLDER, out of its wheel and without the rest of it.

Some projects publish hundreds of megabytes of libraries around the Python that is wanted."""
import base64
import csv
import hashlib
import io
import json
import pathlib
import re
import sys
import urllib.request
import zipfile


class Remote(io.RawIOBase):
    """A file on a server that answers to ranges."""

    def __init__(self, url, size):
        self.url, self.size, self.position = url, size, 0

    def readable(self):
        return True

    def seekable(self):
        return True

    def seek(self, offset, whence=io.SEEK_SET):
        self.position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self.size}[whence]
        return self.position

    def readinto(self, buffer):
        end = min(self.position + len(buffer), self.size)
        if end <= self.position:
            return 0
        asked = urllib.request.Request(self.url, headers={"Range": f"bytes={self.position}-{end - 1}"})
        with urllib.request.urlopen(asked, timeout=120) as answer:
            assert answer.status == 206, f"{self.url}: no ranges"
            part = answer.read()
        buffer[: len(part)] = part
        self.position += len(part)
        return len(part)


requirement, below, folder = sys.argv[1:]
name, version = requirement.split("==")
asked = urllib.request.Request(
    f"https://pypi.org/simple/{re.sub('[-_.]+', '-', name).lower()}/",
    headers={"Accept": "application/vnd.pypi.simple.v1+json"},
)
with urllib.request.urlopen(asked, timeout=120) as answer:
    files = json.load(answer)["files"]
wanted = re.compile(
    rf"{re.sub('[-_.]+', '[-_.]+', name)}-{re.escape(version)}-(py3-none|cp\d+-abi3|cp312-cp312)-(any|.*x86_64)\.whl", re.I
)
file = min((file for file in files if wanted.fullmatch(file["filename"])), key=lambda file: file["size"])
# The table of contents is at the end, and so are the hashes: one read has them, another what is wanted.
with zipfile.ZipFile(io.BufferedReader(Remote(file["url"], file["size"]), 1 << 20)) as wheel:
    (record,) = [name for name in wheel.namelist() if name.endswith(".dist-info/RECORD")]
    hashes = {path: value for path, value, _ in csv.reader(wheel.read(record).decode().splitlines())}
    paths = [path for path in wheel.namelist() if path.startswith(below) and not path.endswith("/")]
    assert paths, f"{file['filename']} has nothing below {below}"
    for path in paths:
        content = wheel.read(path)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        assert hashes[path] == f"sha256={digest}", path
        target = pathlib.Path(folder, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
