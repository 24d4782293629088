"""Tests of tables with very different lengths of values, which are in tiers. One query asks all tiers."""

import unittest

from keyed import KeyedTest
from proxy import Proxy

COUNT = 6000
TIERS = [60, 300, 4000]
SMALL = {"colpack": "INSECURE_COLPACK_N256", "pack": "INSECURE_PACK_N256", "ring": "INSECURE_RING_N256"}
PROTOCOLS = {
    "simple": ["--columns", 1000],
    "frodo": ["--preset", "INSECURE_PLAIN"],
    "colpack": ["--preset", SMALL["colpack"], "--columns", 1500],
    "colpack-s": ["--preset", SMALL["colpack"], "--columns", 1500],
    "hybrid": ["--preset", SMALL["pack"], "--columns", 1500],
    "exppack-s": ["--preset", SMALL["pack"], "--columns", 1500],
    "double-pack": ["--preset", SMALL["pack"], "--columns", 1500],
    "onion": ["--preset", SMALL["ring"], "--columns", 140, "--filter", "band64"],
}


def value(i):
    """Returns the value of key `i`: mostly up to 60 bytes, one in 16 up to 300, one in 128 up to 4,000, one empty."""
    length = 0 if i == 7 else 4000 - i % 1000 if i % 128 == 0 else 61 + i % 239 if i % 16 == 0 else i % 61
    return "".join(chr(97 + (i * 31 + at * at) % 26) for at in range(length))


RECORDS = {f"k{i}": value(i) for i in range(COUNT)}
# Keys of all kinds: short values, the second tier, the third tier, the longest, empty, absent.
ASKED = ["k1", "k2999", "k16", "k4848", "k128", "k0", "k7", "absent"]


class TierTest(KeyedTest):
    def tiered(self, protocol, by="key", *args):
        ends = ",".join(map(str, TIERS))
        return self.table(RECORDS, protocol, *PROTOCOLS[protocol], "--tiers", ends, *args, name=f"{protocol}-{by}", by=by)

    def test_every_length_is_found_by_key_and_by_index(self):
        tables = {(protocol, by): self.tiered(protocol, by) for protocol in PROTOCOLS for by in ("key", "index")}
        with self.serve(*tables.values()) as (url, _):
            for (_, by), table in tables.items():
                with self.subTest(table.name):
                    keys = ASKED if by == "key" else ["--index", *(key[1:] for key in ASKED[:-1])]
                    found, stats = self.ask(url, "--table", table.name, *keys)
                    count = len(ASKED) if by == "key" else len(ASKED) - 1
                    self.assertEqual(found, [RECORDS.get(key) for key in ASKED[:count]])
                    # Each look-up sends one query, because new keys are uploaded first.
                    self.assertEqual(stats["queries"], count)
            table = tables["colpack", "index"]
            result = self.hushdb("get", url, "--table", table.name, "--allow-weak", SMALL["colpack"], "--no-cache", "--index", COUNT)
            self.assertIn(f"which has the records 0 to {COUNT - 1}", result.stderr)

    def test_look_ups_are_alike_on_the_wire(self):
        tables = [self.tiered(protocol) for protocol in ("simple", "colpack", "hybrid", "onion")]
        with self.serve(*tables) as (url, _), Proxy(url) as proxy:
            for table in tables:
                self.ask(proxy.url, "--table", table.name, "k1")  # keys and hints
                sizes = set()
                for key in ASKED:
                    del proxy.requests[:]
                    found, stats = self.ask(proxy.url, "--table", table.name, key)
                    self.assertEqual(found, [RECORDS.get(key)])
                    sent = [(method, path, len(body)) for method, path, body in proxy.requests]
                    sizes.add((stats["queries"], stats["bytes_up"], stats["bytes_down"], *sent))
                self.assertEqual(len(sizes), 1, sizes)
                facts = self.facts(table)
                self.assertTrue(facts["query_bytes"] <= stats["query_bytes"] <= facts["query_bytes"] + 100)
                self.assertTrue(facts["answer_bytes"] <= stats["answer_bytes"] <= facts["answer_bytes"] + 100)

    def test_tiers_are_told(self):
        table = self.tiered("colpack")
        facts = self.facts(table)
        base, *beside = facts["segments"]
        self.assertEqual([segment["role"] for segment in facts["segments"]], ["base", "tier", "tier"])
        lengths = [len(value) for value in RECORDS.values()]
        longer = [sum(length > end for length in lengths) for end in TIERS[:-1]]
        self.assertEqual([segment["records"] for segment in facts["segments"]], [COUNT, *longer])
        self.assertEqual([segment["slot_bytes"] for segment in beside], [240, 3700])
        self.assertEqual(base["slot_bytes"], 8 + 2 + 60)
        table_bytes = facts["server_bytes"] - facts["ready_key_bytes"]
        self.assertEqual(sum(segment["server_bytes"] for segment in facts["segments"]), table_bytes)
        self.assertEqual(sum(segment["answer_bytes"] for segment in facts["segments"]), facts["answer_bytes"])
        self.assertEqual(sum(file["bytes"] for file in facts["files"]), table_bytes + facts["hint_bytes"])
        text = self.hushdb("inspect", table).stdout
        self.assertIn("tier 3     bytes 300 to 4000 of 47 records", text)
        self.assertIn("(without these records every answer is ", text)

    def test_a_build_finds_tiers_and_one_is_what_it_was(self):
        # Enough records to make tiers worth their answers, and few enough long ones to make their tier small.
        records = {f"k{i}": "v" * (3000 if i % 3000 == 0 else 40) for i in range(60_000)}
        source, out = self.jsonl(records), self.dir / "auto"
        result = self.hushdb("build", source, "--key", "k", "--out", out)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("\ntier 1: bytes 0 to 40 of 60000 values, ", result.stderr)
        facts, one = self.facts(out), self.build(source, "--key", "k", "--max-tiers", 1, name="one")
        self.assertEqual([segment["records"] for segment in facts["segments"]], [60_000, 20])
        whole = self.facts(one)
        self.assertEqual((len(whole["segments"]), whole["filter"], facts["filter"]), (1, "band256", "band128"))
        self.assertGreater(whole["server_bytes"], 3 * facts["server_bytes"])
        self.assertNotIn("segments", (one / "header.json").read_text())
        equal = self.build(self.jsonl({f"k{i}": "v" * 40 for i in range(60_000)}), "--key", "k", name="equal")
        self.assertEqual(len(self.facts(equal)["segments"]), 1)

    def test_bad_choices_are_named(self):
        source, out = self.jsonl(RECORDS), self.dir / "out"
        for args, words in (
            (["--tiers", "60,300"], ["the longest value has 4000 bytes", "--tiers"]),
            (["--tiers", "300,60,4000"], ["each longer than the one before"]),
            (["--tiers", "60,x"], ["--tiers"]),
            (["--max-tiers", "0"], ["1 to 16"]),
            (["--max-tiers", "17"], ["1 to 16"]),
            (["--max-tiers", "2", "--tiers", "4000"], ["--max-tiers"]),
            (["--tiers", "60,4000", "--filter", "band256"], ["band256", "band128", "--max-tiers 1"]),
            (["--tiers", "60,4000", "--filter", "fuse3"], ["fuse3", "band128"]),
            # Nearly all records continue in slots that each fill a plaintext.
            (["--tiers", "10,3900,4000"], ["fit no tier", "--tiers"]),
        ):
            with self.subTest(args=args):
                line = self.fails("build", source, "--key", "k", "--protocol", "colpack", "--out", out, *args)
                for word in words:
                    self.assertIn(word, line)
                self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main()
