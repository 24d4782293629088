"""Places that a table is read from."""

import gzip
import json
import pathlib

from harness import HushTest


class StandardInput(HushTest):
    def found(self, table, *keys):
        with self.serve(table) as (url, _):
            return [answer.get("value") for answer in self.get(url, *keys)[1]]

    def piped(self, content):
        """`content` as what a command gets for standard input."""
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
        vectors = pathlib.Path(__file__).resolve().parents[2] / "crates/hush-store/tests/ingest/arrow"
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
