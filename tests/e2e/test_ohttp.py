"""Tests of Oblivious HTTP: look-ups through a relay, the view of each party, and failures."""

import contextlib
import email.utils
import http.server
import json
import subprocess
import threading
import time

from certificates import Authority
from harness import BINARY, free_port, request, wait_ready
from keyed import KeyedTest, values
from test_tls import port_of
from wiretap import Wiretap

RECORDS = values(300, 100)
GATEWAY = "/.well-known/ohttp-gateway"


class OhttpTest(KeyedTest):
    def setUp(self):
        super().setUp()
        self.keys = self.dir / "gateway.json"
        self.rotate()

    def rotate(self):
        result = self.hushdb("gateway-key", "rotate", "--keys", self.keys)
        self.assertEqual(result.returncode, 0, result.stderr)

    @contextlib.contextmanager
    def relay(self, gateway, *args):
        """Runs a relay for a server, and yields its URL and its process."""
        health = f"127.0.0.1:{free_port()}"
        process = subprocess.Popen(
            [BINARY, "relay", "--gateway", gateway, "--listen", "127.0.0.1:0", "--listen-health", health, *map(str, args)],
            stderr=subprocess.PIPE, text=True, env=self.env)
        try:
            lines = [process.stderr.readline() for _ in range(2)]
            url = next(line.split()[2].rstrip(",") for line in lines if line.startswith("listening on "))
            wait_ready(f"http://{health}", process)
            yield url, process
        finally:
            process.terminate()
            process.communicate(timeout=40)

    def served(self, table, *args, **kwargs):
        return self.serve(table, args=["--gateway-keys", self.keys, *args], **kwargs)

    def look_up(self, url, relay, key, *args, env=None):
        result = self.hushdb("get", url, key, "--json", "--relay", relay, *args, env=env or self.env)
        return result.returncode, result.stdout, result.stderr


class Relaying(OhttpTest):
    def test_look_ups_have_one_size_and_the_relay_alone_talks_to_the_server(self):
        for protocol in ("colpack", "simple", "onion"):
            table = self.table(RECORDS, protocol, name=protocol)
            with self.served(table) as (url, _), Wiretap(("127.0.0.1", port_of(url))) as tap:
                with self.relay(f"http://127.0.0.1:{tap.port}") as (relay, _):
                    with Wiretap(("127.0.0.1", port_of(relay))) as client:
                        # Nobody answers at the server's own name: a direct request would fail.
                        behind = ["http://hush.example", "--relay", f"http://127.0.0.1:{client.port}"]
                        self.get(*behind, "k0")
                        self.assertIn("the server saw that someone behind the relay", self.hushdb("get", *behind, "k0", "--stats").stderr)
                        seen = set()
                        for key in ("k0", "k199", "absent", "", "x" * 4096):
                            client.take()
                            _, [answer] = self.get(*behind, key)
                            self.assertEqual(answer["value"], RECORDS.get(key), (protocol, key))
                            seen.add(client.take())
                        self.assertEqual(len(seen), 1, (protocol, seen))
                        self.assertGreater(tap.bytes[0], 0)

    def test_a_relay_has_keys_of_its_own(self):
        table = self.table(RECORDS, "onion")
        with self.served(table) as (url, _), self.relay(url) as (relay, _):
            pinned = self.dir / "server.keys"
            pinned.write_bytes(request(url + GATEWAY)[2])
            keys = lambda: int(next(line for line in request(url + "/metrics")[2].splitlines() if line.startswith(b"hush_keys "))[10:])
            ways = ([], ["--relay", relay], ["--relay", relay, "--ohttp-keys", pinned])
            for count, way in enumerate(ways, 1):
                self.ask(url, "k7", *way)
                self.assertEqual(keys(), count, "what was asked another way does not link it")
            for way in ways:
                self.assertEqual(self.ask(url, "k8", *way)[1]["key_bytes_up"], 0, "each is known by now")

    def test_a_long_hint_comes_in_pieces(self):
        records = values(3000, 9000)
        table = self.table(records, "simple")
        hints = [path.stat().st_size for path in table.glob("*hint*")]
        self.assertGreater(max(hints), 5 << 20, "longer than a piece")
        with self.served(table) as (url, _), self.relay(url) as (relay, _):
            found, stats = self.ask(url, "k7", "absent", "--relay", relay)
            self.assertEqual(found, [records["k7"], None])

    def test_the_relay_tells_nothing_of_who_asks(self):
        heard = []

        class Gateway(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                heard.append(dict(self.headers.items()))
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        gateway = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Gateway)
        threading.Thread(target=gateway.serve_forever, daemon=True).start()
        with self.relay(f"http://127.0.0.1:{gateway.server_port}") as (relay, _):
            headers = {"Content-Type": "message/ohttp-req", "Cookie": "a", "User-Agent": "b", "X-Forwarded-For": "10.1.2.3"}
            self.assertEqual(request(relay, b"sealed", headers)[0], 200)
            self.assertEqual(request(relay, b"sealed", {"Content-Type": "text/plain"})[0], 415)
            self.assertEqual(request(relay + "/v1/tables")[0], 404)
        gateway.shutdown()
        gateway.server_close()
        self.assertEqual(len(heard), 1)
        names = {name.lower() for name in heard[0]}
        self.assertLessEqual(names, {"host", "content-type", "content-length", "user-agent", "accept", "accept-encoding"})
        self.assertTrue(heard[0]["user-agent"].startswith("hushdb/"), heard)

    def test_with_tls_on_both_ways_and_a_token(self):
        authority = Authority(self.dir, "authority")
        cert, key = authority.sign("server")
        tls, trust = ["--tls-cert", cert, "--tls-key", key], ["--ca-cert", authority.cert]
        tokens = self.dir / "tokens.json"
        token = self.hushdb("token", "create", "--tokens", tokens, "--name", "a").stdout.strip()
        env = {**self.env, "HUSHDB_TOKEN": token}
        table = self.table(RECORDS, "colpack")
        with self.served(table, *tls, "--tokens", tokens) as (url, _), self.relay(url, *tls, *trust) as (relay, _):
            self.assertTrue(url.startswith("https://") and relay.startswith("https://"))
            code, _, error = self.look_up(url, relay, "k1", *trust)
            self.assertEqual(code, 2)
            self.assertIn("asks for a token: give one with HUSHDB_TOKEN", error)
            # A relay that forged the keys could read the token.
            code, _, error = self.look_up(url, relay, "k1", *trust, env=env)
            self.assertEqual(code, 2)
            self.assertIn("/.well-known/ohttp-gateway, and name the file with --ohttp-keys", error)
            pinned = self.dir / "server.keys"
            status, headers, keys = request(url + GATEWAY)
            self.assertEqual((status, headers["Content-Type"]), (200, "application/ohttp-keys"))
            pinned.write_bytes(keys)
            pins = ["--ohttp-keys", pinned]
            code, out, error = self.look_up(url, relay, "k1", *trust, *pins, env=env)
            self.assertEqual(code, 0, error)
            self.assertIn(RECORDS["k1"], out)

            # The two keys before the newest are valid. The third is not: a client that has pinned it must fetch the new key.
            for turn in range(3):
                self.rotate()
                self.wait_for("a new key", lambda: request(url + GATEWAY)[2] != keys)
                keys = request(url + GATEWAY)[2]
                code, _, error = self.look_up(url, relay, "k2", *trust, *pins, env=env)
                self.assertEqual(code, 0 if turn < 2 else 2, error)
            self.assertIn("the server has other keys by now: fetch them from it again", error)
            listed = self.hushdb("gateway-key", "list", "--keys", self.keys).stdout
            self.assertEqual(listed.count("opens what was sealed"), 2, listed)
            self.assertEqual(listed.count("clients get it"), 1, listed)

    def test_a_rotation_is_followed(self):
        table = self.table(RECORDS, "colpack")
        with self.served(table) as (url, _), self.relay(url) as (relay, _):
            self.assertEqual(self.look_up(url, relay, "k1")[0], 0)
            for _ in range(3):
                before = request(url + GATEWAY)[2]
                self.rotate()
                self.wait_for("a new key", lambda: request(url + GATEWAY)[2] != before)
            # The relay still has the old key, which is no longer valid.
            self.assertNotEqual(request(relay)[2], request(url + GATEWAY)[2])
            code, _, error = self.look_up(url, relay, "k1")
            self.assertEqual(code, 0, error)


class Recording:
    """A relay that records requests, with a clock that is some seconds off."""

    def __init__(self, gateway, off=0):
        relay = self
        self.sealed = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.answer(request(gateway + GATEWAY))

            def do_POST(self):
                sealed = self.rfile.read(int(self.headers["Content-Length"]))
                relay.sealed.append(sealed)
                self.answer(relay.send(sealed))

            def answer(self, answer):
                status, headers, body = answer
                self.send_response(status)
                self.send_header("Content-Type", headers["Content-Type"])
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def date_time_string(self, timestamp=None):
                return email.utils.formatdate(time.time() + off, usegmt=True)

            def log_message(self, *_):
                pass

        self.gateway = gateway
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def send(self, sealed):
        return request(self.gateway + GATEWAY, sealed, {"Content-Type": "message/ohttp-req"})

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self, f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Replays(OhttpTest):
    def metric(self, url, name):
        lines = request(url + "/metrics")[2].decode().splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(name + " "))

    def test_a_sealed_request_is_answered_once(self):
        table = self.table(RECORDS, "colpack")
        with self.served(table) as (url, _):
            with Recording(url) as (relay, at):
                code, out, error = self.look_up(url, at, "k1")
                self.assertEqual(code, 0, error)
                self.assertIn(RECORDS["k1"], out)
                for sealed in relay.sealed * 2:
                    status, _, body = relay.send(sealed)
                    self.assertEqual((status, json.loads(body)["code"]), (409, "ohttp_replay"))
                self.assertEqual(self.metric(url, "hush_ohttp_replays_total"), 2 * len(relay.sealed))
                self.assertEqual(self.metric(url, 'hush_queries_answered_total{table="table"}'), 1)
                recorded = relay.sealed
            # Another process does not know the answered requests, but refuses those from before its start.
        with self.served(table) as (url, _):
            relay = Recording(url)
            for sealed in recorded:
                status, headers, _ = relay.send(sealed)
                self.assertEqual((status, headers["Content-Type"]), (200, "message/ohttp-res"))
            self.assertEqual(self.metric(url, "hush_ohttp_dates_refused_total"), len(recorded))
            relay.server.server_close()

    def test_clocks_that_are_wrong_cost_a_request(self):
        table = self.table(RECORDS, "colpack")
        with self.served(table) as (url, _):
            for off in (-86400, 86400):
                before = self.metric(url, "hush_ohttp_dates_refused_total")
                with Recording(url, off) as (relay, at):
                    code, out, error = self.look_up(url, at, "k1")
                    self.assertEqual(code, 0, error)
                    self.assertIn(RECORDS["k1"], out)
                    refused = self.metric(url, "hush_ohttp_dates_refused_total") - before
                    self.assertEqual(len(relay.sealed), 2 * refused)


class Mistakes(OhttpTest):
    def test_what_is_wrong_is_said(self):
        table = self.table(RECORDS, "colpack")
        with self.serve(table) as (url, _), self.relay(url) as (relay, process):
            self.assertEqual(request(url + GATEWAY)[0], 404)
            code, _, error = self.look_up(url, relay, "k1")
            self.assertEqual(code, 2)
            self.assertIn("the relay has no keys of the server (status 404)", error)
            # A server's URL is refused as a relay.
            self.assertIn("the relay has no keys of the server", self.look_up(url, url, "k1")[2])
        nowhere = f"http://user:secret@127.0.0.1:{free_port()}"
        error = self.fails("get", "http://hush.example", "k1", "--relay", nowhere)
        self.assertIn(f"(the relay {nowhere.replace(':secret', '')}: ", error)
        gone = f"http://127.0.0.1:{free_port()}"
        with self.relay(gone) as (relay, process):
            code, _, error = self.look_up(gone, relay, "k1")
            self.assertIn("cannot reach", error)
            self.assertIn("the server behind this relay does not answer (status 502)", error)
            self.assertNotIn("--ohttp-keys", error)
        no_keys = self.dir / "none.keys"
        no_keys.write_bytes(b"<html>")
        error = self.fails("get", gone, "k1", "--relay", relay, "--ohttp-keys", no_keys)
        self.assertIn("that is no key configuration of Oblivious HTTP: fetch it with curl", error)
        self.assertIn("not a URL", self.fails("get", gone, "k1", "--relay", "a b"))
        self.assertIn("hushdb gateway-key rotate makes", self.fails("serve", table, "--gateway-keys", self.dir / "absent"))
        self.assertIn("is no file of gateway keys", self.fails("serve", table, "--gateway-keys", no_keys))
        self.assertIn("is no file of gateway keys", self.fails("gateway-key", "rotate", "--keys", no_keys))
