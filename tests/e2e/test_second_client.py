"""Tests with a client that shares no code with the server: Python after docs/reference/file-formats.md (`scripts/vectors`)."""

import csv
import json
import pathlib
import sys

from harness import HushTest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts/vectors"))

KEYS = 3000
# Few columns, so that tables have several entries.
CASES = {
    "simple": ("--filter", "band256"),
    "colpack": ("--filter", "fuse3", "--columns", "60"),
    "hybrid": ("--filter", "fuse4", "--columns", "30"),
    "onion": ("--filter", "band64", "--columns", "16", "--preset", "ONION_M31"),
}
# Numbers of columns for tables with tiers: the ring degree of A is a multiple of each.
TIERED = {
    "simple": ("--columns", "1000"),
    "colpack": ("--columns", "2000"),
    "hybrid": ("--columns", "700"),
    "onion": ("--columns", "140", "--preset", "ONION_M31"),
}


class SecondClient(HushTest):
    @classmethod
    def setUpClass(cls):
        import environment

        environment.enter()

    def test_it_finds_what_the_server_has(self):
        from client import Client

        source = self.dir / "table.csv"
        with source.open("w", newline="") as file:
            csv.writer(file).writerows([("k", "v"), *((f"key {i}", self.value(i)) for i in range(KEYS))])
        arguments = ("--key", "k", "--value", "v", "--protocol")
        built = {name: self.build(source, *arguments, name, *args, name=name) for name, args in CASES.items()}
        with self.serve(*built.values()) as (url, _):
            for name in built:
                with self.subTest(name):
                    client = Client(url, name)
                    if name != "simple":
                        self.assertGreater(client.protocol.entry_count, 1)
                    for i in (0, 1, KEYS - 1):
                        self.assertEqual(client.get(f"key {i}".encode()), self.value(i).encode())
                    self.assertIsNone(client.get(b"no such key"))

    def test_it_finds_values_of_several_tiers(self):
        from client import Client

        source = self.dir / "table.csv"
        with source.open("w", newline="") as file:
            csv.writer(file).writerows([("k", "v"), *((f"key {i}", self.tail(i)) for i in range(KEYS))])
        arguments = ("--key", "k", "--value", "v", "--filter", "band64", "--tiers", "90,300,3000", "--protocol")
        built = {name: self.build(source, *arguments, name, *args, name=name) for name, args in TIERED.items()}
        with self.serve(*built.values()) as (url, _):
            for name in built:
                with self.subTest(name):
                    client = Client(url, name)
                    self.assertEqual(len(client.segments), 3)
                    for i in (0, 1, 16, 64, KEYS - 1):
                        self.assertEqual(client.get(f"key {i}".encode()), self.tail(i).encode())
                    self.assertIsNone(client.get(b"no such key"))

    def test_it_finds_what_has_changed(self):
        from client import Client

        records = {f"key {i}": self.tail(i) for i in range(KEYS)}
        changed = {f"key {i}": f"changed {i}" + "!" * (2900 if i % 40 == 0 else i) for i in range(0, 200, 5)} | {"new": "one"}
        gone = ["key 1", "key 16"]
        source, changes, deleted = (self.dir / name for name in ("table.csv", "changes.csv", "gone.txt"))
        for path, rows in ((source, records), (changes, changed)):
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([("k", "v"), *rows.items()])
        deleted.write_text("\n".join(gone))
        arguments = ("--key", "k", "--filter", "band64", "--tiers", "90,300,3000", "--updatable", "--protocol")
        built = {name: self.build(source, *arguments, name, *args, name=name) for name, args in TIERED.items()}
        for table in built.values():
            result = self.hushdb("apply", table, changes, "--key", "k", "--delete", deleted)
            self.assertEqual(result.returncode, 0, result.stderr)
        expected = records | changed | dict.fromkeys(gone)
        with self.serve(*built.values()) as (url, _):
            for name in built:
                with self.subTest(name):
                    client = Client(url, name)
                    for key in ("key 0", "key 1", "key 5", "key 6", "key 16", "key 40", "key 64", "new", "no such key"):
                        value = expected.get(key)
                        self.assertEqual(client.get(key.encode()), value and value.encode(), key)

    def test_it_reads_values_of_several_columns(self):
        from client import Client

        lines = [{"k": f"key {i}", "name": f'n"{i}', "count": i, "tags": ["a", i], "none": None} for i in range(100)]
        source = self.dir / "table.jsonl"
        source.write_text("".join(json.dumps(line) + "\n" for line in lines))
        table = self.build(source, "--key", "k", "--protocol", "simple")
        with self.serve(table) as (url, _):
            client = Client(url, "table")
            columns = [["name", "string"], ["count", "int64"], ["tags", "any"], ["none", "any"]]
            self.assertEqual(client.descriptor["schema"], {"key": [["k", "string"]], "value": columns})
            # Values contain no names and no quotes.
            self.assertLess(client.descriptor["slot"]["max_value_bytes"], 20)
            for i in (0, 7, 99):
                expected = {name: value for name, value in lines[i].items() if name != "k"}
                self.assertEqual(client.record(f"key {i}".encode()), expected)
                _, [answer] = self.get(url, f"key {i}")
                self.assertEqual(json.loads(answer["value"]), expected)
                self.assertEqual(list(json.loads(answer["value"])), list(expected))

    @staticmethod
    def tail(i):
        """Returns the value of key `i`: mostly short, one in sixteen of some hundred bytes, one in sixty-four of up to 3,000."""
        return f"value {i}" + "." * (2990 - i if i % 64 == 0 else 200 if i % 16 == 0 else i % 80)

    @staticmethod
    def value(i):
        return f"value {i}" + "." * (i % 50)
