"""Tests of tables from object stores and web servers, also over connections that break."""

import gzip
import random
import signal
import socket
import sqlite3
import subprocess

from certificates import Authority
from harness import BINARY, HushTest
from remote import S3, Breaking, Web

# Random values, which do not compress.
ROWS = [(f"key {i}", random.Random(i).randbytes(500).hex()) for i in range(2000)]
CSV = ("k,v\n" + "".join(f"{k},{v}\n" for k, v in ROWS)).encode()


class FromElsewhere(HushTest):
    def found(self, table, *keys):
        with self.serve(table) as (url, _):
            return [answer.get("value") for answer in self.get(url, *keys)[1]]

    def check(self, table):
        wanted = [ROWS[0], ROWS[1234], ROWS[-1]]
        self.assertEqual(self.found(table, *(k for k, _ in wanted)), [v for _, v in wanted])

    def run_build(self, source, *args, env, name="table"):
        """Builds a table, which must succeed, and returns the output."""
        result = self.hushdb("build", source, "--key", "k", "--out", self.dir / name, *args, env={**self.env, **env})
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr

    def test_an_s3_server(self):
        with S3(self.dir / "s3") as s3:
            (s3.bucket / "sub folder").mkdir()
            (s3.bucket / "sub folder" / "rows.csv.gz").write_bytes(gzip.compress(CSV))
            size = (s3.bucket / "sub folder" / "rows.csv.gz").stat().st_size
            said = self.run_build("s3://bucket/sub folder/rows.csv.gz", env=s3.env(), name="gz")
            self.assertIn(f"s3://bucket/sub folder/rows.csv.gz: {size / 2**20:.2f} MiB to fetch\n", said)
            self.assertRegex(said, rf"(?m)^fetch +{size} bytes in ")
            self.assertLess(said.index("to fetch"), said.index("read "))
            self.check(self.dir / "gz")
            self.assertEqual(list(self.dir.glob(".gz*")), [])
            with sqlite3.connect(s3.bucket / "rows.db") as database:
                database.execute("CREATE TABLE one (k TEXT, v TEXT)")
                database.executemany("INSERT INTO one VALUES (?, ?)", ROWS)
            self.run_build("s3://bucket/rows.db", "--table", "one", "--updatable", env=s3.env())
            self.check(self.dir / "table")
            (s3.bucket / "changes.jsonl").write_text('{"v": "new", "k": "key 0"}\n')
            applied = self.hushdb("apply", self.dir / "table", "s3://bucket/changes.jsonl", "--key", "k",
                                  env={**self.env, **s3.env()})
            self.assertEqual(applied.returncode, 0, applied.stderr)
            self.assertEqual(self.found(self.dir / "table", "key 0"), ["new"])

    def test_broken_connections_are_gone_on_with(self):
        with S3(self.dir / "s3") as s3, Breaking(s3.port, [600_000, 700_000, 100]) as proxy:
            (s3.bucket / "rows.csv").write_bytes(CSV)
            self.run_build("s3://bucket/rows.csv", env=s3.env(proxy.port))
            self.check(self.dir / "table")
            starts = sorted(proxy.starts())
            self.assertEqual(starts[0], 0)
            self.assertEqual(len([start for start in starts if start > 1_200_000]), 2, starts)
            # Few bytes are transferred twice.
            self.assertLess(proxy.answered, len(CSV) + 200_000)

    def test_objects_that_change_meanwhile_are_refused(self):
        with S3(self.dir / "s3") as s3, Breaking(s3.port, [600_000]) as proxy:
            path = s3.bucket / "rows.csv"
            path.write_bytes(CSV)
            proxy.broke = lambda: path.write_bytes(CSV.replace(b"key", b"KEY"))
            line = self.fails("build", "s3://bucket/rows.csv", "--key", "k", "--out", self.dir / "no",
                              env={**self.env, **s3.env(proxy.port)})
            self.assertIn("s3://bucket/rows.csv: cannot fetch: it was changed while it was fetched; begin again", line)
            self.assertFalse((self.dir / "no").exists())

    def test_web_servers(self):
        files = {"/rows.csv": CSV, "/private/rows.csv.gz": gzip.compress(CSV)}
        for ranges in (True, False):
            with self.subTest(ranges=ranges), Web(files, ranges) as web, Breaking(web.port, [800_000]) as proxy:
                self.run_build(f"http://127.0.0.1:{proxy.port}/rows.csv", env={}, name=f"ranges-{ranges}")
                self.check(self.dir / f"ranges-{ranges}")
                self.assertEqual(len(proxy.starts()), 2)
                self.assertGreater(proxy.starts()[1], 700_000)
        with Web(files) as web:
            url = f"http://me:SECRET@127.0.0.1:{web.port}/private/rows.csv.gz?sig=SECRET"
            said = self.run_build(url, env={}, name="signed")
            self.assertNotIn("SECRET", said)
            self.check(self.dir / "signed")
            for path in (self.dir / "signed").iterdir():
                self.assertNotIn(b"SECRET", path.read_bytes(), path)
            self.assertTrue(web.asked[-1].endswith("?sig=SECRET"))
            for path, words in (("/private/rows.csv.gz?no=SECRET", "403 Forbidden; check the URL"),
                                ("/none.csv?sig=SECRET", "404 Not Found; check the name")):
                line = self.fails("build", f"http://127.0.0.1:{web.port}{path}", "--out", self.dir / "no")
                self.assertIn(words, line)
                self.assertNotIn("SECRET", line)

    def test_a_text_is_what_its_first_bytes_say(self):
        lines = b"".join(b'{"k": "k%d", "v": "v"}\n' % i for i in range(20))
        files = {"/lines.txt": lines, "/rows.txt": b"k,v\na,1\n", "/rows.txt.gz": gzip.compress(b"k,v\na,1\n"), "/gone.txt": b"k3\nk4\n"}
        with Web(files) as web:
            for path, records in (("lines.txt", 20), ("rows.txt", 1), ("rows.txt.gz", 1)):
                told = self.hushdb("build", f"http://127.0.0.1:{web.port}/{path}", "--out", self.dir / path, "--key", "k", "--updatable").stderr
                self.assertIn(f": {records} records", told)
            # A list of keys may be remote too.
            told = self.hushdb("apply", self.dir / "lines.txt", "--delete", f"http://127.0.0.1:{web.port}/gone.txt").stderr
            self.assertIn("2 of them deletions", told)

    def test_a_page_is_no_file(self):
        page = b"\n<!DOCTYPE html>\n<html><body>Sign in</body></html>\n"
        with Web({"/rows.csv": page, "/login": page, "/moved.csv": "/login", "/rows.jsonl": page}) as web:
            for path in ("rows.csv", "moved.csv", "rows.jsonl"):
                line = self.fails("build", f"http://127.0.0.1:{web.port}/{path}", "--out", self.dir / "page")
                self.assertIn("a web page came in place of the file; give the URL of the file itself", line)
            self.assertFalse((self.dir / "page").exists())

    def test_what_the_environment_says_of_a_store_is_checked(self):
        known = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
        for name, value, words in (("AWS_ENDPOINT_URL", "127.0.0.1:7850", "the variable AWS_ENDPOINT_URL is no URL; give one such as"),
                                   ("AWS_ENDPOINT_URL", "http://", "is no URL"), ("AWS_REGION", "eu\n", "AWS_REGION has a line end"),
                                   ("AWS_SESSION_TOKEN", "t\n", "AWS_SESSION_TOKEN has a line end")):
            with self.subTest(name, value=value):
                self.env |= {**known, name: value}
                line = self.fails("build", "s3://bucket/rows.csv", "--out", self.dir / "no")
                self.assertIn(words, line)
                del self.env[name]

    def test_certificates_of_web_servers_are_checked(self):
        authority = Authority(self.dir, "authority")
        with Web({"/rows.csv": CSV}, tls=authority.sign("server")) as web:
            url = f"https://localhost:{web.port}/rows.csv"
            self.run_build(url, env={"SSL_CERT_FILE": str(authority.cert)})
            self.check(self.dir / "table")
            line = self.fails("build", url, "--key", "k", "--out", self.dir / "no")
            self.assertIn("invalid peer certificate", line)
        with Web({"/rows.csv": CSV}, tls=(authority.cert, self.dir / "authority.key")) as web:
            line = self.fails("build", f"https://localhost:{web.port}/rows.csv", "--key", "k", "--out", self.dir / "no",
                              env={**self.env, "SSL_CERT_FILE": str(authority.cert)})
            self.assertIn("the server's certificate is that of an authority", line)
            self.assertIn("basicConstraints=critical,CA:FALSE", line)

    def test_a_fetch_that_is_interrupted_leaves_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}/rows.csv"
            build = subprocess.Popen([BINARY, "build", url, "--key", "k", "--out", self.dir / "no"], stderr=subprocess.PIPE,
                                     text=True, env=self.env)
            client, _ = silent.accept()
            with client:
                client.recv(65536)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\nk,v\n")
                self.assertIn("rows.csv: 2.86 MiB to fetch", build.stderr.readline())
                build.send_signal(signal.SIGINT)
                _, error = build.communicate(timeout=30)
        self.assertNotEqual(build.returncode, 0)
        self.assertIn("interrupted", error)
        self.assertEqual([path.name for path in self.dir.iterdir() if "no" in path.name], [])

    def test_errors_say_what_to_do(self):
        with S3(self.dir / "s3") as s3:
            (s3.bucket / "rows.csv").write_bytes(CSV)
            wrong = s3.env(secret="wrong-secret")
            for url, env, expected in (
                ("s3://bucket/none.csv", s3.env(), ["s3://bucket/none.csv: cannot fetch", "check the name"]),
                ("s3://bucket/rows.csv", wrong, ["check the credentials in the environment"]),
                ("s3://bucket/rows.csv", {**s3.env(), "AWS_ALLOW_HTTP": "false"}, ["its endpoint is http, without TLS; ", "set AWS_ALLOW_HTTP=true"]),
                ("s3://bucket/rows", s3.env(), ["cannot tell the format from the file name"]),
                ("s3://bucket/rows.db.gz", s3.env(), ["of compressed files only CSV, JSONL and Arrow are read"]),
                ("s4://bucket/rows.csv", s3.env(), ["s4://bucket/rows.csv: no input has this scheme; the nearest is s3://"]),
                ("httpss://host/rows.csv", {}, ["the nearest is https://"]),
            ):
                with self.subTest(url=url):
                    line = self.fails("build", url, "--key", "k", "--out", self.dir / "no", env={**self.env, **env})
                    for words in expected:
                        self.assertIn(words, line)
                    self.assertNotIn("secret", line)
                    self.assertFalse((self.dir / "no").exists())
        line = self.fails("build", "https://127.0.0.1/rows.csv", "--table", "t", "--out", self.dir / "no")
        self.assertIn("--table applies to SQLite files and PostgreSQL only", line)
