"""Tests of bad input: the error is clear and says what to do, nothing is lost, and other requests are served."""

import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

from harness import BINARY, HushTest, free_port, request, wait_ready


class BadBuilds(HushTest):
    def test_inputs_that_make_no_table(self):
        out = self.dir / "out"
        empty = self.csv([], name="empty.csv")
        rows = self.csv([("a", "1"), ("b", "2"), ("a", "3")])
        long_key = self.dir / "long.jsonl"
        long_key.write_text('{"k": "%s", "v": 1}\n' % ("x" * 4097))
        (self.dir / "bad.jsonl").write_text('{"k": 1, "v": 2}\n{"k": 1, "v"\n')
        (self.dir / "what.xyz").write_text("?")
        (self.dir / "quotes.csv").write_text('key,value\na,"b\\"c"\n')
        for args, expected in (
            ([empty, "--key", "key"], ["empty.csv"]),
            ([rows, "--key", "key"], ["table.csv", "a", "--on-duplicate"]),
            ([rows, "--key", "kee"], ["kee", "key", "value"]),
            ([long_key, "--key", "k"], ["long.jsonl", "4096"]),
            ([rows, "--key", "key", "--on-duplicate", "first", "--max-value-size", "0"], ["--max-value-size"]),
            ([self.dir / "bad.jsonl", "--key", "k"], ["bad.jsonl", "2"]),
            ([self.dir / "what.xyz"], [".csv"]),
            ([self.dir / "quotes.csv", "--key", "key"], ["quotes.csv, row 1 (line 2)", "behind its closing quote", "escape"]),
            ([self.dir / "missing.csv"], ["missing.csv"]),
            ([rows, "--value", "value", "--preset", "NO_SUCH"], ["NO_SUCH", "LWE_N1280"]),
        ):
            with self.subTest(args=[str(a) for a in args]):
                line = self.fails("build", *args, "--out", out)
                for word in expected:
                    self.assertIn(word, line)
                self.assertFalse(out.exists())
                self.assertEqual(list(self.dir.glob(".out.*")), [])

    def test_choices_that_cannot_be(self):
        rows = self.csv([("a", "1"), ("b", "2")])
        out = self.dir / "out"
        args = ["build", rows, "--key", "key", "--out", out]
        self.assertIn("--columns", self.fails(*args, "--protocol", "frodo", "--columns", "2"))
        self.assertIn("avx512", self.fails(*args, env={**self.env, "HUSH_CPU": "abacus"}))
        long = self.dir / "long.jsonl"
        long.write_text('{"k": "a", "v": "%s"}\n{"k": "b", "v": ""}\n' % ("x" * 60000))
        line = self.fails("build", long, "--key", "k", "--out", out, "--protocol", "double")
        self.assertIn("use simple", line)

    def test_duplicates_resolved(self):
        rows = self.csv([("a", "1"), ("b", "2"), ("a", "3")])
        for choice, value in (("first", "1"), ("last", "3")):
            table = self.build(rows, "--key", "key", "--on-duplicate", choice, name=choice)
            with self.serve(table) as (url, _):
                self.assertEqual(self.get(url, "a")[1][0]["value"], value)

    def test_an_existing_folder_is_not_lost(self):
        rows = self.csv([("a", "1")])
        table = self.build(rows, "--key", "key")
        self.assertIn("--force", self.fails("build", rows, "--key", "key", "--out", table))
        precious = self.dir / "precious"
        precious.mkdir()
        (precious / "thesis.txt").write_text("do not delete")
        self.fails("build", rows, "--key", "key", "--out", precious, "--force")
        self.assertEqual((precious / "thesis.txt").read_text(), "do not delete")
        self.build(self.csv([("a", "2")], name="new.csv"), "--key", "key", "--force")
        with self.serve(table) as (url, _):
            self.assertEqual(self.get(url, "a")[1][0]["value"], "2")

    def test_a_link_is_followed_or_refused(self):
        rows, link, real = self.csv([("a", "1")]), self.dir / "link", self.dir / "real"
        link.symlink_to("real")
        line = self.fails("build", rows, "--key", "key", "--out", link)
        self.assertIn("is a link to real, and nothing is there", line)
        real.mkdir()
        self.build(rows, "--key", "key", name="link")
        self.assertTrue(link.is_symlink())
        self.assertTrue((real / "header.json").exists())
        told = self.hushdb("build", rows, "--key", "key", "--out", link, "--force", "--quote", "none").stderr
        self.assertIn("read 1 rows: 1 records", told)
        self.assertTrue(link.is_symlink())

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("mount"), "mounting a small disk needs root")
    def test_a_mount_point_is_refused(self):
        disk = self.dir / "mounted"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk], stderr=subprocess.PIPE).returncode:
            self.skipTest("mounts are not allowed here")
        try:
            line = self.fails("build", self.csv([("a", "1")]), "--key", "key", "--out", disk)
            self.assertIn("is a mount point, and no table can take its place: choose a folder inside it", line)
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_two_builds_into_one_folder(self):
        out = self.dir / "out"
        command = [BINARY, "build", "-", "--out", out, "--key", "k"]
        first = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env)
        deadline = time.time() + 20
        while not (self.dir / ".out.hush-partial").exists() and time.time() < deadline:
            time.sleep(0.02)
        self.assertIn("another build", self.fails("build", self.csv([("a", "1")]), "--key", "key", "--out", out))
        _, error = first.communicate(b'{"k": "a", "v": "1"}\n', timeout=60)
        self.assertEqual(first.returncode, 0, error)
        with self.serve(out) as (url, _):
            self.assertEqual(self.get(url, "a")[1][0]["value"], "1")

    def test_interrupted_and_killed_builds(self):
        out = self.dir / "out"
        for sent in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with self.subTest(sent.name):
                build = subprocess.Popen([BINARY, "build", "-", "--out", out, "--key", "k"],
                                         stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env)
                build.stdin.write(b'{"k": "a", "v": "1"}\n')
                build.stdin.flush()
                deadline = time.time() + 20
                while not (self.dir / ".out.hush-partial").exists() and time.time() < deadline:
                    time.sleep(0.02)
                time.sleep(0.1)
                build.send_signal(sent)
                build.communicate(timeout=30)
                self.assertNotEqual(build.returncode, 0)
                self.assertFalse(out.exists())
        self.build(self.csv([("a", "1")]), "--key", "key", name="out")
        self.assertEqual(list(self.dir.glob(".out.*")), [])

    @unittest.skipUnless(os.geteuid() == 0 and shutil.which("mount"), "mounting a small disk needs root")
    def test_full_disk(self):
        disk = self.dir / "disk"
        disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], capture_output=True)
        if mounted.returncode != 0:
            self.skipTest("this machine does not let root mount a tmpfs")
        try:
            for count in (4000, 1500):  # the records do not fit; the records fit, the table beside them does not
                source = self.dir / f"{count}.jsonl"
                with source.open("w") as file:
                    for i in range(count):
                        file.write('{"k": "%d", "v": "%s"}\n' % (i, "x" * 1000))
                out = disk / "out"
                (disk / ".out.hush-partial").mkdir(mode=0o700)
                (disk / ".out.hush-partial" / "build.json").write_text("of a build that was killed")
                line = self.fails("build", source, "--key", "k", "--out", out)
                self.assertIn("disk", line)
                self.assertFalse(out.exists())
                self.assertEqual(list(disk.iterdir()), [])
            small = self.csv([("a", "1")])
            self.assertEqual(self.hushdb("build", small, "--key", "key", "--out", disk / "ok").returncode, 0)
            # A failed write leaves no partial file that would block the next attempt.
            with contextlib.suppress(OSError), open(disk / "filler", "wb", buffering=0) as filler:
                while True:
                    filler.write(bytes(4096))
            for command in (["keygen", disk / "new"], ["serve", disk / "ok", "--listen", "127.0.0.1:0", "--keys", disk / "new"]):
                self.assertIn(str(disk / "new"), self.fails(*command))
                self.assertFalse((disk / "new").exists())
        finally:
            subprocess.run(["umount", disk], check=True)


class BadSnapshots(HushTest):
    def test_a_corrupt_byte_in_each_file(self):
        rows = self.csv([(f"k{i}", i) for i in range(500)])
        table = self.build(rows, "--key", "key", "--protocol", "double")
        names = sorted(path.name for path in table.iterdir())
        self.assertEqual(names, ["db.bin", "db2.bin", "header.json", "hint.bin"])
        for name in names:
            path = table / name
            original = path.read_bytes()
            for place in (0, len(original) // 2, len(original) - 1):
                with self.subTest(name=name, place=place):
                    path.write_bytes(original[:place] + bytes([original[place] ^ 1]) + original[place + 1:])
                    for command in (["inspect", table], ["serve", table, "--listen", "127.0.0.1:0"]):
                        line = self.fails(*command)
                        self.assertIn(name, line)
                        self.assertIn("damaged", line)
            path.write_bytes(original[:-1])
            self.assertIn("damaged", self.fails("inspect", table, "--verify", "header"))
            path.write_bytes(original)
        self.assertEqual(self.hushdb("inspect", table).returncode, 0)
        (table / "hint.bin").unlink()
        self.assertIn("hint.bin", self.fails("inspect", table))
        self.assertIn("hushdb build", self.fails("inspect", self.dir / "nowhere"))

    def test_a_table_that_fails_does_not_stop_the_others(self):
        good = self.build(self.csv([("a", "1")]), "--key", "key", "--protocol", "frodo", name="good")
        bad = self.build(self.csv([("a", "2")]), "--key", "key", "--protocol", "frodo", name="bad")
        whole = (bad / "db.bin").read_bytes()
        (bad / "db.bin").write_bytes(b"")
        server = subprocess.Popen([BINARY, "serve", bad, good, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE,
                                  text=True, env=self.env)
        try:
            # Tables are opened concurrently: either may be logged first.
            said = []
            while not (any("ready in" in line for line in said) and any("not served" in line for line in said)) and server.poll() is None:
                said.append(server.stderr.readline())
            url, [told] = said[0].split()[2], [line for line in said if "not served" in line]
            self.assertTrue(told.startswith("bad: not served: "), told)
            self.assertIn(str(bad / "db.bin"), told)
            listed = {table["name"]: table for table in json.loads(request(url + "/v1/tables")[2])["tables"]}
            self.assertEqual((listed["bad"]["state"], listed["good"]["state"]), ("failed", "resident"))
            self.assertEqual(listed["bad"]["reason"], "its files are damaged")
            # The good table answers: the server is ready, and reports the bad one.
            ready = b"ok\ndegraded: table bad is not served: its files are damaged\n"
            self.assertEqual(request(url + "/readyz")[::2], (200, ready))
            self.assertEqual(self.get(url, "--table", "good", "a")[1][0]["value"], "1")
            self.assertIn("its files are damaged", self.fails("get", url, "--table", "bad", "a"))
            # The file is restored, but the header is unchanged: only an explicit reload loads the table.
            (bad / "db.bin").write_bytes(whole)
            server.send_signal(signal.SIGHUP)
            self.wait_for("the table", lambda: request(url + "/readyz")[2] == b"ok\n")
            self.assertEqual(self.get(url, "--table", "bad", "a")[1][0]["value"], "2")
            (bad / "db.bin").write_bytes(b"")
        finally:
            server.terminate()
            server.communicate(timeout=40)
        # --require-tables makes a bad table fatal.
        with subprocess.Popen([BINARY, "serve", bad, good, "--listen", "127.0.0.1:0", "--require-tables"], stderr=subprocess.PIPE,
                              text=True, env=self.env) as server:
            url = server.stderr.readline().split()[2]
            while "ready in" not in server.stderr.readline() and server.poll() is None:
                pass
            status, _, problem = request(url + "/readyz")
            self.assertEqual((status, json.loads(problem)["code"]), (503, "table_failed"))
            self.assertNotIn(str(self.dir), problem.decode())
            server.terminate()
        # Without any good table, there is nothing to serve.
        (good / "db.bin").write_bytes(b"")
        line = self.fails("serve", bad, good, "--listen", "127.0.0.1:0")
        for table in (bad, good):
            self.assertIn(str(table / "db.bin"), line)

    def test_files_that_change_under_a_server(self):
        tables = {name: self.build(self.csv([(f"k{i}", f"{name} {i}") for i in range(3000)]), "--key", "key",
                                   "--preset", "INSECURE_COLPACK_N256", name=name) for name in ("one", "two")}
        database = tables["two"] / "db.bin"
        original, log = database.read_bytes(), self.dir / "log"
        # An old time, because the clock of file times has coarse steps.
        os.utime(database, (0, 0))

        def state(url):
            listed = {table["name"]: table for table in json.loads(request(url + "/v1/tables")[2])["tables"]}
            return listed["one"]["state"], listed["two"]["state"], listed["two"].get("reason")

        def look_up(url, name):
            return self.get(url, "--allow-weak", "INSECURE_COLPACK_N256", "--table", name, "k7")[1][0]["value"]

        reason = "its files were changed while they were served"
        with self.serve(*tables.values(), args=["--memory", "mapped"], log=log) as (url, process):
            for refused, content in enumerate((b"", bytes(len(original)), original[:len(original) // 2]), start=1):
                with self.subTest(bytes=len(content)):
                    self.assertEqual(look_up(url, "two"), "two 7")
                    database.write_bytes(content)
                    # An immediate query gets no wrong answer, no matter who notices the damage first.
                    line = self.fails("get", url, "--allow-weak", "INSECURE_COLPACK_N256", "--table", "two", "k7")
                    self.assertIn(reason, line)
                    self.assertEqual(state(url), ("resident", "failed", reason))
                    self.assertEqual(look_up(url, "one"), "one 7")
                    ready = f"ok\ndegraded: table two is not served: {reason}\n"
                    self.assertEqual(request(url + "/readyz")[::2], (200, ready.encode()))
                    self.assertIn(str(database), log.read_text())
                    # A damaged file is not loaded.
                    process.send_signal(signal.SIGHUP)
                    self.wait_for("the damage was not found", lambda: log.read_text().count("not taken up") == refused)
                    self.assertEqual(state(url)[1], "failed")
                    database.write_bytes(original)
                    os.utime(database, (0, 0))
                    process.send_signal(signal.SIGHUP)
                    self.wait_for("the table was not taken up", lambda: state(url)[1] == "resident")
                    self.assertEqual(request(url + "/readyz")[2], b"ok\n")
            # The server notices the damage without a query.
            database.write_bytes(b"")
            self.wait_for("the change was not noticed", lambda: b"table two is not served" in request(url + "/readyz")[2])
            database.write_bytes(original)
        with self.serve(*tables.values(), args=["--memory", "resident"]) as (url, process):
            for content in (b"", bytes(len(original))):
                database.write_bytes(content)
                self.assertEqual([look_up(url, name) for name in tables], ["one 7", "two 7"])
            self.assertEqual(request(url + "/readyz")[0], 200)
        # New clients need the hint, which is in no server's memory.
        hinted = self.build(self.csv([("k7", "three 7")]), "--key", "key", "--protocol", "colpack-s", "--preset", "INSECURE_COLPACK_N256",
                            name="three")
        with self.serve(hinted, args=["--memory", "resident"]) as (url, process):
            self.assertEqual(look_up(url, "three"), "three 7")
            (hinted / "hint.bin").write_bytes(b"")
            self.wait_for("the cut was not noticed", lambda: b"table three is not served" in request(url + "/readyz")[2])

    def test_inspect_says_everything(self):
        table = self.build(self.csv([(f"k{i}", i) for i in range(500)]), "--key", "key", "--protocol", "simple")
        result = self.hushdb("inspect", table, "--json")
        facts = json.loads(result.stdout)
        for name in ("protocol", "security_bits", "failure_log2", "columns", "blocks", "encoded_bytes",
                     "payload_bytes", "hint_bytes", "query_bytes", "answer_bytes", "epoch", "slots_per_record"):
            self.assertIn(name, facts)
        self.assertGreaterEqual(facts["security_bits"], 128)
        self.assertLess(facts["failure_log2"], -64)
        self.assertEqual(facts["hint_bytes"], (table / "hint.bin").stat().st_size)
        self.assertEqual(facts["encoded_bytes"], (table / "db.bin").stat().st_size)


class BadRequests(HushTest):
    def test_port_in_use(self):
        table = self.build(self.csv([("a", "1")]), "--key", "key")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            line = self.fails("serve", table, "--listen", "127.0.0.1:%d" % taken.getsockname()[1])
            self.assertIn("--listen", line)

    def test_key_file_that_is_none(self):
        table = self.build(self.csv([("a", "1")]), "--key", "key")
        keys = self.dir / "keys"
        keys.write_bytes(b"no keys " * 1000)
        line = self.fails("serve", table, "--listen", "127.0.0.1:0", "--keys", keys)
        self.assertIn(str(keys), line)
        self.assertIn("move it away", line)
        self.assertIn("--keys", self.fails("serve", table, "--listen", "127.0.0.1:0", "--keys", self.dir / "no" / "where"))

    def test_many_keys_of_which_one_is_wrong(self):
        table = self.build(self.csv([(f"k{i}", i) for i in range(9)]), "--key", "key", "--protocol", "simple")
        keys = self.dir / "keys.txt"
        with self.serve(table) as (url, _):
            for bad, words in ((b"x" * 5000, "error: key 3 is 5000 bytes, at most 4096 are allowed"), (b"\xff", "error: key 3: ")):
                keys.write_bytes(b"k1\nk2\n" + bad + b"\nk4\n")
                self.assertIn(words, self.fails("get", url, "--keys-file", keys))

    def test_nothing_there(self):
        line = self.fails("get", f"http://127.0.0.1:{free_port()}", "key", timeout=120)
        self.assertIn("127.0.0.1", line)

    def test_passwords_of_urls_are_not_printed(self):
        url = f"http://user:secret@127.0.0.1:{free_port()}"
        for command in (["get", url, "key", "--attempts", "1"], ["admin", "tables", "--url", url], ["inspect", url], ["compact", url]):
            line = self.fails(*command)
            self.assertIn("127.0.0.1", line)
            self.assertNotIn("secret", line)

    def test_random_bodies_do_not_stop_the_server(self):
        table = self.build(self.csv([(f"k{i}", i) for i in range(200)]), "--key", "key", "--protocol", "frodo")
        with self.serve(table) as (url, process):
            rng = random.Random(1)
            headers = {"Content-Type": "application/x-protobuf"}
            for size in [0, 1, 2, 3, 10, 100, 1000, 5000] * 12:
                body = rng.randbytes(size)
                status, _, answer = request(url + "/v1/tables/table/query", body, headers)
                self.assertIn(status, (400, 410, 413, 415), answer)
                self.assertIn(b'"code"', answer)
            self.assertEqual(request(url + "/v1/tables/none/query", b"", headers)[0], 404)
            self.assertEqual(self.get(url, "k7")[1][0]["value"], "7")
            self.assertIsNone(process.poll())

    def test_server_killed_during_queries(self):
        table = self.build(self.csv([(f"k{i}", "x" * 200) for i in range(20000)]), "--key", "key")
        results = []
        with self.serve(table) as (url, process):
            self.get(url, "k1")  # the hint is cached now
            keys = [f"k{i}" for i in range(300)]

            def ask():
                results.append(self.hushdb("get", url, "--json", "--timeout", 20, *keys))

            asking = threading.Thread(target=ask)
            asking.start()
            time.sleep(0.15)
            process.kill()
            asking.join(timeout=120)
        (result,) = results
        if result.returncode == 2:
            self.assertEqual(result.stderr.count("error: "), 1, result.stderr)
        self.assertNotIn("panicked", result.stderr)
        with self.serve(table) as (url, _):
            self.assertEqual(self.get(url, "k5")[0], 0)

    def test_concurrent_clients_share_scans(self):
        rows = {f"k{i}": str(i) for i in range(5000)}
        table = self.build(self.csv(rows.items()), "--key", "key", "--protocol", "frodo")
        with self.serve(table) as (url, _):
            self.get(url, "k0")
            wrong = []

            def client(number):
                keys = [f"k{number * 20 + i}" for i in range(20)]
                _, answers = self.get(url, *keys)
                wrong.extend(a for a in answers if a["value"] != rows[a["key"]])

            clients = [threading.Thread(target=client, args=(n,)) for n in range(8)]
            for thread in clients:
                thread.start()
            for thread in clients:
                thread.join()
            self.assertEqual(wrong, [])
            metrics = request(url + "/metrics")[2].decode()
            self.assertIn("hush_batch_size_sum", metrics)


if __name__ == "__main__":
    unittest.main()


class FewFiles(HushTest):
    def test_idle_connections_do_not_keep_others_out(self):
        table = self.build(self.csv([("k1", "one")]), "--key", "key", "--protocol", "frodo")
        for limit, args, most in ((96, [], None), (128, ["--max-connections", "40"], 40), (4096, [], 1024)):
            with self.subTest(limit=limit):
                port, log = free_port(), self.dir / f"log{limit}"
                command = [BINARY, "serve", table, "--listen", f"127.0.0.1:{port}", "--client-share", "100", *args]
                # The server raises the soft limit up to the hard limit.
                limits = lambda limit=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit, 80), limit))
                with open(log, "w") as said:
                    server = subprocess.Popen(list(map(str, command)), stderr=said, env=self.env, preexec_fn=limits)
                held = []
                try:
                    url = f"http://127.0.0.1:{port}"
                    wait_ready(url, server)
                    fitted = re.search(r"up to (\d+) connections\)", log.read_text())[1]
                    told = f"at most {fitted} connections, not 1024: this process may have {limit} files open; raise the limit"
                    self.assertEqual(told in log.read_text(), most is None)
                    self.assertEqual(int(fitted), most or int(fitted))
                    self.assertLess(int(fitted), limit)
                    for _ in range(min(2 * int(fitted), 200)):
                        held.append(socket.create_connection(("127.0.0.1", port), timeout=10))
                    # Idle connections are closed after 30 s.
                    self.assertEqual(request(url + "/livez", timeout=10)[0], 200)
                    self.assertEqual(self.get(url, "k1")[1][0]["value"], "one")
                    # With fewer files than connections, idle connections are closed one after another.
                    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (48, limit))
                    self.assertEqual(request(url + "/livez", timeout=10)[0], 200)
                    self.assertEqual(self.get(url, "k1")[1][0]["value"], "one")
                finally:
                    for connection in held:
                        connection.close()
                    server.terminate()
                    self.assertEqual(server.wait(timeout=40), 0, log.read_text())

    def test_too_few_files_for_a_server(self):
        table = self.build(self.csv([("k1", "one")]), "--key", "key", "--protocol", "frodo")
        limits = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (36, 36))
        line = self.fails("serve", table, "--listen", "127.0.0.1:0", preexec_fn=limits)
        self.assertIn("this process may have 36 files open", line)
        self.assertIn("LimitNOFILE", line)
