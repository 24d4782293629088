"""Tests of tables that follow a table of PostgreSQL, with kills of either side."""

import json
import random
import signal
import subprocess
import time

from harness import BINARY
from keyed import KeyedTest
from postgres import Postgres

SMALL = ["--protocol", "colpack", "--preset", "INSECURE_COLPACK_N256", "--columns", "600", "--updatable"]
COLUMNS = ["name", "data", "at", "ok", "n", "doc"]


class FollowDatabaseTest(KeyedTest):
    @classmethod
    def setUpClass(cls):
        cls.server = Postgres()
        cls.server.__enter__()
        cls.addClassCleanup(cls.server.__exit__)

    def setUp(self):
        super().setUp()
        self.url = self.server.socket()

    def made(self, name, extra=""):
        """Makes a table of the database with its publication and slot, then the table that follows."""
        self.server.sql(f"""
            CREATE TABLE {name} (id bigint PRIMARY KEY, name text, data bytea, at timestamptz, ok boolean, n numeric(10,2), doc jsonb);
            {extra}
            CREATE PUBLICATION {name} FOR TABLE {name};
            INSERT INTO {name} SELECT i, 'n' || i, decode(to_hex(i + 256), 'escape'), '2026-01-01 00:00:00+02', i % 2 = 0, i / 4.0,
                jsonb_build_object('i', i) FROM generate_series(1, 3000) i;
        """)
        self.server.sql(f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")
        return self.build(self.url, "--table", name, "--key", "id", *SMALL, "--changes", 2000, name=name)

    def follow(self, table, name, *args):
        command = [BINARY, "apply", table, "--follow", self.url, "--slot", name, "--key", "id", "--every", "50ms", *args]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.env)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def is_there(self, table, name):
        """Returns whether the table has what the database has: a fresh build of it answers as this one does."""
        rows = json.loads(self.server.sql(f"SELECT coalesce(json_agg(id ORDER BY id), '[]') FROM {name}"))
        fresh = self.build(self.url, "--table", name, "--key", "id", "--protocol", "download", name=f"fresh-{time.time_ns()}")
        with self.serve(table, fresh) as (url, _):
            keys = [str(key) for key in rows[:60] + rows[-60:]] + ["8", "9", "100000"]
            [one, other] = [self.ask(url, "--table", own.name, *keys)[0] for own in (table, fresh)]
        return one == other

    def test_changes_of_every_type_come(self):
        table = self.made("typed")
        process = self.follow(table, "typed")
        self.server.sql("""
            BEGIN; UPDATE typed SET name = NULL, at = '2026-05-05 12:00:00.25+00', n = 1.50 WHERE id = 7; DELETE FROM typed WHERE id = 8; COMMIT;
            INSERT INTO typed VALUES (10000, E'tab\\t"é"', '\\x00ff1f', NULL, true, -1, '{"a": [1, null]}');
            UPDATE typed SET id = 20000 WHERE id = 9;
            UPDATE typed SET ok = NOT ok WHERE id < 50;
            BEGIN; INSERT INTO typed (id) VALUES (30000); ROLLBACK;
        """)
        told = []
        while sum(line["changes"] for line in told) < 50:
            told.append(json.loads(process.stdout.readline()))
        self.assertRegex(told[-1]["position"], "^[0-9A-F]+/[0-9A-F]+$")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 0, process.stderr.read())
        self.assertTrue(self.is_there(table, "typed"))
        # A compaction keeps the position, and an older epoch misses what the slot has forgotten.
        self.assertEqual(self.hushdb("compact", table, "--keep-epochs", 3).returncode, 0)
        process = self.follow(table, "typed", "--keep-epochs", 3)
        self.server.sql("UPDATE typed SET name = 'again' WHERE id = 20")
        json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 0)
        self.assertTrue(self.is_there(table, "typed"))
        [*_, before, _] = self.hushdb("rollback", table, "--list").stdout.splitlines() + [""]
        self.assertEqual(self.hushdb("rollback", table, "--to", before.split()[0][:12]).returncode, 0)
        process = self.follow(table, "typed")
        self.assertEqual(process.wait(20), 2)
        self.assertIn("has forgotten changes that the table does not have", process.stderr.read())

    def test_kills_of_both_lose_and_repeat_nothing(self):
        rng = random.Random(9)
        table = self.made("killed")
        self.server.sql("CREATE TABLE other (id int); CREATE TABLE pairs AS SELECT 1")
        process, newest = self.follow(table, "killed"), 10000
        with self.serve(table, args=["--watch"]) as (url, _):
            for rounds in range(20):
                statements = ["BEGIN"]
                for _ in range(rng.randint(1, 30)):
                    newest += 1
                    key = rng.randint(3, 3000)
                    statements.append(rng.choice([
                        f"INSERT INTO killed (id, name) VALUES ({newest}, 'new {rounds}')",
                        f"UPDATE killed SET name = 'r{rounds}' WHERE id = {key}",
                        f"DELETE FROM killed WHERE id = {key}",
                        "INSERT INTO other VALUES (1)",
                    ]))
                # Both rows change in one transaction, and are equal in every epoch.
                statements += [f"UPDATE killed SET name = 'turn {rounds}' WHERE id IN (1, 2)", "COMMIT"]
                self.server.sql(";\n".join(statements) + ";")
                if rng.random() < 0.4:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                if rng.random() < 0.15:
                    self.server.restart()
                if process.poll() is not None:
                    process = self.follow(table, "killed")
                found, _ = self.ask(url, "1", "2")
                if "turn" in found[0] + found[1]:
                    one, other = (json.loads(value)["name"] for value in found)
                    self.assertEqual(one, other)
        if process.poll() is not None:
            process = self.follow(table, "killed")
        self.wait_for("all changes", lambda: self.is_there(table, "killed"), 30)
        # The slot has forgotten what the table has.
        self.wait_for("the slot", lambda: self.server.sql(
            "SELECT count(*) FROM pg_logical_slot_peek_binary_changes('killed', NULL, NULL, 'proto_version', '1', 'publication_names', 'killed')") == "0")

    def test_the_table_is_the_one_that_is_named(self):
        def error(table, slot, *args):
            process = self.follow(table, slot, *args)
            self.assertEqual(process.wait(20), 2)
            return process.stderr.read()
        # A table of another schema has the same name.
        table = self.made("named", "CREATE SCHEMA b; CREATE TABLE b.named (LIKE named INCLUDING ALL);")
        self.server.sql("ALTER PUBLICATION named ADD TABLE b.named; CREATE TABLE lone (id int PRIMARY KEY)")
        self.assertIn("the publication has several tables: b.named, named; choose one with --table", error(table, "named"))
        self.assertIn("has no table lone, but b.named, named", error(table, "named", "--table", "lone"))
        process = self.follow(table, "named", "--table", "named")
        self.server.sql("INSERT INTO b.named (id, name) VALUES (5, 'of b'); DELETE FROM b.named; UPDATE named SET name = 'own' WHERE id = 6")
        self.assertEqual(json.loads(process.stdout.readline())["changes"], 1)
        # The database goes away and comes back.
        self.server.restart()
        self.server.sql("UPDATE named SET name = 'back' WHERE id = 7")
        self.assertEqual(json.loads(process.stdout.readline())["changes"], 1)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(20), 0)
        self.assertTrue(self.is_there(table, "named"))
        # Another table follows the same slot: what the first has taken is gone.
        second = self.build(self.url, "--table", "named", "--key", "id", *SMALL, "--changes", 500, name="second")
        process = self.follow(second, "named", "--table", "named")
        self.server.sql("UPDATE named SET name = 'taken' WHERE id = 8")
        json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        process.wait(20)
        self.assertIn("give each a slot of its own", error(table, "named", "--table", "named"))
        # A slot that is younger than the table.
        late = self.build(self.url, "--table", "named", "--key", "id", *SMALL, "--changes", 500, name="late")
        self.server.sql("UPDATE named SET name = 'between' WHERE id = 9")
        self.server.sql("SELECT pg_create_logical_replication_slot('late', 'pgoutput')")
        self.assertIn("if it was made after the table", error(late, "late", "--publication", "named", "--table", "named"))
        # The table is made anew, or leaves the publication.
        self.server.sql("ALTER PUBLICATION named DROP TABLE b.named; CREATE TABLE again (LIKE named INCLUDING ALL); DROP TABLE named; "
                        "ALTER TABLE again RENAME TO named; ALTER PUBLICATION named ADD TABLE named")
        self.assertIn("another one than before, of the same name", error(second, "named"))
        process = self.follow(self.made("leaves"), "leaves")
        self.server.sql("UPDATE leaves SET name = 'x' WHERE id = 1")
        json.loads(process.stdout.readline())
        self.server.sql("ALTER PUBLICATION leaves DROP TABLE leaves")
        self.assertEqual(process.wait(20), 2)
        self.assertIn("is gone, or has left the publication; build it again", process.stderr.read())

    def test_what_cannot_be_followed_is_told(self):
        table = self.made("refused", "ALTER TABLE refused ADD COLUMN list int[];")
        def error(*args, slot="refused"):
            process = self.follow(table, slot, *args)
            self.assertEqual(process.wait(20), 2)
            return process.stderr.read()
        self.assertIn("there is no replication slot 'absent'; make it before the table is built", error(slot="absent"))
        self.assertIn("there is no publication 'absent'", error("--publication", "absent"))
        self.server.sql("UPDATE refused SET name = 'x' WHERE id = 1")
        self.assertIn("is an array or a row, which is not followed", error())
        self.server.sql("SELECT pg_drop_replication_slot('refused')")
        table = self.made("cut")
        self.server.sql("TRUNCATE cut")
        process = self.follow(table, "cut")
        self.assertEqual(process.wait(20), 2)
        self.assertIn("the table was truncated; build it again", process.stderr.read())
        self.server.sql("ALTER TABLE refused REPLICA IDENTITY NOTHING")
        self.server.sql("SELECT pg_create_logical_replication_slot('refused', 'pgoutput')")
        self.assertIn("lacks the key column", error())
        self.assertIn("which replication slot?", self.fails("apply", table, "--follow", self.url, "--key", "id"))
        self.assertIn("takes - for standard input", self.fails("apply", table, "--follow", "x.jsonl", "--key", "id"))
