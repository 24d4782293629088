"""Tests scripts/deny.sh with a stand-in for cargo-deny: the database that it uses, when it fails, and the line that `make test` prints."""

import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKSPACES = 4
CLONE = "advisory-db-3157b0e258782691"
# The stand-in prints what it was asked, and the database of an advisory check. FETCHES tells whether there is a network.
STAND_IN = """#!/bin/sh
case "$*" in *"fetch db"*) [ "$FETCHES" = 1 ]; exit ;; esac
while [ $# -gt 0 ]; do [ "$1" = --offline ] && offline=offline; [ "$1" = --config ] && config=$2; last=$1; shift; done
database=$(sed -n 's/^db-path = "\\(.*\\)"/\\1/p' "$config")
echo "stand-in: $last $offline $(cat "$database/advisory-db-3157b0e258782691/name" 2>/dev/null)" | sed 's/ *$//'
[ "$last" != "$FAILS" ]
"""


class Deny(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = pathlib.Path(scratch.name)
        self.stand_in = self.dir / "cargo-deny"
        self.stand_in.write_text(STAND_IN)
        self.stand_in.chmod(0o755)
        self.verdict = self.dir / "target/advisories"

    def database(self, path, name, days=0):
        """Creates a checkout whose last commit is `days` old, and returns its path."""
        (path / "crates").mkdir(parents=True)
        (path / "name").write_text(name)
        date = f"@{int(time.time()) - days * 86400} +0000"
        env = {**os.environ, "GIT_COMMITTER_DATE": date, "GIT_AUTHOR_DATE": date}
        git = ["git", "-C", path, "-c", "user.name=n", "-c", "user.email=e"]
        for command in (["init", "--quiet"], ["add", "name"], ["commit", "--quiet", "--message", name]):
            subprocess.run([*git, *command], check=True, env=env)
        return path

    def deny(self, **env):
        """Runs deny.sh. Returns the exit status, the checks (equal for the product, the fuzz targets and the peers), and the output."""
        command = [ROOT / "scripts/deny.sh", self.stand_in, self.verdict]
        result = subprocess.run(command, cwd=ROOT, env=self.environment(env), capture_output=True, text=True)
        lines = (result.stdout + result.stderr).splitlines()
        asked = [line.removeprefix("stand-in: ") for line in lines if line.startswith("stand-in: ")]
        if result.returncode == 0:
            for workspace in range(1, WORKSPACES):
                self.assertEqual(asked[0::WORKSPACES], asked[workspace::WORKSPACES])
        self.assertEqual(asked[0], "sources")
        return result.returncode, asked[WORKSPACES::WORKSPACES], "\n".join(line for line in lines if not line.startswith("stand-in: "))

    def environment(self, own):
        keep = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        return {**keep, "CARGO_HOME": str(self.dir / "cargo"), **{name: str(value) for name, value in own.items()}}

    def test_with_a_network(self):
        self.assertEqual(
            self.deny(FETCHES=1, CI=1), (0, ["advisories"], "advisories: checked, with what was fetched today")
        )

    def test_the_last_line_of_a_run_says_whether_advisories_were_checked(self):
        """Runs `make test` without its other steps, as in CI and by hand."""
        recipe = re.search("^test: (.*?) ##", (ROOT / "Makefile").read_text(), re.MULTILINE)
        old = [option for name in recipe[1].split() if name != "deny" for option in ("-o", name)]
        make = self.dir / "bin/make"
        make.parent.mkdir()
        own = " ".join([*old, f"DENY={self.stand_in}", f"ADVISORIES={self.verdict}"])
        make.write_text(f'#!/bin/sh\nPATH=${{PATH#*:}} exec make "$@" {own}\n')
        make.chmod(0o755)
        path = f"{make.parent}:{os.environ['PATH']}"
        database = self.database(self.dir / "db", "db")
        for own, last in (
            ({}, "advisories: NOT CHECKED, .*HUSHDB_ADVISORY_DB.*"),
            ({"FETCHES": 1}, "advisories: checked, with what was fetched today"),
            ({"HUSHDB_ADVISORY_DB": database}, "advisories: checked, with those of [0-9-]{10}"),
        ):
            for command in ([ROOT / ".ci/run"], ["make", "test"]):
                with self.subTest(command=command, **own):
                    env = self.environment({"PATH": path, **own})
                    result = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
                    self.assertEqual((result.returncode, result.stderr), (0, ""))
                    self.assertRegex(result.stdout.splitlines()[-1], f"^{last}$")

    def test_with_nothing(self):
        for env, status in (({}, 0), ({"CI": 1}, 0), ({"HUSHDB_REQUIRE_ADVISORIES": 1}, 1)):
            with self.subTest(env):
                code, asked, said = self.deny(**env)
                self.assertEqual((code, asked), (status, []))
                self.assertRegex(said, "^advisories: NOT CHECKED, .*HUSHDB_ADVISORY_DB.*$")
                self.assertEqual(self.verdict.read_text(), said + "\n")

    def test_with_an_earlier_clone(self):
        self.database(self.dir / "cargo/advisory-dbs" / CLONE, "clone", days=61)
        code, asked, said = self.deny(HUSHDB_REQUIRE_ADVISORIES=1)
        self.assertEqual((code, asked), (0, ["advisories offline clone"]))
        self.assertRegex(said, "^advisories: checked, with those of [0-9-]{10}$")
        code, asked, said = self.deny(CI=1)
        self.assertEqual((code, asked), (1, []))
        self.assertRegex(said, "61 days old, at most 60 in CI: run 'make deny' with a network")

    def test_half_a_clone_is_none(self):
        (self.dir / "cargo/advisory-dbs" / CLONE / ".git").mkdir(parents=True)
        self.assertIn("NOT CHECKED", self.deny()[2])

    def test_with_a_checkout(self):
        new, old = self.database(self.dir / "new db", "new", days=59), self.database(self.dir / "old", "old", days=100)
        for fetches in (0, 1):
            self.assertEqual(self.deny(HUSHDB_ADVISORY_DB=new, CI=1, FETCHES=fetches)[:2], (0, ["advisories offline new"]))
        self.assertEqual(self.deny(HUSHDB_ADVISORY_DB=old)[:2], (0, ["advisories offline old"]))
        code, _, said = self.deny(HUSHDB_ADVISORY_DB=old, CI=1)
        self.assertEqual(code, 1)
        self.assertIn("100 days old, at most 60 in CI: git pull there", said)
        code, _, said = self.deny(HUSHDB_ADVISORY_DB=self.dir)
        self.assertEqual(code, 1)
        self.assertIn("is no checkout", said)

    def test_an_advisory_fails(self):
        database = self.database(self.dir / "db", "db")
        self.assertEqual(self.deny(HUSHDB_ADVISORY_DB=database, FAILS="advisories")[0], 1)
        self.assertIn("NOT CHECKED", self.verdict.read_text())


if __name__ == "__main__":
    unittest.main()
