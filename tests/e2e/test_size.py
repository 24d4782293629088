"""Tests of a table that is far larger than its values: the build prints its size, and refuses a disk that is too small."""

import os
import unittest

from harness import HushTest


class SizeTest(HushTest):
    def test_what_a_table_takes_is_told_before_it_is_built(self):
        result = self.hushdb("build", self.csv([(f"k{i}", f"v{i}") for i in range(100)]), "--key", "key",
                             "--out", self.dir / "table")
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = result.stderr.splitlines()
        told = next(at for at, line in enumerate(lines) if line.startswith("100 records of 580 B: "))
        work = next(at for at, line in enumerate(lines) if line.startswith("hash keys"))
        self.assertLess(told, work)
        self.assertIn("; a look-up sends ", lines[told])

    def test_one_long_value_among_short_ones_is_refused_for_lack_of_memory(self):
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        count = memory // (1 << 20) + 1000
        rows = [("long", "x" * (1 << 20))] + [(f"k{i}", "v") for i in range(count)]
        source, out = self.csv(rows), self.dir / "table"
        line = self.fails("build", source, "--key", "key", "--max-value-size", 1 << 20, "--max-tiers", 1, "--out", out)
        for words in ("the table takes ", "are free: every value takes as much as the longest, 1048576 bytes",
                      "; without the longest ", "the longest has 1 bytes", "Allow tiers (--max-tiers 4)", "--force-size"):
            self.assertIn(words, line)
        self.assertEqual(sorted(path.name for path in self.dir.iterdir()), [source.name])
        # The remedy in the error works.
        self.build(self.csv(rows[1:], name="short.csv"), "--key", "key")


if __name__ == "__main__":
    unittest.main()
