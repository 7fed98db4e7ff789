"""A folder of pages, served so that the browser shows each of them anew when it is another one."""

import functools
import http.server
import sys
import threading
import time
from pathlib import Path

LOOK = 0.1  # seconds between two looks at a file
WATCH = """<script>
const wait = async () => {
  try { if ((await fetch("/shown/{0}")).status == 205) return location.reload() } catch {
    await new Promise((done) => setTimeout(done, 1000));
  }
  wait();
};
wait();
</script></body>"""


class Server(http.server.SimpleHTTPRequestHandler):
    """The files of the site; a page learns when it is another one."""

    def log_message(self, *args):
        """Says nothing."""

    def do_GET(self):
        file = Path(self.translate_path(self.path))
        if self.path.startswith("/shown/"):
            self.wait_for(Path(self.directory, self.path.removeprefix("/shown/")))
        elif self.path.endswith("/sw.js"):
            self.send_error(404)  # nothing is kept: each save shows
        elif file.suffix == ".html" and file.exists():
            text = file.read_text(encoding="utf-8").replace(
                "</body>", WATCH.replace("{0}", self.path.lstrip("/").split("?")[0])
            )
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(text.encode())
        else:
            super().do_GET()

    def wait_for(self, file, seconds=20):
        """Answer when the file is another one, or when nothing came for some time."""
        before, end = file.stat().st_mtime_ns if file.exists() else 0, time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(LOOK)
            if file.exists() and file.stat().st_mtime_ns != before:
                self.send_response(205)
                break
        else:
            self.send_response(204)
        self.end_headers()


def serve(folder, port):
    """The site on this machine, while this process goes on; returns its address."""
    handler = functools.partial(Server, directory=str(folder))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError:
        sys.exit(f"Port {port} is taken: make page P=... PORT={port + 1}")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"
