"""Tests of the front door: programs that know a web API ask it, unchanged, and it looks records up."""

import concurrent.futures
import contextlib
import hashlib
import http.server
import json
import random
import re
import subprocess
import threading

from harness import BINARY, HushTest, free_port, request
from proxy import Proxy

JSON = {"Content-Type": "application/json"}


def sha1(text):
    return hashlib.sha1(text.encode()).hexdigest().upper()


def times_leaked(password, api):
    """Returns how often a password was leaked, by the range API, as programs do that know it."""
    digest = sha1(password)
    status, _, body = request(f"{api}/range/{digest[:5]}")
    lines = dict(line.split(":") for line in body.decode().splitlines()) if status == 200 else {}
    return int(lines.get(digest[5:], 0))


def call(api, method, *params, **more):
    """Calls a method, and returns its result or error."""
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params, **more}).encode()
    status, _, said = request(api, body, JSON)
    said = json.loads(said)
    assert (status, said["jsonrpc"], said["id"]) == (200, "2.0", 7), said
    return said.get("result", said.get("error"))


class Upstream(http.server.BaseHTTPRequestHandler):
    """A node that says what it was asked, as it was written."""

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        said = f'{{"jsonrpc":"2.0","id":7,"result":{json.dumps(asked)}}}'.encode()
        self.send_response(302 if "redirect" in asked else 200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *args):
        pass


class FrontDoor(HushTest):
    @contextlib.contextmanager
    def proxy(self, text):
        """Runs the front door with these settings, and yields its URL."""
        config = self.dir / "proxy.toml"
        config.write_text(f'listen = "127.0.0.1:{free_port()}"\n{text}')
        process = subprocess.Popen([BINARY, "proxy", "--config", config], stderr=subprocess.PIPE, text=True, env=self.env)
        try:
            line = process.stderr.readline()
            self.assertRegex(line, "listening on http://127")
            yield re.search(r"http://\S+", line)[0]
        finally:
            process.terminate()
            _, said = process.communicate(timeout=30)
            self.assertEqual(process.returncode, 0, said)
            self.assertNotIn("panicked", said)

    def test_the_range_api_of_leaked_passwords(self):
        rng = random.Random(1)
        leaked = {f"password{i}": rng.randint(1, 10**6) for i in range(5000)}
        rows = sorted([sha1(password), count] for password, count in leaked.items())
        # Prefixes of four digits in place of five, as there are few passwords.
        source = self.dir / "pwned.txt"
        source.write_text("".join(f"{digest}:{count}\n" for digest, count in rows))
        self.assertIn("no more than the 99 characters", self.fails(
            "build", source, "--separator", ":", "--no-header", "--key", "1", "--group-prefix", 99, "--out", self.dir / "no"))
        table = self.build(source, "--separator", ":", "--no-header", "--key", "1", "--group-prefix", 5, "--protocol", "colpack")
        with self.serve(table) as (url, _), Proxy(url) as server, self.proxy(f"""
                [tables.passwords]
                url = "{server.url}"
                [[route]]
                get = "/range/{{prefix}}"
                table = "passwords"
                key = "{{prefix:upper}}"
                missing = {{ status = 200 }}
                """) as api:
            for password in ("password1", "password4999", "correct horse battery staple"):
                self.assertEqual(times_leaked(password, api), leaked.get(password, 0))
            digest = rows[0][0]
            _, headers, body = request(f"{api}/range/{digest[:5].lower()}")
            self.assertEqual(body.decode().split("\r\n"), [f"{own[5:]}:{count}" for own, count in rows if own[:5] == digest[:5]])
            self.assertEqual((headers["Content-Type"], headers["Cache-Control"]), ("text/plain; charset=utf-8", "no-store"))
            # The server sees as much whatever is asked and found.
            sizes = set()
            for path in (digest[:5], "00000", "x", "%20%20"):
                del server.requests[:]
                request(f"{api}/range/{path}")
                # The table is looked at again every few seconds, whatever is asked.
                sizes.add(tuple((method, path, len(body)) for method, path, body in server.requests if method == "POST"))
            self.assertEqual(len(sizes), 1, sizes)
            # Requests that come at once are looked up together, and every answer is right.
            with concurrent.futures.ThreadPoolExecutor(40) as pool:
                some = rng.sample(list(leaked), 60) + ["absent1", "absent2"]
                self.assertEqual(list(pool.map(lambda password: times_leaked(password, api), some)),
                                 [leaked.get(password, 0) for password in some])
            for headers, status in (({"Host": "evil.example"}, 421), ({"Origin": "https://evil.example"}, 403), ({}, 200)):
                self.assertEqual(request(f"{api}/range/00000", headers=headers)[0], status)
            self.assertEqual(request(f"{api}/other")[0], 404)
            self.assertEqual(request(f"{api}/range/00000", b"x")[0], 405)
            self.assertEqual(request(f"{api}/range/{'0' * 5000}")[0], 400)

    def test_the_network_of_an_address(self):
        rows = [f'{first}.0.0.0/8,{first},"Net {first}, Inc."' for first in range(1, 200)] + ['10.1.0.0/16,6,Six']
        source = self.dir / "networks.csv"
        source.write_text("net,asn,name\n" + "\n".join(rows) + "\n")
        table = self.build(source, "--sorted", "ip", "--range", "net", "--protocol", "colpack")
        settings = """
            [tables.asn]
            url = "{url}"
            rows = "{rows}"
            [[route]]
            get = "/v1/asn/{{address}}"
            table = "asn"
            key = "{{address}}"
            content-type = "application/json"
            body = '{{{{"asn":{{value.asn:json}},"name":{{value.name:json}},"net":{{value.net:json}}}}}}'
            missing = {{ status = 404, content-type = "application/json", body = '{{"error":"no network"}}' }}
            """
        with self.serve(table) as (url, _), self.proxy(settings.format(url=url, rows="in-range")) as api:
            for address, status, expected in [
                ("10.1.2.3", 200, {"asn": "6", "name": "Six", "net": "10.1.0.0/16"}),
                ("10.2.0.0", 200, {"asn": "10", "name": "Net 10, Inc.", "net": "10.0.0.0/8"}),
                ("220.0.0.1", 404, {"error": "no network"}),
            ]:
                got, _, body = request(f"{api}/v1/asn/{address}")
                self.assertEqual((got, json.loads(body)), (status, expected))
            self.assertEqual(request(f"{api}/v1/asn/10.1")[0], 400)
        config = self.dir / "bad.toml"
        config.write_text(settings.format(url="http://127.0.0.1:1", rows="near"))
        self.assertIn("tables.asn.rows: expected one of", self.fails("proxy", "--config", config))

    def test_methods_of_a_chain(self):
        accounts = {f"0x{i:040x}": {"balance": hex(i * 10**15), "nonce": hex(i)} for i in range(2000)}
        source = self.dir / "accounts.jsonl"
        source.write_text("".join(json.dumps({"address": address, **own}) + "\n" for address, own in accounts.items()))
        table = self.build(source, "--key", "address", "--protocol", "colpack")
        node = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
        threading.Thread(target=node.serve_forever, daemon=True).start()
        self.addCleanup(node.server_close)
        self.addCleanup(node.shutdown)
        settings = """
            [tables.accounts]
            url = "{url}"
            [[rpc]]
            post = "/"
            {more}
            [rpc.methods.eth_getBalance]
            table = "accounts"
            key = "{{params.0:lower}}"
            result = "{{value.balance:json}}"
            missing = '"0x0"'
            allow = {{ "params.1" = ["latest"] }}
            [rpc.methods.eth_getTransactionCount]
            table = "accounts"
            key = "{{params.0:lower}}"
            result = "{{value.nonce:json}}"
            """
        with self.serve(table) as (url, _):
            with self.proxy(settings.format(url=url, more="")) as api:
                for address in list(accounts)[:3]:
                    self.assertEqual(call(api, "eth_getBalance", address.upper().replace("0X", "0x"), "latest"), accounts[address]["balance"])
                    self.assertEqual(call(api, "eth_getTransactionCount", address), accounts[address]["nonce"])
                self.assertEqual(call(api, "eth_getBalance", "0xabc"), "0x0")
                self.assertEqual(call(api, "eth_getTransactionCount", "0xabc")["code"], -32602)
                self.assertIn("only latest is answered", call(api, "eth_getBalance", "0xabc", "earliest")["message"])
                for params in ([], [None], [["0xabc"]], [{}]):
                    self.assertEqual(call(api, "eth_getBalance", *params)["code"], -32602)
                asked = b'{"id":1.10e400,"method":"eth_getBalance","params":["0xabc"]}'
                self.assertEqual(request(api, asked, JSON)[2], b'{"jsonrpc":"2.0","id":1.10e400,"result":"0x0"}')
                self.assertEqual(call(api, "eth_blockNumber")["code"], -32601)
                batch = [{"id": 1, "method": "eth_getBalance", "params": ["0xabc"]}, {"method": "eth_getBalance", "params": ["0xabc"]}, 5]
                said = json.loads(request(api, json.dumps(batch).encode(), JSON)[2])
                self.assertEqual([one.get("result", one.get("error", {}).get("code")) for one in said], ["0x0", -32600])
                for body, code in ((b"{", -32700), (b"[]", -32600), (json.dumps([1] * 101).encode(), -32600)):
                    self.assertEqual(json.loads(request(api, body, JSON)[2])["error"]["code"], code)
                # A page of a browser may send a form without asking first.
                self.assertEqual(request(api, b"{}", {"Content-Type": "text/plain"})[0], 415)
                self.assertEqual(request(api, b" " * (2 << 20), JSON)[0], 413)
            with self.proxy(settings.format(url=url, more=f'pass-on = "http://127.0.0.1:{node.server_port}/v1"')) as api:
                asked = '{"z":1, "id":123456789012345678901234567890,"method":"eth_call","params":[1.10,123456789012345678901234567890]}'
                said = request(api, asked.encode(), JSON)[2].decode()
                self.assertEqual(said, f'{{"jsonrpc":"2.0","id":7,"result":{json.dumps(asked)}}}')
                self.assertIn("was passed on: ", call(api, "redirect")["message"])
                self.assertEqual(call(api, "eth_getBalance", list(accounts)[5]), accounts[list(accounts)[5]]["balance"])
            node.shutdown()

    def test_a_cache_asks_less_and_failures_are_told(self):
        source = self.dir / "people.jsonl"
        source.write_text("".join(json.dumps({"id": i, "name": f"v{i}"}) + "\n" for i in range(1000)))
        table = self.build(source, "--key", "id", "--protocol", "colpack")
        server = f"http://127.0.0.1:{free_port()}"
        settings = f"""
            [tables.people]
            url = "{server}"
            [[route]]
            get = "/people/{{id}}/name"
            table = "people"
            key = "{{id}}"
            status = 203
            content-type = "application/json"
            body = '{{{{"name":{{value:json}},"id":"{{id}}","greeting":"{{query.greeting}}"}}}}'
            missing = {{ status = 410, body = "gone" }}
            cache = {{ entries = 2, seconds = 3600 }}
            """
        with self.proxy(settings) as api:
            path = f"{api}/people/7/name?greeting=a+b%21"
            status, _, body = request(path)
            self.assertEqual(status, 502)
            self.assertIn("is the server running", body.decode())
            # The server that was not there is asked again.
            with self.serve(table, listen=server.removeprefix("http://")):
                status, headers, body = request(path)
                self.assertEqual((status, json.loads(body), headers["Content-Type"]),
                                 (203, {"name": "v7", "id": "7", "greeting": "a b!"}, "application/json"))
                self.assertEqual(request(f"{api}/people/-1/name?greeting=")[::2], (410, b"gone"))
                self.assertIn("has no query.greeting", request(f"{api}/people/7/name")[2].decode())
                # A key of the wrong type does not affect the keys that are looked up with it.
                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    asked = [f"{api}/people/{key}/name?greeting=" for key in (1, "x", 2, "1.5", 3, 999)]
                    self.assertEqual([status for status, *_ in pool.map(request, asked)], [203, 400, 203, 400, 203, 203])
                request(path)
            # Answers in the cache need no server.
            self.assertEqual(request(path)[0], 203)
            self.assertEqual(request(f"{api}/people/8/name?greeting=")[0], 502)

    def test_a_table_that_is_replaced_is_noticed(self):
        table = self.build(self.csv([[f"k{i}", f"v{i}"] for i in range(500)]), "--key", "key", "--protocol", "colpack")
        with self.serve(table, args=["--watch"]) as (url, _), self.proxy(f"""
                [tables.t]
                url = "{url}"
                [[route]]
                get = "/{{key}}"
                table = "t"
                key = "{{key}}"
                """) as api:
            self.assertEqual(request(f"{api}/k7")[2], b"v7")
            other = self.csv([[f"k{i}", f"other{i}"] for i in range(700)], name="other.csv")
            self.build(other, "--key", "key", "--protocol", "colpack", "--force")
            self.wait_for("the new table", lambda: request(f"{api}/k7")[2] == b"other7", seconds=20)
            self.assertEqual(request(f"{api}/k650")[2], b"other650")

    def test_settings_that_cannot_be_used(self):
        config = self.dir / "bad.toml"
        for text, part in (("listen = 5", "bad.toml"), ("listen = \"0.0.0.0:1\"", "loopback"), ("[tables.a]\nurl = \"x\"", "route"),
                           ("[tables.a]\nurl = \"http://a\"\ntoken-file = \"none\"\n[[rpc]]\npost = \"/\"\npass-on = \"http://a\"", "none"),
                           ("[[rpc]]\npost = \"/\"\npass-on = \"ftp://x\"", "pass-on")):
            config.write_text(text)
            self.assertIn(part, self.fails("proxy", "--config", config))
        self.assertIn("missing.toml", self.fails("proxy", "--config", self.dir / "missing.toml"))
