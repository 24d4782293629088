"""Tests of tables that follow a stream of changes, and of going back to an epoch before."""

import json
import pathlib
import random
import subprocess
import tempfile

from harness import BINARY, request
from keyed import KeyedTest

SMALL = ["--preset", "INSECURE_COLPACK_N256", "--columns", 600, "--updatable"]
COUNT = 3000


def put(key, value):
    return {"op": "put", "k": key, "v": value}


class FollowTest(KeyedTest):
    def setUp(self):
        super().setUp()
        self.first = {f"k{i}": f"v{i}" for i in range(COUNT)} | {"long": "x" * 40}
        self.records = dict(self.first)

    def follower(self, table, *args):
        command = [BINARY, "apply", table, "--follow", "-", "--key", "k", *map(str, args)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)

    def follow(self, table, changes, *args):
        """Feeds all changes, and returns the epochs' lines. Applies the changes to `records`."""
        process = self.follower(table, *args)
        lines = "".join(json.dumps(change) + "\n" for change in changes)
        out, said = process.communicate(lines, timeout=120)
        self.assertEqual(process.returncode, 0, said)
        for change in changes:
            self.take(change)
        return [json.loads(line) for line in out.splitlines()]

    def take(self, change):
        if change["op"] == "put":
            self.records[change["k"]] = change["v"]
        else:
            self.records.pop(change["k"], None)

    def check(self, url, keys):
        found, _ = self.ask(url, *keys)
        self.assertEqual(found, [self.records.get(key) for key in keys])

    def test_a_stream_becomes_epochs(self):
        table = self.table(self.records, "colpack", *SMALL, "--changes", 500)
        rng = random.Random(1)
        with self.serve(table, args=["--watch"]) as (url, _):
            changes = [put(f"k{rng.randrange(COUNT)}", f"new{i}") for i in range(200)]
            changes += [{"op": "delete", "k": key} for key in ("k1", "k2", "absent", "k1")]
            changes += [put("n1", "x"), {"op": "delete", "k": "n1"}, put("n2", "y"), put("k2", "again")]
            made = self.follow(table, changes, "--most", 50, "--keep-epochs", 9)
            self.assertEqual(made[-1]["lines"], len(changes))
            self.assertGreaterEqual(len(made), 4)
            self.assertEqual(self.facts(table)["epoch"], made[-1]["epoch"])
            self.wait_for("the epoch", lambda: self.epoch(url) == made[-1]["epoch"])
            self.check(url, ["k1", "k2", "n1", "n2", *rng.sample(list(self.records), 8)])
            # Going back is a matter of links, and the server takes it up.
            listed = self.hushdb("rollback", table, "--list").stdout
            self.assertEqual([line.split()[0] for line in listed.splitlines()][1:], [one["epoch"] for one in made[:-1]])
            self.assertIn("is kept, or more than one: kept are", self.fails("rollback", table, "--to", "zz"))
            first = listed.split()[0]
            went = self.hushdb("rollback", table, "--to", first[:10])
            self.assertEqual(went.returncode, 0, went.stderr)
            self.wait_for("the old epoch", lambda: self.epoch(url) == first)
            self.records = dict(self.first)
            self.check(url, ["k1", "k2", "n2", "k7"])
            # The epoch that was left is kept, too, and changes go on from the old one.
            self.assertIn(made[-1]["epoch"], self.hushdb("rollback", table, "--list").stdout)
            self.follow(table, [put("k7", "after")])
            self.wait_for("the epoch", lambda: self.epoch(url) == self.facts(table)["epoch"])
            self.check(url, ["k7", "k1"])

    def epoch(self, url):
        return json.loads(request(f"{url}/v1/tables/table")[2])["epoch"]

    def test_keys_are_those_of_the_table_and_lists_are_whole(self):
        rows = [[f"k{i}", f"v{at}"] for at in range(2) for i in range(COUNT)]
        table = self.build(self.csv(rows, "k,v"), "--key", "k", "--on-duplicate", "all", "--normalize", "lower", "--protocol", "colpack", *SMALL)
        long = self.csv([["k0", "x" * 50]], "k,v", "long.csv")
        self.assertIn("--longest", self.fails("apply", table, long, "--key", "k"))
        changes = [put("K1", ["a"]), put("k1", ["b", "c"]), put("K2", []), {"op": "delete", "k": "K3"}, {"op": "delete", "k": "k3"},
                   put("New", ["d"]), {"op": "delete", "k": "nEW"}, {"op": "delete", "k": "k4"}, put("K4", ["e"])]
        self.assertEqual(self.follow(table, changes)[-1]["lines"], len(changes))
        with self.serve(table) as (url, _):
            found, _ = self.ask(url, "k1", "k2", "k3", "new", "K4", "k5")
            self.assertEqual([value and json.loads(value) for value in found], [["b", "c"], [], None, None, ["e"], ["v0", "v1"]])

    def test_what_is_no_change_and_what_has_no_room(self):
        table = self.table(self.records, "colpack", *SMALL, "--changes", 60)
        for line, part in (("x", "no JSON object"), ('{"op":"put","v":"1"}', 'no column "k"'), ('{"op":"drop","k":"1"}', '"put" and "delete"'), ('{"op":"put","k":"1"}', 'no column "v"'),
                           ('{"op":"put","k":"1","v":"","w":1}', 'has no column "w"'), ('{"op":"delete","k":null}', "is null"),
                           ('{"op":"put","k":"k1","v":"' + "x" * 500 + '"}', "--longest")):
            process = self.follower(table)
            out, said = process.communicate(json.dumps(put("k3", line[:9])) + "\n\n" + line + "\n", timeout=60)
            self.assertEqual(process.returncode, 2, said)
            self.assertIn(part, said)
            if "--longest" not in part:
                self.assertEqual(json.loads(out)["lines"], 2)
                self.assertIn("line 3 of the stream", said)
            self.take(put("k3", line[:9]))
        # A change that the table refuses is found by its line; what is before it is in place, or sent again.
        process = self.follower(table)
        lines = [put("k4", "a"), put("k5", "b"), put("k6", None), put("k7", "c"), put("k8", "x" * 999), put("k9", "d")]
        _, said = process.communicate("".join(json.dumps(line) + "\n" for line in lines), timeout=60)
        self.assertRegex(said, r"error: line 5 of the stream is refused: .*; nothing was in place before")
        # A new base makes room, also for more changes at once than there is room for.
        made = self.follow(table, [put(f"n{i}", f"w{i}") for i in range(150)])
        self.assertEqual(made[-1]["lines"], 150)
        with self.serve(table) as (url, _):
            self.check(url, ["k3", "n0", "n75", "n149", "k8"])
        self.assertEqual(list(pathlib.Path(tempfile.gettempdir()).glob("hushdb-*.jsonl")), [])
        self.assertIn("--updatable", self.fails("apply", self.table(self.records, "simple", name="fixed"), "--follow", "-", "--key", "k"))
