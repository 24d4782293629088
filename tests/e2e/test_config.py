"""Settings of a server: a file, the environment, the command line."""

import json
import os

from certificates import Authority
from harness import request
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
        # The environment before the file, and the command line before both.
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

    def test_check(self):
        self.settings(f'tables = ["{self.built}"]\nmax-queue = 999\n')
        result = self.hushdb("config", "check", self.file, env={**self.env, "HUSHDB_WINDOW": "5"})
        self.assertEqual(result.returncode, 0, result.stderr)
        said = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}
        self.assertEqual(said["max-queue"], ["999", "the", "file"])
        self.assertEqual(said["window"], ["5", "the", "environment"])
        self.assertEqual(said["client-share"], ["25", "default"])
        self.assertTrue(result.stdout.endswith("is good\n"))
        for text, words in (
            ("tables = []", ["tables: the list is empty"]),
            ("max-queue = 1", ["which tables? name the folders"]),
            (f'tables = ["{self.dir}"]', ["is not a hushdb snapshot", str(self.dir)]),
            (f'tables = ["{self.built}"]\ntls-cert = "none"', ["--tls-key"]),
            (f'tables = ["{self.built}"]\ntls-cert = "none"\ntls-key = "none"', ["cannot read none"]),
            (f'tables = ["{self.built}", "{self.built}"]', ["two tables are called people"]),
            (f'tables = ["{self.built}"]\nmax-queue = 1', ["max_queue must be at least"]),
            (f'tables = ["{self.built}"]\nlisten = "0.0.0.0:7700"', ["0.0.0.0:7700", "--tokens", "--open"]),
            ("max-quue = 1", ["hushdb.toml: there is no setting 'max-quue': did you mean 'max-queue'?"]),
            ("window = 'x'", ["hushdb.toml: window: invalid value 'x'"]),
        ):
            with self.subTest(text):
                self.settings(text)
                error = self.fails("config", "check", self.file)
                for word in words:
                    self.assertIn(word, error)

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
