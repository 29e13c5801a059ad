"""Opens pages of a folder in headless Chromium as a reader would, at several widths, and prints what the script found as JSON.

    browse.py BROWSER FOLDER SCRIPT.js PAGE...      PAGE: a path below FOLDER, as the server of a site has it (`guide/hunt/`)

The pages come from a server of this program's, so that scripts, workers and frames are of one origin. SCRIPT.js runs in a page of its
own with the list `pages`, puts each page into a frame of the width it wants, and calls `answer(value)` once.
"""

import functools
import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading

HOST_PAGE = """<!doctype html><meta charset="utf-8"><title>widths</title><body style="margin:0"><script>
const pages = @PAGES@;
const answer = value => fetch("/answer", { method: "POST", body: JSON.stringify(value) });
addEventListener("error", e => answer({ error: String(e.message) }));
addEventListener("unhandledrejection", e => answer({ error: String(e.reason && e.reason.stack || e.reason) }));
(async () => {
@SCRIPT@
})();
</script></body>
"""
PATIENCE = 240


def main():
    browser, folder, script, *pages = sys.argv[1:]
    host = HOST_PAGE.replace("@PAGES@", json.dumps(pages)).replace("@SCRIPT@", pathlib.Path(script).read_text()).encode()
    told, done = [], threading.Event()

    class Server(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            if self.path != "/look":
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(host)))
            self.end_headers()
            self.wfile.write(host)

        def do_POST(self):
            told.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()
            done.set()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        flags = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --remote-debugging-port=0 --window-size=1400,1000".split()
        started = subprocess.Popen([browser, *flags, f"--user-data-dir={home}", f"http://127.0.0.1:{server.server_port}/look"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        in_time = done.wait(PATIENCE)
        started.terminate()
        started.wait()
    if not in_time:
        sys.exit(f"browse: no answer within {PATIENCE} s")
    print(told[0].decode())


main()
