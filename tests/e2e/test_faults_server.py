"""Tests of faults of the disk under a server and its clients: each operation that changes a file fails, tears, or is the last before a kill,
while a fixed series of requests runs. Then what was acknowledged is there, what was not is told, the health checks tell the truth, and
a restart goes on. HUSHDB_FAULTS=all has every operation fail in every way."""

import collections
import contextlib
import json
import os
import shutil
import signal
import subprocess
import unittest

from faults import SMALL, FaultTest
from harness import BINARY, free_port, request
from keyed import values
from power_loss import Disk, losses, steps_of, write
from remote import Web

MODES = ("eio", "enospc", "short", "before", "after")
# The operations that fail in one way, unless all do.
SOME = 1
ONION = ["--preset", "INSECURE_RING_N256"]


def setUpModule():
    if "HUSHDB_FAULTS" not in os.environ:
        raise unittest.SkipTest("a server under faults takes minutes: make campaign")


class ServerFaults(FaultTest):
    def setUp(self):
        super().setUp()
        self.url, self.admin_url = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self.said = self.dir / "serve.log"

    @contextlib.contextmanager
    def running(self, args, at=0, mode="", record=None):
        """Starts a server, and waits until it is ready, or has ended, or says which table has failed. Stops it in the end."""
        command = [self.faults, BINARY, "serve", *map(str, args), "--listen", self.url.removeprefix("http://")]
        (self.dir / "count").unlink(missing_ok=True)
        with open(self.said, "w") as said:
            process = subprocess.Popen(command, stderr=said, env=self.fault_env(at, mode, record))
        try:
            self.wait_for("the server", lambda: process.poll() is not None or self.ready() is not None, 60)
            yield process
        finally:
            process.terminate()
            process.wait(60)
        self.assertNotIn("panicked", self.said.read_text())

    def is_counted(self):
        """Returns whether the record of the server that ended is whole."""
        count = self.dir / "count"
        return count.exists() and count.read_text().endswith("\n")

    def ready(self):
        """Returns whether the server is ready; None while it starts."""
        status, body = self.ask_for(self.url + "/readyz")
        return {200: True, 503: False if b"failed" in body else None}.get(status)

    @staticmethod
    def ask_for(url, body=None):
        """Sends a request. Returns its status, 0 if there was none, and the answer."""
        try:
            status, _, answer = request(url, body, timeout=60)
            return status, answer
        except OSError as error:
            return 0, str(error).encode()

    def has_ended(self, process, mode):
        """Returns whether a server has ended. One that is to be killed and is still there gets time, as its work may go on."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(2 if mode in ("before", "after") else 0)
        return process.returncode is not None

    def fails_anywhere(self, name, prepare, args, series, check):
        """Has operations of a server fail. `series` sends its requests, and returns what was acknowledged; `check` says whether that is
        there, and whether the whole series was acknowledged."""
        prepare()
        with self.running(args) as process:
            check(series(), is_whole=True)
        self.assertEqual(process.returncode, 0, self.said.read_text())
        self.wait_for("the count", self.is_counted)
        numbers = range(1, self.operations() + 1)
        tried = ended = 0
        for mode in MODES:
            for at in self.drawn(numbers, SOME):
                with self.subTest(server=name, mode=mode, at=at):
                    tried += 1
                    prepare()
                    with self.running(args, at, mode) as process:
                        acknowledged = series()
                        if not self.has_ended(process, mode):
                            self.assertEqual(self.ask_for(self.url + "/livez")[0], 200)
                            if self.ready():
                                check(acknowledged, is_whole=False)
                            else:
                                self.assertRegex(self.said.read_text(), "(?i)error|warn")
                        else:
                            ended += 1
                            self.assertIn(process.returncode, (2, -signal.SIGKILL))
                            if process.returncode == 2:
                                self.assertRegex(self.said.read_text(), "(?m)^error: .*(/|disk|space|cannot)")
                    with self.running(args):
                        self.assertTrue(self.ready(), self.said.read_text())
                        check(acknowledged, is_whole=False)
                        check(series(), is_whole=True)
        print(f"{name}: {len(numbers)} operations, {tried} faults, {ended} ended it", end="; ", flush=True)

    def found(self, *keys):
        """Looks keys up as a client without a cache."""
        shutil.rmtree(self.dir / "cache", ignore_errors=True)
        return self.ask(self.url, *keys)[0]


class Tasks(ServerFaults):
    # The values of k0 that the series gives it, in order.
    LEVELS = ["a000000", "one", "two"]

    def setUp(self):
        super().setUp()
        self.source = self.rows(300, "a")
        self.args = ["--data", self.place, "--listen-admin", self.admin_url.removeprefix("http://")]

    def admin(self, *args):
        done = self.hushdb("admin", "--url", self.admin_url, *args)
        self.assertIn(done.returncode, (0, 2), done.stderr)
        self.assertNotIn("panicked", done.stderr)
        if done.returncode == 2:
            self.assertIn("error: ", done.stderr)
        return done.returncode == 0

    def series(self):
        """Builds a table, changes it twice, and makes a new base. Returns the level and whether all was acknowledged."""
        built = self.admin("build", "people", self.source, "--key", "k", *map(str, SMALL))
        level = 0 if built else -1
        for asked in (1, 2):
            changes = self.dir / "changes.jsonl"
            changes.write_text(json.dumps({"op": "put", "k": "k0000", "v": self.LEVELS[asked]}))
            if not self.admin("changes", "people", changes):
                # Later changes would hide that this one is lost.
                return level, asked, False
            level = asked
        return level, asked, self.admin("compact", "people")

    def check(self, acknowledged, is_whole):
        level, asked, is_all = acknowledged
        if is_whole:
            self.assertEqual((level, is_all), (2, True), self.said.read_text())
        tables = [each for each in json.loads(self.ask_for(self.url + "/v1/tables")[1])["tables"] if each["state"] == "resident"]
        found = self.found("k0000")[0] if tables else None
        self.assertIn(found, [None, *self.LEVELS][level + 1:asked + 2], self.said.read_text())

    def test_a_fault_at_any_operation_loses_no_task(self):
        self.fails_anywhere("tasks", self.fresh, self.args, self.series, self.check)

    def test_a_loss_of_power_loses_no_task(self):
        self.fresh()
        disk, record = Disk(self.place), self.dir / "record"
        with self.running(self.args, record=record) as process:
            acknowledged = self.series()
            self.check(acknowledged, is_whole=True)
            process.kill()
        self.wait_for("the record", self.is_counted)
        steps = steps_of(record)
        all_losses = list(losses(disk, steps))
        is_tried = self.drawn(range(len(all_losses)), 2)
        tried = 0
        for number, (how, found, links, is_end) in enumerate(all_losses):
            # The extremes at the end, in any case.
            if number not in is_tried and not (is_end and "some" not in how):
                continue
            with self.subTest(loss=how):
                tried += 1
                write(self.place, found, links)
                with self.running(self.args):
                    self.assertTrue(self.ready(), self.said.read_text())
                    self.check(acknowledged if is_end else (-1, 2, False), is_whole=False)
                    self.check(self.series(), is_whole=True)
        print(f"tasks: {len(steps)} operations, {tried} of {len(all_losses)} losses", end="; ", flush=True)


class Copies(ServerFaults):
    def test_a_fault_at_any_operation_leaves_a_whole_copy(self):
        table = self.dir / "t"
        build = ["build", self.rows(300, "a"), "--key", "k", *SMALL, "--out", table]
        self.assertEqual(self.hushdb(*build).returncode, 0)
        files = {}
        with Web(files) as web:
            def put():
                files.clear()
                files.update({f"/t/{file.name}": file.read_bytes() for file in table.iterdir()})

            put()
            args = [f"http://127.0.0.1:{web.port}/t/", "--cache", self.place]
            self.fresh()
            with self.running(args):
                pass
            older = self.kept("older")
            changes = self.csv([["k0000", "new"]], "k,v", "new.csv")
            self.assertEqual(self.hushdb("apply", table, changes, "--key", "k").returncode, 0)
            put()

            def check(found, is_whole):
                self.assertIn(found, [["new", "a000001"]] if is_whole else [None, ["new", "a000001"], ["a000000", "a000001"]])

            series = lambda: self.found("k0000", "k0001") if self.ready() else None
            self.fails_anywhere("copy", self.fresh, args, series, check)
            self.fails_anywhere("copy of changes", older, args, series, check)


class Keys(ServerFaults):
    def test_a_fault_at_any_operation_of_the_key_store(self):
        records = values(200, 40)
        table = self.table(records, "onion", *ONION)
        args = [table, "--keys", self.place / "keys.redb"]

        def series():
            """Looks up as two clients, the first once more. Returns whether each was answered."""
            answered = []
            for client in ("one", "other", "one"):
                asked = self.hushdb("get", self.url, "--allow-weak", ONION[1], "k1", "absent", "--json",
                                    env={**self.env, "XDG_CACHE_HOME": str(self.dir / client)})
                found = [json.loads(line)["value"] for line in asked.stdout.splitlines()]
                self.assertIn(asked.returncode, (1, 2), asked.stderr)
                self.assertIn(found, ([], [records["k1"], None]), "never a wrong answer")
                answered.append(bool(found))
            return answered

        def prepare():
            self.fresh()
            for client in ("one", "other"):
                shutil.rmtree(self.dir / client, ignore_errors=True)

        def check(answered, is_whole):
            if is_whole:
                self.assertEqual(answered, [True] * 3, self.said.read_text())

        self.fails_anywhere("key store", prepare, args, series, check)

    def test_a_kill_while_the_key_store_is_created(self):
        args = [self.table(values(20, 40), "onion", *ONION), "--keys", self.place / "keys.redb"]
        for at in range(1, 7):
            with self.subTest(at=at):
                self.fresh()
                with self.running(args, at, "before"):
                    pass
                with self.running(args):
                    self.assertTrue(self.ready(), self.said.read_text())


class Clients(FaultTest):
    def test_a_fault_at_any_operation_of_a_client_loses_no_count(self):
        records = values(200, 40)
        table = self.table(records, "onion", *ONION)
        with self.serve(table) as (url, _):
            command = ["get", url, "--allow-weak", ONION[1], "k1", "absent", "--json"]
            self.env["XDG_CACHE_HOME"] = str(self.place)
            used = collections.Counter()

            def ask(at=0, mode=""):
                """Looks two keys up, and returns whether they were answered: rightly, under keys whose record counts them."""
                done = self.run_with(command, at, mode)
                self.assertIn(done.returncode, (1, 2, -signal.SIGKILL), done.stderr)
                self.assertNotIn("panicked", done.stderr)
                found = [json.loads(line)["value"] for line in done.stdout.splitlines()]
                self.assertIn(found, ([], [records["k1"], None]))
                if done.returncode == 2:
                    self.assertIn("error: ", done.stderr)
                for record in self.place.rglob("*.seed"):
                    lookups, seed = int.from_bytes(record.read_bytes()[16:20], "little"), record.read_bytes()[24:56]
                    used[seed] += 2 * bool(found)
                    self.assertGreaterEqual(lookups, used[seed])
                return bool(found)

            self.fresh()
            self.assertTrue(ask())
            first = self.operations()
            self.assertTrue(ask())
            again = self.operations()
            tried = 0
            for is_first, operations in ((True, first), (False, again)):
                for mode in MODES:
                    numbers = range(1, operations + 1)
                    for at in self.drawn(numbers, 2):
                        with self.subTest(is_first=is_first, mode=mode, at=at):
                            tried += 1
                            if is_first:
                                self.fresh()
                            ask(at, mode)
                            self.assertTrue(ask())
            print(f"client: {first} and {again} operations, {tried} faults", end="; ", flush=True)


if __name__ == "__main__":
    unittest.main()
