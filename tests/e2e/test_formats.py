"""Tables that earlier versions wrote: those of this format are served, and older ones are refused with both versions.

tests/formats/0.2 has a table for each protocol of `alice,one`, `bob,two`, `carol,three`, as `hushdb build` of 0.2.0 wrote it with the
smallest set for tests; `changed` also has the changes `dave,four` and bob deleted. tests/formats/0.1 has a table of 0.1."""

import pathlib
import shutil
import unittest

from keyed import KeyedTest

FORMATS = pathlib.Path(__file__).resolve().parents[1] / "formats"
KEYS = ["alice", "bob", "carol", "dave"]


class Formats(KeyedTest):
    def test_tables_of_this_format_are_served(self):
        # A server writes beside its tables.
        folder = shutil.copytree(FORMATS / "0.2", self.dir / "tables")
        tables = sorted(folder.iterdir())
        self.assertEqual(len(tables), 14)
        for table in tables:
            result = self.hushdb("inspect", table, "--verify", "full")
            self.assertEqual(result.returncode, 0, (table.name, result.stderr))
        with self.serve(*tables) as (url, _):
            for table in tables:
                with self.subTest(table=table.name):
                    found, _ = self.ask(url, "--table", table.name, *KEYS)
                    self.assertEqual(found, ["one", None, "three", "four"] if table.name == "changed" else ["one", "two", "three", None])

    def test_a_table_of_0_1_is_refused_with_both_versions(self):
        folder = shutil.copytree(FORMATS / "0.1", self.dir / "tables")
        for command in (["inspect"], ["serve", "--listen", "127.0.0.1:0"]):
            error = self.fails(command[0], folder / "people", *command[1:])
            self.assertRegex(error, r"header\.json has format version 1, this program reads 2: build it again")


if __name__ == "__main__":
    unittest.main()
