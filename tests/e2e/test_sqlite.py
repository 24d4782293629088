"""Tests of SQLite databases that are hard to read."""

import os
import sqlite3
import subprocess

from harness import BINARY, HushTest


class Sqlite(HushTest):
    def test_a_write_ahead_log_in_a_folder_that_may_not_be_written(self):
        folder = self.dir / "read only ?#%"
        folder.mkdir()
        database = sqlite3.connect(folder / "rows.sqlite3")
        database.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t (k, v); INSERT INTO t VALUES ('a', 'b')")
        database.close()
        # Root can write everywhere, unless it drops this capability.
        unable = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"] if os.geteuid() == 0 else []

        def build(out):
            command = [*unable, BINARY, "build", folder / "rows.sqlite3", "--key", "k", "--out", self.dir / out]
            return subprocess.run(list(map(str, command)), capture_output=True, text=True, env=self.env, timeout=120)

        self.addCleanup(folder.chmod, 0o755)
        folder.chmod(0o555)
        whole = build("whole")
        self.assertEqual(whole.returncode, 0, whole.stderr)
        with self.serve(self.dir / "whole") as (url, _):
            self.assertEqual(self.get(url, "a")[1][0]["value"], "b")
        folder.chmod(0o755)
        (folder / "rows.sqlite3-wal").write_bytes(b"more records")
        folder.chmod(0o555)
        refused = build("refused")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("has a write-ahead log (WAL), and its folder may not be written", refused.stderr)
        self.assertIn("PRAGMA wal_checkpoint(TRUNCATE)", refused.stderr)
