"""Tests of every input and every protocol, by key and by index: look-ups return the built records."""

import base64
import contextlib
import json
import sqlite3
import subprocess
import threading
import time
import unittest

from harness import BINARY, HushTest
from proxy import Proxy


class Lookups(HushTest):
    def check_keys(self, table, expected, absent):
        """Looks up all of `expected` and `absent` in one command."""
        with self.serve(table) as (url, _):
            code, answers = self.get(url, *expected, *absent)
        self.assertEqual(code, 1 if absent else 0)
        self.assertEqual([a["key"] for a in answers], [*expected, *absent])
        for answer in answers:
            value = expected.get(answer["key"])
            self.assertEqual(answer["found"], value is not None, answer)
            if value is None:
                self.assertIsNone(answer["value"])
            else:
                self.assertEqual(base64.b64decode(answer["value_base64"]), value.encode())
                self.assertEqual(answer["value"], value)

    def test_protocols_by_key(self):
        rows = {f"user{i}": str(i * i) for i in range(3000)}
        source = self.csv(rows.items())
        sample = {key: rows[key] for key in list(rows)[::500]}
        for protocol in ("frodo", "simple", "double", "download", "auto"):
            with self.subTest(protocol):
                table = self.build(source, "--key", "key", "--protocol", protocol, name=protocol)
                self.check_keys(table, sample, ["nobody", "user3000", ""])

    def test_protocols_by_index(self):
        source = self.csv([(i, f"v{i:05}") for i in range(2000)])
        for protocol in ("frodo", "simple", "double", "download"):
            with self.subTest(protocol):
                table = self.build(source, "--value", "value", "--protocol", protocol, name=protocol)
                with self.serve(table) as (url, _):
                    code, answers = self.get(url, "--index", "0", "1999", "777")
                    self.assertEqual((code, [a["value"] for a in answers]), (0, ["v00000", "v01999", "v00777"]))
                    line = self.fails("get", url, "--index", "2000")
                    self.assertIn("0 to 1999", line)
                    self.assertIn("index", self.fails("get", url, "user1"))

    def test_queries_are_prepared(self):
        rows = {f"user{i}": str(i * i) for i in range(300)}
        source = self.csv(rows.items())
        for protocol in ("frodo", "simple", "double"):
            with self.subTest(protocol):
                table = self.build(source, "--key", "key", "--protocol", protocol, name=protocol)
                with self.serve(table) as (url, _):
                    run = self.hushdb("get", url, "-", "--prepare", "2", "--json", "--stats", "--no-cache", input="user9\n")
                    answer, stats = map(json.loads, run.stdout.splitlines())
                    self.assertEqual((answer["value"], stats["stats"]["prepared"]), ("81", 1))
                    self.assertGreater(stats["stats"]["seconds"]["prepare"], 0)
        table = self.build(source, "--key", "key", "--protocol", "colpack", name="colpack")
        with self.serve(table) as (url, _):
            self.assertIn("queries of colpack cannot be prepared", self.fails("get", url, "user1", "--prepare", "2"))

    def test_filters_and_blocks(self):
        rows = {f"k{i}": f"value-{i}" for i in range(4000)}
        source = self.csv(rows.items())
        sample = {key: rows[key] for key in list(rows)[::700]}
        for number, args in enumerate((
            ["--filter", "fuse3"], ["--filter", "fuse4"], ["--filter", "band64"], ["--filter", "band128"],
            ["--columns", "512"], ["--columns", "512", "--filter", "fuse3"], ["--fingerprint-bytes", "16"],
        )):
            with self.subTest(args=args):
                table = self.build(source, "--key", "key", "--protocol", "simple", *args, name=f"t{number}")
                self.check_keys(table, sample, ["absent", "k4000"])

    def test_presets(self):
        rows = {f"k{i}": f"value-{i}" for i in range(300)}
        source = self.csv(rows.items())
        sample = {key: rows[key] for key in list(rows)[::100]}
        for preset in ("LWE_N1280_STD3_2_PLAIN", "FRODOPIR_N1774_TERNARY"):
            with self.subTest(preset):
                table = self.build(source, "--key", "key", "--preset", preset, name=preset)
                self.check_keys(table, sample, ["absent"])
        table = self.build(source, "--key", "key", "--preset", "SIMPLEPIR_N1024_STD6_4_SEC121", name="weak")
        with self.serve(table) as (url, _):
            other = ["--allow-weak", "ONIONPIRV2_N2048_2X30_SEC113"]
            for switch in ([], other):
                line = self.fails("get", url, "k1", *switch)
                self.assertIn("SIMPLEPIR_N1024_STD6_4_SEC121, which gives 121 bits", line.replace("122", "121"))
                self.assertNotIn("--allow-weak", line)
            switch = ["--allow-weak", "SIMPLEPIR_N1024_STD6_4_SEC121"]
            self.assertEqual(self.get(url, "k1", *switch)[1][0]["value"], "value-1")

    def test_inputs(self):
        values = {"a": "1", "b": "two", "ü": "drei", "long": "x" * 3000, "empty": ""}
        jsonl = "".join(json.dumps({"k": k, "v": v}) + "\n" for k, v in values.items())
        (self.dir / "t.jsonl").write_text(jsonl)
        with sqlite3.connect(self.dir / "t.sqlite") as db:
            db.execute("create table t (k text, v text)")
            db.executemany("insert into t values (?, ?)", values.items())
        db.close()
        folder = self.dir / "files"
        folder.mkdir()
        for key, value in values.items():
            (folder / key).write_text(value)
        for number, (source, args) in enumerate((
            (self.dir / "t.jsonl", ["--key", "k", "--value", "v"]),
            (self.dir / "t.sqlite", ["--key", "k", "--value", "v", "--table", "t"]),
            (self.dir / "t.sqlite", ["--key", "k", "--value", "v", "--sql", "select v, k from t where 1"]),
            (folder, []),
        )):
            with self.subTest(source=source.name, args=args):
                self.check_keys(self.build(source, *args, name=f"t{number}"), values, ["absent", "x" * 4096])
        out = self.dir / "stdin"
        result = self.hushdb("build", "-", "--out", out, "--key", "k", input=jsonl)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check_keys(out, values, ["absent"])

    def test_hidden_files_and_links_of_a_folder(self):
        folder = self.dir / "files"
        folder.mkdir()
        (folder / "a").write_text("1")
        (folder / ".env").write_text("2")
        (folder / "link").symlink_to("a")
        for name, args, said, values in (
            ("plain", [], "skipped 1 hidden file and 1 link: --hidden and --follow-links take them", {"a": "1"}),
            ("all", ["--hidden", "--follow-links"], None, {"a": "1", ".env": "2", "link": "1"}),
        ):
            with self.subTest(name):
                result = self.hushdb("build", folder, "--out", self.dir / name, *args)
                self.assertEqual(result.returncode, 0, result.stderr)
                lines = [line for line in result.stderr.splitlines() if "skipped" in line]
                self.assertEqual(lines, [said] if said else [])
                self.check_keys(self.dir / name, values, {".env", "link", "absent"} - values.keys())
        self.assertEqual(list(self.dir.glob(".*")), [])

    def test_large_and_tiny_tables(self):
        value = bytes(range(256)) * 256
        source = self.dir / "files"
        source.mkdir()
        (source / "big").write_bytes(value)
        (source / "small").write_bytes(b"s")
        table = self.build(source, name="large")
        with self.serve(table) as (url, _):
            _, (big, small) = self.get(url, "big", "small")
            self.assertEqual(base64.b64decode(big["value_base64"]), value)
            self.assertIsNone(big["value"])
            self.assertEqual(small["value"], "s")
            raw = self.hushdb("get", url, "big", text=False)
            self.assertEqual((raw.returncode, raw.stdout), (0, value))
        one = self.build(self.csv([("only", "one")]), "--key", "key", name="one")
        self.check_keys(one, {"only": "one"}, ["other"])

    def test_several_columns(self):
        source = self.csv([("de", 1, "x", 2.5), ("fr", 1, "y", 3)], header="land,id,name,score")
        table = self.build(source, "--key", "land", "--key", "id", "--value", "name", "--value", "score")
        with self.serve(table) as (url, _):
            _, (answer,) = self.get(url, "de\x1f1")
            self.assertEqual(json.loads(answer["value"]), {"name": "x", "score": "2.5"})
            for key, given in (("de", "1 column"), ("de\x1f1\x1fx", "3 columns")):
                line = self.fails("get", url, key)
                self.assertIn(f"a key of {given} was given, and the table's key is land (string), id (string)", line)
        numbers = self.dir / "numbers.jsonl"
        numbers.write_text('{"id": 7, "v": "x"}\n')
        one = self.build(numbers, "--key", "id", name="one")
        with self.serve(one) as (url, _):
            self.assertEqual(self.get(url, "7", "+07", "8")[1][1]["value"], "x")
            for key in ("7\x1fextra", "seven", "7.0"):
                self.assertIn("the key column id is of type int64", self.fails("get", url, key))

    def test_two_tables_and_stats(self):
        first = self.build(self.csv([("a", "1")], name="a.csv"), "--key", "key", "--protocol", "frodo", name="first")
        second = self.build(self.csv([("a", "2")], name="b.csv"), "--key", "key", "--protocol", "frodo", name="second")
        with self.serve(first, second, args=["--name", "eins"]) as (url, _):
            self.assertEqual(self.get(url, "a", "--table", "eins")[1][0]["value"], "1")
            self.assertEqual(self.get(url, "a", "--table", "second")[1][0]["value"], "2")
            line = self.fails("get", url, "a")
            self.assertTrue("eins" in line and "second" in line, line)
            self.assertIn("eins", self.fails("get", url, "a", "--table", "third"))
            keys = self.dir / "keys.txt"
            keys.write_text("\ufeffa\r\n\nb\n")
            code, lines = self.get(url, "--table", "second", "--keys-file", str(keys), "--stats")
            self.assertEqual(code, 1)
            stats = lines.pop()["stats"]
            self.assertEqual([line["found"] for line in lines], [True, False])
            self.assertEqual(stats["queries"], 2)
            self.assertGreater(stats["bytes_up"], 0)
            self.assertEqual(stats["setup_bytes_up"], 0)
            keys.write_text("a\nb\n", encoding="utf-16")
            self.assertIn("the text is in UTF-16", self.fails("get", url, "--table", "second", "--keys-file", keys))

    def test_many_keys_are_printed_as_answers_come_and_a_restart_is_waited_for(self):
        table = self.build(self.csv([(f"k{i}", i) for i in range(200)]), "--key", "key", "--protocol", "simple")
        keys, out, seen = self.dir / "keys.txt", self.dir / "out", []
        keys.write_text("".join(f"k{i}\n" for i in range(199, -1, -1)))
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(contextlib.ExitStack())
            url, server = first.enter_context(self.serve(table))
            proxy = stack.enter_context(Proxy(url))
            held = threading.Event()

            def before(method, path):
                if method == "POST" and len(proxy.sent("POST")) == 2:
                    self.wait_for("the first answers are printed", lambda: out.read_text().count("\n") == 64)
                    seen.append(out.read_text().splitlines()[0])
                    server.kill()
                    held.set()

            proxy.before = before
            with open(out, "w") as stdout:
                command = [BINARY, "get", proxy.url, "--keys-file", keys]
                client = subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, text=True, env=self.env)
            self.assertTrue(held.wait(60))
            first.close()
            # The wait is longer than the retries of a client's first request.
            time.sleep(5)
            self.assertIsNone(client.poll())
            proxy.target, _ = stack.enter_context(self.serve(table))
            _, said = client.communicate(timeout=60)
            self.assertEqual(client.returncode, 0, said)
            self.assertIn("trying again in", said)
        self.assertEqual(seen, ["k199\t199"])
        self.assertEqual(out.read_text(), "".join(f"k{i}\t{i}\n" for i in range(199, -1, -1)))

    def test_answers_look_alike_on_the_wire(self):
        rows = {f"k{i}": "v" * (i % 50) for i in range(1000)}
        table = self.build(self.csv(rows.items()), "--key", "key", "--protocol", "frodo")
        with self.serve(table) as (url, _):
            sizes = set()
            for key in ("k0", "k999", "k49", "absent", "", "x" * 4096):
                _, lines = self.get(url, key, "--stats")
                stats = lines[-1]["stats"]
                sizes.add((stats["queries"], stats["bytes_up"], stats["bytes_down"]))
            self.assertEqual(len(sizes), 1, sizes)


if __name__ == "__main__":
    unittest.main()
