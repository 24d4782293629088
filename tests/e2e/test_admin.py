"""Tests of tasks: a running server builds, changes, loads and removes tables, and remembers all tasks."""

import json
import os
import signal
import socket
import subprocess
import time

from certificates import Authority
from harness import BINARY, free_port, request
from keyed import KeyedTest, values
from postgres import Postgres
from remote import Web

RECORDS, OTHERS = values(200, 60), values(200, 60, seed=2)


class AdminTest(KeyedTest):
    def setUp(self):
        super().setUp()
        self.data = self.dir / "data"
        self.admin_url = f"http://127.0.0.1:{free_port()}"

    def server(self, *dirs, args=()):
        listen = self.admin_url.removeprefix("http://")
        return self.serve(*dirs, args=["--data", self.data, "--listen-admin", listen, *args])

    def admin(self, *args, code=0, env=None):
        env = {**self.env, "HUSHDB_ADMIN": self.admin_url, **(env or {})}
        result = self.hushdb("admin", *args, env=env)
        self.assertEqual(result.returncode, code, (result.stdout, result.stderr))
        return result

    def ask_admin(self, path, body=None, method=None, headers=None):
        body = json.dumps(body).encode() if isinstance(body, dict) else body
        status, sent, text = request(self.admin_url + path, body, headers, method=method)
        return status, sent, json.loads(text) if text else None

    def epochs(self, table):
        """Returns the served epoch of a table, and its builds, newest first."""
        [kept] = [kept for kept in self.ask_admin("/v1/admin/tables")[2]["tables"] if kept["name"] == table]
        return kept["serves"], [build["epoch"] for build in kept["builds"]]

    def task(self, number):
        return self.ask_admin(f"/v1/admin/tasks/{number}")[2]

    def ended(self, number):
        self.wait_for(f"task {number}", lambda: self.task(number)["status"] not in ("enqueued", "processing"), 120)
        return self.task(number)


class Tables(AdminTest):
    def test_several_files_are_one_table(self):
        first, second = self.jsonl({"a": "1"}, "first.jsonl"), self.jsonl({"b": "2"}, "second.jsonl")
        with self.server() as (url, _):
            self.admin("build", "people", first, second, "--key", "k", "--value", "v", "--protocol", "frodo")
            self.assertEqual(self.ask(url, "a", "b", "c")[0], ["1", "2", None])

    def test_programs_send_changes(self):
        words = {f"w{i:04}": "x" for i in range(3000)}
        lines = lambda *changes: "".join(json.dumps(change) + "\n" for change in changes).encode()
        put = lambda key, value: {"op": "put", "k": key, "v": value}
        with self.server() as (url, _):
            self.admin("build", "people", self.jsonl(RECORDS, "people.jsonl"), "--key", "k", "--value", "v", "--updatable")
            self.admin("build", "words", self.jsonl(words, "words.jsonl"), "--key", "k", "--sorted", "bytes", "--updatable")
            path = "/v1/admin/tables/people/changes"
            status, _, task = self.ask_admin(path, lines(put("k0", "one"), put("new", "two"), {"op": "delete", "k": "k1"}, put("k0", "three")), "POST")
            self.assertEqual((status, task["status"], task["epoch"]), (200, "succeeded", self.epochs("people")[0]))
            self.assertEqual(self.ask(url, "--table", "people", "k0", "new", "k1", "k2")[0], ["three", "two", None, RECORDS["k2"]])
            # All or none.
            for changes, words in [
                (lines(put("k3", "x")) + b"{", "line 2: it is no JSON object"),
                (lines(put("k3", "x"), {"op": "drop", "k": "a"}), "line 2: it has no \"op\""),
                (lines(put("k3", "x"), put("k4", "y" * 100_000)), "nothing is changed"),
            ]:
                status, _, problem = self.ask_admin(path, changes, "POST")
                self.assertEqual((status, problem["code"]), (409, "refused"), problem)
                self.assertIn(words, problem["detail"])
                self.assertEqual(self.epochs("people")[0], task["epoch"])
            self.assertEqual(self.ask_admin("/v1/admin/tables/nothing/changes", lines(put("a", "b")), "POST")[0], 404)
            self.assertEqual(list((self.data / "uploads").iterdir()), [], "what failed or is done needs no upload")
            status, headers, task = self.ask_admin("/v1/admin/tables/words/changes?wait=0", lines(put("w0000a", "new"), {"op": "delete", "k": "w0001"}), "POST")
            self.assertEqual((status, headers["Location"]), (202, f"/v1/admin/tasks/{task['id']}"))
            self.assertEqual(self.ended(task["id"])["status"], "succeeded")
            found = self.ask(url, "--table", "words", "w0001", "w00009", "--at-or-below")[0]
            self.assertEqual([json.loads(row) for row in found], [{"k": "w0000a", "v": "new"}, {"k": "w0000", "v": "x"}])
            changes = self.dir / "changes.jsonl"
            changes.write_bytes(lines(put("k5", "by a command")))
            self.admin("changes", "people", changes)
            self.assertEqual(self.ask(url, "--table", "people", "k5")[0], ["by a command"])

    def test_the_life_of_a_table(self):
        first, second = self.jsonl(RECORDS, "first.jsonl"), self.jsonl(OTHERS, "second.jsonl")
        with self.server() as (url, _):
            self.assertEqual(json.loads(request(url + "/v1/tables")[2])["tables"], [])
            options = ["--key", "k", "--value", "v", "--protocol", "colpack", "--updatable"]
            built = self.admin("build", "people", first, *options)
            self.assertRegex(built.stderr, "done: epoch [0-9a-f]{64} is served")
            self.assertEqual(self.ask(url, "k0", "absent")[0], [RECORDS["k0"], None])
            before, _ = self.epochs("people")
            self.assertIn(before, built.stderr)

            # Another build replaces the table. The build before is kept for a rollback; older builds are deleted.
            self.admin("build", "people", second, *options)
            self.assertEqual(self.ask(url, "k0")[0], [OTHERS["k0"]])
            self.admin("build", "people", first, *options)
            serves, kept = self.epochs("people")
            self.assertEqual((len(kept), kept[0]), (2, serves))
            self.admin("load", "people", "--epoch", kept[1])
            self.assertEqual(self.ask(url, "k0")[0], [OTHERS["k0"]])
            error = self.admin("load", "people", "--epoch", "00" * 32, code=2).stderr
            self.assertIn(f"of the table people there is {kept[0]}, {kept[1]}", error)
            error = self.admin("delete", "people", "--epoch", kept[1], code=2).stderr
            self.assertIn("that epoch is served: load another one first", error)

            # Changes make a new epoch.
            changes = self.jsonl({"k0": "new", "k999": "more"}, "changes.jsonl")
            gone = self.dir / "gone.txt"
            gone.write_text("k1\n")
            self.admin("apply", "people", changes, "--delete", gone, "--key", "k", "--value", "v")
            self.assertEqual(self.ask(url, "k0", "k999", "k1")[0], ["new", "more", None])
            # The epoch before the changes is kept for a rollback.
            after, kept = self.epochs("people")
            self.assertEqual((len(kept), kept[0]), (2, after))
            self.admin("load", "people", "--epoch", kept[1])
            self.assertEqual(self.ask(url, "k0", "k999", "k1")[0], [OTHERS["k0"], None, OTHERS["k1"]])
            self.admin("load", "people", "--epoch", after)
            self.admin("apply", "people", changes, "--delete", self.dir / "none.txt", "--key", "k", code=2)
            self.assertEqual(list((self.data / "uploads").iterdir()), [], "what is not asked for needs no upload")
            other = self.csv([["k0", "x"]], "k,w", "other.csv")
            error = self.admin("apply", "people", other, "--key", "k", code=2).stderr
            self.assertIn("values of the columns v, and the changes have values of the columns w", error)
            self.assertEqual(self.epochs("people"), (after, kept), "a change that fails leaves nothing")
            self.admin("compact", "people")
            self.assertEqual(self.ask(url, "k0", "k999", "k1")[0], ["new", "more", None])
            self.assertEqual(list((self.data / "uploads").iterdir()), [], "what is done needs no upload")

            self.admin("unload", "people")
            self.assertEqual(json.loads(request(url + "/v1/tables")[2])["tables"], [])
            self.admin("unload", "people", code=2)
            self.admin("load", "people")
            self.assertEqual(self.ask(url, "k0")[0], ["new"])
        # A restarted server serves the same epochs.
        with self.server() as (url, _):
            self.assertEqual(self.ask(url, "k0")[0], ["new"])
            self.assertIn(f"  serves {self.epochs('people')[0]} 200 records", self.admin("tables").stdout)
            self.admin("delete", "people")
            self.assertEqual(self.ask_admin("/v1/admin/tables")[2]["tables"], [])
            self.assertEqual(list((self.data / "tables").iterdir()), [])
            listed = json.loads(self.admin("tasks", "--json").stdout)["tasks"]
            self.assertEqual({task["status"] for task in listed}, {"succeeded", "failed"})
            self.assertEqual([task["id"] for task in listed], list(range(len(listed), 0, -1)))

    def test_a_damaged_table_is_replaced_while_the_server_runs(self):
        source = self.jsonl(RECORDS)
        with self.server():
            self.admin("build", "people", source, "--key", "k", "--value", "v", "--protocol", "frodo")
        [build] = [path for path in (self.data / "tables/people").iterdir() if path.is_dir()]
        longest = max(build.iterdir(), key=lambda path: path.stat().st_size)
        longest.write_bytes(longest.read_bytes()[:-1])
        health = f"127.0.0.1:{free_port()}"
        listen = self.admin_url.removeprefix("http://")
        process = subprocess.Popen([BINARY, "serve", "--data", self.data, "--listen-admin", listen, "--listen", health],
                                   stderr=subprocess.DEVNULL, env=self.env)
        try:
            states = lambda: [each["state"] for each in json.loads(request(f"http://{health}/v1/tables")[2])["tables"]]
            self.wait_for("the server", lambda: self.listens(health) and states() == ["failed"])
            self.admin("build", "people", source, "--key", "k", "--value", "v", "--protocol", "frodo")
            self.assertEqual(states(), ["resident"])
            self.assertEqual(self.ask(f"http://{health}", "k0")[0], [RECORDS["k0"]])
        finally:
            process.terminate()
            process.wait(40)

    @staticmethod
    def listens(address):
        host, port = address.split(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    def test_a_table_beside_those_of_the_command_line(self):
        table = self.table(RECORDS, "colpack", "--updatable", name="fixed")
        with self.server(table) as (url, _):
            changes = self.jsonl({"k5": "new"}, "changes.jsonl")
            self.admin("apply", "fixed", changes, "--key", "k", "--value", "v")
            self.assertEqual(self.ask(url, "k5")[0], ["new"])
            error = self.admin("build", "fixed", changes, code=2).stderr
            self.assertIn("is in a folder of its own, which 'hushdb build' fills: choose another name", error)
            self.assertIn("only what tasks have built is deleted", self.admin("delete", "fixed", code=2).stderr)
            self.assertTrue((table / "header.json").exists())


class Tasks(AdminTest):
    def test_a_task_survives_a_restart(self):
        many = values(30000, 300)
        source = self.jsonl(many)
        with self.server() as (_, process):
            number = int(self.admin("build", "many", source, "--detach", "--key", "k", "--value", "v").stdout)
            waiting = int(self.admin("unload", "none", "--detach").stdout)
            self.wait_for("the build", lambda: self.task(number)["status"] == "processing")
            process.send_signal(signal.SIGKILL)
            process.wait()
        with self.server() as (url, _):
            task = self.ended(number)
            self.assertEqual((task["status"], task["attempts"]), ("succeeded", 2), task)
            self.assertEqual(self.ask(url, "k7")[0], [many["k7"]])
            self.assertEqual(self.ended(waiting)["status"], "failed")
        # A task during which the server stopped three times is not begun again.
        path = self.data / "tasks" / f"{number}.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "status": "processing", "attempts": 3}))
        with self.server():
            task = self.task(number)
            self.assertEqual(task["status"], "interrupted")
            self.assertIn("ask for it again", task["error"])

    def test_a_task_is_given_up(self):
        source = self.jsonl(values(60000, 300))
        with self.server():
            build = ["--detach", "--key", "k", "--value", "v"]
            running = int(self.admin("build", "many", source, *build).stdout)
            waiting = int(self.admin("build", "other", source, *build).stdout)
            upload = self.task(waiting)["request"]["input"]["upload"]
            status, _, problem = self.ask_admin(f"/v1/admin/uploads/{upload}", method="DELETE")
            self.assertEqual((status, problem["detail"]), (409, "a task reads the upload: wait for its end, or cancel it first"))
            self.assertEqual(json.loads(self.admin("cancel", str(waiting)).stdout)["status"], "canceled")
            self.wait_for("progress", lambda: (self.task(running).get("progress") or {}).get("stage"))
            self.admin("cancel", str(running))
            self.assertEqual(self.ended(running)["status"], "canceled")
            self.assertIn("has ended already: canceled", self.admin("cancel", str(running), code=2).stderr)
            self.assertEqual(list((self.data / "tables").iterdir()), [])
            self.assertEqual(self.ask_admin(f"/v1/admin/uploads/{upload}", method="DELETE")[0], 204)


    def test_a_task_that_cannot_begin_leaves_nothing(self):
        with self.server():
            self.admin("build", "people", self.jsonl(RECORDS), "--key", "k", "--value", "v", "--protocol", "colpack", "--updatable")
            kept = self.epochs("people")
        # The input of a submitted task may be gone when its turn comes.
        waiting = {"id": 2, "request": {"kind": "apply", "table": "people", "input": {"upload": "0" * 32}, "options": {"key": "k"}},
                   "status": "enqueued", "enqueued_at": 0}
        (self.data / "tasks/2.json").write_text(json.dumps(waiting))
        with self.server():
            self.assertEqual(self.ended(2)["error"], "there is no upload of this name")
            self.assertEqual(self.epochs("people"), kept)
            folders = [path.name for path in (self.data / "tables/people").iterdir() if path.is_dir()]
            self.assertEqual(folders, ["1"])


class Uploads(AdminTest):
    def test_an_upload_that_nobody_uses_is_removed(self):
        begin = lambda: self.ask_admin("/v1/admin/uploads", {"name": "people.csv"})[1]["Location"].rsplit("/", 1)[1]
        with self.server():
            old, young = begin(), begin()
        file = self.data / "uploads" / old / "people.csv"
        os.utime(file, (time.time() - 3700,) * 2)
        with self.server(args=["--upload-lifetime", "1"]):
            self.wait_for("the old upload", lambda: not file.exists())
            self.assertEqual([path.name for path in (self.data / "uploads").iterdir()], [young])

    def test_an_upload_goes_on_after_a_lost_answer(self):
        text = b"key,value\n" + b"".join(b"k%d,v%d\n" % (i, i) for i in range(300))
        with self.server() as (url, _):
            status, headers, upload = self.ask_admin("/v1/admin/uploads", {"name": "people.csv"})
            self.assertEqual(status, 201)
            path = headers["Location"]
            part = lambda offset, data: self.ask_admin(path, data, "PATCH", {"Upload-Offset": str(offset)})
            self.assertEqual(part(0, text[:1000])[0], 200)
            status, _, problem = part(0, text[:1000])
            self.assertEqual((status, problem["detail"]), (409, "the upload has 1000 bytes: go on from there"))
            self.assertEqual(self.ask_admin(path)[1]["Upload-Offset"], "1000")
            self.assertEqual(part(1000, text[1000:])[2]["bytes"], len(text))
            self.assertEqual(self.ask_admin(path, text, "PATCH")[0], 400)
            build = {"kind": "build", "table": "people", "input": {"upload": upload["id"]}, "options": {"key": "key"}}
            status, headers, task = self.ask_admin("/v1/admin/tasks", build)
            self.assertEqual((status, headers["Location"]), (202, f"/v1/admin/tasks/{task['id']}"))
            self.assertEqual(self.ended(task["id"])["status"], "succeeded")
            self.assertEqual(self.ask(url, "k299")[0], ["v299"])
            self.assertEqual(self.ask_admin(path)[0], 404)


class Sources(AdminTest):
    CSV = b"k,v\na,1\nb,2\n"
    # A remote that receives one of these has got a credential of the server.
    CREDENTIALS = {"PGPASSWORD": "secret-of-environment", "AWS_ACCESS_KEY_ID": "key-of-environment", "AWS_REGION": "us-east-1",
                   "AWS_SECRET_ACCESS_KEY": "secret-of-environment", "AZURE_STORAGE_ACCOUNT_NAME": "account",
                   "AZURE_STORAGE_ACCOUNT_KEY": "c2VjcmV0", "PGUSER": "of-environment"}

    def refused(self, url, kind="build", status=400):
        """Submits a task that must be refused at once, and returns the reason."""
        where = {"input": {"url": url}, "options": {"key": "k"}} if kind == "build" else {"url": url}
        got, _, problem = self.ask_admin("/v1/admin/tasks", {"kind": kind, "table": "t", **where})
        self.assertEqual(got, status, problem)
        return problem["detail"]

    def failed(self, url, kind="build"):
        """Submits a task that must fail, and returns the error."""
        where = {"input": {"url": url}, "options": {"key": "k"}} if kind == "build" else {"url": url}
        task = self.ended(self.ask_admin("/v1/admin/tasks", {"kind": kind, "table": "t", **where})[2]["id"])
        self.assertEqual(task["status"], "failed")
        return task["error"]

    def test_without_a_list_no_connection_is_made_to_this_network(self):
        self.env |= self.CREDENTIALS
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            port = listener.getsockname()[1]
            self.env["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
            with self.server():
                for url in (f"http://127.0.0.1:{port}/a.csv", "http://example.com/a.csv", "s3://bucket/a.csv", "az://bucket/a.csv"):
                    for kind in ("build", "load"):
                        said = self.refused(url, kind)
                        self.assertIn("is not among the sources that are configured", said)
                        self.assertIn("--task-source", said)
                for url in (f"postgres://127.0.0.1:{port}/db", f"postgres://db?host=127.0.0.1&port={port}", "postgres:///db"):
                    self.assertIn("is not among the sources that are configured", self.refused(url))
                for host in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0x7f.1", "10.1.2.3", "169.254.169.254", "0.0.0.0"):
                    self.assertIn("which is not a public address", self.refused(f"https://{host}:{port}/a.csv"))
                # The address of a name is known only once it is resolved.
                for kind in ("build", "load"):
                    said = self.failed(f"https://localhost:{port}/a.csv", kind)
                    self.assertRegex(said, r"localhost is at (127\.0\.0\.1|::1), which is not a public address; .*--task-source")
                refused = {"kind": "apply", "table": "t", "delete": {"url": f"http://127.0.0.1:{port}/a.txt"}}
                self.assertEqual(self.ask_admin("/v1/admin/tasks", refused)[0], 400)
            self.assertRaises(BlockingIOError, listener.accept)

    def test_redirects_lead_to_what_is_listed(self):
        inside, private = {"/data/rows.csv": self.CSV, "/private/rows.csv": self.CSV}, {"/rows.csv": self.CSV}
        with Web(private) as other, Web(inside) as web:
            root = f"http://127.0.0.1:{web.port}"
            inside |= {"/data/here.csv": "/data/rows.csv", "/data/out.csv": "/private/rows.csv",
                       "/data/other.csv": f"http://127.0.0.1:{other.port}/rows.csv",
                       "/data/meta.csv": "http://169.254.169.254/latest", "/data/round.csv": "/data/round.csv"}
            with self.server(args=["--task-source", f"{root}/data", "--task-source", "https://"]) as (url, _):
                for name in ("rows", "here"):
                    self.admin("build", "t", f"{root}/data/{name}.csv", "--key", "k")
                    self.assertEqual(self.get(url, "b")[1][0]["value"], "2")
                self.refused(f"{root}/private/rows.csv")
                self.refused(f"{root}/data/../private/rows.csv")
                for name in ("out", "other", "meta"):
                    said = self.failed(f"{root}/data/{name}.csv")
                    self.assertRegex(said, "the server redirects to http://.*is not among the sources that are configured")
                self.assertIn("too many redirects", self.failed(f"{root}/data/round.csv"))
            self.assertEqual(other.asked, [])
            self.assertNotIn("/private/rows.csv", web.asked)
            # A source that was listed at submission may no longer be listed when the task begins.
            authority = Authority(self.dir, "authority")
            with Web(inside, tls=authority.sign("server")) as tls:
                self.env["SSL_CERT_FILE"] = str(authority.cert)
                with self.server(args=["--task-source", f"https://localhost:{tls.port}"]):
                    self.admin("build", "t", f"https://localhost:{tls.port}/data/rows.csv", "--key", "k")
                    self.refused("https://example.com/rows.csv")

    def test_a_database_gets_the_password_if_it_is_listed(self):
        with Postgres() as postgres, socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            postgres.sql(f"CREATE TABLE rows AS SELECT 'a' AS k, '1' AS v; CREATE ROLE reader LOGIN PASSWORD '{postgres.PASSWORD}'; "
                         "GRANT SELECT ON rows TO reader;")
            self.env["PGPASSWORD"] = postgres.PASSWORD
            there = f"postgres://localhost:{postgres.port}/postgres?sslrootcert={postgres.authority.cert}"
            weak = f"postgres://127.0.0.1:{postgres.port}/postgres?sslmode=require"
            url = postgres.url(host="localhost")
            with self.server(args=["--task-source", there, "--task-source", weak]) as (served, _):
                self.admin("build", "t", url, "--key", "k")
                self.assertEqual(self.get(served, "a")[1][0]["value"], "1")
                self.admin("build", "t", postgres.url(), "--key", "k")
                for options, said in (
                    ({"sslmode": "disable"}, "sslmode=disable is weaker than verify-full"),
                    ({"sslmode": "require"}, "sslmode=require is weaker than verify-full"),
                    ({"sslrootcert": "/etc/passwd"}, "sslrootcert is a file of the server's"),
                    ({"hostaddr": "127.0.0.1"}, "is not among the sources that are configured"),
                ):
                    self.assertIn(said, self.refused(postgres.url(host="localhost", **options)))
                port = listener.getsockname()[1]
                for other in (f"postgres://reader@localhost:{port}/postgres", f"postgres://reader@localhost:{postgres.port}/template1",
                              f"postgres://reader@localhost,127.0.0.1:{postgres.port},{port}/postgres", postgres.socket()):
                    self.assertIn("is not among the sources that are configured", self.refused(other))
            # The certificate is for the name alone, and a source without sslmode needs one for its host.
            strict = f"postgres://127.0.0.1:{postgres.port}/?sslrootcert={postgres.authority.cert}"
            with self.server(args=["--task-source", strict]):
                self.assertIn("certificate", self.failed(postgres.url()))
            self.assertRaises(BlockingIOError, listener.accept)

    def test_a_list_is_checked_at_the_start(self):
        for source in ("s4://bucket", "/data", "postgres://me@db", "https://me:SECRET@host"):
            start = ["serve", "--data", self.data, "--listen", "127.0.0.1:0", "--listen-admin", "127.0.0.1:0", "--task-source", source]
            error = self.fails(*start)
            self.assertIn("is no source", error)
            self.assertNotIn("SECRET", error)
        with self.server(args=["--task-source", "none"]):
            self.refused("https://example.com/a.csv")


class Mistakes(AdminTest):
    def test_what_is_wrong_is_said_at_once(self):
        source = self.jsonl(RECORDS)
        with self.server(args=["--task-source", "postgres://127.0.0.1:1/"]):
            for body, said in [
                ({"kind": "drop", "table": "t"}, "that is no task: unknown variant `drop`"),
                ({"kind": "unload", "table": "../t"}, 'that is no task: "../t" is not a name'),
                ({"kind": "build", "table": "t", "input": {"url": "/etc/passwd"}}, "a file is uploaded first"),
                ({"kind": "build", "table": "t", "input": {"upload": "0" * 32}}, "there is no upload of this name"),
                ({"kind": "build", "table": "t", "input": {"url": "s3://a/b.csv"}, "options": {"protocol": "fast"}},
                 "unknown protocol 'fast'"),
                ({"kind": "build", "table": "t", "input": {"url": "s3://a/b.csv"}, "options": {"out": "/tmp"}},
                 "a task does not take the option 'out'"),
                ({"kind": "apply", "table": "t"}, "changes are an input, or a delete, or both"),
            ]:
                status, _, problem = self.ask_admin("/v1/admin/tasks", body)
                self.assertIn(status, (400, 404), problem)
                self.assertIn(said, problem["detail"])
            # Errors that occur during a task are in the task.
            error = self.admin("build", "t", source, "--key", "nokey", code=2).stderr
            self.assertRegex(error, "task 1 failed: .*nokey")
            self.assertEqual(list((self.data / "uploads").iterdir()), [], "what failed is uploaded again")
            # A web page in an operator's browser must not act as the operator.
            for header in ("Origin", "Sec-Fetch-Site"):
                self.assertEqual(self.ask_admin("/v1/admin/tasks", headers={header: "https://evil.example"})[0], 403)
            # No answer contains a password.
            url = "postgres://me:secret@127.0.0.1:1/db"
            body = {"kind": "build", "table": "t", "input": {"url": url}, "options": {"table": "x"}}
            number = self.ask_admin("/v1/admin/tasks", body)[2]["id"]
            self.assertEqual(self.ended(number)["status"], "failed")
            self.assertNotIn("secret", json.dumps(self.ask_admin("/v1/admin/tasks")[2]))
            mode = (self.data / "tasks" / f"{number}.json").stat().st_mode & 0o777
            self.assertEqual(mode, 0o600)
            # Only one server may use the folder.
            second = ["serve", "--data", self.data, "--listen", "127.0.0.1:0", "--listen-admin", "127.0.0.1:0"]
            self.assertIn("another server uses --data", self.fails(*second))
        self.assertIn("does not answer", self.admin("tasks", code=2).stderr)
        self.assertIn("--url http://127.0.0.1:7701", self.fails("admin", "tasks"))
        table = self.table(RECORDS, "frodo")
        listen = self.admin_url.removeprefix("http://")
        with self.serve(table, args=["--listen-admin", listen]) as (url, _):
            self.assertIn("start it with --data DIR", self.admin("unload", "table", code=2).stderr)
            self.assertIn("has no admin endpoints", self.admin("--url", url, "tasks", code=2).stderr)

    def test_a_token_with_the_scope_admin_is_asked_for(self):
        tokens = self.dir / "tokens.json"
        create = lambda *args: self.hushdb("token", "create", "--tokens", tokens, "--name", "a", *args).stdout.strip()
        query, root = create(), create("--scope", "admin")
        with self.serve(args=["--data", self.data, "--listen-admin", self.admin_url.removeprefix("http://"), "--tokens", tokens]):
            self.assertIn("give one with HUSHDB_TOKEN", self.admin("tasks", code=2).stderr)
            self.assertIn("needs the scope admin", self.admin("tasks", code=2, env={"HUSHDB_TOKEN": query}).stderr)
            self.admin("tasks", env={"HUSHDB_TOKEN": root})
