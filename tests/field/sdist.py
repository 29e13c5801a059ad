"""Fetches the published source of NAME==VERSION and unpacks it into FOLDER, without running any of it.

pip would run the project's set-up, which may want a compiler or PyTorch."""
import hashlib
import io
import json
import re
import sys
import tarfile
import urllib.request

requirement, folder = sys.argv[1:]
name, version = requirement.split("==")
asked = urllib.request.Request(
    f"https://pypi.org/simple/{re.sub('[-_.]+', '-', name).lower()}/",
    headers={"Accept": "application/vnd.pypi.simple.v1+json"},
)
with urllib.request.urlopen(asked, timeout=120) as answer:
    files = json.load(answer)["files"]
wanted = re.compile(rf"[A-Za-z0-9_.-]+-{re.escape(version)}\.tar\.gz")
(file,) = [file for file in files if wanted.fullmatch(file["filename"])]
with urllib.request.urlopen(file["url"], timeout=300) as answer:
    archive = answer.read()
assert hashlib.sha256(archive).hexdigest() == file["hashes"]["sha256"], file["filename"]
with tarfile.open(fileobj=io.BytesIO(archive)) as source:
    for member in source.getmembers():
        # The archive has one folder, named as itself.
        member.name = member.name.partition("/")[2]
        if member.name:
            # Older Pythons have no filters.
            source.extract(member, folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
