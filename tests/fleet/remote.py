"""remote.py FOLDER URL [SINCE]: copies FOLDER to URL/in, checks it from there into the dataset URL/out, and prints the rows as JSON.

Owns nothing but that order, for any file system of fsspec: `memory://x` in the tests, `s3://bucket` by hand. Prints names of traces
below URL/in, so that the answer is that of the folder itself.
"""
import contextlib
import io
import json
import sys

import fsspec

from streamsan.fleet import __main__, report

folder, url = sys.argv[1:3]
fs, root = fsspec.core.url_to_fs(f"{url}/in")
fs.put(f"{folder.rstrip('/')}/", root, recursive=True)
if __name__ == "__main__":
    codes = []
    for _ in range(2):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            codes.append(__main__.main(["check", f"{url}/in", "--out", f"{url}/out", "--date", "2026-11-25"]))
    with report.opened(f"{url}/out") as connection:
        ask = lambda text: [list(row) for row in connection.execute(text).fetchall()]
        start = len(fs.unstrip_protocol(root)) + 1
        below = lambda rows: [[v[start:] if isinstance(v, str) and "://" in v[:20] else v for v in row] for row in rows]
        found = below(ask("SELECT trace, job, machine, fingerprint, occurrences FROM findings ORDER BY ALL"))
        traces = below(ask("SELECT trace, job, machine, rank, status, segments, findings FROM traces ORDER BY ALL"))
        errors = ask("SELECT error FROM traces WHERE error IS NOT NULL ORDER BY trace")
    print(json.dumps({"codes": codes, "again": said.getvalue(), "findings": found, "traces": traces, "errors": errors}))
