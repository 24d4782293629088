"""Tests of calls that are awaited, cancelled, or out of time."""

import asyncio
import contextlib
import http.server
import socket
import threading
import time
import urllib.request

import pytest

import hushdb

KEYS = [f"user{i}@example.org" for i in range(20)]


class Between:
    """A proxy that forwards all requests except queries, which it answers as a test chooses."""

    def __init__(self, url):
        between = self
        self.queries, self.hold, self.refuse = 0, threading.Event(), False

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.pass_on(None)

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                between.queries += 1
                between.hold.wait(20)
                if between.refuse:
                    self.send_response(503)
                    self.send_header("content-length", "0")
                    self.end_headers()
                    return
                self.pass_on(body)

            def pass_on(self, body):
                asked = urllib.request.Request(url + self.path, body, {"content-type": self.headers.get("content-type", "")})
                with contextlib.suppress(OSError), urllib.request.urlopen(asked) as answer:
                    content = answer.read()
                    self.send_response(answer.status)
                    self.send_header("content-length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.hold.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.hold.set()
        self._server.shutdown()


@pytest.fixture
def between(server):
    with Between(server.url) as between:
        yield between


def test_a_look_up_that_is_cancelled_stops(between):
    async def cancelled():
        async with await hushdb.connect_async(between.url) as client:
            table = await client.table_async("people")
            between.hold.clear()
            asked = asyncio.create_task(table.get_many_async(KEYS, max_in_flight=1))
            while not between.queries:
                await asyncio.sleep(0.01)
            # The facts of a table do not wait for a look-up.
            began = time.monotonic()
            assert table.facts["records"] == 500 and table.stats["answers"] == 0 and table.name == "people" and repr(table)
            assert time.monotonic() - began < 1
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            assert time.monotonic() - began < 1
            between.hold.set()
            await asyncio.sleep(0.5)
            assert between.queries == 1
            with pytest.raises(asyncio.TimeoutError):
                between.hold.clear()
                await asyncio.wait_for(table.get_async(KEYS[0]), 0.2)
            between.hold.set()
            assert await table.get_async(KEYS[3]) == "Name 3, é".encode()

    asyncio.run(cancelled())


def test_so_many_look_ups_are_under_way_at_most(between, people_table):
    table = hushdb.connect(between.url).table("people")
    wanted = [f"Name {i}, é".encode() for i in range(20)]
    assert table.get_many(KEYS, max_in_flight=6) == wanted and between.queries == 4
    assert table.get_many(KEYS) == wanted and between.queries == 5
    assert hushdb.open(people_table).get_many(KEYS, max_in_flight=6) == wanted
    for refused in (table, hushdb.open(people_table)):
        with pytest.raises(hushdb.OptionError, match="max_in_flight"):
            refused.get_many(KEYS, max_in_flight=0)


def test_a_timeout_is_of_the_whole_call(between):
    between.refuse = True
    table = hushdb.connect(between.url, timeout=1, attempts=100).table("people")
    began = time.monotonic()
    with pytest.raises(hushdb.HushError):
        table.get(KEYS[0])
    assert time.monotonic() - began < 1.3 and 1 < between.queries < 20
    asked = between.queries
    table = hushdb.connect(between.url, attempts=1).table("people")
    with pytest.raises(hushdb.ServerBusy):
        table.get(KEYS[0])
    assert between.queries == asked + 1
    between.hold.clear()
    table = hushdb.connect(between.url, timeout=0.3).table("people")
    began = time.monotonic()
    with pytest.raises(hushdb.TimedOut):
        table.get(KEYS[0])
    assert time.monotonic() - began < 1
    with pytest.raises(hushdb.OptionError, match="attempts"):
        hushdb.connect(between.url, attempts=0)


def test_a_server_that_says_a_little_now_and_then_is_out_of_time():
    with socket.create_server(("127.0.0.1", 0)) as slow:
        def drip():
            connection, _ = slow.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
                while True:
                    connection.sendall(b" ")
                    time.sleep(0.05)

        threading.Thread(target=drip, daemon=True).start()
        began = time.monotonic()
        with pytest.raises(hushdb.TimedOut):
            hushdb.connect(f"http://127.0.0.1:{slow.getsockname()[1]}", timeout=0.5)
        assert time.monotonic() - began < 1


def test_a_build_that_is_cancelled_ends(tmp_path):
    import polars

    frame = polars.DataFrame({"key": [str(i) for i in range(500_000)], "value": ["x" * 40] * 500_000})

    async def cancelled():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(hushdb.build_async(frame, out=tmp_path / "table", key="key", protocol="colpack"), 0.3)

    asyncio.run(cancelled())
    time.sleep(1)
    assert not (tmp_path / "table").exists()
