"""Tests that a log in JSON has no other lines: at the start of a server, about its tables, and at its end."""

import json

from keyed import values
from test_changes import COLPACK
from test_admin import AdminTest as _AdminTest


class LogTest(_AdminTest):
    def lines(self, text):
        """Returns the lines of a log, and checks that each is an object with a time and a level."""
        lines = [json.loads(line) for line in text.splitlines()]
        for line in lines:
            self.assertLessEqual({"timestamp", "level", "target", "message"}, line.keys())
        return lines

    def test_every_line_of_a_server_is_json(self):
        good = self.table(values(200, 40), "colpack", *COLPACK, name="good")
        bad = self.build(self.csv([("a", "1")]), "--key", "key", "--protocol", "frodo", name="bad")
        (bad / "db.bin").write_bytes(b"")
        log = self.dir / "log"
        options = ["--log-format", "json", "--watch", "--data", self.data, "--listen-admin", "127.0.0.1:0"]
        with self.serve(good, bad, args=options, log=log):
            changes = self.jsonl({"k1": "new"}, "changes.jsonl")
            self.hushdb("apply", good, changes, "--key", "k", "--value", "v")
            self.wait_for("the change", lambda: "taken up" in log.read_text())
            (good / "header.json").write_text("{}")
            self.wait_for("the damage", lambda: "not taken up" in log.read_text())
        lines = self.lines(log.read_text())
        said = [(line["level"], line.get("table"), line["message"]) for line in lines]
        for level, table, message in [
            ("INFO", None, "listening on http://127.0.0.1:"), ("INFO", None, "admin endpoints on http://127.0.0.1:"),
            ("ERROR", "bad", "not served: "), ("INFO", "good", "colpack from "), ("INFO", "good", "epoch "),
            ("WARN", "good", "what is in its folder now is not taken up: "), ("INFO", None, "stopping: "),
        ]:
            found = [line for line in said if line[:2] == (level, table) and line[2].startswith(message)]
            self.assertEqual(len(found), 1, (level, table, message, said))
        # RUST_LOG does not change this.
        env = {**self.env, "RUST_LOG": "off"}
        ended = self.hushdb("serve", bad, "--listen", "127.0.0.1:0", "--log-format", "json", env=env)
        self.assertEqual(ended.returncode, 2)
        *_, last = self.lines(ended.stderr)
        self.assertEqual(last["level"], "ERROR")
        self.assertIn("db.bin", last["message"])
