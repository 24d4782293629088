"""Servers from which inputs are fetched: an S3 server, a web server, and a proxy whose connections break."""

import http.server
import os
import pathlib
import re
import socket
import ssl
import subprocess
import threading
import time

from harness import free_port

# Where the Makefile installs it.
S3S_FS = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "hushdb/tools/bin/s3s-fs-0.14.1"


class S3:
    """An S3 server with the folders of `root` as its buckets."""

    ACCESS, SECRET = "access-key-of-test", "secret-key-of-test"

    def __init__(self, root):
        self.root, self.port = pathlib.Path(root), free_port()
        self.bucket = self.root / "bucket"
        self.bucket.mkdir(parents=True)

    def __enter__(self):
        command = [S3S_FS, "--host", "127.0.0.1", "--port", str(self.port), "--access-key", self.ACCESS, "--secret-key",
                   self.SECRET, self.root]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(400):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return self
            except OSError:
                assert self.process.poll() is None, "the S3 server stopped"
                time.sleep(0.02)
        raise AssertionError("the S3 server does not listen")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def env(self, port=None, secret=SECRET):
        """Returns the environment variables of a client of this server."""
        return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port or self.port}", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": self.ACCESS, "AWS_SECRET_ACCESS_KEY": secret}


class Breaking:
    """A proxy to a port. Connection i breaks after `breaks[i]` bytes of the answer."""

    def __init__(self, target, breaks):
        self.target, self.breaks = target, list(breaks)
        self.requests = []  # the first bytes that clients sent, by connection
        self.answered = 0  # forwarded bytes of answers
        self.broke = lambda: None  # called when a connection breaks

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            left = self.breaks.pop(0) if self.breaks else None
            server = socket.create_connection(("127.0.0.1", self.target))
            threading.Thread(target=self.ask, args=(client, server), daemon=True).start()
            threading.Thread(target=self.answer, args=(server, client, left), daemon=True).start()

    def ask(self, client, server):
        try:
            while piece := client.recv(65536):
                self.requests.append(piece)
                server.sendall(piece)
        except OSError:
            pass

    def answer(self, server, client, left):
        try:
            while piece := server.recv(65536):
                if left is not None and len(piece) >= left:
                    client.sendall(piece[:left])
                    self.answered += left
                    self.broke()
                    break
                left = left and left - len(piece)
                client.sendall(piece)
                self.answered += len(piece)
        except OSError:
            pass
        for end in (client, server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def starts(self):
        """Returns the first byte of the range of each request."""
        found = [re.search(rb"(?im)^range: bytes=(\d+)-", request) for request in self.requests]
        return [int(match[1]) if match else 0 for match in found]


class Web:
    """A web server of files, by path. A text in place of a file is the target of a redirect. Support of ranges is optional. `tls` is a
    certificate and its key."""

    def __init__(self, files, ranges=True, tls=None):
        web = self
        self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                web.asked.append(self.path)
                content = files.get(self.path.split("?")[0])
                if isinstance(content, str):
                    self.send_response(302)
                    self.send_header("Location", content)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                if content is None or "private" in self.path and "sig=" not in self.path:
                    self.send_response(404 if content is None else 403)
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                wanted = re.match(r"bytes=(\d+)-(\d*)$", self.headers.get("Range", "")) if ranges else None
                start, end = 0, len(content)
                if wanted:
                    start, end = int(wanted[1]), min(end, int(wanted[2] or end - 1) + 1)
                self.send_response(206 if wanted else 200)
                if wanted:
                    self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
                self.send_header("ETag", '"%x"' % hash(content))
                self.send_header("Content-Length", str(end - start))
                self.end_headers()
                self.wfile.write(content[start:end])

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.handle_error = lambda *_: None  # ignores connections that clients break off
        self.port = self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
