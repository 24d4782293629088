"""Tests of faults of the disk: each operation that changes a file fails, tears, lies, or is the last before a kill; then the last whole
epoch is there, or the error names the file, and the same command succeeds. HUSHDB_FAULTS=all has every operation fail in every way."""

import signal
import unittest

from faults import FaultTest

MODES = ("eio", "enospc", "short", "lies", "before", "after")
# The operations of a command that fail in one way, unless all do.
SOME = 4


class Faults(FaultTest):
    def fails_anywhere(self, name, command, prepare, goal, stdin):
        """Has operations of `command` fail. `prepare` makes the place as it was before; `goal` is what the table has afterwards: the
        number of its changes."""
        table = self.place / "t"
        prepare()
        before = self.epoch(table)
        done = self.run_with(command, 0, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.epoch(table)[1], goal)
        numbers = range(1, self.operations() + 1)
        tried = refused = 0
        for mode in MODES:
            for at in self.drawn(numbers, SOME):
                with self.subTest(command=name, mode=mode, at=at):
                    prepare()
                    done = self.run_with(command, at, mode, stdin)
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
                        again = self.run_with(command, 0, stdin=stdin)
                        self.assertEqual(again.returncode, 0, again.stderr)
                        self.assertEqual(self.epoch(table)[1], goal)
                    left = {path.name for path in self.place.iterdir()} - {"t", ".t.followed", ".t.epochs"}
                    self.assertTrue(found != before or left <= {".t.hush-lock"}, left)
        print(f"{name}: {len(numbers)} operations, {tried} faults, {refused} ended it", end="; ", flush=True)

    def test_a_fault_at_any_operation_leaves_a_whole_epoch(self):
        for command in self.commands():
            self.fails_anywhere(*command)


if __name__ == "__main__":
    unittest.main()
