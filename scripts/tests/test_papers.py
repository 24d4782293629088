"""Tests of the papers' tables: rows of runs, cells, plots, and that a run which is stopped goes on."""

import json
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

PAPERS = pathlib.Path(__file__).resolve().parents[1] / "papers"
sys.path.insert(0, str(PAPERS))
import measured
import plot
import printed

sys.path.remove(str(PAPERS))

BENCH = """#!/usr/bin/env python3
import json, sys
print(json.dumps({"name": "run", "command": "hush-bench " + " ".join(sys.argv[1:]), "machine": "m", "cores": 2, "level": "l", "unix_seconds": 9}))
if "--records" in sys.argv and sys.argv[sys.argv.index("--records") + 1] == "65536":
    sys.exit("error: no room")
print(json.dumps({"name": "table", "records": 4, "value_bytes": 8, "slots": 4096, "lanes": 4, "query_bytes": 2048, "answer_bytes": 1024}))
for threads, seconds in ((2, 0.25), (1, 0.5)):
    print(json.dumps({"name": "answer", "batch": 1, "threads": threads, "seconds": seconds}))
"""


class PapersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)
        self.bench = self.dir / "hush-bench"
        self.bench.write_text(BENCH)
        self.bench.chmod(self.bench.stat().st_mode | stat.S_IXUSR)

    def papers(self, *options):
        command = [sys.executable, PAPERS, self.bench, "--out", self.dir / "out.jsonl", *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_every_row_has_a_figure_for_each_column(self):
        for table in printed.TABLES:
            for row in table.rows:
                self.assertEqual(len(row.printed), len(table.columns), row.label)
        names = [table.name for table in printed.TABLES]
        self.assertEqual(len(set(names)), len(names))

    def test_rows_that_are_right_are_run_once_and_failures_are_told(self):
        first = self.papers("--only", "ppir-10")
        self.assertEqual(first.returncode, 1)
        self.assertRegex(first.stdout, r"2\^16 entries +no room")
        self.assertRegex(first.stdout, r"2\^18 entries +0\.5000 \(0\.3200\)")
        self.assertIn("6 of 6 rows are to be measured", first.stderr)
        again = self.papers("--only", "ppir-10")
        self.assertIn("1 of 6 rows are to be measured", again.stderr)  # the one that failed
        self.assertEqual(again.stdout, first.stdout)
        self.assertEqual(self.papers("--only", "nothing").returncode, 2)

    def test_figures_are_of_the_fewest_threads_and_of_the_latest_run(self):
        self.papers("--only", "ppir-10")
        rows = [json.loads(line) for line in (self.dir / "out.jsonl").read_text().splitlines()]
        old = self.dir / "old.jsonl"
        old.write_text("".join(json.dumps({**row, "unix_seconds": 1} if row["name"] == "run" else {**row, "seconds": 9}) + "\n" for row in rows))
        runs = measured.read(self.dir / "out.jsonl", old)
        run = runs[printed.ppir(18)]
        self.assertEqual((run.seconds("answer"), run.seconds("answer", threads=2), run.rate(1, 2)), (0.5, 0.25, 4))
        self.assertEqual((run.date(), run.batches(), run.value_bytes(), run.seconds("query")), ("1970-01-01", [1], 32, None))

    def test_points_are_within_the_plot(self):
        drawn = plot.draw("a", "x", "y", [plot.Series("one", ((1, 0.5), (10, 400))), plot.Series("<two>", ((3, 4),))])
        self.assertEqual(drawn.count("<circle"), 3)
        self.assertIn("&lt;two>", drawn)
        self.assertNotIn("nan", drawn)


if __name__ == "__main__":
    unittest.main()
