"""A proxy between client and server that records requests."""

import http.server
import socket
import threading

from harness import request


class Proxy:
    """A proxy to `target`, which may change. The proxy's own URL stays, so that clients see one server."""

    def __init__(self, target):
        self.target = target
        self.requests = []  # (method, path, body)
        self.answers = []  # (status, length)
        self.before = lambda method, path: None  # called before a request is forwarded
        # Returns where the connection breaks: before the "request" is forwarded, before the "answer" comes back, or None.
        self.breaks = lambda method, path: None

    def __enter__(self):
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def forward(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                proxy.requests.append((self.command, self.path, body))
                proxy.before(self.command, self.path)
                breaks = proxy.breaks(self.command, self.path)
                if breaks == "request":
                    return self.hang_up()
                names = ("Content-Type", "Range", "If-Range")
                headers = {name: self.headers[name] for name in names if name in self.headers}
                data = body if self.command in ("POST", "PUT") else None
                status, headers, answer = request(proxy.target + self.path, data, headers, method=self.command)
                proxy.answers.append((status, len(answer)))
                if breaks == "answer":
                    return self.hang_up()
                self.send_response(status)
                for name in ("Content-Type", "Content-Range", "ETag", "Retry-After"):
                    if name in headers:
                        self.send_header(name, headers[name])
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def hang_up(self):
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)

            do_GET = do_HEAD = do_POST = do_PUT = forward

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def sent(self, method):
        """Returns the (path, body) pairs of all requests of this method."""
        return [(path, body) for verb, path, body in self.requests if verb == method]
