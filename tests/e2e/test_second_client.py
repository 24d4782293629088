"""A client that shares nothing with the server: written in Python, from docs/formats.md (`scripts/vectors`)."""

import csv
import pathlib
import sys

from harness import HushTest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts/vectors"))

KEYS = 3000
# Few columns, so that there are entries to choose among.
CASES = {
    "simple": ("--filter", "band256"),
    "colpack": ("--filter", "fuse3", "--columns", "60"),
    "hybrid": ("--filter", "fuse4", "--columns", "30"),
    "onion": ("--filter", "band64", "--columns", "16", "--preset", "ONION_M31"),
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

    @staticmethod
    def value(i):
        return f"value {i}" + "." * (i % 50)
