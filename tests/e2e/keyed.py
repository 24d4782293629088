"""Tests that several protocols share. `choices` has the arguments of the builds, by protocol."""

import json
import random
import signal
import string
import subprocess
import threading
import time

import wire
from harness import BINARY, HushTest, request
from proxy import Proxy

HEADERS = {"Content-Type": "application/x-protobuf"}


def values(count, longest, shortest=None, seed=1):
    """Returns `count` keys with random values of length `longest`, or of all lengths from `shortest` to `longest`."""
    rng = random.Random(seed)
    lengths = [longest, shortest if shortest is not None else longest]
    lengths += [rng.randint(min(lengths), longest) for _ in range(count)]
    return {f"k{i}": "".join(rng.choices(string.ascii_letters, k=lengths[i])) for i in range(count)}


def weak(url, args):
    """Returns the --allow-weak option that a look-up with these arguments needs: tables for tests have small parameter sets."""
    if "--table" in args:
        name = args[list(args).index("--table") + 1]
    else:
        name = json.loads(request(f"{url}/v1/tables")[2])["tables"][0]["name"]
    preset = json.loads(request(f"{url}/v1/tables/{name}")[2]).get("preset", "")
    return ["--allow-weak", preset] if preset.startswith("INSECURE") or "_SEC" in preset else []


class KeyedTest(HushTest):
    def jsonl(self, records, name="records.jsonl"):
        path = self.dir / name
        path.write_text("".join(json.dumps({"k": k, "v": v}) + "\n" for k, v in records.items()))
        return path

    def table(self, records, protocol, *args, name="table", by="key"):
        """Builds a table of records and returns its folder."""
        key = ["--key", "k"] if by == "key" else []
        source = self.jsonl(records, f"{name}.jsonl")
        return self.build(source, *key, "--value", "v", "--protocol", protocol, *args, name=name)

    def facts(self, table):
        result = self.hushdb("inspect", table, "--json", "--verify", "header")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def ask(self, url, *args, client="cache", env=None):
        """Looks records up as a client with its own cache, and returns the values and the stats."""
        env = {**self.env, **(env or {}), "XDG_CACHE_HOME": str(self.dir / client)}
        result = self.hushdb("get", url, "--json", "--stats", *weak(url, args), *args, env=env)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        *lines, stats = map(json.loads, result.stdout.splitlines())
        found = [line["value"] for line in lines]
        self.assertEqual(result.returncode, int(None in found))
        return found, stats["stats"]

    def refused(self, url, method, path, body, status, code):
        """Sends a request that must be refused with this status and code, while others are answered."""
        got, _, answer = request(url + path, body, HEADERS, method=method)
        self.assertEqual((got, json.loads(answer)["code"]), (status, code), answer)
        return json.loads(answer)["detail"]

    def capture(self, url, *args):
        """Records a client's upload and query, and returns (path, body) of each."""
        with Proxy(url) as proxy:
            self.ask(proxy.url, *args)
            return proxy.sent("PUT")[0], proxy.sent("POST")[-1]

    def killed_builds(self, source, *args, during, laid_out=False):
        """Kills builds once the file `during` exists, checks what they leave, then builds to the end. Returns the folder.

        With `laid_out`, the laid-out records are kept."""
        out = self.dir / "out"
        args = ["build", source, *args, "--out", out]
        partial = self.dir / ".out.hush-partial" / during
        for sent in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(sent.name):
                partial.unlink(missing_ok=True)
                # The slow kernels make sure that the signal comes in the middle.
                env = {**self.env, "HUSH_CPU": "portable"}
                build = subprocess.Popen([BINARY, *args, "--threads", "1"], stderr=subprocess.PIPE, env=env)
                deadline = time.time() + 20
                while not partial.exists() and build.poll() is None and time.time() < deadline:
                    time.sleep(0.005)
                build.send_signal(sent)
                _, error = build.communicate(timeout=30)
                self.assertNotEqual(build.returncode, 0, error)
                self.assertNotIn(b"built", error)
                self.assertFalse(out.exists())
                self.assertEqual(partial.exists(), laid_out or sent == signal.SIGKILL, "else it was too late")
                if sent == signal.SIGTERM:
                    self.assertIn(b"to go on" if laid_out else b"nothing was kept", error)
        result = self.hushdb(*args)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual("resuming: " in result.stderr, laid_out, result.stderr)
        self.assertFalse(partial.parent.exists())
        return out

    def ask_some(self, url, table, records, by):
        """Looks up some records of a table, and one that does not exist. Returns the stats."""
        wanted = list(records)[::max(1, len(records) // 4)]
        expected = [records[key] for key in wanted]
        if by == "index":
            keys = ["--index", *(str(list(records).index(key)) for key in wanted)]
            asked = ["--table", table, "--index", len(records)]
            line = self.fails("get", url, *weak(url, asked), *asked)
            self.assertIn(f"0 to {len(records) - 1}", line)
        else:
            keys = [*wanted, "absent"]
            expected.append(None)
        found, stats = self.ask(url, "--table", table, *keys)
        self.assertEqual(found, expected)
        return stats

    def varied_and_few(self, choices, **tables):
        """Looks up all records of `tables`, of a table with empty values, and of a table with one record."""
        tables = {**tables, "empty": values(5, 0), "one": {"only": "record"}}
        for protocol, args in choices.items():
            folders = [self.table(records, protocol, *args, name=f"{protocol}-{name}")
                       for name, records in tables.items()]
            by_index = f"{protocol}-index"
            folders.append(self.table(tables["one"], protocol, *args, name=by_index, by="index"))
            with self.serve(*folders) as (url, _):
                for name, records in tables.items():
                    with self.subTest(name, protocol=protocol):
                        found, _ = self.ask(url, "--table", f"{protocol}-{name}", *records, "absent")
                        self.assertEqual(found, [*records.values(), None])
                found, _ = self.ask(url, "--table", by_index, "--index", "0")
                self.assertEqual(found, ["record"])
                asked = ["--table", by_index, "--index", "1"]
                line = self.fails("get", url, *weak(url, asked), *asked)
                self.assertIn("0 to 0", line)

    def look_alike(self, choices, records, first=None):
        """Checks that look-ups of all keys have equal sizes on the wire. Returns the queries of each protocol.

        Evaluation keys are uploaded at the first table, and hints are downloaded before."""
        tables = [self.table(records, protocol, *args, name=protocol) for protocol, args in choices.items()]
        queries = {protocol: [] for protocol in choices}
        with self.serve(*tables) as (url, _), Proxy(url) as proxy:
            if first:
                self.ask(proxy.url, "--table", first, "k0")
            for protocol, table in zip(choices, tables):
                if self.facts(table)["hint_bytes"]:
                    self.ask(proxy.url, "--table", protocol, "k0")
                sizes = set()
                for key in ("k0", "k0", "k199", "k77", "absent", "", "x" * 4096):
                    del proxy.requests[:]
                    found, stats = self.ask(proxy.url, "--table", protocol, key)
                    self.assertEqual(found, [records.get(key)])
                    sent = [(method, path, len(body)) for method, path, body in proxy.requests]
                    self.assertEqual([method for method, *_ in sent if method != "GET"], ["POST"])
                    sizes.add((stats["queries"], stats["bytes_up"], stats["bytes_down"], *sent))
                    queries[protocol].append(proxy.sent("POST")[-1][1])
                self.assertEqual(len(sizes), 1, sizes)
        return queries

    def every_level(self, choices):
        """Serves tables at every level of the CPU that were built at the best level."""
        records = values(100, 50)
        for level in ("portable", "avx2", "avx512", "avx512ifma"):
            with self.subTest(level):
                env = {**self.env, "HUSH_CPU": level}
                probe = self.hushdb("build", self.jsonl({"a": "b"}), "--key", "k", "--out", self.dir / level, env=env)
                if probe.returncode:
                    self.assertIn("HUSH_CPU", probe.stderr)
                    continue
                tables = [self.table(records, protocol, *args, name=f"{level}-{protocol}")
                          for protocol, args in choices.items()]
                with self.serve(*tables, env=env) as (url, _):
                    for protocol in choices:
                        found, _ = self.ask(url, "--table", f"{level}-{protocol}", "k3", "nobody", client=level)
                        self.assertEqual(found, [records["k3"], None])

    def share_scans(self, choices, records, keys):
        """Checks five clients at once, of 100 records or more. Afterwards the server must have `keys` evaluation keys."""
        tables = [self.table(records, protocol, *args, name=protocol) for protocol, args in choices.items()]
        with self.serve(*tables) as (url, _):
            wrong = []

            def ask(number):
                uploaded = 0
                for protocol in choices:
                    wanted = [f"k{number * 20 + i}" for i in range(20)]
                    found, stats = self.ask(url, "--table", protocol, *wanted, client=f"client{number}")
                    uploaded += stats["key_bytes_up"]
                    if found != [records[key] for key in wanted]:
                        wrong.append((number, protocol))
                if (uploaded > 0) != (keys > 0):
                    wrong.append((number, "keys"))

            clients = [threading.Thread(target=ask, args=(number,)) for number in range(5)]
            for thread in clients:
                thread.start()
            for thread in clients:
                thread.join()
            self.assertEqual(wrong, [])
            self.assertIn(b"hush_keys %d\n" % keys, request(url + "/metrics")[2])

    def bad_queries(self, url, path, body, fields):
        """Sends requests with a change in each field of the query, then with one bit flipped anywhere."""
        def post(field, change, status=400, code="invalid_request"):
            changed = wire.changed(body, 4, lambda query: wire.changed(query, field, change))
            self.refused(url, "POST", path, changed, status, code)

        for field in fields:
            for change in (lambda part: b"", lambda part: part[:-1], lambda part: part + b"\0"):
                post(field, change)
        # Words must be below their modulus.
        post(3, lambda words: words[:-16] + b"\xff" * 16)
        post(3, lambda words: words[:32] + b"\xff" * (len(words) - 32))
        post(3, lambda words: b"\xff" * len(words))
        statuses = [200, 400, 410, 413, 415]
        if 4 in fields:
            post(4, lambda id: bytes(32), 428, "key_not_found")
            post(4, lambda id: id[:-1] + bytes([id[-1] ^ 1]), 428, "key_not_found")
            statuses.append(428)
        rng = random.Random(3)
        for _ in range(40):
            damaged = bytearray(body)
            damaged[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
            # Changed ciphertexts are answered, and decrypt to noise.
            self.assertIn(request(url + path, bytes(damaged), HEADERS)[0], statuses)

    def corrupt_bytes(self, table):
        """Changes a byte of each file of a table, then cuts one byte off: every command must name the file."""
        for path in table.iterdir():
            original = path.read_bytes()
            for place in (0, len(original) // 2, len(original) - 1):
                with self.subTest(path.name, place=place):
                    path.write_bytes(original[:place] + bytes([original[place] ^ 1]) + original[place + 1:])
                    for command in (["inspect", table], ["serve", table, "--listen", "127.0.0.1:0"]):
                        line = self.fails(*command)
                        self.assertIn(path.name, line)
                        self.assertIn("damaged", line)
            path.write_bytes(original[:-1])
            self.assertIn("damaged", self.fails("inspect", table, "--verify", "header"))
            path.write_bytes(original)
        self.assertEqual(self.hushdb("inspect", table).returncode, 0)
