"""Tests of tables with compressed values, and a dictionary that clients download once."""

import json
import unittest

from keyed import KeyedTest
from proxy import Proxy

COUNT = 8000


def value(i):
    """Returns the value of key `i`: texts with much in common, of which one in a thousand is long."""
    words = ("a", "private", "look-up", "of", "record", str(i), "in", "table", str(i % 7), "<path d='M0 0h24v24H0z'/>")
    return " ".join(words[(i + at * 3) % len(words)] for at in range(400 if i % 1000 == 0 else 10 + i % 20))


RECORDS = {f"k{i}": value(i) for i in range(COUNT)}


class CompressTest(KeyedTest):
    def test_compressed_values_are_found(self):
        plain = self.table(RECORDS, "colpack", name="plain")
        tables = [self.table(RECORDS, protocol, "--compress", "zstd", *args, name=protocol, by=by)
                  for protocol, by, *args in (("colpack", "key"), ("simple", "index"), ("frodo", "key", "--filter", "fuse3"))]
        before, after = self.facts(plain), self.facts(tables[0])
        self.assertLess(after["server_bytes"], 0.75 * before["server_bytes"])
        self.assertEqual(after["payload_bytes"], before["payload_bytes"])
        self.assertIsNone(before["compression"])
        self.assertEqual(after["compression"]["max_value_bytes"], max(map(len, RECORDS.values())))
        self.assertIn("compressed zstd, values of up to ", self.hushdb("inspect", tables[0]).stdout)
        with self.serve(*tables) as (url, _), Proxy(url) as proxy:
            for table in tables:
                keys = [1, 0, 4321, COUNT - 1]
                asked = ["--index", *keys] if table.name == "simple" else [f"k{i}" for i in keys]
                found, first = self.ask(proxy.url, "--table", table.name, *asked)
                self.assertEqual(found, [value(i) for i in keys])
                _, second = self.ask(proxy.url, "--table", table.name, *asked)
                # The second client finds the dictionary in the cache.
                self.assertGreater(first["setup_bytes_down"], second["setup_bytes_down"] + 1000)
            sizes = set()
            for key in ("k1", "k0", "k4321", "absent"):
                del proxy.requests[:]
                found, stats = self.ask(proxy.url, "--table", "colpack", key)
                self.assertEqual(found, [RECORDS.get(key)])
                sent = [(method, path, len(body)) for method, path, body in proxy.requests]
                sizes.add((stats["queries"], stats["bytes_up"], stats["bytes_down"], *sent))
            self.assertEqual(len(sizes), 1, sizes)

    def test_records_of_several_columns(self):
        lines = [{"k": f"k{i}", "name": value(i), "count": i, "tags": ["a", i]} for i in range(3000)]
        source = self.dir / "table.jsonl"
        source.write_text("".join(json.dumps(line) + "\n" for line in lines))
        with self.serve(self.build(source, "--key", "k", "--compress", "zstd")) as (url, _):
            _, [answer] = self.get(url, "k1000")
            self.assertEqual(json.loads(answer["value"]), {"name": value(1000), "count": 1000, "tags": ["a", 1000]})

    def test_auto_compresses_what_it_saves_enough_of(self):
        for name, records, is_compressed in (
            # About 5 MiB of text, as much random data, and too little text for a dictionary.
            ("text", {f"k{i}": value(i) * 10 for i in range(COUNT)}, True),
            ("random", {f"k{i}": "".join(chr(33 + (i * i * 7 + at * at * 31 + i * at) % 90) for at in range(20))
                        for i in range(COUNT)}, False),
            ("few", {f"k{i}": value(i) for i in range(100)}, False),
        ):
            with self.subTest(name):
                source, out = self.jsonl(records), self.dir / name
                result = self.hushdb("build", source, "--key", "k", "--compress", "auto", "--out", out)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(self.facts(out)["compression"] is not None, is_compressed)
                self.assertEqual("are compressed to " in result.stderr, is_compressed)

    def test_what_cannot_be(self):
        source, out = self.jsonl({"a": "b", "c": "d"}), self.dir / "out"
        line = self.fails("build", source, "--key", "k", "--compress", "zstd", "--out", out)
        self.assertIn("leave --compress out", line)
        self.assertIn("use none, auto or zstd", self.fails("build", source, "--key", "k", "--compress", "gzip", "--out", out))
        table = self.table(RECORDS, "colpack", "--compress", "zstd")
        dictionary = bytearray((table / "dictionary.bin").read_bytes())
        dictionary[100] ^= 1
        (table / "dictionary.bin").write_bytes(dictionary)
        self.assertIn("dictionary.bin", self.fails("inspect", table))


if __name__ == "__main__":
    unittest.main()
