"""Tests of tables that are served from an object store: local copies are kept and checked."""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile

from harness import BINARY, HushTest, free_port, request
from remote import S3, Breaking, Web

# Random values do not compress, so that files have several chunks.
ROWS = [(f"key {i}", random.Random(i).randbytes(1500).hex()) for i in range(5000)]


class FromElsewhere(HushTest):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="hushdb-e2e-")
        cls.addClassCleanup(scratch.cleanup)
        cls.built = pathlib.Path(scratch.name) / "table"
        records = "k,v\n" + "".join(f"{key},{value}\n" for key, value in ROWS)
        options = ("--key", "k", "--updatable", "--protocol", "simple", "--format", "csv", "--out", cls.built)
        subprocess.run([BINARY, "build", "-", *options], input=records.encode(), check=True, stderr=subprocess.DEVNULL)

    def setUp(self):
        super().setUp()
        self.table = self.dir / "table"
        shutil.copytree(self.built, self.table)
        self.cache, self.said = self.dir / "tables", self.dir / "serve.log"

    def push(self, s3, to="s3://bucket/tables/people", port=None):
        pushed = self.hushdb("push", self.table, to, env={**self.env, **s3.env(port)})
        self.assertEqual(pushed.returncode, 0, pushed.stderr)
        return pushed

    def copy(self, s3, port=None, args=(), to="s3://bucket/tables/people"):
        """Serves a local copy of the table in the bucket."""
        return self.serve(to, args=("--cache", self.cache, *args), env={**self.env, **s3.env(port)}, log=self.said)

    def check(self, url, *expected):
        expected = expected or [ROWS[0], ROWS[2345], ROWS[-1]]
        answers = self.get(url, *(key for key, _ in expected))[1]
        self.assertEqual([answer.get("value") for answer in answers], [value for _, value in expected])

    def bytes(self):
        return sum(file.stat().st_size for file in self.table.iterdir() if file.name != "header.json")

    def log(self):
        return self.said.read_text()

    def test_a_copy_is_served_and_kept(self):
        with S3(self.dir / "s3") as s3:
            self.assertIn("to put there of", self.push(s3).stderr)
            with self.copy(s3) as (url, process):
                self.check(url)
                self.assertRegex(self.log(), rf"(?m)^people: fetch +{self.bytes()} bytes in ")
            # Neither a server nor `push` transfers anything twice.
            self.assertIn("0 B to put there of", self.push(s3).stderr)
            with self.copy(s3) as (url, _):
                self.check(url)
                self.assertNotIn("people: fetch", self.log())
            (folder,) = self.cache.iterdir()
            self.assertEqual({file.name: file.read_bytes() for file in folder.iterdir()},
                             {file.name: file.read_bytes() for file in self.table.iterdir()})
        # Without the store, the server starts with its copy.
        with self.copy(s3) as (url, _):
            self.check(url)
            self.assertIn("people: what was fetched before is served: s3://bucket/tables/people/header.json: ", self.log())

    def test_changes_are_fetched_and_nothing_else(self):
        with S3(self.dir / "s3") as s3:
            self.push(s3)
            admin = f"127.0.0.1:{free_port()}"
            with self.copy(s3, args=("--watch", "--listen-admin", admin)) as (url, _):
                changes = self.csv([("key 0", "new")], "k,v", "changes.csv")
                applied = self.hushdb("apply", self.table, changes, "--key", "k")
                self.assertEqual(applied.returncode, 0, applied.stderr)
                self.push(s3)
                self.wait_for("the new epoch", lambda: "taken up" in self.log())
                self.check(url, ("key 0", "new"), ROWS[1])
                missing, of = re.findall(r"people: ([\d.]+) MiB to fetch of ([\d.]+) MiB", self.log())[-1]
                self.assertLess(float(missing), float(of) / 3)
                # A served copy cannot be changed.
                status, _, body = request(f"http://{admin}/v1/admin/tables/people/compact", method="POST")
                self.assertEqual(status, 409)
                self.assertIn(b"is a copy of s3://bucket/tables/people: change it there", body)

    def test_a_server_that_runs_takes_a_table_over(self):
        with S3(self.dir / "s3") as s3:
            self.push(s3)
            admin = f"127.0.0.1:{free_port()}"
            env = {**self.env, **s3.env()}
            sources = ["--task-source", "s3://bucket", "--task-source", "postgres://host"]
            with self.serve(args=("--data", self.dir / "data", "--listen-admin", admin, *sources), env=env) as (url, _):
                for wrong, said in [("s3://bucket/nothing", "check the name"), ("people", "a table's URL is s3://"),
                                    ("postgres://host/db", "no table is fetched from there")]:
                    self.assertIn(said, self.fails("admin", "--url", f"http://{admin}", "load", "people", wrong, env=env))
                loaded = self.hushdb("admin", "--url", f"http://{admin}", "load", "people", "s3://bucket/tables/people", env=env)
                self.assertEqual(loaded.returncode, 0, loaded.stderr)
                self.assertIn("MiB to fetch of", loaded.stderr)
                self.check(url)
                # The table belongs to the server now, and can be changed.
                changes = self.csv([("key 0", "new")], "k,v", "changes.csv")
                applied = self.hushdb("admin", "--url", f"http://{admin}", "apply", "people", changes, "--", "--key", "k", env=env)
                self.assertEqual(applied.returncode, 0, applied.stderr)
                self.check(url, ("key 0", "new"), ROWS[1])

    def test_a_stop_in_the_midst_is_gone_on_from(self):
        with S3(self.dir / "s3") as s3:
            self.push(s3)
            # Every connection breaks in the middle of the file.
            with Breaking(s3.port, [None, *[300_000] * 40]) as proxy:
                command = [BINARY, "serve", "s3://bucket/tables/people", "--cache", self.cache, "--listen", "127.0.0.1:0"]
                env = {**self.env, **s3.env(proxy.port)}
                with subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) as process:
                    self.wait_for("a chunk", lambda: any(file.stat().st_size for file in self.cache.rglob("*db*.bin")))
                    process.send_signal(signal.SIGKILL)
            here = sum(file.stat().st_size for file in self.cache.rglob("*.bin"))
            self.assertGreater(here, 0)
            with self.copy(s3) as (url, _):
                self.check(url)
                fetched = int(re.search(r"people: fetch +(\d+) bytes", self.log())[1])
                self.assertLess(fetched, self.bytes())
            self.assertEqual([folder.name[:7] for folder in self.cache.iterdir()], ["people-"])

    def test_damage_is_told_and_mended(self):
        with S3(self.dir / "s3") as s3:
            self.push(s3)
            there = s3.bucket / "tables/people"
            with self.copy(s3):
                pass
            # A damaged copy is fetched again.
            (folder,) = self.cache.iterdir()
            database, stored = folder / "db.bin", next(there.glob("db.bin.*"))
            content = bytearray(database.read_bytes())
            content[5 << 20] ^= 1
            database.unlink()
            database.write_bytes(content)
            with self.copy(s3) as (url, _):
                self.check(url)
                self.assertRegex(self.log(), r"db\.bin is damaged: the checksum of bytes 4194304 to \d+ differs.*: it is fetched again")
                self.assertEqual(database.read_bytes(), stored.read_bytes())
            # A table that is damaged in the store is not served.
            env = {**self.env, **s3.env()}
            fetch = ("serve", "s3://bucket/tables/people", "--cache", self.cache, "--listen", "127.0.0.1:0")

            def push(*args):
                return self.hushdb("push", self.table, "s3://bucket/tables/people", *args, env=env).stderr

            for damage, said, sends in [
                (lambda: stored.write_bytes(content), ": the checksum of bytes 4194304 to ", ["--resend"]),
                (lambda: stored.write_bytes(content[:-1]), "the table is not whole there", []),
                (stored.unlink, "the table is not whole there", []),
            ]:
                damage()
                shutil.rmtree(self.cache, ignore_errors=True)
                line = self.fails(*fetch, env=env)
                self.assertIn(f"s3://bucket/tables/people/{stored.name}"[:-17], line)
                self.assertIn(said, line)
                self.assertIn("put all of it there again", line)
                self.assertNotRegex(push(*sends), r"(^|\s)0 B to put there")
                with self.copy(s3) as (url, _):
                    self.check(url)
            # Nothing is put over what is no table.
            (there / "header.json").write_text("{}")
            self.assertRegex(self.fails("push", self.table, "s3://bucket/tables/people", env=env),
                             "people/header.json: no table can be put there: .*; remove that object")

    def test_pushes_at_the_same_time_and_what_they_leave(self):
        others = []
        for number in range(2):
            others.append(self.dir / f"other{number}")
            shutil.copytree(self.table, others[-1])
            changes = self.csv([("key 0", f"new {number}")], "k,v", "changes.csv")
            self.assertEqual(self.hushdb("apply", others[-1], changes, "--key", "k").returncode, 0)
            self.assertEqual(self.hushdb("compact", others[-1]).returncode, 0)
        with S3(self.dir / "s3") as s3:
            env, place = {**self.env, **s3.env()}, "s3://bucket/tables/people"
            there = s3.bucket / "tables/people"
            self.push(s3)
            for _ in range(4):
                pushes = [subprocess.Popen([BINARY, "push", table, place], env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
                          for table in others]
                self.assertEqual([push.wait() for push in pushes], [0, 0])
                with self.copy(s3) as (url, _):
                    self.check(url, ROWS[1])
                shutil.rmtree(self.cache)
                self.push(s3)
            objects = set(there.iterdir())
            (there / "notes.txt").touch()
            for file in there.iterdir():
                os.utime(file, (0, 0))
            # The table, the one before and what is of no table stay.
            self.assertEqual(self.hushdb("push", others[0], place, env=env).returncode, 0)
            self.push(s3)
            left = {path.name for path in there.iterdir()}
            self.assertLess(left, {path.name for path in objects} | {"notes.txt"})
            for table in [others[0], self.table]:
                self.assertNotIn("MiB to put", self.hushdb("push", table, place, env=env).stderr)
            self.assertIn("notes.txt", left)

    def test_a_web_server(self):
        files = {f"/t/{file.name}": file.read_bytes() for file in self.table.iterdir()}
        with Web(files) as web:
            with self.serve(f"http://127.0.0.1:{web.port}/t/?sig=SECRET", args=("--cache", self.cache), log=self.said) as (url, _):
                self.check(url)
                self.assertNotIn("SECRET", self.log())
                self.assertTrue(all(path.endswith("?sig=SECRET") for path in web.asked), web.asked)
        with Web(files, ranges=False) as web:
            line = self.fails("serve", f"http://127.0.0.1:{web.port}/t", "--cache", self.dir / "none", "--listen", "127.0.0.1:0")
            self.assertIn("sends no parts of files", line)

    def test_python_puts_a_table_there(self):
        python = BINARY.parents[1] / "python/bin/python"  # `make python-dev`, which comes first
        program = "import sys, hushdb; print(hushdb.push(*sys.argv[1:], on_progress=lambda *told: print(told, file=sys.stderr)))"
        with S3(self.dir / "s3") as s3:
            for sent in (True, False):
                command = [python, "-c", program, self.table, "s3://bucket/tables/people"]
                done = subprocess.run(command, env={**self.env, **s3.env()}, capture_output=True, text=True, check=True)
                self.assertEqual(done.stdout.strip(), json.loads(self.hushdb("inspect", self.table, "--json").stdout)["epoch"])
                # A second push of the same table sends nothing.
                self.assertEqual("'0 B to put there" not in done.stderr, sent, done.stderr)
            with self.copy(s3) as (url, _):
                self.check(url)

    def test_errors_say_what_to_do(self):
        with S3(self.dir / "s3") as s3:
            env = {**self.env, **s3.env()}
            for args, said in [
                (("serve", "s3://bucket/nothing"), "s3://bucket/nothing/header.json: .*check the name"),
                (("serve", "postgres://host/db"), "no table is fetched from there: name one at s3://"),
                (("push", self.table, self.dir / "x"), "name a URL"),
                (("push", self.table, "https://127.0.0.1:1/t"), "a web server takes no tables"),
                (("push", self.dir / "none", "s3://bucket/x"), "is not a hushdb snapshot"),
            ]:
                self.assertRegex(self.fails(*args, *(("--listen", "127.0.0.1:0") if args[0] == "serve" else ()), env=env), said)
            wrong = {**self.env, **s3.env(secret="wrong")}
            self.assertIn("credentials", self.fails("push", self.table, "s3://bucket/x", env=wrong))
