"""Tests of a server's settings: a file, the environment, the command line."""

import json
import os

from certificates import Authority
from harness import free_port, request
from keyed import KeyedTest, values

RECORDS = values(50, 30)


class ConfigTest(KeyedTest):
    def setUp(self):
        super().setUp()
        self.built = self.table(RECORDS, "frodo", name="people")
        self.file = self.dir / "hushdb.toml"

    def settings(self, text):
        self.file.write_text(text)
        return ["--config", self.file]

    def names(self, url):
        return [table["name"] for table in json.loads(request(url + "/v1/tables")[2])["tables"]]

    def test_a_server_of_a_file(self):
        authority = Authority(self.dir, "authority")
        cert, key = authority.sign("server")
        args = self.settings(f'tables = ["{self.built}"]\nname = ["fromfile"]\ntls-cert = "{cert}"\ntls-key = "{key}"\nwatch = true\n')
        with self.serve(args=args) as (url, _):
            self.assertTrue(url.startswith("https://"))
            self.assertEqual(self.names(url), ["fromfile"])
            found, _ = self.ask(url, "k1", "--ca-cert", authority.cert)
            self.assertEqual(found, [RECORDS["k1"]])
        # The environment overrides the file, and the command line overrides both.
        args = self.settings(f'tables = ["{self.built}"]\nname = ["fromfile"]\n')
        env = {**self.env, "HUSHDB_NAME": "fromenv"}
        with self.serve(args=args, env=env) as (url, _):
            self.assertEqual(self.names(url), ["fromenv"])
        with self.serve(args=[*args, "--name", "given"], env=env) as (url, _):
            self.assertEqual(self.names(url), ["given"])
        with self.serve(env={**env, "HUSHDB_CONFIG": str(self.file)}) as (url, _):
            self.assertEqual(self.names(url), ["fromenv"])
        with self.serve(env={**self.env, "HUSHDB_TABLES": str(self.built)}) as (url, _):
            self.assertEqual(self.names(url), ["people"])

    def test_variables_that_are_empty_misspelled_or_of_other_words(self):
        env = {**self.env, "HUSHDB_CONFIG": "", "HUSHDB_TABLES": str(self.built), "HUSHDB_WATCH": "1", "HUSHDB_NAME": "",
               "HUSHDB_LSITEN": "x", "HUSHDB_PORT": "tcp://10.0.0.1:7700"}
        said = self.hushdb("serve", self.dir / "none", env=env).stderr
        self.assertIn("warning: the variable HUSHDB_LSITEN is not read: did you mean HUSHDB_LISTEN?\n", said)
        self.assertEqual(said.count("is not read"), 1, said)
        del env["HUSHDB_LSITEN"]
        with self.serve(env=env) as (url, _):
            self.assertEqual(self.names(url), ["people"])
        with self.serve(self.built) as (url, _):
            result = self.hushdb("get", url, "k1", env={**self.env, "HUSHDB_TOKEN": "", "HUSHDB_TOKN": "x"})
        self.assertEqual((result.returncode, result.stdout), (0, RECORDS["k1"]))
        self.assertIn("HUSHDB_TOKN is not read: did you mean HUSHDB_TOKEN?", result.stderr)
        self.assertIn("which server?", self.fails("admin", "tables", env={**self.env, "HUSHDB_ADMIN": ""}))
        self.assertIn("HUSHDB_WATCH: invalid value 'maybe'", self.fails("serve", env={**env, "HUSHDB_WATCH": "maybe"}))

    def test_check(self):
        self.settings(f'tables = ["{self.built}"]\nmax-queue = 999\nbody-timeout = 5\n')
        result = self.hushdb("config", "check", self.file, env={**self.env, "HUSHDB_WINDOW": "5", "HUSHDB_MAX_STREAMS": "8"})
        self.assertEqual(result.returncode, 0, result.stderr)
        said = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}
        self.assertEqual(said["max-queue"], ["999", "the", "file"])
        self.assertEqual(said["window"], ["5", "the", "environment"])
        self.assertEqual(said["body-timeout"], ["5", "the", "file"])
        self.assertEqual(said["max-streams"], ["8", "the", "environment"])
        self.assertEqual(said["client-share"], ["25", "default"])
        self.assertTrue(result.stdout.endswith("is good\n"))
        for text, words in (
            ("tables = []", ["tables: the list is empty"]),
            ("max-queue = 1", ["which tables? name the folders"]),
            (f'tables = ["{self.dir}"]', ["is not a hushdb snapshot", str(self.dir)]),
            (f'tables = ["{self.built}"]\ntls-cert = "none"', ["--tls-key"]),
            (f'tables = ["{self.built}"]\ntls-cert = "none"\ntls-key = "none"', ["cannot read none"]),
            (f'tables = ["{self.built}", "{self.built}"]', ["two tables are called people"]),
            (f'tables = ["{self.built}"]\nmax-queue = 1', ["--max-queue must be at least 256, is 1"]),
            (f'tables = ["{self.built}"]\nlisten = "0.0.0.0:7700"', ["0.0.0.0:7700", "--tokens", "--open"]),
            ("max-quue = 1", ["hushdb.toml: there is no setting 'max-quue': did you mean 'max-queue'?"]),
            ("header-timeout = 0", ["hushdb.toml: header-timeout: invalid value '0'", "0 is not in 1..=31536000"]),
            ("window = 'x'", ["hushdb.toml: window: invalid value 'x'"]),
        ):
            with self.subTest(text):
                self.settings(text)
                error = self.fails("config", "check", self.file)
                for word in words:
                    self.assertIn(word, error)

    def tree(self):
        """Returns everything in the scratch folder, with times and content."""
        found = {}
        for path in sorted(self.dir.rglob("*")):
            content = path.read_bytes() if path.is_file() else b""
            found[str(path)] = (path.stat().st_mtime_ns if path.is_file() else 0, content)
        return found

    def test_a_check_opens_what_a_server_opens(self):
        tables = f'tables = ["{self.built}"]\n'
        (self.dir / "keys").write_text("no file of keys")
        (self.dir / "data").mkdir()
        (self.dir / "data" / "tasks").mkdir()
        (self.dir / "data" / "tasks" / "1.json").write_text("no task")
        admin = f'listen-admin = "127.0.0.1:{free_port()}"\n'
        port = free_port()
        for text, words in (
            ('listen = "127.0.0.1:99999"', "cannot listen on 127.0.0.1:99999"),
            ('listen = ":7700"', "cannot listen on :7700"),
            ("listen = 7700", "cannot listen on 7700"),
            ('listen = "192.0.2.1:7700"\nopen = true', "choose an address of this machine"),
            ('listen-health = "127.0.0.1:0x"', "cannot listen on 127.0.0.1:0x"),
            (f'listen = "127.0.0.1:{port}"\nlisten-health = "127.0.0.1:{port}"', "--listen and --listen-health are both at"),
            ('keys = "/nonexistent/k.redb"', "cannot keep the keys of clients in /nonexistent/k.redb"),
            (f'keys = "{self.dir}/keys"', "it is damaged or no file of keys"),
            ('backend = "cuda"', "cuda"),
            ('name = ["a b"]', "a b"),
            (f'{admin}data = "/proc/none"', "cannot use --data /proc/none"),
            (f'{admin}data = "{self.dir}/data"', "1.json is no task"),
            ('gateway-keys = "none"', "cannot read the gateway's keys in none"),
            ('tokens = "none"', "none"),
            (f'tokens = "{self.dir}/tokens.json"\nallow-origin = ["*"]', "list the origins of your pages"),
            ('allow-origin = ["https://app.example/"]', "a browser writes this origin https://app.example"),
            ('otlp = "ftp://127.0.0.1"', "otlp"),
        ):
            with self.subTest(text):
                self.settings(tables + text + "\n")
                before = self.tree()
                checked = self.fails("config", "check", self.file, env={**self.env, "CUDA_VISIBLE_DEVICES": ""})
                self.assertIn(words, checked)
                self.assertEqual(self.tree(), before)
                # A server prints the same error.
                self.assertEqual(self.fails("serve", "--config", self.file, env={**self.env, "CUDA_VISIBLE_DEVICES": ""}), checked)

    def test_a_check_leaves_nothing_behind(self):
        with_keys = self.table(RECORDS, "exppack-s", name="keyed")
        admin, listen = (f"127.0.0.1:{free_port()}" for _ in range(2))
        self.settings(f'tables = ["{with_keys}", "https://127.0.0.1:1/table"]\nlisten = "{listen}"\nlisten-admin = "{admin}"\n'
                      f'data = "{self.dir}/new/data"\n')
        before = self.tree()
        for _ in range(2):
            result = self.hushdb("config", "check", self.file)
            self.assertEqual(result.returncode, 0, result.stderr)
            unchecked = [line for line in result.stdout.splitlines() if line.startswith("not checked: ")]
            self.assertEqual(unchecked, ["not checked: https://127.0.0.1:1/table: it is not fetched for a check"])
            self.assertEqual(self.tree(), before)
        # A check beside a running server, which holds the ports, the folder and the keys, does not disturb it.
        self.settings(self.file.read_text().replace(', "https://127.0.0.1:1/table"', ""))
        with self.serve(args=["--config", self.file], listen=listen) as (url, _):
            self.assertEqual(self.ask(url, "k1")[0], [RECORDS["k1"]])
            before = self.tree()
            result = self.hushdb("config", "check", self.file)
            self.assertEqual(result.returncode, 0, result.stderr)
            for what in (f"--listen {listen}: something listens", f"--listen-admin {admin}: something listens",
                         f"--data {self.dir}/new/data: a server uses it", "hushdb-keys.redb: a server uses it"):
                self.assertIn(what, result.stdout)
            self.assertEqual(self.tree().keys(), before.keys())
            self.assertEqual(self.ask(url, "k2")[0], [RECORDS["k2"]])
        # The check reads the server's files, and does not change them.
        before = self.tree()
        result = self.hushdb("config", "check", self.file)
        self.assertEqual((result.returncode, "not checked" in result.stdout), (0, False), (result.stdout, result.stderr))
        self.assertEqual(self.tree(), before)

    def test_what_is_wrong_is_said_before_anything_is_served(self):
        for args, env, words in (
            (self.settings("lisen = 'x'"), {}, ["did you mean 'listen'?"]),
            (["--config", self.dir / "none.toml"], {}, ["none.toml: No such file"]),
            ([self.built], {"HUSHDB_MAX_QUEUE": "many"}, ["HUSHDB_MAX_QUEUE: invalid value 'many'"]),
        ):
            with self.subTest(args=args):
                self.settings("lisen = 'x'")
                error = self.fails("serve", *args, env={**self.env, **env})
                for word in words:
                    self.assertIn(word, error)
        self.assertNotIn("HUSHDB_MAX_QUEUE", os.environ)
