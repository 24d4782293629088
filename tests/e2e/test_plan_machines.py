"""Tests of hushdb plan --node: a table in parts, on equal or different machines."""

import json

from keyed import KeyedTest
from test_plan import FAST

PROTOCOLS = ("colpack", "colpack-s", "hybrid", "onion", "tfhe", "tfhe-privks", "simple", "frodo", "double", "exppack-s", "exppack-d",
             "double-pack")
# After PPIR section 4.3: five parts, of which two get half as much as the others.
UNEQUAL = [word for cores in (16, 16, 8, 16, 8) for word in ("--node", f"{cores},64G,10000")]
EQUAL = ["--node", "8,16G,10000"]


class PlanMachinesTest(KeyedTest):
    def setUp(self):
        super().setUp()
        self.machine = self.dir / "machine.json"
        self.machine.write_text(json.dumps(FAST))

    def args(self, nodes, *args):
        return ["plan", "--machine", self.machine, *nodes, *args]

    def layouts(self, nodes, *args):
        """Returns the layouts, the best first."""
        result = self.hushdb(*self.args(nodes, "--json", *args))
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_every_protocol_on_unequal_machines(self):
        for protocol in PROTOCOLS:
            with self.subTest(protocol):
                size = 3 if protocol in ("double", "exppack-d") else 200
                layout = self.layouts(UNEQUAL, "--records", 4_000_000, "--size", size, "--protocol", protocol)[0]
                self.assertEqual([part["weight"] for part in layout["parts"]], [2, 2, 1, 2, 1])
                self.assertEqual([layout["table"]["protocol"], layout["machines"]], [protocol, 5])
                self.assertIn("--parts 5 --weights 2,2,1,2,1 --replicas 1 --cpus 16,16,8,16,8 --nodes cores-16,", layout["command"])
                single = layout["single"]
                self.assertGreater(min(single["scan"], single["broadcast"], layout["partial_bytes"], layout["query_bytes"]), 0)
                self.assertAlmostEqual(sum(single[stage] for stage in ("broadcast", "scan", "gather", "finish")), single["total"])
        equal = self.layouts(EQUAL, "--records", 4_000_000, "--size", 200, "--protocol", "colpack", "--weights", "3,1")[0]
        self.assertEqual([part["weight"] for part in equal["parts"]], [3, 1])

    def test_a_table_to_read(self):
        records = ["--records", 30_000_000, "--size", 1024, "--key"]
        text = self.hushdb(*self.args(EQUAL, *records)).stdout
        for words in ("in parts", "to head", "slowest", "*: hushdb build .. --protocol colpack", "python -m hushdb.ray serve TABLE --parts "):
            self.assertIn(words, text)
        self.assertNotIn("--weights", text)
        layout = self.layouts(EQUAL, *records, "--protocol", "colpack")[0]
        self.assertLessEqual(max(part["bytes"] for part in layout["parts"]), 16 << 30)
        twice = self.layouts(EQUAL, *records, "--protocol", "colpack", "--replicas", 2)[0]
        self.assertEqual([twice["replicas"], twice["machines"]], [2, 2 * len(twice["parts"])])
        rate = 3 * layout["queries_per_second"]
        often = self.layouts(EQUAL, *records, "--protocol", "colpack", "--lookups-per-second", rate)[0]
        self.assertGreaterEqual(often["queries_per_second"], rate)

    def test_wishes_that_nothing_meets_say_what_binds(self):
        records = ["--records", 30_000_000, "--size", 1024, "--protocol", "colpack"]
        for args, words in (
            (["--max-latency", "1ms"], ["--max-latency", "the nearest is --protocol colpack"]),
            (["--max-memory", "100M", "--parts", "20"], ["the machines have no room: --protocol colpack", "in 20 parts lacks "]),
            (["--parts", "20", "--records", "9"], ["can be cut into 20 parts"]),
            (["--parts", str(1 << 60)], [f"can be cut into {1 << 60} parts"]),
            (["--parts", "20", "--weights", "1,2"], ["the numbers of machines, parts and weights differ"]),
            (["--max-upload", "10"], ["--max-upload allows 10 B"]),
        ):
            with self.subTest(args):
                given = records[2:] if "--records" in args else records
                refused = self.fails(*self.args(EQUAL, *given, *args))
                for word in words:
                    self.assertIn(word, refused)
        for node, words in (("8,16G", "CORES,MEMORY,MBIT"), ("0,16G,10", "cores are a number above 0"), ("8,much,10", "a number of bytes is like"),
                            ("8,16G,-1", "above 0")):
            refused = self.hushdb(*self.args(["--node", node], *records))
            self.assertEqual((refused.returncode, words in refused.stderr), (2, True), refused.stderr)
        endless = self.layouts(EQUAL, *records, "--replicas", (1 << 64) - 1, "--lookups-per-second", "1e300")[0]
        self.assertEqual(endless["machines"], (1 << 64) - 1)
        alone = self.hushdb("plan", "--records", 1, "--size", 1, "--parts", 2)
        self.assertEqual((alone.returncode, "--node" in alone.stderr), (2, True))
