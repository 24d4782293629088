"""What tests of all protocols with evaluation keys do alike."""

import json
import random
import signal
import string
import subprocess
import threading
import time

from harness import BINARY, HushTest, request
from proxy import Proxy

HEADERS = {"Content-Type": "application/x-protobuf"}


def values(count, longest, shortest=None, seed=1):
    """So many keys with random values of one length, or of all lengths between two."""
    rng = random.Random(seed)
    lengths = [longest, shortest if shortest is not None else longest]
    lengths += [rng.randint(min(lengths), longest) for _ in range(count)]
    return {f"k{i}": "".join(rng.choices(string.ascii_letters, k=lengths[i])) for i in range(count)}


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
        """Looks records up as a client with its own cache; returns the values and the stats."""
        env = {**self.env, **(env or {}), "XDG_CACHE_HOME": str(self.dir / client)}
        result = self.hushdb("get", url, "--json", "--stats", "--allow-weak", *args, env=env)
        self.assertIn(result.returncode, (0, 1), result.stderr)
        *lines, stats = map(json.loads, result.stdout.splitlines())
        found = [line["value"] for line in lines]
        self.assertEqual(result.returncode, int(None in found))
        return found, stats["stats"]

    def refused(self, url, method, path, body, status, code):
        """A request that must be refused, while others are answered."""
        got, _, answer = request(url + path, body, HEADERS, method=method)
        self.assertEqual((got, json.loads(answer)["code"]), (status, code), answer)
        return json.loads(answer)["detail"]

    def capture(self, url, *args):
        """An upload and a query as a client sends them: (path, body) of each."""
        with Proxy(url) as proxy:
            self.ask(proxy.url, *args)
            return proxy.sent("PUT")[0], proxy.sent("POST")[-1]

    def killed_builds(self, source, *args, during, laid_out=False):
        """Kills builds once a file is there, checks what they leave, and builds to the end; returns the folder.

        What has been laid out by then is kept."""
        out = self.dir / "out"
        args = ["build", source, *args, "--out", out]
        partial = self.dir / ".out.hush-partial" / during
        for sent in (signal.SIGTERM, signal.SIGKILL):
            with self.subTest(sent.name):
                partial.unlink(missing_ok=True)
                # Slowly, so that the signal comes in the middle.
                env = {**self.env, "HUSH_CPU": "scalar"}
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

    def varied_and_few(self, protocols, *args):
        """Looks up all of tables whose values vary in length, are empty, or are one."""
        tables = {"varied": values(80, 50, 0), "empty": values(5, 0), "one": {"only": "record"}}
        for protocol in protocols:
            folders = [self.table(records, protocol, *args, name=f"{protocol}-{name}")
                       for name, records in tables.items()]
            folders.append(self.table(tables["one"], protocol, *args, name=f"{protocol}-index", by="index"))
            with self.serve(*folders) as (url, _):
                for name, records in tables.items():
                    with self.subTest(name, protocol=protocol):
                        found, _ = self.ask(url, "--table", f"{protocol}-{name}", *records, "absent")
                        self.assertEqual(found, [*records.values(), None])
                found, _ = self.ask(url, "--table", f"{protocol}-index", "--index", "0")
                self.assertEqual(found, ["record"])

    def every_level(self, protocols, *args):
        """Serves at every level of the CPU what was built at the best."""
        records = values(100, 50)
        for level in ("scalar", "avx2", "avx512", "avx512ifma"):
            with self.subTest(level):
                env = {**self.env, "HUSH_CPU": level}
                probe = self.hushdb("build", self.jsonl({"a": "b"}), "--key", "k", "--out", self.dir / level, env=env)
                if probe.returncode:
                    self.assertIn("HUSH_CPU", probe.stderr)
                    continue
                tables = [self.table(records, protocol, *args, name=f"{level}-{protocol}") for protocol in protocols]
                with self.serve(*tables, env=env) as (url, _):
                    for protocol in protocols:
                        found, _ = self.ask(url, "--table", f"{level}-{protocol}", "k3", "nobody", client=level)
                        self.assertEqual(found, [records["k3"], None])

    def share_scans(self, protocols, *args, keys):
        """Five clients at once; the server then has so many evaluation keys."""
        records = values(100, 50)
        tables = [self.table(records, protocol, *args, name=protocol) for protocol in protocols]
        with self.serve(*tables) as (url, _):
            wrong = []

            def ask(number):
                for protocol in protocols:
                    wanted = [f"k{number * 20 + i}" for i in range(20)]
                    found, _ = self.ask(url, "--table", protocol, *wanted, client=f"client{number}")
                    if found != [records[key] for key in wanted]:
                        wrong.append((number, protocol))

            clients = [threading.Thread(target=ask, args=(number,)) for number in range(5)]
            for thread in clients:
                thread.start()
            for thread in clients:
                thread.join()
            self.assertEqual(wrong, [])
            self.assertIn(b"hush_keys %d\n" % keys, request(url + "/metrics")[2])

    def corrupt_bytes(self, table):
        """Changes a byte of each file of a table, and cuts one off: every command names the file."""
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
