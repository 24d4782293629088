"""Tests of the places from which a table is read."""

import gzip
import json
import pathlib

from harness import HushTest


class StandardInput(HushTest):
    def found(self, table, *keys):
        with self.serve(table) as (url, _):
            return [answer.get("value") for answer in self.get(url, *keys)[1]]

    def piped(self, content):
        """Returns `content` as the standard input of a command."""
        path = self.dir / "piped"
        path.write_bytes(content)
        file = path.open("rb")
        self.addCleanup(file.close)
        return file

    def test_what_it_is_its_first_bytes_or_an_option_say(self):
        lines = b"".join(json.dumps({"k": f"key {i}", "v": i}).encode() + b"\n" for i in range(50))
        rows = b"k,v\n" + b"".join(b"key %d,%d\n" % (i, i) for i in range(50))
        for name, content, args in (
            ("lines", gzip.compress(lines[:300]) + gzip.compress(lines[300:]), ()),
            ("rows", gzip.compress(rows), ("--format", "csv")),
            ("plain", rows, ("--format", "csv")),
        ):
            with self.subTest(name):
                out = self.dir / name
                result = self.hushdb("build", "-", "--out", out, "--key", "k", *args, stdin=self.piped(content))
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertEqual(self.found(out, "key 0", "key 49"), ["0", "49"])
        vectors = pathlib.Path(__file__).resolve().parents[2] / "crates/hush-ingest/tests/ingest/arrow"
        for name, args in (("arrow", ()), ("arrow-named", ("--format", "arrow"))):
            piped = self.piped((vectors / "pyarrow.arrows").read_bytes())
            result = self.hushdb("build", "-", "--out", self.dir / name, "--key", "k", "--value", "n", *args, stdin=piped)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.found(self.dir / name, "a", "é"), ["1", "3"])
        out = self.dir / "none"
        line = self.fails("build", "-", "--out", out, stdin=self.piped((vectors / "polars.arrow").read_bytes()))
        self.assertIn("it is a file that is no stream; give it as a file, or write a stream", line)
        line = self.fails("build", "-", "--out", out, "--key", "k", stdin=self.piped(gzip.compress(lines)[:-20]))
        self.assertIn("standard input: cannot read: the gzip data ends too soon", line)
        line = self.fails("build", "-", "--out", out, "--format", "parquet")
        self.assertIn("--format of standard input is csv, jsonl or arrow", line)
        line = self.fails("build", "-", "--out", out, "--format", "xlsx")
        self.assertIn("expected one of: csv", line)


class BadRows(HushTest):
    def test_they_are_left_out_and_written(self):
        rows = [f"key {i},{i}" for i in range(100)]
        rows[7:7] = ["too,many,fields", "key 3"]
        source, bad, out = self.dir / "table.csv", self.dir / "bad.jsonl", self.dir / "table"
        source.write_text("\n".join(["k,v", *rows]) + "\n")
        args = ("build", source, "--out", out, "--key", "k", "--protocol", "simple")
        self.assertIn("row 8 (line 9): 3 fields", self.fails(*args))
        self.assertIn("102 rows, where 103 are expected", self.fails(*args, "--skip-bad-rows", bad, "--expect-rows", 103))
        result = self.hushdb(*args, "--skip-bad-rows", bad, "--expect-rows", 102)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"read 102 rows: 100 records; 2 bad rows were left out, and are in {bad}", result.stderr)
        written = [json.loads(line) for line in bad.read_text().splitlines()]
        self.assertEqual([(row["row"], row["line"], row["content"]) for row in written], [(8, 9, ["too", "many", "fields"]), (9, 10, ["key 3"])])
        # Messages count the rows of the file.
        source.write_text("\n".join(["k,v", *rows, "key 98,1"]) + "\n")
        self.assertIn("rows 101 and 103 both have the key", self.fails(*args, "--force", "--skip-bad-rows", bad))


class SeveralInputs(HushTest):
    def test_files_of_the_same_columns_are_one_table(self):
        folder = self.dir / "people"
        folder.mkdir()
        for number in range(3):
            rows = [(f"key {number} {i}", f"value {number} {i}") for i in range(40)]
            self.csv(rows, header="k,v", name=f"people/{number}.csv")
        line = self.fails("build", folder, "--out", self.dir / "none", "--key", "k")
        self.assertIn("people: a folder that has 0.csv: --as rows takes", line)
        for name, inputs in (
            ("files", sorted(folder.iterdir())),
            ("pattern", [folder / "*.csv"]),
            ("rows", [folder, "--as", "rows"]),
        ):
            with self.subTest(name):
                out = self.dir / name
                result = self.hushdb("build", *inputs, "--out", out, "--key", "k", "--protocol", "simple")
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn("read 120 rows: 120 records", result.stderr)
        with self.serve(self.dir / "rows") as (url, _):
            answers = self.get(url, "key 0 0", "key 2 39", "key 3 0")[1]
            self.assertEqual([answer.get("value") for answer in answers], ["value 0 0", "value 2 39", None])
        self.csv([("a", 1), ("key 1 7", 2)], header="k,v", name="people/3.csv")
        line = self.fails("build", folder, "--as", "rows", "--out", self.dir / "none", "--key", "k")
        self.assertIn(f"{folder}/1.csv, row 8 and {folder}/3.csv, row 2 both have the key", line)
