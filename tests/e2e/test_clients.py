"""Tests of every client against one server: a table of several tiers, with changes, over TLS, with a token."""

import http.server
import json
import pathlib
import re
import subprocess
import tempfile
import threading
import urllib.parse

from certificates import Authority
from harness import BINARY, HushTest
from proxy import Proxy

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = BINARY.parents[1] / "npm"
PYTHON = BINARY.parents[1] / "python/bin/python"
KOTLIN = BINARY.parents[1] / "mobile/kotlin-run"
EXAMPLE = BINARY.parent / "examples/look_up"
# An ID in a path, which is random.
ID = re.compile(r"[0-9a-f]{32,}")
# A look-up in Python that prints JSON.
IN_PYTHON = """
import json, sys, hushdb
url, token, ca, keys = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
with hushdb.connect(url, token=token or None, ca_cert=ca or None) as client:
    found = client.table().get_many(keys)
print(json.dumps([value and value.decode() for value in found]))
"""
# A look-up in Node that prints JSON.
IN_JAVASCRIPT = """
import { connect } from "%s";
const [url, token, keys] = process.argv.slice(2);
const server = await connect(url, token ? { token } : {});
const table = await server.open();
const found = await table.getMany(JSON.parse(keys));
console.log(JSON.stringify(found.map((value) => value === null ? null : value.text())));
server.close();
"""


def in_node():
    """Returns the file of the npm package that Node imports."""
    return PACKAGE / json.loads((PACKAGE / "package.json").read_text())["exports"]["."]["node"]


class Documents(HushTest):
    """Tests that the programs in the documents do what the documents say."""

    def setUp(self):
        super().setUp()
        source = self.csv([("alice@example.org", "Alice"), ("bob@example.org", "Bob")], "email,name", "people.csv")
        self.table = self.build(source, "--key", "email", "--protocol", "colpack", name="people")

    def run_blocks(self, document, language, command, url):
        """Runs all blocks of a language, each as a program, and returns their output."""
        blocks = re.findall(rf"^```{language}\n(.*?)^```", (ROOT / document).read_text(), re.M | re.S)
        self.assertGreater(len(blocks), 0, document)
        printed = ""
        for block in blocks:
            for shown in ("http://127.0.0.1:7700", "https://hush.example"):
                block = block.replace(shown, url)
            script = self.dir / ("block.py" if language == "python" else "block.mjs")
            script.write_text(block.replace('"@hushdb/client"', json.dumps(str(in_node()))))
            result = subprocess.run([*command, script], capture_output=True, text=True, env=self.env, cwd=self.dir)
            self.assertEqual(result.returncode, 0, (document, block, result.stderr))
            printed += result.stdout
        return printed

    def test_blocks_run(self):
        with self.serve(self.table) as (url, _):
            for document, language, command in [
                ("docs/reference/clients.md", "python", [PYTHON]), ("crates/hush-py/README.md", "python", [PYTHON]),
                ("docs/reference/clients.md", "js", ["node"]), ("clients/js/README.md", "js", ["node"]),
            ]:
                with self.subTest(document, language=language):
                    self.assertIn("Alice", self.run_blocks(document, language, command, url))


class Replay:
    """A server that gives recorded answers (record.py), and records the method, path and body length of requests."""

    def __init__(self, replies):
        self.asked = asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                asked.append((self.command, self.path, len(body)))
                reply = replies.get(self.path, {"status": 404, "headers": {}, "body": ""})
                self.send_response(reply["status"])
                for name, value in reply["headers"].items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(reply["body"])))
                self.end_headers()
                self.wfile.write(reply["body"].encode())

            do_POST = do_GET

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


class Recorded(HushTest):
    """Tests that all clients send the same requests to a recorded server, and report the same outcome."""

    def outcomes(self, url):
        """Yields the report of each client: its words, or the kind and code of its error."""
        python = "import sys, hushdb\ntry:\n    hushdb.connect(sys.argv[1]).table().get('alice')\n" \
                 "except hushdb.HushError as error:\n    print(type(error).__name__, error.code)"
        script = self.dir / "ask.mjs"
        script.write_text(f"""import {{ connect }} from "{in_node()}";
try {{ await (await (await connect("{url}")).open()).get("alice"); }} catch (error) {{ console.log(error.kind, error.code); }}
""")
        yield "get", self.hushdb("get", url, "alice").stderr
        yield "python", subprocess.run([PYTHON, "-c", python, url], capture_output=True, text=True, env=self.env).stdout
        command = [KOTLIN, "LookUpKt", url, "alice"]
        yield "kotlin", subprocess.run(command, capture_output=True, text=True, env=self.env).stderr
        yield "javascript", subprocess.run(["node", script], capture_output=True, text=True, env=self.env).stdout

    def test_all_make_the_same_of_it(self):
        for vector in json.loads((ROOT / "tests/e2e/recorded.json").read_text()):
            with Replay(vector["replies"]) as server:
                asked = {}
                for client, said in self.outcomes(server.url):
                    with self.subTest(vector["name"], client=client):
                        kind = "HushError" if client == "python" and vector["kind"] == "Other" else vector["kind"]
                        self.assertIn(vector["get"] if client == "get" else f"{kind} {vector['code']}", said)
                        self.assertEqual(said.count("\n"), 1, "one line")
                    asked[client], server.asked[:] = list(server.asked), []
                self.assertGreater(len(asked["get"]), 0)
                for client in asked:
                    self.assertEqual(asked[client], asked["get"], (vector["name"], client))


class ClientTest(HushTest):
    """Look-ups with every client, of a server without TLS unless `ca` and `token` are set."""

    ca = token = None

    @property
    def environment(self):
        ca = {name: str(self.ca) for name in ("HUSHDB_CA_CERT", "NODE_EXTRA_CA_CERTS")}
        return {**self.env, "HUSHDB_TOKEN": self.token, **ca} if self.token else self.env

    def with_get(self, url, keys):
        options = ["--ca-cert", self.ca, "--token", self.token] if self.token else []
        result = self.hushdb("get", url, "--json", *options, "--", *keys)
        return [json.loads(line).get("value") for line in result.stdout.splitlines()]

    def with_rust(self, url, keys):
        found = [subprocess.run([EXAMPLE, url, key], capture_output=True, text=True, env=self.environment, check=True).stdout for key in keys]
        return [None if value == "not found\n" else value.removesuffix("\n") for value in found]

    def with_python(self, url, keys):
        command = [PYTHON, "-c", IN_PYTHON, url, self.token or "", self.ca or "", json.dumps(keys)]
        result = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=self.env)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def with_kotlin(self, url, keys):
        result = subprocess.run([KOTLIN, "LookUpKt", url, *keys], capture_output=True, text=True, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [None if value == "not found" else value for value in result.stdout.splitlines()]

    def with_javascript(self, url, keys):
        script = self.dir / "look_up.mjs"
        script.write_text(IN_JAVASCRIPT % in_node())
        command = ["node", script, url, self.token or "", json.dumps(keys)]
        result = subprocess.run(command, capture_output=True, text=True, env=self.environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)


class Clients(ClientTest):
    def setUp(self):
        super().setUp()
        authority = Authority(self.dir, "authority")
        self.ca = authority.cert
        cert, key = authority.sign("server")
        # Some values are much longer than most, so that the table has several tiers.
        self.records = {f"key {i}": "x" * (4000 if i % 100 == 0 else 20 + i % 9) + str(i) for i in range(3000)}
        source = self.csv(self.records.items())
        table = self.build(source, "--key", "key", "--updatable", "--tiers", "40,5000", "--protocol", "colpack")
        gone = self.dir / "gone.txt"
        gone.write_text("key 3\n")
        changes = self.csv([("key 1", "changed"), ("new", "a new one")], name="changes.csv")
        applied = self.hushdb("apply", table, changes, "--delete", gone, "--key", "key")
        self.assertEqual(applied.returncode, 0, applied.stderr)
        made = self.hushdb("token", "create", "--tokens", self.dir / "tokens.json", "--name", "clients")
        self.token = made.stdout.split()[0]
        self.args = ("--tls-cert", cert, "--tls-key", key, "--tokens", self.dir / "tokens.json")
        self.table = table
        self.wanted = {"key 0": self.records["key 0"], "key 2": self.records["key 2"], "key 2900": self.records["key 2900"],
                       "key 1": "changed", "new": "a new one", "key 3": None, "absent": None}

    def test_all_find_the_same(self):
        with self.serve(self.table, args=self.args) as (url, _):
            url = f"https://localhost:{urllib.parse.urlsplit(url).port}"
            for client in (self.with_get, self.with_rust, self.with_python, self.with_kotlin, self.with_javascript):
                with self.subTest(client.__name__):
                    self.assertEqual(client(url, list(self.wanted)), list(self.wanted.values()))
            refused = subprocess.run([PYTHON, "-c", IN_PYTHON, url, "hush_no", self.ca, "[]"], capture_output=True, text=True, env=self.env)
            self.assertIn("hushdb._errors.NotAllowed", refused.stderr)

    def test_examples_do_what_they_say(self):
        source = self.csv(list(self.records.items())[:20])
        example = BINARY.parent / "examples/build_and_answer"
        for key, said in (("key 7", self.records["key 7"]), ("absent", "not found")):
            result = subprocess.run([example, source, "key", key], capture_output=True, text=True)
            self.assertEqual(result.stdout, said + "\n", result.stderr)


class OnTheWire(ClientTest):
    """Tests that what a client sends, and gets, does not tell which keys it asks for nor what it finds."""

    TABLES = {
        "tiers": ("--tiers", "40,5000", "--updatable", "--protocol", "colpack"),
        "keys": ("--compress", "zstd", "--protocol", "hybrid"),
        "hint": ("--protocol", "simple"),
    }
    # Found; absent, long and empty; a long value, and one key twice.
    GROUPS = {"found": ["key 1", "key 2", "key 3"], "absent": ["nobody", "x" * 4096, ""], "twice": ["key 0", "key 7", "key 7"]}

    def seen(self, client, url, keys):
        """Returns the requests and answers of a client without a cache: methods, paths, statuses and lengths."""
        with Proxy(url) as proxy, tempfile.TemporaryDirectory(dir=self.dir) as cache:
            self.env["XDG_CACHE_HOME"] = cache
            found = client(proxy.url, keys)
            self.assertEqual(found, [self.records.get(key) for key in keys])
            requests = [(method, ID.sub("ID", path), len(body)) for method, path, body in proxy.requests]
            return sorted(requests), sorted(proxy.answers)

    def test_look_ups_are_alike_with_every_client(self):
        self.records = {f"key {i}": "x" * (4000 if i % 100 == 0 else 20 + i % 9) + str(i) for i in range(300)}
        source = self.csv(self.records.items())
        for name, args in self.TABLES.items():
            table = self.build(source, "--key", "key", *args, name=name)
            with self.serve(table) as (url, _):
                for client in (self.with_get, self.with_python, self.with_kotlin, self.with_javascript):
                    seen = {group: self.seen(client, url, keys) for group, keys in self.GROUPS.items()}
                    for group in seen:
                        with self.subTest(name, client=client.__name__, group=group):
                            self.assertEqual(seen[group], seen["found"])
