"""Tests that killed builds of column packing resume where they stopped."""

import re
import signal
import subprocess
import time
import unittest

from harness import BINARY
from keyed import KeyedTest, values

ENTRY_BYTES = 40  # bytes of an entry of the journal
ARGS = ["--key", "k", "--value", "v", "--protocol", "colpack", "--preset", "INSECURE_COLPACK_N256",
        "--columns", "8"]
RESUMING = re.compile(r"^resuming: (\d+) of (\d+) plaintexts are done$", re.M)
INTERRUPTED = re.compile(r"^error: interrupted; .* to go on: (\d+) of (\d+) pieces are done$", re.M)


class ResumedBuilds(KeyedTest):
    def setUp(self):
        super().setUp()
        self.out = self.dir / "out"
        self.partial = self.dir / ".out.hush-partial"
        # Long values in few columns make many plaintexts in a small table.
        self.records = values(30, 10000)
        self.source = self.jsonl(self.records)

    def command(self, source, *args):
        return ["build", source, *ARGS, *args, "--out", self.out]

    def done(self):
        """Returns the number of plaintexts in the journal."""
        journal = self.partial / "build.journal"
        return journal.stat().st_size // ENTRY_BYTES if journal.exists() else 0

    def killed(self, sent, plaintexts):
        """Sends a signal to a build once it has finished this many plaintexts, and returns its output."""
        # The slow kernels make sure that the signal comes in the middle.
        env = {**self.env, "HUSH_CPU": "portable"}
        build = subprocess.Popen([BINARY, *self.command(self.source), "--threads", "1"], stderr=subprocess.PIPE,
                                 text=True, env=env)
        deadline = time.time() + 100
        while self.done() < plaintexts and build.poll() is None and time.time() < deadline:
            time.sleep(0.002)
        build.send_signal(sent)
        _, error = build.communicate(timeout=30)
        self.assertNotIn("built", error, "it was too late")
        self.assertFalse(self.out.exists())
        self.assertGreaterEqual(self.done(), plaintexts, error)
        return error

    def built(self, source, records, **kwargs):
        """Builds to the end, checks the table, and returns the output."""
        result = self.hushdb(*self.command(source), **kwargs)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse(self.partial.exists())
        self.assertEqual(sorted(path.name for path in self.out.iterdir()),
                         ["chain.bin", "columns.bin", "db.bin", "header.json"])
        self.assertEqual(self.hushdb("inspect", self.out, "--verify", "full").returncode, 0)
        with self.serve(self.out) as (url, _):
            found, _ = self.ask(url, *records, "nobody")
            self.assertEqual(found, [*records.values(), None])
        return result.stderr

    def test_they_go_on_however_they_ended(self):
        error = self.killed(signal.SIGTERM, 20)
        (first, total), = INTERRUPTED.findall(error)
        self.assertEqual(int(first), self.done())
        self.assertGreater(int(total), 100)
        again = self.killed(signal.SIGKILL, int(first) + 20)
        self.assertEqual(RESUMING.findall(again), [(first, total)])
        second = str(self.done())
        last = self.built(self.source, self.records)
        self.assertEqual(RESUMING.findall(last), [(second, total)])
        self.assertRegex(last, rf"(?m)^pack columns +{int(total) - int(second)} plaintexts in ")

    def test_another_input_starts_clean(self):
        self.killed(signal.SIGKILL, 20)
        other = values(30, 10000, seed=2)
        self.assertNotIn("resuming", self.built(self.jsonl(other), other))

    def test_what_fails_before_it_begins_leaves_it(self):
        self.killed(signal.SIGKILL, 20)
        done = str(self.done())
        twice = self.dir / "twice.jsonl"
        twice.write_text(self.source.read_text() * 2)
        self.assertIn("twice.jsonl", self.fails(*self.command(twice)))
        reading = subprocess.Popen([BINARY, *self.command("-")], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.env)
        wait_catches(reading, signal.SIGINT)
        reading.send_signal(signal.SIGINT)
        # The build must stop before its input ends, which would also end it.
        reading.wait(timeout=30)
        self.assertIn(b"an earlier build left is still there", reading.communicate()[1])
        # A build resumes for the same records, even from another input.
        said = self.built("-", self.records, input=self.source.read_text())
        self.assertEqual([found for found, _ in RESUMING.findall(said)], [done])


def wait_catches(process, sent):
    """Waits until a process has a handler for a signal."""
    deadline = time.time() + 20
    while time.time() < deadline:
        with open(f"/proc/{process.pid}/status") as status:
            caught, = (int(line.split()[1], 16) for line in status if line.startswith("SigCgt"))
        if caught >> (sent - 1) & 1:
            return
        time.sleep(0.005)
    raise AssertionError("no handler")


if __name__ == "__main__":
    unittest.main()
