"""Tests of tables that are read from a PostgreSQL server."""

import base64
import json
import subprocess
import unittest

from certificates import Authority
from harness import BINARY, HushTest, free_port
from postgres import Postgres

# (type, literal in SQL, bytes as a key or as the only value, value in a JSON object if it differs)
TYPES = [
    ("text", "E'a\\tb\\\\N\\n\\r\\b\\f\\x0b é'", "a\tb\\N\n\r\b\f\v é", ...),
    ("varchar(9)", "''", "", ""),
    ("char(3)", "'a'", "a  ", "a  "),
    ("smallint", "-32768", "-32768", -32768),
    ("integer", "42", "42", 42),
    ("bigint", "9223372036854775807", "9223372036854775807", 9223372036854775807),
    ("oid", "4294967295", "4294967295", 4294967295),
    ("numeric", "1.50", "1.50", 1.5),
    ("numeric(40,0)", "1234567890123456789012345678901234567890",
     "1234567890123456789012345678901234567890", 1234567890123456789012345678901234567890),
    ("numeric", "'NaN'", "NaN", "NaN"),
    ("real", "0.1", "0.1", 0.1),
    ("double precision", "1e21", "1e+21", 1e21),
    ("double precision", "1e-7", "1e-7", 1e-7),
    ("double precision", "'-Infinity'", "-Infinity", "-Infinity"),
    ("boolean", "true", "true", True),
    ("boolean", "false", "false", False),
    ("bytea", "'\\x00ff5c09'", b"\x00\xff\x5c\x09", base64.b64encode(b"\x00\xff\x5c\x09").decode()),
    ("bytea", "''", b"", ""),
    ("date", "'2024-02-29'", "2024-02-29", ...),
    ("date", "'infinity'", "infinity", ...),
    ("time", "'12:00:00.25'", "12:00:00.250000", ...),
    ("timestamp", "'2024-02-29 12:00:00'", "2024-02-29T12:00:00", ...),
    ("timestamp", "'2024-02-29 12:00:00.25'", "2024-02-29T12:00:00.250000", ...),
    ("timestamptz", "'2024-02-29 12:00:00+02'", "2024-02-29T10:00:00Z", ...),
    ("interval", "'1 day 2 hours'", "P1DT2H", ...),
    ("uuid", "'00112233-4455-6677-8899-aabbccddeeff'", "00112233-4455-6677-8899-aabbccddeeff", ...),
    ("json", "'{\"b\": [1, 2.50],  \"a\": null}'", '{"b":[1,2.50],"a":null}', {"b": [1, 2.5], "a": None}),
    ("jsonb", "'{\"b\": \"x y\"}'", '{"b":"x y"}', {"b": "x y"}),
    ("jsonb", "'\"text\"'", "text", "text"),
    ("integer[]", "'{1,2,NULL}'", "[1,2,null]", [1, 2, None]),
    ("text[]", "'{{a,b},{c,d}}'", '[["a","b"],["c","d"]]', [["a", "b"], ["c", "d"]]),
    ("point_of_test", "ROW(1, 'a')", '{"x":1,"y":"a"}', {"x": 1, "y": "a"}),
    ("mood", "'fine'", "fine", ...),
    ("positive", "7", "7", 7),
    ("inet", "'10.0.0.1/8'", "10.0.0.1/8", ...),
    ("int4range", "'[1,5)'", "[1,5)", ...),
    ("text", "NULL", "", None),
    ("bytea", "NULL", "", None),
]


class FromPostgres(HushTest):
    @classmethod
    def setUpClass(cls):
        server = Postgres()
        cls.server = server.__enter__()
        cls.addClassCleanup(server.__exit__)
        server.sql(f"""
            CREATE TYPE point_of_test AS (x integer, y text);
            CREATE TYPE mood AS ENUM ('fine', 'bad');
            CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
            CREATE TABLE people AS SELECT 'user' || i AS email, i AS age FROM generate_series(1, 3000) i;
            CREATE TABLE secrets (k text);
            CREATE SCHEMA hr;
            CREATE TABLE hr."Odd ""Name"" s" AS SELECT 1 AS "K ""1"" ", 'v' AS "select";
            CREATE ROLE reader LOGIN PASSWORD '{server.PASSWORD}';
            GRANT SELECT ON people TO reader;
            ANALYZE people;
        """)

    def setUp(self):
        super().setUp()
        self.env["PGPASSWORD"] = self.server.PASSWORD

    def found(self, table, *keys):
        with self.serve(table) as (url, _):
            return [answer.get("value") for answer in self.get(url, *keys)[1]]

    def test_every_type_has_its_one_form(self):
        columns = [f"c{i} {kind}" for i, (kind, *_) in enumerate(TYPES)]
        self.server.sql(f"""
            CREATE TABLE types (k integer, {", ".join(columns)});
            INSERT INTO types VALUES (1, {", ".join(text for _, text, *_ in TYPES)});
        """)
        table = self.build(self.server.socket(), "--table", "types", "--key", "k")
        answer = json.loads(self.found(table, "1")[0])
        for i, (kind, text, alone, member) in enumerate(TYPES):
            with self.subTest(kind=kind, text=text):
                self.assertEqual(answer[f"c{i}"], alone if member is ... else member)
        # A key has all its columns, each with the bytes that it would have alone.
        parts = {f"c{i}": alone for i, (kind, text, alone, _) in enumerate(TYPES) if text != "NULL" and kind != "bytea"}
        keys = [word for name in parts for word in ("--key", name)]
        table = self.build(self.server.socket(), "--table", "types", *keys, "--value", "k", name="keys")
        self.assertEqual(self.found(table, "\x1f".join(parts.values())), ["1"])
        binary = next(i for i, (kind, *_) in enumerate(TYPES) if kind == "bytea")
        table = self.build(self.server.socket(), "--table", "types", "--key", "k", "--value", f"c{binary}", name="binary")
        with self.serve(table) as (url, _):
            found = self.hushdb("get", url, "1", text=False)
            self.assertEqual(found.stdout, TYPES[binary][2], found.stderr)

    def test_one_snapshot_that_is_only_read(self):
        query = "SELECT 'isolation' AS k, current_setting('transaction_isolation') AS v UNION ALL " \
                "SELECT 'read only', current_setting('transaction_read_only') -- that is all"
        table = self.build(self.server.socket(), "--sql", query, "--key", "k")
        self.assertEqual(self.found(table, "isolation", "read only"), ["repeatable read", "on"])
        self.server.sql("CREATE FUNCTION grow() RETURNS integer LANGUAGE sql AS 'INSERT INTO secrets VALUES (1) RETURNING 1'")
        line = self.fails("build", self.server.socket(), "--sql", "SELECT grow() AS k", "--key", "k", "--out", self.dir / "no")
        self.assertIn("read-only transaction; write a SELECT: nothing is changed", line)

    def test_a_connection_ends_with_its_transaction(self):
        log = self.server.data / "log"
        before = len(log.read_text())
        self.server.sql("ALTER SYSTEM SET log_disconnections = on; SELECT pg_reload_conf()")
        self.addCleanup(self.server.sql, "ALTER SYSTEM RESET log_disconnections; SELECT pg_reload_conf()")
        self.build(self.server.url(), "--table", "people", "--key", "email")
        self.fails("build", self.server.url(), "--table", "people", "--key", "none", "--out", self.dir / "none")
        ends = lambda: log.read_text()[before:].count("disconnection: session time")
        self.wait_for("the ends of the connections", lambda: ends() >= 2)
        self.assertNotIn("unexpected EOF", log.read_text()[before:])
        self.assertNotIn("connection to client lost", log.read_text()[before:])

    def test_tables_and_queries(self):
        result = self.hushdb("build", self.server.url(), "--table", "people", "--key", "email", "--out", self.dir / "people")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stderr, r"(?m)^read +3000 rows")
        self.assertEqual(self.found(self.dir / "people", "user1", "user3000", "user3001"), ["1", "3000", None])
        odd = self.build(self.server.socket(), "--table", 'hr.Odd "Name" s', "--key", 'K "1" ', name="odd")
        self.assertEqual(self.found(odd, "1"), ["v"])
        ordered = self.build(self.server.url(), "--sql", "SELECT email FROM people ORDER BY age DESC;\n", name="rows")
        self.assertEqual(self.found(ordered, "--index", "0", "2999"), ["user3000", "user1"])

    def test_changes_are_read_too(self):
        table = self.build(self.server.url(), "--table", "people", "--key", "email", "--updatable")
        query = "SELECT age + 1 AS age, email FROM people WHERE age < 3"
        result = self.hushdb("apply", table, self.server.url(), "--sql", query, "--key", "email")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.found(table, "user2", "user3"), ["3", "3"])

    def test_passwords_come_from_where_libpq_has_them(self):
        del self.env["PGPASSWORD"]
        args = ["--table", "people", "--key", "email"]
        quoted = self.server.PASSWORD.replace("/", "%2F").replace("@", "%40")
        self.build(self.server.url(user=f"reader:{quoted}"), *args, name="url")
        file = self.dir / "passwords"
        file.write_text(f"# all\n127.0.0.1:{self.server.port}:*:reader:{self.server.PASSWORD}\n")
        file.chmod(0o600)
        self.env["PGPASSFILE"] = str(file)
        self.build(self.server.url(), *args, name="file")
        for path in [path for name in ("url", "file") for path in (self.dir / name).iterdir()]:
            content = path.read_bytes()
            self.assertNotIn(self.server.PASSWORD.encode(), content, path)
            self.assertNotIn(quoted.encode(), content, path)
        file.chmod(0o644)
        line = self.fails("build", self.server.url(), *args, "--out", self.dir / "no")
        self.assertIn("passwords is left out: others can read it; chmod 600", line)
        self.assertIn("give the password in PGPASSWORD", line)

    def test_errors_say_what_to_do(self):
        server, out = self.server, self.dir / "no"
        wrong = server.url(user="reader:wrong%40word")
        for url, args, expected in (
            (server.url(), ["--table", "peple"], ['choose a table with --table (there is "people", "secrets"']),
            (server.url(), [], ["choose a table with --table"]),
            (server.url(), ["--table", "secrets"], ["permission denied for table secrets", "GRANT SELECT"]),
            (server.url(), ["--sql", "SELECT * FROM peple"], ['relation "peple" does not exist', "correct --sql"]),
            (server.url(), ["--sql", "SELECT 1; SELECT 2"], ["multiple commands"]),
            (server.url(), ["--sql", "SELECT 1 AS a, 2 AS a"], ['two columns are called "a"']),
            (server.url(), ["--table", "people", "--key", "mail"], ['the columns are "email", "age"']),
            (server.url(), ["--table", "people", "--format", "csv"], ["--format applies to files"]),
            (server.url(database="none"), ["--table", "people"], ['database "none" does not exist', "the last part of the URL"]),
            (wrong, ["--table", "people"], ["password authentication failed", "PGPASSWORD", "postgres://reader@127.0.0.1"]),
            (server.url().replace(f":{server.port}", f":{free_port()}"), [], ["refused", "check the host and the port"]),
            (server.url(sslmode="full"), [], ["sslmode=full: use disable, prefer, require, verify-ca or verify-full"]),
            (server.url(color="red"), [], ["unknown option `color`"]),
            (wrong.replace("postgres:", "postgre:"), [], ["postgre://reader@127.0.0.1", "the nearest is postgres://"]),
        ):
            with self.subTest(url=url, args=args):
                line = self.fails("build", url, *args, "--out", out)
                for words in expected:
                    self.assertIn(words, line)
                self.assertNotIn("wrong", line)
                self.assertNotIn(server.PASSWORD, line)
                self.assertFalse(out.exists())

    def test_plans_are_made_of_it_too(self):
        line = self.fails("plan", self.server.url(), "--table", "peple")
        self.assertIn('there is "people"', line)

    def test_a_server_that_goes_away_is_an_error(self):
        query = "SELECT i AS k, repeat('x', 9000) || pg_sleep(0.001)::text AS v FROM generate_series(1, 1000000) i"
        build = subprocess.Popen([BINARY, "build", self.server.socket(), "--sql", query, "--key", "k", "--out", self.dir / "no"],
                                 stderr=subprocess.PIPE, text=True, env=self.env)
        ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity " \
                "WHERE application_name = 'hushdb' AND query LIKE 'COPY%' AND state = 'active'"
        self.wait_for("the query does not run", lambda: self.server.sql(ended) == "1")
        _, error = build.communicate(timeout=30)
        self.assertEqual(build.returncode, 2, error)
        self.assertIn("; run the build again", error)
        self.assertFalse((self.dir / "no").exists())

    def test_tls(self):
        self.server.sql("CREATE OR REPLACE VIEW tls AS SELECT 'tls' AS k, ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid();"
                        "GRANT SELECT ON tls TO reader")
        roots = self.server.authority.cert
        args = ["--table", "tls", "--key", "k"]
        for number, (host, options, used) in enumerate((
            ("localhost", {"sslmode": "verify-full", "sslrootcert": roots}, "true"),
            ("127.0.0.1", {"sslmode": "verify-ca", "sslrootcert": roots}, "true"),
            ("127.0.0.1", {"sslmode": "require"}, "true"),
            ("127.0.0.1", {}, "true"),
            ("127.0.0.1", {"sslmode": "disable"}, "false"),
        )):
            with self.subTest(host=host, **options):
                table = self.build(self.server.url(host=host, **options), *args, name=f"tls-{number}")
                self.assertEqual(self.found(table, "tls"), [used])
        stranger = Authority(self.dir, "stranger").cert
        for host, options, words in (
            ("127.0.0.1", {"sslmode": "verify-full", "sslrootcert": roots}, "not valid for name"),
            ("localhost", {"sslmode": "verify-full", "sslrootcert": stranger}, "UnknownIssuer"),
            ("localhost", {"sslmode": "require", "sslrootcert": stranger}, "UnknownIssuer"),
            ("localhost", {"sslmode": "verify-full", "sslrootcert": self.dir / "none"}, "sslrootcert="),
        ):
            with self.subTest(host=host, **options):
                line = self.fails("build", self.server.url(host=host, **options), *args, "--out", self.dir / "no")
                self.assertIn(words, line)


if __name__ == "__main__":
    unittest.main()
