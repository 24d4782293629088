"""hushdb plan --machines: a table in parts, on machines of a file."""

import json
import re

from keyed import KeyedTest
from test_plan import FAST

PROTOCOLS = ("colpack", "colpack-s", "hybrid", "onion", "tfhe", "tfhe-privks", "simple", "frodo", "double", "exppack-s", "exppack-d",
             "double-pack")
# PPIR's setting: five database servers, of which two are half as fast as the others, and a map server.
UNEQUAL = "\n".join(f"""
[[machine]]
name = "database-{number}"
count = 1
cores = {cores}
memory = "64G"
network = 10000
""" for number, cores in enumerate((16, 16, 8, 16, 8))) + """
[[machine]]
name = "map"
count = 2
cores = 8
memory = "16G"
network = 10000
heads = true
"""
EQUAL = """
[[machine]]
name = "node"
count = 20
cores = 8
memory = "16G"
network = 10000
price-hour = 0.5
"""


class PlanMachinesTest(KeyedTest):
    def setUp(self):
        super().setUp()
        self.machine = self.dir / "machine.json"
        self.machine.write_text(json.dumps(FAST))

    def args(self, machines, *args):
        path = self.dir / "machines.toml"
        path.write_text(machines)
        return ["plan", "--machine", self.machine, "--machines", path, *args]

    def layouts(self, machines, *args):
        """The layouts, the best first."""
        result = self.hushdb(*self.args(machines, "--json", *args))
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_every_protocol_on_unequal_machines(self):
        for protocol in PROTOCOLS:
            with self.subTest(protocol):
                size = 3 if protocol in ("double", "exppack-d") else 200
                layout = self.layouts(UNEQUAL, "--records", 4_000_000, "--size", size, "--protocol", protocol, "--parts", 5)[0]
                self.assertEqual([part["weight"] for part in layout["parts"]], [2, 2, 1, 2, 1])
                self.assertEqual([part["kind"] for part in layout["parts"]], [f"database-{number}" for number in range(5)])
                self.assertEqual([layout["table"]["protocol"], layout["head_kind"], layout["machines"]], [protocol, "map", 6])
                self.assertIn("--parts 5 --weights 2,2,1,2,1 --replicas 1 --cpus 16,16,8,16,8 --nodes database-0,", layout["command"])
                single = layout["single"]
                self.assertGreater(min(single["scan"], single["broadcast"], layout["partial_bytes"], layout["query_bytes"]), 0)
                self.assertAlmostEqual(sum(single[stage] for stage in ("broadcast", "scan", "gather", "finish")), single["total"])

    def test_a_table_to_read(self):
        records = ["--records", 30_000_000, "--size", 1024, "--key"]
        text = self.hushdb(*self.args(EQUAL, *records)).stdout
        for words in ("in parts", "to head", "slowest", "*: hushdb build .. --protocol colpack", "python -m hushdb.ray serve TABLE --parts "):
            self.assertIn(words, text)
        self.assertNotIn("--weights", text)
        layout = self.layouts(EQUAL, *records, "--protocol", "colpack")[0]
        self.assertAlmostEqual(layout["price_hour"], 0.5 * layout["machines"])
        twice = self.layouts(EQUAL, *records, "--protocol", "colpack", "--replicas", 2)[0]
        self.assertEqual([twice["replicas"], twice["machines"]], [2, 2 * len(twice["parts"])])
        rate = 3 * layout["queries_per_second"]
        often = self.layouts(EQUAL, *records, "--protocol", "colpack", "--lookups-per-second", rate)[0]
        self.assertGreaterEqual(often["queries_per_second"], rate)

    def test_wishes_that_nothing_meets_say_what_binds(self):
        records = ["--records", 30_000_000, "--size", 1024, "--protocol", "colpack"]
        for args, words in (
            (["--max-latency", "1ms"], ["a look-up takes at best ", "--max-latency wishes 1.00 ms: the nearest is --protocol colpack"]),
            (["--lookups-per-second", "1e7"], ["look-ups a second are at best ", "--lookups-per-second wishes 10000000"]),
            (["--max-memory", "100M"], ["the machines have no room"]),
            (["--parts", "21"], ["21 parts with 1 replicas take 21 machines", "there are 20"]),
            (["--parts", "20", "--records", "9"], ["20 parts are more than --protocol colpack", "can be cut into: "]),
            (["--max-upload", "10"], ["--max-upload allows 10 B"]),
        ):
            with self.subTest(args):
                given = records[2:] if "--records" in args else records
                refused = self.fails(*self.args(EQUAL, *given, *args))
                for word in words:
                    self.assertIn(word, refused)

    def test_bad_files_are_named_by_line_and_field(self):
        for machines, error in (
            (EQUAL.replace("cores = 8", "cores = 0"), "machines.toml, line 5: cores: it is a number above 0"),
            (EQUAL.replace("cores = 8\n", ""), "machines.toml, line 2: missing field `cores`"),
            (EQUAL.replace('"16G"', '"some"'), "machines.toml, line 6: memory: "),
            (EQUAL + 'profile = "none.json"\n', "machines.toml, line 9: profile: "),
            ("machine = 3\n", "machines.toml, line 1: machine: "),
        ):
            with self.subTest(error):
                refused = self.fails(*self.args(machines, "--records", 10, "--size", 1))
                self.assertTrue(re.search(f"error: .*{re.escape(error)}", refused), refused)
        alone = self.hushdb("plan", "--records", 1, "--size", 1, "--parts", 2)
        self.assertEqual((alone.returncode, "--machines" in alone.stderr), (2, True))
