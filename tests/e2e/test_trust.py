"""Tests of trust in a table: pinned epochs, signed tables, and keys that no process list shows."""

import json
import unittest

from harness import HushTest


class TrustTest(HushTest):
    def keygen(self, name):
        """Makes a publisher's key. Returns its file, and its public half."""
        file = self.dir / name
        result = self.hushdb("keygen", file)
        self.assertEqual(result.returncode, 0, result.stderr)
        return file, result.stdout.strip()

    def facts(self, table):
        return json.loads(self.hushdb("inspect", table, "--json").stdout)

    def test_a_pinned_epoch(self):
        tables = [self.build(self.csv([("k", value)]), "--key", "key", name=value) for value in ("one", "two")]
        first, second = (self.facts(table)["epoch"] for table in tables)
        self.assertNotEqual(first, second)
        with self.serve(tables[0]) as (url, _):
            self.assertEqual(self.get(url, "k", "--epoch", first)[1][0]["value"], "one")
            line = self.fails("get", url, "k", "--epoch", second)
            self.assertIn(f"has epoch {first}, not {second}", line)
            self.assertIn("64 hex digits", self.fails("get", url, "k", "--epoch", second[1:]))

    def test_a_signed_table(self):
        (mine, public), (other, other_public) = self.keygen("mine"), self.keygen("other")
        self.assertEqual(mine.stat().st_mode & 0o777, 0o600)
        self.assertNotEqual(public, other_public)
        source = self.csv([("k", "value")])
        build = lambda name, *args: self.build(source, "--key", "key", *args, name=name)
        signed, unsigned = build("signed", "--sign", mine), build("unsigned")
        self.assertEqual([self.facts(table)["publisher"] for table in (signed, unsigned)], [public, None])
        self.assertRegex(self.hushdb("inspect", signed).stdout, rf"publisher +{public}")
        with self.serve(signed, unsigned) as (url, _):
            look_up = lambda table, key: ("get", url, "--table", table, "k", "--trust", key)
            self.assertEqual(self.hushdb(*look_up("signed", public)).stdout, "value")
            self.assertIn(f"signed by {public}, not by {other_public}", self.fails(*look_up("signed", other_public)))
            self.assertIn("not signed", self.fails(*look_up("unsigned", public)))
            self.assertIn("64 hex digits", self.fails(*look_up("signed", public[1:])))
            self.assertEqual(self.hushdb("get", url, "--table", "signed", "k").stdout, "value")

    def test_a_signed_name(self):
        key, public = self.keygen("mine")
        source = self.csv([("k", "value")])
        build = lambda name, *args: self.build(source, "--key", "key", "--sign", key, *args, name=name)
        leaked, test = build("leaked"), build("test")
        self.assertEqual([self.facts(table)["signed_name"] for table in (leaked, test)], ["leaked", "test"])
        look_up = lambda url, *args: ("get", url, "k", *args)
        # A server may have another table of the publisher under the expected name.
        with self.serve(test, args=("--name", "leaked")) as (url, _):
            line = self.fails(*look_up(url, "--table", "leaked", "--trust", public))
            self.assertIn("signed under the name 'test', not 'leaked'", line)
            self.assertIn("name the table", self.fails(*look_up(url, "--trust", public)))
            # A table is accepted under its true name.
            self.assertEqual(self.hushdb(*look_up(url, "--trust", f"{public}=test")).stdout, "value")
            self.assertIn("letters, digits", self.fails(*look_up(url, "--trust", f"{public}=a/b")))
        with self.serve(leaked) as (url, _):
            self.assertEqual(self.hushdb(*look_up(url, "--table", "leaked", "--trust", public)).stdout, "value")
        renamed = build("folder", "--sign-as", "leaked")
        with self.serve(renamed, args=("--name", "leaked")) as (url, _):
            self.assertEqual(self.hushdb(*look_up(url, "--table", "leaked", "--trust", public)).stdout, "value")
        command = ("build", source, "--key", "key", "--sign", key, "--out")
        self.assertIn("is not a name", self.fails(*command, self.dir / "a b"))
        self.assertFalse((self.dir / "a b").exists())

    def test_an_older_table_is_refused(self):
        key, public = self.keygen("mine")
        build = lambda value, serial, *args: self.build(
            self.csv([("k", value)]), "--key", "key", "--sign", key, "--sign-as", "table", "--serial", serial, *args, name=value)
        old, new = build("old", "7"), build("new", "8")
        self.assertEqual([self.facts(table)["serial"] for table in (old, new)], [7, 8])
        cache = self.env | {"XDG_CACHE_HOME": str(self.dir / "cache")}
        look_up = lambda url, *args, env=cache: self.hushdb("get", url, "--table", "table", "k", *args, env=env)
        trusting = lambda url, *args, env=cache: look_up(url, "--trust", public, *args, env=env)
        name = ("--name", "table")
        with self.serve(old, args=name) as (first, _), self.serve(new, args=name) as (second, _):
            self.assertEqual(trusting(first).stdout, "old")
            self.assertEqual(trusting(second).stdout, "new")
            result = trusting(first)
            self.assertEqual((result.returncode, result.stdout), (2, ""))
            self.assertIn("serial 7, and this client has seen 8", result.stderr)
            # A client without a cache, with an empty cache, or without --trust cannot notice.
            self.assertEqual(trusting(first, "--no-cache").stdout, "old")
            self.assertEqual(trusting(first, env=self.env | {"XDG_CACHE_HOME": str(self.dir / "other")}).stdout, "old")
            self.assertEqual(look_up(first).stdout, "old")
        # A new publication has a greater serial than the one that it replaces.
        source = self.csv([("k", "newer")])
        command = ("build", source, "--key", "key", "--force", "--sign", key, "--out", new)
        self.assertIn("published with serial 8 before", self.fails(*command, "--serial", "8"))
        self.assertEqual(self.facts(new)["serial"], 8)
        self.assertEqual(self.hushdb(*command).returncode, 0)
        newer = self.facts(new)
        self.assertEqual(newer["signed_name"], "table")
        self.assertGreater(newer["serial"], 1_700_000_000)
        self.assertEqual(newer["serial"], newer["signed_at"])

    def test_bad_keys(self):
        file, _ = self.keygen("key")
        secret = file.read_text()
        self.assertIn("not there", self.fails("keygen", file))
        self.assertEqual(file.read_text(), secret)
        build = ("build", self.csv([("k", "v")]), "--key", "key", "--out", self.dir / "out", "--sign")
        self.assertIn("hushdb keygen", self.fails(*build, self.dir / "absent"))
        file.chmod(0o640)
        self.assertIn("chmod 600", self.fails(*build, file))
        file.chmod(0o600)
        file.write_text(secret[1:])
        self.assertIn("64 hex digits", self.fails(*build, file))

    def test_a_key_from_standard_input(self):
        table = self.build(self.csv([("k", "one"), ("-", "dash"), (" s", "space")]), "--key", "key")
        with self.serve(table) as (url, _):
            for line, value in (("k\n", "one"), ("k\r\nmore\n", "one"), ("-\n", "dash"), (" s", "space")):
                self.assertEqual(self.hushdb("get", url, "-", input=line).stdout, value)
            self.assertIn("empty", self.fails("get", url, "-", input=""))
            self.assertIn("once", self.fails("get", url, "-", "-", input="k\n"))
            self.assertIn("once", self.fails("get", url, "-", "--keys-file", "-", input="k\n"))

    def test_a_crash_leaves_no_image(self):
        table = self.build(self.csv([("k", "v")]), "--key", "key")
        with self.serve(table) as (_, process):
            with open(f"/proc/{process.pid}/limits") as limits:
                self.assertRegex(limits.read(), r"Max core file size +0 +0 ")


if __name__ == "__main__":
    unittest.main()
