"""Tests of faults of the disk: each operation that changes a file fails, tears, lies, or is the last before a kill; then the last whole
epoch is there, or the error names the file, and the same command succeeds. HUSHDB_FAULTS=all has every operation fail in every way."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import unittest

from harness import BINARY
from keyed import KeyedTest

SMALL = ["--protocol", "colpack", "--preset", "INSECURE_COLPACK_N256", "--columns", 600, "--updatable", "--changes", 200]
MODES = ("eio", "enospc", "short", "lies", "before", "after")
# The operations of a command that fail in one way, unless all do.
SOME = 4
ALL = os.environ.get("HUSHDB_FAULTS") == "all"


class FaultTest(KeyedTest):
    @classmethod
    def setUpClass(cls):
        source = pathlib.Path(__file__).with_name("faults.c")
        cls.library = pathlib.Path(BINARY).parent / "faults.so"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", cls.library, source, "-ldl"], check=True)

    def setUp(self):
        super().setUp()
        self.place = self.dir / "place"
        self.rng = random.Random(6)
        self.first, self.second = self.rows(3000, "a"), self.rows(40, "b")

    def rows(self, count, name):
        return self.csv([[f"k{i:04}", f"{name}{i:06}"] for i in range(count)], "k,v", f"{name}.csv")

    def run_with(self, command, at, mode="", stdin=None):
        """Runs a command of which operation `at` fails. Returns it, and the number of its operations."""
        count = self.dir / "count"
        count.unlink(missing_ok=True)
        env = {**self.env, "LD_PRELOAD": str(self.library), "FAULT_DIR": str(self.place), "FAULT_AT": str(at), "FAULT_MODE": mode,
               "FAULT_COUNT": str(count)}
        done = self.hushdb(*command, env=env, input=stdin)
        return done, int(count.read_text()) if count.exists() else None

    def epoch(self, table):
        """Returns the epoch of the table, all of whose files have their checksums, or None if there is no table."""
        if not table.exists():
            return None
        done = self.hushdb("inspect", table, "--json", "--verify", "full")
        self.assertEqual(done.returncode, 0, done.stderr)
        facts = json.loads(done.stdout)
        return facts["epoch"], (facts["changes"] or {}).get("changes")

    def fails_anywhere(self, name, command, prepare, goal, stdin=None):
        """Has operations of `command` fail. `prepare` makes the place as it was before; `goal` is what the table has afterwards: the
        number of its changes."""
        table = self.place / "t"
        prepare()
        before = self.epoch(table)
        done, operations = self.run_with(command, 0, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.epoch(table)[1], goal)
        tried = refused = 0
        for mode in MODES:
            numbers = range(1, operations + 1)
            for at in numbers if ALL else sorted(self.rng.sample(numbers, SOME)):
                with self.subTest(command=name, mode=mode, at=at):
                    prepare()
                    done, _ = self.run_with(command, at, mode, stdin)
                    self.assertIn(done.returncode, (0, 2, -signal.SIGKILL), done.stderr)
                    self.assertNotIn("panicked", done.stderr)
                    tried += 1
                    found = self.epoch(table)
                    if done.returncode == 0:
                        self.assertEqual(found[1], goal, done.stderr)
                    else:
                        self.assertTrue(found == before or found[1] == goal, (found, before, done.stderr))
                        refused += 1
                    if done.returncode == 2:
                        self.assertRegex(done.stderr, "(?m)^error: .*(/|disk|space|cannot)", done.stderr)
                    if done.returncode != 0 and found == before:
                        again, _ = self.run_with(command, 0, stdin=stdin)
                        self.assertEqual(again.returncode, 0, again.stderr)
                        self.assertEqual(self.epoch(table)[1], goal)
                    left = {path.name for path in self.place.iterdir()} - {"t", ".t.followed", ".t.epochs"}
                    self.assertTrue(found != before or left <= {".t.hush-lock"}, left)
        print(f"{name}: {operations} operations, {tried} faults, {refused} ended it", end="; ", flush=True)

    def fresh(self):
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()

    def copied(self, kept):
        """Puts a table that was kept in the place."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(kept, self.place)

    def test_a_fault_at_any_operation_leaves_a_whole_epoch(self):
        table = self.place / "t"
        build = ["build", self.first, "--key", "k", *SMALL, "--out", table]
        self.fails_anywhere("build", build, self.fresh, 0)
        self.fresh()
        self.assertEqual(self.hushdb(*build).returncode, 0)
        built = self.dir / "built"
        shutil.copytree(self.place, built)
        self.fails_anywhere("build --force", [*build, "--force"], lambda: self.copied(built), 0)
        apply = ["apply", table, self.second, "--key", "k", "--keep-epochs", 2]
        self.fails_anywhere("apply", apply, lambda: self.copied(built), 40)
        lines = "".join(json.dumps({"op": "put", "k": f"k{i:04}", "v": f"c{i:06}"}) + "\n" for i in range(30))
        self.fails_anywhere("follow", ["apply", table, "--follow", "-", "--key", "k"], lambda: self.copied(built), 30, lines)
        self.copied(built)
        self.assertEqual(self.hushdb(*apply).returncode, 0)
        changed = self.dir / "changed"
        shutil.copytree(self.place, changed)
        self.fails_anywhere("compact", ["compact", table], lambda: self.copied(changed), 0)
        kept = next((changed / ".t.epochs").iterdir()).name
        self.fails_anywhere("rollback", ["rollback", table, "--to", kept[:12]], lambda: self.copied(changed), 0)


if __name__ == "__main__":
    unittest.main()
