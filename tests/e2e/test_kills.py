"""Tests of kills: commands are killed at random moments. After each kill the table is a whole epoch and has what was acknowledged, and the
next command succeeds.

HUSHDB_KILLS is the number of kills of each command."""

import json
import os
import random
import shutil
import subprocess
import threading
import unittest

from harness import BINARY, free_port, request
from keyed import KeyedTest
from remote import S3

KILLS = int(os.environ.get("HUSHDB_KILLS", 10))
COUNT = 2000
TABLE = ["--key", "k", "--protocol", "colpack", "--preset", "INSECURE_COLPACK_N256", "--columns", 600]
UPDATABLE = [*TABLE, "--updatable", "--changes", 1000]


class Kills(KeyedTest):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(KILLS)
        self.table = self.dir / "table"
        # The last value that each key certainly had.
        self.records = {f"k{i}": f"the first value {i}" for i in range(COUNT)}
        # All values that a key may have now, for the keys of changes of which it is not known whether they were made.
        self.maybe = {}

    def made(self, *args, records=None, name="records.jsonl"):
        return ["build", self.jsonl(records or self.records, name), *(args or UPDATABLE), "--out", self.table]

    def runs(self, *command, **kwargs):
        """Runs a command, which must succeed, and returns what it prints."""
        result = self.hushdb(*command, **kwargs)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def starts(self, *command, **kwargs):
        kwargs = {"env": self.env, "stderr": subprocess.PIPE, "stdout": subprocess.DEVNULL, **kwargs}
        return subprocess.Popen([BINARY, *map(str, command)], text=True, **kwargs)

    def whole_epoch(self, table):
        """Checks every byte of a table, and returns its epoch."""
        return json.loads(self.runs("inspect", table, "--json", "--verify", "full"))["epoch"]

    def change(self, count=3):
        """Returns new values of some random keys. It is not known yet whether they will be there."""
        changed = {self.rng.choice(list(self.records)): f"value {self.rng.randrange(10**6)}" for _ in range(count)}
        for key, value in changed.items():
            self.maybe.setdefault(key, {self.records[key]}).add(value)
        return changed

    def is_made(self, changed):
        """Notes that keys have these values, whatever they had before."""
        self.records |= changed
        for key in changed:
            self.maybe.pop(key, None)

    def check(self, table, count=5):
        """Looks up what is not known, and some that is."""
        keys = [*self.maybe, *self.rng.sample(list(self.records), count)]
        with self.serve(table) as (url, _):
            self.check_at(url, keys)

    def may_have(self, url, keys):
        """Looks keys up, and returns what they have, which may change if a server goes on with what it was told before."""
        found, _ = self.ask(url, *keys)
        for key, value in zip(keys, found, strict=True):
            self.assertIn(value, self.maybe.get(key, {self.records[key]}), key)
        return dict(zip(keys, found, strict=True))

    def check_at(self, url, keys):
        self.is_made(self.may_have(url, keys))

    def kills(self, name, start, check, prepare=lambda: None):
        """Kills what `start` begins at random moments of the time that it takes. `check` is told whether it ended before."""
        self.longest, kills, turns = 1.0, 0, 0
        while kills < KILLS:
            self.assertLess(turns, 20 * KILLS + 100, f"{name} ends before it is killed")
            turns += 1
            prepare()
            process = start()
            moment = threading.Timer(self.rng.uniform(0, self.longest), process.kill)
            moment.start()
            said = process.communicate(timeout=60)
            moment.cancel()
            if process.returncode == 0:
                # Most kills come in time, and some of them late.
                self.longest = max(0.95 * self.longest, 0.02)
            else:
                self.assertEqual(process.returncode, -9, said)
                self.longest, kills = min(1.01 * self.longest, 2.0), kills + 1
            check(process.returncode == 0, said)
        print(f"{name}: {kills} kills of {turns}", end="; ", flush=True)

    def kept_epochs(self):
        """Returns the epochs that a rollback can go back to."""
        kept = [line.split()[0] for line in self.runs("rollback", self.table, "--list").splitlines()[1:]]
        return [epoch for epoch in kept if epoch != self.facts(self.table)["epoch"]]

    def left(self):
        """Returns the hidden names that commands left beside the table."""
        return {path.name for path in self.dir.iterdir() if path.name.startswith(".")} - {".table.hush-lock"}

    def test_builds(self):
        sources = [{key: f"{value} {'x' * 200} {at}" for key, value in self.records.items()} for at in range(2)]
        commands = [self.made(*TABLE, records=records, name=f"{at}.jsonl") for at, records in enumerate(sources)]
        turn = 0

        def check(is_done, _):
            nonlocal turn
            if is_done or self.table.exists():
                self.records = sources[turn // 7 % 2]
                self.whole_epoch(self.table)
                self.check(self.table)
                shutil.rmtree(self.table)
            # Now and then the records are others, and nothing of the build before may stay.
            turn += 1

        self.kills("build", lambda: self.starts(*commands[turn // 7 % 2]), check)
        self.runs(*commands[turn // 7 % 2])
        check(True, _=None)
        self.assertEqual(self.left(), set())

    def test_changes_and_new_bases(self):
        self.runs(*self.made())
        changed = {}

        def apply():
            nonlocal changed
            changed = self.change()
            return self.starts("apply", self.table, self.jsonl(changed, "changes.jsonl"), "--key", "k")

        def some_changes():
            changed = self.change()
            self.runs("apply", self.table, self.jsonl(changed, "changes.jsonl"), "--key", "k")
            self.is_made(changed)

        # A server takes each epoch up.
        with self.serve(self.table, args=["--watch"], log=self.dir / "log") as (url, _):
            def check(is_done, _):
                epoch = self.whole_epoch(self.table)
                self.wait_for("the epoch", lambda: json.loads(request(f"{url}/v1/tables/table")[2])["epoch"] == epoch)
                if is_done:
                    self.is_made(changed)
                if len(self.maybe) > 30:
                    self.check_at(url, list(self.maybe))
                if self.facts(self.table)["changes"]["changes"] > 900:
                    self.runs("compact", self.table)

            self.kills("apply", apply, check)
            self.kills("compact", lambda: self.starts("compact", self.table), lambda _, __: check(False, None), some_changes)
            # The last killed compaction may have been complete. A table without changes is refused.
            some_changes()
            self.runs("compact", self.table)
            check(False, None)
            self.check_at(url, [*self.maybe, *self.rng.sample(list(self.records), 200)])
        self.assertEqual(self.left(), set())
        names = {file["name"] for file in self.facts(self.table)["files"]} | {"header.json"}
        self.assertEqual({path.name for path in self.table.iterdir()}, names)

    def test_a_stream(self):
        self.runs(*self.made())
        changed = []

        def follow():
            nonlocal changed
            changed = [self.change(1) for _ in range(self.rng.randrange(1, 60))]
            for each in self.rng.sample(changed, len(changed) // 5):
                key, = each
                each[key] = None
                self.maybe[key].add(None)
            ops = [{"op": "put", "k": k, "v": v} if v else {"op": "delete", "k": k} for each in changed for k, v in each.items()]
            lines = self.dir / "stream.jsonl"
            lines.write_text("".join(json.dumps(op) + "\n" for op in ops))
            with open(lines) as stream:
                return self.starts("apply", self.table, "--follow", "-", "--key", "k", "--every", "5ms", "--most", 8,
                                   stdin=stream, stdout=subprocess.PIPE)

        def check(is_done, said):
            self.whole_epoch(self.table)
            told = [json.loads(line) for line in said[0].splitlines() if line.endswith("}")]
            lines = told[-1]["lines"] if told else 0
            self.assertTrue(lines == len(changed) or not is_done, said)
            # The lines that were told are in place. Each later line may be in place as well.
            for each in changed[:lines]:
                for key, value in each.items():
                    later = {one[key] for one in changed[lines:] if key in one}
                    self.records[key] = value
                    self.maybe[key] = {value} | later
            if len(self.maybe) > 100:
                self.check(self.table)

        self.kills("follow", follow, check)
        said = (process := follow()).communicate()
        self.assertEqual(process.returncode, 0, said)
        check(True, said)
        self.check(self.table, 200)
        self.assertEqual(self.left(), set())

    def test_a_push(self):
        self.runs(*self.made())
        with S3(self.dir / "s3") as s3:
            env, to = {**self.env, **s3.env()}, "s3://bucket/table"
            keep = ["--keep-epochs", 3]
            self.runs("push", self.table, to, env=env)
            before = new = self.facts(self.table)["epoch"]

            def some_changes():
                nonlocal new
                if self.rng.random() < 0.2 and (kept := self.kept_epochs()):
                    self.runs("rollback", self.table, "--to", self.rng.choice(kept), *keep)
                else:
                    self.runs("apply", self.table, self.jsonl(self.change(), "changes.jsonl"), "--key", "k", *keep)
                    if self.rng.random() < 0.2:
                        self.runs("compact", self.table, *keep)
                new = self.facts(self.table)["epoch"]

            def epoch_there():
                """Fetches the table as a new server does, and returns its epoch."""
                shutil.rmtree(self.dir / "copies", ignore_errors=True)
                with self.serve(to, args=("--cache", self.dir / "copies"), env=env) as (url, _):
                    return json.loads(request(f"{url}/v1/tables/table")[2])["epoch"]

            def check(is_done, _):
                nonlocal before
                found = epoch_there()
                self.assertIn(found, [new] if is_done else [before, new])
                before = found

            self.kills("push", lambda: self.starts("push", self.table, to, env=env), check, some_changes)
            self.runs("push", self.table, to, env=env)
            self.assertEqual(epoch_there(), self.whole_epoch(self.table))

    def test_a_server(self):
        url, admin_url = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        args = ["--data", self.dir / "data", "--listen-admin", admin_url.removeprefix("http://")]
        admin = ["admin", "--url", admin_url]
        changing = None

        def is_ready():
            try:
                return request(url + "/readyz")[0] == 200
            except OSError:
                return False

        def start():
            nonlocal changing
            with open(self.dir / "log", "w") as log:
                process = self.starts("serve", *args, "--listen", url.removeprefix("http://"), stderr=log)
            self.wait_for("the server", is_ready)
            if self.is_built:
                self.may_have(url, [*self.maybe, "k1"])
            changing = threading.Thread(target=change)
            changing.start()
            return process

        def change():
            """Changes the table until the server is gone."""
            while True:
                if not self.is_built:
                    done = self.hushdb(*admin, "build", "table", self.jsonl(self.records), *UPDATABLE)
                    self.is_built = done.returncode == 0
                elif self.rng.random() < 0.1:
                    done = self.hushdb(*admin, "compact", "table")
                else:
                    changed = self.change()
                    done = self.hushdb(*admin, "apply", "table", self.jsonl(changed, "changes.jsonl"), "--", "--key", "k")
                    if done.returncode == 0:
                        self.is_made(changed)
                if done.returncode != 0:
                    return

        def check(is_done, _):
            changing.join()
            self.assertFalse(is_done)

        self.is_built = False
        self.kills("serve", start, check)
        log = self.dir / "log"
        with self.serve(args=args, listen=url.removeprefix("http://"), log=log):
            # Tasks that were interrupted come before this one.
            changed = self.change()
            try:
                self.runs(*admin, "apply", "table", self.jsonl(changed, "changes.jsonl"), "--", "--key", "k")
            except subprocess.TimeoutExpired:
                self.fail(f"a task does not end: {self.runs(*admin, 'tasks')[:1000]}\n{log.read_text()}")
            self.is_made(changed)
            self.check_at(url, [*self.maybe, *self.rng.sample(list(self.records), 200)])
        # The build that is served and one to go back to are all that is kept.
        kept = sorted(path.name for path in (self.dir / "data" / "tables" / "table").iterdir())
        self.assertEqual((len(kept), kept[-1]), (3, "current"), kept)

    def test_a_task_that_was_done_when_the_server_stopped_is_done(self):
        args = ["--data", self.dir / "data", "--listen-admin", f"127.0.0.1:{free_port()}"]
        admin = ["admin", "--url", f"http://{args[3]}"]
        changed = self.jsonl({"k1": "new"}, "changes.jsonl")
        value = self.records["k1"]
        for number, (command, value) in enumerate([
            (["build", "table", self.jsonl(self.records), *UPDATABLE], value),
            (["apply", "table", changed, "--", "--key", "k"], "new"),
            (["compact", "table"], "new"),
            (["unload", "table"], None),
            (["load", "table"], "new"),
            (["delete", "table"], None),
        ], 1):
            with self.subTest(command[0]):
                with self.serve(args=args):
                    self.runs(*admin, *command)
                # The server stopped before it kept that the task has ended.
                task = self.dir / "data" / "tasks" / f"{number}.json"
                kept = json.loads(task.read_text())
                self.assertEqual(kept["status"], "succeeded")
                task.write_text(json.dumps({**kept, "status": "processing", "ended_at": None, "epoch": None}))
                # The server stopped before it removed the build that the change replaced.
                left = self.dir / "data" / "tables" / "table" / f".{number}.hush-partial"
                if command[0] in ["apply", "compact"]:
                    left.mkdir()
                    (left / "header.json").touch()
                with self.serve(args=args) as (url, _):
                    self.wait_for("the task", lambda: json.loads(task.read_text()).get("ended_at"))
                    self.assertEqual(json.loads(task.read_text())["status"], "succeeded", task.read_text())
                    self.assertFalse(left.exists())
                    tables = [table["state"] for table in json.loads(request(f"{url}/v1/tables")[2])["tables"]]
                    self.assertEqual(tables, ["resident"] if value else [])
                    if value:
                        self.assertEqual(self.ask(url, "k1", "k2")[0], [value, self.records["k2"]])


if __name__ == "__main__":
    unittest.main()
