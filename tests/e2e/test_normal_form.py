"""Tests of keys in normal form: builds, changes and look-ups all normalise keys."""

import pathlib
import sys

from harness import HushTest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts/vectors"))

RECORDS = {" Alice@EXAMPLE.org ": "1", "Zoe\u0308": "2", "ΟΔΟΣ": "3"}
ASKED = {"alice@example.org": "1", "\tALICE@example.ORG": "1", "ZO\u00cb\u00a0": "2", "οδος": "3", "οδοσ": None, "bob": None}


class NormalForm(HushTest):
    def table(self, *args):
        source = self.dir / "table.csv"
        source.write_text("k,v\n" + "".join(f"{key},{value}\n" for key, value in RECORDS.items()))
        return self.build(source, "--key", "k", "--normalize", "trim,nfc", "--normalize", "lower", *args)

    def test_clients_ask_for_it(self):
        table = self.table("--protocol", "simple")
        self.assertRegex(self.hushdb("inspect", table).stdout, "normalized +keys, by trim, lower, nfc")
        with self.serve(table) as (url, _):
            for key, value in ASKED.items():
                with self.subTest(key):
                    _, [answer] = self.get(url, "--", key)
                    self.assertEqual(answer.get("value"), value)

    def test_the_second_client_does(self):
        import environment

        environment.enter()
        from client import Client

        with self.serve(self.table("--protocol", "simple", "--filter", "band256")) as (url, _):
            client = Client(url, "table")
            self.assertEqual(client.descriptor["schema"]["normalize"], ["trim", "lower", "nfc"])
            for key, value in ASKED.items():
                self.assertEqual(client.get(key.encode()), value and value.encode(), key)

    def test_changes_are_of_records_in_it(self):
        table = self.table("--protocol", "colpack", "--updatable", "--changes", "20")
        changes, gone = self.dir / "changes.csv", self.dir / "gone.txt"
        changes.write_text("k,v\nALICE@example.org,9\nBob,4\n")
        gone.write_text("Οδος\n")
        result = self.hushdb("apply", table, changes, "--delete", gone, "--key", "k")
        self.assertEqual(result.returncode, 0, result.stderr)
        changes.write_text("k,v\nAnn,1\nANN,2\n")
        line = self.fails("apply", table, changes, "--key", "k")
        self.assertIn("the record of the key 'ann' is to be changed twice", line)
        result = self.hushdb("apply", table, changes, "--key", "k", "--on-duplicate", "first")
        self.assertEqual(result.returncode, 0, result.stderr)
        asked = {"alice@EXAMPLE.org": "9", "BOB": "4", "ΟΔΟΣ": None, "aNN": "1", "zoë": "2"}
        for way in ("changed", "compacted"):
            if way == "compacted":
                self.assertEqual(self.hushdb("compact", table).returncode, 0)
            with self.serve(table) as (url, _):
                for key, value in asked.items():
                    self.assertEqual(self.get(url, "--", key)[1][0].get("value"), value, (way, key))

    def test_keys_that_become_one_are_duplicates(self):
        source = self.csv([("a", 1), ("A", 2)], header="k,v")
        line = self.fails("build", source, "--key", "k", "--normalize", "lower", "--out", self.dir / "none")
        self.assertIn("rows 1 and 2 both have the key \"a\"", line)
        line = self.fails("build", source, "--key", "k", "--normalize", "rot13", "--out", self.dir / "none")
        self.assertIn("expected some of: lower, nfc, trim", line)
