"""Tests of tokens: who may ask, and what is refused."""

import json
import re
import subprocess
import time

from certificates import Authority
from harness import BINARY, free_port, request
from keyed import KeyedTest, values

RECORDS = values(50, 30)


class TokenTest(KeyedTest):
    def setUp(self):
        super().setUp()
        self.file = self.dir / "tokens.json"

    def create(self, *args, name="alice"):
        result = self.hushdb("token", "create", "--tokens", self.file, "--name", name, *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"^hush_[0-9a-f]{16}_[0-9a-f]{64}\n$")
        return result.stdout.strip()

    def look_up(self, url, token, key="k1", **kwargs):
        env = {**self.env, **({"HUSHDB_TOKEN": token} if token else {})}
        result = self.hushdb("get", url, key, "--json", *kwargs.pop("args", ()), env=env)
        return result.returncode, result.stdout, result.stderr

    def status(self, url, token=None, body=None, method=None):
        status, headers, text = request(url, body, {"Authorization": f"Bearer {token}"} if token else {}, method=method)
        return status, headers, text


class Serving(TokenTest):
    def test_who_may_ask(self):
        people, cities = (self.table(RECORDS, "frodo", name=name) for name in ("people", "cities"))
        alice, expired = self.create(), self.create("--expires", "1s", name="old")
        limited, root = self.create("--table", "cities", name="carl"), self.create("--scope", "admin", name="root")
        admin = f"127.0.0.1:{free_port()}"
        time.sleep(1.1)
        log = {**self.env, "RUST_LOG": "debug"}
        with self.serve(people, cities, args=["--tokens", self.file, "--listen-admin", admin], env=log) as (url, process):
            self.assertEqual(self.look_up(url, alice, args=["--table", "people"])[0], 0)
            self.assertEqual(self.look_up(url, limited, args=["--table", "cities"])[0], 0)
            for token, words in (
                (None, "asks for a token"), (expired, "has expired"), (root, "not for this"),
                (alice[:-4] + "0000", "none of this server's"), ("nonsense", "none of this server's"),
            ):
                code, _, error = self.look_up(url, token, args=["--table", "people"])
                self.assertEqual(code, 2)
                self.assertIn(words, error)
                self.assertIn("HUSHDB_TOKEN", error)
            # A token for one table neither lists nor reaches other tables.
            names = [table["name"] for table in json.loads(self.status(url + "/v1/tables", limited)[2])["tables"]]
            self.assertEqual(names, ["cities"])
            for path in ("/v1/tables/people", "/v1/tables/%70eople"):
                self.assertEqual(self.status(url + path, limited)[0], 403)
            self.assertEqual(self.status(url + "/v1/tables/people/query", limited, b"x")[0], 403)
            status, headers, text = self.status(url + "/v1/tables")
            self.assertEqual((status, headers["WWW-Authenticate"], json.loads(text)["code"]), (401, "Bearer", "unauthorized"))
            # Anyone may ask whether the server runs. Its metrics are for its operator.
            self.assertEqual(self.status(url + "/livez")[0], 200)
            self.assertEqual([self.status(url + "/metrics", token)[0] for token in (None, alice, root)], [401, 403, 200])
            reload = f"http://{admin}/v1/admin/tables/people/reload"
            self.assertEqual([self.status(reload, token, b"")[0] for token in (None, alice, root)], [401, 403, 200])
            metrics = self.status(url + "/metrics", root)[2].decode()
            process.terminate()
            said = process.stderr.read()
            for token in (alice, expired, limited, root):
                self.assertNotIn(token.split("_")[2], said + metrics)

    def test_tokens_come_and_go(self):
        table = self.table(RECORDS, "frodo")
        alice = self.create()
        with self.serve(table, args=["--tokens", self.file]) as (url, _):
            self.assertEqual(self.look_up(url, alice)[0], 0)
            bob = self.create(name="bob")
            self.wait_for("the files were not read again", lambda: self.look_up(url, bob)[0] == 0)
            revoked = self.hushdb("token", "revoke", "--tokens", self.file, alice.split("_")[1])
            self.assertEqual(revoked.returncode, 0, revoked.stderr)
            self.wait_for("the files were not read again", lambda: self.look_up(url, alice)[0] == 2)
            # A malformed file leaves all tokens valid.
            self.file.write_text("{")
            time.sleep(1.5)
            self.assertEqual(self.look_up(url, bob)[0], 0)

    def test_a_token_has_limits_of_its_own(self):
        table = self.table(RECORDS, "frodo")
        slow, fast = self.create("--queries-per-second", "1"), self.create()
        with self.serve(table, args=["--tokens", self.file]) as (url, _):
            query = {"Content-Type": "application/x-protobuf"}
            ask = lambda token: request(url + "/v1/tables/table/query", b"x", {**query, "Authorization": f"Bearer {token}"})
            statuses = [ask(slow)[0] for _ in range(6)]
            self.assertEqual((statuses[0], statuses[-1]), (400, 429), statuses)
            self.assertIn("Retry-After", ask(slow)[1])
            self.assertEqual({ask(fast)[0] for _ in range(6)}, {400})

    def test_a_token_has_bytes(self):
        table = self.table(RECORDS, "frodo")
        few, many = self.create("--bytes-per-second", "1000"), self.create()
        with self.serve(table, args=["--tokens", self.file]) as (url, _):
            ask = lambda token: self.status(url + "/v1/tables/table", token)
            length = len(ask(many)[2])
            # The quota of a minute may be used at once, and the query that exceeds it is counted here too.
            start = time.monotonic()
            asked = next(count for count in range(1000) if ask(few)[0] == 429)
            # The quota has been refilled meanwhile.
            most = 60_000 + 1000 * (time.monotonic() - start)
            self.assertGreaterEqual(asked, -(-60_000 // length))
            self.assertLessEqual(asked, -(-most // length))
            self.assertGreaterEqual(int(ask(few)[1]["Retry-After"]), 1)
            self.assertEqual(ask(many)[0], 200)

    def test_what_travels_is_as_long_for_every_key(self):
        authority = Authority(self.dir, "authority")
        cert, key = authority.sign("server")
        token = self.create()
        args = ["--tokens", self.file, "--tls-cert", cert, "--tls-key", key]
        with self.serve(self.table(RECORDS, "simple"), args=args) as (url, _):
            sizes = set()
            for wanted in ("k1", "absent", "", "x" * 4096):
                found, stats = self.ask(url, "--ca-cert", authority.cert, "--token", token, "--table", "table", wanted)
                self.assertEqual(found, [RECORDS.get(wanted)])
                sizes.add((stats["bytes_up"], stats["bytes_down"]))
            self.assertEqual(len(sizes), 1, sizes)

    def test_a_server_that_others_reach_is_not_open_by_mistake(self):
        table = self.table(RECORDS, "frodo")
        error = self.fails("serve", table, "--listen", "0.0.0.0:0")
        for word in ("0.0.0.0:0", "--tokens", "--open"):
            self.assertIn(word, error)
        self.create()
        for args in (["--open"], ["--tokens", self.file]):
            with self.serve(table, args=args, listen="0.0.0.0:0") as (url, _):
                self.assertEqual(self.status(url + "/livez")[0], 200)


class Files(TokenTest):
    def test_the_file_has_no_token(self):
        token = self.create("--expires", "30d", "--scope", "query,admin", "--table", "a", "--table", "b", "--in-flight", 3)
        text = self.file.read_text()
        self.assertNotIn(token.split("_")[2], text)
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o600)
        listed = self.hushdb("token", "list", "--tokens", self.file).stdout
        self.assertTrue(re.match(r"^[0-9a-f]{16}  alice: query,admin of a,b, until 20\d\d-\d\d-\d\dT\S+Z, 3 at once\n$", listed), listed)

    def test_none_is_lost_of_those_that_are_made_at_once(self):
        command = [BINARY, "token", "create", "--tokens", self.file, "--name", "many"]
        makers = [subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(8)]
        self.assertEqual([maker.wait(30) for maker in makers], [0] * 8)
        listed = self.hushdb("token", "list", "--tokens", self.file).stdout
        self.assertEqual(listed.count(" many: "), 8, listed)

    def test_errors_say_what_to_do(self):
        table = self.table(RECORDS, "frodo")
        (self.dir / "other.json").write_text('{"version": 9, "tokens": []}')
        for args, words in (
            (["token", "list", "--tokens", self.dir / "none"], ["none", "hushdb token create"]),
            (["token", "list", "--tokens", self.dir / "other.json"], ["version 9"]),
            (["serve", table, "--tokens", self.dir / "none"], ["none", "hushdb token create"]),
            (["get", "http://hush.example", "k", "--token", "t"], ["use https"]),
            (["get", "http://127.0.0.1:1", "k", "--token", "a b"], ["that is no token"]),
        ):
            with self.subTest(args=args):
                error = self.fails(*args)
                for word in words:
                    self.assertIn(word, error)
        self.create()
        self.assertIn("hushdb token list", self.fails("token", "revoke", "--tokens", self.file, "0000"))
        for args in (["--expires", "soon"], ["--scope", "all"], ["--in-flight", "0"]):
            self.assertEqual(self.hushdb("token", "create", "--tokens", self.file, "--name", "a", *args).returncode, 2)
