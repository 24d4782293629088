"""Tests of traces and logs, as a collector of OpenTelemetry receives them (opentelemetry/proto, version 1)."""

import http.server
import threading
import time

from harness import HushTest, request
from wire import fields


class Collector:
    """A collector that stores everything that it receives, by path."""

    def __init__(self):
        self.got = got = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                got.append((self.path, self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def items(self, path):
        """Yields the spans, or the records of the log: the members of every scope of every resource."""
        for own, content_type, body in self.got:
            if own == path:
                assert content_type == "application/x-protobuf", content_type
                for number, resource in fields(body):
                    assert number == 1
                    assert b"hushdb" in dict(fields(resource))[1], "the resource names the service"
                    scopes = [scope for number, scope in fields(resource) if number == 2]
                    yield from (dict_of(item) for scope in scopes for number, item in fields(scope) if number == 2)


def dict_of(item):
    """Returns the fields of a message, by number, each as a list of its values."""
    members = {}
    for number, value in fields(item):
        members.setdefault(number, []).append(value)
    return members


def attributes(span):
    """Returns the attributes of a span, by name. A value is text or a number."""
    pairs = (dict(fields(pair)) for pair in span.get(9, ()))
    return {pair[1].decode(): fields(pair[2])[0][1] for pair in pairs}


class Otlp(HushTest):
    def test_requests_and_scans_are_traced_and_nobody_is_named(self):
        table = self.build(self.csv([("a key of its own", "a value")]), "--key", "key", "--protocol", "frodo")
        with Collector() as collector:
            with self.serve(table, args=("--otlp", collector.url), env={**self.env, "RUST_LOG": "info,hush_server=debug"}) as (url, _):
                self.assertEqual(self.get(url, "a key of its own")[1][0]["value"], "a value")
                own = "0af7651916cd43dd8448eb211c80319c"
                request(f"{url}/v1/tables", headers={"traceparent": f"00-{own}-b7ad6b7169203331-01"})
                request(f"{url}/v1/a%20key%20of%20its%20own", method="BREW")
            spans = list(collector.items("/v1/traces"))
            named = {span[5][0].decode(): span for span in spans}
            query = named["POST /v1/tables/{table}/query"]
            self.assertEqual(query[6], [2])  # the kind: server
            self.assertLess(query[7][0], query[8][0])
            self.assertEqual(attributes(query), {"http.request.method": b"POST", "http.route": b"/v1/tables/{table}/query",
                                                 "http.response.status_code": 200})
            self.assertEqual(attributes(named["scan"]), {"table": b"table", "queries": 1})
            self.assertIn("_OTHER other", named)
            self.assertNotIn(bytes.fromhex(own), [span[1][0] for span in spans])
            logged = b"".join(body for path, _, body in collector.got if path == "/v1/logs")
            self.assertIn(b"/v1/tables/{table}/query", logged)
            everything = b"".join(body for _, _, body in collector.got)
            for said in (b"a key of its own", b"a%20key", b"127.0.0.1"):
                self.assertNotIn(said, everything)

    def test_a_collector_that_is_not_there_holds_nothing_up(self):
        table = self.build(self.csv([("k", "v")]), "--key", "key", "--protocol", "frodo")
        with self.serve(table, args=("--otlp", "http://127.0.0.1:1")) as (url, process):
            self.assertEqual(self.get(url, "k")[1][0]["value"], "v")
            began = time.time()
            process.terminate()
            self.assertEqual(process.wait(timeout=30), 0)
            self.assertLess(time.time() - began, 15)

    def test_what_is_no_url_is_refused(self):
        table = self.build(self.csv([("k", "v")]), "--key", "key", "--protocol", "frodo")
        for url in ("collector", "grpc://collector:4317"):
            line = self.fails("serve", table, "--listen", "127.0.0.1:0", "--otlp", url)
            self.assertIn(f"--otlp {url}: ", line)
            self.assertIn("give the URL of a collector", line)
