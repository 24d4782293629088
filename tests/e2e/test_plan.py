"""Tests of hushdb plan, and of builds with a goal."""

import json
import os
import shlex
import subprocess

from harness import BINARY
from keyed import KeyedTest, values

# Each binary measures the machine once. Tests for which times do not matter use this profile instead.
FAST = {"version": 1, "name": "a machine", "level": "portable", "threads": 2, "times": {"floors": {
    "bytes": 1e10, "multiply_adds": 1e11, "products": 1e9, "butterflies": 1e9}}}


class PlanTest(KeyedTest):
    def setUp(self):
        super().setUp()
        self.machine = self.dir / "machine.json"
        self.machine.write_text(json.dumps(FAST))

    def plan(self, *args):
        """Returns the offers, the best first."""
        result = self.hushdb("plan", "--machine", self.machine, "--json", *args)
        self.assertEqual(result.returncode, 0, result.stderr)
        return [json.loads(line) for line in result.stdout.splitlines()]

    def test_records_that_are_described(self):
        offers = self.plan("--records", 100_000, "--size", 200, "--key")
        wanted = {"protocol", "preset", "geometry", "tiers", "bytes_up", "bytes_down", "setup_bytes_up", "setup_bytes_down",
                  "server_bytes", "seconds", "queries_per_second", "security_bits", "failure_log2", "linkable"}
        for offer in offers:
            self.assertLessEqual(wanted, offer.keys())
            self.assertGreaterEqual(offer["security_bits"], 128)
            self.assertLessEqual(offer["failure_log2"], -64)
        self.assertGreater(len({offer["protocol"] for offer in offers}), 2)
        self.assertIn("lookups", {offer["linkable"] for offer in offers})
        for goal, cost in (("memory", lambda offer: offer["server_bytes"]),
                           ("bytes", lambda o: o["bytes_up"] + o["bytes_down"] + (o["setup_bytes_up"] + o["setup_bytes_down"]) / 50)):
            costs = [cost(offer) for offer in self.plan("--records", 100_000, "--size", 200, "--goal", goal, "--lookups-per-client", 50)]
            self.assertEqual(costs, sorted(costs))
        tails = self.plan("--records", 100_000, "--lengths", "100,2000,60000", "--key", "--protocol", "colpack")
        self.assertGreater(max(len(offer["tiers"]) for offer in tails), 1)

    def test_a_file_and_the_table_that_is_built_of_it(self):
        source = self.jsonl(values(3000, 300))
        offers = self.plan(source, "--key", "k", "--value", "v", "--linkable", "--goal", "bytes", "--lookups-per-client", "1e6")
        text = self.hushdb("plan", source, "--key", "k", "--value", "v", "--machine", self.machine).stdout
        self.assertIn("*: hushdb build .. --protocol", text)
        table = self.build(source, "--key", "k", "--value", "v", "--linkable", "--goal", "bytes", "--lookups-per-client", "1e6",
                           "--machine", self.machine)
        facts = self.facts(table)
        self.assertEqual([facts["protocol"], facts["preset"], facts["answer_bytes"]],
                         [offers[0]["protocol"], offers[0]["preset"], offers[0]["bytes_down"]])
        # With few keys, the balanced blocks have some slack.
        self.assertAlmostEqual(facts["query_bytes"], offers[0]["bytes_up"], delta=0.1 * offers[0]["bytes_up"])
        self.assertEqual(facts["choice"]["goal"], "bytes")
        named = self.build(source, "--key", "k", "--goal", "latency", "--machine", self.machine, name="named")
        self.assertEqual(self.facts(named)["choice"]["goal"], "latency")
        plain = self.facts(self.build(source, "--key", "k", name="plain"))
        self.assertEqual([plain["choice"]["goal"], plain["protocol"]], ["balance", "colpack"])
        self.assertIsNone(self.facts(self.build(source, "--key", "k", "--protocol", "simple", name="asked"))["choice"])
        text = self.hushdb("inspect", table).stdout
        self.assertIn("  chosen     by bytes, for a machine: ", text)
        self.assertIn("  next best  ", text)
        with self.serve(table) as (url, _):
            found, _ = self.ask(url, "k7", "nobody")
            self.assertEqual(found, [values(3000, 300)["k7"], None])

    def test_budgets(self):
        records = ["--records", 1 << 20, "--size", 1024]
        offers = self.plan(*records, "--max-upload", "100K", "--max-memory", "1.6x")
        self.assertTrue(all(offer["bytes_up"] <= 100 << 10 and offer["server_bytes"] <= 1.6 * 2**30 for offer in offers))
        refused = self.fails("plan", "--machine", self.machine, *records, "--max-upload", "10")
        for words in ("a query takes at least", "--max-upload allows 10 B", "the nearest is --protocol tfhe"):
            self.assertIn(words, refused)
        source = self.jsonl(values(500, 100))
        args = ("--protocol", "colpack-s", "--max-upload", "50", "--machine", self.machine)
        refused = self.fails("build", source, "--key", "k", *args, "--out", self.dir / "none")
        self.assertIn("--max-upload allows 50 B", refused)
        # Some options allow no table at all, whatever the budget.
        for args in (["--protocol", "simple", "--form", "symbols", "--goal", "latency"], ["--form", "symbols", "--preset", "PACK_M31"]):
            refused = self.fails("build", source, "--key", "k", *args, "--machine", self.machine, "--out", self.dir / "none")
            self.assertIn("does not keep plaintexts as symbols", refused)
        self.assertFalse((self.dir / "none").exists())

    def test_pictures(self):
        args = ["plan", "--machine", self.machine, "--records", 10_000, "--size", 100]
        for name, start in (("plan.svg", b"<svg"), ("plan.png", b"\x89PNG")):
            self.assertEqual(self.hushdb(*args, "--plot", self.dir / name).returncode, 0)
            self.assertEqual((self.dir / name).read_bytes()[: len(start)], start)
        self.assertIn(".svg or a .png", self.fails(*args, "--plot", self.dir / "plan.gif"))

    def test_whoever_reads_it_may_stop(self):
        args = [str(arg) for arg in (BINARY, "plan", "--machine", self.machine, "--records", 1000, "--size", 1, "--all", "--json")]
        result = subprocess.run(f"{shlex.join(args)} | true; exit ${{PIPESTATUS[0]}}", shell=True, executable="/bin/bash", capture_output=True)
        self.assertEqual((result.returncode, b"panicked" in result.stderr), (0, False), result.stderr)

    def test_gpus_have_floors_and_it_says_so(self):
        text = self.hushdb("plan", "--backend", "cuda", "--records", 10_000, "--size", 100).stdout
        self.assertIn("times are floors", text)

    def test_this_machine_is_measured_once(self):
        env = {**os.environ, **self.env, "XDG_CACHE_HOME": str(self.dir / "cache")}
        args = ["plan", "--records", 1000, "--size", 100, "--threads", 1]
        first = self.hushdb(*args, "--save-machine", self.dir / "saved.json", env=env)
        self.assertIn("measuring", first.stderr)
        again = self.hushdb(*args, env=env)
        self.assertEqual((again.returncode, "measuring" in again.stderr), (0, False))
        self.assertEqual(again.stdout, self.hushdb("plan", *args[1:5], "--machine", self.dir / "saved.json").stdout)

    def test_bad_choices_say_what_to_do(self):
        (self.dir / "no.json").write_text("{}")
        (self.dir / "still.json").write_text(json.dumps(FAST | {"threads": 0}))
        (self.dir / "old.json").write_text(json.dumps(FAST | {"version": 0}))
        for args, words in (
            (["--records", "5"], ["--size"]),
            (["--records", "5", "--lengths", "3,2,1"], ["three lengths, ascending"]),
            (["--records", "5", "--size", "1", "--max-memory", "much"], ["8G", "1.5x"]),
            (["--records", "5", "--size", "1", "--max-latency", "5"], ["200ms"]),
            (["--records", "5", "--size", "1", "--goal", "speed"], ["balance, latency, bytes, memory or cost"]),
            (["--records", "5", "--size", "1", "--backend", "auto"], ["cpu or cuda"]),
            (["--records", "5", "--size", "1", "--machine", self.dir / "no.json"], ["no profile of a machine", "--save-machine"]),
            (["--records", "5", "--size", "1", "--machine", self.dir / "still.json"], ["are above 0", "--save-machine"]),
            (["--records", "5", "--size", "1", "--machine", self.dir / "old.json"], ["version 0", "--save-machine"]),
        ):
            with self.subTest(args):
                result = self.hushdb("plan", *args)
                self.assertEqual(result.returncode, 2)
                for word in words:
                    self.assertIn(word, result.stderr)
