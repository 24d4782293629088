"""Tests of parts of a table on a web server: they fetch only the bytes that they scan, once, and check them by the table's header."""

import http.server
import re
import threading

import polars
import pytest

import hushdb
from hushdb import _native

ROWS, CHUNK = 24_000, 4 << 20


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Makes a table of several chunks, so that parts have different ones."""
    frame = polars.DataFrame({"value": [f"{i:06} ".encode() * 146 for i in range(ROWS)]})
    out = tmp_path_factory.mktemp("elsewhere") / "long"
    hushdb.build(frame, out=out, protocol="simple", columns=1024)
    return out


class Web(http.server.ThreadingHTTPServer):
    """A web server of a folder that supports ranges. `sent` has the requested ranges of the database."""

    def __init__(self, folder):
        super().__init__(("127.0.0.1", 0), Ranges)
        self.folder, self.sent, self.spoils = folder, [], False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/long"


class Ranges(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        name = self.path.rpartition("/")[2]
        content = (self.server.folder / name).read_bytes()
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range", ""))
        start, end = (int(asked[1]), int(asked[2]) + 1) if asked else (0, len(content))
        body = bytearray(content[start:end])
        if name == "db.bin":
            self.server.sent.append((start, end))
            body[0] ^= self.server.spoils
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("content-range", f"bytes {start}-{end - 1}/{len(content)}")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def web(table):
    with Web(table) as server:
        yield server
        server.shutdown()


def test_a_part_fetches_its_share_alone(web, table, tmp_path):
    source = _native.Source(web.url, True, str(tmp_path))
    assert (source.name, source.is_remote) == ("long", True)
    size = (table / "db.bin").stat().st_size
    first = _native.Part(source, 0, [1, 3], 1, "cpu")
    ours = set(web.sent)
    assert 0 < sum(end - start for start, end in ours) < size / 4 + 2 * CHUNK
    second = _native.Part(source, 1, [1, 3], 1, "cpu")
    assert first.epoch == second.epoch == source.epoch()
    # Every chunk is fetched once: parts on one machine share their chunks.
    assert len(web.sent) == len(set(web.sent)) == -(-size // CHUNK)
    _native.Part(source, 1, [1, 1], 1, "cpu")
    assert len(web.sent) == -(-size // CHUNK)


def test_what_is_damaged_there_is_not_scanned(web, tmp_path):
    web.spoils = True
    source = _native.Source(web.url, True, str(tmp_path))
    with pytest.raises(hushdb.InputError, match=r"db.bin: the checksum of bytes \d+ to \d+ differs: it is damaged there"):
        _native.Part(source, 0, [1, 1], 1, "cpu")
    web.spoils = False
    _native.Part(source, 0, [1, 1], 1, "cpu")


def test_a_folder_is_checked_by_shares(table, tmp_path):
    import shutil

    shutil.copytree(table, tmp_path / "long")
    with open(tmp_path / "long/db.bin", "r+b") as file:
        file.write(b"\xff")
    source = _native.Source(str(tmp_path / "long"), True, None)
    with pytest.raises(hushdb.InputError, match="db.bin is damaged"):
        _native.Part(source, 0, [1, 1], 1, "cpu")
    _native.Part(source, 1, [1, 1], 1, "cpu")
    _native.Part(_native.Source(str(tmp_path / "long"), False, None), 0, [1, 1], 1, "cpu")


def test_a_whole_cluster_serves_it(web, tmp_path):
    import hushdb.ray

    with hushdb.ray.serve(web.url, parts=3, cpus=0.5, cache=tmp_path) as service:
        with service.connect() as client:
            assert client.table("long").get(ROWS - 1).startswith(f"{ROWS - 1:06} ".encode())
        assert all(part["path"] == web.url for part in service.status())
